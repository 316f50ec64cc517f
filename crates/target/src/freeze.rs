//! The transaction that all rows of a table come in, frozen: it empties the table, takes chunk after chunk,
//! commits.
//!
//! A [`ChunkTarget`] enters, a session in an open transaction leaves, into which
//! [`crate::commit::commit_chunk`] puts chunks as [`ChunkTarget::held`] says. COPY writes frozen rows into a
//! table that the same transaction has made or emptied, and no WAL for them where `wal_level` is minimal
//! (PostgreSQL documentation, COPY, `FREEZE`, and "Populating a Database"); nobody has read the table in
//! between, since it is locked. The receipts of the chunks stand and fall with the rows.

use crate::commit::{ChunkTarget, commit, roll_back, settings_sql};
use crate::ledger::{Ledger, Step, busy};
use crate::session::Session;
use crate::sql::quote_relation;
use crate::truncate::refused;
use howdah_model::{Changes, Relation, RelationKind, Result};

/// Begins the transaction. False, and no transaction is open, where the table must not be emptied any more:
/// an earlier or simultaneous run of the job has done so (`empties`), or rows have come into the table since
/// this load made it. If the future is dropped before it is done, the session counts as closed.
///
/// # Errors
/// Server with 55P03 when the table was not free within `lock_timeout_ms`, or another job is loading into it,
/// which may pass; those of ledger and session.
pub async fn begin(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    empties: bool,
    lock_timeout_ms: u64,
) -> Result<bool> {
    session.set_busy(true);
    let begun = empty(session, target, empties, lock_timeout_ms).await;
    if !matches!(begun, Ok(true)) {
        roll_back(session).await;
    }
    begun
}

async fn empty(
    session: &Session,
    target: &ChunkTarget<'_>,
    empties: bool,
    lock_timeout_ms: u64,
) -> Result<bool> {
    let relation = &target.table.table.relation;
    // Of a partitioned table all partitions are meant, of others none that inherits from them.
    let only = if target.table.table.kind == RelationKind::Table { "ONLY " } else { "" };
    let table = format!("{only}{}", quote_relation(relation));
    let run = async |sql: &str| {
        let done = session.client().batch_execute(sql).await;
        done.map_err(|error| refused(&error, relation))
    };
    run(&format!("{}; SET LOCAL lock_timeout = {lock_timeout_ms}", settings_sql(target))).await?;
    if let Some(ledger) = target.ledger.filter(|_| empties)
        && !ledger.claim_step(session, target.job_id, relation, Step::Truncate).await?
    {
        return Ok(false);
    }
    run(&format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await?;
    if let Some(ledger) = target.ledger.filter(|_| empties) {
        if let Some(other) = ledger.loading(session, target.job_id, relation).await? {
            return Err(busy(relation, "emptied", &other));
        }
        // Rows of others may have come while the lock was waited for.
        let nothing = Changes::default();
        ledger.settle_step(session, target.job_id, relation, Step::Truncate, 0, nothing).await?;
    }
    if !empties {
        let looking = session.client().query_typed(&format!("SELECT FROM {table} LIMIT 1"), &[]).await;
        let rows = looking.map_err(|error| refused(&error, relation))?;
        if !rows.is_empty() {
            return Ok(false);
        }
    }
    // The session has no time-out of its own.
    run(&format!("TRUNCATE TABLE {table}; SET LOCAL lock_timeout = 0")).await?;
    Ok(true)
}

/// Ends it: all rows of the table are there, for everybody.
///
/// # Errors
/// CommitUnknown: COMMIT was sent and not answered, and only the ledger knows; Server for a deferred
/// constraint; those of the ledger.
pub async fn end(
    session: &mut Session,
    ledger: Option<&Ledger>,
    job_id: &str,
    relation: &Relation,
) -> Result<()> {
    // Not before: it locks the job's row until COMMIT, which others of the load write as well.
    if let Some(ledger) = ledger {
        ledger.note_files(session, job_id, relation).await?;
    }
    commit(session).await
}
