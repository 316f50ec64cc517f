//! `numeric`: `numeric_recv` takes the count of digits to the base of 10,000, the weight of the first, the
//! sign, the digits behind the point that are shown, and the digits; it rounds to the column's precision as
//! input does.
//!
//! Source: `numeric_recv` and `set_var_from_str` in PostgreSQL's `numeric.c`.

use super::integer::trim;
use super::out::Out;
use super::swar;

const LENGTH_BYTES: usize = 4;
/// Count of groups, weight, sign and scale, two bytes each.
const HEAD_BYTES: usize = 8;
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
/// Decimal digits in one digit of the server's.
const GROUP: usize = 4;
/// Makes so many digits behind the last whole group one more.
static FILL: [u64; GROUP] = [1, 1000, 100, 10];
/// Longer ones are left to the server.
const DIGITS_MAX: usize = 1000;
/// So many decimal digits, and three zeros behind them, fit `u64`.
const SHORT_DIGITS_MAX: usize = 16;

/// Writes the value behind its length.
#[inline]
pub(super) fn write_sized(value: &[u8], out: &mut Out) -> Option<()> {
    match short_and_plain(value) {
        Some((bytes, used)) => out.put_some(bytes, used),
        None => out.sized(|out| write(value, out)),
    }
}

/// Up to eight digits and a point without a sign: the value behind its length, and how many of the bytes it
/// takes. What is written otherwise may still be a number.
#[inline]
fn short_and_plain(value: &[u8]) -> Option<([u8; LENGTH_BYTES + HEAD_BYTES + 8], usize)> {
    let (word, point) = swar::without(swar::word(value)?, b'.');
    let digits = value.len() - usize::from(point.is_some());
    let scale = point.map_or(0, |point| digits - point);
    let number = swar::digits(word, digits)? * FILL[scale % GROUP];
    // Eight digits and up to three zeros are three groups at most, in the lower six bytes.
    let (upper, middle, lower) = (number / 100_000_000, number / 10_000 % 10_000, number % 10_000);
    let groups = (upper << 32) | (middle << 16) | lower;
    let (count, weight) = if groups == 0 {
        (0, 0)
    } else {
        let (dropped_before, dropped_behind) = (groups.leading_zeros() / 16, groups.trailing_zeros() / 16);
        (4 - dropped_before - dropped_behind, 3 - dropped_before as i16 - scale.div_ceil(GROUP) as i16)
    };
    let left_aligned = groups << (groups.leading_zeros() / 16 * 16 % 64);
    let used = HEAD_BYTES + 2 * count as usize;
    let mut bytes = [0; LENGTH_BYTES + HEAD_BYTES + 8];
    *bytes.first_chunk_mut()? = (used as u32).to_be_bytes();
    *bytes.get_mut(LENGTH_BYTES..)?.first_chunk_mut()? =
        head_of(count as u16, weight, POSITIVE, scale as u16);
    *bytes.last_chunk_mut()? = left_aligned.to_be_bytes();
    Some((bytes, LENGTH_BYTES + used))
}

/// Writes the value without its length.
#[inline(never)]
fn write(value: &[u8], out: &mut Out) -> Option<()> {
    let value = trim(value);
    let (sign, unsigned) = match value.split_first()? {
        (b'-', unsigned) => (NEGATIVE, unsigned),
        (b'+', unsigned) => (POSITIVE, unsigned),
        _ => (POSITIVE, value),
    };
    if unsigned.len() <= SHORT_DIGITS_MAX { short(sign, unsigned, out) } else { long(sign, unsigned, out) }
}

/// A number that fits a machine word.
#[inline]
fn short(sign: u16, unsigned: &[u8], out: &mut Out) -> Option<()> {
    let (mut number, mut digits, mut point) = (0_u64, 0_usize, None);
    for byte in unsigned {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            number = number * 10 + u64::from(digit);
            digits += 1;
        } else if *byte == b'.' && point.is_none() {
            point = Some(digits);
        } else {
            return None;
        }
    }
    if digits == 0 {
        return None;
    }
    let scale = digits - point.unwrap_or(digits);
    let fraction_groups = scale.div_ceil(GROUP);
    number *= FILL[scale % GROUP];
    // The lowest group comes first.
    let mut groups = [0_u16; 6];
    let (mut count, mut dropped) = (0, 0);
    while number > 0 {
        let group = (number % 10_000) as u16;
        number /= 10_000;
        if count == 0 && group == 0 {
            dropped += 1;
        } else {
            *groups.get_mut(count)? = group;
            count += 1;
        }
    }
    let weight = if count == 0 {
        0
    } else {
        i16::try_from(count + dropped).ok()? - i16::try_from(fraction_groups).ok()? - 1
    };
    head(count, weight, sign, scale, out)?;
    for group in groups.get(..count)?.iter().rev() {
        out.put(group.to_be_bytes())?;
    }
    Some(())
}

