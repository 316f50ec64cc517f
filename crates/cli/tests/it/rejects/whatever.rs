//! Records that a trigger, a check, a domain or an index refuses with SQLSTATEs that are not those of data.

use super::{kept, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Server};
use std::path::Path;

/// `fail(v)` fails where `v` is an SQLSTATE, or `deep`, `missing` or `many`.
const FAIL: &str = "\
    CREATE FUNCTION fail(v text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE found int; BEGIN \
        IF v = 'good' THEN RETURN true; END IF; \
        IF v = 'deep' THEN RETURN public.fail(v); END IF; \
        IF v = 'many' THEN SELECT (SELECT generate_series(1, 2)) INTO found; END IF; \
        IF v = 'missing' THEN EXECUTE 'SELECT 1 FROM a_secret_table'; END IF; \
        RAISE 'the value % is secret', v USING ERRCODE = v; END $$; \
    CREATE FUNCTION fail_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.fail(NEW.v); RETURN NEW; END $$;";

/// What makes the table `t (id int, v text)` refuse a value for which `fail` fails.
const PLACES: &[(&str, &str)] = &[
    ("check", "ALTER TABLE t ADD CHECK (fail(v))"),
    ("domain", "CREATE DOMAIN d AS text CHECK (fail(VALUE)); ALTER TABLE t ALTER v TYPE d"),
    ("index", "CREATE INDEX ON t (fail(v))"),
    ("before", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fail_row()"),
    ("after", "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION fail_row()"),
    (
        "deferred",
        "CREATE CONSTRAINT TRIGGER g AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
         EXECUTE FUNCTION fail_row()",
    ),
];

/// A value that a record has, and the SQLSTATE with which `fail` fails.
const REASONS: &[(&str, &str)] = &[
    ("0A000", "0A000"),
    ("2F004", "2F004"),
    ("3F000", "3F000"),
    ("42501", "42501"),
    ("54023", "54023"),
    ("55000", "55000"),
    ("HV000", "HV000"),
    ("XX000", "XX000"),
    ("deep", "54001"),
    ("many", "21000"),
    ("missing", "42P01"),
];

fn table(database: &Database, place: &str) {
    database.sql(&format!(
        "DROP TABLE IF EXISTS t; DROP DOMAIN IF EXISTS d; CREATE TABLE t (id int, v text); {place}"
    ));
}

fn load(database: &Database, source: &Path, options: &[&str]) -> howdah_testkit::Finished {
    howdah("load")
        .args(["--json", "--force", "--format", "text", "--on-error", "skip", "--table", "t"])
        .args(["--indexes", "keep", "--to", &database.conninfo()])
        .args(options)
        .arg(source)
        .run(PATIENCE)
}

/// Between each two of them stands a good one.
fn records() -> String {
    let bad = REASONS.iter().enumerate();
    bad.map(|(no, (value, _))| format!("{}\t{value}\n{}\tgood\n", 2 * no + 1, 2 * no + 2)).collect()
}

#[test]
fn a_record_is_left_out_whatever_sqlstate_a_function_refuses_it_with() {
    let files = Files::new();
    let source = files.put("t.tsv", records().as_bytes());
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(FAIL);
        for (name, place) in PLACES {
            table(&database, place);
            let done = load(&database, &source, &[]);
            let what = format!("PostgreSQL {major}, {name}: {}", done.stderr);
            assert_eq!(done.code, Some(3), "{what}");
            let good = "SELECT count(*) || ' ' || count(*) FILTER (WHERE v = 'good') FROM t";
            assert_eq!(database.value(good), format!("{0} {0}", REASONS.len()), "{what}");
            for ((record, (_, bytes, sqlstate, _)), (no, (value, expected))) in
                kept(&database).into_iter().zip(REASONS.iter().enumerate())
            {
                let record_bytes = format!("{record}\t{value}\n");
                assert_eq!((record, sqlstate.as_str()), (2 * no as u64 + 1, *expected), "{what}");
                assert_eq!(bytes, super::hex(record_bytes.as_bytes()), "{what}");
            }
            database.sql("DELETE FROM howdah.reject");
        }
    }
}

/// Many of them, which the server tries itself.
#[test]
fn many_such_records_are_left_out() {
    let files = Files::new();
    let record = |id: u64| {
        format!("{id}\t{}\n", if id % 20 == 7 { REASONS[id as usize / 20 % REASONS.len()].0 } else { "good" })
    };
    let source = files.put("t.tsv", (0..4000).map(record).collect::<String>().as_bytes());
    let database = Server::shared(15).database();
    database.sql(FAIL);
    for (name, place) in [PLACES[0], PLACES[4]] {
        table(&database, place);
        let done = load(&database, &source, &[]);
        assert_eq!(done.code, Some(3), "{name}: {}", done.stderr);
        assert_eq!(told(&done)["rows_rejected"], 200, "{name}: {}", done.stdout);
        assert_eq!(database.value("SELECT count(*) FROM t WHERE v = 'good'"), "3800", "{name}");
    }
}

/// What fails for all of them is no fault of theirs, nor is what passes by itself.
#[test]
fn what_no_record_is_to_blame_for_ends_the_load() {
    let files = Files::new();
    let few = files.put("few.tsv", "1\tgood\n2\tgood\n".as_bytes());
    let many = files.put("many.tsv", "1\tgood\n".repeat(5000).as_bytes());
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id int, v text); \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (NEW.id); RETURN NEW; END $$; \
         CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    );
    for source in [&few, &many] {
        let done = load(&database, source, &[]);
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert!(done.stderr.contains("(SQLSTATE 42P01)"), "{}", done.stderr);
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "0");
    }
    for sqlstate in ["57014", "55P03"] {
        database.sql(&format!(
            "CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF NEW.v = 'bad' THEN RAISE 'no' USING ERRCODE = '{sqlstate}'; END IF; RETURN NEW; END $$"
        ));
        let source = files.put("one.tsv", "1\tgood\n2\tbad\n3\tgood\n".as_bytes());
        let done = load(&database, &source, &["--retry-for", "0"]);
        assert_eq!(done.code, Some(1), "{sqlstate}: {}", done.stderr);
        assert!(done.stderr.contains(sqlstate), "{}", done.stderr);
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "0", "{sqlstate}");
    }
}
