//! Records that are left out of a load and kept ([`Shape::skips`](super::Shape::skips)).
//!
//! Each stands among the records that are stored, as a line of its own that begins with a NUL, which no
//! stored record holds. So it belongs to one chunk, is counted like any record, lies in the budget's memory,
//! and is committed with its neighbours. What it says is written in hexadecimal digits: whatever the record
//! holds, no splitter takes offence.

use super::records::At;
use howdah_model::{Error, ErrorKind, Place};

/// What such a line begins with.
const MARK: u8 = 0;

/// A record that is not stored, and all that there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// As it stands in the file, its line ending included.
    pub bytes: Vec<u8>,
    /// Its number, counted from 1.
    pub record: u64,
    /// The offset of its first byte in the plain file.
    pub byte: u64,
    /// The column whose value is to blame.
    pub column: Option<String>,
    /// PostgreSQL's code for the reason.
    pub sqlstate: String,
    /// The reason, without values.
    pub reason: String,
}

impl Kept {
    pub(super) fn new(at: At, error: &Error, sqlstate: &str, bytes: &[u8]) -> Kept {
        Kept {
            bytes: bytes.to_vec(),
            record: at.record,
            byte: at.byte,
            column: error.place().column.clone(),
            sqlstate: sqlstate.to_owned(),
            reason: error.message().to_owned(),
        }
    }

    /// Why it is not stored, and where it stands.
    pub fn error(&self) -> Error {
        let place = Place {
            record: Some(self.record),
            byte: Some(self.byte),
            column: self.column.clone(),
            ..Place::default()
        };
        Error::new(ErrorKind::Record, self.reason.clone()).with_sqlstate(self.sqlstate.clone()).at(place)
    }

    /// Appends its line without the ending.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let column = self.column.as_ref().map(|column| hex(column.as_bytes())).unwrap_or_default();
        let (reason, bytes) = (hex(self.reason.as_bytes()), hex(&self.bytes));
        let Kept { record, byte, sqlstate, .. } = self;
        out.push(MARK);
        out.extend_from_slice(format!("{record} {byte} {sqlstate} {column} {reason} {bytes}").as_bytes());
    }

    /// Reads the line that begins here; `None` if it is none of these.
    pub fn parse(line: &[u8]) -> Option<Kept> {
        let words = std::str::from_utf8(line.strip_prefix(&[MARK])?).ok()?;
        let mut words = words.trim_end_matches(['\r', '\n']).split(' ');
        let mut next = || words.next();
        let (record, byte) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let (sqlstate, column, reason) = (next()?.to_owned(), next()?, text(next()?)?);
        let column = if column.is_empty() { None } else { Some(text(column)?) };
        Some(Kept { bytes: unhex(next()?)?, record, byte, column, sqlstate, reason })
    }

    /// Where a line of this kind may begin in `records`, from `start` on.
    pub fn find(records: &[u8], start: usize) -> Option<usize> {
        let begins = |at: &usize| *at == 0 || matches!(records[at - 1], b'\n' | b'\r');
        memchr::memchr_iter(MARK, records.get(start..)?).map(|at| start + at).find(begins)
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    bytes.iter().flat_map(digits).map(char::from).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| bytes.collect())?
}

fn text(digits: &str) -> Option<String> {
    String::from_utf8(unhex(digits)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_record_is_read_back_as_it_was() {
        let all: Vec<u8> = (0..=255).collect();
        for (bytes, column) in [(&all[..], Some("a \"b\"\nc".to_owned())), (b"", None)] {
            let kept = Kept {
                bytes: bytes.to_vec(),
                record: u64::MAX,
                byte: 0,
                column,
                sqlstate: "22P04".to_owned(),
                reason: "expected 2 fields, got 3".to_owned(),
            };
            let mut line = b"1,a\n".to_vec();
            kept.write(&mut line);
            let at = Kept::find(&line, 0).unwrap();
            assert_eq!(at, 4);
            for eol in ["", "\n", "\r\n", "\r"] {
                assert_eq!(Kept::parse(&[&line[at..], eol.as_bytes()].concat()), Some(kept.clone()));
            }
            assert!(!line[at + 1..].iter().any(|byte| !byte.is_ascii_alphanumeric() && *byte != b' '));
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            &b"1,a"[..],
            b"\0",
            b"\x001",
            b"\x001 2 22P04  zz 00",
            b"\x001 2 22P04  00 0",
            b"\x001 2 22P04  00",
        ] {
            assert_eq!(Kept::parse(line), None, "{line:?}");
        }
        assert_eq!(Kept::find(b"a\0b\n1,\0", 0), None);
    }
}
