//! What is known of a column from the values seen: the narrowest type that holds them all follows from it.
//!
//! Values enter one by one, states of parts of a file are joined. A state is a function of the *set* of the
//! values: it holds the kinds that every one of them can be of, and facts about the kinds still possible;
//! facts of other kinds are forgotten at once. So neither the order of the values nor the way they were cut
//! into parts can change it, joining is associative, commutative and idempotent, and a column that has
//! become text costs nothing more. A state is of 112 bytes, whatever the values.
//!
//! Per value one core needs about 4 ns for an integer (1.4 GB/s), 20 ns for a decimal (0.4 GB/s), nothing to
//! speak of once a column is text, 25 to 50 ns for dates, times, UUIDs and JSON, and 200 ns for numbers whose
//! spelling must be proven (`examples/infer_throughput.rs`; Xeon of the Sapphire Rapids class, busy).

use super::cursor::trim;
use super::date::{Date, Written};
use super::facts::{DateFacts, Extent, GroupedFacts, Integers};
use super::kinds::Kinds;
use super::layout::{Layout, Spelling, casing_of, uuid_casing_of};
use super::number::{DOUBLE_WRITTEN_DIGITS_MAX, Exponent, Plain};
use super::{clock::Clock, grouped, json, number, words};

/// What is known of a column. Begins with no value seen; NULLs are not shown to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnState {
    pub(super) seen: bool,
    /// What every value can be.
    pub(super) possible: Kinds,
    /// What some value can be only in a spelling that nothing would give back.
    pub(super) inexact: Kinds,
    /// Those among all kinds of numbers.
    pub(super) integers: Integers,
    /// Of decimals and of floats without an exponent.
    pub(super) decimals: Extent,
    pub(super) floats: Extent,
    /// Some float has an exponent that may be part of a name.
    pub(super) bare_exponent: bool,
    /// Some float is surely a number: it has a point or a sign.
    pub(super) sure_float: bool,
    /// `NaN` is among decimals.
    pub(super) has_nan: bool,
    /// Flags of [`number::odd`].
    pub(super) odd: u8,
    pub(super) grouped: GroupedFacts,
    pub(super) dates: DateFacts,
    pub(super) named_dates: DateFacts,
    /// How times of day are written.
    pub(super) times: Spelling,
    /// Flags of words for true and false.
    pub(super) booleans: u16,
    /// Casings of `true` and `false`, as flags.
    pub(super) boolean_casings: u8,
    /// Casings of UUIDs, as flags.
    pub(super) uuid_casings: u8,
    /// Flags of [`words::prefix`].
    pub(super) prefixes: u8,
    /// JSON has an object with a key more than once.
    pub(super) repeats_keys: bool,
}

impl Default for ColumnState {
    fn default() -> ColumnState {
        ColumnState {
            seen: false,
            possible: Kinds::ALL,
            inexact: Kinds::NONE,
            integers: Integers::default(),
            decimals: Extent::default(),
            floats: Extent::default(),
            bare_exponent: false,
            sure_float: false,
            has_nan: false,
            odd: 0,
            grouped: GroupedFacts::default(),
            dates: DateFacts::default(),
            named_dates: DateFacts::default(),
            times: Spelling::default(),
            booleans: 0,
            boolean_casings: 0,
            uuid_casings: 0,
            prefixes: 0,
            repeats_keys: false,
        }
    }
}

impl ColumnState {
    /// Takes in one value that is not NULL: bytes of UTF-8, broken ones included, without quotes and
    /// escapes. The empty string is text.
    #[inline]
    pub fn observe(&mut self, value: &[u8]) {
        self.observe_beside(value, None);
    }

    /// The same for a value that somebody may have looked at, and what it is as a day.
    #[inline]
    pub(super) fn observe_beside(&mut self, value: &[u8], day: Option<Option<Written<'_>>>) {
        if self.possible.is_empty() {
            return;
        }
        if !self.observe_small_integer(value) {
            self.observe_other(value, day);
        }
    }

    /// Takes in the value if it is of the most common kind, and says whether it is.
    #[inline]
    pub(super) fn observe_small_integer(&mut self, value: &[u8]) -> bool {
        let integer = number::small_integer(value);
        if let Some(integer) = integer {
            self.integers.observe(integer);
            self.narrow(Kinds::OF_INTEGER);
        }
        integer.is_some()
    }

    /// How many kinds every value can be of. It falls with each value that rules some out.
    pub fn kinds(&self) -> u32 {
        self.possible.count()
    }

