//! The inspector, the careful reader and COPY's rules must agree about every chunk.

use super::*;
use crate::decompress;
use crate::encode::{FieldTarget, Rewriter, attributes};
use crate::mend::{self, Counts, Field, Shape};
use proptest::prelude::*;
use std::io::Read;
use std::sync::Arc;

/// Newer than every difference between servers.
const SERVER_VERSION: u32 = 180_000;

fn inspector(dialect: &Dialect, width: usize) -> Inspector {
    Inspector::new(&dialect.to_format().unwrap(), dialect, width).unwrap()
}

fn oddity(dialect: &Dialect, width: usize, bytes: &[u8]) -> Option<(u64, usize, OddityKind)> {
    let inspector = inspector(dialect, width);
    let found = inspector.inspect(bytes);
    assert_eq!(inspector.inspect_behind(bytes), found);
    found.map(|odd| (odd.record, odd.byte, odd.kind))
}

#[test]
fn a_line_that_an_old_server_takes_for_the_end_of_the_data_is_odd() {
    for (width, bytes) in
        [(1, &b"a\n\"\\.\"\nb\\.\n\\.\nc\n"[..]), (2, b"a,1\n\"\\.\",2\nb\\.,3\n\\.\nc,4\n")]
    {
        let odd = |version| inspector(&Dialect::csv(), width).for_server(version).inspect(bytes);
        let old = odd(170_000).unwrap();
        assert_eq!((old.record, old.kind), (3, OddityKind::Marker));
        assert_eq!(odd(180_000).map(|odd| odd.kind), (width > 1).then_some(OddityKind::Width));
    }
    assert_eq!(
        inspector(&Dialect::csv(), 1).for_server(170_000).inspect(b"a\\.\n\"\\.\"\n\\. \n\\.\t\n"),
        None
    );
}

/// What the careful reader makes of the same bytes.
fn lines(dialect: &Dialect, width: usize, bytes: &[u8]) -> Result<Vec<u8>> {
    let shape = Shape {
        dialect: dialect.clone(),
        fields: vec![Field::as_it_is(); width],
        names: Vec::new(),
        data_start_byte: 0,
        data_end_byte: None,
        end: None,
        lenient: false,
        skips: false,
        nul: howdah_model::Nul::Reject,
        record_bytes_max: 1 << 20,
        read: |_, _, _| false,
    };
    let mut lines = Vec::new();
    let mut reader = mend::reader(&shape, bytes, Arc::new(Counts::new(width)))?;
    reader.read_to_end(&mut lines).map_err(decompress::error)?;
    Ok(lines)
}

/// What COPY's rules make of them.
fn rewritten(dialect: &Dialect, width: usize, bytes: &[u8]) -> Vec<u8> {
    let format = dialect.to_format().unwrap();
    let field = FieldTarget { name: "c".to_owned(), keep: true, force_null: false, force_not_null: false };
    let rules = Rules::new(&format, SERVER_VERSION, dialect.eol).unwrap();
    let mut out = Vec::new();
    let rewriter = Rewriter::new(&format, &vec![field; width]).unwrap();
    rewriter.rewrite(&rules, bytes, &mut out).unwrap();
    out
}

/// The values that lines of COPY text stand for.
fn values(lines: &[u8]) -> Vec<Vec<Option<String>>> {
    let rules = Rules::new(&Format::text(), SERVER_VERSION, Some(Eol::Lf)).unwrap();
    let records = rules.records(lines).map(|record| {
        let (content, mut values) = (&lines[record.content], Vec::new());
        attributes::text(&Format::text(), content, |field| {
            let field = &content[field];
            let value = String::from_utf8_lossy(&attributes::text_value(field)).into_owned();
            values.push((field != b"\\N").then_some(value));
        });
        values
    });
    records.collect()
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let quotings = vec![
        (Some(b'"'), Escape::Doubled),
        (Some(b'"'), Escape::Doubled),
        (Some(b'"'), Escape::Backslash),
        (Some(b'\''), Escape::Doubled),
        (Some(b'"'), Escape::None),
        (None, Escape::None),
        (None, Escape::Backslash),
    ];
    let eols = vec![Eol::Lf, Eol::Lf, Eol::Cr, Eol::CrLf];
    (
        prop::sample::select(vec![",", ";", "\t", "|"]),
        prop::sample::select(quotings),
        prop::sample::select(eols),
    )
        .prop_map(|(delimiter, (quote, escape), eol)| Dialect {
            delimiter: delimiter.to_owned(),
            quote,
            escape,
            eol: Some(eol),
            nulls: vec![if quote.is_none() { "\\N" } else { "" }.to_owned()],
            ..Dialect::csv()
        })
}

