//! What the ledger knows of where the rows of a job are: the transactions that have stored them, which each
//! row carries as its `xmin`.

use super::Ledger;
use crate::session::Session;
use crate::sql::quote_literal;
use bytes::Bytes;
use howdah_model::{ChunkId, Origin, Result, Verify};
use std::collections::HashMap;
use tokio_postgres::types::{ToSql, Type};

impl Ledger {
    /// Marks the open subtransaction as one in which rows of the chunk were stored.
    pub(crate) fn mark_sql(&self, job_id: &str, origin: &Origin) -> String {
        format!(
            "INSERT INTO {}.chunk_part (job_id, file_no, chunk_no) VALUES ({}, {}, {})",
            self.quoted,
            quote_literal(job_id),
            origin.file_no,
            origin.chunk_no
        )
    }

    /// The same in PL/pgSQL, of variables with the names of the columns and `job`.
    pub(crate) fn mark_of_variables_sql(&self) -> String {
        format!(
            "INSERT INTO {}.chunk_part (job_id, file_no, chunk_no) VALUES (job, file_no, chunk_no);",
            self.quoted
        )
    }

    /// A subquery of `file_no`, `chunk_no` and `xid`: what has stored the chunks of job `$1`.
    pub(crate) fn transactions_sql(&self) -> String {
        let schema = &self.quoted;
        format!(
            "SELECT file_no, chunk_no, xid::pg_catalog.xid AS xid FROM {schema}.chunk \
             WHERE job_id = $1 \
             UNION ALL SELECT file_no, chunk_no, xmin FROM {schema}.chunk_part WHERE job_id = $1"
        )
    }

    /// A subquery of what has brought rows of staging tables of job `$1` into table `$2`.
    pub(crate) fn step_transactions_sql(&self) -> String {
        format!("SELECT xmin FROM {}.step WHERE job_id = $1 AND target = $2 AND name = 'part'", self.quoted)
    }

    /// The chunks of the job that came in one transaction with others, each with the first of these.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn chunks_together(
        &self,
        session: &Session,
        job_id: &str,
    ) -> Result<HashMap<ChunkId, ChunkId>> {
        let sql = format!(
            "SELECT file_no, chunk_no, pg_catalog.first_value(file_no) OVER firsts, pg_catalog.first_value(chunk_no) OVER firsts \
             FROM (SELECT file_no, chunk_no, xid, pg_catalog.count(*) OVER (PARTITION BY xid) AS chunks \
                   FROM {}.chunk WHERE job_id = $1) AS c \
             WHERE chunks > 1 WINDOW firsts AS (PARTITION BY xid ORDER BY file_no, chunk_no)",
            self.quoted
        );
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's chunks").await?;
        let chunk = |row: &tokio_postgres::Row, at: usize| ChunkId {
            file_no: row.get::<_, i32>(at).cast_unsigned(),
            chunk_no: row.get::<_, i64>(at + 1).cast_unsigned(),
        };
        Ok(rows.iter().map(|row| (chunk(row, 0), chunk(row, 2))).collect())
    }

    /// What was rejected of a chunk, as it was sent, with the records' numbers where they are known.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rejected_of_chunk(
        &self,
        session: &Session,
        job_id: &str,
        origin: &Origin,
    ) -> Result<Vec<(Option<u64>, Bytes)>> {
        let sql = format!(
            "SELECT record, bytes FROM {}.reject WHERE job_id = $1 AND file_no = $2 AND chunk_no = $3",
            self.quoted
        );
        let (file_no, chunk_no) = (origin.file_no.cast_signed(), origin.chunk_no.cast_signed());
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&job_id, Type::TEXT), (&file_no, Type::INT4), (&chunk_no, Type::INT8)];
        let rows = self.ask(session, &sql, &parameters, "reading rejected records from the ledger").await?;
        let record = |row: &tokio_postgres::Row| {
            (row.get::<_, Option<i64>>(0).map(i64::cast_unsigned), row.get::<_, Vec<u8>>(1).into())
        };
        Ok(rows.iter().map(record).collect())
    }

    /// How the job's rows were found equal to the sources, by whichever run.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn verified_by(&self, session: &Session, job_id: &str) -> Result<Option<String>> {
        let sql = format!("SELECT verified FROM {}.job WHERE job_id = $1", self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's jobs").await?;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    /// Notes that the job's rows were found equal to the sources.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn verified(&self, session: &Session, job_id: &str, by: Verify) -> Result<()> {
        let sql = format!("UPDATE {}.job SET verified = $2 WHERE job_id = $1", self.quoted);
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&job_id, Type::TEXT), (&by.as_str(), Type::TEXT)];
        let done = session.client().execute_typed(&sql, &parameters).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "noting the comparison in the ledger"))
    }
}
