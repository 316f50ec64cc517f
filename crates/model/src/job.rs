//! What the user wants loaded, resolved from options, environment and job file.
//!
//! A job holds no secret: connection strings and credentials travel beside it, so that it can be
//! printed, hashed and kept in the ledger.

use crate::format::Format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sources that go to one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// A path, glob, directory, `-`, or URL (`s3://`, `gs://`, `az://`, `http://`, `https://`).
    /// May hold one `{table}` placeholder, which matches one or more bytes other than `/`.
    pub location: String,
    /// The relation as the user wrote it (`[schema.]name`, quoted where needed).
    /// `None` takes the job's `table`, or what `{table}` matched.
    pub table: Option<String>,
}

/// How many sessions copy at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jobs {
    /// As many as help, found while loading.
    Auto,
    /// Exactly this many.
    Fixed(u32),
}

/// Where the ledger is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LedgerChoice {
    /// In this schema of the target database.
    Schema(String),
    /// Nowhere: no resume, and an answer lost at COMMIT cannot be settled.
    None,
}

/// One load, as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// A name given by the user; otherwise the identity is a digest of sources, table and options.
    pub id: Option<String>,
    /// What to load.
    pub sources: Vec<SourceSpec>,
    /// The relation for sources that name none.
    pub table: Option<String>,
    /// How the files are written.
    pub format: Format,
    /// Table columns in the order of the file's fields; with a header, the header decides.
    pub columns: Option<Vec<String>>,
    /// File column -> table column, where the names differ.
    pub map: BTreeMap<String, String>,
    /// Leave out file columns that the table does not have.
    pub ignore_extra: bool,
    /// Bytes of plain data between chunk borders; `None` lets the plan choose.
    pub chunk_bytes: Option<u64>,
    /// What the process may hold in memory.
    pub memory_bytes: u64,
    /// Sessions that copy at once.
    pub jobs: Jobs,
    /// Where progress is remembered.
    pub ledger: LedgerChoice,
    /// Load even if an equal job has finished before.
    pub force: bool,
    /// How long transient failures are retried before the load gives up, counted from the last progress.
    pub retry_for_ms: u64,
}
