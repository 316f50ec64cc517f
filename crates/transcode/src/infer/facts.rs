//! What is remembered of a column's values besides the kinds they may be of.
//!
//! Every fact begins empty, takes in one value's contribution after another, and joins with another of its
//! type; both only ever add. So the order in which values come, and how they were cut into parts, changes
//! nothing.

use super::clock::Clock;
use super::date::{Date, Day, ORDERS, Written};
use super::grouped::{GroupSet, Grouped, POINT, Side, UNGROUPED_DIGITS_MAX, groups_beside};
use super::layout::Spelling;
use super::number::{DOUBLE_WRITTEN_DIGITS_MAX, Exponent, Plain};
use howdah_model::DateOrder;

/// Digits of a group; more in a row are written without.
const GROUP_DIGITS_MAX: u16 = 3;

/// The range of the integers seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Integers {
    min: i64,
    max: i64,
    /// Ways to write a day and a time of day with digits alone in which some integer is none: flags of
    /// [`stamp`].
    no_stamps: u8,
    /// PostgreSQL takes some for a day of a far year.
    far_day: bool,
}

/// Days with a time of day, written with digits alone.
mod stamp {
    /// `2024013112`
    pub(super) const YEAR_TO_HOUR: u8 = 1;
    /// `202401311230`
    pub(super) const YEAR_TO_MINUTE: u8 = 2;
    /// `2401311230`
    pub(super) const SHORT_YEAR_TO_MINUTE: u8 = 4;
    pub(super) const ALL: u8 = 7;
}

impl Default for Integers {
    fn default() -> Integers {
        Integers { min: i64::MAX, max: i64::MIN, no_stamps: 0, far_day: false }
    }
}

impl Integers {
    #[inline]
    pub(super) fn observe(&mut self, integer: i64) {
        self.min = self.min.min(integer);
        self.max = self.max.max(integer);
        self.far_day |= is_far_day(integer);
        if self.no_stamps != stamp::ALL {
            self.no_stamps |= stamp::ALL & !stamps(integer);
        }
    }

    pub(super) fn join(&mut self, other: &Integers) {
        self.no_stamps |= other.no_stamps;
        self.far_day |= other.far_day;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn were_seen(&self) -> bool {
        self.min <= self.max
    }

    /// Every one is also a day and a time of day, all written in one way.
    pub(super) fn may_be_stamps(&self) -> bool {
        self.were_seen() && self.no_stamps != stamp::ALL
    }

    /// PostgreSQL takes some of them for a day of a year of more than four digits.
    pub(super) fn has_far_day(&self) -> bool {
        self.far_day
    }

    /// All lie between these.
    pub(super) fn within(&self, least: i64, greatest: i64) -> bool {
        self.min >= least && self.max <= greatest
    }

    /// The digits of the longest; 0 if there is none.
    pub(super) fn digits(&self) -> u16 {
        let digits = |integer: i64| integer.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
        if !self.were_seen() {
            return 0;
        }
        u16::try_from(digits(self.min).max(digits(self.max))).unwrap_or(u16::MAX)
    }
}

/// The year is all but the last four digits, which are month and day: 1706140812 is one of the year 170614.
#[inline]
fn is_far_day(integer: i64) -> bool {
    // The last year of PostgreSQL's dates.
    let year = integer / 10_000;
    // The calendar begins anew every 400 years.
    (10_000..=5_874_897).contains(&year) && Day::exists(2000 + year % 400, integer / 100 % 100, integer % 100)
}

/// The ways in which this is a day and a time of day: flags of [`stamp`].
fn stamps(integer: i64) -> u8 {
    // With fewer digits a year of two has lost its zero, and digits with a leading zero are no integers.
    if integer < 1_000_000_000 {
        return 0;
    }
    let part = |below: i64, size: i64| integer / below % size;
    let is_stamp = |year: i64, below_day: i64, minute: i64| {
        let hour = part(below_day / 100, 100);
        (1900..2100).contains(&year)
            && Day::exists(year, part(below_day * 100, 100), part(below_day, 100))
            && hour < 24
            && minute < 60
    };
    let found = [
        (stamp::YEAR_TO_HOUR, is_stamp(integer / 1_000_000, 100, 0)),
        (stamp::YEAR_TO_MINUTE, is_stamp(integer / 100_000_000, 10_000, part(1, 100))),
        (
            stamp::SHORT_YEAR_TO_MINUTE,
            is_stamp(1900 + integer / 100_000_000, 10_000, part(1, 100))
                || is_stamp(2000 + integer / 100_000_000, 10_000, part(1, 100)),
        ),
    ];
    found.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag).sum()
}

