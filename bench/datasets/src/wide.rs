//! CSV with many short columns: a line of small numbers, one field in four empty.

use crate::Rows;
use crate::random::Random;
use crate::row::{end_line, push_number};

/// The rows: `c1` to `cN`.
#[derive(Debug)]
pub struct Wide {
    random: Random,
    columns: u32,
}

impl Wide {
    /// At least one column; PostgreSQL takes at most 1,600.
    #[must_use]
    pub fn new(seed: u64, columns: u32) -> Wide {
        Wide { random: Random::new(seed, 102), columns: columns.max(1) }
    }
}

impl Rows for Wide {
    fn header(&self) -> String {
        let names: Vec<String> = (1..=self.columns).map(|column| format!("c{column}")).collect();
        names.join(",") + "\n"
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.columns {
            if !self.random.percent(25) {
                push_number(out, u64::from(self.random.below(100_000)));
            }
            out.push(b',');
        }
        end_line(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    #[test]
    fn every_row_has_all_columns() {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &mut Wide::new(1, 1_600), Limit::Rows(10)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 11);
        assert!(text.lines().all(|line| line.split(',').count() == 1_600));
    }
}
