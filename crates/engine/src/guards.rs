//! Looks out for the server while a load runs: room on its disks and for its connections, replicas and slots
//! that fall behind, and others who wait for our locks. The load pauses between chunks, goes on when the
//! reason has gone, and gives up with that reason when it stays: see docs/decisions/2026-11-22-guards.md.
//!
//! All of it is asked once a second on the session that holds the job, which has nothing else to do
//! meanwhile.

mod lagging;

use crate::begin;
use crate::disk::{Places, WAL, server_places};
use crate::emptied;
use crate::pipeline::Run;
use crate::plan::plain_bytes;
use crate::scarce::{FREE_HINT, free_bytes_min, told};
use crate::tries::Tries;
use crate::tune;
use howdah_model::{Error, ErrorKind, Event, Jobs, Plan, ReplicaLag, Result, TablePlan, TuneScope, plural};
use howdah_target::guards::{self, Replica, Slot};
use howdah_target::session::{Backend, Session};
use howdah_target::upkeep;
use lagging::{Lagging, News, too_far};
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Often enough that a load of a gigabyte a second does not fill what is kept free; cheap enough not to be
/// seen.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// How often is looked whether the session is gone, or a disk is full: that asks nobody.
const CLOSED_LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long few connections are counted again while sessions of this load are being opened, and how often.
const OPENED_WITHIN: Duration = Duration::from_millis(300);
const COUNT_EVERY: Duration = Duration::from_millis(10);
/// The session must answer within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Who is to hold the job waits for its turn first, as long as that may take.
const HELD_WITHIN: Duration = Duration::from_secs(15);
/// A disk is full until it has so much more room than that, or the load would stop and go.
const FREE_AGAIN: f64 = 1.25;
/// A slot that keeps more WAL is worth a word, unless a limit for replicas is given.
const SLOT_BYTES: u64 = 4 << 30;
/// A slot that is read from must not come closer to being lost, nor than this part of what is kept for it at
/// most, since the reader of a small allowance is never as far away.
const UNTIL_LOST_BYTES: u64 = 512 << 20;
const UNTIL_LOST_PART: u64 = 4;
/// Others who wait for our locks longer than this are told.
const WAIT_TOLD_AFTER: Duration = Duration::from_secs(5);

/// What is known from sample to sample.
#[derive(Default)]
pub(crate) struct Guard {
    /// The server process that has held the job since it began.
    first: Backend,
    told_unwatched: bool,
    /// Asked where replicas are to be looked at.
    sees_replicas: Option<bool>,
    /// What those places are called that are full.
    full: BTreeSet<String>,
    paused_since: Option<Instant>,
    gave_up: bool,
    told_slots: BTreeSet<String>,
    told_sessions: Option<u32>,
    /// What each replica said last (its own time, by the process that sends to it), and when that was first
    /// seen here.
    replies: HashMap<i32, (i64, Instant)>,
    lagging: Lagging,
    /// Processes that wait for us: since when, and whether that was told.
    waiting: HashMap<i32, (Instant, bool)>,
    /// Of sessions that are to take the place of those that hold the job and mark the load.
    holding: Tries,
    marking: Tries,
}

/// Takes a first look, so that nothing begins that there is no room for.
///
/// # Errors
/// Table, when replicas are to be looked at and the role may not.
pub(crate) async fn begin(run: &Run, session: &Session) -> Result<Guard> {
    let mut guard = Guard { first: session.backend(), ..Guard::default() };
    run.first.get_or_init(|| session.backend());
    guard.learn(run, session).await;
    if guard.sees_replicas == Some(false) {
        guards::expect_sight_of_replicas(session).await?;
    }
    // Connections are counted first: others of this load are being opened.
    let first_look = async {
        tokio::join!(guard.sample(run, session), guards::timeline(session), upkeep::checkpoints(session))
    };
    if let Ok((sampled, timeline, checkpoints)) = timeout(ANSWER_WITHIN, first_look).await {
        if let Ok(reason) = sampled {
            guard.judge(run, reason);
        }
        if let Some(timeline) = timeline {
            run.timeline.get_or_init(|| timeline);
        }
        if let Ok(checkpoints) = checkpoints {
            run.checkpoints.get_or_init(|| checkpoints);
        }
    }
    warn_of_no_replica(run, session).await;
    warn_of_little_room(run);
    Ok(guard)
}

