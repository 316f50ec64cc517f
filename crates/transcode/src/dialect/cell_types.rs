//! What a cell looks like: a number, a date, an address, a spelling of NULL, or text.
//!
//! These patterns weigh dialects against one another and tell headers from data. They are cheap and
//! forgiving on purpose: what a column's type becomes in the table is inferred elsewhere, from every value.

use crate::infer::{MONTH_BYTES, is_moment, month, spelled_number};

/// What a cell looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Nothing, or blanks.
    Empty,
    /// A word that says "no value": `NULL`, `n/a`, `-`.
    Missing,
    /// Digits, a sign or not.
    Integer,
    /// A number with a fraction, an exponent or digit groups.
    Decimal,
    /// A number with the sign of a currency.
    Money,
    /// A number with a sign of percent.
    Percent,
    /// `true`, `no`, `Y`.
    Boolean,
    /// A day, in digits or with a month's name.
    Date,
    /// A time of day.
    Time,
    /// A day and a time of day.
    Timestamp,
    /// 32 hexadecimal digits in groups.
    Uuid,
    /// An address of a host.
    Address,
    /// An address of a person.
    Email,
    /// An address of a page.
    Url,
    /// Anything else.
    Text,
}

/// How many kinds there are.
pub(super) const KINDS: usize = 15;

/// Kinds that one column may mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Number,
    Boolean,
    Moment,
    Uuid,
    Address,
    Link,
}

/// All classes, in the order of their declaration.
pub(super) const CLASSES: [Class; 6] =
    [Class::Number, Class::Boolean, Class::Moment, Class::Uuid, Class::Address, Class::Link];

impl Kind {
    /// The class that a value of this kind speaks for; none for text and for no value.
    pub(super) fn class(self) -> Option<Class> {
        Some(match self {
            Kind::Integer | Kind::Decimal | Kind::Money | Kind::Percent => Class::Number,
            Kind::Boolean => Class::Boolean,
            Kind::Date | Kind::Time | Kind::Timestamp => Class::Moment,
            Kind::Uuid => Class::Uuid,
            Kind::Address => Class::Address,
            Kind::Email | Kind::Url => Class::Link,
            Kind::Empty | Kind::Missing | Kind::Text => return None,
        })
    }

    /// There is a value.
    pub(super) fn is_value(self) -> bool {
        !matches!(self, Kind::Empty | Kind::Missing)
    }
}

/// Spellings of "no value", in lower case.
pub(super) const MISSING: &[&str] = &[
    "\\n", "null", "(null)", "<null>", "na", "n/a", "#n/a", "<na>", "nan", "none", "nil", "-", "--", "---",
    ".", "..", "...", "?", "missing", "n.a.", "#null!", "#value!", "#div/0!", "#ref!", "*",
];

/// Longer values are text.
const TYPED_BYTES_MAX: usize = 64;