    /// Takes in all that another state has seen.
    pub fn join(&mut self, other: &ColumnState) {
        self.seen |= other.seen;
        self.possible = self.possible.and(other.possible);
        self.inexact = self.inexact.or(other.inexact);
        self.integers.join(&other.integers);
        self.decimals.join(&other.decimals);
        self.floats.join(&other.floats);
        self.bare_exponent |= other.bare_exponent;
        self.sure_float |= other.sure_float;
        self.has_nan |= other.has_nan;
        self.odd |= other.odd;
        self.grouped.join(&other.grouped);
        self.dates.join(&other.dates);
        self.named_dates.join(&other.named_dates);
        self.times.join(&other.times);
        self.booleans |= other.booleans;
        self.boolean_casings |= other.boolean_casings;
        self.uuid_casings |= other.uuid_casings;
        self.prefixes |= other.prefixes;
        self.repeats_keys |= other.repeats_keys;
        self.forget();
    }

    /// The same for a column that is one of numbers with fractions: digits with an exponent are no names
    /// there.
    #[must_use]
    pub fn of_numbers(&self) -> ColumnState {
        let sure_float = self.possible.meet(Kinds::FLOAT);
        ColumnState { sure_float, ..self.clone() }
    }

    fn observe_other(&mut self, value: &[u8], day: Option<Option<Written<'_>>>) {
        let inner = trim(value);
        // Blanks around a value are passed over by the input of most types, and are not given back.
        let padded = inner.len() < value.len();
        let mut fits = Kinds::NONE;
        if !inner.is_empty() {
            fits = fits.or(self.observe_number(inner)).or(self.observe_date(inner, value, day));
            fits = fits.or(self.observe_word(inner, padded));
        }
        if padded {
            self.mark_inexact(fits);
        }
        self.narrow(fits);
    }

    /// Takes note that a value which can be of these kinds would not come back as it was written.
    fn mark_inexact(&mut self, kinds: Kinds) {
        self.inexact = self.inexact.or(kinds.and(self.possible));
    }

    fn observe_number(&mut self, value: &[u8]) -> Kinds {
        if self.possible.meet(Kinds::DECIMAL.or(Kinds::FLOAT)) && value.eq_ignore_ascii_case(b"nan") {
            let kinds = Kinds::DECIMAL.or(Kinds::FLOAT);
            self.mark_inexact(if value == b"NaN" { Kinds::FLOAT } else { kinds });
            self.has_nan |= self.possible.meet(Kinds::DECIMAL);
            return kinds;
        }
        let plain = if self.possible.meet(Kinds::OF_INTEGER) { number::plain(value) } else { None };
        let mut fits = Kinds::NONE;
        if let Some(plain) = &plain {
            fits = plain.kinds;
            self.observe_plain(plain);
        }
        if self.possible.meet(Kinds::GROUPED) {
            match &plain {
                Some(plain) if plain.is_pointed() => self.grouped.observe_decimal(plain),
                _ => match grouped::take_apart(value) {
                    Some(parts) if !is_minus_zero(&parts) => self.grouped.observe(&parts),
                    _ => return fits,
                },
            }
            self.mark_inexact(Kinds::GROUPED);
            if self.grouped.is_possible() {
                fits = fits.or(Kinds::GROUPED);
            }
        }
        fits
    }

    fn observe_plain(&mut self, plain: &Plain) {
        let counts = plain.kinds.and(self.possible);
        if let Some(integer) = plain.integer {
            self.integers.observe(integer);
        } else if let Some(exponent) = plain.exponent {
            if counts.meet(Kinds::FLOAT) && plain.significant > DOUBLE_WRITTEN_DIGITS_MAX {
                self.floats.significant_max = self.floats.significant_max.max(plain.significant);
            }
            let floats = counts.meet(Kinds::FLOAT);
            self.bare_exponent |= floats && exponent == Exponent::Bare;
            self.sure_float |= floats && exponent == Exponent::Sure;
        } else {
            if counts.meet(Kinds::DECIMAL) {
                self.decimals.observe_plain(plain);
            }
            if counts.meet(Kinds::FLOAT) {
                self.floats.observe_plain(plain);
                self.sure_float |= plain.odd == 0;
            }
        }
        if counts.meet(Kinds::DIGITS) {
            self.odd |= plain.odd;
        }
        // No double is sure to be printed as it was written.
        self.mark_inexact(if plain.exact { Kinds::FLOAT } else { plain.kinds });
    }

