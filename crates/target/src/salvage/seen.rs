//! Keys of rows that were sent before, as far as a fixed amount of memory can tell.
//!
//! A Bloom filter of words, as Putze, Sanders and Singler describe (Cache-, Hash- and Space-Efficient Bloom
//! Filters, 2007): the bits of a key stand in one word, so that it takes one access to memory. What it has
//! not seen was not added. Of four million keys it takes one in a hundred for seen that was not, of sixteen
//! million one in six; what it takes for seen is looked up, so that a wrong answer costs time only. Keys that
//! others store meanwhile it does not know: it is believed only while it would have told all rows of the last
//! chunk about which the server was asked.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use twox_hash::XxHash3_64;

/// 8 MiB.
const WORDS: usize = 1 << 20;
/// Bits of a key.
const KEY_BITS: u32 = 4;
/// So many words are looked at before the first of them is changed: they come from memory side by side. A
/// change, which no other read may pass, would wait for each of them alone.
const AT_ONCE: usize = 16;

/// The keys that a load has sent, of all its tables, so that it takes the memory once; none before the first
/// key.
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
}

impl Seen {
    /// The same bytes are another key in another table, or as another of its keys.
    pub(super) fn new(sent: &Arc<SentKeys>, table_oid: u32, key_no: usize) -> Seen {
        let key = u64::from(table_oid) << 32 | key_no as u64;
        Seen { sent: Arc::clone(sent), seed: sent.seed ^ key }
    }

    /// Of a key's bytes.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.seed, key)
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
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_seen_and_little_else() {
        let sent = Arc::default();
        let (seen, other_table, other_key) =
            (Seen::new(&sent, 1, 0), Seen::new(&sent, 2, 0), Seen::new(&sent, 1, 1));
        let hash_all = |seen: &Seen, keys: std::ops::Range<u64>| -> Vec<u64> {
            keys.map(|key| seen.hash(&key.to_be_bytes())).collect()
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
        assert!(count(&other_key, 0..100_000) < 2_000);
    }

    #[test]
    fn a_key_is_seen_by_the_next_even_among_those_looked_at_together() {
        let (seen, mut places) = (Seen::new(&Arc::default(), 1, 0), Vec::new());
        let hashes: Vec<u64> = (0..40).map(|no| XxHash3_64::oneshot(&[no / 2])).collect();
        seen.add_all(&hashes, |no| places.push(no));
        assert_eq!(places, (1..40).step_by(2).collect::<Vec<_>>());
    }
}
