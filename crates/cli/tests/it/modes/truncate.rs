//! A table is emptied once for each job, whatever happens to the load.

use super::load;
use crate::gate::{move_gate_behind, remove_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::indexes::schema;
use crate::scene::{END_SESSIONS, END_SLEEPERS, Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::time::Duration;

const ROWS: u64 = 20_000;

fn prepared(major: u32) -> Database {
    let database = Server::shared(major).database();
    database.sql(
        "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); CREATE INDEX ON t (note); \
         INSERT INTO t SELECT id, 0, 0, 'old' FROM generate_series(1, 5000) id",
    );
    database
}

/// `a.b`.`c` and `a`.`b.c` read alike, and both are emptied, or merged into.
#[test]
fn tables_whose_names_read_alike_are_two() {
    let files = Files::new();
    let (one, two) = (files.put("one.csv", b"id\n1\n"), files.put("two.csv", b"id\n2\n"));
    let job = format!(
        "copy-options = \"(FORMAT csv, HEADER true)\"\n\
         [[source]]\nlocation = {one:?}\ntable = '\"a.b\".c'\n[[source]]\nlocation = {two:?}\ntable = 'a.\"b.c\"'\n"
    );
    let job = files.put("job.toml", job.as_bytes());
    for (options, wanted) in [
        (&["--mode", "truncate"][..], "1 2"),
        (&["--mode", "merge", "--key", "id"], "1 9 2 9"),
        (&["--mode", "merge", "--key", "id", "--atomic"], "1 9 2 9"),
    ] {
        let database = Server::shared(15).database();
        database.sql(
            "CREATE SCHEMA a; CREATE SCHEMA \"a.b\"; CREATE TABLE \"a.b\".c (id int PRIMARY KEY); \
             CREATE TABLE a.\"b.c\" (id int PRIMARY KEY); INSERT INTO \"a.b\".c VALUES (9); INSERT INTO a.\"b.c\" VALUES (9)",
        );
        let load = howdah("load").args(["--to", &database.conninfo()]).arg("--job").arg(&job);
        load.args(options.iter().copied()).run(PATIENCE).expect_code(0);
        let rows = "SELECT (SELECT string_agg(id::text, ' ' ORDER BY id) FROM \"a.b\".c) || ' ' || \
                           (SELECT string_agg(id::text, ' ' ORDER BY id) FROM a.\"b.c\")";
        assert_eq!(database.value(rows), wanted, "{options:?}");
    }
}

#[test]
fn a_table_is_emptied_once_though_its_load_is_killed() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(51, 1, ROWS));
    side_by_side(MAJORS, |major| {
        let database = prepared(major);
        let before = schema(&database);
        shut_gate_behind(&database, 0);
        let command =
            load(&database, &[&source]).args(["--mode", "truncate", "--chunk-size", "64kB", "--jobs", "2"]);
        for chunks in [0, 1, 8] {
            move_gate_behind(&database, chunks);
            let mut running = command.spawn();
            let reached = format!(
                "SELECT (SELECT count(*) FROM howdah.step) > 0 AND (SELECT count(*) FROM howdah.chunk) >= {chunks}"
            );
            let is_reached = database.wait_for(&reached, 1, || running.is_running());
            assert!(is_reached, "PostgreSQL {major}: {}", running.stderr_so_far());
            running.kill();
            database.sql(END_SESSIONS);
            // Rows of others that come between two runs are not the job's to delete.
            database.sql(&format!("INSERT INTO t VALUES (-1 - {chunks}, 0, 0, 'other')"));
        }
        remove_gate(&database);
        command.run(PATIENCE).expect_code(0);
        assert_eq!(
            database.value("SELECT count(*) FROM t WHERE id > 0"),
            ROWS.to_string(),
            "PostgreSQL {major}"
        );
        assert_eq!(database.value("SELECT count(*) FROM t WHERE id < 0"), "3", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t WHERE note = 'old'"), "0", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL"), "0");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        command.arg("--force").run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "forced: emptied once more");
    });
}