/// Rows take about as much as their text, and often more. Of several disks the one with the most room counts:
/// which rows go where is not known.
fn warn_of_little_room(run: &Run) {
    let places = run.context.connection.disks().places();
    let of_tables = places.iter().filter(|place| place.what != WAL);
    let rooms = of_tables.filter_map(|place| Some((place.room().ok()?.free_bytes, &place.what)));
    let Some((free_bytes, what)) = rooms.max() else { return };
    let Some(all_bytes) = plain_bytes(&run.plan.files) else { return };
    let to_come_bytes = all_bytes.saturating_sub(run.bytes_received());
    if to_come_bytes > free_bytes {
        run.warn(format!(
            "the files have about {} MB to load, and the server's disk for {what} has {} MB left: the rows may not fit, and \
             indexes come on top",
            to_come_bytes >> 20,
            free_bytes >> 20
        ));
    }
}

/// Whoever gives a limit counts on a replica.
async fn warn_of_no_replica(run: &Run, session: &Session) {
    if run.plan.job.guards.max_replica_lag.is_none() {
        return;
    }
    if let Ok(Ok(replicas)) = timeout(ANSWER_WITHIN, guards::replicas(session)).await
        && replicas.is_empty()
    {
        run.warn("--max-replica-lag: no replica is connected, so that none is waited for");
    }
}

/// Looks out until it is dropped. A session that breaks is replaced, and holds the job again; if somebody
/// else has taken that meanwhile, the load gives up, as it would not have begun.
pub(crate) async fn run(run: &Run, session: &mut Session, guard: &mut Guard) -> Infallible {
    loop {
        wait(run, session, guard).await;
        let _ = timeout(ANSWER_WITHIN, tune::mark_again(run, &mut guard.marking)).await;
        let sampled = timeout(ANSWER_WITHIN, guard.sample(run, session)).await;
        match sampled {
            Ok(Ok(reason)) => {
                run.slots.heard();
                guard.judge(run, reason);
            }
            // What a server refuses, it refuses; one that does not answer has other guards.
            Ok(Err(error)) if error.sqlstate().is_some() && !session.is_closed() => {}
            Ok(Err(_)) | Err(_) => match hold_again(run, session, &mut guard.holding).await {
                Some(Ok(opened)) => {
                    *session = opened;
                    guard.learn(run, session).await;
                }
                Some(Err(taken)) => guard.give_up(run, taken),
                // A server that is away is not asked without pause.
                None => sleep(SAMPLE_EVERY).await,
            },
        }
    }
}

/// Until the next look is due, a disk is full, or the session is gone, with which the lock of the job went.
async fn wait(run: &Run, session: &Session, guard: &Guard) {
    let began = Instant::now();
    while began.elapsed() < SAMPLE_EVERY && !session.is_closed() {
        sleep(CLOSED_LOOK_EVERY).await;
        // What begins a step that cannot pause on its way goes by what is known at that moment.
        if run.context.connection.disks().are_full() && !run.gate.is_closed() && !guard.gave_up {
            return;
        }
    }
}

/// Without the lock of the job others would take this load for dead: an error where they have done so, and
/// have put back what it has dropped or begun to load its files. `None`: the server gives no answer.
async fn hold_again(run: &Run, lost: &Session, tries: &mut Tries) -> Option<Result<Session>> {
    run.context.connection.lose(lost.backend());
    if !tries.is_due() {
        return None;
    }
    let session = run.context.connection.open().await.map_err(|error| tries.failed(&error)).ok()?;
    tries.opened();
    if let Some(ledger) = &run.ledger {
        let holding = begin::hold_again(&run.context.connection, &session, ledger, &run.plan);
        match timeout(HELD_WITHIN, Box::pin(holding)).await.ok()? {
            Err(error) if begin::is_taken(&error) => return Some(Err(error)),
            held => held.ok()?,
        }
    }
    Some(Ok(session))
}

impl Guard {
    /// Without a ledger nothing tells of a crash that has emptied UNLOGGED tables, but that no session lives
    /// through one.
    ///
    /// # Errors
    /// `ConnectionLost`, where the session that the load began with is gone.
    pub(crate) async fn expect_one_server(&self, run: &Run, session: &Session) -> Result<()> {
        if run.plan.tuning.unlogged.is_empty() {
            return Ok(());
        }
        let is_there = async {
            // Somebody may cancel the statement: who says so is there.
            let asked = guards::waiting(session, &[]).await;
            asked.map_or_else(|error| error.kind() == ErrorKind::Server, |_| true)
        };
        if session.backend() == self.first && is_there.await {
            return Ok(());
        }
        Err(emptied::may_be_emptied())
    }

