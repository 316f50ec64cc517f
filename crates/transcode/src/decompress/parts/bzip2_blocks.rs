//! bzip2: its blocks can be decoded by themselves, and begin and end at any bit.
//!
//! Nothing tells how long a block is, so it is looked for where the next one, or the end of the stream,
//! begins: by 48 bits that stand there. Where compressed data happen to hold these bits, the block that seems
//! to end there does not decode; [`InOrder`] then looks for the next place. Each block, and each stream, ends
//! in a checksum of its own, and both are verified.

use super::{Cut, FILL_BYTES, Kind, Part, fill};
use crate::decompress::bzip2::Streams;
use bzip2::bufread::BzDecoder;
use std::io::{self, BufRead, Chain, Cursor, Read};

const BLOCK: u64 = 0x3141_5926_5359;
const STREAM_END: u64 = 0x1772_4538_5090;
const MAGIC_BITS: usize = 48;
const CHECKSUM_BITS: usize = 32;
/// `BZh` and the level.
const HEADER_BYTES: usize = 4;
/// 900,000 symbols of at most 20 bits, and the tables before them.
const STORED_BYTES_MAX: usize = 5 << 19;
/// A block of 900,000 bytes that are not long runs of one byte is smaller; any other is decoded in order.
const PLAIN_BYTES_MAX: usize = 2 << 20;
/// What the library holds while it decodes a block.
const DECODER_BYTES: usize = 4 << 20;

/// The most that one part takes.
pub(super) const PART_BYTES_MAX: usize = STORED_BYTES_MAX + FILL_BYTES + PLAIN_BYTES_MAX + DECODER_BYTES;

/// Where a block lies in the bytes of its part.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Block {
    /// As in the stream's header, `1` to `9`.
    level: u8,
    from_bit: usize,
    end: End,
    /// Of the blocks before it.
    stream_checksum: u32,
}

/// What follows a block, from this bit on.
#[derive(Debug, Clone, Copy)]
enum End {
    Block(usize),
    Stream(usize),
    /// The end of the file, or more bytes than a block can have.
    Unknown,
}

/// Cuts blocks off stored bytes.
pub(in super::super) struct Blocks {
    /// Stored bytes, from the one in which the next block begins.
    bytes: Vec<u8>,
    from_bit: usize,
    /// `None` between streams.
    level: Option<u8>,
    stream_checksum: u32,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks { bytes: Vec::new(), from_bit: 0, level: None, stream_checksum: 0 }
    }

    pub(super) fn cut(&mut self, stored: &mut impl BufRead) -> io::Result<Cut> {
        if self.level.is_none() && !self.begin_stream(stored)? {
            let rest = std::mem::take(&mut self.bytes);
            return Ok(if rest.is_empty() { Cut::End } else { Cut::InOrder(rest) });
        }
        let end = self.find_end(stored, self.from_bit + MAGIC_BITS)?;
        let block = self.block(end);
        let stored = self.pass(end);
        Ok(Cut::Part(Part {
            kind: Kind::Bzip2(block),
            stored,
            plain_bytes_max: PLAIN_BYTES_MAX + DECODER_BYTES,
        }))
    }

    pub(super) fn rest_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What has been read and belongs to no block that was cut.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        self.bytes.drain(..usize::from(self.from_bit > 0));
        std::mem::take(&mut self.bytes)
    }

    /// Reads a stream's header; `false` if there is none that a block follows.
    fn begin_stream(&mut self, stored: &mut impl BufRead) -> io::Result<bool> {
        while self.bytes.len() < HEADER_BYTES + MAGIC_BITS / 8 && fill(&mut self.bytes, stored)? {}
        let [b'B', b'Z', b'h', level @ b'1'..=b'9', block @ ..] = self.bytes.as_slice() else {
            return Ok(false);
        };
        if !block.starts_with(&BLOCK.to_be_bytes()[2..]) {
            return Ok(false);
        }
        (self.level, self.from_bit, self.stream_checksum) = (Some(*level), 0, 0);
        self.bytes.drain(..HEADER_BYTES);
        Ok(true)
    }

    /// Where the block ends, at this bit or behind it.
    fn find_end(&mut self, stored: &mut impl BufRead, mut from_bit: usize) -> io::Result<End> {
        loop {
            match find_magic(&self.bytes, from_bit) {
                Some((bit, BLOCK)) => return Ok(End::Block(bit)),
                Some((bit, _)) if (bit + MAGIC_BITS + CHECKSUM_BITS).div_ceil(8) <= self.bytes.len() => {
                    return Ok(End::Stream(bit));
                }
                Some((bit, _)) => from_bit = bit,
                None => from_bit = from_bit.max((8 * self.bytes.len()).saturating_sub(MAGIC_BITS + 8)),
            }
            if self.bytes.len() > STORED_BYTES_MAX || !fill(&mut self.bytes, stored)? {
                return Ok(End::Unknown);
            }
        }
    }

    fn block(&self, end: End) -> Block {
        Block {
            level: self.level.unwrap_or(b'9'),
            from_bit: self.from_bit,
            end,
            stream_checksum: self.stream_checksum,
        }
    }

    /// Goes on behind the block; gives its bytes.
    fn pass(&mut self, end: End) -> Vec<u8> {
        let checksum = block_checksum(&self.bytes, self.from_bit);
        self.stream_checksum = self.stream_checksum.rotate_left(1) ^ checksum;
        match end {
            End::Block(bit) => {
                let next = self.bytes.split_off(bit / 8);
                let mut block = std::mem::replace(&mut self.bytes, next);
                if !bit.is_multiple_of(8) {
                    block.extend(self.bytes.first());
                }
                self.from_bit = bit % 8;
                block
            }
            End::Stream(bit) => {
                let next = self.bytes.split_off((bit + MAGIC_BITS + CHECKSUM_BITS).div_ceil(8));
                (self.level, self.from_bit) = (None, 0);
                std::mem::replace(&mut self.bytes, next)
            }
            End::Unknown => {
                (self.level, self.from_bit) = (None, 0);
                std::mem::take(&mut self.bytes)
            }
        }
    }
}

