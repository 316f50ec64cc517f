//! How messages write numbers.

use std::fmt::Display;

/// A count for people: `4,000,000`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (no, digit) in digits.chars().enumerate() {
        if no > 0 && (digits.len() - no).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// So many of them: `1 row`, `20 rows`. The count is a number, or what [`show_count`] has made of one.
#[must_use]
pub fn counted(count: impl Display + Copy, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// A size as it is given to an option, exactly: `63MB`, `1GB`, `1000B`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let units = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    let fitting = units.iter().find(|(_, bits)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    let (unit, bits) = fitting.unwrap_or(&("B", 0));
    format!("{}{unit}", bytes >> bits)
}

/// What stands behind a count, for more than a noun: `plural(rows, "row was", "rows were")`.
#[must_use]
pub fn plural<'a, N: Copy + PartialEq + From<u8>>(count: N, one: &'a str, many: &'a str) -> &'a str {
    if count == N::from(1) { one } else { many }
}
