//! What is wrong with a record, as far as it can be told without asking the server.
//!
//! Enters: one record and the types of its columns. Leaves: the reason for which the server's COPY is certain
//! to refuse it (a wrong number of fields, bytes that are no characters), the values that only the server can
//! read, or nothing. Values that COPY would take are never called wrong: PostgreSQL's `copyfromparse.c` is
//! the measure.

use crate::encode::{BinaryEncoder, is_storable};
use crate::header::field_behind;
use crate::split::{Rules, State, Tail};
use howdah_model::{
    Aside, Bounds, Doubt, Eol, Error, ErrorKind, Format, KnownTypes, Place, counted, sqlstate,
};
use std::ops::Range;

/// Records of a chunk whose values are asked about. By the sizes of what is kept of one and sent (not
/// measured) that is some 300 bytes each, so 15 MB for a chunk.
const ASKED_MAX: usize = 50_000;

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
    /// For records of this format whose fields fill `columns` of these types. `None`
    /// where the format says what only the server can carry out.
    pub fn new(
        (format, eol, rules): (&Format, Option<Eol>, &Rules),
        columns: Vec<String>,
        known: &KnownTypes,
    ) -> Option<Sifter> {
        let encoder = BinaryEncoder::new(format, eol, &known.types, &known.time_zone)?.within(&known.bounds);
        Some(Sifter { format: format.clone(), rules: rules.clone(), encoder, columns })
    }

    /// What there is to say of one record of a chunk, at `range` of its bytes.
    pub fn aside(&self, bytes: &[u8], row: u64, range: Range<usize>) -> Aside {
        let doubt = bytes.get(range.clone()).and_then(|record| self.doubt(record));
        Aside::new(row, range, doubt.unwrap_or(Doubt::Unknown))
    }

    /// The records that are not certain to be fit, of a whole chunk. Behind so many whose values only the
    /// server can read the others are just not known: what is asked does not fit the memory else.
    pub fn all(&self, bytes: &[u8]) -> Vec<Aside> {
        let is_text = is_storable(bytes);
        let (mut found, mut start, mut row) = (Vec::new(), 0, 0);
        let mut asked = 0;
        while start < bytes.len() {
            let (doubt, end) = match self.look(bytes, start) {
                Some(looked) => looked,
                None => match self.rules.tail(State::START, &bytes[start..]) {
                    Tail::Border(end) => (Some(Doubt::Unknown), start + end),
                    Tail::Unfinished(_) => (Some(Doubt::Unknown), bytes.len()),
                    // What stands behind it is no data.
                    Tail::EndMarker(_) => break,
                },
            };
            let broken = (!is_text).then(|| self.broken_bytes(&bytes[start..end])).flatten();
            if let Some(mut doubt) = broken.map(Doubt::Refused).or(doubt) {
                asked += usize::from(matches!(doubt, Doubt::Values(_)));
                if asked > ASKED_MAX && matches!(doubt, Doubt::Values(_)) {
                    doubt = Doubt::Unknown;
                }
                found.push(Aside::new(row, start..end, doubt));
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
        self.look(record, 0).map_or(Some(Doubt::Unknown), |(doubt, _)| doubt)
    }

    /// What is to be said of the fields of the record that begins at `start`, and where it ends; `None` where
    /// its fields cannot be told apart.
    fn look(&self, bytes: &[u8], start: usize) -> Option<(Option<Doubt>, usize)> {
        let mut fields = self.encoder.fields(bytes, start);
        if fields.may_be_marker() {
            return None;
        }
        let (types, bounds) = (self.encoder.columns(), self.encoder.bounds());
        let (mut asked, mut refused, mut count) = (Vec::new(), None, 0);
        let (mut scratch, mut written) = (Vec::new(), Vec::new());
        loop {
            let field = fields.next(&mut scratch)?;
            if let Some(column) = self.columns.get(count) {
                let beyond = bounds.get(count).filter(|bounds| !bounds.may_hold(field.value));
                if let Some(bounds) = beyond.filter(|_| refused.is_none()) {
                    refused = Some(out_of_bounds(bounds, column, field.value.is_none()));
                }
                if let (Some(value), Some(of)) = (field.value, types.get(count)) {
                    written.clear();
                    if self.encoder.write_value(of, value, &mut written).is_none() {
                        asked.push((column.clone(), String::from_utf8_lossy(value).into_owned()));
                    }
                }
            }
            count += 1;
            if field.ends_record {
                break;
            }
        }
        let doubt = match self.wrong_count(count).or(refused) {
            Some(error) => Some(Doubt::Refused(error)),
            None => (!asked.is_empty()).then_some(Doubt::Values(asked)),
        };
        Some((doubt, fields.position()))
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
        Some(Error::new(ErrorKind::Record, message).with_sqlstate(sqlstate::BAD_COPY_FILE_FORMAT).at(place))
    }

    fn broken_bytes(&self, record: &[u8]) -> Option<Error> {
        let (at, what) = match std::str::from_utf8(record) {
            Err(error) => (error.valid_up_to(), "bytes that are no character of UTF-8"),
            Ok(_) => (memchr::memchr(0, record)?, "a NUL byte, which no text can hold"),
        };
        let column = self.columns.get(field_behind(&self.format, &record[..at])).cloned();
        let message = format!("{what}, {} into the record", counted(at, "byte"));
        let place = Place { column, ..Place::default() };
        Some(
            Error::new(ErrorKind::Record, message)
                .with_sqlstate(sqlstate::CHARACTER_NOT_IN_REPERTOIRE)
                .at(place),
        )
    }
}

/// The words are the server's.
fn out_of_bounds(bounds: &Bounds, column: &str, is_null: bool) -> Error {
    let (message, sqlstate) = if is_null {
        (
            format!("null value in column \"{column}\" violates its not-null constraint"),
            sqlstate::NOT_NULL_VIOLATION,
        )
    } else {
        (format!("value too long for type {}", bounds.type_name), sqlstate::STRING_DATA_RIGHT_TRUNCATION)
    };
    let place = Place { column: Some(column.to_owned()), ..Place::default() };
    Error::new(ErrorKind::Record, message).with_sqlstate(sqlstate).at(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::BinaryType;

    fn sifter(types: &[BinaryType]) -> Sifter {
        let bounds = Bounds { chars_max: Some(3), type_name: "varchar(3)".to_owned(), not_null: true };
        let known = KnownTypes {
            types: types.to_vec(),
            bounds: vec![Bounds::default(), bounds],
            time_zone: "UTC".to_owned(),
        };
        let format = Format::csv();
        let rules = Rules::new(&format, 180_000, Some(Eol::Lf)).unwrap();
        let columns = (0..types.len()).map(|no| format!("c{no}")).collect();
        Sifter::new((&format, Some(Eol::Lf), &rules), columns, &known).unwrap()
    }

    fn told(aside: &Aside) -> (u64, &'static str, Option<&str>) {
        match &aside.doubt {
            Doubt::Refused(error) => (aside.row, "refused", error.place().column.as_deref()),
            Doubt::Values(values) => (aside.row, "values", Some(values[0].0.as_str())),
            Doubt::Unknown => (aside.row, "unknown", None),
        }
    }

    #[test]
    fn no_more_values_are_asked_about_than_the_memory_has_room_for() {
        let sifter = sifter(&[BinaryType::Int4, BinaryType::Text]);
        let bytes = [b"1e1,a\n".repeat(ASKED_MAX + 10), b"1\n".to_vec()].concat();
        let all = sifter.all(&bytes);
        let values = all.iter().filter(|aside| matches!(aside.doubt, Doubt::Values(_))).count();
        let unknown = all.iter().filter(|aside| matches!(aside.doubt, Doubt::Unknown)).count();
        assert_eq!((values, unknown, all.len()), (ASKED_MAX, 10, ASKED_MAX + 11));
    }

    #[test]
    fn each_doubtful_record_is_told_with_its_reason() {
        let sifter = sifter(&[BinaryType::Int4, BinaryType::Text]);
        let bytes =
            b"1,a\n2\n3,c,d\nx,e\n5,\xff\n6,\0\n\"7\n\",f\n8,\"g\nh\"\n9,abc \n10,abcd\n11,\n12,\"i\n";
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
                (9, "refused", Some("c1")),
                (10, "refused", Some("c1")),
                (11, "unknown", None),
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
