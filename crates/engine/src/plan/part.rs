//! A file that can be read anywhere, from one of its tables on: the sample of it, and where the next table begins.
//!
//! The sample holds little of a long file. When its middle or its tail does not look like the first table, the border
//! is looked for by halving: some twenty small reads in a file of any length.

use super::finding::{Found, Windows, found_in};
use howdah_model::Result;
use howdah_source::Object;
use howdah_transcode::dialect::{Finding, Given, TABLE_END_BYTES, TableEnd, WINDOW_BYTES};

/// Bytes looked at to tell to which table they belong: some hundred records of most files.
const LOOK_BYTES: u64 = 16 << 10;

const WINDOW: u64 = WINDOW_BYTES as u64;

/// The bytes of a file from one on, which are not compressed.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) object: &'a Object,
    pub(super) start_byte: u64,
}

impl Part<'_> {
    /// Finds how it is written. Of `head`, its first bytes, more are read if need be; with `all` they are all there
    /// are. Places in what is found are counted from the beginning of the part. What belongs to another table is left
    /// out of the sample.
    pub(super) async fn find(&self, head: Vec<u8>, all: bool, given: Given) -> Result<Found> {
        let stored_bytes = self.object.stored_bytes().map(|bytes| bytes.saturating_sub(self.start_byte));
        let size_bytes = stored_bytes.unwrap_or(head.len() as u64);
        let head = if all || head.len() >= WINDOW_BYTES {
            head
        } else {
            self.read(0, WINDOW.min(size_bytes)).await?
        };
        let windows = self.windows(head.clone(), all, size_bytes).await?;
        let whole = windows.whole;
        let later = [windows.middle.clone(), windows.tail.clone()];
        let found = found_in(windows, given.clone()).await?;
        if whole || found.finding.second_table.is_some() {
            return Ok(found);
        }
        let Some(byte) = self.other_table(&found.finding, size_bytes, &later).await? else {
            return Ok(found);
        };
        let windows = self.windows(head, false, byte).await?;
        let mut found = found_in(windows, given).await?;
        found.finding.end_before(byte);
        Ok(found)
    }

    /// The byte at which another table begins, its title included. `middle` and `tail` are those of the sample, which
    /// is not the whole part.
    async fn other_table(
        &self,
        finding: &Finding,
        size_bytes: u64,
        [middle, tail]: &[Vec<u8>; 2],
    ) -> Result<Option<u64>> {
        let end = TableEnd::of(finding);
        let tail_start = size_bytes.saturating_sub(tail.len() as u64);
        let behind = if end.is_before(finding, middle) {
            size_bytes / 2
        } else if end.is_before(finding, tail) {
            tail_start
        } else {
            return Ok(end.find(finding, tail, tail_start, true));
        };
        // The table holds the records at `within`, and none of those at `behind`.
        let (mut within, mut behind) = (finding.plain.start_byte, behind);
        while behind.saturating_sub(within) > WINDOW {
            let between = (within + (behind - within) / 2) & !1;
            let bytes = self.read(between, between + LOOK_BYTES).await?;
            if end.is_before(finding, &bytes) { behind = between } else { within = between }
        }
        let stop = (behind + WINDOW + TABLE_END_BYTES as u64).min(size_bytes);
        let bytes = self.read(within, stop).await?;
        Ok(end.find(finding, &bytes, within, stop == size_bytes))
    }

    /// The sample of the first `bytes`, of which the head was read. Windows never overlap.
    async fn windows(&self, mut head: Vec<u8>, whole: bool, bytes: u64) -> Result<Windows> {
        head.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        if whole || bytes <= WINDOW {
            let size_bytes = Some(head.len() as u64);
            return Ok(Windows { head, middle: Vec::new(), tail: Vec::new(), whole: true, size_bytes });
        }
        if bytes <= 3 * WINDOW {
            let rest = self.read(head.len() as u64, bytes).await?;
            let head = [head, rest].concat();
            let size_bytes = Some(head.len() as u64);
            return Ok(Windows { head, middle: Vec::new(), tail: Vec::new(), whole: true, size_bytes });
        }
        let tail_start = bytes.saturating_sub(WINDOW).max(WINDOW);
        // Even, so that characters of two bytes stay whole.
        let middle_start = (bytes / 2).saturating_sub(WINDOW / 2).max(WINDOW) & !1;
        let tail = self.read(tail_start & !1, bytes).await?;
        let middle_end = (middle_start + WINDOW).min(tail_start & !1);
        let middle = self.read(middle_start, middle_end).await?;
        Ok(Windows { head, middle, tail, whole: false, size_bytes: Some(bytes) })
    }

    /// The bytes from `start` to `end`, fewer where the file ends before.
    pub(super) async fn read(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        if !bytes.is_empty() {
            let count = self.object.read_at(self.start_byte + start, &mut bytes).await?;
            bytes.truncate(count);
        }
        Ok(bytes)
    }
}
