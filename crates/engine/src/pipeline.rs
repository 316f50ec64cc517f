//! The flow of the main job, top to bottom, on one screen.
//!
//! ```text
//! source -> decompress -> split -> encode  |  queue  |  copy + ledger in one transaction
//!          threads (feed/)                            sessions (sessions.rs)
//! ```
//!
//! Feeders are threads: they burn CPU. Sessions are tasks: they wait for PostgreSQL. Between them stands
//! one short queue; what bounds memory is the pool of chunk buffers, see [`crate::budget`].

use crate::budget::{Budget, Layout};
use crate::feed::{self, Opened};
use crate::first_records::FirstRecords;
use crate::frozen::{Frozen, Table};
use crate::gate::Gate;
use crate::indexes::early::Early;
use crate::numbers::NumberSource;
use crate::partitioner::Partitioner;
use crate::probes::Probes;
use crate::taken::Files;
use crate::tally::Tally;
use crate::verify::Comparison;
use crate::watch::Slots;
use crate::widen::{Open, Widener};
use crate::{Context, sessions};
use howdah_model::{
    ChunkId, Codec, Error, ErrorKind, Event, FilePlan, Listener, Plan, Receipt, Relation, RelationKind,
    Result, TablePlan, TriggersChoice, TriggersWay,
};
use howdah_target::ledger::Ledger;
use howdah_target::session::{Backend, Session};
use howdah_target::upkeep::Checkpoints;
use howdah_target::{activity, guards};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Receipts of one file by chunk number.
pub(crate) type Receipts = BTreeMap<u64, Receipt>;

/// Everything the parts of one run share.
pub(crate) struct Run {
    /// Sources, connection, listener, stop flag.
    pub context: Context,
    /// What is to be done.
    pub plan: Plan,
    /// Memory.
    pub budget: Budget,
    /// How the memory was cut up.
    pub layout: Layout,
    /// Where progress is remembered.
    pub ledger: Option<Ledger>,
    /// What is in already, by file number.
    receipts: RwLock<HashMap<u32, Receipts>>,
    /// Counters.
    pub tally: Arc<Tally>,
    /// The sessions that copy.
    pub slots: Slots,
    /// Columns that may have to become wider.
    pub widener: Widener,
    /// Where numbers for rows come from.
    pub numbers: NumberSource,
    /// Partitions that are made for rows that have none.
    pub partitioner: Partitioner,
    /// This run, or an earlier one of the job, has dropped something that is to be put back.
    pub dropped: AtomicBool,
    /// The journal has had entries of it, so that the end of the job asks whether all is back.
    pub puts_back: AtomicBool,
    /// Steps that are done of those that bring in what has waited, by whichever run of the job.
    pub steps: AtomicU64,
    /// This run, or an earlier one of the job, has tuned something that is to be put back.
    pub tuned: AtomicBool,
    /// What keeps loads of other ledgers from tuning the server, which this one has tuned.
    pub tuner: Mutex<Option<Session>>,
    /// The timeline of the server that this run began on.
    pub timeline: OnceLock<String>,
    /// Those of the server when this run began.
    pub checkpoints: OnceLock<Checkpoints>,
    /// The process of the session that this run began with.
    pub first: OnceLock<Backend>,
    /// Tables whose rows fire no triggers, by the role of the sessions.
    pub silent: Mutex<BTreeSet<Relation>>,
    /// Tables whose statistics were renewed because of indexes that are back.
    pub(crate) analyzed: Mutex<BTreeSet<Relation>>,
    /// The tables' constraints.
    pub(crate) probes: Probes,
    /// What the table has refused from the first record on.
    pub(crate) first_records: FirstRecords,
    /// Chunks are compared with what is stored of them, and not stored.
    pub(crate) comparison: Option<Comparison>,
    /// The job has finished: its sources must bring what it has stored, and nothing else.
    pub(crate) is_over: bool,
    /// Tables whose rows come in one transaction each.
    pub(crate) frozen: Frozen,
    /// Indexes that need not wait for the last row.
    pub(crate) early: Early,
    /// Those of the tables before the job stored its first rows there: nothing tells what they were where an
    /// earlier run has.
    pub(crate) files: Files,
    /// Where sessions wait while the load pauses.
    pub gate: Gate,
    /// The first failure, and what is still wanted after it.
    pub halt: Halt,
}

/// The listener of a load, whose summary has all that it was warned of, once each.
struct Counted {
    tally: Arc<Tally>,
    listener: Arc<dyn Listener>,
}

