//! `howdah.resume`: goes on with a job where it stopped, with the options it was begun with, but for how it
//! is run.

use crate::ending::Call;
use crate::errors::summary_object;
use crate::load::{load_job, too_late};
use crate::options::rerun;
use crate::{connection, run};
use howdah_cli::rejected::Rejected;
use howdah_cli::rerun::{adds_rows, followable};
use howdah_engine::model::job::LEDGER_DEFAULT;
use howdah_engine::{Absent, history};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Go on with a job where it stopped.
#[pyfunction]
#[pyo3(signature = (job, *, to=None, password_command=None, ledger=None, on_event=None, **options),
       text_signature = "(job, *, to=None, password_command=None, ledger=None, jobs=None, memory=None, indexes=None, triggers=None, tune=None, \
           max_errors=None, reject_file=None, retry_for=None, pause_for=None, max_decompressed=None, force=False, on_event=None)")]
pub(crate) fn resume<'py>(
    py: Python<'py>,
    job: String,
    to: Option<String>,
    password_command: Option<String>,
    ledger: Option<String>,
    on_event: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = &Call::begin(py);
    let rerun = rerun(py, options)?;
    let connection = connection::resolve(call, (to, password_command), Absent::Refused, on_event)?;
    let summary = run::run_told(
        call,
        on_event,
        move |listener, stop| async move {
            let schema = ledger.as_deref().unwrap_or(LEDGER_DEFAULT);
            let is_own = stop.guard(history::expect_own(&connection, schema, ledger.is_some())).await?;
            let row = stop.guard(history::job(&connection, schema, &job)).await?;
            let mut job = history::to_resume(&row, schema, ledger.is_some())?;
            rerun.apply(&mut job)?;
            let rejected = Rejected::of_begun(&job, &connection, is_own, rerun.reject_file.as_deref())?;
            let adds_rows = adds_rows(&job);
            let advise = |error| followable(error, adds_rows);
            load_job(job, connection, &rejected, (listener, stop), advise).await
        },
        too_late,
    )?;
    summary_object(py, &summary)
}
