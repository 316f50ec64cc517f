//! A compressed file that yields far more than it should ends with an error, before it fills the server's
//! disk.
//!
//! Memory needs no such limit: whatever a file claims, it goes through the chunks' buffers. gzip cannot yield
//! more than 1,032 bytes for one, zstd and bzip2 a hundred thousand and more; logs and exports that people
//! compress come to 5 to
//! 100. Small files may do as they like: a table of one repeated row is no attack.

use howdah_model::{Error, ErrorKind, show_size};
use std::io::{self, Read};

/// Plain bytes for each stored byte, beyond which nobody has meant it.
const RATIO_MAX: u64 = 1000;
/// So much is never too much.
const HARMLESS_BYTES: u64 = 1 << 30;

/// What a compressed file may yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// As the user said.
    Bytes(u64),
    /// By what has been read of the file so far, if that is as many bytes.
    Ratio,
}

impl Limit {
    fn bytes(self, stored_bytes: u64) -> u64 {
        match self {
            Limit::Bytes(bytes) => bytes,
            Limit::Ratio => HARMLESS_BYTES.max(stored_bytes.saturating_mul(RATIO_MAX)),
        }
    }

    fn error(self, stored_bytes: u64) -> Error {
        let limit_bytes = self.bytes(stored_bytes);
        let message = match self {
            Limit::Bytes(_) => format!(
                "decompressed, the file is larger than {}, which --max-decompressed allows",
                show_size(limit_bytes)
            ),
            Limit::Ratio => format!(
                "the first {stored_bytes} bytes of the file come to more than {limit_bytes} decompressed, over {RATIO_MAX} for each: this \
                 may be a decompression bomb"
            ),
        };
        Error::new(ErrorKind::Decompress, message)
            .with_hint("if the file is meant to be so large, give its size: --max-decompressed 100GB")
    }
}

/// The plain bytes of a file, up to the limit.
pub(super) struct Bounded<R, S> {
    plain: R,
    plain_bytes: u64,
    /// How much of the file has been read by now.
    stored_bytes: S,
    limit: Limit,
}

impl<R: Read, S: Fn() -> u64> Bounded<R, S> {
    pub(super) fn new(plain: R, stored_bytes: S, limit: Limit) -> Bounded<R, S> {
        Bounded { plain, plain_bytes: 0, stored_bytes, limit }
    }
}

impl<R: Read, S: Fn() -> u64> Read for Bounded<R, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.plain.read(out)?;
        self.plain_bytes += count as u64;
        // Asking how much was read touches a counter that others write to: not for files that are far from
        // any limit.
        if self.plain_bytes > self.limit.bytes(0) {
            let stored_bytes = (self.stored_bytes)();
            if self.plain_bytes > self.limit.bytes(stored_bytes) {
                return Err(io::Error::other(self.limit.error(stored_bytes)));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_transcode::decompress;

    /// How much comes out before an error.
    fn yielded(plain_bytes: u64, stored_bytes: u64, limit: Limit) -> Result<u64, Error> {
        let plain = io::repeat(b'a').take(plain_bytes);
        let mut bounded = Bounded::new(plain, || stored_bytes, limit);
        let (mut block, mut sum) = (vec![0; 1 << 20], 0);
        loop {
            match bounded.read(&mut block) {
                Ok(0) => return Ok(sum),
                Ok(count) => sum += count as u64,
                Err(error) => return Err(decompress::error(error)),
            }
        }
    }

    #[test]
    fn a_bomb_is_an_error_and_a_large_file_is_not() {
        let gib = 1 << 30;
        assert_eq!(yielded(gib, 1, Limit::Ratio).unwrap(), gib);
        assert_eq!(yielded(gib + (8 << 20), 2 << 20, Limit::Ratio).unwrap(), gib + (8 << 20));
        let error = yielded(gib + 1, 1 << 20, Limit::Ratio).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Decompress && error.message().contains("decompression bomb"),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("--max-decompressed")));
    }

    #[test]
    fn what_the_user_says_counts_instead() {
        let gib = 1 << 30;
        assert_eq!(yielded(gib + 1, 1, Limit::Bytes(2 << 30)).unwrap(), gib + 1);
        assert!(yielded(1001, 1000, Limit::Bytes(1000)).is_err());
        assert_eq!(yielded(1000, 1, Limit::Bytes(1000)).unwrap(), 1000);
    }
}
