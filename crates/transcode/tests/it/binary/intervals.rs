//! `interval`: units and signs in every order, under IntervalStyles that read signs differently.

use super::{near, same_as_csv, times::clock};
use fastrand::Rng;
use howdah_model::BinaryType;

const UNITS: [&str; 12] =
    ["year", "years", "mon", "mons", "months", "week", "days", "day", "hours", "mins", "minute", "seconds"];

fn interval(rng: &mut Rng) -> String {
    // Signs of one kind, of the first alone, or of all kinds.
    let signs = rng.choice([["", "", ""], ["-", "", ""], ["-", "+", ""], ["-", "-", "+"]]).unwrap();
    let mut words = Vec::new();
    for unit in UNITS {
        if rng.u8(0..5) == 0 {
            let sign = signs[rng.usize(0..3)];
            let digits = rng.choice([1, 2, 3, 6]).unwrap();
            words.push(format!("{sign}{} {unit}", rng.u32(0..10_u32.pow(digits))));
        }
    }
    if rng.bool() {
        let sign = signs[rng.usize(0..3)];
        let clock = clock(rng);
        let clock = match rng.u8(0..4) {
            0 => format!("{}{}", rng.u32(0..10_000), &clock[2..]),
            _ => clock,
        };
        words.push(format!("{sign}{clock}"));
    }
    // As PostgreSQL writes most of them.
    if rng.u8(0..3) == 0 {
        words = vec![format!("{} days {}", rng.i32(0..40_000), clock(rng))];
    }
    near(rng, words.join(" "), "0123456789-+ :.daysmonhP@")
}

#[test]
fn intervals_with_precision_and_without() {
    for sql_type in ["interval", "interval(0)", "interval(3)"] {
        same_as_csv(sql_type, &BinaryType::Interval, interval);
    }
}

#[test]
fn intervals_cut_to_fields() {
    for fields in ["YEAR TO MONTH", "DAY TO MINUTE", "MINUTE TO SECOND", "SECOND(2)"] {
        same_as_csv(&format!("interval {fields}"), &BinaryType::Interval, interval);
    }
}
