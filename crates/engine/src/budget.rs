//! The memory budget: the one owner of every buffer and queue.
//!
//! The budget is cut up once, when a load begins. A fixed share is for the process and the sessions, a
//! quarter of the rest for records longer than a chunk buffer, and what remains is a pool of equal chunk
//! buffers. A chunk holds its buffer from the first byte read until its receipt, and a second one where its
//! records are rewritten, so the pool bounds everything in flight; a reader that finds the pool empty waits,
//! and that is all the back-pressure there is.
//!
//! Nobody can wait for ever: a buffer is taken before the piece of work it is for, pieces are handed out in
//! order, and whoever holds a buffer waits only for I/O or for holders of earlier pieces.

use bytes::Bytes;
use howdah_model::{Error, ErrorKind, Jobs, Result, Taper, show_size};
use howdah_transcode::decompress::AHEAD_BYTES_MIN;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const MIB: u64 = 1 << 20;

/// Code, runtime, catalogs, prefetched blocks and decompression windows. Measured: a load of one gzip file
/// with two sessions holds 19 MiB beside its chunk buffers; zstd and xz windows add up to 8 MiB each, as
/// these compress by default. Larger ones come on top, since nobody knows them before the file is read
/// (docs/concepts/memory.md).
const PROCESS_BYTES: u64 = 40 * MIB;
/// Write buffer of one session: one piece of a chunk, framed, and once more under TLS.
const SESSION_BYTES: u64 = MIB;
/// The share of what is left for parts of compressed files that are decoded ahead, where there are such
/// files: two frames of 8 MiB, as `pzstd` writes them, fit the default budget.
const AHEAD_SHARE: u64 = 8;
/// The share of what is left then for long records.
const RESERVE_SHARE: u64 = 4;
/// The share of the budget for small objects that planning has read whole: a second request for each would
/// take longer than all else that is done with it. 32 MiB of the default are fifty thousand files of twenty
/// rows.
pub(crate) const KEPT_SHARE: u64 = 8;
/// With fewer buffers no load can go on.
const BUFFERS_MIN: u64 = 3;
/// The share of a chunk buffer beyond the chunk size, for the record that crosses the border. Longer
/// records draw on the reserve, one at a time.
const SLACK_SHARE: u64 = 8;
/// The least of it: with chunks of a few bytes, every record would be a long one.
const SLACK_BYTES_MIN: u64 = 64 << 10;
/// Below this the budget cannot hold two buffers, two sessions and the process.
const MEMORY_BYTES_MIN: u64 = 64 * MIB;
/// Chunk sizes considered when the user names none. Measured beside a local PostgreSQL 15 (4 million rows of
/// title.principals, 2 sessions, 2 cores, 4 runs, median wall and client CPU seconds): 1 MiB 1.39 and 0.22,
/// 4 MiB 1.51 and 0.28, 16 MiB 1.48 and 0.30, 32 MiB 1.79 and 0.34. Small chunks stay in the processor's
/// cache, but each costs three round trips and a row of the ledger; with 16 MiB these vanish at any distance.
const CHUNK_BYTES_DEFAULT: u64 = 16 * MIB;
/// The same beside a local server, where larger ones gain nothing and are memory that is touched for the
/// first time. Measured with two sessions on 2 quiet cores, medians of 11 runs in turn, wall and CPU seconds
/// of client and server: lineitem (125 MB, in binary) 1.02 and 1.85 with up to 8 MiB, 1.02 and 1.83 with 4;
/// title.principals (169 MB, as text; 9 runs, the second with link-time optimisation, which alone changed
/// nothing that could be told) 1.35 and 2.38, 1.35 and 2.41. Peak memory was 147 and 82 MiB, 97 and 54 MiB.
const CHUNK_BYTES_NEAR: u64 = 4 * MIB;
pub(crate) const CHUNK_BYTES_MIN: u64 = MIB;
/// Beside a local server, where round trips cost little, what is read in order is cut in at least so many
/// chunks: with ten chunks for two sessions, one of them waits for the other's last while a tenth of the time
/// goes by. Measured with the same table as one gzip file (37 MB, taken for 111 MB of plain bytes), medians
/// of 7 runs, wall and server CPU seconds: 1 MiB, of which these are at least 64, 1.26 and 1.74; 4 MiB, of
/// which they are 16, 1.17 and 1.57; 8 MiB 1.17 and 1.52.
const CHUNKS_MIN: u64 = 16;
/// Sessions that `Jobs::Auto` may ever reach; the pool usually sets a lower limit.
const SESSIONS_AUTO_MAX: u64 = 64;

