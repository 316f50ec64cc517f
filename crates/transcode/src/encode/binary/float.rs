//! `real` and `double precision`: `float4recv` and `float8recv` take IEEE 754 in network order.
//!
//! The server reads with `strtof` and `strtod`, which round as Rust does: to the nearest, ties to even.
//! Numbers that overflow are refused by the server, and some of those near zero, too; both are left to it,
//! and so are words.

use super::integer::trim;
use std::str::FromStr;

/// A `real`.
pub(super) fn parse_4(value: &[u8]) -> Option<f32> {
    let value = trim(value);
    let is_zero = shape(value)?;
    let number = parse::<f32>(value)?;
    (number.is_normal() || is_zero).then_some(number)
}

/// A `double precision`.
pub(super) fn parse_8(value: &[u8]) -> Option<f64> {
    let value = trim(value);
    let is_zero = shape(value)?;
    let number = parse::<f64>(value)?;
    (number.is_normal() || is_zero).then_some(number)
}

fn parse<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A sign, digits with a point or without, an exponent: whether every digit before the exponent is zero.
#[inline]
fn shape(value: &[u8]) -> Option<bool> {
    let digits = |mut rest: &[u8]| {
        let start = rest.len();
        let mut is_zero = true;
        while let Some((byte @ b'0'..=b'9', after)) = rest.split_first() {
            is_zero &= *byte == b'0';
            rest = after;
        }
        (start - rest.len(), is_zero, rest.len())
    };
    let tail = |length: usize| value.get(value.len() - length..).unwrap_or_default();
    let unsigned = value.strip_prefix(b"-").or_else(|| value.strip_prefix(b"+")).unwrap_or(value);
    let (whole, mut is_zero, mut left) = digits(unsigned);
    let mut fraction = 0;
    if let Some(after) = tail(left).strip_prefix(b".") {
        let (count, zeros, rest) = digits(after);
        (fraction, left) = (count, rest);
        is_zero &= zeros;
    }
    if whole + fraction == 0 {
        return None;
    }
    if let Some((b'e' | b'E', after)) = tail(left).split_first() {
        let after = after.strip_prefix(b"-").or_else(|| after.strip_prefix(b"+")).unwrap_or(after);
        let (count, _, rest) = digits(after);
        // Longer exponents are nobody's data.
        if !(1..=4).contains(&count) {
            return None;
        }
        left = rest;
    }
    (left == 0).then_some(is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_might_refuse_is_left_to_it() {
        assert_eq!(parse_8(b"1.5e-3"), Some(0.0015));
        assert_eq!(parse_8(b" -.5"), Some(-0.5));
        assert_eq!(parse_8(b"5."), Some(5.0));
        assert!(parse_8(b"-0e9").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        for uncertain in
            ["1e400", "1e-400", "4.9e-324", "nan", "inf", "1e", ".", "", "e5", "1.5f", "0x1p3", "1e00001"]
        {
            assert_eq!(parse_8(uncertain.as_bytes()), None, "{uncertain}");
        }
        assert_eq!((parse_4(b"1e39"), parse_4(b"1e-40"), parse_4(b"3.4e38")), (None, None, Some(3.4e38)));
    }
}
