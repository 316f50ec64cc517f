//! `howdah.status`: what the ledger of a database remembers.

use crate::{connection, json, run};
use howdah_engine::{Absent, history};
use pyo3::prelude::*;

/// The jobs that the ledger of a database remembers, the oldest first, or the one of this name.
#[pyfunction]
#[pyo3(signature = (job=None, *, to=None, ledger="howdah".to_owned()),
       text_signature = "(job=None, *, to=None, ledger='howdah')")]
pub(crate) fn status(
    py: Python<'_>,
    job: Option<String>,
    to: Option<String>,
    ledger: String,
) -> PyResult<Bound<'_, PyAny>> {
    let connection = connection::resolve(py, to, Absent::Refused)?;
    let rows = run::run(py, None, move |_, stop| async move {
        let rows = stop.guard(async {
            match job {
                Some(id) => Ok(vec![history::job(&connection, &ledger, &id).await?]),
                None => history::jobs(&connection, &ledger).await,
            }
        });
        Ok(rows.await?)
    })?;
    json::to_python(py, &rows)
}
