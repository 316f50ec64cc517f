//! BGZF (SAM specification, section 4.1): gzip whose members say in their headers how long they are.
//!
//! Any other gzip member ends where its last block does, which only decoding tells: see
//! [`gzip_members`](super::gzip_members).

use super::{Taken, number};
use crate::decompress::SNIFF_BYTES;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::io::{self, BufRead};

/// gzip, deflate, and no header field but the extra one.
const HEADER: [u8; 4] = [0x1F, 0x8B, 8, 4];
/// The header up to the length of the extra field.
const HEADER_BYTES: usize = 12;
/// Checksum and length of the plain bytes.
const TRAILER_BYTES: usize = 8;
/// What a member may hold, by the specification.
const PLAIN_BYTES_MAX: u64 = 1 << 16;

/// Tells of a file of BGZF whether the empty member is there that such files end with (section 4.1.2):
/// without it the file may have been cut between two members, and nothing else tells.
#[derive(Default)]
pub struct BgzfEnd {
    head: Vec<u8>,
    /// The last bytes that have passed: the length of the last member.
    tail: [u8; 4],
}

impl BgzfEnd {
    /// Looks at the next stored bytes.
    pub fn pass(&mut self, stored: &[u8]) {
        let wanted = SNIFF_BYTES.saturating_sub(self.head.len()).min(stored.len());
        self.head.extend_from_slice(&stored[..wanted]);
        let kept = [&self.tail, &stored[stored.len().saturating_sub(4)..]].concat();
        self.tail.copy_from_slice(&kept[kept.len() - 4..]);
    }

    /// All of the file has passed, which is BGZF and has no empty member at its end.
    pub fn is_missing(&self) -> bool {
        self.tail != [0; 4] && is_member(&self.head)
    }
}

/// A member of BGZF begins here.
pub(super) fn is_member(head: &[u8]) -> bool {
    let Some((header, behind)) = head.split_at_checked(HEADER_BYTES) else { return false };
    let extra = behind.get(..extra_bytes(header));
    header.starts_with(&HEADER) && extra.is_some_and(|extra| member_bytes(extra).is_some())
}

/// Takes one member and tells how much it says to hold; `None` if it is not one of BGZF.
pub(super) fn take_member<R: BufRead>(taken: &mut Taken<'_, R>) -> io::Result<Option<usize>> {
    let Some(header) = taken.take(HEADER_BYTES)? else { return Ok(None) };
    if header[..4] != HEADER {
        return Ok(None);
    }
    let extra_bytes = extra_bytes(header);
    let Some(extra) = taken.take(extra_bytes)? else { return Ok(None) };
    let Some(body_bytes) =
        member_bytes(extra).and_then(|bytes| bytes.checked_sub(HEADER_BYTES + extra_bytes))
    else {
        return Ok(None);
    };
    if body_bytes <= TRAILER_BYTES || taken.take(body_bytes)?.is_none() {
        return Ok(None);
    }
    let plain_bytes = number(&taken.unit()[taken.unit().len() - 4..]);
    Ok(usize::try_from(plain_bytes).ok().filter(|_| plain_bytes <= PLAIN_BYTES_MAX))
}

/// Replaces `plain` by the plain bytes of whole members; `None` if one of them does not hold exactly what it
/// says.
pub(super) fn decode(mut stored: &[u8], plain_bytes: usize, plain: &mut Vec<u8>) -> Option<()> {
    plain.resize(plain_bytes, 0);
    let mut left = plain.as_mut_slice();
    let mut inflate = Decompress::new(false);
    while let Some((header, behind)) = stored.split_at_checked(HEADER_BYTES) {
        let (extra, _) = behind.split_at_checked(extra_bytes(header))?;
        let (member, next) = stored.split_at_checked(member_bytes(extra)?)?;
        let body = member.get(HEADER_BYTES + extra.len()..)?;
        let (deflated, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER_BYTES)?)?;
        let (checksum, length) = trailer.split_at(4);
        let (out, behind) = left.split_at_mut_checked(usize::try_from(number(length)).ok()?)?;
        inflate_all(&mut inflate, deflated, out)?;
        let mut crc = Crc::new();
        crc.update(out);
        if u64::from(crc.sum()) != number(checksum) {
            return None;
        }
        (stored, left) = (next, behind);
    }
    (stored.is_empty() && left.is_empty()).then_some(())
}

/// Inflates to exactly these bytes from exactly those.
fn inflate_all(inflate: &mut Decompress, deflated: &[u8], out: &mut [u8]) -> Option<()> {
    inflate.reset(false);
    // An empty member has no room for its end to be told in.
    let mut spare = [0];
    let length = out.len();
    let out = if out.is_empty() { spare.as_mut_slice() } else { out };
    let status = inflate.decompress(deflated, out, FlushDecompress::Finish).ok()?;
    let exact = inflate.total_in() == deflated.len() as u64 && inflate.total_out() == length as u64;
    (status == Status::StreamEnd && exact).then_some(())
}

fn extra_bytes(header: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([header[10], header[11]]))
}

/// The length of the whole member, from the extra field's subfield `BC`.
fn member_bytes(mut extra: &[u8]) -> Option<usize> {
    while let [id_1, id_2, length_1, length_2, rest @ ..] = extra {
        let (value, behind) =
            rest.split_at_checked(usize::from(u16::from_le_bytes([*length_1, *length_2])))?;
        if let ([b'B', b'C'], [low, high]) = ([*id_1, *id_2], value) {
            return Some(usize::from(u16::from_le_bytes([*low, *high])) + 1);
        }
        extra = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_testkit::compress::{bgzf, bgzf_member, gzip};

    #[test]
    fn an_empty_member_at_the_end_is_missed_in_bgzf_alone() {
        let (cut, whole) = (bgzf_member(b"1\n"), bgzf(b"1\n"));
        let cases = [(cut, true), (whole, false), (gzip(b"1\n"), false), (Vec::new(), false)];
        for (stored, is_missing) in cases {
            for block_bytes in [1, 3, 17, 1000] {
                let mut end = BgzfEnd::default();
                stored.chunks(block_bytes).for_each(|block| end.pass(block));
                assert_eq!(end.is_missing(), is_missing, "{block_bytes} of {}", stored.len());
            }
        }
    }
}
