//! The `howdah` command: options as typed, settings resolved from them, one file per subcommand, one printer.
//!
//! 1. [`options`] declares every option once; help, man page and completions come from there.
//! 2. [`settings`] and [`shaping`] turn options and job file into a job; nothing after it sees an option.
//! 3. [`commands`] has one file per subcommand, driving the engine's public verbs.
//! 4. [`printer`] is the only place that writes to the terminal; [`progress`] draws while a load runs.
//!
//! The binary and the Python wheel both call [`run`].

pub mod access;
pub mod account;
pub mod arrival;
pub mod bad_records;
pub mod checked;
pub mod commands;
pub mod job_file;
pub mod options;
pub mod printer;
pub mod progress;
mod prompt;
pub mod rejected;
pub mod rerun;
pub mod settings;
pub mod shaping;
mod signals;
pub mod units;

use clap::Parser;
use commands::Process;
use commands::load::json;
use howdah_engine::model::ErrorReport;
use howdah_engine::model::summary::Status;
use howdah_engine::model::{Error, ErrorKind};
use howdah_engine::{ROOM_HINT, Stop};
use options::{Command, Options};
use printer::Printer;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};

/// How the command ended; the exit codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: all rows stored.
    Success,
    /// 1: failed; nothing half-done beyond what the ledger says.
    Failure,
    /// 2: the options make no sense.
    Usage,
    /// 3: loaded, but for records that were left out.
    LeftOut,
    /// 130: stopped by the user.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::LeftOut => 3,
            Exit::Interrupted => 130,
        }
    }

    /// How a command that failed with this error ends.
    pub fn of(error: &Error) -> Exit {
        match error.kind() {
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Interrupted => Exit::Interrupted,
            _ => Exit::Failure,
        }
    }
}

/// Runs one command line, `args[0]` being the program's name, and returns the exit code.
///
/// `site_packages` are folders in which Python packages with server programs may be: the wheel's command
/// knows them, the binary has none to name.
pub fn run(args: impl IntoIterator<Item = OsString>, site_packages: &[PathBuf]) -> u8 {
    let options = match Options::try_parse_from(args) {
        Ok(options) => options,
        Err(error) => {
            // Help and version go to stdout with code 0, mistakes to stderr with code 2.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() };
        }
    };
    let printer = Printer::new(&options.command);
    let stop = Stop::default();
    let runtime = match start().and_then(|runtime| signals::listen(stop.clone()).map(|()| runtime)) {
        Ok(runtime) => runtime,
        Err(error) => {
            return give_up(&cannot_start(&error), &printer).code();
        }
    };
    let process = Process { printer: &printer, stop: &stop, site_packages };
    let ended = told_by_error(|| runtime.block_on(dispatch(options.command, &process)));
    // A thread may still sit in a read of a pipe; it must not hold up the end of the process.
    runtime.shutdown_background();
    let exit = match ended {
        Ok(exit) => exit,
        Err(error) => give_up(&error, &printer),
    };
    let is_fine = matches!(exit, Exit::Success | Exit::LeftOut);
    if is_fine && printer.has_lost() { Exit::Failure.code() } else { exit.code() }
}

/// A panic is an error like others to whoever reads the exit code or the document. Where it was stands on
/// stderr already.
fn told_by_error(work: impl FnOnce() -> Result<Exit, Error>) -> Result<Exit, Error> {
    // Nothing of the work is used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Internal, "a thread of howdah panicked").with_hint(
            "report it with the lines above; howdah status tells what is stored, howdah restore puts back what a load has changed",
        ))
    })
}

/// The error of a command that has not begun.
fn cannot_start(error: &std::io::Error) -> Error {
    let told = Error::new(ErrorKind::Local, format!("cannot start: {error}"));
    match error.kind() {
        // EAGAIN of a thread that is not made, and ENOMEM.
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory => told.with_hint(ROOM_HINT),
        _ => told,
    }
}

/// The threads of the command. Without memory or room for them tokio panics, and then waits without end for
/// those that it has.
fn start() -> std::io::Result<Runtime> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {
        let told = "error: cannot start: the system has no memory for threads, or lets this user have no more of them";
        let _ = writeln!(std::io::stderr(), "{told}\nhint: {ROOM_HINT}");
        std::process::exit(Exit::Failure.code().into());
    }));
    let runtime = Builder::new_multi_thread().enable_all().build();
    std::panic::set_hook(hook);
    runtime
}

/// What `--json` prints for a command that ended before its own document could be made.
#[derive(Serialize)]
struct NoDocument<'a> {
    status: Status,
    error: ErrorReport<'a>,
}

fn give_up(error: &Error, printer: &Printer) -> Exit {
    printer.error(error);
    if printer.json() {
        let status = match error.kind() {
            ErrorKind::Interrupted => Status::Interrupted,
            _ => Status::Failed,
        };
        printer.out(&json(&NoDocument { status, error: ErrorReport::of(error) }));
    }
    Exit::of(error)
}

async fn dispatch(command: Command, process: &Process<'_>) -> Result<Exit, Error> {
    match command {
        Command::Load(options) => Box::pin(commands::load::load(*options, process)).await,
        Command::Check(options) => Box::pin(commands::check::check(*options, process)).await,
        Command::Plan(options) => Box::pin(commands::plan::plan(*options, process)).await,
        Command::Bench(options) => Box::pin(commands::bench::bench(*options, process)).await,
        Command::Status(options) => commands::status::status(&options, process).await,
        Command::Resume(options) => Box::pin(commands::resume::resume(&options, process)).await,
        Command::Restore(options) => commands::restore::restore(&options, process).await,
        Command::Pg(options) => commands::pg::pg(&options, process),
        Command::Completions { shell } => commands::generate::completions(shell, process.printer),
        Command::Man { directory } => commands::generate::man(directory.as_deref(), process.printer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_command_like_an_error() {
        let error = told_by_error(|| panic!("a fault of the program")).unwrap_err();
        assert_eq!((error.kind(), Exit::of(&error)), (ErrorKind::Internal, Exit::Failure));
    }
}
