//! `howdah resume`: goes on with a job where it stopped, with the options it was begun with, but for how it
//! is run.

use super::Process;
use crate::Exit;
use crate::access::Access;
use crate::options::ResumeOptions;
use crate::rejected::Rejected;
use crate::rerun::{adds_rows, followable};
use crate::settings::ledger_schema;
use howdah_engine::history;
use howdah_engine::model::Result;

/// Finds the job in the ledger and loads what is missing.
///
/// # Errors
/// Ledger, where others may have written what it says, unless it is named; those of the ledger and of `load`;
/// `SourceChanged` when the files are not what they were.
pub async fn resume(options: &ResumeOptions, process: &Process<'_>) -> Result<Exit> {
    let connection = process.connect_again(Access::typed(&options.target)).await?;
    let schema = &ledger_schema(&options.target)?;
    let trusted = options.target.ledger.is_some();
    let is_own = process.stop.guard(history::expect_own(&connection, schema, trusted)).await?;
    let row = process.stop.guard(history::job(&connection, schema, &options.job)).await?;
    let mut job = history::to_resume(&row, schema, trusted)?;
    options.run.apply(&mut job)?;
    let rejected = Rejected::of_begun(&job, &connection, is_own, options.run.reject_file.as_deref())?;
    let adds_rows = adds_rows(&job);
    let advise = |error| followable(error, adds_rows);
    super::load::run(process, job, connection, &rejected, advise).await
}
