//! Around a load: whose rejected records it loads, and where those go that it rejects itself.

use crate::settings::Settings;
use howdah_engine::load::Outcome;
use howdah_engine::model::{Job, LedgerChoice, Result};
use howdah_engine::rejected::{self, Reload};
use howdah_engine::{Connection, history};
use std::path::PathBuf;

/// What is to be done about rejected records when a load has ended.
#[derive(Debug, Default)]
pub struct Refused {
    /// The ledger that keeps them.
    schema: String,
    /// Where this load's are written.
    file: Option<PathBuf>,
    /// Another job's are loaded.
    reload: Option<Reload>,
}

impl Refused {
    /// The job that the settings ask for, and what follows it.
    ///
    /// # Errors
    /// Those of the ledger; `Usage` for rejected records of a job that it does not have.
    pub async fn prepare(settings: Settings, connection: &Connection) -> Result<(Job, Refused)> {
        let Settings { job, reject_file: file, rejects, .. } = settings;
        let LedgerChoice::Schema(schema) = job.ledger.clone() else { return Ok((job, Refused::default())) };
        let Some(id) = rejects else { return Ok((job, Refused { schema, file, reload: None })) };
        let row = history::job(connection, &schema, &id).await?;
        let reload = Reload::new(&schema, &row, job.sources, job.table.as_deref(), job.bad_records)?;
        Ok((reload.job.clone(), Refused { schema, file, reload: Some(reload) }))
    }

    /// Writes what the load has rejected, which comes back as files with their numbers of records, and notes what is settled of
    /// another job.
    ///
    /// # Errors
    /// `Local` if a file cannot be written; those of the ledger.
    pub async fn after(&self, connection: &Connection, outcome: &Outcome) -> Result<Vec<(PathBuf, u64)>> {
        let summary = &outcome.summary;
        if let Some(reload) = self.reload.as_ref().filter(|_| outcome.error.is_none()) {
            reload.settle(connection, &self.schema, &summary.job).await?;
        }
        match self.file.as_deref().filter(|_| summary.rows_rejected > 0) {
            Some(path) => {
                let row = history::job(connection, &self.schema, &summary.job).await?;
                rejected::write_files(connection, &self.schema, &row, path).await
            }
            None => Ok(Vec::new()),
        }
    }
}
