//! Integers, `numeric`, `real`, `double precision`, `oid`, `boolean`.

use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;

fn integer(rng: &mut Rng, edges: &[i64]) -> String {
    let number = match rng.u8(0..4) {
        0 => *rng.choice(edges).unwrap(),
        1 => rng.i64(-200..200),
        2 => rng.i64(..) >> rng.u32(0..64),
        _ => i64::from(rng.i16(..)),
    };
    let written = match rng.u8(0..8) {
        0 => format!(" {number}"),
        1 => format!("{number} "),
        2 if number >= 0 => format!("+{number}"),
        3 if number >= 0 => format!("00{number}"),
        _ => number.to_string(),
    };
    near(rng, written, "0123456789-+ ._ex")
}

#[test]
fn integers() {
    let edges =
        [0, -1, i64::MIN, i64::MAX, i64::MIN + 1, 1 << 31, (1 << 31) - 1, -(1 << 31), 32767, 32768, -32768];
    for (sql_type, binary_type) in
        [("smallint", BinaryType::Int2), ("integer", BinaryType::Int4), ("bigint", BinaryType::Int8)]
    {
        same_as_csv(sql_type, &binary_type, |rng| integer(rng, &edges));
    }
    let edges = [0, 1, i64::from(u32::MAX), i64::from(u32::MAX) + 1, -1];
    same_as_csv("oid", &BinaryType::Oid, |rng| integer(rng, &edges));
}

fn digits(rng: &mut Rng, count: usize) -> String {
    let zeros = rng.u8(0..4) == 0;
    (0..count).map(|_| if zeros && rng.bool() { '0' } else { rng.digit(10) }).collect()
}

fn decimal(rng: &mut Rng) -> String {
    let most = rng.choice([3, 6, 9, 20, 60]).unwrap();
    let (whole, fraction) = (rng.usize(0..=most), rng.usize(0..=most));
    let sign = rng.choice(["", "", "", "-", "+", " "]).unwrap();
    let (whole, fraction) = (digits(rng, whole), digits(rng, fraction));
    let written = match rng.u8(0..3) {
        0 => format!("{sign}{whole}"),
        1 => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}0.000{fraction}"),
    };
    near(rng, written, "0123456789.-+ eE,_")
}

#[test]
fn numerics_with_precision_and_without() {
    same_as_csv("numeric", &BinaryType::Numeric, decimal);
    for (sql_type, whole_digits) in [("numeric(12,2)", 10), ("numeric(5,0)", 5), ("numeric(40,20)", 20)] {
        same_as_csv(sql_type, &BinaryType::Numeric, |rng| {
            // A few are too large, some are when they are rounded.
            let whole = if rng.u16(0..2000) == 0 { whole_digits + 1 } else { rng.usize(0..=whole_digits) };
            let fraction = rng.usize(0..30);
            format!("{}{}.{}", rng.choice(["", "-"]).unwrap(), digits(rng, whole), digits(rng, fraction))
        });
    }
}

#[test]
fn a_number_of_hundreds_of_digits() {
    same_as_csv("numeric", &BinaryType::Numeric, |rng| {
        let (whole, fraction) = (rng.usize(0..600), rng.usize(0..600));
        format!("{}.{}", digits(rng, whole), digits(rng, fraction))
    });
}

fn float(rng: &mut Rng) -> String {
    let written = match rng.u8(0..6) {
        0 => decimal(rng),
        1 => format!("{}", f64::from_bits(rng.u64(..))),
        2 => format!("{:e}", f64::from_bits(rng.u64(..))),
        3 => format!("{:E}", f32::from_bits(rng.u32(..))),
        // Half way between two numbers, and a little beside.
        4 => format!(
            "{}{}",
            9_007_199_254_740_992_u64 + rng.u64(0..4096),
            rng.choice(["", ".5", ".50000001"]).unwrap()
        ),
        _ => format!("{}e{}", digits(rng, 18), rng.i32(-340..310)),
    };
    near(rng, written, "0123456789.-+ eEinfNa")
}

#[test]
fn floats() {
    same_as_csv("real", &BinaryType::Float4, float);
    same_as_csv("double precision", &BinaryType::Float8, float);
}

#[test]
fn booleans() {
    const WORDS: [&str; 16] = [
        "t", "f", "true", "false", "TRUE", "False", "y", "n", "yes", "no", "on", "off", "1", "0", "tru", "of",
    ];
    same_as_csv("boolean", &BinaryType::Bool, |rng| {
        let word = (*rng.choice(WORDS).unwrap()).to_owned();
        near(rng, word, "tTfFyYnNoO01 ")
    });
}
