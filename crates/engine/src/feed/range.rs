//! Splits a file that can be read at any offset, range by range, on several threads.
//!
//! Whether a cut lies inside quotes depends on every byte before it. Each thread reads its range as if the
//! cut lay inside a record and outside of quotes, as most do, and splits the bytes while they are in the
//! cache. The states at the cuts then follow from range to range through a turnstile. Where one is another
//! than was taken for granted, the thread splits its range once more, in memory. The bytes are read once. The
//! record that crosses the end of a range belongs to it: the thread reads on until that record ends.

mod lenient;

use super::emit::Emitter;
use super::end_marker::{self, MARKER_BYTES};
use super::mender::Mender;
use super::sight::{PIECE_BYTES, Sight};
use super::stored::{count_read, read_at, unless};
use super::turnstile::Turnstile;
use super::{Failure, Feeder, Opened};
use crate::budget::Buffers;
use crate::pipeline::{Receipts, Run, unwanted};
use bytes::Bytes;
use howdah_model::{Borders, Omitted, Origin, Place, Receipt, Result};
use howdah_source::Object;
use howdah_transcode::split::{self, Rules, State, Tail};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes read at a time beyond the end of a range. Most records are far shorter.
const TAIL_BYTES: usize = 64 << 10;

/// What a range must know of all before it.
#[derive(Clone, Copy)]
enum Before {
    /// The state of the automaton at the first byte of the range.
    State(State),
    /// The next record starts at this byte, at or after the range's first.
    Record(u64),
    /// An end-of-data marker came before.
    Ended,
}

/// A file cut in ranges, each of which becomes a chunk.
pub(super) struct RangedFile {
    object: Object,
    /// All of it, where the plan has read it and kept it.
    known: Option<Bytes>,
    emitter: Emitter,
    mender: Option<Mender>,
    receipts: Receipts,
    bytes: u64,
    borders: Borders,
    first_range: u64,
    before: Turnstile<Before>,
    records: Turnstile<u64>,
}

/// One range, read.
struct Slice {
    no: u64,
    start: u64,
    end: u64,
    buffers: Buffers,
    /// What was read behind its end along with it.
    ahead: Vec<u8>,
}

/// The records that start in a range, as far as the range shows them.
struct Found {
    /// Offset of the first one in the range's buffer.
    first: usize,
    /// How many of them ended in the range.
    records: u64,
    /// One past the last that ended in the range; `first` if none did.
    last_border: usize,
    /// The state at the end of the range.
    state: State,
    /// Where an end-of-data marker begins.
    marker: Option<usize>,
}

/// Where the last record of a range ends in its buffer, and whether it comes on top of those found.
struct End {
    end: usize,
    records: u64,
}

impl RangedFile {
    pub(super) fn new(run: &Run, file_no: u32, opened: Opened) -> Result<RangedFile> {
        let known = opened.all_bytes();
        let object = opened.object;
        let plan = run.plan.file(file_no);
        let borders = run.plan.borders(file_no);
        let first = borders.chunk_no(plan.data_start_byte);
        Ok(RangedFile {
            bytes: object.stored_bytes().unwrap_or(0).min(plan.data_end_byte.unwrap_or(u64::MAX)),
            object,
            known,
            emitter: Emitter::new(run, file_no)?,
            mender: Mender::new(run, file_no),
            receipts: run.receipts(file_no),
            borders,
            first_range: first,
            before: Turnstile::new(first, Before::Record(plan.data_start_byte)),
            records: Turnstile::new(first, 0),
        })
    }

    pub(super) fn file_no(&self) -> u32 {
        self.emitter.file_no
    }

    /// The range in which the data begins.
    pub(super) fn first_range(&self) -> u64 {
        self.first_range
    }

    /// One past the last range. An empty file has one, so that its end is noticed.
    pub(super) fn ranges(&self) -> u64 {
        self.borders.chunks(self.bytes).max(self.first_range + 1)
    }

