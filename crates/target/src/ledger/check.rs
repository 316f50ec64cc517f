//! Checks in the ledger: jobs that store nothing, and of which nothing is kept when they end.

use super::origin::table_oid_sql;
use super::plain::is_odd;
use super::{Ledger, is_lacking};
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use crate::{same_table, staging};
use howdah_model::{ChunkId, Error, ErrorKind, Reject, Relation, Result, sqlstate};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// The tables in which a check has rows, but the journal.
const CHECK_TABLES: [&str; 5] = ["chunk_part", "chunk", "reject", "step", "job"];

/// What errors say is done.
const KEEPING: &str = "writing bad records into the ledger";

/// Rejected records of one job that are alike.
#[derive(Debug, Clone)]
pub struct RejectKind {
    /// The table, `schema.name`.
    pub table: String,
    /// PostgreSQL's code.
    pub sqlstate: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// Why, without row values; of several reasons one.
    pub message: String,
    /// How many.
    pub records: u64,
    /// The first of them: index into the plan's files, number and first byte.
    pub first: Vec<(u32, Option<u64>, Option<u64>)>,
}

impl Ledger {
    /// Checks that the ledger knows: at work, or left behind by a process that is gone. None in a ledger that
    /// is not there.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn checks(&self, session: &Session) -> Result<Vec<String>> {
        if self.is_absent(session) {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT job_id FROM {}.job WHERE plan -> 'job'::pg_catalog.text -> 'arrival'::pg_catalog.text ->> 'check'::pg_catalog.text = 'true' AND status <> 'done' \
             ORDER BY started_at, job_id",
            self.quoted
        );
        match session.client().query_typed(&sql, &[]).await {
            Ok(rows) => Ok(rows.iter().map(|row| row.get(0)).collect()),
            Err(error) if is_lacking(&error) => Ok(Vec::new()),
            Err(error) => Err(self.error(&error, "reading the ledger's jobs")),
        }
    }

    /// The statements that forget all of a check but its entries of the journal.
    pub(crate) fn forget_check_sql(&self, job_id: &str) -> String {
        let (schema, job) = (&self.quoted, quote_literal(job_id));
        let forget = |table: &str| format!("DELETE FROM {schema}.{table} WHERE job_id = {job}");
        CHECK_TABLES.map(forget).join("; ")
    }

    /// Drops the tables that a check has made, and forgets it, in one transaction. Leaves alone, and tells,
    /// what the journal calls a table of the check and is none: whoever may write to the ledger could have
    /// anything dropped. Locks are waited for no longer than `lock_within_ms`, each, where that is not 0.
    ///
    /// # Errors
    /// Ledger, where its tables are not what a ledger has; Server with 55P03 where others hold what is to go;
    /// those of the session.
    pub async fn end_check(
        &self,
        session: &Session,
        job_id: &str,
        lock_within_ms: u64,
    ) -> Result<Vec<Relation>> {
        let fail = |error: &tokio_postgres::Error| self.error(error, "forgetting the check");
        let sql = format!(
            "SELECT u.schema_name, u.table_name, \
                    pg_catalog.max(c.oid::pg_catalog.int8) FILTER (WHERE c.relkind = 'r' AND c.oid = {}), \
                    pg_catalog.count(c.oid) > 0 \
             FROM {}.undo u \
             LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = u.schema_name \
             LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = u.table_name \
             WHERE u.job_id = $1 AND u.kind = 'staging' AND u.undone_at IS NULL GROUP BY 1, 2",
            table_oid_sql("u"),
            self.quoted
        );
        let made = session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await;
        let made = made.map_err(|error| fail(&error))?;
        let (mut drops, mut left_alone) = (String::new(), Vec::new());
        for row in &made {
            let relation = Relation { schema: row.get(0), name: row.get(1) };
            let oid = row.get::<_, Option<i64>>(2).and_then(|oid| u32::try_from(oid).ok());
            match oid.filter(|_| staging::is_of_this_check(&relation, &self.schema, job_id)) {
                Some(oid) => {
                    let (name, expect) = (quote_relation(&relation), same_table::expect_sql(oid, &relation));
                    drops +=
                        &format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; {expect}; DROP TABLE {name}; ");
                }
                None if row.get(3) => left_alone.push(relation),
                None => {}
            }
        }
        let sql = format!(
            "BEGIN; SET LOCAL lock_timeout = {lock_within_ms}; {}; {drops}{}; DELETE FROM {}.undo WHERE job_id = {}; COMMIT",
            self.keep_plain_sql(&[&CHECK_TABLES[..], &["file", "undo"]].concat()),
            self.forget_check_sql(job_id),
            self.quoted,
            quote_literal(job_id)
        );
        let done = session.client().batch_execute(&sql).await;
        match session.or_roll_back(done).await {
            Ok(()) => Ok(left_alone),
            Err(error) => {
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
                    return Err(held(job_id));
                }
                if is_odd(&error) {
                    self.expect_plain(session).await?;
                }
                Err(fail(&error))
            }
        }
    }

    /// Opens the transaction in which bad records are written down.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn begin_keeping(&self, session: &Session) -> Result<()> {
        session.client().batch_execute("BEGIN").await.map_err(|error| self.error(&error, KEEPING))
    }

    /// Ends it well.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn end_keeping(&self, session: &Session) -> Result<()> {
        session.client().batch_execute("COMMIT").await.map_err(|error| self.error(&error, KEEPING))
    }

    /// Writes down bad records of a chunk that COPY has taken.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn keep_bad(
        &self,
        session: &Session,
        job_id: &str,
        ChunkId { file_no, chunk_no }: ChunkId,
        bad: &[Reject],
    ) -> Result<()> {
        let records: Vec<Option<i64>> = bad.iter().map(|bad| bad.record.map(u64::cast_signed)).collect();
        let starts: Vec<Option<i64>> = bad.iter().map(|bad| bad.byte.map(u64::cast_signed)).collect();
        let bytes: Vec<&[u8]> = bad.iter().map(|bad| bad.bytes.as_ref()).collect();
        let as_in_file: Vec<bool> = bad.iter().map(|bad| bad.as_in_file).collect();
        let messages: Vec<&str> = bad.iter().map(|bad| bad.error.message()).collect();
        let sql = format!(
            "INSERT INTO {}.reject (job_id, file_no, chunk_no, record, start_byte, bytes, as_in_file, message) \
             SELECT $1, $2, $3, r.* FROM ROWS FROM (pg_catalog.unnest($4), pg_catalog.unnest($5), \
                pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($8)) r",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
            (&job_id, Type::TEXT),
            (&file_no.cast_signed(), Type::INT4),
            (&chunk_no.cast_signed(), Type::INT8),
            (&records, Type::INT8_ARRAY),
            (&starts, Type::INT8_ARRAY),
            (&bytes, Type::BYTEA_ARRAY),
            (&as_in_file, Type::BOOL_ARRAY),
            (&messages, Type::TEXT_ARRAY),
        ];
        let done = session.client().execute_typed(&sql, &parameters).await;
        done.map(|_| ()).map_err(|error| self.error(&error, KEEPING))
    }

    /// What COPY has refused of a job, by reason, each with its first few records.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn reject_kinds(&self, session: &Session, job_id: &str, first: u32) -> Result<Vec<RejectKind>> {
        let sql = format!(
            "SELECT target, sqlstate, column_name, pg_catalog.min(message), pg_catalog.count(*), \
                    pg_catalog.array_agg(file_no ORDER BY no) FILTER (WHERE no <= $2), \
                    pg_catalog.array_agg(record ORDER BY no) FILTER (WHERE no <= $2), \
                    pg_catalog.array_agg(start_byte ORDER BY no) FILTER (WHERE no <= $2) \
             FROM (SELECT f.target, r.sqlstate, r.column_name, r.message, r.file_no, r.record, r.start_byte, \
                          pg_catalog.row_number() OVER (PARTITION BY f.target, r.sqlstate, r.column_name \
                                                        ORDER BY r.file_no, r.record) AS no \
                   FROM {schema}.reject r JOIN {schema}.file f ON f.job_id = r.job_id AND f.file_no = r.file_no \
                   WHERE r.job_id = $1) AS told \
             GROUP BY target, sqlstate, column_name ORDER BY target, sqlstate, column_name",
            schema = self.quoted
        );
        let first = i64::from(first);
        let rows = self
            .ask(
                session,
                &sql,
                &[(&job_id, Type::TEXT), (&first, Type::INT8)],
                "reading rejected records from the ledger",
            )
            .await?;
        Ok(rows.iter().map(reject_kind).collect())
    }
}

/// By a lock that is not free.
fn held(job_id: &str) -> Error {
    let message = format!("other sessions hold rows or tables of {job_id}");
    Error::new(ErrorKind::Server, message)
        .with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
        .with_hint("end their transactions; the next load, check or howdah restore drops it")
}

fn reject_kind(row: &tokio_postgres::Row) -> RejectKind {
    let files: Vec<i32> = row.get(5);
    let records: Vec<Option<i64>> = row.get(6);
    let bytes: Vec<Option<i64>> = row.get(7);
    let first = files.iter().zip(records).zip(bytes).map(|((file_no, record), byte)| {
        (file_no.cast_unsigned(), record.map(i64::cast_unsigned), byte.map(i64::cast_unsigned))
    });
    RejectKind {
        table: row.get(0),
        sqlstate: row.get(1),
        column: row.get(2),
        message: row.get(3),
        records: row.get::<_, i64>(4).cast_unsigned(),
        first: first.collect(),
    }
}
