//! Ctrl-C: a clean stop within two seconds, whatever the load waits for, and a job that can be resumed.

use crate::gate::{move_gate_behind, open_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, END_SLEEPERS, Files, PATIENCE, Scene, csv, run_told};
use howdah_testkit::{Connection, Fault, Finished, HowdahCommand, Proxy, Running, Server};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Promised are two seconds; the rest is for a busy machine. Whatever is stopped would take minutes
/// otherwise, or says so by its exit code.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

fn prepared(major: u32) -> (Scene, Files, PathBuf) {
    let plain = csv(31, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(major), &[&plain]);
    // Long enough to be hit behind a few chunks, and short enough for a chunk under way to come in.
    scene.slow_down("BEFORE", Duration::from_millis(300));
    (scene, files, source)
}

fn interrupt(running: Running, what: &str) -> Finished {
    interrupt_told(running, what, "run the same command again")
}

fn interrupt_told(running: Running, what: &str, hint: &str) -> Finished {
    let began = Instant::now();
    running.interrupt();
    let finished = running.wait(PATIENCE).expect_code(130);
    let took = began.elapsed();
    let _ = writeln!(std::io::stderr(), "Ctrl-C {what}: stopped after {:.2} s", took.as_secs_f64());
    assert!(took < STOPS_WITHIN, "{what}: {took:?}");
    assert!(finished.stderr.contains("error: stopped by the user"), "{what}\n{}", finished.stderr);
    assert!(finished.stderr.contains(&format!("hint: {hint}")), "{what}\n{}", finished.stderr);
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

/// A terminal that closes sends SIGHUP from its shell and from the system, logind SIGTERM and SIGHUP.
#[test]
fn signals_that_come_together_stop_a_load_cleanly() {
    let (scene, _files, source) = prepared(18);
    let load = || scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    let signals: [[fn(&Running); 2]; 3] = [
        [Running::hang_up, Running::hang_up],
        [Running::terminate, Running::hang_up],
        [Running::interrupt, Running::terminate],
    ];
    for (no, together) in (1..).zip(signals) {
        let mut running = load().spawn();
        assert!(scene.wait_for_chunks(no * 4, || running.is_running()));
        for send in together {
            send(&running);
            std::thread::sleep(Duration::from_millis(3));
        }
        let told = running.wait(STOPS_WITHIN).expect_code(130).stderr;
        assert!(told.contains("error: stopped by the user"), "{no}: {told}");
        assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "interrupted");
    }
    load().run(PATIENCE).expect_code(0);
    scene.assert_exact("after signals that came together");
}

const HAS_ROWS: &str = "SELECT count(*) > 0 FROM t";

/// The same command would store once more what is there already.
#[test]
fn a_load_that_does_not_go_on_by_the_same_command_does_not_say_so() {
    let (scene, _files, source) = prepared(18);
    let load = || scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]);
    let without = load().args(["--ledger", "none"]).arg(&source).spawn();
    wait_until(&scene, HAS_ROWS, PATIENCE);
    let rows = "rows of this load are in the table, and without a ledger nobody knows which: remove them before you load again";
    interrupt_told(without, "without a ledger", rows);

    let bytes = csv(31, 1, 20_000);
    let named = ["--job-id", "night load", "-"];
    for (arguments, wanted, further) in [
        (
            &["-"][..],
            "nothing goes on with a load from a pipe that has no --job-id: remove the rows",
            "remove the rows",
        ),
        (&named, "send the same bytes through the same `howdah load` command again", "send the same bytes"),
    ] {
        scene.database.sql("TRUNCATE t");
        let running = load().args(arguments).stdin(bytes.clone()).spawn();
        wait_until(&scene, HAS_ROWS, PATIENCE);
        interrupt_told(running, "a pipe", wanted);
        let job = scene.database.value("SELECT job_id FROM howdah.job ORDER BY started_at DESC LIMIT 1");
        let status = scene.verb("status").arg(&job).run(PATIENCE).expect_code(0).stdout;
        assert!(status.contains(further) && !status.contains("howdah resume"), "{status}");
        let refused = scene.verb("resume").arg(&job).run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains("reads from a pipe") && refused.contains(further), "{refused}");
    }
    let job = load().args(named).stdin(bytes).run(PATIENCE).expect_code(0);
    assert!(job.stderr.contains("rows more were stored by another run"), "{}", job.stderr);
    scene.assert_exact("the same bytes");
}