impl Block {
    /// Its bytes begin with the last one of the block before.
    pub(super) fn shares_a_byte(&self) -> bool {
        self.from_bit > 0
    }

    /// Replaces `plain` by the plain bytes; `None` if this is not a block, or a very long one.
    pub(super) fn decode(&self, stored: &[u8], plain: &mut Vec<u8>) -> Option<()> {
        let is_whole = match self.end {
            End::Block(_) => true,
            End::Stream(bit) => is_stream_checksum(self.stream_checksum, stored, self.from_bit, bit),
            End::Unknown => false,
        };
        plain.clear();
        plain.reserve(PLAIN_BYTES_MAX / 2);
        let stream = self.stream(stored);
        let mut decoder = BzDecoder::new(stream.as_slice()).take(PLAIN_BYTES_MAX as u64 + 1);
        let is_decoded = is_whole && decoder.read_to_end(plain).is_ok();
        (is_decoded && plain.len() <= PLAIN_BYTES_MAX).then_some(())
    }

    /// The block as the only one of a stream, which has no end if it is not known where the block has one.
    fn stream(&self, stored: &[u8]) -> Vec<u8> {
        let mut stream = Vec::with_capacity(stored.len() + 16);
        stream.extend([b'B', b'Z', b'h', self.level]);
        let until_bit = match self.end {
            End::Block(bit) | End::Stream(bit) => bit,
            End::Unknown => 8 * stored.len(),
        };
        let (first, shift) = (self.from_bit / 8, self.from_bit % 8);
        let whole_bytes = (until_bit - self.from_bit) / 8;
        stream.extend((first..first + whole_bytes).map(|no| {
            let next = stored.get(no + 1).copied().unwrap_or_default();
            (u16::from_be_bytes([stored[no], next]) >> (8 - shift)) as u8
        }));
        if !matches!(self.end, End::Unknown) {
            let checksum = u128::from(block_checksum(stored, self.from_bit));
            // What is left of the block, less than a byte, and the end behind it; the rest of the last byte
            // is 0.
            let left = until_bit - self.from_bit - 8 * whole_bytes;
            let tail = u128::from(bits(stored, until_bit - left, left)) << 80
                | u128::from(STREAM_END) << 32
                | checksum;
            stream.extend_from_slice(&(tail << (128 - 80 - left)).to_be_bytes()[..11]);
        }
        stream
    }
}

fn block_checksum(bytes: &[u8], from_bit: usize) -> u32 {
    bits(bytes, from_bit + MAGIC_BITS, CHECKSUM_BITS) as u32
}

/// The stream that ends at `end_bit`, behind the block at `from_bit`, tells the checksum of all its blocks.
fn is_stream_checksum(before: u32, bytes: &[u8], from_bit: usize, end_bit: usize) -> bool {
    let told = bits(bytes, end_bit + MAGIC_BITS, CHECKSUM_BITS) as u32;
    told == before.rotate_left(1) ^ block_checksum(bytes, from_bit)
}

