//! `smallint`, `integer`, `bigint` and `oid`: `int2recv`, `int4recv`, `int8recv` and `oidrecv` take the
//! number in network order.
//!
//! Of what `pg_strtoint64` in PostgreSQL's `numutils.c` accepts, decimal digits with a sign and spaces around
//! are certain in every version. (Others came with 16: hexadecimal, underscores.)

use super::swar;

/// Decimal digits, perhaps with a sign.
#[inline]
pub(super) fn parse(value: &[u8]) -> Option<i64> {
    match short(value) {
        Some(number) => i64::try_from(number).ok(),
        None => any(value),
    }
}

/// Up to sixteen digits and nothing else; what has more may still be a number.
#[inline]
fn short(value: &[u8]) -> Option<u64> {
    match value.split_last_chunk::<8>() {
        None => swar::digits(swar::word(value)?, value.len()),
        Some(([], last)) => swar::digits(u64::from_le_bytes(*last), 8),
        Some((first, last)) => {
            let high = swar::digits(swar::word(first)?, first.len())?;
            Some(high * 100_000_000 + swar::digits(u64::from_le_bytes(*last), 8)?)
        }
    }
}

#[inline(never)]
fn any(value: &[u8]) -> Option<i64> {
    let value = trim(value);
    let (negative, digits) = match value.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, value),
    };
    let mut number = 0_i64;
    if digits.is_empty() {
        return None;
    }
    // Eighteen digits fit whatever they are.
    if digits.len() <= 18 {
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
        return Some(if negative { -number } else { number });
    }
    for byte in digits {
        let digit = i64::from(byte.checked_sub(b'0').filter(|digit| *digit <= 9)?);
        // Downwards, because there is one more number below zero than above.
        number = number.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative { Some(number) } else { number.checked_neg() }
}

/// `oidin` takes signs too, and wraps what is below zero; a leading zero makes the number octal.
pub(super) fn oid(value: &[u8]) -> Option<u32> {
    let is_decimal =
        value.iter().all(u8::is_ascii_digit) && (value.len() == 1 || value.first() != Some(&b'0'));
    u32::try_from(parse(value).filter(|_| is_decimal)?).ok()
}

/// Without spaces around: numbers may have some.
#[inline]
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let Some((b' ', rest)) = value.split_first() {
        value = rest;
    }
    while let Some((b' ', rest)) = value.split_last() {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_bigint_are_in_and_what_is_beyond_is_out() {
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse(b" +009223372036854775807 "), Some(i64::MAX));
        for uncertain in
            ["9223372036854775808", "-9223372036854775809", "", "-", "+", "1 2", "0x1", "1_0", "1."]
        {
            assert_eq!(parse(uncertain.as_bytes()), None, "{uncertain}");
        }
        assert_eq!((oid(b"4294967295"), oid(b"0")), (Some(u32::MAX), Some(0)));
        assert_eq!([oid(b"4294967296"), oid(b"-1"), oid(b""), oid(b"017")], [None; 4]);
    }
}
