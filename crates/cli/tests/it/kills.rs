//! The proof that no kill loses or doubles a row: seeded loads, each ended by a fault and run again.
//!
//! `HOWDAH_KILLS_SEED` repeats a run, `HOWDAH_KILLS` sets the number of loads that must be ended.

use crate::scene::{Files, PATIENCE, Scene, assert_civil, csv, gzip};
use crate::strike::{Strike, World};
use fastrand::Rng;
use howdah_testkit::{HowdahCommand, MAJORS, Proxy, S3, Server, ServerOptions};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

const KILLS_DEFAULT: usize = 36;
/// Runs of one load, the struck ones included, after which it counts as not getting on.
const RUNS_MAX: usize = 12;
/// Loads are slowed down to take so long, or nothing would hit them.
const LOAD_MS: u64 = 600;
/// Rows of a load.
const THOUSANDS: u64 = 40;
const BUCKET: &str = "kills";

/// Where the bytes of a load come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Plain,
    Gzip,
    Several,
    S3Plain,
    S3Gzip,
}

/// One load, drawn from the seed.
#[derive(Debug, Clone, Copy)]
struct Case {
    seed: u64,
    strike: Strike,
    /// It retries and survives, instead of ending at the first failure.
    patient: bool,
}

/// The data that all loads read, in every form.
struct Stock {
    files: Files,
    s3: S3,
    plain: Vec<u8>,
    parts: [Vec<u8>; 3],
}

impl Stock {
    fn new(seed: u64) -> Stock {
        let (files, s3) = (Files::new(), S3::start());
        let plain = csv(seed, 1, 40_000);
        let parts =
            [csv(seed + 1, 100_001, 20_000), csv(seed + 2, 200_001, 12_000), csv(seed + 3, 300_001, 3000)];
        files.put("whole.csv", &plain);
        files.put("whole.csv.gz", &gzip(&plain));
        files.put("part1.csv", &parts[0]);
        files.put("part2.csv.gz", &gzip(&parts[1]));
        files.put("part3.csv", &parts[2]);
        s3.put(BUCKET, "whole.csv", &plain);
        s3.put(BUCKET, "whole.csv.gz", &gzip(&plain));
        Stock { files, s3, plain, parts }
    }

    fn scene(&self, server: &Server, source: Source, partitioned: bool) -> Scene {
        let [one, two, three] = &self.parts;
        let several: &[&[u8]] = &[one, two, three];
        let plain: &[&[u8]] = if source == Source::Several { several } else { &[&self.plain] };
        if partitioned { Scene::partitioned(server, plain) } else { Scene::new(server, plain) }
    }

    fn sources(&self, source: Source, command: HowdahCommand) -> HowdahCommand {
        let path = |name: &str| self.files.path().join(name);
        match source {
            Source::Plain => command.arg(path("whole.csv")),
            Source::Gzip => command.arg(path("whole.csv.gz")),
            Source::Several => command.arg(path("part*")),
            Source::S3Plain => command.arg(format!("s3://{BUCKET}/whole.csv")),
            Source::S3Gzip => command.arg(format!("s3://{BUCKET}/whole.csv.gz")),
        }
    }
}

/// What came of the loads, by kind of strike.
#[derive(Debug, Default)]
struct Account {
    ended: BTreeMap<Strike, usize>,
    survived: BTreeMap<Strike, usize>,
    retries: usize,
}

impl Account {
    fn ended(&self) -> usize {
        self.ended.values().sum()
    }

    fn add(&mut self, other: Account) {
        for (strike, count) in other.ended {
            *self.ended.entry(strike).or_default() += count;
        }
        for (strike, count) in other.survived {
            *self.survived.entry(strike).or_default() += count;
        }
        self.retries += other.retries;
    }
}

#[test]
fn no_kill_loses_or_doubles_a_row() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("HOWDAH_KILLS_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    let kills = number("HOWDAH_KILLS").map_or(KILLS_DEFAULT, |kills| kills as usize);
    say(&format!("kills: HOWDAH_KILLS_SEED={seed} HOWDAH_KILLS={kills}"));
    let began = Instant::now();
    let stock = Stock::new(seed);
    let mut account = Account::default();
    std::thread::scope(|scope| {
        let campaigns: Vec<_> = MAJORS
            .iter()
            .enumerate()
            .map(|(no, _)| {
                let stock = &stock;
                scope.spawn(move || campaign(stock, no, seed, kills.div_ceil(MAJORS.len())))
            })
            .collect();
        campaigns.into_iter().for_each(|campaign| account.add(campaign.join().unwrap()));
    });
    assert!(account.ended() >= kills, "{account:?}");
    let survived: usize = account.survived.values().sum();
    say(&format!(
        "kills: {} loads ended by faults, 0 rows lost, 0 doubled (and {survived} loads lived through theirs by \
         {} retries); seed {seed}, {:.0} s\nkills: ended {:?}, lived through {:?}",
        account.ended(),
        account.retries,
        began.elapsed().as_secs_f64(),
        account.ended,
        account.survived
    ));
}

