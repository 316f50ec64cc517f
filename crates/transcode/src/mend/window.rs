//! The bytes of a file that are being looked at: a window that moves forward and grows on demand.
//!
//! Enters: a reader of plain bytes. Leaves: a slice that begins at the next record. Its size follows what is
//! asked for; who asks keeps the limit.

use crate::decompress;
use howdah_model::{Error, ErrorKind, Result};
use std::io::{self, Read};

/// Plain bytes read at a time: they are looked at while they are still in the cache.
const PIECE_BYTES: usize = 256 << 10;

pub(super) struct Window<R> {
    plain: R,
    /// All initialised; `start..end` is the window.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of the window's first byte in the file.
    offset: u64,
    /// Bytes of the file before the data that were not read yet.
    skip_bytes: u64,
    /// Where the data ends, if not with the file.
    end_byte: Option<u64>,
    ended: bool,
}

impl<R: Read> Window<R> {
    /// Over the bytes of `plain` from `start_byte` up to `end_byte`. Nothing is read yet.
    pub(super) fn new(plain: R, start_byte: u64, end_byte: Option<u64>) -> Window<R> {
        let buffer = vec![0; PIECE_BYTES];
        Window {
            plain,
            buffer,
            start: 0,
            end: 0,
            offset: start_byte,
            skip_bytes: start_byte,
            end_byte,
            ended: false,
        }
    }

    /// Over bytes that begin at this offset of the file.
    pub(super) fn at(plain: R, offset: u64) -> Window<R> {
        Window { offset, ..Window::new(plain, 0, None) }
    }

    /// What is in the window.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The last bytes that were consumed; none are left once more are read.
    pub(super) fn consumed(&self, bytes: usize) -> &[u8] {
        &self.buffer[self.start.saturating_sub(bytes)..self.start]
    }

    /// The data ends with these bytes.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Offset of the window's first byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves past so many bytes of the window.
    pub(super) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads until the window holds this many bytes or the data ends.
    ///
    /// # Errors
    /// Those of `plain`; `SourceChanged` if the file ends before its data begins.
    pub(super) fn fill(&mut self, bytes_min: usize) -> Result<()> {
        self.skip()?;
        while !self.ended && self.end - self.start < bytes_min {
            self.make_room(bytes_min);
            let read_bytes = self.offset + (self.end - self.start) as u64;
            let left = self.end_byte.map_or(u64::MAX, |end| end.saturating_sub(read_bytes));
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let room = (self.buffer.len() - self.end).min(left);
            let into = &mut self.buffer[self.end..self.end + room];
            let count = if into.is_empty() { 0 } else { read(&mut self.plain, into)? };
            self.end += count;
            self.ended = count == 0;
        }
        Ok(())
    }

    /// Room behind the window, in a buffer of at least `bytes_min`. What is left of the window moves to the
    /// front first, so that the buffer grows only for windows that are larger than it. It is a piece larger
    /// than what is wanted, so that little moves for many bytes read.
    fn make_room(&mut self, bytes_min: usize) {
        let held = self.end - self.start;
        let is_short = |window: &Window<R>| {
            window.buffer.len() - window.start < bytes_min || window.end == window.buffer.len()
        };
        if self.start > 0 && (is_short(self) || held == 0) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, held);
        }
        if is_short(self) {
            self.buffer.resize(bytes_min.max(held) + PIECE_BYTES / 2, 0);
        }
    }

    fn skip(&mut self) -> Result<()> {
        while self.skip_bytes > 0 {
            let want = usize::try_from(self.skip_bytes).unwrap_or(usize::MAX).min(self.buffer.len());
            let count = read(&mut self.plain, &mut self.buffer[..want])?;
            if count == 0 {
                return Err(Error::new(ErrorKind::SourceChanged, "the file ends before its data begins"));
            }
            self.skip_bytes -= count as u64;
        }
        Ok(())
    }
}

/// As [`Read::read`], with the errors that travel in an [`io::Error`] taken out.
fn read(plain: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    loop {
        match plain.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(decompress::error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn every_byte_between_start_and_end_passes_once() {
        let file: Vec<u8> = (0..700_000_u32).map(|no| (no % 251) as u8).collect();
        for (piece, wanted) in [(1 << 20, 1), (7, 3000), (65_536, 300_000)] {
            let mut window = Window::new(Drops(&file, piece), 10, Some(650_000));
            let mut seen = Vec::new();
            loop {
                window.fill(wanted).unwrap();
                assert_eq!(window.offset(), 10 + seen.len() as u64);
                if window.bytes().is_empty() {
                    break;
                }
                let take = window.bytes().len().div_ceil(2);
                seen.extend_from_slice(&window.bytes()[..take]);
                window.consume(take);
            }
            assert!(window.ended() && seen == file[10..650_000], "{piece}");
        }
    }

    #[test]
    fn the_buffer_grows_with_what_is_asked_for_and_not_with_the_file() {
        let file = vec![0; 30 << 20];
        for piece in [1 << 20, 65_536, 5000] {
            let mut window = Window::new(Drops(&file, piece), 0, None);
            let mut turn = 0;
            while !window.ended() || !window.bytes().is_empty() {
                turn += 1;
                let wanted = if turn % 7 == 0 { 200_000 } else { 66_000 };
                window.fill(wanted).unwrap();
                window.consume(1000 + turn % 300);
                assert!(window.buffer.len() <= 200_000 + PIECE_BYTES, "{piece}: {}", window.buffer.len());
            }
        }
    }

    #[test]
    fn a_file_that_ends_before_its_data_is_an_error() {
        let error = Window::new(&b"ab"[..], 3, None).fill(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceChanged);
    }
}
