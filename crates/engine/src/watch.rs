//! Looks over the sessions' shoulders: what they wait for, and whether one hangs on a dead network.
//!
//! One extra session samples `pg_stat_activity`. A copying session that makes no progress while the server
//! says that it waits for the client (or does not know it any more) talks to nobody: its connection is
//! given up and the chunk sent again. A session that waits for a lock or for storage is left alone.
//! (Single statements, such as those of the ledger, are looked after by `attend`.)

use crate::attend::held_up;
use crate::pipeline::Run;
use crate::tries::Tries;
use howdah_model::{Error, ErrorKind, Event, Result};
use howdah_target::activity::{self, Activity, CLIENT_READ};
use howdah_target::commit::{CopyProgress, Phase};
use howdah_target::session::{Backend, Session};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often sessions are sampled: often enough for a picture of a ten-second load, rare enough to cost
/// the server well under one per cent of a CPU.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);
/// No progress for this long makes a session suspicious.
const STALL_AFTER: Duration = Duration::from_secs(10);
/// The sampling session itself must answer within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What is known of one copying session from outside.
pub(crate) struct Slot {
    backend: Mutex<Option<Backend>>,
    /// Bytes taken by the connection, counted by the target.
    pub progress: CopyProgress,
    last: Mutex<(u64, u64, Phase, Instant)>,
    /// Told when the connection must be given up.
    pub stalled: Notify,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            backend: Mutex::new(None),
            progress: CopyProgress::default(),
            last: Mutex::new((0, 0, Phase::Idle, Instant::now())),
            stalled: Notify::new(),
        }
    }

    /// A chunk is being stored on this backend.
    pub(crate) fn begin(&self, backend: Backend) {
        *self.backend.lock() = Some(backend);
        *self.last.lock() = (0, 0, Phase::Idle, Instant::now());
    }

    /// Nothing is being stored.
    pub(crate) fn end(&self) {
        *self.backend.lock() = None;
    }

    fn backend(&self) -> Option<Backend> {
        *self.backend.lock()
    }

    /// COMMIT is sent, and not answered.
    pub(crate) fn is_committing(&self) -> bool {
        self.progress.phase() == Phase::Commit
    }

    /// It has not moved for too long.
    fn idle_too_long(&self) -> bool {
        let mut last = self.last.lock();
        let (bytes, steps, phase) = (self.progress.bytes(), self.progress.steps(), self.progress.phase());
        if (bytes, steps, phase) != (last.0, last.1, last.2) {
            *last = (bytes, steps, phase, Instant::now());
        }
        last.3.elapsed() >= STALL_AFTER
    }

    /// The error of a connection that was given up.
    pub(crate) fn stall_error(&self) -> Error {
        let seconds = STALL_AFTER.as_secs();
        let message = format!(
            "no progress for {seconds} s while the server waits for the client: the connection is dead"
        );
        // After COMMIT was sent, only the ledger knows.
        let kind = if self.is_committing() { ErrorKind::CommitUnknown } else { ErrorKind::ConnectionLost };
        Error::new(kind, message)
    }
}

/// The sessions that copy now.
#[derive(Default)]
pub(crate) struct Slots {
    all: Mutex<Vec<Arc<Slot>>>,
    /// When the server answered the session that looks out for it.
    heard: Mutex<Option<Instant>>,
}

impl Slots {
    /// One more.
    pub(crate) fn add(&self) -> Arc<Slot> {
        let slot = Arc::new(Slot::new());
        self.all.lock().push(Arc::clone(&slot));
        slot
    }

    /// One fewer.
    pub(crate) fn remove(&self, slot: &Arc<Slot>) {
        self.all.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Bytes of unfinished chunks that the connections have taken.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        let slots = self.all.lock();
        slots.iter().map(|slot| slot.progress.bytes()).sum()
    }

    /// The same without chunks that are in, which their sessions count until the next one.
    fn bytes_sent(&self) -> u64 {
        self.busy().iter().map(|(_, slot)| slot.progress.bytes()).sum()
    }

    /// The server answers a session of this load that does not copy.
    pub(crate) fn heard(&self) {
        *self.heard.lock() = Some(Instant::now());
    }

    fn is_heard(&self) -> bool {
        let heard = *self.heard.lock();
        heard.is_some_and(|heard| heard.elapsed() < STALL_AFTER)
    }

    fn len(&self) -> usize {
        self.all.lock().len()
    }

    fn busy(&self) -> Vec<(Backend, Arc<Slot>)> {
        let slots = self.all.lock();
        slots.iter().filter_map(|slot| Some((slot.backend()?, Arc::clone(slot)))).collect()
    }
}

