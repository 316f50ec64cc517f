//! Tables whose rows come frozen: each in one transaction of one session, chunk behind chunk.
//!
//! All rows of such a table are in, or none. When its transaction is lost, the ledger lacks its chunks like
//! those that a crash of the server took, and they are loaded again behind the rest ([`crate::finish`]);
//! where a pipe has brought them, the load ends.

use crate::again::Way;
use crate::attend::Asking;
use crate::begin;
use crate::feed::{unless, wait_to_retry};
use crate::locate::locate;
use crate::pipeline::{Run, unwanted};
use crate::retry::{Directive, Patience, directive, is_about_no_form};
use crate::scarce::{Scarce, broken_off};
use crate::sessions::{before_next_try, until_given_up};
use crate::tally::FilesOfTable;
use crate::watch::Slot;
use howdah_model::{CopyChunk, Error, Mode, Plan, Relation, Result, Stage, sqlstate};
use howdah_target::commit::{ChunkError, ChunkTarget, Outcome, commit_chunk};
use howdah_target::session::Session;
use howdah_target::{freeze, truncate};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use tokio::sync::Mutex;

/// The frozen tables of one run.
#[derive(Default)]
pub(crate) struct Frozen(BTreeMap<Relation, Table>);

/// One of them.
#[derive(Default)]
pub(crate) struct Table {
    files: FilesOfTable,
    held: Mutex<Held>,
    /// What was stored of it is there for everybody.
    settled: AtomicBool,
    /// The server has refused a chunk in the form that costs it less, and takes it as it is.
    plainly: AtomicBool,
}

/// Where its transaction is.
#[derive(Default)]
enum Held {
    /// It has not begun.
    #[default]
    Idle,
    /// It takes chunks.
    Open(Box<Session>),
    /// It is gone, and all chunks with it.
    Lost,
    /// It is committed.
    Done,
    /// There is none: rows are in the table already, and more come as into any other.
    Ordinary,
}

/// What became of a chunk.
pub(crate) enum Taken {
    /// Its rows are in the transaction.
    Held(Outcome),
    /// It is to be loaded again, like all of its table.
    Lost,
    /// It goes the way of any other.
    Not,
}

impl Frozen {
    pub(crate) fn new(plan: &Plan) -> Frozen {
        let frozen = plan.tables.iter().filter(|table| table.frozen);
        let mut tables: BTreeMap<Relation, Table> =
            frozen.map(|table| (table.table.relation.clone(), Table::default())).collect();
        for file_no in (0..plan.files.len()).filter_map(|no| u32::try_from(no).ok()) {
            if let Some(table) = tables.get_mut(relation(plan, file_no)) {
                table.files.numbers.push(file_no);
            }
        }
        Frozen(tables)
    }

    /// So many sessions find work at once.
    pub(crate) fn sessions_max(&self, plan: &Plan) -> u32 {
        let all = !self.0.is_empty() && plan.tables.iter().all(|table| table.frozen);
        if all { u32::try_from(self.0.len()).unwrap_or(u32::MAX) } else { u32::MAX }
    }

    /// The table that this file goes to, if its rows come frozen.
    pub(crate) fn of(&self, plan: &Plan, file_no: u32) -> Option<&Table> {
        self.0.get(relation(plan, file_no))
    }

    /// What is lost may come again.
    pub(crate) async fn restart(&self, run: &Run) {
        for table in self.0.values() {
            let mut held = table.held.lock().await;
            if matches!(*held, Held::Lost) {
                table.forget(run);
            }
            if !matches!(*held, Held::Ordinary) {
                *held = Held::Idle;
            }
            table.files.restart();
        }
    }
}

impl Table {
    /// Its rows are not there yet, whatever was stored of it.
    pub(crate) fn is_pending(&self) -> bool {
        !self.settled.load(Relaxed)
    }

    /// All that is stored of it is there.
    fn settle(&self, run: &Run) {
        self.settled.store(true, Relaxed);
        self.files.numbers.iter().for_each(|file_no| run.tell_if_done(*file_no));
    }

    /// Nothing of it comes out of a pipe.
    fn comes_again(&self, run: &Run) -> bool {
        self.files.numbers.iter().all(|file_no| run.plan.file(*file_no).rereadable)
    }

    /// What was stored of it in this run is not there.
    fn forget(&self, run: &Run) {
        self.files.numbers.iter().for_each(|file_no| run.lost(*file_no));
    }
}

fn relation(plan: &Plan, file_no: u32) -> &Relation {
    &plan.table_of(file_no).table.relation
}

