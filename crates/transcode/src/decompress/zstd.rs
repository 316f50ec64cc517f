//! zstd (RFC 8878): one or many frames, skippable ones included.
//!
//! A frame says how much of its past it refers to; frames that want more than [`WINDOW_LOG_MAX`] allows
//! are refused.

use super::{garbage_behind, refuse};
use std::io::{self, BufRead, Read};
use zstd::stream::read::Decoder;

/// 128 MiB: what `zstd -d` itself takes without being told, and what `zstd --long` and `--ultra -22` need.
pub(super) const WINDOW_LOG_MAX: u32 = 27;

pub(super) fn frames<R: BufRead>(stored: R) -> io::Result<impl Read + use<R>> {
    let mut decoder = Decoder::with_buffer(stored)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(Frames(decoder))
}

struct Frames<'a, R: BufRead>(Decoder<'a, R>);

impl<R: BufRead> Read for Frames<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|cause| {
            // The library hands on zstd's error codes as texts only.
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
        })
    }
}
