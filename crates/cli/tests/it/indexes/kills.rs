//! A load that is killed at any step leaves a journal from which its indexes come back.

use super::{COMPARED_BY_LIBC, PLAIN_SCHEMA, load, open_entries, restore, schema};
use crate::crash::forgetful;
use crate::gate::{let_other_jobs_pass, move_gate_behind, open_gate, remove_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Running, Server, ServerOptions, side_by_side};
use std::path::PathBuf;
use std::time::Duration;

const ROWS: u64 = 20_000;
const SCHEMA: &str = "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parent";

fn prepared(major: u32) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(16, 1, ROWS));
    let database = Server::shared(major).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; {COMPARED_BY_LIBC}; CREATE TABLE parent (part integer PRIMARY KEY); \
         INSERT INTO parent SELECT generate_series(0, 255); {SCHEMA}"
    ));
    (database, files, source)
}

fn count(database: &Database, sql: &str) -> u64 {
    database.try_rows(sql).ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
}

/// Waits until the query gives so much, or the load is over.
pub(crate) fn wait_for(database: &Database, running: &mut Running, sql: &str, least: u64) -> bool {
    database.wait_for(sql, least, || running.is_running())
}

const ENTRIES: &str = "SELECT count(*) FROM howdah.undo";
const UNDONE: &str = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NOT NULL";
pub(crate) const CHUNKS: &str = "SELECT count(*) FROM howdah.chunk";

/// Ends a load when the query gives so much; then either it is run again or restored, and all is as it was.
fn kill_at(scene: (Database, Files, PathBuf), sql: &str, least: u64, again: bool) -> bool {
    let (database, _files, source) = scene;
    let major = database.value("SHOW server_version");
    let what = format!("PostgreSQL {major}: {sql} = {least}, again: {again}");
    let before = schema(&database);
    let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    let hit = wait_for(&database, &mut running, sql, least);
    running.kill();
    if again {
        let finished = load.run(PATIENCE);
        let done = finished.code == Some(0) || finished.stderr.contains("this job finished");
        assert!(done, "{what}\n{}", finished.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{what}");
        assert_eq!(database.value("SELECT status FROM howdah.job"), "done", "{what}");
    } else {
        let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(open_entries(&database), 0, "{what}\n{told}");
        assert_eq!(schema(&database), before, "{what}\n{told}");
        load.run(PATIENCE);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{what}");
    }
    assert_eq!(open_entries(&database), 0, "{what}");
    assert_eq!(schema(&database), before, "{what}");
    hit
}

/// As after a lost connection, when a partitioned index has made what a partition of it lacked, and a later
/// load has dropped that once more.
#[test]
fn an_index_that_stands_in_two_entries_comes_back_once() {
    for major in [13, 18] {
        let files = Files::new();
        let source = files.put("a.csv", &csv(16, 1, ROWS));
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint, part integer, amount numeric, note text); CREATE INDEX t_note ON t (note)",
        );
        let before = schema(&database);
        let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB"]);
        shut_gate_behind(&database, 1);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
        running.kill();
        remove_gate(&database);
        let columns = "job_id, kind, schema_name, table_name, table_oid, name, definition, statements, compared_by_libc, ledger_oid";
        database.sql(&format!(
            "INSERT INTO howdah.undo ({columns}) SELECT {columns} FROM howdah.undo WHERE kind = 'index' AND undone_at IS NULL"
        ));
        let other = database.connect();
        other.sql("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE");
        let mut restoring = restore(&database).spawn();
        let both_wait = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                         WHERE NOT l.granted AND a.datname = current_database()";
        assert!(wait_for(&database, &mut restoring, both_wait, 2), "{}", restoring.stderr_so_far());
        other.sql("COMMIT");
        let told = restoring.wait(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("cannot be put back"), "PostgreSQL {major}\n{told}");
        assert_eq!(open_entries(&database), 0, "PostgreSQL {major}\n{told}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
    }
}

/// Kills a load at each of these moments on every server, and counts the hits. What follows alternates: where
/// one server sees the load run again, another sees it restored.
fn hits(prepared: impl Fn(u32) -> (Database, Files, PathBuf) + Sync, moments: &[(&str, u64)]) -> usize {
    let campaign = |major: u32| {
        let strikes = moments.iter().enumerate().filter(|(no, (sql, least))| {
            kill_at(prepared(major), sql, *least, (no + major as usize).is_multiple_of(2))
        });
        strikes.count()
    };
    std::thread::scope(|scope| {
        let campaigns = MAJORS.map(|major| scope.spawn(move || campaign(major)));
        campaigns.into_iter().map(|campaign| campaign.join().unwrap()).sum()
    })
}

#[test]
fn no_kill_loses_an_index_a_key_or_a_foreign_key() {
    // One after the other comes back: three indexes, the table's workers, a constraint, a foreign key, its
    // validation.
    let back = (1..=7).map(|undone| (UNDONE, undone));
    let moments: Vec<(&str, u64)> = [(ENTRIES, 1), (CHUNKS, 6)].into_iter().chain(back).collect();
    let hits = hits(prepared, &moments);
    assert!(hits >= 14, "{hits} of 27 kills hit a load that was still at work");
}

