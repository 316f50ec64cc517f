//! Numbers as PostgreSQL reads them: the shape of one value, without its magnitude ever becoming a float.
//!
//! What is a number here is a number to every server from 13 on: no `Infinity`, no `NaN` (which a column may
//! hold beside numbers with fractions), no hexadecimal digits and no underscores (from 16 on only).

use super::cursor::Cursor;
use super::kinds::Kinds;

/// Digits of a decimal that still is one: as many as `numeric(p,s)` can be declared with. More are text.
pub(super) const DECIMAL_DIGITS_MAX: usize = 1000;

/// Programs write doubles with an exponent and as many significant digits as they need to be read again, up
/// to this number (C's `DBL_DECIMAL_DIG`). What has more is no double.
pub(super) const DOUBLE_WRITTEN_DIGITS_MAX: u16 = 17;

/// Why digits may be no number, as flags.
pub(super) mod odd {
    pub(in super::super) const LEADING_ZERO: u8 = 1;
    pub(in super::super) const PLUS: u8 = 2;
    pub(in super::super) const MINUS_ZERO: u8 = 4;
    pub(in super::super) const LONG: u8 = 8;
}

/// How a number with an exponent is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exponent {
    /// With a point or a sign: `1.5e3`, `1e-05`, `1E+06`.
    Sure,
    /// Digits, the letter and digits, as in `12E3`, which may be a name.
    Bare,
}

/// The shape of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) kinds: Kinds,
    /// As PostgreSQL would write it, where it is not a float.
    pub(super) exact: bool,
    /// The value, if it is an integer in the range of bigint.
    pub(super) integer: Option<i64>,
    /// It has an exponent; of its digits only the significant ones are told.
    pub(super) exponent: Option<Exponent>,
    /// Digits before the point.
    pub(super) before: u16,
    /// Digits behind the point.
    pub(super) decimals: u16,
    /// Digits from the first that is not zero on.
    pub(super) significant: u16,
    /// Flags of [`odd`].
    pub(super) odd: u8,
}

impl Plain {
    /// Digits, a point and digits, as PostgreSQL writes numbers.
    pub(super) fn is_pointed(&self) -> bool {
        self.exact && self.decimals > 0 && self.kinds.meet(Kinds::DECIMAL)
    }
}

/// An integer of at most 18 digits exactly as PostgreSQL would write it: the one shape that is common
/// enough to be recognised before all others.
#[inline]
pub(super) fn small_integer(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0', ..] if negative || digits.len() > 1 => return None,
        _ if digits.len() > 18 => return None,
        _ => {}
    }
    let mut magnitude = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + i64::from(digit);
    }
    Some(if negative { -magnitude } else { magnitude })
}

/// The shape of this value, which has no blanks around it.
pub(super) fn plain(value: &[u8]) -> Option<Plain> {
    let mut cursor = Cursor(value);
    let sign = cursor.one_of(b"+-");
    let before = cursor.digits();
    if cursor.is_done() {
        return whole(value, sign, before);
    }
    let pointed = cursor.eat(b'.');
    let decimals = cursor.digits();
    let digits = before.len() + decimals.len();
    let leading_zero = before.len() > 1 && before.starts_with(b"0");
    if digits == 0 || digits > DECIMAL_DIGITS_MAX || leading_zero || sign == Some(b'+') {
        return None;
    }
    if !cursor.is_done() {
        let significant = significant(before, decimals);
        let is_bare = !value.iter().any(|byte| matches!(byte, b'.' | b'+' | b'-'));
        return exponent(value, cursor).then_some(Plain {
            exponent: Some(if is_bare { Exponent::Bare } else { Exponent::Sure }),
            significant,
            ..shape(Kinds::FLOAT)
        });
    }
    if !pointed {
        return None;
    }
    let significant = significant(before, decimals);
    let kinds =
        if sign.is_some() && significant == 0 { Kinds::FLOAT } else { Kinds::DECIMAL.or(Kinds::FLOAT) };
    Some(Plain {
        exact: !before.is_empty() && !decimals.is_empty(),
        before: short(before.len()),
        decimals: short(decimals.len()),
        significant,
        ..shape(kinds)
    })
}

