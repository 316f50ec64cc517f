//! The ways in which a load under way is ended, and how the world is put right again.

use crate::scene::{PATIENCE, Scene};
use fastrand::Rng;
use howdah_testkit::{Fault, Finished, HttpFailure, Proxy, Running, Server};
use std::time::{Duration, Instant};

/// What happens to a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strike {
    /// kill -9 of howdah.
    KillClient,
    /// `pg_terminate_backend` of all its sessions.
    Terminate,
    /// An immediate shutdown of the server, and crash recovery.
    Crash,
    /// A fast shutdown of the server.
    Restart,
    /// All connections are cut.
    Cut,
    /// One connection is cut at some byte of the data.
    CutAtByte,
    /// A connection is cut just before its COMMIT reaches the server.
    CutBeforeCommit,
    /// A connection is cut just after its COMMIT reached the server: it is in, and nobody says so.
    CutAfterCommit,
    /// All connections are cut and new ones refused.
    Refuse,
    /// All connections stand still, until they are given up.
    Stall,
    /// The body of an S3 object is cut short.
    ShortBody,
    /// S3 says 503 Slow Down.
    SlowDown,
}

impl Strike {
    /// What is struck at every server, quickly.
    pub(crate) const QUICK: [Strike; 11] = [
        Strike::KillClient,
        Strike::Terminate,
        Strike::Crash,
        Strike::CutAfterCommit,
        Strike::CutAtByte,
        Strike::ShortBody,
        Strike::CutBeforeCommit,
        Strike::Restart,
        Strike::Cut,
        Strike::SlowDown,
        Strike::Refuse,
    ];

    /// It strikes what is read, not the server.
    pub(crate) fn is_at_source(self) -> bool {
        matches!(self, Strike::ShortBody | Strike::SlowDown)
    }
}

/// What stands between howdah and the world.
pub(crate) struct World<'a> {
    pub(crate) server: &'a Server,
    pub(crate) to_server: Proxy,
    pub(crate) to_s3: Proxy,
}

impl World<'_> {
    /// Strikes once `after_chunks` are in and a moment has passed. A load that patience lets live gets its
    /// server or network back here; returns how it ended.
    pub(crate) fn strike(
        &self,
        strike: Strike,
        scene: &Scene,
        mut running: Running,
        after_chunks: u64,
        random: &mut Rng,
    ) -> Finished {
        // A session that was just being opened is given up by another limit, of 60 s.
        const NOTICED: [&str; 2] = ["the connection is dead", "no answer from"];
        if !strike.is_at_source() && scene.wait_for_chunks(after_chunks, || running.is_running()) {
            std::thread::sleep(Duration::from_millis(random.u64(..25)));
        }
        match strike {
            Strike::KillClient => return running.kill(),
            Strike::Terminate => terminate_all(scene),
            Strike::Crash => self.server.crash_and_restart(),
            Strike::Restart => self.server.restart(),
            Strike::Cut => self.to_server.cut_all(),
            Strike::CutAtByte => {
                self.to_server.set_times(Fault::CutAfterBytes(random.u64(1..300_000)), 1);
            }
            Strike::CutBeforeCommit => self.to_server.set_times(Fault::CutBeforeCommit { skip: 0 }, 1),
            Strike::CutAfterCommit => self.to_server.set_times(Fault::CutAfterCommit { skip: 0 }, 1),
            Strike::Refuse => {
                self.to_server.set(Fault::Refuse);
                self.to_server.cut_all();
                std::thread::sleep(Duration::from_millis(random.u64(50..400)));
            }
            Strike::Stall => {
                self.to_server.set(Fault::Stall);
                let deadline = Instant::now() + PATIENCE;
                let noticed = |stderr: String| NOTICED.iter().any(|words| stderr.contains(words));
                while running.is_running() && !noticed(running.stderr_so_far()) {
                    assert!(Instant::now() < deadline, "a stall is not noticed\n{}", running.stderr_so_far());
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            // Armed before the start: a short load would be over.
            Strike::ShortBody | Strike::SlowDown => {}
        }
        if matches!(strike, Strike::Refuse | Strike::Stall) {
            self.to_server.set(Fault::Pass);
        }
        running.wait(PATIENCE)
    }

    /// Arms what must be armed before the load starts. A load that ends at its first failure gets one, at
    /// its first GETs or later; a patient one gets two at once, or every n-th for as long as it runs.
    pub(crate) fn arm(&self, strike: Strike, patient: bool, random: &mut Rng) {
        let failure = match strike {
            Strike::ShortBody => HttpFailure::CutBody { after_bytes: random.u64(..40_000) },
            Strike::SlowDown => HttpFailure::SlowDown,
            _ => return,
        };
        match (patient, random.bool()) {
            (true, true) => self.to_s3.set(Fault::Http { every: random.u64(2..4), failure }),
            (true, false) => self.to_s3.set_times(Fault::Http { every: 1, failure }, 2),
            (false, _) => self.to_s3.set_times(Fault::Http { every: random.u64(1..4), failure }, 1),
        }
    }

    /// Nothing is broken any more.
    pub(crate) fn heal(&self) {
        self.to_server.set(Fault::Pass);
        self.to_s3.set(Fault::Pass);
    }
}

/// Ends every session of howdah in the scene's database, as an administrator might.
pub(crate) fn terminate_all(scene: &Scene) {
    scene.database.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
}
