//! `boolean`, `"char"` and `uuid`.

use std::array;

/// `boolean`: `boolrecv` takes a byte. The spellings are those of `parse_bool_with_len` in PostgreSQL's
/// `bool.c`, but for abbreviations that hardly anybody writes.
pub(super) fn boolean(value: &[u8]) -> Option<bool> {
    let is = |words: &[&[u8]]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is(&[b"t", b"f", b"true", b"false"]) {
        return value.first().map(|byte| byte.eq_ignore_ascii_case(&b't'));
    }
    if is(&[b"1", b"y", b"yes", b"on"]) {
        return Some(true);
    }
    is(&[b"0", b"n", b"no", b"off"]).then_some(false)
}

/// `"char"`: `charrecv` takes a byte. Others than ASCII, and backslashes, mean different things in different
/// versions.
pub(super) fn char(value: &[u8]) -> Option<[u8; 1]> {
    match value {
        [byte] if byte.is_ascii() && !matches!(byte, b'\\' | 0) => Some([*byte]),
        _ => None,
    }
}

/// `uuid`: `uuid_recv` takes 16 bytes. Certain is the usual spelling, and the same without hyphens.
pub(super) fn uuid(value: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let mut digits = [0; 32];
    match value.len() {
        32 => digits.copy_from_slice(value),
        36 if HYPHENS.iter().all(|at| value.get(*at) == Some(&b'-')) => {
            let kept = value.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
            digits.iter_mut().zip(kept).for_each(|(digit, (_, byte))| *digit = *byte);
        }
        _ => return None,
    }
    let mut bytes = [Some(0); 16];
    let (pairs, _) = digits.as_chunks::<2>();
    bytes.iter_mut().zip(pairs).for_each(|(byte, pair)| *byte = hex_byte(*pair));
    let all = bytes.iter().all(Option::is_some);
    all.then(|| array::from_fn(|at| bytes.get(at).copied().flatten().unwrap_or_default()))
}

/// Two hexadecimal digits.
pub(super) fn hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_truth_are_whole() {
        for (value, truth) in
            [("t", true), ("FALSE", false), ("Yes", true), ("0", false), ("on", true), ("off", false)]
        {
            assert_eq!(boolean(value.as_bytes()), Some(truth), "{value}");
        }
        for uncertain in ["", "tr", "o", "2", " t", "wahr"] {
            assert_eq!(boolean(uncertain.as_bytes()), None, "{uncertain}");
        }
    }

    #[test]
    fn a_uuid_has_hyphens_where_they_belong_or_none() {
        let bytes = Some([
            0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0xff,
        ]);
        assert_eq!(uuid(b"123e4567-e89b-12d3-a456-4266141740FF"), bytes);
        assert_eq!(uuid(b"123e4567e89b12d3a4564266141740ff"), bytes);
        for uncertain in [
            "{123e4567-e89b-12d3-a456-4266141740ff}",
            "123e-4567-e89b-12d3-a456-4266141740ff",
            "",
            "123e4567-e89b-12d3-a456-4266141740fg",
            "123e4567+e89b-12d3-a456-4266141740ff",
        ] {
            assert_eq!(uuid(uncertain.as_bytes()), None, "{uncertain}");
        }
    }
}
