//! Which records of a file were passed over, so that rows that were sent can be numbered as the records are.

use std::collections::BTreeSet;

/// Of so many the numbers are kept, some 2 MB a file (by the size of a node, not measured); behind more, no
/// row is numbered.
const PASSED_MAX: usize = 100_000;

/// Numbers of records that were not sent.
#[derive(Debug, Default)]
pub(super) struct Passed {
    numbers: BTreeSet<u64>,
    /// From here on some are missing.
    unknown_from: Option<u64>,
}

impl Passed {
    /// Chunks are mended side by side, and one may be mended twice.
    pub(super) fn add(&mut self, record: u64) {
        if self.numbers.len() < PASSED_MAX {
            self.numbers.insert(record);
        } else if !self.numbers.contains(&record) {
            self.unknown_from = Some(self.unknown_from.map_or(record, |from| from.min(record)));
        }
    }

    /// The numbers of these rows (ascending, from 0) of those that were sent behind the record `before`,
    /// where they are known.
    pub(super) fn numbers(&self, before: u64, rows: &[u64]) -> Vec<Option<u64>> {
        let mut passed = self.numbers.range(before + 1..).peekable();
        let mut first = before + 1;
        let number = |row: &u64| {
            while passed.next_if(|passed| **passed <= first + row).is_some() {
                first += 1;
            }
            Some(first + row).filter(|number| self.unknown_from.is_none_or(|from| *number < from))
        };
        rows.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_as_the_records_they_come_from() {
        let mut passed = Passed::default();
        [9, 1, 4, 5, 9].into_iter().for_each(|record| passed.add(record));
        let sent: Vec<u64> = (1..=12).filter(|record| ![1, 4, 5, 9].contains(record)).collect();
        for before in [0, 3, 4, 5, 8, 9] {
            let behind: Vec<Option<u64>> =
                sent.iter().filter(|record| **record > before).copied().map(Some).collect();
            let rows: Vec<u64> = (0..behind.len() as u64).collect();
            assert_eq!(passed.numbers(before, &rows), behind, "{before}");
            assert_eq!(passed.numbers(before, &rows[1..]), behind[1..], "{before}");
        }
    }

    #[test]
    fn behind_too_many_no_row_is_numbered() {
        let mut passed = Passed::default();
        (1..=PASSED_MAX as u64 + 1).for_each(|number| passed.add(2 * number));
        let last = PASSED_MAX as u64;
        assert_eq!(passed.numbers(0, &[0, last, last + 1]), [Some(1), Some(2 * last + 1), None]);
        passed.add(2);
        assert_eq!(passed.numbers(0, &[0, 1]), [Some(1), Some(3)]);
    }
}
