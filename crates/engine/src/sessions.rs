//! Right of the queue: sessions that take chunks and commit them, as many as help.
//!
//! A chunk stays in memory until its receipt. If its transaction fails for a reason that may pass, it is
//! sent again on a new session; whether the first try had committed after all, the claim in the ledger tells.

mod crowded;
mod full_disk;
mod handed;
mod together;

use crate::attend::Asking;
use crate::begin;
use crate::cargo::Cargo;
use crate::feed::{unless, wait_to_retry};
use crate::frozen::{self, Taken};
use crate::indexes::early;
use crate::jobs::Climber;
use crate::locate::locate;
use crate::pipeline::{Run, unwanted};
use crate::rejects;
use crate::retry::{Directive, Patience, directive, is_about_no_form};
use crate::scarce::{BrokenOff, Scarce};
use crate::triggers;
use crate::watch::Slot;
use crowded::Room;
use full_disk::Fullness;
use handed::Handed;
use howdah_model::arrival::place_of;
use howdah_model::{CopyChunk, Error, ErrorKind, Origin, Reject, Result, Stage, Tune};
use howdah_target::commit::{ChunkTarget, Outcome, TRIGGERS_ENABLED, commit_chunk};
use howdah_target::salvage::is_about_a_row;
use howdah_target::session::Session;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

/// How often the number of sessions is thought over.
const TICK: Duration = Duration::from_millis(500);

/// How often a chunk that waits for the first one looks what became of that.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// When the load has failed, chunks that are under way are given so long yet: nearly all are in by then, and
/// need not be sent by the next run. Those that wait for a lock or a server must not keep the load from
/// ending.
const UNWANTED_FOR: Duration = Duration::from_secs(3);

/// What the workers share.
struct Shared {
    run: Arc<Run>,
    queue: Mutex<Receiver<Cargo>>,
    wanted: AtomicU32,
    handed: Handed,
    fullness: Fullness,
    room: Room,
}

impl Shared {
    /// As many as help, and as leave others their connections.
    fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed).min(self.room())
    }

    fn room(&self) -> u32 {
        let most = self.run.gate.sessions_max().min(self.run.frozen.sessions_max(&self.run.plan));
        most.min(self.handed.sessions_max())
    }

    /// Thinks over how many sessions there should be.
    fn think(&self, climber: &mut Climber) {
        let tally = &self.run.tally;
        let (refused, seen) = (self.handed.take_without_room(), tally.take_seen());
        let bytes_taken = tally.bytes_stored.load(Relaxed) + self.run.slots.bytes_under_way();
        let at = if bytes_taken == 0 { Duration::ZERO } else { tally.since_first_bytes() };
        if refused > 0 {
            let open = tally.sessions.load(Relaxed).saturating_sub(refused);
            climber.refused(at, open).into_iter().for_each(|step| tally.decided(step));
        }
        climber.leave_room(at, self.room()).into_iter().for_each(|step| tally.decided(step));
        if self.run.gate.is_closed() || self.fullness.is_on() || self.run.early.building() > 0 {
            climber.disturbed();
        } else if let Some(step) = climber.observe(at, bytes_taken, seen) {
            tally.decided(step);
        }
        self.wanted.store(climber.wanted(), Relaxed);
    }
}

/// Stores chunks until the queue is closed and empty, or nothing is wanted any more.
pub(crate) async fn run(run: &Arc<Run>, queue: Receiver<Cargo>) {
    let server_cpus = run.context.connection.server_cpus();
    let mut climber = Climber::new(run.plan.job.jobs, server_cpus, run.layout.sessions_max);
    // What a crash of the server took comes again on as many sessions as were found before.
    run.tally.sessions_found().into_iter().for_each(|found| climber.begin_with(found));
    let shared = Arc::new(Shared {
        run: Arc::clone(run),
        queue: Mutex::new(queue),
        wanted: AtomicU32::new(climber.wanted()),
        handed: Handed::default(),
        fullness: Fullness::default(),
        room: Room::default(),
    });
    run.gate.limit_opened(u32::MAX);
    let mut workers = JoinSet::new();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut trying = pin!(shared.handed.keep_trying(run));
    let mut started = 0;
    let mut draining = false;
    loop {
        while !draining && started < shared.wanted() {
            workers.spawn(work(Arc::clone(&shared), started));
            started += 1;
        }
        tokio::select! {
            ended = workers.join_next() => match ended {
                None => break,
                Some(Ok(Ended::NotWanted)) => started -= 1,
                Some(Ok(Ended::NoMoreChunks)) => draining = true,
                Some(Err(panic)) => {
                    run.halt.fail_all(Error::new(ErrorKind::Internal, format!("a session's task failed: {panic}")));
                    draining = true;
                }
            },
            never = &mut trying => match never {},
            _ = tick.tick() => {
                run.context.connection.close_unwanted();
                // The last chunks leave sessions without work, whatever their number.
                if !draining {
                    shared.think(&mut climber);
                }
                commit_frozen(run).await;
            }
        }
    }
    shared.fullness.end(run);
    run.gate.limit_opened(shared.handed.found_max());
    if let Some(session) = shared.handed.last() {
        run.context.connection.keep(session);
    }
    commit_frozen(run).await;
    frozen::roll_back(run).await;
}