/// Looks at one cell.
pub(super) fn kind(value: &[u8]) -> Kind {
    let value = value.trim_ascii();
    if value.is_empty() {
        return Kind::Empty;
    }
    let Some(&first) = value.first() else { return Kind::Empty };
    let link = || if is_url(value) { Kind::Url } else { Kind::Text };
    if value.len() > TYPED_BYTES_MAX {
        return link();
    }
    let may_count =
        first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.' | b'(' | b',' | b'$' | 0x80..);
    if let Some(kind) = may_count.then(|| numeric(value).or_else(|| numeric_otherwise(value))).flatten() {
        return kind;
    }
    if is_missing(value) {
        return Kind::Missing;
    }
    if is_boolean(value) {
        return Kind::Boolean;
    }
    // Most cells are text, and show it by what they lack.
    let (digits, marks) = value.iter().fold((false, false), |(digits, marks), byte| {
        (digits | byte.is_ascii_digit(), marks | matches!(byte, b':' | b'.' | b'-' | b'@'))
    });
    if digits && let Some(kind) = currency_code(value).or_else(|| moment(value)) {
        return kind;
    }
    match marks {
        false => Kind::Text,
        _ if is_uuid(value) => Kind::Uuid,
        _ if is_address(value) => Kind::Address,
        _ if is_email(value) => Kind::Email,
        _ => link(),
    }
}

/// A word for "no value", in any case: `NULL`, `n/a`, `-`.
pub fn is_missing(value: &[u8]) -> bool {
    value.len() <= 8 && MISSING.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// A number that was not counted out or comes with a note, as devices and offices write them: `<0.5`, `~3`,
/// `1.2*`, `12 (a)`. Or a word for "no value" that is no word: `n/a`, `-`. Names of columns are hardly ever
/// written so.
pub(super) fn is_marked(value: &[u8]) -> bool {
    const SIGNS: [&str; 9] = ["<=", ">=", "<", ">", "~", "≤", "≥", "≈", "±"];
    let value = value.trim_ascii();
    if value.len() > TYPED_BYTES_MAX {
        return false;
    }
    if is_missing(value) {
        return value == b"NULL" || value == b"NaN" || !value.iter().all(u8::is_ascii_alphabetic);
    }
    let unsigned = SIGNS.iter().find_map(|sign| value.strip_prefix(sign.as_bytes()));
    let rest = unsigned.map_or(value, <[u8]>::trim_ascii_start);
    let noted = without_note(rest);
    (unsigned.is_some() || noted.len() < rest.len())
        && numeric(noted.trim_ascii_end()).is_some_and(|kind| kind.class() == Some(Class::Number))
}

/// Without stars and the like at the end, or something short in brackets.
fn without_note(value: &[u8]) -> &[u8] {
    const NOTE_BYTES_MAX: usize = 5;
    let stars = |byte: &u8| matches!(byte, b'*' | b'+' | b'?' | b'!' | b'#' | b'^');
    let bracket = match value.last() {
        Some(b')') => value.iter().rposition(|byte| *byte == b'('),
        Some(b']') => value.iter().rposition(|byte| *byte == b'['),
        _ => None,
    };
    match bracket.filter(|open| value.len() - open <= NOTE_BYTES_MAX) {
        Some(open) => &value[..open],
        None => &value[..value.iter().rposition(|byte| !stars(byte)).map_or(0, |last| last + 1)],
    }
}

fn is_boolean(value: &[u8]) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "t", "f", "y", "n"];
    value.len() <= 5 && WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// Signs of currencies: dollar, and euro, pound, yen, cent and rupee in UTF-8.
const CURRENCIES: [&str; 6] = ["$", "€", "£", "¥", "¢", "₹"];

fn strip_currency(value: &[u8]) -> Option<&[u8]> {
    CURRENCIES.iter().find_map(|sign| {
        let rest = value.strip_prefix(sign.as_bytes()).or_else(|| value.strip_suffix(sign.as_bytes()))?;
        Some(rest.trim_ascii())
    })
}

fn numeric(value: &[u8]) -> Option<Kind> {
    let in_parentheses = value.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let unsigned = in_parentheses.or_else(|| value.strip_prefix(b"-").or_else(|| value.strip_prefix(b"+")));
    let value = unsigned.unwrap_or(value);
    if let Some(rest) = strip_currency(value) {
        let rest = rest.strip_prefix(b"-").unwrap_or(rest);
        return number(rest).map(|_| Kind::Money);
    }
    if let Some(rest) = value.strip_suffix(b"%") {
        return number(rest.trim_ascii_end()).map(|_| Kind::Percent);
    }
    number(value)
}

/// A number with a minus behind it or with signs beyond ASCII, as inference reads it: `12,00-`, `−5`,
/// `1’234.50`. Digits alone with a minus behind them are none: `1990-` is a year and what follows.
fn numeric_otherwise(value: &[u8]) -> Option<Kind> {
    let minus_behind = value.ends_with(b"-") || value.ends_with("\u{2212}".as_bytes());
    if !minus_behind && value.is_ascii() {
        return None;
    }
    let number = spelled_number(value)?;
    Some(match number.is_whole {
        _ if number.has_currency => Kind::Money,
        _ if number.has_percent => Kind::Percent,
        true if minus_behind => return None,
        true => Kind::Integer,
        false => Kind::Decimal,
    })
}

/// `EUR 12.50`, `12 USD`.
fn currency_code(value: &[u8]) -> Option<Kind> {
    const CODES: [&[u8]; 8] = [b"EUR", b"USD", b"GBP", b"CHF", b"JPY", b"CAD", b"AUD", b"Rs"];
    let rest =
        CODES.iter().find_map(|code| value.strip_prefix(*code).or_else(|| value.strip_suffix(*code)))?;
    number(rest.trim_ascii()).map(|_| Kind::Money)
}

/// A number without a sign: digits, perhaps in groups of three, a fraction, an exponent.
fn number(value: &[u8]) -> Option<Kind> {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(value);
    let mut at = whole;
    let mut kind = Kind::Integer;
    let separator = value.get(at).copied();
    if let Some(mark @ (b',' | b'.' | b' ' | b'\'')) = separator.filter(|_| (1..=3).contains(&whole)) {
        let mut groups = 0;
        while value.get(at) == Some(&mark) && digits(&value[at + 1..]) == 3 {
            at += 4;
            groups += 1;
        }
        // Four groups with points between them are an address first, a number hardly ever.
        if groups == 3 && mark == b'.' && at == value.len() && is_address(value) {
            return Some(Kind::Address);
        }
        // One group behind a point or a comma may as well be a fraction: a number all the same.
        if groups > 0 {
            kind = Kind::Decimal;
        }
    }
    if let Some(b'.' | b',') = value.get(at) {
        let fraction = digits(&value[at + 1..]);
        if fraction == 0 && whole == 0 {
            return None;
        }
        // A comma with nothing behind it ends a clause, not a number.
        if fraction == 0 && value[at] == b',' {
            return None;
        }
        at += 1 + fraction;
        kind = Kind::Decimal;
    } else if whole == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = value.get(at) {
        let sign = usize::from(matches!(value.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(value.get(at + 1 + sign..)?);
        if !(1..=3).contains(&exponent) {
            return None;
        }
        at += 1 + sign + exponent;
        kind = Kind::Decimal;
    }
    (at == value.len()).then_some(kind)
}

/// A date, a time of day, or both.
fn moment(value: &[u8]) -> Option<Kind> {
    if let Some(length) = time(value) {
        return (length == value.len()).then_some(Kind::Time);
    }
    let length = date(value)?;
    let rest = &value[length..];
    if rest.is_empty() {
        return Some(Kind::Date);
    }
    // As DB2, Oracle and SAS write a time behind a date.
    let (is_pointed, mark) = (rest.get(3) == Some(&b'.'), rest[0]);
    if is_pointed && matches!(mark, b'-' | b' ') || mark == b':' {
        return is_moment(value).then_some(Kind::Timestamp);
    }
    let rest = match rest {
        [b'T' | b't', rest @ ..] => rest,
        [b',', b' ', rest @ ..] | [b' ', rest @ ..] => rest.trim_ascii_start(),
        _ => return None,
    };
    (time(rest)? == rest.len()).then_some(Kind::Timestamp)
}

/// `12:30`, `12:30:59.123+02:00`, `1:05 PM`; how many bytes.
fn time(value: &[u8]) -> Option<usize> {
    let (hour, mut at) = small_number(value, 0)?;
    if hour > 24 {
        return None;
    }
    for part in 0..2 {
        if value.get(at) != Some(&b':') {
            if part == 0 {
                return None;
            }
            break;
        }
        let (number, next) = small_number(value, at + 1)?;
        if next - at != 3 || number > 60 {
            return None;
        }
        at = next;
    }
    // A comma behind seconds is a delimiter more often than a fraction's.
    if value.get(at) == Some(&b'.') {
        at += 1 + value[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    let rest = &value[at..];
    let blank = usize::from(rest.first() == Some(&b' '));
    let mark = rest.get(blank..).unwrap_or_default();
    let zone: &[u8] = match mark {
        [b'a' | b'p' | b'A' | b'P', b'm' | b'M', ..] => return Some(at + blank + 2),
        [b'Z' | b'z', ..] => return Some(at + blank + 1),
        [b'U', b'T', b'C', ..] | [b'G', b'M', b'T', ..] => return Some(at + blank + 3),
        [b'+' | b'-', zone @ ..] => zone,
        _ => return Some(at),
    };
    let length = zone.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b':').count();
    Some(if (2..=6).contains(&length) { at + blank + 1 + length } else { at })
}

/// One or two digits from `at` on, and where they end.
fn small_number(value: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = value.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=2).contains(&digits) {
        return None;
    }
    let number = value[at..at + digits].iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'));
    Some((number, at + digits))
}

/// A day at the beginning of `value`; how many bytes.
fn date(value: &[u8]) -> Option<usize> {
    let first_digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if first_digits == 0 {
        return month_first(value);
    }
    let separator = *value.get(first_digits)?;
    if separator.is_ascii_alphabetic() {
        return joined(value, first_digits);
    }
    if !matches!(separator, b'-' | b'/' | b'.' | b' ') {
        return None;
    }
    let rest = &value[first_digits + 1..];
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    if letters > 0 {
        return day_first(value, first_digits, separator, letters);
    }
    if separator == b' ' {
        return None;
    }
    let (second, at) = small_number(rest, 0)?;
    if rest.get(at) != Some(&separator) {
        return None;
    }
    let last = &rest[at + 1..];
    let last_digits = last.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, byte| sum * 10 + u32::from(byte - b'0'));
    let plausible = match (first_digits, last_digits) {
        (4, 1..=2) => (1..=12).contains(&second) && (1..=31).contains(&number(&last[..last_digits])),
        (1..=2, 2 | 4) => {
            let first = number(&value[..first_digits]);
            (1..=31).contains(&first) && (1..=31).contains(&second) && (first <= 12 || second <= 12)
        }
        _ => false,
    };
    plausible.then_some(first_digits + 1 + at + 1 + last_digits)
}

/// `31JAN2024`.
fn joined(value: &[u8], first_digits: usize) -> Option<usize> {
    let (name, year) = value.get(first_digits..)?.split_at_checked(MONTH_BYTES)?;
    let year_digits = year.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (first_digits <= 2 && year_digits == 4 && month(name).is_some()).then_some(first_digits + MONTH_BYTES + 4)
}

/// `31-Jan-24`, `31 January 2024`.
fn day_first(value: &[u8], first_digits: usize, separator: u8, letters: usize) -> Option<usize> {
    let name = &value[first_digits + 1..first_digits + 1 + letters];
    let at = first_digits + 1 + letters;
    let comma = usize::from(value.get(at) == Some(&b','));
    if first_digits > 2 || month(name).is_none() || value.get(at + comma) != Some(&separator) {
        return None;
    }
    let year = value[at + comma + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(year, 2 | 4).then_some(at + comma + 1 + year)
}

/// `Jan 31, 2024`.
fn month_first(value: &[u8]) -> Option<usize> {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let dot = usize::from(value.get(letters) == Some(&b'.'));
    if !matches!(value.get(letters + dot), Some(b' ' | b'-')) || month(&value[..letters]).is_none() {
        return None;
    }
    let (day, mut at) = small_number(value, letters + dot + 1)?;
    at += usize::from(value.get(at) == Some(&b','));
    if !(1..=31).contains(&day) || !matches!(value.get(at), Some(b' ' | b'-')) {
        return None;
    }
    let year = value[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (year == 4).then_some(at + 5)
}

fn is_uuid(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(value);
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    value.len() == 36
        && value
            .iter()
            .enumerate()
            .all(|(at, byte)| if dash(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// IPv4 or IPv6 with a mask or not, or the address of a network card.
fn is_address(value: &[u8]) -> bool {
    if !value.first().is_some_and(|byte| byte.is_ascii_hexdigit() || *byte == b':') {
        return false;
    }
    let mut parts = value.split(|byte| *byte == b'/');
    let (host, mask) = (parts.next().unwrap_or_default(), parts.next());
    if mask.is_some_and(|mask| mask.is_empty() || mask.len() > 3 || !mask.iter().all(u8::is_ascii_digit)) {
        return false;
    }
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let card = host.len() == 17
        && host.split([':', '-']).count() == 6
        && host.split([':', '-']).all(|pair| pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit()));
    parts.next().is_none() && (card || host.parse::<core::net::IpAddr>().is_ok())
}

fn is_email(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b'@');
    let (Some(name), Some(host), None) = (parts.next(), parts.next(), parts.next()) else { return false };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    !name.is_empty() && host.contains(&b'.') && name.iter().all(plain) && host.iter().all(plain)
}

fn is_url(value: &[u8]) -> bool {
    const STARTS: [&[u8]; 4] = [b"http://", b"https://", b"ftp://", b"www."];
    STARTS.iter().any(|start| value.len() > start.len() && value[..start.len()].eq_ignore_ascii_case(start))
        && !value.iter().any(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_values_are_told_apart() {
        let cases: &[(Kind, &[&str])] = &[
            (Kind::Empty, &["", "  "]),
            (Kind::Missing, &["NULL", "n/a", "\\N", "-", ".", "#N/A", "?"]),
            (Kind::Integer, &["0", "-12", "+7", "007", "(12)"]),
            (
                Kind::Decimal,
                &["1.5", ".5", "1,234", "1.234,56", "1 234", "1'000.5", "1e5", "-2.5E-10", "3,14"],
            ),
            (Kind::Decimal, &["12,00-", "1.234,56-", "3.5 -", "1,234-", "\u{2212}0.5", "1\u{2019}234.50"]),
            (Kind::Decimal, &["1\u{a0}234,50", "-1\u{202f}234", "12,00\u{2212}"]),
            (Kind::Integer, &["\u{2212}12"]),
            (Kind::Money, &["$74.69", "-$1,000.00", "74,69 €", "£5", "EUR 12.50", "12 USD"]),
            (Kind::Money, &["74,69- €", "$5-", "\u{2212}$5", "1\u{a0}234,50\u{a0}€"]),
            (Kind::Percent, &["12%", "12.5 %", "12,5\u{a0}%"]),
            (Kind::Boolean, &["true", "NO", "Y"]),
            (Kind::Date, &["2024-01-31", "31/01/2024", "1.2.24", "31-Jan-24", "Jan 31, 2024", "5 May 2020"]),
            (Kind::Time, &["12:30", "12:30:59.123", "1:05 PM", "23:59:59+02:00"]),
            (Kind::Date, &["31JAN2024", "1may2024"]),
            (
                Kind::Timestamp,
                &["2024-01-31-10.00.00.000000", "31-JAN-24 10.00.00.5 AM", "31JAN2024:10:00:00"],
            ),
            (Kind::Timestamp, &["2024-01-31 12:30:00", "2024-01-31T12:30:00.5Z", "1/31/2024 1:05 pm"]),
            (Kind::Uuid, &["123e4567-e89b-12d3-a456-426614174000"]),
            (Kind::Address, &["10.0.0.1", "10.202.121.161", "10.0.0.0/8", "fe80::1", "00:1b:44:11:3a:b7"]),
            (Kind::Email, &["a.b@example.org"]),
            (Kind::Url, &["https://example.org/a?b=c", "www.example.org"]),
            (
                Kind::Text,
                &[
                    "2024-01-31 12:30:00,5",
                    "abc",
                    "12,",
                    "1-2-3",
                    "1990-",
                    "31JAN24",
                    "31JAN2024x",
                    "2024-01-31-10.00",
                    "2024-01-31 10.00.00",
                    "12--",
                    "1\u{a0}23",
                    "5\u{2013}10",
                    "2024-13-01",
                    "99/99/2024",
                    "12:99",
                    "1,2,3",
                    "a b",
                    "12 apples",
                ],
            ),
        ];
        for (expected, values) in cases {
            for value in *values {
                assert_eq!(kind(value.as_bytes()), *expected, "{value:?}");
            }
        }
    }

    #[test]
    fn values_with_a_mark_are_no_names() {
        for value in [
            "<0.5", "> 100", ">=5", "≤1,5", "~3", "±0.2", "1.2*", "5+", "7 ?", "1.2(3)", "12 (a)", "3 [1]",
            "-", "n/a", "#N/A", "NULL",
        ] {
            assert!(is_marked(value.as_bytes()), "{value:?}");
        }
        for value in [
            "",
            "0.5",
            "a*",
            "*",
            "(12)",
            "x (1)",
            "<5-10",
            "18-64",
            "5 m",
            "Na",
            "NA",
            "C++",
            "#1",
            "12 (kg/m2)",
            "None",
            "<b>",
        ] {
            assert_eq!(is_marked(value.as_bytes()), value == "*", "{value:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(value: Vec<u8>, text in "[-+0-9:,./ aAjJnNpPmMeE%()$<~*]{0,24}") {
            kind(&value);
            kind(text.as_bytes());
            is_marked(&value);
            is_marked(text.as_bytes());
        }
    }
}
