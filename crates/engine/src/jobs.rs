//! How many sessions copy at once, found while loading.
//!
//! A plain hill climb on throughput: a number of sessions is kept for a few ticks, its rate measured, and
//! one session more (or fewer) tried; what is not clearly faster is taken back, since every session costs
//! the server memory and locks. The first guess is the published rule for managed servers, one session
//! less than the server has CPUs, where these can be seen, and two where not.

use howdah_model::Jobs;

/// Ticks over which a rate is measured; the first tick after a change is left out.
const TICKS_MEASURED: u32 = 3;
/// A change must gain this much to be kept: less is noise, and sessions are not free.
const GAIN_MIN: f64 = 1.05;
/// After this many measurements without a gain the search rests, and looks again later.
const REST_TICKS: u32 = 40;
/// Only every so many searches try one session alone, which takes half of the rate from most loads for as long as it is
/// measured: 40,000 documents took 7.1 s instead of 6.3 because of it (bench/workloads/sessions.py). It gains a tenth where
/// sessions meet in the pages of indexes that stay.
const SEARCHES_WITH_ONE: u32 = 4;

/// Decides the number of sessions.
#[derive(Debug)]
pub struct Climber {
    fixed: bool,
    wanted: u32,
    most: u32,
    best: Option<(u32, f64)>,
    step_up: bool,
    ticks: u32,
    resting: u32,
    searches: u32,
    bytes_at_start: u64,
}

impl Climber {
    /// `server_cpus` is known only where the server runs on this machine.
    pub fn new(jobs: Jobs, server_cpus: Option<u32>, most: u32) -> Climber {
        let (fixed, wanted) = match jobs {
            Jobs::Fixed(sessions) => (true, sessions),
            Jobs::Auto => (false, server_cpus.map_or(2, |cpus| cpus.saturating_sub(1).max(2)).min(most)),
        };
        Climber {
            fixed,
            wanted,
            most,
            best: None,
            step_up: true,
            ticks: 0,
            resting: 0,
            searches: 1,
            bytes_at_start: 0,
        }
    }

    /// The number of sessions that should copy now.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The server refused a session: stay below from now on.
    pub fn refused(&mut self, open: u32) {
        self.most = open.max(1);
        self.wanted = self.wanted.min(self.most);
        self.restart();
    }

    /// One tick has passed; `bytes_taken` counts all bytes the server has taken so far.
    pub fn observe(&mut self, bytes_taken: u64) {
        // Connecting and reading the first chunk says nothing about the server.
        if self.fixed || bytes_taken == 0 {
            return;
        }
        if self.resting > 0 {
            self.resting -= 1;
            self.ticks = 0;
            return;
        }
        self.ticks += 1;
        if self.ticks == 1 {
            self.bytes_at_start = bytes_taken;
            return;
        }
        if self.ticks <= TICKS_MEASURED {
            return;
        }
        let bytes = bytes_taken.saturating_sub(self.bytes_at_start);
        // Exact enough: a rate, not a sum.
        let rate = bytes as f64 / f64::from(self.ticks - 1);
        self.ticks = 0;
        self.climb(rate);
    }

    fn climb(&mut self, rate: f64) {
        match self.best {
            None => {
                self.best = Some((self.wanted, rate));
                self.try_next();
            }
            Some((_, best)) if rate > best * GAIN_MIN => {
                self.best = Some((self.wanted, rate));
                self.try_next();
            }
            // Fewer sessions at the same rate are better.
            Some((sessions, best)) if self.wanted < sessions && rate * GAIN_MIN > best => {
                self.best = Some((self.wanted, rate));
                self.try_next();
            }
            Some((sessions, _)) => {
                self.wanted = sessions;
                if self.step_up {
                    self.step_up = false;
                    self.try_next();
                } else {
                    self.rest();
                }
            }
        }
    }

    fn try_next(&mut self) {
        let next = if self.step_up { (self.wanted + 1).min(self.most) } else { self.one_less() };
        if next == self.wanted && self.step_up {
            self.step_up = false;
            self.wanted = self.one_less();
        } else {
            self.wanted = next;
        }
    }

    fn one_less(&self) -> u32 {
        let least = if self.searches.is_multiple_of(SEARCHES_WITH_ONE) { 1 } else { 2 };
        self.wanted.saturating_sub(1).max(least.min(self.wanted))
    }

    fn rest(&mut self) {
        self.restart();
        self.searches += 1;
        self.resting = REST_TICKS;
    }

    fn restart(&mut self) {
        self.best = None;
        self.step_up = true;
        self.ticks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a load on a server whose rate is `rate(sessions)` for this many ticks.
    fn settle(climber: &mut Climber, ticks: u32, rate: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut taken = 0.0;
        (0..ticks)
            .map(|_| {
                climber.observe(taken as u64);
                taken += rate(climber.wanted()) * 1e6;
                climber.wanted()
            })
            .collect()
    }

    #[test]
    fn sessions_are_added_while_they_help() {
        let mut climber = Climber::new(Jobs::Auto, None, 16);
        let seen = settle(&mut climber, 60, |sessions| f64::from(sessions.min(6)));
        assert!((6..=7).contains(seen.last().unwrap()), "{seen:?}");
    }

    #[test]
    fn sessions_are_dropped_when_they_hurt() {
        let mut climber = Climber::new(Jobs::Auto, Some(9), 16);
        let seen = settle(&mut climber, 80, |sessions| 10.0 - (f64::from(sessions) - 4.0).abs());
        assert!(seen.iter().rev().take(20).all(|sessions| (3..=5).contains(sessions)), "{seen:?}");
    }

    #[test]
    fn one_session_alone_is_tried_late_and_kept_where_it_is_best() {
        let mut climber = Climber::new(Jobs::Auto, Some(2), 16);
        let seen = settle(&mut climber, 100, |sessions| f64::from(sessions.min(2)));
        assert!(seen.iter().all(|sessions| (2..=3).contains(sessions)), "{seen:?}");
        let mut climber = Climber::new(Jobs::Auto, Some(2), 16);
        let seen = settle(&mut climber, 400, |sessions| 10.0 / f64::from(sessions));
        assert_eq!(seen.last(), Some(&1), "{seen:?}");
    }

    #[test]
    fn a_fixed_number_stays() {
        let mut climber = Climber::new(Jobs::Fixed(7), Some(2), 7);
        assert!(settle(&mut climber, 50, |_| 1.0).iter().all(|sessions| *sessions == 7));
    }

    #[test]
    fn the_first_guess_is_one_less_than_the_cpus_and_at_least_two() {
        assert_eq!(Climber::new(Jobs::Auto, Some(8), 64).wanted(), 7);
        assert_eq!(Climber::new(Jobs::Auto, Some(2), 64).wanted(), 2);
        assert_eq!(Climber::new(Jobs::Auto, None, 64).wanted(), 2);
        assert_eq!(Climber::new(Jobs::Auto, Some(96), 14).wanted(), 14);
    }
}
