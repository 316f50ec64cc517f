//! Days among values that are not all of them days: one that is written badly does not hide the order of the others.

use super::cursor::trim;
use super::date::{Date, Written};
use super::facts::DateFacts;
use howdah_model::DateOrder;

/// What the days in numbers among some values say of the order of day, month and year. Like [`super::ColumnState`] a
/// function of the set of the values; unlike there, nothing makes it forget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Days {
    facts: DateFacts,
}

impl Days {
    /// Takes in one value of whatever kind that is not NULL.
    pub fn observe(&mut self, value: &[u8]) {
        if !trim(value).first().is_some_and(u8::is_ascii_digit) {
            return;
        }
        if let Some(written) =
            Written::parse(value).filter(|written| matches!(written.date, Date::Numbers(_)))
        {
            self.facts.observe(&written);
        }
    }

    /// Takes in all that another has seen.
    pub fn join(&mut self, other: &Days) {
        self.facts.join(&other.facts);
    }

    /// No value was a day that is another one in another order.
    pub(super) fn is_empty(&self) -> bool {
        !self.facts.ordered
    }

    /// The order that all of them are in, if they prove one.
    pub(super) fn proven(&self) -> Option<DateOrder> {
        self.facts.proven()
    }

    /// Each order has a day that does not exist in it.
    pub fn contradict(&self) -> bool {
        !self.facts.is_possible()
    }
}
