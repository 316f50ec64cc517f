//! Keeps triggers from firing for the rows of this load, where the plan says so, once all is dropped that is
//! dropped.
//!
//! What another load has disabled is left to that one, which may end first; and of several runs of one job,
//! the first to fail enables what all of them need disabled. Nobody waits for another: each chunk sees to it
//! that no trigger fires, and whoever meets one that does disables it again.

use crate::indexes::{Builds, change, lock_within_ms, put_back_entries};
use crate::pipeline::Run;
use crate::plan::way_of_triggers;
use crate::retry::{Patience, patiently};
use crate::settle::put_back_within_ms;
use howdah_model::{Relation, Result, TriggersChoice, TriggersWay, sqlstate};
use howdah_target::ledger::UndoKind;
use howdah_target::undo::triggers;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Does what is to be done before the first row.
///
/// # Errors
/// What keeps a trigger from being silenced, or one that is to fire from being enabled again: whoever asked
/// for that must not be disappointed silently.
pub(crate) async fn silence_all(run: &Run) -> Result<()> {
    if run.plan.job.triggers == TriggersChoice::Keep {
        enable_left(run).await?;
    }
    for plan in &run.plan.triggers {
        if plan.costly || plan.way != TriggersWay::Keep {
            plan.notes.iter().for_each(|note| run.tell(note.clone()));
        }
        if plan.way != TriggersWay::Keep {
            silence(run, &plan.relation).await?;
        }
    }
    Ok(())
}

/// An earlier run of this job, which was to fire none, was killed with triggers disabled: the plan has not
/// seen them.
async fn enable_left(run: &Run) -> Result<()> {
    let Some(ledger) = run.ledger.as_ref().filter(|_| run.dropped.load(Relaxed)) else { return Ok(()) };
    let (connection, job_id) = (&run.context.connection, &run.plan.job_id);
    let read = || async {
        let session = connection.open().await?;
        let left = connection.attend(&session, ledger.own_undos(&session, job_id)).await?.believed;
        connection.keep(session);
        Ok(left)
    };
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let mut left = patiently(&run.context, retry_for, read).await?;
    left.retain(|undo| undo.change.kind == UndoKind::Trigger);
    let lock_within_ms = put_back_within_ms(&run.plan);
    let how = Builds { sessions: 1, tuned: false, pausing: None, lock_within_ms };
    let enabling = put_back_entries(&run.context, ledger, left, how, retry_for);
    run.context.stop.guard(enabling).await.map(drop)
}

/// Does it again for the table of this file, when a chunk has met triggers that fire. Who stores rows that
/// fire them has the table for as long as a chunk takes, and is waited for.
///
/// # Errors
/// As for [`silence_all`].
pub(crate) async fn silence_again(run: &Run, file_no: u32) -> Result<()> {
    let relation = &run.plan.table_of(file_no).table.relation;
    let mut patience = Patience::new(Duration::from_millis(run.plan.job.retry_for_ms));
    loop {
        let error = match silence(run, relation).await {
            Err(error) if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => error,
            done => return done,
        };
        let Some(delay) = patience.next_delay() else { return Err(error) };
        run.context.stop.sleep(delay).await?;
    }
}

/// What was dropped since the plan was made is gone by now.
async fn silence(run: &Run, relation: &Relation) -> Result<()> {
    let (connection, job_id) = (&run.context.connection, &run.plan.job_id);
    let look = || async {
        let session = connection.open().await?;
        let found = connection.attend(&session, triggers::look_and_try(&session, relation)).await?;
        Ok((found, session.server_version()))
    };
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let (found, server_version) = patiently(&run.context, retry_for, look).await?;
    let ledger = run.ledger.as_ref();
    let way = way_of_triggers(relation, &found, &found.checks, ledger.is_some(), server_version)?;
    if way == TriggersWay::Replica {
        run.silent.lock().insert(relation.clone());
    }
    let (TriggersWay::Disable, Some(ledger)) = (way, ledger) else { return Ok(()) };
    let lock_within_ms = lock_within_ms(run);
    let disable = || async {
        let session = connection.open().await?;
        connection
            .attend(&session, triggers::disable(&session, ledger, job_id, relation, lock_within_ms))
            .await
    };
    let names = change(run, disable).await?;
    if !names.is_empty() {
        run.tell(format!("disabled on {relation}, to be enabled at the end: {}", names.join(", ")));
    }
    Ok(())
}
