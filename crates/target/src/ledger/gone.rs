//! Receipts whose rows are gone, since somebody has emptied the table behind them: another job of this ledger, whose step says so,
//! or a TRUNCATE or DELETE that nothing tells but the empty table. Or some are gone, by another job's `--delete-missing`.

use super::Ledger;
use super::job_lock::{DELETION_SEED, MARK_SEED, holders_sql};
use super::step::target;
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// Rows that the job has stored in a table, the last job that has emptied or replaced it since the first of them came, else the last that
/// has deleted what its own files had no record of, whether some came behind that, and whether it has only deleted. `@come@` is what
/// brings rows: chunks, or steps.
const STORED_SQL: &str = "\
    WITH come AS (@come@) \
    SELECT a.rows, s.job_id, coalesce(s.done_at < a.last_at, false), coalesce(s.name = 'delete', false) \
    FROM (SELECT coalesce(pg_catalog.sum(rows), 0)::pg_catalog.int8 AS rows, pg_catalog.min(at) AS first_at, \
                 pg_catalog.max(at) AS last_at FROM come) a \
    LEFT JOIN LATERAL (SELECT s.job_id, s.name, s.done_at FROM @schema@.step s \
                       WHERE s.target = $2 AND s.job_id <> $1 AND s.done_at > a.first_at \
                         AND (s.name IN ('truncate', 'replace') OR s.name = 'delete' AND s.deleted > 0) \
                       ORDER BY s.name = 'delete', s.done_at DESC LIMIT 1) s ON true";

/// Chunks that were copied into the table.
const CHUNKS_SQL: &str = "\
    SELECT rows, stored_at AS at FROM @schema@.chunk WHERE job_id = $1 AND file_no = ANY ($3) AND rows > 0";

/// Parts that have come in from its staging table.
const PARTS_SQL: &str = "\
    SELECT inserted + updated AS rows, done_at AS at FROM @schema@.step \
    WHERE job_id = $1 AND target = $2 AND name = 'part' AND inserted + updated > 0 \
      AND $3::pg_catalog.int4[] IS NOT NULL";

/// What a job has stored in a table, as the ledger says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// Rows of its chunks, or of its parts.
    pub rows: u64,
    /// The job that has emptied the table since, or deleted rows of it.
    pub emptied_by: Option<String>,
    /// Some of the rows came behind that, and are there.
    pub goes_on: bool,
    /// It has deleted what its own files had no record of, and no more.
    pub is_deleted: bool,
}

/// A lock of the table, which its partitions have with it.
const DELETION_SQL: &str = "SELECT pg_catalog.@lock@(k.key) FROM (@key@) k";

const DELETION_KEY_SQL: &str = "\
    SELECT pg_catalog.hashtextextended( \
        $1 || '/' || coalesce(pg_catalog.pg_partition_root(t.named)::pg_catalog.oid, t.named::pg_catalog.oid)::pg_catalog.text, $3) AS key \
    FROM (SELECT pg_catalog.to_regclass($2) AS named) t";

/// Sessions of loads are marked with their job.
const DELETING_SQL: &str = "\
    SELECT l.pid, (SELECT pg_catalog.min(j.job_id) FROM pg_catalog.pg_locks m JOIN @schema@.job j \
                       ON (m.classid::pg_catalog.int8 << 32) | m.objid::pg_catalog.int8 \
                          = pg_catalog.hashtextextended($1 || '/' || j.job_id, $4) \
                   WHERE m.pid = l.pid AND m.database = l.database AND m.locktype = 'advisory' AND m.objsubid = 1 AND m.granted) \
    FROM @holders@ ORDER BY l.pid";

/// Who deletes rows that its files have no record of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleting {
    /// The server process.
    pub pid: i32,
    /// Its job, where that can be told.
    pub job_id: Option<String>,
}

impl Ledger {
    /// Before a job deletes what its files have no record of: until its transaction ends, [`Ledger::wait_for_deletions`] waits. So a job
    /// that is not waited for has stored all its rows before the deletion sees any of them.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn announce_deletion(&self, session: &Session, relation: &Relation) -> Result<()> {
        self.lock_deletions(session, relation, "pg_advisory_xact_lock_shared").await
    }

    /// Waits for those who delete at this time: what they have deleted, their steps say behind that.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn wait_for_deletions(&self, session: &Session, relation: &Relation) -> Result<()> {
        self.lock_deletions(session, relation, "pg_advisory_xact_lock").await
    }

    async fn lock_deletions(&self, session: &Session, relation: &Relation, lock: &str) -> Result<()> {
        let name = quote_relation(relation);
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.schema, Type::TEXT), (&name, Type::TEXT), (&DELETION_SEED, Type::INT8)];
        let sql = DELETION_SQL.replace("@lock@", lock).replace("@key@", DELETION_KEY_SQL);
        session.rows(&sql, &parameters, "waiting for rows to be deleted").await.map(|_| ())
    }

    /// Those whom [`Ledger::wait_for_deletions`] waits for.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn deleting(&self, session: &Session, relation: &Relation) -> Result<Vec<Deleting>> {
        let name = quote_relation(relation);
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.schema, Type::TEXT),
            (&name, Type::TEXT),
            (&DELETION_SEED, Type::INT8),
            (&MARK_SEED, Type::INT8),
        ];
        let sql = DELETING_SQL
            .replace("@holders@", &holders_sql(DELETION_KEY_SQL))
            .replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &parameters, "looking who deletes rows").await?;
        Ok(rows.iter().map(|row| Deleting { pid: row.get(0), job_id: row.get(1) }).collect())
    }

    /// What the job has stored in this table: by chunks of these files, or (`by_steps`) by parts of its staging table.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn stored_in(
        &self,
        session: &Session,
        job_id: &str,
        relation: &Relation,
        file_nos: &[i32],
        by_steps: bool,
    ) -> Result<StoredRows> {
        let come = if by_steps { PARTS_SQL } else { CHUNKS_SQL };
        let sql = STORED_SQL.replace("@come@", come).replace("@schema@", &self.quoted);
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&job_id, Type::TEXT), (&target(relation), Type::TEXT), (&file_nos, Type::INT4_ARRAY)];
        let rows = self.ask(session, &sql, &parameters, "reading what the job has stored").await?;
        Ok(rows.first().map_or_else(StoredRows::default, |row| StoredRows {
            rows: row.get::<_, i64>(0).unsigned_abs(),
            emptied_by: row.get(1),
            goes_on: row.get(2),
            is_deleted: row.get(3),
        }))
    }

    /// Forgets what the job has stored in a table that was emptied since: the chunks of these files, if rows came by chunks, and all
    /// steps. What waits in its staging table comes in again.
    ///
    /// # Errors
    /// Ledger, with the right that is missing; those of the session.
    pub async fn forget_gone(
        &self,
        session: &Session,
        job_id: &str,
        relation: &Relation,
        file_nos: &[i32],
    ) -> Result<()> {
        let fail = |error| self.error(&error, "forgetting what the table has lost");
        session.client().batch_execute("BEGIN").await.map_err(fail)?;
        let forgetting = async {
            self.forget_chunks(session, job_id, file_nos).await?;
            let sql = format!("DELETE FROM {}.step WHERE job_id = $1 AND target = $2", self.quoted);
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&job_id, Type::TEXT), (&target(relation), Type::TEXT)];
            session.client().query_typed(&sql, &parameters).await.map_err(fail)?;
            session.client().batch_execute("COMMIT").await.map_err(fail)
        };
        session.or_roll_back(forgetting.await).await
    }
}
