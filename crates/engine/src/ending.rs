//! Behind the last chunk, until the ledger proves that all is in: a server may lose commits that it has acknowledged, in a failover to a
//! standby that was behind, or in a crash where `fsync` is off.
//!
//! The statement that notes the end of the job asks, on the server that is there by then, for every chunk, every step that has brought
//! staged rows in, and a journal without open entries ([`Proof`]). Where it finds less, what is missing is done again as a further run of the
//! job would do it, and the end is tried once more. Nothing is doubled: what is in has its row in the ledger.

use crate::finish::{self, ROUNDS_MAX, keeps_losing};
use crate::guards::Guard;
use crate::load::{FAILED_WITHIN, STOPPED_WITHIN, guarded};
use crate::pipeline::Run;
use crate::{Context, arrival, emptied, frozen, indexes, rejected, rejects, retry, sequences, taken, verify};
use howdah_model::summary::Status;
use howdah_model::{Error, ErrorKind, ErrorReport, Plan, Result};
use howdah_target::ledger::{Ending, Ledger, Proof};
use howdah_target::session::Session;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Makes all chunks durable, and brings the rows in that have waited.
///
/// # Errors
/// What ends a load.
pub(crate) async fn bring_all_in(run: &Arc<Run>) -> Result<()> {
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
            Err(error) if has_lost(run, &error).await => warn_of_loss(run),
            done => return done,
        }
    }
    Err(keeps_losing())
}

/// All that comes behind the rows. A job counts as done when it is in the ledger as done, with all that was stored for it.
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
            guarded(run, session, guard, Box::pin(bring_all_in(run))).await?;
        }
    }
    Err(keeps_losing())
}

/// Only what was put back is lost: staging tables may be gone with the commit that brought their rows in, which is there.
async fn rows_are_in(run: &Run, ledger: &Ledger) -> Result<bool> {
    let (job_id, rows) = (&run.plan.job_id, Proof { put_back: false, ..proof(run) });
    let ask = async |session: &Session| {
        Ok(ledger.holds(session, job_id, rows).await? && !ledger.has_lost(session, job_id).await?)
    };
    arrival::on_session(run, ask).await
}

/// What the server has acknowledged so far.
fn proof(run: &Run) -> Proof {
    Proof {
        chunks: run.tally.chunks(),
        steps: run.steps.load(Relaxed),
        put_back: run.puts_back.load(Relaxed),
    }
}

/// The ledger lacks what was in it: that is why something failed. Best effort: what cannot be asked is not lost.
async fn has_lost(run: &Run, error: &Error) -> bool {
    let Some(ledger) = run.ledger.as_ref().filter(|_| error.kind() != ErrorKind::Interrupted) else {
        return false;
    };
    // Indexes come back behind all that.
    let proof = Proof { put_back: false, ..proof(run) };
    let connection = &run.context.connection;
    let asking = async {
        let session = connection.open().await?;
        connection.attend(&session, ledger.holds(&session, &run.plan.job_id, proof)).await
    };
    matches!(tokio::time::timeout(FAILED_WITHIN, asking).await, Ok(Ok(false)))
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
