//! The faults: what strikes a load under way, and when.
//!
//! A fault counts only if it hit: the load was still running, or shows by its end what it ran into.

use super::others;
use super::stage::Stage;
use super::world::World;
use crate::scene::{END_SESSIONS, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{Fault as Broken, Finished, HowdahCommand, HttpFailure, Running};
use std::time::{Duration, Instant};

/// What strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// kill -9 of howdah.
    Kill,
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
    /// `pg_terminate_backend` of all its sessions.
    EndSessions,
    /// An immediate shutdown of the server, and crash recovery.
    Crash,
    /// A fast shutdown of the server.
    Restart,
    /// The disk with the tables is full.
    DiskFull,
    /// The disk with the WAL is full, at which the server panics.
    WalFull,
    /// All connections are reset.
    Reset,
    /// One connection is reset at some byte.
    ResetAtByte,
    /// Connections are reset, and new ones refused for a while.
    Refuse,
    /// Nothing moves for a while.
    Stall,
    /// howdah dies and its connections are never closed: the server's sessions wait for bytes that never come.
    HalfOpen,
    /// A connection is reset just before its COMMIT reaches the server.
    LostCommit,
    /// A connection is reset just after its COMMIT reached the server.
    LostAnswer,
    /// The body of an object is cut short.
    ShortRead,
    /// The object store says 503 Slow Down.
    SlowDown,
    /// A file or an object is replaced while it is read.
    Changed,
    /// The clocks of howdah and of the server jump by an hour or a day.
    ClockJump,
    /// Another session locks in the opposite order, until somebody is a victim.
    Deadlock,
    /// Another session changes the table.
    Ddl,
    /// Others have taken all connections when howdah needs new ones.
    NoConnections,
    /// The system gives howdah no more memory.
    OutOfMemory,
}

impl Fault {
    pub(super) const ALL: [Fault; 24] = [
        Fault::Kill,
        Fault::EndSessions,
        Fault::LostAnswer,
        Fault::DiskFull,
        Fault::HalfOpen,
        Fault::Ddl,
        Fault::Crash,
        Fault::Deadlock,
        Fault::ShortRead,
        Fault::NoConnections,
        Fault::Interrupt,
        Fault::WalFull,
        Fault::Changed,
        Fault::OutOfMemory,
        Fault::ResetAtByte,
        Fault::LostCommit,
        Fault::ClockJump,
        Fault::Terminate,
        Fault::SlowDown,
        Fault::Restart,
        Fault::Stall,
        Fault::HangUp,
        Fault::Reset,
        Fault::Refuse,
    ];

    /// The machine lets it happen.
    pub(super) fn is_possible(self, world: &World<'_>) -> bool {
        match self {
            Fault::DiskFull => world.means.data_disk.is_some(),
            Fault::WalFull => world.means.wal_disk.is_some(),
            Fault::ClockJump => world.means.clock.is_some(),
            _ => true,
        }
    }

    /// It strikes requests to an object store.
    pub(super) fn needs_bucket(self) -> bool {
        matches!(self, Fault::ShortRead | Fault::SlowDown)
    }
}

/// When it strikes.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So long after the start.
    Started(Duration),
    /// The plan is made, and nothing else.
    Planned,
    /// So many chunks are in.
    Chunks(u64),
    /// So many of the dropped things are back.
    PutBack(u64),
}

impl Moment {
    fn draw(stage: &Stage, random: &mut Rng) -> Moment {
        // Of some 75 bytes a row.
        let chunks = (stage.scenario.rows * 3 / 40 / stage.scenario.knobs.chunk_kb).max(1);
        match random.u8(..10) {
            0 | 1 => Moment::Started(Duration::from_millis(random.u64(20..500))),
            2 | 3 if stage.scenario.knobs.indexes == "rebuild" => Moment::PutBack(random.u64(1..4)),
            4 => Moment::Chunks(chunks),
            _ => Moment::Chunks(random.u64(..chunks)),
        }
    }

    /// Whether the load still ran when it came.
    fn wait(self, stage: &Stage, running: &mut Running, random: &mut Rng) -> bool {
        let (from, least) = match self {
            Moment::Started(delay) => {
                std::thread::sleep(delay);
                return running.is_running();
            }
            Moment::Planned => ("job WHERE status = 'running'", 1),
            Moment::Chunks(least) => ("chunk", least),
            Moment::PutBack(least) => ("undo WHERE undone_at IS NOT NULL", least),
        };
        let deadline = Instant::now() + PATIENCE;
        while stage.ledger_count(from) < least && running.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !matches!(self, Moment::Planned) {
            std::thread::sleep(Duration::from_millis(random.u64(..25)));
        }
        running.is_running()
    }
}

/// How a struck run ended.
pub(super) struct Struck {
    pub(super) finished: Finished,
    /// The fault really met a load under way.
    pub(super) hit: bool,
    /// Undoes what somebody else has done to the table, once the load is over.
    pub(super) revert_sql: Option<&'static str>,
}

