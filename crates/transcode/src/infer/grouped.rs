//! Numbers in other people's spelling: `1,234.50`, `1.234,50`, `1 234`, `1,5e-05`, `$74.69`, `(12)`, `12-`,
//! `12 %`.
//!
//! A value is looked at under both decimal signs at once, since `1,234` is a thousand to one writer and a
//! little more than one to another; the column decides between them.

use super::cursor::Cursor;
use super::number::{Exponent, is_in_range, short, significant};
use core::net::Ipv4Addr;

/// What may stand between groups of digits. The first is a plain space; then those that do not break or
/// are thin, and the apostrophes of Switzerland.
const GROUPS: [char; 8] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '\u{2019}', ',', '.'];

/// Digits without groups that may still be a number; more are looked at as a name of something, as they
/// are in [`super::number`].
pub(super) const UNGROUPED_DIGITS_MAX: u16 = 18;

const MINUS: [char; 2] = ['-', '\u{2212}'];

/// Longer values are no numbers: room for [`super::number::DECIMAL_DIGITS_MAX`] digits in groups.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// Group separators that a value allows, one bit each, in the order of [`GROUPS`].
pub(super) type GroupSet = u8;

/// The point.
pub(super) const POINT: GroupSet = 1 << 7;

/// Every separator that may stand with this decimal sign.
pub(super) const fn groups_beside(decimal: u8) -> GroupSet {
    if decimal == b'.' { 0b0111_1111 } else { 0b1011_1111 }
}

/// The separator, if the set holds just one.
pub(super) fn only_group(set: GroupSet) -> Option<char> {
    if set.count_ones() == 1 { GROUPS.get(set.trailing_zeros() as usize).copied() } else { None }
}

/// A value as a number with one decimal sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    /// The separators that it could have: one if it has groups, else all.
    pub(super) groups: GroupSet,
    /// Digits before the decimal sign.
    pub(super) before: u16,
    pub(super) decimals: u16,
    /// Digits from the first that is not zero on.
    pub(super) significant: u16,
    /// Digits in the first group, if there are groups.
    pub(super) first_group: Option<u8>,
}

/// A value taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grouped<'a> {
    pub(super) negative: bool,
    pub(super) parentheses: bool,
    /// The minus stands behind the digits.
    pub(super) minus_behind: bool,
    pub(super) percent: bool,
    pub(super) currency: Option<char>,
    /// A dollar or pound stands in front, as where English is written: a comma is never before three decimals
    /// there.
    english: bool,
    /// Digits, groups and decimal sign.
    pub(super) body: &'a str,
    /// What is written behind these, from the letter on: `e-05`. Most often nothing.
    pub(super) powers: &'a str,
}

impl Grouped<'_> {
    /// The value under `.` and under `,` as the decimal sign. A currency decides nothing, since fuel and
    /// power are sold at `$3.459` and `1,759 €`; but that `$1,250` is more than a thousand.
    pub(super) fn sides(&self) -> (Option<Side>, Option<Side>) {
        let short_enough = |side: &Side| side.first_group.is_some() || side.before <= UNGROUPED_DIGITS_MAX;
        let (dot, comma) = (self.side('.').filter(short_enough), self.side(',').filter(short_enough));
        let is_group = self.english && dot.is_some() && self.body.contains(',');
        (dot, comma.filter(|_| !is_group))
    }

    /// The value under this decimal sign. Digits with an exponent have no groups.
    pub(super) fn side(&self, decimal: char) -> Option<Side> {
        side(self.body, decimal).filter(|side| self.powers.is_empty() || side.first_group.is_none())
    }

    /// The power of ten, and whether it may be part of a name.
    pub(super) fn exponent(&self) -> Option<(i32, Exponent)> {
        let power = self.powers.get(1..)?.parse().ok()?;
        let is_sure = self.negative || self.body.contains(['.', ',']) || self.powers.contains(['+', '-']);
        Some((power, if is_sure { Exponent::Sure } else { Exponent::Bare }))
    }

    /// Four numbers from 0 to 255 with points between: the address of a host, as far as its looks go.
    pub(super) fn is_address(&self) -> bool {
        let dressed = self.negative || self.parentheses || self.percent || self.currency.is_some();
        !dressed && self.powers.is_empty() && self.body.parse::<Ipv4Addr>().is_ok()
    }

    /// The server would read it as it stands, and its point may stand between groups: `1.107`. These are its
    /// sides.
    pub(super) fn has_open_point(&self, (dot, comma): (Option<Side>, Option<Side>)) -> bool {
        dot.is_some() && comma.is_some() && self.is_plain() && self.body.contains('.')
    }

    /// It is no more than digits with a point, as PostgreSQL writes numbers, and perhaps an exponent.
    pub(super) fn is_plain(&self) -> bool {
        let dressed = self.parentheses || self.minus_behind || self.percent || self.currency.is_some();
        !dressed && self.body.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    }
}

