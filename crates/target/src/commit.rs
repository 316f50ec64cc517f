//! One chunk into its table, once: begin -> claim -> copy -> commit, on one page.
//!
//! A [`CopyChunk`] enters, a [`Receipt`] leaves. Three round trips: BEGIN, claim and the start of COPY (and
//! for binary rows a look at the table's columns) go out together; the data and its end; COMMIT. Rows of a
//! partitioned table that were laid out by leaf take a COPY, and two more round trips, for each further leaf.
//! No data is sent before the claim is known to be ours. Chunks of small files may share all of this
//! ([`commit_together`]). Whatever fails, the session is left outside a transaction, or closed; retrying is
//! the caller's business.

use crate::copy::server_error::{copy_error, safe_message};
pub use crate::copy::silent::TRIGGERS_ENABLED;
use crate::copy::{freezing, into_leaf};
use crate::copy::{silent, stream, unchanged};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{BEGUN_SQL, Claim, Ledger};
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use bytes::Bytes;
use futures_util::future::join5;
use howdah_model::route::Leaf;
use howdah_model::{
    BinaryPlan, CopyChunk, Error, ErrorKind, Form, FormatKind, Origin, Receipt, RelationKind, TablePlan,
    TriggersWay, counted, sqlstate,
};
use std::collections::VecDeque;
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::Type;
use tokio_postgres::{CopyInSink, Statement};

/// Where chunks go.
#[derive(Debug, Clone, Copy)]
pub struct ChunkTarget<'a> {
    /// Where the claim is written; `None` writes none, and nothing keeps a chunk from being stored twice.
    pub ledger: Option<&'a Ledger>,
    /// The job, as the ledger knows it.
    pub job_id: &'a str,
    /// The table and its COPY statement.
    pub table: &'a TablePlan,
    /// COMMIT waits for the disk: for sources that cannot be read again after a server crash.
    pub synchronous: bool,
    /// The place of the chunk's first record, where the table is a staging table with places.
    pub first_place: Option<i64>,
    /// How triggers are kept from firing. By `session_replication_role`, the role must be allowed to set
    /// that; where they are to be disabled, a chunk is refused with [`TRIGGERS_ENABLED`] if they are not.
    pub triggers: TriggersWay,
    /// The session is in a transaction that has emptied the table and takes more chunks behind this one,
    /// whose rows are written frozen: see [`crate::freeze`].
    pub held: bool,
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in, by this call.
    Stored {
        /// What the ledger holds.
        receipt: Receipt,
        /// From BEGIN to the last row taken.
        copy_time: Duration,
        /// Waiting for COMMIT.
        commit_time: Duration,
    },
    /// The ledger had it: an earlier or simultaneous run of the job stored it. No data was sent.
    AlreadyStored,
}

/// Why a chunk is not in, and where in it the server stumbled.
#[derive(Debug, Clone)]
pub struct ChunkError {
    /// ConnectionLost: nothing was committed, for sure. CommitUnknown: COMMIT was sent and not answered; only
    /// the ledger knows. Server: see the SQLSTATE; its place names the column where known. Internal: the
    /// server counted other rows than were sent.
    pub error: Error,
    /// The line of what was sent, from 1, as COPY counts lines (newlines in quotes included).
    pub line: Option<u64>,
}

impl From<Error> for ChunkError {
    fn from(error: Error) -> ChunkError {
        ChunkError { error, line: None }
    }
}

/// What a session is at, readable from outside while [`commit_chunk`] runs, to notice a stall.
#[derive(Debug, Default)]
pub struct CopyProgress {
    /// Bytes of the chunk handed to the connection; the last few pieces may not have left yet.
    bytes: AtomicU64,
    phase: AtomicU8,
    /// Statements that were begun: of a chunk with bad records there may be thousands.
    steps: AtomicU64,
}

/// The steps of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is under way.
    Idle,
    /// Beginning and claiming; may rightly wait for another session's claim.
    Claim,
    /// Sending data.
    Copy,
    /// COMMIT is sent.
    Commit,
}

impl CopyProgress {
    /// Bytes of the present chunk that the connection has taken.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many statements were begun, where there are many of them.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// One was begun, or is put off on purpose.
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The present step.
    pub fn phase(&self) -> Phase {
        const PHASES: [Phase; 4] = [Phase::Idle, Phase::Claim, Phase::Copy, Phase::Commit];
        PHASES[usize::from(self.phase.load(Ordering::Relaxed)) % PHASES.len()]
    }

