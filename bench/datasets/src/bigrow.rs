//! CSV of small rows with a huge one now and then, to see what a loader holds in memory.

use crate::Rows;
use crate::random::Random;
use crate::row::push_number;

/// Small rows between two huge ones: with 100 bytes each, about 200 MB.
const SMALL_ROWS: u64 = 2_000_000;
const SMALL_BYTES: usize = 90;

/// The rows: `id`, `body`.
#[derive(Debug)]
pub struct BigRow {
    random: Random,
    row: u64,
    big_bytes: usize,
}

impl BigRow {
    /// Rows of which the thousandth, and then one in two million, has a body of `big_bytes` bytes.
    #[must_use]
    pub fn new(seed: u64, big_bytes: usize) -> BigRow {
        BigRow { random: Random::new(seed, 103), row: 0, big_bytes }
    }
}

impl Rows for BigRow {
    fn header(&self) -> String {
        "id,body\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.row += 1;
        let big = self.row % SMALL_ROWS == 1_000;
        push_number(out, self.row);
        out.push(b',');
        // Eight letters repeated: the body's content does not matter, its length does.
        let word = self.random.draw().to_le_bytes().map(|byte| b'a' + byte % 26);
        let body_bytes = if big { self.big_bytes } else { SMALL_BYTES };
        out.extend(word.iter().cycle().take(body_bytes));
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    #[test]
    fn the_thousandth_row_is_huge() {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &mut BigRow::new(1, 100_000), Limit::Rows(1_001)).unwrap();
        let lengths: Vec<usize> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths[1_000], "1000,".len() + 100_000);
        assert!(lengths[1_001] < 100 && lengths[999] < 100);
    }
}
