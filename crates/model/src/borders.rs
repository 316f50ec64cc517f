//! Where the chunks of a file begin and end: by bytes and the plan alone, so that every run of a job cuts
//! alike.

use serde::{Deserialize, Serialize};

/// How a plan departs from chunks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taper {
    /// Between borders of a file that is read in order, whose end nobody knows beforehand.
    pub in_order_bytes: u64,
    /// The least between borders of files that are read in ranges: towards the end of the last one chunks
    /// become smaller, so that no session waits for long for the last one of another.
    pub least_bytes: u64,
    /// Those become half as large as soon as less than so many of a size are left: two for each session.
    pub share: u32,
    /// The files that sessions begin with are cut small at their beginning, so that none waits for long for
    /// its first chunk.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rises: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Taper {
    /// The sessions it was made for.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.share / 2
    }
}

/// From a size of chunks at the beginning to the next one. A chunk is read and split in a tenth of the time
/// that its COPY takes, so that the next one is ready in time.
const RISE: u64 = 4;

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

impl Step {
    /// Chunks of another size, behind so many of this one.
    fn behind(self, chunks: u64, chunk_bytes: u64) -> Step {
        Step {
            first_no: self.first_no + chunks,
            start_byte: self.start_byte + chunks * self.chunk_bytes,
            chunk_bytes,
        }
    }
}

impl Borders {
    /// All of one distance, which is at least 1.
    #[must_use]
    pub fn even(chunk_bytes: u64) -> Borders {
        Borders { steps: vec![Step { first_no: 0, start_byte: 0, chunk_bytes: chunk_bytes.max(1) }] }
    }

    /// Close at the beginning, for each session a chunk of each size, then of one distance.
    #[must_use]
    pub fn rising(chunk_bytes: u64, taper: Taper) -> Borders {
        let mut steps = Vec::new();
        let mut step = Step { first_no: 0, start_byte: 0, chunk_bytes: taper.least_bytes.max(1) };
        let chunks = u64::from(taper.sessions().max(1));
        while step.chunk_bytes <= chunk_bytes / 2 {
            steps.push(step);
            step = step.behind(chunks, step.chunk_bytes.saturating_mul(RISE));
        }
        steps.push(Step { chunk_bytes: chunk_bytes.max(1), ..step });
        Borders { steps }
    }

    /// Closer and closer towards `end_byte`.
    #[must_use]
    pub fn tapering(self, taper: Taper, end_byte: u64) -> Borders {
        let enough = |step: &Step| {
            let left = end_byte.saturating_sub(step.start_byte) / step.chunk_bytes;
            (left + 1).saturating_sub(u64::from(taper.share))
        };
        let (mut steps, mut step) = (Vec::new(), self.steps[0]);
        for next in &self.steps[1..] {
            if enough(&step) < next.first_no - step.first_no {
                break;
            }
            steps.push(step);
            step = *next;
        }
        while step.chunk_bytes / 2 >= taper.least_bytes.max(1) {
            let chunks = enough(&step);
            if chunks > 0 {
                steps.push(step);
            }
            step = step.behind(chunks, step.chunk_bytes / 2);
        }
        steps.push(step);
        Borders { steps }
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

    /// The sizes of the chunks up to `end_byte`, which follow one another without a gap.
    fn sizes(borders: &Borders, end_byte: u64) -> Vec<u64> {
        let (mut sizes, mut at) = (Vec::new(), 0);
        while at < end_byte {
            let no = sizes.len() as u64;
            let (start, end) = (borders.start_byte(no), borders.end_byte(no));
            assert_eq!(start, at, "{borders:?}");
            assert_eq!((borders.chunk_no(start), borders.chunk_no(end - 1)), (no, no));
            sizes.push(end - start);
            at = end;
        }
        sizes
    }

    const SIZES: [(u64, u64); 6] = [(64, 8), (64, 64), (64, 5), (1, 1), (100, 3), (8, 100)];

    #[test]
    fn towards_the_end_chunks_become_smaller_and_leave_no_gap() {
        for end_byte in (0..400).chain([1000, 4097, 1 << 20]) {
            for ((chunk_bytes, least_bytes), rises) in
                SIZES.into_iter().zip([false, true].into_iter().cycle())
            {
                let taper = Taper { in_order_bytes: 1, least_bytes, share: 8, rises };
                let begin =
                    if rises { Borders::rising(chunk_bytes, taper) } else { Borders::even(chunk_bytes) };
                let borders = begin.tapering(taper, end_byte);
                let (mut before, mut start, mut falls) = (0, 0, !rises);
                // Beyond the end too: a file may have grown since, and is refused only when it is read.
                for bytes in sizes(&borders, end_byte + 3 * chunk_bytes) {
                    assert!(bytes >= least_bytes.min(chunk_bytes) && bytes <= chunk_bytes, "{bytes}");
                    let is_least = bytes / 2 < least_bytes;
                    assert!(is_least || bytes * 8 <= end_byte - start, "{bytes} {start} of {end_byte}");
                    // Where they have become smaller once, they become no larger.
                    assert!(bytes <= before || start == 0 || !falls, "{bytes} behind {before}");
                    (start, before, falls) = (start + bytes, bytes, falls || bytes < before);
                }
            }
        }
    }

    #[test]
    fn at_the_beginning_chunks_become_larger_for_each_session() {
        let rising = |chunk_bytes, least_bytes, share| {
            let taper = Taper { in_order_bytes: 1, least_bytes, share, rises: true };
            sizes(&Borders::rising(chunk_bytes, taper), 200)
        };
        assert_eq!(rising(64, 4, 4), [4, 4, 16, 16, 64, 64, 64]);
        assert_eq!(rising(32, 4, 6)[..7], [4, 4, 4, 16, 16, 16, 32]);
        assert_eq!(rising(16, 4, 0)[..3], [4, 16, 16]);
        assert_eq!(rising(64, 64, 4), [64, 64, 64, 64]);
        let taper = Taper { in_order_bytes: 1, least_bytes: 4, share: 4, rises: true };
        let both = |end_byte| sizes(&Borders::rising(64, taper).tapering(taper, end_byte), end_byte);
        assert_eq!(
            both(400),
            [4, 4, 16, 16, 64, 64, 32, 32, 32, 32, 16, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4]
        );
        assert_eq!(both(40), [4, 4, 8, 4, 4, 4, 4, 4, 4]);
    }
}
