//! zstd (RFC 8878): one or many frames, skippable ones included.
//!
//! A frame says how much of its past it refers to; frames that want more than [`WINDOW_LOG_MAX`] allows are
//! refused. The frames are followed here, and not by the library's reader, which takes a few bytes behind the
//! last one for the beginning of another that is cut short.

use super::{garbage_behind, may_begin, refuse};
use std::io::{self, BufRead, Read};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// 128 MiB: what `zstd -d` itself takes without being told, and what `zstd --long` and `--ultra -22` need.
pub(super) const WINDOW_LOG_MAX: u32 = 27;

const MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE_MAGICS: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

pub(super) fn frames<R: BufRead>(stored: R) -> io::Result<impl Read + use<R>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(Frames { stored, decoder, begun: 0, magic: [0; 4] })
}

struct Frames<R> {
    stored: R,
    decoder: Decoder<'static>,
    /// Stored bytes of the frame so far; none between two of them.
    begun: usize,
    /// The first of these.
    magic: [u8; 4],
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let stored = self.stored.fill_buf()?;
            let is_end = stored.is_empty();
            if is_end && self.begun == 0 {
                return Ok(0);
            }
            let (mut from, mut to) = (InBuffer::around(stored), OutBuffer::around(&mut *out));
            let wanted = self.decoder.run(&mut from, &mut to).map_err(explained)?;
            let (taken, given) = (from.pos(), to.pos());
            for (place, byte) in self.magic.iter_mut().skip(self.begun).zip(&stored[..taken]) {
                *place = *byte;
            }
            self.begun += taken;
            self.stored.consume(taken);
            if wanted == 0 {
                self.begun = 0;
                self.decoder.reinit()?;
            }
            if given > 0 {
                return Ok(given);
            }
            if is_end && wanted > 0 {
                return Err(self.cut_short());
            }
        }
    }
}

impl<R> Frames<R> {
    fn cut_short(&self) -> io::Error {
        let magics = std::iter::once(MAGIC).chain(SKIPPABLE_MAGICS);
        match self.magic.get(..self.begun) {
            Some(begin) if !may_begin(begin, magics) => garbage_behind("zstd"),
            _ => io::ErrorKind::UnexpectedEof.into(),
        }
    }
}

/// The library hands on zstd's error codes as texts only.
fn explained(cause: io::Error) -> io::Error {
    match cause.to_string() {
        text if text.contains("too much memory") => refuse(
            "the zstd data needs a window of more than 128 MiB",
            "compress it with a smaller window, as by `zstd --long=27`, or pipe it: `zstd -dc --long=31 FILE | howdah load -`",
        ),
        text if text.contains("Dictionary mismatch") => refuse(
            "the zstd data was compressed with a dictionary, which is not in it",
            "pipe it: `zstd -dc -D DICTIONARY FILE | howdah load -`",
        ),
        // By that of the first frame the file was taken for zstd.
        text if text.contains("Unknown frame descriptor") => garbage_behind("zstd"),
        _ => cause,
    }
}
