//! What the watcher has seen of the copying sessions over a while, and what that says about one session more.

use howdah_model::StepReason;
use std::collections::BTreeMap;

/// From fewer looks nothing is concluded: the watcher looks four times a second, and six looks fall into a
/// measurement.
const LOOKS_MIN: u32 = 3;
/// Of a local server's CPUs so many are busy with its sessions alone where none is left: the rest is taken by
/// howdah, which reads, splits, encodes and sends, and by the server's own processes. Measured with two
/// sessions on two CPUs (`docs/concepts/sessions.md`).
const CPUS_SHARE: f64 = 0.75;

/// Adds up what the watcher sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    looks: u32,
    without_chunk: u32,
    waits: BTreeMap<String, u32>,
}

impl Seen {
    /// One look: sessions by wait event, among them those that could copy a chunk and had none.
    pub(crate) fn look(&mut self, waits: &[(String, u32)], without_chunk: u32) {
        self.looks += 1;
        self.without_chunk += without_chunk;
        for (wait, sessions) in waits {
            *self.waits.entry(wait.clone()).or_default() += sessions;
        }
    }

    /// What was seen after it.
    pub(super) fn add(&mut self, later: Seen) {
        self.looks += later.looks;
        self.without_chunk += later.without_chunk;
        for (wait, sessions) in later.waits {
            *self.waits.entry(wait).or_default() += sessions;
        }
    }

    /// The event seen most, with its share of all that was seen.
    pub(super) fn most(&self) -> Option<(&str, f64)> {
        let (wait, sessions) = self.waits.iter().max_by_key(|(_, sessions)| **sessions)?;
        Some((wait, f64::from(*sessions) / f64::from(self.samples().max(1))))
    }

    /// Why one session more would have nothing to do, if that is certain.
    ///
    /// Sessions that are mostly without a chunk share what the sources bring. Sessions that mostly wait for
    /// one another share something that only one has at a time, and that is never free then: the right to
    /// extend a table (`Lock:extend`), WAL (`LWLock:WALWrite`, `LWLock:WALInsert`), a page of an index
    /// (`LWLock:BufferContent`). Sessions that wait for I/O are no such proof, since storage serves several
    /// at once, nor those that wait for the network.
    pub(super) fn against_more(&self, sessions: u32, server_cpus: Option<u32>) -> Option<StepReason> {
        if self.looks < LOOKS_MIN || self.samples() == 0 {
            return None;
        }
        if self.is_half(self.without_chunk) {
            return Some(StepReason::NoChunks);
        }
        if self.is_half(self.queued()) {
            return Some(StepReason::Queues);
        }
        let computing = self.waits.get("CPU").copied().unwrap_or(0);
        let are_full =
            |cpus: u32| sessions >= cpus && f64::from(computing) >= f64::from(cpus * self.looks) * CPUS_SHARE;
        server_cpus.is_some_and(are_full).then_some(StepReason::CpusFull)
    }

    /// How many sessions had nothing to do at a time, rounded down.
    pub(super) fn idle_sessions(&self) -> u32 {
        self.queued() / self.looks.max(1)
    }

    /// Those without a chunk, and those that wait until another process lets something go.
    fn queued(&self) -> u32 {
        let is_queue = |wait: &&String| wait.starts_with("Lock:") || wait.starts_with("LWLock:");
        let queued: u32 =
            self.waits.iter().filter(|(wait, _)| is_queue(wait)).map(|(_, sessions)| *sessions).sum();
        queued + self.without_chunk
    }

    fn is_half(&self, samples: u32) -> bool {
        2 * samples >= self.samples()
    }

    fn samples(&self) -> u32 {
        self.waits.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(looks: u32, waits: &[(&str, u32)], without_chunk: u32) -> Seen {
        let waits: Vec<(String, u32)> =
            waits.iter().map(|(wait, sessions)| ((*wait).to_owned(), *sessions)).collect();
        let mut seen = Seen::default();
        (0..looks).for_each(|_| seen.look(&waits, without_chunk));
        seen
    }

    #[test]
    fn sessions_that_mostly_wait_for_one_another_or_for_chunks_speak_against_more() {
        let reason =
            |waits: &[(&str, u32)], without_chunk| seen(6, waits, without_chunk).against_more(8, None);
        assert_eq!(reason(&[("CPU", 3), ("Lock:extend", 5)], 0), Some(StepReason::Queues));
        assert_eq!(reason(&[("IO:WALWrite", 1), ("LWLock:WALWrite", 7)], 0), Some(StepReason::Queues));
        assert_eq!(
            reason(&[("CPU", 4), ("LWLock:WALInsert", 2), ("Lock:extend", 2)], 0),
            Some(StepReason::Queues)
        );
        assert_eq!(reason(&[("CPU", 2), ("Client:ClientRead", 6)], 6), Some(StepReason::NoChunks));
        // The network may be slow for one session and have room for others, and so may storage.
        assert_eq!(reason(&[("CPU", 2), ("Client:ClientRead", 6)], 0), None);
        assert_eq!(reason(&[("IO:DataFileExtend", 8)], 0), None);
        assert_eq!(reason(&[("CPU", 5), ("Lock:extend", 3)], 0), None);
        assert_eq!(seen(6, &[("CPU", 3), ("Lock:extend", 5)], 0).idle_sessions(), 5);
    }

    #[test]
    fn sessions_that_compute_speak_against_more_where_they_have_all_cpus_of_this_machine() {
        let reason = |sessions, cpus, computing| {
            seen(6, &[("CPU", computing), ("Client:ClientRead", sessions - computing)], 0)
                .against_more(sessions, cpus)
        };
        assert_eq!(reason(2, Some(2), 2), Some(StepReason::CpusFull));
        assert_eq!(reason(8, Some(8), 6), Some(StepReason::CpusFull));
        assert_eq!(reason(8, Some(8), 5), None);
        assert_eq!(reason(7, Some(8), 7), None);
        assert_eq!(reason(8, None, 8), None);
    }

    #[test]
    fn nothing_is_concluded_from_few_looks_or_none() {
        assert_eq!(seen(2, &[("Lock:extend", 8)], 0).against_more(8, Some(2)), None);
        assert_eq!(seen(6, &[], 0).against_more(8, Some(2)), None);
        assert_eq!(Seen::default().most(), None);
        assert_eq!(seen(6, &[("CPU", 3), ("Lock:extend", 1)], 0).most(), Some(("CPU", 0.75)));
    }
}
