//! One value in other people's spelling, rewritten into the one that PostgreSQL reads in every setting.
//!
//! Dates become ISO 8601, numbers plain digits with a point, words `true` and `false`, seconds since 1970
//! a timestamp in UTC. Digits are moved, never computed with: no value loses any.

use super::among::Among;
use super::column::ColumnState;
use super::date::{Date, Day, Written};
use super::facts::{dressed, timed};
use super::grouped::{only_group, take_apart};
use super::kinds::Kinds;
use super::{cursor, number, words};
use howdah_model::Reading;
use std::io::Write;

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// Appends the value to `out` as PostgreSQL reads it. `false`: it is not in this spelling, and nothing was
/// appended: to PostgreSQL such a value may well mean something else. Blanks around the value are dropped.
/// What means the same in every spelling is read, too: a date with the name of its month or its year of four
/// digits in front, a number without a decimal sign, or with a point where that is the decimal sign,
/// `infinity`, `NaN`.
pub fn read(reading: &Reading, value: &[u8], out: &mut Vec<u8>) -> bool {
    let is_read = match reading {
        Reading::Date(_) | Reading::MonthName => date(reading, value, out),
        Reading::EpochSeconds => epoch_moment(value, 6, out),
        Reading::EpochMilliseconds => epoch_moment(value, 3, out),
        Reading::Number { .. } => plain_number(reading, value, out),
        Reading::Boolean => match words::boolean(cursor::trim(value)) {
            Some(word) => {
                out.extend_from_slice(if words::is_true(word) { b"true" } else { b"false" });
                true
            }
            None => false,
        },
    };
    let value = cursor::trim(value);
    if !is_read && means_the_same_everywhere(reading, value) {
        out.extend_from_slice(value);
        return true;
    }
    is_read
}

/// PostgreSQL reads the value in one way only, whatever the settings, if it reads it at all, and so does
/// whoever writes values in the spelling of the reading.
fn means_the_same_everywhere(reading: &Reading, value: &[u8]) -> bool {
    match reading {
        Reading::Date(_) | Reading::MonthName | Reading::EpochSeconds | Reading::EpochMilliseconds => {
            is_infinity(value) || is_iso_date(value)
        }
        Reading::Number { decimal, sign, .. } => {
            let has_sign = *decimal != '.' && value.contains(&b'.');
            let lacks_sign = *sign == Some('%') && value.iter().any(|byte| matches!(byte, b'1'..=b'9'));
            is_infinity(value)
                || value.eq_ignore_ascii_case(b"nan")
                || !has_sign && !lacks_sign && number::plain(value).is_some()
        }
        Reading::Boolean => matches!(value, b"0" | b"1"),
    }
}

fn is_infinity(value: &[u8]) -> bool {
    let unsigned = value.strip_prefix(b"-").or(value.strip_prefix(b"+")).unwrap_or(value);
    unsigned.eq_ignore_ascii_case(b"infinity") || unsigned.eq_ignore_ascii_case(b"inf")
}

/// Begins with year, month and day of four, two and two digits: what follows is the server's to judge.
fn is_iso_date(value: &[u8]) -> bool {
    let (date, rest) = value.split_at(value.len().min(10));
    let fits =
        |(at, byte): (usize, &u8)| if matches!(at, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() };
    date.len() == 10 && date.iter().enumerate().all(fits) && !rest.first().is_some_and(u8::is_ascii_digit)
}

fn date(reading: &Reading, value: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(written) = Written::parse(value) else { return false };
    let day = match (reading, written.date) {
        (_, Date::YearFirst(day) | Date::Named(day)) => Some(day),
        (Reading::Date(order), date) => date.in_order(*order),
        _ => None,
    };
    let Some(day) = day else { return false };
    written.write(day, out);
    true
}

fn plain_number(reading: &Reading, value: &[u8], out: &mut Vec<u8>) -> bool {
    let Reading::Number { group, decimal, currency, parentheses, minus_behind, percent, sign } = reading
    else {
        return false;
    };
    let Some(parts) = take_apart(value) else { return false };
    let has_its_sign = match sign {
        Some('%') => parts.percent,
        Some(sign) => parts.currency.is_none_or(|found| found == *sign),
        None => true,
    };
    let undressed = has_its_sign
        && (*currency || parts.currency.is_none())
        && (*parentheses || !parts.parentheses)
        && (*minus_behind || !parts.minus_behind)
        && (*percent || !parts.percent);
    let Some(side) = parts.side(*decimal).filter(|_| undressed) else { return false };
    if side.first_group.is_some() && only_group(side.groups) != *group {
        return false;
    }
    if parts.negative {
        out.push(b'-');
    }
    for character in parts.body.chars() {
        match character {
            '0'..='9' => out.extend(u8::try_from(character)),
            _ if character == *decimal => out.push(b'.'),
            _ => {}
        }
    }
    out.extend_from_slice(parts.powers.as_bytes());
    true
}

