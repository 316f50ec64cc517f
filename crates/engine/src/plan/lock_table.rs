//! Tables, partitions and their indexes that do not fit into the server's lock table: what a load would find
//! out at its first chunk, or when all its rows are there.

use crate::Context;
use howdah_model::{IndexFate, IndexesChoice, Jobs, Mode, Plan, Relation, RelationKind, Result, TablePlan};
use howdah_target::session::{Session, partitions, partitions::Locks};
use std::collections::BTreeMap;

/// The beginning of the note; an earlier run's plan has it already.
const FULL: &str = "a chunk with rows for all partitions locks";

/// Says what of a load may fill the lock table.
pub(super) async fn tell(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    tell_of_chunks(context, session, plan).await?;
    tell_of_end(context, session, plan).await
}

/// By how many sessions that copy into a partitioned table.
async fn tell_of_chunks(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let jobs = plan.job.jobs;
    let is_copied_into =
        |table: &&mut TablePlan| table.table.kind == RelationKind::Partitioned && table.staging.is_none();
    for table in plan.tables.iter_mut().filter(is_copied_into) {
        table.notes.retain(|note| !note.starts_with(FULL));
        let oids = [table.table.oid];
        let counting = partitions::locks(session, &oids);
        let locks = context.connection.attend(session, counting).await?;
        table.notes.extend(told(locks, jobs));
    }
    Ok(())
}

/// Indexes of a partitioned table go with those of all its partitions. Where these are too many the indexes
/// stay, unless it was said that they are to go.
pub(super) async fn keep_indexes(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let mut told = Vec::new();
    for indexes in plan.indexes.iter_mut().filter(|indexes| !indexes.rebuilt.is_empty()) {
        let is_it = |table: &&TablePlan| {
            table.table.relation == indexes.relation && table.table.kind == RelationKind::Partitioned
        };
        let Some(table) = plan.tables.iter().find(is_it) else { continue };
        let oids = [table.table.oid];
        let locks = context.connection.attend(session, partitions::locks(session, &oids)).await?;
        let what = format!("to drop and rebuild indexes of {} locks", indexes.relation);
        let Some(told_of) = overfull(locks, &what, "give --indexes keep") else { continue };
        if plan.job.indexes == IndexesChoice::Rebuild {
            told.push(told_of);
            continue;
        }
        let Locks { objects, room } = locks;
        let reason = format!(
            "to drop and rebuild it locks {objects} tables and indexes, and the server's lock table is made for {room}"
        );
        let stay = std::mem::take(&mut indexes.rebuilt).into_iter();
        indexes.kept.extend(stay.map(|fate| IndexFate { reason: reason.clone(), ..fate }));
        indexes.workers = None;
    }
    plan.warnings.extend(told);
    Ok(())
}

/// A staging table, the sequence of its places, and the table of its wide values with its index.
const OF_STAGING: u64 = 4;
/// Fewer tables than this fit into the smallest lock table (`max_locks_per_transaction` is ten at least),
/// unless they have partitions.
const TABLES_FEW: usize = 16;

/// Rows that wait may come in by one transaction, and their staging tables go by one.
async fn tell_of_end(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let staged: BTreeMap<&Relation, u32> = plan
        .tables
        .iter()
        .filter_map(|table| Some((&table.staging.as_ref()?.relation, table.table.oid)))
        .collect();
    let arrival = &plan.job.arrival;
    let at_once = arrival.atomic || arrival.mode == Mode::Replace;
    let has_partitions = plan.tables.iter().any(|table| table.table.kind == RelationKind::Partitioned);
    if arrival.check || staged.len() < TABLES_FEW && !(has_partitions && at_once) {
        return Ok(());
    }
    // What is to be made has no OID yet, and is one table more.
    let there: Vec<u32> = staged.values().copied().filter(|oid| at_once && *oid != 0).collect();
    let mut locks = context.connection.attend(session, partitions::locks(session, &there)).await?;
    let new = if at_once { staged.len() - there.len() } else { 0 };
    locks.objects += staged.len() as u64 * OF_STAGING + new as u64;
    plan.warnings.extend(overfull(
        locks,
        "the transaction that ends this load locks",
        "load fewer tables at once",
    ));
    Ok(())
}

/// What one transaction locks is more than there is room for. There may be some more of it than the server
/// has reckoned with: it is not refused.
fn overfull(Locks { objects, room }: Locks, what: &str, instead: &str) -> Option<String> {
    (objects > room).then(|| {
        format!(
            "{what} {objects} tables and indexes, and the server's lock table is made for {room}: raise max_locks_per_transaction, which takes \
             a restart, or {instead}"
        )
    })
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
