//! zstd frames (RFC 8878, section 3.1): their block headers say how long they are, and how much comes out at
//! most.
//!
//! `pzstd`, the seekable format and concatenated files have many of them; `zstd` writes one, however many
//! threads it uses.

use super::super::zstd::WINDOW_LOG_MAX;
use super::{Taken, number};
use std::io::{self, BufRead};
use zstd::bulk::Decompressor;

const MAGIC: u64 = 0xFD2F_B528;
const SKIPPABLE_MAGICS: std::ops::RangeInclusive<u64> = 0x184D_2A50..=0x184D_2A5F;
/// What a block may hold where the window is not smaller.
const BLOCK_BYTES_MAX: u64 = 128 << 10;

/// Takes one frame and tells how much it holds at most; `None` if that cannot be told, is not to be decoded
/// without being asked (dictionaries, large windows), or goes beyond the limit.
pub(super) fn take_frame<R: BufRead>(
    taken: &mut Taken<'_, R>,
    unit_bytes_max: usize,
) -> io::Result<Option<usize>> {
    match taken.take(4)?.map(number) {
        Some(MAGIC) => {}
        Some(magic) if SKIPPABLE_MAGICS.contains(&magic) => return take_skippable(taken, unit_bytes_max),
        _ => return Ok(None),
    }
    let Some(header) = take_header(taken)? else { return Ok(None) };
    let mut plain_bytes = 0;
    loop {
        let Some(block) = taken.take(3)?.map(number) else { return Ok(None) };
        let length = block >> 3;
        if length > header.block_bytes_max {
            return Ok(None);
        }
        let (stored_bytes, block_plain_bytes) = match block >> 1 & 3 {
            0 => (length, length),
            1 => (1, length),
            2 => (length, header.block_bytes_max),
            _ => return Ok(None),
        };
        plain_bytes += block_plain_bytes;
        if taken.unit().len() as u64 + stored_bytes + plain_bytes > unit_bytes_max as u64 {
            return Ok(None);
        }
        if taken.take(fitting(stored_bytes))?.is_none() {
            return Ok(None);
        }
        if block & 1 == 1 {
            break;
        }
    }
    if header.has_checksum && taken.take(4)?.is_none() {
        return Ok(None);
    }
    Ok(Some(fitting(header.content_bytes.map_or(plain_bytes, |content| content.min(plain_bytes)))))
}

fn take_skippable<R: BufRead>(taken: &mut Taken<'_, R>, unit_bytes_max: usize) -> io::Result<Option<usize>> {
    let Some(length) = taken.take(4)?.map(number) else { return Ok(None) };
    if length > unit_bytes_max as u64 {
        return Ok(None);
    }
    Ok(taken.take(fitting(length))?.map(|_| 0))
}

struct Header {
    block_bytes_max: u64,
    content_bytes: Option<u64>,
    has_checksum: bool,
}

fn take_header<R: BufRead>(taken: &mut Taken<'_, R>) -> io::Result<Option<Header>> {
    let Some(&[descriptor]) = taken.take(1)? else { return Ok(None) };
    let is_single_segment = descriptor >> 5 & 1 == 1;
    let content_length_bytes = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let is_reserved = descriptor >> 3 & 1 == 1;
    let has_dictionary = descriptor & 3 != 0;
    if is_reserved || has_dictionary {
        return Ok(None);
    }
    let mut window_bytes = 0;
    if !is_single_segment {
        let Some(&[window]) = taken.take(1)? else { return Ok(None) };
        let base = 1u64 << (10 + (window >> 3));
        window_bytes = base + base / 8 * u64::from(window & 7);
    }
    let Some(content) = taken.take(content_length_bytes)?.map(number) else { return Ok(None) };
    let content_bytes = match content_length_bytes {
        0 => None,
        2 => Some(content + 256),
        _ => Some(content),
    };
    if is_single_segment {
        window_bytes = content_bytes.unwrap_or(content);
    }
    if window_bytes > 1 << WINDOW_LOG_MAX {
        return Ok(None);
    }
    let block_bytes_max = window_bytes.min(BLOCK_BYTES_MAX);
    Ok(Some(Header { block_bytes_max, content_bytes, has_checksum: descriptor >> 2 & 1 == 1 }))
}

/// Replaces `plain` by the plain bytes of whole frames; `None` if they are damaged or hold more.
pub(super) fn decode(stored: &[u8], plain_bytes_max: usize, plain: &mut Vec<u8>) -> Option<()> {
    plain.clear();
    plain.reserve_exact(plain_bytes_max);
    Decompressor::new().ok()?.decompress_to_buffer(stored, plain).ok()?;
    Some(())
}

/// Lengths here are bounded by the limit of a unit.
fn fitting(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
