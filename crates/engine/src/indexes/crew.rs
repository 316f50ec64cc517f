//! How many indexes are built side by side, and by how many of the server's processes each.

use crate::pipeline::Run;
use howdah_model::{Jobs, Tune};

/// Builds side by side where nothing else says how many sessions the server bears.
const BUILDERS_DEFAULT: u32 = 2;
/// More gain nothing on one table: they read the same pages.
const BUILDERS_MAX: u32 = 8;

/// Who builds indexes: so many sessions side by side, each with CPUs for itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crew {
    builds: usize,
    builders: u32,
    /// `None` where builds take what the server's settings give them.
    pub(super) cpus_each: Option<u32>,
}

impl Crew {
    /// As many builders as there are indexes, sessions and, where that is known, one more than CPUs.
    ///
    /// Each build ends with waiting until its file is on the disk (`smgrimmedsync` in
    /// src/backend/access/nbtree/nbtsort.c), when another can have the CPU. Measured with 4 million rows of
    /// sensor_log on 2 CPUs, medians of whole loads by two and by three builders: three indexes of one table
    /// 3.73 and 3.67 s (7 runs), of 31 partitions each 3.93 and 3.75 s (3 runs; four 3.78 s).
    pub(super) fn new(builds: usize, sessions: u32, server_cpus: Option<u32>, tuned: bool) -> Crew {
        let wanted = u32::try_from(builds).unwrap_or(BUILDERS_MAX);
        let useful = server_cpus.map_or(BUILDERS_MAX, |cpus| cpus.saturating_add(1));
        let builders = wanted.min(sessions).min(useful).clamp(1, BUILDERS_MAX);
        let cpus_each = server_cpus.filter(|_| tuned).map(|cpus| (cpus / builders).max(1));
        Crew { builds, builders, cpus_each }
    }

    /// Those of a run, behind its last row.
    pub(crate) fn of(run: &Run, builds: usize) -> Crew {
        let tuned = run.plan.tuning.level >= Tune::Session;
        Crew::new(builds, sessions(run), run.context.connection.server_cpus(), tuned)
    }

    pub(crate) fn builders(self) -> usize {
        self.builders as usize
    }

    /// Workers beside the process of the build of this number: as many as CPUs are left. The longest, which
    /// is the first, outlasts others, and behind the last there is nobody else: these have one at least. It
    /// costs CPU time of its own, so not every build has.
    pub(crate) fn workers(self, no: usize) -> Option<u32> {
        let is_last = no >= self.builders() && self.builds - no < self.builders();
        let least = u32::from(no == 0 || is_last);
        self.cpus_each.map(|cpus| cpus.saturating_sub(1).max(least))
    }
}

/// Sessions that build behind the last row: as many as have copied, and one more where the server's CPUs are
/// known, as far as that leaves others their connections.
pub(super) fn sessions(run: &Run) -> u32 {
    let wanted = match run.plan.job.jobs {
        Jobs::Fixed(sessions) => sessions,
        Jobs::Auto => {
            let more = u32::from(run.context.connection.server_cpus().is_some());
            run.tally.sessions().max(BUILDERS_DEFAULT) + more
        }
    };
    wanted.min(run.gate.sessions_max()).max(1)
}
