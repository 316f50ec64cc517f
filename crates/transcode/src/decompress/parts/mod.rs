//! Parts of a compressed file that can be decoded by themselves, cut off its stored bytes as these pass.
//!
//! Members and frames are cut where the format itself says how long the next one is, and how much comes out
//! of it at most; other members of gzip, and blocks of bzip2, where they can be found and, decoded, prove to
//! be such. Anything else (a length that is not told, a large frame, damage, an early end) is handed on as it
//! is, to be decoded in order: so the cutters refuse nothing and judge nothing.

mod bgzf;
mod bzip2_blocks;
mod gzip_members;
mod zstd_frames;

pub use bgzf::BgzfEnd;
pub(super) use bzip2_blocks::{Block, InOrder};

use bzip2_blocks::Blocks;
use gzip_members::Members;
use howdah_model::Codec;
use std::io::{self, BufRead, Read};

/// A gzip file that begins with `head` seems to have parts: it is BGZF, or has a second member in it already.
pub(super) fn begins_with_members(head: &[u8]) -> bool {
    bgzf::is_member(head) || gzip_members::has_second(head)
}

/// Members and frames are put together up to so many bytes: a part is worth waking a thread for, and its
/// plain bytes are still in the cache when they are split.
const PART_BYTES: usize = 1 << 20;
/// The longest buffer that is used again: one for a part of small units.
pub(super) const SPARE_BYTES_MAX: usize = PART_BYTES + (128 << 10);

/// Of what has no length of its own so much is taken from the source at a time.
const FILL_BYTES: usize = 256 << 10;

/// Takes more from the source; `false` at its end.
fn fill(bytes: &mut Vec<u8>, stored: &mut impl BufRead) -> io::Result<bool> {
    let before = bytes.len();
    Read::take(stored, FILL_BYTES as u64).read_to_end(bytes)?;
    Ok(bytes.len() > before)
}

/// Stored bytes that can be decoded without those before them.
pub(super) struct Part {
    kind: Kind,
    pub(super) stored: Vec<u8>,
    /// No more comes out of them.
    plain_bytes_max: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bgzf,
    Gzip,
    Zstd,
    Bzip2(Block),
}

impl Part {
    /// The memory that the part takes, decoded and not.
    pub(super) fn bytes(&self) -> usize {
        self.stored.len() + self.plain_bytes_max
    }

    /// The plain bytes, in a buffer that may have been used before; `None` if the part does not hold what its
    /// headers say.
    pub(super) fn decode(&self, mut plain: Vec<u8>) -> Option<Vec<u8>> {
        let decoded = match self.kind {
            Kind::Bgzf => bgzf::decode(&self.stored, self.plain_bytes_max, &mut plain),
            Kind::Gzip => gzip_members::decode(&self.stored, self.plain_bytes_max, &mut plain),
            Kind::Zstd => zstd_frames::decode(&self.stored, self.plain_bytes_max, &mut plain),
            Kind::Bzip2(block) => block.decode(&self.stored, &mut plain),
        };
        decoded.map(|()| plain)
    }

    /// The block that the part is, if it is one of bzip2.
    pub(super) fn block(&self) -> Option<&Block> {
        match &self.kind {
            Kind::Bzip2(block) => Some(block),
            Kind::Bgzf | Kind::Gzip | Kind::Zstd => None,
        }
    }

    /// It consists of members of gzip, as it seems.
    pub(super) fn has_members(&self) -> bool {
        matches!(self.kind, Kind::Bgzf | Kind::Gzip)
    }

    /// The stored bytes that the part before does not hold.
    pub(super) fn stored_behind(&self) -> &[u8] {
        let shared = self.block().is_some_and(Block::shares_a_byte);
        &self.stored[usize::from(shared)..]
    }

    fn is_large(&self) -> bool {
        self.stored.len() >= PART_BYTES || self.plain_bytes_max >= PART_BYTES
    }
}

/// What comes next of the stored bytes.
pub(super) enum Cut {
    Part(Part),
    /// With these bytes a member begins that is to be decoded in order; what is behind it can be cut again.
    Member(Vec<u8>),
    /// These bytes and all that follow them are to be decoded in order.
    InOrder(Vec<u8>),
    End,
}

/// One member or frame, as it was appended to a part.
enum Unit {
    Whole {
        plain_bytes_max: usize,
    },
    /// What was appended does not tell where the unit ends, or it is too large.
    Untold,
    /// There are no more bytes.
    None,
}

/// Cuts the stored bytes of one file.
pub(super) enum Cutter {
    Units(Units),
    Members(Members),
    Blocks(Blocks),
}

