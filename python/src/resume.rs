//! `howdah.resume`: goes on with a job where it stopped, with the options it was begun with.

use crate::errors::summary_object;
use crate::load::load_job;
use crate::options::Word;
use crate::{connection, run};
use howdah_cli::options::IndexesName;
use howdah_cli::refused::Refused;
use howdah_engine::history;
use pyo3::prelude::*;

/// Go on with a job where it stopped.
#[pyfunction]
#[pyo3(signature = (job, *, to=None, ledger="howdah".to_owned(), indexes=None, on_event=None),
       text_signature = "(job, *, to=None, ledger='howdah', indexes=None, on_event=None)")]
pub(crate) fn resume<'py>(
    py: Python<'py>,
    job: String,
    to: Option<String>,
    ledger: String,
    indexes: Option<Word<IndexesName>>,
    on_event: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let indexes = indexes.map(|word| word.0);
    let connection = connection::resolve(py, to)?;
    let summary = run::run(py, on_event, move |listener, stop| async move {
        let row = stop.guard(history::job(&connection, &ledger, &job)).await?;
        let mut job = history::to_resume(&row, &ledger)?;
        if let Some(indexes) = indexes {
            job.indexes = indexes.into();
        }
        load_job(job, connection, &Refused::default(), listener, stop).await
    })?;
    summary_object(py, &summary)
}
