//! What came of a check. Its JSON form is the document `howdah check --json` prints; the keys are stable, and
//! mean what they mean in a [`crate::Summary`] where they are the same.

use crate::reading::Mend;
use crate::summary::Status;
use serde::Serialize;
use std::collections::BTreeMap;

/// One file's account.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedFile {
    /// The file.
    pub location: String,
    /// The table it is meant for.
    pub table: String,
    /// Records found in it.
    pub rows_read: u64,
    /// Those that the table would take.
    pub rows_good: u64,
    /// Those that it would not.
    pub rows_bad: u64,
    /// Bytes read as stored (compressed where the file is).
    pub bytes_read: u64,
    /// All of it was checked.
    pub done: bool,
}

/// Where a bad record stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadPlace {
    /// The file.
    pub file: String,
    /// The line in which it begins, as an editor counts, where that can be told.
    pub line: Option<u64>,
    /// Its number, from 1, the header not counted; `None` where that cannot be told.
    pub record: Option<u64>,
    /// Its first byte in the plain bytes of the file, where that can be told.
    pub byte: Option<u64>,
    /// The file of the earlier record whose key it repeats.
    pub first_file: Option<String>,
    /// The number of that record.
    pub first_record: Option<u64>,
}

/// Bad records of one reason.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The table.
    pub table: String,
    /// PostgreSQL's code for the reason; `None` for records that could not be read.
    pub sqlstate: Option<String>,
    /// The column, where it is about one.
    pub column: Option<String>,
    /// The constraint or index, where there is one.
    pub constraint: Option<String>,
    /// Why, without row values.
    pub reason: String,
    /// How many records.
    pub records: u64,
    /// The first of them.
    pub first: Vec<BadPlace>,
}

/// Something that was not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// The table.
    pub table: String,
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// The whole account of a check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// How it ended; `done` whatever was found.
    pub status: Status,
    /// Records found in the sources.
    pub rows_read: u64,
    /// Those that the tables would take.
    pub rows_good: u64,
    /// Those that they would not: each once, whatever the number of reasons.
    pub rows_bad: u64,
    /// What is wrong with them, by reason.
    pub findings: Vec<Finding>,
    /// What storing them might find besides.
    pub not_checked: Vec<NotChecked>,
    /// What is not as may be expected: each a sentence, without row values.
    pub warnings: Vec<String>,
    /// As in the summary of a load.
    pub unsure: Vec<String>,
    /// Comments passed over.
    pub comments: u64,
    /// What was mended, and how often.
    pub mended: BTreeMap<Mend, u64>,
    /// Bytes read as stored.
    pub bytes_read: u64,
    /// From the first step after planning to the end.
    pub wall_seconds: f64,
    /// Transient failures that were tried again.
    pub retries: u64,
    /// Per file.
    pub files: Vec<CheckedFile>,
}