/// How wide numbers are that are no [`Integers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) before_max: u16,
    decimals_min: u16,
    pub(super) decimals_max: u16,
    /// Digits from the first that is not zero on.
    pub(super) significant_max: u16,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { before_max: 0, decimals_min: u16::MAX, decimals_max: 0, significant_max: 0 }
    }
}

impl Extent {
    pub(super) fn observe(&mut self, before: u16, decimals: u16, significant: u16) {
        self.before_max = self.before_max.max(before);
        self.decimals_min = self.decimals_min.min(decimals);
        self.decimals_max = self.decimals_max.max(decimals);
        self.significant_max = self.significant_max.max(significant);
    }

    /// An exponent moves the decimal sign; of a number with one only digits that no double has count as
    /// significant.
    fn observe_side(&mut self, side: &Side, power: Option<i32>) {
        let Some(power) = power else {
            return self.observe(side.before, side.decimals, side.significant);
        };
        let moved = |digits: u16, by: i32| u16::try_from(i32::from(digits).saturating_add(by)).unwrap_or(0);
        let significant = if side.significant > DOUBLE_WRITTEN_DIGITS_MAX { side.significant } else { 0 };
        self.observe(moved(side.before, power).max(1), moved(side.decimals, -power), significant);
    }

    pub(super) fn observe_plain(&mut self, plain: &Plain) {
        self.observe(plain.before, plain.decimals, plain.significant);
    }

    pub(super) fn join(&mut self, other: &Extent) {
        self.before_max = self.before_max.max(other.before_max);
        self.decimals_min = self.decimals_min.min(other.decimals_min);
        self.decimals_max = self.decimals_max.max(other.decimals_max);
        self.significant_max = self.significant_max.max(other.significant_max);
    }

    /// There is a number.
    pub(super) fn were_seen(&self) -> bool {
        self.decimals_min <= self.decimals_max
    }

    /// The decimals that all have, if they have the same; `integers` have none.
    pub(super) fn same_decimals(&self, integers: &Integers) -> Option<u16> {
        let mixed = self.decimals_min != self.decimals_max || integers.were_seen() && self.decimals_max > 0;
        (!mixed).then_some(self.decimals_max)
    }
}

/// A currency, none or several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Currency {
    #[default]
    None,
    One(char),
    Several,
}

impl Currency {
    pub(super) fn join(&mut self, other: &Currency) {
        *self = match (&*self, other) {
            (Currency::None, one) | (one, Currency::None) => one.clone(),
            (Currency::One(one), Currency::One(same)) if one == same => Currency::One(*one),
            _ => Currency::Several,
        };
    }
}

/// Flags of [`GroupedFacts`].
pub(super) mod dressed {
    /// There is a point or a comma.
    pub(in super::super) const POINT_OR_COMMA: u16 = 1;
    pub(in super::super) const PERCENT: u16 = 2;
    pub(in super::super) const NO_PERCENT: u16 = 4;
    pub(in super::super) const PARENTHESES: u16 = 8;
    pub(in super::super) const NO_PARENTHESES: u16 = 16;
    /// It is surely an amount, not a name made of digits in threes: a first group of less than three, a
    /// comma, or a currency. An address is none.
    pub(in super::super) const AMOUNT: u16 = 32;
    /// Four digits or more in a row before the fraction: whoever wrote this puts nothing between groups.
    pub(in super::super) const UNGROUPED: u16 = 64;
    /// Groups with a fraction or a currency, which cannot be anything but groups.
    pub(in super::super) const SURE_GROUPS: u16 = 128;
    /// Three groups or more that are no address.
    pub(in super::super) const SEVERAL_GROUPS: u16 = 256;
    /// It is the address of a host as well (`10.160.130.149`).
    pub(in super::super) const ADDRESS: u16 = 512;
    /// As PostgreSQL writes numbers, with a point that may stand between groups (`1.107`).
    pub(in super::super) const OPEN_POINT: u16 = 1024;
    /// The minus stands behind the digits.
    pub(in super::super) const MINUS_BEHIND: u16 = 2048;
    /// There is an exponent that is surely one.
    pub(in super::super) const EXPONENT: u16 = 4096;
    /// There is one that may be part of a name: `12E3`.
    pub(in super::super) const BARE_EXPONENT: u16 = 8192;
}

