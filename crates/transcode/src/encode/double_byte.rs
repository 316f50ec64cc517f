//! East Asian encodings of two bytes a character that PostgreSQL and the WHATWG call alike and read
//! otherwise.
//!
//! The WHATWG reads what browsers meet: BIG5 with Hong Kong's characters, EUC_KR and EUC_CN as the Windows
//! code pages made from them, GB18030 of 2022. The server's conversions are older and narrower, and have
//! characters for users to define. What differs is listed here, as `convert_from` of PostgreSQL 13 to 18 has
//! it; all else is the WHATWG's. The tests compare every pair.

use super::charset::normalised;
use super::own_reading::Next;
use encoding_rs::{BIG5, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// Beyond ASCII: a first byte, and any second one.
const PAIRS: usize = 0x80 << 8;

/// Half-width kana of SJIS, which stand alone.
const KANA: RangeInclusive<u8> = 0xA1..=0xDF;

/// One encoding, and what the server has against the WHATWG's reading of it.
struct Differences {
    /// PostgreSQL's names, as [`normalised`] gives them.
    names: &'static [&'static str],
    whatwg: &'static Encoding,
    /// No character has a second byte below it.
    second_from: u8,
    /// The first and the last of pairs that are no characters.
    refused: &'static [(u16, u16)],
    /// The first of so many pairs in a row, whose characters follow one another from this one.
    others: &'static [(u16, u16, char)],
}

#[rustfmt::skip]
const DIFFERENCES: [Differences; 7] = [
    Differences {
        names: &["big5", "win950", "windows950"],
        whatwg: BIG5,
        second_from: 0x40,
        refused: &[(0x8740, 0xA0FE), (0xA3C0, 0xA3E1), (0xC7FD, 0xC8FE), (0xF9DD, 0xFEFE)],
        others: &[
            (0xA145, 1, '\u{2022}'), (0xA14E, 1, '\u{ff64}'), (0xA15A, 1, '\u{fffd}'), (0xA1C2, 1, '\u{203e}'),
            (0xA1C3, 1, '\u{fffd}'), (0xA1C5, 1, '\u{fffd}'), (0xA1E3, 1, '\u{223c}'), (0xA1F2, 1, '\u{2641}'),
            (0xA1F3, 1, '\u{2609}'), (0xA1FE, 1, '\u{fffd}'), (0xA240, 1, '\u{fffd}'), (0xA241, 1, '\u{ff0f}'),
            (0xA242, 1, '\u{ff3c}'), (0xA244, 1, '\u{a5}'), (0xA246, 2, '\u{a2}'), (0xA2CC, 1, '\u{fffd}'),
            (0xA2CE, 1, '\u{fffd}'), (0xC6A1, 1, '\u{30fe}'), (0xC6A2, 2, '\u{309d}'), (0xC6A4, 1, '\u{3005}'),
            (0xC6A5, 83, '\u{3041}'), (0xC6F8, 7, '\u{30a1}'), (0xC740, 63, '\u{30a8}'), (0xC7A1, 16, '\u{30e7}'),
            (0xC7B1, 2, '\u{414}'), (0xC7B3, 1, '\u{401}'), (0xC7B4, 7, '\u{416}'), (0xC7BB, 19, '\u{423}'),
            (0xC7CE, 1, '\u{451}'), (0xC7CF, 26, '\u{436}'), (0xC7E9, 10, '\u{2460}'), (0xC7F3, 10, '\u{2474}'),
        ],
    },
    Differences {
        names: &["uhc", "win949", "windows949"],
        whatwg: EUC_KR,
        second_from: 0x40,
        refused: &[],
        others: &[(0xA2E8, 1, '\u{327e}'), (0xC9A1, 94, '\u{e000}'), (0xFEA1, 94, '\u{e05e}')],
    },
    Differences {
        names: &["euckr"],
        whatwg: EUC_KR,
        second_from: 0xA1,
        refused: &[(0x8000, 0xA0FF)],
        others: &[(0xA2E8, 1, '\u{327e}')],
    },
    Differences {
        names: &["euccn"],
        whatwg: GBK,
        second_from: 0xA1,
        refused: &[
            (0x8000, 0xA0FF), (0xA2A1, 0xA2B0), (0xA2E3, 0xA2E4), (0xA2EF, 0xA2F0), (0xA2FD, 0xA2FE), (0xA4F4, 0xA4FE),
            (0xA5F7, 0xA5FE), (0xA6B9, 0xA6C0), (0xA6D9, 0xA6FE), (0xA7C2, 0xA7D0), (0xA7F2, 0xA7FE), (0xA8BB, 0xA8C4),
            (0xA8EA, 0xA9A3), (0xA9F0, 0xAFFE), (0xD7FA, 0xD7FE), (0xF8A1, 0xFEFE),
        ],
        others: &[(0xA1A4, 1, '\u{30fb}'), (0xA1AA, 1, '\u{2015}')],
    },
    Differences {
        names: &["gbk", "win936", "windows936"],
        whatwg: GBK,
        second_from: 0x40,
        refused: &[
            (0x8000, 0x80FF), (0xA140, 0xA1A0), (0xA240, 0xA2A0), (0xA2AB, 0xA2B0), (0xA2E3, 0xA2E4), (0xA2EF, 0xA2F0),
            (0xA2FD, 0xA3A0), (0xA440, 0xA4A0), (0xA4F4, 0xA5A0), (0xA5F7, 0xA6A0), (0xA6B9, 0xA6C0), (0xA6D9, 0xA6DF),
            (0xA6EC, 0xA6ED), (0xA6F3, 0xA6F3), (0xA6F6, 0xA7A0), (0xA7C2, 0xA7D0), (0xA7F2, 0xA7FE), (0xA896, 0xA8A0),
            (0xA8BC, 0xA8BC), (0xA8BF, 0xA8BF), (0xA8C1, 0xA8C4), (0xA8EA, 0xA8FE), (0xA958, 0xA958), (0xA95B, 0xA95B),
            (0xA95D, 0xA95F), (0xA989, 0xA995), (0xA997, 0xA9A3), (0xA9F0, 0xA9FE), (0xAAA1, 0xAAFE), (0xABA1, 0xABFE),
            (0xACA1, 0xACFE), (0xADA1, 0xADFE), (0xAEA1, 0xAEFE), (0xAFA1, 0xAFFE), (0xD7FA, 0xD7FE), (0xF8A1, 0xF8FE),
            (0xF9A1, 0xF9FE), (0xFAA1, 0xFAFE), (0xFBA1, 0xFBFE), (0xFCA1, 0xFCFE), (0xFDA1, 0xFDFE), (0xFE50, 0xFEFE),
        ],
        others: &[],
    },
    Differences {
        names: &["sjis", "mskanji", "shiftjis", "win932", "windows932"],
        whatwg: SHIFT_JIS,
        second_from: 0x40,
        refused: &[(0x8000, 0x80FF), (0xF040, 0xF9FC)],
        others: &[],
    },
    Differences {
        names: &["gb18030"],
        whatwg: GB18030,
        second_from: 0x40,
        refused: &[(0x8000, 0x80FF)],
        others: &[
            (0xA3A0, 1, '\u{e5e5}'), (0xA6D9, 7, '\u{e78d}'), (0xA6EC, 2, '\u{e794}'), (0xA6F3, 1, '\u{e796}'),
            (0xA8BC, 1, '\u{e7c7}'), (0xFE59, 1, '\u{e81e}'), (0xFE61, 1, '\u{e826}'), (0xFE66, 2, '\u{e82b}'),
            (0xFE6D, 1, '\u{e832}'), (0xFE7E, 1, '\u{e843}'), (0xFE90, 1, '\u{e854}'), (0xFEA0, 1, '\u{e864}'),
        ],
    },
];

