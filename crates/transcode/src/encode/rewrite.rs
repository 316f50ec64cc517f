//! Records of csv or text rewritten as COPY text with COPY's defaults.
//!
//! The rewritten records mean to COPY exactly what the original ones meant, except that some fields are
//! left out. What COPY refuses is refused here where the server could not see it any more, in COPY's words.

use super::{attributes, is_text};
use crate::split::Rules;
use howdah_model::{Error, ErrorKind, Format, FormatKind, Result};
use std::ops::Range;

/// What becomes of one field of the file. In csv the two `force` flags are those of the table column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTarget {
    /// The column the field fills, or the field's own name if it is left out; for messages.
    pub name: String,
    /// It goes into the table.
    pub keep: bool,
    /// A quoted spelling of NULL is NULL too.
    pub force_null: bool,
    /// The spelling of NULL is never NULL.
    pub force_not_null: bool,
}

/// A record that cannot be rewritten because COPY would refuse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Its number in the chunk, counted from 0.
    pub record: u64,
    /// The offset of its first byte in the chunk.
    pub byte: usize,
    /// What COPY says about it.
    pub message: String,
}

/// Rewrites the records of one kind of file.
#[derive(Debug, Clone)]
pub struct Rewriter {
    format: Format,
    fields: Vec<FieldTarget>,
}

/// COPY's words for what is wrong with a record.
struct Refusal(String);

impl From<&'static str> for Refusal {
    fn from(message: &'static str) -> Refusal {
        Refusal(message.to_owned())
    }
}

impl Rewriter {
    /// For files of this format whose records have these fields, in the order of the file.
    ///
    /// The output keeps the file's encoding.
    ///
    /// # Errors
    /// `Unsupported` together with the DEFAULT option, an encoding whose characters contain ASCII bytes, or a
    /// spelling of NULL that is of other bytes in the file's encoding.
    pub fn new(format: &Format, fields: &[FieldTarget]) -> Result<Rewriter> {
        let refusal = if format.default.is_some() {
            "the DEFAULT option cannot be combined with leaving out fields or converting the encoding"
        } else if Rules::embeds_ascii(format) {
            "fields of a file in this encoding cannot be left out"
        } else if !is_utf8(format) && !format.null.is_ascii() {
            let message =
                "fields of a file that is not in UTF8 cannot be left out where NULL is spelled beyond ASCII";
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint(
                "leave out --format and --copy-options: what they do not say is found, and the file is read as UTF8",
            ));
        } else {
            return Ok(Rewriter { format: format.clone(), fields: fields.to_vec() });
        };
        Err(Error::new(ErrorKind::Unsupported, refusal))
    }

    /// Appends the records of a chunk to `out`, one line each, ended by `\n`; returns how many.
    ///
    /// # Errors
    /// The first record COPY would refuse for its fields or line endings. `out` then ends in the one before
    /// it.
    pub fn rewrite(&self, rules: &Rules, chunk: &[u8], out: &mut Vec<u8>) -> Result<u64, RecordError> {
        let (mut value, mut records) = (Vec::new(), 0);
        out.reserve(chunk.len());
        for record in rules.records(chunk) {
            let (bytes, whole_bytes) = (&chunk[record.content], out.len());
            let rewritten = match (record.offence, self.format.kind) {
                (Some(message), _) => Err(message.into()),
                // A field left out is not seen by the server any more, and a character with quotes in the
                // middle would become whole.
                (None, _) if !is_text(self.format.encoding.as_deref(), bytes) => {
                    let encoding = self.format.encoding.as_deref().unwrap_or("UTF8");
                    Err(Refusal(format!("invalid byte sequence for encoding \"{encoding}\"")))
                }
                (None, FormatKind::Csv) => self.rewrite_csv(bytes, &mut value, out),
                (None, FormatKind::Text) => self.rewrite_text(bytes, out),
            };
            if let Err(Refusal(message)) = rewritten {
                out.truncate(whole_bytes);
                return Err(RecordError { record: records, byte: record.start, message });
            }
            records += 1;
        }
        Ok(records)
    }

    fn rewrite_csv(&self, record: &[u8], value: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut line = Line::new(self, out);
        let mut result = Ok(());
        attributes::csv(&self.format, record, value, |value, is_null| match line.next_field() {
            Ok(None) => {}
            Ok(Some(field)) if self.is_null(field, value, is_null) => line.out.extend_from_slice(b"\\N"),
            Ok(Some(_)) => escape(value, line.out),
            // As in COPY, quotes that are never closed are reported first.
            Err(refusal) => result = Err(refusal),
        })?;
        result?;
        line.end()
    }

    /// A csv value is NULL after the `force` flags have had their say; `spelled` if it is written as NULL.
    fn is_null(&self, field: &FieldTarget, value: &[u8], spelled: bool) -> bool {
        if spelled { !field.force_not_null } else { field.force_null && value == self.format.null.as_bytes() }
    }

    /// Text stays text: what is written between delimiters is kept, so that escapes for bytes keep meaning
    /// bytes of the database's encoding.
    fn rewrite_text(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut line = Line::new(self, out);
        let mut result = Ok(());
        attributes::text(&self.format, record, |field: Range<usize>| {
            let field = &record[field];
            match line.next_field() {
                Ok(None) => {}
                Ok(Some(_)) if field == self.format.null.as_bytes() => line.out.extend_from_slice(b"\\N"),
                // With another spelling of NULL this is the letter.
                Ok(Some(_)) if field == b"\\N" => line.out.push(b'N'),
                Ok(Some(_)) => keep_text(field, line.out),
                Err(refusal) => result = Err(refusal),
            }
        });
        result?;
        line.end()
    }
}