/// Puts the chunk into the transaction of its table, which this begins.
///
/// # Errors
/// What the server has against the chunk, with its place; what keeps the transaction from beginning, for
/// good.
pub(crate) async fn store(
    run: &Run,
    table: &Table,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    slot: &Slot,
    patience: &mut Patience,
) -> Result<Taken> {
    let plain = (table.plainly.load(Relaxed) && chunk.faster.is_some()).then(|| plain(chunk));
    let chunk = plain.as_ref().unwrap_or(chunk);
    let origin = &chunk.origin;
    let beginning = async {
        let mut held = table.held.lock().await;
        while matches!(*held, Held::Idle) {
            match begin(run, target).await {
                Ok(begun) => *held = begun,
                Err(error) => wait_to_retry(run, patience, error).await?,
            }
        }
        Ok(held)
    };
    let is_unwanted = run.halt.until_unwanted(origin.file_no, origin.chunk_no);
    let mut held = unless(is_unwanted, beginning).await?;
    let session = match &mut *held {
        Held::Open(session) => session,
        Held::Lost => return Ok(Taken::Lost),
        Held::Idle | Held::Done | Held::Ordinary => {
            table.settled.store(true, Relaxed);
            return Ok(Taken::Not);
        }
    };
    slot.begin(session.backend());
    let mut asking = Asking::new(&run.context.connection, session.backend());
    let stored = tokio::select! {
        stored = commit_chunk(session, target, chunk, &slot.progress) => stored,
        () = slot.stalled.notified() => Err(slot.stall_error().into()),
        scarce = run.context.connection.until_broken_off(|| false) => Err(no_room(target, &scarce).into()),
        () = until_given_up(run, origin) => {
            // The session is amidst a statement.
            *held = Held::Lost;
            table.forget(run);
            return Err(unwanted());
        }
    };
    asking.answered();
    slot.end();
    let failed = match stored {
        Ok(outcome @ Outcome::Stored { .. }) => return Ok(Taken::Held(outcome)),
        // Another run of the job has it: the ledger is read again.
        Ok(Outcome::AlreadyStored) => None,
        Err(failed) => Some(failed),
    };
    if session.is_closed() {
        run.context.connection.lose(session.backend());
    }
    *held = Held::Lost;
    table.forget(run);
    lost(run, table, target, chunk, failed, patience).await
}

/// What becomes of a table whose transaction is gone. `None`: another run of the job has stored the chunk.
async fn lost(
    run: &Run,
    table: &Table,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    failed: Option<ChunkError>,
    patience: &mut Patience,
) -> Result<Taken> {
    match failed {
        // Asked once more, it would write as much.
        Some(failed) if failed.error.sqlstate() == Some(sqlstate::DISK_FULL) => Err(failed.error),
        Some(failed) if directive(&failed.error) == Directive::GiveUp => {
            match explain(run, table, target, chunk, failed).await {
                Some(error) => Err(error),
                None => {
                    table.plainly.store(true, Relaxed);
                    tell_lost(run, &target.table.table.relation);
                    Ok(Taken::Lost)
                }
            }
        }
        Some(failed) if !table.comes_again(run) => {
            Err(locate(run, chunk, failed).await.with_hint(once_hint(run)))
        }
        failed => {
            tell_lost(run, &target.table.table.relation);
            if let Some(ChunkError { error, .. }) = failed {
                before_next_try(run, &chunk.origin, patience, error).await?;
            }
            Ok(Taken::Lost)
        }
    }
}

async fn begin(run: &Run, target: &ChunkTarget<'_>) -> Result<Held> {
    let connection = &run.context.connection;
    let mut session = connection.open().await?;
    connection.attend(&session, Box::pin(begin::expect_held(run, &session))).await?;
    let backend = session.backend();
    let arrival = &run.plan.job.arrival;
    let empties = arrival.mode == Mode::Truncate;
    let beginning = freeze::begin(&mut session, target, empties, arrival.lock_timeout_ms);
    match connection.answer(backend, beginning).await {
        Ok(true) => return Ok(Held::Open(Box::new(session))),
        Ok(false) => connection.keep(session),
        Err(error) => {
            if session.is_closed() {
                connection.lose(backend);
            }
            return Err(error);
        }
    }
    let relation = &target.table.table.relation;
    let message = format!("rows are in {relation} already, and what comes now is not frozen");
    run.tell(message);
    Ok(Held::Ordinary)
}

/// What the server has against a chunk in the words and lines of its file: it is asked once more in a
/// transaction that is rolled back. `None` where it has nothing against it so, and all rows may come again.
async fn explain(
    run: &Run,
    table: &Table,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    failed: ChunkError,
) -> Option<Error> {
    if chunk.faster.is_none() || is_about_no_form(&failed.error) {
        return Some(locate(run, chunk, failed).await);
    }
    let plain = plain(chunk);
    let asking = async {
        let Ok(Held::Open(mut session)) = begin(run, target).await else { return None };
        Some(commit_chunk(&mut session, target, &plain, &Default::default()).await)
    };
    let again = match asking.await {
        Some(Ok(Outcome::Stored { .. })) => {
            if table.comes_again(run) && !is_about_others(chunk, &failed.error) {
                return None;
            }
            return Some(locate(run, chunk, failed).await);
        }
        // An error that may pass says nothing of the chunk.
        Some(Err(again)) if directive(&again.error) == Directive::GiveUp => Some(again),
        Some(_) | None => None,
    };
    Some(locate(run, &plain, again.unwrap_or(failed)).await)
}

