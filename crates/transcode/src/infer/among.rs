//! Days and numbers among values that are not all of them such: one that is written badly, or a word, does
//! not hide how the others are meant.

use super::column::{ColumnState, is_minus_zero};
use super::cursor::trim;
use super::date::{Date, Written};
use super::facts::{DateFacts, dressed};
use super::grouped::{VALUE_BYTES_MAX, take_apart};
use super::kinds::Kinds;
use super::number;
use super::verdict::order_name;
use howdah_model::{DateOrder, Reading};

/// Stands for numbers that only PostgreSQL's own spelling has, as `5.` and `.5`: they say that the point is
/// the decimal sign, as this one does.
const POINTED: &[u8] = b"0.5";

/// What the days in numbers and the numbers among some values say of their order and spelling. Beside the
/// [`ColumnState`] of the same values, and like it a function of their set; unlike there, nothing makes it
/// forget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Among {
    days: DateFacts,
    /// Some value is a day with something between its parts, with a time of day or without: in numbers, the
    /// year first or not, or with the name of its month.
    has_days: bool,
    /// Of the numbers alone. As long as the state of the column holds nothing but these, they are not held
    /// twice.
    numbers: ColumnState,
    /// A number as PostgreSQL reads it has a point that may stand between groups.
    open_point: bool,
}

impl Among {
    /// Takes in one value of whatever kind that is not NULL, as the state of the column does.
    pub fn observe(&mut self, state: &mut ColumnState, value: &[u8]) {
        // It is no day, and stands beside every number.
        if has_numbers(state) && state.observe_small_integer(value) {
            return;
        }
        let day = self.observe_day(value);
        let before = has_numbers(state).then(|| state.clone());
        state.observe_beside(value, day);
        if !has_numbers(state) {
            before.iter().for_each(|before| self.take_numbers(before));
            self.observe_number(value);
        }
    }

    /// Takes in all that another and the state beside it have seen, as does the state of the column.
    pub fn join(&mut self, state: &mut ColumnState, other: &Among, other_state: &ColumnState) {
        self.days.join(&other.days);
        self.has_days |= other.has_days;
        self.numbers.join(&other.numbers);
        self.open_point |= other.open_point;
        let before = has_numbers(state).then(|| state.clone());
        state.join(other_state);
        if !has_numbers(state) {
            let other = Some(other_state).filter(|other| has_numbers(other));
            before.iter().chain(other).for_each(|all_numbers| self.take_numbers(all_numbers));
        }
    }

    /// Most text is done with at once: days in numbers begin with a digit, others with a letter and have a
    /// digit, and one of these says all. Gives what the value is as a day, if it was looked at.
    fn observe_day<'v>(&mut self, value: &'v [u8]) -> Option<Option<Written<'v>>> {
        let may_be_day = match trim(value).first() {
            Some(first) if first.is_ascii_digit() => true,
            Some(first) if first.is_ascii_alphabetic() && !self.has_days => {
                value.iter().any(u8::is_ascii_digit)
            }
            _ => false,
        };
        let day = may_be_day.then(|| Written::parse(value));
        if let Some(Some(written)) = &day {
            self.has_days = true;
            if matches!(written.date, Date::Numbers(_)) {
                self.days.observe(written);
            }
        }
        day
    }

    fn observe_number(&mut self, whole: &[u8]) {
        let value = trim(whole);
        let parts = if may_be_number(value) { take_apart(value) } else { None };
        let parts = parts.filter(|parts| !is_minus_zero(parts));
        match parts.map(|parts| (parts, parts.sides())) {
            Some((parts, sides @ (Some(_), _) | sides @ (_, Some(_)))) => {
                self.open_point |= parts.has_open_point(sides);
                // With its blanks, as the state of the column has it.
                self.numbers.observe(whole);
            }
            _ if value.contains(&b'.') && number::plain(value).is_some() => {
                self.numbers.observe(POINTED);
            }
            _ => {}
        }
    }

    /// The values of this state are all numbers.
    fn take_numbers(&mut self, state: &ColumnState) {
        self.numbers.join(state);
        self.open_point |= state.grouped.dressed & dressed::OPEN_POINT != 0;
    }

    /// What the days among the values say, and nothing of the numbers.
    #[must_use]
    pub fn days_alone(&self) -> Among {
        Among { days: self.days.clone(), has_days: self.has_days, ..Among::default() }
    }

    /// The days among the values are in one order, which they prove.
    pub fn proves_order(&self) -> bool {
        self.order().is_some()
    }

    /// What the numbers among the values say, where these are not all of them numbers.
    pub(super) fn numbers(&self) -> &ColumnState {
        &self.numbers
    }

    pub(super) fn has_open_point(&self) -> bool {
        self.open_point
    }

    /// Some value is a day in whatever form, but for digits alone.
    pub(super) fn has_days(&self) -> bool {
        self.has_days
    }

    /// No value was a day that is another one in another order.
    pub(super) fn is_without_days(&self) -> bool {
        !self.days.ordered
    }

    /// The order that all days are in, if they prove one.
    pub(super) fn order(&self) -> Option<DateOrder> {
        self.days.only_order()
    }

    /// The orders in which all days exist, as `--types` names them.
    pub fn orders_left(&self) -> Vec<&'static str> {
        self.days.orders_left().map(order_name).collect()
    }

    /// The order of the days seen, or any of those in which they are the same days.
    pub fn agreed_order(&self) -> Option<DateOrder> {
        self.days.proven()
    }

    /// Read so, some days of a year of two digits are in the years from 2050 to 2069: most often they were
    /// meant for a hundred years before.
    pub fn has_far_years(&self, state: &ColumnState, reading: &Reading) -> bool {
        match reading {
            Reading::Date(order) => self.days.is_far_in(*order),
            Reading::MonthName => state.named_dates.far != 0,
            _ => false,
        }
    }
}

