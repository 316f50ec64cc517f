//! How a command is to reach its server: what was typed, and whether a password may be asked for.

use crate::options::TargetOptions;
use howdah_engine::Connection;

/// From the options about the server.
#[derive(Clone)]
pub struct Access {
    /// The server, as an URL or conninfo string.
    pub to: Option<String>,
    /// Ask for a password whether or not the server wants one.
    pub asks: bool,
    /// Ask for a password when the server wants one and none is known.
    pub may_ask: bool,
    /// A password stands on the command line.
    shows_password: bool,
}

impl Access {
    /// As typed; a job file may still name the server.
    pub fn typed(target: &TargetOptions) -> Access {
        Access {
            to: target.to.clone(),
            asks: target.password,
            may_ask: !target.no_password,
            shows_password: target.to.as_deref().is_some_and(Connection::holds_password),
        }
    }

    /// What the user should know about it. The command line of a process is for everybody on the machine to read.
    pub fn warning(&self) -> Option<&'static str> {
        self.shows_password.then_some(
            "the password in --to is visible to everybody on this machine, who can list its processes; PGPASSWORD, \
             ~/.pgpass or PGPASSFILE keep it out of sight, and -W asks for it",
        )
    }
}
