//! Arrays and ranges, of types that are written within them as they are alone.

use super::times::{clock, date};
use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;

/// `pg_type.oid`, as PostgreSQL's `pg_type.dat` has them.
const TEXT: u32 = 25;
const INT4: u32 = 23;
const NUMERIC: u32 = 1700;
const TIMESTAMP: u32 = 1114;
const INT4RANGE: u32 = 3904;

const SPACES: [&str; 7] = ["", "", "", "", " ", "\t", "\n "];

fn array_of(element_oid: u32, element: BinaryType) -> BinaryType {
    BinaryType::Array { element_oid, element: Box::new(element) }
}

fn range_of(bound: BinaryType) -> BinaryType {
    BinaryType::Range { bound: Box::new(bound) }
}

/// Braces around elements, `lengths` of them on each level, with spaces here and there.
pub(super) fn array(
    rng: &mut Rng,
    lengths: &[usize],
    element: &mut impl FnMut(&mut Rng) -> String,
) -> String {
    let Some((length, lengths)) = lengths.split_first() else {
        return element(rng);
    };
    // Now and then one more or fewer: ragged.
    let length = if rng.u8(0..60) == 0 { rng.usize(0..=*length + 1) } else { *length };
    let space = |rng: &mut Rng| rng.choice(SPACES).unwrap();
    let inside: Vec<String> = (0..length)
        .map(|_| format!("{}{}{}", space(rng), array(rng, lengths, element), space(rng)))
        .collect();
    format!("{}{{{}}}{}", space(rng), inside.join(","), space(rng))
}

pub(super) fn lengths(rng: &mut Rng) -> Vec<usize> {
    let levels = rng.choice([1, 1, 1, 2, 3, 6, 7]).unwrap();
    (0..levels).map(|_| if levels == 1 { rng.usize(0..9) } else { rng.usize(1..3) }).collect()
}

fn word(rng: &mut Rng) -> String {
    const LETTERS: [char; 14] =
        ['a', 'b', ' ', '"', '\\', ',', '{', '}', '\n', '\t', '\u{0b}', '0', '\u{e9}', '\u{1f418}'];
    let word: String = (0..rng.usize(0..6)).map(|_| rng.choice(LETTERS).unwrap()).collect();
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    match rng.u8(0..8) {
        0 => (*rng.choice(["NULL", "null", "nUll", "\"NULL\"", "nul", "\\null"]).unwrap()).to_owned(),
        1 => format!("\"{}\"", escaped.replace('a', "\\a")),
        // Bare, as it is or harmless.
        2 if rng.u8(0..8) == 0 => word,
        3 | 4 => format!("w{}", rng.u8(..)),
        5 => format!("two\u{a0}or three {}", rng.u8(..)),
        _ => format!("\"{escaped}\""),
    }
}

#[test]
fn arrays_of_text() {
    for sql_type in ["text[]", "text[][]"] {
        same_as_csv(sql_type, &array_of(TEXT, BinaryType::Text), |rng| {
            let lengths = lengths(rng);
            let array = array(rng, &lengths, &mut word);
            near(rng, array, "{}\",\\ aN")
        });
    }
}

#[test]
fn arrays_of_other_types_with_precision_and_without() {
    same_as_csv("int[]", &array_of(INT4, BinaryType::Int4), |rng| {
        let lengths = lengths(rng);
        let array = array(rng, &lengths, &mut |rng| match rng.u8(0..20) {
            0 => "NULL".to_owned(),
            1 => format!("\" {}\"", rng.i32(..)),
            _ => rng.i32(..).to_string(),
        });
        near(rng, array, "{}\",\\ 0[]:=")
    });
    same_as_csv("numeric(9,2)[]", &array_of(NUMERIC, BinaryType::Numeric), |rng| {
        let lengths = lengths(rng);
        array(rng, &lengths, &mut |rng| format!("{}.{:04}", rng.i32(0..9_000_000), rng.u32(0..10_000)))
    });
    same_as_csv("timestamp(1)[]", &array_of(TIMESTAMP, BinaryType::Timestamp), |rng| {
        let lengths = lengths(rng);
        array(rng, &lengths, &mut |rng| format!("\"{} {}\"", date(rng), clock(rng)))
    });
    same_as_csv("int4range[]", &array_of(INT4RANGE, range_of(BinaryType::Int4)), |rng| {
        let lengths = lengths(rng);
        array(rng, &lengths, &mut |rng| {
            let lower = rng.i32(-9..9);
            format!("\"[{lower},{})\"", lower + rng.i32(0..9))
        })
    });
}

/// Two bounds in the right order, in brackets of all kinds, or none.
fn range(rng: &mut Rng, bounds: [String; 2]) -> String {
    let quoted = |rng: &mut Rng, bound: String| match rng.u8(0..8) {
        0 => String::new(),
        1 | 2 => format!("\"{bound}\""),
        3 => format!("\"{}\\{}\"", &bound[..1], &bound[1..]),
        _ => bound,
    };
    let [lower, upper] = bounds.map(|bound| quoted(rng, bound));
    let (open, close) = (rng.choice(["[", "("]).unwrap(), rng.choice(["]", ")"]).unwrap());
    let written = match rng.u8(0..12) {
        0 => (*rng.choice(["empty", "EMPTY", "Empty "]).unwrap()).to_owned(),
        _ => format!("{open}{lower},{upper}{close}"),
    };
    // Bounds in the wrong order are refused, and most near misses of numbers have them so.
    if rng.u8(0..40) == 0 { near(rng, written, "[](),\" \\") } else { written }
}

#[test]
fn ranges_of_numbers() {
    for (sql_type, bound) in [("int4range", BinaryType::Int4), ("int8range", BinaryType::Int8)] {
        same_as_csv(sql_type, &range_of(bound), |rng| {
            let lower = rng.i32(..) >> rng.u32(0..32);
            let upper = lower.saturating_add(rng.i32(0..=i32::MAX) >> rng.u32(0..32));
            let upper = if rng.u16(0..3000) == 0 { i32::MAX } else { upper.min(i32::MAX - 1) };
            range(rng, [lower.min(upper).to_string(), upper.to_string()])
        });
    }
    same_as_csv("numrange", &range_of(BinaryType::Numeric), |rng| {
        let lower = rng.u32(0..100);
        let (fraction, more) = (rng.u8(..), rng.u32(1..100));
        range(rng, [format!("{lower}.{fraction}"), format!("{}.50", lower + more)])
    });
}

#[test]
fn ranges_of_times() {
    let dates = |rng: &mut Rng| {
        let mut dates = [date(rng), date(rng)];
        dates.sort();
        dates
    };
    same_as_csv("daterange", &range_of(BinaryType::Date), |rng| {
        let dates = dates(rng);
        range(rng, dates)
    });
    for (sql_type, bound) in [("tsrange", BinaryType::Timestamp), ("tstzrange", BinaryType::TimestampTz)] {
        same_as_csv(sql_type, &range_of(bound), |rng| {
            let offset = if sql_type == "tstzrange" { "+00" } else { "" };
            let dates = dates(rng);
            let [lower, upper] = dates.map(|date| format!("{date} 12:00:00{offset}"));
            range(rng, [lower, upper])
        });
    }
}
