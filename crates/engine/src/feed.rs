//! From bytes outside to chunks ready for COPY: the threads left of the queue.
//!
//! Files that can be read at any offset are cut in ranges and their ranges split side by side ([`range`]);
//! compressed files and pipes are split in order as they are decompressed, one thread a file ([`stream`]),
//! with the help of others where a file has parts ([`unpackers`]). Both cut by the same rule: a chunk holds
//! the records that start between two [`howdah_model::Borders`] of the plain bytes.

mod asker;
mod blank_end;
mod bounded;
mod emit;
mod encoders;
mod end_marker;
mod gather;
mod lanes;
mod mender;
mod numbered;
mod oddities;
mod range;
mod sieve;
mod sight;
mod stored;
mod stream;
mod turnstile;
mod unpackers;

pub(crate) use asker::Asker;
pub(crate) use mender::{mending_shape, watched_shape};
pub(crate) use sieve::{eol_of_chunk, sifter};
pub(crate) use stored::{Opened, open_all, unless, wait_to_retry};
pub(crate) use stream::{Recoding, plain_error, plain_utf8, recoding, rewriting_shape};

use crate::budget::Buffers;
use crate::cargo::Cargo;
use crate::pipeline::{Halt, Run};
use crate::threads::no_thread;
use gather::{Gathering, is_small};
use howdah_model::plan::Care;
use howdah_model::{Error, ErrorKind, FilePlan, FormatKind, Plan, Result};
use howdah_transcode::decompress::{AHEAD_BYTES_MIN, may_have_parts};
use howdah_transcode::split::{Rules, VERSION_MARKER_STRICT};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use unpackers::Unpackers;

/// A piece of work for one thread.
enum Piece {
    /// Range `k` of a file.
    Range(Arc<range::RangedFile>, u64),
    /// A whole file, in order.
    Stream(u32, Opened),
}

impl Piece {
    fn file_no(&self) -> u32 {
        match self {
            Piece::Range(file, _) => file.file_no(),
            Piece::Stream(file_no, _) => *file_no,
        }
    }
}

/// Hands out pieces, the largest file first and the ranges of a file in order.
struct Pieces {
    supplies: Mutex<VecDeque<Supply>>,
    /// Of so many files ranges are handed out by turns.
    by_turns: usize,
}

enum Supply {
    /// Nothing is made ready for it before a thread comes to it: a job may have a hundred thousand.
    File(u32, Opened),
    Ranges {
        file: Arc<range::RangedFile>,
        next: u64,
    },
}

impl Pieces {
    /// The next piece that is still wanted: behind a bad chunk nothing of a file is.
    ///
    /// # Errors
    /// `Internal` or `Usage` when the dialect of the next file cannot be split.
    fn next(&self, run: &Run) -> Result<Option<Piece>> {
        let halt = &run.halt;
        let mut supplies = self.supplies.lock();
        loop {
            let Some(supply) = supplies.pop_front() else { return Ok(None) };
            match supply {
                Supply::File(file_no, _) if !halt.wants(file_no, 0) => {}
                Supply::Ranges { file, next } if !halt.wants(file.file_no(), next) => {}
                Supply::File(file_no, opened) if run.plan.file(file_no).ranged => {
                    let file = Arc::new(range::RangedFile::new(run, file_no, opened)?);
                    supplies.push_front(Supply::Ranges { next: file.first_range(), file });
                }
                Supply::File(file_no, opened) => return Ok(Some(Piece::Stream(file_no, opened))),
                Supply::Ranges { file, next } if next < file.ranges() => {
                    let at = supplies.len().min(self.by_turns - 1);
                    supplies.insert(at, Supply::Ranges { file: Arc::clone(&file), next: next + 1 });
                    return Ok(Some(Piece::Range(file, next)));
                }
                Supply::Ranges { .. } => {}
            }
        }
    }
}

/// What a feeder thread works with.
struct Feeder {
    run: Arc<Run>,
    pieces: Arc<Pieces>,
    queue: Sender<Cargo>,
    /// Chunks of small files that wait for others.
    gathering: Mutex<Gathering>,
    handle: Handle,
    unpackers: Arc<Unpackers>,
    /// What one compressed file may hold of parts that are decoded ahead.
    ahead_bytes: usize,
}

