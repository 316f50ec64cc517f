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

/// Characters beyond ASCII. Those of SJIS end in the bytes of `\`, `|`, `A` and `t`: whoever looks at bytes
/// alone is fooled.
fn wide(encoding: Option<&str>) -> &'static [&'static [u8]] {
    match encoding {
        Some("SJIS") => &[b"\x83\x5c", b"\x95\x5c", b"\x83\x7c", b"\x83\x41", b"\x83\x74", b"\xb1"],
        Some("LATIN1") => &[b"\xe9", b"\xff", b"\xa0", b"\xdf"],
        _ => &[b"\xc3\xa9", b"\xe6\xbc\xa2", b"\xf0\x9f\x90\x98"],
    }
}