    async fn learn(&mut self, run: &Run, session: &Session) {
        let tables: Vec<_> = run.plan.tables.iter().map(|table| &table.table.relation).collect();
        let makes_tables =
            run.plan.tables.iter().any(|table| table.create.is_some() || table.staging.is_some());
        let sees_replicas = async {
            match run.plan.job.guards.max_replica_lag {
                Some(_) => guards::sees_replicas(session).await.map(Some),
                None => Ok(None),
            }
        };
        let learn = async {
            let places = server_places(&run.context, session, &tables, makes_tables);
            tokio::try_join!(places, sees_replicas)
        };
        if let Ok(Ok((places, sees_replicas))) = timeout(ANSWER_WITHIN, learn).await {
            self.tell_unwatched(run, &places);
            run.context.connection.disks().set_places(places.known);
            self.sees_replicas = sees_replicas;
        }
    }

    /// Whoever counts on a pause is to know where none will come.
    fn tell_unwatched(&mut self, run: &Run, places: &Places) {
        if std::mem::replace(&mut self.told_unwatched, true) {
            return;
        }
        if places.elsewhere {
            let message = "the disks of a server on another machine are not watched: the load pauses when the server says that one is full";
            run.tell(message);
        }
        if places.data_hidden {
            let message = "the server's disks for data and WAL are not watched: this role may not read data_directory \
                           (GRANT pg_read_all_settings)";
            run.tell(message);
        }
        for place in &places.known {
            if let Err(error) = place.room() {
                let (what, path) = (&place.what, place.path.display());
                run.tell(format!("the server's disk for {what} is not watched: {path}: {error}"));
            }
        }
    }

    /// The first reason to pause.
    async fn sample(&mut self, run: &Run, session: &Session) -> Result<Option<String>> {
        let full = self.full_disk(run);
        let asked = &run.plan.job.guards;
        let opened = run.context.connection.opened();
        let room = async {
            match asked.reserve_connections {
                0 => Ok(None),
                _ => room(run, session).await.map(Some),
            }
        };
        let lag = async {
            match asked.max_replica_lag.filter(|_| self.sees_replicas == Some(true)) {
                Some(most) => guards::replicas(session).await.map(|replicas| Some((replicas, most))),
                None => Ok(None),
            }
        };
        let (slots, waiting) = (guards::slots(session), guards::waiting(session, &opened));
        // Sent together: one round trip.
        let (room, lag, slots, waiting) = tokio::try_join!(room, lag, slots, waiting)?;
        if let Some(room) = room {
            self.leave_room(run, room);
        }
        self.tell_slots(run, &slots);
        self.tell_waiting(run, &waiting);
        let lag = lag.and_then(|(mut replicas, most)| {
            let now = Instant::now();
            self.count_silence(&mut replicas, now);
            self.tell_gone(run, &replicas, most, now);
            too_far(&replicas, most).or_else(|| self.lagging.reason())
        });
        Ok(full.or(lag).or_else(|| about_to_be_lost(&slots)))
    }

    /// A replica that says nothing any more has an old lag: what counts then is how long it has been silent.
    /// Its clock may be wrong by more than any lag, so that is measured here.
    fn count_silence(&mut self, replicas: &mut [Replica], now: Instant) {
        self.replies.retain(|sender, _| replicas.iter().any(|replica| replica.sender == *sender));
        for replica in replicas {
            let (said, since) = self.replies.entry(replica.sender).or_insert((replica.replied_at_us, now));
            if *said != replica.replied_at_us {
                (*said, *since) = (replica.replied_at_us, now);
            }
            if replica.behind_bytes > 0 {
                let silent_ms = now.duration_since(*since).as_millis();
                replica.behind_ms = replica.behind_ms.max(u64::try_from(silent_ms).unwrap_or(u64::MAX));
            }
        }
    }

    fn tell_gone(&mut self, run: &Run, replicas: &[Replica], most: ReplicaLag, now: Instant) {
        let waited_for = Lagging::waited_for(Duration::from_millis(run.plan.job.guards.pause_for_ms));
        let seconds = waited_for.as_secs();
        for news in self.lagging.look(replicas, most, waited_for, now) {
            match news {
                News::Gone(name) => run.tell(format!(
                    "the replica {name} is not connected any more: the load waits {seconds} s for it to come back"
                )),
                News::StaysAway(name) => run.warn(format!(
                    "--max-replica-lag: the replica {name} was too far behind and has not come back within {seconds} s: it is not \
                     waited for any more"
                )),
            }
        }
    }

