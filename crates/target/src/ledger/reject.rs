//! Records that were read and not stored: written with their chunk, read for whoever mends them.

use super::Ledger;
use crate::session::Session;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use howdah_model::{ChunkId, Error, Origin, Reject, RejectsOf, Result};
use std::pin::{Pin, pin};
use std::time::SystemTime;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// Of the columns that are written, in their order.
const REJECT_TYPES: [Type; 11] = [
    Type::TEXT,
    Type::INT4,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::BYTEA,
    Type::BOOL,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TIMESTAMPTZ,
];

/// What has become of rejected records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectsSettled {
    /// So many of them nobody has loaded since.
    pub waiting: u64,
    /// The jobs that have loaded others, or rejected them once more.
    pub loaded_by: Vec<String>,
}

/// A rejected record as the ledger keeps it.
#[derive(Debug, Clone)]
pub struct RejectRow {
    /// Its number in the ledger.
    pub number: i64,
    /// Index into the plan's files.
    pub file_no: u32,
    /// Its number in the file, from 1, where it is known.
    pub record: Option<u64>,
    /// Its first byte in the plain bytes of the file.
    pub start_byte: Option<u64>,
    /// The record with its line ending.
    pub bytes: Bytes,
    /// `bytes` are those of the file.
    pub as_in_file: bool,
    /// The column.
    pub column: Option<String>,
    /// PostgreSQL's code.
    pub sqlstate: Option<String>,
    /// Why, without row values.
    pub message: String,
}

impl Ledger {
    /// Writes what was rejected of a chunk and corrects the chunk's counts, in the transaction that stores
    /// the rest.
    pub(crate) async fn reject(
        &self,
        session: &mut Session,
        job_id: &str,
        origin: &Origin,
        rejects: &[Reject],
    ) -> Result<()> {
        let stored = origin.records.saturating_sub(rejects.len() as u64);
        let set = "rows = $4, rejected = $5";
        self.write_rejects(session, job_id, origin.chunk(), (set, stored), rejects).await
    }

