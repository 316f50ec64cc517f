//! What is under way is broken off before it fills a disk of the server: one that cannot write WAL stops, and
//! everybody with it. What is broken off is a transaction that comes again when there is room: a chunk, an
//! index, a part of a merge.
//!
//! This asks nobody: only disks of this machine can be seen (see [`crate::disk`]).

use crate::Connection;
use crate::disk::{Place, Room};
use crate::pipeline::Run;
use howdah_model::{Error, ErrorKind, Event, Result, sqlstate};
use howdah_target::session::Session;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::sleep;

/// Of a disk this part is kept free, between the two limits: what comes within the second between two looks
/// of the guard, twice, as rows and as WAL.
const FREE_PART: u64 = 10;
const FREE_BYTES_MIN: u64 = 64 << 20;
const FREE_BYTES_MAX: u64 = 1 << 30;
/// What is under way is broken off where of that only this part is left.
const SCARCE_PART: u64 = 2;
/// How often the disks are looked at: while there is room, and while there is little. A gigabyte a second
/// fills 10 MB between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_OFTEN: Duration = Duration::from_millis(10);
/// Whoever does what is to be broken off leaves its session within this time.
const LEFT_WITHIN: Duration = Duration::from_millis(1);

/// The disks of the server that are looked at, and whether one of them has next to no room.
#[derive(Clone, Default)]
pub(crate) struct Disks(Arc<State>);

#[derive(Default)]
struct State {
    places: Mutex<Vec<Place>>,
    scarce: watch::Sender<Option<Scarce>>,
}

/// Which disk has next to no room: `the server's disk for WAL has 20 MB left, of which 64 MB are kept free`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scarce(String);

impl fmt::Display for Scarce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is said of a disk that has less room than is kept free.
pub(crate) fn told(place: &Place, room: Room, keep_bytes: u64) -> String {
    let (what, free, keep) = (&place.what, room.free_bytes >> 20, keep_bytes >> 20);
    format!("the server's disk for {what} has {free} MB left, of which {keep} MB are kept free")
}

pub(crate) fn free_bytes_min(room: Room) -> u64 {
    (room.all_bytes / FREE_PART).clamp(FREE_BYTES_MIN, FREE_BYTES_MAX)
}

impl Disks {
    pub(crate) fn set_places(&self, places: Vec<Place>) {
        *self.0.places.lock() = places;
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        self.0.places.lock().clone()
    }

    /// One has less room than this part of what is kept free.
    fn first_below(&self, part: u64) -> Option<Scarce> {
        let places = self.0.places.lock();
        places.iter().find_map(|place| {
            let room = place.room().ok()?;
            let keep_bytes = free_bytes_min(room);
            (room.free_bytes < keep_bytes / part).then(|| Scarce(told(place, room, keep_bytes)))
        })
    }

    /// One has less room than is kept free.
    pub(crate) fn are_full(&self) -> bool {
        self.first_below(1).is_some()
    }

    /// Which of them has next to no room.
    pub(crate) fn scarce(&self) -> Option<Scarce> {
        self.0.scarce.borrow().clone()
    }

    /// True if that is news.
    fn set_scarce(&self, scarce: Option<Scarce>) -> bool {
        let is_scarce = scarce.is_some();
        let before = self.0.scarce.send_replace(scarce);
        before.is_some() != is_scarce
    }

    /// Returns once a disk has next to no room.
    async fn until_scarce(&self) -> Scarce {
        loop {
            if let Some(scarce) = self.scarce() {
                return scarce;
            }
            // The sender lives in `self`.
            let _ = self.0.scarce.subscribe().wait_for(Option::is_some).await;
        }
    }

    /// Returns once none has, which it is as well when nobody looks any more.
    pub(crate) async fn until_ample(&self) {
        let _ = self.0.scarce.subscribe().wait_for(Option::is_none).await;
    }
}

