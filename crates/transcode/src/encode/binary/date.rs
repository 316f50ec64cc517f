//! `date`: `date_recv` takes the days since 2000-01-01.
//!
//! A year of four digits, a month and a day of two, with hyphens: `DecodeDate` in PostgreSQL's `datetime.c`
//! reads these alike under every DateStyle, because a first field of more than two digits is a year.

use super::swar;

/// Days from 0001-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 730_119;

/// In the first eight bytes of a date.
const HYPHENS: u64 = 0xff00_00ff_0000_0000;

/// `2024-02-29` as days since 2000-01-01.
#[inline]
pub(super) fn parse(value: &[u8]) -> Option<i32> {
    let &[d0, d1] = value.last_chunk::<2>().filter(|_| value.len() == 10)?;
    let zero = u64::from_le_bytes(*b"0000-00-");
    let digits = u64::from_le_bytes(*value.first_chunk()?).wrapping_sub(zero);
    if !swar::are_digits(digits) || digits & HYPHENS != 0 {
        return None;
    }
    let [century, _, year, _, _, month, _, _] = swar::pairs(digits);
    days(i32::from(century) * 100 + i32::from(year), month, two_digits(d0, d1)?)
}

#[inline]
pub(super) fn two_digits(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens <= 9 && ones <= 9 { Some(tens * 10 + ones) } else { None }
}

/// Days since 2000-01-01 in the proleptic Gregorian calendar.
#[inline]
fn days(year: i32, month: u8, day: u8) -> Option<i32> {
    const LENGTHS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    const BEFORE: [i32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let month_no = usize::from(month.wrapping_sub(1));
    let (length, before) = (LENGTHS.get(month_no)?, BEFORE.get(month_no)?);
    // Of the years that four divides, 25 and not 16 divide those of the centuries that are none.
    let is_leap = year % 4 == 0 && (year % 25 != 0 || year % 16 == 0);
    // There is no year 0: the server refuses it.
    if year == 0 || day == 0 || day > length + u8::from(month == 2 && is_leap) {
        return None;
    }
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 + i32::from(month > 2 && is_leap);
    Some(past * 365 + leap_days + before + i32::from(day) - 1 - DAYS_TO_2000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_year_2000() {
        for (value, days) in [
            ("2000-01-01", 0),
            ("1999-12-31", -1),
            ("2000-02-29", 59),
            ("2024-03-01", 8826),
            ("1970-01-01", -10957),
            ("0001-01-01", -730_119),
            ("9999-12-31", 2_921_939),
        ] {
            assert_eq!(parse(value.as_bytes()), Some(days), "{value}");
        }
        for uncertain in [
            "0000-01-01",
            "2023-02-29",
            "1900-02-29",
            "2024-00-01",
            "2024-13-01",
            "2024-1-1",
            "24-01-01",
            "2024-01-00",
            "2024/01/01",
            "20240101",
            "2024-01-01 ",
            "",
            "now",
            "-infinity",
        ] {
            assert_eq!(parse(uncertain.as_bytes()), None, "{uncertain}");
        }
    }
}
