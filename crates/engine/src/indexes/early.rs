//! Builds indexes of tables whose rows are all in while those of others still come.
//!
//! A session that copies takes a build in place of its next chunk, so the server has no more of them at work
//! than before. Behind the last chunk nobody waits for a build: it goes on by itself, and whoever puts back
//! the rest finds its entry of the journal locked. What fails here is left to them, too. Its commits wait for
//! the disk: with an index, WAL holds all chunks of its table, so that a crash of the server cannot take rows
//! from under it.

use super::one::{Work, put_back_one};
use crate::pipeline::Run;
use crate::plan::plain_bytes_of;
use crate::settle::put_back_within_ms;
use crate::tally::FilesOfTable;
use crate::{Context, Stop};
use howdah_model::{ErrorKind, Mode, Plan, Relation, Result, Tune};
use howdah_target::ledger::{Undo, UndoKind};
use howdah_target::session::Session;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// A table is not waited for when less than so many chunks are left of others: what has all its rows then is
/// built with the rest.
const CHUNKS_LEFT_MIN: u64 = 4;

/// Indexes that need not wait for the last row of the load.
#[derive(Default)]
pub(crate) struct Early {
    /// None where rows do not come chunk by chunk, or to one table only.
    tables: BTreeMap<Relation, FilesOfTable>,
    entries: Mutex<Entries>,
    building: Arc<AtomicU32>,
    /// The last chunk has been taken.
    over: Stop,
}

#[derive(Default)]
struct Entries {
    read: bool,
    /// Those that wait, with the table that is loaded: of a partition the partitioned one. The largest of a
    /// table come first.
    waiting: Vec<(Relation, Undo)>,
    begun: Vec<Undo>,
}

/// Counts a build for as long as it takes.
struct Building(Arc<AtomicU32>);

impl Drop for Building {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Early {
    pub(crate) fn new(plan: &Plan) -> Early {
        let arrival = &plan.job.arrival;
        let comes_by_chunks = matches!(arrival.mode, Mode::Append | Mode::Truncate);
        let mut tables: BTreeMap<Relation, FilesOfTable> = BTreeMap::new();
        if comes_by_chunks && !arrival.is_staged() && !arrival.freeze && !arrival.check {
            for (file_no, file) in (0..).zip(&plan.files) {
                let relation = &plan.table(file.table_no).table.relation;
                tables.entry(relation.clone()).or_default().numbers.push(file_no);
            }
        }
        if tables.len() < 2 {
            tables.clear();
        }
        Early { tables, ..Early::default() }
    }

    /// Sessions that build.
    pub(crate) fn building(&self) -> u32 {
        self.building.load(Relaxed)
    }

    /// What was begun, whether it came to its end or not.
    pub(crate) fn begun(&self) -> Vec<Undo> {
        self.entries.lock().begun.clone()
    }

    /// The last chunk has been taken: nobody waits any more.
    pub(crate) fn end(&self) {
        self.over.raise();
    }

    /// There may be something to build, and time for it. A load that pauses leaves disks and replicas alone;
    /// a second reading of the files is for what a crash has taken.
    fn is_due(&self, run: &Run) -> bool {
        let wants = run.dropped.load(Relaxed) && run.comparison.is_none() && !run.tally.reads_again();
        if self.tables.is_empty() || !wants || self.over.raised() || run.gate.is_closed() {
            return false;
        }
        let has_none = {
            let entries = self.entries.lock();
            entries.read && entries.waiting.is_empty()
        };
        !has_none
            && self.tables.values().any(|files| files.are_complete(&run.tally))
            && run.halt.result().is_ok()
            && much_is_left(run)
    }