/// Further buffers that a chunk takes, for its records as they are rewritten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scratch {
    /// There is no way without these.
    pub needed: u32,
    /// With these the load is faster, where every session still has a chunk to send while another is filled.
    pub useful: u32,
}

/// What there is to load, as far as it decides how it is cut up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The server's CPUs, where it is so near that round trips cost little.
    pub near_cpus: Option<u32>,
    /// About how many plain bytes there are, where that is known.
    pub plain_bytes: Option<u64>,
    /// There are files that are read in ranges.
    pub has_ranges: bool,
    /// There may be files to decode ahead.
    pub has_parts: bool,
    /// Pipes that are read side by side, each of which holds a chunk.
    pub pipes: u32,
    /// Chunks are stored already, which keep their size.
    pub is_cut: bool,
    /// Bytes of small objects that were read for the plan and are kept for the load.
    pub kept_bytes: u64,
}

/// How a memory budget is cut up; pure arithmetic, so that a plan can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// All of it.
    pub memory_bytes: u64,
    /// Plain bytes between chunk borders, or the most of it where they taper.
    pub chunk_bytes: u64,
    /// Borders that are closer together.
    pub taper: Option<Taper>,
    /// The longest record.
    pub record_bytes_max: u64,
    /// Chunk buffers in the pool.
    pub buffers: u32,
    /// How many of them a chunk takes: one for its records, the others for these as they are rewritten.
    pub chunk_buffers: u32,
    /// The most sessions that can be kept busy from this pool.
    pub sessions_max: u32,
    /// Parts of compressed files that are decoded ahead, stored and plain.
    pub ahead_bytes: u64,
}

