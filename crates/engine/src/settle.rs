//! Puts back what jobs have left behind whose process is gone: by kill -9, by loss of power, by a failover.
//!
//! A job that is at work holds an advisory lock; whoever gets that lock for himself knows that nobody is at work on it. What
//! is quickly done (settings, triggers) is done before this load begins; indexes and constraints, which may take as long as
//! the load, behind its last row. What cannot be done is told, and is no failure of this load.

use crate::check::forget_left;
use crate::indexes::{put_back_entries, tell};
use crate::pipeline::Run;
use crate::tune::give_up_all;
use howdah_model::{Result, Tune};
use howdah_target::ledger::{Held, Ledger, Undo, UndoKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a lock or a lost connection is waited for: this load has something else to do.
const RETRY_FOR: Duration = Duration::from_secs(5);
/// Builds side by side, as for `howdah restore`.
const BUILDERS: u32 = 2;

/// When something is put back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the first row.
    AtStart,
    /// Behind the last.
    AtEnd,
}

/// What one job has left behind.
#[derive(Default)]
struct Left {
    dropped: Vec<Undo>,
    tuned: Vec<Held>,
}

/// Puts back what is due now of all other jobs that nobody is at work on.
pub(crate) async fn settle(run: &Run, when: When) {
    let Some(ledger) = &run.ledger else { return };
    let settled = run.context.stop.guard(settle_all(run, ledger, when)).await;
    if let Err(error) = settled {
        tell(&run.context, format!("what other jobs have left behind is not put back: {error}"));
    }
}

async fn settle_all(run: &Run, ledger: &Ledger, when: When) -> Result<()> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let reading = async {
        let checks =
            async { if when == When::AtStart { ledger.checks(&session).await } else { Ok(Vec::new()) } };
        let (dropped, tuned) = (ledger.open_undos(&session, None), ledger.held(&session, None));
        // Sent together: one round trip.
        tokio::try_join!(checks, dropped, tuned)
    };
    let (checks, dropped, tuned) = connection.attend(&session, reading).await?;
    if !checks.is_empty() {
        forget_left(&run.context, ledger.schema(), None).await?;
    }
    let mut by_job: BTreeMap<String, Left> = BTreeMap::new();
    for undo in dropped.into_iter().filter(|undo| is_due(undo.change.kind, when)) {
        by_job.entry(undo.job_id.clone()).or_default().dropped.push(undo);
    }
    for held in tuned {
        by_job.entry(held.job_id.clone()).or_default().tuned.push(held);
    }
    by_job.remove(&run.plan.job_id);
    for (job_id, left) in by_job {
        // Held by a session that is gone with this one, if not before.
        if !connection.attend(&session, ledger.take_job(&session, &job_id)).await? {
            continue;
        }
        tell(&run.context, format!("job {job_id} was killed and has left something to put back"));
        settle_job(run, ledger, left).await;
        connection.attend(&session, ledger.leave_job(&session, &job_id)).await?;
    }
    connection.keep(session);
    Ok(())
}

async fn settle_job(run: &Run, ledger: &Ledger, left: Left) {
    let tuned = run.plan.tuning.level >= Tune::Session;
    let dropped = put_back_entries(&run.context, ledger, left.dropped, (BUILDERS, tuned), RETRY_FOR).await;
    let given_up = give_up_all(&run.context, ledger, left.tuned, RETRY_FOR).await;
    for error in [dropped.err(), given_up.err()].into_iter().flatten() {
        run.warn(format!("{error}; howdah restore puts it back"));
    }
}

/// Others must be able to rely on their triggers again at once. Rows that wait in a staging table wait for their own job.
fn is_due(kind: UndoKind, when: When) -> bool {
    match kind {
        UndoKind::Trigger => true,
        UndoKind::Staging => false,
        UndoKind::Index
        | UndoKind::Workers
        | UndoKind::Constraint
        | UndoKind::PartitionedIndex
        | UndoKind::PartitionedConstraint
        | UndoKind::Attach
        | UndoKind::Marks
        | UndoKind::ForeignKey
        | UndoKind::Validate => when == When::AtEnd,
    }
}
