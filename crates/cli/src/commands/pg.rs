//! `howdah pg`: the embedded server.

use super::Process;
use crate::Exit;
use clap::{Args, Subcommand};
use howdah_engine::embedded::Embedded;
use howdah_engine::model::{Error, ErrorKind, Result};
use std::os::unix::process::CommandExt;

/// Options of `pg`.
#[derive(Debug, Args)]
pub struct PgOptions {
    /// What to do with the embedded server
    #[command(subcommand)]
    pub verb: PgVerb,
}

/// What can be done with the embedded server.
#[derive(Debug, Subcommand)]
pub enum PgVerb {
    /// Start it, making its data directory the first time
    Start,
    /// Stop it
    Stop,
    /// Say whether it runs, where its data is, and which version it has
    Status,
    /// Print its connection string
    Url,
    /// Open psql on it, handing over further arguments
    Psql {
        /// Arguments of psql
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

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