impl Listener for Counted {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Warning { message } if !self.tally.warn(message) => {}
            _ => self.listener.on_event(event),
        }
    }
}

impl Run {
    /// A run of a plan from this state of the ledger.
    pub(crate) fn new(
        context: &Context,
        plan: Plan,
        layout: Layout,
        ledger: Option<Ledger>,
        receipts: HashMap<u32, Receipts>,
        (open, partitioner): (Vec<Open>, Partitioner),
    ) -> Run {
        let tally = Arc::new(Tally::new(&plan, context.connection.display()));
        let listener =
            Arc::new(Counted { tally: Arc::clone(&tally), listener: Arc::clone(&context.listener) });
        Run {
            context: Context { listener, ..context.clone() },
            tally,
            budget: Budget::new(&layout),
            layout,
            ledger,
            receipts: RwLock::new(receipts),
            slots: Slots::default(),
            widener: Widener::new(open, &plan.job.arrival),
            partitioner,
            numbers: NumberSource::default(),
            dropped: AtomicBool::new(false),
            puts_back: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            tuned: AtomicBool::new(false),
            tuner: Mutex::default(),
            timeline: OnceLock::new(),
            checkpoints: OnceLock::new(),
            first: OnceLock::new(),
            silent: Mutex::default(),
            analyzed: Mutex::default(),
            probes: Probes::default(),
            first_records: FirstRecords::default(),
            comparison: None,
            is_over: false,
            frozen: Frozen::new(&plan),
            early: Early::new(&plan),
            files: Files::new(),
            gate: Gate::default(),
            halt: Halt::default(),
            plan,
        }
    }

    /// How the table's triggers are kept from firing. They are disabled for whoever wants none to fire and
    /// cannot have it otherwise, by this load or another.
    pub(crate) fn way_of_triggers(&self, table_no: u32) -> TriggersWay {
        let TablePlan { table, staging, .. } = self.plan.table(table_no);
        let is_stored = matches!(table.kind, RelationKind::Table | RelationKind::Partitioned);
        let silent = self.silent.lock();
        match self.plan.job.triggers {
            TriggersChoice::Disable if silent.contains(&table.relation) => TriggersWay::Replica,
            TriggersChoice::Disable if is_stored && staging.is_none() => TriggersWay::Disable,
            _ => TriggersWay::Keep,
        }
    }

    /// Tells the user, and goes on.
    pub(crate) fn tell(&self, message: impl Into<String>) {
        self.context.tell(message);
    }