/// How one value is written that is a number in other people's spelling.
pub(crate) struct SpelledNumber {
    pub(crate) has_currency: bool,
    pub(crate) has_percent: bool,
    /// Neither fraction nor groups.
    pub(crate) is_whole: bool,
}

/// The value as a number in other people's spelling, under one decimal sign or the other.
pub(crate) fn spelled_number(value: &[u8]) -> Option<SpelledNumber> {
    let parts = take_apart(value)?;
    let (dot, comma) = parts.sides();
    dot.or(comma)?;
    Some(SpelledNumber {
        has_currency: parts.currency.is_some(),
        has_percent: parts.percent,
        is_whole: is_digits(parts.body) && parts.powers.is_empty(),
    })
}

/// Takes off signs, currency, percent and parentheses, each at most once. Blanks around it are allowed.
pub(super) fn take_apart(value: &[u8]) -> Option<Grouped<'_>> {
    if value.len() > VALUE_BYTES_MAX {
        return None;
    }
    let mut found = Grouped {
        negative: false,
        parentheses: false,
        minus_behind: false,
        percent: false,
        currency: None,
        english: false,
        body: "",
        powers: "",
    };
    let mut body = std::str::from_utf8(value).ok()?;
    loop {
        body = body.trim_matches(is_blank);
        if let Some(inner) = body.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            if found.parentheses || found.negative {
                return None;
            }
            (found.parentheses, found.negative, body) = (true, true, inner);
        } else if let Some(rest) = body.strip_prefix(MINUS) {
            if found.negative {
                return None;
            }
            (found.negative, body) = (true, rest);
        } else if let Some(rest) = body.strip_suffix(MINUS) {
            if found.negative {
                return None;
            }
            (found.minus_behind, found.negative, body) = (true, true, rest);
        } else if let Some(rest) = body.strip_suffix('%') {
            if found.percent {
                return None;
            }
            (found.percent, body) = (true, rest);
        } else if let Some((sign, rest)) = strip_currency(body) {
            if found.currency.is_some() {
                return None;
            }
            found.english = body.starts_with(['$', '\u{a3}']);
            (found.currency, body) = (Some(sign), rest);
        } else {
            break;
        }
    }
    if !body.starts_with(|c: char| c.is_ascii_digit()) || !body.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    (found.body, found.powers) = body.split_at(body.find(['e', 'E']).unwrap_or(body.len()));
    let are_powers = || !found.percent && found.currency.is_none() && has_exponent(body, found.powers);
    (found.powers.is_empty() || are_powers()).then_some(found)
}

/// Digits behind the letter, with a sign or without, that leave the number in the range of double precision:
/// beyond that the server refuses it in such a column.
fn has_exponent(body: &str, powers: &str) -> bool {
    let mut behind = Cursor(powers.as_bytes().get(1..).unwrap_or_default());
    behind.one_of(b"+-");
    (1..=4).contains(&behind.digits().len()) && behind.is_done() && is_in_range(&body.replace(',', "."))
}

fn strip_currency(body: &str) -> Option<(char, &str)> {
    let first = body.chars().next().filter(|c| is_currency(*c));
    let last = body.chars().next_back().filter(|c| is_currency(*c));
    match (first, last) {
        (Some(sign), _) => body.strip_prefix(sign).map(|rest| (sign, rest)),
        (None, Some(sign)) => body.strip_suffix(sign).map(|rest| (sign, rest)),
        (None, None) => None,
    }
}

