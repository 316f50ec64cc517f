//! What becomes of chunks that the server has no room for: a disk is enlarged or cleared while the load
//! pauses. This goes by what the server says, so that it needs no look at its disks.

use crate::pipeline::Run;
use howdah_model::{Error, Event, Result, sqlstate};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Often enough to go on soon; rare enough that what a try writes before it fails costs nobody anything.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// Tables, by their number, with whose chunks the server says that a disk is full: tables may lie on
/// different disks.
#[derive(Default)]
pub(super) struct Fullness(Mutex<BTreeMap<u32, Pause>>);

#[derive(Clone, Copy)]
struct Pause {
    since: Instant,
    /// It was in vain. Whoever has waited along gives up, too: a new pause for each would be one after the
    /// other.
    gave_up: bool,
}

/// disk_full
pub(super) fn is_full(error: &Error) -> bool {
    error.sqlstate() == Some(sqlstate::DISK_FULL)
}

impl Fullness {
    /// Waits before the next try with a chunk of this table.
    ///
    /// # Errors
    /// The same error, when that was in vain for as long as a load pauses at most; `Interrupted`.
    pub(super) async fn wait(&self, run: &Run, table_no: u32, error: Error) -> Result<()> {
        let limit = Duration::from_millis(run.plan.job.guards.pause_for_ms);
        let Some((paused, is_first)) = self.pause(run, table_no, limit) else { return Err(error) };
        if is_first {
            let reason = format!("a disk of the server is full: {}", error.message());
            run.context.listener.on_event(&Event::Paused { reason: Some(reason) });
        }
        run.context.stop.sleep(TRY_EVERY.min(limit.saturating_sub(paused))).await
    }

    /// How long the table's chunks have waited, and whether that begins now; `None` when it has given up.
    fn pause(&self, run: &Run, table_no: u32, limit: Duration) -> Option<(Duration, bool)> {
        let mut state = self.0.lock();
        let is_first = !state.contains_key(&table_no);
        if is_first {
            run.tally.pauses.begin(Instant::now());
        }
        let pause = state.entry(table_no).or_insert_with(|| Pause { since: Instant::now(), gave_up: false });
        let paused = pause.since.elapsed();
        if !pause.gave_up && paused >= limit {
            pause.gave_up = true;
            run.tally.pauses.end(Instant::now());
        }
        (!pause.gave_up).then_some((paused, is_first))
    }

    /// Chunks wait for room.
    pub(super) fn is_on(&self) -> bool {
        !self.0.lock().is_empty()
    }

    /// A chunk of this table is in for which there was no room.
    pub(super) fn over(&self, run: &Run, table_no: u32) {
        let mut state = self.0.lock();
        let Some(Pause { since, .. }) = state.get(&table_no).filter(|pause| !pause.gave_up).copied() else {
            return;
        };
        state.remove(&table_no);
        let goes_on = state.is_empty();
        drop(state);
        run.tally.pauses.end(Instant::now());
        if goes_on {
            run.tell(format!("the load goes on, after a pause of {} s", since.elapsed().as_secs()));
            run.context.listener.on_event(&Event::Paused { reason: None });
        }
    }

    /// No chunk waits any more, whether there is room or not.
    pub(super) fn end(&self, run: &Run) {
        let left = std::mem::take(&mut *self.0.lock());
        for _ in left.into_values().filter(|pause| !pause.gave_up) {
            run.tally.pauses.end(Instant::now());
        }
    }
}
