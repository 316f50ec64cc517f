//! Behind the last chunk, until the ledger proves that all is in: a server may lose commits that it has
//! acknowledged, in a failover to a standby that was behind, or in a crash where `fsync` is off.
//!
//! The statement that notes the end of the job asks, on the server that is there by then, for every chunk,
//! every step that has brought staged rows in, and a journal without open entries ([`Proof`]). Where it finds
//! less, what is missing is done again as a further run of the job would do it, and the end is tried once
//! more. Nothing is doubled: what is in has its row in the ledger.

use crate::finish::{self, ROUNDS_MAX, keeps_losing};
use crate::guards::Guard;
use crate::load::{FAILED_WITHIN, STOPPED_WITHIN, guarded};
use crate::pipeline::Run;
use crate::{Context, arrival, emptied, frozen, indexes, rejected, rejects, retry, sequences, taken, verify};
use howdah_model::summary::Status;
use howdah_model::{Error, ErrorKind, ErrorReport, Plan, Result};
use howdah_target::ledger::{Ending, JobStatus, Ledger, Proof};
use howdah_target::session::{Backend, Session};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Makes all chunks durable, and brings the rows in that have waited.
///
/// # Errors
/// What ends a load.
pub(crate) async fn bring_all_in(run: &Arc<Run>) -> Result<()> {
    let mut once_more = true;
    for _ in 0..ROUNDS_MAX {
        Box::pin(finish::finish(run)).await?;
        frozen::finish(run).await?;
        rejects::check(run)?;
        let behind_the_chunks = async {
            let verified = Box::pin(verify::compare(run)).await?;
            Box::pin(arrival::bring_in(run)).await?;
            verify::note(run, verified).await
        };
        match behind_the_chunks.await {
            Err(error) if has_lost(run, &error).await => {
                warn_of_loss(run);
                make_staging_again(run).await?;
            }
            // An index of a new table is no row of the ledger.
            Err(error) if blames(&error) && std::mem::take(&mut once_more) && may_have_lost(run).await => {
                run.tell(format!(
                    "the server may have lost what this load had done there: once more, since {error}"
                ));
            }
            done => return done,
        }
    }
    Err(keeps_losing())
}

/// The server may lack the tables in which rows are to wait.
async fn make_staging_again(run: &Run) -> Result<()> {
    let Some(ledger) = run.ledger.as_ref().filter(|_| run.plan.job.arrival.is_staged()) else {
        return Ok(());
    };
    let make = async |session: &Session| arrival::make_staging(session, ledger, &run.plan, false).await;
    arrival::on_session(run, make).await
}

/// Somebody seems to have changed something: it may be the server, in losing it.
fn blames(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Table | ErrorKind::Ledger | ErrorKind::Server | ErrorKind::Columns | ErrorKind::Internal
    )
}

/// It has crashed since this run began, or given its place to another, or ended the session that the run
/// began with. What cannot be asked has lost nothing.
async fn may_have_lost(run: &Run) -> bool {
    let asking = async {
        let session = run.context.connection.open().await?;
        Ok::<_, Error>(!run.has_lost_nothing(&session).await)
    };
    matches!(tokio::time::timeout(FAILED_WITHIN, asking).await, Ok(Ok(true)))
}

/// All that comes behind the rows. A job counts as done when it is in the ledger as done, with all that was
/// stored for it.
///
/// # Errors
/// What ends a load.
pub(crate) async fn end_well(run: &Arc<Run>, session: &mut Session, guard: &mut Guard) -> Result<()> {
    for _ in 0..ROUNDS_MAX {
        guarded(run, session, guard, Box::pin(after_the_rows(run))).await?;
        let Some(ledger) = &run.ledger else {
            guard.expect_one_server(run, session).await?;
            return taken::warn_without_ledger(run).await;
        };
        emptied::expect_not_meanwhile(run, ledger).await?;
        // A finished load must be remembered as finished, whatever it takes.
        let (rows, by) = (run.tally.rows_stored(), (Some(&*session), session.backend().pid));
        if close(&run.context, &run.plan, ledger, by, (None, rows, proof(run))).await? {
            return Ok(());
        }
        warn_of_loss(run);
        if !rows_are_in(run, ledger).await? {
            make_staging_again(run).await?;
            guarded(run, session, guard, Box::pin(bring_all_in(run))).await?;
        }
    }
    Err(keeps_losing())
}

