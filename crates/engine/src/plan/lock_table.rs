//! Partitions and their indexes that do not fit into the server's lock table: what a load would find out at its first chunk.

use crate::Context;
use howdah_model::{Jobs, Plan, RelationKind, Result};
use howdah_target::session::{Session, partitions, partitions::Locks};

/// The beginning of the note; an earlier run's plan has it already.
const FULL: &str = "a chunk with rows for all partitions locks";

/// Says of each partitioned table how many sessions may fill the lock table.
pub(super) async fn tell(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let jobs = plan.job.jobs;
    let is_copied_into = |table: &&mut howdah_model::plan::TablePlan| {
        table.table.kind == RelationKind::Partitioned && table.staging.is_none()
    };
    for table in plan.tables.iter_mut().filter(is_copied_into) {
        table.notes.retain(|note| !note.starts_with(FULL));
        let counting = partitions::locks(session, &table.table);
        let locks = context.connection.attend(session, counting).await?;
        table.notes.extend(told(locks, jobs));
    }
    Ok(())
}

/// So many sessions a load that finds their number by itself may come to beside what others do.
const SESSIONS_AUTO: u64 = 16;

fn told(Locks { objects, room }: Locks, jobs: Jobs) -> Option<String> {
    let sessions = match jobs {
        Jobs::Auto => SESSIONS_AUTO,
        Jobs::Fixed(jobs) => u64::from(jobs),
    };
    // The server has twice as many places for who holds a lock as for what is locked.
    let sessions_max = if objects > room { 0 } else { room.saturating_mul(2) / objects.max(1) };
    if sessions <= sessions_max {
        return None;
    }
    let what = format!("{FULL} {objects} tables and indexes, and the server's lock table is made for {room}");
    Some(match sessions_max {
        0 => format!(
            "{what}: raise max_locks_per_transaction, or give a small --chunk-size (64kB), whose rows go to fewer of them"
        ),
        max => format!(
            "{what}, {max} times at once: raise max_locks_per_transaction, or give --jobs {max} at most, or a small --chunk-size (64kB), \
             whose rows go to fewer of them, or further sessions wait"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_not_told() {
        let locks = |objects| Locks { objects, room: 7000 };
        assert_eq!(told(locks(800), Jobs::Auto), None);
        assert_eq!(told(locks(6000), Jobs::Fixed(2)), None);
        assert!(told(locks(6000), Jobs::Fixed(4)).unwrap().contains("--jobs 2 at most"));
        assert!(told(locks(6000), Jobs::Auto).is_some());
        assert!(told(locks(8000), Jobs::Fixed(1)).unwrap().contains("raise max_locks_per_transaction"));
    }
}
