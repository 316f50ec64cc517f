//! The records of one chunk, mended and written back as the file writes records.
//!
//! A file whose dialect COPY can be told goes untouched, until a chunk of it holds a record that contradicts
//! the dialect. That chunk, and no other, goes through here: its bytes come in, and what goes out means to
//! COPY what the mended records mean, in the same format, so that the chunk is sent like any other.

use super::records::{At, Found, Records};
use super::{Counts, Shape};
use crate::cells::Record;
use crate::encode;
use howdah_model::{Eol, Format, FormatKind, Omitted, Result};
use std::io::Read;
use std::sync::Arc;

/// Bytes given at a time: enough to make it cheap, few enough to stay in the cache.
const PIECE_BYTES: usize = 64 << 10;

/// Where a chunk stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte of its first record.
    pub start_byte: u64,
    /// Records that start here or behind it are the next chunk's.
    pub border_byte: u64,
    /// Records of the file before it.
    pub records_before: u64,
}

/// What became of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// Records written, those that are kept included.
    pub rows: u64,
    /// Records passed over.
    pub omitted: Omitted,
    /// The first byte of the next chunk's first record.
    pub end_byte: u64,
    /// Bytes of the file from there on that were read already.
    pub rest: Vec<u8>,
    /// The data ends with this chunk, though bytes may follow: behind a line `\\.` of COPY's text there is
    /// none.
    pub ended: bool,
}

/// Mends the records of `plain`, UTF-8 bytes of the file from [`Span::start_byte`] on, and gives them to
/// `out` in `format`, some whole records at a time. They may be many times as long as they were, where fields
/// are missing: `out` keeps the limit. [`Shape::lenient`] must be set; start and end of the shape's data are
/// not looked at, nor are its readings: values go as they are.
///
/// # Errors
/// Those of `plain` and `out`; `Usage` if the dialect contradicts itself.
pub fn chunk<R: Read>(
    shape: &Shape,
    format: &Format,
    plain: R,
    span: Span,
    counts: Arc<Counts>,
    mut out: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Mended> {
    let start = At { record: span.records_before, byte: span.start_byte };
    let mut records = Records::between(shape, plain, start, span.border_byte, counts)?;
    let eol = ending(shape.dialect.eol);
    let (mut rows, mut piece) = (0, Vec::new());
    while let Some(found) = records.next()? {
        match found {
            Found::Record(_) => write(format, records.record(), shape.fields.len(), &mut piece),
            Found::Kept(kept) => kept.write(&mut piece),
        }
        piece.extend_from_slice(eol);
        rows += 1;
        if piece.len() >= PIECE_BYTES {
            out(&piece)?;
            piece.clear();
        }
    }
    out(&piece)?;
    let (omitted, end_byte) = (records.omitted(), records.offset());
    Ok(Mended {
        rows,
        omitted,
        end_byte,
        rest: records.into_rest(),
        // Records stop before the border only where there are no more.
        ended: end_byte < span.border_byte,
    })
}

/// The record that row `row` (from 0) of what [`chunk`] writes came from, and its first byte in the file.
/// `None` if there are fewer rows.
///
/// # Errors
/// As [`chunk`].
pub fn locate_in_chunk<R: Read>(shape: &Shape, plain: R, span: Span, row: u64) -> Result<Option<(u64, u64)>> {
    let start = At { record: span.records_before, byte: span.start_byte };
    let counts = Arc::new(Counts::new(0));
    let mut records = Records::between(shape, plain, start, span.border_byte, counts)?;
    for _ in 0..row {
        if records.next()?.is_none() {
            return Ok(None);
        }
    }
    Ok(records.next()?.map(|found| match found {
        Found::Record(at) => (at.record, at.byte),
        Found::Kept(kept) => (kept.record, kept.byte),
    }))
}

/// One record; fields that it lacks are NULL.
fn write(format: &Format, record: &Record, width: usize, out: &mut Vec<u8>) {
    for no in 0..width {
        if no > 0 {
            out.push(format.delimiter);
        }
        if no >= record.len() || record.is_null(no) {
            out.extend_from_slice(format.null.as_bytes());
        } else if format.kind == FormatKind::Text {
            text(format, record.value(no), out);
        } else {
            csv(format, record.value(no), out);
        }
    }
}

/// The line ending that the rest of the file has.
fn ending(eol: Option<Eol>) -> &'static [u8] {
    match eol {
        Some(Eol::CrLf) => b"\r\n",
        Some(Eol::Cr) => b"\r",
        Some(Eol::Lf) | None => b"\n",
    }
}

/// A value in quotes where it would mean something else without.
fn csv(format: &Format, value: &[u8], out: &mut Vec<u8>) {
    let special =
        |byte: &u8| *byte == format.delimiter || *byte == format.quote || matches!(*byte, b'\n' | b'\r');
    if value != format.null.as_bytes() && value != b"\\." && !value.iter().any(special) {
        out.extend_from_slice(value);
        return;
    }
    out.push(format.quote);
    for &byte in value {
        if byte == format.quote || byte == format.escape {
            out.push(format.escape);
        }
        out.push(byte);
    }
    out.push(format.quote);
}