fn is_utf8(format: &Format) -> bool {
    let is_it = |name: &str| ["UTF8", "UTF-8"].iter().any(|utf8| name.eq_ignore_ascii_case(utf8));
    format.encoding.as_deref().is_none_or(is_it)
}

/// A line being written.
struct Line<'a> {
    rewriter: &'a Rewriter,
    out: &'a mut Vec<u8>,
    fields_seen: usize,
    fields_kept: usize,
}

impl<'a> Line<'a> {
    fn new(rewriter: &'a Rewriter, out: &'a mut Vec<u8>) -> Line<'a> {
        Line { rewriter, out, fields_seen: 0, fields_kept: 0 }
    }

    /// Begins the next field and says what becomes of it; `None` if it is left out.
    fn next_field(&mut self) -> Result<Option<&'a FieldTarget>, Refusal> {
        let Some(field) = self.rewriter.fields.get(self.fields_seen) else {
            return Err("extra data after last expected column".into());
        };
        self.fields_seen += 1;
        if !field.keep {
            return Ok(None);
        }
        if self.fields_kept > 0 {
            self.out.push(b'\t');
        }
        self.fields_kept += 1;
        Ok(Some(field))
    }

    fn end(self) -> Result<(), Refusal> {
        if let Some(missing) = self.rewriter.fields.get(self.fields_seen) {
            return Err(Refusal(format!("missing data for column \"{}\"", missing.name)));
        }
        self.out.push(b'\n');
        Ok(())
    }
}

