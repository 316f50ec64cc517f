//! Runs other programs: a command enters, success or a one-line reason leaves.
//!
//! Standard input is always empty, so that nothing ever waits for a person.

use crate::Result;
use std::process::{Command, Output, Stdio};

/// Runs a program to its end; its output is shown only when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = finish(command)?;
    if output.status.success() {
        return Ok(());
    }
    let shown =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{} ended with {}:\n{}", name(command), output.status, shown.trim_end()))
}

/// Runs a program that downloads: one failure may be the network's, so it gets a second try.
pub(crate) fn run_twice(command: &mut Command) -> Result<()> {
    run(command).or_else(|first| {
        println!("  trying again: {}", first.lines().next().unwrap_or_default());
        run(command)
    })
}

/// What a program prints on standard output; `None` when it is missing or fails.
pub(crate) fn printed(command: &mut Command) -> Option<String> {
    let output = finish(command).ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn finish(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {}: {error}", name(command)))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