#[test]
fn a_table_that_others_refer_to_is_refused_before_a_row_is_read() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(52, 1, 10));
    let database = prepared(15);
    database.sql("CREATE TABLE child (id bigint REFERENCES t); ALTER TABLE t ADD parent bigint REFERENCES t");
    let command = load(&database, &[&source]).args(["--mode", "truncate"]);
    let refused = command.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("foreign keys of public.child refer to it"), "{}", refused.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), "5000");
    assert!(refused.stderr.contains("hint: give --mode merge --delete-missing, which"), "{}", refused.stderr);
    // Those that would follow are named, here and in the plan of what does that.
    database.sql(
        "CREATE TABLE gone (id bigint REFERENCES t ON DELETE CASCADE); CREATE TABLE kept (id bigint REFERENCES t ON DELETE SET NULL)",
    );
    let follows = "--delete-missing deletes rows of public.gone too (ON DELETE CASCADE) and sets columns of public.kept to NULL";
    let refused = command.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains(&follows.replacen("missing", "missing, which", 1)), "{}", refused.stderr);
    let plan =
        howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &database.conninfo()]);
    let plan = plan.args(["--mode", "merge", "--delete-missing", "--key", "id"]).arg(&source);
    let told = plan.run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains(follows), "{told}");
    database.sql("DROP TABLE gone; DROP TABLE kept");
    // A foreign key to itself is no obstacle.
    database.sql("DROP TABLE child");
    command.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "10");
}

/// The server's TRUNCATE counts it where the table has triggers, and not where it has none; a DELETE never
/// does anything about it.
#[test]
fn a_foreign_key_that_is_not_enforced_counts_as_far_as_the_server_goes_by_it() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(52, 1, 10));
    let database = prepared(18);
    database.sql("CREATE TABLE child (id bigint REFERENCES t ON DELETE CASCADE NOT ENFORCED)");
    let merging = load(&database, &[&source]).args(["--mode", "merge", "--delete-missing", "--key", "id"]);
    let told = merging.run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("child"), "{told}");
    load(&database, &[&source]).args(["--mode", "truncate"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "10");
    database.sql(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER nothing AFTER UPDATE ON t EXECUTE FUNCTION nothing()",
    );
    let refused = load(&database, &[&source]).args(["--mode", "truncate", "--force"]);
    let refused = refused.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("foreign keys of public.child refer to it"), "{refused}");
    assert!(!refused.contains("deletes rows"), "{refused}");
}

#[test]
fn readers_do_not_wait_behind_us_for_longer_than_the_lock_timeout() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(53, 1, 10));
    let database = prepared(18);
    std::thread::scope(|scope| {
        // A report holds the table; whoever reads it meanwhile waits half a second at most.
        scope.spawn(|| database.try_sql("BEGIN; SELECT count(*) FROM t; SELECT pg_sleep(600); COMMIT"));
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while database.value(naps) == "0" {
            std::thread::sleep(Duration::from_millis(5));
        }
        let args = ["--mode", "truncate", "--lock-timeout", "200ms"];
        let mut running = load(&database, &[&source]).args(args).spawn();
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while database.value(waits) == "0" && running.is_running() {
            std::thread::sleep(Duration::from_millis(2));
        }
        // The server's own clock, which knows nothing of how long it takes to log in.
        database.sql("SET lock_timeout = '2s'; SELECT count(*) FROM t");
        wait_for_words(&mut running, "trying again in");
        database.sql(END_SLEEPERS);
        let finished = running.wait(PATIENCE).expect_code(0);
        assert!(finished.stderr.contains("public.t is held by process "), "{}", finished.stderr);
        assert!(finished.stderr.contains("(role postgres"), "{}", finished.stderr);
    });
    assert_eq!(database.value("SELECT count(*) FROM t"), "10");
}

/// What sessions of others do, the role that has logged in may see, and not the one that it acts as.
#[test]
fn who_holds_a_table_is_told_with_its_state_to_a_role_that_acts_as_another_one() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(53, 1, 10));
    let database = prepared(18);
    let name = database.name();
    database.sql(&format!(
        "CREATE ROLE acts_{name}; CREATE ROLE login_{name} LOGIN IN ROLE acts_{name}, pg_read_all_stats; \
         ALTER ROLE login_{name} SET role = acts_{name}; ALTER TABLE t OWNER TO acts_{name}; \
         GRANT CREATE ON DATABASE {name} TO acts_{name}"
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user=login_{name}"));
    std::thread::scope(|scope| {
        scope.spawn(|| database.try_sql("BEGIN; SELECT count(*) FROM t; SELECT pg_sleep(600); COMMIT"));
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        assert!(database.wait_for(naps, 1, || true));
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
        let load = load.args(["--mode", "truncate", "--lock-timeout", "200ms", "--retry-for", "1ms"]);
        let told = load.arg(&source).run(PATIENCE).expect_code(1).stderr;
        database.sql(END_SLEEPERS);
        assert!(told.contains("public.t is held by process "), "{told}");
        assert!(told.contains(" (role postgres, active)"), "{told}");
    });
}
