//! A source that changed between two runs of a job is refused; put back as it was, the job goes on.

use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{HowdahCommand, S3, Server};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
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

/// A body, and after how many bytes of it the connection breaks.
type Export = Arc<Mutex<(Vec<u8>, Option<usize>)>>;

/// A web server that makes its answer anew each time and says neither how long it is nor what tells it from another one.
fn export(served: &Export) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = Arc::clone(served);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let (body, breaks_at) = served.lock().unwrap().clone();
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
            for part in body[..breaks_at.unwrap_or(body.len())].chunks(8192) {
                let _ = write!(stream, "{:x}\r\n", part.len());
                let _ = stream.write_all(part).and_then(|()| stream.write_all(b"\r\n"));
            }
            if breaks_at.is_none() {
                let _ = stream.write_all(b"0\r\n\r\n");
            }
        }
    });
    port
}

/// Half of one answer and half of another are no file.
#[test]
fn an_answer_that_nothing_tells_from_another_is_not_gone_on_with() {
    let plain = csv(43, 1, 20_000);
    let mut other = plain.clone();
    let late = plain.len() * 3 / 4;
    other.drain(..late - late / 2);
    let served: Export = Arc::new(Mutex::new((plain.clone(), Some(late))));
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let url = format!("http://127.0.0.1:{}/export.csv", export(&served));
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(url);
    let broken = load.run(PATIENCE).expect_code(1).stderr;
    assert!(broken.contains("nothing tells whether the source is still the same"), "{broken}");
    let chunks = scene.chunks();
    assert!(chunks > 2, "{broken}");
    // As many bytes and records in each chunk, but for a digit.
    let mut changed = plain.clone();
    let in_first = changed.iter().skip(200).position(u8::is_ascii_digit).unwrap() + 200;
    changed[in_first] = if changed[in_first] == b'1' { b'2' } else { b'1' };
    for body in [other, changed] {
        *served.lock().unwrap() = (body, None);
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("holds other records than an earlier run stored from it"), "{refused}");
        assert_eq!(scene.chunks(), chunks, "a refused load stored something");
    }
    *served.lock().unwrap() = (plain, None);
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("the whole answer");
    scene.assert_done("the whole answer");
}