/// Numbers in other people's spelling, seen with one decimal sign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SideFacts {
    /// Separators of groups that some value does not allow.
    pub(super) refused: GroupSet,
    pub(super) extent: Extent,
}

/// Numbers in other people's spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GroupedFacts {
    /// With `.` before the fraction.
    pub(super) dot: SideFacts,
    /// With `,` before the fraction.
    pub(super) comma: SideFacts,
    pub(super) currency: Currency,
    /// Flags of [`dressed`].
    pub(super) dressed: u16,
}

impl SideFacts {
    /// `power` is that of an exponent.
    fn observe(&mut self, side: Option<Side>, power: Option<i32>, all: GroupSet) {
        match side {
            None => self.refused = all,
            Some(side) => {
                self.refused |= all & !side.groups;
                self.extent.observe_side(&side, power);
            }
        }
        self.settle(all);
    }

    fn join(&mut self, other: &SideFacts, all: GroupSet) {
        self.refused |= other.refused;
        self.extent.join(&other.extent);
        self.settle(all);
    }

    /// Forgets what can matter no more.
    fn settle(&mut self, all: GroupSet) {
        if self.refused == all {
            self.extent = Extent::default();
        }
    }
}

impl GroupedFacts {
    const DOT: GroupSet = groups_beside(b'.');
    const COMMA: GroupSet = groups_beside(b',');

    pub(super) fn observe(&mut self, value: &Grouped<'_>) {
        let (dot, comma) = value.sides();
        let exponent = value.exponent();
        let power = exponent.map(|(power, _)| power);
        self.dot.observe(dot, power, Self::DOT);
        self.comma.observe(comma, power, Self::COMMA);
        if let Some(sign) = value.currency {
            self.currency.join(&Currency::One(sign));
        }
        let any = |test: &dyn Fn(&Side) -> bool| [dot, comma].iter().flatten().any(test);
        let short_group = any(&|side| side.first_group.is_some_and(|digits| digits < 3));
        let address = value.is_address();
        let amount = short_group && !address || value.currency.is_some() || value.body.contains(',');
        let ungrouped = any(&|side| side.first_group.is_none() && side.before > GROUP_DIGITS_MAX);
        let sure = any(&|side| side.first_group.is_some() && (side.decimals > 0 || value.currency.is_some()));
        let several = any(&|side| side.first_group.is_some() && side.before > 2 * GROUP_DIGITS_MAX);
        self.dressed |= if value.percent { dressed::PERCENT } else { dressed::NO_PERCENT };
        self.dressed |= if value.parentheses { dressed::PARENTHESES } else { dressed::NO_PARENTHESES };
        for (is, flag) in [
            (amount, dressed::AMOUNT),
            (value.body.contains(['.', ',']), dressed::POINT_OR_COMMA),
            (ungrouped, dressed::UNGROUPED),
            (sure, dressed::SURE_GROUPS),
            (several && !address, dressed::SEVERAL_GROUPS),
            (address, dressed::ADDRESS),
            (value.minus_behind, dressed::MINUS_BEHIND),
            (value.has_open_point((dot, comma)), dressed::OPEN_POINT),
            (exponent.is_some_and(|(_, exponent)| exponent == Exponent::Sure), dressed::EXPONENT),
            (exponent.is_some_and(|(_, exponent)| exponent == Exponent::Bare), dressed::BARE_EXPONENT),
        ] {
            self.dressed |= if is { flag } else { 0 };
        }
    }

