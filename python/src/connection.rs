//! How to reach the server a verb goes to, for all verbs.

use crate::{pg, run};
use howdah_cli::settings;
use howdah_engine::{Absent, Connection};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;

/// The server that `to` and the environment name. May start the embedded one. What the user should know
/// about the files of the connection becomes a warning of Python.
pub(crate) fn resolve(py: Python<'_>, to: Option<String>, absent: Absent) -> PyResult<Connection> {
    let site_packages = pg::site_packages(py)?;
    let connection = run::run(py, None, move |_, stop| async move {
        Ok(stop.guard(settings::connection(to, &site_packages, absent)).await?)
    })?;
    for warning in connection.warnings() {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(warning.as_str())?, 1)?;
    }
    Ok(connection)
}
