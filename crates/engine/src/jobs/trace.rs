//! How the number of sessions came about, for the summary.

use howdah_model::SessionsStep;
use std::collections::VecDeque;

/// So many steps are kept of the beginning of a load, and as many of its end: a search takes some ten at
/// most, and there is one every twenty seconds, however long the load.
const KEPT: usize = 100;

/// The first steps and the last.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    first: Vec<SessionsStep>,
    last: VecDeque<SessionsStep>,
}

impl Trace {
    /// One more.
    pub(crate) fn push(&mut self, step: SessionsStep) {
        if self.first.len() < KEPT {
            self.first.push(step);
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(step);
    }

    /// In the order in which they were taken.
    pub(crate) fn steps(&self) -> Vec<SessionsStep> {
        self.first.iter().chain(&self.last).cloned().collect()
    }

    /// The number that the last step came to.
    pub(crate) fn sessions(&self) -> Option<u32> {
        self.last.back().or(self.first.last()).map(|step| step.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::StepReason;

    #[test]
    fn the_first_steps_and_the_last_are_kept() {
        let mut trace = Trace::default();
        assert_eq!((trace.sessions(), trace.steps().len()), (None, 0));
        for no in 0..1000 {
            trace.push(SessionsStep {
                seconds: f64::from(no),
                before: no,
                after: no + 1,
                mb_per_second: 1.0,
                wait: None,
                wait_share: 0.0,
                reason: StepReason::Faster,
                settled: false,
            });
        }
        let kept: Vec<u32> = trace.steps().iter().map(|step| step.before).collect();
        assert_eq!(kept, (0..100).chain(900..1000).collect::<Vec<u32>>());
        assert_eq!(trace.sessions(), Some(1000));
    }
}
