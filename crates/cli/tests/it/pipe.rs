//! Standard input and pipes: run again with the same bytes they complete, with other bytes they are refused.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, gzip, howdah, write_slowly};
use howdah_testkit::{Fault, HowdahCommand, Proxy, S3, Server};
use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;

/// `id,part,amount,note`
const HEADER_BYTES: usize = 20;

/// `howdah load - --job-id nightly`
fn load(scene: &Scene, bytes: &[u8]) -> HowdahCommand {
    load_in(scene, bytes, "2")
}

/// The same in so many sessions.
fn load_in(scene: &Scene, bytes: &[u8], jobs: &str) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB", "--jobs", jobs, "--job-id", "nightly", "-"]).stdin(bytes)
}

/// Runs it until `chunks` are in, and kills it.
fn run_and_kill(scene: &Scene, load: &HowdahCommand, chunks: u64) {
    shut_gate_behind(&scene.database, chunks);
    let mut running = load.spawn();
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
            run_and_kill(&scene, &load(&scene, &bytes), chunks);
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
    // With two sessions the first chunk may be the one that waits.
    run_and_kill(&scene, &load_in(&scene, &plain, "1"), 4);

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

    let refused = load(&scene, &gzip(&plain)).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("expected plain data, as when the job began, got gzip data"), "{refused}");
    assert!(refused.contains("hint: give the file as it was"), "{refused}");

    load(&scene, &plain).run(PATIENCE).expect_code(0);
    scene.assert_exact("as it was");
}

/// A name of last night's would otherwise take tonight's rows for loaded ones.
#[test]
fn a_finished_pipe_is_read_to_its_end_and_must_bring_the_same_bytes() {
    let plain = csv(13, 1, 60_000);
    let files = Files::new();
    for (major, mode) in [(13, &["--on-error", "skip"][..]), (18, &["--mode", "merge", "--key", "id"])] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("CREATE UNIQUE INDEX ON t (id)");
        let fifo = files.path().join(format!("{major}.csv"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let send = |bytes: &[u8]| {
            let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2", "--job-id", "nightly"]);
            let running = load.args(mode).args(["--if-done", "ok", "--json"]).arg(&fifo).spawn();
            let written = std::fs::File::options().write(true).open(&fifo).unwrap().write_all(bytes);
            (written, running.wait(PATIENCE))
        };
        send(&plain).1.expect_code(0);
        let (written, again) = send(&plain);
        // Whoever writes gets to his end, too.
        written.unwrap();
        let again = again.expect_code(0);
        assert!(again.stderr.contains("nothing is left to do: this job finished"), "{}", again.stderr);
        let summary: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!(summary["rows_stored"], 60_000, "{summary}");

        let longer = [&plain[..], &csv(13, 60_001, 1)[HEADER_BYTES..]].concat();
        let chunks_longer = [&plain[..], &csv(13, 60_001, 9_000)[HEADER_BYTES..]].concat();
        let half = plain.len() / 2;
        let shorter = &plain[..half + plain[half..].iter().position(|byte| *byte == b'\n').unwrap() + 1];
        let other = csv(14, 1, 2);
        for bytes in [&longer, &chunks_longer, shorter, &other, &plain[..HEADER_BYTES], b""] {
            let told = send(bytes).1.expect_code(1);
            let report: Value = serde_json::from_str(&told.stdout).unwrap();
            assert_eq!(report["error"]["kind"], "source_changed", "{}", told.stderr);
            assert_eq!(report["error"]["file"], fifo.to_str().unwrap(), "{}", told.stderr);
        }
        scene.assert_exact("after other bytes");
        scene.assert_done("after other bytes");
    }
}

#[test]
fn a_finished_pipe_is_known_by_its_bytes_whatever_was_left_out_of_it() {
    for mode in [&["--atomic"][..], &[], &["--lenient"]] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY)");
        let mut lines: Vec<String> = (1..=30_000).map(|no| format!("{no}\n")).collect();
        (lines[9_000], lines[20_000]) = ("17\n".to_owned(), "x,y\n".to_owned());
        let load = |lines: &[String]| {
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--columns", "id"]);
            let load =
                load.args(["--on-error", "skip", "--job-id", "n", "--if-done", "ok", "--chunk-size", "64kB"]);
            load.args(["--delimiter", ","]).args(mode).arg("-").stdin(lines.concat().as_bytes()).run(PATIENCE)
        };
        for _ in 0..2 {
            load(&lines).expect_code(3);
        }
        lines[9_000] = "18\n".to_owned();
        let refused = load(&lines).expect_code(1).stderr;
        assert!(refused.contains("as many bytes, but not the same"), "{mode:?} {refused}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "29998");
    }
}