/// Starts the threads for files with these numbers. They end when all pieces are done, nothing is wanted any
/// more, or the queue is closed.
///
/// # Errors
/// `Local` when no thread can be had.
pub(crate) fn start(
    run: &Arc<Run>,
    opened: impl Iterator<Item = (usize, Opened)>,
    queue: &Sender<Cargo>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut supplies = VecDeque::new();
    for (no, opened) in by_table(&run.plan, opened) {
        let file_no = u32::try_from(no).unwrap_or(u32::MAX);
        let file = &run.plan.files[no];
        if file.left_out {
            run.tally.file(file_no).read_done.store(true, Relaxed);
            run.skipped(file_no, file.stored_bytes.unwrap_or_default());
            run.tell_if_done(file_no);
            continue;
        }
        supplies.push_back(Supply::File(file_no, opened));
    }
    let mut feeders = feeders(run);
    let mut by_turns = 1;
    if run.plan.job.arrival.freeze {
        // A table keeps its session from its first chunk to its last: no more are read side by side than
        // there are sessions.
        feeders = feeders.min(run.layout.sessions_max.max(1) as usize);
        by_turns = feeders;
    }
    tell_if_too_few(run, feeders);
    let pieces = Arc::new(Pieces { supplies: Mutex::new(supplies), by_turns });
    let (unpackers, ahead_bytes) = unpackers(run, feeders)?;
    (0..feeders)
        .map(|no| {
            let feeder = Feeder {
                run: Arc::clone(run),
                pieces: Arc::clone(&pieces),
                queue: queue.clone(),
                gathering: Mutex::default(),
                handle: Handle::current(),
                unpackers: Arc::clone(&unpackers),
                ahead_bytes,
            };
            std::thread::Builder::new()
                .name(format!("feeder-{no}"))
                .spawn(move || feeder.work())
                .map_err(|error| no_thread(&error))
        })
        .collect()
}

/// The files with their numbers, where tables take all rows in one transaction table by table: else each of
/// these would keep its session for the whole load.
fn by_table(plan: &Plan, opened: impl Iterator<Item = (usize, Opened)>) -> Vec<(usize, Opened)> {
    let mut files: Vec<(usize, Opened)> = opened.collect();
    if plan.job.arrival.freeze {
        let relation = |no: usize| &plan.table(plan.files[no].table_no).table.relation;
        let mut first = BTreeMap::new();
        files.iter().for_each(|(no, _)| {
            first.entry(relation(*no)).or_insert(*no);
        });
        files.sort_by_key(|(no, _)| first.get(relation(*no)).copied());
    }
    files
}

/// Pipes read side by side at most: each takes a thread and a chunk.
pub(crate) const PIPES_AT_ONCE_MAX: usize = 64;

/// How many of the files are pipes that want to be read side by side.
pub(crate) fn pipes_at_once(files: &[FilePlan]) -> u32 {
    let pipes = files.iter().filter(|file| !file.rereadable).count();
    u32::try_from(pipes.min(PIPES_AT_ONCE_MAX)).unwrap_or(u32::MAX)
}

/// Threads that feed: one a core, since each decodes, but at least two, since each also waits for its source;
/// and no more than half the chunks that fit the pool, so that sessions never starve for them. Of pipes each
/// has one: who writes to several in turn waits for the one that nobody reads. One chunk is left for what is
/// sent meanwhile.
fn feeders(run: &Run) -> usize {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let chunks = run.layout.chunks() as usize;
    let pipes = pipes_at_once(&run.plan.files) as usize;
    cores.clamp(2, (chunks / 2).max(2)).max(pipes.min(chunks.saturating_sub(1)))
}

fn tell_if_too_few(run: &Run, feeders: usize) {
    let pipes = run.plan.files.iter().filter(|file| !file.rereadable).count();
    if pipes > feeders {
        let message = format!(
            "of {pipes} pipes {feeders} are read at a time, the others when these have ended: a writer that fills them in turn \
             would wait for ever"
        );
        run.tell(message);
    }
}

