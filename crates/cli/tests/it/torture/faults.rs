//! The faults: what strikes a run under way.
//!
//! A fault counts only if it had effect: the run ended otherwise than it would have, sessions or connections
//! ended, or the server's log tells of it.

use super::moment::{Moment, Watch};
use super::others;
use super::stage::{Stage, Verb};
use super::world::World;
use crate::scene::{END_SESSIONS, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{Fault as Broken, Finished, HowdahCommand, HttpFailure, Running};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    /// `pg_terminate_backend` of one: of any, or of the one that holds the lock of the job.
    EndOne,
    /// `pg_cancel_backend` of one that is at a statement.
    Cancel,
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
    /// howdah dies and its connections are never closed: the server's sessions wait for bytes that never
    /// come.
    HalfOpen,
    /// A connection is reset just before its COMMIT reaches the server.
    LostCommit,
    /// A connection is reset just after its COMMIT reached the server.
    LostAnswer,
    /// The body of an object is cut short.
    ShortRead,
    /// The object store says 503 Slow Down, 500 or 429, or resets the connection.
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

const STORE_FAILURES: [HttpFailure; 4] =
    [HttpFailure::SlowDown, HttpFailure::InternalError, HttpFailure::TooManyRequests, HttpFailure::Reset];

impl Fault {
    pub(super) const ALL: [Fault; 26] = [
        Fault::Kill,
        Fault::EndSessions,
        Fault::LostAnswer,
        Fault::DiskFull,
        Fault::HalfOpen,
        Fault::Ddl,
        Fault::EndOne,
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
        Fault::Cancel,
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

    /// It strikes what is read of files.
    pub(super) fn strikes_files(self) -> bool {
        self.needs_bucket() || self == Fault::Changed
    }

    /// It strikes requests to an object store.
    pub(super) fn needs_bucket(self) -> bool {
        matches!(self, Fault::ShortRead | Fault::SlowDown)
    }
}

/// A run that is to be struck.
pub(super) struct Run {
    pub(super) command: HowdahCommand,
    pub(super) verb: Verb,
    /// How it ends if nothing strikes it.
    pub(super) done_code: i32,
}

/// How a struck run ended.
pub(super) struct Struck {
    pub(super) finished: Finished,
    /// The fault had effect.
    pub(super) hit: bool,
    /// When it struck, or was to.
    pub(super) moment: &'static str,
    /// Undoes what somebody else has done to the table, once the load is over.
    pub(super) revert_sql: Option<&'static str>,
}

/// What proxies and the server's log tell of faults.
struct Told {
    by_server_proxy: u64,
    by_s3_proxy: u64,
    no_space: usize,
    cancelled: usize,
}

impl Told {
    fn look(world: &World<'_>) -> Told {
        let log = world.server.log();
        Told {
            by_server_proxy: world.to_server.fired(),
            by_s3_proxy: world.to_s3.fired(),
            no_space: log.matches("No space left on device").count(),
            cancelled: log.matches("canceling statement due to user request").count(),
        }
    }
}

/// Starts the command, strikes, heals, and waits for its end.
pub(super) fn strike(run: &Run, fault: Fault, world: &World<'_>, stage: &Stage, random: &mut Rng) -> Struck {
    let before = Told::look(world);
    arm(fault, world, random);
    let moment = match fault {
        // Small files are read at once; what has changed before the plan is made is what is loaded.
        Fault::Changed => Moment::Planned,
        _ => Moment::draw(run.verb, stage, random),
    };
    let watch = Watch::begin(stage, moment);
    let mut running = run.command.spawn();
    let came = fault.needs_bucket() || watch.wait(&mut running, random);
    let moment = if fault.needs_bucket() { "armed" } else { moment.kind() };
    if !came {
        return Struck { finished: running.wait(PATIENCE), hit: false, moment, revert_sql: None };
    }
    let mut revert_sql = None;
    let met = match fault {
        Fault::Ddl => {
            let change = others::Change::draw(stage, random);
            revert_sql = Some(change.revert_sql());
            change.make(stage) && running.is_running()
        }
        Fault::Deadlock => others::deadlock(world, stage, &mut running, random),
        Fault::Changed => {
            let no = random.usize(..stage.contents.len());
            stage.put(world, no, &others::changed(&stage.contents[no].1));
            true
        }
        Fault::NoConnections => {
            let held = stage.database.take_all_connections(stage.scenario.role);
            let ended = end_sessions(stage);
            std::thread::sleep(Duration::from_millis(random.u64(100..600)));
            held.count() > 0 && ended > 0
        }
        _ => strike_server_or_network(fault, world, stage, &mut running, random),
    };
    let finished = match fault {
        Fault::Kill | Fault::HalfOpen => running.kill(),
        _ => running.wait(PATIENCE),
    };
    let hit = met && shows(fault, &finished, run.done_code, &before, &Told::look(world));
    Struck { finished, hit, moment, revert_sql }
}

/// Whether the end of the run, or what is told since, shows the fault.
fn shows(fault: Fault, finished: &Finished, done_code: i32, before: &Told, after: &Told) -> bool {
    match fault {
        Fault::Kill | Fault::HalfOpen => finished.signal == Some(9),
        Fault::Interrupt | Fault::Terminate | Fault::HangUp | Fault::OutOfMemory | Fault::Changed => {
            finished.code != Some(done_code)
        }
        Fault::ShortRead | Fault::SlowDown => after.by_s3_proxy > before.by_s3_proxy,
        Fault::DiskFull | Fault::WalFull => after.no_space > before.no_space,
        Fault::Cancel => after.cancelled > before.cancelled,
        Fault::Reset | Fault::ResetAtByte | Fault::Refuse | Fault::LostCommit | Fault::LostAnswer => {
            after.by_server_proxy > before.by_server_proxy
        }
        // Whoever has struck has seen it.
        Fault::EndSessions
        | Fault::EndOne
        | Fault::Crash
        | Fault::Restart
        | Fault::Stall
        | Fault::ClockJump
        | Fault::Deadlock
        | Fault::Ddl
        | Fault::NoConnections => true,
    }
}

/// Whether there was something to strike.
fn strike_server_or_network(
    fault: Fault,
    world: &World<'_>,
    stage: &Stage,
    running: &mut Running,
    random: &mut Rng,
) -> bool {
    match fault {
        Fault::Interrupt => {
            running.interrupt();
            // Whoever waits for the end of what is cleared away does not have to.
            if random.bool() {
                std::thread::sleep(Duration::from_millis(random.u64(900..1300)));
                if running.is_running() {
                    running.interrupt();
                }
            }
        }
        Fault::Terminate => running.terminate(),
        Fault::HangUp => running.hang_up(),
        Fault::EndSessions => return end_sessions(stage) > 0,
        Fault::EndOne => return end_one(stage, random),
        Fault::Cancel => return cancel(stage, running),
        Fault::Crash | Fault::Restart => {
            let sessions = stage.sessions();
            if fault == Fault::Crash {
                world.server.crash_and_restart();
            } else {
                world.server.restart();
            }
            return sessions > 0;
        }
        Fault::DiskFull | Fault::WalFull => fill_disk(fault, world, stage, running, random),
        Fault::HalfOpen => world.to_server.forget_all(),
        Fault::Reset => world.to_server.cut_all(),
        Fault::ResetAtByte => world.to_server.set_times(Broken::CutAfterBytes(random.u64(1..200_000)), 1),
        Fault::LostCommit => {
            world.to_server.set_times(Broken::CutBeforeCommit { skip: random.u64(..6) }, 1);
        }
        Fault::LostAnswer => {
            world.to_server.set_times(Broken::CutAfterCommit { skip: random.u64(..6) }, 1);
        }
        Fault::Refuse | Fault::Stall => {
            let held = world.to_server.held();
            world.to_server.set(if fault == Fault::Stall { Broken::Stall } else { Broken::Refuse });
            if fault == Fault::Refuse {
                world.to_server.cut_all();
            }
            // Now and then longer than what a run waits for at once.
            std::thread::sleep(Duration::from_millis(if random.u8(..5) == 0 { 4000 } else { 0 }));
            pause(random);
            let stalled = world.to_server.held() > held && running.is_running();
            world.to_server.set(Broken::Pass);
            return fault == Fault::Refuse || stalled;
        }
        Fault::ClockJump => {
            let clock = world.means.clock.as_ref().expect("asked for before");
            clock.jump([-86_400, -3600, 3600, 86_400][random.usize(..4)]);
            return reads_the_clock(running) && is_another_time(stage);
        }
        Fault::OutOfMemory => running.deny_memory(),
        // The others are struck by their caller, or were armed before the load began.
        _ => {}
    }
    true
}

/// The run has loaded what moves its clock, and is still at work.
fn reads_the_clock(running: &mut Running) -> bool {
    let loaded = std::fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap_or_default();
    loaded.contains("clock.so") && running.is_running()
}

/// The server takes it for another time than it is.
fn is_another_time(stage: &Stage) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that goes").as_secs();
    let differs = format!("SELECT abs(extract(epoch FROM clock_timestamp()) - {now}) > 1800");
    stage.database.try_rows(&differs).is_ok_and(|rows| rows[0][0].as_deref() == Some("t"))
}

/// Fills a disk until the server has run into it, and makes room again a while later.
fn fill_disk(fault: Fault, world: &World<'_>, stage: &Stage, running: &mut Running, random: &mut Rng) {
    let before = Told::look(world).no_space;
    let of_data = fault == Fault::DiskFull;
    let disk = if of_data { &world.means.data_disk } else { &world.means.wal_disk };
    let disk = disk.as_ref().expect("asked for before");
    disk.fill(if of_data { random.u64(..200_000) } else { 0 });
    if !of_data {
        others::use_wal_up(stage);
    }
    let deadline = Instant::now() + Duration::from_secs(3);
    while running.is_running() && Instant::now() < deadline && Told::look(world).no_space == before {
        std::thread::sleep(Duration::from_millis(10));
    }
    pause(random);
    disk.relieve();
    if !of_data {
        world.server.revive();
    }
}

/// Arms what must be armed before the load starts.
fn arm(fault: Fault, world: &World<'_>, random: &mut Rng) {
    let failure = match fault {
        Fault::ShortRead => HttpFailure::CutBody { after_bytes: random.u64(..40_000) },
        Fault::SlowDown => STORE_FAILURES[random.usize(..STORE_FAILURES.len())],
        _ => return,
    };
    world.to_s3.set_times(Broken::Http { every: random.u64(1..4), failure }, random.u64(1..4));
}

fn pause(random: &mut Rng) {
    std::thread::sleep(Duration::from_millis(random.u64(100..900)));
}

/// How many there were.
fn end_sessions(stage: &Stage) -> usize {
    stage.database.rows(&format!("{END_SESSIONS} AND usename = '{}'", stage.scenario.role)).len()
}

/// Ends any session, or the one that holds the lock by which others see that the job is at work.
fn end_one(stage: &Stage, random: &mut Rng) -> bool {
    let holds = format!(
        "AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
             AND (classid::int8 << 32) | objid::int8 IN (SELECT hashtextextended('{}/' || job_id, x'686f77646168'::int8) \
                                                         FROM {}.job))",
        stage.scenario.knobs.ledger.replace('\'', "''"),
        stage.ledger
    );
    let which = if random.bool() && stage.ledger_count("job") > 0 { holds.as_str() } else { "" };
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = '{}' \
             AND datname = current_database() {which} ORDER BY random() LIMIT 1) one",
        stage.scenario.role
    );
    !stage.database.rows(&sql).is_empty()
}

/// Cancels the next statement that is seen.
fn cancel(stage: &Stage, running: &mut Running) -> bool {
    let sql = format!(
        "SELECT pg_cancel_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = '{}' \
             AND datname = current_database() AND state = 'active' ORDER BY random() LIMIT 1) one",
        stage.scenario.role
    );
    while running.is_running() {
        if !stage.database.rows(&sql).is_empty() {
            return true;
        }
    }
    false
}
