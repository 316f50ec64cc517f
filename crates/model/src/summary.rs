//! What came of a load. Its JSON form is the document `--json` prints; the keys are stable.

use crate::arrival::Changes;
use crate::event::Stage;
use crate::reading::{Mend, Reading};
use crate::verify::Verified;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every row is stored.
    Done,
    /// It stopped at an error; the ledger says how far it came.
    Failed,
    /// The user stopped it; it can be resumed.
    Interrupted,
}

/// One file's account.
#[derive(Debug, Clone, Serialize)]
pub struct FileSummary {
    /// The file.
    pub location: String,
    /// The table it went to.
    pub table: String,
    /// Records found in it.
    pub rows_read: u64,
    /// Rows in the table, those of earlier runs of the same job included.
    pub rows_stored: u64,
    /// Records left out, those of earlier runs of the same job included.
    pub rows_rejected: u64,
    /// Bytes read as stored (compressed where the file is).
    pub bytes_read: u64,
    /// All of it is in.
    pub done: bool,
}

/// A record that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The file.
    pub file: String,
    /// Its number, from 1, the header not counted, where that can be told.
    pub record: Option<u64>,
    /// The line in which it begins, from 1, as an editor counts, where that can be told soon.
    pub line: Option<u64>,
    /// Its first byte in the plain bytes of the file, where that can be told.
    pub byte: Option<u64>,
    /// The column whose value was refused, where one was.
    pub column: Option<String>,
    /// PostgreSQL's code for the reason, where the table refused it.
    pub sqlstate: Option<String>,
    /// Why.
    pub reason: String,
}

/// Values that were read in another spelling than PostgreSQL's.
#[derive(Debug, Clone, Serialize)]
pub struct ReadValues {
    /// `schema.name`.
    pub table: String,
    /// The column.
    pub column: String,
    /// How they are spelled.
    pub reading: Reading,
    /// How many there were.
    pub values: u64,
}

/// One table's account.
#[derive(Debug, Clone, Serialize)]
pub struct TableSummary {
    /// `schema.name`.
    pub table: String,
    /// Records found for it.
    pub rows_read: u64,
    /// Rows stored, those of earlier runs of the same job included.
    pub rows_stored: u64,
    /// What became of the rows that were there, and of those that came, by all runs of the job; null where
    /// rows are appended as they are read, and until the table is done.
    pub changes: Option<Changes>,
}

/// Why the number of sessions was changed or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepReason {
    /// The first number of a search was measured.
    Measured,
    /// More sessions were faster.
    Faster,
    /// More were not.
    NoGain,
    /// Fewer were as fast.
    AsFast,
    /// Fewer were slower.
    Slower,
    /// Most sessions wait for one another: one more would wait too.
    Queues,
    /// Most sessions have nothing to copy: the sources bring no more.
    NoChunks,
    /// The server's CPUs are used up.
    CpusFull,
    /// More are not allowed: memory, or connections that are left to others.
    Ceiling,
    /// The server had no room for another session.
    Refused,
}

/// One step of the search for the number of sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionsStep {
    /// When, counted from the first bytes that the server took.
    pub seconds: f64,
    /// So many sessions were measured.
    pub before: u32,
    /// So many copy from now on.
    pub after: u32,
    /// Plain bytes of the sources that the server took meanwhile.
    pub mb_per_second: f64,
    /// What the sessions were seen at most meanwhile; null where they were not seen.
    pub wait: Option<String>,
    /// Its share of all that was seen.
    pub wait_share: f64,
    /// Why.
    pub reason: StepReason,
    /// The search is over for now.
    pub settled: bool,
}

/// What a share of a [`Limit`] is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// The time of the whole run.
    Time,
    /// What the sessions that copied were seen at.
    Sessions,
}

/// What held a load back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// For people.
    pub what: String,
    /// From 0 to 1.
    pub share: f64,
    /// Of what.
    pub of: LimitOf,
}

/// The whole account of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The job's identity in the ledger.
    pub job: String,
    /// How it ended.
    pub status: Status,
    /// Where the rows went: server and database as an URL, without a password.
    pub server: String,
    /// Records found in the sources.
    pub rows_read: u64,
    /// Rows that the tables have taken, those of earlier runs of the same job included. With a key, all
    /// records that were not rejected: what became of them is said by [`Changes`].
    pub rows_stored: u64,
    /// Of `rows_stored`, those an earlier or simultaneous run of the same job had stored.
    pub rows_stored_before: u64,
    /// Rows that wait in staging tables, where a load did not come to the point at which they come into their
    /// tables.
    pub rows_waiting: u64,
    /// Records left out, those of earlier runs of the same job included.
    pub rows_rejected: u64,
    /// Of `rows_rejected`, those an earlier run of the same job had left out.
    pub rows_rejected_before: u64,
    /// Comments passed over: lines that begin as they do in their file, and have not the shape of its
    /// records.
    pub comments: u64,
    /// What this run mended, and how often; among it all records left out, as in `rows_rejected`.
    pub mended: BTreeMap<Mend, u64>,
    /// The first records left out of each file, where this run has read them.
    pub left_out: Vec<LeftOut>,
    /// What is not as may be expected, though the load went on: each a sentence, without row values.
    pub warnings: Vec<String>,
    /// What the data did not tell, so that it was guessed: of which file or table, and the option that
    /// settles it.
    pub unsure: Vec<String>,
    /// Values in other people's spelling.
    pub read: Vec<ReadValues>,
    /// Bytes read as stored.
    pub bytes_read: u64,
    /// From the beginning of planning to the first step after it: the server reached, files and tables looked
    /// at, the job begun.
    pub planning_seconds: f64,
    /// From the first step after planning to the end of this run.
    pub wall_seconds: f64,
    /// Busy or waiting seconds per stage, added up over threads and sessions.
    pub stages: BTreeMap<Stage, f64>,
    /// The largest number of sessions that copied at once.
    pub sessions: u32,
    /// How their number was found: the first and the last steps; empty where it was fixed, or the load was
    /// over before the first.
    pub sessions_trace: Vec<SessionsStep>,
    /// Wait event -> share of samples, over all sampled sessions.
    pub waits: BTreeMap<String, f64>,
    /// The one thing that held the load back; null where it was too short to be seen.
    pub limit: Option<Limit>,
    /// Transient failures that were tried again.
    pub retries: u64,
    /// Settings that were changed while rows came, `name of what = value`; they are put back.
    pub tuned: Vec<String>,
    /// For how long no chunk was begun because the server was short of something.
    pub paused_seconds: f64,
    /// Per file.
    pub files: Vec<FileSummary>,
    /// Per table.
    pub tables: Vec<TableSummary>,
    /// What was found equal when the tables were compared with the sources; null where that was not asked,
    /// and until it is done.
    pub verified: Option<Verified>,
}
