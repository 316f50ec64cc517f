//! Chunks for which the server has too little memory beside those of other sessions. Most often its table of
//! locks is full: a chunk whose rows go to thousands of partitions locks each of them, and the server has
//! room for what one transaction locks, but not several at a time. Such a chunk is tried again while no other
//! is stored; what has no room alone either will not get in.

use super::Shared;
use howdah_model::{Error, ErrorKind, Event, sqlstate};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Whoever stores something is in it, with a session.
#[derive(Default)]
pub(super) struct Room(RwLock<()>);

/// In the room, until this is dropped.
#[expect(dead_code, reason = "held for what dropping it does")]
pub(super) enum Inside<'a> {
    Beside(RwLockReadGuard<'a, ()>),
    Alone(RwLockWriteGuard<'a, ()>),
}

impl Room {
    /// Waits for others as long as one wants to be, or is, alone.
    pub(super) async fn enter(&self, alone: bool) -> Inside<'_> {
        if alone { Inside::Alone(self.0.write().await) } else { Inside::Beside(self.0.read().await) }
    }
}

/// There may be room for the chunk when others are through.
pub(super) fn is_crowded(error: &Error) -> bool {
    error.kind() == ErrorKind::Server && error.sqlstate() == Some(sqlstate::OUT_OF_MEMORY)
}

/// Asks for fewer sessions, and says that the chunk is tried again.
pub(super) fn tell(shared: &Shared, error: &Error) {
    let run = &shared.run;
    shared.handed.count_without_room();
    run.tally.retries.fetch_add(1, Relaxed);
    run.context.listener.on_event(&Event::Retry { reason: error.to_string(), delay: Duration::ZERO });
}