/// Up to 48 bits, from any bit on; 0 behind the end.
fn bits(bytes: &[u8], from_bit: usize, count: usize) -> u64 {
    let window = (0..7).fold(0, |window, no| {
        window << 8 | u64::from(bytes.get(from_bit / 8 + no).copied().unwrap_or_default())
    });
    window >> (56 - from_bit % 8 - count) & ((1 << count) - 1)
}

/// The first magic number at this bit or behind it.
fn find_magic(bytes: &[u8], from_bit: usize) -> Option<(usize, u64)> {
    // Of each one the second byte is known at each of eight shifts; few bytes are one of these.
    for (no, &second) in bytes.iter().enumerate().skip(from_bit / 8 + 1) {
        if SECOND_BYTES[second as usize] {
            for bit in (8 * (no - 1)).max(from_bit)..8 * no {
                let magic = bits(bytes, bit, MAGIC_BITS);
                if magic == BLOCK || magic == STREAM_END {
                    return Some((bit, magic));
                }
            }
        }
    }
    None
}

static SECOND_BYTES: [bool; 256] = {
    let mut seconds = [false; 256];
    let mut shift = 0;
    while shift < 8 {
        seconds[(BLOCK >> (32 + shift)) as usize & 0xFF] = true;
        seconds[(STREAM_END >> (32 + shift)) as usize & 0xFF] = true;
        shift += 1;
    }
    seconds
};

/// The plain bytes from one block on, in bounded memory, whatever the blocks hold.
pub(in super::super) struct InOrder<R> {
    blocks: Blocks,
    at: At<R>,
}

enum At<R> {
    /// Before a block, or behind a stream.
    Between(R),
    /// Its first bytes, and the others.
    Block(Chain<Cursor<Vec<u8>>, BzDecoder<Cursor<Vec<u8>>>>, End, R),
    Streams(Streams<Chain<Cursor<Vec<u8>>, R>>),
    Failed,
}

impl<R: BufRead> InOrder<R> {
    /// `stored` begins with the bytes of this block.
    pub(in super::super) fn new(block: &Block, stored: R) -> InOrder<R> {
        let blocks = Blocks {
            bytes: Vec::new(),
            from_bit: block.from_bit,
            level: Some(block.level),
            stream_checksum: block.stream_checksum,
        };
        InOrder { blocks, at: At::Between(stored) }
    }

    /// Decodes a block as far as it takes to know that it is one.
    fn begin_block(&mut self, mut stored: R) -> io::Result<At<R>> {
        let mut search_from_bit = self.blocks.from_bit + MAGIC_BITS;
        loop {
            let end = self.blocks.find_end(&mut stored, search_from_bit)?;
            let stream = self.blocks.block(end).stream(&self.blocks.bytes);
            let mut decoder = BzDecoder::new(Cursor::new(stream));
            // A block is decoded as a whole before there is a first byte.
            let mut first = vec![0; 1];
            match (decoder.read_exact(&mut first), end) {
                (Ok(()), _) => return Ok(At::Block(Cursor::new(first).chain(decoder), end, stored)),
                (Err(_), End::Block(bit) | End::Stream(bit)) => search_from_bit = bit + 1,
                (Err(cause), End::Unknown) => return Err(cause),
            }
        }
    }

    fn end_block(&mut self, end: End) -> io::Result<()> {
        let Blocks { bytes, from_bit, stream_checksum, .. } = &self.blocks;
        if let End::Stream(bit) = end
            && !is_stream_checksum(*stream_checksum, bytes, *from_bit, bit)
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the stream's checksum is another one"));
        }
        self.blocks.pass(end);
        Ok(())
    }
}

impl<R: BufRead> Read for InOrder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            self.at = match std::mem::replace(&mut self.at, At::Failed) {
                At::Between(stored) if self.blocks.level.is_some() => self.begin_block(stored)?,
                At::Between(stored) => {
                    let mut rest = Cursor::new(std::mem::take(&mut self.blocks.bytes)).chain(stored);
                    if rest.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    At::Streams(Streams::new(rest))
                }
                At::Block(mut decoder, end, stored) => match decoder.read(out)? {
                    0 => {
                        self.end_block(end)?;
                        At::Between(stored)
                    }
                    count => {
                        self.at = At::Block(decoder, end, stored);
                        return Ok(count);
                    }
                },
                At::Streams(mut decoder) => {
                    let count = decoder.read(out)?;
                    self.at = At::Streams(decoder);
                    return Ok(count);
                }
                At::Failed => return Ok(0),
            };
        }
    }
}