/// A COMMIT that is under way comes in, and its rows are counted.
#[test]
fn a_load_that_is_stopped_in_a_commit_says_what_is_in_the_table() {
    for (major, jobs) in [(13, "1"), (18, "2")] {
        let (scene, files, _) = prepared(major);
        scene.database.sql(
            "CREATE TABLE c (id int); \
             CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END'; \
             CREATE CONSTRAINT TRIGGER rest AFTER INSERT ON c DEFERRABLE INITIALLY DEFERRED \
                 FOR EACH ROW WHEN (NEW.id % 20000 = 0) EXECUTE FUNCTION rest()",
        );
        let numbers: String = (1..=400_000).map(|id| format!("{id}\n")).collect();
        let source = files.put("numbers.csv", numbers.as_bytes());
        let load = scene.verb("load").args(["--format", "csv", "--table", "c", "--json", "--jobs", jobs]);
        let running = load.args(["--chunk-size", "64kB"]).arg(&source).spawn();
        wait_until(&scene, SLEEPS, PATIENCE);
        let stopped = interrupt(running, "in a COMMIT");
        let told: serde_json::Value = serde_json::from_str(&stopped.stdout).unwrap();
        wait_until(&scene, NOBODY_ELSE, STOPS_WITHIN);
        let stored = scene.database.value("SELECT count(*) FROM c");
        assert_ne!(stored, "0");
        assert_eq!(told["rows_stored"].to_string(), stored, "{told}");
        let in_ledger = "SELECT rows_stored, (SELECT sum(rows) FROM howdah.chunk) FROM howdah.job";
        assert_eq!(scene.database.rows(in_ledger), [[Some(stored.clone()), Some(stored)]]);
    }
}