/// A value with backslashes before what ends fields and records, and before a delimiter of any kind. One that
/// is written like NULL gets a backslash more, since that is what tells it from NULL.
fn text(format: &Format, value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    encode::escape(value, out);
    if format.delimiter != b'\t' && out[start..].contains(&format.delimiter) {
        let escaped = out.split_off(start);
        for byte in escaped {
            if byte == format.delimiter {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
    if &out[start..] == format.null.as_bytes()
        && let Some(&first) = value.first()
    {
        // A letter or a digit behind a backslash may stand for another byte.
        let (spelled, bytes) = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => (format!("\\{first:03o}"), 1),
            _ => ("\\".to_owned(), 0),
        };
        out.splice(start..start + bytes, spelled.into_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mend::Field;
    use howdah_model::{Dialect, Error, ErrorKind, Mend};

    const BYTES: &[u8] = b"1,fir,30\n2,oak\n3,\"elm\n4,ash,\"a \"\"b\"\"\n,c\"\n5;yew;9\n6,x,y,z\n7,,\"\"\n\n8,\xff,1\n9,ivy,2";

    fn shape() -> Shape {
        Shape {
            dialect: Dialect::csv(),
            fields: vec![Field::as_it_is(); 3],
            names: Vec::new(),
            data_start_byte: 0,
            data_end_byte: None,
            end: None,
            lenient: true,
            skips: false,
            nul: howdah_model::Nul::Reject,
            record_bytes_max: 1 << 20,
            read: |_, _, _| false,
        }
    }

    /// Output, rows and records of the chunks between borders so many bytes apart.
    fn mended(border_bytes: u64) -> (Vec<u8>, u64, u64, Arc<Counts>) {
        let (mut out, mut rows, counts) = (Vec::new(), 0, Arc::new(Counts::new(3)));
        let (mut start_byte, mut records_before) = (0, 0);
        while (start_byte as usize) < BYTES.len() {
            let border_byte = (start_byte / border_bytes + 1) * border_bytes;
            let span = Span { start_byte, border_byte, records_before };
            let plain = &BYTES[start_byte as usize..];
            let append = |piece: &[u8]| {
                out.extend_from_slice(piece);
                Ok(())
            };
            let done = chunk(&shape(), &Format::csv(), plain, span, Arc::clone(&counts), append).unwrap();
            assert!(BYTES[done.end_byte as usize..].starts_with(&done.rest));
            assert!(done.end_byte > start_byte);
            assert_eq!(done.ended, done.end_byte < border_byte);
            start_byte = done.end_byte;
            records_before += done.rows + done.omitted.records();
            rows += done.rows;
        }
        (out, rows, records_before, counts)
    }

    #[test]
    fn a_mended_chunk_means_to_copy_what_its_records_mean() {
        let (out, rows, records, counts) = mended(1 << 30);
        let text = String::from_utf8(out).unwrap();
        let expected = "1,fir,30\n2,oak,\n3,\"\"\"elm\",\n4,ash,\"a \"\"b\"\"\n,c\"\n5,yew,9\n7,,\"\"\n8,\u{fffd},1\n9,ivy,2\n";
        assert_eq!(text, expected);
        assert_eq!((rows, records), (8, 10));
        assert_eq!((counts.mended(Mend::LeftOut), counts.mended(Mend::BlankRow)), (1, 1));
        assert_eq!((counts.left_out()[0].record, counts.left_out()[0].byte), (6, 49));
    }

    #[test]
    fn chunks_cut_anywhere_are_mended_as_the_whole_is() {
        let (whole, rows, records, _) = mended(1 << 30);
        for border_bytes in 1..BYTES.len() as u64 {
            let (out, rows_too, records_too, _) = mended(border_bytes);
            assert_eq!((&out, rows_too, records_too), (&whole, rows, records), "{border_bytes}");
        }
    }

    #[test]
    fn behind_an_end_of_data_marker_there_is_no_data() {
        let shape = Shape {
            dialect: Dialect { quote: None, escape: howdah_model::Escape::Backslash, ..Dialect::csv() },
            ..shape()
        };
        let counts = Arc::new(Counts::new(3));
        let span = Span { start_byte: 0, border_byte: 1 << 20, records_before: 0 };
        let bytes = b"1,a,b\n2,c\n\\.\n3,d,e\n";
        let done = chunk(&shape, &Format::csv(), &bytes[..], span, counts, |_| Ok(())).unwrap();
        assert_eq!((done.rows, done.end_byte, done.ended), (2, 10, true));
        assert_eq!(done.rest, b"\\.\n3,d,e\n");
    }

    #[test]
    fn a_row_of_a_mended_chunk_is_found_again_in_the_file() {
        let span = Span { start_byte: 9, border_byte: 1 << 30, records_before: 1 };
        let find = |row| locate_in_chunk(&shape(), &BYTES[9..], span, row).unwrap();
        let starts = |place: (u64, u64), text: &str| BYTES[place.1 as usize..].starts_with(text.as_bytes());
        let found: Vec<_> = (0..8).map(find).collect();
        let numbers: Vec<_> = found.iter().flatten().map(|place| place.0).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 7, 9, 10]);
        assert!(starts(found[0].unwrap(), "2,oak") && starts(found[4].unwrap(), "7,,"), "{found:?}");
        assert_eq!(found[7], None);
    }

    #[test]
    fn records_that_become_longer_come_in_pieces_which_can_be_refused() {
        let shape = Shape { fields: vec![Field::as_it_is(); 1000], ..shape() };
        let lines = "1\n".repeat(1000);
        let span = Span { start_byte: 0, border_byte: 1 << 20, records_before: 0 };
        let run = |limit_bytes: usize| {
            let mut given = 0;
            let out = |piece: &[u8]| {
                assert!(piece.len() < PIECE_BYTES + 1001 && piece.ends_with(b"\n"));
                given += piece.len();
                if given > limit_bytes { Err(Error::new(ErrorKind::RecordTooLong, "full")) } else { Ok(()) }
            };
            let counts = Arc::new(Counts::new(1000));
            let done = chunk(&shape, &Format::csv(), lines.as_bytes(), span, counts, out);
            (done.map(|done| done.rows).map_err(|error| error.kind()), given)
        };
        assert_eq!(run(usize::MAX), (Ok(1000), 1_001_000));
        let (refused, given) = run(200_000);
        assert!(refused == Err(ErrorKind::RecordTooLong) && given < 300_000);
    }

    #[test]
    fn copy_text_keeps_its_own_delimiter_apart() {
        let format = Format { delimiter: b'|', ..Format::text() };
        let mut out = Vec::new();
        text(&format, b"a|b\\c\td", &mut out);
        assert_eq!(out, b"a\\|b\\\\c\\td");
    }

    /// The lines of this COPY text, mended and written again.
    fn copy_text(null: &str, nul: howdah_model::Nul, fields: usize, bytes: &[u8]) -> String {
        let dialect = Dialect {
            delimiter: "\t".to_owned(),
            quote: None,
            escape: howdah_model::Escape::Backslash,
            nulls: vec![null.to_owned()],
            ..Dialect::csv()
        };
        let shape = Shape { dialect, fields: vec![Field::as_it_is(); fields], nul, ..shape() };
        let format = Format { null: null.to_owned(), ..Format::text() };
        let (mut out, counts) = (Vec::new(), Arc::new(Counts::new(fields)));
        let span = Span { start_byte: 0, border_byte: 1 << 20, records_before: 0 };
        chunk(&shape, &format, bytes, span, counts, |piece| {
            out.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_of_copy_text_that_is_spelled_like_null_does_not_become_it() {
        let nul = howdah_model::Nul::Strip;
        assert_eq!(copy_text("NA", nul, 3, b"\\NA\tNA\t\\116A\n"), "\\116A\tNA\t\\116A\n");
        assert_eq!(copy_text("NA", nul, 3, b"\\NA\ta\0\n"), "\\116A\ta\tNA\n");
        assert_eq!(copy_text("-", nul, 3, b"\\-\t-\n"), "\\-\t-\t-\n");
    }

    #[test]
    fn no_mended_value_ends_the_data() {
        let nul = howdah_model::Nul::Strip;
        assert_eq!(copy_text("\\N", nul, 1, b"\\\\.\n\\\\\0.\n\0\n.\n"), "\\\\.\n\\\\.\n\n.\n");
        let mut out = Vec::new();
        csv(&Format::csv(), b"\\.", &mut out);
        assert_eq!(out, b"\"\\.\"");
    }

    #[test]
    fn nul_bytes_of_mended_records_become_what_they_are_to_become() {
        use howdah_model::Nul::{Reject, Replace, Strip};
        for (nul, expected) in [(Strip, "a1\t\\N\n"), (Reject, "a1\t\\N\n"), (Replace, "a\u{fffd}1\t\\N\n")] {
            assert_eq!(copy_text("\\N", nul, 2, b"a\x001\n"), expected);
        }
    }

    #[test]
    fn what_follows_an_end_of_data_marker_is_told() {
        let shape = Shape {
            dialect: Dialect { quote: None, escape: howdah_model::Escape::Backslash, ..Dialect::csv() },
            ..shape()
        };
        for (behind, told) in
            [("", None), ("\n \n", None), ("3,d,e\n", Some((3, 10))), ("\n\nx", Some((3, 10)))]
        {
            let bytes = format!("1,a,b\n2,c\n\\.\n{behind}");
            let counts = Arc::new(Counts::new(3));
            let span = Span { start_byte: 0, border_byte: 1 << 20, records_before: 0 };
            let kept = Arc::clone(&counts);
            chunk(&shape, &Format::csv(), bytes.as_bytes(), span, kept, |_| Ok(())).unwrap();
            assert_eq!(counts.end_marker(), told, "{behind:?}");
        }
    }
}