    /// Makes range `no` into a chunk, unless it is in the table already.
    pub(super) fn feed(&self, feeder: &Feeder, no: u64, buffers: Buffers) -> Result<(), Failure> {
        let fed = match self.receipts.get(&no) {
            Some(receipt) => self.skip(feeder, receipt),
            None => match &self.mender {
                Some(mender) => self.load_lenient(mender, feeder, no, buffers),
                None => self.load(feeder, no, buffers),
            },
        };
        fed.map_err(|failure| Failure {
            error: failure.error.in_file(self.object.location()),
            chunk_no: failure.chunk_no,
        })
    }

    fn wanted(&self, run: &Run, no: u64) -> Result<()> {
        run.context.stop.check()?;
        if run.halt.wants(self.file_no(), no) { Ok(()) } else { Err(unwanted()) }
    }

    /// A stored range is not read: its receipt says where the next record starts.
    fn skip(&self, feeder: &Feeder, receipt: &Receipt) -> Result<(), Failure> {
        let run = &feeder.run;
        let Receipt { chunk_no: no, end_byte, rows, omitted, .. } = *receipt;
        let fail = |error| Failure { chunk_no: no, error };
        self.before.wait(no, || self.wanted(run, no)).map_err(fail)?;
        // A chunk ends before its border only where the data does, at an end-of-data marker.
        let border_byte = self.borders.end_byte(no);
        let after = if end_byte < border_byte { Before::Ended } else { Before::Record(end_byte) };
        self.before.pass(no + 1, after);
        run.tally.known_chunk(self.file_no(), rows, omitted);
        let start_byte = self.borders.start_byte(no);
        run.skipped(self.file_no(), border_byte.min(self.bytes).saturating_sub(start_byte));
        run.stored(self.file_no(), rows, end_byte.saturating_sub(start_byte), true);
        self.count(feeder, no, rows + omitted.records()).map(|_| ())
    }

    fn load(&self, feeder: &Feeder, no: u64, buffers: Buffers) -> Result<(), Failure> {
        let run = &feeder.run;
        let fail = |error| Failure { chunk_no: no, error };
        let mut slice = self.slice(no, buffers);
        let sight = self.see(feeder, &mut slice).map_err(fail)?;
        let Some((sight, found)) = self.find(run, &slice, sight).map_err(fail)? else {
            return self.count(feeder, no, 0).map(|_| ());
        };
        let marker = sight.scan.end_marker.map(|marker| slice.start.saturating_add_signed(marker as i64));
        let Some(found) = found else {
            let before = self.count(feeder, no, 0)?;
            return self.look_behind_marker(feeder, no, marker, before).map_err(fail);
        };
        let tail = self.read_tail(feeder, &mut slice, &found).map_err(fail)?;
        let records = found.records + tail.records;
        if records > 0 {
            run.tally.file(self.file_no()).found_chunk(records, Omitted::default());
        }
        let before = self.count(feeder, no, records)?;
        self.look_behind_marker(feeder, no, marker, before + records).map_err(fail)?;
        if records == 0 {
            return Ok(());
        }
        let origin = Origin {
            file_no: self.file_no(),
            chunk_no: no,
            start_byte: slice.start + found.first as u64,
            end_byte: slice.start + tail.end as u64,
            first_record: before + 1,
            records,
            omitted: Omitted::default(),
            digest: None,
        };
        let records = found.first..tail.end;
        let oddity = sight.oddity(run, &self.emitter, slice.buffers.data.filled(), records.clone());
        self.emitter.emit(feeder, origin, slice.buffers, records, oddity)
    }

    /// Passes the number of records on; returns how many came before. The last range ends the file.
    fn count(&self, feeder: &Feeder, no: u64, records: u64) -> Result<u64, Failure> {
        let run = &feeder.run;
        let fail = |error| Failure { chunk_no: no, error };
        let before = self.records.wait(no, || self.wanted(run, no)).map_err(fail)?;
        if no + 1 >= self.ranges() {
            run.tally.file(self.file_no()).read_done.store(true, Relaxed);
            run.tell_if_done(self.file_no());
        }
        self.records.pass(no + 1, before + records);
        Ok(before)
    }

