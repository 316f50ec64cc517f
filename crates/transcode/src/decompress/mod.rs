//! Stored bytes to plain bytes.
//!
//! The first bytes of a file tell how it is compressed ([`sniff`], names play no part), and a [`decoder`]
//! yields all it holds: every member, frame or stream. Damage and an early end are errors, never a short
//! result. Memory is bounded by the codec's window, whatever the file claims.
//!
//! Where a file consists of members, frames or blocks, [`ahead`] yields the same, and lets other threads
//! decode what comes next.

mod ahead;
mod bzip2;
mod gzip;
mod lz4;
mod parts;
mod sniff;
mod xz;
mod zstd;

pub use ahead::{AHEAD_BYTES_MIN, Helpers, Piece, ahead, begins_with_part, may_have_parts};
pub use parts::BgzfEnd;
pub use sniff::{SNIFF_BYTES, sniff};

use howdah_model::{Codec, Error, ErrorKind, Result};
use std::io::{self, BufRead, Read};

/// The plain bytes of a whole compressed stream.
///
/// Reads fail with an [`io::Error`] that carries a [`howdah_model::Error`]; [`error`] takes it out. So that
/// trouble of the source is not taken for damage, errors of `stored` should carry one too
/// (`io::Error::other(error)`); they are passed on as they are.
///
/// # Errors
/// `Decompress` if the codec's state cannot be set up.
pub fn decoder<'a, R: BufRead + Send + 'a>(codec: Codec, stored: R) -> Result<Box<dyn Read + Send + 'a>> {
    let set_up = |cause: io::Error| error(explain(codec, cause));
    Ok(match codec {
        Codec::None => Box::new(stored),
        Codec::Gzip => explained(codec, gzip::Members::new(stored)),
        Codec::Zstd => explained(codec, zstd::frames(stored).map_err(set_up)?),
        Codec::Bzip2 => explained(codec, bzip2::Streams::new(stored)),
        Codec::Xz => explained(codec, xz::streams(stored).map_err(set_up)?),
        Codec::Lz4 => explained(codec, lz4::Frames::new(stored)),
    })
}

/// The plain bytes of what follows a whole member or frame of a compressed stream.
fn decoder_behind<'a, R: BufRead + Send + 'a>(codec: Codec, stored: R) -> Result<Box<dyn Read + Send + 'a>> {
    match codec {
        Codec::Gzip => Ok(explained(codec, gzip::Members::behind(stored))),
        _ => decoder(codec, stored),
    }
}

/// What went wrong while reading from a [`decoder`].
pub fn error(cause: io::Error) -> Error {
    match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(ErrorKind::Decompress, cause.to_string()),
    }
}

/// A reader whose errors say which codec they come from.
struct Explained<R> {
    codec: Codec,
    decoder: R,
}

fn explained<'a, R: Read + Send + 'a>(codec: Codec, decoder: R) -> Box<dyn Read + Send + 'a> {
    Box::new(Explained { codec, decoder })
}

impl<R: Read> Read for Explained<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.decoder.read(out) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|cause| explain(self.codec, cause)),
            }
        }
    }
}

/// Puts an [`Error`] into an error that has none yet.
fn explain(codec: Codec, cause: io::Error) -> io::Error {
    if let Some(inner) = cause.get_ref()
        && inner.is::<Error>()
    {
        return cause;
    }
    let name = name(codec);
    let error = if cause.kind() == io::ErrorKind::UnexpectedEof {
        Error::new(ErrorKind::Decompress, format!("the {name} data ends early: the file is cut short"))
            .with_hint("compare its size with the original and fetch it again")
    } else {
        Error::new(ErrorKind::Decompress, format!("the {name} data is damaged: {cause}"))
    };
    io::Error::other(error)
}

/// Something a codec or its file demands that is not supported.
fn refuse(message: impl Into<String>, hint: &str) -> io::Error {
    io::Error::other(Error::new(ErrorKind::Decompress, message).with_hint(hint))
}

/// The file may have been overwritten or appended to.
fn garbage_behind(name: &str) -> io::Error {
    let hint =
        format!("`{name} -t FILE` tells more; `{name} -dc FILE | howdah load -` loads what comes before");
    refuse(format!("the {name} data is followed by bytes that are not {name}"), &hint)
}

/// Whether one of these numbers, in little-endian order, begins so.
fn may_begin(begin: &[u8], mut magics: impl Iterator<Item = u32>) -> bool {
    magics.any(|magic| magic.to_le_bytes().starts_with(begin))
}

fn first_byte(stored: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        match stored.fill_buf() {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(|bytes| bytes.first().copied()),
        }
    }
}

/// As errors call it.
pub fn name(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "plain",
        Codec::Gzip => "gzip",
        Codec::Zstd => "zstd",
        Codec::Bzip2 => "bzip2",
        Codec::Xz => "xz",
        Codec::Lz4 => "lz4",
    }
}
