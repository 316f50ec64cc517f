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
    /// Prints the password.
    pub password_command: Option<String>,
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
            password_command: target.password_command.clone(),
            shows_password: target.to.as_deref().is_some_and(Connection::holds_password),
        }
    }

    /// The server and the command that prints its password.
    pub fn reach(&self) -> (Option<String>, Option<String>) {
        (self.to.clone(), self.password_command.clone())
    }

    /// The server as this says how to reach it.
    #[must_use]
    pub fn complete(&self, connection: Connection) -> Connection {
        match &self.password_command {
            Some(command) => connection.with_password_command(command),
            None => connection,
        }
    }

    /// What the user should know about it. The command line of a process is for everybody on the machine to
    /// read.
    pub fn warning(&self) -> Option<&'static str> {
        self.shows_password.then_some(
            "the password in --to is visible to everybody on this machine, who can list its processes; PGPASSWORD, \
             ~/.pgpass, PGPASSFILE or --password-command keep it out of sight, and -W asks for it",
        )
    }
}
