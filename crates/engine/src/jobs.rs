//! How many sessions copy at once, found while loading.
//!
//! A number of sessions is kept for a few ticks and its rate measured; then another is tried. Throughput is
//! the judge: more sessions stay only if they are clearly faster, fewer if they are as fast, since every
//! session costs the server memory and locks. Steps double while they gain, and what lies between the best
//! number and one that is no better is halved then, so that a far number is found in a few measurements. What
//! the watcher has seen chooses the direction ([`seen`]): where one more session would certainly have nothing
//! to do, fewer are tried instead, or none. The first guess is the published rule for managed servers, one
//! session less than the server has CPUs, where these can be seen, and two where not.

mod seen;
mod trace;

use howdah_model::{Jobs, SessionsStep, StepReason};
pub(crate) use seen::Seen;
use std::time::Duration;
pub(crate) use trace::Trace;

/// Ticks over which a rate is measured; the first tick after a change is left out.
const TICKS_MEASURED: u32 = 3;
/// A change must gain this much to be kept: less is noise, and sessions are not free.
const GAIN_MIN: f64 = 1.05;
/// When it has settled the search rests for so many ticks, and looks again then.
const REST_TICKS: u32 = 40;
/// Only every so many searches try one session alone, which takes half of the rate from most loads for as
/// long as it is measured: 40,000 documents took 7.1 s instead of 6.3 because of it
/// (bench/workloads/sessions.py). It gains a tenth where sessions meet in the pages of indexes that stay. The
/// same searches go by throughput alone, whatever the watcher has seen.
const SEARCHES_IN_FULL: u32 = 4;
/// Differences of less than a quarter are not looked for: they change the rate by as much as noise does.
const FINENESS: u32 = 4;

/// Decides the number of sessions.
#[derive(Debug)]
pub(crate) struct Climber {
    fixed: bool,
    wanted: u32,
    /// What the memory can keep busy, and the server has room for.
    most: u32,
    /// What leaves others their connections, at present.
    room: u32,
    server_cpus: Option<u32>,
    window: Window,
    search: Option<Search>,
    searches: u32,
    resting: u32,
}

/// A measurement under way.
#[derive(Debug, Default)]
struct Window {
    ticks: u32,
    began_at: Duration,
    bytes_then: u64,
    seen: Seen,
}

impl Climber {
    /// `server_cpus` is known only where the server runs on this machine.
    pub(crate) fn new(jobs: Jobs, server_cpus: Option<u32>, most: u32) -> Climber {
        let (fixed, wanted) = match jobs {
            Jobs::Fixed(sessions) => (true, sessions),
            Jobs::Auto => (false, server_cpus.map_or(2, |cpus| cpus.saturating_sub(1).max(2)).min(most)),
        };
        Climber {
            fixed,
            wanted,
            most,
            room: u32::MAX,
            server_cpus,
            window: Window::default(),
            search: None,
            searches: 1,
            resting: 0,
        }
    }

    /// Begins with what was found before.
    pub(crate) fn begin_with(&mut self, sessions: u32) {
        if !self.fixed {
            self.wanted = sessions.clamp(1, self.most);
        }
    }

    /// The number of sessions that should copy now.
    pub(crate) fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The server refused a session: stay below from now on.
    pub(crate) fn refused(&mut self, at: Duration, open: u32) -> Option<SessionsStep> {
        self.most = open.max(1);
        self.come_down(at, StepReason::Refused)
    }

    /// More than so many would take the connections of others.
    pub(crate) fn leave_room(&mut self, at: Duration, room: u32) -> Option<SessionsStep> {
        self.room = room.max(1);
        self.come_down(at, StepReason::Ceiling)
    }