    /// What [`GroupedFacts::observe`] does, for digits with a point among them as PostgreSQL writes numbers:
    /// columns of these are too common to take every value apart.
    pub(super) fn observe_decimal(&mut self, plain: &Plain) {
        let below_one = plain.significant < plain.before + plain.decimals;
        let group = plain.decimals == 3 && plain.before <= 3 && !below_one;
        let Plain { before, decimals, significant, .. } = *plain;
        let dot = Side { groups: Self::DOT, before, decimals, significant, first_group: None };
        let before_comma = before.saturating_add(3);
        let comma =
            Side { groups: POINT, before: before_comma, decimals: 0, significant, first_group: Some(0) };
        self.dot.observe((before <= UNGROUPED_DIGITS_MAX).then_some(dot), None, Self::DOT);
        self.comma.observe(group.then_some(comma), None, Self::COMMA);
        self.dressed |= dressed::NO_PERCENT | dressed::NO_PARENTHESES | dressed::POINT_OR_COMMA;
        self.dressed |= if group { dressed::OPEN_POINT } else { 0 };
        self.dressed |= if group && plain.before < 3 { dressed::AMOUNT } else { 0 };
        let ungrouped = (GROUP_DIGITS_MAX + 1..=UNGROUPED_DIGITS_MAX).contains(&plain.before);
        self.dressed |= if ungrouped { dressed::UNGROUPED } else { 0 };
    }

    pub(super) fn join(&mut self, other: &GroupedFacts) {
        self.dot.join(&other.dot, Self::DOT);
        self.comma.join(&other.comma, Self::COMMA);
        self.currency.join(&other.currency);
        self.dressed |= other.dressed;
    }

    /// Something speaks against the groups, and no value proves them: others have four digits or more
    /// without, or they are addresses as well. `integers` are those of the same column.
    pub(super) fn are_doubtful(&self, integers: &Integers) -> bool {
        let has = |flag: u16| self.dressed & flag != 0;
        let ungrouped = has(dressed::UNGROUPED) || integers.digits() > GROUP_DIGITS_MAX;
        !has(dressed::SURE_GROUPS) && (ungrouped || has(dressed::ADDRESS) && !has(dressed::SEVERAL_GROUPS))
    }

    /// The separators left beside `.` and beside `,`; none left: that is not the decimal sign.
    pub(super) fn groups(&self) -> (GroupSet, GroupSet) {
        (Self::DOT & !self.dot.refused, Self::COMMA & !self.comma.refused)
    }

    pub(super) fn is_possible(&self) -> bool {
        self.groups() != (0, 0)
    }
}

/// Flags of [`DateFacts`].
pub(super) mod timed {
    /// A date alone.
    pub(in super::super) const BARE: u8 = 1;
    /// With a time of day, without offset.
    pub(in super::super) const LOCAL: u8 = 2;
    /// With a time of day and its offset from UTC.
    pub(in super::super) const ZONED: u8 = 4;
}

/// Dates of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DateFacts {
    /// Flags of [`timed`].
    pub(super) timed: u8,
    /// Orders in which some date does not exist, as flags of [`super::date::order`].
    pub(super) refused: u8,
    /// Pairs of orders in which some date is not the same: the sum of both flags less one is the place of
    /// the bit.
    differ: u8,
    /// Some date has no year of four digits in front.
    pub(super) ordered: bool,
    pub(super) spelling: Spelling,
    /// Orders in which some year of two digits is one from 2050 to 2069, as flags of [`super::date::order`];
    /// all of them for a month's name.
    pub(super) far: u8,
}

impl DateFacts {
    pub(super) fn observe(&mut self, written: &Written<'_>) {
        self.timed |= timed(written.clock.as_ref());
        match written.layout {
            Some(layout) => self.spelling.observe(layout, written.clock.map_or(b"", |clock| clock.fraction)),
            None => self.spelling.observe_other(),
        }
        if let (Date::Named(day), true) = (&written.date, written.short_year) {
            self.far |= if day.is_far() { super::date::order::ALL } else { 0 };
        }
        let Date::Numbers(days) = &written.date else { return };
        self.ordered = true;
        for (day, (_, flag)) in days.iter().zip(ORDERS).filter(|_| written.short_year) {
            self.far |= if day.is_some_and(Day::is_far) { flag } else { 0 };
        }
        for (day, (_, flag)) in days.iter().zip(ORDERS) {
            self.refused |= if day.is_none() { flag } else { 0 };
            for (other, (_, other_flag)) in days.iter().zip(ORDERS) {
                self.differ |= if day != other { pair(flag, other_flag) } else { 0 };
            }
        }
    }

