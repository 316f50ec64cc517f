//! What another load is at work with, or goes by, is not dropped under it.

use super::{PLAIN_SCHEMA, load, open_entries, restore, schema};
use crate::gate::{let_other_jobs_pass, remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Running, Server};
use std::fmt::Write as _;

const ROWS: u64 = 3000;
/// So many that a key of an empty table had better be built behind them.
const MANY_ROWS: u64 = 1_000_000;

/// A load that has begun and waits at its first chunk, with another's row in no table yet.
fn at_work(database: &Database, load: &HowdahCommand) -> Running {
    shut_gate_behind(database, 0);
    let mut running = load.spawn();
    let begun = database.wait_for("SELECT count(*) FROM howdah.file", 1, || running.is_running());
    assert!(begun, "{}", running.stderr_so_far());
    let_other_jobs_pass(database);
    running
}

fn with_parent(database: &Database) {
    database.sql(&format!(
        "{PLAIN_SCHEMA}; CREATE TABLE parent (part integer PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 255); \
         ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parent"
    ));
}

#[test]
fn what_another_load_goes_by_stays_whatever_is_asked_for() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(71, 1, ROWS));
    let bad = "9000001,777,1.00,no parent\n9000002,1,1.00,one\n9000002,1,1.00,two\n9000003,1,1.00,x\n";
    let skipped = files.put("skipped.csv", format!("id,part,amount,note\n{bad}").as_bytes());
    let merged = files.put("merged.csv", &csv(72, ROWS, ROWS));
    for (major, other, options, code, rows) in [
        (13, &merged, &["--mode", "merge", "--key", "id"][..], 0, 2 * ROWS - 1),
        (15, &skipped, &["--on-error", "skip"], 3, ROWS + 2),
        (18, &skipped, &["--on-error", "skip", "--atomic"], 3, ROWS + 2),
    ] {
        let database = Server::shared(major).database();
        with_parent(&database);
        let before = schema(&database);
        let other = at_work(&database, &load(&database, other).args(options));
        let job = database.value("SELECT job_id FROM howdah.job");
        let told = load(&database, &source).args(["--indexes", "rebuild", "--triggers", "disable"]);
        let told = told.run(PATIENCE).expect_code(0).stderr;
        let kept = format!(
            "kept on public.t, since job {job} is loading rows into public.t: foreign key f, primary key t_pkey\n"
        );
        assert!(told.contains(&kept), "{options:?}\n{told}");
        assert!(told.contains("index t_part of public.t is built"), "{options:?}\n{told}");
        remove_gate(&database);
        let done = other.wait(PATIENCE).expect_code(code).stderr;
        assert_eq!(database.value("SELECT count(*) FROM t"), rows.to_string(), "{options:?}\n{done}");
        assert_eq!(schema(&database), before, "{options:?}");
        assert_eq!(open_entries(&database), 0, "{options:?}");
    }
}

/// The rows of a foreign key that hangs on the key are another table's, into which the other load brings
/// them.
#[test]
fn a_foreign_key_that_another_load_goes_by_keeps_the_key_that_it_hangs_on() {
    let files = Files::new();
    let parents = files.put("parents.csv", &csv(73, 1, ROWS));
    let children = files.put("children.csv", b"id\n1\n2\n9000001\n");
    let database = Server::shared(18).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; INSERT INTO t VALUES (1); CREATE TABLE child (id bigint REFERENCES t)"
    ));
    database.sql("DELETE FROM t");
    let before = schema(&database);
    let to = database.conninfo();
    let skip = howdah("load").args(["--format", "csv", "--header", "--table", "child", "--to", &to]);
    let other = at_work(&database, &skip.args(["--on-error", "skip"]).arg(&children));
    let told = load(&database, &parents).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    let kept =
        " is loading rows into public.child: foreign key child_id_fkey of public.child, primary key t_pkey\n";
    assert!(told.contains(kept), "{told}");
    remove_gate(&database);
    other.wait(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT count(*) FROM child"), "2");
    assert_eq!(schema(&database), before);
}

