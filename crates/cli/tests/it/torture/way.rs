//! How the bytes of the files reach a load.

use super::faults::Fault;
use fastrand::Rng;

/// What the command calls standard input, as a source and as the name of what it brings.
pub(super) const INPUT: &str = "-";

/// Files, objects, or what can be read but once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Folder,
    Bucket,
    /// Standard input.
    Input,
    /// A named pipe for each file.
    Pipes,
}

impl Way {
    /// One that this fault can strike.
    pub(super) fn draw(random: &mut Rng, fault: Fault) -> Way {
        match random.u8(..9) {
            _ if fault.needs_bucket() => Way::Bucket,
            0..3 => Way::Bucket,
            3 if fault != Fault::Changed => Way::Input,
            4 if fault != Fault::Changed => Way::Pipes,
            _ => Way::Folder,
        }
    }

    /// A run that goes on needs the same bytes sent again, and the job a name by which it is known.
    pub(super) fn is_once(self) -> bool {
        matches!(self, Way::Input | Way::Pipes)
    }

    /// Options of a load, but for its sources.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        if self.is_once() { &["--job-id", "nightly"] } else { &[] }
    }

    /// How the files of a second load come, which is another job.
    pub(super) fn of_beside(self) -> Way {
        if self.is_once() { Way::Folder } else { self }
    }
}