/// Starts the command, strikes, heals, and waits for its end.
pub(super) fn strike(
    command: &HowdahCommand,
    fault: Fault,
    world: &World<'_>,
    stage: &Stage,
    random: &mut Rng,
) -> Struck {
    let fired = (world.to_server.fired(), world.to_s3.fired());
    let no_space = || world.server.log().matches("No space left on device").count();
    let no_space_before = no_space();
    arm(fault, world, random);
    let mut running = command.spawn();
    let moment = match fault {
        // Small files are read at once; what has changed before the plan is made is what is loaded.
        Fault::Changed => Moment::Planned,
        _ => Moment::draw(stage, random),
    };
    let mut hit = fault.needs_bucket() || moment.wait(stage, &mut running, random);
    let mut revert_sql = None;
    match fault {
        Fault::Kill => return ended(running.kill(), hit),
        Fault::HalfOpen => {
            world.to_server.forget_all();
            return ended(running.kill(), hit);
        }
        Fault::Ddl => {
            let change = others::Change::draw(stage, random);
            hit = change.make(stage) && running.is_running();
            revert_sql = Some(change.revert_sql());
        }
        Fault::Deadlock => hit = others::deadlock(world, stage, &mut running, random),
        Fault::Changed => {
            let no = random.usize(..stage.contents.len());
            stage.put(world, no, &others::changed(&stage.contents[no].1));
        }
        Fault::NoConnections => {
            let held = stage.database.take_all_connections(stage.scenario.role);
            end_sessions(stage);
            std::thread::sleep(Duration::from_millis(random.u64(100..600)));
            hit &= held.count() > 0;
        }
        _ => strike_server_or_network(fault, world, stage, &running, random),
    }
    let is_commit = matches!(fault, Fault::LostCommit | Fault::LostAnswer | Fault::ResetAtByte);
    let finished = running.wait(PATIENCE);
    hit &= match fault {
        Fault::ShortRead | Fault::SlowDown => world.to_s3.fired() > fired.1,
        Fault::OutOfMemory | Fault::Changed => finished.code != Some(0),
        Fault::DiskFull | Fault::WalFull => no_space() > no_space_before,
        _ if is_commit => world.to_server.fired() > fired.0,
        _ => true,
    };
    Struck { finished, hit, revert_sql }
}

fn ended(finished: Finished, hit: bool) -> Struck {
    Struck { finished, hit, revert_sql: None }
}

fn strike_server_or_network(
    fault: Fault,
    world: &World<'_>,
    stage: &Stage,
    running: &Running,
    random: &mut Rng,
) {
    match fault {
        Fault::Interrupt => running.interrupt(),
        Fault::Terminate => running.terminate(),
        Fault::HangUp => running.hang_up(),
        Fault::EndSessions => end_sessions(stage),
        Fault::Crash => world.server.crash_and_restart(),
        Fault::Restart => world.server.restart(),
        Fault::DiskFull => {
            let disk = world.means.data_disk.as_ref().expect("asked for before");
            disk.fill(random.u64(..200_000));
            pause_then(random, || disk.relieve());
        }
        Fault::WalFull => {
            let disk = world.means.wal_disk.as_ref().expect("asked for before");
            disk.fill(0);
            others::use_wal_up(stage);
            pause_then(random, || disk.relieve());
            world.server.revive();
        }
        Fault::Reset => world.to_server.cut_all(),
        Fault::ResetAtByte => world.to_server.set_times(Broken::CutAfterBytes(random.u64(1..200_000)), 1),
        Fault::LostCommit => world.to_server.set_times(Broken::CutBeforeCommit { skip: 0 }, 1),
        Fault::LostAnswer => world.to_server.set_times(Broken::CutAfterCommit { skip: 0 }, 1),
        Fault::Refuse | Fault::Stall => {
            world.to_server.set(if fault == Fault::Stall { Broken::Stall } else { Broken::Refuse });
            if fault == Fault::Refuse {
                world.to_server.cut_all();
            }
            pause_then(random, || world.to_server.set(Broken::Pass));
        }
        Fault::ClockJump => {
            let clock = world.means.clock.as_ref().expect("asked for before");
            clock.jump([-86_400, -3600, 3600, 86_400][random.usize(..4)]);
        }
        Fault::OutOfMemory => running.deny_memory(),
        // The others are struck by their caller, or were armed before the load began.
        _ => {}
    }
}

/// Arms what must be armed before the load starts.
fn arm(fault: Fault, world: &World<'_>, random: &mut Rng) {
    let failure = match fault {
        Fault::ShortRead => HttpFailure::CutBody { after_bytes: random.u64(..40_000) },
        Fault::SlowDown => HttpFailure::SlowDown,
        _ => return,
    };
    world.to_s3.set_times(Broken::Http { every: random.u64(1..4), failure }, random.u64(1..4));
}

fn pause_then(random: &mut Rng, heal: impl FnOnce()) {
    std::thread::sleep(Duration::from_millis(random.u64(100..900)));
    heal();
}

fn end_sessions(stage: &Stage) {
    stage.database.rows(&format!("{END_SESSIONS} AND usename = '{}'", stage.scenario.role));
}
