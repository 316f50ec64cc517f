//! What a sample of records says of all: how long their rows are, and whether their values are certain.

use super::BinaryEncoder;
use super::fields::Fields;
use super::out::Out;
use howdah_model::BinaryType;

/// A value in binary has no more than eight bytes for each of its own, and these.
const VALUE_BYTES: usize = 64;

/// What was seen of some records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Whole records looked at.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of their rows.
    pub sent_bytes: u64,
    /// Each field.
    pub columns: Vec<ColumnEstimate>,
}

/// The values of one field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnEstimate {
    /// How many are not NULL.
    pub values: u64,
    /// Their bytes, without quotes.
    pub bytes: u64,
    /// How many are not certain.
    pub uncertain: u64,
}

impl Estimate {
    /// Nothing seen yet of so many fields.
    pub fn of_fields(count: usize) -> Estimate {
        Estimate { columns: vec![ColumnEstimate::default(); count], ..Estimate::default() }
    }

    /// That of these records and of others with the same fields.
    pub fn add(&mut self, other: &Estimate) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.sent_bytes += other.sent_bytes;
        for (column, other) in self.columns.iter_mut().zip(&other.columns) {
            column.values += other.values;
            column.bytes += other.bytes;
            column.uncertain += other.uncertain;
        }
    }
}

impl BinaryEncoder {
    /// How records like these are written; one whose fields cannot be told apart ends the sample.
    pub fn estimate(&self, records: &[u8]) -> Estimate {
        let mut estimate = Estimate::of_fields(self.columns.len());
        let mut fields = Fields::new(&self.format, self.eol, records, 0);
        let (mut value, mut room) = (Vec::new(), vec![0; VALUE_BYTES + 8 * records.len()]);
        while !fields.is_at_end() && !fields.may_be_marker() {
            let mut record = Estimate::of_fields(self.columns.len());
            let before = fields.position();
            record.sent_bytes = size_of::<i16>() as u64;
            let last = self.columns.len() - 1;
            for (no, (of, column)) in self.columns.iter().zip(&mut record.columns).enumerate() {
                let Some(field) = fields.next(&mut value) else { return estimate };
                if field.ends_record != (no == last) {
                    return estimate;
                }
                record.sent_bytes += self.observe(of, field.value, column, &mut room);
            }
            record.records = 1;
            record.bytes = (fields.position() - before) as u64;
            estimate.add(&record);
        }
        estimate
    }

    /// Counts a value; returns the bytes it takes in a row, its length included.
    fn observe(
        &self,
        of: &BinaryType,
        value: Option<&[u8]>,
        column: &mut ColumnEstimate,
        room: &mut [u8],
    ) -> u64 {
        let length_bytes = size_of::<i32>() as u64;
        let Some(value) = value else { return length_bytes };
        column.values += 1;
        column.bytes += value.len() as u64;
        let mut out = Out::new(room);
        if self.value(of, value, &mut out).is_some() {
            return out.length() as u64;
        }
        column.uncertain += 1;
        length_bytes + value.len() as u64
    }
}
