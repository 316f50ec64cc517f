//! UNLOGGED tables: a crash of the server, or the promotion of a replica, empties all of them and leaves the
//! ledger as it was, whose receipts are wrong then. So each transaction that brings rows into one leaves a
//! mark in a table of the ledger's schema that is UNLOGGED itself: the marks go when the rows go, and a
//! receipt without its mark is void. Nothing else tells: the server may keep its start time through a crash,
//! and keeps the rows through a clean stop.

use super::schema::LOCK_KEY;
use super::step::target;
use super::{Ledger, is_lacking};
use crate::session::Session;
use crate::sql::OWN_TABLESPACE_SQL;
use crate::tree::BY_NAME_SQL;
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_postgres::types::{ToSql, Type};

/// What a job has in UNLOGGED tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volatile {
    /// The files that go there chunk by chunk.
    pub file_nos: Vec<i32>,
    /// Rows come by steps, from staging tables, which are logged.
    pub by_steps: bool,
    /// Only some partitions of a table are UNLOGGED, so that a chunk may be lost in part.
    pub in_part: bool,
}

/// The marks, which are made where a load first needs them: most ledgers have none.
const MAKE_SQL: &str = "\
    CREATE UNLOGGED TABLE IF NOT EXISTS @schema@.unlogged_mark ( \
        job_id text NOT NULL, \
        xid    xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id()) USING heap; \
    CREATE INDEX IF NOT EXISTS unlogged_mark_job_idx ON @schema@.unlogged_mark (job_id); \
    COMMENT ON TABLE @schema@.unlogged_mark IS 'Transactions that have stored rows in UNLOGGED tables: emptied by a crash of the \
        server like these'; \
    COMMENT ON COLUMN @schema@.unlogged_mark.job_id IS 'The job'; \
    COMMENT ON COLUMN @schema@.unlogged_mark.xid IS 'The transaction'";

/// Chunks of the files `@files@` of job `@job@` whose mark is gone.
const VOID_SQL: &str = "\
    c.job_id = @job@ AND c.file_no = ANY (@files@::pg_catalog.int4[]) \
    AND NOT EXISTS (SELECT FROM @schema@.unlogged_mark m WHERE m.job_id = c.job_id AND m.xid = c.xid)";

/// Each step has left its mark. All marks go at once, so that counting them tells.
const STEPS_SQL: &str = "\
    (SELECT pg_catalog.count(*) FROM @schema@.step s WHERE s.job_id = @job@ AND s.name IN ('part', 'delete')) \
    <= (SELECT pg_catalog.count(*) FROM @schema@.unlogged_mark m WHERE m.job_id = @job@)";

/// There is nothing whose mark could be gone.
const NOTHING_SQL: &str = "\
    NOT EXISTS (SELECT FROM @schema@.chunk c WHERE c.job_id = @job@ AND c.file_no = ANY (@files@::pg_catalog.int4[])) \
    AND NOT EXISTS (SELECT FROM @schema@.step s WHERE s.job_id = @job@ AND s.name IN ('part', 'delete'))";

/// The files of the tables of a `tree` that a crash empties, as `UnloggedTable::files` has them.
const FILES_SQL: &str = "\
    (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.pg_relation_filenode(c.oid::pg_catalog.regclass)::pg_catalog.int8), '[]'::pg_catalog.jsonb) \
     FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid WHERE c.relkind = 'r' AND c.relpersistence = 'u')";

/// Notes the files of the table of schema `$1` and name `$2` in the plan of job `$3`.
const NOTE_FILES_SQL: &str = "\
    UPDATE @schema@.job SET plan = pg_catalog.jsonb_set(plan, ARRAY['tuning', 'unlogged'], ( \
        SELECT pg_catalog.jsonb_agg( \
            CASE WHEN u.element #>> ARRAY['relation', 'schema'] = $1 AND u.element #>> ARRAY['relation', 'name'] = $2 \
                 THEN pg_catalog.jsonb_set(u.element, ARRAY['files'], @files@) \
                 ELSE u.element END ORDER BY u.no) \
        FROM pg_catalog.jsonb_array_elements(plan #> ARRAY['tuning', 'unlogged']) WITH ORDINALITY AS u(element, no))) \
    WHERE job_id = $3";