/// Whoever opened a named pipe once more would wait for ever, or take the rows of its next writer.
#[test]
fn a_pipe_whose_rows_the_server_has_lost_is_not_waited_for_again() {
    let (files, bytes) = (Files::new(), csv(76, 1, 20_000));
    for (major, fault) in [(13, Fault::CutBeforeCommit { skip: 0 }), (18, Fault::Pass)] {
        let server = Server::shared(major);
        let (scene, proxy) = (Scene::new(server, &[&bytes]), Proxy::before_server(server));
        scene.database.sql("INSERT INTO t SELECT");
        scene.slow_down("BEFORE", Duration::from_millis(300));
        let fifo = files.path().join(format!("{major}.csv"));
        let load = howdah("load")
            .args(["--to", &scene.database.conninfo_through(&proxy), "--table", "t", "--job-id", "nightly"])
            .args(["--mode", "truncate", "--freeze", "--chunk-size", "512kB"])
            .arg(&fifo)
            .fifo(&fifo, bytes.clone());
        let mut running = load.spawn();
        let copies = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND query LIKE 'COPY %' AND wait_event = 'PgSleep'";
        if fault == Fault::Pass {
            // What sleeps is ended in the same moment that it is seen: a little later it copies no more.
            let ended = copies.replace("count(*)", "count(pg_terminate_backend(pid))");
            assert!(scene.database.wait_for(&ended, 1, || running.is_running()), "{fault:?}");
        } else {
            assert!(scene.database.wait_for(copies, 1, || running.is_running()), "{fault:?}");
            proxy.set_times(fault, 1);
        }
        let failed = running.wait(PATIENCE).expect_code(1).stderr;
        let told = "send the same bytes through the same `howdah load` command again";
        assert!(failed.contains("a pipe cannot be read again") && failed.contains(told), "{failed}");
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "1", "{fault:?}");
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact("the same bytes");
    }
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
    write_slowly(&scene, &mut pipe, &csv(14, 1, 20_000));
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
    // Each block comes much later than the one before, however busy the machine is.
    proxy.set(Fault::Trickle(Duration::from_millis(500)));
    let running = load.arg("s3://lake/a.csv.gz").spawn();
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
        let written = pipe.write_all(&csv(15, 1, 5_000));
        // Beside the other file the load may be over by then.
        assert!(written.is_ok() || sources.len() == 2, "{written:?}");
        if sources.len() == 1 {
            pipe.write_all(b"x,2,3,b\n").unwrap();
            pipe.write_all(&csv(16, 5_001, 5_000)[HEADER_BYTES..]).unwrap();
        }
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("22P02"), "{told}");
        drop(pipe);
    }
}

/// A scheduler that closes it, say: the table would be emptied for nothing.
#[test]
fn standard_input_that_is_closed_is_refused_and_nothing_is_emptied() {
    let scene = Scene::new(Server::shared(15), &[]);
    scene.database.sql("INSERT INTO t (id) VALUES (1)");
    let load = |redirected: &str, source: &str| {
        let line = format!("exec \"$@\" {redirected}");
        let program = ["sh", env!("CARGO_BIN_EXE_howdah"), "load", "--mode", "truncate", "--format", "csv"];
        let shell = HowdahCommand::new("sh").args(["-c", &line]).args(program);
        shell.args(["--table", "t", "--to", &scene.database.conninfo(), source]).run(PATIENCE)
    };
    for source in ["-", "/dev/stdin"] {
        let told = load("<&-", source).expect_code(1).stderr;
        assert!(told.contains(&format!("{source}: standard input is closed")), "{told}");
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "1", "{told}");
    }
    load("<&-", "/dev/null").expect_code(0);
    load("</dev/null", "-").expect_code(0);
}
