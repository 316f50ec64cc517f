//! What a connection takes from the process around it: environment variables, home directory, user
//! name. Gathered once, so that everything after it is a function of its arguments and can be tested.

use super::conninfo::PASSWORD_COMMAND;
use std::collections::HashMap;
use std::path::PathBuf;

/// A snapshot of the process's surroundings.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// Environment variables whose names begin with `PG`, and the one that names a command for the password.
    pub(super) variables: HashMap<String, String>,
    /// `$HOME`, or the home directory of the user database.
    pub(super) home: Option<PathBuf>,
    /// The name of the effective user: libpq's default for `user`.
    pub(super) user: Option<String>,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn of_this_process() -> Surroundings {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Surroundings {
            variables: std::env::vars_os()
                .filter_map(text)
                .filter(|(name, _)| name.starts_with("PG") || name == PASSWORD_COMMAND)
                .collect(),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            user: whoami::username().ok(),
        }
    }

    /// A variable's value; the empty string counts as a value, as in libpq.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}
