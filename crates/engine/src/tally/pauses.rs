//! How long no chunk was begun, or none could be stored. There may be several reasons at a time: it is one
//! pause.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// All pauses of a load.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Reasons at present.
    reasons: u32,
    since: Option<Instant>,
    /// Of pauses that are over.
    paused: Duration,
}

impl Pauses {
    /// One reason more.
    pub(crate) fn begin(&self, now: Instant) {
        let mut state = self.0.lock();
        state.reasons += 1;
        state.since.get_or_insert(now);
    }

    /// One reason fewer.
    pub(crate) fn end(&self, now: Instant) {
        let mut state = self.0.lock();
        state.reasons = state.reasons.saturating_sub(1);
        if state.reasons == 0 {
            let paused = state.since.take().map(|since| now.duration_since(since));
            state.paused += paused.unwrap_or_default();
        }
    }

    /// All of them until now.
    pub(crate) fn paused(&self, now: Instant) -> Duration {
        let state = self.0.lock();
        state.paused + state.since.map(|since| now.duration_since(since)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_at_the_same_time_are_one_pause() {
        let (pauses, begun) = (Pauses::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let seconds = |now| pauses.paused(at(now)).as_secs();
        pauses.begin(at(0));
        pauses.begin(at(2));
        pauses.end(at(5));
        assert_eq!(seconds(6), 6);
        pauses.end(at(7));
        assert_eq!(seconds(9), 7);
        pauses.begin(at(10));
        pauses.end(at(11));
        assert_eq!(seconds(20), 8);
    }
}
