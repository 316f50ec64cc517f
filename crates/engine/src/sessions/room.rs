//! What becomes of chunks that the server has no room for: a disk is enlarged or cleared while the load pauses. This goes by what the
//! server says, so that it needs no look at its disks.

use crate::indexes::tell;
use crate::pipeline::Run;
use howdah_model::{Error, Event, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Often enough to go on soon; rare enough that what a try writes before it fails costs nobody anything.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// Since when a disk of the server is full.
#[derive(Default)]
pub(super) struct Fullness(Mutex<Option<Instant>>);

/// disk_full
pub(super) fn is_full(error: &Error) -> bool {
    error.sqlstate() == Some("53100")
}

impl Fullness {
    /// Waits before the next try.
    ///
    /// # Errors
    /// The same error, when that was in vain for as long as a load pauses at most; `Interrupted`.
    pub(super) async fn wait(&self, run: &Run, error: Error) -> Result<()> {
        let now = Instant::now();
        let (since, is_first) = {
            let mut since = self.since();
            let is_first = since.is_none();
            (*since.get_or_insert(now), is_first)
        };
        let limit = Duration::from_millis(run.plan.job.guards.pause_for_ms);
        if since.elapsed() >= limit {
            self.ends(run);
            return Err(error);
        }
        if is_first {
            let reason = format!("a disk of the server is full: {}", error.message());
            run.context.listener.on_event(&Event::Paused { reason: Some(reason) });
        }
        run.context.stop.sleep(TRY_EVERY.min(limit.saturating_sub(since.elapsed()))).await
    }

    /// Chunks wait for room.
    pub(super) fn is_on(&self) -> bool {
        self.since().is_some()
    }

    /// A chunk is in: there is room.
    pub(super) fn over(&self, run: &Run) {
        if let Some(paused) = self.ends(run) {
            tell(&run.context, format!("the load goes on, after a pause of {} s", paused.as_secs()));
            run.context.listener.on_event(&Event::Paused { reason: None });
        }
    }

    fn ends(&self, run: &Run) -> Option<Duration> {
        let paused = self.since().take()?.elapsed();
        run.tally.paused(paused);
        Some(paused)
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
