//! `howdah resume`: goes on with a job where it stopped, with the options it was begun with, but for how it is run.

use crate::Exit;
use crate::access::Access;
use crate::options::ResumeOptions;
use crate::printer::Printer;
use crate::rejected::Rejected;
use crate::rerun::{adds_rows, followable};
use crate::settings::ledger_schema;
use howdah_engine::model::Result;
use howdah_engine::{Stop, history};
use std::path::PathBuf;

/// Finds the job in the ledger and loads what is missing.
///
/// # Errors
/// Those of the ledger and of `load`; `SourceChanged` when the files are not what they were.
pub async fn resume(
    options: &ResumeOptions,
    printer: &Printer,
    stop: &Stop,
    site_packages: &[PathBuf],
) -> Result<Exit> {
    let connection =
        stop.guard(super::connect_again(Access::typed(&options.target), printer, site_packages)).await?;
    let schema = &ledger_schema(&options.target)?;
    let row = stop.guard(history::job(&connection, schema, &options.job)).await?;
    let mut job = history::to_resume(&row, schema)?;
    options.run.apply(&mut job)?;
    let rejected = Rejected::of_begun(&job, &connection);
    let adds_rows = adds_rows(&job);
    let advise = |error| followable(error, adds_rows);
    super::load::run(job, connection, (printer, stop), &rejected, advise).await
}
