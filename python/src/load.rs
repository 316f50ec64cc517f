//! `howdah.load`: the main job.

use crate::ending::Call;
use crate::errors::{Failure, summary_object};
use crate::options::LoadArguments;
use crate::{connection, run};
use howdah_cli::rejected::{Rejected, as_warning};
use howdah_engine::load::Outcome;
use howdah_engine::model::{Error, Event, Job, Listener, Summary};
use howdah_engine::{Absent, Connection, Context, Sources, Stop};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Load files, objects or standard input into a table, exactly once.
///
/// The arguments are documented in howdah's type stubs and by `howdah load --help`.
#[pyfunction]
#[pyo3(
    signature = (sources, table=None, *, on_event=None, **options),
    text_signature = "(sources, table=None, *, to=None, password_command=None, format=None, delimiter=None, quote=None, escape=None, \
        null=None, header=None, encoding=None, force_null=None, force_not_null=None, default=None, \
        copy_options=None, columns=None, map=None, ignore_extra=False, create=None, types=None, \
        names='snake', primary_key=None, evolve='none', lenient=False, all_tables=False, jobs='auto', \
        memory=None, \
        chunk_size=None, encode='auto', toast_compression='auto', partitions='auto', create_partitions=None, indexes='auto', triggers='keep', sequences='advance', after=None, mode='append', key=None, delete_missing=False, \
        keep='error', atomic=False, freeze=False, lock_timeout=None, on_error='stop', max_errors=None, nul='reject', reject_file=None, rejects=None, ledger='howdah', job_id=None, force=False, known=None, if_done='fail', retry_for=None, \
        tune=None, max_replica_lag=None, reserve_connections=3, pause_for=None, max_decompressed=None, verify=None, on_event=None)"
)]
pub(crate) fn load<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    table: Option<&Bound<'py, PyAny>>,
    on_event: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = &Call::begin(py);
    let settings = LoadArguments::new(sources, table, options)?.resolve(py)?;
    let connection = connection::of(call, &settings, Absent::Made, on_event)?;
    let summary = run::run_told(
        call,
        on_event,
        move |listener, stop| async move {
            let (job, rejected) = stop.guard(Rejected::prepare(settings, &connection)).await?;
            load_job(job, connection, &rejected, (listener, stop), |error| error).await
        },
        too_late,
    )?;
    summary_object(py, &summary)
}

/// A load that was stopped when all its rows were in.
pub(crate) fn too_late(summary: Summary) -> Failure {
    Failure { summary: Some(Box::new(summary)), ..Failure::from(run::too_late()) }
}

/// Plans and loads a job on this connection. `advise` has the last word on what the user is told to do about
/// an error of the load.
pub(crate) async fn load_job(
    job: Job,
    connection: Connection,
    rejected: &Rejected,
    (listener, stop): (Arc<dyn Listener>, Stop),
    advise: impl Fn(Error) -> Error,
) -> Result<Summary, Failure> {
    let context = Context { sources: Sources::of_process(), connection, listener, stop };
    let prepare = |planned| rejected.planned(planned);
    let outcome = howdah_engine::plan_and_load(&context, job, prepare).await.map_err(&advise);
    let mut outcome = outcome.inspect_err(|_| _ = rejected.tell_older(&context))?;
    let after = rejected.after(&context, &mut outcome).await.err();
    let Outcome { mut summary, error, .. } = outcome;
    // One exception can be raised, and the load's own reason counts more.
    if let (Some(_), Some(after)) = (&error, &after) {
        let message = as_warning(after);
        context.listener.on_event(&Event::Warning { message: message.clone() });
        summary.warnings.push(message);
    }
    match error.map(advise).or(after) {
        None => Ok(summary),
        Some(error) => Err(Failure { summary: Some(Box::new(summary)), ..Failure::from(error) }),
    }
}
