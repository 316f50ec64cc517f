//! Splits records and looks at them piece by piece, while their bytes are still in the cache.
//!
//! A chunk is larger than the caches near a core. Enters: a buffer that fills. Leaves: where its records end,
//! and the first of them that contradicts the dialect.

use super::emit::Emitter;
use crate::pipeline::Run;
use howdah_model::Stage;
use howdah_transcode::inspect::Oddity;
use howdah_transcode::split::{Scan, State};
use std::ops::Range;

/// Bytes that are split and looked at in one go, so that they stay in the second-level cache. 64 and 128 kB
/// took as long, with more calls.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// What has been seen of the bytes in a buffer. Offsets count from the buffer's beginning.
pub(super) struct Sight {
    pub(super) scan: Scan,
    /// Where the scan began.
    pub(super) from: usize,
    scanned: usize,
    /// Whole records that have been looked at.
    looked: Option<Range<usize>>,
    is_odd: bool,
}

impl Sight {
    /// Of bytes that begin at `from`, in this state.
    pub(super) fn new(state: State, from: usize) -> Sight {
        let looked = state.at_record_start().then_some(from..from);
        Sight { scan: Scan::new(state), from, scanned: from, looked, is_odd: false }
    }

    /// Goes on to the end of the buffer, or to an end-of-data marker.
    pub(super) fn see(&mut self, run: &Run, emitter: &Emitter, buffer: &[u8]) {
        while self.scanned < buffer.len() && self.scan.end_marker.is_none() {
            let end = buffer.len().min(self.scanned + PIECE_BYTES);
            let piece = &buffer[self.scanned..end];
            let next = run.tally.time(Stage::Split, || emitter.rules.scan(self.scan.state, piece));
            self.scan.append(&next, self.scanned);
            self.scanned = end;
            self.look(run, emitter, buffer);
        }
    }

    /// Looks at the records that have ended since. Behind an odd one there is no need to: all are looked at
    /// once more.
    fn look(&mut self, run: &Run, emitter: &Emitter, buffer: &[u8]) {
        let (Some(first), Some(last)) = (self.scan.first_border, self.scan.last_border) else { return };
        let looked = self.looked.get_or_insert(first..first);
        self.is_odd |= !self.is_odd && !emitter.is_as_told(run, &buffer[looked.end..last]);
        looked.end = last;
    }

    /// The first odd one among these records, which may begin before what was seen and end behind it.
    pub(super) fn oddity(
        &self,
        run: &Run,
        emitter: &Emitter,
        buffer: &[u8],
        records: Range<usize>,
    ) -> Option<Oddity> {
        let looked = self.looked.clone().unwrap_or(records.start..records.start);
        let before = records.start..looked.start.clamp(records.start, records.end);
        let behind = looked.end.clamp(records.start, records.end)..records.end;
        let is_as_told = |range: Range<usize>| emitter.is_as_told(run, &buffer[range]);
        if !self.is_odd && is_as_told(before) && is_as_told(behind) {
            return None;
        }
        emitter.look(run, &buffer[records])
    }
}
