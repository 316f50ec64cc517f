//! Around a load: whose rejected records it loads, and where those go that it rejects itself.

use crate::settings::Settings;
use howdah_engine::load::Outcome;
use howdah_engine::model::{Error, ErrorKind, Event, Job, LedgerChoice, Result};
use howdah_engine::rejected::{self, Reload};
use howdah_engine::{Connection, Context, history};
use std::path::{Path, PathBuf};

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
        file.as_deref().map_or(Ok(()), check_writable)?;
        let LedgerChoice::Schema(schema) = job.ledger.clone() else { return Ok((job, Refused::default())) };
        let Some(id) = rejects else { return Ok((job, Refused { schema, file, reload: None })) };
        let row = history::job(connection, &schema, &id).await?;
        let reload = Reload::new(&schema, &row, job.sources, job.table.as_deref(), job.bad_records)?;
        Ok((reload.job.clone(), Refused { schema, file, reload: Some(reload) }))
    }

    /// Writes what the load has rejected, which comes back as files with their numbers of records, and notes what is settled of
    /// another job; if that cannot be, a warning says so.
    ///
    /// # Errors
    /// `Local` if a file cannot be written; those of the ledger.
    pub async fn after(&self, context: &Context, outcome: &mut Outcome) -> Result<Vec<(PathBuf, u64)>> {
        let connection = &context.connection;
        if let Some(reload) = self.reload.as_ref().filter(|_| outcome.error.is_none()) {
            let read = outcome.summary.rows_read;
            let told = reload.settle(connection, &self.schema, (&outcome.summary.job, read)).await?;
            if let Some(message) = told {
                context.listener.on_event(&Event::Warning { message: message.clone() });
                outcome.summary.warnings.push(message);
            }
        }
        let summary = &outcome.summary;
        match self.file.as_deref().filter(|_| summary.rows_rejected > 0) {
            Some(path) => {
                let row = history::job(connection, &self.schema, &summary.job).await?;
                rejected::write_files(connection, &self.schema, &row, path).await
            }
            None => Ok(Vec::new()),
        }
    }
}

/// Before a load begins, not when it is over: what can be told of a file that is to be written.
fn check_writable(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() && !path.is_dir() {
        return Ok(());
    }
    let message = format!("--reject-file {} cannot be written", path.display());
    Err(Error::new(ErrorKind::Local, message).with_hint("name a file in a directory that is there"))
}