/// The rows are refused for others that came before them, whatever form they have: keys, and what triggers
/// look for. That a leaf does not take a row may come from the leaf that the client has chosen.
fn is_about_others(chunk: &CopyChunk, error: &Error) -> bool {
    let by_leaf =
        chunk.faster.iter().flat_map(|faster| &faster.parcels).any(|parcel| parcel.leaf_no.is_some());
    match error.sqlstate() {
        // Of partitions too.
        Some(sqlstate::CHECK_VIOLATION) => !by_leaf,
        Some(sqlstate) => sqlstate::is_integrity_violation(sqlstate) || sqlstate == sqlstate::RAISE_EXCEPTION,
        None => false,
    }
}

fn plain(chunk: &CopyChunk) -> CopyChunk {
    CopyChunk { faster: None, ..chunk.clone() }
}

fn no_room(target: &ChunkTarget<'_>, scarce: &Scarce) -> Error {
    let relation = &target.table.table.relation;
    broken_off(format!("the transaction with all rows of {relation} (--freeze) was broken off: {scarce}"))
}

/// What to do where the rows of a lost transaction do not come again.
fn once_hint(run: &Run) -> String {
    let told = Way::of(&run.plan).told().unwrap_or_default();
    format!("--freeze keeps all rows of a table in one transaction, and a pipe cannot be read again: {told}")
}

fn tell_lost(run: &Run, relation: &Relation) {
    let message =
        format!("the transaction with the rows of {relation} is lost: they are loaded again behind the rest");
    run.tell(message);
}

/// Commits the table of this file if all its chunks are in.
///
/// # Errors
/// Those of COMMIT that will not pass.
pub(crate) async fn commit_if_complete(run: &Run, file_no: u32) -> Result<()> {
    let Some(table) = run.frozen.of(&run.plan, file_no) else { return Ok(()) };
    // Whoever has it will see to it.
    let Ok(mut held) = table.held.try_lock() else { return Ok(()) };
    let Held::Open(session) = &mut *held else { return Ok(()) };
    if !table.files.are_complete(&run.tally) {
        return Ok(());
    }
    let (connection, backend, began) = (&run.context.connection, session.backend(), Instant::now());
    let ending = freeze::end(session, run.ledger.as_ref(), &run.plan.job_id, relation(&run.plan, file_no));
    let committed = connection.answer(backend, ending).await;
    run.tally.spend(Stage::Commit, began.elapsed());
    if committed.is_err() && session.is_closed() {
        connection.lose(backend);
    }
    match (std::mem::replace(&mut *held, Held::Lost), committed) {
        (Held::Open(session), Ok(())) => {
            connection.keep(*session);
            *held = Held::Done;
            table.settle(run);
            Ok(())
        }
        (_, Err(error)) if directive(&error) == Directive::GiveUp => {
            table.forget(run);
            Err(error)
        }
        // If it was not committed, the ledger lacks its chunks.
        (_, _) => {
            let relation = relation(&run.plan, file_no);
            let message = format!(
                "the answer to the COMMIT of {relation} is lost: the ledger tells whether its rows are in"
            );
            run.tell(message);
            Ok(())
        }
    }
}

/// The same for all tables.
///
/// # Errors
/// Those of the first that cannot be committed.
pub(crate) async fn commit_complete(run: &Run) -> Result<()> {
    for file_no in run.frozen.0.values().filter_map(|table| table.files.numbers.first()) {
        commit_if_complete(run, *file_no).await?;
    }
    Ok(())
}

/// Rolls back what is not complete, because the run ends.
pub(crate) async fn roll_back(run: &Run) {
    for table in run.frozen.0.values() {
        let mut held = table.held.lock().await;
        if matches!(*held, Held::Open(_)) {
            // The session ends with it, and the transaction with the session.
            *held = Held::Lost;
            table.forget(run);
        }
    }
}

/// Behind the last row: tables for which there was none are emptied as well.
///
/// # Errors
/// Those of the session and of TRUNCATE.
pub(crate) async fn finish(run: &Run) -> Result<()> {
    let arrival = &run.plan.job.arrival;
    for (relation, table) in &run.frozen.0 {
        let planned = run.plan.tables.iter().find(|planned| planned.table.relation == *relation);
        if let (Some(ledger), Some(planned), Mode::Truncate) = (&run.ledger, planned, arrival.mode) {
            let empty = async |session: &Session| {
                let (job_id, lock_timeout_ms) = (&run.plan.job_id, arrival.lock_timeout_ms);
                // Its chunks stand and fall with the transaction that empties it.
                truncate::empty(session, ledger, job_id, &planned.table, lock_timeout_ms, &[]).await
            };
            crate::arrival::on_session(run, empty).await?;
        }
        table.settle(run);
    }
    Ok(())
}
