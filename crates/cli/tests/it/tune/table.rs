//! Options of tables.

use super::{GATE, HELD, held, load, plan};
use crate::gate::{open_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, pause, restore, schema, wait_for};
use crate::scene::{Files, PATIENCE, csv, howdah, while_waiting};
use howdah_testkit::{Database, Fault, MAJORS, Proxy, Server, ServerOptions, side_by_side};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

const ROWS: u64 = 5000;
const PLAIN: &str = "CREATE TABLE t (id bigint, part integer, amount numeric, note text)";
/// Options in an order that SET and RESET alone would change.
const WITH_OPTIONS: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text) \
        WITH (autovacuum_enabled = on, fillfactor = 70, toast.autovacuum_enabled = yes, \
              toast.autovacuum_vacuum_threshold = 77)";
const PARTITIONED: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY RANGE (part); \
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100) WITH (fillfactor = 90); \
    CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (256) PARTITION BY HASH (id); \
    CREATE TABLE high0 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
    CREATE TABLE high1 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 1)";
/// Tables of `t` that autovacuum leaves alone, with their TOAST tables.
const KEPT_FROM: &str = "\
    SELECT count(*) FROM pg_class WHERE 'autovacuum_enabled=false' = ANY (reloptions)";

/// The statistics come a little later, before PostgreSQL 15 by another process.
fn vacuumed_and_analyzed(database: &Database) -> bool {
    let counts = "SELECT vacuum_count = 1 AND analyze_count = 1 FROM pg_stat_user_tables WHERE relname = 't'";
    let by = Instant::now() + PATIENCE;
    while Instant::now() < by {
        if database.value(counts) == "t" {
            return true;
        }
        sleep(Duration::from_millis(100));
    }
    false
}

fn prepared(major: u32, sql: &str) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(41, 1, ROWS));
    let database = Server::shared(major).database();
    database.sql(sql);
    (database, files, source)
}

#[test]
fn options_come_back_in_the_very_order_they_had() {
    for major in MAJORS {
        for (sql, kept_from) in [(PLAIN, 2), (WITH_OPTIONS, 2), (PARTITIONED, 6)] {
            let (database, _files, source) = prepared(major, sql);
            shut_gate_behind(&database, 1);
            let before = schema(&database);
            let mut running = load(&database, &source, "table").spawn();
            assert!(
                wait_for(&database, &mut running, CHUNKS, 1),
                "PostgreSQL {major}: {}",
                running.stderr_so_far()
            );
            assert_eq!(database.value(KEPT_FROM), kept_from.to_string(), "PostgreSQL {major}: {sql}");
            open_gate(&database);
            let told = running.wait(PATIENCE).expect_code(0).stderr;
            assert!(told.contains("autovacuum is kept away while rows come: "), "{told}");
            assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
            assert_eq!(held(&database), 0);
            assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
        }
    }
}

#[test]
fn after_an_error_a_slow_network_leaves_autovacuum_off_nowhere() {
    let server = Server::shared(15);
    let database = server.database();
    database.sql(
        "CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY HASH (id); \
         DO 'BEGIN FOR part IN 0..39 LOOP EXECUTE format( \
             ''CREATE TABLE t%s PARTITION OF t FOR VALUES WITH (MODULUS 40, REMAINDER %s)'', part, part); END LOOP; END'",
    );
    database.sql(GATE);
    let files = Files::new();
    let source = files.put("a.csv", b"id,part,amount,note\n1,1,1,a\n2,wrong,2,b\n");
    let proxy = Proxy::before_server(server);
    let to = database.conninfo_through(&proxy);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let mut running = load.args(["--tune", "table"]).spawn();
    assert!(wait_for(&database, &mut running, HELD, 80), "{}", running.stderr_so_far());
    proxy.set(Fault::Delay(Duration::from_millis(25)));
    database.sql("DELETE FROM gate");
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert_eq!(database.value(KEPT_FROM), "0", "{told}");
    assert_eq!(held(&database), 0, "{told}");
}

