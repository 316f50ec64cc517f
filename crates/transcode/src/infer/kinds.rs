//! The kinds that the values of a column may all be of, as a set.

/// A set of kinds. A kind is a spelling with one meaning; which SQL type it becomes is decided at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) const NONE: Kinds = Kinds(0);
    /// Words for true and false.
    pub(super) const BOOLEAN: Kinds = Kinds(1);
    /// Integers as PostgreSQL writes them, in the range of bigint.
    pub(super) const INTEGER: Kinds = Kinds(1 << 1);
    /// Numbers with a decimal point or without, no exponent.
    pub(super) const DECIMAL: Kinds = Kinds(1 << 2);
    /// The same with exponents, and a zero with a sign.
    pub(super) const FLOAT: Kinds = Kinds(1 << 3);
    /// Digits that may be no number: leading zeros, a sign of plus, more than bigint holds.
    pub(super) const DIGITS: Kinds = Kinds(1 << 4);
    /// Numbers with groups, a decimal comma, a currency, percent or parentheses.
    pub(super) const GROUPED: Kinds = Kinds(1 << 5);
    /// Dates in numbers, with a time of day or without.
    pub(super) const DATE: Kinds = Kinds(1 << 6);
    /// Dates with the name of the month, with a time of day or without.
    pub(super) const NAMED_DATE: Kinds = Kinds(1 << 7);
    /// Times of day.
    pub(super) const TIME: Kinds = Kinds(1 << 8);
    pub(super) const UUID: Kinds = Kinds(1 << 9);
    /// JSON objects and arrays.
    pub(super) const JSON: Kinds = Kinds(1 << 10);
    /// Addresses of hosts and networks.
    pub(super) const INET: Kinds = Kinds(1 << 11);

    pub(super) const ALL: Kinds = Kinds((1 << 12) - 1);
    /// What an integer as PostgreSQL writes it fits.
    pub(super) const OF_INTEGER: Kinds = Kinds(0b11_1110);
    /// Kinds of numbers that need no rewriting.
    pub(super) const PLAIN_NUMBERS: Kinds = Kinds(0b01_1110);

    pub(super) const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    pub(super) const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// They share a kind.
    pub(super) const fn meet(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
