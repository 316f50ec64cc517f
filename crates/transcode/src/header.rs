//! The names in a header record.
//!
//! A header is cut into fields by COPY's own rules for the format; whether the names fit a table is not
//! looked at.

use crate::encode::{attributes, decode, escape};
use howdah_model::{Dialect, Eol, Error, ErrorKind, Escape, Format, FormatKind, Result, show_count};

/// Fields of a record of which each is known by itself, those that are left out included: a table has at most
/// 1,600 columns, and each field takes up to 1.5 kB of memory while it is planned.
pub(crate) const FIELDS_MAX: usize = 1 << 16;

/// The field names of a header record (with or without its line ending), exactly as COPY would read the
/// fields. A name spelled like NULL comes as it is spelled.
///
/// # Errors
/// `Record` if quotes are not closed or a name is not valid in the file's encoding; `Unsupported` if names
/// are not ASCII and only the server knows the encoding; `Columns` if they are too many.
pub fn fields(format: &Format, record: &[u8]) -> Result<Vec<String>> {
    let record = without_line_ending(format.kind, record);
    let name = |value: &[u8]| decode(format.encoding.as_deref(), value);
    let (mut names, mut count) = (Vec::new(), 0);
    match format.kind {
        FormatKind::Csv => {
            attributes::csv(format, record, &mut Vec::new(), |value, _| {
                count += 1;
                if count <= FIELDS_MAX {
                    names.push(name(value));
                }
            })
            .map_err(|message| Error::new(ErrorKind::Record, format!("the header is not csv: {message}")))?;
        }
        FormatKind::Text => attributes::text(format, record, |field| {
            count += 1;
            if count <= FIELDS_MAX {
                let field = &record[field];
                let is_null = field == format.null.as_bytes();
                names.push(if is_null { name(field) } else { name(&attributes::text_value(field)) });
            }
        }),
    }
    if count > FIELDS_MAX {
        return Err(too_many("the header has", count, &char::from(format.delimiter).to_string()));
    }
    names.into_iter().collect()
}

/// `what`: `the header has`.
pub(crate) fn too_many(what: &str, count: usize, delimiter: &str) -> Error {
    let (count, most) = (show_count(count as u64), show_count(FIELDS_MAX as u64));
    let message = format!("{what} {count} fields, cut at {delimiter:?}, and {most} are read at most");
    Error::new(ErrorKind::Columns, message)
        .with_hint("--delimiter says what stands between fields, and --eol what ends a record")
}

/// A header record with these names, which [`fields`] reads back, in UTF-8.
pub fn record(format: &Format, eol: Option<Eol>, names: &[String]) -> Vec<u8> {
    let mut record = Vec::new();
    for (no, name) in names.iter().enumerate() {
        if no > 0 {
            record.push(format.delimiter);
        }
        match format.kind {
            FormatKind::Csv => {
                record.push(format.quote);
                for byte in name.bytes() {
                    if byte == format.quote || byte == format.escape {
                        record.push(format.escape);
                    }
                    record.push(byte);
                }
                record.push(format.quote);
            }
            FormatKind::Text => {
                let mut escaped = Vec::new();
                escape(name.as_bytes(), &mut escaped);
                for byte in escaped {
                    // A delimiter other than the tab.
                    if byte == format.delimiter {
                        record.push(b'\\');
                    }
                    record.push(byte);
                }
            }
        }
    }
    record.extend_from_slice(match eol {
        Some(Eol::CrLf) => b"\r\n",
        Some(Eol::Cr) => b"\r",
        Some(Eol::Lf) | None => b"\n",
    });
    record
}

/// The same as a dialect writes records, without the line ending. Where it has no quotes, a name has `_` in
/// place of what would end it.
pub fn record_of_dialect(dialect: &Dialect, names: &[String]) -> String {
    let name = |name: &String| match (dialect.quote, dialect.escape) {
        (Some(quote), escape) => {
            let quote = char::from(quote);
            let (quoted, name) = match escape {
                Escape::Backslash => (format!("\\{quote}"), name.replace('\\', "\\\\")),
                Escape::Doubled | Escape::None => (format!("{quote}{quote}"), name.clone()),
            };
            format!("{quote}{}{quote}", name.replace(quote, &quoted))
        }
        (None, _) => name.replace(&dialect.delimiter, "_").replace(['\n', '\r'], "_"),
    };
    names.iter().map(name).collect::<Vec<_>>().join(&dialect.delimiter)
}