impl Cutter {
    /// `None` for codecs whose files are not cut. A member or frame may take `unit_bytes_max`, stored and
    /// plain together.
    pub(super) fn new(codec: Codec, unit_bytes_max: usize) -> Option<Cutter> {
        let units = |kind| Cutter::Units(Units { kind, unit_bytes_max, untold: None });
        match codec {
            Codec::Gzip => Some(units(Kind::Bgzf)),
            Codec::Zstd => Some(units(Kind::Zstd)),
            Codec::Bzip2 => Some(Cutter::Blocks(Blocks::new())),
            Codec::None | Codec::Xz | Codec::Lz4 => None,
        }
    }

    /// The most that one part takes.
    pub(super) fn part_bytes_max(&self) -> usize {
        match self {
            // A unit behind others that were not enough for a part.
            Cutter::Units(units) => units.unit_bytes_max + 2 * PART_BYTES,
            Cutter::Members(members) => members.part_bytes_max(),
            Cutter::Blocks(_) => bzip2_blocks::PART_BYTES_MAX,
        }
    }

    /// The next part.
    ///
    /// # Errors
    /// Those of `stored`.
    pub(super) fn cut(&mut self, stored: &mut impl BufRead) -> io::Result<Cut> {
        match self {
            Cutter::Units(units) => match (units.cut(stored)?, units.kind) {
                (Cut::InOrder(untold), Kind::Bgzf) => {
                    *self = Cutter::Members(Members::new(untold, units.unit_bytes_max));
                    self.cut(stored)
                }
                (cut, _) => Ok(cut),
            },
            Cutter::Members(members) => members.cut(stored),
            Cutter::Blocks(blocks) => blocks.cut(stored),
        }
    }

    /// How much has been read and belongs to no part that was cut.
    pub(super) fn rest_bytes(&self) -> usize {
        match self {
            Cutter::Units(units) => units.untold.as_ref().map_or(0, Vec::len),
            Cutter::Members(members) => members.rest_bytes(),
            Cutter::Blocks(blocks) => blocks.rest_bytes(),
        }
    }

    /// What has been read and belongs to no part that was cut.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        match self {
            Cutter::Units(units) => units.untold.take().unwrap_or_default(),
            Cutter::Members(members) => members.take_rest(),
            Cutter::Blocks(blocks) => blocks.take_rest(),
        }
    }
}

/// Cuts members or frames off stored bytes, several of them for one part where they are small.
pub(super) struct Units {
    kind: Kind,
    unit_bytes_max: usize,
    /// Read, but not to be cut.
    untold: Option<Vec<u8>>,
}

impl Units {
    fn cut(&mut self, stored: &mut impl BufRead) -> io::Result<Cut> {
        if let Some(untold) = self.untold.take() {
            return Ok(Cut::InOrder(untold));
        }
        let mut part =
            Part { kind: self.kind, stored: Vec::with_capacity(PART_BYTES / 2), plain_bytes_max: 0 };
        while !part.is_large() {
            let from = part.stored.len();
            match self.next_unit(stored, &mut part.stored)? {
                Unit::Whole { plain_bytes_max } => part.plain_bytes_max += plain_bytes_max,
                Unit::None if from == 0 => return Ok(Cut::End),
                Unit::None => break,
                Unit::Untold if from == 0 => return Ok(Cut::InOrder(part.stored)),
                Unit::Untold => {
                    self.untold = Some(part.stored.split_off(from));
                    break;
                }
            }
        }
        Ok(Cut::Part(part))
    }

    fn next_unit(&self, stored: &mut impl BufRead, part: &mut Vec<u8>) -> io::Result<Unit> {
        let mut taken = Taken { stored, part, unit_from: 0 };
        taken.unit_from = taken.part.len();
        if taken.is_at_end()? {
            return Ok(Unit::None);
        }
        let plain_bytes_max = match self.kind {
            Kind::Bgzf => bgzf::take_member(&mut taken)?,
            Kind::Zstd => zstd_frames::take_frame(&mut taken, self.unit_bytes_max)?,
            Kind::Gzip | Kind::Bzip2(_) => None,
        };
        Ok(match plain_bytes_max {
            Some(plain) if taken.unit().len() + plain <= self.unit_bytes_max => {
                Unit::Whole { plain_bytes_max: plain }
            }
            _ => Unit::Untold,
        })
    }
}

/// Stored bytes on their way into a part.
struct Taken<'a, R> {
    stored: &'a mut R,
    part: &'a mut Vec<u8>,
    /// Where in the part the unit begins that is being taken.
    unit_from: usize,
}

impl<R: BufRead> Taken<'_, R> {
    /// The next `count` bytes; `None` if the file ends before.
    fn take(&mut self, count: usize) -> io::Result<Option<&[u8]>> {
        let from = self.part.len();
        Read::take(&mut *self.stored, count as u64).read_to_end(self.part)?;
        let taken = &self.part[from..];
        Ok((taken.len() == count).then_some(taken))
    }

    fn unit(&self) -> &[u8] {
        &self.part[self.unit_from..]
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        loop {
            match self.stored.fill_buf() {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(<[u8]>::is_empty),
            }
        }
    }
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