    /// The same of rows of a chunk that are in a staging table, in the transaction that deletes them there.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn reject_later(
        &self,
        session: &mut Session,
        job_id: &str,
        chunk: ChunkId,
        rejects: &[Reject],
    ) -> Result<()> {
        let set = "rows = rows - $4, rejected = rejected + $5";
        self.write_rejects(session, job_id, chunk, (set, rejects.len() as u64), rejects).await
    }

    /// `set` corrects the chunk's counts by `rows` (`$4`) and the number of the rejects (`$5`).
    async fn write_rejects(
        &self,
        session: &mut Session,
        job_id: &str,
        chunk: ChunkId,
        (set, rows): (&str, u64),
        rejects: &[Reject],
    ) -> Result<()> {
        // The default of `rejected_at` is volatile: with it COPY would insert one row after the other.
        let sql = format!(
            "COPY {}.reject (job_id, file_no, chunk_no, record, start_byte, bytes, as_in_file, column_name, sqlstate, \
             message, rejected_at) FROM STDIN WITH (FORMAT binary)",
            self.quoted
        );
        let copy = session.prepare_copy(&sql).await?;
        let writing = async {
            let at = self.correct(session, job_id, chunk, (set, rows, rejects.len() as u64)).await?;
            let writer = BinaryCopyInWriter::new(session.client().copy_in(&copy).await?, &REJECT_TYPES);
            let mut writer = pin!(writer);
            let (file_no, chunk_no) = (chunk.file_no.cast_signed(), chunk.chunk_no.cast_signed());
            for Reject { record, byte, bytes, as_in_file, error } in rejects {
                let (record, byte) = (record.map(u64::cast_signed), byte.map(u64::cast_signed));
                let (column, sqlstate) = (error.place().column.as_deref(), error.sqlstate());
                let (bytes, message) = (bytes.as_ref(), error.message());
                let row: [&(dyn ToSql + Sync); 11] = [
                    &job_id, &file_no, &chunk_no, &record, &byte, &bytes, as_in_file, &column, &sqlstate,
                    &message, &at,
                ];
                writer.as_mut().write(&row).await?;
            }
            writer.as_mut().finish().await
        };
        let written: Result<u64, tokio_postgres::Error> = writing.await;
        written.map(|_| ()).map_err(|error| self.error(&error, "writing rejected records into the ledger"))
    }

    /// Of the chunk's records so many are not stored. When that is known, comes back.
    async fn correct(
        &self,
        session: &Session,
        job_id: &str,
        ChunkId { file_no, chunk_no }: ChunkId,
        (set, rows, rejected): (&str, u64, u64),
    ) -> Result<SystemTime, tokio_postgres::Error> {
        let sql = format!(
            "UPDATE {}.chunk SET {set} WHERE job_id = $1 AND file_no = $2 AND chunk_no = $3 \
             RETURNING pg_catalog.clock_timestamp()",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&job_id, Type::TEXT),
            (&file_no.cast_signed(), Type::INT4),
            (&chunk_no.cast_signed(), Type::INT8),
            (&rows.cast_signed(), Type::INT8),
            (&rejected.cast_signed(), Type::INT8),
        ];
        Ok(session.client().query_typed_one(&sql, &parameters).await?.get(0))
    }

    /// Files of a job of which records are rejected that nobody has loaded since, each with whether they are
    /// kept as the file has them. None in a ledger of a version that keeps none.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rejected_files(&self, session: &Session, job_id: &str) -> Result<Vec<(u32, bool)>> {
        let sql = format!(
            "SELECT DISTINCT file_no, as_in_file FROM {}.reject WHERE job_id = $1 AND loaded_by IS NULL \
             ORDER BY file_no, as_in_file",
            self.quoted
        );
        match session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await {
            Ok(rows) => {
                Ok(rows.iter().map(|row| (row.get::<_, i32>(0).cast_unsigned(), row.get(1))).collect())
            }
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            Err(error) => Err(self.error(&error, "looking for rejected records in the ledger")),
        }
    }

    /// What has become of these rejected records; of those that are kept in the other way, too, as far as
    /// they are loaded.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rejects_settled(&self, session: &Session, of: &RejectsOf) -> Result<RejectsSettled> {
        let file_nos: Vec<i32> = of.file_nos.iter().map(|no| no.cast_signed()).collect();
        let sql = format!(
            "SELECT pg_catalog.count(*) FILTER (WHERE loaded_by IS NULL AND as_in_file = coalesce($3, as_in_file)), \
             pg_catalog.array_agg(DISTINCT loaded_by) FILTER (WHERE loaded_by IS NOT NULL) \
             FROM {}.reject WHERE job_id = $1 AND file_no = ANY ($2)",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&of.job_id, Type::TEXT), (&file_nos, Type::INT4_ARRAY), (&of.as_in_file, Type::BOOL)];
        match session.client().query_typed_one(&sql, &parameters).await {
            Ok(row) => Ok(RejectsSettled {
                waiting: row.get::<_, i64>(0).cast_unsigned(),
                loaded_by: row.get::<_, Option<Vec<String>>>(1).unwrap_or_default(),
            }),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                Ok(RejectsSettled { waiting: 0, loaded_by: Vec::new() })
            }
            Err(error) => Err(self.error(&error, "looking for rejected records in the ledger")),
        }
    }

    /// Rejected records of a job are in the table by now, or rejected by the other job, which has read so
    /// many of them. If these are fewer than there are, nobody knows which of them it has read, and none is
    /// noted; how many there are that no third job has settled comes back.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rejects_loaded(
        &self,
        session: &Session,
        of: &RejectsOf,
        by: &str,
        read: u64,
    ) -> Result<u64> {
        let file_nos: Vec<i32> = of.file_nos.iter().map(|no| no.cast_signed()).collect();
        let schema = &self.quoted;
        let sql = format!(
            "WITH waiting AS (SELECT number FROM {schema}.reject \
                 WHERE job_id = $1 AND file_no = ANY ($2) AND as_in_file = coalesce($5, as_in_file) \
                 AND (loaded_by IS NULL OR loaded_by = $3)), \
             noted AS (UPDATE {schema}.reject SET loaded_by = $3 WHERE number IN (SELECT number FROM waiting) \
                 AND (SELECT pg_catalog.count(*) FROM waiting) <= $4) \
             SELECT pg_catalog.count(*) FROM waiting"
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&of.job_id, Type::TEXT),
            (&file_nos, Type::INT4_ARRAY),
            (&by, Type::TEXT),
            (&read.cast_signed(), Type::INT8),
            (&of.as_in_file, Type::BOOL),
        ];
        let asked = session.client().query_typed_one(&sql, &parameters).await;
        let row = asked.map_err(|error| self.error(&error, "noting that rejected records are loaded"))?;
        Ok(row.get::<_, i64>(0).cast_unsigned())
    }

    /// Rejected records of a job that nobody has loaded since, in the order of the files.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rejects(
        &self,
        session: &Session,
        job_id: &str,
    ) -> Result<Pin<Box<dyn Stream<Item = Result<RejectRow>> + Send>>> {
        self.rejects_where(session, job_id, " AND loaded_by IS NULL").await
    }

    /// The same with those that were loaded since.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn all_rejects(
        &self,
        session: &Session,
        job_id: &str,
    ) -> Result<Pin<Box<dyn Stream<Item = Result<RejectRow>> + Send>>> {
        self.rejects_where(session, job_id, "").await
    }

    async fn rejects_where(
        &self,
        session: &Session,
        job_id: &str,
        which: &str,
    ) -> Result<Pin<Box<dyn Stream<Item = Result<RejectRow>> + Send>>> {
        let sql = format!(
            "SELECT number, file_no, record, start_byte, bytes, as_in_file, column_name, sqlstate, message \
             FROM {}.reject WHERE job_id = $1{which} \
             ORDER BY file_no, chunk_no, record, number",
            self.quoted
        );
        let doing = "reading rejected records from the ledger";
        let rows = session.client().query_typed_raw(&sql, [(job_id, Type::TEXT)]).await;
        let rows = rows.map_err(|error| self.error(&error, doing))?;
        let ledger = self.clone();
        let read = move |row: Result<tokio_postgres::Row, tokio_postgres::Error>| -> Result<RejectRow> {
            let row = row.map_err(|error: tokio_postgres::Error| -> Error { ledger.error(&error, doing) })?;
            Ok(RejectRow {
                number: row.get(0),
                file_no: row.get::<_, i32>(1).cast_unsigned(),
                record: row.get::<_, Option<i64>>(2).map(i64::cast_unsigned),
                start_byte: row.get::<_, Option<i64>>(3).map(i64::cast_unsigned),
                bytes: Bytes::from(row.get::<_, Vec<u8>>(4)),
                as_in_file: row.get(5),
                column: row.get(6),
                sqlstate: row.get(7),
                message: row.get(8),
            })
        };
        Ok(Box::pin(rows.map(read)))
    }
}