    pub(crate) fn bytes_cell(&self) -> &AtomicU64 {
        &self.bytes
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
}

/// Stores the chunk. If the future is dropped before it is done, the session counts as closed.
///
/// # Errors
/// See [`ChunkError`]. After Server errors the session can be used again unless it says that it is closed.
pub async fn commit_chunk(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    progress: &CopyProgress,
) -> Result<Outcome, ChunkError> {
    commit_together(session, target, chunk, slice::from_ref(&chunk.origin), progress).await
}

/// Stores several chunks, all or none, each with a claim of its own. `rows` has the rows of all of them as
/// one COPY takes them, and as many records and bytes as they have together.
///
/// [`Outcome::AlreadyStored`] says of several that the ledger has some of them, and that none was stored by
/// this call. Which record the server has refused is to be found by storing fewer of them.
///
/// # Errors
/// As [`commit_chunk`].
pub async fn commit_together(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    rows: &CopyChunk,
    origins: &[Origin],
    progress: &CopyProgress,
) -> Result<Outcome, ChunkError> {
    progress.bytes.store(0, Ordering::Relaxed);
    progress.enter(Phase::Claim);
    let result = run(session, target, rows, origins, progress).await;
    progress.enter(Phase::Idle);
    result
}

/// The page this module is about.
async fn run(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    origins: &[Origin],
    progress: &CopyProgress,
) -> Result<Outcome, ChunkError> {
    let started = Instant::now();
    let Opening { claimed, unchanged, silenced, sink, copies } =
        begin_claim_and_start(session, target, chunk, origins).await?;
    if !claimed || !unchanged || !silenced {
        drop(sink);
        roll_back(session).await;
        return match (claimed, unchanged) {
            (false, _) => {
                expect_same(session, target, chunk).await?;
                Ok(Outcome::AlreadyStored)
            }
            (true, false) => Err(changed().into()),
            (true, true) => Err(silent::refusal(target.triggers, target.table.stored_in()).into()),
        };
    }
    progress.enter(Phase::Copy);
    let rows = match copy_all(session, target, chunk, sink, copies, progress).await {
        Ok(rows) => rows,
        Err(error) => return Err(after_failed_copy(session, target, &error).await),
    };
    let rows = match bring_in(session, target, rows).await {
        Ok(rows) => rows,
        Err(error) => return Err(after_failed_copy(session, target, &error).await),
    };
    if rows != chunk.origin.records {
        roll_back(session).await;
        return Err(wrong_count(rows, chunk.origin.records).into());
    }
    let stored_in = target.table.stored_in();
    let checked = silent::checked(session.client(), target.triggers, stored_in).await;
    let checked = checked.map_err(|error| session_error(&error, "looking for what was not checked"));
    if !matches!(checked, Ok(true)) {
        roll_back(session).await;
        return Err(checked.err().unwrap_or_else(|| silent::refusal(target.triggers, stored_in)).into());
    }
    if let Some(error) = &chunk.refused {
        roll_back(session).await;
        return Err(error.clone().into());
    }
    let copied = Instant::now();
    if !target.held {
        progress.enter(Phase::Commit);
        commit(session).await?;
    }
    let origin = &chunk.origin;
    let receipt = Receipt {
        file_no: origin.file_no,
        chunk_no: origin.chunk_no,
        start_byte: origin.start_byte,
        end_byte: origin.end_byte,
        rows,
        omitted: origin.omitted,
        digest: origin.digest,
    };
    Ok(Outcome::Stored { receipt, copy_time: copied - started, commit_time: copied.elapsed() })
}

/// A transaction that waits for data.
struct Opening {
    /// Nobody else has stored any of the chunks.
    claimed: bool,
    /// The table is what the chunk was written for.
    unchanged: bool,
    /// No triggers fire that are not to.
    silenced: bool,
    sink: CopyInSink<Bytes>,
    /// The COPY statements behind the first.
    copies: VecDeque<Statement>,
}

/// One flight: all statements are handed to the connection before any answer is awaited, because
/// `join5` polls its futures in order and each sends at its first poll. (What is prepared once a session
/// costs its first chunk one more round trip.)
async fn begin_claim_and_start(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    origins: &[Origin],
) -> Result<Opening, ChunkError> {
    let claim = target.ledger.map(|ledger| ledger.claim(target.job_id, origins)).transpose()?;
    let mut copies = prepare(session, target, chunk, claim.as_ref()).await?;
    let first = copies.pop_front().ok_or_else(unexplained)?;
    session.set_busy(true);
    let client = session.client();
    let claiming = async {
        match &claim {
            Some(claim) => session.execute(&claim.sql, &claim.parameters()).await,
            None => Ok(origins.len() as u64),
        }
    };
    let leaves: Vec<&Leaf> = parcels(target, chunk).filter_map(|(leaf, _)| leaf).collect();
    let relation = target.table.copied_into();
    let comparing = unchanged::lock_and_compare(session, relation, binary(target, chunk), &leaves);
    // Behind the claim, whose table may have triggers of its own.
    let silencing = silent::begin(client, target.triggers, target.table.stored_in());
    let begin = begin_sql(target, chunk, true);
    let beginning = async { if target.held { Ok(()) } else { client.batch_execute(&begin).await } };
    match join5(beginning, claiming, silencing, comparing, client.copy_in(&first)).await {
        (Ok(()), Ok(claimed), Ok(silenced), Ok(unchanged), Ok(sink)) => {
            Ok(Opening { claimed: claimed == origins.len() as u64, unchanged, silenced, sink, copies })
        }
        (begun, claimed, silenced, compared, sink) => {
            // tokio-postgres 0.7 ends a COPY that never began with a second Sync, and takes its answer for
            // that of the next request. Such a session cannot be used any more.
            session.abandon();
            // What is wrong with the ledger is not about the file whose chunk meets it.
            if let (Ok(()), Err(error), Some(ledger)) = (&begun, &claimed, target.ledger)
                && error.as_db_error().is_some()
            {
                return Err(ledger.error(error, "claiming a chunk").into());
            }
            let first = begun.err().or(claimed.err()).or(silenced.err()).or(compared.err()).or(sink.err());
            Err(first.map_or_else(|| unexplained().into(), |error| copy_failure(&error, target)))
        }
    }
}

/// Prepares what each chunk runs: of a small chunk, parsing and planning the claim and the comparison would
/// take the server longer than its rows. Gives the COPY statements.
async fn prepare(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    claim: Option<&Claim<'_>>,
) -> Result<VecDeque<Statement>, ChunkError> {
    let sql = parcels(target, chunk).map(|(leaf, _)| copy_sql(target, chunk, leaf));
    let sql: Vec<String> = sql.collect::<Result<_, Error>>()?;
    let comparison = binary(target, chunk).map(|_| unchanged::comparison());
    let mut ahead: Vec<(&str, Vec<Type>)> = sql.iter().map(|sql| (sql.as_str(), Vec::new())).collect();
    // What failed here in a transaction that is under way would end it, before the statement can tell why.
    if !target.held {
        ahead.extend(claim.map(|claim| (claim.sql.as_str(), claim.types())));
        ahead.extend(comparison.as_ref().map(|(sql, types)| (sql.as_str(), types.clone())));
    }
    session.prepare_ahead(&ahead).await;
    let mut copies = VecDeque::with_capacity(sql.len());
    for sql in &sql {
        copies.push_back(session.prepare_copy(sql).await?);
    }
    Ok(copies)
}

/// What is in already was stored from the same bytes, as far as the ledger knows: two runs of a job may read
/// two pipes at once.
pub(crate) async fn expect_same(
    session: &Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
) -> Result<(), ChunkError> {
    match target.ledger {
        Some(ledger) => Ok(ledger.expect_same(session, target.job_id, &chunk.origin).await?),
        None => Ok(()),
    }
}

/// Sends the rows of the chunk, one COPY for each leaf that takes some; how many rows the server took.
async fn copy_all(
    session: &Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    first: CopyInSink<Bytes>,
    copies: VecDeque<Statement>,
    progress: &CopyProgress,
) -> Result<u64, tokio_postgres::Error> {
    let mut sent = stream::Sent {
        all_bytes: parcels(target, chunk)
            .flat_map(|(_, pieces)| pieces)
            .map(|bytes| bytes.len() as u64)
            .sum(),
        plain_bytes: chunk.origin.end_byte - chunk.origin.start_byte,
        passed_bytes: 0,
        told: &progress.bytes,
    };
    let mut pieces = parcels(target, chunk).map(|(_, pieces)| pieces);
    let mut rows = stream::send(first, pieces.next().unwrap_or_default(), &mut sent).await?;
    for (copy, pieces) in copies.iter().zip(pieces) {
        let sink = session.client().copy_in(copy).await?;
        rows += stream::send(sink, pieces, &mut sent).await?;
    }
    Ok(rows)
}

/// Rows that were copied into a temporary table come into theirs; how many came. Others are there already.
pub(crate) async fn bring_in(
    session: &Session,
    target: &ChunkTarget<'_>,
    copied: u64,
) -> Result<u64, tokio_postgres::Error> {
    match &target.table.policies {
        None => Ok(copied),
        Some(policies) => session.client().execute_typed(&policies.insert_sql, &[]).await,
    }
}

/// The rows as they are sent: where each part of them goes, and its bytes.
fn parcels<'a>(
    target: &ChunkTarget<'a>,
    chunk: &'a CopyChunk,
) -> impl Iterator<Item = (Option<&'a Leaf>, &'a [Bytes])> + use<'a> {
    let table = target.table;
    let as_is = chunk.faster.is_none().then(|| (None, slice::from_ref(&chunk.bytes)));
    let faster = chunk.faster.iter().flat_map(|faster| &faster.parcels).map(move |parcel| {
        let leaf =
            parcel.leaf_no.zip(table.route.as_ref()).and_then(|(no, route)| route.leaves.get(no as usize));
        (leaf, parcel.pieces.as_slice())
    });
    as_is.into_iter().chain(faster)
}

