//! `date`: `date_recv` takes the days since 2000-01-01.
//!
//! A year of four digits, a month and a day of two, with hyphens: `DecodeDate` in PostgreSQL's `datetime.c` reads
//! these alike under every DateStyle, because a first field of more than two digits is a year.

/// Days from 0000-03-01 of the proleptic Gregorian calendar to 2000-01-01.
const DAYS_TO_2000: i32 = 730_425;

/// `2024-02-29` as days since 2000-01-01.
#[inline]
pub(super) fn parse(value: &[u8]) -> Option<i32> {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] =
        value.first_chunk::<10>().filter(|_| value.len() == 10)?
    else {
        return None;
    };
    let year = i32::from(two_digits(y0, y1)?) * 100 + i32::from(two_digits(y2, y3)?);
    days(year, two_digits(m0, m1)?, two_digits(d0, d1)?)
}

#[inline]
pub(super) fn two_digits(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens <= 9 && ones <= 9 { Some(tens * 10 + ones) } else { None }
}

/// Days since 2000-01-01, counted in years that begin in March, as Hinnant's `days_from_civil` does.
#[inline]
fn days(year: i32, month: u8, day: u8) -> Option<i32> {
    const LENGTHS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTHS.get(usize::from(month.checked_sub(1)?))? + u8::from(month == 2 && is_leap);
    // There is no year 0: the server refuses it.
    if year == 0 || day == 0 || day > length {
        return None;
    }
    let (year, month) =
        if month > 2 { (year, i32::from(month) - 3) } else { (year - 1, i32::from(month) + 9) };
    let day_of_year = (153 * month + 2) / 5 + i32::from(day) - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_TO_2000)
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