/// A value of digits alone.
fn whole(value: &[u8], sign: Option<u8>, digits: &[u8]) -> Option<Plain> {
    let integer = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    let odd = match digits {
        [] => return None,
        [b'0'] if sign == Some(b'-') => odd::MINUS_ZERO,
        [b'0', _, ..] => odd::LEADING_ZERO,
        _ if sign == Some(b'+') => odd::PLUS,
        _ if integer.is_none() => odd::LONG,
        _ => 0,
    };
    if odd != 0 {
        // Double precision keeps the sign of a zero.
        let float = if odd == odd::MINUS_ZERO { Kinds::FLOAT } else { Kinds::NONE };
        return Some(Plain { odd, ..shape(Kinds::DIGITS.or(float)) });
    }
    let kinds = Kinds::PLAIN_NUMBERS;
    let before = short(digits.len());
    Some(Plain { exact: true, integer, before, significant: before, ..shape(kinds) })
}

/// What follows is an exponent, and the whole is in the range of double precision: neither infinite nor,
/// unless it is zero, so small that it would become zero. The server refuses both.
fn exponent(value: &[u8], mut cursor: Cursor<'_>) -> bool {
    if cursor.one_of(b"eE").is_none() {
        return false;
    }
    cursor.one_of(b"+-");
    let digits = cursor.digits().len();
    if !(1..=4).contains(&digits) || !cursor.is_done() {
        return false;
    }
    std::str::from_utf8(value).is_ok_and(is_in_range)
}

/// These digits, with a point and an exponent, are in the range of double precision.
pub(super) fn is_in_range(value: &str) -> bool {
    let Ok(float) = value.parse::<f64>() else { return false };
    let mut mantissa = value.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    float.is_finite() && (float != 0.0 || mantissa.all(|byte| !matches!(byte, b'1'..=b'9')))
}

/// Digits from the first that is not zero on.
pub(super) fn significant(before: &[u8], decimals: &[u8]) -> u16 {
    let digits = before.iter().chain(decimals).skip_while(|digit| **digit == b'0');
    short(digits.count())
}

fn shape(kinds: Kinds) -> Plain {
    Plain {
        kinds,
        exact: false,
        integer: None,
        exponent: None,
        before: 0,
        decimals: 0,
        significant: 0,
        odd: 0,
    }
}

/// A count of digits; the greatest number stands for everything above it.
pub(super) fn short(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(value: &str) -> Kinds {
        plain(value.as_bytes()).map_or(Kinds::NONE, |plain| plain.kinds)
    }

    #[test]
    fn small_integers_are_those_that_postgresql_writes() {
        for good in ["0", "7", "-1", "123456789012345678", "-999999999999999999"] {
            assert_eq!(small_integer(good.as_bytes()), good.parse().ok(), "{good}");
        }
        for bad in ["", "-", "-0", "007", "+1", "1.", "1a", "1234567890123456789", "\u{661}"] {
            assert_eq!(small_integer(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn digits_that_a_number_would_lose_are_no_number() {
        for odd in ["007", "+5", "9223372036854775808", "00", "-007"] {
            assert_eq!(kinds(odd), Kinds::DIGITS, "{odd}");
        }
        assert_eq!(kinds("-0"), Kinds::DIGITS.or(Kinds::FLOAT));
        assert_eq!(kinds("9223372036854775807"), Kinds::PLAIN_NUMBERS);
        assert_eq!(kinds("-9223372036854775808"), Kinds::PLAIN_NUMBERS);
    }

    #[test]
    fn decimals_and_floats_are_told_apart() {
        let both = Kinds::DECIMAL.or(Kinds::FLOAT);
        for decimal in ["1.5", "-0.50", ".5", "5.", "0.0"] {
            assert_eq!(kinds(decimal), both, "{decimal}");
        }
        for float in ["1e5", "1.5E-10", "-0.0", "-0.00", "0e0", "4.9e-324", ".5e3"] {
            assert_eq!(kinds(float), Kinds::FLOAT, "{float}");
        }
        for neither in
            ["", "-", ".", "+1.5", "00.5", "1e", "1e400", "1e-400", "1e99999", "1.5x", "NaN", "1e5 "]
        {
            assert_eq!(kinds(neither), Kinds::NONE, "{neither}");
        }
    }
}
