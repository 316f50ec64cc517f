//! Sessions of the workers where the server opens no more of them: a password or a token that has run out ends no session that is
//! open. A worker without one gets that of another then, which is between two chunks, and the load goes on with those that there are.

use crate::pipeline::Run;
use howdah_model::{ErrorKind, Result};
use howdah_target::session::Session;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Which workers have sessions, and which wait for one.
#[derive(Default)]
pub(super) struct Handed {
    state: Mutex<State>,
    /// Wakes who waits for a session, and who may have one to give.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Workers that have a session.
    holders: u32,
    /// Workers with a chunk and without a session.
    waiting: usize,
    /// Sessions that nobody has at present.
    left: Vec<Session>,
    /// The server has refused one while others were open.
    refused: bool,
}

impl Handed {
    /// A new session, which counts as the worker's; once the server has refused one, that of another as long as there is any.
    ///
    /// # Errors
    /// As for `Connection::open`, where no worker has a session.
    pub(super) async fn session(&self, run: &Run) -> Result<Session> {
        let _waiting = Waiting::begin(self);
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(session) = self.take_left() {
                self.count(true);
                return Ok(session);
            }
            if !self.goes_round() {
                match run.context.connection.open().await {
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused && self.refuse() => {
                        run.warn(format!(
                            "the server opens no further session: {}; the load goes on with those that are open. A password \
                             or token that runs out is renewed by --password-command",
                            error.message()
                        ));
                        continue;
                    }
                    Err(error) => return Err(error),
                    Ok(session) => {
                        self.count(true);
                        return Ok(session);
                    }
                }
            }
            // The sender lives in `self`.
            let _ = changes.changed().await;
        }
    }

    /// Until another worker waits for a session.
    pub(super) async fn until_wanted(&self) {
        let mut changes = self.changes.subscribe();
        while !self.is_wanted() && changes.changed().await.is_ok() {}
    }

    /// Another worker waits for a session.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state();
        state.refused && state.waiting > state.left.len()
    }

    /// Leaves the session to whoever has none.
    pub(super) fn give(&self, session: Session) {
        self.state().left.push(session);
        self.wake();
    }

    /// A worker has a session now, or has none any more.
    pub(super) fn count(&self, holds: bool) {
        let mut state = self.state();
        state.holders = if holds { state.holders + 1 } else { state.holders.saturating_sub(1) };
        drop(state);
        self.wake();
    }

    /// The server has refused a session while others were open.
    pub(super) fn is_refused(&self) -> bool {
        self.state().refused
    }

    /// So many workers are of use.
    pub(super) fn sessions_max(&self) -> u32 {
        let state = self.state();
        let there = state.holders.saturating_add(u32::try_from(state.left.len()).unwrap_or(u32::MAX));
        if state.refused { there.max(1) } else { u32::MAX }
    }

    /// One that is left when all workers have ended.
    pub(super) fn last(&self) -> Option<Session> {
        self.take_left()
    }

    fn take_left(&self) -> Option<Session> {
        let mut state = self.state();
        while let Some(session) = state.left.pop() {
            if !session.is_closed() {
                return Some(session);
            }
        }
        None
    }

    /// Sessions are handed from one worker to another.
    fn goes_round(&self) -> bool {
        let state = self.state();
        state.refused && state.holders > 0
    }

    /// The server has refused a session. False if that leaves none to hand round.
    fn refuse(&self) -> bool {
        let mut state = self.state();
        let others = state.holders > 0 || !state.left.is_empty();
        state.refused = state.refused || others;
        drop(state);
        self.wake();
        others
    }

    fn wake(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that waits, until this is dropped.
struct Waiting<'a>(&'a Handed);

impl Waiting<'_> {
    fn begin(handed: &Handed) -> Waiting<'_> {
        handed.state().waiting += 1;
        handed.wake();
        Waiting(handed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}
