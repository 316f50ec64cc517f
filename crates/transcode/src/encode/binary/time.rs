//! `time` and `timetz`: `time_recv` takes microseconds since midnight, `timetz_recv` behind them the seconds
//! *west* of Greenwich. Both round to the column's precision as input does.
//!
//! Hours and minutes of two digits, seconds with up to six behind the point, and an offset of hours or of
//! hours and minutes: `DecodeTime` and `DecodeTimezone` in PostgreSQL's `datetime.c` read these alike under
//! every setting. Seconds of 60, hours of 24 and offsets beyond the world's are left to the server.

use super::date::two_digits;
use super::swar;

pub(super) const MICROSECONDS: i64 = 1_000_000;
/// No place is further from Greenwich.
const OFFSET_HOURS_MAX: u8 = 14;

/// `13:45`, `13:45:01`, `13:45:01.123456` as microseconds since midnight.
#[inline]
pub(super) fn parse(value: &[u8]) -> Option<i64> {
    let ([hour, minute, second], rest) = match value.split_first_chunk::<8>() {
        Some((clock, rest)) => (hours_minutes_seconds(*clock)?, rest),
        None => {
            let &[h0, h1, b':', m0, m1] = value else { return None };
            ([two_digits(h0, h1)?, two_digits(m0, m1)?, 0], [].as_slice())
        }
    };
    let fraction = match rest.split_first() {
        Some((b'.', digits)) => microseconds(digits)?,
        Some(_) => return None,
        None => 0,
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some(seconds * MICROSECONDS + fraction)
}

/// `13:45:01`.
#[inline]
fn hours_minutes_seconds(clock: [u8; 8]) -> Option<[u8; 3]> {
    const COLONS: u64 = 0x0000_ff00_00ff_0000;
    let digits = u64::from_le_bytes(clock).wrapping_sub(u64::from_le_bytes(*b"00:00:00"));
    if !swar::are_digits(digits) || digits & COLONS != 0 {
        return None;
    }
    let [hour, _, _, minute, _, _, second, _] = swar::pairs(digits);
    Some([hour, minute, second])
}

/// Up to six digits behind the point; more would have to be rounded.
fn microseconds(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 6 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    Some((digits.len()..6).fold(number, |number, _| number * 10))
}

/// A time with its offset, as microseconds since midnight there, and the offset as seconds east of Greenwich.
#[inline]
pub(super) fn parse_with_offset(value: &[u8]) -> Option<(i64, i32)> {
    let (time, offset) = split_offset(value)?;
    Some((parse(time)?, offset))
}

/// Splits `Z`, `+02`, `+02:00`, `+0200` off the end; the offset in seconds east of Greenwich.
#[inline]
pub(super) fn split_offset(value: &[u8]) -> Option<(&[u8], i32)> {
    if let Some(before) = value.strip_suffix(b"Z") {
        return Some((before, 0));
    }
    // The longest offset is `+02:00`. A time before it has at least `00:00`.
    let from = value.len().checked_sub(6)?;
    let at = from + value.get(from..)?.iter().position(|byte| matches!(byte, b'+' | b'-'))?;
    let (before, offset) = value.split_at_checked(at)?;
    let (hours, minutes) = match *offset {
        [_, h0, h1] => (two_digits(h0, h1)?, 0),
        [_, h0, h1, m0, m1] | [_, h0, h1, b':', m0, m1] => (two_digits(h0, h1)?, two_digits(m0, m1)?),
        _ => return None,
    };
    if hours > OFFSET_HOURS_MAX || minutes > 59 {
        return None;
    }
    let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60;
    Some((before, if offset.first() == Some(&b'-') { -seconds } else { seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_since_midnight() {
        assert_eq!(parse(b"00:00"), Some(0));
        assert_eq!(parse(b"00:01:02"), Some(62 * MICROSECONDS));
        assert_eq!(parse(b"23:59:59.5"), Some(86_399 * MICROSECONDS + 500_000));
        assert_eq!(parse(b"00:00:00.000001"), Some(1));
        for uncertain in [
            "24:00",
            "23:60",
            "23:59:60",
            "1:00",
            "00:00:00.",
            "00:00:00.1234567",
            "00:00.5",
            "00:00:0",
            "",
            "noon",
            "00:00Z",
        ] {
            assert_eq!(parse(uncertain.as_bytes()), None, "{uncertain}");
        }
    }

    #[test]
    fn offsets_are_seconds_east() {
        let hour = 3600 * MICROSECONDS;
        assert_eq!(parse_with_offset(b"01:00Z"), Some((hour, 0)));
        assert_eq!(parse_with_offset(b"01:00:00+02"), Some((hour, 7200)));
        assert_eq!(parse_with_offset(b"01:00:00.25-05:30"), Some((hour + 250_000, -19_800)));
        assert_eq!(parse_with_offset(b"01:00-0530"), Some((hour, -19_800)));
        for uncertain in
            ["01:00", "01:00+2", "01:00+15", "01:00 CET", "01:00+00:60", "01:00+00:00:01", "+00", "Z"]
        {
            assert_eq!(parse_with_offset(uncertain.as_bytes()), None, "{uncertain}");
        }
    }
}
