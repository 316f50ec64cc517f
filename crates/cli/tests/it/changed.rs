//! A source that changed between two runs of a job is refused; put back as it was, the job goes on.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, gzip, run_told};
use crate::web::Web;
use howdah_testkit::{HowdahCommand, S3, Server};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

fn kill_after(scene: &Scene, load: &HowdahCommand, chunks: u64) {
    shut_gate_behind(&scene.database, chunks);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(chunks, || running.is_running()));
    running.kill();
    remove_gate(&scene.database);
}

/// `why` tells of the first file that changed.
fn assert_refused(load: &HowdahCommand, file: &str, why: &str) {
    let refused = load.run(PATIENCE).expect_code(1);
    assert!(
        refused.stderr.contains(&format!("error: file {file}: the sources are not what job")),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains(&format!(": {why}\n")), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: put the sources back as they were"), "{}", refused.stderr);
}

#[test]
fn a_file_that_changed_between_runs_is_refused() {
    let plain = csv(41, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    kill_after(&scene, &load, 3);
    let (chunks, modified) = (scene.chunks(), source.metadata().unwrap().modified().unwrap());

    // As long as before, one byte different: the time of the change tells.
    let mut changed = plain.clone();
    let last = changed.len() - 2;
    changed[last] ^= 1;
    files.put("a.csv", &changed);
    let name = source.to_str().unwrap();
    assert_refused(&load, name, "this file was written since");
    files.put("a.csv", &[&plain[..], b"999999,1,1.0,more\n"].concat());
    let bytes = plain.len();
    assert_refused(&load, name, &format!("this file has {} bytes now, expected {bytes}", bytes + 18));
    assert_eq!(scene.chunks(), chunks, "a refused load stored something");

    files.put("a.csv", &plain);
    File::options().write(true).open(&source).unwrap().set_modified(modified).unwrap();
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("put back");
    scene.assert_done("put back");
}

/// The sessions of a run that was killed are gone.
fn wait_for_the_end(scene: &Scene) {
    let locks = "SELECT (NOT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                 WHERE l.locktype = 'advisory' AND d.datname = current_database()))::int";
    assert!(scene.database.wait_for(locks, 1, || true), "sessions stay at work");
}

/// They wait in a staging table, where the next load looks for none.
#[test]
fn a_file_that_changed_is_loaded_where_rows_of_the_earlier_one_wait() {
    let later = csv(46, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &csv(47, 1, 20_000));
    for (major, options) in [(13, &["--atomic"][..]), (18, &["--mode", "merge", "--key", "id"])] {
        let scene = Scene::new(Server::shared(major), &[&later]);
        scene.database.sql("CREATE UNIQUE INDEX ON t (id)");
        let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).args(options).arg(&source);
        files.put("a.csv", &csv(47, 1, 20_000));
        kill_after(&scene, &load, 3);
        wait_for_the_end(&scene);
        files.put("a.csv", &later);
        let told = load.run(PATIENCE).expect_code(0).stderr;
        scene.assert_exact(&format!("{options:?}"));
        let staging = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'staging%'";
        assert!(
            scene.database.value(staging) != "0"
                && told.contains("hold rows of an earlier version of these files"),
            "{told}"
        );
        run_told(&told, "howdah restore ", str::to_owned);
        assert_eq!(scene.database.value(staging), "0", "{told}");
    }
}

/// Parts of the earlier file have come in.
#[test]
fn a_file_that_changed_is_refused_where_rows_of_the_earlier_one_have_come_in() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(48, 1, 20_000));
    let scene = Scene::new(Server::shared(15), &[]);
    scene.database.sql("CREATE UNIQUE INDEX ON t (id)");
    let load = scene.load().args(["--chunk-size", "64kB", "--mode", "merge", "--key", "id"]).arg(&source);
    kill_after(&scene, &load, 3);
    wait_for_the_end(&scene);
    scene.database.sql(
        "INSERT INTO howdah.step (job_id, target, name, part_no, rows, inserted) \
         SELECT job_id, 'public.t', 'part', 1, 1, 1 FROM howdah.job",
    );
    let text = csv(50, 1, 10_000);
    files.put("a.csv", &text);
    let why = format!("this file has {} bytes now, expected {}", text.len(), csv(48, 1, 20_000).len());
    assert_refused(&load, source.to_str().unwrap(), &why);
}

