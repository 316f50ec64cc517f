//! xz: one or many streams, with padding behind them as the format allows.
//!
//! Files whose dictionary needs more than [`MEMORY_BYTES_MAX`] are refused.

use super::{first_byte, garbage_behind, refuse};
use liblzma::bufread::XzDecoder;
use liblzma::stream::{Error, Stream};
use std::io::{self, BufRead, Read};

/// `xz -9` needs 65 MiB to decompress.
const MEMORY_BYTES_MAX: u64 = 96 << 20;
/// Padding consists of whole ones (format specification, section 2.2).
const PADDING_BYTES: u64 = 4;

pub(super) fn streams<R: BufRead>(stored: R) -> io::Result<impl Read> {
    Ok(Streams { at: At::Stream(stream(stored)?) })
}

fn stream<R: BufRead>(stored: R) -> io::Result<XzDecoder<R>> {
    Ok(XzDecoder::new_stream(stored, Stream::new_stream_decoder(MEMORY_BYTES_MAX, 0)?))
}

struct Streams<R> {
    at: At<R>,
}

/// Where in the file the next plain byte comes from.
enum At<R> {
    Stream(XzDecoder<R>),
    /// Behind a stream.
    Between(R),
    End,
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            self.at = match std::mem::replace(&mut self.at, At::End) {
                At::End => return Ok(0),
                At::Between(stored) => next_stream(stored)?,
                At::Stream(mut decoder) => match decoder.read(out) {
                    Ok(0) => At::Between(decoder.into_inner()),
                    result => {
                        self.at = At::Stream(decoder);
                        return result.map_err(explain);
                    }
                },
            };
        }
    }
}

/// The next stream, if there is one.
fn next_stream<R: BufRead>(mut stored: R) -> io::Result<At<R>> {
    let mut padding_bytes: u64 = 0;
    loop {
        match first_byte(&mut stored)? {
            Some(0) => {
                stored.consume(1);
                padding_bytes += 1;
            }
            _ if !padding_bytes.is_multiple_of(PADDING_BYTES) => return Err(garbage_behind("xz")),
            None => return Ok(At::End),
            Some(0xFD) => return Ok(At::Stream(stream(stored)?)),
            Some(_) => return Err(garbage_behind("xz")),
        }
    }
}

fn explain(cause: io::Error) -> io::Error {
    let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::MemLimit) => refuse(
            "the xz data needs a dictionary of more than 96 MiB",
            "compress it with `xz -9` or less, or pipe it: `xz -dc FILE | howdah load -`",
        ),
        _ => cause,
    }
}
