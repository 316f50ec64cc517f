//! The LZ4 frame format: one or many frames, skippable ones included.
//!
//! The library ends a frame that is cut short between two blocks without a word, so the frames are
//! followed here as they pass: block lengths, checksums and end marks, by the LZ4 Frame Format
//! Description 1.6.

use super::{may_begin, refuse};
use lz4_flex::frame::FrameDecoder;
use std::io::{self, BufRead, Read};

const MAGIC: u32 = 0x184D_2204;
const SKIPPABLE_MAGICS: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// All frames, one after the other.
pub(super) struct Frames<R: BufRead> {
    decoder: FrameDecoder<Followed<R>>,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(stored: R) -> Frames<R> {
        Frames {
            decoder: FrameDecoder::new(Followed {
                stored,
                part: Part::Between,
                left: 0,
                flags: 0,
                number: 0,
            }),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let stored = self.decoder.get_mut();
            if stored.part == Part::Between && !stored.find_frame()? {
                return Ok(0);
            }
            let read = self.decoder.read(out)?;
            if read > 0 {
                return Ok(read);
            }
            // The end of a frame, an empty block, or the end of the bytes.
            let stored = self.decoder.get_mut();
            if stored.part != Part::Between && stored.stored.fill_buf()?.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// What the next stored byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Not to a frame.
    Between,
    Magic,
    Flags,
    Header,
    BlockLength,
    Block,
    Checksum,
}

/// Stored bytes, and where in a frame they have been read to.
struct Followed<R> {
    stored: R,
    part: Part,
    /// Bytes of the part still to come.
    left: usize,
    /// The FLG byte of the frame.
    flags: u8,
    /// The little-endian number being read.
    number: u32,
}

impl<R: BufRead> Followed<R> {
    /// Goes to the next frame that holds data, passing skippable ones. `false` at the end of the bytes.
    fn find_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.stored.fill_buf()?.is_empty() {
                return Ok(false);
            }
            // A magic number may be cut by the reader's blocks, so it is taken out and given back.
            let mut magic = [0; 4];
            let length = self.read_up_to(&mut magic)?;
            let magics = std::iter::once(MAGIC).chain(SKIPPABLE_MAGICS);
            if length < magic.len() && may_begin(&magic[..length], magics) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let magic = u32::from_le_bytes(magic);
            if length == 4 && magic == MAGIC {
                (self.part, self.left) = (Part::Magic, 4);
                return Ok(true);
            }
            if length < 4 || !SKIPPABLE_MAGICS.contains(&magic) {
                return Err(refuse(
                    "the lz4 data is followed by bytes that are not an lz4 frame",
                    "the file may have been overwritten or appended to; `lz4 -t FILE` tells more",
                ));
            }
            let length = u64::from(self.read_number()?);
            if io::copy(&mut (&mut self.stored).take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// How many bytes there were.
    fn read_up_to(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length < bytes.len() {
            match self.stored.read(&mut bytes[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(length)
    }

    fn read_number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.stored.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Takes note of bytes on their way to the decoder.
    fn follow(&mut self, mut bytes: &[u8]) {
        while let Some((&first, _)) = bytes.split_first() {
            let step = self.left.min(bytes.len());
            match self.part {
                Part::Between => return,
                Part::Flags => self.flags = first,
                Part::BlockLength => {
                    for &byte in &bytes[..step] {
                        self.number = self.number >> 8 | u32::from(byte) << 24;
                    }
                }
                Part::Magic | Part::Header | Part::Block | Part::Checksum => {}
            }
            bytes = &bytes[step..];
            self.left -= step;
            if self.left == 0 {
                (self.part, self.left) = self.next_part();
            }
        }
    }

    /// The part after a complete one, and its bytes.
    fn next_part(&self) -> (Part, usize) {
        let flag = |bit: u8| usize::from(self.flags >> bit & 1);
        match self.part {
            Part::Magic => (Part::Flags, 1),
            // Block descriptor, content size, dictionary id, header checksum.
            Part::Flags => (Part::Header, 1 + 8 * flag(3) + 4 * flag(0) + 1),
            Part::BlockLength if self.number == 0 && flag(2) == 1 => (Part::Checksum, 4),
            Part::BlockLength if self.number == 0 => (Part::Between, 0),
            // The highest bit says that the block is not compressed.
            Part::BlockLength => (Part::Block, (self.number & 0x7FFF_FFFF) as usize + 4 * flag(4)),
            Part::Header | Part::Block => (Part::BlockLength, 4),
            Part::Checksum | Part::Between => (Part::Between, 0),
        }
    }
}

impl<R: BufRead> Read for Followed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = if self.part == Part::Magic {
            let magic = &MAGIC.to_le_bytes()[4 - self.left..];
            let length = out.len().min(magic.len());
            out[..length].copy_from_slice(&magic[..length]);
            length
        } else {
            self.stored.read(out)?
        };
        self.follow(&out[..read]);
        Ok(read)
    }
}