/// Only what was put back is lost: staging tables may be gone with the commit that brought their rows in,
/// which is there.
async fn rows_are_in(run: &Run, ledger: &Ledger) -> Result<bool> {
    let (job_id, rows) = (&run.plan.job_id, Proof { put_back: false, ..proof(run) });
    let ask = async |session: &Session| {
        Ok(ledger.holds(session, job_id, rows).await? && !ledger.has_lost(session, job_id).await?)
    };
    arrival::on_session(run, ask).await
}

/// How long a server is waited for that is away behind the end.
const KEPT_WITHIN: Duration = Duration::from_secs(30);

/// Behind the end, too, a server may take over that lacks it, and rows that came before. `newest` is the
/// session that was opened last when the job was closed: later ones may be another server's.
///
/// # Errors
/// `ConnectionLost`, where the job is not done there.
pub(crate) async fn expect_kept(run: &Run, newest: Option<Backend>) -> Result<()> {
    let connection = &run.context.connection;
    let may_be_another = connection.has_lost() || connection.newest() != newest;
    let Some(ledger) = run.ledger.as_ref().filter(|_| may_be_another) else {
        return Ok(());
    };
    let ask = async |session: &Session| {
        if !run.is_on_another_server(session).await {
            return Ok(true);
        }
        let is_there = ledger.exists(session).await?;
        let job = if is_there { ledger.find(session, &run.plan.job_id).await? } else { None };
        Ok(job.is_some_and(|job| job.status == JobStatus::Done))
    };
    // Whoever has stopped the load, in ANALYZE say, waits for no server that is away.
    let is_stopped = run.context.stop.raised();
    let asking = async {
        match is_stopped {
            true => ask(&connection.open().await?).await,
            false => arrival::on_session(run, ask).await,
        }
    };
    let within = if is_stopped { STOPPED_WITHIN } else { KEPT_WITHIN };
    match tokio::time::timeout(within, asking).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(lost_behind_the_end(&run.plan.job_id)),
        Ok(Err(_)) | Err(_) => {
            run.warn("connections broke behind the end of the load, and the server cannot be asked whether it has all that was stored");
            Ok(())
        }
    }
}

/// An error that ends the load, as it is to be told.
pub(crate) struct Told {
    pub(crate) error: Error,
    /// The server that is there by now knows nothing of the job: nothing waits there, and nothing is to be
    /// put back.
    pub(crate) job_is_lost: bool,
}

/// What a server lacks that has lost it, nobody has dropped, and nobody is to put right: the error says what
/// is lost, or its hint what is to be tried first.
pub(crate) async fn told(run: &Run, error: Error) -> Told {
    let as_it_is = |error| Told { error, job_is_lost: false };
    let Some(ledger) = run.ledger.as_ref().filter(|_| blames(&error)) else {
        return as_it_is(error);
    };
    let (connection, job_id) = (&run.context.connection, &run.plan.job_id);
    let asking = async {
        let session = connection.open().await?;
        if run.has_lost_nothing(&session).await {
            return Ok((false, true));
        }
        let is_another = run.is_on_another_server(&session).await;
        let is_there = ledger.exists(&session).await?;
        let job = if is_there { ledger.find(&session, job_id).await? } else { None };
        // Who has deleted the job from a server that has lost nothing is told so.
        Ok::<_, Error>((is_another, job.is_some()))
    };
    match tokio::time::timeout(FAILED_WITHIN, asking).await {
        Ok(Ok((true, false))) => Told { error: ledger.lost_job(job_id), job_is_lost: true },
        Ok(Ok((true, true))) => as_it_is(with_another_server(error)),
        _ => as_it_is(error),
    }
}

fn with_another_server(error: Error) -> Error {
    let again = "another server took the place of the one that this load began on, and may lack what that one had: run the same command again";
    let hint =
        error.hint().map_or_else(|| again.to_owned(), |hint| format!("{again}; if it says the same, {hint}"));
    error.with_hint(hint)
}

