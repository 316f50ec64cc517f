//! Around a load: whose rejected records it loads, and where those go that it rejects itself.

use crate::settings::Settings;
use crate::units::show_count;
use howdah_engine::load::Outcome;
use howdah_engine::model::{Error, ErrorKind, Event, Job, LedgerChoice, Result, SourceSpec};
use howdah_engine::rejected::{self, RejectFile};
use howdah_engine::{Connection, Context, Planned, again, history};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// What both end their command with, and who has said it before.
const LATER: &str = " --reject-file FILE`";

const WRITTEN_LATER: &str = "`howdah status JOB --reject-file FILE` writes rejected records elsewhere";

const WRITE_LATER: &str =
    "`howdah status JOB --reject-file FILE` writes those that the ledger's table reject has";

/// What is to be done about rejected records when a load has ended.
#[derive(Debug, Default)]
pub struct Rejected {
    /// The ledger that keeps them.
    schema: String,
    /// Where this load's are written.
    file: Option<PathBuf>,
    /// An earlier run was told so.
    is_noted: bool,
    /// The same, with what stood there before the load.
    place: OnceLock<RejectFile>,
    /// How long failures that may pass are tried again.
    retry_for: OnceLock<Duration>,
    /// What is said where they are not written to the file that the job was begun with.
    unwritable: Option<String>,
}

impl Rejected {
    /// The job that the settings ask for, and what follows it.
    ///
    /// # Errors
    /// Those of the ledger; `Usage` for rejected records of a job that it does not have.
    pub async fn prepare(settings: Settings, connection: &Connection) -> Result<(Job, Rejected)> {
        let Settings { job, reject_file: file, rejects, .. } = settings;
        file.as_deref().map_or(Ok(()), |path| check_place(path, &job.sources))?;
        let LedgerChoice::Schema(schema) = job.ledger.clone() else { return Ok((job, Rejected::default())) };
        let job = match rejects {
            None => job,
            Some(id) => {
                // What it says of that job is done: no command tells how its files are read.
                history::expect_own(connection, &schema, job.ledger_named).await?;
                let row = history::job(connection, &schema, &id).await?;
                rejected::reload(connection, &schema, &row, job).await?
            }
        };
        Ok((job, Rejected { schema, file, ..Rejected::default() }))
    }

    /// For a job of the ledger that is gone on with: they go where the user has `named`, or where they were
    /// to go when it was begun, if the ledger `is_own`: nobody else has written there where that is.
    ///
    /// # Errors
    /// `Usage` for a file that is a source; `Local` for one that cannot be written.
    pub fn of_begun(
        job: &Job,
        connection: &Connection,
        is_own: bool,
        named: Option<&Path>,
    ) -> Result<Rejected> {
        let LedgerChoice::Schema(schema) = job.ledger.clone() else { return Ok(Rejected::default()) };
        if let Some(path) = named {
            check_place(path, &job.sources)?;
            return Ok(Rejected { schema, file: Some(path.to_owned()), ..Rejected::default() });
        }
        let Some(path) = job.reject_file.as_deref().map(PathBuf::from) else {
            return Ok(Rejected::default());
        };
        let noted = match is_own {
            true => check_place(&path, &job.sources).map_err(|error| error.with_hint(WRITTEN_LATER)),
            false => Err(not_own(&path)),
        };
        Ok(match noted {
            Ok(()) => Rejected { schema, file: Some(path), is_noted: true, ..Rejected::default() },
            Err(error) => {
                let id = job.resumes.as_deref().unwrap_or_default();
                let error = again::in_full(error, connection, id, &schema);
                Rejected { schema, unwritable: Some(as_warning(&error)), ..Rejected::default() }
            }
        })
    }

    /// The plan of a load with this, which a failed load may have to write at once.
    pub fn planned(&self, mut planned: Planned) -> Planned {
        planned.plan.warnings.extend(self.unwritable.clone());
        self.retry_for.get_or_init(|| Duration::from_millis(planned.plan.job.retry_for_ms));
        let place = |path: &PathBuf| match self.is_noted {
            true => RejectFile::noted(path),
            false => RejectFile::named(&planned.plan, path),
        };
        planned.reject_file = self.file.as_ref().map(|path| self.place.get_or_init(|| place(path)).clone());
        planned
    }

