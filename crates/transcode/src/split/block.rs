//! 64 bytes as bit masks: where a byte stands, what quoting and backslashes make of the bits.
//!
//! Bit `i` of a mask belongs to byte `i` of the block. The methods (compare into a mask, parity by
//! prefix-xor, odd runs of backslashes by a borrowing subtraction) are those of Langdale and Lemire,
//! "Parsing Gigabytes of JSON per Second" (2019), for COPY's rules.

use howdah_model::Eol;
use wide::u8x16;

/// Bytes in a block.
pub(crate) const BLOCK_BYTES: usize = 64;

/// One block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// Where `byte` stands.
#[inline]
pub(crate) fn positions(block: &Block, byte: u8) -> u64 {
    let needle = u8x16::splat(byte);
    let (lanes, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (index, lane) in lanes.iter().enumerate() {
        mask |= u64::from(u8x16::new(*lane).simd_eq(needle).to_bitmask()) << (16 * index);
    }
    mask
}

/// Where any of these stands: the vectors are put together before they become a mask, which is the dear part.
#[inline]
pub(crate) fn positions_of_any<const N: usize>(block: &Block, bytes: [u8; N]) -> u64 {
    let needles = bytes.map(u8x16::splat);
    let (lanes, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (index, lane) in lanes.iter().enumerate() {
        let lane = u8x16::new(*lane);
        let found = needles.iter().fold(u8x16::ZERO, |found, needle| found | lane.simd_eq(*needle));
        mask |= u64::from(found.to_bitmask()) << (16 * index);
    }
    mask
}

/// For each bit: is the number of set bits up to and including it odd?
#[inline]
pub(crate) fn parity(mut mask: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        mask ^= mask << shift;
    }
    mask
}

/// All ones or all zeros.
#[inline]
pub(crate) fn fill(bit: bool) -> u64 {
    u64::from(bit).wrapping_neg()
}

/// The bits that a backslash before them makes data, and whether the first bit of the next block is one.
#[inline]
pub(crate) fn escaped(backslashes: u64, first_is_escaped: bool) -> (u64, bool) {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    if backslashes == 0 {
        return (u64::from(first_is_escaped), false);
    }
    let first = u64::from(first_is_escaped);
    // A run starts at a backslash that is not escaped itself. Subtracting the run from the odd bits above
    // it carries through the whole run and leaves every second bit.
    let may_escape = backslashes & !first;
    let series = ((may_escape << 1) | ODD).wrapping_sub(may_escape) ^ ODD;
    let escaped = series ^ (backslashes | first);
    (escaped, (series & backslashes) >> 63 == 1)
}

/// The quotes that count where the escape differs from the quote, and whether the last byte of the block
/// is an escape that counts.
#[inline]
pub(crate) fn counting_quotes(quotes: u64, escapes: u64, in_quote: bool, after_escape: bool) -> (u64, bool) {
    // Escapes usually stand inside quotes only. If that is what comes out of assuming it, it is true: up
    // to the first escape nothing was assumed, and so on from escape to escape.
    let (escaped, next_is_escaped) = escaped(escapes, after_escape);
    let counting = quotes & !escaped;
    let quoted = parity(counting) ^ fill(in_quote);
    if escapes & !quoted == 0 {
        return (counting, next_is_escaped);
    }
    counting_quotes_one_by_one(quotes, escapes, in_quote, after_escape)
}

/// [`counting_quotes`] without an assumption.
fn counting_quotes_one_by_one(
    quotes: u64,
    escapes: u64,
    mut in_quote: bool,
    after_escape: bool,
) -> (u64, bool) {
    let mut escaped_bit = u64::from(after_escape);
    let (mut counting, mut last_escapes) = (0, false);
    let mut specials = quotes | escapes;
    while specials != 0 {
        let bit = specials & specials.wrapping_neg();
        specials ^= bit;
        if bit == escaped_bit {
            continue;
        }
        if bit & escapes == 0 {
            in_quote = !in_quote;
            counting |= bit;
        } else if in_quote {
            escaped_bit = bit << 1;
            last_escapes = bit >> 63 == 1;
        }
    }
    (counting, last_escapes)
}

/// The last bytes of records and, in a file of `\r\n`, the `\r` that a `\n` must follow. Bits of `data` end
/// nothing.
#[inline]
pub(crate) fn record_ends(eol: Option<Eol>, block: &Block, data: u64, after_cr: bool) -> (u64, u64) {
    match eol {
        Some(Eol::Cr) => (positions(block, b'\r') & !data, 0),
        Some(Eol::CrLf) => {
            let carriage_returns = positions(block, b'\r') & !data;
            let after = carriage_returns << 1 | u64::from(after_cr);
            (positions(block, b'\n') & after & !data, carriage_returns)
        }
        Some(Eol::Lf) | None => (positions(block, b'\n') & !data, 0),
    }
}

/// May one of the `backslashes` in the block at `at` begin an end-of-data marker? Only if a `.` and a line
/// ending follow, or the bytes end too early to say.
#[inline]
pub(crate) fn any_marker(bytes: &[u8], at: usize, block: &Block, backslashes: u64) -> bool {
    if backslashes == 0 {
        return false;
    }
    // The dot behind the last bit lies in the next block.
    let mut candidates = backslashes & (positions(block, b'.') >> 1 | 1 << 63);
    while candidates != 0 {
        if is_marker(bytes, at + candidates.trailing_zeros() as usize) {
            return true;
        }
        candidates &= candidates - 1;
    }
    false
}

/// May an end-of-data marker begin at this backslash?
pub(crate) fn is_marker(bytes: &[u8], backslash: usize) -> bool {
    bytes.get(backslash + 1).is_none_or(|&byte| byte == b'.')
        && bytes.get(backslash + 2).is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(mask: u64) -> [bool; 64] {
        std::array::from_fn(|bit| mask >> bit & 1 == 1)
    }

    proptest! {
        #[test]
        fn a_byte_after_an_odd_run_of_backslashes_is_escaped(a: u64, b: u64, both: bool, first: bool) {
            let backslashes = if both { a | b } else { a & b };
            let (mask, next) = escaped(backslashes, first);
            let mut is_escaped = first;
            for bit in 0..64 {
                prop_assert_eq!(bits(mask)[bit], is_escaped);
                is_escaped = !is_escaped && bits(backslashes)[bit];
            }
            prop_assert_eq!(next, is_escaped);
        }

        #[test]
        fn parity_counts_set_bits_from_the_first(mask: u64) {
            let mut odd = false;
            for bit in 0..64 {
                odd ^= bits(mask)[bit];
                prop_assert_eq!(bits(parity(mask))[bit], odd);
            }
        }
    }
}
