//! csv written as COPY text, read back with transcriptions of COPY's rules for both.

use super::*;
use crate::encode::attributes;
use crate::encode::text_value;
use howdah_model::Eol;
use proptest::prelude::*;

fn tabs() -> Format {
    Format { delimiter: b'\t', null: "\\N".to_owned(), ..Format::csv() }
}

fn unquote(format: &Format, records: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![b'?'; 2 * records.len() + BLOCK_BYTES];
    let length = Unquoter::new(format).unwrap().unquote(records, &mut out)?;
    out.truncate(length);
    Some(out)
}

fn text_of(format: &Format, records: &str) -> Option<String> {
    Some(String::from_utf8(unquote(format, records.as_bytes())?).unwrap())
}

#[test]
fn quotes_go_and_what_stood_inside_them_stays() {
    let backslash = Format { escape: b'\\', ..Format::csv() };
    for (format, records, expected) in [
        (Format::csv(), "1,a b\n2,\r\n", "1,a b\n2,\r\n"),
        (Format::csv(), "1,\"a, \"\"b\"\"\"\n", "1,a\\, \"b\"\n"),
        (Format::csv(), "\"a\r\nb\",C:\\x,\"C:\\\"\n", "a\\r\\nb,C:\\\\x,C:\\\\\n"),
        (Format::csv(), "a\"b\"c,\"d\"e\"f\"\n", "abc,def\n"),
        (Format::csv(), "\"a,\",b", "a\\,,b"),
        (tabs(), "1\t[\"a\tb\"]\t\\N\n", "1\t[a\\\tb]\t\\N\n"),
        (backslash, "a\\b,\"c\\\"d\\\\e\\f\"\n", "a\\\\b,c\"d\\\\e\\\\f\n"),
        (Format { quote: b'\'', ..Format::csv() }, "1,\"a\"\n", "1,\"a\"\n"),
    ] {
        assert_eq!(text_of(&format, records).as_deref(), Some(expected), "{records:?}");
    }
}

#[test]
fn a_null_stays_one_and_a_quoted_one_is_none() {
    assert_eq!(text_of(&tabs(), "\\N\t\"\\N\"\tx\\N\t\\Nx\t\\N").unwrap(), "\\N\t\\\\N\tx\\\\N\t\\\\Nx\t\\N");
    assert_eq!(text_of(&tabs(), "\\N\r\n\"\"\\N\n\\N\"\"\n").unwrap(), "\\N\r\n\\\\N\n\\\\N\n");
    let word = Format { null: "NA".to_owned(), ..Format::csv() };
    assert_eq!(text_of(&word, "NA,\"NAN\",\"\",\"x,NA\"\n").unwrap(), "NA,NAN,,x\\,NA\n");
    for records in ["\"NA\"\n", "1,\"NA\"", "\"N\"A\n", "N\"A\"\n", "\"N\"\"\"A\n"] {
        assert_eq!(text_of(&word, records), None, "{records:?}");
    }
    assert_eq!(text_of(&Format::csv(), ",\"x\"\n").unwrap(), ",x\n");
    assert_eq!(text_of(&Format::csv(), "1,\"\"\n"), None);
}

#[test]
fn a_last_record_of_nothing_but_quotes_stays_a_record() {
    assert_eq!(text_of(&tabs(), "1\n\"\""), None);
    assert_eq!(text_of(&tabs(), "1\n\"\"\n").unwrap(), "1\n\n");
    assert_eq!(text_of(&tabs(), "").unwrap(), "");
}

#[test]
fn what_copy_refuses_or_ends_at_is_left_to_csv() {
    for records in [
        &b"1,\"a\n"[..],
        b"1\n\\.\n",
        b"\\.",
        b"a\r\"\"\n",
        b"\"\xC3\"\xA9\n",
        b"\xC3\"\xA9\"\n",
        b"\xC3\"\"\xA9\n",
    ] {
        assert_eq!(unquote(&Format::csv(), records), None, "{records:?}");
    }
    let accents = "\"\u{e9}\",\"\u{df}t\u{e9}\"\n".as_bytes();
    assert_eq!(unquote(&Format::csv(), accents).unwrap(), "\u{e9},\u{df}t\u{e9}\n".as_bytes());
}

#[test]
fn too_little_room_is_no_panic() {
    let records = b"1,\"a, b\"\n2,\\\n".repeat(20);
    let unquoter = Unquoter::new(&Format::csv()).unwrap();
    let needed = unquoter.unquote(&records, &mut vec![0; 2 * records.len()]).unwrap();
    for room in 0..needed + BLOCK_BYTES {
        let written = unquoter.unquote(&records, &mut vec![0; room]);
        assert!(written.is_none_or(|length| length == needed && length <= room));
    }
    assert_eq!(unquoter.unquote(&records, &mut vec![0; needed + BLOCK_BYTES]), Some(needed));
}

#[test]
fn formats_with_what_text_lacks_are_refused() {
    for format in [
        Format::text(),
        Format { delimiter: b'x', ..Format::csv() },
        Format { delimiter: b'0', ..Format::csv() },
        Format { delimiter: b'.', ..Format::csv() },
        Format { delimiter: b'\\', ..Format::csv() },
        Format { quote: b'\\', ..Format::csv() },
        Format { null: "\\-".to_owned(), ..Format::csv() },
        Format { null: "\"\"".to_owned(), ..Format::csv() },
        Format { quote: b'N', null: "\\N".to_owned(), ..Format::csv() },
        Format { null: "\u{e9}".to_owned(), ..Format::csv() },
        Format { default: Some("D".to_owned()), ..Format::csv() },
        Format { force_not_null: ColumnChoice::All, ..Format::csv() },
        Format { force_null: ColumnChoice::All, null: "\\N".to_owned(), ..Format::csv() },
        Format { encoding: Some("SJIS".to_owned()), ..Format::csv() },
    ] {
        assert!(Unquoter::new(&format).is_none(), "{format:?}");
    }
}

