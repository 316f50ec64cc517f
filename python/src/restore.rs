//! `howdah.restore`: puts back what loads have dropped and, being killed, could not put back themselves.

use crate::{connection, run};
use howdah_engine::{Absent, Context, Sources, restore as engine};
use pyo3::prelude::*;

/// Put back what loads have dropped and, being killed, could not put back themselves.
#[pyfunction]
#[pyo3(signature = (job=None, *, to=None, ledger="howdah".to_owned(), on_event=None),
       text_signature = "(job=None, *, to=None, ledger='howdah', on_event=None)")]
pub(crate) fn restore(
    py: Python<'_>,
    job: Option<String>,
    to: Option<String>,
    ledger: String,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let connection = connection::resolve(py, to, Absent::Refused)?;
    run::run(py, on_event, move |listener, stop| async move {
        let context = Context { sources: Sources::new()?, connection, listener, stop };
        Ok(engine::restore(&context, &ledger, job.as_deref()).await?)
    })
}