/// A count since 1970 whose unit has so many decimals down to a microsecond.
fn epoch_moment(value: &[u8], decimals: usize, out: &mut Vec<u8>) -> bool {
    let Some(microseconds) = microseconds(cursor::trim(value), decimals) else { return false };
    let Some(day) = Day::since_1970(microseconds.div_euclid(MICROSECONDS_A_DAY)) else { return false };
    let of_day = microseconds.rem_euclid(MICROSECONDS_A_DAY);
    let (second, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    day.write(out);
    // Writing into memory cannot fail.
    let _ = write!(out, " {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    if fraction > 0 {
        let _ = write!(out, ".{fraction:06}");
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.extend_from_slice(b"+00");
    true
}

fn microseconds(value: &[u8], decimals: usize) -> Option<i64> {
    let mut cursor = cursor::Cursor(value);
    let negative = cursor.eat(b'-');
    let whole = cursor.digits();
    let fraction = if cursor.eat(b'.') { cursor.digits() } else { b"" };
    if whole.is_empty() || fraction.len() > decimals || !cursor.is_done() || value.ends_with(b".") {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', decimals - fraction.len());
    let digits = whole.iter().chain(fraction).chain(zeros);
    let add = |sum: i64, digit: &u8| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0'));
    let magnitude = digits.into_iter().try_fold(0i64, add)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// The reading that makes the values of a column fit the type that it has in the table, where they do not
/// fit as they stand or mean something else in another DateStyle. `None`: they fit, or nothing is proven.
///
/// `among` is of the same values: those that are neither days nor numbers do not keep the others from being
/// read in their order and spelling, and are refused when their records come. `type_name` as PostgreSQL or a
/// person writes it. Money is read as a number; where the server's `lc_monetary` has no decimal point, it
/// would misread that.
pub fn reading_for(state: &ColumnState, among: &Among, type_name: &str) -> Option<Reading> {
    let base = base_name(type_name);
    if matches!(base.as_str(), "date" | "timestamp" | "timestamptz") {
        return if are_among_others(state, among) {
            among.order().map(Reading::Date)
        } else {
            moment(state, among)
        };
    }
    let are_alike = state.possible.meet(Kinds::GROUPED.or(Kinds::PLAIN_NUMBERS));
    let state = if are_alike { state } else { among.numbers() };
    if state.is_empty() || !state.possible.meet(Kinds::GROUPED) || state.possible.meet(Kinds::PLAIN_NUMBERS) {
        return None;
    }
    match base.as_str() {
        "int" | "integer" | "smallint" | "bigint" | "int2" | "int4" | "int8" => {
            // A fraction fits no integer, so a comma that could be both is between groups. A point that could
            // be both is refused, as it is by the server where nothing else stands beside the digits.
            let decimal = if state.grouped.groups().0 == 0 { ',' } else { '.' };
            let is_whole = state.side(decimal).extent.decimals_max == 0;
            if is_whole { state.number_reading(decimal).ok() } else { None }
        }
        "numeric" | "decimal" | "money" | "real" | "float" | "float4" | "float8" | "double precision" => {
            state.number_reading(state.decimal_sign()?).ok()
        }
        _ => None,
    }
}

/// The most digits before the decimal sign and behind it among numbers that are read so; `None`: the values
/// are not all numbers.
pub fn digits_as_read(state: &ColumnState, reading: &Reading) -> Option<(u32, u32)> {
    let Reading::Number { decimal, .. } = reading else { return None };
    if state.is_empty() || !state.possible.meet(Kinds::GROUPED) {
        return None;
    }
    let extent = &state.side(*decimal).extent;
    Some((extent.before_max.max(state.integers.digits()).into(), extent.decimals_max.into()))
}

/// The values are days, some with a time of day and none with an offset from UTC.
pub fn are_wall_times(state: &ColumnState) -> bool {
    let days = if state.possible.meet(Kinds::DATE) { &state.dates } else { &state.named_dates };
    !state.is_empty() && days.timed & timed::LOCAL != 0 && days.timed & timed::ZONED == 0
}

/// The values are days, in an order that nothing proves: a column of this type would take them as the
/// server's DateStyle says.
pub fn is_order_open(state: &ColumnState, among: &Among, type_name: &str) -> bool {
    let of_days = matches!(base_name(type_name).as_str(), "date" | "timestamp" | "timestamptz");
    if of_days && are_among_others(state, among) {
        return among.order().is_none();
    }
    of_days
        && !state.is_empty()
        && state.possible.meet(Kinds::DATE)
        && state.dates.ordered
        && state.dates.only_order().is_none()
}

/// The values are numbers whose comma or point may stand before a fraction or between groups.
pub fn is_number_open(state: &ColumnState) -> bool {
    let can_be = |kind: Kinds| !state.is_empty() && state.possible.meet(kind);
    let (dot, comma) = state.grouped.groups();
    can_be(Kinds::GROUPED) && !can_be(Kinds::PLAIN_NUMBERS) && dot != 0 && comma != 0
}

/// The values are numbers as the server reads them, and in each the point may stand between groups.
pub fn has_open_points(state: &ColumnState) -> bool {
    let facts = &state.grouped;
    !state.is_empty()
        && state.possible.meet(Kinds::GROUPED)
        && facts.groups().1 != 0
        && facts.dressed & dressed::OPEN_POINT != 0
}

/// Some values are days whose order matters, and others are none, or are not in the same order.
fn are_among_others(state: &ColumnState, among: &Among) -> bool {
    !among.is_without_days() && !state.possible.meet(Kinds::DATE)
}

/// The name of a type without its schema, length and time zone, in lower case.
pub(super) fn base_name(type_name: &str) -> String {
    let lower = type_name.trim().to_ascii_lowercase();
    let name = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
    let zoned = name.contains("with time zone");
    let end = name.find(['(', ')']).or_else(|| name.find(" with")).unwrap_or(name.len());
    let base = name.get(..end).unwrap_or(name).trim();
    if zoned { format!("{base}tz") } else { base.to_owned() }
}

fn moment(state: &ColumnState, among: &Among) -> Option<Reading> {
    if state.is_empty() {
        return None;
    }
    if state.possible.meet(Kinds::DATE) {
        return state.dates.only_order().filter(|_| state.dates.ordered).map(Reading::Date);
    }
    if state.possible.meet(Kinds::NAMED_DATE) {
        return Some(Reading::MonthName);
    }
    if state.possible.meet(Kinds::INTEGER) {
        return by_magnitude(state);
    }
    // One long integer beside days is a slip, and no proof that the others are.
    if among.has_days() { None } else { by_magnitude(among.numbers()) }
}

/// The reading of integers as counts since 1970, if somebody asks for it and the name of the column
/// suggests it: never a guess from the integers alone.
pub fn epoch(state: &ColumnState, column_name: &str) -> Option<Reading> {
    let name = super::fold(column_name);
    let words = ["epoch", "unix", "time", "date", "created", "updated", "modified"];
    let suggests = words.iter().any(|word| name.contains(word)) || name.ends_with("ts");
    if suggests { by_magnitude(state) } else { None }
}

/// Seconds from 1973 to 2286 have 9 or 10 digits; milliseconds in the same years 12 or 13. Dates as
/// `20240131` have 8; with an hour behind them, or with hour and minute, they have as many as counts, and
/// where all integers can be such dates nothing says what they are.
fn by_magnitude(state: &ColumnState) -> Option<Reading> {
    if state.is_empty() || !state.possible.meet(Kinds::INTEGER) || state.integers.may_be_stamps() {
        return None;
    }
    let within = |least, greatest| state.integers.within(least, greatest);
    if within(100_000_000, 9_999_999_999) {
        return Some(Reading::EpochSeconds);
    }
    within(100_000_000_000, 9_999_999_999_999).then_some(Reading::EpochMilliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::doubtful;
    use howdah_model::DateOrder;

    fn rewritten(reading: &Reading, value: &str) -> Option<String> {
        let mut out = b"x".to_vec();
        let fits = read(reading, value.as_bytes(), &mut out);
        assert!(fits || out == b"x", "{value}: something was appended");
        fits.then(|| String::from_utf8(out[1..].to_vec()).unwrap())
    }

    fn number(spelling: &str) -> Reading {
        super::super::parse_type(&format!("numeric:{spelling}")).unwrap().1.unwrap()
    }

    fn state(values: &[&str]) -> ColumnState {
        let mut state = ColumnState::default();
        values.iter().for_each(|value| state.observe(value.as_bytes()));
        state
    }

    fn both(values: &[&str]) -> (ColumnState, Among) {
        let (mut state, mut among) = (ColumnState::default(), Among::default());
        values.iter().for_each(|value| among.observe(&mut state, value.as_bytes()));
        (state, among)
    }

    #[test]
    fn dates_become_iso() {
        let dmy = Reading::Date(DateOrder::Dmy);
        for (value, expected) in [
            ("31/01/2024", "2024-01-31"),
            ("1.2.2024 9:05", "2024-02-01 09:05:00"),
            ("31-12-69 12:30:01.5 PM", "2069-12-31 12:30:01.5"),
            ("2024-01-31T10:00:00Z", "2024-01-31 10:00:00+00"),
        ] {
            assert_eq!(rewritten(&dmy, value).as_deref(), Some(expected), "{value}");
        }
        for value in ["Jan 31, 2024", "31 January 2024", "31-JAN-24", "Wed, 31 Jan 2024", "2024-Jan-31"] {
            assert_eq!(rewritten(&Reading::MonthName, value).as_deref(), Some("2024-01-31"), "{value}");
        }
    }

    #[test]
    fn numbers_become_plain_with_all_their_digits() {
        for (spelling, value, expected) in [
            ("1.234,56", "-1.234.567,890", "-1234567.890"),
            ("1,234.56", "12", "12"),
            ("1,234.56", ".5", ".5"),
            ("1 234,56", "1 234", "1234"),
            ("($1,234.56)", "($1,234.50)", "-1234.50"),
            ("$1,234.56", "$74.69", "74.69"),
            ("1234,56%", "12,5 %", "12.5"),
            ("1'234.56", "1'234'567.8", "1234567.8"),
            ("1,234.56", "12,34,567", "1234567"),
            ("1234,56", "-2,25E+10", "-2.25E+10"),
            ("1.234,56", "1e-05", "1e-05"),
        ] {
            assert_eq!(rewritten(&number(spelling), value).as_deref(), Some(expected), "{value}");
        }
        for (spelling, value) in [
            ("1.234,56", "1,234.5"),
            ("1,234.56", "$1"),
            ("1,234.56", "12%"),
            ("1,234.56", "(1)"),
            ("1234,56", "1.234"),
            ("1234,56", "1.5e3"),
            ("1.234,56", "1.234,5e3"),
        ] {
            assert_eq!(rewritten(&number(spelling), value), None, "{value}");
        }
    }

    #[test]
    fn no_other_sign_is_read_than_that_of_the_sample() {
        for (values, taken, refused) in [
            (&["$5.10", "$1.25"][..], "$1", "€5.00"),
            (&["12%", "0.5%"], "7 %", "0.5"),
            (&["12%", "0.5%"], "7%", "7"),
            (&["12%", "0.5%"], "0", "0.5"),
            (&["5,10 €", "1,25"], "3", "3 $"),
        ] {
            let (state, among) = both(values);
            let reading = reading_for(&state, &among, "numeric").unwrap();
            assert!(rewritten(&reading, taken).is_some(), "{taken}");
            assert_eq!(rewritten(&reading, refused), None, "{refused}");
        }
        assert_eq!(rewritten(&number("1234.56%"), "0.5").as_deref(), Some("0.5"));
    }

    #[test]
    fn what_means_the_same_everywhere_is_read_and_what_does_not_is_not() {
        let (dmy, seconds) = (Reading::Date(DateOrder::Dmy), Reading::EpochSeconds);
        for (reading, value) in [
            (&dmy, "infinity"),
            (&dmy, "-Infinity"),
            (&dmy, "2024-01-31 24:00:00"),
            (&seconds, "2024-01-31T10:00:00 Europe/Oslo"),
            (&number("1,234.56"), ".5"),
            (&number("1,234.56"), "1e-5"),
            (&number("1.234,56"), "1e5"),
            (&number("1.234,56"), "007"),
            (&number("1234,56"), "NaN"),
            (&Reading::Boolean, "1"),
        ] {
            assert_eq!(rewritten(reading, &format!(" {value}\t")).as_deref(), Some(value));
        }
        assert_eq!(rewritten(&dmy, "31 Jan 2024").as_deref(), Some("2024-01-31"));
        for (reading, value) in [
            (&dmy, "01/31/2024"),
            (&dmy, "20240131"),
            (&dmy, "2024-01-311"),
            (&dmy, "today"),
            (&dmy, "n/a"),
            (&dmy, ""),
            (&Reading::MonthName, "01/02/2024"),
            (&seconds, "9999999999999"),
            (&number("1.234,56"), "1.5"),
            (&number("1234,56"), "1.234"),
            (&number("1234,56"), "1.5e3"),
            (&number("$1234.56"), "1,234"),
            (&number("1,234.56"), "x"),
            (&Reading::Boolean, "maybe"),
        ] {
            assert_eq!(rewritten(reading, value), None, "{value}");
        }
    }

    #[test]
    fn counts_since_1970_become_timestamps_in_utc() {
        for (reading, value, expected) in [
            (Reading::EpochSeconds, "0", "1970-01-01 00:00:00+00"),
            (Reading::EpochSeconds, "1706695445.250", "2024-01-31 10:04:05.25+00"),
            (Reading::EpochSeconds, "-1.5", "1969-12-31 23:59:58.5+00"),
            (Reading::EpochMilliseconds, "1706695445001", "2024-01-31 10:04:05.001+00"),
        ] {
            assert_eq!(rewritten(&reading, value).as_deref(), Some(expected), "{value}");
        }
        for bad in ["", "-", "1.", "1e9", "1.1234567", "99999999999999999999", "9999999999999", "x"] {
            assert_eq!(rewritten(&Reading::EpochSeconds, bad), None, "{bad}");
        }
    }

    #[test]
    fn values_that_are_no_days_do_not_hide_the_order_of_the_others() {
        let of = |values: &[&str], type_name: &str| {
            let (state, among) = both(values);
            (reading_for(&state, &among, type_name), is_order_open(&state, &among, type_name))
        };
        let dmy = Some(Reading::Date(DateOrder::Dmy));
        assert_eq!(of(&["n/a", "31/01/2024", "01/02/2024"], "date"), (dmy.clone(), false));
        assert_eq!(of(&["31.01.2024 10:00", "99.99.2024"], "timestamp(3)"), (dmy.clone(), false));
        assert_eq!(of(&["01/02/2024", "31 Jan 2024", "31/01/2024"], "date"), (dmy, false));
        assert_eq!(of(&["01/02/2024", "unknown"], "date"), (None, true));
        assert_eq!(of(&["13/01/2024", "01/13/2024"], "date"), (None, true));
        assert_eq!(of(&["01/01/2020", "02/02/2021"], "date"), (None, true));
        assert_eq!(of(&["01/01/2020", "unknown"], "date"), (None, true));
        assert_eq!(of(&["2024-01-31", "unknown"], "date"), (None, false));
        assert_eq!(of(&["31/01/2024", "unknown"], "text"), (None, false));
        assert_eq!(of(&["unknown", "1.5", "20240131"], "date"), (None, false));
    }

    #[test]
    fn a_word_does_not_change_how_numbers_beside_it_are_read() {
        let of = |values: &[&str], type_name: &str| {
            let (state, among) = both(values);
            (reading_for(&state, &among, type_name), doubtful(&state, &among, type_name).is_some())
        };
        let german = Some(number("1.234,56"));
        assert_eq!(of(&["1.107", "1.234,56", "unbekannt"], "numeric(12,3)"), (german.clone(), false));
        assert_eq!(of(&["unbekannt", "1.107", "1.234,56", "007"], "float8"), (german, false));
        assert_eq!(of(&["1,5", "x"], "numeric"), (Some(number("1234,56")), false));
        assert_eq!(of(&["1,234", "x"], "int"), (Some(number("1,234.56")), false));
        assert_eq!(of(&["1706140899", "x"], "timestamptz"), (Some(Reading::EpochSeconds), false));
        for day in ["2024-01-31", "2024/01/31", "31-Jan-2024", "Jan 31, 2024", "2024-01-31T10:00:00Z"] {
            for type_name in ["date", "timestamptz"] {
                assert_eq!(of(&["1706140899", day], type_name), (None, false), "{day}");
                assert_eq!(of(&["1706140899", "20240131", "x", day], type_name), (None, false), "{day}");
                assert_eq!(of(&["1706140812", day], type_name), (None, true), "{day}");
            }
        }
        assert_eq!(of(&["1.107", "2", "1e5", "x"], "numeric"), (None, false));
        assert_eq!(of(&["1.5", "1,5", "x"], "numeric"), (None, false));
        for pointed in ["1.10e-05", "1.107E3", ".5", "-0.0"] {
            assert_eq!(of(&[pointed, "1,5"], "float8"), (None, false), "{pointed}");
            assert_eq!(of(&[pointed, "1,234"], "float8"), (Some(number("1,234.56")), false), "{pointed}");
            assert_eq!(of(&[pointed, "1.107", "x"], "float8"), (None, false), "{pointed}");
        }
        assert_eq!(of(&["1.107", "1,5", "1.5"], "numeric"), (None, true));
        assert_eq!(of(&["1.107", "1,234", "x"], "money"), (None, true));
        assert_eq!(of(&["1706140899", "20240131", "x"], "timestamptz"), (None, true));
        assert_eq!(of(&["2024013112", "x"], "timestamp"), (None, true));
        assert_eq!(of(&["20240131", "x"], "date"), (None, false));
        assert_eq!(of(&["1.107", "1,5", "1.5"], "text"), (None, false));
    }

    #[test]
    fn a_column_of_the_table_decides_what_the_data_leaves_open() {
        let reading = |state: &ColumnState, type_name: &str| reading_for(state, &Among::default(), type_name);
        let dates = state(&["31/01/2024", "01/02/2024"]);
        assert_eq!(reading(&dates, "timestamp without time zone"), Some(Reading::Date(DateOrder::Dmy)));
        assert_eq!(reading(&dates, "text"), None);
        assert_eq!(reading(&state(&["01/02/2024"]), "date"), None);
        assert_eq!(reading(&state(&["2024-01-31"]), "date"), None);
        assert_eq!(reading(&state(&["1706695445"]), "timestamptz"), Some(Reading::EpochSeconds));
        assert_eq!(reading(&state(&["20240131"]), "date"), None);
        assert_eq!(reading(&state(&["2024013112", "2024013123"]), "timestamp"), None);
        assert_eq!(epoch(&state(&["202401311230"]), "Created At"), None);
        let thousand = state(&["1,234"]);
        assert_eq!(reading(&thousand, "integer"), Some(number("1,234")));
        assert_eq!(reading(&thousand, "numeric(12,2)"), None);
        for doubtful in [&["1039", "10.160.130.149"][..], &["8", "10.160.130.149"], &["1039", "1.234.567"]] {
            for type_name in ["bigint", "numeric", "double precision"] {
                assert_eq!(reading(&state(doubtful), type_name), None, "{doubtful:?} as {type_name}");
            }
        }
        assert_eq!(reading(&state(&["8", "1.234.567"]), "bigint"), Some(number("1.234,56")));
        let dollars = Reading::Number {
            group: Some(','),
            decimal: '.',
            currency: true,
            parentheses: false,
            minus_behind: false,
            percent: false,
            sign: Some('$'),
        };
        assert_eq!(reading(&state(&["$1,234"]), "bigint").as_ref(), Some(&dollars));
        assert_eq!(reading(&state(&["$54,000", "£1,250"]), "numeric"), None);
        assert_eq!(reading(&state(&["$54,000", "$101,500"]), "numeric(12,2)"), Some(dollars));
        for open in ["$3.459", "1,759 €", "6.125%"] {
            assert_eq!(reading(&state(&[open]), "numeric(8,3)"), None, "{open}");
        }
        for point in ["$3.459", "1.759 €", "6.125%"] {
            assert_eq!(reading(&state(&[point]), "bigint"), None, "{point}");
        }
        assert_eq!(reading(&state(&["1,234.5"]), "pg_catalog.float8"), Some(number("1,234.56")));
        assert_eq!(reading(&state(&["1234.5"]), "numeric"), None);
        assert_eq!(reading(&ColumnState::default(), "numeric"), None);
        assert_eq!(epoch(&state(&["1706695445"]), "Created At"), Some(Reading::EpochSeconds));
        assert_eq!(epoch(&state(&["1706695445"]), "phone"), None);
    }
}
