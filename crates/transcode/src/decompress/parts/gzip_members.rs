//! gzip of many members that do not say how long they are, as `cat a.gz b.gz` and log shippers write it.
//!
//! A member ends where its last block does, which only decoding tells. So it is looked for where the next one
//! seems to begin: by the bytes that begin every member, and by the length before them, which ends every
//! member. Where compressed data happen to look so, the part that seems to end there does not decode, and its
//! first member is decoded in order.

use super::{Cut, FILL_BYTES, Kind, PART_BYTES, Part, fill, number};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// gzip and deflate; what follows differs from member to member.
const MAGIC: [u8; 3] = [0x1F, 0x8B, 8];
const RESERVED_FLAGS: u8 = 0xE0;
const HEADER_BYTES: usize = 10;
/// With the two bytes that hold nothing, and the trailer.
const MEMBER_BYTES_MIN: usize = HEADER_BYTES + 2 + 8;
/// No more than 258 bytes come out of two bits.
const RATIO_MAX: usize = 1032;

/// Cuts members off stored bytes, several of them for one part where they are small.
pub(in super::super) struct Members {
    /// Stored bytes, from the one with which the next member begins.
    bytes: Vec<u8>,
    /// What a member may take, stored and plain.
    member_bytes_max: usize,
}

/// What is at some place of the stored bytes.
enum Next {
    /// A member, as it seems.
    Member { end: usize, plain_bytes: usize },
    /// One that is too large to be held.
    Large,
    /// The end of the file, padding, or garbage.
    Other,
}

/// Where a member may end.
enum End {
    At(usize),
    /// Nowhere among so many bytes.
    TooFar,
}

impl Members {
    /// `bytes` are the first ones.
    pub(super) fn new(bytes: Vec<u8>, unit_bytes_max: usize) -> Members {
        Members { bytes, member_bytes_max: unit_bytes_max.saturating_sub(FILL_BYTES) }
    }

    /// A member behind others that were not enough for a part, and what has been read behind it.
    pub(super) fn part_bytes_max(&self) -> usize {
        self.member_bytes_max + 2 * PART_BYTES + FILL_BYTES
    }

    pub(super) fn cut(&mut self, stored: &mut impl BufRead) -> io::Result<Cut> {
        let (mut from, mut plain_bytes_max) = (0, 0);
        while from < PART_BYTES && plain_bytes_max < PART_BYTES {
            match self.next(stored, from)? {
                Next::Member { end, plain_bytes } => {
                    from = end;
                    plain_bytes_max += plain_bytes;
                }
                _ if from > 0 => break,
                Next::Large => return Ok(Cut::Member(std::mem::take(&mut self.bytes))),
                Next::Other if self.bytes.is_empty() => return Ok(Cut::End),
                Next::Other => return Ok(Cut::InOrder(std::mem::take(&mut self.bytes))),
            }
        }
        let behind = self.bytes.split_off(from);
        let stored = std::mem::replace(&mut self.bytes, behind);
        Ok(Cut::Part(Part { kind: Kind::Gzip, stored, plain_bytes_max }))
    }

    pub(super) fn rest_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What has been read and belongs to no part that was cut.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn next(&mut self, stored: &mut impl BufRead, from: usize) -> io::Result<Next> {
        while self.bytes.len() < from + HEADER_BYTES && fill(&mut self.bytes, stored)? {}
        if !begins_member(&self.bytes[from..]) {
            return Ok(Next::Other);
        }
        let mut search_from = from + MEMBER_BYTES_MIN;
        loop {
            let End::At(end) = self.find_end(stored, from, search_from)? else { return Ok(Next::Large) };
            match plain_bytes_told(&self.bytes[from..end]) {
                Some(plain_bytes) if end - from + plain_bytes <= self.member_bytes_max => {
                    return Ok(Next::Member { end, plain_bytes });
                }
                None if end < self.bytes.len() => search_from = end + 1,
                // The file may also end behind padding or garbage, or too early.
                _ => return Ok(Next::Large),
            }
        }
    }

    /// Where the next member seems to begin, at this byte or behind it, or where the file ends.
    fn find_end(&mut self, stored: &mut impl BufRead, from: usize, mut at: usize) -> io::Result<End> {
        loop {
            let found = self.bytes.get(at..).and_then(|bytes| memchr::memmem::find(bytes, &MAGIC));
            match found.map(|found| at + found) {
                Some(found) if begins_member(&self.bytes[found..]) => return Ok(End::At(found)),
                Some(found) if self.bytes.len() >= found + HEADER_BYTES => {
                    at = found + 1;
                    continue;
                }
                Some(found) => at = found,
                None => at = at.max((self.bytes.len() + 1).saturating_sub(MAGIC.len())),
            }
            if self.bytes.len() - from > self.member_bytes_max / 2 {
                return Ok(End::TooFar);
            }
            if !fill(&mut self.bytes, stored)? {
                return Ok(End::At(self.bytes.len()));
            }
        }
    }
}

fn begins_member(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER_BYTES && bytes.starts_with(&MAGIC) && bytes[MAGIC.len()] & RESERVED_FLAGS == 0
}

/// What a member says to hold; `None` if it cannot.
fn plain_bytes_told(member: &[u8]) -> Option<usize> {
    let told = usize::try_from(number(member.last_chunk::<4>()?)).ok()?;
    (told <= RATIO_MAX * member.len()).then_some(told)
}

/// Behind the member that begins here another one seems to begin.
pub(super) fn has_second(head: &[u8]) -> bool {
    let Some(behind) = head.get(MEMBER_BYTES_MIN..).filter(|_| begins_member(head)) else { return false };
    memchr::memmem::find_iter(behind, &MAGIC)
        .map(|found| MEMBER_BYTES_MIN + found)
        .any(|second| begins_member(&head[second..]) && plain_bytes_told(&head[..second]).is_some())
}

/// Replaces `plain` by the plain bytes of whole members; `None` if these are not such, or hold more. The
/// decoder is the one that reads them in order.
pub(super) fn decode(mut stored: &[u8], plain_bytes_max: usize, plain: &mut Vec<u8>) -> Option<()> {
    plain.resize(plain_bytes_max, 0);
    let mut length = 0;
    while !stored.is_empty() {
        // Padding and garbage are told apart in order.
        if !begins_member(stored) {
            return None;
        }
        let mut member = GzDecoder::new(stored);
        loop {
            // The end of a member is told by a read that has room for more.
            let mut spare = [0];
            let is_full = length == plain.len();
            let out = if is_full { spare.as_mut_slice() } else { &mut plain[length..] };
            match member.read(out).ok()? {
                0 => break,
                _ if is_full => return None,
                count => length += count,
            }
        }
        stored = member.into_inner();
    }
    plain.truncate(length);
    Some(())
}