impl Layout {
    /// Cuts `memory_bytes` for this many jobs. A chunk size is taken as `given` when the user or an earlier
    /// run of the job has fixed it; otherwise chunks are small enough to share the `extent` out evenly where
    /// the server is near.
    ///
    /// # Errors
    /// `Usage` when the budget cannot hold three chunk buffers of the fixed size.
    pub fn new(
        memory_bytes: u64,
        jobs: Jobs,
        given: Option<u64>,
        extent: Extent,
        scratch: Scratch,
    ) -> Result<Layout> {
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "a memory budget of {} is too small: expected at least {}",
                    show_size(memory_bytes),
                    show_size(MEMORY_BYTES_MIN)
                ),
            )
            .with_hint("give --memory 64MB or more"));
        }
        let sessions_wanted = match jobs {
            Jobs::Fixed(sessions) => u64::from(sessions),
            // Where client and server shared two CPUs, seven gzip files took 2.62 s in two sessions, 2.76 in
            // three and 2.81 in four (medians of 5 runs): memory is better spent on larger chunks.
            Jobs::Auto => u64::from(extent.near_cpus.unwrap_or(u32::MAX).clamp(2, 4)),
        };
        let held_bytes = PROCESS_BYTES + sessions_wanted * SESSION_BYTES + extent.kept_bytes;
        let left = memory_bytes.saturating_sub(held_bytes).max(16 * MIB);
        let ahead_bytes = if extent.has_parts { ahead_bytes(left, given) } else { 0 };
        let left = left - ahead_bytes;
        let (record_bytes_max, pool_bytes) = (left / RESERVE_SHARE, left - left / RESERVE_SHARE);
        let shared_bytes = extent.near_cpus.and(extent.plain_bytes);
        let tapers = extent.near_cpus.is_some() && extent.has_ranges;
        let largest_bytes = extent.near_cpus.map_or(CHUNK_BYTES_DEFAULT, |_| CHUNK_BYTES_NEAR);
        let fitting = |chunk_buffers: u64, shared_bytes| {
            // Two files are read side by side anyway.
            let busy = sessions_wanted + u64::from(extent.pipes.saturating_sub(2));
            chunk_bytes_for(largest_bytes, pool_bytes / chunk_buffers, busy, shared_bytes)
        };
        let cut = |chunk_buffers: u64| {
            let chunk_bytes =
                given.unwrap_or_else(|| fitting(chunk_buffers, shared_bytes.filter(|_| !tapers)));
            (chunk_bytes, pool_bytes / buffer_bytes(chunk_bytes), chunk_buffers)
        };
        let (needed, useful) = (1 + u64::from(scratch.needed), 1 + u64::from(scratch.useful));
        let feeds_all =
            |(_, buffers, chunk_buffers): &(u64, u64, u64)| buffers / chunk_buffers > sessions_wanted;
        let useful = (needed + 1..=useful).rev().map(cut).find(feeds_all);
        let (chunk_bytes, buffers, chunk_buffers) = useful.unwrap_or_else(|| cut(needed));
        if buffers < BUFFERS_MIN {
            return Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "chunks of {} do not fit a memory budget of {}",
                    show_size(chunk_bytes),
                    show_size(memory_bytes)
                ),
            )
            .with_hint(match extent.is_cut {
                true => "chunks of this size are stored, and the others are as long: give a larger --memory",
                false => "give a smaller --chunk-size or a larger --memory",
            }));
        }
        let sessions_max = match jobs {
            Jobs::Fixed(sessions) => u64::from(sessions),
            Jobs::Auto => (buffers / chunk_buffers).saturating_sub(2).clamp(1, SESSIONS_AUTO_MAX),
        };
        Ok(Layout {
            memory_bytes,
            chunk_bytes,
            taper: (extent.near_cpus.is_some() && given.is_none()).then(|| Taper {
                in_order_bytes: fitting(chunk_buffers, shared_bytes).min(chunk_bytes),
                least_bytes: CHUNK_BYTES_MIN.min(chunk_bytes),
                share: taper_share(jobs, extent),
                rises: true,
            }),
            record_bytes_max,
            buffers: u32::try_from(buffers).unwrap_or(u32::MAX),
            chunk_buffers: u32::try_from(chunk_buffers).unwrap_or(u32::MAX),
            sessions_max: u32::try_from(sessions_max).unwrap_or(u32::MAX),
            ahead_bytes,
        })
    }
}

/// While two chunks of a size are left for each session, they need not be smaller. Measured with
/// title.principals (170 MB) and two sessions, medians of 5 runs on a busy machine, wall and server CPU
/// seconds: a share of 8 1.25 and 1.58, of 4 1.23 and 1.54, of 2 1.25 and 1.52; 81 chunks of 2 MiB 1.33 and
/// 1.65.
fn taper_share(jobs: Jobs, extent: Extent) -> u32 {
    let sessions = match jobs {
        Jobs::Fixed(sessions) => sessions,
        Jobs::Auto => extent.near_cpus.unwrap_or(0).max(2),
    };
    sessions.saturating_mul(2)
}

/// What may be decoded ahead: nothing where it would be too little, or where it would take a buffer that a
/// load with chunks of a fixed size cannot do without.
fn ahead_bytes(left: u64, chunk_bytes: Option<u64>) -> u64 {
    let ahead_bytes = left / AHEAD_SHARE;
    let pool_bytes = (left - ahead_bytes) / RESERVE_SHARE * (RESERVE_SHARE - 1);
    let leaves_room =
        chunk_bytes.is_none_or(|chunk_bytes| pool_bytes / buffer_bytes(chunk_bytes) >= BUFFERS_MIN);
    if leaves_room && ahead_bytes >= AHEAD_BYTES_MIN as u64 { ahead_bytes } else { 0 }
}