    pub(super) fn join(&mut self, other: &DateFacts) {
        self.timed |= other.timed;
        self.refused |= other.refused;
        self.differ |= other.differ;
        self.ordered |= other.ordered;
        self.spelling.join(&other.spelling);
        self.far |= other.far;
    }

    /// A year of two digits is one from 2050 to 2069 in this order.
    pub(super) fn is_far_in(&self, order: DateOrder) -> bool {
        ORDERS.iter().any(|(known, flag)| *known == order && self.far & flag != 0)
    }

    /// Every order has a date that does not exist in it.
    pub(super) fn is_possible(&self) -> bool {
        self.refused != super::date::order::ALL
    }

    /// The order of all dates seen: the one left, or any of those left if all give the same days. `None`: the
    /// data does not say.
    pub(super) fn proven(&self) -> Option<DateOrder> {
        let left = || ORDERS.iter().map(|(_, flag)| *flag).filter(|flag| self.refused & flag == 0);
        let differ = left().any(|one| left().any(|two| self.differ & pair(one, two) != 0));
        if differ { None } else { self.orders_left().next_back() }
    }

    /// The order of these dates and of all others beside them: the only one left. Where several are left and
    /// give the same days, as for 01/01/2020, a date that was not seen may be another day in each.
    pub(super) fn only_order(&self) -> Option<DateOrder> {
        let mut left = self.orders_left();
        left.next().filter(|_| left.next().is_none())
    }

    /// Orders in which every date exists.
    pub(super) fn orders_left(&self) -> impl DoubleEndedIterator<Item = DateOrder> + '_ {
        ORDERS.iter().filter(|(_, flag)| self.refused & flag == 0).map(|(order, _)| *order)
    }
}

/// The bit of two orders, whichever comes first; none for the same twice.
fn pair(one: u8, two: u8) -> u8 {
    if one == two { 0 } else { 1 << (one + two - 1) }
}

fn timed(clock: Option<&Clock<'_>>) -> u8 {
    match clock {
        None => timed::BARE,
        Some(clock) if clock.zone.is_none() => timed::LOCAL,
        Some(_) => timed::ZONED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::{grouped::take_apart, number};

    #[test]
    fn integers_that_are_days_and_times_too_are_known() {
        let may_be_stamps = |integers: &[i64]| {
            let mut state = Integers::default();
            integers.iter().for_each(|integer| state.observe(*integer));
            state.may_be_stamps()
        };
        assert!(may_be_stamps(&[2_024_013_112, 2_024_013_123]));
        assert!(may_be_stamps(&[202_401_311_230, 199_912_312_359]));
        assert!(may_be_stamps(&[2_401_311_230, 9_912_312_359]));
        assert!(!may_be_stamps(&[2_024_013_112, 202_401_311_230]));
        for other in [
            1_706_695_445,
            2_024_013_212,
            2_024_013_124,
            202_401_311_260,
            401_311_230,
            20_240_131,
            0,
            -1,
            i64::MAX,
        ] {
            assert!(!may_be_stamps(&[2_024_013_112, other]), "{other}");
        }
        assert!(!may_be_stamps(&[]) && !may_be_stamps(&[i64::MIN]));
    }

    #[test]
    fn integers_that_postgresql_takes_for_days_of_far_years_are_known() {
        for (integer, is) in [
            (1_706_140_812, true),
            (1_704_000_229, true),
            (58_748_971_231, true),
            (1_706_140_899, false),
            (1_706_140_229, false),
            (58_748_981_231, false),
            (20_240_131, false),
            (-1_706_140_812, false),
        ] {
            let mut state = Integers::default();
            state.observe(integer);
            assert_eq!(state.has_far_day(), is, "{integer}");
        }
    }

    #[test]
    fn decimals_count_as_if_taken_apart() {
        for value in [
            "1.5",
            "-12.345",
            "123.456",
            "1234.567",
            "0.123",
            "0.5",
            "1234567890123456789.5",
            "999.999",
            "10.250",
        ] {
            let (mut quick, mut slow) = (GroupedFacts::default(), GroupedFacts::default());
            let plain = number::plain(value.as_bytes()).unwrap();
            assert!(plain.is_pointed());
            quick.observe_decimal(&plain);
            slow.observe(&take_apart(value.as_bytes()).unwrap());
            assert_eq!(quick, slow, "{value}");
        }
    }
}