    fn come_down(&mut self, at: Duration, reason: StepReason) -> Option<SessionsStep> {
        let (before, most) = (self.wanted, self.ceiling());
        if self.fixed || before <= most {
            return None;
        }
        self.wanted = most;
        self.search = None;
        self.disturbed();
        Some(SessionsStep {
            seconds: at.as_secs_f64(),
            before,
            after: most,
            mb_per_second: 0.0,
            wait: None,
            wait_share: 0.0,
            reason,
            settled: false,
        })
    }

    fn ceiling(&self) -> u32 {
        self.most.min(self.room)
    }

    /// What is being measured now says nothing of the number of sessions: it is measured again.
    pub(crate) fn disturbed(&mut self) {
        self.window = Window::default();
    }

    /// One tick has passed; `bytes_taken` counts all bytes the server has taken so far, `at` the time since
    /// the first of them. Returns what was decided, if this was the end of a measurement.
    pub(crate) fn observe(&mut self, at: Duration, bytes_taken: u64, seen: Seen) -> Option<SessionsStep> {
        // Connecting and reading the first chunk says nothing about the server.
        if self.fixed || bytes_taken == 0 {
            return None;
        }
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        self.window.ticks += 1;
        if self.window.ticks == 1 {
            (self.window.began_at, self.window.bytes_then) = (at, bytes_taken);
            return None;
        }
        self.window.seen.add(seen);
        if self.window.ticks <= TICKS_MEASURED {
            return None;
        }
        let window = std::mem::take(&mut self.window);
        let bytes = bytes_taken.saturating_sub(window.bytes_then);
        let seconds = at.saturating_sub(window.began_at).as_secs_f64();
        // A load that stands still, behind a lock for instance, says nothing of the number either.
        if bytes == 0 || seconds <= 0.0 {
            return None;
        }
        // Exact enough: a rate, not a sum.
        Some(self.decide(at, bytes as f64 / seconds, &window.seen))
    }

    fn decide(&mut self, at: Duration, rate: f64, seen: &Seen) -> SessionsStep {
        let (before, most) = (self.wanted, self.ceiling());
        let in_full = self.searches.is_multiple_of(SEARCHES_IN_FULL);
        let (mut search, mut reason) = match self.search.take() {
            None => (Search::new(before, rate), StepReason::Measured),
            Some(mut search) => {
                let reason = search.judge(before, rate);
                (search, reason)
            }
        };
        if matches!(reason, StepReason::Measured | StepReason::Faster) {
            let against = if in_full { None } else { seen.against_more(before, self.server_cpus) };
            if let Some(against) = against.or((before >= most).then_some(StepReason::Ceiling)) {
                reason = against;
                search.turn_down(seen.idle_sessions());
            }
        }
        let next = search.next(if in_full { 1 } else { 2 }, most);
        self.wanted = next.unwrap_or(search.best);
        if next.is_some() {
            self.search = Some(search);
        } else {
            self.searches += 1;
            self.resting = REST_TICKS;
        }
        let (wait, wait_share) = seen.most().unzip();
        SessionsStep {
            seconds: at.as_secs_f64(),
            before,
            after: self.wanted,
            mb_per_second: rate / 1e6,
            wait: wait.map(str::to_owned),
            wait_share: wait_share.unwrap_or(0.0),
            reason,
            settled: next.is_none(),
        }
    }
}

/// What one search knows.
#[derive(Debug)]
struct Search {
    /// The number to keep, as far as is known, and its rate.
    best: u32,
    best_rate: f64,
    /// The highest rate of a number that was kept. Fewer sessions are measured against it, or a load that
    /// goes slower by a little with each session fewer would end with two.
    peak_rate: f64,
    /// The most sessions below the best that are slower.
    slower: Option<u32>,
    /// The fewest above it that are no faster.
    no_faster: Option<u32>,
    up: bool,
    step: u32,
    /// Fewer sessions were not only as fast, but faster: the best number may lie between them and those
    /// before.
    peaks: bool,
    /// Sessions that had nothing to do at the best number.
    idle: u32,
}