/// Of tables whose last chunk was in before it was known to be the last.
async fn commit_frozen(run: &Run) {
    match run.context.stop.guard_commit(frozen::commit_complete(run), || true).await {
        Err(error) if error.kind() != ErrorKind::Interrupted => run.halt.fail_all(error),
        Ok(()) | Err(_) => {}
    }
}

/// Why a worker ended.
enum Ended {
    /// Fewer sessions are wanted.
    NotWanted,
    /// There is nothing more to do.
    NoMoreChunks,
}

async fn work(shared: Arc<Shared>, index: u32) -> Ended {
    let run = &shared.run;
    let mut worker = Worker::new(run, &shared.handed, &shared.room);
    run.tally.session_opened();
    let ended = loop {
        if index >= shared.wanted() && worker.left.is_empty() {
            break Ended::NotWanted;
        }
        // The first always copies.
        if index > 0 && worker.left.is_empty() && early::build_next(run, &mut worker.session).await {
            worker.count_session();
            continue;
        }
        let next = async {
            // What is left to do of a load that has failed is little, and nothing is said before it.
            tokio::select! {
                () = run.until_open() => {}
                () = run.halt.until_failed() => {}
            }
            if let Some(cargo) = worker.left.pop_front() {
                return Ok(Next::Cargo(cargo));
            }
            tokio::select! {
                biased;
                () = shared.handed.until_wanted(), if worker.session.is_some() => Ok(Next::Give),
                cargo = async { shared.queue.lock().await.recv().await } => Ok(cargo.map_or(Next::End, Next::Cargo)),
            }
        };
        let cargo = match run.context.stop.guard(next).await {
            Ok(Next::Cargo(cargo)) => cargo,
            Ok(Next::Give) => {
                worker.give_session();
                continue;
            }
            Ok(Next::End) | Err(_) => {
                run.early.end();
                break Ended::NoMoreChunks;
            }
        };
        let Some((chunk, refused)) = worker.store_together(cargo).await else { continue };
        if !run.halt.wants(chunk.origin.file_no, chunk.origin.chunk_no) {
            continue;
        }
        let origin = chunk.origin;
        if let Err(error) = Box::pin(worker.store(chunk, refused, &shared)).await {
            run.halt.fail_chunk(origin.file_no, origin.chunk_no, error);
        }
    };
    // What nobody may come to need is not kept open.
    if matches!(ended, Ended::NotWanted)
        && !shared.handed.is_refused()
        && let Some(session) = worker.session.take()
    {
        run.context.connection.keep(session);
    }
    worker.give_session();
    run.tally.session_closed();
    run.slots.remove(&worker.slot);
    ended
}

/// What a worker does next.
enum Next {
    Cargo(Cargo),
    /// Another one has a chunk and no session.
    Give,
    End,
}

/// The server does not take the chunk, however often it is sent.
fn is_refusal(error: &Error) -> bool {
    let is_final = matches!(error.kind(), ErrorKind::Server | ErrorKind::Internal);
    let is_lasting = is_final && directive(error) == Directive::GiveUp && !is_about_no_form(error);
    is_lasting || is_about_a_row(error)
}

