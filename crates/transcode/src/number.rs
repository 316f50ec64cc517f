//! Rows with one more column, whose values count up: what a sequence would have given them.
//!
//! Rows enter as they would be sent, and leave in the same form with the number as their last field.

use crate::encode::BinaryEncoder;
use crate::route::rows::{self, Values, Wanted};
use crate::route::{binary_start, put};
use howdah_model::{BinaryType, Eol, Format, FormatKind};

/// The numbers that rows get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Of the first row.
    pub first: i64,
    /// What lies between two of them.
    pub increment: i64,
    /// How many there are.
    pub count: u64,
}

impl Numbers {
    fn of_row(&self, row: u64) -> Option<i64> {
        let row = i64::try_from(row).ok().filter(|_| row < self.count)?;
        self.first.checked_add(row.checked_mul(self.increment)?)
    }
}

/// Writes numbers behind rows.
#[derive(Debug, Clone)]
pub struct Numberer {
    reader: BinaryEncoder,
    delimiter: u8,
    eol: &'static [u8],
    /// A backslash makes what follows it a datum.
    is_text: bool,
}

impl Numberer {
    /// For records of this format. `None` where a number could be taken for something else, or where the
    /// format says what only the server can carry out.
    pub fn new(format: &Format, eol: Option<Eol>) -> Option<Numberer> {
        let taken = |byte: u8| byte.is_ascii_digit() || byte == b'-';
        let is_plain = !taken(format.delimiter) && !format.null.bytes().any(taken);
        let is_plain =
            is_plain && (format.kind == FormatKind::Text || !taken(format.quote) && !taken(format.escape));
        let reader = BinaryEncoder::new(format, eol, &[BinaryType::Text], "UTC").filter(|_| is_plain)?;
        let eol: &[u8] = match eol.unwrap_or(Eol::Lf) {
            Eol::Lf => b"\n",
            Eol::Cr => b"\r",
            Eol::CrLf => b"\r\n",
        };
        Some(Numberer { reader, delimiter: format.delimiter, eol, is_text: format.kind == FormatKind::Text })
    }

    /// Writes the records with their numbers to `out`, one buffer behind the other; how many bytes they take.
    /// `None` where they are not read with certainty, are not as many as there are numbers, or where `out`
    /// has no room.
    pub fn records(&self, records: &[u8], numbers: &Numbers, out: &mut [&mut [u8]]) -> Option<usize> {
        let (mut from, mut at, mut row) = (0, 0, 0);
        let mut number = String::new();
        let mut write = |bytes: usize| {
            let record = records.get(from..from + bytes)?;
            let content = record.strip_suffix(self.eol).unwrap_or(record);
            // Behind a backslash neither the line ending is one, nor would be the delimiter.
            let backslashes = content.iter().rev().take_while(|byte| **byte == b'\\').count();
            if self.is_text && backslashes % 2 == 1 {
                return None;
            }
            number.clear();
            number.push(char::from(self.delimiter));
            number.push_str(&numbers.of_row(row)?.to_string());
            for part in [content, number.as_bytes(), &record[content.len()..]] {
                put(out, at, part)?;
                at += part.len();
            }
            (from, row) = (from + bytes, row + 1);
            Some(())
        };
        let mut all = Some(());
        rows::of_records(records, &self.reader, &Wanted::default(), &mut Values::default(), |_, bytes| {
            all = all.and_then(|()| write(bytes));
        })?;
        all.filter(|()| row == numbers.count).map(|()| at)
    }
}

/// The same for rows in COPY's binary format, whole ones in each piece, from the header to the trailer,
/// neither of which is written. The numbers take `number_bytes`: 2, 4 or 8.
pub fn binary(
    pieces: &[&[u8]],
    numbers: &Numbers,
    number_bytes: usize,
    out: &mut [&mut [u8]],
) -> Option<usize> {
    let (mut at, mut row) = (0, 0);
    for (no, piece) in pieces.iter().enumerate() {
        let mut from = binary_start(no);
        let mut write = |bytes: usize| {
            let (count, fields) = piece.get(from..from + bytes)?.split_first_chunk()?;
            let number = numbers.of_row(row)?;
            let all = number.to_be_bytes();
            let short = all.get(8 - number_bytes..)?;
            // A number that the column cannot hold is for the server to refuse.
            let fits = number_bytes == 8 || number.unsigned_abs() >> (8 * number_bytes - 1) == 0;
            let length = i32::try_from(number_bytes).ok().filter(|_| fits)?;
            let count = i16::from_be_bytes(*count).checked_add(1)?;
            for part in [&count.to_be_bytes()[..], fields, &length.to_be_bytes()[..], short] {
                put(out, at, part)?;
                at += part.len();
            }
            (from, row) = (from + bytes, row + 1);
            Some(())
        };
        let mut all = Some(());
        let piece = piece.get(binary_start(no)..)?;
        rows::of_binary(piece, &Wanted::default(), &mut Values::default(), |_, bytes| {
            all = all.and_then(|()| write(bytes));
        })?;
        all?;
    }
    (row == numbers.count).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(format: &Format, eol: Eol, records: &str) -> Option<String> {
        let numberer = Numberer::new(format, Some(eol))?;
        let count = records.matches(if eol == Eol::Cr { '\r' } else { '\n' }).count() as u64;
        let count = count + u64::from(!records.ends_with(['\n', '\r']));
        let (mut one, mut other) = ([0; 7], [0; 93]);
        let mut out: [&mut [u8]; 2] = [&mut one, &mut other[..7]];
        let numbers = Numbers { first: 9, increment: 1, count };
        let bytes = numberer.records(records.as_bytes(), &numbers, &mut out)?;
        let all: Vec<u8> = out.iter().flat_map(|buffer| buffer.iter().copied()).collect();
        Some(String::from_utf8(all[..bytes].to_vec()).unwrap())
    }

    #[test]
    fn numbers_stand_behind_the_last_field() {
        let csv = Format::csv();
        assert_eq!(numbered(&csv, Eol::Lf, "a\nb\n").as_deref(), Some("a,9\nb,10\n"));
        assert_eq!(numbered(&csv, Eol::CrLf, "a\r\nb").as_deref(), Some("a,9\r\nb,10"));
        assert_eq!(numbered(&Format::text(), Eol::Lf, "a\n").as_deref(), Some("a\t9\n"));
        assert_eq!(numbered(&csv, Eol::Lf, "no room for it\n"), None);
    }

    #[test]
    fn no_number_is_written_into_a_value() {
        assert_eq!(numbered(&Format::text(), Eol::Lf, "a\\\n"), None);
        assert_eq!(numbered(&Format::text(), Eol::Lf, "a\\"), None);
        assert_eq!(numbered(&Format::text(), Eol::Lf, "a\\\\\n").as_deref(), Some("a\\\\\t9\n"));
        assert_eq!(numbered(&Format::csv(), Eol::Lf, "a\\\n").as_deref(), Some("a\\,9\n"));
    }

    #[test]
    fn a_number_is_never_taken_for_null_or_a_delimiter() {
        let null = Format { null: "9".to_owned(), ..Format::csv() };
        assert_eq!(numbered(&null, Eol::Lf, "a\n"), None);
        let delimiter = Format { delimiter: b'9', ..Format::csv() };
        assert_eq!(numbered(&delimiter, Eol::Lf, "a\n"), None);
    }
}
