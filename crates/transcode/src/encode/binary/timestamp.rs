//! `timestamp` and `timestamptz`: `timestamp_recv` and `timestamptz_recv` take microseconds since 2000-01-01
//! 00:00, the latter in UTC, and round to the column's precision as input does.
//!
//! A date and a time, with a space or a `T` between them. What has no time zone of its own is read in the
//! session's: certain only where that is UTC.

use super::time::MICROSECONDS;
use super::{date, time};

const DATE_BYTES: usize = 10;
const DAY_MICROSECONDS: i64 = 86_400 * MICROSECONDS;

/// Without a time zone.
#[inline]
pub(super) fn parse(value: &[u8]) -> Option<i64> {
    let (day, clock) = split(value)?;
    let clock = clock.map_or(Some(0), time::parse)?;
    Some(i64::from(day) * DAY_MICROSECONDS + clock)
}

/// With one, or read in UTC.
#[inline]
pub(super) fn parse_in_utc(value: &[u8], session_is_utc: bool) -> Option<i64> {
    let (_, clock) = split(value)?;
    let with_offset = clock.and_then(|_| time::split_offset(value));
    match with_offset {
        Some((local, offset)) => Some(parse(local)? - i64::from(offset) * MICROSECONDS),
        None => parse(value).filter(|_| session_is_utc),
    }
}

/// The day, and what stands behind it.
#[inline]
fn split(value: &[u8]) -> Option<(i32, Option<&[u8]>)> {
    let (day, rest) = value.split_at_checked(DATE_BYTES)?;
    let day = date::parse(day)?;
    match rest.split_first() {
        None => Some((day, None)),
        Some((b' ' | b'T', clock)) => Some((day, Some(clock))),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_microseconds_since_2000() {
        assert_eq!(parse(b"2000-01-01"), Some(0));
        assert_eq!(parse(b"2000-01-02 00:00:01"), Some(DAY_MICROSECONDS + MICROSECONDS));
        assert_eq!(parse(b"1999-12-31T23:59:59.999999"), Some(-1));
        for uncertain in
            ["2000-01-01 00:00:00Z", "2000-01-01 ", "2000-01-01t00:00", "infinity", "2000-01-01 24:00"]
        {
            assert_eq!(parse(uncertain.as_bytes()), None, "{uncertain}");
        }
    }

    #[test]
    fn what_has_no_time_zone_is_certain_in_utc_alone() {
        let hour = 3600 * MICROSECONDS;
        assert_eq!(parse_in_utc(b"2000-01-01 02:00:00+02", false), Some(0));
        assert_eq!(parse_in_utc(b"2000-01-01 02:00Z", false), Some(2 * hour));
        assert_eq!(parse_in_utc(b"2000-01-01T02:00:00.5-01:30", true), Some(7 * hour / 2 + 500_000));
        assert_eq!(parse_in_utc(b"2000-01-01 02:00", true), Some(2 * hour));
        assert_eq!(parse_in_utc(b"2000-01-01 02:00", false), None);
        assert_eq!(parse_in_utc(b"2000-01-01", true), Some(0));
        assert_eq!(parse_in_utc(b"2000-01-01", false), None);
        assert_eq!(parse_in_utc(b"2000-01-01 02:00 Europe/Berlin", true), None);
    }
}
