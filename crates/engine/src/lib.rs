//! The conductor: the only crate that sees source, transcode and target at once.
//!
//! Three verbs, used by every front end and nothing deeper:
//!
//! 1. [`plan()`] decides everything before a byte moves and touches nothing;
//! 2. [`load()`] executes a plan as a stream of exactly-once chunks (`pipeline` is that flow on one screen);
//! 3. `finish` makes the result durable, loads again what a server crash took, and closes the ledger.
//!
//! [`bench()`] measures the three against one plain COPY. Around them: `budget` owns every buffer and queue, `retry` decides from an error's kind whether to
//! try again, [`Stop`] carries a Ctrl-C to whoever waits.

mod after;
pub mod again;
mod arrival;
mod attend;
mod beforehand;
mod begin;
pub mod bench;
mod budget;
pub mod check;
mod connection;
mod disk;
mod done;
mod emptied;
mod feed;
mod finish;
mod frozen;
mod gate;
mod guards;
pub mod history;
mod in_part;
mod indexes;
mod jobs;
mod limit;
pub mod load;
mod locate;
mod misfits;
mod numbers;
mod partitioner;
mod pipeline;
pub mod plan;
mod predecessor;
mod probes;
pub mod rejected;
mod rejects;
pub mod restore;
mod retry;
mod sequences;
mod sessions;
mod settle;
mod spot;
mod statistics;
mod stop;
mod tally;
mod tries;
mod triggers;
mod tune;
mod values;
mod verify;
mod watch;
mod widen;

pub use bench::bench;
pub use check::check;
pub use connection::{Absent, Connection};
pub use howdah_model as model;
pub use howdah_source::{Sources, is_among};
pub use howdah_target::embedded;
pub use howdah_transcode::copy_options;
pub use howdah_transcode::infer::spelling;
pub use load::load;
pub use plan::{Planned, in_tables, plan, plan_to_load};
pub use stop::Stop;

use howdah_model::Listener;
use std::sync::Arc;

/// What every verb needs beside the job: where from, where to, who listens, and when to stop.
#[derive(Clone)]
pub struct Context {
    /// Opens files and objects.
    pub sources: Sources,
    /// How to reach the server. Holds secrets; never printed whole.
    pub connection: Connection,
    /// Told about progress.
    pub listener: Arc<dyn Listener>,
    /// Raised by Ctrl-C.
    pub stop: Stop,
}
