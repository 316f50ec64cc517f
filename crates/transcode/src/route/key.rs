//! Keys of partitions as bytes that compare as the server compares the values: equal where these are equal,
//! in the same order where these have one.

use super::hash::signed;
use howdah_model::route::KeyKind;

/// Behind the digits of a negative number, so that fewer digits are the larger number.
const NEGATIVE_END: [u8; 2] = [0xff; 2];

/// Appends the ordered form of a value to `out`; `None` where its place is not known.
pub(super) fn order(kind: KeyKind, binary: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match kind {
        KeyKind::Int4 | KeyKind::Int8 => {
            out.extend((signed(binary)? ^ i64::MIN).to_be_bytes());
        }
        KeyKind::Oid | KeyKind::Bool | KeyKind::Bytes => out.extend_from_slice(binary),
        KeyKind::Padded => out.extend_from_slice(without_padding(binary)),
        KeyKind::Float => {
            let number = float(binary)?;
            // NaN is the largest for the server, and both zeros are one.
            let bits = if number.is_nan() { i64::MAX } else { (number + 0.0).to_bits() as i64 };
            let ordered = if bits < 0 { !bits } else { bits ^ i64::MIN };
            out.extend(ordered.to_be_bytes());
        }
        KeyKind::Numeric => numeric(binary, out)?,
    }
    Some(())
}

/// `real` and `double precision` compare and hash as one.
pub(super) fn float(binary: &[u8]) -> Option<f64> {
    match binary.len() {
        4 => Some(f64::from(f32::from_be_bytes(binary.try_into().ok()?))),
        _ => Some(f64::from_be_bytes(binary.try_into().ok()?)),
    }
}

/// `bcTruelen` in PostgreSQL's `varchar.c`
pub(super) fn without_padding(binary: &[u8]) -> &[u8] {
    let blanks = binary.iter().rev().take_while(|byte| **byte == b' ').count();
    &binary[..binary.len() - blanks]
}

/// What counts of a number, in the form of `numeric_send`.
pub(super) struct Numeric<'a> {
    /// Of the first digit, to the base of 10,000.
    pub(super) weight: i32,
    pub(super) negative: bool,
    /// Without zeros at either end, in network order.
    pub(super) digits: &'a [[u8; 2]],
}

impl<'a> Numeric<'a> {
    /// `None` for NaN and the infinities.
    pub(super) fn of(binary: &'a [u8]) -> Option<Numeric<'a>> {
        let (head, digits) = binary.split_first_chunk::<8>()?;
        let (weight, sign) = (i16::from_be_bytes([head[2], head[3]]), u16::from_be_bytes([head[4], head[5]]));
        if sign & 0x8000 != 0 {
            return None;
        }
        let (digits, _) = digits.as_chunks();
        let counts = |digit: &[u8; 2]| *digit != [0, 0];
        let first = digits.iter().position(counts).unwrap_or(digits.len());
        let end = digits.iter().rposition(counts).map_or(first, |last| last + 1);
        Some(Numeric {
            weight: i32::from(weight) - i32::try_from(first).ok()?,
            negative: sign != 0,
            digits: digits.get(first..end)?,
        })
    }

    /// Digits behind the point, without zeros at the end; fewer than none where zeros end the number.
    pub(super) fn decimals(&self) -> i32 {
        let Some(last) = self.digits.last() else { return i32::MIN };
        let below = i32::try_from(self.digits.len())
            .unwrap_or(i32::MAX)
            .saturating_sub(1)
            .saturating_sub(self.weight);
        let digit = u16::from_be_bytes(*last);
        let zeros = [10, 100, 1000].into_iter().take_while(|unit| digit % unit == 0).count();
        below.saturating_mul(4) - i32::try_from(zeros).unwrap_or(0)
    }
}

/// Sign, weight, digits.
fn numeric(binary: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let Numeric { weight, negative, digits } = Numeric::of(binary)?;
    let weight = (weight ^ i32::MIN).to_be_bytes();
    let bytes = weight.iter().chain(digits.iter().flatten());
    if digits.is_empty() {
        out.push(1);
    } else if negative {
        out.push(0);
        out.extend(bytes.map(|byte| !byte));
        out.extend(NEGATIVE_END);
    } else {
        out.push(2);
        out.extend(bytes);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(kind: KeyKind, binary: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        order(kind, binary, &mut out).unwrap();
        out
    }

    #[test]
    fn numbers_are_ordered_as_they_are() {
        let numbers = [i64::MIN, -1, 0, 1, i64::MAX].map(|n| ordered(KeyKind::Int8, &n.to_be_bytes()));
        assert!(numbers.is_sorted());
        let floats = [f64::NEG_INFINITY, -2.5, -0.0, 1e-300, 3.0, f64::INFINITY, f64::NAN]
            .map(|n| ordered(KeyKind::Float, &n.to_be_bytes()));
        assert!(floats.is_sorted());
        assert_eq!(floats[2], ordered(KeyKind::Float, &0.0_f64.to_be_bytes()));
    }
}
