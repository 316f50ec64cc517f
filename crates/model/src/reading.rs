//! Values in other people's spelling, and records in other people's shape.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of a session that tell how the server reads values (DateStyle, TimeZone ...), by their names.
/// None: not known.
pub type ValueSettings = BTreeMap<String, String>;

/// In which order a date is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// 2024-01-31, with any separator.
    Ymd,
    /// 31/01/2024
    Dmy,
    /// 01/31/2024
    Mdy,
}

/// How the values of a column are written, where PostgreSQL would not read them as they stand, or not
/// surely in the same way. A reading rewrites each value into the spelling that PostgreSQL reads in
/// every setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// A date in numbers, a time of day behind it or not.
    Date(DateOrder),
    /// A date with the English name of its month, in any usual order: `Jan 31, 2024`, `31-Jan-24`.
    MonthName,
    /// Seconds since 1970 UTC.
    EpochSeconds,
    /// Milliseconds since 1970 UTC.
    EpochMilliseconds,
    /// A number with digit groups, a decimal comma, a currency, a sign of percent, parentheses or its minus
    /// behind it.
    Number {
        /// What stands between groups of digits, if anything.
        group: Option<char>,
        /// What stands before the fraction.
        decimal: char,
        /// `$74.69`, `74,69 €`: the sign is dropped.
        currency: bool,
        /// `(12)` is -12.
        parentheses: bool,
        /// `12-` is -12.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        minus_behind: bool,
        /// `12 %` is 12: the sign is dropped, the number stays as it is written.
        percent: bool,
        /// The sign that the sample has: no other currency is read than this one, and where it is `%`, no
        /// number without it. `None` where none was seen, or a person has said how numbers are written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sign: Option<char>,
    },
    /// `Y`/`N`, `yes`/`no`, `on`/`off`, `t`/`f`, `true`/`false` in any case.
    Boolean,
}

/// What `--lenient` did to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mend {
    /// Fields were missing at its end and became NULL.
    ShortRow,
    /// Surplus fields were empty and were dropped.
    SurplusEmpty,
    /// A quote that opens or closes nothing became a datum.
    StrayQuote,
    /// It was quoted, or its quotes were escaped, in another way than the file's.
    OtherQuotes,
    /// It was split by another delimiter than the file's.
    OtherDelimiter,
    /// It ended in another way than the file's records.
    OtherLineEnding,
    /// Bytes that are no character of the encoding became U+FFFD.
    BrokenBytes,
    /// A byte order mark before it was dropped.
    ByteOrderMark,
    /// NUL bytes were dropped.
    NulBytes,
    /// It was a blank line, or one of delimiters alone of another number than the file's, and was dropped.
    BlankRow,
    /// It is beyond mending and is not in the table.
    LeftOut,
}

impl Mend {
    /// All kinds, in their order.
    pub const ALL: [Mend; 11] = [
        Mend::ShortRow,
        Mend::SurplusEmpty,
        Mend::StrayQuote,
        Mend::OtherQuotes,
        Mend::OtherDelimiter,
        Mend::OtherLineEnding,
        Mend::BrokenBytes,
        Mend::ByteOrderMark,
        Mend::NulBytes,
        Mend::BlankRow,
        Mend::LeftOut,
    ];
}