/// The statement that takes the rows of the chunk that go to this leaf, or to the table itself.
pub(crate) fn copy_sql(
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    leaf: Option<&Leaf>,
) -> Result<String, Error> {
    let TablePlan { table, copy_sql, text_sql, binary, number, .. } = target.table;
    let is_numbered = chunk.faster.as_ref().is_some_and(|faster| faster.numbered);
    let sql = match (chunk.faster.as_ref().map_or(Form::AsIs, |faster| faster.form), number) {
        (Form::AsIs, Some(number)) if is_numbered => Some(&number.copy_sql),
        (Form::Text, Some(number)) if is_numbered => number.text_sql.as_ref(),
        (Form::Binary, Some(number)) if is_numbered => number.binary_sql.as_ref(),
        (Form::AsIs, _) => Some(copy_sql),
        (Form::Text, _) => text_sql.as_ref(),
        (Form::Binary, _) => binary.as_ref().map(|binary| &binary.copy_sql),
    };
    let of_leaf = |sql: &String| match leaf {
        Some(leaf) => into_leaf(sql, &table.relation, &leaf.relation),
        None => Some(sql.clone()),
    };
    // Rows that the server routes to their partitions cannot be frozen.
    let is_frozen = target.held && (leaf.is_some() || table.kind != RelationKind::Partitioned);
    let in_form = |sql: String| if is_frozen { freezing(&sql) } else { Some(sql) };
    sql.and_then(of_leaf).and_then(in_form).ok_or_else(|| {
        Error::new(ErrorKind::Internal, "rows were written in a form that the plan has no statement for")
    })
}