impl Search {
    fn new(sessions: u32, rate: f64) -> Search {
        Search {
            best: sessions,
            best_rate: rate,
            peak_rate: rate,
            slower: None,
            no_faster: None,
            up: true,
            step: fineness(sessions),
            peaks: false,
            idle: 0,
        }
    }

    /// Another number was measured.
    fn judge(&mut self, sessions: u32, rate: f64) -> StepReason {
        let (is_more, best) = (sessions > self.best, self.best);
        if is_more && rate <= self.best_rate * GAIN_MIN {
            self.no_faster = Some(sessions);
            return StepReason::NoGain;
        }
        if !is_more && rate * GAIN_MIN <= self.peak_rate {
            self.slower = Some(sessions);
            return StepReason::Slower;
        }
        self.peaks = !is_more && rate > self.best_rate * GAIN_MIN;
        *if is_more { &mut self.slower } else { &mut self.no_faster } = Some(best);
        (self.best, self.best_rate, self.peak_rate) = (sessions, rate, rate.max(self.peak_rate));
        if is_more { StepReason::Faster } else { StepReason::AsFast }
    }

    /// From now on only fewer are tried, first of all without those that had nothing to do.
    fn turn_down(&mut self, idle: u32) {
        (self.up, self.idle, self.step) = (false, idle, fineness(self.best));
    }

    /// The number to measure next; none when the best is known well enough.
    fn next(&mut self, least: u32, most: u32) -> Option<u32> {
        if self.up {
            let next = self.more(most);
            if next.is_some() {
                return next;
            }
            self.turn_down(0);
        }
        let next = self.fewer(least.min(self.best));
        let strides = next.is_some() && self.slower.is_none();
        if self.peaks && !strides {
            (self.peaks, self.up) = (false, true);
            return self.no_faster.and_then(|bound| self.halfway(bound)).or(next);
        }
        next
    }

    fn more(&mut self, most: u32) -> Option<u32> {
        match self.no_faster {
            Some(bound) => self.halfway(bound),
            None => self.stride(self.best.saturating_add(self.step).min(most)),
        }
    }

    fn fewer(&mut self, least: u32) -> Option<u32> {
        match (self.slower, std::mem::take(&mut self.idle)) {
            (Some(bound), _) => self.halfway(bound),
            (None, idle @ 2..) => {
                Some(self.best.saturating_sub(idle).max(least)).filter(|next| *next != self.best)
            }
            (None, _) => self.stride(self.best.saturating_sub(self.step).max(least)),
        }
    }

    fn stride(&mut self, next: u32) -> Option<u32> {
        self.step = self.step.saturating_mul(2);
        (next != self.best).then_some(next)
    }

    fn halfway(&self, bound: u32) -> Option<u32> {
        let gap = self.best.abs_diff(bound);
        let next = if bound > self.best { self.best + gap / 2 } else { self.best - gap / 2 };
        (gap > fineness(self.best)).then_some(next)
    }
}