#[test]
fn a_key_of_an_empty_table_stays_where_others_bring_rows_as_well() {
    let mut text = "id,part,amount,note\n".to_owned();
    (1..=MANY_ROWS).for_each(|id| writeln!(text, "{id},,,").unwrap());
    let files = Files::new();
    let many = files.put("many.csv", text.as_bytes());
    let few = files.put("few.csv", b"id,part,amount,note\n7,,,\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text)");
    let before = schema(&database);
    let other = at_work(&database, &load(&database, &few));
    let told = load(&database, &many).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(" is loading rows into public.t: primary key t_pkey\n"), "{told}");
    remove_gate(&database);
    let refused = other.wait(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("(SQLSTATE 23505)"), "{refused}");
    assert_eq!(database.value("SELECT count(*) FROM t"), MANY_ROWS.to_string());
    assert_eq!(schema(&database), before);
}

/// It is planned, and not in the ledger yet, when another one drops the key.
#[test]
fn a_load_that_goes_by_a_key_which_was_dropped_before_it_began_is_refused() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, ROWS));
    let skipped = files.put("skipped.csv", &csv(75, 1, 10));
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(PLAIN_SCHEMA);
        let before = schema(&database);
        load(&database, &files.put("first.csv", &csv(76, 9000, 1))).run(PATIENCE).expect_code(0);
        let turn = database.connect();
        turn.sql("SELECT pg_advisory_lock(hashtextextended('howdah', x'686f77646168'::int8 + 2))");
        let skip = load(&database, &skipped).args(["--on-error", "skip"]);
        let mut skipping = skip.spawn();
        let waits = "SELECT count(*) FROM pg_locks l WHERE NOT granted AND locktype = 'advisory' \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert!(database.wait_for(waits, 1, || skipping.is_running()), "{}", skipping.stderr_so_far());
        shut_gate_behind(&database, 0);
        // Whoever does not ask what is known of its files does not wait for the turn.
        let drops = load(&database, &source).args(["--indexes", "rebuild", "--known", "load"]);
        let mut dropping = drops.spawn();
        let dropped = "SELECT to_regclass('t_pkey') IS NULL";
        assert!(database.wait_for(dropped, 1, || dropping.is_running()), "{}", dropping.stderr_so_far());
        drop(turn);
        let refused = skipping.wait(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("which is at work and puts it back when it ends"), "{refused}");
        remove_gate(&database);
        dropping.wait(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        skip.run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS + 1).to_string(), "PostgreSQL {major}");
    }
}

/// Built and not yet attached: dropped now, it would not be there to be attached.
#[test]
fn what_another_load_has_not_put_back_altogether_is_let_be() {
    let files = Files::new();
    let (first, second) =
        (files.put("a.csv", &csv(77, 1, ROWS)), files.put("b.csv", &csv(78, ROWS + 1, ROWS)));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY HASH (id); \
             CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1); CREATE INDEX t_note ON t (note)",
        );
        let before = schema(&database);
        database.sql(
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; \
             CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('ALTER INDEX') EXECUTE FUNCTION refuse()",
        );
        let rebuild = |source| load(&database, source).args(["--indexes", "rebuild"]);
        let stopped = rebuild(&first).run(PATIENCE).expect_code(1).stderr;
        assert!(stopped.contains("the attachment of the index t_0_note_idx"), "{stopped}");
        let told = rebuild(&second).run(PATIENCE).stderr;
        assert!(told.contains("read 3,000 = stored 3,000"), "{told}");
        assert!(!told.contains("dropped from public.t"), "PostgreSQL {major}\n{told}");
        database.sql("DROP EVENT TRIGGER refuse; DROP FUNCTION refuse()");
        restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(open_entries(&database), 0, "PostgreSQL {major}");
    }
}
