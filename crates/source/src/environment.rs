//! The environment variables of one [`Sources`](crate::Sources), read once. Names enter, values leave; a
//! variable set to nothing counts as not set, as AWS's own tools have it.

use std::collections::HashMap;
use std::path::PathBuf;

/// A snapshot of the environment. Holds secrets, so it has no `Debug`.
pub(crate) struct Environment(HashMap<String, String>);

impl Environment {
    pub(crate) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Environment {
        Environment(variables.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// That of this process; variables that are not UTF-8 are left out.
    pub(crate) fn of_process() -> Environment {
        let utf8 = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment::new(howdah_model::environment::vars_os().into_iter().filter_map(utf8))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0.contains_key(*name))
    }

    /// `true`, `1`, `yes`, `on` in any case.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let on = |value: &str| ["true", "1", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes));
        self.get(name).is_some_and(on)
    }

    /// Variables whose names begin so.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pair = |(name, value): (&'a String, &'a String)| (name.as_str(), value.as_str());
        self.0.iter().map(pair).filter(move |(name, _)| name.starts_with(prefix))
    }

    /// A path below the home directory.
    pub(crate) fn home(&self, below: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.get("HOME")?).join(below))
    }
}
