//! The environment variables of the process, for all who ask for some. Names enter, values leave.
//!
//! Inside of another program they may change at any moment, and reading them beside that ends the process by
//! a segmentation fault (setenv(3) is not safe among threads): such a caller takes them by [`keep`] where
//! nobody changes them, and they are read from there.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, PoisonError};

/// Names and values. Holds secrets, so nothing prints it.
type Variables = Vec<(OsString, OsString)>;

static KEPT: Mutex<Option<Arc<Variables>>> = Mutex::new(None);

/// From now on the variables are as they are at this moment, for all of this process.
pub fn keep() {
    let variables = std::env::vars_os().collect();
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(variables));
}

/// All of them: as they were kept, else as they are.
pub fn vars_os() -> Vec<(OsString, OsString)> {
    kept().map_or_else(|| std::env::vars_os().collect(), |variables| variables.to_vec())
}

/// The variable of this name, likewise.
pub fn var_os(name: impl AsRef<OsStr>) -> Option<OsString> {
    let name = name.as_ref();
    let Some(variables) = kept() else { return std::env::var_os(name) };
    variables.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone())
}

fn kept() -> Option<Arc<Variables>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
