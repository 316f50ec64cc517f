//! `bytea`: `bytearecv` takes the bytes.
//!
//! Certain is the hexadecimal form without spaces, and the escape form of characters that stand for
//! themselves. (`byteain` in PostgreSQL's `varlena.c`.)

use super::out::Out;
use super::words::hex_byte;

/// Writes the value without its length.
pub(super) fn write(value: &[u8], out: &mut Out) -> Option<()> {
    let Some(digits) = value.strip_prefix(b"\\x") else {
        let is_plain = value.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'\\' | 0));
        return is_plain.then(|| out.extend(value)).flatten();
    };
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    pairs.iter().try_for_each(|pair| out.put([hex_byte(*pair)?]))
}

#[cfg(test)]
mod tests {
    use super::super::out::written;
    use super::*;

    #[test]
    fn hexadecimal_digits_come_in_pairs() {
        let written = |value: &[u8]| written(|out| write(value, out));
        assert_eq!(written(b"\\x00fFA1"), Some(vec![0, 0xff, 0xa1]));
        assert_eq!(written(b"\\x"), Some(vec![]));
        assert_eq!(written(b"plain 'x'"), Some(b"plain 'x'".to_vec()));
        for uncertain in [b"\\x0".as_slice(), b"\\x0 0", b"\\xgg", b"\\000", "\u{e9}".as_bytes()] {
            assert_eq!(written(uncertain), None);
        }
    }
}