/// Where the chunk goes.
fn target<'a>(run: &'a Run, chunk: &CopyChunk) -> ChunkTarget<'a> {
    let file = run.plan.file(chunk.origin.file_no);
    let table = run.plan.table(file.table_no);
    let asynchronous = file.version.is_some() && run.ledger.is_some() && !table.outside;
    ChunkTarget {
        ledger: run.ledger.as_ref(),
        job_id: &run.plan.job_id,
        table,
        // What cannot be read again as it was, or not be missed, must not be lost in a crash of the server;
        // nor receipts of rows that another server keeps.
        synchronous: !asynchronous || run.plan.tuning.level == Tune::None,
        first_place: place_of(file.input_no, chunk.origin.start_byte),
        triggers: run.way_of_triggers(file.table_no),
        held: false,
    }
}

/// Until a chunk that is under way is given up, because the load has failed.
pub(crate) async fn until_given_up(run: &Run, origin: &Origin) {
    run.halt.until_unwanted(origin.file_no, origin.chunk_no).await;
    tokio::time::sleep(UNWANTED_FOR).await;
}

/// What comes before the next try with a chunk that has failed in this way, as long as it is wanted.
///
/// # Errors
/// This error, when it will not pass; `Interrupted`.
pub(crate) async fn before_next_try(
    run: &Run,
    origin: &Origin,
    patience: &mut Patience,
    error: Error,
) -> Result<()> {
    let waiting = async {
        if error.sqlstate() == Some(TRIGGERS_ENABLED) {
            Box::pin(triggers::silence_again(run, origin.file_no)).await?;
        }
        wait_to_retry(run, patience, error).await
    };
    unless(run.halt.until_unwanted(origin.file_no, origin.chunk_no), waiting).await
}

/// One session and what is needed to replace it.
struct Worker<'a> {
    run: &'a Run,
    session: Option<Session>,
    handed: &'a Handed,
    room: &'a Room,
    /// The server had no room for the chunk beside those of others.
    alone: bool,
    /// It is known to have a session.
    counts: bool,
    slot: Arc<Slot>,
    patience: Patience,
    /// The server has refused a record of the chunk, and its records are looked at one by one.
    sifted: bool,
    /// Parts of what did not come in together, or the chunks of it: they are stored before anything else.
    left: VecDeque<Cargo>,
    /// No more chunks are tried together, since the server has refused a record of some.
    together_max: usize,
}

