//! `--mode replace --on-error skip`: what the keys of the new table would refuse is left out before they are
//! built.

use super::assert_nothing_left;
use super::skip::{KEPT, assert_accounts, skipping, told};
use crate::indexes::{PLAIN_SCHEMA, kills, schema};
use crate::scene::{Files, PATIENCE, csv, howdah};
use fastrand::Rng;
use howdah_testkit::{MAJORS, Server};
use std::fmt::Write as _;

/// The rows that are there do not count, triggers do not fire, and what refers to a row that is left out goes
/// with it.
#[test]
fn a_new_table_gets_all_rows_but_those_that_it_would_refuse() {
    let files = Files::new();
    let source =
        files.put("a.csv", b"id,n,boss,at\n1,1,,\n2,-2,,\n3,3,2,\n1,4,,\n4,5,3,\n5,6,1,\n6,x,,\n9,1,1,\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1), (2), (3), (9); \
             CREATE FUNCTION plain() RETURNS text LANGUAGE sql AS $$ SELECT '2026' $$; \
             CREATE FUNCTION year() RETURNS text LANGUAGE sql AS $$ SELECT plain() $$; \
             CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$; \
             CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0), boss int, at text, year text DEFAULT year(), \
                 twice int GENERATED ALWAYS AS (n * 2) STORED, own int GENERATED ALWAYS AS IDENTITY, \
                 FOREIGN KEY (boss) REFERENCES other (id)); \
             CREATE UNIQUE INDEX ON t (abs(id)); INSERT INTO t (id, n) VALUES (9, 9); \
             CREATE TRIGGER raise BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION raise()",
        );
        let before = schema(&database);
        let done = skipping(&database, &source, &["--mode", "replace"]).run(PATIENCE).expect_code(3);
        let rows =
            "SELECT string_agg(concat_ws(' ', id, n, boss, year, twice, own > 1), ', ' ORDER BY id) FROM t";
        let wanted = "1 1 2026 2 t, 3 3 2 2026 6 t, 4 5 3 2026 10 t, 5 6 1 2026 12 t, 9 1 1 2026 2 t";
        assert_eq!(database.value(rows), wanted, "PostgreSQL {major}\n{}", done.stderr);
        assert_eq!(database.value(KEPT), "3", "PostgreSQL {major}");
        let kept = "SELECT string_agg(record || ' ' || sqlstate, ', ' ORDER BY record) FROM howdah.reject";
        assert_eq!(database.value(kept), "2 23514, 4 23505, 7 22P02", "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "replaced");
        // The job is done; its rejected records are loaded after all.
        let account =
            "SELECT sum(rows_read) || ' ' || sum(rows_stored) || ' ' || sum(rows_rejected) FROM howdah.file";
        assert_eq!(database.value(account), "8 5 3", "PostgreSQL {major}");
    }
}

/// Killed at any step, it is run again until it is done, or given up.
#[test]
fn no_kill_leaves_half_a_new_table() {
    let files = Files::new();
    let mut bytes = csv(81, 1, 20_000);
    bytes.extend_from_slice(b"1,2,3,twice\n2,x,3,bad\n");
    let source = files.put("a.csv", &bytes);
    let steps = [
        "SELECT count(*) FROM howdah.chunk",
        "SELECT count(*) FROM howdah.reject WHERE sqlstate = '23505'",
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'howdah\\_new%' AND relkind = 'r'",
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'howdah\\_new%' AND relkind = 'i'",
    ];
    let mut hits = 0;
    for (no, step) in steps.into_iter().enumerate() {
        for again in [true, false] {
            let database = Server::shared(MAJORS[no % MAJORS.len()]).database();
            database.sql(PLAIN_SCHEMA);
            database.sql("INSERT INTO t VALUES (0, 0, 0, 'there')");
            let before = schema(&database);
            let load = skipping(&database, &source, &["--mode", "replace", "--chunk-size", "64kB"]);
            let mut running = load.spawn();
            hits += u32::from(kills::wait_for(&database, &mut running, step, 1));
            running.kill();
            if again {
                let finished = load.run(PATIENCE);
                let done = finished.code == Some(3) || finished.stderr.contains("this job finished");
                assert!(done, "{step}\n{}", finished.stderr);
                assert_eq!(database.value("SELECT count(*) FROM t"), "20000", "{step}");
            } else {
                howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
                assert!(
                    ["1", "20000"].contains(&database.value("SELECT count(*) FROM t").as_str()),
                    "{step}"
                );
            }
            assert_eq!(schema(&database), before, "{step}");
            assert_nothing_left(&database, step);
        }
    }
    assert!(hits >= 4, "{hits} of 8 kills hit a load that was still at work");
}