/// All values seen are numbers in one spelling.
fn has_numbers(state: &ColumnState) -> bool {
    state.possible.meet(Kinds::GROUPED)
}

/// Says for most text at its first bytes that it is no number: a hyphen stands before all digits or behind
/// them, and there are no letters but that of an exponent.
fn may_be_number(value: &[u8]) -> bool {
    let (mut digits_began, mut digits_ended, mut has_power) = (false, false, false);
    let fits = |byte: &u8| match byte {
        b'-' => {
            digits_ended = digits_began && !has_power;
            true
        }
        b'+' => has_power,
        b'e' | b'E' => digits_began && !std::mem::replace(&mut has_power, true),
        b'0'..=b'9' => {
            digits_began = true;
            !digits_ended
        }
        b' ' | b'\t' | b'\'' | b'(' | b')' | b',' | b'.' | b'$' | b'%' => true,
        byte => !byte.is_ascii(),
    };
    value.len() <= VALUE_BYTES_MAX && value.iter().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_taken_apart_may_be_a_number() {
        for value in [
            "-1",
            "1-",
            "12,5 -",
            "1.234,56- %",
            "(5)",
            "\u{2212}5",
            "5\u{2212}",
            "5 - €",
            "-1,5e-05",
            "2E+1",
        ] {
            assert!(take_apart(value.as_bytes()).is_some() && may_be_number(value.as_bytes()), "{value}");
        }
        assert!(!may_be_number(b"2024-01-31") && !may_be_number(b"5-x") && !may_be_number(b"e5"));
    }

    #[test]
    fn neither_order_nor_parts_matter() {
        let of = |values: &[&str]| {
            let (mut state, mut among) = (ColumnState::default(), Among::default());
            values.iter().for_each(|value| among.observe(&mut state, value.as_bytes()));
            (state, among)
        };
        for values in [
            ["1.107", "x", "1.234,56", "007"],
            ["1.5", "1,5", "-0", "1.107"],
            ["1706140899", "x", "31/01/2024", "5"],
            ["$1.50", "1e5", "2 %", " 1,234 "],
            ["$1.50", "1", "2.5", "1,234"],
            ["€ -1.234,56", "1.107", "x", "5"],
            ["1.10e-05", "1,5", "-0.0", ".5"],
            ["x", "(3/20", " 1250", "(3"],
            ["1.107-", "x", "5-", "1,5 -"],
            ["1,5e-05", "0,1", "x", "1.5e3"],
            ["1,5e-05", "12E3", "1e-05", "007"],
        ] {
            let mut turned = values;
            for by in 0..values.len() {
                turned.rotate_left(1);
                let whole = of(&turned);
                for cut in 0..=values.len() {
                    let (mut state, mut among) = of(&turned[..cut]);
                    let (other_state, other) = of(&turned[cut..]);
                    among.join(&mut state, &other, &other_state);
                    assert_eq!((&state, &among), (&whole.0, &whole.1), "{values:?} by {by} cut at {cut}");
                }
                assert_eq!(whole.1, of(&values).1, "{values:?} by {by}");
            }
        }
    }
}