    /// Dates and times of day; `inner` is `value` without blanks around it.
    fn observe_date(&mut self, inner: &[u8], value: &[u8], day: Option<Option<Written<'_>>>) -> Kinds {
        let mut fits = Kinds::NONE;
        if self.possible.meet(Kinds::TIME)
            && let Some(clock) = Clock::parse(inner)
            && clock.stands_alone()
        {
            fits = Kinds::TIME;
            match clock.layout(b' ') {
                Some(clock_layout) => {
                    let layout = Layout { separator: None, clock: Some(clock_layout) };
                    self.times.observe(layout, clock.fraction);
                }
                None => self.times.observe_other(),
            }
        }
        if !self.possible.meet(Kinds::DATE.or(Kinds::NAMED_DATE)) {
            return fits;
        }
        let Some(written) = day.unwrap_or_else(|| Written::parse(value)) else { return fits };
        let (kind, facts) = match written.date {
            Date::Named(_) => (Kinds::NAMED_DATE, &mut self.named_dates),
            Date::YearFirst(_) | Date::Numbers(_) => (Kinds::DATE, &mut self.dates),
        };
        if self.possible.meet(kind) {
            facts.observe(&written);
            fits = if facts.is_possible() { fits.or(kind) } else { fits };
        }
        fits
    }

    /// Kinds that are no numbers. UUIDs and addresses take no blanks around them.
    fn observe_word(&mut self, value: &[u8], padded: bool) -> Kinds {
        let mut fits = Kinds::NONE;
        if self.possible.meet(Kinds::BOOLEAN)
            && let Some(word) = words::boolean(value)
        {
            fits = fits.or(Kinds::BOOLEAN);
            self.booleans |= word;
            self.boolean_casings |= casing_of(value);
        }
        if self.possible.meet(Kinds::UUID) && !padded && words::is_uuid(value) {
            fits = fits.or(Kinds::UUID);
            self.uuid_casings |= uuid_casing_of(value);
        }
        if self.possible.meet(Kinds::INET)
            && !padded
            && let Some(prefix) = words::inet(value)
        {
            fits = fits.or(Kinds::INET);
            self.prefixes |= prefix;
        }
        if self.possible.meet(Kinds::JSON)
            && let Some(document) = json::document(value)
        {
            self.repeats_keys |= document.repeats_keys;
            fits = fits.or(Kinds::JSON);
            self.mark_inexact(Kinds::JSON);
        }
        fits
    }

    #[inline]
    fn narrow(&mut self, fits: Kinds) {
        self.seen = true;
        let left = self.possible.and(fits);
        if left != self.possible {
            self.possible = left;
            self.forget();
        }
    }

    /// Drops what is known of kinds that are possible no more, so that it makes no difference whether it
    /// was seen before or after they became so.
    fn forget(&mut self) {
        if !self.grouped.is_possible() {
            self.possible = self.possible.without(Kinds::GROUPED);
        }
        if !self.dates.is_possible() {
            self.possible = self.possible.without(Kinds::DATE);
        }
        let possible = self.possible;
        self.inexact = self.inexact.and(possible);
        let kept = |kind: Kinds| possible.meet(kind);
        if !kept(Kinds::OF_INTEGER) {
            self.integers = Integers::default();
        }
        if !kept(Kinds::DECIMAL) {
            (self.decimals, self.has_nan) = (Extent::default(), false);
        }
        if !kept(Kinds::FLOAT) {
            self.floats = Extent::default();
            (self.bare_exponent, self.sure_float) = (false, false);
        }
        if !kept(Kinds::DIGITS) {
            self.odd = 0;
        }
        if !kept(Kinds::GROUPED) {
            self.grouped = GroupedFacts::default();
        }
        if !kept(Kinds::DATE) {
            self.dates = DateFacts::default();
        }
        if !kept(Kinds::NAMED_DATE) {
            self.named_dates = DateFacts::default();
        }
        if !kept(Kinds::TIME) {
            self.times = Spelling::default();
        }
        if !kept(Kinds::BOOLEAN) {
            (self.booleans, self.boolean_casings) = (0, 0);
        }
        if !kept(Kinds::UUID) {
            self.uuid_casings = 0;
        }
        if !kept(Kinds::INET) {
            self.prefixes = 0;
        }
        self.repeats_keys &= kept(Kinds::JSON);
    }
}

/// A zero with a sign, written as PostgreSQL would read it: the sign would be lost.
pub(super) fn is_minus_zero(parts: &grouped::Grouped<'_>) -> bool {
    parts.negative && parts.is_plain() && !parts.body.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_small_and_text_is_its_end() {
        assert!(size_of::<ColumnState>() <= 128);
        let mut state = ColumnState::default();
        for value in ["1", "x", "31/01/2024", "\u{fffd}"] {
            state.observe(value.as_bytes());
        }
        let end = ColumnState { seen: true, possible: Kinds::NONE, ..ColumnState::default() };
        assert_eq!(state, end);
        state.join(&ColumnState::default());
        assert_eq!(state, end);
    }
}
