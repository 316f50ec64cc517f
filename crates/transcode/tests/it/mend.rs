//! The careful reader on random bytes: see [`crate::careful`].

use crate::careful::{check, read};
use howdah_model::{Dialect, Eol, Escape};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn dialects() -> impl Strategy<Value = Dialect> {
    let quotings = vec![
        (Some(b'"'), Escape::Doubled),
        (Some(b'"'), Escape::Doubled),
        (Some(b'"'), Escape::Backslash),
        (Some(b'\''), Escape::None),
        (None, Escape::None),
        (None, Escape::Backslash),
    ];
    let delimiters = vec![",", ",", ";", "\t", "||", ", ", " ", "§", ""];
    let eols = vec![Some(Eol::Lf), Some(Eol::Lf), Some(Eol::Cr), Some(Eol::CrLf), None];
    (
        prop::sample::select(delimiters),
        prop::sample::select(quotings),
        prop::sample::select(eols),
        any::<[bool; 3]>(),
    )
        .prop_map(|(delimiter, (quote, escape), eol, [repeats, trim, comment])| Dialect {
            delimiter: delimiter.to_owned(),
            repeats,
            trim,
            quote,
            escape,
            eol,
            nulls: vec![String::new(), "\\N".to_owned()],
            kept: BTreeMap::new(),
            unused: None,
            comment: comment.then(|| "#".to_owned()),
        })
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"\"",
        b"\"",
        b"'",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b",",
        b",",
        b";",
        b"\t",
        b"|",
        b"||",
        b" ",
        b"\\",
        b"\\\"",
        b"\"\"",
        b"a",
        b"b",
        b"#",
        b"\xC3\xA9",
        b"\xC2\xA7",
        b"\xC2",
        b"\xFF",
        b"\0",
        b"\\N",
        b"\\.",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_character_that_an_escape_parts_is_refused_or_mended() {
    let delimiter = "\t".to_owned();
    let dialect = Dialect { delimiter, quote: None, escape: Escape::Backslash, ..Dialect::csv() };
    let [_, lenient] = check(&dialect, 2, b"a\tb\xdc\\\x92\n", 1);
    assert_eq!(lenient.mends.iter().sum::<u64>(), 1);
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn any_bytes_are_read_whole_or_refused_alike(
        dialect in dialects(), width in 1_usize..5, bytes in soup(), piece_bytes in 1_usize..9
    ) {
        check(&dialect, width, &bytes, piece_bytes);
    }

    #[test]
    fn what_becomes_of_a_record_does_not_depend_on_those_before_it(
        dialect in dialects(),
        before in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 0..5),
        width in 1_usize..5,
        bytes in soup(),
    ) {
        let width = if dialect.delimiter.is_empty() { 1 } else { width };
        let before: Vec<u8> = before.iter().flat_map(|record| clean(&dialect, &record[..width])).collect();
        let [alone, rest] = [(&before, false), (&bytes, true)]
            .map(|(bytes, lenient)| read(&dialect, width, lenient, bytes, usize::MAX));
        prop_assert_eq!(alone.refusal, None);
        let file = [before.as_slice(), &bytes].concat();
        let found = read(&dialect, width, true, &file, usize::MAX).lines;
        let expected = [alone.lines, rest.lines].concat();
        prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
    }
}

/// A record that is as the dialect says, with quotes where told.
fn clean(dialect: &Dialect, quoted: &[bool]) -> Vec<u8> {
    let eol = match dialect.eol {
        Some(Eol::CrLf) => "\r\n",
        Some(Eol::Cr) => "\r",
        Some(Eol::Lf) | None => "\n",
    };
    let quote = |wanted: &bool| {
        dialect.quote.filter(|_| *wanted).map_or(String::new(), |quote| char::from(quote).into())
    };
    let fields: Vec<String> = quoted.iter().map(quote).map(|quote| format!("{quote}é{quote}")).collect();
    (fields.join(&dialect.delimiter) + eol).into_bytes()
}