/// The ledger knows no rows of the earlier file any more: put back, it is loaded as a whole.
#[test]
fn a_file_that_changed_is_loaded_where_somebody_has_emptied_the_table() {
    let (plain, later) = (csv(44, 1, 20_000), csv(45, 1, 10_000));
    for major in [13, 18] {
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[&later]);
        let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
        kill_after(&scene, &load, 3);
        wait_for_the_end(&scene);
        let modified = source.metadata().unwrap().modified().unwrap();
        files.put("a.csv", &later);
        let why = format!("this file has {} bytes now, expected {}", later.len(), plain.len());
        assert_refused(&load, source.to_str().unwrap(), &why);
        scene.database.sql("TRUNCATE t");
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
        files.put("a.csv", &plain);
        File::options().write(true).open(&source).unwrap().set_modified(modified).unwrap();
        load.run(PATIENCE).expect_code(0);
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "30000");
    }
}

#[test]
fn an_object_that_changed_between_runs_is_refused() {
    let plain = csv(42, 1, 20_000);
    let s3 = S3::start();
    for (major, key, bytes) in [(15, "a.csv", plain.clone()), (18, "a.csv.gz", gzip(&plain))] {
        s3.put("changed", key, &bytes);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let load = scene
            .load()
            .args(["--chunk-size", "64kB", "--jobs", "2"])
            .arg(format!("s3://changed/{key}"))
            .envs(s3.env());
        kill_after(&scene, &load, 3);
        s3.put("changed", key, &csv(43, 1, 20_000));
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        let told = ["this file has another ETag or time now", " bytes now, expected "];
        assert!(refused.contains(&format!("file s3://changed/{key}: ")), "{refused}");
        assert!(told.iter().any(|told| refused.contains(told)), "{refused}");
        s3.put("changed", key, &bytes);
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(key);
        scene.assert_done(key);
    }
}

#[test]
fn a_url_that_changed_between_runs_is_refused() {
    let plain = csv(49, 1, 20_000);
    let web = Web::new();
    let url = web.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&url);
    kill_after(&scene, &load, 3);
    web.retag(Some("\"two\""));
    assert_refused(&load, &url, "this file has another ETag or time now");
    web.retag(Some("\"one\""));
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("put back");
    scene.assert_done("put back");
}

/// A body, and after how many bytes of it the connection breaks.
type Export = Arc<Mutex<(Vec<u8>, Option<usize>)>>;

/// A web server that makes its answer anew each time and says neither how long it is nor what tells it from
/// another one.
fn export(served: &Export) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = Arc::clone(served);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let (body, breaks_at) = served.lock().unwrap().clone();
            answer(&mut stream, &body, breaks_at);
        }
    });
    port
}

fn answer(stream: &mut TcpStream, body: &[u8], breaks_at: Option<usize>) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    for part in body[..breaks_at.unwrap_or(body.len())].chunks(8192) {
        let _ = write!(stream, "{:x}\r\n", part.len());
        let _ = stream.write_all(part).and_then(|()| stream.write_all(b"\r\n"));
    }
    if breaks_at.is_none() {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
}

/// A web server like that whose answer follows from the path and the number of times that it was asked for,
/// from 0 on.
fn export_anew(body: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (body, asked) = (Arc::new(body), Arc::new(Mutex::new(HashMap::<String, usize>::new())));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (body, asked) = (Arc::clone(&body), Arc::clone(&asked));
            // An answer is read bit by bit, while others are asked for.
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]);
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let times = {
                    let mut asked = asked.lock().unwrap();
                    let times = asked.entry(path.clone()).or_default();
                    *times += 1;
                    *times - 1
                };
                answer(&mut stream, &body(&path, times), None);
            });
        }
    });
    port
}

