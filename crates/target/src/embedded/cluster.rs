//! Makes, starts and stops the cluster by PostgreSQL's own programs, run as the server's user.
//!
//! Enters: binaries and folders. Leaves: a cluster that is either complete or not there, and a server that
//! answers. Programs get a clean environment, so that the caller's `PG*` variables do not leak in.

use super::{Account, Binaries, DATABASE, Folders, USER, account, local, pid_file, settings};
use howdah_model::{Error, Result};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds a server may need to come up: crash recovery of a few GB of WAL takes its time.
const START_SECONDS_MAX: &str = "300";

/// The newest major that has a cluster below `base`.
pub(super) fn major_in(base: &Path) -> Option<u32> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let majors = entries.filter(|entry| entry.path().join("data/PG_VERSION").is_file());
    majors.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max()
}

/// Makes a cluster with an empty database. It is built under another name and renamed when complete.
pub(super) fn init(binaries: &Binaries, folders: &Folders, account: Option<&Account>) -> Result<()> {
    let part = folders.version.join("data.part");
    init_data(binaries, folders, account, &part)?;
    create_database(binaries, folders, account, &part)?;
    let file = part.join("postgresql.conf");
    let conf = fs::read_to_string(&file)
        .map_err(|error| local(format!("cannot read {}: {error}", file.display())))?;
    account::write_file(account, &file, &(conf + settings::INCLUDE))?;
    fs::rename(&part, &folders.data).map_err(|error| {
        local(format!("cannot rename {} to {}: {error}", part.display(), folders.data.display()))
    })
}

/// Starts the server and waits until it answers.
pub(super) fn start(binaries: &Binaries, folders: &Folders, account: Option<&Account>) -> Result<()> {
    pid_file::release_reused(&folders.data, &folders.socket_lock(), account)?;
    account::write_file(account, &folders.data.join("howdah.conf"), &settings::content(&folders.socket))?;
    let mut command = program(binaries, "pg_ctl", folders, account);
    command.args(["start", "--wait", "--silent", "--timeout", START_SECONDS_MAX]);
    command.arg("--pgdata").arg(&folders.data).arg("--log").arg(&folders.log);
    run(&mut command).map(drop).map_err(|error| error.with_hint(format!("see {}", folders.log.display())))
}

/// Stops the server; sessions are ended, their transactions rolled back.
pub(super) fn stop(binaries: &Binaries, folders: &Folders, account: Option<&Account>) -> Result<()> {
    let mut command = program(binaries, "pg_ctl", folders, account);
    command.args(["stop", "--wait", "--silent", "--mode", "fast", "--timeout", START_SECONDS_MAX]);
    command.arg("--pgdata").arg(&folders.data);
    run(&mut command).map(drop)
}

/// `initdb`, with the first of the locales that the machine has: code-point order and UTF-8 throughout, so
/// that the same data sorts alike everywhere.
fn init_data(binaries: &Binaries, folders: &Folders, account: Option<&Account>, part: &Path) -> Result<()> {
    let locales: &[&[&str]] = if binaries.major >= 17 {
        &[&["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]]
    } else {
        &[&["--locale=C.UTF-8"], &["--locale=C"]]
    };
    let mut outcome = Ok(());
    for locale in locales {
        remove(part)?;
        let mut command = program(binaries, "initdb", folders, account);
        command.args(["--encoding=UTF8", "--auth-local=trust", "--auth-host=reject", "--username", USER]);
        command.args(*locale).arg("--pgdata").arg(part);
        outcome = run(&mut command).map(drop);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Single-user mode needs neither a running server nor a client.
fn create_database(
    binaries: &Binaries,
    folders: &Folders,
    account: Option<&Account>,
    part: &Path,
) -> Result<()> {
    let mut command = program(binaries, "postgres", folders, account);
    command.arg("--single").arg("-D").arg(part).arg("postgres");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| local(format!("cannot run postgres --single: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(format!("CREATE DATABASE {DATABASE}\n").as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    // Single-user mode ends with 0 even after an error, which it writes to standard error.
    if output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("ERROR:") {
        return Ok(());
    }
    Err(program_failed("postgres --single", &output))
}

/// A program of PostgreSQL as the server's user, in a folder it can enter, with a clean environment.
fn program(binaries: &Binaries, name: &str, folders: &Folders, account: Option<&Account>) -> Command {
    let mut command = Command::new(binaries.program(name));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("HOME", &folders.base);
    if let Some(zone) = howdah_model::environment::var_os("TZ") {
        command.env("TZ", zone);
    }
    command.current_dir(&folders.base).stdin(Stdio::null());
    if let Some(account) = account {
        account.apply(&mut command);
    }
    command
}

fn run(command: &mut Command) -> Result<Output> {
    let name = PathBuf::from(command.get_program()).display().to_string();
    let output = command.output().map_err(|error| local(format!("cannot run {name}: {error}")))?;
    if output.status.success() { Ok(output) } else { Err(program_failed(&name, &output)) }
}

/// The end of what a program wrote is what a person wants to read first.
fn program_failed(name: &str, output: &Output) -> Error {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join(" / ");
    local(format!("{name} failed with {}: {last}", output.status))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(local(format!("cannot remove {}: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}