/// Writes a value so that COPY text reads it back.
pub(crate) fn escape(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(at) = rest.iter().position(|&byte| letter(byte).is_some()) {
        out.extend_from_slice(&rest[..at]);
        out.extend(letter(rest[at]).map(|letter| [b'\\', letter]).into_iter().flatten());
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// The letter that stands behind a backslash for this byte.
fn letter(byte: u8) -> Option<u8> {
    Some(match byte {
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0B => b'v',
        b'\\' => b'\\',
        _ => return None,
    })
}

/// Copies a text field as it is written. Bytes that are data in the file but would end a field or a line
/// in the output get a backslash; those that have one keep it.
fn keep_text(field: &[u8], out: &mut Vec<u8>) {
    let mut escaped = false;
    for &byte in field {
        match byte {
            b'\t' if !escaped => out.extend_from_slice(b"\\t"),
            _ => out.push(byte),
        }
        escaped = byte == b'\\' && !escaped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::Eol;

    fn field(name: &str, keep: bool) -> FieldTarget {
        FieldTarget { name: name.to_owned(), keep, force_null: false, force_not_null: false }
    }

    fn rewrite(format: &Format, fields: &[FieldTarget], chunk: &str) -> Result<String, RecordError> {
        let rules = Rules::new(format, 180_000, Some(Eol::Lf)).unwrap();
        let mut out = Vec::new();
        Rewriter::new(format, fields).unwrap().rewrite(&rules, chunk.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn csv_values_and_nulls_survive() {
        let fields = [field("a", true), field("b", false), field("c", true)];
        let out = rewrite(&Format::csv(), &fields, "\"x\ty\nz\",1,\n\"\",2,a\\b\n").unwrap();
        assert_eq!(out, "x\\ty\\nz\t\\N\n\ta\\\\b\n");
    }

    #[test]
    fn what_is_before_a_record_that_is_refused_stays() {
        let fields = [field("a", true), field("b", true)];
        let rules = Rules::new(&Format::csv(), 180_000, Some(Eol::Lf)).unwrap();
        let mut out = b"0\t0\n".to_vec();
        let rewriter = Rewriter::new(&Format::csv(), &fields).unwrap();
        let error = rewriter.rewrite(&rules, b"1,2\n3,4\n5\n6,7\n", &mut out).unwrap_err();
        assert_eq!((error.record, error.byte), (2, 8));
        assert_eq!(out, b"0\t0\n1\t2\n3\t4\n");
    }

    #[test]
    fn force_flags_decide_as_in_copy() {
        let fields = [
            FieldTarget { force_null: true, ..field("a", true) },
            FieldTarget { force_not_null: true, ..field("b", true) },
            FieldTarget { force_null: true, force_not_null: true, ..field("c", true) },
        ];
        assert_eq!(
            rewrite(&Format::csv(), &fields, "\"\",,\n,\"\",\"\"\n").unwrap(),
            "\\N\t\t\n\\N\t\t\\N\n"
        );
    }

    #[test]
    fn text_stays_as_it_is_written() {
        let format = Format { delimiter: b',', null: String::new(), ..Format::text() };
        let fields = [field("a", true), field("b", true), field("c", true)];
        assert_eq!(
            rewrite(&format, &fields, "a\tb,\\N,\nc\\,d,\\x41,\\\\\n").unwrap(),
            "a\\tb\tN\t\\N\nc\\,d\t\\x41\t\\\\\n"
        );
    }

    #[test]
    fn wrong_field_counts_name_the_record() {
        let fields = [field("a", true), field("b", true)];
        let error = rewrite(&Format::csv(), &fields, "1,2\n3\n").unwrap_err();
        assert_eq!(
            (error.record, error.byte, error.message.as_str()),
            (1, 4, "missing data for column \"b\"")
        );
        let error = rewrite(&Format::text(), &fields, "1\t2\t3").unwrap_err();
        assert_eq!((error.record, error.message.as_str()), (0, "extra data after last expected column"));
    }

    #[test]
    fn a_marker_at_the_end_of_the_file_is_refused_in_a_field_that_is_left_out() {
        let fields = [field("a", true), field("b", false)];
        let error = rewrite(&Format::text(), &fields, "1\t2\n3\t\\.").unwrap_err();
        assert_eq!((error.record, error.message.as_str()), (1, "end-of-copy marker corrupt"));
        assert_eq!(rewrite(&Format::text(), &fields, "1\t\\\\.").unwrap(), "1\n");
    }

    #[test]
    fn what_copy_refuses_is_not_rewritten_into_something_it_takes() {
        let fields = [field("a", true), field("b", false)];
        assert_eq!(rewrite(&Format::csv(), &fields, "1,2\n3,\r4\n").unwrap_err().record, 1);
        assert_eq!(
            rewrite(&Format::csv(), &fields, "1,\"2\n").unwrap_err().message,
            attributes::UNTERMINATED
        );
        assert_eq!(rewrite(&Format::text(), &fields, "1\t2\n3\t\\.4\n").unwrap_err().record, 1);
    }
}
