//! Dates, with a time of day or without: what was written, and what it means in each order of day, month
//! and year.
//!
//! Years are 1 to 9999, days exist in the calendar. A year of two digits is one from 1970 to 2069, as
//! PostgreSQL has it. A year of four digits in front is a year whatever the order.

use super::clock::Clock;
use super::cursor::{Cursor, trim};
use super::layout::Layout;
use howdah_model::DateOrder;
use std::io::Write;

/// Longer values are no dates: `Wednesday, 30 September 2024 12:00:00.000000 PM +00:00` and some blanks.
const VALUE_BYTES_MAX: usize = 80;

/// The orders a date can be in, as flags.
pub(super) mod order {
    pub(in super::super) const YMD: u8 = 1;
    pub(in super::super) const DMY: u8 = 2;
    pub(in super::super) const MDY: u8 = 4;
    pub(in super::super) const ALL: u8 = 7;
}

pub(super) const ORDERS: [(DateOrder, u8); 3] =
    [(DateOrder::Ymd, order::YMD), (DateOrder::Dmy, order::DMY), (DateOrder::Mdy, order::MDY)];

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// A date as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written<'a> {
    /// Its year has two digits.
    pub(super) short_year: bool,
    pub(super) date: Date,
    pub(super) clock: Option<Clock<'a>>,
    /// How it is written, if it can be written so again.
    pub(super) layout: Option<Layout>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Date {
    /// A year of four digits, month and day.
    YearFirst(Day),
    /// The day in the orders of [`ORDERS`], where it exists; at least one does.
    Numbers([Option<Day>; 3]),
    /// With the name of its month.
    Named(Day),
}

impl Date {
    /// The day, if the date is in numbers.
    pub(super) fn in_order(&self, wanted: DateOrder) -> Option<Day> {
        match self {
            Date::YearFirst(day) => Some(*day),
            Date::Numbers(days) => {
                let at = ORDERS.iter().position(|(known, _)| *known == wanted)?;
                days.get(at).copied().flatten()
            }
            Date::Named(_) => None,
        }
    }
}

