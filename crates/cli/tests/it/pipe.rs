//! Standard input: killed and run again with the same bytes it completes, with other bytes it is refused.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{Fault, HowdahCommand, Proxy, S3, Server};
use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;

/// `id,part,amount,note`
const HEADER_BYTES: usize = 20;

/// `howdah load - --job-id nightly`
fn load(scene: &Scene, bytes: &[u8]) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB", "--jobs", "2", "--job-id", "nightly", "-"]).stdin(bytes)
}

/// Runs it until `chunks` are in, and kills it.
fn load_and_kill(scene: &Scene, bytes: &[u8], chunks: u64) {
    shut_gate_behind(&scene.database, chunks);
    let mut running = load(scene, bytes).spawn();
    assert!(scene.wait_for_chunks(chunks, || running.is_running()));
    assert_eq!(running.kill().signal, Some(9));
    remove_gate(&scene.database);
}

#[test]
fn a_killed_pipe_goes_on_when_it_brings_the_same_bytes() {
    let plain = csv(11, 1, 20_000);
    for (major, bytes) in [(13, plain.clone()), (18, gzip(&plain))] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        for chunks in [1, 7, 12] {
            load_and_kill(&scene, &bytes, chunks);
        }
        let finished = load(&scene, &bytes).run(PATIENCE).expect_code(0);
        assert!(finished.stderr.contains("rows more were stored by another run"), "{}", finished.stderr);
        scene.assert_exact("same bytes");
        scene.assert_done("same bytes");
        let refused = load(&scene, &bytes).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("this job finished"), "{}", refused.stderr);
        scene.assert_exact("same bytes, once more");
    }
}

#[test]
fn a_killed_pipe_that_brings_other_bytes_is_refused() {
    let plain = csv(12, 1, 20_000);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    load_and_kill(&scene, &plain, 4);

    // One digit of the first row: the borders and the number of rows stay.
    let mut changed = plain.clone();
    let row = changed.windows(3).position(|bytes| bytes == b"\n1,").unwrap();
    let digit = row + 3;
    changed[digit] = if changed[digit] == b'1' { b'2' } else { b'1' };
    // A row fewer at the beginning: everything moves.
    let shorter =
        [&plain[..=row], plain[row + 1..].splitn(2, |byte| *byte == b'\n').nth(1).unwrap()].concat();
    for (what, other) in [("as many bytes, but not the same", &changed), ("expected", &shorter)] {
        let refused = load(&scene, other).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("chunk 0 holds other records"), "{what}\n{}", refused.stderr);
        assert!(refused.stderr.contains(what), "{what}\n{}", refused.stderr);
        assert!(refused.stderr.contains("hint: give the file as it was"), "{what}\n{}", refused.stderr);
    }

    load(&scene, &plain).run(PATIENCE).expect_code(0);
    scene.assert_exact("as it was");
}

/// Sessions that get nothing to copy are idle to the server, which then is not what held the load back.
#[test]
fn a_slow_source_is_said_to_be_what_held_the_load_back() {
    let files = Files::new();
    let fifo = files.path().join("slow.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let scene = Scene::new(Server::shared(18), &[]);
    let running = scene.load().args(["--json", "--chunk-size", "64kB", "--jobs", "2"]).arg(&fifo).spawn();
    let mut pipe = std::fs::File::options().write(true).open(&fifo).unwrap();
    for part in csv(14, 1, 20_000).chunks(100_000) {
        pipe.write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    drop(pipe);
    let told: Value = serde_json::from_str(&running.wait(PATIENCE).expect_code(0).stdout).unwrap();
    let share = told["waits"]["Client:ClientRead"].as_f64().unwrap_or(0.0);
    assert!(share > 0.5, "{}", told["waits"]);
    assert_eq!(told["limit"]["what"], "the source: reading files", "{told:#}");
    assert_eq!((&told["limit"]["of"], told["limit"]["share"].as_f64()), (&"sessions".into(), Some(share)));
}

#[test]
fn a_slow_object_store_is_told_by_name() {
    let plain = csv(16, 1, 60_000);
    let s3 = S3::start();
    s3.put("lake", "a.csv.gz", &gzip(&plain));
    let proxy = Proxy::before_s3(&s3);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let load =
        scene.load().args(["--json", "--chunk-size", "256kB", "--jobs", "2"]).envs(s3.env_through(&proxy));
    let mut running = load.arg("s3://lake/a.csv.gz").spawn();
    // The bytes of a tenth of the time.
    while running.is_running() {
        proxy.set(Fault::Stall);
        std::thread::sleep(Duration::from_millis(400));
        proxy.set(Fault::Pass);
        std::thread::sleep(Duration::from_millis(2));
    }
    let told: Value = serde_json::from_str(&running.wait(PATIENCE).expect_code(0).stdout).unwrap();
    scene.assert_exact("from a slow store");
    assert_eq!(told["limit"]["what"], "the source: waiting for s3", "{told:#}");
}

/// What is wrong is said at once, and not when a source that has nothing more to say ends.
#[test]
fn a_load_that_fails_does_not_wait_for_its_sources() {
    let files = Files::new();
    let fifo = files.path().join("open.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let bad = files.put("bad.csv", b"id,part,amount,note\n1,2,3,a\nx,2,3,b\n");
    for sources in [vec![&fifo], vec![&fifo, &bad]] {
        let scene = Scene::new(Server::shared(15), &[]);
        let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]);
        let running = sources.iter().fold(load, HowdahCommand::arg).spawn();
        let mut pipe = std::fs::File::options().write(true).open(&fifo).unwrap();
        let good = csv(15, 1, 5_000);
        pipe.write_all(&good).unwrap();
        if sources.len() == 1 {
            pipe.write_all(b"x,2,3,b\n").unwrap();
            pipe.write_all(&csv(16, 5_001, 5_000)[HEADER_BYTES..]).unwrap();
        }
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("22P02"), "{told}");
        drop(pipe);
    }
}