#[test]
fn a_table_that_is_not_free_keeps_no_other_from_being_put_back() {
    let (database, _files, source) = prepared(18, PARTITIONED);
    database.sql(GATE);
    let mut running = load(&database, &source, "table").spawn();
    assert!(wait_for(&database, &mut running, HELD, 6), "{}", running.stderr_so_far());
    database.sql("CREATE TABLE busy AS SELECT 1");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            database.sql(
                "DO 'BEGIN LOCK TABLE high0 IN SHARE UPDATE EXCLUSIVE MODE; \
                     WHILE EXISTS (SELECT FROM busy) LOOP PERFORM pg_sleep(0.01); END LOOP; END'",
            );
        });
        let locked = "SELECT count(*) FROM pg_locks WHERE relation = 'high0'::regclass \
                      AND mode = 'ShareUpdateExclusiveLock' AND granted";
        assert!(wait_for(&database, &mut running, locked, 1));
        database.sql("DELETE FROM gate");
        let given_up = format!("SELECT 6 - ({HELD})");
        assert!(wait_for(&database, &mut running, &given_up, 4), "{}", running.stderr_so_far());
        assert_eq!(database.value(KEPT_FROM), "2");
        database.sql("DELETE FROM busy");
    });
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(database.value(KEPT_FROM), "0");
}

#[test]
fn the_vacuum_that_autovacuum_was_kept_from_is_done_at_the_end() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, PLAIN);
        load(&database, &source, "table").run(PATIENCE).expect_code(0);
        // Not which pages became all-visible: VACUUM skips those that a checkpoint is just writing.
        assert_eq!(database.value("SELECT reltuples FROM pg_class WHERE relname = 't'"), "5000");
        assert!(vacuumed_and_analyzed(&database), "PostgreSQL {major}");
    }
}

#[test]
fn a_pipe_of_unknown_size_changes_no_option_of_the_table_unless_that_is_asked_for() {
    let database = Server::shared(15).database();
    database.sql(PLAIN);
    for (options, changed) in [(&[][..], false), (&["--tune", "table"], true)] {
        let load =
            crate::indexes::load(&database, "-".as_ref()).args(["--job-id", &format!("job {changed}")]);
        let told =
            load.args(options.iter().copied()).stdin(csv(41, 1, 10)).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(told.contains("autovacuum is kept away"), changed, "{told}");
    }
}

#[test]
fn whoever_wants_autovacuum_off_or_does_not_own_the_table_keeps_it_as_it_is() {
    let (database, _files, source) = prepared(
        15,
        "CREATE TABLE t (id bigint, part integer, amount numeric, note text) \
         WITH (autovacuum_enabled = off, toast.autovacuum_enabled = 0)",
    );
    load(&database, &source, "table").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM howdah.tuned"), "0");
    assert_eq!(
        database.value("SELECT reloptions FROM pg_class WHERE relname = 't'"),
        "{autovacuum_enabled=off}"
    );

    let (database, _files, source) = prepared(15, PLAIN);
    let role = format!("guest_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let as_guest = |verb: &str| {
        let verb =
            howdah(verb).args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
        verb.args(["--tune", "table"]).run(PATIENCE).expect_code(0)
    };
    let told = as_guest("plan").stdout;
    assert!(
        told.contains("autovacuum of public.t stays as it is: the table belongs to another role"),
        "{told}"
    );
    assert!(!as_guest("load").stderr.contains("autovacuum"));
    database.sql("CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id)");
    let parts = howdah("plan").args(["--format", "csv", "--header", "--table", "parts", "--tune", "table"]);
    let told = parts.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("autovacuum of public.parts stays as it is: it has no partitions yet"), "{told}");
    assert_eq!(database.value("SELECT reloptions IS NULL FROM pg_class WHERE relname = 't'"), "t");
}

#[test]
fn the_plan_shows_before_during_and_after_and_changes_nothing() {
    let (database, _files, source) = prepared(18, WITH_OPTIONS);
    let before = schema(&database);
    let told = plan(&database, &source, "table").run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("settings (--tune table)"), "{told}");
    assert!(told.contains("autovacuum_enabled of public.t: before on, during false, after on"), "{told}");
    assert!(
        told.contains("toast.autovacuum_enabled of public.t: before yes, during false, after yes"),
        "{told}"
    );
    assert!(
        told.contains("synchronous_commit of this load's sessions: before on, during off, after on"),
        "{told}"
    );
    // The servers of the tests run like this.
    assert!(told.contains("fsync is off: a crash of the machine may destroy the whole cluster"), "{told}");
    assert_eq!(schema(&database), before);
    assert_eq!(held(&database), 0);
}