    /// Tells what is not as may be expected, now and in the summary.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.context.warn(message);
    }

    /// Another server has taken the place of the one that this run began on, as far as both say.
    pub(crate) async fn is_on_another_server(&self, session: &Session) -> bool {
        match (self.timeline.get(), guards::timeline(session).await) {
            (Some(began_on), Some(now)) => *began_on != now,
            _ => false,
        }
    }

    /// For sure, the server has neither crashed since this run began nor given its place to another.
    pub(crate) async fn has_lost_nothing(&self, session: &Session) -> bool {
        match self.first.get() {
            Some(first) => activity::lives(session, *first).await.unwrap_or(false),
            None => false,
        }
    }

    /// What is in of one file.
    pub(crate) fn receipts(&self, file_no: u32) -> Receipts {
        let receipts = self.receipts.read();
        receipts.get(&file_no).cloned().unwrap_or_default()
    }

    /// Plain bytes of the files that are in.
    pub(crate) fn bytes_received(&self) -> u64 {
        let receipts = self.receipts.read();
        receipts
            .values()
            .flat_map(Receipts::values)
            .map(|receipt| receipt.end_byte - receipt.start_byte)
            .sum()
    }

    /// The receipt of the chunk whose first record begins at this byte.
    pub(crate) fn receipt_at(&self, file_no: u32, byte: u64) -> Option<Receipt> {
        let receipts = self.receipts.read();
        let mut of_file = receipts.get(&file_no)?.values();
        of_file.find(|receipt| receipt.start_byte == byte && receipt.end_byte > byte).cloned()
    }

    /// A chunk is in, by this run or by another one before: counts it, and tells the listener once.
    pub(crate) fn stored(&self, file_no: u32, rows: u64, bytes: u64, before: bool) {
        let first = self.tally.stored(file_no, rows, before);
        // A chunk that went with its transaction is new when it comes again.
        if first || (!before && self.frozen.of(&self.plan, file_no).is_some()) {
            self.context.listener.on_event(&Event::Stored { file_no, rows, bytes, before });
        }
    }

    /// Waits while the load pauses, before a step that cannot pause on its way.
    ///
    /// # Errors
    /// Why it has given up; `Interrupted`.
    pub(crate) async fn when_open(&self) -> Result<()> {
        let passing = async {
            tokio::select! {
                () = self.until_open() => {}
                () = self.halt.until_failed() => {}
            }
            self.halt.result()
        };
        self.context.stop.guard(passing).await
    }

    /// Returns when the load does not pause, and no disk of the server has next to no room.
    pub(crate) async fn until_open(&self) {
        self.context.connection.disks().until_ample().await;
        self.gate.pass().await;
    }

    /// What the load is at while no rows are copied: tells the listener.
    pub(crate) fn is_at(&self, what: impl Into<String>) {
        self.context.listener.on_event(&Event::Phase { what: Some(what.into()) });
    }

    /// So many bytes of the file need not be read: tells the listener once.
    pub(crate) fn skipped(&self, file_no: u32, bytes: u64) {
        if !self.tally.reads_again() {
            self.context.listener.on_event(&Event::Skipped { file_no, bytes });
        }
    }

    /// What is stored of the file in this run is not there any more.
    pub(crate) fn lost(&self, file_no: u32) {
        let rows = self.tally.file(file_no).rows_stored.swap(0, Relaxed);
        if rows > 0 {
            self.context.listener.on_event(&Event::Lost { file_no, rows });
        }
    }

    /// Tells the listener when a file has become complete.
    pub(crate) fn tell_if_done(&self, file_no: u32) {
        if self.frozen.of(&self.plan, file_no).is_some_and(Table::is_pending) {
            return;
        }
        if self.tally.file(file_no).becomes_done() {
            self.context.listener.on_event(&Event::FileDone { file_no });
        }
    }

    /// The ledger was read again.
    pub(crate) fn set_receipts(&self, receipts: HashMap<u32, Receipts>) {
        *self.receipts.write() = receipts;
    }
}

/// Moves every chunk of the plan that has no receipt into its table.
///
/// Returns when all are in, or with the error of the earliest bad chunk once everything before it is in.
///
/// # Errors
/// The failure that ended the run; `Interrupted` when stopped.
pub(crate) async fn run(run: &Arc<Run>, opened: Vec<Opened>) -> Result<()> {
    let (queue, cargos) = tokio::sync::mpsc::channel(1);
    let feeders = feed::start(run, opened.into_iter().enumerate(), &queue)?;
    drop(queue);
    let watcher = tokio::spawn(crate::watch::run(Arc::clone(run)));
    sessions::run(run, cargos).await;
    feed::join(feeders).await;
    watcher.abort();
    let halted = run.halt.result().map_err(|error| with_test_of_file(&run.plan, error));
    ended(run.context.stop.check(), halted)
}

/// What is damaged of a compressed file may look like a bad record before the checksum behind it tells.
fn with_test_of_file(plan: &Plan, error: Error) -> Error {
    let is_it = |file: &&FilePlan| error.place().file.as_deref() == Some(file.location.as_str());
    let test = plan.files.iter().find(is_it).and_then(|file| match file.codec {
        Codec::None => None,
        Codec::Gzip => Some("gzip -t"),
        Codec::Zstd => Some("zstd -t"),
        Codec::Bzip2 => Some("bzip2 -t"),
        Codec::Xz => Some("xz -t"),
        Codec::Lz4 => Some("lz4 -t"),
    });
    let Some(test) = test.filter(|_| error.place().record.is_some()) else { return error };
    let told = error.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
    error.with_hint(format!("{told}the file is compressed: {test} tells whether it is damaged"))
}

/// What a stop broke off is not a failure of its own; what had failed before it is.
fn ended(stopped: Result<()>, halted: Result<()>) -> Result<()> {
    match halted {
        Err(error) if error.kind() == ErrorKind::Interrupted => stopped.and(Err(error)),
        Err(error) => Err(error),
        Ok(()) => stopped,
    }
}

/// Remembers the first failure. After a failure at chunk `k` of a file the chunks before `k` of that file
/// are still loaded, so that the record reported is the one a single COPY would have stopped at.
#[derive(Default)]
pub(crate) struct Halt {
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// Wakes who waits for something that may not be wanted any more.
    failures: watch::Sender<u64>,
}

