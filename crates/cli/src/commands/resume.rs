//! `howdah resume`: goes on with a job where it stopped, with the options it was begun with.

use crate::Exit;
use crate::options::ResumeOptions;
use crate::printer::Printer;
use crate::settings::{self, ledger_schema};
use howdah_engine::model::{Error, ErrorKind, Result};
use howdah_engine::{Stop, history};

/// Finds the job in the ledger and loads what is missing.
///
/// # Errors
/// Those of the ledger and of `load`; `SourceChanged` when the files are not what they were.
pub async fn resume(options: &ResumeOptions, printer: &Printer, stop: &Stop) -> Result<Exit> {
    let connection = stop.guard(settings::connection(options.target.to.clone(), printer)).await?;
    let schema = ledger_schema(&options.target);
    let row = stop.guard(history::job(&connection, schema, &options.job)).await?;
    if row.plan.files.iter().any(|file| !file.rereadable) {
        return Err(Error::new(ErrorKind::Usage, format!("job {} reads from a pipe", row.job_id))
            .with_hint("send the same bytes through the same `howdah load` command again"));
    }
    super::load::run(history::to_resume(&row, schema), connection, printer, stop).await
}
