//! Encodings whose names PostgreSQL and the WHATWG share, read as the server reads them.
//!
//! A file means the same whether the client reads it or the server: which bytes are characters, and which
//! ones.

use super::SingleByte;
use super::double_byte::DoubleByte;
use encoding_rs::{DecoderResult, Encoding};

/// What some bytes begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A character, and its bytes.
    Character(char, usize),
    /// So many bytes that are no character.
    Broken(usize),
    /// The beginning of a character that may go on behind these bytes.
    Cut,
}

/// The reading of one encoding.
#[derive(Clone)]
pub(crate) enum OwnReading {
    Single(SingleByte),
    Double(&'static DoubleByte),
}

impl OwnReading {
    /// `None` where the WHATWG's word goes.
    pub(crate) fn of(encoding: &str) -> Option<OwnReading> {
        let double = || DoubleByte::of(encoding).map(OwnReading::Double);
        SingleByte::of(encoding).map(OwnReading::Single).or_else(double)
    }

    /// What `bytes` begin with. At the end of the text nothing is cut, but broken.
    fn next(&self, bytes: &[u8], is_last: bool) -> Next {
        let found = match (self, bytes.first()) {
            (_, None) => Next::Cut,
            (OwnReading::Single(single), Some(byte)) => {
                single.character(*byte).map_or(Next::Broken(1), |c| Next::Character(c, 1))
            }
            (OwnReading::Double(_), Some(byte)) if byte.is_ascii() => Next::Character(char::from(*byte), 1),
            (OwnReading::Double(double), Some(_)) => double.next(bytes),
        };
        if found == Next::Cut && is_last { Next::Broken(1) } else { found }
    }

    /// Writes characters to `out` while there is room, as [`encoding_rs::Decoder`] does: what ended it, bytes
    /// taken, bytes written. The beginning of a character that the bytes end in is not taken, unless they are
    /// the `last`.
    pub(super) fn write(&self, bytes: &[u8], out: &mut [u8], is_last: bool) -> (DecoderResult, usize, usize) {
        let (mut read, mut written) = (0, 0);
        while read < bytes.len() {
            let plain = Encoding::ascii_valid_up_to(&bytes[read..]).min(out.len() - written);
            out[written..written + plain].copy_from_slice(&bytes[read..read + plain]);
            (read, written) = (read + plain, written + plain);
            if read == bytes.len() {
                break;
            }
            match self.next(&bytes[read..], is_last) {
                Next::Character(c, length) => match out.get_mut(written..written + c.len_utf8()) {
                    Some(room) => (read, written) = (read + length, written + c.encode_utf8(room).len()),
                    None => return (DecoderResult::OutputFull, read, written),
                },
                Next::Broken(length) => {
                    let length_of_one = u8::try_from(length).unwrap_or(u8::MAX);
                    return (DecoderResult::Malformed(length_of_one, 0), read + length, written);
                }
                Next::Cut => break,
            }
        }
        (DecoderResult::InputEmpty, read, written)
    }

    /// The text, with U+FFFD for what is no character.
    pub(crate) fn text(&self, bytes: &[u8]) -> String {
        self.characters(bytes).map(|(c, _)| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }

    /// The text, if all of it is characters.
    pub(super) fn strict_text(&self, bytes: &[u8]) -> Option<String> {
        self.characters(bytes).map(|(c, _)| c).collect()
    }

    /// How many bytes have been read when so many bytes of text are written.
    pub(crate) fn bytes_read(&self, bytes: &[u8], text_bytes: usize) -> usize {
        let (mut read, mut written) = (0, 0);
        for (c, length) in self.characters(bytes) {
            if written >= text_bytes {
                break;
            }
            (read, written) = (read + length, written + c.unwrap_or(char::REPLACEMENT_CHARACTER).len_utf8());
        }
        read
    }

    /// The bytes of this text, if each of its characters has some.
    pub(super) fn bytes(&self, text: &str) -> Option<Vec<u8>> {
        match self {
            OwnReading::Single(single) => single.bytes(text),
            OwnReading::Double(double) => {
                let each: Option<Vec<Vec<u8>>> = text.chars().map(|c| double.bytes(c)).collect();
                each.map(|each| each.concat())
            }
        }
    }

    /// Each character, `None` for what is none, and its bytes.
    fn characters<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (Option<char>, usize)> + 'a {
        let mut read = 0;
        std::iter::from_fn(move || {
            let rest = bytes.get(read..).filter(|rest| !rest.is_empty())?;
            let (c, length) = match self.next(rest, true) {
                Next::Character(c, length) => (Some(c), length),
                Next::Broken(length) => (None, length),
                Next::Cut => return None,
            };
            read += length;
            Some((c, length))
        })
    }
}
