//! `bit(n)` and `varbit`: `bit_recv` and `varbit_recv` take the count of bits, and the bytes that hold them,
//! the first bit highest; the last byte has zeros behind them. Both check the column's length as input does.
//!
//! Certain are zeros and ones; `bit_in` in PostgreSQL's `varbit.c` takes hexadecimal digits behind an `x`,
//! too.

use super::out::Out;

/// Writes the value without its length.
pub(super) fn write(value: &[u8], out: &mut Out) -> Option<()> {
    out.put(i32::try_from(value.len()).ok()?.to_be_bytes())?;
    let (wholes, rest) = value.as_chunks::<8>();
    wholes.iter().try_for_each(|bits| out.put([byte(bits)?]))?;
    if rest.is_empty() {
        return Some(());
    }
    let mut last = [b'0'; 8];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    out.put([byte(&last)?])
}

#[inline]
fn byte(bits: &[u8; 8]) -> Option<u8> {
    bits.iter().try_fold(0, |byte, bit| match bit {
        b'0' => Some(byte << 1),
        b'1' => Some(byte << 1 | 1),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::out::written;
    use super::*;

    #[test]
    fn bits_fill_bytes_from_the_top() {
        let written = |value: &[u8]| written(|out| write(value, out));
        assert_eq!(written(b""), Some(vec![0, 0, 0, 0]));
        assert_eq!(written(b"101"), Some(vec![0, 0, 0, 3, 0xa0]));
        assert_eq!(written(b"00000001"), Some(vec![0, 0, 0, 8, 1]));
        assert_eq!(written(b"111111110"), Some(vec![0, 0, 0, 9, 0xff, 0]));
        for uncertain in [b"b101".as_slice(), b"xff", b"2", b"1 ", b"0000000012"] {
            assert_eq!(written(uncertain), None);
        }
    }
}
