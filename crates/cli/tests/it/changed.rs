//! A source that changed between two runs of a job is refused; put back as it was, the job goes on.

use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{HowdahCommand, S3, Server};
use std::fs::File;
use std::time::Duration;

fn kill_after(scene: &Scene, load: &HowdahCommand, chunks: u64) {
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(chunks, || running.is_running()));
    running.kill();
}

fn assert_refused(load: &HowdahCommand) {
    let refused = load.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("error: "), "{}", refused.stderr);
    assert!(refused.stderr.contains("the sources are not what job"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: put the sources back as they were"), "{}", refused.stderr);
}

#[test]
fn a_file_that_changed_between_runs_is_refused() {
    let plain = csv(41, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    scene.slow_down("BEFORE", Duration::from_millis(30));
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    kill_after(&scene, &load, 3);
    let (chunks, modified) = (scene.chunks(), source.metadata().unwrap().modified().unwrap());

    // As long as before, one byte different: the time of the change tells.
    let mut changed = plain.clone();
    let last = changed.len() - 2;
    changed[last] ^= 1;
    files.put("a.csv", &changed);
    assert_refused(&load);
    files.put("a.csv", &[&plain[..], b"999999,1,1.0,more\n"].concat());
    assert_refused(&load);
    assert_eq!(scene.chunks(), chunks, "a refused load stored something");

    files.put("a.csv", &plain);
    File::options().write(true).open(&source).unwrap().set_modified(modified).unwrap();
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("put back");
    scene.assert_done("put back");
}

#[test]
fn an_object_that_changed_between_runs_is_refused() {
    let plain = csv(42, 1, 20_000);
    let s3 = S3::start();
    for (major, key, bytes) in [(15, "a.csv", plain.clone()), (18, "a.csv.gz", gzip(&plain))] {
        s3.put("changed", key, &bytes);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.slow_down("AFTER", Duration::from_millis(30));
        let load = scene
            .load()
            .args(["--chunk-size", "64kB", "--jobs", "2"])
            .arg(format!("s3://changed/{key}"))
            .envs(s3.env());
        kill_after(&scene, &load, 3);
        s3.put("changed", key, &csv(43, 1, 20_000));
        assert_refused(&load);
        s3.put("changed", key, &bytes);
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(key);
        scene.assert_done(key);
    }
}