/// One INSERT after the other into an empty table of the same constraints tells what is stored, and which
/// records are refused.
#[test]
fn random_records_come_into_a_new_table_as_if_they_were_inserted_one_after_the_other() {
    for (major, seed) in MAJORS.into_iter().zip([17, 18, 19]) {
        let mut random = Rng::with_seed(seed);
        let files = Files::new();
        let mut csv = "id,code,n,boss\n".to_owned();
        for _ in 0..2_000 {
            let mut field = |values: std::ops::Range<i32>, null: u8| match random.u8(..100) < null {
                true => String::new(),
                false => random.i32(values).to_string(),
            };
            let _ = writeln!(
                csv,
                "{},{},{},{}",
                field(1..2_500, 0),
                field(1..3_000, 20),
                field(0..110, 5),
                field(0..3, 50)
            );
        }
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1), (2); \
             CREATE TABLE t (id int PRIMARY KEY, code int UNIQUE DEFERRABLE, n int CHECK (100 / n > 0), \
                 boss int REFERENCES boss, kept int NOT NULL DEFAULT 5); \
             CREATE UNIQUE INDEX ON t (n, boss) WHERE n > 90; \
             CREATE TABLE wanted (LIKE t INCLUDING ALL); ALTER TABLE wanted ADD FOREIGN KEY (boss) REFERENCES boss; \
             INSERT INTO t VALUES (7, 7, 7), (8, 8, 8); CREATE TABLE refused (record int, state text); \
             CREATE TABLE f (no int GENERATED ALWAYS AS IDENTITY, id int, code int, n int, boss int)",
        );
        let copy = "COPY f (id, code, n, boss) FROM STDIN (FORMAT csv, HEADER true)";
        database.copy_in(copy, csv.clone().into_bytes()).unwrap();
        database.sql(
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM f ORDER BY no LOOP \
                 BEGIN INSERT INTO wanted (id, code, n, boss) VALUES (r.id, r.code, r.n, r.boss); \
                 EXCEPTION WHEN OTHERS THEN INSERT INTO refused VALUES (r.no, SQLSTATE); END; \
             END LOOP; END $$",
        );
        let options = ["--mode", "replace", "--chunk-size", "16kB", "--jobs", "2", "--verify", "checksum"];
        let done = skipping(&database, &source, &options).run(PATIENCE).expect_code(3);
        let what = format!("PostgreSQL {major}, seed {seed}: {}", done.stderr);
        assert_eq!(database.digest("t"), database.digest("wanted"), "{what}");
        let records = |sql: &str| {
            database.value(&format!("SELECT string_agg(record::text, ' ' ORDER BY record) FROM {sql}"))
        };
        assert_eq!(records("howdah.reject"), records("refused"), "{what}");
        let rejected = database.value("SELECT count(*) FROM refused").parse().unwrap();
        assert!((100..1_900).contains(&rejected), "{what}: {rejected}");
        assert_accounts(&database, &told(&done), (2_000, rejected), &what);
        assert_nothing_left(&database, &what);
    }
}

/// Each table has a new one of its own.
#[test]
fn several_tables_are_replaced_at_once() {
    let files = Files::new();
    let one = files.put("one.csv", b"id,x\n1,a\n2,b\n");
    let two = files.put("two.csv", b"id,x\n7,q\n8,r\n9,s\n9,t\n");
    let three = files.put("three.csv", b"k,y\n5,5\n");
    for (options, wanted) in [([].as_slice(), "1,2 7,8,9,9 5"), (&["--on-error", "skip"], "1,2 7,8,9 5")] {
        let database = Server::shared(18).database();
        let key = if options.is_empty() { "" } else { "PRIMARY KEY" };
        database.sql(&format!(
            "CREATE TABLE one (id int PRIMARY KEY, x text); CREATE TABLE two (id int {key}, x text); \
             CREATE TABLE three (k int PRIMARY KEY, y int); INSERT INTO one VALUES (0); INSERT INTO two VALUES (0)"
        ));
        let before = schema(&database);
        let command = howdah("load").args(["--to", &database.conninfo(), "--mode", "replace"]).args(options);
        let code = if options.is_empty() { 0 } else { 3 };
        command.arg(&one).arg(&two).arg(&three).run(PATIENCE).expect_code(code);
        let rows = "SELECT concat_ws(' ', (SELECT string_agg(id::text, ',' ORDER BY id) FROM one), \
            (SELECT string_agg(id::text, ',' ORDER BY id) FROM two), (SELECT string_agg(k::text, ',') FROM three))";
        assert_eq!(database.value(rows), wanted);
        assert_eq!(schema(&database), before);
        assert_nothing_left(&database, "three tables");
    }
}
