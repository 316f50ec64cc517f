//! What is stored, compared with what is read again.
//!
//! A row carries the transaction that has stored it (`xmin`), and the ledger knows those of each chunk. So
//! one scan of a table tells how many rows each chunk has left there, whoever writes beside, and the sum of
//! the hashes of their values. A chunk that is read again goes into a temporary table of the same columns,
//! where the same server reads its values as it read them the first time, and is summed up there. Each
//! session makes one, which COMMIT empties: a table for each chunk would leave its rows in the catalogs
//! behind, dead. Sums do not depend on the order of rows, nothing is larger than a chunk, and no value leaves
//! the server.

use crate::commit::{self, ChunkError, ChunkTarget, CopyProgress, Phase};
use crate::copy::{aim as aim_copy, stream, unchanged};
use crate::error::session_error;
use crate::ledger::Ledger;
use crate::session::Session;
use crate::sql::{quote_columns, quote_ident, quote_relation};
use bytes::Bytes;
use howdah_model::{ChunkId, CopyChunk, Error, Origin, Relation, Result, StagingPlan, TablePlan};
use std::collections::HashMap;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

mod rights;

pub use rights::check;

const DOING: &str = "comparing what is stored with the sources";

/// A role may have numbers shortened on their way out: two that differ would look the same.
pub(crate) const EXACT_SQL: &str = "SET LOCAL extra_float_digits = 3; SET LOCAL jit = off";

/// The first chunk of a transaction.
const FIRST_SQL: &str = "\
    SELECT (pg_catalog.min(ARRAY[file_no::pg_catalog.int8, chunk_no]))[1]::pg_catalog.int4 AS file_no, \
           (pg_catalog.min(ARRAY[file_no::pg_catalog.int8, chunk_no]))[2] AS chunk_no, xid";

/// How many rows, and what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Their number.
    pub rows: u64,
    /// The sum of their hashes; 0 where they are only counted.
    pub hashes: i128,
}

impl Sum {
    /// Of both.
    #[must_use]
    pub fn and(self, more: Sum) -> Sum {
        Sum { rows: self.rows + more.rows, hashes: self.hashes.wrapping_add(more.hashes) }
    }
}

/// What a table holds.
#[derive(Debug, Default)]
pub struct TableSums {
    /// Of each chunk of the job.
    pub chunks: HashMap<ChunkId, Sum>,
    /// Rows that the job has not stored.
    pub others: Sum,
}

/// The hash of a row's values in these columns. Their text tells all values apart that the server tells
/// apart, but for types that do not show all that they hold.
pub(crate) fn hash_sql(columns: &[String]) -> String {
    let fields: Vec<String> = columns.iter().map(|name| format!("t.{}", quote_ident(name))).collect();
    format!(
        "pg_catalog.hashtextextended(ROW({})::pg_catalog.text COLLATE pg_catalog.\"C\", 0)",
        fields.join(", ")
    )
}

/// What is summed up of a table's rows.
#[derive(Debug, Clone, Copy)]
pub struct Summed<'a> {
    /// The values of these columns; without any, rows are only counted.
    pub columns: &'a [String],
    /// Those of rows, too, that the job has not stored.
    pub of_others: bool,
}

/// Sums up what the table holds of each chunk of the job, or of all that one transaction has stored under the
/// first of them. As many processes of the server scan the table as it allows, up to `sessions`.
///
/// # Errors
/// Those of the session.
pub async fn stored(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    relation: &Relation,
    summed: Summed<'_>,
    sessions: u32,
) -> Result<TableSums> {
    let fail = |error: tokio_postgres::Error| session_error(&error, DOING);
    let Summed { columns, of_others } = summed;
    // The session's own process scans too.
    let helpers = sessions.saturating_sub(1);
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {EXACT_SQL}; \
         SET LOCAL max_parallel_workers_per_gather = {helpers}"
    );
    session.client().batch_execute(&begin).await.map_err(fail)?;
    let hash = if columns.is_empty() { "0".to_owned() } else { hash_sql(columns) };
    let sql = format!(
        "SELECT o.file_no, o.chunk_no, pg_catalog.count(*), \
                coalesce(pg_catalog.sum(CASE WHEN {of_others} OR o.file_no IS NOT NULL THEN {hash} END), 0)::pg_catalog.text \
         FROM {} AS t LEFT JOIN ({FIRST_SQL} FROM ({}) AS s GROUP BY xid) AS o ON t.xmin = o.xid \
         GROUP BY o.file_no, o.chunk_no",
        quote_relation(relation),
        ledger.transactions_sql()
    );
    let rows = session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await.map_err(fail)?;
    session.client().batch_execute("COMMIT").await.map_err(fail)?;
    let mut stored = TableSums::default();
    for row in &rows {
        let sum = sum_of(row, 2);
        match (row.get::<_, Option<i32>>(0), row.get::<_, Option<i64>>(1)) {
            (Some(file_no), Some(chunk_no)) => {
                let (file_no, chunk_no) = (file_no.cast_unsigned(), chunk_no.cast_unsigned());
                stored.chunks.insert(ChunkId { file_no, chunk_no }, sum);
            }
            _ => stored.others = sum,
        }
    }
    Ok(stored)
}