    fn full_disk(&mut self, run: &Run) -> Option<String> {
        let mut reason = None;
        for place in &run.context.connection.disks().places() {
            let (Ok(room), what) = (place.room(), &place.what) else { continue };
            let keep = free_bytes_min(room);
            let keep = if self.full.contains(what) { (keep as f64 * FREE_AGAIN) as u64 } else { keep };
            if room.free_bytes < keep {
                self.full.insert(what.clone());
                reason.get_or_insert_with(|| told(place, room, keep));
            } else {
                self.full.remove(what);
            }
        }
        reason
    }

    /// As many sessions as leave others what is reserved for them, and one at least.
    fn leave_room(&mut self, run: &Run, room: i64) {
        let (most, reserved) = (most_sessions(&run.plan, room), run.plan.job.guards.reserve_connections);
        run.gate.limit_sessions(most);
        if most < wanted_sessions(&run.plan) && self.told_sessions.is_none_or(|told| most < told) {
            self.told_sessions = Some(most);
            run.tell(format!(
                "at most {most} {} at once: the server has few connections left, of which {reserved} are left \
                 to others (--reserve-connections)",
                plural(most, "session copies", "sessions copy")
            ));
        }
    }

    fn tell_slots(&mut self, run: &Run, slots: &[Slot]) {
        let limit = match run.plan.job.guards.max_replica_lag {
            Some(ReplicaLag::Bytes(bytes)) => bytes,
            _ => SLOT_BYTES,
        };
        for slot in slots.iter().filter(|slot| slot.held_bytes > limit) {
            if self.told_slots.insert(slot.name.clone()) {
                let reader = if slot.active { "" } else { " from which nobody reads" };
                run.warn(format!(
                    "the replication slot {}{reader} keeps {} MB of WAL on the server's disk, and more with every row",
                    slot.name,
                    slot.held_bytes >> 20
                ));
            }
        }
    }

    fn tell_waiting(&mut self, run: &Run, pids: &[i32]) {
        self.waiting.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            let (since, told) = self.waiting.entry(*pid).or_insert_with(|| (Instant::now(), false));
            if since.elapsed() >= WAIT_TOLD_AFTER && !*told {
                *told = true;
                let seconds = since.elapsed().as_secs();
                run.tell(format!(
                    "process {pid} of the server has waited {seconds} s for a lock that this load holds: pg_stat_activity says \
                     who that is; the load goes on"
                ));
            }
        }
    }

    /// Nobody looks out any more, as when a stop breaks a pause off: it is over, whether its reason has gone
    /// or not.
    pub(crate) fn rest(&mut self, run: &Run) {
        if self.paused_since.take().is_some() {
            run.tally.pauses.end(Instant::now());
        }
    }

    fn give_up(&mut self, run: &Run, error: Error) {
        run.halt.fail_all(error);
        self.gave_up = true;
        self.rest(run);
        // Those who wait find out that nothing is wanted any more.
        run.gate.set(None);
    }

    fn judge(&mut self, run: &Run, reason: Option<String>) {
        if self.gave_up {
            return;
        }
        let limit = Duration::from_millis(run.plan.job.guards.pause_for_ms);
        match (&reason, self.paused_since) {
            (Some(reason), Some(since)) if since.elapsed() >= limit => {
                self.give_up(run, gave_up(reason, !self.full.is_empty(), since.elapsed()));
                return;
            }
            (Some(_), None) => {
                self.paused_since = Some(Instant::now());
                run.tally.pauses.begin(Instant::now());
            }
            (None, Some(since)) => {
                let seconds = since.elapsed().as_secs();
                self.paused_since = None;
                run.tally.pauses.end(Instant::now());
                run.tell(format!("the load goes on, after a pause of {seconds} s"));
            }
            _ => {}
        }
        if run.gate.set(reason.clone()) {
            run.context.listener.on_event(&Event::Paused { reason });
        }
    }
}

/// As many as leave others what is reserved for them, and one at least.
fn most_sessions(plan: &Plan, room: i64) -> u32 {
    let reserved = i64::from(plan.job.guards.reserve_connections);
    u32::try_from((room - reserved - not_copying(plan)).max(1)).unwrap_or(u32::MAX)
}