impl Connection {
    /// Does the work, whose parts are broken off while a disk of the server has next to no room.
    pub(crate) async fn watching_disks<T>(&self, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            done = work => done,
            never = self.watch_disks() => match never {},
        };
        self.disks().set_scarce(None);
        done
    }

    async fn watch_disks(&self) -> Infallible {
        loop {
            let scarce = self.disks().first_below(SCARCE_PART);
            let is_scarce = scarce.is_some();
            let told = scarce.as_ref().map(ToString::to_string).unwrap_or_default();
            if self.disks().set_scarce(scarce) && is_scarce {
                self.tell_of_scarcity(&told);
            }
            if is_scarce {
                sleep(LEFT_WITHIN).await;
                // What nobody waits for any more: the server notices that a client has gone only when it
                // sends an answer.
                self.end_now().await;
            }
            let is_full = !is_scarce && self.disks().are_full();
            sleep(if is_full { LOOK_OFTEN } else { LOOK_EVERY }).await;
        }
    }

    fn tell_of_scarcity(&self, scarce: &str) {
        if let Some(listener) = self.listener() {
            let message = format!("{scarce}: what is under way is broken off");
            listener.on_event(&Event::Notice { message });
        }
    }

    /// As [`Connection::attend`], for work that can be done again from its beginning.
    ///
    /// # Errors
    /// Those of `attend`. The inner error: it was broken off, or not begun, and its session is gone.
    pub(crate) fn attend_unless_scarce<T>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<std::result::Result<T, Scarce>>> {
        let work = self.attend(session, work);
        async move {
            tokio::select! {
                biased;
                scarce = self.disks().until_scarce() => {
                    self.lose(session.backend());
                    Ok(Err(scarce))
                }
                done = work => done.map(Ok),
            }
        }
    }

    /// Returns once a disk has next to no room, but for work for which it is too late by then.
    pub(crate) async fn until_broken_off(&self, is_too_late: impl Fn() -> bool) -> Scarce {
        let scarce = self.disks().until_scarce().await;
        if is_too_late() { std::future::pending().await } else { scarce }
    }
}

/// One piece of work that is broken off, perhaps again and again.
#[derive(Debug, Default)]
pub(crate) struct BrokenOff {
    since: Option<Instant>,
    times: u32,
}

impl BrokenOff {
    /// Waits until there is room for the next try.
    ///
    /// # Errors
    /// Server, where tries were in vain for as long as a load pauses at most; why the load has given up;
    /// `Interrupted`.
    pub(crate) async fn wait(&mut self, run: &Run, what: impl fmt::Display, scarce: &Scarce) -> Result<()> {
        let since = self.since.get_or_insert_with(Instant::now).elapsed();
        self.times += 1;
        if self.times > 1 && since.as_millis() >= u128::from(run.plan.job.guards.pause_for_ms) {
            let (times, seconds) = (self.times, since.as_secs());
            return Err(broken_off(format!("{what} was broken off {times} times in {seconds} s: {scarce}")));
        }
        run.when_open().await
    }
}

/// What makes room.
pub(crate) const FREE_HINT: &str = "free or add disk space on the server, where a replication slot or a failing archive_command may keep WAL";

/// The error of something that has no room.
pub(crate) fn broken_off(message: String) -> Error {
    let hint = format!(
        "{FREE_HINT}; --jobs 1 writes less at a time; then run the same command again: it goes on where it stopped"
    );
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::DISK_FULL).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_small_disk_is_kept_free_and_a_gigabyte_of_a_large_one() {
        let keep = |all_bytes| free_bytes_min(Room { free_bytes: 0, all_bytes });
        assert_eq!(keep(100 << 20), 64 << 20);
        assert_eq!(keep(5000 << 20), 500 << 20);
        assert_eq!(keep(1 << 40), 1 << 30);
    }

    #[tokio::test]
    async fn work_waits_until_no_disk_is_short_of_room_any_more() {
        let disks = Disks::default();
        assert!(disks.set_scarce(Some(Scarce("one".to_owned()))));
        assert!(!disks.set_scarce(Some(Scarce("another".to_owned()))), "it is no news");
        assert_eq!(disks.until_scarce().await.to_string(), "another");
        let waiting = tokio::time::timeout(Duration::from_millis(1), disks.until_ample()).await;
        assert!(waiting.is_err());
        assert!(disks.set_scarce(None));
        disks.until_ample().await;
    }
}
