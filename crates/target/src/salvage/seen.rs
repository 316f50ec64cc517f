//! Keys of rows that were sent before, as far as a fixed amount of memory can tell.
//!
//! A Bloom filter of words, as Putze, Sanders and Singler describe (Cache-, Hash- and Space-Efficient Bloom Filters, 2007): the
//! bits of a key stand in one word, so that it takes one access to memory. What it has not seen was not added. Of four
//! million keys it takes one in a hundred for seen that was not, of sixteen million one in six; what it takes for seen is looked up, so
//! that a wrong answer costs time only. Keys that were there before the load, or that others store, it does not know: it is
//! believed only while it would have told all rows of the last chunk about which the server was asked.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// 8 MiB.
const WORDS: usize = 1 << 20;
/// Bits of a key.
const KEY_BITS: u32 = 4;
/// So many words are looked at before the first of them is changed: they come from memory side by side. A change, which
/// no other read may pass, would wait for each of them alone.
const AT_ONCE: usize = 16;

/// The keys that a load has sent, of all its tables, so that it takes the memory once; none before the first key.
pub struct SentKeys {
    /// Nobody can choose keys that look alike.
    seed: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Default for SentKeys {
    fn default() -> SentKeys {
        SentKeys { seed: fastrand::u64(..), words: OnceLock::new() }
    }
}

/// Those of one unique key.
pub(super) struct Seen {
    sent: Arc<SentKeys>,
    seed: u64,
    tells: AtomicBool,
}

impl Seen {
    /// Keys of this table are others than the same bytes of another.
    pub(super) fn new(sent: &Arc<SentKeys>, table_oid: u32) -> Seen {
        Seen { sent: Arc::clone(sent), seed: sent.seed ^ u64::from(table_oid), tells: AtomicBool::new(false) }
    }

    /// For the hashes of the keys.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Adds keys by their hashes, and tells the places of those that may have been added before.
    pub(super) fn add_all(&self, hashes: &[u64], mut tell: impl FnMut(usize)) {
        let words = || std::iter::repeat_with(AtomicU64::default).take(WORDS).collect();
        let words = self.sent.words.get_or_init(words);
        let word = |hash: u64| &words[(hash >> 44) as usize % WORDS];
        for (first, some) in (0..).step_by(AT_ONCE).zip(hashes.chunks(AT_ONCE)) {
            let mut before = [0; AT_ONCE];
            before.iter_mut().zip(some).for_each(|(before, hash)| *before = word(*hash).load(Relaxed));
            for (no, (before, hash)) in (first..).zip(before.iter().zip(some)) {
                let bits = (0..KEY_BITS).fold(0, |bits, no| bits | 1 << (hash >> (no * 6) & 63));
                // A bit that is set stays so, and one that was not may be by now.
                if before & bits == bits || word(*hash).fetch_or(bits, Relaxed) & bits == bits {
                    tell(no);
                }
            }
        }
    }

    /// Rows whose keys were not seen need not be asked about.
    pub(super) fn tells(&self) -> bool {
        self.tells.load(Relaxed)
    }

    /// It would, or would not, have told which rows the server does not take.
    pub(super) fn set_tells(&self, tells: bool) {
        self.tells.store(tells, Relaxed);
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("tells", &self.tells).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twox_hash::XxHash3_64;

    #[test]
    fn what_was_added_is_seen_and_little_else() {
        let sent = Arc::default();
        let (seen, other_table) = (Seen::new(&sent, 1), Seen::new(&sent, 2));
        let hash_all = |seen: &Seen, keys: std::ops::Range<u64>| -> Vec<u64> {
            keys.map(|key| XxHash3_64::oneshot_with_seed(seen.seed(), &key.to_be_bytes())).collect()
        };
        let count = |seen: &Seen, keys: std::ops::Range<u64>| {
            let (first, mut places) = (keys.start, Vec::new());
            seen.add_all(&hash_all(seen, keys), |no| places.push(first + no as u64));
            assert!(places.is_sorted());
            places.len()
        };
        assert!(count(&seen, 0..4_000_000) < 20_000);
        assert_eq!(count(&seen, 0..4_000_000), 4_000_000);
        assert_eq!(count(&seen, 7..50), 43);
        assert!(count(&seen, 4_000_000..4_100_000) < 2_000);
        assert!(count(&other_table, 0..100_000) < 2_000);
    }

    #[test]
    fn a_key_is_seen_by_the_next_even_among_those_looked_at_together() {
        let (seen, mut places) = (Seen::new(&Arc::default(), 1), Vec::new());
        let hashes: Vec<u64> = (0..40).map(|no| XxHash3_64::oneshot(&[no / 2])).collect();
        seen.add_all(&hashes, |no| places.push(no));
        assert_eq!(places, (1..40).step_by(2).collect::<Vec<_>>());
    }
}
