//! What was mended, left out and read in another spelling, counted while a file passes.

use super::passed::Passed;
use super::records::At;
use howdah_model::Mend;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many places of records left out are kept; further ones are only counted.
const LEFT_OUT_SHOWN: usize = 100;

/// A record that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number among the records of the data, counted from 1.
    pub record: u64,
    /// The offset of its first byte in the plain file.
    pub byte: u64,
    /// What is wrong with it; no values.
    pub reason: String,
}

/// Counters of one file, shared by the reader that fills them and whoever shows them.
#[derive(Debug)]
pub struct Counts {
    mends: [AtomicU64; Mend::ALL.len()],
    comments: AtomicU64,
    values_read: Vec<AtomicU64>,
    left_out: Mutex<Vec<LeftOut>>,
    passed: Mutex<Passed>,
    other_table: Mutex<Option<At>>,
    end_marker: Mutex<Option<At>>,
}

impl Counts {
    /// All zero, for a file whose records have so many fields.
    pub fn new(fields: usize) -> Counts {
        Counts {
            mends: Default::default(),
            comments: AtomicU64::new(0),
            values_read: (0..fields).map(|_| AtomicU64::new(0)).collect(),
            left_out: Mutex::default(),
            passed: Mutex::default(),
            other_table: Mutex::default(),
            end_marker: Mutex::default(),
        }
    }

    /// How many records were mended so. One record may count under several kinds, under each once.
    pub fn mended(&self, mend: Mend) -> u64 {
        self.mends[mend as usize].load(Relaxed)
    }

    /// How many comments were passed over.
    pub fn comments(&self) -> u64 {
        self.comments.load(Relaxed)
    }

    /// How many values of this field of the file, counted from 0, were rewritten by its reading.
    pub fn values_read(&self, field_no: usize) -> u64 {
        self.values_read.get(field_no).map_or(0, |count| count.load(Relaxed))
    }

    /// The first records that were left out, in the order of the file.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.lock().clone()
    }

    /// Number (from 1) and first byte of the record with which another table begins. Where it begins, the
    /// data ends.
    pub fn other_table(&self) -> Option<(u64, u64)> {
        self.other_table.lock().map(|at| (at.record, at.byte))
    }

    pub(super) fn set_other_table(&self, at: At) {
        *self.other_table.lock() = Some(at);
    }

    /// Number (from 1) and first byte of the line `\.` which ends the data though more follows.
    pub fn end_marker(&self) -> Option<(u64, u64)> {
        self.end_marker.lock().map(|at| (at.record, at.byte))
    }

    pub(super) fn set_end_marker(&self, at: At) {
        *self.end_marker.lock() = Some(at);
    }

    pub(super) fn add_mends(&self, mends: &[Mend]) {
        for mend in mends {
            self.mends[*mend as usize].fetch_add(1, Relaxed);
        }
    }

    pub(super) fn add_comment(&self) {
        self.comments.fetch_add(1, Relaxed);
    }

    pub(super) fn add_values_read(&self, field_no: usize, values: u64) {
        if let Some(count) = self.values_read.get(field_no) {
            count.fetch_add(values, Relaxed);
        }
    }

    /// The numbers in the file of these rows (ascending, from 0) of those that were sent behind its record
    /// `before`; `None` where more was passed over than is noted.
    pub fn numbers(&self, before: u64, rows: &[u64]) -> Vec<Option<u64>> {
        self.passed.lock().numbers(before, rows)
    }

    pub(super) fn add_blank(&self, record: u64) {
        self.add_mends(&[Mend::BlankRow]);
        self.passed.lock().add(record);
    }

    pub(super) fn add_left_out(&self, record: u64, byte: u64, reason: &str) {
        self.add_mends(&[Mend::LeftOut]);
        self.passed.lock().add(record);
        let mut places = self.left_out.lock();
        if places.len() < LEFT_OUT_SHOWN {
            places.push(LeftOut { record, byte, reason: reason.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hundred_places_are_kept_and_all_are_counted() {
        let counts = Counts::new(2);
        for record in 1..=250 {
            counts.add_left_out(record, record * 10, "expected 2 fields, got 3");
        }
        assert_eq!(counts.mended(Mend::LeftOut), 250);
        assert_eq!(counts.left_out().len(), LEFT_OUT_SHOWN);
        assert_eq!((counts.left_out()[99].record, counts.left_out()[99].byte), (100, 1000));
        assert_eq!((counts.values_read(1), counts.values_read(7)), (0, 0));
    }
}
