//! What is broken is found at its record and field, however long the chunk and wherever it stands.

use super::*;
use howdah_model::Eol;
use proptest::prelude::*;

fn characters(format: &Format, eol: Eol) -> Characters {
    Characters::new(format, &Rules::new(format, 180_000, Some(eol)).unwrap()).unwrap()
}

fn found(format: &Format, eol: Eol, bytes: &[u8]) -> Option<(u64, usize, Option<usize>, OddityKind)> {
    let characters = characters(format, eol);
    let oddity = characters.inspect(bytes);
    assert_eq!(characters.are_whole(bytes), oddity.is_none());
    oddity.map(|odd| (odd.record, odd.byte, odd.field, odd.kind))
}

#[test]
fn broken_bytes_are_found_at_their_record_and_field() {
    let (csv, text) = (Format::csv(), Format::text());
    use OddityKind::{Encoding, Nul};
    for (format, eol, bytes, expected) in [
        (&csv, Eol::Lf, &b"1,a\n2,\"b\n\xff\"\n"[..], (1, 4, Some(1), Encoding)),
        (&csv, Eol::Lf, b"\xe9", (0, 0, Some(0), Encoding)),
        (&csv, Eol::CrLf, b"1,a\r\n\xe9,b\r\n", (1, 5, Some(0), Encoding)),
        // The record behind a carriage return, whatever the server takes for the end of it.
        (&csv, Eol::Cr, b"1,a\r\xe9,b\r", (1, 4, Some(0), Encoding)),
        (&text, Eol::Cr, b"1\ta\r\0\tb\r", (1, 4, Some(0), Nul)),
        (&text, Eol::Lf, b"1\ta\\\n2\xc3\tb\n\0", (0, 0, Some(1), Encoding)),
        (&text, Eol::Lf, b"1\ta\n2\t\xed\xa0\x80\n", (1, 4, Some(1), Encoding)),
        (&text, Eol::Lf, b"1\ta\n2\t\xf4\x90\x80\x80\n", (1, 4, Some(1), Encoding)),
        (&text, Eol::Lf, b"1\ta\n2\t\xc0\x80\n", (1, 4, Some(1), Encoding)),
        // The first one counts, of either kind.
        (&csv, Eol::Lf, b"1,\0\n2,\xff\n", (0, 0, Some(1), Nul)),
        (&csv, Eol::Lf, b"1,\xff\n2,\0\n", (0, 0, Some(1), Encoding)),
    ] {
        assert_eq!(found(format, eol, bytes), Some(expected), "{}", bytes.escape_ascii());
    }
    assert_eq!(found(&csv, Eol::Lf, "1,\u{ffff}é漢🐘\n".as_bytes()), None);
}

#[test]
fn what_is_not_utf8_is_left_to_the_server() {
    for (name, checks) in [("UTF8", true), ("utf-8", true), ("LATIN1", false), ("SQL_ASCII", false)] {
        let format = Format { encoding: Some(name.to_owned()), ..Format::csv() };
        let rules = Rules::new(&format, 180_000, Some(Eol::Lf)).unwrap();
        assert_eq!(Characters::new(&format, &rules).is_some(), checks, "{name}");
    }
}

#[test]
fn a_field_that_backslashes_break_is_told() {
    for (record, field) in [
        (&b"a\t\\xff\tb"[..], Some(1)),
        (b"a\t\\303\\251\t\\0", Some(2)),
        (b"a\t\xc3\\251\tb", Some(1)),
        (b"a\t\\\t\\377", Some(1)),
        (b"a\t\\303\\251", None),
    ] {
        assert_eq!(broken_field(&Format::text(), record), field, "{}", record.escape_ascii());
    }
    assert_eq!(broken_field(&Format::csv(), b"a,\\xff"), None);
    assert_eq!(broken_field(&Format::csv(), b"a,\"b,\xff\""), Some(1));
}

proptest! {
    #[test]
    fn the_same_byte_is_found_as_by_looking_at_all(
        fill in prop_oneof![Just("a"), Just("é"), Just("漢"), Just("🐘")],
        count in 0_usize..50_000,
        broken in prop::collection::vec((0_usize..300_000, prop_oneof![Just(0_u8), Just(0xff), Just(0xc3), Just(b'x')]), 0..3),
    ) {
        let mut bytes = fill.repeat(count).into_bytes();
        for (at, byte) in broken {
            let length = bytes.len();
            if let Some(place) = bytes.get_mut(at % length.max(1)) {
                *place = byte;
            }
        }
        let no_character = std::str::from_utf8(&bytes).err().map(|error| error.valid_up_to());
        let nul = bytes.iter().position(|byte| *byte == 0);
        let first = no_character.into_iter().chain(nul).min();
        prop_assert_eq!(first_broken(&bytes), first);
        prop_assert_eq!(is_storable(&bytes), first.is_none());
    }
}
