//! The default, `--on-error stop`: the record is named, also where the server names none.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, Server};
use std::fmt::Write;

const ROWS: u64 = 20_000;
const BAD: u64 = 12_345;

/// What is found behind the rows of a COPY or at COMMIT: how the table is made, and the reason.
const TABLES: [(&str, &str); 3] = [
    (
        "CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1); \
         CREATE TABLE t (id int, boss int REFERENCES boss)",
        "23503",
    ),
    ("CREATE TABLE t (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, boss int)", "23505"),
    (
        "CREATE TABLE t (id int, boss int); CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN IF NEW.boss = 2 THEN RAISE 'no'; END IF; RETURN NULL; END $$; \
         CREATE TRIGGER look AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION look()",
        "P0001",
    ),
];

#[test]
fn a_record_that_is_refused_behind_the_rows_is_named() {
    let mut text = String::new();
    let mut byte = 0;
    for no in 1..=ROWS {
        if no == BAD {
            byte = text.len();
        }
        let (id, boss) = if no == BAD { (no - 1, 2) } else { (no, 1) };
        writeln!(text, "{id},{boss}").unwrap();
    }
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    for major in MAJORS {
        for (create, sqlstate) in TABLES {
            let database = Server::shared(major).database();
            database.sql(create);
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
            let load =
                load.args(["--header=false", "--chunk-size", "64kB", "--indexes", "keep"]).arg(&source);
            let told = load.run(PATIENCE).expect_code(1).stderr;
            let place = format!(", record {BAD}, byte {byte}");
            assert!(told.contains(&place) && told.contains(sqlstate), "PostgreSQL {major}, {create}: {told}");
        }
    }
}

/// Of rows that COPY stores many of at a time, the server names the last when one of them does not fit.
#[test]
fn a_record_that_fits_no_page_is_named() {
    let mut text = String::new();
    (1..BAD).for_each(|no| writeln!(text, "{no},short").unwrap());
    let byte = text.len();
    (BAD..BAD + 3).for_each(|no| writeln!(text, "{no},{}", "long".repeat(3000)).unwrap());
    (BAD + 3..=ROWS).for_each(|no| writeln!(text, "{no},short").unwrap());
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, boss text); ALTER TABLE t ALTER boss SET STORAGE PLAIN");
        for form in [&["--encode", "csv"][..], &[]] {
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
            let load =
                load.args(["--header=false", "--chunk-size", "64kB", "--force"]).args(form).arg(&source);
            let told = load.clone().run(PATIENCE).expect_code(1).stderr;
            let place = format!(", record {BAD}, byte {byte}: row is too big");
            assert!(told.contains(&place) && told.contains("54000"), "PostgreSQL {major} {form:?}: {told}");
            let skip = load.args(["--on-error", "skip"]).run(PATIENCE).expect_code(3).stderr;
            assert!(skip.contains("stored 19,997 + rejected 3"), "PostgreSQL {major} {form:?}: {skip}");
            let kept = "SELECT string_agg(record::text, ' ' ORDER BY record) FROM howdah.reject";
            assert_eq!(database.value(kept), format!("{BAD} {} {}", BAD + 1, BAD + 2));
            database.sql("TRUNCATE t; DROP SCHEMA howdah CASCADE");
        }
    }
}

/// Which of such rows is at fault is not for the server to say: shown without those behind, others are
/// refused first.
#[test]
fn none_is_named_of_a_table_that_refers_to_itself() {
    let mut text = String::new();
    (1..=1000).for_each(|no| writeln!(text, "{no},{}", if no == 500 { 2000 } else { 1001 - no }).unwrap());
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t)");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
    let told = load.args(["--header=false"]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("23503") && !told.contains("record "), "{told}");
}
