//! Times of day, with an offset from UTC or without.
//!
//! `9:05`, `09:05:07.25`, `9:05 PM`, behind a date also `09:05Z`, `09:05:07+02`, `09:05 +0200`; as Oracle and
//! DB2 write them, with points between hours, minutes and seconds. Hours run from 0 to 23: PostgreSQL takes
//! `24:00:00`, but prints it as another day's midnight behind a date. A leap second is refused, since it
//! would be stored as another second.

use super::cursor::Cursor;
use super::layout::{ClockLayout, Suffix};
use std::io::Write;

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock<'a> {
    pub(super) hour: u8,
    minute: u8,
    second: Option<u8>,
    /// Up to six digits; SQL Server writes a seventh and others nine, which are let go if they are zeros.
    pub(super) fraction: &'a [u8],
    /// There were more than six digits.
    long: bool,
    /// Hour written with two digits.
    wide: bool,
    /// AM or PM stood behind it; the hour is that of the day.
    half: bool,
    pub(super) zone: Option<Zone>,
}

/// The distance from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zone {
    negative: bool,
    hours: u8,
    minutes: u8,
    /// As it was written, if it says UTC in one of the usual ways.
    suffix: Option<Suffix>,
}

impl<'a> Clock<'a> {
    /// Takes a time of day and all that follows.
    pub(super) fn parse(text: &'a [u8]) -> Option<Clock<'a>> {
        Clock::parse_between(text, b':')
    }

    /// The same with points: `03.04.05`, `03.04.05.000000`, `03.04.05 PM`. There are always seconds.
    pub(super) fn parse_pointed(text: &'a [u8]) -> Option<Clock<'a>> {
        Clock::parse_between(text, b'.').filter(|clock| clock.second.is_some() && clock.wide)
    }

    fn parse_between(text: &'a [u8], mark: u8) -> Option<Clock<'a>> {
        let mut cursor = Cursor(text);
        let (hour, digits) = cursor.short()?;
        let minute = sixty(&mut cursor, mark)?;
        let second = if cursor.0.starts_with(&[mark]) { Some(sixty(&mut cursor, mark)?) } else { None };
        let (mut fraction, mut long) = (&b""[..], false);
        if second.is_some() && cursor.eat(b'.') {
            let digits = cursor.digits();
            let beyond;
            (fraction, beyond) = digits.split_at(digits.len().min(6));
            if digits.is_empty() || digits.len() > 9 || beyond.iter().any(|digit| *digit != b'0') {
                return None;
            }
            long = !beyond.is_empty();
        }
        let (hour, half) = half_day(&mut cursor, hour)?;
        let zone = if cursor.is_done() { None } else { Some(zone(&mut cursor)?) };
        Some(Clock { hour, minute, second, fraction, long, wide: digits == 2, half, zone })
    }

    /// How it is written behind this joint, if it can be written so again.
    pub(super) fn layout(&self, joint: u8) -> Option<ClockLayout> {
        let suffix = self.zone.map_or(Some(Suffix::NONE), |zone| zone.suffix)?;
        let seconds = self.second.is_some();
        (self.wide && !self.half && !self.long).then_some(ClockLayout { joint, seconds, suffix })
    }

    /// It says that it is a time of day, even with points: by a fraction, or by AM or PM.
    pub(super) fn is_told(&self) -> bool {
        self.half || !self.fraction.is_empty()
    }

    /// As a value of its own it is surely a time: `9:05` could be minutes and seconds or a score.
    pub(super) fn stands_alone(&self) -> bool {
        self.zone.is_none() && (self.wide || self.half || self.second.is_some())
    }

    /// Writes it as PostgreSQL reads it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let second = self.second.unwrap_or(0);
        // Writing into memory cannot fail.
        let _ = write!(out, "{:02}:{:02}:{second:02}", self.hour, self.minute);
        if !self.fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(self.fraction);
        }
        if let Some(zone) = self.zone {
            out.push(if zone.negative { b'-' } else { b'+' });
            let _ = write!(out, "{:02}", zone.hours);
            if zone.minutes > 0 {
                let _ = write!(out, ":{:02}", zone.minutes);
            }
        }
    }
}

/// A colon, or another mark, and two digits below 60.
fn sixty(cursor: &mut Cursor<'_>, mark: u8) -> Option<u8> {
    if !cursor.eat(mark) {
        return None;
    }
    let (number, digits) = cursor.short()?;
    (digits == 2 && number < 60).then_some(number)
}

/// The hour of the day, after AM or PM if one follows.
fn half_day(cursor: &mut Cursor<'_>, hour: u8) -> Option<(u8, bool)> {
    let mut ahead = *cursor;
    ahead.blanks();
    let afternoon = match ahead.one_of(b"aApP") {
        Some(letter) if ahead.one_of(b"mM").is_some() => matches!(letter, b'p' | b'P'),
        _ => return (hour < 24).then_some((hour, false)),
    };
    *cursor = ahead;
    let hour = match (hour, afternoon) {
        (12, false) => 0,
        (12, true) => 12,
        (1..12, _) => hour + if afternoon { 12 } else { 0 },
        _ => return None,
    };
    Some((hour, true))
}

/// An offset in all of the rest: `Z`, `UTC`, `GMT`, `+02`, `+0200`, `+02:00`; at most 14 hours, the most
/// there is on earth.
fn zone(cursor: &mut Cursor<'_>) -> Option<Zone> {
    let suffix = Suffix::of(cursor.0);
    cursor.blanks();
    if matches!(cursor.0, b"Z" | b"UTC" | b"GMT") {
        return Some(Zone { negative: false, hours: 0, minutes: 0, suffix });
    }
    let negative = cursor.one_of(b"+-")? == b'-';
    let (hours, minutes) = match *cursor.digits() {
        [a, b] if cursor.eat(b':') => (pair(a, b), cursor.short().filter(|(_, digits)| *digits == 2)?.0),
        [a, b] => (pair(a, b), 0),
        [a, b, c, d] => (pair(a, b), pair(c, d)),
        _ => return None,
    };
    if !cursor.is_done() || hours > 14 || minutes > 59 {
        return None;
    }
    Some(Zone { negative, hours, minutes, suffix })
}

fn pair(ten: u8, one: u8) -> u8 {
    (ten - b'0') * 10 + (one - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<String> {
        let mut out = Vec::new();
        Clock::parse(text.as_bytes())?.write(&mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn times_are_written_as_postgresql_reads_them() {
        for (text, expected) in [
            ("9:05", "09:05:00"),
            ("09:05:07.250", "09:05:07.250"),
            ("09:05:07.1230000", "09:05:07.123000"),
            ("12:00 am", "00:00:00"),
            ("12:30PM", "12:30:00"),
            ("9:05:01 PM", "21:05:01"),
            ("09:05Z", "09:05:00+00"),
            ("09:05:07 -0330", "09:05:07-03:30"),
            ("23:59:59.999999+14:00", "23:59:59.999999+14"),
        ] {
            assert_eq!(written(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "9",
            "9:5",
            "24:00",
            "24:00:00",
            "12:60",
            "12:00:60",
            "13:00 PM",
            "0:30 AM",
            "12:00:00.",
            "12:00:00.1234567",
            "12:00.5",
            "12:00:00,5",
            "12:00+15",
            "12:00+2",
            "12:00+02:60",
            "12:00 CET",
            "12:00Zx",
            "123:00",
        ] {
            assert_eq!(written(bad), None, "{bad}");
        }
    }
}
