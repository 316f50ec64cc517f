//! What a killed run of a job has left at work on the server, which goes on with what it was sent: a long
//! INSERT would hold the table, and bring rows in beside the run that goes on.

use crate::Context;
use howdah_model::{Error, Result, plural, sqlstate};
use howdah_target::activity;
use howdah_target::ledger::Ledger;
use howdah_target::session::{Backend, Session};
use std::time::{Duration, Instant};

/// A run whose lock of the job was lost takes it again within this time.
pub(crate) const HELD_AGAIN_WITHIN: Duration = Duration::from_secs(3);
/// The server takes a moment to see that the client is gone which held the job.
const SEEN_GONE_WITHIN: Duration = Duration::from_millis(300);
/// How long a process may take to end, and how often that is looked at.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Ends what is at work for a job that nobody holds: neither now nor a moment later. Sessions of this process
/// stay.
///
/// # Errors
/// `Interrupted`; those of the session.
pub(crate) async fn end_left(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
) -> Result<()> {
    let began = Instant::now();
    loop {
        if left(context, session, ledger, job_id).await?.is_empty() {
            return Ok(());
        }
        let is_held = ledger.is_job_held(session, job_id).await?;
        if is_held && began.elapsed() >= SEEN_GONE_WITHIN {
            return Ok(());
        }
        if !is_held && began.elapsed() >= HELD_AGAIN_WITHIN {
            return end_all(context, session, ledger, job_id).await;
        }
        context.stop.sleep(LOOK_EVERY).await?;
    }
}

/// The same for a job that this session has for itself.
///
/// # Errors
/// As [`end_left`].
pub(crate) async fn end_all(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
) -> Result<()> {
    let left_over = left(context, session, ledger, job_id).await?;
    if left_over.is_empty() {
        return Ok(());
    }
    for backend in &left_over {
        if let Err(error) = activity::terminate(session, *backend).await {
            return unless_forbidden(context, job_id, error);
        }
    }
    let (began, sessions) = (Instant::now(), left_over.len());
    while !left(context, session, ledger, job_id).await?.is_empty() && began.elapsed() < GONE_WITHIN {
        context.stop.sleep(LOOK_EVERY).await?;
    }
    let were = plural(sessions, "session was", "sessions were");
    context.tell(format!(
        "a run of job {job_id} was killed, and {sessions} {were} still at work on the server: ended"
    ));
    Ok(())
}

/// Of another role they are its own to end. What they do is done once nevertheless, as the ledger sees to it.
fn unless_forbidden(context: &Context, job_id: &str, error: Error) -> Result<()> {
    if error.sqlstate() != Some(sqlstate::INSUFFICIENT_PRIVILEGE) {
        return Err(error);
    }
    context.tell(format!(
        "a killed run of job {job_id} is still at work on the server, as another role: it is waited for"
    ));
    Ok(())
}

/// Something may be at work for the job that [`end_left`] ends.
///
/// # Errors
/// Those of the session.
pub(crate) async fn has_left(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
) -> Result<bool> {
    Ok(!left(context, session, ledger, job_id).await?.is_empty())
}

async fn left(context: &Context, session: &Session, ledger: &Ledger, job_id: &str) -> Result<Vec<Backend>> {
    let own = context.connection.opened();
    let mut at_work = ledger.at_work(session, job_id).await?;
    at_work.retain(|backend| !own.contains(backend));
    Ok(at_work)
}
