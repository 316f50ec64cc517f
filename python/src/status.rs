//! `howdah.status`: what the ledger of a database remembers.

use crate::ending::Call;
use crate::errors::Failure;
use crate::{connection, json, run};
use howdah_engine::model::{Error, ErrorKind};
use howdah_engine::{Absent, history, rejected};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The jobs that the ledger of a database remembers, the oldest first, or the one of this name.
#[pyfunction]
#[pyo3(signature = (job=None, *, to=None, password_command=None, ledger="howdah".to_owned(), reject_file=None),
       text_signature = "(job=None, *, to=None, password_command=None, ledger='howdah', reject_file=None)")]
pub(crate) fn status(
    py: Python<'_>,
    job: Option<String>,
    to: Option<String>,
    password_command: Option<String>,
    ledger: String,
    reject_file: Option<PathBuf>,
) -> PyResult<Bound<'_, PyAny>> {
    let call = &Call::begin(py);
    if reject_file.is_some() && job.is_none() {
        let error =
            Error::new(ErrorKind::Usage, "--reject-file is for the rejected records of one job: name it");
        return Err(Failure::from(error).into_exception(py));
    }
    let connection = connection::resolve(call, (to, password_command), Absent::Refused, None)?;
    let Some(job) = job else {
        let rows = run::run(call, None, move |_, stop| async move {
            Ok(stop.guard(history::jobs(&connection, &ledger, true)).await?)
        })?;
        return json::to_python(py, &rows);
    };
    let row = run::run(call, None, move |_, stop| async move {
        let row = stop.guard(async {
            let row = history::job(&connection, &ledger, &job).await?;
            if let Some(path) = &reject_file {
                rejected::write_files(&connection, &ledger, &row, path).await?;
            }
            Ok(row)
        });
        Ok(row.await?)
    })?;
    json::to_python(py, &[row])
}
