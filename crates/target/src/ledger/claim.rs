//! The claim: the row that makes a chunk count as stored. Written before the chunk's data is sent and
//! committed with it; the primary key lets only one transaction ever commit it.

use super::Ledger;
use crate::session::Session;
use howdah_model::{Error, ErrorKind, Origin, Place, Result};
use tokio_postgres::types::{ToSql, Type};

/// Says in a transaction that it has begun. The claim is sent before BEGIN is answered, and a BEGIN that was cancelled leaves no
/// transaction open: a claim that came to be one by itself would say that a chunk is in whose rows never came.
pub(crate) const BEGUN_SQL: &str = "SET LOCAL howdah.begun TO 'yes'";

/// The claim's statement and values for one chunk.
///
/// ON CONFLICT DO NOTHING makes "already in" a row count of 0 instead of an error that aborts the
/// transaction. If another session has claimed the chunk and not yet committed, the INSERT waits for
/// it, and then counts 1 if that one rolled back and 0 if it committed: doubles and lost answers to COMMIT
/// are settled by the same statement. (PostgreSQL documentation, INSERT, "ON CONFLICT Clause"; true
/// for READ COMMITTED, which the transaction asks for.) Outside a transaction that [`BEGUN_SQL`] has marked it claims nothing.
pub(crate) struct Claim<'a> {
    /// The statement.
    pub(crate) sql: String,
    job_id: &'a str,
    file_no: i32,
    chunk_no: i64,
    start_byte: i64,
    end_byte: i64,
    rows: i64,
    digest: Option<i64>,
    left_out: i64,
    blank: i64,
}

impl Ledger {
    /// The claim on a chunk. Internal error if a number does not fit its column, which no file reaches.
    pub(crate) fn claim<'a>(&self, job_id: &'a str, origin: &Origin) -> Result<Claim<'a>> {
        let too_large =
            |_| Error::new(ErrorKind::Internal, "a number of the chunk does not fit the ledger's column");
        let sql = self.marked(format!(
            "INSERT INTO {}.chunk \
             (job_id, file_no, chunk_no, start_byte, end_byte, rows, digest, left_out, blank) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE pg_catalog.current_setting('howdah.begun', true) = 'yes' \
             ON CONFLICT (job_id, file_no, chunk_no) DO NOTHING",
            self.quoted
        ));
        Ok(Claim {
            sql,
            job_id,
            file_no: i32::try_from(origin.file_no).map_err(too_large)?,
            chunk_no: i64::try_from(origin.chunk_no).map_err(too_large)?,
            start_byte: i64::try_from(origin.start_byte).map_err(too_large)?,
            end_byte: i64::try_from(origin.end_byte).map_err(too_large)?,
            rows: i64::try_from(origin.records).map_err(too_large)?,
            digest: origin.digest.map(u64::cast_signed),
            left_out: i64::try_from(origin.omitted.left_out).map_err(too_large)?,
            blank: i64::try_from(origin.omitted.blank).map_err(too_large)?,
        })
    }
}

impl Ledger {
    /// The chunk that is in was stored from the same bytes, of sources of which nothing else tells that they are the same.
    ///
    /// # Errors
    /// `SourceChanged` if not; those of the session.
    pub(crate) async fn expect_same(&self, session: &Session, job_id: &str, origin: &Origin) -> Result<()> {
        let Some(digest) = origin.digest else { return Ok(()) };
        // Neither number has been refused by its claim.
        let (file_no, chunk_no) = (i64::from(origin.file_no), origin.chunk_no.cast_signed());
        let sql = format!(
            "SELECT FROM {}.chunk WHERE job_id = $1 AND file_no = $2 AND chunk_no = $3 AND digest <> $4",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&job_id, Type::TEXT),
            (&file_no, Type::INT8),
            (&chunk_no, Type::INT8),
            (&digest.cast_signed(), Type::INT8),
        ];
        let others = session.client().query_typed(&sql, &parameters).await;
        if others.map_err(|error| self.error(&error, "comparing a chunk with the ledger's"))?.is_empty() {
            return Ok(());
        }
        let message =
            format!("chunk {chunk_no} holds other records than another run of the job stored from it");
        let place =
            Place { record: Some(origin.first_record), byte: Some(origin.start_byte), ..Place::default() };
        Err(Error::new(ErrorKind::SourceChanged, message)
            .at(place)
            .with_hint("give both runs the same records, or each its own --job-id"))
    }
}

impl Claim<'_> {
    /// The statement's parameters.
    pub(crate) fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 9] {
        [
            (&self.job_id, Type::TEXT),
            (&self.file_no, Type::INT4),
            (&self.chunk_no, Type::INT8),
            (&self.start_byte, Type::INT8),
            (&self.end_byte, Type::INT8),
            (&self.rows, Type::INT8),
            (&self.digest, Type::INT8),
            (&self.left_out, Type::INT8),
            (&self.blank, Type::INT8),
        ]
    }
    /// Their types.
    pub(crate) fn types(&self) -> Vec<Type> {
        self.parameters().map(|(_, declared)| declared).to_vec()
    }
}
