//! A small random number generator whose numbers never change between versions of a library.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014): a seed enters, a stream of 64-bit numbers leaves. Good enough
//! for made-up data, useless for secrets.

/// The generator's state.
#[derive(Debug, Clone)]
pub struct Random(u64);

/// SplitMix64's output function, also a hash of one number.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// A stream of its own for every pair of seed and `stream`, so that one table's rows do not depend on
    /// which other tables are made.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(mix(seed ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, evenly spread (to within `limit` / 2^32); 0 when `limit` is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        let high = self.draw() >> 32;
        // The product is below limit * 2^32, so the shifted value is below `limit` and fits.
        ((high * u64::from(limit)) >> 32) as u32
    }

    /// A number below `limit` that prefers small ones: the square of an even draw.
    pub fn skewed(&mut self, limit: u32) -> u32 {
        let first = self.below(limit);
        let share = self.draw() >> 32;
        ((u64::from(first) * share) >> 32) as u32
    }

    /// True in `percent` of the draws.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of `items`; they must not be empty.
    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len() as u32) as usize]
    }

    /// An index drawn by weight.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        weights.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(1, 2);
        let first: Vec<u64> = (0..3).map(|_| random.draw()).collect();
        let mut again = Random::new(1, 2);
        assert_eq!(first, (0..3).map(|_| again.draw()).collect::<Vec<_>>());
        assert_ne!(first[0], Random::new(1, 3).draw());
        assert_ne!(first[0], Random::new(2, 2).draw());
    }

    #[test]
    fn weights_are_kept_to_within_a_percent() {
        let mut random = Random::new(7, 0);
        let mut hits = [0_u32; 3];
        for _ in 0..100_000 {
            hits[random.weighted(&[1, 2, 7])] += 1;
        }
        assert!(hits[0].abs_diff(10_000) < 1_000, "{hits:?}");
        assert!(hits[2].abs_diff(70_000) < 1_000, "{hits:?}");
    }
}