/// Partitions instead: six indexes, three constraints of partitions, one and two indexes of parents, and nine
/// attachments.
fn partitioned(server: &Server) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(16, 1, ROWS));
    let database = server.database();
    database.sql(
        "CREATE TABLE t (id bigint, part integer, amount numeric, note text, PRIMARY KEY (part, id)) \
             PARTITION BY RANGE (part); \
         CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100); \
         CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (256) PARTITION BY HASH (id); \
         CREATE TABLE high0 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
         CREATE TABLE high1 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
         CREATE INDEX t_note ON t (note)",
    );
    (database, files, source)
}

#[test]
fn no_kill_loses_an_index_of_a_partition() {
    let back = (1..=20).step_by(2).map(|undone| (UNDONE, undone));
    let moments: Vec<(&str, u64)> = [(ENTRIES, 1), (CHUNKS, 6)].into_iter().chain(back).collect();
    let hits = hits(|major| partitioned(Server::shared(major)), &moments);
    assert!(hits >= 18, "{hits} of 36 kills hit a load that was still at work");
}

/// A trigger after which COPY into `t` takes its time.
pub(crate) fn pause(seconds: f64) -> String {
    format!(
        "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END'; \
         CREATE TRIGGER pause BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION pause()"
    )
}

#[test]
fn a_load_goes_on_with_its_indexes_dropped_and_restore_leaves_it_alone() {
    let (database, _files, source) = prepared(15);
    shut_gate_behind(&database, 2);
    let before = schema(&database);
    let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    let refused = restore(&database).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("is at work: it puts back what it has dropped when it ends"), "{refused}");
    assert!(open_entries(&database) > 0);
    running.kill();
    move_gate_behind(&database, 6);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 6));
    assert!(open_entries(&database) > 0, "it did not put them back before it went on");
    open_gate(&database);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("t_note, t_part, t_pkey: put back when this one ends"), "{told}");
    assert_eq!(schema(&database), before);
}

#[test]
fn indexes_that_are_to_be_kept_come_back_before_rows() {
    let (database, files, source) = prepared(18);
    shut_gate_behind(&database, 2);
    let before = schema(&database);
    let options = ["--chunk-size", "64kB", "--jobs", "2"];
    let mut running = load(&database, &source).args(["--indexes", "rebuild"]).args(options).spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    running.kill();
    assert!(open_entries(&database) > 0);
    let_other_jobs_pass(&database);
    let other = files.put("b.csv", &csv(17, ROWS + 1, 10));
    let plan = howdah("plan").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
    let plan = plan.args(["--header", "--indexes", "keep"]).arg(&other).run(PATIENCE).expect_code(0).stdout;
    assert!(plan.contains("t_note, t_part, t_pkey of public.t: put back before the first row"), "{plan}");
    // A row that meets no key, where one was to be kept.
    database.sql(
        "CREATE FUNCTION whole() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN \
             IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = ''t_pkey'') THEN RAISE EXCEPTION ''no key''; END IF; \
             RETURN NEW; END'; \
         CREATE TRIGGER whole BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION whole()",
    );
    let done = load(&database, &other).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0).stderr;
    assert!(done.contains("is put back before rows come"), "{done}");
    assert_eq!(open_entries(&database), 0);
    database.sql("DROP TRIGGER whole ON t; DROP FUNCTION whole()");
    open_gate(&database);
    assert_eq!(schema(&database), before);
}

#[test]
fn indexes_that_cannot_come_back_yet_keep_no_rows_out() {
    let (database, files, source) = prepared(18);
    shut_gate_behind(&database, 2);
    let options = ["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"];
    let mut running = load(&database, &source).args(options).spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    running.kill();
    let_other_jobs_pass(&database);
    open_gate(&database);
    let other = database.connect();
    other.sql("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE");
    let source = files.put("b.csv", &csv(17, ROWS + 1, 10));
    let done = load(&database, &source)
        .args(["--indexes", "keep", "--lock-timeout", "2s"])
        .run(PATIENCE)
        .expect_code(0)
        .stderr;
    assert!(done.contains("rows come without it"), "{done}");
    other.sql("COMMIT");
    assert!(open_entries(&database) > 0, "{done}");
}

#[test]
fn ctrl_c_puts_indexes_back_and_says_so() {
    let (database, _files, source) = prepared(18);
    database.sql(&pause(0.2));
    let before = schema(&database);
    let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    running.interrupt();
    let told = running.wait(PATIENCE).expect_code(130).stderr;
    assert!(told.contains("t_note, t_part, t_pkey; Ctrl-C again leaves that to `howdah restore"), "{told}");
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
    assert_eq!(database.value("SELECT status FROM howdah.job"), "interrupted");
}

