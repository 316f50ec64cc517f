//! What a run that goes on with a job may do in another way than the one that began it: its options, and what they mean.

use crate::arrival::{for_appended, only_appended};
use crate::bad_records::max_errors;
use crate::options::{IndexesName, TriggersName, TuneName};
use crate::{settings, units};
use clap::Args;
use howdah_engine::model::{Error, ErrorKind, Job, OnError, Result};

/// What is not said is as the job was begun.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Run options (as the job was begun where not given)")]
pub struct RerunOptions {
    /// Sessions that copy at once; `auto` finds out how many help
    #[arg(short, long, value_name = "N|auto")]
    pub jobs: Option<String>,
    /// What the process may hold in memory
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Indexes, keys and foreign keys of the tables
    #[arg(long, value_enum)]
    pub indexes: Option<IndexesName>,
    /// Triggers of the tables
    #[arg(long, value_enum)]
    pub triggers: Option<TriggersName>,
    /// How far a load may go with settings
    #[arg(long, value_enum)]
    pub tune: Option<TuneName>,
    /// Of a job with --on-error skip: stop when more records than this are refused, or a larger share of those read
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<String>,
    /// How long failures that may pass are tried again
    #[arg(long, value_name = "TIME")]
    pub retry_for: Option<String>,
    /// How long a load pauses for a full disk or a replica before it gives up
    #[arg(long, value_name = "TIME")]
    pub pause_for: Option<String>,
    /// What a compressed file may come to
    #[arg(long, value_name = "SIZE")]
    pub max_decompressed: Option<String>,
    /// Load once more what has been loaded, or what has changed since
    #[arg(long)]
    pub force: bool,
}

impl RerunOptions {
    /// Changes what they say.
    ///
    /// # Errors
    /// `Usage` for values that are none, and for a number of bad records of a job that bears none.
    pub fn apply(&self, job: &mut Job) -> Result<()> {
        job.force = self.force;
        let only_appended = only_appended(self.indexes, self.triggers);
        if let Some(name) = only_appended.filter(|_| job.arrival.is_staged()) {
            return Err(for_appended(name));
        }
        if let Some(jobs) = &self.jobs {
            job.jobs = settings::jobs(Some(jobs))?;
        }
        if let Some(memory) = &self.memory {
            job.memory_bytes = units::bytes("--memory", memory)?;
        }
        if let Some(indexes) = self.indexes {
            job.indexes = indexes.into();
        }
        if let Some(triggers) = self.triggers {
            job.triggers = triggers.into();
        }
        if let Some(tune) = self.tune {
            job.tune = Some(tune.into());
        }
        if let Some(max) = &self.max_errors {
            if job.bad_records.on_error == OnError::Stop {
                let message = "--max-errors is for a job that was begun with --on-error skip";
                return Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out"));
            }
            job.bad_records.max = Some(max_errors(max)?);
        }
        if let Some(time) = &self.retry_for {
            job.retry_for_ms = units::milliseconds("--retry-for", time)?;
        }
        if let Some(time) = &self.pause_for {
            job.guards.pause_for_ms = units::milliseconds("--pause-for", time)?;
        }
        if let Some(size) = &self.max_decompressed {
            job.max_decompressed_bytes = Some(units::bytes("--max-decompressed", size)?);
        }
        Ok(())
    }
}