impl<'a> Written<'a> {
    /// Takes a value apart, blanks around it or not.
    pub(super) fn parse(value: &'a [u8]) -> Option<Written<'a>> {
        if value.len() > VALUE_BYTES_MAX {
            return None;
        }
        let text = trim(value);
        if let Some(written) = pointed(text).or_else(|| joined(text)) {
            return Some(written);
        }
        let (front, joint, clock) = split(text)?;
        let clock = if clock.is_empty() { None } else { Some(Clock::parse(clock)?) };
        let date = if front.first()?.is_ascii_digit() { in_numbers(front) } else { None };
        let (date, separator) = match date {
            Some(found) => found,
            None => (named(front)?, None),
        };
        // RFC 3339's T is known to PostgreSQL behind a date of its own form only.
        if joint == b'T' && separator != Some(b'-') {
            return None;
        }
        let layout = match (separator, &clock) {
            (None, _) => None,
            (Some(_), None) => Some(Layout { separator, clock: None }),
            // More than one space between date and time is not remembered.
            (Some(_), Some(clock)) if text.get(11).is_some_and(u8::is_ascii_digit) => {
                clock.layout(joint).map(|clock| Layout { separator, clock: Some(clock) })
            }
            _ => None,
        };
        let layout = layout.filter(|_| value.len() == text.len());
        let short_year = is_short_year(front);
        Some(Written { short_year, date, clock, layout })
    }

    /// Writes it as PostgreSQL reads it in every setting.
    pub(super) fn write(&self, day: Day, out: &mut Vec<u8>) {
        day.write(out);
        if let Some(clock) = self.clock {
            out.push(b' ');
            clock.write(out);
        }
    }
}

fn is_short_year(date: &[u8]) -> bool {
    !date.windows(4).any(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// With points in the time of day: `2024-01-31-10.00.00.000000`, as DB2 writes it, and
/// `31-JAN-24 10.00.00.000000 AM`, as Oracle does. No server reads either as it stands, so that the first one
/// has an order.
fn pointed(text: &[u8]) -> Option<Written<'_>> {
    const DATE_BYTES: usize = 10;
    if text.get(DATE_BYTES) == Some(&b'-') {
        let (front, clock) = text.split_at(DATE_BYTES);
        let (Date::YearFirst(day), Some(b'-')) = in_numbers(front)? else { return None };
        let clock = Some(Clock::parse_pointed(clock.get(1..)?).filter(|clock| clock.zone.is_none())?);
        let date = Date::Numbers([Some(day), None, None]);
        return Some(Written { short_year: false, date, clock, layout: None });
    }
    let (front, clock) = text.split_at(text.iter().position(|byte| *byte == b' ')?);
    if clock.get(3) != Some(&b'.') {
        return None;
    }
    let date = named(front)?;
    let clock = Some(Clock::parse_pointed(clock.trim_ascii_start()).filter(Clock::is_told)?);
    Some(Written { short_year: is_short_year(front), date, clock, layout: None })
}

/// Day, month and year without anything between: `31JAN2024`, and `31JAN2024:10:00:00`, as SAS writes them.
fn joined(text: &[u8]) -> Option<Written<'_>> {
    const YEAR_DIGITS: usize = 4;
    let mut cursor = Cursor(text);
    let (day, _) = cursor.short()?;
    let month = cursor.0.get(..MONTH_BYTES).filter(|name| name[0].is_ascii_alphabetic()).and_then(month)?;
    cursor.0 = cursor.0.get(MONTH_BYTES..)?;
    let digits = cursor.digits();
    let day = Day::new(year(digits).filter(|_| digits.len() == YEAR_DIGITS)?, month, day)?;
    let clock = match cursor.0 {
        [] => None,
        [b':', clock @ ..] => Some(Clock::parse(clock)?),
        _ => return None,
    };
    Some(Written { short_year: false, date: Date::Named(day), clock, layout: None })
}

/// The date, what joins it to the time of day (a space if there is none), and the time of day, which
/// begins with the digits before the first colon and is empty if there is none.
fn split(text: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let Some(colon) = memchr::memchr(b':', text) else { return Some((text, b' ', b"")) };
    let (front, _) = text.split_at(colon);
    let digits = front.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (front, clock) = text.split_at(colon - digits);
    match front.split_last()? {
        (b' ', date) => Some((date.trim_ascii_end(), b' ', clock)),
        (b'T', date) => Some((date, b'T', clock)),
        _ => None,
    }
}

/// Three numbers with the same separator between them; the separator behind a year of four digits if month
/// and day have two each.
fn in_numbers(text: &[u8]) -> Option<(Date, Option<u8>)> {
    let mut cursor = Cursor(text);
    let first = cursor.digits();
    let separator = cursor.one_of(b"-/.")?;
    let second = cursor.digits();
    if !cursor.eat(separator) {
        return None;
    }
    let third = cursor.digits();
    if !cursor.is_done() {
        return None;
    }
    if first.len() == 4 {
        let day = Day::new(year(first)?, small(second)?, small(third)?)?;
        let padded = second.len() == 2 && third.len() == 2;
        return Some((Date::YearFirst(day), padded.then_some(separator)));
    }
    // `10.1.12` is a version: with dots and a short year, day and month have two digits each.
    if separator == b'.' && third.len() == 2 && (first.len() < 2 || second.len() < 2) {
        return None;
    }
    let in_order = |year_digits, month, day| Day::new(year(year_digits)?, small(month)?, small(day)?);
    let days =
        [in_order(first, second, third), in_order(third, second, first), in_order(third, first, second)];
    days.iter().any(Option::is_some).then_some((Date::Numbers(days), None))
}

/// `Jan 31, 2024`, `31 January 2024`, `31-Jan-24`, `2024-Jan-31`, a weekday in front or not.
fn named(text: &[u8]) -> Option<Date> {
    let mut words = text.split(|byte| b" -/,.".contains(byte)).filter(|word| !word.is_empty());
    // Most that is no date has too few words, which is cheaper to see than what they are.
    let (mut first, mut second, mut third) = (words.next()?, words.next()?, words.next()?);
    let mut behind = words.next();
    if name(first, &WEEKDAYS).is_some() {
        (first, second, third) = (second, third, behind?);
        behind = words.next();
    }
    if behind.is_some() {
        return None;
    }
    let found = match (month(first), month(second)) {
        (Some(month), None) => Day::new(year(third)?, month, small(second)?),
        (None, Some(month)) if first.len() == 4 => Day::new(year(first)?, month, small(third)?),
        (None, Some(month)) => Day::new(year(third)?, month, small(first)?),
        _ => None,
    };
    found.map(Date::Named)
}

/// Letters of a month's name that is cut short.
pub(crate) const MONTH_BYTES: usize = 3;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The value is a date with a time of day, however it is written.
pub(crate) fn is_moment(value: &[u8]) -> bool {
    Written::parse(value).is_some_and(|written| written.clock.is_some())
}

/// The number of a month's name, from 1: in full, its first three letters, or `Sept`.
pub(crate) fn month(word: &[u8]) -> Option<u8> {
    name(word, &MONTHS)
}

/// The number of a name, from 1: in full, its first three letters, or `Sept`.
fn name(word: &[u8], names: &[&str]) -> Option<u8> {
    if !word.first().is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let is_name = |name: &str| {
        let short = word.len() == 3 || word.eq_ignore_ascii_case(b"sept");
        let length = if short { word.len() } else { name.len() };
        name.as_bytes().get(..length).is_some_and(|name| name.eq_ignore_ascii_case(word))
    };
    let at = names.iter().position(|name| is_name(name))?;
    u8::try_from(at + 1).ok()
}

/// A year of two digits or four.
fn year(digits: &[u8]) -> Option<u16> {
    if !matches!(digits.len(), 2 | 4) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0u16, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    Some(match (digits.len(), number) {
        (2, 0..70) => 2000 + number,
        (2, _) => 1900 + number,
        _ => number,
    })
}

/// A number of one digit or two, the whole word.
fn small(digits: &[u8]) -> Option<u8> {
    let mut cursor = Cursor(digits);
    let (number, _) = cursor.short()?;
    cursor.is_done().then_some(number)
}

impl Day {
    fn new(year: u16, month: u8, day: u8) -> Option<Day> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        ((1..=days).contains(&day) && (1..=9999).contains(&year)).then_some(Day { year, month, day })
    }