fn long(sign: u16, unsigned: &[u8], out: &mut Out) -> Option<()> {
    let point = memchr::memchr(b'.', unsigned);
    let (whole, fraction) = match point {
        Some(at) => (unsigned.get(..at)?, unsigned.get(at + 1..)?),
        None => (unsigned, [].as_slice()),
    };
    let is_digits = whole.iter().chain(fraction).all(u8::is_ascii_digit);
    if !is_digits || unsigned.len() > DIGITS_MAX {
        return None;
    }
    let mut groups = Vec::with_capacity(unsigned.len() / GROUP + 2);
    // The first group of the whole part may be short, the last of the fraction has zeros behind it.
    let (first, rest) = whole.split_at(whole.len() % GROUP);
    if !first.is_empty() {
        groups.push(group(first));
    }
    groups.extend(rest.chunks(GROUP).map(group));
    let mut weight = i16::try_from(groups.len()).ok()? - 1;
    groups.extend(fraction.chunks(GROUP).map(|digits| group(digits) * FILL[digits.len() % GROUP] as u16));
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let kept = groups.len() - groups.iter().rev().take_while(|group| **group == 0).count();
    let groups = groups.get(leading..kept).unwrap_or_default();
    weight = if groups.is_empty() { 0 } else { weight - i16::try_from(leading).ok()? };
    head(groups.len(), weight, sign, fraction.len(), out)?;
    groups.iter().try_for_each(|group| out.put(group.to_be_bytes()))
}

fn group(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |group, digit| group * 10 + u16::from(digit - b'0'))
}

#[inline]
fn head(count: usize, weight: i16, sign: u16, scale: usize, out: &mut Out) -> Option<()> {
    // There is no zero below zero.
    let sign = if count == 0 { POSITIVE } else { sign };
    out.put(head_of(u16::try_from(count).ok()?, weight, sign, u16::try_from(scale).ok()?))
}

#[inline]
fn head_of(count: u16, weight: i16, sign: u16, scale: u16) -> [u8; HEAD_BYTES] {
    let words = [count, weight.cast_unsigned(), sign, scale];
    words.into_iter().fold(0, |head, word| (head << 16) | u64::from(word)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(value: &str) -> Option<Vec<i16>> {
        let mut bytes = [0; 1024];
        let mut out = Out::new(&mut bytes);
        write(value.as_bytes(), &mut out)?;
        let length = out.length();
        Some(bytes[..length].chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect())
    }

    #[test]
    fn groups_are_counted_from_the_point() {
        const MINUS: i16 = 0x4000;
        let cases: [(&str, &[i16]); 12] = [
            ("0", &[0, 0, 0, 0]),
            ("-0.00", &[0, 0, 0, 2]),
            ("7", &[1, 0, 0, 0, 7]),
            ("10000", &[1, 1, 0, 0, 1]),
            ("123456", &[2, 1, 0, 0, 12, 3456]),
            ("1.5", &[2, 0, 0, 1, 1, 5000]),
            ("-.00012", &[2, -1, MINUS, 5, 1, 2000]),
            ("+5.", &[1, 0, 0, 0, 5]),
            ("0.00001234", &[1, -2, 0, 8, 1234]),
            ("99999999999999.9", &[5, 3, 0, 1, 99, 9999, 9999, 9999, 9000]),
            ("000000000000000000012.50", &[2, 0, 0, 2, 12, 5000]),
            ("-123456789012345678901.0", &[6, 5, MINUS, 1, 1, 2345, 6789, 123, 4567, 8901]),
        ];
        for (value, expected) in cases {
            assert_eq!(words(value).as_deref(), Some(expected), "{value}");
        }
        for uncertain in [
            "",
            ".",
            "-",
            "1e5",
            "NaN",
            "1,5",
            "1.2.3",
            "1_000",
            "12345678901234567x",
            "1234567890123456.7.8",
        ] {
            assert_eq!(words(uncertain), None, "{uncertain}");
        }
    }
}