/// Made once each: 128 kB, in less than a hundredth of a second.
static TABLES: [OnceLock<DoubleByte>; DIFFERENCES.len()] = [const { OnceLock::new() }; DIFFERENCES.len()];

/// The characters of one encoding.
pub(crate) struct DoubleByte {
    whatwg: &'static Encoding,
    /// Of pairs, from 0x8000.
    characters: Box<[Option<char>]>,
}

impl DoubleByte {
    /// `None` where the WHATWG's word goes.
    pub(super) fn of(encoding: &str) -> Option<&'static DoubleByte> {
        let name = normalised(encoding);
        let at = DIFFERENCES.iter().position(|one| one.names.contains(&name.as_str()))?;
        Some(TABLES.get(at)?.get_or_init(|| DoubleByte::new(&DIFFERENCES[at])))
    }

    fn new(differences: &Differences) -> DoubleByte {
        let character = |at: usize| {
            let pair = u16::try_from(at + PAIRS).ok()?;
            let other = differences.others.iter().find_map(|(first, count, c)| {
                let behind = pair.checked_sub(*first).filter(|behind| behind < count)?;
                char::from_u32(u32::from(*c) + u32::from(behind))
            });
            let is_refused = differences.refused.iter().any(|(first, last)| (*first..=*last).contains(&pair));
            let bytes = pair.to_be_bytes();
            if bytes[1] < differences.second_from || (is_refused && other.is_none()) {
                return None;
            }
            other.or_else(|| only_character(differences.whatwg, &bytes))
        };
        DoubleByte { whatwg: differences.whatwg, characters: (0..PAIRS).map(character).collect() }
    }

    /// What `bytes`, which begin with a byte beyond ASCII, begin with.
    pub(super) fn next(&self, bytes: &[u8]) -> Next {
        let first = bytes.first().copied().unwrap_or(0);
        if self.whatwg == SHIFT_JIS && KANA.contains(&first) {
            return only_character(self.whatwg, &[first]).map_or(Next::Broken(1), |c| Next::Character(c, 1));
        }
        let Some(second) = bytes.get(1).copied() else { return Next::Cut };
        if self.whatwg == GB18030 && second.is_ascii_digit() {
            return match bytes.get(..4) {
                None => Next::Cut,
                Some(four) => four_bytes(four).map_or(Next::Broken(1), |c| Next::Character(c, 4)),
            };
        }
        let pair = usize::from(u16::from_be_bytes([first, second])).checked_sub(PAIRS);
        match pair.and_then(|pair| self.characters.get(pair).copied().flatten()) {
            Some(c) => Next::Character(c, 2),
            // What is ASCII may be a delimiter or the end of a line, and stays one.
            None if second.is_ascii() || matches!(first, 0x80 | 0xFF) => Next::Broken(1),
            None => Next::Broken(2),
        }
    }

    /// The bytes of a character, as they are written most often.
    pub(super) fn bytes(&self, c: char) -> Option<Vec<u8>> {
        let mut utf8 = [0; 4];
        let (written, _, has_errors) = self.whatwg.encode(c.encode_utf8(&mut utf8));
        let is_it = |bytes: &[u8]| match self.next(bytes) {
            Next::Character(read, length) => read == c && length == bytes.len(),
            Next::Broken(_) | Next::Cut => false,
        };
        if c.is_ascii() || (!has_errors && is_it(&written)) {
            return Some(written.into_owned());
        }
        let at = self.characters.iter().position(|known| *known == Some(c))?;
        u16::try_from(at + PAIRS).ok().map(|pair| pair.to_be_bytes().to_vec())
    }
}