/// What the rows were written for, if they are binary.
pub(crate) fn binary<'a>(target: &ChunkTarget<'a>, chunk: &CopyChunk) -> Option<&'a BinaryPlan> {
    let is_binary = chunk.faster.as_ref().is_some_and(|faster| faster.form == Form::Binary);
    target.table.binary.as_ref().filter(|_| is_binary)
}

/// READ COMMITTED, because the claim must see what a session it waited for has committed. `counts`: rows come
/// in the order of the file without gaps, so that a sequence can give them their places.
pub(crate) fn begin_sql(target: &ChunkTarget<'_>, chunk: &CopyChunk, counts: bool) -> String {
    // Until COMMIT no other session draws from the sequence: its lock keeps them waiting.
    let is_numbered = chunk.faster.as_ref().is_some_and(|faster| faster.numbered);
    let place = target.table.staging.as_ref().and_then(|staging| staging.place.as_ref());
    let places = place.zip(target.first_place).filter(|_| counts && !is_numbered).map(|(place, first)| {
        format!("; ALTER SEQUENCE {} RESTART WITH {first}", quote_relation(&place.sequence))
    });
    let temporary = target.table.policies.as_ref().map(|policies| format!("; {}", policies.make_sql));
    format!("{}{}{}", settings_sql(target), places.unwrap_or_default(), temporary.unwrap_or_default())
}

/// Begins the transaction, with the settings that hold for any of its chunks.
pub(crate) fn settings_sql(target: &ChunkTarget<'_>) -> String {
    let durability = if target.synchronous { DURABLE_SQL } else { "SET LOCAL synchronous_commit TO off" };
    let toast = target
        .table
        .toast_compression
        .as_deref()
        .map(|method| format!("; SET LOCAL default_toast_compression TO {}", quote_literal(method)));
    format!("BEGIN ISOLATION LEVEL READ COMMITTED; {BEGUN_SQL}; {durability}{}", toast.unwrap_or_default())
}

