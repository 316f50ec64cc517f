//! Others at work on the same table: nobody waits for a check, and a check waits for nobody who writes.

use super::{assert_forgotten, check, report, state, told};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv, howdah};
use howdah_testkit::{MAJORS, Server, ServerOptions, side_by_side};
use std::collections::BTreeSet;
use std::time::Duration;

/// A constraint of it holds a check up while somebody holds this lock: no snapshot hides that.
const HELD: &str = "pg_try_advisory_xact_lock_shared(4711) IS FALSE";

/// A table whose constraint holds a check up for as long as there is a row in `gate`. No statistics change
/// but by what is tested.
const GATED: &str = "CREATE TABLE gate (a int); INSERT INTO gate VALUES (1); \
    CREATE FUNCTION waits(bigint) RETURNS bool LANGUAGE plpgsql AS \
    'BEGIN WHILE $1 = 7 AND EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN true; END'; \
    CREATE TABLE boss (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off); INSERT INTO boss SELECT generate_series(1, 5010); \
    CREATE TABLE t (id bigint PRIMARY KEY REFERENCES boss, part integer, amount numeric, note text); \
    INSERT INTO t SELECT generate_series(5001, 5010); \
    ALTER TABLE t ADD CHECK (waits(id))";

const ASKS: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' \
    AND datname = current_database() AND backend_type = 'client backend')";
const LOCKS: &str = "SELECT DISTINCT l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
    WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid <> pg_backend_pid() \
      AND c.relnamespace = 'public'::regnamespace";

#[test]
fn nobody_who_writes_waits_for_a_check() {
    side_by_side(MAJORS, |major| {
        let (database, files) = (Server::shared(major).database(), Files::new());
        database.sql(&GATED.replace("EXISTS (SELECT FROM gate)", HELD));
        let source = files.put("a.csv", &csv(3, 1, 3000));
        let mut modes = BTreeSet::new();
        std::thread::scope(|scope| {
            let gate = scope.spawn(|| {
                database.sql(
                    "SELECT pg_advisory_lock(4711); DO $$ BEGIN WHILE EXISTS (SELECT FROM gate) LOOP \
                     PERFORM pg_sleep(0.02); END LOOP; END $$",
                );
            });
            // It has begun to hold it.
            while database.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711")
                == "0"
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let mut running = check(&database, &[&source]).spawn();
            let asks = "SELECT count(*) > 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
            assert!(database.wait_for(asks, 1, || running.is_running()), "{}", running.stderr_so_far());
            modes.extend(database.rows(LOCKS).into_iter().map(|row| row[0].clone().unwrap()));
            // The key of a record of the file, too.
            database.sql(
                "SET lock_timeout = '30s'; INSERT INTO t VALUES (1, 1, 1, 'a'); UPDATE t SET note = 'b' WHERE id = 1; \
                 BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE; DELETE FROM t WHERE id = 1; COMMIT; \
                 BEGIN; LOCK TABLE t IN EXCLUSIVE MODE; COMMIT",
            );
            database.sql("DELETE FROM gate");
            gate.join().unwrap();
            let finished = running.wait(PATIENCE).expect_code(0);
            assert_eq!(told(&finished)["rows_good"], 3000, "PostgreSQL {major}: {}", finished.stdout);
        });
        let modes: Vec<&str> =
            modes.iter().map(String::as_str).filter(|mode| *mode != "RowShareLock").collect();
        assert_eq!(modes, ["AccessShareLock"], "PostgreSQL {major}");
        assert_forgotten(&database);
    });
}

#[test]
fn a_check_waits_for_nobody_who_writes() {
    let (database, files) = (Server::shared(15).database(), Files::new());
    database.sql("CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text)");
    let source = files.put("a.csv", &csv(4, 1, 2000));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _ = database.try_sql("BEGIN; INSERT INTO t SELECT generate_series(1, 100); SELECT pg_sleep(600) FROM pg_class LIMIT 1; ROLLBACK");
        });
        while database.value(
            "SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation = 't'::regclass",
        ) == "0"
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let told = report(&check(&database, &[&source]), 0);
        // What the other has not committed is not there.
        assert_eq!(told["rows_good"], 2000);
        assert!(!writer.is_finished());
        let _ = database.try_sql(END_SESSIONS);
        let _ = writer.join();
    });
}

#[test]
fn no_row_of_a_check_is_published_but_those_of_the_ledger_which_it_says() {
    side_by_side(MAJORS, |major| {
        let (database, files) = (Server::shared(major).database(), Files::new());
        database.sql(&GATED.replace("EXISTS (SELECT FROM gate)", HELD));
        database.sql("CREATE PUBLICATION everything FOR ALL TABLES");
        let source = files.put("a.csv", &csv(6, 1, 100));
        let told = check(&database, &[&source]).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("warning: the publication everything is of all tables"), "{told}");
        let holder = database.connect();
        holder.sql("SELECT pg_advisory_lock(4711)");
        let mut running = check(&database, &[&source]).spawn();
        assert!(database.wait_for(ASKS, 1, || running.is_running()), "{}", running.stderr_so_far());
        let published = "SELECT count(*) FROM pg_publication_tables WHERE tablename LIKE 'check%'";
        let made = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'check%'";
        assert_eq!((database.value(published), database.value(made)), ("0".to_owned(), "1".to_owned()));
        drop(holder);
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("publication"), "{told}");
    });
}