/// The same rows with their columns in another order each time.
fn turned(plain: &[u8], times: usize) -> Vec<u8> {
    if times.is_multiple_of(2) {
        return plain.to_vec();
    }
    let text = String::from_utf8(plain.to_vec()).unwrap();
    let turn = |line: &str| {
        let (first, rest) = line.split_once(',').unwrap();
        format!("{rest},{first}\n")
    };
    text.lines().map(turn).collect::<String>().into_bytes()
}

/// The plan's header is not that of the answer which would come next.
#[test]
fn what_is_made_anew_for_each_request_is_loaded_from_the_answer_that_was_planned() {
    let rows: String = (1..=40_000).map(|id| format!("{id},{},{id}.5,n{id}\n", id % 16)).collect();
    let plain = format!("id,part,amount,note\n{rows}").into_bytes();
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let port = export_anew({
        let plain = plain.clone();
        move |_, times| turned(&plain, times)
    });
    let load = scene.load().args(["--chunk-size", "64kB"]);
    load.clone().arg(format!("http://127.0.0.1:{port}/a.csv")).run(PATIENCE).expect_code(0);
    scene.assert_exact("one URL");
    scene.assert_done("one URL");
    let other = Scene::new(Server::shared(15), &[&plain]);
    let urls = ["b", "c"].map(|name| format!("http://127.0.0.1:{port}/{name}.csv"));
    let load = other.load().args(["--chunk-size", "64kB"]).args(&urls);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("expected the first bytes that the plan was made from"), "{refused}");
    assert!(refused.contains("hint: load this URL alone"), "{refused}");
}

#[test]
fn a_job_of_urls_that_differ_in_their_query_goes_on_with_each_of_them() {
    let (one, two) = (csv(47, 1, 20_000), csv(48, 20_001, 20_000));
    let scene = Scene::new(Server::shared(15), &[&one, &two]);
    let port = export_anew(move |path, _| if path.ends_with("id=A") { one.clone() } else { two.clone() });
    let urls = ["A", "B"].map(|id| format!("http://127.0.0.1:{port}/export?id={id}"));
    kill_after(&scene, &scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).args(&urls), 3);
    let job = scene.database.value("SELECT job_id FROM howdah.job");
    scene.verb("resume").arg(&job).run(PATIENCE).expect_code(0);
    scene.assert_exact("resumed");
    scene.assert_done("resumed");
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

/// The hint leads out: under another name alone the rows of the first job would be in the way.
#[test]
fn another_answer_comes_in_as_the_hint_says() {
    let (plain, other) = (csv(43, 1, 20_000), csv(44, 20_001, 20_000));
    let late = plain.len() * 3 / 4;
    for with_delete in [false, true] {
        let served: Export = Arc::new(Mutex::new((plain.clone(), Some(late))));
        let scene = Scene::new(Server::shared(15), &[&other]);
        let url = format!("http://127.0.0.1:{}/export.csv", export(&served));
        let load = || scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&url);
        load().run(PATIENCE).expect_code(1);
        let stored = scene.database.value("SELECT count(*) FROM t");
        assert_ne!(stored, "0");
        *served.lock().unwrap() = (other.clone(), None);
        let told = load().run(PATIENCE).expect_code(1).stderr;
        let ways =
            ["remove the rows that the job has stored, delete it", "another --job-id with --force loads"];
        assert!(ways.iter().all(|way| told.contains(way)), "{told}");
        if with_delete {
            scene.database.sql("DELETE FROM t; DELETE FROM howdah.job");
            load().run(PATIENCE).expect_code(0);
        } else {
            let told = load().args(["--job-id", "other"]).run(PATIENCE).expect_code(1).stderr;
            assert!(told.contains("this load would store them once more"), "{told}");
            load().args(["--job-id", "other", "--force"]).run(PATIENCE).expect_code(0);
            scene.database.sql("DELETE FROM t WHERE id <= 20000");
        }
        scene.assert_exact(if with_delete { "behind DELETE" } else { "beside the first" });
    }
}
