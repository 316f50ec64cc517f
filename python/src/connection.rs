//! How to reach the server a verb goes to, for all verbs.

use crate::ending::Call;
use crate::{events, pg, run};
use howdah_cli::settings::{self, Settings};
use howdah_engine::{Absent, Connection};
use pyo3::prelude::*;

/// The server that the settings name, after telling what the user should know about them.
///
/// # Errors
/// As for [`resolve`].
pub(crate) fn of(
    call: &Call<'_>,
    settings: &Settings,
    absent: Absent,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<Connection> {
    run::expect_callable(on_event)?;
    let tell = |notice: &String| call.tell(|| events::notice(call.py(), on_event, notice));
    settings.notice.iter().try_for_each(tell)?;
    resolve(call, settings.access.reach(), absent, on_event)
}

/// The server that `to` and the environment name, and the command that prints its password. May start the
/// embedded one, which the user is told if nothing names it. What the user should know about the files of the
/// connection becomes a warning of Python.
///
/// # Errors
/// Those of the connection; what `on_event` raises, or a filter makes of a warning.
pub(crate) fn resolve(
    call: &Call<'_>,
    (to, password_command): (Option<String>, Option<String>),
    absent: Absent,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<Connection> {
    run::expect_callable(on_event)?;
    let site_packages = pg::site_packages(call.py())?;
    let connection = run::run(call, None, move |_, stop| async move {
        Ok(stop.guard(settings::connection(to, &site_packages, absent)).await?)
    })?;
    let connection = match password_command {
        Some(command) => connection.with_password_command(&command),
        None => connection,
    };
    let tell = |notice: &String| call.tell(|| events::notice(call.py(), on_event, notice));
    connection.notice().iter().try_for_each(tell)?;
    connection.warnings().iter().try_for_each(|warning| events::warn_of(call.py(), warning))?;
    Ok(connection)
}