/// Dollar, cent, pound, generic, yen, and Unicode's block of currency symbols.
pub(super) fn is_currency(c: char) -> bool {
    matches!(c, '$' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20cf}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// The body under one decimal sign, or `None` where it would be none.
fn side(body: &str, decimal: char) -> Option<Side> {
    let (whole, decimals) = match body.split_once(decimal) {
        None => (body, 0),
        Some((_, fraction)) if !is_digits(fraction) => return None,
        Some((whole, fraction)) => (whole, short(fraction.len())),
    };
    let all = groups_beside(u8::try_from(decimal).ok()?);
    let (groups, digits, first_group) = if is_digits(whole) {
        (all, whole.len(), None)
    } else {
        let group = whole.chars().find(|c| !c.is_ascii_digit())?;
        let at = GROUPS.iter().position(|known| *known == group && group != decimal)?;
        (1 << at, grouped_digits(whole, group)?, Some(short_byte(whole.find(group)?)))
    };
    // `0,123` is no group behind a zero, and `007` no number.
    if whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let significant = match body.split_once(decimal) {
        Some((_, fraction)) if whole == "0" => significant(b"", fraction.as_bytes()),
        _ if whole == "0" => 0,
        _ => short(digits).saturating_add(decimals),
    };
    Some(Side { groups, before: short(digits), decimals, significant, first_group })
}

/// How many digits there are, if all groups are of three; or, as in India, the last of three and the
/// others of two.
fn grouped_digits(whole: &str, group: char) -> Option<usize> {
    let sizes = || whole.split(group).map(str::len);
    if !whole.split(group).all(is_digits) {
        return None;
    }
    let (first, last, count) = (sizes().next()?, sizes().next_back()?, sizes().count());
    let mut middle = sizes().skip(1).take(count.saturating_sub(2));
    let western = first <= 3 && middle.clone().all(|size| size == 3);
    let indian = first <= 2 && count > 2 && middle.all(|size| size == 2);
    (last == 3 && (western || indian)).then(|| sizes().sum())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn short_byte(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(value: &str) -> (bool, bool) {
        let sides = take_apart(value.as_bytes()).map(|grouped| grouped.sides());
        sides.map_or((false, false), |(dot, comma)| (dot.is_some(), comma.is_some()))
    }

    #[test]
    fn a_value_says_which_decimal_sign_it_can_have() {
        for (value, expected) in [
            ("1,234", (true, true)),
            ("1234", (true, true)),
            ("1 234", (true, true)),
            ("1,234,567", (true, false)),
            ("1,234.5", (true, false)),
            ("12,34,567.00", (true, false)),
            ("1.234,5", (false, true)),
            ("12,5", (false, true)),
            ("0,123", (false, true)),
            ("1234,567", (false, true)),
            ("$1,234", (true, false)),
            ("-£ 1,234", (true, false)),
            ("($1,234)", (true, false)),
            ("$3.459", (true, true)),
            ("$3,45", (false, true)),
            ("$1234", (true, true)),
            ("$1 234", (true, true)),
            ("1,234 $", (true, true)),
            ("€1,234", (true, true)),
            ("1.234 €", (true, true)),
            ("$1,234.50", (true, false)),
            ("$1.23", (true, false)),
            ("1.234,56-", (false, true)),
            ("5-", (true, true)),
            ("1,23,4", (false, false)),
            ("1,234,56", (false, false)),
            ("007", (false, false)),
            ("1 23", (false, false)),
            ("1,234'567", (false, false)),
            ("", (false, false)),
            ("-", (false, false)),
            ("$", (false, false)),
            ("1234567890123456789", (false, false)),
            ("1,5e-05", (false, true)),
            ("-1,234E+10", (false, true)),
            ("1.5e3", (true, false)),
            ("1e-05", (true, true)),
            ("1.234,5e3", (false, false)),
            ("1 234e3", (false, false)),
            ("1,5e", (false, false)),
            ("1,5e400", (false, false)),
            ("1,e5", (false, false)),
            ("00,5e3", (false, false)),
            ("1,5e3 €", (false, false)),
            ("1,5e3%", (false, false)),
            ("1,5ex", (false, false)),
        ] {
            assert_eq!(both(value), expected, "{value}");
        }
    }

    #[test]
    fn signs_are_taken_off_once_each() {
        let value = take_apart("($ 1,234.50)".as_bytes()).unwrap();
        assert!(value.negative && value.parentheses && !value.percent);
        assert_eq!((value.currency, value.body), (Some('$'), "1,234.50"));
        let value = take_apart("-12,5\u{a0}%".as_bytes()).unwrap();
        assert!(value.negative && value.percent && !value.parentheses);
        let value = take_apart("1.234,56 - €".as_bytes()).unwrap();
        assert!(value.negative && value.minus_behind && !value.parentheses);
        for bad in ["--1", "-1-", "1--", "(1-)", "(1)-", "(-1)", "1%%", "$1$", "((1))", "%", "()", "1)", "(1"]
        {
            assert_eq!(take_apart(bad.as_bytes()), None, "{bad}");
        }
    }
}
