//! The claim: the row that makes a chunk count as stored. Written before the chunk's data is sent and
//! committed with it; the primary key lets only one transaction ever commit it.

use super::Ledger;
use crate::session::Session;
use howdah_model::{Error, ErrorKind, Origin, Place, Result};
use tokio_postgres::types::{ToSql, Type};

/// Says in a transaction that it has begun. The claim is sent before BEGIN is answered, and a BEGIN that was
/// cancelled leaves no transaction open: a claim that came to be one by itself would say that a chunk is in
/// whose rows never came.
pub(crate) const BEGUN_SQL: &str = "SET LOCAL howdah.begun TO 'yes'";

/// The claim's statement and values for chunks that one transaction takes.
///
/// ON CONFLICT DO NOTHING makes "already in" a row count of 0 instead of an error that aborts the
/// transaction. If another session has claimed the chunk and not yet committed, the INSERT waits for it, and
/// then counts 1 if that one rolled back and 0 if it committed: doubles and lost answers to COMMIT are
/// settled by the same statement. (PostgreSQL documentation, INSERT, "ON CONFLICT Clause"; true for READ
/// COMMITTED, which the transaction asks for.) Outside a transaction that [`BEGUN_SQL`] has marked it claims
/// nothing.
pub(crate) struct Claim<'a> {
    /// The statement.
    pub(crate) sql: String,
    job_id: &'a str,
    file_no: Vec<i32>,
    chunk_no: Vec<i64>,
    start_byte: Vec<i64>,
    end_byte: Vec<i64>,
    rows: Vec<i64>,
    digest: Vec<Option<i64>>,
    left_out: Vec<i64>,
    blank: Vec<i64>,
}

/// Of several chunks. Two runs of a job that claim the same ones do so in the same order, and none waits for
/// the other for ever.
const SEVERAL_SQL: &str = "\
    SELECT $1, c.* FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), \
        pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($8), pg_catalog.unnest($9)) AS c (file_no, chunk_no) \
    WHERE pg_catalog.current_setting('howdah.begun', true) = 'yes' ORDER BY c.file_no, c.chunk_no";
const ONE_SQL: &str = "\
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE pg_catalog.current_setting('howdah.begun', true) = 'yes'";

impl Ledger {
    /// The claim on chunks. Internal error if a number does not fit its column, which no file reaches.
    pub(crate) fn claim<'a>(&self, job_id: &'a str, origins: &[Origin]) -> Result<Claim<'a>> {
        let too_large =
            |_| Error::new(ErrorKind::Internal, "a number of the chunk does not fit the ledger's column");
        let numbers = |of: fn(&Origin) -> u64| -> Result<Vec<i64>> {
            origins.iter().map(|origin| i64::try_from(of(origin)).map_err(too_large)).collect()
        };
        let file_no = |origin: &Origin| i32::try_from(origin.file_no).map_err(too_large);
        let sql = self.marked(format!(
            "INSERT INTO {}.chunk \
             (job_id, file_no, chunk_no, start_byte, end_byte, rows, digest, left_out, blank) {} \
             ON CONFLICT (job_id, file_no, chunk_no) DO NOTHING",
            self.quoted,
            if origins.len() == 1 { ONE_SQL } else { SEVERAL_SQL }
        ));
        Ok(Claim {
            sql,
            job_id,
            file_no: origins.iter().map(file_no).collect::<Result<_>>()?,
            chunk_no: numbers(|origin| origin.chunk_no)?,
            start_byte: numbers(|origin| origin.start_byte)?,
            end_byte: numbers(|origin| origin.end_byte)?,
            rows: numbers(|origin| origin.records)?,
            digest: origins.iter().map(|origin| origin.digest.map(u64::cast_signed)).collect(),
            left_out: numbers(|origin| origin.omitted.left_out)?,
            blank: numbers(|origin| origin.omitted.blank)?,
        })
    }
}

impl Ledger {
    /// The chunk that is in was stored from the same bytes, of sources of which nothing else tells that they
    /// are the same.
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
            values(&self.file_no, Type::INT4, Type::INT4_ARRAY),
            values(&self.chunk_no, Type::INT8, Type::INT8_ARRAY),
            values(&self.start_byte, Type::INT8, Type::INT8_ARRAY),
            values(&self.end_byte, Type::INT8, Type::INT8_ARRAY),
            values(&self.rows, Type::INT8, Type::INT8_ARRAY),
            values(&self.digest, Type::INT8, Type::INT8_ARRAY),
            values(&self.left_out, Type::INT8, Type::INT8_ARRAY),
            values(&self.blank, Type::INT8, Type::INT8_ARRAY),
        ]
    }
    /// Their types.
    pub(crate) fn types(&self) -> Vec<Type> {
        self.parameters().map(|(_, declared)| declared).to_vec()
    }
}

/// The value of the only chunk, or an array of those of several.
fn values<T: ToSql + Sync>(values: &Vec<T>, one: Type, several: Type) -> (&(dyn ToSql + Sync), Type) {
    match values.as_slice() {
        [only] => (only, one),
        _ => (values, several),
    }
}
