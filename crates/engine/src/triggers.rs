//! Keeps triggers from firing for the rows of this load, where the plan says so, once all is dropped that is dropped.

use crate::indexes::{change, lock_within_ms, tell};
use crate::pipeline::Run;
use crate::plan::way_of_triggers;
use howdah_model::{Result, TriggersPlan, TriggersWay};
use howdah_target::undo::triggers;
use std::collections::BTreeSet;

/// Does what is to be done before the first row.
///
/// # Errors
/// What keeps a trigger from being silenced: whoever asked for that must not be disappointed silently.
pub async fn silence_all(run: &Run) -> Result<()> {
    let mut silent = BTreeSet::new();
    for plan in &run.plan.triggers {
        if plan.costly || plan.way != TriggersWay::Keep {
            plan.notes.iter().for_each(|note| tell(&run.context, note.clone()));
        }
        if plan.way != TriggersWay::Keep && silence(run, plan).await? {
            silent.insert(plan.relation.clone());
        }
    }
    // Set once: a load begins once.
    let _ = run.silent.set(silent);
    Ok(())
}

/// Whether the table's chunks are to be stored silently. What was dropped since the plan was made is gone by now.
async fn silence(run: &Run, plan: &TriggersPlan) -> Result<bool> {
    let (connection, job_id, relation) = (&run.context.connection, &run.plan.job_id, &plan.relation);
    let session = connection.open().await?;
    let found = connection.attend(&session, triggers::look(&session, relation, true)).await?;
    let ledger = run.ledger.as_ref();
    let way = way_of_triggers(relation, &found, &found.checks, ledger.is_some(), session.server_version())?;
    let (TriggersWay::Disable, Some(ledger)) = (way, ledger) else {
        return Ok(way == TriggersWay::Replica);
    };
    let lock_within_ms = lock_within_ms(run);
    let disable = || async {
        let session = connection.open().await?;
        connection
            .attend(&session, triggers::disable(&session, ledger, job_id, (relation, lock_within_ms)))
            .await
    };
    let names = change(run, disable).await?;
    if !names.is_empty() {
        tell(&run.context, format!("disabled on {relation}, to be enabled at the end: {}", names.join(", ")));
    }
    Ok(false)
}