    /// An index of a table that has all its rows, if one waits and half of the sessions go on copying.
    fn take(&self, run: &Run) -> Option<(Undo, Building)> {
        let is_complete = |relation: &Relation| {
            self.tables.get(relation).is_none_or(|files| files.are_complete(&run.tally))
        };
        let mut entries = self.entries.lock();
        if (self.building() + 1) * 2 > run.tally.sessions.load(Relaxed) {
            return None;
        }
        // Rows may come to a partition by its own name as well.
        let is_ready = |(loaded, entry): &(Relation, Undo)| {
            self.tables.contains_key(loaded) && is_complete(loaded) && is_complete(&entry.change.relation)
        };
        let no = entries.waiting.iter().position(is_ready)?;
        let (_, entry) = entries.waiting.remove(no);
        entries.begun.push(entry.clone());
        self.building.fetch_add(1, Relaxed);
        Some((entry, Building(Arc::clone(&self.building))))
    }
}

/// The rest of the load takes long enough for a build to be worth a session.
fn much_is_left(run: &Run) -> bool {
    let files = run.plan.files.iter().zip(&run.tally.files);
    let left = files.filter(|(_, tally)| !tally.read_done.load(Relaxed)).map(|(file, tally)| {
        let stored_bytes = file.stored_bytes.unwrap_or(u64::MAX);
        plain_bytes_of(file, stored_bytes.saturating_sub(tally.bytes_read.load(Relaxed)))
    });
    left.fold(0, u64::saturating_add) >= CHUNKS_LEFT_MIN.saturating_mul(run.plan.chunk_bytes)
}

/// Builds an index on this session in place of the next chunk, if one waits whose table has all its rows.
/// False if there is none.
pub(crate) async fn build_next(run: &Run, session: &mut Option<Session>) -> bool {
    let early = &run.early;
    if !early.is_due(run) {
        return false;
    }
    let is_first = !std::mem::replace(&mut early.entries.lock().read, true);
    if is_first {
        // What cannot be read now is read behind the last row.
        let read = run.context.stop.guard(open_indexes(run, session)).await;
        early.entries.lock().waiting = read.unwrap_or_default();
    }
    let Some((entry, building)) = early.take(run) else { return false };
    let task = tokio::spawn(build(run, entry, building, session.take()));
    tokio::select! {
        built = task => *session = built.ok().flatten(),
        () = early.over.wait() => {}
        () = run.context.stop.wait() => {}
    }
    true
}

/// Entries of indexes with the tables that are loaded.
async fn open_indexes(run: &Run, session: &mut Option<Session>) -> Result<Vec<(Relation, Undo)>> {
    let Some(ledger) = &run.ledger else { return Ok(Vec::new()) };
    let connection = &run.context.connection;
    let asked = match session.take() {
        Some(session) if !session.is_closed() => session,
        _ => connection.open().await?,
    };
    let reading = async {
        let entries = ledger.own_undos(&asked, &run.plan.job_id);
        tokio::try_join!(entries, ledger.roots_of_undos(&asked, &run.plan.job_id))
    };
    let (entries, roots) = connection.attend(&asked, reading).await?;
    *session = Some(asked);
    let indexes = entries.believed.into_iter().filter(|entry| entry.change.kind == UndoKind::Index);
    let loaded = |entry: &Undo| roots.get(&entry.number).unwrap_or(&entry.change.relation).clone();
    Ok(indexes.map(|entry| (loaded(&entry), entry)).collect())
}

/// Builds it, whatever becomes of the load. Where the server's CPUs are known, those that others copy with
/// are left to them.
fn build(
    run: &Run,
    entry: Undo,
    building: Building,
    session: Option<Session>,
) -> impl Future<Output = Option<Session>> + Send + 'static {
    let context = Context { stop: Stop::default(), ..run.context.clone() };
    let (ledger, tuned) = (run.ledger.clone(), run.plan.tuning.level >= Tune::Session);
    let lock_within_ms = put_back_within_ms(&run.plan);
    let workers_max = context.connection.server_cpus().filter(|_| tuned).map(|_| 0);
    async move {
        let _building = building;
        let spare = Mutex::new(session.into_iter().collect());
        let work = Work {
            ledger: ledger.as_ref()?,
            retry_for: Duration::ZERO,
            brief: false,
            durable: true,
            pausing: None,
            lock_within_ms,
            spare,
        };
        match put_back_one(&context, &work, &entry, workers_max).await {
            // What may pass is nothing to worry about yet.
            Err(error) if error.kind() == ErrorKind::Table => {
                context.tell(format!("{}; it is tried once more behind the last row", error.message()));
            }
            Ok(_) | Err(_) => {}
        }
        work.spare.into_inner().pop()
    }
}
