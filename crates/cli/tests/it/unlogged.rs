//! UNLOGGED tables: a crash of the server empties them, and no receipt outlives that.

use crate::crash::forgetful;
use crate::gate::{move_gate_behind, open_gate, remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, MAJORS, Server, side_by_side};
use std::path::Path;
use std::time::Duration;

const ROWS: u64 = 30_000;
const EMPTIED: &str = "emptied the UNLOGGED tables";

fn scene(server: &Server, plain: &[u8]) -> Scene {
    let scene = Scene::new(server, &[plain]);
    scene.database.sql("ALTER TABLE t SET UNLOGGED");
    scene
}

fn load(scene: &Scene, source: &Path) -> HowdahCommand {
    scene.load().args(["--chunk-size", "128kB", "--jobs", "2", "--retry-for", "10min"]).arg(source)
}

/// Ends the load between its chunks, when so many are in.
fn kill_behind(scene: &Scene, load: &HowdahCommand, chunks: u64) {
    shut_gate_behind(&scene.database, chunks);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(chunks, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    remove_gate(&scene.database);
}

#[test]
fn rows_that_a_crash_takes_are_loaded_again_by_the_load_or_by_the_next_run() {
    let (files, plain) = (Files::new(), csv(11, 1, ROWS));
    let source = files.put("a.csv", &plain);
    side_by_side(MAJORS, |major| {
        let server = Server::private(major, &forgetful());
        let scene = scene(&server, &plain);
        let load = load(&scene, &source);
        shut_gate_behind(&scene.database, 4);

        let mut running = load.spawn();
        assert!(scene.wait_for_chunks(4, || running.is_running()));
        running.kill();
        move_gate_behind(&scene.database, 8);
        // The receipts are on disk, and their rows are not.
        scene.database.sql("CHECKPOINT");
        server.crash_and_restart();

        let mut running = load.spawn();
        assert!(scene.wait_for_chunks(8, || running.is_running()), "{}", running.stderr_so_far());
        scene.database.sql("CHECKPOINT");
        server.crash_and_restart();
        open_gate(&scene.database);
        let finished = running.wait(PATIENCE).expect_code(0);
        assert!(finished.stderr.contains("check  read 30,000 = stored 30,000"), "{}", finished.stderr);
        assert!(finished.stderr.contains("since an earlier run"), "{}", finished.stderr);
        assert!(finished.stderr.contains("loading "), "{}", finished.stderr);
        scene.assert_exact(&format!("PostgreSQL {major}"));
        scene.assert_done(&format!("PostgreSQL {major}"));

        // A clean stop leaves the rows, and a crash after the end takes them.
        server.stop_fast();
        server.start();
        let done = load.run(PATIENCE);
        assert!(done.stderr.contains("has stored its rows"), "{}", done.stderr);
        scene.assert_exact("a clean stop");
        server.crash_and_restart();
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact("a crash after the end");
    });
}

#[test]
fn rows_that_came_from_staging_tables_are_loaded_again() {
    let (files, plain) = (Files::new(), csv(12, 1, 2000));
    let source = files.put("a.csv", &plain);
    let server = Server::private(18, &forgetful());
    let scene = scene(&server, &plain);
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
    for mode in
        [&["--mode", "merge", "--key", "id"][..], &["--mode", "insert-new", "--key", "id"], &["--atomic"]]
    {
        scene.database.sql("TRUNCATE t");
        let load = load(&scene, &source).args(mode.iter().copied());
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact("at first");
        server.crash_and_restart();
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0");
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{mode:?}"));
    }
}

#[test]
fn rows_that_are_lost_in_part_are_no_success() {
    let (files, plain) = (Files::new(), csv(13, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let server = Server::private(15, &forgetful());
    let scene = Scene::partitioned(&server, &[&plain]);
    scene.database.sql("ALTER TABLE t_rest SET UNLOGGED");
    shut_gate_behind(&scene.database, 4);
    let mut running = load(&scene, &source).spawn();
    assert!(scene.wait_for_chunks(4, || running.is_running()));
    scene.database.sql("CHECKPOINT");
    server.crash_and_restart();
    open_gate(&scene.database);
    let failed = running.wait(PATIENCE).expect_code(1);
    assert!(failed.stderr.contains("emptied the UNLOGGED partitions"), "{}", failed.stderr);
}

/// Nothing is noted there that a crash could take.
#[test]
fn without_a_ledger_a_lost_server_is_no_success() {
    let (files, plain) = (Files::new(), csv(14, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let server = Server::private(15, &forgetful());
    let scene = scene(&server, &plain);
    scene.slow_down("BEFORE", Duration::from_secs(1));
    let mut running = load(&scene, &source).args(["--ledger", "none"]).spawn();
    while running.is_running() && scene.database.value("SELECT count(*) > 0 FROM t") != "t" {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.crash_and_restart();
    let failed = running.wait(PATIENCE);
    assert_ne!(failed.code, Some(0), "{}", failed.stderr);
}

/// A table that was logged when the rows came has no marks.
#[test]
fn what_came_before_a_table_was_unlogged_is_not_taken_for_proved() {
    let (files, plain) = (Files::new(), csv(15, 1, 1000));
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    load(&scene, &source).run(PATIENCE).expect_code(0);
    scene.database.sql("ALTER TABLE t SET UNLOGGED");
    let told = load(&scene, &source).run(PATIENCE).expect_code(1);
    assert!(told.stderr.contains("without noting that it is UNLOGGED"), "{}", told.stderr);
    scene.database.sql("ALTER TABLE t SET LOGGED");
    let told = load(&scene, &source).run(PATIENCE);
    assert!(told.stderr.contains("has stored its rows"), "{}", told.stderr);
    assert!(!told.stderr.contains(EMPTIED));
}

/// ALTER TABLE ... SET LOGGED keeps the rows through a crash, which takes their marks. A table that a crash
/// has emptied, and into which others have brought rows since, is another case.
#[test]
fn rows_that_a_crash_has_left_are_not_loaded_twice() {
    let (files, plain) = (Files::new(), csv(16, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let server = Server::private(15, &forgetful());
    let scene = scene(&server, &plain);
    let load = load(&scene, &source);
    kill_behind(&scene, &load, 4);
    scene.database.sql("ALTER TABLE t SET LOGGED");
    scene.database.sql("CHECKPOINT");
    server.crash_and_restart();
    scene.database.sql("ALTER TABLE t SET UNLOGGED");
    let stored = scene.database.value("SELECT count(*) FROM t");
    assert_ne!(stored, "0");
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("written anew") && refused.contains("--force"), "{refused}");
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), stored);

    // Whoever takes them out needs no option.
    scene.database.sql("TRUNCATE t");
    kill_behind(&scene, &load, 8);
    scene.database.sql("CHECKPOINT");
    server.crash_and_restart();
    let other = "VALUES (1000000, 1, 1, 'of others')";
    scene.database.sql(&format!("INSERT INTO t {other}; INSERT INTO wanted {other}"));
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(EMPTIED), "{told}");
    scene.assert_exact("a crash, and rows of others");

    // The same behind the end of the job.
    scene.database.sql("ALTER TABLE t SET LOGGED");
    scene.database.sql("CHECKPOINT");
    server.crash_and_restart();
    scene.database.sql("ALTER TABLE t SET UNLOGGED");
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("written anew"), "{refused}");
    scene.assert_exact("refused");
}

/// What the job itself has emptied, and a crash has emptied behind it, is nothing that others have written
/// anew.
#[test]
fn what_the_load_itself_has_emptied_is_as_a_crash_leaves_it() {
    let (files, plain) = (Files::new(), csv(17, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let server = Server::private(15, &forgetful());
    let other = "VALUES (1000000, 1, 1, 'of others')";

    // Stopped between its chunks.
    let first = scene(&server, &plain);
    let truncate = load(&first, &source).args(["--mode", "truncate"]);
    kill_behind(&first, &truncate, 4);
    first.database.sql("CHECKPOINT");
    server.crash_and_restart();
    first.database.sql(&format!("INSERT INTO t {other}; INSERT INTO wanted {other}"));
    let told = truncate.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(EMPTIED), "{told}");
    first.assert_exact("emptied by the load, then by a crash");

    // Done.
    for mode in [&["--mode", "truncate"][..], &["--mode", "truncate", "--freeze"]] {
        let scene = scene(&server, &plain);
        let load = load(&scene, &source).args(mode);
        load.run(PATIENCE).expect_code(0);
        scene.database.sql("CHECKPOINT");
        server.crash_and_restart();
        scene.database.sql(&format!("INSERT INTO t {other}"));
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{mode:?}"));
    }
}

/// Of several files of one job some are loaded again behind a crash, by another job: the others are not there
/// for that.
#[test]
fn files_that_a_crash_has_taken_are_not_in_for_the_rows_of_others() {
    let (files, plain, more) = (Files::new(), csv(18, 1, 1000), csv(18, 1001, 500));
    let (first, second) = (files.put("a.csv", &plain), files.put("b.csv", &more));
    let server = Server::private(15, &forgetful());
    for mode in [&[][..], &["--atomic"]] {
        let scene = Scene::new(&server, &[&plain, &more]);
        scene.database.sql("ALTER TABLE t SET UNLOGGED");
        let both = || load(&scene, &first).arg(&second).args(mode);
        both().run(PATIENCE).expect_code(0);
        server.crash_and_restart();
        load(&scene, &first).run(PATIENCE).expect_code(0);
        let refused = both().run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("1 of 2 files is in public.t already"), "{refused}");
        both().args(["--known", "skip"]).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{mode:?}"));
        load(&scene, &second).run(PATIENCE).expect_code(1);
        scene.assert_exact("refused");
    }
}

/// What an unfinished job has stored is gone, and is not in the way of another one.
#[test]
fn what_a_crash_has_taken_of_an_unfinished_job_is_not_there_for_the_rows_of_others() {
    let (files, plain) = (Files::new(), csv(19, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let server = Server::private(15, &forgetful());
    let scene = scene(&server, &plain);
    kill_behind(&scene, &load(&scene, &source), 4);
    scene.database.sql("CHECKPOINT");
    server.crash_and_restart();
    let other = "VALUES (1000000, 1, 1, 'of others')";
    scene.database.sql(&format!("INSERT INTO t {other}; INSERT INTO wanted {other}"));
    load(&scene, &source).args(["--encode", "csv", "--job-id", "another"]).run(PATIENCE).expect_code(0);
    scene.assert_exact("another job");
}
