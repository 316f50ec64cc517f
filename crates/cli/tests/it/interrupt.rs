//! Ctrl-C: a clean stop within two seconds, whatever the load waits for, and a job that can be resumed.

use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv};
use howdah_testkit::{Fault, Finished, HowdahCommand, Proxy, Running, Server};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Promised are two seconds; the rest is for a busy machine.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

fn prepared(major: u32) -> (Scene, Files, PathBuf) {
    let plain = csv(31, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(major), &[&plain]);
    scene.slow_down("BEFORE", Duration::from_millis(50));
    (scene, files, source)
}

fn interrupt(running: Running, what: &str) -> Finished {
    let began = Instant::now();
    running.interrupt();
    let finished = running.wait(PATIENCE).expect_code(130);
    let took = began.elapsed();
    let _ = writeln!(std::io::stderr(), "Ctrl-C {what}: stopped after {:.2} s", took.as_secs_f64());
    assert!(took < STOPS_WITHIN, "{what}: {took:?}");
    assert!(finished.stderr.contains("error: stopped by the user"), "{what}\n{}", finished.stderr);
    assert!(finished.stderr.contains("hint: run the same command again"), "{what}\n{}", finished.stderr);
    finished
}

#[test]
fn an_interrupted_load_stops_says_so_and_is_resumed() {
    let (scene, _files, source) = prepared(15);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(4, || running.is_running()));
    let finished = interrupt(running, "while loading");
    assert!(finished.stderr.contains("stopped in"), "{}", finished.stderr);
    let job = scene.database.rows("SELECT job_id, status FROM howdah.job").swap_remove(0);
    assert_eq!(job[1].as_deref(), Some("interrupted"));
    let id = job[0].clone().unwrap();
    let told = scene.verb("status").arg(&id).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("interrupted") && told.contains(&format!("howdah resume {id}")), "{told}");
    scene.verb("resume").arg(&id[..8]).run(PATIENCE).expect_code(0);
    scene.assert_exact("resumed");
    scene.assert_done("resumed");
    let refused = scene.verb("resume").arg(&id).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("this job finished"), "{}", refused.stderr);
}

#[test]
fn a_load_that_is_stopped_as_its_sessions_end_is_noted_as_interrupted() {
    let (scene, _files, source) = prepared(15);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    scene.database.sql(END_SESSIONS);
    interrupt(running, "as its sessions are ended");
    assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "interrupted");
    scene.load().arg(&source).run(PATIENCE).expect_code(0);
    scene.assert_exact("after its sessions were ended");
}

#[test]
fn a_load_that_waits_for_a_lock_stops_on_ctrl_c() {
    let (scene, _files, source) = prepared(13);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    std::thread::scope(|scope| {
        let held = scope.spawn(|| scene.database.sql("BEGIN; LOCK TABLE t; SELECT pg_sleep(3); COMMIT"));
        std::thread::sleep(Duration::from_millis(500));
        interrupt(running, "while it waits for a lock");
        held.join().unwrap();
    });
    scene.load().arg(&source).run(PATIENCE).expect_code(0);
    scene.assert_exact("after a lock");
}

#[test]
fn a_load_whose_network_stands_still_stops_on_ctrl_c() {
    let (scene, _files, source) = prepared(18);
    let proxy = Proxy::before_server(Server::shared(18));
    let through = scene.database.conninfo_through(&proxy);
    let load = || scene.load_to(&through).args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    let mut running = load().spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    proxy.set(Fault::Stall);
    std::thread::sleep(Duration::from_millis(300));
    interrupt(running, "while the network stands still");
    let starting = load().spawn();
    std::thread::sleep(Duration::from_millis(300));
    interrupt(starting, "while it cannot even connect");
    proxy.set(Fault::Pass);
    load().run(PATIENCE).expect_code(0);
    scene.assert_exact("after a stall");
}

/// `nohup howdah load` outlives the terminal.
#[test]
fn a_load_that_was_started_to_ignore_hangups_goes_on() {
    let (scene, _files, source) = prepared(15);
    let script = "trap '' HUP; exec \"$@\"";
    let to = scene.database.conninfo();
    let load = HowdahCommand::new("sh").args([
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_howdah"),
        "load",
        "--to",
        &to,
    ]);
    let load =
        load.args(["--format", "csv", "--header", "--table", "t", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    running.hang_up();
    running.wait(PATIENCE).expect_code(0);
    scene.assert_exact("after a hangup");
}