/// Those of jobs `$3` with a mark that is gone of rows in the UNLOGGED table of schema `$1` and name `$2`,
/// `$4` in the ledger, which a crash has emptied then: its files are the ones that the job has found. ALTER
/// TABLE ... SET LOGGED makes others, and keeps the rows.
const LOST_SQL: &str = "\
    SELECT j.job_id FROM @schema@.job j, LATERAL pg_catalog.jsonb_array_elements(j.plan #> ARRAY['tuning', 'unlogged']) u \
    WHERE j.job_id = ANY ($3) \
      AND u #>> ARRAY['relation', 'schema'] = $1 AND u #>> ARRAY['relation', 'name'] = $2 AND u -> 'whole'::pg_catalog.text = 'true'::pg_catalog.jsonb \
      AND u -> 'files'::pg_catalog.text <@ @files@ \
      AND CASE WHEN pg_catalog.jsonb_path_exists(j.plan, '$.tables[*].staging ? (@ != null)') \
               THEN NOT (@steps@) \
               ELSE EXISTS (SELECT FROM @schema@.chunk c JOIN @schema@.file f USING (job_id, file_no) \
                            WHERE c.job_id = j.job_id AND f.target = $4 AND c.rows > 0 \
                              AND NOT EXISTS (SELECT FROM @schema@.unlogged_mark m WHERE m.job_id = c.job_id AND m.xid = c.xid)) END";

impl Ledger {
    /// The ledger of a job with rows in UNLOGGED tables.
    #[must_use]
    pub fn with_volatile(self, volatile: Volatile) -> Ledger {
        Ledger { volatile: Some(Arc::new(volatile)), ..self }
    }

    /// A crash of the server takes rows that the ledger knows.
    pub fn is_volatile(&self) -> bool {
        self.volatile.is_some()
    }

    /// Makes the table of marks, if the job needs it and it is not there.
    ///
    /// # Errors
    /// Ledger, where the role may not make it; those of the session.
    pub async fn keep_marks(&self, session: &Session) -> Result<()> {
        if self.volatile.is_none() || self.has_marks(session).await? {
            return Ok(());
        }
        let sql = format!(
            "BEGIN; {OWN_TABLESPACE_SQL}; SELECT pg_catalog.pg_advisory_xact_lock({LOCK_KEY}); {MAKE_SQL}; COMMIT"
        );
        let made = session.client().batch_execute(&sql.replace("@schema@", &self.quoted)).await;
        let Err(error) = made else { return Ok(()) };
        let mapped = self.error(&error, "making the marks of UNLOGGED tables");
        session.roll_back().await;
        if mapped.sqlstate() != Some(sqlstate::INSUFFICIENT_PRIVILEGE) {
            return Err(mapped);
        }
        let schema = &self.quoted;
        let message = format!(
            "rows of UNLOGGED tables are proved by a table {schema}.unlogged_mark, which this role may not make"
        );
        Err(Error::new(ErrorKind::Ledger, message)
            .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
            .with_hint(format!(
                "the owner of {schema} can load into an UNLOGGED table once, or grant CREATE on the schema; or ALTER TABLE ... SET LOGGED"
            )))
    }

    /// The name of the table of marks, as `to_regclass` takes it.
    pub(super) fn marks(&self) -> String {
        format!("{}.unlogged_mark", self.quoted)
    }

    pub(super) async fn has_marks(&self, session: &Session) -> Result<bool> {
        let sql = "SELECT pg_catalog.to_regclass($1) IS NOT NULL";
        let row = session.client().query_typed_one(sql, &[(&self.marks(), Type::TEXT)]).await;
        Ok(row.map_err(|error| self.error(&error, "looking for the marks of UNLOGGED tables"))?.get(0))
    }

    /// The claim on a chunk, whose row count it keeps, with its mark.
    pub(super) fn marked(&self, claim_sql: String) -> String {
        match &self.volatile {
            Some(volatile) if !volatile.file_nos.is_empty() => format!(
                "WITH claimed AS ({claim_sql} RETURNING job_id, xid) \
                 INSERT INTO {}.unlogged_mark (job_id, xid) SELECT job_id, xid FROM claimed",
                self.quoted
            ),
            _ => claim_sql,
        }
    }