#[test]
fn a_check_that_is_stopped_or_killed_is_run_again_and_not_resumed() {
    let (scene, files, _) = prepared(15);
    let fifo = files.path().join("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let check =
        || scene.verb("check").args(["--header", "--format", "csv", "--table", "t"]).arg(&fifo).spawn();
    let noted = "SELECT count(*) FROM howdah.job WHERE status = 'running'";
    for is_killed in [false, true] {
        let running = check();
        let mut pipe = std::fs::File::options().write(true).open(&fifo).unwrap();
        pipe.write_all(&csv(32, 1, 1000)).unwrap();
        wait_until(&scene, noted, PATIENCE);
        if is_killed {
            running.kill();
        } else {
            let told = interrupt_told(running, "a check", "run the same command again\n");
            assert!(!told.stderr.contains("resume"), "{}", told.stderr);
        }
    }
    let job = scene.database.value("SELECT job_id FROM howdah.job");
    let status = scene.verb("status").arg(&job).run(PATIENCE).expect_code(0).stdout;
    assert!(
        status.contains("run the same `howdah check` command again") && !status.contains("resume"),
        "{status}"
    );
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
    shut_gate_behind(&scene.database, 2);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    let holder = scene.database.connect();
    holder.sql("BEGIN; LOCK TABLE t");
    open_gate(&scene.database);
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass";
    wait_until(&scene, waits, PATIENCE);
    interrupt(running, "while it waits for a lock");
    drop(holder);
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
    let seen = proxy.connections();
    let starting = load().spawn();
    while proxy.connections() == seen {
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(starting, "while it cannot even connect");
    proxy.set(Fault::Pass);
    load().run(PATIENCE).expect_code(0);
    scene.assert_exact("after a stall");
}

const WAITS_FOR_REJECTS: &str =
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'howdah.reject'::regclass";

/// The same file with a bad record behind its header.
fn with_a_bad_record(plain: &[u8]) -> Vec<u8> {
    let header = plain.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    [&plain[..header], b"bad", &plain[header..]].concat()
}

/// A load, perhaps with a bad record, that stands still behind its second chunk, and the connection that
/// keeps others from reading what was rejected.
fn load_whose_rejects_are_held(
    scene: &Scene,
    (source, bad): (&Path, &Path),
    (has_rejects, options): (bool, &[&str]),
) -> (Running, Connection) {
    shut_gate_behind(&scene.database, 2);
    let load =
        scene.load().args(["--chunk-size", "64kB", "--jobs", "1", "--on-error", "skip", "--reject-file"]);
    let mut running = load.arg(bad).args(options.iter().copied()).arg(source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    // Chunks come in as they are ready, and the one with the bad record is in none of the first places for
    // certain.
    let mut chunks = 2;
    while has_rejects && scene.database.value("SELECT count(*) FROM howdah.reject") == "0" {
        chunks += 1;
        move_gate_behind(&scene.database, chunks);
        assert!(scene.wait_for_chunks(chunks, || running.is_running()));
    }
    let holder = scene.database.connect();
    holder.sql("BEGIN; LOCK TABLE howdah.reject");
    (running, holder)
}

#[test]
fn rejected_records_are_not_waited_for_behind_ctrl_c() {
    for is_done in [false, true] {
        let plain = csv(31, 1, 20_000);
        let files = Files::new();
        let text = with_a_bad_record(&plain);
        let (source, bad) = (files.put("a.csv", &text), files.path().join("bad.csv"));
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let (running, holder) = load_whose_rejects_are_held(&scene, (&source, &bad), (true, &[]));
        if is_done {
            open_gate(&scene.database);
            wait_until(&scene, WAITS_FOR_REJECTS, PATIENCE);
        }
        running.interrupt();
        // While what it would wait for is held: that it ends at all shows that it does not wait.
        let told = running.wait(PATIENCE).expect_code(130).stderr;
        let status = if is_done { "done" } else { "interrupted" };
        assert_eq!(scene.database.value("SELECT status FROM howdah.job"), status);
        let job = scene.database.value("SELECT job_id FROM howdah.job");
        assert!(
            told.contains("stopped by the user before the file of rejected records was written"),
            "{told}"
        );
        assert!(told.contains(&format!("`howdah status {job} ")), "{told}");
        assert!(!bad.exists());
        drop(holder);
        open_gate(&scene.database);
        if !is_done {
            let again = scene.load().args(["--chunk-size", "64kB", "--on-error", "skip", "--reject-file"]);
            again.arg(&bad).arg(&source).run(PATIENCE).expect_code(3);
        } else {
            let again = scene.load().args(["--on-error", "skip", "--reject-file"]).arg(&bad).arg(&source);
            let refused = again.run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains("this job finished at"), "{refused}");
            run_told(&refused, "howdah status", |command| {
                command.replace(" FILE", &format!(" '{}'", bad.display()))
            });
        }
        assert!(std::fs::read_to_string(&bad).unwrap().contains("\nbad"));
    }
}

#[test]
fn rejected_records_are_written_though_the_session_is_lost_that_reads_them() {
    for retry_for in ["10min", "0s"] {
        let plain = csv(31, 1, 20_000);
        let files = Files::new();
        let (source, bad) = (files.put("a.csv", &with_a_bad_record(&plain)), files.path().join("bad.csv"));
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let options = ["--retry-for", retry_for];
        let (running, holder) = load_whose_rejects_are_held(&scene, (&source, &bad), (true, &options));
        open_gate(&scene.database);
        wait_until(&scene, WAITS_FOR_REJECTS, PATIENCE);
        scene.database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'howdah.reject'::regclass",
        );
        if retry_for == "0s" {
            let told = running.wait(PATIENCE).expect_code(1).stderr;
            assert!(told.contains("the load is done, but not the file of its rejected records: "), "{told}");
            drop(holder);
            run_told(&told, "howdah status", |command| {
                command.replace(" FILE", &format!(" '{}'", bad.display()))
            });
        } else {
            drop(holder);
            running.wait(PATIENCE).expect_code(3);
        }
        assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "done");
        assert!(std::fs::read_to_string(&bad).unwrap().contains("\nbad"));
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "19999", "{retry_for}");
    }
}