fn lost_behind_the_end(job_id: &str) -> Error {
    let message = format!(
        "when job {job_id} was done, another server took the place of the one that it was loaded on, and does not know it as done: rows \
         of it may be missing there"
    );
    Error::new(ErrorKind::ConnectionLost, message)
        .with_hint("run the same command again: it stores what is missing there, and closes the job")
}

/// What the server has acknowledged so far.
fn proof(run: &Run) -> Proof {
    Proof {
        chunks: run.tally.chunks(),
        steps: run.steps.load(Relaxed),
        put_back: run.puts_back.load(Relaxed),
    }
}

/// The ledger lacks what was in it: that is why something failed. Best effort: what cannot be asked is not
/// lost.
async fn has_lost(run: &Run, error: &Error) -> bool {
    let Some(ledger) = run.ledger.as_ref().filter(|_| error.kind() != ErrorKind::Interrupted) else {
        return false;
    };
    // Indexes come back behind all that.
    let proof = Proof { put_back: false, ..proof(run) };
    let connection = &run.context.connection;
    let asking = async {
        let session = connection.open().await?;
        let looking = async {
            // A job that the server does not know is not gone on with.
            let lost = !ledger.holds(&session, &run.plan.job_id, proof).await?;
            Ok(lost && ledger.find(&session, &run.plan.job_id).await?.is_some())
        };
        connection.attend(&session, looking).await
    };
    matches!(tokio::time::timeout(FAILED_WITHIN, asking).await, Ok(Ok(true)))
}

fn warn_of_loss(run: &Run) {
    run.tally.begin_round();
    run.warn(
        "the server has lost commits that it had acknowledged, as in a failover to a standby that was behind: what is missing is \
         done again",
    );
}

async fn after_the_rows(run: &Run) -> Result<()> {
    indexes::put_back_all(run, false).await?;
    // Whose columns have their indexes again, which tell the largest value.
    sequences::advance(&run.context, &run.plan).await?;
    // Before the job counts as done: a run that goes on with it does this once more.
    rejected::settle(run).await?;
    arrival::warn_of_order(run);
    Ok(())
}

pub(crate) fn ended_by(error: &Error) -> Status {
    if error.kind() == ErrorKind::Interrupted { Status::Interrupted } else { Status::Failed }
}

/// Best effort for what did not end well: a job that was not closed reads as running and can be resumed.
pub(crate) async fn close_in_time(
    context: &Context,
    plan: &Plan,
    ledger: &Ledger,
    by: (Option<&Session>, i32),
    error: &Error,
    rows: u64,
) {
    let status = ended_by(error);
    let within = if status == Status::Interrupted { STOPPED_WITHIN } else { FAILED_WITHIN };
    let _ =
        tokio::time::timeout(within, close(context, plan, ledger, by, (Some(error), rows, Proof::default())))
            .await;
}

/// The session has held the job, or its process has.
async fn close(
    context: &Context,
    plan: &Plan,
    ledger: &Ledger,
    (session, holder_pid): (Option<&Session>, i32),
    (error, rows_stored, proof): (Option<&Error>, u64, Proof),
) -> Result<bool> {
    let connection = &context.connection;
    let status = error.map_or(Status::Done, ended_by);
    // Strings and numbers: serialising cannot fail.
    let report = error.map(|error| serde_json::to_string(&ErrorReport::of(error)).unwrap_or_default());
    let sql = if status == Status::Done { arrival::ending_sql(ledger, plan) } else { String::new() };
    let close_on = async |session: &Session| {
        let error = report.as_deref();
        let ending = Ending { status, rows_stored, proof, holder_pid: Some(holder_pid), error, sql: &sql };
        connection.attend(session, ledger.close(session, &plan.job_id, ending)).await
    };
    if let Some(session) = session.filter(|session| !session.is_closed())
        && let Ok(closed) = close_on(session).await
    {
        return Ok(closed);
    }
    // The session is as old as the load; a new one may do what it could not.
    let again = || async { close_on(&connection.open().await?).await };
    if status == Status::Interrupted {
        // The flag that stopped the load would stop a patient try before it began.
        return again().await;
    }
    retry::patiently(context, Duration::from_millis(plan.job.retry_for_ms), again).await
}