    /// Writes what the load has rejected, unless it did so itself, which comes back as files with their
    /// numbers of records. Where it has rejected nothing, an older file of this name is removed; not by a run
    /// that had nothing to load. One that failed leaves it, and warns of it.
    ///
    /// # Errors
    /// `Interrupted` if there are any and the load was stopped, or is meanwhile: nobody waits for gigabytes
    /// then; `Local` if a file cannot be written; `Usage` if it is a source; those of the ledger.
    pub async fn after(&self, context: &Context, outcome: &mut Outcome) -> Result<Vec<(PathBuf, u64)>> {
        if outcome.error.is_some() && outcome.summary.rows_rejected == 0 {
            outcome.summary.warnings.extend(self.tell_older(context));
        }
        let connection = &context.connection;
        let summary = &outcome.summary;
        if !outcome.written.is_empty() {
            return Ok(outcome.written.clone());
        }
        // A run that found nothing new, and is told as the latest job that has loaded the files.
        if summary.files.is_empty() {
            return Ok(Vec::new());
        }
        let writes = summary.rows_rejected > 0 || outcome.error.is_none();
        let Some(place) = self.place.get().filter(|_| writes) else { return Ok(Vec::new()) };
        let retry_for = self.retry_for.get().copied().unwrap_or_default();
        let writing = rejected::replace_files_of(context, &self.schema, &summary.job, place, retry_for);
        // Nothing is to be written then, and all is done that was asked for.
        let done = if summary.rows_rejected == 0 { writing.await } else { context.stop.guard(writing).await };
        let (replaced, warnings) = done.map_err(|error| match error.kind() {
            _ if summary.rows_rejected == 0 => error,
            ErrorKind::Interrupted => self.unwritten(connection, &summary.job, place.path()),
            _ => self.told_unwritten(connection, &summary.job, error, outcome.error.is_none()),
        })?;
        for message in &warnings {
            context.listener.on_event(&Event::Warning { message: message.clone() });
        }
        outcome.summary.warnings.extend(warnings);
        Ok(replaced.written)
    }

    /// Warns that what stands in the place of the file is of an earlier run, maybe of the same job, and says
    /// how: this one has failed and rejected nothing.
    pub fn tell_older(&self, context: &Context) -> Option<String> {
        let path = self.file.as_deref().filter(|path| path.is_file())?;
        let message = format!(
            "{} is left as an earlier run has written it: this one has failed and rejected nothing",
            path.display()
        );
        context.listener.on_event(&Event::Warning { message: message.clone() });
        Some(message)
    }

    /// Why the file is not there, and how it comes there later. Where the load `is_done` its own command
    /// writes none any more.
    fn told_unwritten(&self, connection: &Connection, job_id: &str, error: Error, is_done: bool) -> Error {
        let hint = match error.hint() {
            Some(hint) if hint.contains(LATER) => hint.to_owned(),
            Some(hint) => format!("{hint}; {WRITTEN_LATER}"),
            None => WRITE_LATER.to_owned(),
        };
        let mut told = error;
        if is_done {
            let message =
                format!("the load is done, but not the file of its rejected records: {}", told.message());
            told = told.with_message(message);
        }
        again::in_full(told.with_hint(hint), connection, job_id, &self.schema)
    }

    fn unwritten(&self, connection: &Connection, job_id: &str, path: &Path) -> Error {
        let message = "stopped by the user before the file of rejected records was written";
        let error = Error::new(ErrorKind::Interrupted, message)
            .in_file(path.display().to_string())
            .with_hint(WRITE_LATER);
        again::in_full(error, connection, job_id, &self.schema)
    }
}

/// Whoever writes the ledger would choose what is written where, with the rights of whoever goes on with the
/// job.
fn not_own(path: &Path) -> Error {
    let message = format!(
        "rejected records are not written to {}: only the ledger says that they go there, and others may have written that",
        path.display()
    );
    let hint = format!("--reject-file names the file to write; or {WRITTEN_LATER}");
    Error::new(ErrorKind::Local, message).with_hint(hint)
}

/// The path by which a later run finds the file; `None` for what is there for this process alone, or has no
/// name that the ledger can keep.
pub(crate) fn kept_path(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok().filter(|path| !path.starts_with("/dev"))?;
    path.to_str().filter(|path| !path.contains('\0')).map(str::to_owned)
}

/// How many rejected records of a job are kept, where, and the command that writes them to a file.
pub(crate) fn kept_line(connection: &Connection, job_id: &str, schema: &str, kept: u64) -> String {
    let file = " --reject-file rejected.csv";
    let write = again::command_with(connection, "status", job_id, schema, file);
    let records = if kept == 1 { "record is" } else { "records are" };
    format!("{} rejected {records} in the table {schema}.reject, written out by: {write}", show_count(kept))
}

/// The same as a warning, where another error counts more.
pub fn as_warning(error: &Error) -> String {
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

/// Before a load begins, not when it is over: what can be told of a file that is to be written.
fn check_place(path: &Path, sources: &[SourceSpec]) -> Result<()> {
    if let Some(source) = sources.iter().find(|source| howdah_engine::is_among(&source.location, path)) {
        let message =
            format!("--reject-file {} would be one of the sources: {}", path.display(), source.location);
        return Err(Error::new(ErrorKind::Usage, message).with_hint("name a file that no source stands for"));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() && !path.is_dir() {
        return Ok(());
    }
    let message = format!("--reject-file {} cannot be written", path.display());
    Err(Error::new(ErrorKind::Local, message).with_hint("name a file in a directory that is there"))
}