impl Layout {
    /// The chunks that are in memory at most.
    pub fn chunks(&self) -> u32 {
        self.buffers / self.chunk_buffers
    }
}

/// The largest power of two up to the default that gives every session and every pipe a buffer and some to
/// wait, and shares the work out.
fn chunk_bytes_for(largest_bytes: u64, pool_bytes: u64, sessions: u64, shared_bytes: Option<u64>) -> u64 {
    let mut chunk_bytes = largest_bytes;
    let too_few = |chunk_bytes: u64| {
        pool_bytes / buffer_bytes(chunk_bytes) < sessions + sessions / 4 + 3
            || shared_bytes.is_some_and(|bytes| bytes / chunk_bytes < CHUNKS_MIN)
    };
    while chunk_bytes > CHUNK_BYTES_MIN && too_few(chunk_bytes) {
        chunk_bytes /= 2;
    }
    chunk_bytes
}

/// What a buffer for chunks of this size takes.
fn buffer_bytes(chunk_bytes: u64) -> u64 {
    chunk_bytes.saturating_add((chunk_bytes / SLACK_SHARE).max(SLACK_BYTES_MIN))
}

/// The pool of chunk buffers and the reserve for long records.
#[derive(Clone)]
pub(crate) struct Budget {
    buffers: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Vec<u8>>>>,
    buffer_bytes: usize,
    record_bytes_max: usize,
    memory_bytes: u64,
}

impl Budget {
    /// A pool as laid out; memory is taken on first use.
    pub(crate) fn new(layout: &Layout) -> Budget {
        Budget {
            buffers: Arc::new(Semaphore::new(layout.buffers as usize)),
            reserve: Arc::new(Semaphore::new(1)),
            idle: Arc::new(Mutex::new(Vec::new())),
            buffer_bytes: usize::try_from(buffer_bytes(layout.chunk_bytes)).unwrap_or(usize::MAX),
            record_bytes_max: usize::try_from(layout.record_bytes_max).unwrap_or(usize::MAX),
            memory_bytes: layout.memory_bytes,
        }
    }

    /// What one chunk needs, waiting until the pool has it. All `count` buffers come at once, so that nobody
    /// waits for a further one while holding a first.
    pub(crate) async fn buffers(&self, count: u32) -> Buffers {
        // The semaphore is never closed, so the permits are there.
        let mut permits = Arc::clone(&self.buffers).acquire_many_owned(count).await.ok();
        let split = |_| permits.as_mut().and_then(|permits| permits.split(1));
        let scratch: Vec<_> = (1..count).filter_map(split).map(|permit| self.make(Some(permit))).collect();
        Buffers { data: self.make(permits), scratch }
    }

    fn make(&self, permit: Option<OwnedSemaphorePermit>) -> Buffer {
        let idle = self.idle.lock().pop();
        Buffer {
            // Zeroed memory comes from the system untouched: pages count only once they are written.
            bytes: idle.unwrap_or_else(|| vec![0; self.buffer_bytes]),
            filled: 0,
            pooled_bytes: self.buffer_bytes,
            idle: Arc::clone(&self.idle),
            permit,
            reserve: None,
        }
    }

    /// Room for up to `more` bytes of records as the file has them: what is longer than the server takes is
    /// not read to its end.
    ///
    /// # Errors
    /// Those of [`Budget::grow`].
    pub(crate) async fn grow_as_read(&self, buffer: &mut Buffer, more: usize) -> Result<usize> {
        // Shorter records may stand before it.
        if buffer.is_full() && buffer.filled.saturating_sub(self.buffer_bytes) >= RECORD_BYTES_SERVER {
            return Err(longer_than_the_server_takes());
        }
        self.grow(buffer, more).await
    }