/// The field, counted from 0, that the byte behind `before` stands in, the bytes of a record up to there.
/// Read as COPY reads fields; nothing need be valid in any encoding.
pub(crate) fn field_behind(format: &Format, before: &[u8]) -> usize {
    let mut ended: usize = 0;
    match format.kind {
        // A quote that is still open ends no field.
        FormatKind::Csv => match attributes::csv(format, before, &mut Vec::new(), |_, _| ended += 1) {
            Ok(()) => ended.saturating_sub(1),
            Err(_) => ended,
        },
        FormatKind::Text => {
            attributes::text(format, before, |_| ended += 1);
            ended.saturating_sub(1)
        }
    }
}

/// Takes off `\n`, `\r` or `\r\n`, unless a backslash makes it data in text. (In csv a line ending that is
/// data stands inside quotes, so it cannot be last.)
fn without_line_ending(kind: FormatKind, record: &[u8]) -> &[u8] {
    let strip = |record: &'_ [u8], byte: u8| -> Option<usize> {
        let rest = record.strip_suffix(&[byte])?;
        let backslashes = rest.iter().rev().take_while(|&&byte| byte == b'\\').count();
        (kind == FormatKind::Csv || backslashes % 2 == 0).then_some(rest.len())
    };
    let end = strip(record, b'\n').unwrap_or(record.len());
    let end = strip(&record[..end], b'\r').unwrap_or(end);
    &record[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_written_is_read_back() {
        let names = ["id", "a,b", "say \"hi\"", "two\nlines", "tab\there", "back\\slash", "semi;colon", ""];
        let names = names.map(str::to_owned);
        let semicolons = Format { delimiter: b';', ..Format::text() };
        let backslash = Format { escape: b'\\', ..Format::csv() };
        for format in [Format::csv(), Format::text(), semicolons, backslash] {
            for eol in [Eol::Lf, Eol::Cr, Eol::CrLf] {
                let written = record(&format, Some(eol), &names);
                assert_eq!(fields(&format, &written).unwrap(), names, "{format:?}");
            }
        }
    }

    #[test]
    fn names_are_read_as_copy_reads_fields() {
        let csv = |record: &str| fields(&Format::csv(), record.as_bytes()).unwrap();
        assert_eq!(
            csv("id,\"first\nname\",\"a\"\"b\",c\"d\"e,\r\n"),
            ["id", "first\nname", "a\"b", "cde", ""]
        );
        let text = |record: &str| fields(&Format::text(), record.as_bytes()).unwrap();
        assert_eq!(text("id\ta\\tb\tc\\\td\t\\N\n"), ["id", "a\tb", "c\td", "\\N"]);
        assert_eq!(text("a\\\n"), ["a\n"]);
    }

    #[test]
    fn the_field_of_a_byte_is_told_by_what_stands_before_it() {
        for (before, field) in
            [("", 0), ("a", 0), ("a,", 1), ("a,\"b,c", 1), ("a,\"b,c\",", 2), ("\"\"\"", 0)]
        {
            assert_eq!(field_behind(&Format::csv(), before.as_bytes()), field, "{before}");
        }
        for (before, field) in [("", 0), ("a\tb", 1), ("a\\\tb", 0), ("a\t\t", 2)] {
            assert_eq!(field_behind(&Format::text(), before.as_bytes()), field, "{before}");
        }
    }

    #[test]
    fn more_fields_than_any_table_has_columns_are_an_error() {
        for format in [Format::csv(), Format::text()] {
            let header = |count: usize| vec![format.delimiter; count - 1];
            assert_eq!(fields(&format, &header(FIELDS_MAX)).unwrap().len(), FIELDS_MAX);
            let error = fields(&format, &header(FIELDS_MAX + 1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Columns);
            assert!(error.message().starts_with("the header has 65,537 fields"), "{error}");
        }
    }

    #[test]
    fn an_unclosed_quote_is_an_error() {
        assert_eq!(fields(&Format::csv(), b"a,\"b\n").unwrap_err().kind(), ErrorKind::Record);
    }

    #[test]
    fn names_are_decoded_from_the_files_encoding() {
        let latin1 = Format { encoding: Some("LATIN1".to_owned()), ..Format::csv() };
        assert_eq!(fields(&latin1, b"gr\xF6\xDFe\n").unwrap(), ["größe"]);
    }
}
