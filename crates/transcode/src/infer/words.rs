//! Kinds of single words: true and false, UUIDs, addresses.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Words for true and false that PostgreSQL reads as they stand, in any case, as flags of a set. Each
/// family is two pairs at most; the even ones are true.
const BOOLEANS: [&str; 10] = ["true", "false", "t", "f", "yes", "no", "y", "n", "on", "off"];

/// Sets of words that belong together.
const FAMILIES: [u16; 3] = [0b00_0000_1111, 0b00_1111_0000, 0b11_0000_0000];

/// `true` and `false`, which mean nothing else.
const PLAIN: u16 = 0b11;

/// All words for true.
const TRUE: u16 = 0b01_0101_0101;

/// The flag of this word.
pub(super) fn boolean(value: &[u8]) -> Option<u16> {
    if value.len() > 5 {
        return None;
    }
    let at = BOOLEANS.iter().position(|word| value.eq_ignore_ascii_case(word.as_bytes()))?;
    Some(1 << at)
}

/// This word is one for true.
pub(super) fn is_true(word: u16) -> bool {
    word & TRUE != 0
}

/// A column with these words is one of truth values: they are of one family, and both truths are there. A
/// column of `N` alone could be anything; one of `true` alone could not.
pub(super) fn are_booleans(words: u16) -> bool {
    let one_family = FAMILIES.iter().any(|family| words & !family == 0);
    let both = words & TRUE != 0 && words & !TRUE != 0;
    words != 0 && one_family && (both || words & !PLAIN == 0)
}

/// `true` and `false` are all the words there are.
pub(super) fn are_plain(words: u16) -> bool {
    words & !PLAIN == 0
}

/// A UUID with hyphens in their places.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    let fits = |at: usize, byte: u8| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.len() == 36 && (0..).zip(value).all(|(at, byte)| fits(at, *byte))
}

/// How an address is written, as flags.
pub(super) mod prefix {
    pub(in super::super) const NONE: u8 = 1;
    /// A prefix length stands behind it.
    pub(in super::super) const LENGTH: u8 = 2;
    /// With colons, of which there may be more and fewer for the same address.
    pub(in super::super) const COLONS: u8 = 4;
}

/// An address of four numbers or one with colons, a prefix length behind it or not: a flag of [`prefix`].
pub(super) fn inet(value: &[u8]) -> Option<u8> {
    // The longest is eight groups of four digits and a prefix of three.
    if value.len() > 43 {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let four = address.parse::<Ipv4Addr>().is_ok();
    // An address of four numbers inside one with colons is written in too many ways.
    let six = !four && !address.contains('.') && address.parse::<Ipv6Addr>().is_ok();
    let bits = match prefix {
        None => 0,
        Some(digits) if is_count(digits) => digits.parse::<u16>().ok()?,
        Some(_) => return None,
    };
    match (four, prefix) {
        (true, None) => Some(prefix::NONE),
        (true, Some(_)) if bits <= 32 => Some(prefix::LENGTH),
        (false, _) if six && bits <= 128 => Some(prefix::COLONS),
        _ => None,
    }
}

fn is_count(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.len() <= 3
        && (digits == "0" || !digits.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_truth_values_only_together() {
        let of =
            |words: &[&str]| are_booleans(words.iter().map(|word| boolean(word.as_bytes()).unwrap()).sum());
        assert!(
            of(&["true"]) && of(&["False"]) && of(&["Y", "N"]) && of(&["yes", "n"]) && of(&["on", "off"])
        );
        assert!(!of(&["N"]) && !of(&["f"]) && !of(&["yes"]) && !of(&["t", "n"]) && !of(&["on", "no"]));
        assert_eq!((boolean(b"1"), boolean(b"tru"), boolean(b"")), (None, None, None));
    }

    #[test]
    fn uuids_and_addresses_have_their_full_form() {
        assert!(is_uuid(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"));
        assert!(is_uuid(b"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"));
        assert!(!is_uuid(b"a0eebc999c0b4ef8bb6d6bb9bd380a11") && !is_uuid(b""));
        for (text, expected) in [
            ("10.0.0.1", prefix::NONE),
            ("0.0.0.0", prefix::NONE),
            ("10.0.0.0/8", prefix::LENGTH),
            ("::1", prefix::COLONS),
            ("2001:db8::/32", prefix::COLONS),
        ] {
            assert_eq!(inet(text.as_bytes()), Some(expected), "{text}");
        }
        for bad in [
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "01.2.3.4",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/08",
            ":",
            "",
        ] {
            assert_eq!(inet(bad.as_bytes()), None, "{bad}");
        }
    }
}