fn fineness(sessions: u32) -> u32 {
    (sessions / FINENESS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(500);

    /// A load on a server that takes `rate(sessions, tick)` MB a second, and whose sessions are seen at
    /// `waits(sessions)`.
    fn load(
        climber: &mut Climber,
        ticks: u32,
        rate: impl Fn(u32, u32) -> f64,
        waits: impl Fn(u32) -> Vec<(&'static str, u32)>,
    ) -> Vec<SessionsStep> {
        let mut taken = 1e6;
        let mut step = |tick: u32| {
            let waits: Vec<(String, u32)> =
                waits(climber.wanted()).into_iter().map(|(wait, count)| (wait.to_owned(), count)).collect();
            let mut seen = Seen::default();
            let without_chunk =
                waits.iter().filter(|(wait, _)| wait.starts_with("Client")).map(|seen| seen.1).sum();
            (0..if waits.is_empty() { 0 } else { 2 }).for_each(|_| seen.look(&waits, without_chunk));
            let step = climber.observe(TICK * tick, taken as u64, seen);
            taken += rate(climber.wanted(), tick) * 1e6 * TICK.as_secs_f64();
            step
        };
        (0..ticks).filter_map(&mut step).collect()
    }

    /// The same where nothing is seen of the sessions.
    fn unseen(climber: &mut Climber, ticks: u32, rate: impl Fn(u32, u32) -> f64) -> Vec<SessionsStep> {
        load(climber, ticks, rate, |_| Vec::new())
    }

    fn auto(server_cpus: Option<u32>) -> Climber {
        Climber::new(Jobs::Auto, server_cpus, 64)
    }

    /// Everybody gets as much as the first, up to `best` of them; each one beyond that takes `loss` from all.
    fn curve(best: u32, loss: f64) -> impl Fn(u32) -> f64 {
        move |sessions| {
            let beyond = f64::from(sessions.saturating_sub(best));
            (f64::from(best.min(sessions)) - loss * beyond).max(0.5)
        }
    }

    fn moves(steps: &[SessionsStep]) -> Vec<(u32, u32)> {
        steps.iter().map(|step| (step.before, step.after)).collect()
    }

    fn settled(steps: &[SessionsStep]) -> &SessionsStep {
        steps.iter().find(|step| step.settled).unwrap()
    }

    /// Between 0 and 1, the same in every run.
    fn noise(seed: u32, tick: u32) -> f64 {
        let mut bits = (u64::from(seed) << 32 | u64::from(tick)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((bits ^ bits >> 32) & 0xffff) as f64 / 65535.0
    }

    #[test]
    fn any_number_is_found_within_half_a_minute_and_most_much_sooner() {
        for (server_cpus, mean_seconds_max) in
            [(None, 18.0), (Some(2), 18.0), (Some(8), 17.0), (Some(32), 11.0)]
        {
            let (mut seconds, mut searches) = (0.0, 0.0);
            for best in 2..=64 {
                for loss in [0.0, 0.1, 0.5] {
                    let rate = curve(best, loss);
                    let steps = unseen(&mut auto(server_cpus), 60, |sessions, _| rate(sessions));
                    let end = settled(&steps);
                    let what = format!("{server_cpus:?} {best} {loss} {} s {:?}", end.seconds, moves(&steps));
                    assert!(rate(end.after) >= 0.88 * rate(best), "{what}");
                    assert!(f64::from(end.after) <= 1.25 * f64::from(best) + 1.0, "{what}");
                    assert!(end.seconds <= 28.0, "{what}");
                    (seconds, searches) = (seconds + end.seconds, searches + 1.0);
                }
            }
            assert!(seconds / searches <= mean_seconds_max, "{server_cpus:?} {}", seconds / searches);
        }
    }

    #[test]
    fn the_time_to_find_a_number_grows_by_little_with_it() {
        let seconds = |(server_cpus, best)| {
            let steps = unseen(&mut auto(server_cpus), 60, |sessions, _| curve(best, 0.2)(sessions));
            settled(&steps).seconds
        };
        let far = [2, 4, 8, 16, 24, 64].map(|best| seconds((None, best)));
        let near = [(2, 2), (4, 4), (8, 8), (8, 4), (32, 32), (32, 8)]
            .map(|(cpus, best)| seconds((Some(cpus), best)));
        assert_eq!(far, [3.5, 13.5, 15.5, 17.5, 23.5, 15.5]);
        assert_eq!(near, [3.5, 7.5, 5.5, 13.5, 5.5, 19.5]);
    }

    #[test]
    fn noise_does_not_lead_far_astray() {
        for (server_cpus, best) in [(Some(2), 2), (None, 2), (None, 4), (None, 8), (None, 24), (Some(32), 16)]
        {
            let rate = curve(best, 0.2);
            let mut shares = Vec::new();
            for seed in 0..500 {
                let noisy = |sessions, tick| rate(sessions) * (0.95 + 0.1 * noise(seed, tick));
                let steps = unseen(&mut auto(server_cpus), 80, noisy);
                let end = settled(&steps);
                assert!(end.seconds <= 26.0, "{best} {seed} {:?}", moves(&steps));
                shares.push(rate(end.after) / rate(best));
            }
            shares.sort_by(f64::total_cmp);
            assert!(shares[50] >= 0.85 && shares[250] >= 0.9, "{best} {:?}", &shares[..50]);
        }
    }

    #[test]
    fn a_rate_that_falls_by_a_little_with_each_session_fewer_is_kept() {
        let rate = |sessions: u32, _| f64::from(sessions.min(40)) + 60.0;
        let steps = unseen(&mut auto(Some(40)), 60, rate);
        assert!(rate(settled(&steps).after, 0) >= 0.95 * 99.0, "{:?}", moves(&steps));
    }

    #[test]
    fn two_cpus_that_are_used_up_get_no_third_session() {
        let rate = |sessions: u32, _| f64::from(sessions.min(2));
        let busy = |sessions| vec![("CPU", sessions)];
        let steps = load(&mut auto(Some(2)), 130, rate, busy);
        let expected = (2, StepReason::CpusFull, true);
        assert!(steps.len() >= 3);
        assert!(steps.iter().all(|step| (step.after, step.reason, step.settled) == expected), "{steps:?}");
        assert_eq!((steps[0].wait.as_deref(), steps[0].wait_share), (Some("CPU"), 1.0));
        // Where they are not used up, and where nobody has looked, throughput finds the same.
        for seen in [0, 1] {
            let seen =
                |sessions| if seen == 0 { vec![] } else { vec![("CPU", 1), ("IO:WALWrite", sessions - 1)] };
            let steps = load(&mut auto(Some(2)), 40, rate, seen);
            assert_eq!(moves(&steps[..2]), [(2, 3), (3, 2)], "{steps:?}");
            assert!(steps[1].settled);
        }
    }

    #[test]
    fn sessions_that_queue_are_made_fewer_and_every_fourth_search_does_not_believe_it() {
        // One at a time extends the table: three sessions are enough to keep it growing.
        let rate = |sessions: u32, _| f64::from(sessions.min(3));
        let queue =
            |sessions: u32| vec![("CPU", sessions.min(3)), ("Lock:extend", sessions.saturating_sub(3))];
        let mut climber = auto(Some(16));
        let steps = load(&mut climber, 250, rate, queue);
        assert_eq!((steps[0].before, steps[0].reason), (15, StepReason::Queues));
        // Without the twelve that wait.
        assert_eq!(steps[0].after, 3);
        let end = settled(&steps);
        assert!((3..=4).contains(&end.after) && end.seconds <= 6.0, "{end:?}");
        let mut climber = auto(Some(2));
        let all_wait = |sessions: u32| vec![("CPU", 1), ("LWLock:WALWrite", sessions - 1)];
        let steps = load(&mut climber, 250, |_, _| 1.0, all_wait);
        let tried = |search: usize| steps.iter().filter(|step| step.settled).nth(search).unwrap().seconds;
        let above = steps.iter().find(|step| step.after > 2).unwrap();
        assert!(above.seconds > tried(2), "{:?}", moves(&steps));
        assert!(above.seconds < tried(3), "{:?}", moves(&steps));
    }

    #[test]
    fn sessions_without_chunks_are_made_fewer() {
        let rate = |sessions: u32, _| f64::from(sessions.min(4));
        let idle =
            |sessions: u32| vec![("CPU", sessions.min(4)), ("Client:ClientRead", sessions.saturating_sub(4))];
        let steps = load(&mut auto(Some(32)), 60, rate, idle);
        let end = settled(&steps);
        assert!((4..=5).contains(&end.after) && end.seconds <= 8.0, "{:?}", moves(&steps));
        assert_eq!(steps[0].reason, StepReason::NoChunks);
        let blind = unseen(&mut auto(Some(32)), 60, rate);
        assert!(end.seconds < settled(&blind).seconds, "{:?}", moves(&blind));
    }

    #[test]
    fn one_session_alone_is_tried_late_and_kept_where_it_is_best() {
        let steps = unseen(&mut auto(Some(2)), 100, |sessions, _| f64::from(sessions.min(2)));
        assert!(steps.iter().all(|step| (2..=3).contains(&step.after)), "{steps:?}");
        let steps = unseen(&mut auto(Some(2)), 400, |sessions, _| 10.0 / f64::from(sessions));
        assert_eq!(steps.last().unwrap().after, 1, "{:?}", moves(&steps));
    }

    #[test]
    fn steps_join_and_begin_with_the_first_guess() {
        let mut climber = auto(Some(8));
        let steps = unseen(&mut climber, 300, |sessions, tick| {
            curve(5, 0.3)(sessions) * (1.0 - 0.2 * noise(7, tick))
        });
        assert_eq!(steps[0].before, 7);
        assert!(
            steps.windows(2).all(|pair| pair[0].after == pair[1].before && pair[0].seconds < pair[1].seconds)
        );
        assert_eq!(steps.last().unwrap().after, climber.wanted());
    }

    #[test]
    fn what_stands_still_or_is_disturbed_is_not_measured() {
        let mut climber = auto(Some(4));
        assert_eq!(unseen(&mut climber, 20, |_, _| 0.0), []);
        for tick in 0..20 {
            climber.disturbed();
            assert_eq!(climber.observe(TICK * tick, 1_000_000 * u64::from(tick), Seen::default()), None);
        }
    }

    #[test]
    fn there_are_never_more_than_the_server_has_room_for() {
        let mut climber = auto(None);
        let steps = unseen(&mut climber, 16, |sessions, _| f64::from(sessions));
        assert_eq!(steps.last().unwrap().after, 17, "{:?}", moves(&steps));
        let step = climber.refused(TICK * 21, 10).unwrap();
        assert_eq!((step.before, step.after, step.reason), (17, 10, StepReason::Refused));
        let step = climber.leave_room(TICK * 22, 6).unwrap();
        assert_eq!((step.before, step.after, step.reason), (10, 6, StepReason::Ceiling));
        let steps = unseen(&mut climber, 30, |sessions, _| f64::from(sessions));
        assert_eq!((steps[0].before, steps[0].reason), (6, StepReason::Ceiling));
        assert!(steps.iter().all(|step| step.after <= 6), "{:?}", moves(&steps));
        assert_eq!(climber.leave_room(TICK * 50, 100), None);
        let steps = unseen(&mut climber, 100, |sessions, _| f64::from(sessions));
        assert_eq!(steps.iter().map(|step| step.after).max(), Some(10), "{:?}", moves(&steps));
    }

    #[test]
    fn a_fixed_number_stays() {
        let mut climber = Climber::new(Jobs::Fixed(7), Some(2), 7);
        climber.begin_with(3);
        assert_eq!(climber.leave_room(TICK, 3), None);
        assert_eq!(unseen(&mut climber, 50, |_, _| 1.0), []);
        assert_eq!(climber.wanted(), 7);
    }

    #[test]
    fn the_first_guess_is_one_less_than_the_cpus_and_at_least_two() {
        assert_eq!(Climber::new(Jobs::Auto, Some(8), 64).wanted(), 7);
        assert_eq!(Climber::new(Jobs::Auto, Some(2), 64).wanted(), 2);
        assert_eq!(Climber::new(Jobs::Auto, None, 64).wanted(), 2);
        assert_eq!(Climber::new(Jobs::Auto, Some(96), 14).wanted(), 14);
        let mut climber = Climber::new(Jobs::Auto, Some(8), 64);
        climber.begin_with(12);
        assert_eq!(climber.wanted(), 12);
    }
}