/// With fewer a load is slower than was asked for.
fn wanted_sessions(plan: &Plan) -> u32 {
    match plan.job.jobs {
        Jobs::Fixed(sessions) => sessions,
        Jobs::Auto => 2,
    }
}

/// How many connections are left for this load, its own included. One of ours that is being opened is
/// another's to the server's count until it is known here: where few are left, they are counted again when
/// none is being opened.
async fn room(run: &Run, session: &Session) -> Result<i64> {
    let (connection, began) = (&run.context.connection, Instant::now());
    loop {
        let (opened, opening) = (connection.opened(), connection.opening());
        let room = guards::room(session, &opened).await?;
        let is_settled = opening + connection.opening() == 0 && connection.opened() == opened;
        let is_ample = most_sessions(&run.plan, room) >= wanted_sessions(&run.plan);
        if is_ample || is_settled || began.elapsed() > OPENED_WITHIN {
            return Ok(room);
        }
        sleep(COUNT_EVERY).await;
    }
}

/// Sessions that do not copy: this one and the watcher's, one that takes values of sequences for rows, and
/// one that marks a load by which the server is tuned.
fn not_copying(plan: &Plan) -> i64 {
    let is_numbered = |table: &TablePlan| table.number.is_some() && table.staging.is_none();
    let numbers = plan.tables.iter().any(is_numbered);
    let tunes = plan.tuning.settings.iter().any(|setting| setting.scope == TuneScope::Server);
    2 + i64::from(numbers) + i64::from(tunes)
}

/// One that nobody reads from is lost by any writer, whether this load waits or not.
fn about_to_be_lost(slots: &[Slot]) -> Option<String> {
    let close = |slot: &&Slot| {
        let part = slot.keep_bytes.map_or(UNTIL_LOST_BYTES, |bytes| bytes / UNTIL_LOST_PART);
        slot.until_lost_bytes.is_some_and(|bytes| bytes < part.min(UNTIL_LOST_BYTES))
    };
    let slot = slots.iter().filter(|slot| slot.active).find(close)?;
    let left = slot.until_lost_bytes.unwrap_or(0) >> 20;
    Some(format!(
        "the replication slot {} is lost when {left} MB of WAL more are written (max_slot_wal_keep_size)",
        slot.name
    ))
}

fn gave_up(reason: &str, is_full: bool, paused: Duration) -> Error {
    let seconds = paused.as_secs();
    let put_right = if is_full { FREE_HINT } else { "put that right" };
    Error::new(ErrorKind::Server, format!("{reason}: the load has paused for {seconds} s and gives up")).with_hint(format!(
        "{put_right}, then run the same command again: it goes on where it stopped; or give a longer --pause-for"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_about_to_be_lost_by_what_is_kept_for_it() {
        let about = |until_lost: u64, keep: u64| {
            let slot = Slot {
                name: "s".to_owned(),
                active: true,
                held_bytes: 0,
                until_lost_bytes: Some(until_lost << 20),
                keep_bytes: Some(keep << 20),
            };
            about_to_be_lost(&[slot]).is_some()
        };
        assert!(about(500, 10_000) && !about(600, 10_000));
        // All that there is, and hardly anything.
        assert!(!about(272, 256) && about(60, 256));
    }

    fn replica(behind_bytes: u64, behind_ms: u64, replied_at_us: i64) -> Replica {
        Replica { name: "far".to_owned(), sender: 7, behind_bytes, behind_ms, replied_at_us }
    }

    #[test]
    fn silence_is_lag_by_the_clock_of_this_machine() {
        let mut guard = Guard::default();
        let begun = Instant::now();
        let mut behind_ms = |behind_bytes, replied_at_us, after_s| {
            let mut seen = [replica(behind_bytes, 40, replied_at_us)];
            guard.count_silence(&mut seen, begun + Duration::from_secs(after_s));
            seen[0].behind_ms
        };
        // Its clock is a day behind, then set a day ahead.
        let day_us = 86_400_000_000;
        assert_eq!(behind_ms(9, 5, 0), 40);
        assert_eq!(behind_ms(9, 5, 3), 3000);
        assert_eq!(behind_ms(0, 5, 4), 40, "it has everything");
        assert_eq!(behind_ms(9, 5 + day_us, 5), 40);
        assert_eq!(behind_ms(9, 5 + day_us, 7), 2000);
    }
}
