//! `howdah completions` and `howdah man`: made from the declarations of the options.

use crate::Exit;
use crate::options::Options;
use crate::printer::Printer;
use clap::CommandFactory;
use howdah_engine::model::{Error, ErrorKind, Result};
use std::path::Path;

/// Prints the completions for a shell.
///
/// # Errors
/// None in practice.
pub fn completions(shell: clap_complete::Shell, printer: &Printer) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "howdah", &mut text);
    printer.out(String::from_utf8_lossy(&text).trim_end());
    Ok(Exit::Success)
}

/// Prints the manual page of the command, or writes those of all subcommands too.
///
/// # Errors
/// `Local` when a page cannot be written.
pub fn man(directory: Option<&Path>, printer: &Printer) -> Result<Exit> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Local, format!("the manual cannot be written: {error}"))
    };
    match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(failed)?;
            clap_mangen::generate_to(Options::command(), directory).map_err(failed)?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Options::command()).render(&mut text).map_err(failed)?;
            printer.out(String::from_utf8_lossy(&text).trim_end());
        }
    }
    Ok(Exit::Success)
}
