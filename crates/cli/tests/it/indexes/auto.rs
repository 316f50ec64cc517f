//! What `--indexes auto` does, as the plan says it: empty tables and much data rebuild, everything else
//! keeps.

use super::{PLAIN_SCHEMA, load, schema};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Server};
use std::fmt::Write;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The first rows of a file that is as long as is wanted; a plan reads no more.
fn as_long_as(files: &Files, name: &str, bytes: u64) -> PathBuf {
    let path = files.put(name, &csv(17, 1, 2000));
    OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    path
}

fn planned(database: &Database, source: &Path, more: &[&str]) -> String {
    let to = database.conninfo();
    let plan = howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source);
    plan.args(more).run(PATIENCE).expect_code(0).stdout
}

#[test]
fn much_into_an_empty_table_rebuilds_and_little_keeps() {
    let files = Files::new();
    let much = as_long_as(&files, "much.csv", 300 << 20);
    let little = files.put("little.csv", &csv(18, 1, 2000));
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    let told = planned(&database, &much, &[]);
    for one in ["primary key t_pkey", "index t_note", "index t_part"] {
        assert!(
            told.contains(&format!("{one} is dropped, and built behind the last row: keeping it costs")),
            "{told}"
        );
    }
    let told = planned(&database, &little, &[]);
    assert!(
        !told.contains("is dropped")
            && told.contains("primary key t_pkey is kept: keeping it costs about 0.0 s"),
        "{told}"
    );
    let told = planned(&database, &much, &["--indexes", "keep"]);
    assert!(!told.contains("is dropped") && !told.contains("is kept"), "{told}");
    let told = planned(&database, &much, &["--ledger", "none"]);
    assert!(told.contains("is kept: there is no ledger to note in how it is put back"), "{told}");
}

#[test]
fn a_table_that_holds_rows_keeps_what_refuses_and_what_others_may_need() {
    let files = Files::new();
    let much = as_long_as(&files, "much.csv", 300 << 20);
    let database = Server::shared(18).database();
    database
        .sql(&format!("{PLAIN_SCHEMA}; CREATE INDEX t_lower ON t (lower(note)); INSERT INTO t VALUES (-1)"));
    let told = planned(&database, &much, &[]);
    assert!(told.contains("primary key t_pkey is kept: the table holds rows"), "{told}");
    assert!(
        told.contains("index t_lower is kept: the table holds rows, and its expressions might fail"),
        "{told}"
    );
    assert!(told.contains("index t_part is dropped"), "{told}");
    database.sql("INSERT INTO t SELECT -n FROM generate_series(2, 500000) n; ANALYZE t");
    let told = planned(&database, &much, &[]);
    assert!(
        told.contains("index t_part is kept: other sessions may need it: the table holds about 500000 rows"),
        "{told}"
    );
}

#[test]
fn keys_that_others_hang_on_stay_and_foreign_keys_of_an_empty_table_go() {
    let files = Files::new();
    let much = as_long_as(&files, "much.csv", 300 << 20);
    let database = Server::shared(13).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; CREATE TABLE child (id bigint REFERENCES t); CREATE TABLE parent (part integer PRIMARY KEY); \
         ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parent"
    ));
    let told = planned(&database, &much, &[]);
    assert!(
        told.contains(
            "primary key t_pkey is kept: the foreign key child_id_fkey of public.child hangs on it"
        ),
        "{told}"
    );
    assert!(
        told.contains("foreign key f is dropped, and built behind the last row: keeping it costs"),
        "{told}"
    );
}

/// A load of few rows does not look at them; its plan does, and says why each stays.
#[test]
fn a_small_load_keeps_its_indexes_without_a_word() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    for (first, rows) in [(1, 10), (11, 2000)] {
        let source = files.put(&format!("{rows}.csv"), &csv(19, first, rows));
        let told = planned(&database, &source, &[]);
        assert!(told.contains("primary key t_pkey is kept: ") && !told.contains("dropped"), "{told}");
        let told = load(&database, &source).run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("dropped") && !told.contains("kept"), "{told}");
    }
    assert_eq!(database.value("SELECT count(*) FROM howdah.undo"), "0");
    assert_eq!(schema(&database), before);
}

/// What is dropped would refuse nothing, and could not come back.
#[test]
fn what_tells_which_records_are_left_out_stays() {
    let files = Files::new();
    let much = as_long_as(&files, "much.csv", 300 << 20);
    let database = Server::shared(15).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; CREATE TABLE parent (part integer PRIMARY KEY); \
         ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parent"
    ));
    for choice in ["auto", "rebuild"] {
        let told = planned(&database, &much, &["--on-error", "skip", "--indexes", choice]);
        for one in ["primary key t_pkey", "foreign key f"] {
            assert!(told.contains(&format!("{one} is kept: --on-error skip")), "{told}");
        }
        assert!(told.contains("index t_note is dropped"), "{told}");
    }
}

#[test]
fn records_that_repeat_a_key_are_left_out_of_a_large_load_too() {
    const ROWS: u64 = 1_000_000;
    let mut text = "id,name\n".to_owned();
    (1..=ROWS).for_each(|no| writeln!(text, "{},x", if no % 1000 == 0 { no - 1 } else { no }).unwrap());
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    let made = ("CREATE TABLE t (id bigint PRIMARY KEY, name text)", &["--format", "csv", "--header"][..]);
    for (create, options) in [made, ("", &["--create", "--primary-key", "id"])] {
        let database = Server::shared(18).database();
        database.sql(create);
        let load = howdah("load").args(["--table", "t", "--to", &database.conninfo(), "--on-error", "skip"]);
        let done = load.args(options).arg(&source).run(PATIENCE).expect_code(3);
        let counts = "SELECT count(*) || ' ' || (SELECT count(*) FROM howdah.reject) FROM t";
        let expected = format!("{} {}", ROWS - ROWS / 1000, ROWS / 1000);
        assert_eq!(database.value(counts), expected, "{create}: {}", done.stderr);
        let keys = "SELECT count(*) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'p'";
        assert_eq!(database.value(keys), "1", "{create}");
    }
}

/// As into psql, whose one statement is checked behind its last row.
#[test]
fn rows_may_come_before_those_of_the_table_that_they_refer_to() {
    const ROWS: u64 = 20_000;
    let mut text = String::new();
    (1..=ROWS).for_each(|no| writeln!(text, "{no},{}", ROWS + 1 - no).unwrap());
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t)");
    let before = schema(&database);
    let load = || {
        let to = database.conninfo();
        let load = howdah("load").args(["--format", "csv", "--header=false", "--table", "t", "--to", &to]);
        load.args(["--chunk-size", "64kB", "--force"]).arg(&source)
    };
    load().run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    assert_eq!(schema(&database), before);
    // A table that holds rows goes on refusing, and the way out is told.
    database.sql("TRUNCATE t; INSERT INTO t VALUES (0)");
    let told = load().run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("refers to itself by t_boss_fkey") && told.contains("hint: "), "{told}");
    assert_eq!(told.matches("--atomic checks all rows together").count(), 2, "{told}");
    load().arg("--atomic").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS + 1).to_string());
    // One that is not enforced refuses nothing.
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t NOT ENFORCED); INSERT INTO t VALUES (0)",
    );
    let load = howdah("load").args(["--format", "csv", "--header=false", "--table", "t"]);
    let load = load.args(["--to", &database.conninfo(), "--chunk-size", "64kB"]);
    let told = load.arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("refers to itself"), "{told}");
}