#[test]
fn the_plan_says_who_vacuums_behind_the_last_row() {
    let (database, _files, source) = prepared(15, WITH_OPTIONS);
    for (after, says) in [
        ("", "while it grows; one does behind the last row"),
        ("--after=vacuum", "while it grows; --after vacuum does behind the last row"),
        ("--after=analyze", "while it grows; autovacuum comes by when the load is over"),
        ("--after=none", "while it grows; autovacuum comes by when the load is over"),
    ] {
        let options = [after].into_iter().filter(|after| !after.is_empty());
        let told = plan(&database, &source, "table").args(options).run(PATIENCE).expect_code(0).stdout;
        assert!(told.contains(says), "{after}: {told}");
    }
}

#[test]
fn each_level_includes_those_before_it_and_none_changes_nothing() {
    let (database, _files, source) = prepared(15, WITH_OPTIONS);
    let (commit, vacuum) = ("synchronous_commit of this load's sessions", "autovacuum_enabled of public.t");
    for (level, settings) in [("none", vec![]), ("session", vec![commit]), ("table", vec![commit, vacuum])] {
        let told = plan(&database, &source, level).run(PATIENCE).expect_code(0).stdout;
        for setting in [commit, vacuum] {
            assert_eq!(told.contains(setting), settings.contains(&setting), "{level}: {told}");
        }
    }
    // What the sessions of the load set for each chunk, as a trigger of the table sees it.
    database.sql(
        "CREATE TABLE seen (setting text); CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'; \
         CREATE TRIGGER see AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION see()",
    );
    for (level, setting) in [("none", "on"), ("session", "off")] {
        load(&database, &source, level).arg("--force").run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT string_agg(DISTINCT setting, ',') FROM seen"), setting, "{level}");
        database.sql("TRUNCATE seen");
    }
    assert_eq!(database.value("SELECT count(*) FROM howdah.tuned"), "0");
}

#[test]
fn tables_are_not_worth_it_for_a_short_load_unless_asked_for() {
    let (database, _files, source) = prepared(15, PLAIN);
    crate::indexes::load(&database, &source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM howdah.tuned"), "0");
}

#[test]
fn no_kill_leaves_a_table_without_autovacuum() {
    side_by_side(MAJORS, |major| {
        for again in [false, true] {
            let (database, _files, source) = prepared(major, WITH_OPTIONS);
            shut_gate_behind(&database, 2);
            let before = schema(&database);
            let load = load(&database, &source, "table");
            let mut running = load.spawn();
            assert!(wait_for(&database, &mut running, CHUNKS, 2));
            running.kill();
            open_gate(&database);
            assert_eq!(held(&database), 2);
            let job = database.value("SELECT job_id FROM howdah.job");
            let status = howdah("status")
                .args(["--to", &database.conninfo(), &job])
                .run(PATIENCE)
                .expect_code(0)
                .stdout;
            assert!(
                status.contains(
                    "not put back yet: toast.autovacuum_enabled of public.t, autovacuum_enabled of public.t"
                ),
                "{status}"
            );
            if again {
                load.run(PATIENCE).expect_code(0);
            } else {
                let told = restore(&database).arg("--all").run(PATIENCE).expect_code(0).stderr;
                assert!(told.contains("autovacuum_enabled of public.t = on"), "{told}");
            }
            assert_eq!(schema(&database), before, "PostgreSQL {major}, again: {again}");
            assert_eq!(held(&database), 0);
        }
    });
}

/// Each ledger knows its own loads alone, and a new table takes the options of the old one.
#[test]
fn a_table_that_another_ledger_has_changed_is_not_replaced_and_its_options_are_not_forgotten() {
    for major in MAJORS {
        let (database, files, source) = prepared(major, PLAIN);
        database.sql(GATE);
        let mut running = load(&database, &source, "table").args(["--ledger", "first"]).spawn();
        let held = "SELECT count(*) FROM first.tuned WHERE undone_at IS NULL";
        assert!(wait_for(&database, &mut running, held, 1), "{}", running.stderr_so_far());
        running.kill();
        database.sql("DELETE FROM gate");
        let other = files.put("b.csv", &csv(46, 1, 300));
        let replace = crate::indexes::load(&database, &other);
        let replace = replace.args(["--mode", "replace", "--ledger", "second"]);
        let refused = replace.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("run howdah restore with first as --ledger"), "{refused}");

        // As an earlier version, or somebody by hand, has done it.
        database.sql("CREATE TABLE n (LIKE t) WITH (autovacuum_enabled = false); DROP TABLE t; ALTER TABLE n RENAME TO t");
        let restore = howdah("restore").args(["--to", &database.conninfo(), "--ledger", "first"]);
        let left = restore.run(PATIENCE).expect_code(0).stderr;
        assert!(left.contains("autovacuum_enabled of public.t is not put back: the table is gone"), "{left}");
        let reset = "ALTER TABLE \"public\".\"t\" RESET (autovacuum_enabled)";
        assert!(left.contains(&format!("if that was copied from the old one, {reset}")), "{left}");
        // It is told once: the new table may be meant to be so.
        assert_eq!(database.value(held), "0", "PostgreSQL {major}");
        let kept = "SELECT reloptions::text FROM pg_class WHERE relname = 't'";
        assert_eq!(database.value(kept), "{autovacuum_enabled=false}", "PostgreSQL {major}");
        let next = load(&database, &other, "table").args(["--ledger", "first"]).run(PATIENCE).expect_code(0);
        assert!(!next.stderr.contains("warning"), "{}", next.stderr);
        database.sql(reset);
        replace.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT reloptions IS NULL FROM pg_class WHERE relname = 't'"), "t");
    }
}