impl<'a> Worker<'a> {
    fn new(run: &'a Run, handed: &'a Handed, room: &'a Room) -> Worker<'a> {
        let patience = Patience::new(Duration::from_millis(run.plan.job.retry_for_ms));
        Worker {
            run,
            session: None,
            handed,
            room,
            alone: false,
            counts: false,
            slot: run.slots.add(),
            patience,
            sifted: false,
            left: VecDeque::new(),
            together_max: usize::MAX,
        }
    }

    /// Leaves the session to who has none, at present or later.
    fn give_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.handed.give(session);
        }
        self.count_session();
    }

    /// The session has come or gone.
    fn count_session(&mut self) {
        if self.counts != self.session.is_some() {
            self.counts = self.session.is_some();
            self.handed.count(self.counts);
        }
    }

    /// Stores one chunk, exactly once, however often it has to be tried. The server may have refused it among
    /// others.
    async fn store(&mut self, mut chunk: CopyChunk, refused: Option<Error>, shared: &Shared) -> Result<()> {
        if self.store_frozen(&chunk).await? {
            return Ok(());
        }
        self.alone = false;
        self.sifted = rejects::expects_broken(self.run, &mut chunk);
        refused.into_iter().for_each(|error| _ = self.sifts(&mut chunk, &error));
        let (run, origin) = (self.run, chunk.origin);
        let table_no = run.plan.file(origin.file_no).table_no;
        let (mut had_no_room, mut broken_off) = (false, BrokenOff::default());
        let slot = Arc::clone(&self.slot);
        loop {
            let storing = unless(until_given_up(run, &origin), Box::pin(self.try_store(&chunk)));
            let error = match run.context.stop.guard_commit(storing, || slot.is_committing()).await {
                Ok(Err(scarce)) => {
                    // Others write as well, and there may be room for one.
                    self.alone = true;
                    self.wait_for_room(&chunk, &mut broken_off, &scarce).await?;
                    continue;
                }
                Ok(Ok((outcome, rejects))) => {
                    self.patience.reset();
                    // That another one had room says nothing: it may have gone to another disk.
                    if had_no_room {
                        shared.fullness.over(self.run, table_no);
                    }
                    self.record(&chunk, &outcome, &rejects);
                    return Ok(());
                }
                Err(error) => error,
            };
            self.slot.end();
            // Given up, it has left no session.
            self.count_session();
            if !run.halt.wants(origin.file_no, origin.chunk_no) {
                return Err(unwanted());
            }
            if full_disk::is_full(&error) {
                had_no_room = true;
                let is_unwanted = run.halt.until_unwanted(origin.file_no, origin.chunk_no);
                unless(is_unwanted, shared.fullness.wait(run, table_no, error)).await?;
                continue;
            }
            if !self.alone && crowded::is_crowded(&error) {
                self.alone = true;
                crowded::tell(shared, &error);
                continue;
            }
            if self.sifts(&mut chunk, &error) {
                continue;
            }
            // What is wrong with the file is said in words and lines of its format: the server is asked once
            // more.
            if is_refusal(&error) && chunk.faster.take().is_some() {
                if self.sifted {
                    rejects::leave_none_out(self.run, &chunk);
                }
                continue;
            }
            if error.kind() == ErrorKind::CommitUnknown && self.run.ledger.is_none() {
                return Err(error.with_hint(
                    "without a ledger nobody knows whether this chunk was stored; look at the table before loading again",
                ));
            }
            if directive(&error) == Directive::AgainWithFewer {
                shared.handed.count_without_room();
            }
            before_next_try(run, &origin, &mut self.patience, error).await?;
        }
    }

    /// Until a chunk that was broken off for want of room is to be tried again.
    async fn wait_for_room(
        &mut self,
        chunk: &CopyChunk,
        broken_off: &mut BrokenOff,
        scarce: &Scarce,
    ) -> Result<()> {
        let (run, origin) = (self.run, &chunk.origin);
        self.count_session();
        let what = format!("chunk {} of {}", origin.chunk_no, run.plan.file(origin.file_no).location);
        let is_unwanted = run.halt.until_unwanted(origin.file_no, origin.chunk_no);
        unless(is_unwanted, broken_off.wait(run, what, scarce)).await
    }

    /// Records of the chunk are looked at one by one from now on, because the server has refused one; false
    /// if they are not.
    fn sifts(&mut self, chunk: &mut CopyChunk, error: &Error) -> bool {
        if !rejects::skips(self.run) || !is_about_a_row(error) || self.sifted {
            return false;
        }
        self.sifted = true;
        if !rejects::stays_written(chunk, error) {
            rejects::sift(self.run, chunk);
        }
        true
    }

    /// The same for a chunk whose table takes all rows in one transaction; false if it does not.
    async fn store_frozen(&mut self, chunk: &CopyChunk) -> Result<bool> {
        let (run, file_no) = (self.run, chunk.origin.file_no);
        let Some(table) = run.frozen.of(&run.plan, file_no) else { return Ok(false) };
        let target = ChunkTarget { held: true, synchronous: true, ..target(run, chunk) };
        let storing = frozen::store(run, table, &target, chunk, &self.slot, &mut self.patience);
        match run.context.stop.guard(storing).await {
            Ok(Taken::Not) => return Ok(false),
            Ok(Taken::Lost) => return Ok(true),
            Ok(Taken::Held(outcome)) => self.record(chunk, &outcome, &[]),
            Err(error) => {
                self.slot.end();
                return Err(error);
            }
        }
        self.patience.reset();
        run.context.stop.guard_commit(frozen::commit_if_complete(run, file_no), || true).await.map(|()| true)
    }

    /// Until it is known what becomes of the first chunk, where that may end the load. Whoever has that one
    /// may have no session, and wait for this one.
    async fn wait_for_the_first(&mut self, chunk: &CopyChunk) {
        let (handed, mut since) = (self.handed, Instant::now());
        while rejects::waits_for_the_first(self.run, chunk, &mut since) {
            tokio::select! {
                () = handed.until_wanted(), if self.session.is_some() => self.give_session(),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// The session that it has, or another one.
    async fn take_session(&mut self) -> Result<Session> {
        let run = self.run;
        if let Some(session) = self.session.take().filter(|session| !session.is_closed()) {
            return Ok(session);
        }
        self.count_session();
        let opened = self.handed.session(run, &mut self.patience).await?;
        self.counts = true;
        let connection = &run.context.connection;
        // One that another worker has left was opened before.
        connection.attend(&opened, connection.end_lost(&opened)).await?;
        let held = Box::pin(begin::expect_held(run, &opened));
        connection.attend(&opened, held).await?;
        Ok(opened)
    }

    /// Nothing is being stored on this session any more.
    fn keep_session(&mut self, session: Session) {
        self.slot.end();
        if session.is_closed() {
            self.run.context.connection.lose(session.backend());
        } else {
            self.session = Some(session);
        }
        self.count_session();
    }

    /// Given up at an await, as when the load is stopped, it leaves no session. The inner error: it was
    /// broken off for want of room.
    async fn try_store(
        &mut self,
        chunk: &CopyChunk,
    ) -> Result<std::result::Result<(Outcome, Vec<Reject>), Scarce>> {
        let run = self.run;
        if run.comparison.is_none() && (self.sifted || !chunk.aside.is_empty()) {
            self.wait_for_the_first(chunk).await;
        }
        let mut session = self.take_session().await?;
        let _room = self.room.enter(self.alone).await;
        let _first = run.first_records.begin(run, chunk);
        let target = target(run, chunk);
        let backend = session.backend();
        self.slot.begin(backend);
        let progress = &self.slot.progress;
        let storing = async {
            if let Some(comparison) = &run.comparison {
                let comparing = comparison.compare(run, &mut session, &target, chunk, progress);
                return Box::pin(comparing).await.map(|()| (Outcome::AlreadyStored, Vec::new()));
            }
            if self.sifted || !chunk.aside.is_empty() {
                return Box::pin(rejects::store_rest(run, &mut session, &target, chunk, progress)).await;
            }
            match commit_chunk(&mut session, &target, chunk, progress).await {
                Ok(outcome) => Ok((outcome, Vec::new())),
                Err(failed) => {
                    let placing = rejects::place(run, &mut session, &target, chunk, progress, failed);
                    Err(Box::pin(placing).await)
                }
            }
        };
        let mut asking = Asking::new(&run.context.connection, backend);
        let stored = tokio::select! {
            stored = storing => stored.map(Ok),
            () = self.slot.stalled.notified() => Err(self.slot.stall_error().into()),
            scarce = self.until_broken_off() => Ok(Err(scarce)),
        };
        asking.answered();
        if matches!(stored, Ok(Err(_))) {
            session.abandon();
        }
        self.keep_session(session);
        match stored {
            Ok(stored) => Ok(stored),
            Err(failed) if rejects::skips(run) && is_about_a_row(&failed.error) && !self.sifted => {
                Err(failed.error)
            }
            // Sent once more as the file has it, it is refused at a line that can be found.
            Err(failed) if chunk.faster.is_some() && is_refusal(&failed.error) => Err(failed.error),
            Err(failed) => Err(locate(run, chunk, failed).await),
        }
    }

    /// Returns once a disk of the server has next to no room, unless COMMIT is sent: its answer is near, and
    /// takes next to none.
    async fn until_broken_off(&self) -> Scarce {
        let connection = &self.run.context.connection;
        connection.until_broken_off(|| self.slot.is_committing()).await
    }

    fn record(&self, chunk: &CopyChunk, outcome: &Outcome, rejects: &[Reject]) {
        let origin = &chunk.origin;
        let rows = origin.records - rejects.len() as u64;
        if !rejects.is_empty() {
            let location = &self.run.plan.file(origin.file_no).location;
            self.run.tally.rejected(location, origin.file_no, rejects);
        }
        let bytes = origin.end_byte - origin.start_byte;
        let before = match outcome {
            Outcome::Stored { copy_time, commit_time, .. } => {
                self.run.tally.spend(Stage::Copy, *copy_time);
                self.run.tally.spend(Stage::Commit, *commit_time);
                self.run.tally.bytes_stored.fetch_add(bytes, Relaxed);
                false
            }
            Outcome::AlreadyStored => {
                // Of a comparison they tell how fast it goes.
                if self.run.comparison.is_some() {
                    self.run.tally.bytes_stored.fetch_add(bytes, Relaxed);
                }
                true
            }
        };
        self.run.stored(origin.file_no, rows, bytes, before);
        self.run.tally.file(origin.file_no).open_chunks.fetch_sub(1, Relaxed);
        self.run.tell_if_done(origin.file_no);
    }
}
