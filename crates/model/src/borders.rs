//! Where the chunks of a file begin and end: by bytes and the plan alone, so that every run of a job cuts alike.

use serde::{Deserialize, Serialize};

/// How a plan departs from chunks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taper {
    /// Between borders of a file that is read in order, whose end nobody knows beforehand.
    pub in_order_bytes: u64,
    /// The least between borders of files that are read in ranges: towards the end of the last one chunks become smaller, so
    /// that no session waits for long for the last one of another.
    pub least_bytes: u64,
    /// Those become half as large as soon as less than so many of a size are left.
    pub share: u32,
}

/// The borders of one file. Chunk `k` holds the records that start in `[start_byte(k), start_byte(k + 1))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Borders {
    /// In order; never empty. The last one has no end.
    steps: Vec<Step>,
}

/// Chunks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    first_no: u64,
    start_byte: u64,
    chunk_bytes: u64,
}

impl Borders {
    /// All of one distance, which is at least 1.
    #[must_use]
    pub fn even(chunk_bytes: u64) -> Borders {
        Borders { steps: vec![Step { first_no: 0, start_byte: 0, chunk_bytes: chunk_bytes.max(1) }] }
    }

    /// Closer and closer towards `end_byte`, from `chunk_bytes` down.
    #[must_use]
    pub fn tapering(chunk_bytes: u64, taper: Taper, end_byte: u64) -> Borders {
        let mut borders = Borders::even(chunk_bytes);
        let Some(mut step) = borders.steps.pop() else { return borders };
        while step.chunk_bytes / 2 >= taper.least_bytes.max(1) {
            let left = end_byte.saturating_sub(step.start_byte) / step.chunk_bytes;
            let chunks = (left + 1).saturating_sub(u64::from(taper.share));
            if chunks > 0 {
                borders.steps.push(step);
            }
            step.first_no += chunks;
            step.start_byte += chunks * step.chunk_bytes;
            step.chunk_bytes /= 2;
        }
        borders.steps.push(step);
        borders
    }

    /// Where the chunk of this number begins.
    #[must_use]
    pub fn start_byte(&self, chunk_no: u64) -> u64 {
        let step = self.step(|step| step.first_no <= chunk_no);
        step.start_byte.saturating_add((chunk_no - step.first_no).saturating_mul(step.chunk_bytes))
    }

    /// Where it ends, and the next one begins.
    #[must_use]
    pub fn end_byte(&self, chunk_no: u64) -> u64 {
        self.start_byte(chunk_no.saturating_add(1))
    }

    /// The number of the chunk that a record starting at this byte belongs to.
    #[must_use]
    pub fn chunk_no(&self, byte: u64) -> u64 {
        let step = self.step(|step| step.start_byte <= byte);
        step.first_no + (byte - step.start_byte) / step.chunk_bytes
    }

    /// How many chunks it takes up to this byte.
    #[must_use]
    pub fn chunks(&self, end_byte: u64) -> u64 {
        end_byte.checked_sub(1).map_or(0, |last| self.chunk_no(last) + 1)
    }

    fn step(&self, begins: impl Fn(&Step) -> bool) -> Step {
        self.steps.iter().copied().rfind(begins).unwrap_or(self.steps[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_of_one_distance_are_multiples_of_it() {
        let borders = Borders::even(10);
        assert_eq!((borders.start_byte(0), borders.start_byte(7), borders.end_byte(7)), (0, 70, 80));
        assert_eq!((borders.chunk_no(0), borders.chunk_no(69), borders.chunk_no(70)), (0, 6, 7));
        assert_eq!(
            (borders.chunks(0), borders.chunks(1), borders.chunks(10), borders.chunks(11)),
            (0, 1, 1, 2)
        );
    }

    #[test]
    fn towards_the_end_chunks_become_smaller_and_leave_no_gap() {
        for end_byte in (0..400).chain([1000, 4097, 1 << 20]) {
            for (chunk_bytes, least_bytes) in [(64, 8), (64, 64), (64, 5), (1, 1), (100, 3), (8, 100)] {
                let taper = Taper { in_order_bytes: 1, least_bytes, share: 8 };
                let borders = Borders::tapering(chunk_bytes, taper, end_byte);
                let (mut no, mut at, mut before) = (0, 0, chunk_bytes);
                // Beyond the end too: a file may have grown since, and is refused only when it is read.
                while at < end_byte + 3 * chunk_bytes {
                    let (start, end) = (borders.start_byte(no), borders.end_byte(no));
                    assert_eq!(start, at, "{end_byte} {chunk_bytes} {least_bytes}");
                    let bytes = end - start;
                    assert!(bytes <= before && bytes >= least_bytes.min(chunk_bytes), "{bytes}");
                    let is_least = bytes / 2 < least_bytes;
                    assert!(is_least || bytes * 8 <= end_byte - start, "{bytes} {start} of {end_byte}");
                    assert_eq!((borders.chunk_no(start), borders.chunk_no(end - 1)), (no, no));
                    (no, at, before) = (no + 1, end, bytes);
                }
            }
        }
    }
}
