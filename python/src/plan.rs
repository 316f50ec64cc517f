//! `howdah.plan`: everything load would do, touching nothing.

use crate::ending::Call;
use crate::options::LoadArguments;
use crate::{connection, json, run};
use howdah_cli::rejected::Rejected;
use howdah_engine::{Absent, Context, Sources};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Decide everything that load would do with the same arguments, and touch nothing.
///
/// The arguments are documented in howdah's type stubs and by `howdah plan --help`.
#[pyfunction]
#[pyo3(
    signature = (sources, table=None, **options),
    text_signature = "(sources, table=None, *, to=None, password_command=None, format=None, delimiter=None, quote=None, escape=None, \
        null=None, header=None, encoding=None, force_null=None, force_not_null=None, default=None, \
        copy_options=None, columns=None, map=None, ignore_extra=False, create=None, types=None, \
        names='snake', primary_key=None, evolve='none', lenient=False, all_tables=False, jobs='auto', \
        memory=None, \
        chunk_size=None, encode='auto', toast_compression='auto', partitions='auto', create_partitions=None, indexes='auto', triggers='keep', sequences='advance', after=None, mode='append', key=None, delete_missing=False, \
        keep='error', atomic=False, freeze=False, lock_timeout=None, on_error='stop', max_errors=None, nul='reject', reject_file=None, rejects=None, ledger='howdah', job_id=None, force=False, known=None, if_done='fail', retry_for=None, \
        tune=None, max_replica_lag=None, reserve_connections=3, pause_for=None, max_decompressed=None, verify=None)"
)]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    table: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = &Call::begin(py);
    let settings = LoadArguments::new(sources, table, options)?.resolve(py)?;
    let connection = connection::of(call, &settings, Absent::Refused, None)?;
    let plan = run::run(call, None, move |listener, stop| async move {
        let (job, _) = stop.guard(Rejected::prepare(settings, &connection)).await?;
        let context = Context { sources: Sources::of_process(), connection, listener, stop };
        Ok(howdah_engine::plan(&context, job).await?.plan)
    })?;
    json::to_python(py, &plan)
}