    /// Room for up to `more` bytes in `buffer`: what it has, or, once it is full, more from the reserve.
    /// Returns how many, at least one if `more` is.
    ///
    /// The reserve is one long record's at a time. Whoever asks for it must not keep anybody waiting for
    /// something else: see [`crate::feed`]'s ranges, which ask in the order of the file.
    ///
    /// # Errors
    /// `RecordTooLong` when the reserve is used up; the caller adds the place.
    pub(crate) async fn grow(&self, buffer: &mut Buffer, more: usize) -> Result<usize> {
        let limit = self.record_bytes_max.max(self.buffer_bytes);
        if buffer.is_full() {
            if buffer.filled >= limit {
                return Err(self.too_long(limit));
            }
            if buffer.reserve.is_none() {
                buffer.reserve = Arc::clone(&self.reserve).acquire_owned().await.ok();
            }
            let mut larger = vec![0; (buffer.filled * 2).max(buffer.filled + more).min(limit)];
            larger[..buffer.filled].copy_from_slice(buffer.filled());
            buffer.bytes = larger;
        }
        Ok(more.min(buffer.spare().len()))
    }

    /// Where the record ends is not known: it is not read that far. Of twice the memory, what is left for
    /// records is more than twice as much.
    fn too_long(&self, limit: usize) -> Error {
        let message = format!("the record is longer than the {limit} bytes this memory budget allows");
        let usual = "an unclosed quote is the usual cause; if the record is really that long, raise --memory";
        let hint = match limit.saturating_mul(2) {
            twice if twice <= RECORD_BYTES_SERVER => {
                let memory_bytes = self.memory_bytes.saturating_mul(2);
                format!("{usual}: {} allow one of {twice} bytes", show_size(memory_bytes))
            }
            _ => format!("{usual}; PostgreSQL takes records of {RECORD_BYTES_SERVER} bytes at most"),
        };
        Error::new(ErrorKind::RecordTooLong, message).with_hint(hint)
    }
}

/// A line that COPY reads, and a row that it makes of one, are less than 1 GiB (`MaxAllocSize`).
const RECORD_BYTES_SERVER: usize = (1 << 30) - 1;

fn longer_than_the_server_takes() -> Error {
    let message = format!("the record is longer than the {RECORD_BYTES_SERVER} bytes that PostgreSQL takes");
    Error::new(ErrorKind::RecordTooLong, message).with_hint(
        "an unclosed quote is the usual cause; no --memory helps if the record is really that long",
    )
}

/// The buffers of one chunk.
pub(crate) struct Buffers {
    /// For the records as they are read.
    pub data: Buffer,
    /// For the records as they are rewritten, where they are.
    pub scratch: Vec<Buffer>,
}

/// One chunk buffer. Dropping it, or the last view of it, gives it back.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
    pooled_bytes: usize,
    idle: Arc<Mutex<Vec<Vec<u8>>>>,
    permit: Option<OwnedSemaphorePermit>,
    reserve: Option<OwnedSemaphorePermit>,
}

