//! What the ledger remembers: the jobs of a database, for `status` and `resume`.

use crate::again::Way;
use crate::plan::already_done;
use crate::{Connection, restore};
use howdah_model::{Error, ErrorKind, Job, KnownFiles, LedgerChoice, Plan, Result};
use howdah_target::ledger::{Believed, Ledger};
use howdah_target::session::Session;

pub use howdah_target::ledger::{FileRow, JobRow, JobStatus};

/// All jobs of a ledger, the oldest first; none when there is no ledger yet. Their plans are read where they
/// are wanted; one that this howdah cannot read is left out.
///
/// # Errors
/// Those of the connection and of the ledger.
pub async fn jobs(
    connection: &Connection,
    schema: &str,
    with_plans: bool,
) -> Result<Vec<JobRow<Option<Plan>>>> {
    let session = connection.open().await?;
    let ledger = Ledger::new(schema);
    let jobs = async {
        if !ledger.exists(&session).await? {
            return Ok(Vec::new());
        }
        let mut jobs = ledger.jobs(&session, with_plans).await?;
        note_open(&session, &ledger, None, &mut jobs).await?;
        note_waiting(&session, &ledger, &mut jobs).await?;
        Ok(jobs)
    };
    connection.attend(&session, jobs).await
}

/// What these jobs have changed and not put back; `of`: the only one among them.
async fn note_open<P>(
    session: &Session,
    ledger: &Ledger,
    of: Option<&str>,
    jobs: &mut [JobRow<P>],
) -> Result<()> {
    for undo in ledger.open_undos(session, of).await? {
        if let Some(job) = jobs.iter_mut().find(|job| job.job_id == undo.job_id) {
            job.to_put_back.push(undo.to_string());
        }
    }
    for held in ledger.held(session, of).await? {
        if let Some(job) = jobs.iter_mut().find(|job| job.job_id == held.job_id) {
            job.to_put_back.push(held.thing.to_string());
        }
    }
    jobs.iter_mut().for_each(|job| job.to_put_back.dedup());
    Ok(())
}

/// What waits in staging tables is not stored: who looks into the table finds none of it.
async fn note_waiting<P>(session: &Session, ledger: &Ledger, jobs: &mut [JobRow<P>]) -> Result<()> {
    if jobs.iter().all(|job| job.status == JobStatus::Done || job.rows_stored == 0) {
        return Ok(());
    }
    for (job_id, come) in ledger.rows_come(session).await? {
        if let Some(job) = jobs.iter_mut().find(|job| job.job_id == job_id) {
            job.rows_waiting = come.map(|come| job.rows_stored.saturating_sub(come));
            job.rows_stored -= job.rows_waiting.unwrap_or(0);
        }
    }
    Ok(())
}

/// There is a ledger, if only an empty one.
///
/// # Errors
/// Those of the connection and of the ledger.
pub async fn exists(connection: &Connection, schema: &str) -> Result<bool> {
    let session = connection.open().await?;
    connection.attend(&session, Ledger::new(schema).exists(&session)).await
}

/// Whether what the ledger says of its jobs was written by nobody who is a stranger to this role, as
/// SECURITY.md says who is. Elsewhere the ledger has to be `trusted`, since somebody has named it: its
/// sources are read, and its rows come, with all rights of whoever goes on with a job.
///
/// # Errors
/// Ledger, where it is not; those of the connection.
pub async fn expect_own(connection: &Connection, schema: &str, trusted: bool) -> Result<bool> {
    match restore::expect_own(connection, &Ledger::new(schema), Believed::Jobs).await? {
        Ok(()) => Ok(true),
        Err(_) if trusted => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// The role may read what loads have changed and not put back; one that may not finds nothing of it in
/// [`job`] and [`jobs`].
///
/// # Errors
/// Ledger with SQLSTATE 42501 and the GRANT that helps; those of the connection.
pub async fn expect_journal(connection: &Connection, schema: &str) -> Result<()> {
    let session = connection.open().await?;
    connection.attend(&session, Ledger::new(schema).expect_readable(&session)).await?;
    connection.keep(session);
    Ok(())
}

/// One job by its name or the unambiguous beginning of it.
///
/// # Errors
/// `Usage` when there is no such job or several begin so, and for an empty name.
pub async fn job(connection: &Connection, schema: &str, id: &str) -> Result<JobRow> {
    // Every name begins so: a variable of a script that is not set would mean the only job.
    if id.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "expected the name of a job, got an empty one")
            .with_hint("`howdah status` lists the jobs"));
    }
    let session = connection.open().await?;
    let ledger = Ledger::new(schema);
    let looking = async {
        let mut jobs =
            if ledger.exists(&session).await? { ledger.beginning(&session, id).await? } else { Vec::new() };
        let only = if let [job] = &jobs[..] { Some(job.job_id.clone()) } else { None };
        if only.is_some() {
            note_open(&session, &ledger, only.as_deref(), &mut jobs).await?;
            note_waiting(&session, &ledger, &mut jobs).await?;
        }
        if let [job] = &mut jobs[..] {
            job.files = ledger.files(&session, &job.job_id).await?;
        }
        Ok(jobs)
    };
    let mut matching = connection.attend(&session, looking).await?.into_iter();
    match (matching.next(), matching.next()) {
        (Some(job), None) => Ok(job),
        (None, _) => {
            let message = format!("the ledger {schema} of {} has no job {id}", connection.display());
            Err(Error::new(ErrorKind::Usage, message)
                .with_hint("`howdah status` lists the jobs; --to and --ledger are to be as for the load"))
        }
        (Some(_), Some(_)) => Err(Error::new(ErrorKind::Usage, format!("several jobs begin with {id}"))
            .with_hint("give more of the job's name")),
    }
}

/// The job to hand to [`crate::plan()`] again to go on where an earlier run stopped. `named`: the user has
/// named the ledger.
///
/// # Errors
/// `Usage` when one of its sources cannot be read a second time, or is not known to its end, and for a check;
/// `JobDone` where nothing is left to do and nothing tells whether its sources are still the same.
pub fn to_resume(row: &JobRow, ledger: &str, named: bool) -> Result<Job> {
    let way = Way::of(&row.plan);
    let what = match way {
        Way::Resume => None,
        Way::Check => Some("is a check, which stores nothing"),
        Way::SameBytes | Way::NoName => Some("reads from a pipe"),
        Way::WholeUrl => Some("reads from a URL whose signature or password is not kept"),
    };
    if let Some((what, hint)) = what.zip(way.told()) {
        let message = format!("job {} {what}", row.job_id);
        return Err(Error::new(ErrorKind::Usage, message).with_hint(hint));
    }
    // The command that began it would begin anew, as nothing tells whether the source is another one by now.
    let may_be_new = row.plan.files.iter().any(|file| file.version.is_none());
    if let Some(at) = row.finished_at.as_ref().filter(|_| may_be_new && row.status == JobStatus::Done) {
        return Err(already_done(&row.job_id, at, true));
    }
    let mut job = row.plan.job.clone();
    job.ledger = LedgerChoice::Schema(ledger.to_owned());
    job.ledger_named = named;
    job.chunk_bytes = Some(row.plan.chunk_bytes);
    job.force = false;
    if job.known == KnownFiles::Load {
        // As of what was known when the job began, which its plan tells.
        job.known = KnownFiles::Refuse;
    }
    job.resumes = Some(row.job_id.clone());
    Ok(job)
}