/// To the server the character of 2005 for `8135F437`, of which the WHATWG has a letter.
fn four_bytes(bytes: &[u8]) -> Option<char> {
    if bytes == [0x81, 0x35, 0xF4, 0x37] { Some('\u{1e3f}') } else { only_character(GB18030, bytes) }
}

fn only_character(encoding: &'static Encoding, bytes: &[u8]) -> Option<char> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(encoding: &str, bytes: &[u8]) -> Next {
        DoubleByte::of(encoding).unwrap().next(bytes)
    }

    #[test]
    fn pairs_mean_what_they_mean_to_the_server() {
        assert_eq!(next("BIG5", b"\xA1\x45"), Next::Character('\u{2022}', 2));
        assert_eq!(next("Big5", b"\xA4\xA4,"), Next::Character('中', 2));
        assert_eq!(next("win949", b"\xC9\xA2"), Next::Character('\u{e001}', 2));
        assert_eq!(next("EUC_KR", b"\xB0\xA1"), Next::Character('가', 2));
        assert_eq!(next("SJIS", b"\xB1,"), Next::Character('\u{ff71}', 1));
        assert_eq!(next("GB18030", b"\x81\x30\x81\x30"), Next::Character('\u{80}', 4));
        assert!(DoubleByte::of("EUC_TW").is_none() && DoubleByte::of("LATIN1").is_none());
    }

    #[test]
    fn what_follows_a_broken_character_is_not_taken_along() {
        assert_eq!(next("BIG5", b"\xA4,"), Next::Broken(1));
        assert_eq!(next("BIG5", b"\x88\xA4"), Next::Broken(2));
        assert_eq!(next("GBK", b"\x80\xB0"), Next::Broken(1));
        assert_eq!(next("UHC", b"\xB0"), Next::Cut);
        assert_eq!(next("GB18030", b"\x81\x30\x81"), Next::Cut);
    }

    #[test]
    fn characters_go_back_to_the_bytes_that_the_server_reads_them_from() {
        for (encoding, bytes) in [
            ("BIG5", &b"\xA1\x45"[..]),
            ("BIG5", b"\xA4\xA4"),
            ("UHC", b"\xFE\xFE"),
            ("SJIS", b"\xB1"),
            ("GB18030", b"\xA6\xD9"),
            ("GB18030", b"\x94\x39\xDA\x33"),
        ] {
            let Next::Character(c, _) = next(encoding, bytes) else { panic!("{encoding}") };
            assert_eq!(DoubleByte::of(encoding).unwrap().bytes(c).as_deref(), Some(bytes), "{encoding}");
        }
        assert_eq!(DoubleByte::of("EUC_KR").unwrap().bytes('é'), None);
    }
}
