//! The fields of one record, cut as COPY cuts them.
//!
//! A transcription of the rules of `CopyReadAttributesCSV` and `CopyReadAttributesText` in PostgreSQL's
//! `copyfromparse.c`. Records come in without their line ending.

use howdah_model::Format;
use std::ops::Range;

/// What COPY says about quotes that are never closed.
pub(crate) const UNTERMINATED: &str = "unterminated CSV quoted field";

/// Calls `each` for every field of a csv record with the value and whether the field, as it is written, is
/// the spelling of NULL. A field with a quote anywhere never is.
///
/// # Errors
/// [`UNTERMINATED`].
pub(crate) fn csv(
    format: &Format,
    record: &[u8],
    value: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], bool),
) -> Result<(), &'static str> {
    let mut at = 0;
    loop {
        value.clear();
        let start = at;
        let mut saw_quote = false;
        let end = loop {
            let plain = memchr::memchr2(format.delimiter, format.quote, &record[at..]);
            let stop = plain.map_or(record.len(), |length| at + length);
            value.extend_from_slice(&record[at..stop]);
            if stop == record.len() || record[stop] == format.delimiter {
                break stop;
            }
            saw_quote = true;
            at = quoted(format, record, stop + 1, value).ok_or(UNTERMINATED)?;
        };
        each(value, !saw_quote && &record[start..end] == format.null.as_bytes());
        if end == record.len() {
            return Ok(());
        }
        at = end + 1;
    }
}

/// Appends what stands inside quotes; returns the offset behind the closing quote, if there is one.
pub(super) fn quoted(format: &Format, record: &[u8], mut at: usize, value: &mut Vec<u8>) -> Option<usize> {
    loop {
        let stop = at + memchr::memchr2(format.quote, format.escape, &record[at..])?;
        value.extend_from_slice(&record[at..stop]);
        at = stop + 1;
        match record.get(at) {
            // The escape is tried first: it may be the quote itself.
            Some(&next)
                if record[stop] == format.escape && (next == format.escape || next == format.quote) =>
            {
                value.push(next);
                at += 1;
            }
            _ if record[stop] == format.quote => return Some(at),
            _ => value.push(record[stop]),
        }
    }
}

/// Where the fields of a text record stand, as they are written, backslashes included. A backslash that is
/// the last byte of the record belongs to no field; COPY drops it.
pub(crate) fn text(format: &Format, record: &[u8], mut each: impl FnMut(Range<usize>)) {
    let (mut start, mut at) = (0, 0);
    loop {
        let stop = memchr::memchr2(format.delimiter, b'\\', &record[at..])
            .map_or(record.len(), |length| at + length);
        if stop == record.len() {
            return each(start..stop);
        }
        // A delimiter that is a backslash is refused by the server.
        if record[stop] == format.delimiter {
            each(start..stop);
            (start, at) = (stop + 1, stop + 1);
        } else if stop + 1 == record.len() {
            return each(start..stop);
        } else {
            at = stop + 2;
        }
    }
}

/// The value of a field of COPY text, its backslash sequences undone.
pub fn text_value(field: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let (byte, length) = match rest.split_first() {
            Some((&escaped, behind)) if byte == b'\\' => {
                let (byte, length) = escape_value(escaped, behind);
                (byte, 1 + length)
            }
            _ => (byte, 0),
        };
        value.push(byte);
        rest = &rest[length..];
    }
    value
}

/// What a backslash and `escaped` stand for, and how many of the bytes `after` belong to it.
fn escape_value(escaped: u8, after: &[u8]) -> (u8, usize) {
    let digits = |digits_max: usize, radix: u32, first: u32| {
        let mut number = first;
        let mut length = 0;
        while length < digits_max
            && let Some(digit) = after.get(length).and_then(|&byte| char::from(byte).to_digit(radix))
        {
            number = number * radix + digit;
            length += 1;
        }
        // COPY keeps the low byte.
        ((number & 0xFF) as u8, length)
    };
    match escaped {
        b'0'..=b'7' => digits(2, 8, u32::from(escaped - b'0')),
        b'x' if after.first().is_some_and(u8::is_ascii_hexdigit) => digits(2, 16, 0),
        b'b' => (0x08, 0),
        b'f' => (0x0C, 0),
        b'n' => (b'\n', 0),
        b'r' => (b'\r', 0),
        b't' => (b'\t', 0),
        b'v' => (0x0B, 0),
        other => (other, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv_fields(format: &Format, record: &str) -> Result<Vec<(String, bool)>, String> {
        let mut fields = Vec::new();
        csv(format, record.as_bytes(), &mut Vec::new(), |value, is_null| {
            fields.push((String::from_utf8_lossy(value).into_owned(), is_null));
        })?;
        Ok(fields)
    }

    fn values(format: &Format, record: &str) -> Vec<String> {
        csv_fields(format, record).unwrap().into_iter().map(|field| field.0).collect()
    }

    #[test]
    fn quotes_count_in_the_middle_of_a_field() {
        assert_eq!(values(&Format::csv(), r#"a"b,c"d,"e""f""#), ["ab,cd", "e\"f"]);
        assert_eq!(values(&Format::csv(), r#"a"b"c"d",e"#), ["abcd", "e"]);
        assert_eq!(csv_fields(&Format::csv(), "a,\"b").unwrap_err(), UNTERMINATED);
    }

    #[test]
    fn an_escape_counts_inside_quotes_only() {
        let format = Format { escape: b'\\', ..Format::csv() };
        assert_eq!(values(&format, r#"a\b,"c\"d\\e\f""#), [r"a\b", r#"c"d\e\f"#]);
    }

    #[test]
    fn only_an_unquoted_null_spelling_is_null() {
        let fields = csv_fields(&Format::csv(), r#","",a"#).unwrap();
        assert_eq!(fields.iter().map(|field| field.1).collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn text_escapes_are_those_of_copy() {
        let values: [(&[u8], &[u8]); 5] = [
            (b"\\b\\f\\n\\r\\t\\v\\\\\\q", b"\x08\x0C\n\r\t\x0B\\q"),
            (b"\\101\\7\\0078", b"A\x07\x078"),
            (b"\\x41\\x4g\\xg\\x414", b"A\x04gxgA4"),
            (b"\\777", b"\xFF"),
            (b"", b""),
        ];
        for (field, value) in values {
            assert_eq!(text_value(field), value);
        }
    }

    #[test]
    fn an_escaped_delimiter_is_data() {
        let mut fields = Vec::new();
        let record = b"a\\\tb\tc\\";
        text(&Format::text(), record, |field| fields.push(text_value(&record[field])));
        assert_eq!(fields, [b"a\tb".to_vec(), b"c".to_vec()]);
    }
}