/// Samples until aborted. Failures to sample are not failures of the load.
pub(crate) async fn run(run: Arc<Run>) {
    let mut session: Option<Session> = None;
    let (mut told, mut tries, mut has_worked) = (BTreeSet::new(), Tries::default(), false);
    loop {
        tokio::time::sleep(SAMPLE_EVERY).await;
        let busy = run.slots.busy();
        let waiting = waiting_for_chunks(&run, busy.len());
        if busy.is_empty() {
            report(&run, &[], 0, waiting);
            continue;
        }
        if session.is_none() && !tries.is_due() {
            continue;
        }
        let sampled = tokio::time::timeout(ANSWER_WITHIN, sample(&run, &mut session, &busy)).await;
        let seen = match sampled {
            Ok(Ok(seen)) => seen,
            // A server that refuses the watcher, being full for instance, is there.
            Ok(Err(error)) if error.sqlstate().is_some() => {
                session = None;
                tries.failed(&error);
                continue;
            }
            // The watcher's own connection is gone; what it cannot see it does not call alive.
            Ok(Err(_)) | Err(_) => {
                session = None;
                // A pool that is full gives the watcher no session, for as long as the load lasts, and
                // carries what others say.
                if has_worked || !run.slots.is_heard() {
                    end_stalled(&busy, &[]);
                }
                continue;
            }
        };
        has_worked = true;
        tries.opened();
        report(&run, &seen, busy.len(), waiting);
        end_stalled(&busy, &seen);
        tell_held_up(&run, &busy, &seen, &mut told);
    }
}

async fn sample(
    run: &Run,
    session: &mut Option<Session>,
    busy: &[(Backend, Arc<Slot>)],
) -> Result<Vec<Activity>> {
    let session = match session {
        Some(session) => session,
        None => session.insert(run.context.connection.open().await?),
    };
    let pids: Vec<i32> = busy.iter().map(|(backend, _)| backend.pid).collect();
    activity::sample(session, &pids).await
}

/// Sessions that could copy a chunk and get none, since the sources do not bring any: the server does not say
/// so of those that are between two transactions.
fn waiting_for_chunks(run: &Run, busy: usize) -> usize {
    let all_are_read = run.tally.files.iter().all(|file| file.read_done.load(Relaxed));
    if all_are_read || run.gate.is_closed() {
        0
    } else {
        run.slots.len().saturating_sub(busy + run.early.building() as usize)
    }
}

/// `open` sessions copy, others are `waiting` for the sources.
fn report(run: &Run, seen: &[Activity], open: usize, waiting: usize) {
    let mut waits: BTreeMap<String, u32> = BTreeMap::new();
    // Of sessions that the role may not look at, or that nobody tracks, nothing is told; nor of those between
    // two states.
    let is_known =
        |activity: &&Activity| !matches!(activity.state.as_str(), "idle" | "") && !activity.wait.is_empty();
    for activity in seen.iter().filter(is_known) {
        *waits.entry(activity.wait.clone()).or_default() += 1;
    }
    let without_chunk = u32::try_from(waiting).unwrap_or(u32::MAX);
    if waiting > 0 {
        *waits.entry(CLIENT_READ.to_owned()).or_default() += without_chunk;
    }
    let waits: Vec<(String, u32)> = waits.into_iter().collect();
    run.tally.saw_waits(&waits, without_chunk);
    let (open, sent_bytes) = (u32::try_from(open).unwrap_or(u32::MAX), run.slots.bytes_sent());
    run.context.listener.on_event(&Event::Sessions { open, waits, sent_bytes });
}

/// Tells once of each kind of wait that holds a session up for long.
fn tell_held_up(run: &Run, busy: &[(Backend, Arc<Slot>)], seen: &[Activity], told: &mut BTreeSet<String>) {
    for (backend, _) in busy.iter().filter(|(_, slot)| slot.idle_too_long()) {
        let Some(activity) = seen.iter().find(|activity| activity.pid == backend.pid) else { continue };
        let Some(message) = held_up(*backend, &activity.wait) else { continue };
        if told.insert(activity.wait.clone()) {
            run.tell(message);
        }
    }
}

fn end_stalled(busy: &[(Backend, Arc<Slot>)], seen: &[Activity]) {
    for (backend, slot) in busy {
        if !slot.idle_too_long() {
            continue;
        }
        let waits_for_us = match seen.iter().find(|activity| activity.pid == backend.pid) {
            None => true,
            // What it did before was a long statement.
            Some(activity) => activity.waits_for_client() && activity.unchanged >= STALL_AFTER,
        };
        if waits_for_us {
            slot.stalled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_has_just_begun_to_wait_for_the_client_is_not_given_up() {
        let backend = Backend { pid: 7, start_us: 0 };
        for (state, unchanged, is_ended) in [
            ("idle in transaction", STALL_AFTER / 2, false),
            ("idle in transaction", STALL_AFTER, true),
            ("active", STALL_AFTER, true),
        ] {
            let slot = Arc::new(Slot::new());
            let before = Instant::now().checked_sub(STALL_AFTER).unwrap();
            *slot.last.lock() = (0, 0, Phase::Idle, before);
            let activity =
                Activity { pid: 7, state: state.to_owned(), unchanged, wait: CLIENT_READ.to_owned() };
            end_stalled(&[(backend, Arc::clone(&slot))], &[activity]);
            let told = tokio::time::timeout(Duration::ZERO, slot.stalled.notified()).await;
            assert_eq!(told.is_ok(), is_ended, "{state}, {unchanged:?}");
        }
    }
}
