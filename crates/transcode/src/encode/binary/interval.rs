//! `interval`: `interval_recv` takes microseconds, days and months, and cuts them to the column's fields and
//! precision as input does.
//!
//! Certain are whole numbers before their units, from years down to seconds and each once, and at the end,
//! instead of the smaller units, a time of three parts. So `1 year 2 mons -3 days +04:05:06.789`, which is
//! what PostgreSQL itself writes. `DecodeInterval` in PostgreSQL's `datetime.c` reads these alike under every
//! IntervalStyle but where `sql_standard` takes the first sign for everybody's. What that depends on is left
//! to the server, and so are a time of two parts and numbers without a unit, whose meaning depends on the
//! column.

use super::time;

/// So many digits of any unit overflow nothing.
const DIGITS_MAX: usize = 6;
/// From the largest to the smallest.
const UNITS: [Unit; 7] = [
    Unit { names: &[b"years", b"year"], part: Part::Months, size: 12 },
    Unit { names: &[b"mons", b"mon", b"months", b"month"], part: Part::Months, size: 1 },
    Unit { names: &[b"weeks", b"week"], part: Part::Days, size: 7 },
    Unit { names: &[b"days", b"day"], part: Part::Days, size: 1 },
    Unit { names: &[b"hours", b"hour"], part: Part::Microseconds, size: 3600 * time::MICROSECONDS },
    Unit {
        names: &[b"minutes", b"minute", b"mins", b"min"],
        part: Part::Microseconds,
        size: 60 * time::MICROSECONDS,
    },
    Unit {
        names: &[b"seconds", b"second", b"secs", b"sec"],
        part: Part::Microseconds,
        size: time::MICROSECONDS,
    },
];

struct Unit {
    names: &'static [&'static [u8]],
    part: Part,
    /// How much of its part it is.
    size: i64,
}

enum Part {
    Months,
    Days,
    Microseconds,
}

/// What is stored.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) microseconds: i64,
    pub(super) days: i32,
    pub(super) months: i32,
}

/// What the value means under any IntervalStyle.
pub(super) fn parse(value: &[u8]) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut words = value.split(|byte| *byte == b' ');
    let mut units = UNITS.iter();
    let (mut numbers, mut signs) = (0, 0);
    while let Some(word) = words.next() {
        let (is_negative, number) = match word.split_first()? {
            (b'-', number) => (true, number),
            (b'+', number) => (false, number),
            _ => (false, word),
        };
        numbers += 1;
        signs += usize::from(number.len() < word.len());
        let sign = if is_negative { -1 } else { 1 };
        if number.contains(&b':') {
            // Only where no smaller units came before it, and nothing comes behind.
            if units.len() < UNITS.len() - 4 || words.next().is_some() {
                return None;
            }
            interval.microseconds = sign * clock(number)?;
            break;
        }
        let name = words.next()?;
        let unit = units.find(|unit| unit.names.contains(&name))?;
        interval.add(unit, sign * whole(number)?)?;
    }
    // `sql_standard` looks whether the first sign is the only one.
    let is_certain = value.first() != Some(&b'-') || numbers == 1 || signs > 1;
    is_certain.then_some(interval)
}

impl Interval {
    fn add(&mut self, unit: &Unit, number: i64) -> Option<()> {
        let amount = number.checked_mul(unit.size)?;
        match unit.part {
            Part::Months => self.months = self.months.checked_add(i32::try_from(amount).ok()?)?,
            Part::Days => self.days = self.days.checked_add(i32::try_from(amount).ok()?)?,
            Part::Microseconds => self.microseconds = self.microseconds.checked_add(amount)?,
        }
        Some(())
    }
}

/// Hours of any number, minutes and seconds as a time of day has them.
fn clock(value: &[u8]) -> Option<i64> {
    let (hours, rest) = value.split_at_checked(memchr::memchr(b':', value)?)?;
    let &[b':', _, _, b':', ..] = rest else { return None };
    // The same below the first hour, which says whether the rest is well formed.
    let mut below = [b'0'; 15];
    below.get_mut(2..2 + rest.len())?.copy_from_slice(rest);
    let below = time::parse(below.get(..2 + rest.len())?)?;
    Some(whole(hours)? * 3600 * time::MICROSECONDS + below)
}

fn whole(digits: &[u8]) -> Option<i64> {
    let is_whole = (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_whole.then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(months: i32, days: i32, microseconds: i64) -> Option<Interval> {
        Some(Interval { microseconds, days, months })
    }

    #[test]
    fn units_add_up_to_months_days_and_microseconds() {
        let hour = 3600 * time::MICROSECONDS;
        assert_eq!(parse(b"01:00:00"), interval(0, 0, hour));
        assert_eq!(parse(b"-100:00:00.5"), interval(0, 0, -100 * hour - 500_000));
        assert_eq!(parse(b"1 day"), interval(0, 1, 0));
        assert_eq!(parse(b"1 year 2 mons 3 days 01:00:00"), interval(14, 3, hour));
        assert_eq!(parse(b"-1 years -2 mons +3 days -01:00:00"), interval(-14, 3, -hour));
        assert_eq!(parse(b"2 weeks 1 hour 30 minutes"), interval(0, 14, hour * 3 / 2));
        assert_eq!(parse(b"999999 years 999999 hours"), interval(11_999_988, 0, 999_999 * hour));
    }

    #[test]
    fn what_depends_on_settings_or_columns_is_left_to_the_server() {
        for uncertain in [
            "-1 days 01:00:00",
            "-1 years 2 mons",
            "01:00",
            "1",
            "1 02:00:00",
            "1-2",
            "P1D",
            "1 day 1 day",
            "1 day 1 year",
            "1 hour 01:00:00",
            "01:00:00 1 day",
            "1  day",
            " 1 day",
            "1 day ",
            "1 day ago",
            "@ 1 day",
            "1.5 days",
            "1 DAY",
            "1day",
            "- 1 day",
            "",
            "-",
            "00:60:00",
            "00:00:00.1234567",
            ":00:00",
            "1000000:00:00",
            "infinity",
        ] {
            assert_eq!(parse(uncertain.as_bytes()), None, "{uncertain}");
        }
    }
}
