//! Where sessions wait between two chunks while the load pauses, and how many of them may be open.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::sync::watch;

/// Open unless there is a reason to pause.
pub(crate) struct Gate {
    reason: watch::Sender<Option<String>>,
    sessions_max: AtomicU32,
    opened_max: AtomicU32,
}

impl Default for Gate {
    fn default() -> Gate {
        let [sessions_max, opened_max] = [(); 2].map(|()| AtomicU32::new(u32::MAX));
        Gate { reason: watch::Sender::new(None), sessions_max, opened_max }
    }
}

impl Gate {
    /// Returns at once unless the load pauses; else when it goes on.
    pub(crate) async fn pass(&self) {
        // The sender lives in `self`, so waiting ends only by an opened gate.
        let _ = self.reason.subscribe().wait_for(Option::is_none).await;
    }

    /// Pauses for this reason, or goes on. True if that is news.
    pub(crate) fn set(&self, reason: Option<String>) -> bool {
        let was_open = self.reason.borrow().is_none();
        let is_open = reason.is_none();
        self.reason.send_replace(reason);
        was_open != is_open
    }

    /// The load pauses.
    pub(crate) fn is_closed(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// No more sessions may copy at once.
    pub(crate) fn sessions_max(&self) -> u32 {
        self.sessions_max.load(Relaxed).min(self.opened_max.load(Relaxed))
    }

    /// The server opens no more, as was found.
    pub(crate) fn limit_opened(&self, sessions: u32) {
        self.opened_max.store(sessions, Relaxed);
    }

    /// Says how many.
    pub(crate) fn limit_sessions(&self, sessions: u32) {
        self.sessions_max.store(sessions, Relaxed);
    }
}
