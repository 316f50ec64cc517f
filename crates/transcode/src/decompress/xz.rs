//! xz: one or many streams, with padding between them as the format allows.
//!
//! Files whose dictionary needs more than [`MEMORY_BYTES_MAX`] are refused.

use super::refuse;
use liblzma::stream::{CONCATENATED, Error, Stream};
use std::io::{self, BufRead, Read};

/// `xz -9` needs 65 MiB to decompress.
const MEMORY_BYTES_MAX: u64 = 96 << 20;

pub(super) fn streams<R: BufRead>(stored: R) -> io::Result<impl Read> {
    let stream = Stream::new_stream_decoder(MEMORY_BYTES_MAX, CONCATENATED)?;
    Ok(Streams { decoder: liblzma::bufread::XzDecoder::new_stream(stored, stream) })
}

struct Streams<R> {
    decoder: liblzma::bufread::XzDecoder<R>,
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(out).map_err(|cause| {
            let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            match inner {
                Some(Error::MemLimit) => refuse(
                    "the xz data needs a dictionary of more than 96 MiB",
                    "compress it with `xz -9` or less, or pipe it: `xz -dc FILE | howdah load -`",
                ),
                _ => cause,
            }
        })
    }
}