/// Records of the dialect, most of them as they should be.
fn chunk(dialect: &Dialect, width: usize) -> impl Strategy<Value = Vec<u8>> + use<> {
    let quote = dialect.quote.map_or(String::new(), |byte| char::from(byte).to_string());
    let escaped = match dialect.escape {
        Escape::Doubled => format!("{quote}{quote}"),
        Escape::Backslash => format!("\\{quote}\\\\"),
        Escape::None => String::new(),
    };
    let inner = ["a", "é", "\\", "\n", "\r", "\r\n", "'", &dialect.delimiter, &escaped].concat();
    let inner = if quote.is_empty() { "bc".to_owned() } else { inner };
    let fields: Vec<String> = vec![
        String::new(),
        "plain".to_owned(),
        "a rather long field that fills most of a block of sixty-four".to_owned(),
        "é漢🐘".to_owned(),
        "\\N".to_owned(),
        format!("{quote}{quote}"),
        format!("{quote}{inner}{quote}"),
        format!("{quote}{escaped}{quote}"),
        format!("{quote}x{}y{quote}", if quote.is_empty() { "" } else { dialect.delimiter.as_str() }),
    ];
    let eol = match dialect.eol {
        Some(Eol::CrLf) => "\r\n",
        Some(Eol::Cr) => "\r",
        Some(Eol::Lf) | None => "\n",
    };
    let (delimiter, eol) = (dialect.delimiter.clone(), eol.to_owned());
    let specials =
        vec!["\"", "'", "\n", "\r", "\r\n", ",", ";", "\t", "|", "\\", "\0", "\u{1}x", "a", "\"\"", ""];
    let record = prop::collection::vec(prop::sample::select(fields), width).prop_map({
        let eol = eol.clone();
        move |fields| fields.join(&delimiter) + &eol
    });
    let records = prop::collection::vec(record, 1..20);
    let damage = prop::option::weighted(0.6, (any::<prop::sample::Index>(), prop::sample::select(specials)));
    (records, damage, prop::bool::weighted(0.1), any::<bool>()).prop_map(
        move |(records, damage, broken, cut)| {
            let mut bytes = records.concat().into_bytes();
            if let Some((index, special)) = damage {
                let at = index.index(bytes.len());
                bytes.splice(at..at, special.bytes());
            }
            if broken {
                let at = bytes.len() / 2;
                bytes.insert(at, 0xC3);
            }
            if cut {
                bytes.truncate(bytes.len() - eol.len());
            }
            bytes
        },
    )
}

