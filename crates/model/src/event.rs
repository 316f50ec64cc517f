//! What a load tells its listeners: the progress bar, the JSON log, a Python callback.
//!
//! Stages report; they never print.

use crate::plan::Plan;
use crate::summary::Summary;
use serde::Serialize;
use std::time::Duration;

/// Where time is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for bytes from a file, object store or pipe.
    Read,
    /// Decompressing.
    Decompress,
    /// Finding record borders.
    Split,
    /// Rewriting records.
    Encode,
    /// Sending to the server and waiting for it to take the data.
    Copy,
    /// Waiting for COMMIT.
    Commit,
    /// Dropping indexes, keys and foreign keys, and building them again.
    Indexes,
    /// The barrier and the last look at the ledger.
    Finish,
    /// Bringing rows from staging tables into theirs.
    Apply,
    /// Comparing what is stored with the sources.
    Verify,
    /// VACUUM of tables that have all their rows.
    Vacuum,
    /// ANALYZE of tables that have all their rows.
    Analyze,
    /// CHECKPOINT behind the last row.
    Checkpoint,
}

/// One thing that happened. Serialised with a `type` key.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The plan stands; loading begins.
    Planned {
        /// The plan.
        plan: Box<Plan>,
    },
    /// Stored bytes of a file were read (compressed where the file is).
    Read {
        /// Index into the plan's files.
        file_no: u32,
        /// How many more.
        bytes: u64,
    },
    /// Stored bytes of a file that are not read: an earlier run has stored what is in them.
    Skipped {
        /// Index into the plan's files.
        file_no: u32,
        /// How many more.
        bytes: u64,
    },
    /// A chunk is in the table.
    Stored {
        /// Index into the plan's files.
        file_no: u32,
        /// Rows.
        rows: u64,
        /// Plain bytes.
        bytes: u64,
        /// An earlier or simultaneous run had stored it.
        before: bool,
    },
    /// Rows of a file that were stored went with their transaction, and are not there any more.
    Lost {
        /// Index into the plan's files.
        file_no: u32,
        /// How many: all of the file so far.
        rows: u64,
    },
    /// A file is in the table.
    FileDone {
        /// Index into the plan's files.
        file_no: u32,
    },
    /// What the sessions are doing, sampled from `pg_stat_activity`.
    Sessions {
        /// Sessions that copy.
        open: u32,
        /// Wait event (`Type:Event`, or `CPU` when running) -> sessions seen in it.
        waits: Vec<(String, u32)>,
        /// Plain bytes of chunks that they have sent and that are not in yet.
        sent_bytes: u64,
    },
    /// Something transient failed and will be tried again.
    Retry {
        /// Why, without row values.
        reason: String,
        /// After this long.
        #[serde(serialize_with = "as_ms")]
        delay: Duration,
    },
    /// No chunk is begun for this reason, or, without one, chunks are begun again.
    Paused {
        /// Why.
        reason: Option<String>,
    },
    /// The load is at this, which how much was read and stored says nothing of: no rows are copied, or some
    /// of those that a crash of the server took, or those of a chunk wait for a wider column; without it,
    /// rows are copied.
    Phase {
        /// What it is at, for the middle of a sentence.
        what: Option<String>,
    },
    /// A sentence for the user.
    Notice {
        /// The sentence.
        message: String,
    },
    /// Something that the user should know before relying on the load, though it goes on.
    Warning {
        /// The sentence.
        message: String,
    },
    /// The end, good or bad.
    Done {
        /// The summary.
        summary: Box<Summary>,
    },
}

fn as_ms<S: serde::Serializer>(delay: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
}

/// Somebody who wants to know. Called from many threads; must return quickly.
pub trait Listener: Send + Sync {
    /// Takes one event.
    fn on_event(&self, event: &Event);
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Listener for Silent {
    fn on_event(&self, _event: &Event) {}
}
