//! `howdah.check`: all that the tables would have against the files, storing nothing.

use crate::ending::Call;
use crate::errors::{Failure, report_object};
use crate::options::LoadArguments;
use crate::{connection, run};
use howdah_cli::commands::check::only_checked;
use howdah_cli::rejected::Rejected;
use howdah_engine::{Absent, Context, Sources};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Read everything and tell all that the table would have against it, storing nothing and holding up nobody.
///
/// The arguments are documented in howdah's type stubs and by `howdah check --help`.
#[pyfunction]
#[pyo3(
    signature = (sources, table=None, *, on_event=None, **options),
    text_signature = "(sources, table=None, *, to=None, password_command=None, format=None, delimiter=None, quote=None, escape=None, \
        null=None, header=None, encoding=None, force_null=None, force_not_null=None, default=None, \
        copy_options=None, columns=None, map=None, ignore_extra=False, create=None, types=None, \
        names='snake', primary_key=None, evolve='none', lenient=False, all_tables=False, jobs='auto', \
        memory=None, \
        chunk_size=None, encode='auto', toast_compression='auto', partitions='auto', create_partitions=None, mode='append', key=None, delete_missing=False, \
        keep='error', atomic=False, lock_timeout=None, max_errors=None, nul='reject', reject_file=None, rejects=None, ledger='howdah', retry_for=None, \
        max_replica_lag=None, reserve_connections=3, pause_for=None, max_decompressed=None, on_event=None)"
)]
pub(crate) fn check<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    table: Option<&Bound<'py, PyAny>>,
    on_event: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = &Call::begin(py);
    let settings = LoadArguments::new(sources, table, options)?.for_check(py)?.resolve(py)?;
    let connection = connection::of(call, &settings, Absent::Refused, on_event)?;
    let report = run::run_told(
        call,
        on_event,
        move |listener, stop| async move {
            let reject_file = settings.reject_file.clone();
            let (job, _) = stop.guard(Rejected::prepare(settings, &connection)).await?;
            let context = Context { sources: Sources::of_process(), connection, listener, stop };
            let planned = howdah_engine::plan(&context, only_checked(job)).await?;
            let checked = howdah_engine::check(&context, planned, reject_file.as_deref()).await?;
            match checked.error {
                None => Ok(checked.report),
                Some(error) => {
                    Err(Failure { report: Some(Box::new(checked.report)), ..Failure::from(error) })
                }
            }
        },
        |report| Failure { report: Some(Box::new(report)), ..Failure::from(run::too_late()) },
    )?;
    report_object(py, &report)
}