/// Threads that decode ahead of the feeders, one for each core but that of a feeder, and what each compressed
/// file may hold: so many are read side by side as there are feeders.
fn unpackers(run: &Arc<Run>, feeders: usize) -> Result<(Arc<Unpackers>, usize)> {
    let files = run.plan.files.iter().filter(|file| !file.ranged && may_have_parts(file.codec)).count();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ahead_bytes = usize::try_from(run.layout.ahead_bytes).unwrap_or(usize::MAX);
    let share_bytes = ahead_bytes / files.clamp(1, feeders);
    let helps = files > 0 && share_bytes >= AHEAD_BYTES_MIN;
    Ok((Unpackers::start(run, if helps { cores - 1 } else { 0 })?, share_bytes))
}

/// Threads are given this long to end after the queue is closed; all that do not sit in a read of a pipe do
/// so at once. The rest are left to the end of the process.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Waits for the threads to end.
pub(crate) async fn join(feeders: Vec<JoinHandle<()>>) {
    let closed = Instant::now();
    while feeders.iter().any(|feeder| !feeder.is_finished()) && closed.elapsed() < END_WITHIN {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A thread that panics fails the load at once: the others wait for what it had to pass on, for ever.
struct FailsAll<'a>(&'a Halt);

impl Drop for FailsAll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail_all(Error::new(ErrorKind::Internal, "a thread that reads and splits has failed"));
        }
    }
}

impl Feeder {
    /// Buffers for one chunk, once the pool has them.
    fn take_buffers(&self) -> Result<Buffers> {
        let take = async { Ok(self.run.budget.buffers(self.run.layout.chunk_buffers).await) };
        self.handle.block_on(self.run.context.stop.guard(take))
    }

    fn work(&self) {
        let _guard = FailsAll(&self.run.halt);
        loop {
            // The buffer comes before the piece: whoever has an earlier piece has its buffer already.
            let Ok(buffers) = self.take_buffers() else { return };
            let piece = match self.pieces.next(&self.run) {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    self.hand_over_all();
                    return;
                }
                Err(error) => return self.run.halt.fail_all(error),
            };
            if !self.hand_over_what_is_due(is_small(self.run.plan.file(piece.file_no()))) {
                return;
            }
            let (file_no, done) = match piece {
                Piece::Range(file, no) => (file.file_no(), file.feed(self, no, buffers)),
                Piece::Stream(file_no, opened) => (file_no, stream::feed(self, file_no, opened, buffers)),
            };
            if let Err(failure) = done {
                self.run.halt.fail_chunk(file_no, failure.chunk_no, failure.error);
            }
            if self.queue.is_closed() {
                return;
            }
        }
    }
}

/// A piece that could not be made into chunks.
struct Failure {
    chunk_no: u64,
    error: Error,
}

/// The splitting rules of one file of the plan.
fn rules(run: &Run, file_no: u32) -> Result<Rules> {
    let file = run.plan.file(file_no);
    let table = run.plan.table(file.table_no);
    let mut version = run.plan.server_version;
    if table.care == Care::Watched && table.format.kind == FormatKind::Csv {
        // A line `\.` is a record of the file, which the inspector refuses, whatever the server takes it for.
        version = version.max(VERSION_MARKER_STRICT);
    }
    Rules::new(&table.format, version, file.eol)
}

/// Where the first chunk of a file begins, in the bytes that are split: those of the file, or the COPY text
/// that it is rewritten to.
pub(crate) fn first_byte(plan: &Plan, file: &FilePlan) -> u64 {
    match plan.table(file.table_no).care {
        Care::Rewritten => 0,
        Care::Server | Care::Watched => file.data_start_byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_fails_the_load_at_once() {
        let halt = Halt::default();
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = FailsAll(&halt);
            assert!(halt.wants(0, 0));
            panic!("a fault of the program");
        }));
        assert!(worked.is_err() && !halt.wants(0, 0));
        assert_eq!(halt.result().unwrap_err().kind(), ErrorKind::Internal);
    }
}