impl Buffer {
    /// What has been put in.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// The same, to be written over.
    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.filled]
    }

    /// Room for more; tell with [`Buffer::advance`] how much of it was used.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// What it holds at most without the reserve.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// There is no room without the reserve.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }

    /// The first `count` spare bytes now hold data.
    pub(crate) fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.bytes.len());
    }

    /// Forgets all but the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.filled = self.filled.min(length);
    }

    /// Replaces the contents by what `write` appends to an empty vector.
    pub(crate) fn rewrite<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.bytes.clear();
        let written = write(&mut self.bytes);
        self.filled = self.bytes.len();
        if self.bytes.capacity() == self.pooled_bytes {
            self.bytes.resize(self.pooled_bytes, 0);
        }
        written
    }

    /// The contents as shared bytes; the buffer goes back to the pool when the last clone is dropped.
    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // A buffer that grew goes back to the system, not to the pool.
        if bytes.len() == self.pooled_bytes {
            self.idle.lock().push(bytes);
        }
        drop(self.reserve.take());
        drop(self.permit.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Extent = Extent {
        near_cpus: None,
        plain_bytes: None,
        has_ranges: false,
        has_parts: false,
        pipes: 0,
        is_cut: false,
        kept_bytes: 0,
    };
    const NEEDED: Scratch = Scratch { needed: 1, useful: 1 };
    const USEFUL: Scratch = Scratch { needed: 0, useful: 1 };

    #[test]
    fn the_default_budget_has_sixteen_mebibyte_chunks_for_few_sessions_and_smaller_ones_for_many() {
        let few = Layout::new(256 * MIB, Jobs::Fixed(2), None, FAR, Scratch::default()).unwrap();
        assert_eq!(few.chunk_bytes, 16 * MIB);
        let many = Layout::new(256 * MIB, Jobs::Fixed(32), None, FAR, Scratch::default()).unwrap();
        assert!(many.chunk_bytes < 16 * MIB);
        assert!(many.buffers >= 32);
    }

    #[test]
    fn beside_the_server_a_load_is_cut_in_many_chunks_and_a_file_in_ranges_tapers() {
        let cut = |given, extent| {
            let two = Jobs::Fixed(2);
            let layout = Layout::new(256 * MIB, two, given, extent, Scratch::default()).unwrap();
            (layout.chunk_bytes / MIB, layout.taper)
        };
        let in_order = Extent { near_cpus: Some(2), plain_bytes: Some(170 * MIB), ..FAR };
        let taper = Taper { in_order_bytes: 4 * MIB, least_bytes: MIB, share: 4, rises: true };
        assert_eq!(cut(None, in_order), (4, Some(taper)));
        let ranged = Extent { has_ranges: true, ..in_order };
        assert_eq!(cut(None, ranged), (4, Some(taper)));
        let few = Extent { plain_bytes: Some(40 * MIB), ..in_order };
        assert_eq!(cut(None, few), (2, Some(Taper { in_order_bytes: 2 * MIB, ..taper })));
        assert_eq!(cut(Some(8 * MIB), ranged), (8, None));
        assert_eq!(cut(None, Extent { near_cpus: None, ..ranged }), (16, None));
    }

    #[test]
    fn a_second_buffer_is_taken_where_sessions_do_not_starve_for_it() {
        let layout = |memory_mib: u64, sessions, chunk_bytes, scratch| {
            Layout::new(memory_mib * MIB, Jobs::Fixed(sessions), chunk_bytes, FAR, scratch).unwrap()
        };
        let two = layout(256, 2, None, USEFUL);
        assert_eq!((two.chunk_buffers, two.chunk_bytes), (2, 8 * MIB));
        assert!(two.chunks() >= 5);
        let large_chunks = layout(128, 2, Some(16 * MIB), USEFUL);
        assert_eq!((large_chunks.chunk_buffers, large_chunks.chunks()), (1, 3));
        assert_eq!(layout(64, 32, None, USEFUL), layout(64, 32, None, Scratch::default()));
        assert_eq!(layout(128, 2, Some(16 * MIB), NEEDED).chunk_buffers, 2);
        let four = layout(256, 2, None, Scratch { needed: 0, useful: 3 });
        assert_eq!((four.chunk_buffers, four.chunk_bytes), (4, 4 * MIB));
        // Some of what is useful is better than nothing.
        assert_eq!(layout(256, 2, Some(16 * MIB), Scratch { needed: 0, useful: 3 }).chunk_buffers, 2);
    }

    #[test]
    fn parts_are_decoded_ahead_only_where_there_is_room_for_it() {
        let layout = |memory_mib: u64, chunk_bytes, has_parts| {
            let two = Jobs::Fixed(2);
            let extent = Extent { has_parts, ..FAR };
            Layout::new(memory_mib * MIB, two, chunk_bytes, extent, Scratch::default()).unwrap()
        };
        assert_eq!(layout(256, None, false).ahead_bytes, 0);
        // Two frames of 8 MiB and what they are stored in.
        assert!(layout(256, None, true).ahead_bytes >= 2 * 12 * MIB);
        assert_eq!(layout(64, None, true), layout(64, None, false));
        // An earlier run has fixed the size, and three buffers are all that fits.
        assert!(layout(128, Some(16 * MIB), false).buffers >= 3);
        assert_eq!(layout(128, Some(18 * MIB), true), layout(128, Some(18 * MIB), false));
    }

    #[tokio::test]
    async fn a_buffer_that_was_rewritten_stays_in_the_pool() {
        let layout = Layout::new(64 * MIB, Jobs::Fixed(1), Some(MIB), FAR, NEEDED).unwrap();
        let budget = Budget::new(&layout);
        let mut buffers = budget.buffers(2).await;
        buffers.data.rewrite(|out| out.extend_from_slice(b"1\n"));
        assert_eq!(buffers.data.filled(), b"1\n");
        drop(buffers);
        assert_eq!(budget.idle.lock().len(), 2);
        assert_eq!(budget.buffers.available_permits(), layout.buffers as usize);
    }

    #[test]
    fn every_layout_stays_inside_the_budget() {
        for memory_mib in [64, 128, 256, 1024, 8192] {
            let extent = Extent { has_parts: true, ..FAR };
            for (sessions, scratch) in [(1, Scratch::default()), (2, USEFUL), (8, NEEDED), (16, USEFUL)] {
                let layout =
                    Layout::new(memory_mib * MIB, Jobs::Fixed(sessions), None, extent, scratch).unwrap();
                let pool = u64::from(layout.buffers) * buffer_bytes(layout.chunk_bytes);
                assert!(
                    pool + layout.record_bytes_max + layout.ahead_bytes <= memory_mib * MIB,
                    "{memory_mib} {sessions} {layout:?}"
                );
            }
        }
    }

    /// Nothing is written there, so that it takes no memory.
    #[tokio::test]
    async fn a_record_that_no_server_takes_is_not_read_to_its_end() {
        let layout = Layout::new(16 << 30, Jobs::Fixed(1), Some(MIB), FAR, Scratch::default()).unwrap();
        assert!(layout.record_bytes_max > 2 << 30);
        let budget = Budget::new(&layout);
        let mut buffer = budget.buffers(1).await.data;
        let taken = RECORD_BYTES_SERVER + budget.buffer_bytes;
        (buffer.bytes, buffer.filled) = (vec![0; taken], taken);
        let refused = budget.grow_as_read(&mut buffer, 1).await.unwrap_err();
        assert!(refused.message().ends_with("1073741823 bytes that PostgreSQL takes"), "{refused}");
    }

    #[tokio::test]
    async fn a_record_beyond_the_reserve_is_refused_and_a_long_one_gives_its_memory_back() {
        let layout = Layout::new(64 * MIB, Jobs::Fixed(1), Some(MIB), FAR, Scratch::default()).unwrap();
        let budget = Budget::new(&layout);
        let mut buffer = budget.buffers(1).await.data;
        let refused = loop {
            match budget.grow(&mut buffer, 1 << 30).await {
                Ok(room) => buffer.advance(room),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::RecordTooLong);
        let twice = Layout::new(128 * MIB, Jobs::Fixed(1), Some(MIB), FAR, Scratch::default()).unwrap();
        let allowed = 2 * layout.record_bytes_max;
        assert!(twice.record_bytes_max >= allowed);
        let hint = format!("raise --memory: 128MB allow one of {allowed} bytes");
        assert!(refused.hint().is_some_and(|told| told.ends_with(&hint)), "{refused:?}");
        assert_eq!(buffer.filled().len() as u64, layout.record_bytes_max);
        drop(buffer.freeze());
        assert_eq!(budget.reserve.available_permits(), 1);
        assert!(budget.idle.lock().is_empty());
    }
}
