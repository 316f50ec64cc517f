//! The night shift: random loads, each struck by faults, run again to the end, and compared with a model.
//!
//! `HOWDAH_TORTURE_FAULTS` faults must hit (40), `HOWDAH_TORTURE_SECONDS` must have passed (0);
//! `HOWDAH_TORTURE_SEED` repeats a run, `HOWDAH_TORTURE_LOAD=MAJOR:SEED:FAULT` one load of it;
//! `HOWDAH_TORTURE_ONLY=WORDS` keeps to loads whose description, as a failure shows it, has these words.
//!
//! [`scenario`] draws a load, [`faults`] has what strikes it, [`check`] what must be true in the end.

mod account;
mod beside;
mod check;
mod data;
mod faults;
mod flaw;
mod knobs;
mod mended;
mod mode;
mod moment;
mod others;
mod reject_file;
mod scenario;
mod shape;
mod stage;
mod way;
mod world;
mod writer;
mod written;

use crate::scene::PATIENCE;
use beside::Beside;
use check::{Before, Findings};
use fastrand::Rng;
use faults::{Fault, Run};
use howdah_testkit::{Finished, MAJORS, S3, SmallDisk};
use knobs::Knobs;
use mode::Mode;
use scenario::Scenario;
use shape::Shape;
use stage::{Stage, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use way::Way;
use world::{Means, World};

const FAULTS_DEFAULT: u64 = 40;
/// Of so many faults each kind hits at least once.
const FAULTS_OF_EACH_KIND: u64 = 300;
/// Loads that a kind which has not hit by then gets on top: a full disk is often met by nobody.
const LOADS_FOR_LAST: u32 = 30;
/// Of so many loads one must have the words that a night is about.
const SEEDS_MAX: u32 = 2000;
/// Runs of one load, the struck ones included, after which it counts as not getting on.
const RUNS_MAX: u32 = 8;

/// How long a campaign goes on.
#[derive(Debug, Clone, Copy)]
struct Budget {
    seed: u64,
    faults: u64,
    until: Instant,
}

/// What a campaign comes to.
#[derive(Debug, Default)]
struct Account {
    hits: BTreeMap<Fault, u64>,
    /// How often each kind of moment was met, and how often it came too late or the fault had no effect.
    moments: BTreeMap<&'static str, [u64; 2]>,
    loads: u64,
    misses: u64,
    /// Transactions of other people who wrote into the table meanwhile.
    by_others: u64,
    /// Loads whose rejected records were mended and loaded.
    mended: u64,
    skipped: u64,
    /// Kinds that cannot be had on this machine.
    impossible: BTreeSet<Fault>,
    findings: Findings,
    /// Loads that did not end as they must, by what repeats them.
    failures: Vec<String>,
}

impl Account {
    fn hits(&self) -> u64 {
        self.hits.values().sum()
    }

    fn add(&mut self, other: Account) {
        for (fault, count) in other.hits {
            *self.hits.entry(fault).or_default() += count;
        }
        for (moment, counts) in other.moments {
            let all = self.moments.entry(moment).or_default();
            (all[0], all[1]) = (all[0] + counts[0], all[1] + counts[1]);
        }
        self.loads += other.loads;
        self.misses += other.misses;
        self.by_others += other.by_others;
        self.mended += other.mended;
        self.skipped += other.skipped;
        self.impossible.extend(other.impossible);
        self.findings.add(other.findings);
        self.failures.extend(other.failures);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_night_shift_loses_doubles_and_leaves_nothing() {
    if let Ok(load) = std::env::var("HOWDAH_TORTURE_LOAD") {
        return replay(&load);
    }
    let began = Instant::now();
    let budget = Budget {
        seed: number("HOWDAH_TORTURE_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000)),
        faults: number("HOWDAH_TORTURE_FAULTS").unwrap_or(FAULTS_DEFAULT),
        until: began + Duration::from_secs(number("HOWDAH_TORTURE_SECONDS").unwrap_or(0)),
    };
    say(&format!("torture: HOWDAH_TORTURE_SEED={} HOWDAH_TORTURE_FAULTS={}", budget.seed, budget.faults));
    let s3 = S3::start();
    let mut account = Account::default();
    std::thread::scope(|scope| {
        let campaigns: Vec<_> = (0..MAJORS.len())
            .map(|no| {
                scope.spawn({
                    let s3 = &s3;
                    move || campaign(s3, no, budget)
                })
            })
            .collect();
        campaigns.into_iter().for_each(|campaign| account.add(campaign.join().unwrap()));
    });
    say(&format!(
        "torture: {} faults, {} lost, {} doubled, {} left behind; seed {}\n\
         torture: {} loads on PostgreSQL {MAJORS:?}, {} faults had no effect, {} could not be had on this machine, \
         {} transactions of others, rejects of {} loads mended, {:.0} s\ntorture: {:?}\ntorture: hits and misses at {:?}",
        account.hits(),
        account.findings.lost,
        account.findings.doubled,
        account.findings.left_behind.len(),
        budget.seed,
        account.loads,
        account.misses,
        account.skipped,
        account.by_others,
        account.mended,
        began.elapsed().as_secs_f64(),
        account.hits,
        account.moments
    ));
    assert!(account.failures.is_empty(), "{} loads failed: {:#?}", account.failures.len(), account.failures);
    assert!(account.hits() >= budget.faults, "{account:?}");
    if budget.faults >= FAULTS_OF_EACH_KIND {
        let missing =
            |fault: &Fault| !account.hits.contains_key(fault) && !account.impossible.contains(fault);
        let missing: Vec<Fault> = Fault::ALL.into_iter().filter(missing).collect();
        assert!(missing.is_empty(), "never had effect: {missing:?}");
    }
    // A green night must not be one without full disks.
    if std::env::var("CI").is_ok_and(|ci| ci == "true") && SmallDisk::is_allowed() {
        assert!(account.impossible.is_empty(), "could not be had: {:?}", account.impossible);
    }
}

/// Loads into one server until its share of the faults has hit. The deck is dealt so that together the
/// servers see all.
fn campaign(s3: &S3, server_no: usize, budget: Budget) -> Account {
    let major = MAJORS[server_no];
    let means = Means::find();
    let server = world::server(major, &means);
    let world = World::new(&server, s3, &means);
    let usual = usual_ledger(&world);
    let mut account = Account::default();
    let share = budget.faults.div_ceil(MAJORS.len() as u64);
    let mut deck = Vec::new();
    let mut random = Rng::with_seed(budget.seed ^ (u64::from(major) << 32));
    while account.hits() < share || Instant::now() < budget.until {
        if deck.is_empty() {
            deck = dealt(budget.seed, server_no, account.loads);
        }
        let Some(fault) = deck.pop() else { continue };
        if !fault.is_possible(&world) {
            account.skipped += 1;
            account.impossible.insert(fault);
            continue;
        }
        match drawn(&mut random, fault) {
            Some(seed) => run_or_tell(&world, &usual, (seed, fault), &mut account),
            None => account.misses += 1,
        }
        assert!(
            account.misses < account.hits() * 2 + 40,
            "PostgreSQL {major}: faults do not hit: {account:?}"
        );
    }
    // The last of the servers sees to it that each kind hits.
    if budget.faults >= FAULTS_OF_EACH_KIND && server_no + 1 == MAJORS.len() {
        for fault in Fault::ALL.into_iter().filter(|fault| fault.is_possible(&world)) {
            for _ in 0..LOADS_FOR_LAST {
                if account.hits.contains_key(&fault) {
                    break;
                }
                let Some(seed) = drawn(&mut random, fault) else { break };
                run_or_tell(&world, &usual, (seed, fault), &mut account);
            }
        }
    }
    account
}

/// The seed of a load that this night is about; `None` where this fault strikes none.
fn drawn(random: &mut Rng, fault: Fault) -> Option<u64> {
    let only = std::env::var("HOWDAH_TORTURE_ONLY").unwrap_or_default();
    let is_meant =
        |seed: u64| format!("{:?}", Scenario::draw(&mut Rng::with_seed(seed), fault)).contains(&only);
    (0..SEEDS_MAX).map(|_| random.u64(..1 << 40)).find(|seed| is_meant(*seed))
}

/// The rest of the night is not lost with one load. Its panic has told the rest.
fn run_or_tell(world: &World<'_>, usual: &[String], (seed, fault): (u64, Fault), account: &mut Account) {
    if catch_unwind(AssertUnwindSafe(|| run(world, usual, seed, fault, account))).is_err() {
        account.failures.push(format!("HOWDAH_TORTURE_LOAD={}:{seed}:{fault:?}", world.server.major()));
        world.to_server.end_forgotten();
        world.heal();
    }
}

/// All faults in an order of the seed's, those first that no other server begins with.
fn dealt(seed: u64, server_no: usize, round: u64) -> Vec<Fault> {
    let mut deck = Fault::ALL.to_vec();
    Rng::with_seed(seed ^ round).shuffle(&mut deck);
    let at = server_no * deck.len() / MAJORS.len();
    deck.rotate_right(at);
    deck
}

/// What the ledger of a load consists of that nothing has struck.
fn usual_ledger(world: &World<'_>) -> Vec<String> {
    let mut random = Rng::with_seed(0);
    let drawn = Scenario::draw(&mut random, Fault::Kill);
    let calm = Scenario {
        shape: Shape::Plain,
        mode: Mode::APPEND,
        way: Way::Folder,
        flaws: Vec::new(),
        beside: None,
        others_write: false,
        guarded: false,
        knobs: Knobs { bounded: false, reject_file: false, ..drawn.knobs.clone() },
        ..drawn
    };
    let stage = Stage::set(world, calm, 0, &mut random);
    stage.load(world).run(PATIENCE).expect_code(0);
    check::relations_of_ledger(&stage)
}

/// One load again, as a failure names it.
fn replay(load: &str) {
    let words: Vec<&str> = load.split(':').collect();
    let [major, seed, fault] = words[..] else { panic!("HOWDAH_TORTURE_LOAD=MAJOR:SEED:FAULT") };
    let fault = Fault::ALL.into_iter().find(|known| format!("{known:?}") == fault).expect("a fault's name");
    let (s3, means) = (S3::start(), Means::find());
    let server = world::server(major.parse().unwrap(), &means);
    let world = World::new(&server, &s3, &means);
    let usual = usual_ledger(&world);
    let mut account = Account::default();
    run(&world, &usual, seed.parse().unwrap(), fault, &mut account);
    say(&format!("torture: {account:?}"));
}

/// One load: its files checked, sometimes; struck once or twice, run again until done, compared; then
/// refused.
fn run(world: &World<'_>, usual: &[String], seed: u64, fault: Fault, account: &mut Account) {
    let began = Instant::now();
    let mut random = Rng::with_seed(seed);
    let scenario = Scenario::draw(&mut random, fault);
    let name = format!("HOWDAH_TORTURE_LOAD={}:{seed}:{fault:?} {scenario:?}", world.server.major());
    let stage = Stage::set(world, scenario, seed, &mut random);
    let before = Before::look(world, &stage);
    account.loads += 1;
    let night = Night { world, stage: &stage, before: &before, fault, name: &name };
    if stage.scenario.checked {
        night.check(account, &mut random);
    }
    let mut runs = night.run_to_end_among_others(account, &mut random);
    night.end_beside();
    let findings = before.compare(world, &stage, usual);
    let told = format!("{name}: {findings:#?}\n{runs:#?}");
    let is_clean = findings.is_clean();
    account.findings.add(findings);
    assert!(is_clean, "{told}");
    assert_eq!(stage.ledger_count("job WHERE status <> 'done'"), 0, "{name}");
    let refused = stage.load(world).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("this job finished"), "{name}\n{}", refused.stderr);
    runs.extend(night.load_mended(account, &mut random));
    if std::env::var_os("HOWDAH_TORTURE_TRACE").is_some() {
        say(&format!("{:.1} s {name}\n    {}", began.elapsed().as_secs_f64(), runs.join("\n    ")));
    }
}

/// One load and what strikes it.
struct Night<'a> {
    world: &'a World<'a>,
    stage: &'a Stage,
    before: &'a Before,
    fault: Fault,
    name: &'a str,
}

impl Night<'_> {
    /// `howdah check` of the same files: struck once, then left alone. It must find what the load will, but
    /// for what triggers raise, and keep nothing.
    fn check(&self, account: &mut Account, random: &mut Rng) {
        let struck = self.strike((Verb::Check, false), account, random);
        assert_civil(&struck, self.fault, self.name);
        self.world.to_server.end_forgotten();
        let left_alone = self.stage.check(self.world).run(PATIENCE);
        let wrong = account::check_report(self.stage, &left_alone);
        assert!(
            wrong.is_empty(),
            "{}: check: {wrong:?}\n{}\n{}",
            self.name,
            left_alone.stderr,
            left_alone.stdout
        );
        let kept = ["job", "chunk", "reject", "undo"].map(|table| self.stage.ledger_count(table));
        assert_eq!(kept, [0; 4], "{}: check kept jobs, chunks, rejects, journal", self.name);
    }

    /// One run that is struck, perhaps with a second load beside it.
    fn strike(
        &self,
        (verb, begins_beside): (Verb, bool),
        account: &mut Account,
        random: &mut Rng,
    ) -> Finished {
        let run = self.stage.run(verb, self.world);
        let beside = if begins_beside { self.stage.load_beside(self.world) } else { None };
        let beside = beside.map(|load| load.spawn());
        let finished = self.strike_run(&run, account, random);
        if let Some(beside) = beside {
            assert_civil(&beside.wait(PATIENCE), self.fault, self.name);
        }
        finished
    }

    /// This run is struck, and the world put right.
    fn strike_run(&self, run: &Run, account: &mut Account, random: &mut Rng) -> Finished {
        let struck = faults::strike(run, self.fault, self.world, self.stage, random);
        self.heal(struck.revert_sql);
        let [hits, misses] = account.moments.entry(struck.moment).or_default();
        *(if struck.hit { account.hits.entry(self.fault).or_default() } else { &mut account.misses }) += 1;
        *(if struck.hit { hits } else { misses }) += 1;
        struck.finished
    }

    /// What is struck: a load, or how people go on with one.
    fn verb(&self, no: u32, random: &mut Rng) -> Verb {
        match random.u8(..10) {
            _ if no == 0 => Verb::Load,
            0 | 1 => Verb::Resume,
            2 | 3 if !self.fault.strikes_files() => Verb::Restore,
            _ => Verb::Load,
        }
    }

    /// The same while other people write into the table, if there are any.
    fn run_to_end_among_others(&self, account: &mut Account, random: &mut Rng) -> Vec<String> {
        if !self.stage.scenario.others_write {
            return self.run_to_end(account, random);
        }
        let enough = AtomicBool::new(false);
        let mut theirs = random.fork();
        std::thread::scope(|scope| {
            let others = scope.spawn(|| writer::write(self.stage, &enough, &mut theirs));
            let ended = catch_unwind(AssertUnwindSafe(|| self.run_to_end(account, random)));
            enough.store(true, Ordering::Relaxed);
            let mut runs = ended.unwrap_or_else(|panic| resume_unwind(panic));
            let written = others.join().unwrap_or_else(|panic| resume_unwind(panic));
            account.by_others += written;
            runs.push(format!("{written} transactions of others"));
            runs
        })
    }

    /// Struck once to three times, then run until nothing is left to do. How each run ended.
    fn run_to_end(&self, account: &mut Account, random: &mut Rng) -> Vec<String> {
        let (fault, name) = (self.fault, self.name);
        let strikes = random.u32(1..4);
        let (mut runs, mut written_anew) = (Vec::new(), false);
        for no in 0..RUNS_MAX {
            let verb = self.verb(no, random);
            let finished = if no < strikes {
                self.strike((verb, no == 0), account, random)
            } else if written_anew {
                self.stage.load_unverified(self.world).run(PATIENCE)
            } else {
                self.next_run(random)
            };
            assert_civil(&finished, fault, name);
            runs.push(format!("{:?} {:?} {}", finished.code, finished.elapsed, last_error(&finished.stderr)));
            // The server may have crashed when the load had ended, and emptied the table: the next run sees
            // it.
            let emptied = self.stage.scenario.shape == Shape::Unlogged;
            if no < strikes && (emptied || verb == Verb::Restore) {
                continue;
            }
            let done = Some(self.stage.done_code());
            if finished.code == done || finished.stderr.contains("this job finished") {
                // All rows are in, the server was out of reach or holds a session whose client is gone, and
                // what puts back the rest has been told.
                if finished.stderr.contains("puts back what") {
                    self.world.to_server.end_forgotten();
                    self.restore(random);
                }
                return runs;
            }
            // ALTER TABLE by another session has done that: `--verify` then says that it cannot compare.
            written_anew = fault == Fault::Ddl && finished.stderr.contains("has written all rows anew");
            assert!(
                no < strikes || written_anew,
                "{name}: fails without a fault\n{}\n{runs:#?}",
                finished.stderr
            );
        }
        panic!("{name}: does not come to an end\n{runs:#?}");
    }

    /// Puts the world right, but for what the load has to put right itself.
    fn heal(&self, revert_sql: Option<&str>) {
        self.world.heal();
        if self.fault == Fault::Changed {
            (0..self.stage.contents.len()).for_each(|no| self.stage.put_back(self.world, no));
        }
        if let Some(sql) = revert_sql {
            // What did not come to be need not be undone.
            let _ = self.stage.database.try_sql(&format!("SET ROLE {}; {sql}", self.stage.scenario.role));
        }
    }

    /// The same command again, or `resume`; sometimes `restore` comes before, and must leave no trace of the
    /// load.
    fn next_run(&self, random: &mut Rng) -> Finished {
        let (world, stage) = (self.world, self.stage);
        // The server learns late that the client is gone: sessions of the run before still hold what they
        // held.
        let learns_after = Duration::from_millis(random.u64(..1500));
        let restores = random.u8(..3) == 0;
        let resume = if random.u8(..4) == 0 { stage.resume(world) } else { None };
        std::thread::scope(|scope| {
            if self.fault == Fault::HalfOpen {
                scope.spawn(move || {
                    std::thread::sleep(learns_after);
                    world.to_server.end_forgotten();
                });
            }
            if restores {
                self.restore(random);
            }
            let is_twice = matches!(stage.scenario.beside, Some(Beside::Twice));
            let twin = is_twice.then(|| stage.load(world).spawn());
            let finished = resume.unwrap_or_else(|| stage.load(world)).run(PATIENCE);
            let Some(twin) = twin.map(|twin| twin.wait(PATIENCE)) else { return finished };
            assert_civil(&twin, self.fault, self.name);
            if twin.code == Some(stage.done_code()) { twin } else { finished }
        })
    }

    /// The second load runs until it is done.
    fn end_beside(&self) {
        let Some(load) = self.stage.load_beside(self.world) else { return };
        let ended = load.run(PATIENCE);
        let is_done = ended.code == Some(0) || ended.stderr.contains("this job finished");
        assert!(is_done, "{}: the second load fails without a fault\n{}", self.name, ended.stderr);
        if ended.stderr.contains("puts back what") {
            self.restore(&mut Rng::with_seed(0));
        }
    }

    /// What was rejected is mended and loaded: struck once, then run until it is in. How each run ended.
    fn load_mended(&self, account: &mut Account, random: &mut Rng) -> Vec<String> {
        let (world, stage, name) = (self.world, self.stage, self.name);
        let mut runs = Vec::new();
        // What strikes files would strike those that are read no more.
        let load = if self.fault.strikes_files() { None } else { mended::load(world, stage) };
        let Some(load) = load else { return runs };
        account.mended += 1;
        for no in 0..RUNS_MAX {
            let finished = if no == 0 {
                let run = Run { command: load.clone(), verb: Verb::Load, done_code: 0 };
                self.strike_run(&run, account, random)
            } else {
                world.to_server.end_forgotten();
                load.run(PATIENCE)
            };
            assert_civil(&finished, self.fault, name);
            runs.push(format!("mended: {:?} {}", finished.code, last_error(&finished.stderr)));
            let is_done = finished.code == Some(0) || finished.stderr.contains("this job finished");
            if finished.stderr.contains("puts back what") {
                world.to_server.end_forgotten();
                self.restore(random);
            }
            if is_done {
                break;
            }
            assert!(no == 0, "{name}: mended records fail without a fault\n{}\n{runs:#?}", finished.stderr);
        }
        let findings = self.before.compare_tables(world, stage);
        let is_clean = findings.is_clean();
        let told = format!("{name}: mended records: {findings:#?}\n{runs:#?}");
        account.findings.add(findings);
        assert!(is_clean && mended::left(stage) == 0, "{told}");
        runs
    }

    /// What loads have changed beside their rows is put back, now and then by two at once.
    fn restore(&self, random: &mut Rng) {
        let restore = self.stage.restore(self.world);
        let other = (random.u8(..5) == 0).then(|| restore.spawn());
        let mut ended = vec![restore.run(PATIENCE)];
        ended.extend(other.map(|running| running.wait(PATIENCE)));
        let says = |words: &str| ended.iter().any(|ended| ended.stderr.contains(words));
        let is_late = |ended: &Finished| {
            ended.stderr.contains("is at work")
                || ended.stderr.contains("is being put back by another process")
        };
        if says("there is no ledger") {
            return;
        }
        if self.fault == Fault::HalfOpen && ended.iter().any(is_late) {
            // Sessions of a client that is gone hold the job until the server has been told.
            self.world.to_server.end_forgotten();
            let left = check::wait_for_sessions(self.stage);
            assert_eq!(left, None, "{}", self.name);
            return self.restore(random);
        }
        let is_done = |ended: &&Finished| ended.code == Some(0);
        // One of two has the job for itself, and may take longer than the other waits.
        let well = ended.iter().all(|ended| is_done(&ended) || is_late(ended));
        assert!(well && ended.iter().any(|ended| is_done(&ended)), "{}: restore\n{ended:#?}", self.name);
        let left = self.before.traces(self.world, self.stage);
        assert!(left.is_empty(), "{}: restore left {left:?}\n{ended:#?}", self.name);
    }
}

/// A run that ended as a program does: no panic, and an error says so. Without memory it may abort, and a
/// signal that comes before anything has begun ends it as signals do.
#[track_caller]
fn assert_civil(finished: &Finished, fault: Fault, name: &str) {
    let Finished { code, signal, stderr, .. } = finished;
    if fault == Fault::OutOfMemory {
        return;
    }
    assert!(!stderr.contains("panicked"), "{name}: a panic\n{stderr}");
    let known = matches!(code, Some(0 | 1 | 3 | 130)) || matches!(signal, Some(1 | 2 | 9 | 15));
    assert!(known, "{name}: ended with {code:?}, signal {signal:?}\n{stderr}");
    assert!(*code != Some(1) || stderr.contains("error: "), "{name}: failed without an error\n{stderr}");
}

fn last_error(stderr: &str) -> &str {
    stderr.lines().rfind(|line| line.starts_with("error")).unwrap_or_default()
}

/// Past the capture of the test harness: the figures belong into every log.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
