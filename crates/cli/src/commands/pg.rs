//! `howdah pg`: the embedded server.

use super::Process;
use crate::Exit;
use crate::options::{PgOptions, PgVerb};
use howdah_engine::embedded::Embedded;
use howdah_engine::model::{Error, ErrorKind, Result};
use std::os::unix::process::CommandExt;

/// Starts, stops or asks it.
///
/// # Errors
/// `Local` when there are no binaries, or a program of the server fails.
pub fn pg(options: &PgOptions, process: &Process<'_>) -> Result<Exit> {
    let printer = process.printer;
    let server = Embedded::locate_with(process.site_packages)?;
    match &options.verb {
        PgVerb::Start => {
            let started = server.ensure_started()?;
            printer.say(if started.started { "started" } else { "it was running" });
            printer.out(&started.conninfo);
        }
        PgVerb::Stop => printer.say(if server.stop()? { "stopped" } else { "it was not running" }),
        PgVerb::Status => {
            printer.out(&format!("{}, PostgreSQL {}", server.status(), server.major()));
            printer.out(&format!("data     {}", server.data_dir().display()));
            printer.out(&format!("log      {}", server.log_file().display()));
            printer.out(&format!("programs {}", server.bin_dir().display()));
        }
        PgVerb::Url => printer.out(&server.conninfo()),
        PgVerb::Psql { arguments } => {
            server.ensure_started()?;
            // Returns only if psql cannot be started at all.
            let error = server.psql_command()?.args(arguments).exec();
            return Err(Error::new(ErrorKind::Local, format!("psql cannot be started: {error}")));
        }
    }
    Ok(Exit::Success)
}
