//! The conductor: the only crate that sees source, transcode and target at once.
//!
//! What a front end calls:
//! - [`plan()`] decides everything before a byte moves, and changes nothing; [`plan_to_load`] puts back first
//!   what killed loads have dropped and this one goes by;
//! - [`load()`] executes a plan as a stream of exactly-once chunks (`pipeline` is that flow on one screen),
//!   and `finish` makes the result durable, loads again what a server crash took, and closes the job;
//!   [`plan_and_load`] does both, and plans anew where others have loaded files in between that this load is
//!   to leave out;
//! - [`check()`] reads everything and keeps nothing; [`bench()`] measures a load against one plain COPY;
//! - [`restore`] puts back what killed loads have left changed;
//! - [`history`] and [`rejected`] read the ledger; [`again`] has the commands that a user is told to type.
//!
//! The modules below come in this order. Around them `budget` owns every buffer and queue, `retry` decides
//! from an error's kind whether to try again, and [`Stop`] carries a Ctrl-C to whoever waits.

mod attend;
mod connection;
mod predecessor;
mod tries;

pub mod plan;

mod beforehand;
mod begin;
mod done;
mod emptied;
mod in_part;
pub mod load;

mod anew;

mod budget;
mod cargo;
mod feed;
mod gate;
mod jobs;
mod numbers;
mod partitioner;
mod pipeline;
mod retry;
mod sessions;
mod stop;
mod threads;
mod values;

mod first_records;
mod locate;
mod probes;
mod rejects;
mod spot;

mod misfits;
mod widen;

mod frozen;

mod after;
mod arrival;
mod ending;
mod finish;
mod sequences;
mod statistics;
mod verify;

mod indexes;
mod triggers;
mod tune;

mod doubted;
mod left_behind;
pub mod restore;
mod settle;

mod disk;
mod guards;
mod limit;
mod scarce;
mod taken;
mod tally;
mod watch;

pub mod check;

pub mod bench;

pub mod again;
pub mod history;
pub mod rejected;

pub use anew::plan_and_load;
pub use bench::bench;
pub use check::check;
pub use connection::{Absent, Connection};
pub use howdah_model as model;
pub use howdah_source::{Sources, is_among, name_not_utf8};
pub use howdah_target::embedded;
pub use howdah_transcode::copy_options;
pub use howdah_transcode::infer::spelling;
pub use load::load;
pub use plan::{Planned, in_tables, plan, plan_to_load};
pub use stop::Stop;
pub use threads::{ROOM_HINT, expect_threads, no_thread};

use howdah_model::{Event, Listener};
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

impl Context {
    /// Tells the user, and goes on.
    pub(crate) fn tell(&self, message: impl Into<String>) {
        self.listener.on_event(&Event::Notice { message: message.into() });
    }

    /// Tells what is not as may be expected; of a load, in its summary as well.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.listener.on_event(&Event::Warning { message: message.into() });
    }
}
