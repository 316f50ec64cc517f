//! What a connection takes from the process around it: environment variables, home directory, user
//! name. Gathered once, so that everything after it is a function of its arguments and can be tested.

use super::conninfo::PASSWORD_COMMAND;
use howdah_model::environment;
use std::collections::HashMap;
use std::path::PathBuf;

/// A snapshot of the process's surroundings.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// Environment variables whose names begin with `PG`, and the one that names a command for the password.
    pub(super) variables: HashMap<String, String>,
    /// The names of those that are not UTF-8, as a path may be.
    pub(super) unreadable: Vec<String>,
    /// `$HOME`, or the home directory of the user database.
    pub(super) home: Option<PathBuf>,
    /// The name of the effective user: libpq's default for `user`.
    pub(super) user: Option<String>,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn of_this_process() -> Surroundings {
        let mut around =
            Surroundings { home: home(), user: whoami::username().ok(), ..Surroundings::default() };
        for (name, value) in environment::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            if !name.starts_with("PG") && name != PASSWORD_COMMAND {
                continue;
            }
            match value.into_string() {
                Ok(value) => drop(around.variables.insert(name, value)),
                Err(_) => around.unreadable.push(name),
            }
        }
        around
    }

    /// A variable's value; the empty string counts as a value, as in libpq.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

fn home() -> Option<PathBuf> {
    let set = environment::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    set.or_else(std::env::home_dir).filter(|home| !home.as_os_str().is_empty())
}