/// How many rows of a table one transaction has stored that the job knows nothing of: of these, the one with
/// the most. ALTER TABLE that writes a table anew has stored all of its rows.
///
/// # Errors
/// Those of the session.
pub async fn most_of_one_other(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    relation: &Relation,
) -> Result<u64> {
    let sql = format!(
        "SELECT pg_catalog.count(*) FROM {} AS t LEFT JOIN ({}) AS o ON t.xmin = o.xid \
         WHERE o.xid IS NULL GROUP BY t.xmin ORDER BY 1 DESC LIMIT 1",
        quote_relation(relation),
        ledger.transactions_sql()
    );
    let rows = session.rows(&sql, &[(&job_id, Type::TEXT)], DOING).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

/// A count and a sum as text.
fn sum_of(row: &Row, first: usize) -> Sum {
    Sum {
        rows: row.get::<_, i64>(first).unsigned_abs(),
        // Far below 2^127: 2^64 for each of less than 2^63 rows.
        hashes: row.get::<_, &str>(first + 1).parse().unwrap_or_default(),
    }
}

/// The temporary table that chunks are read into.
fn read_into() -> Relation {
    Relation { schema: "pg_temp".to_owned(), name: "howdah_read".to_owned() }
}

/// Has the chunks of this plan read into a temporary table, each row by the COPY that stored it.
///
/// # Errors
/// Internal, for a plan whose statements are not those of its table.
pub fn aim(table: &mut TablePlan) -> Result<()> {
    let (from, to) = (table.copied_into().clone(), read_into());
    aim_copy(table, &from, &to)?;
    (table.policies, table.frozen) = (None, false);
    (table.number, table.route, table.toast_compression) = (None, None, None);
    table.staging = Some(StagingPlan { relation: to, place: None });
    Ok(())
}

/// A chunk that is read again, and what is stored of it.
#[derive(Debug, Clone, Copy)]
pub struct Again<'a> {
    /// Where it is read into: of a plan made by [`aim`].
    pub target: &'a ChunkTarget<'a>,
    /// The ledger that knows what has stored it.
    pub ledger: &'a Ledger,
    /// Where its rows are.
    pub stored_in: &'a Relation,
    /// What the table holds of it.
    pub stored: Sum,
    /// Its good records, where these are not all.
    pub good: Option<&'a [Bytes]>,
    /// Columns that differ are to be found, for which the table is scanned once more.
    pub explain: bool,
}

/// What a chunk held that was read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// What was read.
    pub read: Sum,
    /// Columns that differ, where these were asked for and the rows are as many.
    pub columns: Vec<String>,
}

/// Reads a chunk into the temporary table of a plan made by [`aim`], sums it up there, and leaves that table
/// behind, empty. Chunks that are summed up together may be one here.
///
/// # Errors
/// As [`commit::commit_chunk`].
pub async fn read_again(
    session: &mut Session,
    again: Again<'_>,
    chunk: &CopyChunk,
    progress: &CopyProgress,
) -> Result<Compared, ChunkError> {
    progress.enter(Phase::Claim);
    session.set_busy(true);
    let compared = match read_and_sum(session, again, chunk, progress).await {
        Ok(compared) => {
            session.set_busy(false);
            Ok(compared)
        }
        Err(Trouble::Server(error)) => Err(commit::after_failed_copy(session, again.target, &error).await),
        Err(Trouble::Ours(error)) => {
            commit::roll_back(session).await;
            Err(error.into())
        }
    };
    progress.enter(Phase::Idle);
    compared
}

/// Why a chunk could not be read again.
enum Trouble {
    Server(tokio_postgres::Error),
    Ours(Error),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        Trouble::Server(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Ours(error)
    }
}