    /// As a year of two digits, it was most often one of the century before.
    pub(super) fn is_far(self) -> bool {
        (2050..2070).contains(&self.year)
    }

    /// There is such a day.
    pub(super) fn exists(year: i64, month: i64, day: i64) -> bool {
        let found =
            || Day::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        found().is_some()
    }

    /// The day so many days after 1970-01-01, if its year is one of 1 to 9999.
    ///
    /// H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`: years are counted from
    /// March, so that the odd day of a leap year is the last.
    pub(super) fn since_1970(days: i64) -> Option<Day> {
        let from_march_0 = days.checked_add(719_468)?;
        let (era, day_of_era) = (from_march_0.div_euclid(146_097), from_march_0.rem_euclid(146_097));
        let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leap_days) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Day::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
    }

    /// Writes year, month and day.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        // Writing into memory cannot fail.
        let _ = write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(text: &str) -> Option<u8> {
        let written = Written::parse(text.as_bytes())?;
        Some(match written.date {
            Date::Numbers(days) => {
                let flags = days.iter().zip(ORDERS).filter(|(day, _)| day.is_some());
                flags.map(|(_, (_, flag))| flag).sum()
            }
            Date::YearFirst(_) => order::ALL,
            Date::Named(_) => 0,
        })
    }

    #[test]
    fn the_orders_a_date_can_be_in_are_those_in_which_it_exists() {
        for (text, expected) in [
            ("31/01/2024", order::DMY),
            ("01/31/2024", order::MDY),
            ("01/02/2024", order::DMY | order::MDY),
            ("29/02/2023", 0),
            ("31/01/98", order::DMY),
            ("12/31/24", order::MDY),
            ("31/12/24", order::YMD | order::DMY),
            ("5/1/24", order::DMY | order::MDY),
            ("98-12-31", order::YMD),
            ("01.02.03", order::ALL),
            ("2024/1/5", order::ALL),
            ("2024-01-31-10.00.00.000000", order::YMD),
        ] {
            let expected = if expected == 0 { None } else { Some(expected) };
            assert_eq!(orders(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for bad in [
            "",
            "2024",
            "2024-01",
            "2024-02-30",
            "2100-02-29",
            "0000-01-01",
            "10000-01-01",
            "2024-13-01",
            "1-2/2024",
            "1.2.3",
            "10.1.12",
            "10.15.7",
            "31/31/2024",
            "2024-01-31 ",
            "Foo 3, 2024",
            "Jan 2024",
            "Jan 31 2024 x",
            "31 Jan 124",
            "2024-01-31Z",
            "2024-01-31T25:00",
            "2024-01-31-10.00",
            "2024-01-31-24.00.00",
            "2024-01-31-10.00.00+02",
            "2024-01-31 10.00.00",
            "31.01.2024 10.02.24",
            "31-JAN-24 10.02.24",
            "31JAN24",
            "31JANUARY2024",
            "30FEB2024",
            "31JAN2024 10:00",
            "31JAN2024:",
            "2024/01/31T10:00",
            "12:00",
            "May",
            "Mon May",
            "Janu 3 2024",
        ] {
            if bad.ends_with(' ') {
                assert_eq!(Written::parse(bad.as_bytes()).unwrap().layout, None);
            } else {
                assert_eq!(Written::parse(bad.as_bytes()), None, "{bad}");
            }
        }
    }

    #[test]
    fn databases_write_times_in_ways_of_their_own() {
        for (text, expected) in [
            ("2024-01-31-10.02.03.000004", "2024-01-31 10:02:03.000004"),
            ("2024-01-31-10.02.03", "2024-01-31 10:02:03"),
            ("31-JAN-24 10.02.03.000004 PM", "2024-01-31 22:02:03.000004"),
            ("31-Jan-2024 10.02.03.5", "2024-01-31 10:02:03.5"),
            ("31-JAN-24 10.02.03 AM", "2024-01-31 10:02:03"),
            ("31JAN2024", "2024-01-31"),
            ("1jan2024:10:02:03.25", "2024-01-01 10:02:03.25"),
        ] {
            let written = Written::parse(text.as_bytes()).unwrap();
            let (Date::Numbers([Some(day), None, None]) | Date::Named(day)) = written.date else {
                panic!("{text}: {written:?}")
            };
            let mut out = Vec::new();
            written.write(day, &mut out);
            assert_eq!(
                (String::from_utf8(out).unwrap().as_str(), written.layout),
                (expected, None),
                "{text}"
            );
        }
    }

    #[test]
    fn spellings_that_can_be_written_again_have_a_layout() {
        let layout = |text: &str| Written::parse(text.as_bytes()).unwrap().layout;
        for good in [
            "2024-01-31",
            "2024/01/31",
            "2024-01-31 10:00:00",
            "2024-01-31T10:00",
            "2024-01-31 10:00:00.250",
            "2024-01-31 10:00:00Z",
            "2024-01-31 10:00:00 UTC",
        ] {
            assert!(layout(good).is_some(), "{good}");
        }
        assert_ne!(layout("2024-01-31T10:00:00Z"), layout("2024-01-31T10:00:00+00"));
        for other in [
            "2024-1-31",
            "2024-01-31  10:00:00",
            "2024-01-31 9:00:00",
            "2024-01-31 09:00:00 AM",
            "2024-01-31 10:00:00+02",
            "2024-01-31 10:00:00  UTC",
            "31 Jan 2024",
            "31/01/2024",
        ] {
            assert_eq!(layout(other), None, "{other}");
        }
    }

    #[test]
    fn days_since_1970_are_the_calendars() {
        let day = |days| {
            let mut out = Vec::new();
            if let Some(day) = Day::since_1970(days) {
                day.write(&mut out);
            }
            String::from_utf8(out).unwrap()
        };
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(19_782), "2024-02-29");
        assert_eq!(day(-1), "1969-12-31");
        assert_eq!(day(-719_162), "0001-01-01");
        assert_eq!(day(2_932_896), "9999-12-31");
        assert_eq!((day(2_932_897), day(i64::MAX)), (String::new(), String::new()));
    }
}