/// Any mixture of what matters.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "\"",
        "\"",
        "'",
        "\n",
        "\r",
        "\r\n",
        ",",
        ",",
        ";",
        "\t",
        "|",
        "\\",
        "a",
        "é",
        "",
        "aaaaaaaaaaaaaaaaaaaa",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn cases() -> impl Strategy<Value = (Dialect, usize, Vec<u8>)> {
    (dialects(), 1_usize..5).prop_flat_map(|(dialect, width)| {
        let bytes = prop_oneof![4 => chunk(&dialect, width), 1 => soup()];
        (Just(dialect), Just(width), bytes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(4000)))]

    #[test]
    fn nothing_odd_is_read_alike_by_all_and_what_is_odd_is_refused_at_the_same_record(
        (dialect, width, bytes) in cases()
    ) {
        // The one byte that is odd to COPY alone.
        prop_assume!(dialect.quote.is_some() || dialect.escape == Escape::Backslash || !bytes.contains(&1));
        let inspector = inspector(&dialect, width);
        assert_eq!(inspector.inspect_behind(&bytes), inspector.inspect(&bytes));
        match (inspector.inspect(&bytes), lines(&dialect, width, &bytes)) {
            (None, Ok(lines)) => {
                let expected = rewritten(&dialect, width, &bytes);
                prop_assert_eq!(values(&lines), values(&expected));
            }
            (Some(odd), Err(error)) => {
                let place = (error.place().record, error.place().byte);
                prop_assert_eq!((Some(odd.record + 1), Some(odd.byte as u64)), place);
            }
            (odd, lines) => prop_assert!(false, "{odd:?} {lines:?}"),
        }
    }
}

#[test]
fn what_contradicts_the_dialect_is_named() {
    let csv = Dialect::csv();
    assert_eq!(oddity(&csv, 2, b"1,2\n\"3\"\"\",\"4,\n\"\n,\n"), None);
    let cases: [(&[u8], OddityKind); 12] = [
        (b"3\n", OddityKind::Width),
        (b"3,4,5\n", OddityKind::Width),
        (b"\n", OddityKind::Width),
        (b"3,5\" pipe\n", OddityKind::Quote),
        (b"3,\"4\"5\n", OddityKind::Quote),
        (b"3,\"4\n", OddityKind::Quote),
        (b"'3,3',4\n", OddityKind::Quote),
        (b"3,4\r\n", OddityKind::LineEnding),
        (b"3,\0\n", OddityKind::Nul),
        (b"3,\xE9\n", OddityKind::Encoding),
        (b"\xef\xbb\xbf3,4\n", OddityKind::Mark),
        (b"\xef\xbb\xbf\"3\",4\n", OddityKind::Mark),
    ];
    for (record, kind) in cases {
        let bytes = [b"1,2\n", record].concat();
        assert_eq!(oddity(&csv, 2, &bytes), Some((1, 4, kind)), "{}", String::from_utf8_lossy(record));
    }
}

#[test]
fn quotes_in_a_file_without_quotes_are_named() {
    let bare = Dialect { quote: None, escape: Escape::None, ..Dialect::csv() };
    assert_eq!(oddity(&bare, 2, b"1,\"2\"\n"), None);
    assert_eq!(oddity(&bare, 2, b"1,2\n\"3,3\",4\n"), Some((1, 4, OddityKind::Quote)));
    assert_eq!(oddity(&bare, 2, b"1,2\n3,\x014\n"), Some((1, 4, OddityKind::Quote)));
    let odd = inspector(&bare, 2).inspect(b"\"3,3\",4\n").unwrap();
    assert_eq!(odd.message, "expected 2 fields, got 3; with \" for the quote it has 2");
    assert!(odd.hint.contains("--lenient"));
}

#[test]
fn only_utf8_is_looked_at_character_by_character() {
    let csv = Dialect::csv();
    let told = |encoding: &str| Format { encoding: Some(encoding.to_owned()), ..Format::csv() };
    let latin = Inspector::new(&told("LATIN1"), &csv, 1).unwrap();
    assert_eq!(latin.inspect(b"\xE9\n"), None);
    assert!(Inspector::new(&told("utf-8"), &csv, 1).unwrap().inspect(b"\xE9\n").is_some());
    // 0x95 0x5C is one character of Shift-JIS; 0x5C alone is the backslash.
    let escaped = Dialect { escape: Escape::Backslash, ..csv.clone() };
    assert_eq!(Inspector::new(&told("SJIS"), &escaped, 1).unwrap().inspect(b"\"\x95\x5C\"\n"), None);
    assert!(Inspector::new(&told("SJIS"), &csv, 1).unwrap().inspect(b"\x95\x5C,\n").is_some());
}
