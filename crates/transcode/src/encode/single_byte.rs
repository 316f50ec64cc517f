//! Encodings of one byte a character that PostgreSQL and the WHATWG call alike and read otherwise.
//!
//! To the WHATWG, LATIN1 and LATIN5 are the Windows encodings made from them, and bytes that these have no
//! character for are control characters. To the server LATIN1 and LATIN5 have control characters from 0x80 to
//! 0x9F, and those bytes of the Windows encodings are no characters at all. A file means the same whether the
//! client reads it or the server.

use super::charset::{SERVER_ENCODINGS, normalised, whatwg};
use std::ops::RangeInclusive;

/// Control characters of ISO 8859.
const CONTROLS: RangeInclusive<u8> = 0x80..=0x9F;

/// The character of each byte, where it has one.
#[derive(Clone)]
pub(crate) struct SingleByte(Box<[Option<char>; 256]>);

impl SingleByte {
    /// `None` where the WHATWG's word goes.
    pub(crate) fn of(encoding: &str) -> Option<SingleByte> {
        let name = normalised(encoding);
        let is_iso = matches!(name.as_str(), "latin1" | "iso88591" | "latin5" | "iso88599");
        let is_windows = name.starts_with("win") && SERVER_ENCODINGS.binary_search(&name.as_str()).is_ok();
        let found = whatwg(encoding).filter(|found| found.is_single_byte() && (is_iso || is_windows))?;
        let character = |byte: usize| {
            let byte = u8::try_from(byte).ok()?;
            if is_iso && CONTROLS.contains(&byte) {
                return Some(char::from(byte));
            }
            let bytes = [byte];
            let text = found.decode_without_bom_handling_and_without_replacement(&bytes)?;
            text.chars().next().filter(|c| !('\u{80}'..='\u{9f}').contains(c))
        };
        Some(SingleByte(Box::new(std::array::from_fn(character))))
    }

    /// What this byte stands for.
    pub(crate) fn character(&self, byte: u8) -> Option<char> {
        self.0[usize::from(byte)]
    }

    /// The bytes of this text, if each of its characters has one.
    pub(crate) fn bytes(&self, text: &str) -> Option<Vec<u8>> {
        let byte = |c: char| {
            let at = self.0.iter().position(|known| *known == Some(c));
            at.and_then(|at| u8::try_from(at).ok())
        };
        text.chars().map(byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_mean_what_they_mean_to_the_server() {
        for (encoding, byte, expected) in [
            ("LATIN1", 0x80, Some('\u{80}')),
            ("iso-8859-1", 0x81, Some('\u{81}')),
            ("LATIN1", 0xE9, Some('é')),
            ("LATIN5", 0x9F, Some('\u{9f}')),
            ("LATIN5", 0xD0, Some('Ğ')),
            ("WIN1252", 0x80, Some('€')),
            ("windows-1252", 0x9D, None),
            ("WIN1254", 0x8E, None),
            ("WIN1251", 0x98, None),
            ("win", 0xE4, Some('д')),
        ] {
            assert_eq!(SingleByte::of(encoding).unwrap().character(byte), expected, "{encoding} {byte:x}");
        }
        for other in ["cp1252", "WIN936", "KOI8R", "LATIN2", "UTF8", "UTF-16LE"] {
            assert!(SingleByte::of(other).is_none(), "{other}");
        }
        let every: Vec<u8> = (0..=255).collect();
        let latin1 = SingleByte::of("LATIN1").unwrap();
        let text: String = every.iter().filter_map(|byte| latin1.character(*byte)).collect();
        assert_eq!(latin1.bytes(&text).unwrap(), every);
        assert_eq!(latin1.bytes("€"), None);
    }
}
