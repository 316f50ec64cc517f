//! `howdah.resume`: goes on with a job where it stopped, with the options it was begun with.

use crate::errors::summary_object;
use crate::load::load_job;
use crate::{connection, run};
use howdah_engine::history;
use pyo3::prelude::*;

/// Go on with a job where it stopped.
#[pyfunction]
#[pyo3(signature = (job, *, to=None, ledger="howdah".to_owned(), on_event=None),
       text_signature = "(job, *, to=None, ledger='howdah', on_event=None)")]
pub(crate) fn resume<'py>(
    py: Python<'py>,
    job: String,
    to: Option<String>,
    ledger: String,
    on_event: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let connection = connection::resolve(py, to)?;
    let summary = run::run(py, on_event, move |listener, stop| async move {
        let row = stop.guard(history::job(&connection, &ledger, &job)).await?;
        load_job(history::to_resume(&row, &ledger)?, connection, listener, stop).await
    })?;
    summary_object(py, &summary)
}
