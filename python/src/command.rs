//! The `howdah` command of the wheel: the same [`howdah_cli::run`] as the binary's.

use crate::pg;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Run a command line, its first word being the program's name, and return the exit code.
///
/// It takes over Ctrl-C for the rest of the process: for `howdah.__main__` alone.
#[pyfunction]
#[pyo3(signature = (arguments))]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let site_packages = pg::site_packages(py)?;
    Ok(py.detach(|| howdah_cli::run(arguments, &site_packages)))
}
