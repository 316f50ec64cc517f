//! How to reach the server a verb goes to, for all verbs.

use crate::{events, pg, run};
use howdah_cli::settings::{self, Settings};
use howdah_engine::{Absent, Connection};
use pyo3::prelude::*;

/// The server that the settings name, after telling what the user should know about them.
///
/// # Errors
/// As for [`resolve`].
pub(crate) fn of(
    py: Python<'_>,
    settings: &Settings,
    absent: Absent,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<Connection> {
    run::expect_callable(on_event)?;
    settings.notice.iter().try_for_each(|notice| events::notice(py, on_event, notice))?;
    resolve(py, settings.access.reach(), absent, on_event)
}

/// The server that `to` and the environment name, and the command that prints its password. May start the embedded one, which the user is told if nothing names it. What the
/// user should know about the files of the connection becomes a warning of Python.
///
/// # Errors
/// Those of the connection; what `on_event` raises, or a filter makes of a warning.
pub(crate) fn resolve(
    py: Python<'_>,
    (to, password_command): (Option<String>, Option<String>),
    absent: Absent,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<Connection> {
    run::expect_callable(on_event)?;
    let site_packages = pg::site_packages(py)?;
    let connection = run::run(py, None, move |_, stop| async move {
        Ok(stop.guard(settings::connection(to, &site_packages, absent)).await?)
    })?;
    let connection = match password_command {
        Some(command) => connection.with_password_command(&command),
        None => connection,
    };
    connection.notice().iter().try_for_each(|notice| events::notice(py, on_event, notice))?;
    connection.warnings().iter().try_for_each(|warning| events::warn_of(py, warning))?;
    Ok(connection)
}