    /// Leaves the mark of a step in its transaction.
    pub(super) async fn mark_step(&self, session: &Session, job_id: &str) -> Result<()> {
        if !self.volatile.as_ref().is_some_and(|volatile| volatile.by_steps) {
            return Ok(());
        }
        let sql = format!("INSERT INTO {}.unlogged_mark (job_id) VALUES ($1)", self.quoted);
        let done = session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "marking a step in the ledger"))
    }

    /// Notes in which files the server keeps the table from now on, in the transaction in which the job gives
    /// it others: what is written anew behind that, somebody else has written.
    pub(crate) async fn note_files(&self, session: &Session, job_id: &str, table: &Relation) -> Result<()> {
        if !self.is_volatile() {
            return Ok(());
        }
        let sql = format!(
            "{BY_NAME_SQL} {}",
            NOTE_FILES_SQL.replace("@files@", FILES_SQL).replace("@schema@", &self.quoted)
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&table.schema, Type::TEXT), (&table.name, Type::TEXT), (&job_id, Type::TEXT)];
        let done = session.client().query_typed(&sql, &parameters).await;
        done.map(|_| ())
            .map_err(|error| self.error(&error, "noting the files of UNLOGGED tables in the ledger"))
    }

    /// All rows that the ledger knows of the job (a literal) are there, as a condition; `None` where no crash
    /// takes any.
    pub(super) fn standing_sql(&self, job: &str) -> Option<String> {
        let volatile = self.volatile.as_ref()?;
        if volatile.by_steps {
            return Some(self.filled(STEPS_SQL, job));
        }
        let void = format!("NOT EXISTS (SELECT FROM @schema@.chunk c WHERE {VOID_SQL})");
        Some(self.filled(&void, job))
    }

    fn filled(&self, sql: &str, job: &str) -> String {
        let file_nos = self.volatile.iter().flat_map(|volatile| &volatile.file_nos);
        let files: Vec<String> = file_nos.map(i32::to_string).collect();
        let files = format!("'{{{}}}'", files.join(","));
        // The job's name comes last: it may hold anything.
        sql.replace("@schema@", &self.quoted).replace("@files@", &files).replace("@job@", job)
    }

    /// The server has emptied UNLOGGED tables behind rows that the ledger knows.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn has_lost(&self, session: &Session, job_id: &str) -> Result<bool> {
        let Some(standing) = self.standing_sql("$1") else { return Ok(false) };
        // A run may have ended before it made any.
        let standing = match self.has_marks(session).await? {
            true => standing,
            false => self.filled(NOTHING_SQL, "$1"),
        };
        let row =
            session.client().query_typed_one(&format!("SELECT {standing}"), &[(&job_id, Type::TEXT)]).await;
        let row = row.map_err(|error| self.error(&error, "looking for rows that a crash has taken"))?;
        Ok(!row.get::<_, bool>(0))
    }

    /// Those of these jobs whose rows in the table a crash of the server has taken, as far as that can be
    /// told.
    pub(super) async fn lost_in_crash(
        &self,
        session: &Session,
        relation: &Relation,
        jobs: &[&String],
    ) -> Result<BTreeSet<String>> {
        let steps = STEPS_SQL.replace("@job@", "j.job_id");
        let sql = format!(
            "{BY_NAME_SQL} {}",
            LOST_SQL
                .replace("@steps@", &steps)
                .replace("@files@", FILES_SQL)
                .replace("@schema@", &self.quoted)
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&relation.schema, Type::TEXT),
            (&relation.name, Type::TEXT),
            (&jobs, Type::TEXT_ARRAY),
            (&target(relation), Type::TEXT),
        ];
        match session.client().query_typed(&sql, &parameters).await {
            Ok(rows) => Ok(rows.iter().map(|row| row.get(0)).collect()),
            // Who may not read the marks takes the rows for there.
            Err(error) if is_lacking(&error) => Ok(BTreeSet::new()),
            Err(error) => Err(self.error(&error, "looking for rows that a crash has taken")),
        }
    }

    /// Forgets the chunks whose rows the server has emptied; how many.
    ///
    /// # Errors
    /// Table, where other partitions still hold rows of these chunks; those of the session.
    pub async fn forget_emptied(&self, session: &Session, job_id: &str) -> Result<u64> {
        let Some(volatile) = self.volatile.as_ref().filter(|volatile| !volatile.by_steps) else {
            return Ok(0);
        };
        // Most roles need not delete anything there.
        if !self.has_lost(session, job_id).await? {
            return Ok(0);
        }
        if volatile.in_part {
            let message = format!(
                "the server crashed and has emptied the UNLOGGED partitions, with rows of job {job_id}, whose others are in the \
                 partitions that are logged"
            );
            return Err(Error::new(ErrorKind::Table, message)
                .with_hint("take its rows out of the table, then load under another --job-id"));
        }
        let of_gone = "WHERE x.job_id = $1 AND x.file_no = gone.file_no AND x.chunk_no = gone.chunk_no";
        let sql = format!(
            "WITH gone AS (DELETE FROM @schema@.chunk c WHERE {VOID_SQL} RETURNING c.file_no, c.chunk_no), \
             parts AS (DELETE FROM @schema@.chunk_part x USING gone {of_gone}), \
             rejects AS (DELETE FROM @schema@.reject x USING gone {of_gone}) \
             SELECT pg_catalog.count(*) FROM gone"
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&job_id, Type::TEXT)];
        let row = session.client().query_typed_one(&self.filled(&sql, "$1"), &parameters).await;
        let row = row.map_err(|error| self.error(&error, "forgetting chunks that a crash has taken"))?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }
}