pub(crate) async fn commit(session: &mut Session) -> Result<(), Error> {
    let Err(error) = session.client().batch_execute("COMMIT").await else {
        session.set_busy(false);
        return Ok(());
    };
    // An ERROR at COMMIT (a deferred constraint) is an answer: nothing was committed.
    // FATAL and PANIC are not: the server may have committed before it ended the session.
    let is_answer =
        |db: &&DbError| db.parsed_severity() == Some(Severity::Error) && !leaves_open(db.code().code());
    if let Some(db) = error.as_db_error().filter(is_answer) {
        // A COMMIT that was cancelled before it began leaves the failed transaction open.
        roll_back(session).await;
        // A deferred trigger may say anything about the rows it sees.
        let message = format!("the server says: {}", safe_message(db, std::iter::empty()));
        return Err(server_error(db, &message));
    }
    session.abandon();
    let cause = session_error(&error, "waiting for COMMIT");
    Err(Error::new(ErrorKind::CommitUnknown, format!("the answer to COMMIT was lost: {}", cause.message())))
}

/// `connection_exception` and its kin, `statement_completion_unknown`: whoever stands between has lost the
/// server behind COMMIT.
fn leaves_open(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate == sqlstate::STATEMENT_COMPLETION_UNKNOWN
}

/// Ends the transaction; a session that cannot even do that is closed.
pub(crate) async fn roll_back(session: &mut Session) {
    match session.client().batch_execute("ROLLBACK").await {
        Ok(()) => session.set_busy(false),
        Err(_) => session.abandon(),
    }
}

pub(crate) async fn after_failed_copy(
    session: &mut Session,
    target: &ChunkTarget<'_>,
    error: &tokio_postgres::Error,
) -> ChunkError {
    match error.as_db_error() {
        Some(_) => roll_back(session).await,
        None => session.abandon(),
    }
    copy_failure(error, target)
}

pub(crate) fn copy_failure(error: &tokio_postgres::Error, target: &ChunkTarget<'_>) -> ChunkError {
    let Some(db) = error.as_db_error() else { return session_error(error, "copying").into() };
    let columns: Vec<String> = target.table.fields.iter().flatten().cloned().collect();
    let table = target.table;
    let found = copy_error(db, table.copied_into(), &table.table.relation, &columns);
    let empty_in =
        found.error.place().column.clone().filter(|_| found.is_of_empty && quotes_empty_values(table));
    let error = match empty_in.map(|column| empty_hint(table, &column)) {
        Some(hint) => found.error.with_hint(hint),
        None => found.error,
    };
    ChunkError { error, line: found.line }
}

/// What makes NULL of an empty string that the column's type has not.
fn empty_hint(table: &TablePlan, column: &str) -> String {
    if table.format.force_not_null.names(column) {
        return format!(
            "--force-not-null makes an empty string of an empty field, and the type of {column} has none: leave that column out of it, \
             and the field is NULL"
        );
    }
    format!(
        "a quoted empty field is an empty string, and no NULL: with --force-null {column}, or '*' for all columns, it is NULL \
         (the files are then read as COPY would: give --header and what else differs from COPY's csv)"
    )
}

/// Only a quoted field is an empty string: without quotes it is NULL.
fn quotes_empty_values(table: &TablePlan) -> bool {
    match &table.dialect {
        Some(dialect) => dialect.quote.is_some() && dialect.nulls.iter().any(String::is_empty),
        None => table.format.kind == FormatKind::Csv && table.format.null.is_empty(),
    }
}

pub(crate) fn wrong_count(rows: u64, records: u64) -> Error {
    let (rows, records) = (counted(rows, "row"), counted(records, "record"));
    let message = format!("the server counted {rows} in a chunk of {records}; rolled back");
    Error::new(ErrorKind::Internal, message).with_hint(
        "a BEFORE INSERT trigger that returns NULL drops rows; load without it, or into another table",
    )
}

/// The caller sends the chunk in a form that means the same to any type.
pub(crate) fn changed() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the table's columns or partitions are not those that the rows were written for",
    )
}

fn unexplained() -> Error {
    Error::new(ErrorKind::Internal, "the chunk's transaction did not begin, and nothing says why")
}
