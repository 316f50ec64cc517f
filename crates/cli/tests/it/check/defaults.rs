//! Defaults of columns that no file fills: the server computes them for each row, whether anything looks at
//! them or not.

use super::{assert_forgotten, check, places, report, state};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, Server};

const PREPARED: &str = "\
    CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$; \
    CREATE SEQUENCE counted; \
    CREATE FUNCTION writes() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('public.counted') $$; \
    CREATE DOMAIN small AS int CHECK (VALUE < 10); CREATE DOMAIN short AS varchar(3); CREATE DOMAIN there AS int NOT NULL;";

/// What a column is that the file leaves out, and the SQLSTATE with which a row is refused for it.
const COLUMNS: [(&str, Option<&str>); 13] = [
    ("int", None),
    ("int DEFAULT 10 / 3", None),
    ("int DEFAULT 1 / 0", Some("22012")),
    ("int NOT NULL DEFAULT fails()", Some("P0001")),
    ("small DEFAULT 11", Some("23514")),
    ("small DEFAULT 9", None),
    ("varchar(3) DEFAULT 'long'", Some("22001")),
    ("varchar(3) DEFAULT 'abc  '", None),
    ("short DEFAULT 'long'", Some("22001")),
    ("char(3) DEFAULT 'abc'", None),
    ("numeric(3, 1) DEFAULT 100", Some("22003")),
    ("there", None),
    ("timestamptz DEFAULT now()", None),
];

#[test]
fn a_default_that_cannot_be_stored_is_told_of_each_record() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n2\nx\n");
    for major in MAJORS {
        for (column, refused) in COLUMNS {
            let database = Server::shared(major).database();
            database.sql(&format!("{PREPARED} CREATE TABLE t (a int PRIMARY KEY, d {column})"));
            let before = state(&database);
            let what = format!("PostgreSQL {major}, {column}");
            let run = check(&database, &[&source]).args(["--format", "csv", "--header"]);
            let told = report(&run, 3);
            let found: Vec<(String, u64)> = places(&told)
                .into_iter()
                .filter(|(_, column, ..)| column.as_deref() == Some("d"))
                .map(|(sqlstate, .., record)| (sqlstate, record.unwrap()))
                .collect();
            let expected: Vec<(String, u64)> =
                refused.map_or_else(Vec::new, |code| [1, 2].map(|no| (code.to_owned(), no)).into());
            assert_eq!(found, expected, "{what}: {told:#}");
            assert_eq!(told["rows_good"], if refused.is_some() { 0 } else { 2 }, "{what}: {told:#}");
            assert_eq!(told["not_checked"].as_array().unwrap().len(), 0, "{what}: {told:#}");
            assert_eq!(state(&database), before, "{what}");
            assert_forgotten(&database);
            let copied = database.copy_in("COPY t (a) FROM STDIN", b"1\n2\n".to_vec());
            assert_eq!(copied.is_err(), refused.is_some(), "{what}: {copied:?}");
        }
    }
}

/// Rows that wait come by INSERT, which holds NULL against a domain; COPY does not.
#[test]
fn a_domain_that_takes_no_null_is_told_where_rows_are_inserted() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    for major in MAJORS {
        for (options, code) in [
            (&[][..], 0),
            (&["--atomic"], 3),
            (&["--mode", "merge", "--key", "a"], 3),
            (&["--mode", "replace"], 0),
        ] {
            let database = Server::shared(major).database();
            database.sql(&format!("{PREPARED} CREATE TABLE t (a int PRIMARY KEY, d there)"));
            let checked = check(&database, &[&source]).args(options.iter().copied()).run(PATIENCE);
            let load = howdah("load")
                .args(["--table", "t", "--to", &database.conninfo()])
                .args(options.iter().copied());
            let loaded = load.arg(&source).run(PATIENCE);
            assert_eq!(loaded.code == Some(0), code == 0, "{options:?}: {loaded:?}");
            assert_eq!(checked.code, Some(code), "{options:?}: {checked:?}");
        }
    }
}

#[test]
fn a_default_that_writes_is_named_and_not_tried() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(&format!("{PREPARED} CREATE TABLE t (a int, d bigint DEFAULT writes())"));
        let before = state(&database);
        let told = report(&check(&database, &[&source]), 0);
        let not = told["not_checked"].to_string();
        assert!(not.contains("default of column d") && not.contains("read-only"), "{told:#}");
        assert_eq!(state(&database), before);
    }
}

/// The server cuts nothing but spaces off.
#[test]
fn a_generated_value_that_does_not_fit_its_column_is_told() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\nab\nabcd\n\"abc  \"\n\"\"\"x\"\"\"\nabcde\n");
    for major in MAJORS {
        for (column, bad) in
            [("varchar(3)", &[2_u64, 5][..]), ("char(4)", &[5]), ("short", &[2, 5]), ("text", &[])]
        {
            let database = Server::shared(major).database();
            database.sql(&format!(
                "{PREPARED} CREATE TABLE t (a text, g {column} GENERATED ALWAYS AS (a) STORED)"
            ));
            let run = check(&database, &[&source]).args(["--format", "csv", "--header"]);
            let done = run.run(PATIENCE);
            let told = super::told(&done);
            let found: Vec<(String, u64)> =
                places(&told).into_iter().map(|(sqlstate, .., record)| (sqlstate, record.unwrap())).collect();
            let expected: Vec<(String, u64)> = bad.iter().map(|no| ("22001".to_owned(), *no)).collect();
            assert_eq!(found, expected, "PostgreSQL {major}, {column}: {told:#}");
            let load = howdah("load").args(["--table", "t", "--to", &database.conninfo(), "--format", "csv"]);
            let loaded = load.args(["--header", "--on-error", "skip"]).arg(&source).run(PATIENCE);
            assert_eq!(loaded.code, done.code, "{column}: {loaded:?}");
            let left_out = database.value(
                "SELECT coalesce(string_agg(record::text, ' ' ORDER BY record), '') FROM howdah.reject",
            );
            assert_eq!(left_out, bad.iter().map(u64::to_string).collect::<Vec<_>>().join(" "), "{column}");
        }
    }
}
