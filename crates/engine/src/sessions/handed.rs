//! Sessions of the workers where the server opens no more of them: a password or a token that has run out
//! ends no session that is open, nor does a server, database or role that has as many as it may, nor a
//! pooler, which lets who comes wait. A worker without one gets that of another then, which is between two
//! chunks, and the load goes on with those that there are. Whether the server opens more again is tried from
//! time to time.

use crate::connection::OF_A_POOL;
use crate::pipeline::Run;
use crate::retry::{Directive, Patience, directive};
use crate::tries::Tries;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use howdah_target::session::Session;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Opening a session takes milliseconds, and slow authentication a second or two. A pooler whose pool is full
/// answers when somebody else leaves it.
const LATE_AFTER: Duration = Duration::from_secs(5);

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
    refused: Option<Refusal>,
    /// As many as there were at most since then.
    most: u32,
    /// It has refused those for which it had no room, since that was asked last.
    without_room: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The server, the database or the role has as many sessions as it may.
    NoRoom,
    /// This role does not get in.
    Login,
    /// Nobody answers, where others were let in.
    NoAnswer,
}

impl State {
    fn there(&self) -> u32 {
        self.holders.saturating_add(u32::try_from(self.left.len()).unwrap_or(u32::MAX))
    }
}

impl Handed {
    /// A new session, which counts as the worker's; once the server has refused one, that of another as long
    /// as there is any.
    ///
    /// # Errors
    /// As for `Connection::open`, where no worker has a session.
    pub(super) async fn session(&self, run: &Run, patience: &mut Patience) -> Result<Session> {
        let _waiting = Waiting::begin(self);
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(session) = self.take_left() {
                self.count(true);
                return Ok(session);
            }
            if !self.goes_round() {
                let began = Instant::now();
                match self.open(run, &mut changes).await {
                    Ok(Some(session)) => {
                        self.count(true);
                        return Ok(session);
                    }
                    Ok(None) => continue,
                    Err(error) => match Refusal::of(&error).filter(|refusal| self.refuse(*refusal)) {
                        Some(refusal) => run.warn(refusal.warning(error.message())),
                        None => {
                            patience.waited_since(began);
                            return Err(error);
                        }
                    },
                }
            }
            // The sender lives in `self`.
            let _ = changes.changed().await;
        }
    }

    /// A new session; none where that of another is left before it comes.
    async fn open(&self, run: &Run, changes: &mut watch::Receiver<u64>) -> Result<Option<Session>> {
        let mut opening = pin!(run.context.connection.open());
        let mut late = pin!(tokio::time::sleep(LATE_AFTER));
        let mut is_late = false;
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => {
                    if opened.is_ok() && self.refused() == Some(Refusal::NoAnswer) {
                        self.end_refusal(run);
                    }
                    return opened.map(Some);
                }
                () = &mut late, if !is_late => {
                    is_late = true;
                    self.tell_late(run);
                }
                // The sender lives in `self`.
                _ = changes.changed() => if self.has_left() {
                    return Ok(None);
                },
            }
        }
    }

    fn tell_late(&self, run: &Run) {
        let why =
            format!("no answer within {} s, as where the pool of a pooler is full", LATE_AFTER.as_secs());
        match self.refuse(Refusal::NoAnswer) {
            true => run.warn(Refusal::NoAnswer.warning(&why)),
            false => run.tell(format!("waiting for a session: {why}; {OF_A_POOL}")),
        }
    }

    /// While the server refuses sessions: tries again whether it does, for as long as this is waited for.
    pub(super) async fn keep_trying(&self, run: &Run) -> Infallible {
        let mut changes = self.changes.subscribe();
        loop {
            let mut tries = Tries::default();
            while self.is_refused() {
                tokio::time::sleep(tries.next_delay()).await;
                if let Ok(session) = run.context.connection.open_new().await {
                    self.open_again(run, session);
                }
            }
            // The sender lives in `self`.
            let _ = changes.changed().await;
        }
    }

    fn open_again(&self, run: &Run, session: Session) {
        self.end_refusal(run);
        let mut state = self.state.lock();
        if state.waiting > state.left.len() {
            state.left.push(session);
        } else {
            run.context.connection.keep(session);
        }
        drop(state);
        self.wake();
    }

    fn end_refusal(&self, run: &Run) {
        self.state.lock().refused = None;
        run.tell("the server opens further sessions again");
        self.wake();
    }

    /// Until another worker waits for a session.
    pub(super) async fn until_wanted(&self) {
        let mut changes = self.changes.subscribe();
        while !self.is_wanted() && changes.changed().await.is_ok() {}
    }

    /// Another worker waits for a session.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state.lock();
        state.refused.is_some() && state.waiting > state.left.len()
    }

    /// Leaves the session to whoever has none.
    pub(super) fn give(&self, session: Session) {
        self.state.lock().left.push(session);
        self.wake();
    }

    /// A worker has a session now, or has none any more.
    pub(super) fn count(&self, holds: bool) {
        let mut state = self.state.lock();
        state.holders = if holds { state.holders + 1 } else { state.holders.saturating_sub(1) };
        state.most = state.most.max(state.there());
        drop(state);
        self.wake();
    }

    /// The server has refused a session while others were open.
    pub(super) fn is_refused(&self) -> bool {
        self.refused().is_some()
    }

    fn refused(&self) -> Option<Refusal> {
        self.state.lock().refused
    }

    /// So many workers are of use.
    pub(super) fn sessions_max(&self) -> u32 {
        let state = self.state.lock();
        if state.refused.is_some() { state.there().max(1) } else { u32::MAX }
    }

    /// So many sessions may be open at once when all workers have ended, as far as is known.
    pub(super) fn found_max(&self) -> u32 {
        let state = self.state.lock();
        match state.refused {
            None => u32::MAX,
            Some(Refusal::NoRoom | Refusal::NoAnswer) => state.most.max(1),
            // The one that is left.
            Some(Refusal::Login) => 1,
        }
    }

    /// There was no room for one more on the server.
    pub(super) fn count_without_room(&self) {
        self.state.lock().without_room += 1;
    }

    /// How often there was none since this was asked last.
    pub(super) fn take_without_room(&self) -> u32 {
        std::mem::take(&mut self.state.lock().without_room)
    }

    /// One that is left when all workers have ended.
    pub(super) fn last(&self) -> Option<Session> {
        self.take_left()
    }

    fn has_left(&self) -> bool {
        !self.state.lock().left.is_empty()
    }

    fn take_left(&self) -> Option<Session> {
        let mut state = self.state.lock();
        while let Some(session) = state.left.pop() {
            if !session.is_closed() {
                return Some(session);
            }
        }
        None
    }

    /// Sessions are handed from one worker to another.
    fn goes_round(&self) -> bool {
        let state = self.state.lock();
        state.refused.is_some() && state.holders > 0
    }

    /// The server has refused a session. False if that leaves none to hand round.
    fn refuse(&self, refusal: Refusal) -> bool {
        let mut state = self.state.lock();
        let there = state.there();
        if there > 0 {
            if state.refused.is_none() {
                state.most = there;
            }
            state.refused = Some(refusal);
            state.without_room += u32::from(refusal == Refusal::NoRoom);
        }
        drop(state);
        self.wake();
        there > 0
    }

    fn wake(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

impl Refusal {
    /// `None` where the server could not be asked.
    fn of(error: &Error) -> Option<Refusal> {
        match error.kind() {
            _ if directive(error) == Directive::AgainWithFewer => Some(Refusal::NoRoom),
            // So a pooler says that it has as many clients as it may.
            _ if error.sqlstate() == Some(sqlstate::PROTOCOL_VIOLATION) => Some(Refusal::NoRoom),
            ErrorKind::ConnectionRefused => Some(Refusal::Login),
            _ => None,
        }
    }

    fn warning(self, why: &str) -> String {
        let hint = match self {
            Refusal::NoRoom => String::new(),
            Refusal::Login => {
                ". A password or token that runs out is renewed by --password-command".to_owned()
            }
            Refusal::NoAnswer => format!("; {OF_A_POOL}"),
        };
        format!("the server opens no further session: {why}; the load goes on with those that are open{hint}")
    }
}

/// A worker that waits, until this is dropped.
struct Waiting<'a>(&'a Handed);

impl Waiting<'_> {
    fn begin(handed: &Handed) -> Waiting<'_> {
        handed.state.lock().waiting += 1;
        handed.wake();
        Waiting(handed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}
