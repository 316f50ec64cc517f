//! Receipts whose rows are gone, since somebody has emptied the table behind them: another job of this
//! ledger, whose step says so, or a TRUNCATE or DELETE that nothing tells but the empty table. Or some are
//! gone, by another job's `--delete-missing`.

use super::Ledger;
use super::same_table::{over_kin, over_taken};
use super::step::target;
use crate::session::Session;
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// Rows that the job has stored in a table, the last job that has emptied or replaced it since the first of
/// them came, else the last that has taken some out, by what its own files had no record of or by a partition
/// that it has emptied; whether some came behind that, and what it has done. `@come@` is what brings rows:
/// chunks, or steps.
const STORED_SQL: &str = " \
    SELECT a.rows, s.job_id, coalesce(s.done_at < a.last_at, false), s.name = 'delete', s.whole \
    FROM @all_come@ a \
    LEFT JOIN LATERAL (SELECT s.job_id, s.name, s.done_at, s.whole FROM taken s \
                       WHERE @takes@ \
                       ORDER BY s.name = 'delete' OR NOT s.whole, s.done_at DESC LIMIT 1) s ON true";

/// What is asked of before.
const COME_SQL: &str = ", come AS MATERIALIZED (@come@)";

/// The same rows, and whether another job has taken some out of any table since. Most have not, and the
/// server spends a fifth of the time on this that it takes to plan the whole question (2.5 ms, PostgreSQL
/// 15).
const STORED_AT_ALL_SQL: &str = "\
    WITH come AS (@come@) \
    SELECT a.rows, EXISTS (SELECT FROM @schema@.step s WHERE @takes@) FROM @all_come@ a";

/// All that came, and when.
const ALL_COME_SQL: &str = "\
    (SELECT coalesce(pg_catalog.sum(rows), 0)::pg_catalog.int8 AS rows, pg_catalog.min(at) AS first_at, pg_catalog.max(at) AS last_at \
     FROM come)";

/// The step `s` is another job's, and takes rows out since the first of them came.
const TAKES_SQL: &str = "\
    s.job_id <> $3 AND s.done_at > a.first_at \
    AND (s.name IN ('truncate', 'replace') OR s.name = 'delete' AND s.deleted > 0)";

/// Chunks that were copied into the table.
const CHUNKS_SQL: &str = "\
    SELECT rows, stored_at AS at FROM @schema@.chunk WHERE job_id = $3 AND file_no = ANY ($5) AND rows > 0 AND $4 IS NOT NULL";

/// Parts that have come in from its staging table.
const PARTS_SQL: &str = "\
    SELECT inserted + updated AS rows, done_at AS at FROM @schema@.step \
    WHERE job_id = $3 AND target = $4 AND name = 'part' AND inserted + updated > 0 \
      AND $5::pg_catalog.int4[] IS NOT NULL";

/// Jobs that have ended well since the job `$3` began first, and have brought rows.
const COME_SINCE_SQL: &str = " \
    SELECT d.job_id FROM @schema@.job j JOIN @schema@.job d ON d.finished_at > j.started_at AND d.job_id <> j.job_id AND d.status = 'done' \
    WHERE j.job_id = $3 AND d.rows_stored > 0 \
      AND EXISTS (SELECT FROM @schema@.file f JOIN kin k ON k.written = f.target WHERE f.job_id = d.job_id) \
    ORDER BY d.finished_at, d.job_id";

/// What a job has stored in a table, as the ledger says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// Rows of its chunks, or of its parts.
    pub rows: u64,
    /// The job that has taken rows out of the table since.
    pub taken_by: Option<String>,
    /// Some of the rows came behind that, and are there.
    pub goes_on: bool,
    /// What it has taken.
    pub taken: Taken,
}

/// What another job has taken out of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Taken {
    /// All rows.
    #[default]
    All,
    /// Those that its own files had no record of.
    Missing,
    /// Those of a partition.
    Partition,
}

impl Ledger {
    /// What the job has stored in this table: by chunks of these files, or (`by_steps`) by parts of its
    /// staging table. One round trip, and another where jobs have taken rows out of tables since.
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
        let filled = |sql: &str| {
            let sql =
                sql.replace("@come@", come).replace("@all_come@", ALL_COME_SQL).replace("@takes@", TAKES_SQL);
            sql.replace("@schema@", &self.quoted)
        };
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&relation.schema, Type::TEXT),
            (&relation.name, Type::TEXT),
            (&job_id, Type::TEXT),
            (&target(relation), Type::TEXT),
            (&file_nos, Type::INT4_ARRAY),
        ];
        let doing = "reading what the job has stored";
        let at_all = self.ask(session, &filled(STORED_AT_ALL_SQL), &parameters, doing).await?;
        if let Some(row) = at_all.first().filter(|row| !row.get::<_, bool>(1)) {
            return Ok(StoredRows { rows: row.get::<_, i64>(0).unsigned_abs(), ..StoredRows::default() });
        }
        let since = "SELECT pg_catalog.min(at) FROM come";
        let stored = over_taken(COME_SQL, since, STORED_SQL);
        let rows = self.ask(session, &filled(&stored), &parameters, doing).await?;
        Ok(rows.first().map_or_else(StoredRows::default, |row| StoredRows {
            rows: row.get::<_, i64>(0).unsigned_abs(),
            taken_by: row.get(1),
            goes_on: row.get(2),
            taken: match (row.get(3), row.get(4)) {
                (Some(true), _) => Taken::Missing,
                (_, Some(false)) => Taken::Partition,
                _ => Taken::All,
            },
        }))
    }

    /// Other jobs that have ended well since this one began first, and have brought rows into the table, a
    /// partition of it or what it is a partition of.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn come_since(
        &self,
        session: &Session,
        job_id: &str,
        relation: &Relation,
    ) -> Result<Vec<String>> {
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT), (&job_id, Type::TEXT)];
        let sql = over_kin(COME_SINCE_SQL).replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's jobs").await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Forgets what the job has stored in a table that was emptied since: the chunks of these files, if rows
    /// came by chunks, and all steps. What waits in its staging table comes in again.
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