#[test]
fn a_load_that_has_rejected_nothing_ends_well_though_ctrl_c_comes_behind_its_last_row() {
    let plain = csv(31, 1, 20_000);
    let files = Files::new();
    let (source, older) = (files.put("a.csv", &plain), files.put("bad.csv", b"of yesterday"));
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let (running, holder) = load_whose_rejects_are_held(&scene, (&source, &older), (false, &[]));
    open_gate(&scene.database);
    wait_until(&scene, WAITS_FOR_REJECTS, PATIENCE);
    running.interrupt();
    // It has heard of it while the file is looked after.
    std::thread::sleep(Duration::from_millis(300));
    drop(holder);
    running.wait(PATIENCE).expect_code(0);
    assert!(!older.exists());
    scene.assert_exact("stopped behind the last row");
}

#[test]
fn what_was_rejected_is_not_forgotten_where_ctrl_c_keeps_it_from_its_file() {
    let plain = csv(31, 1, 20_000);
    let files = Files::new();
    let (source, bad) = (files.put("a.csv", &with_a_bad_record(&plain)), files.path().join("bad.csv"));
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''closed''; END'; \
         CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    );
    let (running, holder) = load_whose_rejects_are_held(&scene, (&source, &bad), (true, &["--atomic"]));
    open_gate(&scene.database);
    wait_until(&scene, WAITS_FOR_REJECTS, PATIENCE);
    running.interrupt();
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("SQLSTATE P0001") && told.contains("wait in staging tables"), "{told}");
    assert!(told.contains("stopped by the user before the file of rejected records was written"), "{told}");
    assert!(!bad.exists());
    drop(holder);
    let job = scene.database.value("SELECT job_id FROM howdah.job");
    scene.verb("status").arg(&job).arg("--reject-file").arg(&bad).run(PATIENCE).expect_code(0);
    assert!(std::fs::read_to_string(&bad).unwrap().contains("\nbad"));
    scene.database.sql("DROP TRIGGER refuse ON t");
    scene.verb("resume").arg(&job).run(PATIENCE).expect_code(3);
}

/// Waits until the server says so.
fn wait_until(scene: &Scene, what: &str, within: Duration) {
    let began = Instant::now();
    assert!(scene.database.wait_for(what, 1, || began.elapsed() < within), "in vain: {what}");
}

const SLEEPS: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
    AND wait_event = 'PgSleep')";

const NO_JOB_LOCK: &str = "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

const NOBODY_ELSE: &str = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() \
    AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

/// The server would notice only at the end of the statement that its client is gone, and hold the rows until
/// then.
#[test]
fn a_load_that_is_stopped_while_its_rows_come_in_leaves_no_session_at_work() {
    for (major, options) in
        [(13, ["--mode", "merge", "--key", "id"].as_slice()), (18, ["--atomic"].as_slice())]
    {
        let (scene, _files, source) = prepared(major);
        scene
            .database
            .sql("DROP TRIGGER pause ON t; DROP FUNCTION pause(); ALTER TABLE t ADD PRIMARY KEY (id)");
        scene.slow_rows_down("BEFORE", Duration::from_secs(300));
        let running = scene.load().args(options).arg(&source).spawn();
        wait_until(&scene, SLEEPS, PATIENCE);
        interrupt(running, &format!("while rows come in with {options:?}"));
        wait_until(&scene, NOBODY_ELSE, STOPS_WITHIN);
        scene.database.sql("DROP TRIGGER pause ON t");
        scene.load().args(options).arg(&source).run(PATIENCE).expect_code(0);
        scene.assert_exact("after a stop");
    }
}