struct Failure {
    /// `None` for failures that no chunk is to blame for.
    chunk: Option<ChunkId>,
    error: Error,
}

impl Halt {
    /// A chunk cannot be stored. Of several in one file the earliest counts.
    pub(crate) fn fail_chunk(&self, file_no: u32, chunk_no: u64, error: Error) {
        self.fail(Failure { chunk: Some(ChunkId { file_no, chunk_no }), error });
    }

    /// The load cannot go on, whatever the chunk.
    pub(crate) fn fail_all(&self, error: Error) {
        self.fail(Failure { chunk: None, error });
    }

    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock();
        let replaces = match (&*first, failure.chunk) {
            (None, _) => true,
            (Some(Failure { chunk: Some(first), .. }), Some(chunk)) => {
                chunk.file_no == first.file_no && chunk.chunk_no < first.chunk_no
            }
            // What is to blame for everything ends what was still wanted before a bad chunk.
            (Some(Failure { chunk: Some(_), .. }), None) => {
                if let Some(kept) = first.as_mut() {
                    kept.chunk = None;
                }
                false
            }
            (Some(Failure { chunk: None, .. }), _) => false,
        };
        if replaces {
            *first = Some(failure);
        }
        self.failed.store(true, Relaxed);
        drop(first);
        self.failures.send_modify(|count| *count += 1);
    }

    /// This chunk is still to be stored.
    pub(crate) fn wants(&self, file_no: u32, chunk_no: u64) -> bool {
        if !self.failed.load(Relaxed) {
            return true;
        }
        let first = self.failure.lock();
        match &*first {
            None => true,
            Some(failure) => {
                failure.chunk.is_some_and(|failed| failed.file_no == file_no && chunk_no < failed.chunk_no)
            }
        }
    }

    /// Ends when the load has failed, whatever of it is still to be stored.
    pub(crate) async fn until_failed(&self) {
        // The sender lives in `self`.
        let _ = self.failures.subscribe().wait_for(|count| *count > 0).await;
    }

    /// Ends when this chunk is not to be stored any more.
    pub(crate) async fn until_unwanted(&self, file_no: u32, chunk_no: u64) {
        let mut failures = self.failures.subscribe();
        // The sender lives in `self`.
        while self.wants(file_no, chunk_no) && failures.changed().await.is_ok() {}
    }

    /// The failure, if there was one.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn result(&self) -> Result<()> {
        match &*self.failure.lock() {
            None => Ok(()),
            Some(failure) => Err(failure.error.clone()),
        }
    }
}

/// The error of a part that was told that its work is not wanted any more. Never shown: the failure that
/// caused it is.
pub(crate) fn unwanted() -> Error {
    Error::new(ErrorKind::Interrupted, "not wanted any more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_does_not_hide_what_had_failed_before_it() {
        let error = |kind: ErrorKind| Err(Error::new(kind, ""));
        let (stopped, failed) = (error(ErrorKind::Interrupted), error(ErrorKind::Record));
        let kind = |stopped: &Result<()>, halted: &Result<()>| {
            ended(stopped.clone(), halted.clone()).err().map(|error| error.kind())
        };
        assert_eq!(kind(&stopped, &failed), Some(ErrorKind::Record));
        assert_eq!(kind(&stopped, &stopped), Some(ErrorKind::Interrupted));
        assert_eq!(kind(&stopped, &Ok(())), Some(ErrorKind::Interrupted));
        assert_eq!(kind(&Ok(()), &failed), Some(ErrorKind::Record));
        assert_eq!(kind(&Ok(()), &Ok(())), None);
    }

    #[test]
    fn after_a_bad_chunk_only_earlier_chunks_of_its_file_are_wanted() {
        let halt = Halt::default();
        assert!(halt.wants(0, 9));
        halt.fail_chunk(0, 5, Error::new(ErrorKind::Record, "late"));
        assert!(halt.wants(0, 4) && !halt.wants(0, 5) && !halt.wants(1, 0));
        halt.fail_chunk(0, 3, Error::new(ErrorKind::Record, "early"));
        halt.fail_chunk(0, 4, Error::new(ErrorKind::Record, "between"));
        assert_eq!(halt.result().unwrap_err().message(), "early");
        halt.fail_all(Error::new(ErrorKind::ConnectionLost, "gone"));
        assert!(!halt.wants(0, 0));
        assert_eq!(halt.result().unwrap_err().message(), "early");
    }
}
