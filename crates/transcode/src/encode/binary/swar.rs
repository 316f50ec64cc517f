//! Up to eight decimal digits at once, in one machine word.
//!
//! The first byte is the lowest of the word. Method: three multiplications add up neighbours, then pairs,
//! then fours (Lemire, "Quickly parsing eight digits", 2018).

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

/// A value of one to eight bytes; zeros behind its last.
#[inline]
pub(super) fn word(value: &[u8]) -> Option<u64> {
    let length = value.len();
    match length {
        4..=8 => {
            let (first, last) = (value.first_chunk::<4>()?, value.last_chunk::<4>()?);
            Some(
                u64::from(u32::from_le_bytes(*first))
                    | u64::from(u32::from_le_bytes(*last)) << (8 * (length - 4)),
            )
        }
        2..=3 => {
            let (first, last) = (value.first_chunk::<2>()?, value.last_chunk::<2>()?);
            Some(
                u64::from(u16::from_le_bytes(*first))
                    | u64::from(u16::from_le_bytes(*last)) << (8 * (length - 2)),
            )
        }
        1 => value.first().map(|byte| u64::from(*byte)),
        _ => None,
    }
}

/// Takes the first of these bytes out: the word without it, and where it was.
#[inline]
pub(super) fn without(word: u64, byte: u8) -> (u64, Option<usize>) {
    let others = word ^ (ONES * u64::from(byte));
    // The lowest bit that is set is that of the first zero byte.
    let found = others.wrapping_sub(ONES) & !others & TOPS;
    if found == 0 {
        return (word, None);
    }
    let at = found.trailing_zeros() as usize / 8;
    let before = (1_u64 << (8 * at)) - 1;
    ((word & before) | ((word >> 8) & !before), Some(at))
}

/// The number that so many bytes of the word (one to eight) are; `None` if they are not all digits.
#[inline]
pub(super) fn digits(word: u64, count: usize) -> Option<u64> {
    if !(1..=8).contains(&count) {
        return None;
    }
    // Zeros come before the first.
    let shift = 8 * (8 - count);
    let digits = (word << shift).wrapping_sub((ONES * u64::from(b'0')) << shift);
    if !are_digits(digits) {
        return None;
    }
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    Some(high.wrapping_add(low) >> 32)
}

/// Each byte is at most 9. One that was too small has borrowed from the next, and is too large itself.
#[inline]
pub(super) fn are_digits(digits: u64) -> bool {
    (digits.wrapping_add(0x76 * ONES) | digits) & TOPS == 0
}

/// At each place the number that the digit there and the next one are.
#[inline]
pub(super) fn pairs(digits: u64) -> [u8; 8] {
    digits.wrapping_mul(10).wrapping_add(digits >> 8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_numbers_that_their_digits_say() {
        for text in ["0", "7", "10", "099", "1234", "12345", "000001", "9876543", "99999999"] {
            let read = word(text.as_bytes()).and_then(|word| digits(word, text.len()));
            assert_eq!(read, text.parse().ok(), "{text}");
        }
        for place in 0..8 {
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                let mut text = *b"09876543";
                text[place] = byte;
                assert_eq!(word(&text).and_then(|word| digits(word, 8)), None, "{byte} at {place}");
            }
        }
        assert_eq!((word(b""), word(b"123456789")), (None, None));
    }

    #[test]
    fn the_first_point_is_taken_out() {
        for (text, left, at) in [
            ("1.5", "15", Some(1)),
            (".5", "5", Some(0)),
            ("5.", "5", Some(1)),
            ("1234567.", "1234567", Some(7)),
            ("12", "12", None),
        ] {
            let whole = word(text.as_bytes()).unwrap();
            assert_eq!(without(whole, b'.'), (word(left.as_bytes()).unwrap(), at), "{text}");
        }
        assert_eq!(without(word(b"1.2.3").unwrap(), b'.').0, word(b"12.3").unwrap());
    }
}
