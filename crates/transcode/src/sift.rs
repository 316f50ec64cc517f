//! What is wrong with a record, as far as it can be told without asking the server.
//!
//! Enters: one record and the types of its columns. Leaves: the reason for which the server's COPY is certain to refuse
//! it (a wrong number of fields, bytes that are no characters), the values that only the server can read, or
//! nothing. Values that COPY would take are never called wrong: PostgreSQL's `copyfromparse.c` is the measure.

use crate::encode::BinaryEncoder;
use crate::header::field_behind;
use crate::split::{Rules, State, Tail};
use howdah_model::{Aside, BinaryType, Doubt, Eol, Error, ErrorKind, Format, Place};
use std::ops::Range;

/// `bad_copy_file_format` (PostgreSQL documentation, appendix A).
const BAD_FORMAT: &str = "22P04";
/// `character_not_in_repertoire`.
const NO_CHARACTER: &str = "22021";

/// Looks at records of one kind of file.
#[derive(Debug, Clone)]
pub struct Sifter {
    format: Format,
    rules: Rules,
    encoder: BinaryEncoder,
    /// What the fields fill.
    columns: Vec<String>,
}

impl Sifter {
    /// For records of this format whose fields fill `columns` of these types, in a session with this TimeZone. `None`
    /// where the format says what only the server can carry out.
    pub fn new(
        (format, eol, rules): (&Format, Option<Eol>, &Rules),
        columns: Vec<String>,
        types: &[BinaryType],
        time_zone: &str,
    ) -> Option<Sifter> {
        let encoder = BinaryEncoder::new(format, eol, types, time_zone)?;
        Some(Sifter { format: format.clone(), rules: rules.clone(), encoder, columns })
    }

    /// What there is to say of one record of a chunk, at `range` of its bytes.
    pub fn aside(&self, bytes: &[u8], row: u64, range: Range<usize>) -> Aside {
        let doubt = bytes.get(range.clone()).and_then(|record| self.doubt(record));
        Aside { row, range, doubt: doubt.unwrap_or(Doubt::Unknown) }
    }

    /// The records that are not certain to be readable, of a whole chunk.
    pub fn all(&self, bytes: &[u8]) -> Vec<Aside> {
        let (mut found, mut start, mut row) = (Vec::new(), 0, 0);
        while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let end = match self.rules.tail(State::START, rest) {
                Tail::Border(end) => start + end,
                Tail::Unfinished(_) => bytes.len(),
                // What stands behind it is no data.
                Tail::EndMarker(_) => break,
            };
            if let Some(doubt) = self.doubt(&bytes[start..end]) {
                found.push(Aside { row, range: start..end, doubt });
            }
            (start, row) = (end, row + 1);
        }
        found
    }

    /// None for a record that the server is certain to read.
    fn doubt(&self, record: &[u8]) -> Option<Doubt> {
        if let Some(error) = self.broken_bytes(record) {
            return Some(Doubt::Refused(error));
        }
        let mut fields = self.encoder.fields(record);
        if fields.may_be_marker() {
            return Some(Doubt::Unknown);
        }
        let types = self.encoder.columns();
        let (mut asked, mut count) = (Vec::new(), 0);
        let (mut scratch, mut written) = (Vec::new(), Vec::new());
        loop {
            let Some(field) = fields.next(&mut scratch) else { return Some(Doubt::Unknown) };
            let of = types.get(count).zip(self.columns.get(count));
            if let (Some(value), Some((of, column))) = (field.value, of) {
                written.clear();
                if self.encoder.write_value(of, value, &mut written).is_none() {
                    asked.push((column.clone(), String::from_utf8_lossy(value).into_owned()));
                }
            }
            count += 1;
            if field.ends_record {
                break;
            }
        }
        match self.wrong_count(count) {
            Some(error) => Some(Doubt::Refused(error)),
            None => (!asked.is_empty()).then_some(Doubt::Values(asked)),
        }
    }

    fn wrong_count(&self, count: usize) -> Option<Error> {
        let expected = self.columns.len();
        let (what, column) = match self.columns.get(count) {
            Some(column) => ("missing data for column", Some(column.clone())),
            None if count > expected => ("extra data after last expected column", None),
            None => return None,
        };
        let message = format!("{what}: expected {expected} fields, got {count}");
        let place = Place { column, ..Place::default() };
        Some(Error::new(ErrorKind::Record, message).with_sqlstate(BAD_FORMAT).at(place))
    }

    fn broken_bytes(&self, record: &[u8]) -> Option<Error> {
        let (at, what) = match std::str::from_utf8(record) {
            Err(error) => (error.valid_up_to(), "bytes that are no character of UTF-8"),
            Ok(_) => (memchr::memchr(0, record)?, "a NUL byte, which no text can hold"),
        };
        let column = self.columns.get(field_behind(&self.format, &record[..at])).cloned();
        let message = format!("{what}, {at} bytes into the record");
        let place = Place { column, ..Place::default() };
        Some(Error::new(ErrorKind::Record, message).with_sqlstate(NO_CHARACTER).at(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sifter(types: &[BinaryType]) -> Sifter {
        let format = Format::csv();
        let rules = Rules::new(&format, 180_000, Some(Eol::Lf)).unwrap();
        let columns = (0..types.len()).map(|no| format!("c{no}")).collect();
        Sifter::new((&format, Some(Eol::Lf), &rules), columns, types, "UTC").unwrap()
    }

    fn told(aside: &Aside) -> (u64, &'static str, Option<&str>) {
        match &aside.doubt {
            Doubt::Refused(error) => (aside.row, "refused", error.place().column.as_deref()),
            Doubt::Values(values) => (aside.row, "values", Some(values[0].0.as_str())),
            Doubt::Unknown => (aside.row, "unknown", None),
        }
    }

    #[test]
    fn each_doubtful_record_is_told_with_its_reason() {
        let sifter = sifter(&[BinaryType::Int4, BinaryType::Text]);
        let bytes = b"1,a\n2\n3,c,d\nx,e\n5,\xff\n6,\0\n\"7\n\",f\n8,\"g\nh\"\n9,\"i\n";
        let all = sifter.all(bytes);
        let found: Vec<_> = all.iter().map(told).collect();
        assert_eq!(
            found,
            [
                (1, "refused", Some("c1")),
                (2, "refused", None),
                (3, "values", Some("c0")),
                (4, "refused", Some("c1")),
                (5, "refused", Some("c1")),
                (6, "values", Some("c0")),
                (8, "unknown", None),
            ]
        );
        assert_eq!(&bytes[all[3].range.clone()], b"5,\xff\n");
    }

    #[test]
    fn the_encoder_passes_over_the_same_records() {
        let sifter = sifter(&[BinaryType::Int4, BinaryType::Text]);
        let bytes = b"1,a\n2\n3,c,d\nx,e\n5,\xff\n7,f\n8,\"g\nh\"\n9,i";
        for room in [64, 1024] {
            let (mut aside, mut at, mut rows) = (Vec::new(), (0, 0), 0_u64);
            loop {
                let mut buffer = vec![0; room];
                let most =
                    sifter.encoder.encode_most(&sifter.rules, bytes, at, &mut buffer, &mut aside).unwrap();
                at = (most.encoded.taken, most.rows);
                rows += 1;
                if most.encoded.is_done {
                    break;
                }
            }
            assert_eq!((at.1, rows > 1), (8, room == 64));
            let passed: Vec<u64> = aside.iter().map(|(row, _)| *row).collect();
            assert_eq!(passed, [1, 2, 3, 4], "{room}");
        }
    }
}
