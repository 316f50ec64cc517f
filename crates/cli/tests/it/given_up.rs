//! A load that has failed ends, whatever it waits for besides: locks, a server that is away, chunks that
//! nobody wants any more.

use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{Fault, HowdahCommand, Proxy, Running, Server};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Chunks under way are given some seconds, and the account of the load as well; the rest is for a slow
/// machine. What is waited for takes minutes.
const ENDS_WITHIN: Duration = Duration::from_secs(200);

/// A load of a file of one chunk, and of a compressed pipe that breaks off when it is told to.
struct Failing {
    files: Files,
    fifo: PathBuf,
    half: Vec<u8>,
}

impl Failing {
    fn new() -> Failing {
        let files = Files::new();
        let fifo = files.path().join("pipe.csv.gz");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // More than is looked at beforehand, and less than a chunk.
        let whole = gzip(&csv(81, 1, 20_000));
        Failing { files, fifo, half: whole[..whole.len() / 2].to_vec() }
    }

    /// Starts it. The pipe breaks off when what comes back is joined.
    fn start(&self, load: &HowdahCommand) -> (Running, Broken) {
        let running = load.clone().arg(&self.fifo).spawn();
        let mut pipe = File::options().write(true).open(&self.fifo).unwrap();
        let half = self.half.clone();
        let writer = std::thread::spawn(move || {
            pipe.write_all(&half).unwrap();
            pipe
        });
        (running, writer)
    }
}

type Broken = JoinHandle<File>;

fn fails(running: Running, pipe: Broken) {
    drop(pipe.join().unwrap());
    let began = Instant::now();
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("pipe.csv.gz"), "{told}");
    assert!(began.elapsed() < ENDS_WITHIN, "{:?}\n{told}", began.elapsed());
}

fn wait_until(scene: &Scene, what: &str) {
    let began = Instant::now();
    assert!(scene.database.wait_for(what, 1, || began.elapsed() < PATIENCE), "in vain: {what}");
}

const WAITS: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass";

#[test]
fn a_load_that_has_failed_does_not_wait_for_a_lock() {
    for (major, options) in [(13, [].as_slice()), (18, ["--mode", "truncate", "--freeze"].as_slice())] {
        let failing = Failing::new();
        let source = failing.files.put("a.csv", &csv(82, 1, 500));
        let scene = Scene::new(Server::shared(major), &[]);
        let holder = scene.database.connect();
        holder.sql("BEGIN; LOCK TABLE t IN SHARE MODE");
        // Where it waits for the table to empty it, nothing is said for as long.
        let load = scene.load().args(["--jobs", "2", "--lock-timeout", "10min"]).args(options);
        let (running, pipe) = failing.start(&load.arg(&source));
        wait_until(&scene, WAITS);
        fails(running, pipe);
        drop(holder);
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0", "{options:?}");
    }
}

#[test]
fn a_load_that_has_failed_does_not_wait_to_change_a_column() {
    let failing = Failing::new();
    // Behind what is looked at beforehand.
    let part = |id| if id == 75_000 { 70_000 } else { 7 };
    let records: String = (0..100_000).map(|id| format!("{id},{},1,\n", part(id))).collect();
    let source = failing.files.put("a.csv", format!("id,part,amount,note\n{records}").as_bytes());
    let scene = Scene::new(Server::shared(15), &[]);
    scene.database.sql("ALTER TABLE t ALTER part TYPE smallint");
    let holder = scene.database.connect();
    holder.sql("BEGIN; LOCK TABLE t IN SHARE MODE");
    let load = scene.verb("load").args(["--table", "t", "--evolve", "widen", "--lock-timeout", "10min"]);
    let load = load.args(["--jobs", "2"]).arg(&source);
    let (running, pipe) = failing.start(&load);
    wait_until(&scene, WAITS);
    fails(running, pipe);
    drop(holder);
}

#[test]
fn a_load_that_has_failed_does_not_wait_for_a_server_that_is_away() {
    let failing = Failing::new();
    let source = failing.files.put("a.csv", &csv(83, 1, 500));
    let scene = Scene::new(Server::shared(18), &[]);
    scene.slow_down("BEFORE", PATIENCE);
    let proxy = Proxy::before_server(Server::shared(18));
    let load = scene.load_to(&scene.database.conninfo_through(&proxy));
    let load = load.args(["--jobs", "2", "--retry-for", "10min"]).arg(&source);
    let (running, pipe) = failing.start(&load);
    wait_until(
        &scene,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
    );
    proxy.set(Fault::Refuse);
    scene.database.sql(END_SESSIONS);
    let began = Instant::now();
    while !running.stderr_so_far().contains("trying again in") && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    fails(running, pipe);
}