#[test]
fn a_second_ctrl_c_leaves_the_rest_to_restore() {
    let (database, _files, source) = prepared(15);
    // An index that is not built while somebody holds this lock: an index sees no rows but its table's, and
    // it sees locks.
    database.sql(
        "CREATE FUNCTION slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS \
             'BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(4713) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN $1; END'; \
         CREATE INDEX t_slow ON t (slow(id)) WHERE id < 10",
    );
    let before = schema(&database);
    let holder = database.connect();
    holder.sql("SELECT pg_advisory_lock(4713)");
    let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 18));
    wait_for_words(&mut running, "is built");
    running.interrupt();
    wait_for_words(&mut running, "indexes are still being put back");
    // Signals that come together are one wish.
    std::thread::sleep(Duration::from_secs(1));
    running.interrupt();
    let told = running.wait(PATIENCE).expect_code(130).stderr;
    assert!(open_entries(&database) > 0, "{told}");
    drop(holder);
    restore(&database).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    assert_eq!(schema(&database), before);
}

#[test]
fn the_same_job_three_times_at_once_puts_everything_back_once() {
    side_by_side(MAJORS, |major| {
        let (database, _files, source) = prepared(major);
        database.sql(&pause(0.05));
        let before = schema(&database);
        let load =
            load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
        let mut runs: Vec<Running> = (0..3).map(|_| load.spawn()).collect();
        assert!(wait_for(&database, &mut runs[0], CHUNKS, 4) || count(&database, CHUNKS) > 4);
        runs.swap_remove(0).kill();
        for run in runs {
            let finished = run.wait(PATIENCE);
            let fine = finished.code == Some(0) || finished.stderr.contains("this job finished");
            assert!(fine, "PostgreSQL {major}\n{}", finished.stderr);
        }
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(open_entries(&database), 0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
        assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
    });
}

#[test]
fn two_jobs_load_the_same_table_and_its_indexes_come_back_once() {
    let (database, files, source) = prepared(15);
    shut_gate_behind(&database, 1);
    let before = schema(&database);
    let other = files.put("b.csv", &csv(17, ROWS + 1, ROWS / 2));
    let job = |source: &PathBuf| {
        load(&database, source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"])
    };
    let mut first = job(&source).spawn();
    assert!(wait_for(&database, &mut first, CHUNKS, 1));
    let_other_jobs_pass(&database);
    let mut second = job(&other).spawn();
    wait_for_words(&mut second, "t_note, t_part, t_pkey of public.t and not put that back yet");
    open_gate(&database);
    first.wait(PATIENCE).expect_code(0);
    second.wait(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
    assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), (ROWS + ROWS / 2).to_string());
}

#[test]
fn a_server_that_crashes_loses_no_index() {
    side_by_side([(13, "1s"), (18, "10min")], |(major, retry_for)| {
        let server = Server::private(major, &ServerOptions::default());
        let database = server.database();
        let files = Files::new();
        let source = files.put("a.csv", &csv(20, 1, ROWS));
        database.sql(PLAIN_SCHEMA);
        database.sql(&pause(0.05));
        let before = schema(&database);
        let load =
            load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
        let load = load.args(["--retry-for", retry_for]);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 4));
        server.crash_and_restart();
        running.wait(PATIENCE);
        restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(open_entries(&database), 0, "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        load.run(PATIENCE);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    });
}

/// What comes back is committed without waiting for the disk: a crash takes some of it, and the load looks
/// again.
#[test]
fn what_a_crash_takes_of_what_is_back_is_put_back_again() {
    /// The server may write its WAL for reasons of its own just before a crash, and the load may be over.
    const TRIES_MAX: u32 = 8;
    let crash = |major: u32| {
        let server = Server::private(major, &forgetful());
        let (database, _files, source) = partitioned(&server);
        let before = schema(&database);
        let load = load(&database, &source).args(["--indexes", "rebuild", "--retry-for", "10min"]);
        let mut running = load.spawn();
        let back = || database.value(UNDONE).parse::<u64>().unwrap();
        let hit = wait_for(&database, &mut running, UNDONE, 8);
        let back_before = if hit { back() } else { 0 };
        server.crash_and_restart();
        let back_after = back();
        let finished = running.wait(PATIENCE);
        assert_eq!(schema(&database), before, "PostgreSQL {major}: {}", finished.stderr);
        assert_eq!(open_entries(&database), 0, "PostgreSQL {major}: {}", finished.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        back_after < back_before
    };
    side_by_side(MAJORS, |major| {
        let lost = (0..TRIES_MAX).any(|_| crash(major));
        assert!(lost, "PostgreSQL {major}: {TRIES_MAX} crashes took nothing back, so nothing is proved");
    });
}

#[test]
fn two_that_restore_at_once_do_not_get_in_each_others_way() {
    let (database, _files, source) = prepared(18);
    let before = schema(&database);
    let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 3));
    running.kill();
    let both = [restore(&database).spawn(), restore(&database).spawn()];
    for finished in both.map(|running| running.wait(PATIENCE)) {
        let fine = finished.code == Some(0) || finished.stderr.contains("is being put back");
        assert!(fine, "{}", finished.stderr);
    }
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
}
