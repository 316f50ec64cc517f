//! When a server that has refused a session is asked for one again.

use howdah_model::Error;
use std::time::{Duration, Instant};

/// When it is tried again for the first time; doubles up to the largest. What passes soon, as when somebody
/// else's sessions end, costs little time then, and what lasts does not fill the server's log with refused
/// logins, which may lock an account.
const FIRST: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_secs(60);

/// `operator_intervention`: a server that starts or stops takes sessions soon, and looks at no login before.
const PASSES: &str = "57P";

/// The tries to open one session.
pub(crate) struct Tries {
    delay: Duration,
    due: Option<Instant>,
}

impl Default for Tries {
    fn default() -> Tries {
        Tries { delay: FIRST, due: None }
    }
}

impl Tries {
    /// It may be tried.
    pub(crate) fn is_due(&self) -> bool {
        self.due.is_none_or(|due| due <= Instant::now())
    }

    /// It has failed. A server that gives no answer has refused nothing, and takes its time anyway.
    pub(crate) fn failed(&mut self, error: &Error) {
        let Some(sqlstate) = error.sqlstate() else { return };
        let delay = if sqlstate.starts_with(PASSES) { FIRST } else { self.next_delay() };
        self.due = Some(Instant::now() + delay);
    }

    /// There is one, and another one may be tried at once.
    pub(crate) fn opened(&mut self) {
        *self = Tries::default();
    }

    /// How long to wait for the next try; longer each time.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.delay;
        self.delay = (delay * 2).min(MAX);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::ErrorKind;

    fn refusal(sqlstate: &str) -> Error {
        Error::new(ErrorKind::ConnectionRefused, "no").with_sqlstate(sqlstate)
    }

    #[test]
    fn what_is_refused_is_tried_again_later_and_later() {
        let mut tries = Tries::default();
        let mut left_s = |error: &Error| {
            tries.failed(error);
            assert_eq!(tries.is_due(), tries.due.is_none());
            tries.due.map_or(0, |due| due.duration_since(Instant::now()).as_secs_f64().ceil() as u64)
        };
        assert_eq!(left_s(&Error::new(ErrorKind::ConnectionLost, "no answer")), 0);
        let delays: Vec<u64> = (0..8).map(|_| left_s(&refusal("53300"))).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(left_s(&refusal("57P03")), 1, "it starts");
        tries.opened();
        assert!(tries.is_due());
    }
}
