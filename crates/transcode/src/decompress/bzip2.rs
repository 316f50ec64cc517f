//! bzip2: one or many streams.

use super::garbage_behind;
use bzip2::bufread::MultiBzDecoder;
use std::io::{self, BufRead, Read};

/// All streams, one after the other.
pub(super) struct Streams<R>(MultiBzDecoder<R>);

impl<R: BufRead> Streams<R> {
    pub(super) fn new(stored: R) -> Streams<R> {
        Streams(MultiBzDecoder::new(stored))
    }
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|cause| {
            let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<bzip2::Error>());
            match inner {
                // By that of the first stream the file was taken for bzip2.
                Some(bzip2::Error::DataMagic) => garbage_behind("bzip2"),
                _ => cause,
            }
        })
    }
}