async fn read_and_sum(
    session: &mut Session,
    again: Again<'_>,
    chunk: &CopyChunk,
    progress: &CopyProgress,
) -> Result<Compared, Trouble> {
    let target = again.target;
    let columns: Vec<String> = target.table.fields.iter().flatten().cloned().collect();
    let (to, make_sql) = (read_into(), make_sql(&target.table.table.relation, &columns));
    let make = match session.take_read_into() {
        Some(made_by) if made_by == make_sql => "",
        _ => &make_sql,
    };
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {EXACT_SQL}; SET LOCAL synchronous_commit TO off; {make}"
    );
    session.client().batch_execute(&begin).await?;
    let as_is = [chunk.bytes.clone()];
    let sent: Vec<Bytes> = match (again.good, &chunk.faster) {
        (Some(good), _) => good.to_vec(),
        (None, Some(faster)) => faster.parcels.iter().flat_map(|parcel| parcel.pieces.clone()).collect(),
        (None, None) => as_is.to_vec(),
    };
    let sql = match again.good {
        Some(_) => target.table.copy_sql.clone(),
        None => commit::copy_sql(target, chunk, None)?,
    };
    let binary = commit::binary(target, chunk).filter(|_| again.good.is_none());
    if !unchanged::lock_and_compare(session, &to, binary, &[]).await? {
        return Err(commit::changed().into());
    }
    progress.enter(Phase::Copy);
    let statement = session.prepare_copy(&sql).await?;
    let sink = match session.client().copy_in(&statement).await {
        Ok(sink) => sink,
        Err(error) => {
            // See `commit::begin_claim_and_start`.
            session.abandon();
            return Err(error.into());
        }
    };
    let mut told = stream::Sent {
        all_bytes: sent.iter().map(|bytes| bytes.len() as u64).sum(),
        plain_bytes: chunk.origin.end_byte - chunk.origin.start_byte,
        passed_bytes: 0,
        told: progress.bytes_cell(),
    };
    stream::send(sink, &sent, &mut told).await?;
    progress.enter(Phase::Claim);
    let read = sum(session.client(), &to, &columns).await?;
    let mut compared = Compared { read, columns: Vec::new() };
    if again.explain && read.rows == again.stored.rows && read.hashes != again.stored.hashes {
        compared.columns = differing(session.client(), again, &chunk.origin, &columns).await?;
    }
    session.client().batch_execute("COMMIT").await?;
    session.set_read_into(make_sql);
    Ok(compared)
}

/// Makes the temporary table anew. One for each table would have COMMIT empty all of them each time. WITH NO
/// DATA the table itself is not looked into: types, lengths and collations are taken from its definition.
fn make_sql(relation: &Relation, columns: &[String]) -> String {
    let to = read_into();
    format!(
        "DROP TABLE IF EXISTS {}; CREATE TEMPORARY TABLE {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} WITH NO DATA",
        quote_relation(&to),
        quote_ident(&to.name),
        quote_columns(columns),
        quote_relation(relation)
    )
}

async fn sum(client: &Client, of: &Relation, columns: &[String]) -> Result<Sum, tokio_postgres::Error> {
    let sql = format!(
        "SELECT pg_catalog.count(*), coalesce(pg_catalog.sum({}), 0)::pg_catalog.text FROM {} AS t",
        hash_sql(columns),
        quote_relation(of)
    );
    let rows = client.query_typed(&sql, &[]).await?;
    Ok(rows.first().map(|row| sum_of(row, 0)).unwrap_or_default())
}

/// The columns whose values of the chunk are not those that were read.
async fn differing(
    client: &Client,
    again: Again<'_>,
    origin: &Origin,
    columns: &[String],
) -> Result<Vec<String>, tokio_postgres::Error> {
    let one = |name: &String| {
        let hash = hash_sql(std::slice::from_ref(name));
        format!("pg_catalog.sum({hash})::pg_catalog.text")
    };
    let sums: Vec<String> = columns.iter().map(one).collect();
    let sums = format!("SELECT ARRAY[{}]", sums.join(", "));
    let read_sql = format!("{sums} FROM {} AS t", quote_relation(&read_into()));
    let stored_sql = format!(
        "{sums} FROM {} AS t JOIN ({}) AS o ON t.xmin = o.xid WHERE o.file_no = $2 AND o.chunk_no = $3",
        quote_relation(again.stored_in),
        again.ledger.transactions_sql()
    );
    let (file_no, chunk_no) = (origin.file_no.cast_signed(), origin.chunk_no.cast_signed());
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&again.target.job_id, Type::TEXT), (&file_no, Type::INT4), (&chunk_no, Type::INT8)];
    let of =
        |rows: Vec<Row>| -> Vec<Option<String>> { rows.first().map(|row| row.get(0)).unwrap_or_default() };
    let read = of(client.query_typed(&read_sql, &[]).await?);
    let stored = of(client.query_typed(&stored_sql, &parameters).await?);
    let differs = |no: &usize| read.get(*no) != stored.get(*no);
    Ok((0..columns.len()).filter(differs).map(|no| columns[no].clone()).collect())
}
