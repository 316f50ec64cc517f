//! Dates, times and timestamps.

use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;

pub(super) fn date(rng: &mut Rng) -> String {
    let years = [rng.u32(1..10_000), rng.u32(1900..2100), 2000, 2024, 1900, 1, 9999];
    let days = [rng.u32(1..29), 28, 29, 30, 31];
    let (year, month, day) = (rng.choice(years).unwrap(), rng.u32(1..13), rng.choice(days).unwrap());
    format!("{year:04}-{month:02}-{day:02}")
}

pub(super) fn clock(rng: &mut Rng) -> String {
    let (hour, minute, second) = (rng.u32(0..24), rng.u32(0..60), rng.u32(0..60));
    match rng.u8(0..6) {
        0 => format!("{hour:02}:{minute:02}"),
        1 | 2 => {
            let fraction: String = (0..rng.usize(1..8)).map(|_| rng.digit(10)).collect();
            format!("{hour:02}:{minute:02}:{second:02}.{fraction}")
        }
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}

fn offset(rng: &mut Rng) -> String {
    let (sign, hours, minutes) = (rng.choice(["+", "-"]).unwrap(), rng.u32(0..17), rng.u32(0..61));
    match rng.u8(0..5) {
        0 => "Z".to_owned(),
        1 => format!("{sign}{hours:02}"),
        2 => format!("{sign}{hours:02}{minutes:02}"),
        3 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => String::new(),
    }
}

const NEAR: &str = "0123456789-:. TtZz+/WJ";

#[test]
fn dates() {
    same_as_csv("date", &BinaryType::Date, |rng| {
        let date = date(rng);
        near(rng, date, NEAR)
    });
}

#[test]
fn times_of_day_with_precision_and_without() {
    for sql_type in ["time", "time(0)", "time(3)"] {
        same_as_csv(sql_type, &BinaryType::Time, |rng| {
            let clock = clock(rng);
            near(rng, clock, NEAR)
        });
    }
    for sql_type in ["timetz", "timetz(2)"] {
        same_as_csv(sql_type, &BinaryType::TimeTz, |rng| {
            let time = clock(rng) + &offset(rng);
            near(rng, time, NEAR)
        });
    }
}

#[test]
fn timestamps_with_precision_and_without() {
    let written = |rng: &mut Rng, offset: String| {
        let (day, between, clock) = (date(rng), rng.choice([" ", "T"]).unwrap(), clock(rng));
        let written = match rng.u8(0..8) {
            0 => day,
            _ => format!("{day}{between}{clock}{offset}"),
        };
        near(rng, written, NEAR)
    };
    for sql_type in ["timestamp", "timestamp(0)", "timestamp(4)"] {
        same_as_csv(sql_type, &BinaryType::Timestamp, |rng| written(rng, String::new()));
    }
    for sql_type in ["timestamptz", "timestamptz(3)"] {
        same_as_csv(sql_type, &BinaryType::TimestampTz, |rng| {
            let offset = offset(rng);
            written(rng, offset)
        });
    }
}