    /// What follows the marker at this byte, behind so many records, is looked for until there is some.
    fn look_behind_marker(&self, feeder: &Feeder, no: u64, marker: Option<u64>, records: u64) -> Result<()> {
        let Some(byte) = marker else { return Ok(()) };
        let (mut from, mut piece) = (byte + MARKER_BYTES as u64, vec![0; TAIL_BYTES]);
        loop {
            let left = usize::try_from(self.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
            let out = &mut piece[..left.min(TAIL_BYTES)];
            let count = self.read_at(feeder, no, from, out)?;
            if count == 0 {
                return Ok(());
            }
            if split::is_data(&out[..count]) {
                end_marker::tell(&feeder.run, self.file_no(), records + 1, byte);
                return Ok(());
            }
            from += count as u64;
        }
    }

    fn slice(&self, no: u64, buffers: Buffers) -> Slice {
        let end = self.borders.end_byte(no).min(self.bytes);
        Slice { no, start: self.borders.start_byte(no), end, buffers, ahead: Vec::new() }
    }

    /// Reads a range, and splits it from a state that it does not know.
    fn see(&self, feeder: &Feeder, slice: &mut Slice) -> Result<Sight> {
        let mut sight = Sight::new(State::INSIDE, 0);
        // Elsewhere each piece would be a request.
        let piece_bytes = if self.object.local() { PIECE_BYTES } else { usize::MAX };
        while self.read(feeder, slice, piece_bytes)? > 0 {
            sight.see(&feeder.run, &self.emitter, slice.buffers.data.filled());
        }
        Ok(sight)
    }

    /// Bytes at an offset, for as long as range `no` is wanted.
    fn read_at(&self, feeder: &Feeder, no: u64, offset: u64, out: &mut [u8]) -> Result<usize> {
        if let Some(known) = &self.known {
            let left =
                usize::try_from(offset).ok().and_then(|offset| known.get(offset..)).unwrap_or_default();
            let count = left.len().min(out.len());
            out[..count].copy_from_slice(&left[..count]);
            return Ok(count);
        }
        let unwanted = feeder.run.halt.until_unwanted(self.file_no(), no);
        feeder.handle.block_on(unless(unwanted, read_at(&feeder.run, &self.object, offset, out)))
    }

    /// Reads at most so many bytes more of a range; returns how many it had left.
    fn read(&self, feeder: &Feeder, slice: &mut Slice, bytes_max: usize) -> Result<usize> {
        let from = slice.start + slice.buffers.data.filled().len() as u64;
        // The buffer holds a whole chunk by the layout of the budget.
        let left = usize::try_from(slice.end.saturating_sub(from)).unwrap_or(0);
        if left == 0 {
            return Ok(0);
        }
        let wanted = left.min(bytes_max);
        // The record that crosses the end would take a second request.
        let behind = usize::try_from(self.bytes.saturating_sub(slice.end)).unwrap_or(usize::MAX);
        let more = if self.object.local() { 0 } else { behind.min(TAIL_BYTES) };
        let spare = slice.buffers.data.spare();
        let room = spare.len().min(wanted + more);
        let read = self.read_at(feeder, slice.no, from, &mut spare[..room])?;
        let count = read.min(wanted);
        slice.ahead = spare[count..read].to_vec();
        count_read(&feeder.run, self.file_no(), count as u64);
        slice.buffers.data.advance(count);
        Ok(count)
    }

    /// Finds this range's records, if any starts in it, and tells the next one how they end. `None`: what is
    /// before it has told that none does.
    fn find(&self, run: &Run, slice: &Slice, sight: Sight) -> Result<Option<(Sight, Option<Found>)>> {
        let bytes = slice.buffers.data.filled();
        let before = self.before.wait(slice.no, || self.wanted(run, slice.no))?;
        let (from, state) = match before {
            Before::State(state) => (0, state),
            Before::Record(byte) if byte < slice.end => {
                // Chunks are smaller than memory, so the difference fits.
                (usize::try_from(byte - slice.start).unwrap_or(usize::MAX), State::START)
            }
            Before::Record(_) | Before::Ended => {
                self.before.pass(slice.no + 1, before);
                return Ok(None);
            }
        };
        let sight = self.fit(run, bytes, (from, state), sight);
        let scan = &sight.scan;
        let after = if scan.end_marker.is_some() { Before::Ended } else { Before::State(scan.state) };
        self.before.pass(slice.no + 1, after);
        let found = found(&sight, bytes, (from, state));
        Ok(Some((sight, found)))
    }

    /// What was seen, if it is what is seen from there; else the bytes are seen once more.
    fn fit(&self, run: &Run, bytes: &[u8], (from, state): (usize, State), sight: Sight) -> Sight {
        let is_known =
            if from == 0 { Rules::is_as_inside(state, bytes) } else { sight.scan.first_border == Some(from) };
        if is_known {
            return sight;
        }
        let mut sight = Sight::new(state, from);
        sight.see(run, &self.emitter, bytes);
        sight
    }

    /// Reads on until the record that crosses the end of the range has ended.
    fn read_tail(&self, feeder: &Feeder, slice: &mut Slice, found: &Found) -> Result<End> {
        if let Some(end) = found.marker {
            // What precedes a marker on its line is a record.
            return Ok(End { end, records: u64::from(end > found.last_border) });
        }
        let mut state = found.state;
        let mut offset = slice.end;
        let ahead = std::mem::take(&mut slice.ahead);
        let mut ahead = ahead.as_slice();
        while !state.at_record_start() {
            let old = slice.buffers.data.filled().len();
            if offset >= self.bytes {
                return Ok(End { end: old, records: 1 });
            }
            let left = usize::try_from(self.bytes - offset).unwrap_or(usize::MAX);
            let room = self.make_room(feeder, slice, found, left.min(TAIL_BYTES))?;
            let out = &mut slice.buffers.data.spare()[..room];
            let count = if ahead.is_empty() {
                self.read_at(feeder, slice.no, offset, out)?
            } else {
                let (first, rest) = ahead.split_at(ahead.len().min(room));
                out[..first.len()].copy_from_slice(first);
                ahead = rest;
                first.len()
            };
            slice.buffers.data.advance(count);
            offset += count as u64;
            match self.emitter.rules.tail(state, &slice.buffers.data.filled()[old..]) {
                Tail::Border(border) => return Ok(End { end: old + border, records: 1 }),
                Tail::EndMarker(marker) => {
                    let end = old.saturating_add_signed(marker);
                    return Ok(End { end, records: u64::from(end > found.last_border) });
                }
                Tail::Unfinished(after) => state = after,
            }
        }
        Ok(End { end: slice.buffers.data.filled().len(), records: 0 })
    }

    /// Room for the record that crosses the end of the range. A record that needs the reserve waits until
    /// all ranges before it have ended theirs: none of them can then need it, while this one has it and
    /// waits for them.
    fn make_room(&self, feeder: &Feeder, slice: &mut Slice, found: &Found, more: usize) -> Result<usize> {
        let mut place = Place::default();
        if slice.buffers.data.is_full() {
            let before = self.records.wait(slice.no, || self.wanted(&feeder.run, slice.no))?;
            place.record = Some(before + found.records + 1);
            place.byte = Some(slice.start + found.last_border as u64);
        }
        let grow = feeder.run.budget.grow_as_read(&mut slice.buffers.data, more);
        feeder.handle.block_on(grow).map_err(|error| error.at(place))
    }
}

/// The records that start in a range of these bytes, seen from there. `None`: no record does.
fn found(sight: &Sight, bytes: &[u8], (from, state): (usize, State)) -> Option<Found> {
    let scan = &sight.scan;
    let starts_here = state.at_record_start() && from == sight.from;
    let (first, crossed) = if starts_here { (Some(from), 0) } else { (scan.first_border, 1) };
    // A border at the very end of the range starts the next range's first record.
    let first = first.filter(|first| *first < bytes.len())?;
    let marker = scan.end_marker.map(|marker| 0_usize.saturating_add_signed(marker));
    if marker.is_some_and(|marker| marker <= first) {
        return None;
    }
    let last_border = scan.last_border.unwrap_or(first);
    Some(Found { first, records: scan.records - crossed, last_border, state: scan.state, marker })
}
