//! Others see all rows of a load at once, or none.

use super::{assert_nothing_left, load};
use crate::indexes::{CHUNKS, wait_for};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv};
use howdah_testkit::{MAJORS, Server};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ROWS: u64 = 20_000;

#[test]
fn readers_see_all_rows_or_none_and_are_never_kept_waiting() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(31, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE INDEX ON t (note); INSERT INTO t VALUES (0, 0, 0, 'there')",
        );
        let over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = Vec::new();
                while !over.load(Relaxed) {
                    let count = database.value("SET lock_timeout = '1s'; SELECT count(*) FROM t");
                    if seen.last() != Some(&count) {
                        seen.push(count);
                    }
                }
                seen
            });
            let command =
                load(&database, &[&source]).args(["--atomic", "--chunk-size", "64kB", "--jobs", "4"]);
            let finished = command.run(PATIENCE);
            over.store(true, Relaxed);
            finished.expect_code(0);
            reader.join().unwrap()
        });
        let (none, all) = ("1".to_owned(), (ROWS + 1).to_string());
        assert!(seen == [none.clone(), all.clone()] || seen == [none], "PostgreSQL {major}: {seen:?}");
        assert_eq!(database.value("SELECT count(*) FROM t"), all);
        let ended = "SELECT status || ' ' || rows_stored FROM howdah.job";
        assert_eq!(database.value(ended), format!("done {ROWS}"));
        assert_nothing_left(&database, "atomic");
    }
}

#[test]
fn a_bad_record_in_the_last_chunk_leaves_the_table_as_it_was() {
    let files = Files::new();
    let mut bytes = csv(32, 1, ROWS);
    bytes.extend_from_slice(b"20001,not a number,1,x\n");
    let source = files.put("a.csv", &bytes);
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id bigint, part integer, amount numeric, note text)");
    let failed =
        load(&database, &[&source]).args(["--atomic", "--chunk-size", "64kB"]).run(PATIENCE).expect_code(1);
    assert!(failed.stderr.contains(", record 20001, byte "), "{}", failed.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    assert_nothing_left(&database, "bad record");
}

#[test]
fn an_interrupted_load_goes_on_where_it_stopped() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(33, 1, ROWS));
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id bigint, part integer, amount numeric, note text); \
         CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END'; \
         CREATE TRIGGER nap BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nap()",
    );
    let command = load(&database, &[&source]).args(["--atomic", "--chunk-size", "64kB"]);
    let mut running = command.spawn();
    let naps =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    assert!(wait_for(&database, &mut running, naps, 1), "{}", running.stderr_so_far());
    running.interrupt();
    running.wait(PATIENCE).expect_code(130);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    database.sql(END_SESSIONS);
    database.sql("DROP TRIGGER nap ON t");
    let resumed = command.run(PATIENCE).expect_code(0);
    assert!(
        resumed.stderr.contains("20,000 rows more were stored by another run of this job"),
        "{}",
        resumed.stderr
    );
    assert_eq!(database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t"), "20000 20000");
    assert_nothing_left(&database, "resumed");
}

/// Found by the night shift: the column would have been left empty.
#[test]
fn a_column_that_is_renamed_while_rows_wait_ends_the_load_and_loses_nothing() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(34, 1, ROWS));
    for options in [&["--atomic"][..], &["--mode", "merge", "--key", "id"]] {
        let database = Server::shared(15).database();
        database.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END'",
        );
        // Makes the ledger, whose chunks then take their time.
        let first = files.put("first.csv", b"id,part,amount,note\n");
        load(&database, &[&first]).run(PATIENCE).expect_code(0);
        database.sql("CREATE TRIGGER nap BEFORE INSERT ON howdah.chunk FOR EACH ROW EXECUTE FUNCTION nap()");
        let command = load(&database, &[&source]).args(["--chunk-size", "64kB", "--jobs", "1"]).args(options);
        let mut running = command.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{options:?}: {}", running.stderr_so_far());
        database.sql("ALTER TABLE t RENAME COLUMN note TO remark");
        let failed = running.wait(PATIENCE).expect_code(1);
        assert!(
            failed.stderr.contains("column note of public.t is not there any more"),
            "{options:?}: {}",
            failed.stderr
        );
        assert_eq!(database.value("SELECT count(*) FROM t"), "0", "{options:?}");
        let again = command.run(PATIENCE).expect_code(1).stderr;
        let is_told =
            again.contains("public.t has no note any more") && again.contains("give it its name back");
        assert!(is_told, "{options:?}: {again}");
        database.sql("ALTER TABLE t RENAME COLUMN remark TO note");
        command.run(PATIENCE).expect_code(0);
        // Every twentieth note is NULL.
        let rows = "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || count(note) FROM t";
        assert_eq!(database.value(rows), "20000 20000 19000", "{options:?}");
        assert_nothing_left(&database, "renamed");
    }
}

/// Rows that wait in a staging table are in no table yet.
#[test]
fn rows_that_only_wait_are_not_called_stored() {
    let files = Files::new();
    let mut bytes = csv(48, 1, 5000);
    bytes.extend_from_slice(b"1,2,3,the first id once more\n");
    let source = files.put("a.csv", &bytes);
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text)");
    for options in [["--atomic"].as_slice(), &["--mode", "replace"], &["--mode", "merge", "--key", "id"]] {
        let failed = load(&database, &[&source]).args(options).arg("--json").run(PATIENCE).expect_code(1);
        let told: Value = serde_json::from_str(&failed.stdout).unwrap();
        let numbers =
            ["rows_read", "rows_stored", "rows_stored_before", "rows_waiting"].map(|key| told[key].as_u64());
        assert_eq!(numbers, [Some(5001), Some(0), Some(0), Some(5001)], "{options:?}");
        assert_eq!(told["tables"][0]["rows_stored"], 0, "{options:?}");
        assert_eq!(told["files"][0]["done"], false, "{options:?}");
        assert_eq!(
            database.value("SELECT rows_stored FROM howdah.job ORDER BY started_at DESC LIMIT 1"),
            "0"
        );
    }
}
