//! The first records of a load in the order of its files: how many of them the table has refused, whichever
//! session looked at them, and whatever others have stored by then.

use crate::cargo::Cargo;
use crate::feed::first_byte;
use crate::pipeline::Run;
use crate::rejects::skips;
use howdah_model::CopyChunk;
use howdah_target::salvage::Refused;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How long chunks wait until the first one is in the queue, and how often they look: it may come from a slow
/// source.
const QUEUED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Chunks with records that the table refused, by their file and first byte.
#[derive(Default)]
pub(crate) struct FirstRecords {
    chunks: Mutex<BTreeMap<(u32, u64), Seen>>,
    /// The first chunk is in the queue, or was, or is not waited for any more.
    are_queued: AtomicBool,
    /// A session is storing the first chunk.
    are_under_way: AtomicBool,
}

/// Says that the first chunk is under way, until it is dropped.
pub(crate) struct UnderWay<'a>(&'a AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

#[derive(Clone, Copy)]
struct Seen {
    end_byte: u64,
    records: u64,
    /// Records refused before the first good one.
    refused: u64,
}

impl FirstRecords {
    /// Queues the cargo by `send`, which says whether anybody takes it. Where bad records do not end the
    /// load, no later chunk is queued before the first one: all sessions might have such, and wait for what
    /// becomes of that one. Blocks.
    pub(crate) fn in_turn(&self, run: &Run, cargo: Cargo, send: impl FnOnce(Cargo) -> bool) -> bool {
        if !skips(run) || self.are_queued.load(Relaxed) {
            return send(cargo);
        }
        if !cargo.chunks.iter().any(|chunk| is_first(run, chunk)) {
            self.wait_until_queued(run, &cargo);
        }
        let is_taken = send(cargo);
        self.are_queued.store(true, Relaxed);
        is_taken
    }

    fn wait_until_queued(&self, run: &Run, cargo: &Cargo) {
        let began = Instant::now();
        let is_open = || run.tally.rows_stored() + run.tally.rows_rejected() == 0;
        // All of the file may have been read while another thread still makes its first chunk ready.
        let is_to_come = || !run.tally.file(0).is_complete() && !run.context.stop.raised();
        let is_wanted = |chunk: &CopyChunk| run.halt.wants(chunk.origin.file_no, chunk.origin.chunk_no);
        while !self.are_queued.load(Relaxed)
            && is_open()
            && is_to_come()
            && cargo.chunks.iter().any(is_wanted)
            && began.elapsed() < QUEUED_WITHIN
        {
            thread::sleep(LOOK_EVERY);
        }
    }

    /// A session begins to store the chunk.
    pub(crate) fn begin(&self, run: &Run, chunk: &CopyChunk) -> Option<UnderWay<'_>> {
        is_first(run, chunk).then(|| {
            self.are_under_way.store(true, Relaxed);
            UnderWay(&self.are_under_way)
        })
    }

    pub(crate) fn are_under_way(&self) -> bool {
        self.are_under_way.load(Relaxed)
    }

    /// The table has refused these records of the chunk. Only those count that no good one comes before.
    pub(crate) fn saw(&self, chunk: &CopyChunk, refused: &[Refused]) {
        let leading = (0..).zip(refused).take_while(|(row, refused)| refused.row == *row).count() as u64;
        if leading > 0 {
            self.saw_leading(chunk, leading);
        }
    }

    /// So many at the beginning of the chunk.
    pub(crate) fn saw_leading(&self, chunk: &CopyChunk, refused: u64) {
        let origin = &chunk.origin;
        let seen = Seen { end_byte: origin.end_byte, records: origin.records, refused };
        self.chunks.lock().insert((origin.file_no, origin.start_byte), seen);
    }

    /// How many records are known to be refused before the first that is good, or of which nothing is known
    /// yet.
    pub(crate) fn refused(&self, run: &Run) -> u64 {
        let mut sum = 0;
        for (no, file) in (0..).zip(&run.plan.files) {
            let (mut byte, mut records) = (first_byte(&run.plan, file), 0);
            while let Some(seen) = self.chunk_at(run, no, byte) {
                records += seen.refused;
                byte = seen.end_byte;
                if seen.refused < seen.records {
                    return sum + records;
                }
            }
            sum += records;
            let tally = run.tally.file(no);
            if !tally.read_done.load(Relaxed) || tally.rows_read.load(Relaxed) > records {
                break;
            }
        }
        sum
    }

    /// A chunk that begins at this byte and has refused records only, or some before the first good one.
    fn chunk_at(&self, run: &Run, file_no: u32, byte: u64) -> Option<Seen> {
        let seen = self.chunks.lock().get(&(file_no, byte)).copied();
        seen.or_else(|| {
            let receipt = run.receipt_at(file_no, byte)?;
            let refused = receipt.omitted.rejected;
            let is_bad = receipt.rows == 0 && refused > 0;
            is_bad.then_some(Seen { end_byte: receipt.end_byte, records: refused, refused })
        })
    }
}

/// The load begins with this chunk.
pub(crate) fn is_first(run: &Run, chunk: &CopyChunk) -> bool {
    let origin = &chunk.origin;
    origin.file_no == 0 && origin.start_byte == first_byte(&run.plan, run.plan.file(0))
}
