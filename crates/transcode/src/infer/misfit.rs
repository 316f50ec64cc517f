//! Values that surely cannot be of the type that a column has.
//!
//! Said at plan time, before a load fails at its first record. Only what is certain is said: PostgreSQL reads
//! more than this module's kinds (`infinity`, `today`, `NaN`), so a column of text is never a misfit. One
//! thing it reads is refused all the same: it takes 2024011215 for a day of the year 202401.

use super::among::Among;
use super::column::ColumnState;
use super::kinds::Kinds;
use super::number::odd;
use super::reading::{base_name, has_open_points, reading_for};

/// Kinds that neither numbers nor dates have anything in common with.
const WORDS: Kinds = Kinds::UUID.or(Kinds::JSON).or(Kinds::INET).or(Kinds::BOOLEAN);

/// Dates without anything between their parts have eight digits.
const DATE_DIGITS_MAX: i64 = 99_999_999;

/// Why some of the values cannot be stored in a column of this type, neither as they stand nor with the
/// reading that [`reading_for`] proposes; the message names kinds and no values. `None`: they can, or it is
/// not certain.
pub fn misfit(state: &ColumnState, type_name: &str) -> Option<String> {
    let possible = state.possible;
    if state.is_empty() || possible.is_empty() || reading_for(state, &Among::default(), type_name).is_some() {
        return None;
    }
    let whole = |least: i64, greatest: i64| {
        let in_range = possible.meet(Kinds::INTEGER) && state.integers.within(least, greatest);
        let digits = !possible.meet(Kinds::INTEGER) && possible.meet(Kinds::DIGITS);
        !(in_range || digits && state.odd & odd::LONG == 0)
    };
    let are_long = possible.meet(Kinds::INTEGER) && !state.integers.within(i64::MIN, DATE_DIGITS_MAX);
    let refused = match base_name(type_name).as_str() {
        "smallint" | "int2" => whole(i64::from(i16::MIN), i64::from(i16::MAX)),
        "integer" | "int" | "int4" => whole(i64::from(i32::MIN), i64::from(i32::MAX)),
        "bigint" | "int8" => whole(i64::MIN, i64::MAX),
        "numeric" | "decimal" | "real" | "float" | "float4" | "float8" | "double precision" => {
            !possible.meet(Kinds::PLAIN_NUMBERS)
        }
        "boolean" | "bool" => {
            possible.meet(Kinds::DATE.or(Kinds::NAMED_DATE).or(Kinds::TIME)) || is_other(state)
        }
        "date" | "timestamp" | "timestamptz" if are_long && state.integers.may_be_stamps() => {
            let why = "integers that may be dates and hours as well as counts since 1970";
            return Some(format!("{type_name} cannot hold the values, which are {why}"));
        }
        "date" | "timestamp" | "timestamptz" => possible.meet(WORDS.or(Kinds::TIME)) || are_long,
        "time" => possible.meet(WORDS),
        "uuid" => {
            possible.meet(WORDS.without(Kinds::UUID).or(Kinds::DATE).or(Kinds::TIME).or(Kinds::INTEGER))
        }
        "inet" | "cidr" => possible.meet(WORDS.without(Kinds::INET).or(Kinds::DATE).or(Kinds::TIME)),
        "json" | "jsonb" => {
            possible.meet(Kinds::UUID.or(Kinds::INET).or(Kinds::DATE).or(Kinds::NAMED_DATE).or(Kinds::TIME))
        }
        _ => return None,
    };
    refused.then(|| {
        let found = state.finish(true);
        format!("{type_name} cannot hold the values, which are {}", found.evidence)
    })
}

/// The server would take some values of a [`misfit`] for others than they may be: long integers for days of
/// far years, a point between groups for one before a fraction.
pub fn may_be_misread(state: &ColumnState, type_name: &str) -> bool {
    match base_name(type_name).as_str() {
        "date" | "timestamp" | "timestamptz" => are_plain_numbers(state),
        "numeric" | "decimal" | "real" | "float" | "float4" | "float8" | "double precision" => {
            has_open_points(state)
        }
        _ => false,
    }
}

/// Why a column of this type must not get values that are not all of one kind, some of which the server would
/// take for something else: a number or a count since 1970 beside a word, or beside one in another spelling.
/// The message names no values.
pub fn doubtful(state: &ColumnState, among: &Among, type_name: &str) -> Option<&'static str> {
    if state.is_empty() || reading_for(state, among, type_name).is_some() {
        return None;
    }
    let (known, numbers) = (state.possible, among.numbers());
    match base_name(type_name).as_str() {
        "numeric" | "decimal" | "money" | "real" | "float" | "float4" | "float8" | "double precision" => {
            let are_alike = known.meet(Kinds::GROUPED.or(Kinds::PLAIN_NUMBERS))
                || numbers.possible.meet(Kinds::PLAIN_NUMBERS);
            let why = "its values are written in several ways, so that a point may stand before a fraction or between groups";
            (!are_alike && among.has_open_point()).then_some(why)
        }
        "date" | "timestamp" | "timestamptz" => {
            let are_alike = known.meet(Kinds::DATE.or(Kinds::NAMED_DATE).or(Kinds::INTEGER));
            // Beside days nobody takes them for counts, and what the server takes for no day it refuses.
            let are_long = if among.has_days() {
                numbers.integers.has_far_day()
            } else {
                numbers.integers.were_seen() && !numbers.integers.within(i64::MIN, DATE_DIGITS_MAX)
            };
            let why =
                "some of its values are long integers, which the server would take for days of far years";
            (!are_alike && are_long).then_some(why)
        }
        _ => None,
    }
}

/// All values are of one kind of numbers, however many digits they have, and whatever zeros and sign come
/// before these.
pub fn are_plain_numbers(state: &ColumnState) -> bool {
    !state.is_empty() && state.possible.meet(Kinds::PLAIN_NUMBERS)
}

/// All values are numbers without an exponent, of no more digits than these before the point and behind it: a
/// numeric column of such limits holds each as it is.
pub fn are_held_by_numeric(state: &ColumnState, before: u32, decimals: u32) -> bool {
    !state.is_empty()
        && state.possible.meet(Kinds::DECIMAL)
        && u32::from(state.decimals.before_max.max(state.integers.digits())) <= before
        && u32::from(state.decimals.decimals_max) <= decimals
}

/// Numbers beyond 0 and 1, or kinds that have no truth.
fn is_other(state: &ColumnState) -> bool {
    let number = match state.possible.meet(Kinds::INTEGER) {
        true => !state.integers.within(0, 1),
        false => {
            state.possible.meet(Kinds::PLAIN_NUMBERS.or(Kinds::GROUPED))
                && !state.possible.meet(Kinds::BOOLEAN)
        }
    };
    number || state.possible.meet(WORDS.without(Kinds::BOOLEAN))
}