#[test]
fn a_quoted_spelling_of_null_goes_as_csv_whatever_columns_make_of_it() {
    for (null, quoted) in [("", "\"\""), ("NA", "\"NA\"")] {
        let force_null = ColumnChoice::Named(vec!["a".to_owned()]);
        let format = Format { force_null, null: null.to_owned(), ..Format::csv() };
        assert_eq!(text_of(&format, &format!("{quoted},1\n")), None);
        assert_eq!(text_of(&format, "\"x\",1\n").as_deref(), Some("x,1\n"));
    }
}

/// The values of each record, `None` for NULL.
type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// Records as COPY reads them; `None` if it refuses one.
fn read(format: &Format, eol: Eol, records: &[u8]) -> Option<Rows> {
    let rules = Rules::new(format, 180_000, Some(eol)).unwrap();
    let mut rows = Vec::new();
    for record in rules.records(records) {
        if record.offence.is_some() {
            return None;
        }
        let (record, mut row) = (&records[record.content], Vec::new());
        match format.kind {
            FormatKind::Csv => {
                let each = |value: &[u8], is_null: bool| row.push((!is_null).then(|| value.to_vec()));
                attributes::csv(format, record, &mut Vec::new(), each).ok()?;
            }
            FormatKind::Text => attributes::text(format, record, |field| {
                let field = &record[field];
                row.push((field != format.null.as_bytes()).then(|| text_value(field)));
            }),
        }
        rows.push(row);
    }
    Some(rows)
}

fn formats() -> impl Strategy<Value = Format> {
    let quotings = vec![(b'"', b'"'), (b'"', b'"'), (b'"', b'\\'), (b'\'', b'"'), (b'"', b','), (b'"', b'x')];
    let nulls = vec!["", "\\N", "\\N", "NA", "a"];
    (
        prop::sample::select(vec![b',', b'\t', b'|']),
        prop::sample::select(quotings),
        prop::sample::select(nulls),
    )
        .prop_filter_map("text has no such delimiter", |(delimiter, (quote, escape), null)| {
            let format = Format { delimiter, quote, escape, null: null.to_owned(), ..Format::csv() };
            Unquoter::new(&format).is_some().then_some(format)
        })
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"\"",
        b"\"",
        b"\"\"",
        b"'",
        b",",
        b",",
        b",\"",
        b"\",",
        b"\t",
        b"\n",
        b"\n",
        b"\"\n\"",
        b"\r",
        b"\r\n",
        b"\\",
        b"\\N",
        b"\\N",
        b"N",
        b"NA",
        b"a",
        b"x",
        b".",
        b"\\.",
        b"\xC3\xA9",
        b"\xC3",
        b"\xA9",
        b"twenty bytes of text",
        b"and forty of them, so that blocks do end",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

/// Records as people write them: each field quoted or not, and quoted where it must be.
fn records() -> impl Strategy<Value = Vec<Vec<(Vec<u8>, bool)>>> {
    let pieces: Vec<&[u8]> = vec![
        b"a",
        b"b c",
        b"",
        b"NA",
        b"N",
        b"\\",
        b"\"",
        b"'",
        b",",
        b"\t",
        b"\n",
        b"\r",
        b"\xC3\xA9",
        b"42 bytes",
    ];
    let field = (prop::collection::vec(prop::sample::select(pieces), 0..5), any::<bool>());
    let field = field.prop_map(|(pieces, quoted)| (pieces.concat(), quoted));
    prop::collection::vec(prop::collection::vec(field, 1..4), 1..20)
}

fn written(format: &Format, records: &[Vec<(Vec<u8>, bool)>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        for (no, (value, quoted)) in record.iter().enumerate() {
            out.extend((no > 0).then_some(format.delimiter));
            let must = value.iter().any(|byte| {
                *byte == format.quote || *byte == format.delimiter || matches!(byte, b'\n' | b'\r' | b'\\')
            });
            if !(must || *quoted) {
                out.extend_from_slice(value);
                continue;
            }
            out.push(format.quote);
            for byte in value {
                out.extend((*byte == format.quote || *byte == format.escape).then_some(format.escape));
                out.push(*byte);
            }
            out.push(format.quote);
        }
        out.push(b'\n');
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn text_holds_the_values_and_nulls_of_csv(
        format in formats(),
        eol in prop::sample::select(vec![Eol::Lf, Eol::Lf, Eol::CrLf, Eol::Cr]),
        bytes in soup(),
    ) {
        let Some(lines) = unquote(&format, &bytes) else { return Ok(()) };
        let sent = Unquoter::new(&format).unwrap().sent_format(&format);
        prop_assert_eq!(read(&sent, eol, &lines), read(&format, eol, &bytes));
        let broken = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
        prop_assert_eq!(broken(&lines), broken(&bytes), "bytes of broken characters were joined or cut");
    }

    #[test]
    fn records_as_people_write_them_are_rewritten(format in formats(), records in records()) {
        let bytes = written(&format, &records);
        let rows = read(&format, Eol::Lf, &bytes);
        let quoted_null = records.iter().flatten().any(|(value, _)| value == format.null.as_bytes());
        match unquote(&format, &bytes) {
            Some(lines) => {
                let sent = Unquoter::new(&format).unwrap().sent_format(&format);
                prop_assert_eq!(read(&sent, Eol::Lf, &lines), rows);
                prop_assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), records.len());
            }
            None => prop_assert!(quoted_null && format.null != "\\N"),
        }
    }
}