/// A chunk that nobody waits for any more is rolled back at once, whatever its triggers are at.
#[test]
fn a_load_that_is_stopped_within_a_long_trigger_leaves_no_session_at_work() {
    for (major, options) in
        [(13, ["--jobs", "2"].as_slice()), (18, ["--mode", "truncate", "--freeze"].as_slice())]
    {
        let (scene, _files, source) = prepared(major);
        scene.database.sql("DROP TRIGGER pause ON t; DROP FUNCTION pause()");
        scene.slow_rows_down("BEFORE", Duration::from_secs(300));
        let load = || scene.load().args(options).args(["--chunk-size", "64kB"]).arg(&source);
        let running = load().spawn();
        wait_until(&scene, SLEEPS, PATIENCE);
        interrupt(running, &format!("within a trigger, with {options:?}"));
        wait_until(&scene, NOBODY_ELSE, STOPS_WITHIN);
        scene.database.sql("DROP TRIGGER pause ON t");
        load().run(PATIENCE).expect_code(0);
        scene.assert_exact("after a stop");
    }
}

/// What `restore` was building is rolled back at once, and open in the journal.
#[test]
fn a_restore_that_is_stopped_leaves_no_session_at_work() {
    let slow = |seconds: u32| {
        format!(
            "CREATE OR REPLACE FUNCTION slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql SET search_path = pg_catalog AS \
                 'BEGIN IF $1 = 1 THEN PERFORM pg_sleep({seconds}); END IF; RETURN $1; END'"
        )
    };
    for (major, terminates) in [(13, false), (18, true)] {
        let (scene, _files, source) = prepared(major);
        scene.database.sql(&format!("{}; CREATE INDEX t_slow ON t (slow(id))", slow(300)));
        let load = scene.load().args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
        let mut running = load.arg(&source).spawn();
        assert!(scene.wait_for_chunks(4, || running.is_running()));
        // The row that the function sleeps at is not in one of the first chunks to come in for certain.
        wait_until(&scene, "SELECT count(*) FROM t WHERE id = 1", PATIENCE);
        running.kill();
        // The server may not have noticed yet: restore leaves alone what a run seems to be at.
        wait_until(&scene, NO_JOB_LOCK, PATIENCE);
        let restore = || scene.verb("restore");
        let running = restore().spawn();
        // What the killed load was at may sleep as well.
        let is_built = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
            AND wait_event = 'PgSleep' AND query LIKE '%CREATE INDEX t_slow%')";
        wait_until(&scene, is_built, PATIENCE);
        if terminates {
            running.terminate();
            let told = running.wait(PATIENCE).expect_code(130).stderr;
            let hint = "hint: run the same command again, to put back what is missing";
            assert!(told.contains("error: stopped by the user") && told.contains(hint), "{told}");
        } else {
            interrupt(running, "while restore builds an index");
        }
        // The index alone would sleep for longer.
        wait_until(&scene, NOBODY_ELSE, PATIENCE);
        let open = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL AND name = 't_slow'";
        assert_eq!(scene.database.value(open), "1");
        scene.database.sql(&slow(0));
        restore().run(PATIENCE).expect_code(0);
        assert_eq!(scene.database.value(open), "0");
        assert_eq!(scene.database.value("SELECT to_regclass('t_slow') IS NOT NULL"), "t");
    }
}

#[test]
fn a_column_is_not_widened_when_the_load_has_been_stopped() {
    let (scene, files, _) = prepared(15);
    scene.database.sql("CREATE TABLE narrow (id smallint)");
    let source = files.put("wide.csv", b"id\n70000\n");
    std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            let _ = scene
                .database
                .try_sql("BEGIN; LOCK TABLE narrow IN SHARE MODE; SELECT pg_sleep(600); COMMIT");
        });
        let locked =
            "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'narrow'::regclass AND mode = 'ShareLock')";
        wait_until(&scene, locked, PATIENCE);
        let load =
            scene.verb("load").args(["--table", "narrow", "--evolve", "widen", "--lock-timeout", "10min"]);
        let running = load.arg(&source).spawn();
        let waits =
            "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'narrow'::regclass AND NOT granted)";
        wait_until(&scene, waits, PATIENCE);
        interrupt(running, "while a column is to be widened");
        // Nobody but the one that holds the table: a session that the load has left would change it now.
        scene.database.sql(END_SLEEPERS);
        held.join().unwrap();
    });
    wait_until(&scene, NOBODY_ELSE, STOPS_WITHIN);
    let column = "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'narrow'::regclass AND attnum = 1";
    assert_eq!(scene.database.value(column), "smallint");
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