/// Loads into one server until so many were ended. All strikes are shared out among the servers, so that
/// together they have seen each; a longer run shows each to all of them.
fn campaign(stock: &Stock, server_no: usize, seed: u64, kills: usize) -> Account {
    let major = MAJORS[server_no];
    let server = Server::private(major, &ServerOptions::default());
    let world = World {
        to_server: Proxy::before_server(&server),
        to_s3: Proxy::before_s3(&stock.s3),
        server: &server,
    };
    let mut random = Rng::with_seed(seed ^ (u64::from(major) << 32));
    let mut account = Account::default();
    if let Some(case) = stall(major, &mut random) {
        run(stock, &world, case, &mut account);
    }
    let share: Vec<Strike> = Strike::QUICK.iter().copied().skip(server_no).step_by(MAJORS.len()).collect();
    let mut deck = Deck(share.clone());
    let mut loads = 0;
    let missing =
        |account: &Account| share.iter().find(|strike| !account.ended.contains_key(strike)).copied();
    while account.ended() < kills || missing(&account).is_some() {
        let due = missing(&account).filter(|_| account.ended() >= kills);
        let strike = due.unwrap_or_else(|| deck.draw(&mut random));
        run(stock, &world, Case { seed: random.u64(..), strike, patient: false }, &mut account);
        loads += 1;
        assert!(loads < kills * 4 + 40, "PostgreSQL {major}: the faults do not hit: {account:?}");
    }
    for _ in 0..(kills / 3).max(4) {
        let strike = deck.draw(&mut random);
        // Nobody lives through kill -9.
        if strike != Strike::KillClient {
            run(stock, &world, Case { seed: random.u64(..), strike, patient: true }, &mut account);
        }
    }
    account
}

/// Deals all strikes before any comes again.
struct Deck(Vec<Strike>);

impl Deck {
    fn draw(&mut self, random: &mut Rng) -> Strike {
        if self.0.is_empty() {
            self.0 = Strike::QUICK.to_vec();
            random.shuffle(&mut self.0);
        }
        self.0.pop().expect("just filled")
    }
}

/// Ten seconds each while chunks are copied, up to a minute else: one load that ends at a stall, and one that
/// lives through it.
fn stall(major: u32, random: &mut Rng) -> Option<Case> {
    let mut case = |patient| Case { seed: random.u64(..), strike: Strike::Stall, patient };
    match major {
        13 => Some(case(false)),
        18 => Some(case(true)),
        _ => None,
    }
}

/// One load: struck, run again until done, compared; then refused.
fn run(stock: &Stock, world: &World<'_>, case: Case, account: &mut Account) {
    let mut random = Rng::with_seed(case.seed);
    let all = [Source::Plain, Source::Gzip, Source::Several, Source::S3Plain, Source::S3Gzip];
    let from = if case.strike.is_at_source() { &all[3..] } else { &all[..] };
    let source = from[random.usize(..from.len())];
    let jobs = random.u64(1..5);
    let chunk_kb = [64, 100, 256][random.usize(..3)];
    let partitioned = random.u8(..3) == 0;
    let name = format!(
        "PostgreSQL {}, {source:?}, {jobs} jobs, {chunk_kb} kB, partitioned {partitioned}, {case:?}",
        world.server.major()
    );

    if std::env::var_os("HOWDAH_KILLS_TRACE").is_some() {
        say(&name);
    }
    let scene = stock.scene(world.server, source, partitioned);
    let when = if random.bool() { "BEFORE" } else { "AFTER" };
    let chunks = 3000 / chunk_kb;
    if partitioned {
        scene.slow_rows_down(when, Duration::from_millis(LOAD_MS * jobs / THOUSANDS));
    } else {
        scene.slow_down(when, Duration::from_millis(LOAD_MS * jobs / chunks));
    }
    let command = scene
        .load_to(&scene.database.conninfo_through(&world.to_server))
        .envs(stock.s3.env_through(&world.to_s3))
        .args(["--jobs", &jobs.to_string(), "--chunk-size", &format!("{chunk_kb}kB")])
        .args(["--retry-for", if case.patient { "10min" } else { "0s" }]);
    let command = stock.sources(source, command);
    let strikes = if case.patient { 1 } else { random.usize(1..3) };

    for no in 0..RUNS_MAX {
        let struck = no < strikes;
        let finished = if struck {
            world.arm(case.strike, case.patient, &mut random);
            let after_chunks = random.u64(..chunks * 3 / 4);
            world.strike(case.strike, &scene, command.spawn(), after_chunks, &mut random)
        } else {
            command.run(PATIENCE)
        };
        world.heal();
        assert_civil(&finished, &name);
        let retries = finished.stderr.matches("trying again in").count();
        if retries > 0 && finished.code == Some(0) {
            *account.survived.entry(case.strike).or_default() += 1;
        }
        account.retries += retries;
        if finished.code == Some(0) {
            break;
        }
        assert!(struck, "{name}: fails without a fault\n{}", finished.stderr);
        assert!(!case.patient, "{name}: gave up\n{}", finished.stderr);
        *account.ended.entry(case.strike).or_default() += 1;
    }
    scene.assert_exact(&name);
    scene.assert_done(&name);
    let refused = command.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("this job finished"), "{name}\n{}", refused.stderr);
    scene.assert_exact(&name);
}

/// Past the capture of the test harness: the figures belong into every log.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
