//! The pieces nasty files are made of: what COPY looks for, and what only looks like it.

use super::pick;
use fastrand::Rng;
use howdah_model::{Eol, Format};

/// Pieces for one dialect, in the file's encoding.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// Mean something to COPY, or nearly.
    special: Vec<Vec<u8>>,
    /// Mean nothing, in several widths.
    plain: Vec<Vec<u8>>,
    /// What ends a record.
    pub(super) eol: &'static [u8],
}

impl Alphabet {
    pub(super) fn new(format: &Format, eol: Eol) -> Alphabet {
        let eol: &[u8] = match eol {
            Eol::Lf => b"\n",
            Eol::Cr => b"\r",
            Eol::CrLf => b"\r\n",
        };
        let mut special: Vec<Vec<u8>> =
            [&b"\n"[..], b"\r", b"\r\n", b"\\", b"\\\\", b"\\.", b".", b"\\N", b"\\n"]
                .iter()
                .chain(&[&b"\\x41"[..], b"\\101", b"\\t", b"\"\"", b"'", b"\"", b" ", b",", b"\t"])
                .map(|piece| piece.to_vec())
                .collect();
        let own = [format.delimiter, format.quote, format.quote, format.escape].map(|byte| vec![byte]);
        special.extend(own);
        special.push(vec![format.escape, format.quote]);
        special.push(vec![format.escape, format.escape]);
        special.push(format.null.as_bytes().to_vec());
        special.extend(format.default.as_ref().map(|default| default.as_bytes().to_vec()));
        let mut plain: Vec<Vec<u8>> =
            ["a", "z", "0", "9", "word", "-1.5e3", "_"].map(|text| text.as_bytes().to_vec()).into();
        plain.extend(wide(format.encoding.as_deref()).iter().map(|bytes| bytes.to_vec()));
        Alphabet { special, plain, eol }
    }

    /// A special piece.
    pub(super) fn special(&self, rng: &mut Rng) -> &[u8] {
        pick::<Vec<u8>>(rng, &self.special)
    }

    /// A harmless piece.
    pub(super) fn plain(&self, rng: &mut Rng) -> &[u8] {
        pick::<Vec<u8>>(rng, &self.plain)
    }
}

/// Characters beyond ASCII. Many of the Asian encodings' end in the bytes of `\`, `|`, `A` or a digit:
/// whoever looks at bytes alone is fooled.
fn wide(encoding: Option<&str>) -> &'static [&'static [u8]] {
    match encoding {
        Some("SJIS" | "SHIFT_JIS_2004") => {
            &[b"\x83\x5c", b"\x95\x5c", b"\x83\x7c", b"\x83\x41", b"\x83\x74", b"\xb1"]
        }
        Some("BIG5") => &[b"\xa5\x5c", b"\xa4\x41", b"\xa4\x7c", b"\xa4\xe9"],
        Some("GBK") => &[b"\x81\x5c", b"\x81\x41", b"\x81\x7c", b"\xb0\xa1"],
        Some("GB18030") => &[b"\x81\x5c", b"\x81\x7c", b"\x81\x30\x84\x36", b"\xb0\xa1"],
        Some("UHC") => &[b"\x81\x41", b"\x81\x61", b"\xb0\xa1"],
        Some("JOHAB") => &[b"\x88\x61", b"\x88\x62", b"\xd0\x61"],
        Some("EUC_JP") => &[b"\xa4\xa2", b"\x8e\xb1", b"\x8f\xb0\xa1"],
        Some("LATIN1") => &[b"\xe9", b"\xff", b"\xa0", b"\xdf"],
        Some("WIN1251") => &[b"\xe4", b"\xff", b"\xa8"],
        _ => &[b"\xc3\xa9", b"\xe6\xbc\xa2", b"\xf0\x9f\x90\x98"],
    }
}

/// Bytes of the character that begins with this byte, in encodings whose later bytes may look like ASCII;
/// 1 in all others.
pub(super) fn character_bytes(encoding: Option<&str>, first: u8) -> usize {
    match (encoding, first) {
        (Some("SJIS" | "SHIFT_JIS_2004"), 0x81..=0x9f | 0xe0..=0xfc)
        | (Some("BIG5" | "GBK" | "GB18030" | "UHC" | "JOHAB"), 0x80..) => 2,
        _ => 1,
    }
}