#[test]
fn of_two_loads_the_last_puts_back() {
    side_by_side(MAJORS, |major| {
        let (database, files, source) = prepared(major, WITH_OPTIONS);
        database.sql(GATE);
        let before = schema(&database);
        let other = files.put("b.csv", &csv(42, ROWS + 1, 300));
        let mut long = load(&database, &source, "table").spawn();
        assert!(wait_for(&database, &mut long, HELD, 2));
        let told = load(&database, &other, "table").run(PATIENCE).expect_code(0).stderr;
        assert!(
            told.contains("autovacuum_enabled of public.t is not put back yet: another load uses it"),
            "{told}"
        );
        assert!(long.is_running(), "{told}");
        assert_eq!(database.value(KEPT_FROM), "2", "PostgreSQL {major}");
        database.sql("DELETE FROM gate");
        long.wait(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(held(&database), 0);
    });
}

#[test]
fn signals_and_errors_put_tables_back() {
    for signal in ["INT", "TERM", "HUP"] {
        let (database, _files, source) = prepared(15, WITH_OPTIONS);
        // A chunk under way comes in, and the next ones take long enough for the signal to come between.
        database.sql(&pause(0.9));
        let before = schema(&database);
        let mut running = load(&database, &source, "table").spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1));
        match signal {
            "INT" => running.interrupt(),
            "TERM" => running.terminate(),
            _ => running.hang_up(),
        }
        running.wait(PATIENCE).expect_code(130);
        assert_eq!(schema(&database), before, "{signal}");
        assert_eq!(held(&database), 0, "{signal}");
    }
    let (database, files, _) = prepared(15, WITH_OPTIONS);
    let broken = files.put("c.csv", b"id,part,amount,note\n1,2,3,4\nx,2,3,4\n");
    let before = schema(&database);
    load(&database, &broken, "table").run(PATIENCE).expect_code(1);
    assert_eq!(schema(&database), before);
    assert_eq!(held(&database), 0);
}

#[test]
fn a_server_that_crashes_gets_its_tables_back() {
    let server = Server::private(18, &ServerOptions::default());
    let database = server.database();
    let files = Files::new();
    let source = files.put("a.csv", &csv(43, 1, ROWS));
    database.sql(WITH_OPTIONS);
    database.sql(&pause(0.05));
    let before = schema(&database);
    let mut running = load(&database, &source, "table").spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    server.crash_and_restart();
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    assert_eq!(held(&database), 0);
}

#[test]
fn options_do_not_come_back_to_a_table_that_has_got_the_name() {
    side_by_side(MAJORS, |major| {
        let (database, _files, source) = prepared(major, PLAIN);
        database.sql(
            "CREATE TABLE other (LIKE t) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)",
        );
        shut_gate_behind(&database, 1);
        let mut running = load(&database, &source, "table").spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
        running.kill();
        open_gate(&database);
        assert_eq!(held(&database), 2, "PostgreSQL {major}");
        let change = "ALTER TABLE t RENAME TO old; ALTER TABLE other RENAME TO t";
        let restore = while_waiting(&database, ("LOCK TABLE t", "t"), change, || restore(&database).spawn());
        let told = restore.wait(PATIENCE).expect_code(0).stderr;
        let kept_from = "SELECT string_agg(relname, ',') FROM pg_class \
                         WHERE relname IN ('t', 'old') AND 'autovacuum_enabled=false' = ANY (reloptions)";
        assert_eq!(database.value(kept_from), "t", "PostgreSQL {major}: {told}");
        assert_eq!(held(&database), 0, "PostgreSQL {major}: {told}");
    });
}
