//! What it costs client and server together to move a record, as COPY text and in COPY's binary format.
//!
//! Measured by `bench/encode_costs.py`: PostgreSQL 15, client and server on two cores of an AMD EPYC, eight
//! columns of one type, one session, medians of three. The figures hold what both forms cost alike, the row
//! itself, its pages and its WAL, so their differences say more than their ratios. Binary is no gain by
//! itself: a field has four bytes of length, and what reading `17` costs the server hardly shows. Dates,
//! timestamps, fractions and uuids it does save.

use howdah_model::BinaryType;
use howdah_transcode::encode::{ColumnEstimate, Estimate};

/// Of the cost as text, so much must be saved. Where the figures promise 8 % (TPC-H's lineitem) and 6 % (four
/// integers, two words, a date), two sessions gained 19 and 6 % of the time and 20 and 9 % of the CPU time
/// (docs/decisions/2026-11-22-binary.md).
const GAIN_MIN: f64 = 0.05;

/// `pg_type.oid` of `char(n)`. Its values are written as those of `text` are, but the server pads them, and
/// its receive function does so at greater cost than its input function.
const BPCHAR: u32 = 1042;

/// CPU nanoseconds for a record, client and server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    pub(super) text_ns: f64,
    pub(super) binary_ns: f64,
}

/// Binary saves enough to be measured.
pub(super) fn is_worth_it(costs: &Costs) -> bool {
    costs.binary_ns < costs.text_ns * (1.0 - GAIN_MIN)
}

/// The costs of records like those of the sample; without a sample all values are taken for short ones.
pub(super) fn of_record(types: &[BinaryType], type_oids: &[u32], sample: &Estimate) -> Costs {
    let mut costs = Costs { text_ns: 0.0, binary_ns: 0.0 };
    for ((of, oid), column) in types.iter().zip(type_oids).zip(&sample.columns) {
        let ColumnEstimate { values, bytes, .. } = *column;
        let share = if sample.records == 0 { 1.0 } else { values as f64 / sample.records as f64 };
        let width_bytes = if values == 0 { 8.0 } else { bytes as f64 / values as f64 };
        let (text_ns, binary_ns) = of_value(of, *oid, width_bytes);
        costs.text_ns += share * text_ns;
        costs.binary_ns += share * binary_ns;
    }
    costs
}

/// As text and as binary, for a value that is not NULL.
fn of_value(of: &BinaryType, oid: u32, width_bytes: f64) -> (f64, f64) {
    match of {
        // The slope between values of 8 and of 64 bytes; beyond, nothing more is taken to be gained.
        BinaryType::Text | BinaryType::Name | BinaryType::Char => {
            let (measured, beyond) = (width_bytes.min(64.0), 5.4 * (width_bytes - 64.0).max(0.0));
            let (text_ns, binary_ns) = if oid == BPCHAR { (86.0, 122.0) } else { (67.0, 82.0) };
            (text_ns + 5.4 * measured + beyond, binary_ns + 4.7 * measured + beyond)
        }
        BinaryType::Bool => (62.0, 71.0),
        BinaryType::Int2 => (62.0, 77.0),
        BinaryType::Int4 | BinaryType::Oid => (108.0, 114.0),
        BinaryType::Int8 => (132.0, 124.0),
        BinaryType::Numeric => (163.0, 161.0),
        BinaryType::Float4 => (134.0, 103.0),
        BinaryType::Float8 => (211.0, 153.0),
        BinaryType::Date => (201.0, 105.0),
        BinaryType::Time | BinaryType::TimeTz => (163.0, 104.0),
        BinaryType::Timestamp => (305.0, 159.0),
        BinaryType::TimestampTz => (331.0, 236.0),
        BinaryType::Interval => (245.0, 217.0),
        BinaryType::Uuid => (463.0, 204.0),
        BinaryType::Inet | BinaryType::Cidr | BinaryType::Macaddr | BinaryType::Macaddr8 => (164.0, 163.0),
        BinaryType::Jsonb => (690.0, 750.0),
        BinaryType::Bytea | BinaryType::Bit => (222.0, 221.0),
        BinaryType::Array { .. } | BinaryType::Range { .. } => (305.0, 346.0),
        // A point in hexadecimal digits; in words twice that is saved.
        BinaryType::Geometry => (594.0, 467.0),
        // Not measured, so nothing is taken to be gained.
        BinaryType::Vector => (222.0, 222.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth_it(types: &[BinaryType], width_bytes: u64) -> bool {
        let column = ColumnEstimate { values: 1, bytes: width_bytes, uncertain: 0 };
        let sample = Estimate { records: 1, columns: vec![column; types.len()], ..Estimate::default() };
        is_worth_it(&of_record(types, &vec![0; types.len()], &sample))
    }

    #[test]
    fn times_are_worth_it_and_short_words_and_numbers_are_not() {
        use BinaryType::{Date, Int4, Numeric, Text, Timestamp};
        assert!(worth_it(&[Int4, Numeric, Date, Timestamp], 10));
        assert!(!worth_it(&[Text, Text, Int4, Int4], 8));
    }

    #[test]
    fn padded_words_cost_more_in_binary_than_others() {
        let column = ColumnEstimate { values: 1, bytes: 5, uncertain: 0 };
        let sample = Estimate { records: 1, columns: vec![column], ..Estimate::default() };
        let more = |oid| {
            let costs = of_record(&[BinaryType::Text], &[oid], &sample);
            costs.binary_ns - costs.text_ns
        };
        // As measured for char(10).
        assert!((more(BPCHAR) - 33.0).abs() < 1.0 && more(BPCHAR) > 2.0 * more(25));
    }

    #[test]
    fn a_column_of_nulls_decides_nothing() {
        let empty = ColumnEstimate { values: 0, bytes: 0, uncertain: 0 };
        let sample = Estimate { records: 9, columns: vec![empty], ..Estimate::default() };
        let costs = of_record(&[BinaryType::Uuid], &[2950], &sample);
        assert_eq!(costs, Costs { text_ns: 0.0, binary_ns: 0.0 });
    }
}