/// The receipts of its chunks are there again, the rows are not.
#[test]
fn a_check_whose_server_crashes_does_not_call_rows_good_that_are_gone() {
    let server = Server::private(15, &ServerOptions::default());
    let (database, files) = (server.database(), Files::new());
    database.sql(&GATED.replace("EXISTS (SELECT FROM gate)", HELD));
    let source = files.put("a.csv", &csv(7, 1, 3000));
    // Its session ends with the server.
    let holder = database.connect();
    holder.sql("SELECT pg_advisory_lock(4711)");
    let mut running = check(&database, &[&source]).spawn();
    assert!(database.wait_for(ASKS, 1, || running.is_running()), "{}", running.stderr_so_far());
    server.crash_and_restart();
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("expected 3000 rows for public.t, got 0"), "{failed}");
    assert_eq!(report(&check(&database, &[&source]), 0)["rows_good"], 3000);
    assert_forgotten(&database);
}

const NOBODY_ELSE: &str = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() \
    AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

/// Where a check is when it is killed.
const MOMENTS: [&str; 5] = [
    "SELECT EXISTS (SELECT FROM howdah.job)",
    "SELECT EXISTS (SELECT FROM howdah.undo)",
    "SELECT count(*) > 2 FROM howdah.chunk",
    "SELECT count(*) > 6 FROM howdah.chunk",
    ASKS,
];

#[test]
fn a_check_that_is_killed_leaves_nothing_behind_the_next_command() {
    let mut hits = 0;
    for (no, (moment, next)) in MOMENTS
        .iter()
        .flat_map(|moment| [(moment, "restore"), (moment, "check"), (moment, "load")])
        .enumerate()
    {
        let major = MAJORS[no % 3];
        let (database, files) = (Server::shared(major).database(), Files::new());
        database.sql(&GATED.replace("EXISTS (SELECT FROM gate)", "pg_sleep(2) IS NULL"));
        let before = state(&database);
        let source = files.put("a.csv", &csv(5, 1, 5000));
        let mut running = check(&database, &[&source]).spawn();
        hits += usize::from(database.wait_for(moment, 1, || running.is_running()));
        running.kill();
        let what = format!("PostgreSQL {major}, {moment}, then {next}");
        database.sql(END_SESSIONS);
        assert!(database.wait_for(NOBODY_ELSE, 1, || true), "{what}");
        assert_eq!(state(&database), before, "{what}");
        let to = database.conninfo();
        match next {
            // Killed before it made a ledger, it has left nothing.
            "restore" => {
                let restored = howdah("restore").args(["--to", &to]).run(PATIENCE);
                assert!(
                    restored.code == Some(0) || restored.stderr.contains("there is no ledger"),
                    "{restored:?}"
                );
            }
            "check" => drop(check(&database, &[&source]).run(PATIENCE)),
            _ => {
                // The same files are not begun, let alone done.
                let load = howdah("load").args(["--to", &to, "--table", "t"]).arg(&source);
                load.run(PATIENCE).expect_code(0);
                assert_eq!(database.value("SELECT count(*) FROM t"), "5010", "{what}");
                let jobs = "SELECT string_agg(status, ' ') FROM howdah.job";
                assert_eq!(database.value(jobs), "done", "{what}");
                continue;
            }
        }
        if database.value("SELECT to_regclass('howdah.tuned') IS NOT NULL") == "t" {
            assert_forgotten(&database);
        }
        assert_eq!(state(&database), before, "{what}");
    }
    assert!(hits >= 10, "{hits} of 15 kills hit a check that was still at work");
}

#[test]
fn a_check_that_is_interrupted_takes_everything_away() {
    let (database, files) = (Server::shared(18).database(), Files::new());
    database.sql(&GATED.replace("EXISTS (SELECT FROM gate)", "pg_sleep(600) IS NULL"));
    let source = files.put("a.csv", &csv(5, 1, 5000));
    let mut running = check(&database, &[&source]).spawn();
    assert!(database.wait_for(ASKS, 1, || running.is_running()));
    running.interrupt();
    let finished = running.wait(PATIENCE).expect_code(130);
    assert_eq!(told(&finished)["status"], "interrupted");
    // On a busy machine there may be no time for it; then it is said.
    if finished.stderr.contains("howdah restore") {
        howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
    }
    assert_forgotten(&database);
}

/// Nothing would follow them; those of a job file are meant for the load.
#[test]
fn options_about_rows_that_are_stored_are_refused() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int)");
    let offered = howdah("check").args(["--help"]).run(PATIENCE).expect_code(0).stdout;
    let options: [&[&str]; 12] = [
        &["--verify", "count"],
        &["--after", "vacuum"],
        &["--job-id", "x"],
        &["--known", "skip"],
        &["--if-done", "ok"],
        &["--sequences", "keep"],
        &["--tune", "table"],
        &["--freeze", "--mode", "truncate"],
        &["--force"],
        &["--indexes", "rebuild"],
        &["--triggers", "disable"],
        &["--on-error", "stop"],
    ];
    for typed in options {
        let refused = check(&database, &[&source]).args(typed).run(PATIENCE).expect_code(2).stderr;
        let name = if matches!(typed[0], "--indexes" | "--triggers" | "--on-error") {
            typed.join(" ")
        } else {
            typed[0].to_owned()
        };
        let wanted = format!("error: {name} is about rows that are stored");
        assert!(refused.contains(&wanted) && refused.contains("hint: leave it out"), "{refused}");
        let is_offered = offered.lines().any(|line| line.split_whitespace().next() == Some(typed[0]));
        assert!(!is_offered, "{typed:?}\n{offered}");
    }
    let written = "verify = \"count\"\nafter = [\"vacuum\"]\njob-id = \"x\"\ntune = \"table\"\nknown = \"skip\"\n\
                   if-done = \"ok\"\nsequences = \"keep\"\n";
    let job = files.put("job.toml", written.as_bytes());
    for typed in [&[][..], &["--mode", "truncate"]] {
        check(&database, &[&source]).arg("--job").arg(&job).args(typed).run(PATIENCE).expect_code(0);
    }
}
