//! Random tables and files: what a check calls clean is what one COPY on the server takes, and what it calls
//! bad is what a load leaves out that goes on without bad records.
//!
//! One thing apart: a record whose key stands in an earlier record counts as bad, even if that one is bad
//! itself and a load would take this one in its place.

use super::{assert_forgotten, check, report};
use crate::scene::{Files, PATIENCE, howdah};
use fastrand::Rng;
use howdah_testkit::{Database, MAJORS, Server};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const RUNS: u64 = 12;

/// A table `t` with some of everything, rows in it, and tables that it refers to.
fn table(random: &mut Rng, major: u32) -> String {
    let mut parts: Vec<&str> = vec!["no int", "a int", "b int", "c varchar(4)", "d numeric(4,1)"];
    let mut some = |choices: &[&'static str]| -> Option<&'static str> {
        random.bool().then(|| choices[random.usize(..choices.len())])
    };
    parts.extend(some(&[
        "PRIMARY KEY (a)",
        "PRIMARY KEY (a, b)",
        "UNIQUE (a)",
        "UNIQUE (a, b) DEFERRABLE INITIALLY DEFERRED",
    ]));
    parts.extend(some(&[
        "CHECK (b < 8)",
        "CHECK (d > 0 OR c IS NULL)",
        "CHECK (8 / b > 0)",
        "CONSTRAINT \"a \"\"b\" CHECK (a <> b)",
    ]));
    parts.extend(some(&[
        "FOREIGN KEY (b) REFERENCES one",
        "FOREIGN KEY (a, b) REFERENCES two MATCH FULL",
        "FOREIGN KEY (a, b) REFERENCES two DEFERRABLE INITIALLY DEFERRED",
    ]));
    parts.extend(some(&["e int NOT NULL DEFAULT 3 CHECK (e > b)", "e date DEFAULT '2024-01-01'", "e int"]));
    parts.extend(some(&[
        "g int GENERATED ALWAYS AS (b * 2) STORED CHECK (g <> 6)",
        "g int GENERATED ALWAYS AS (6 / b) STORED NOT NULL",
    ]));
    parts.extend(some(&["CHECK (c <> 'aa')", "UNIQUE (c)"]));
    let partitioned = random.u8(..4) == 0
        && !parts.iter().any(|part| {
            part.contains("KEY (a)")
                || part.contains("UNIQUE (a)")
                || part.contains("UNIQUE (c)")
                || part.contains("DEFERRABLE INITIALLY DEFERRED") && part.contains("UNIQUE")
                || part.starts_with("g ")
        });
    let by = if partitioned { " PARTITION BY RANGE (b)" } else { "" };
    let mut sql = format!(
        "CREATE TABLE one (k bigint PRIMARY KEY); INSERT INTO one SELECT generate_series(0, 8); \
         CREATE TABLE two (k int, l int, PRIMARY KEY (k, l)); INSERT INTO two SELECT x, y FROM generate_series(0, 30) x, \
             generate_series(0, 7) y; \
         CREATE TABLE t ({}){by};",
        parts.join(", ")
    );
    if partitioned {
        sql += "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (4); \
                CREATE TABLE t_mid PARTITION OF t FOR VALUES FROM (4) TO (7);";
    }
    let mut index = vec!["(lower(c), a, b)", "(a, b) WHERE c IS NOT NULL", "(c COLLATE \"C\", a, b, d)"];
    if major >= 15 {
        index.push("(c, b, a) NULLS NOT DISTINCT");
        index.push("(b, d, c) NULLS NOT DISTINCT");
    }
    if random.bool() {
        let _ = write!(sql, "CREATE UNIQUE INDEX odd ON t {};", index[random.usize(..index.len())]);
    }
    sql + &rows_there(random)
}

/// Rows of `t`. Those that the table refuses are not there.
fn rows_there(random: &mut Rng) -> String {
    let mut sql = String::new();
    let row = |random: &mut Rng| {
        let value = |random: &mut Rng| match random.u8(..5) {
            0 => "NULL".to_owned(),
            _ => format!("'{}'", ["a", "A", "b", "cc"][random.usize(..4)]),
        };
        format!("({}, {}, {}, {})", random.u8(..40), random.u8(1..7), value(random), random.u8(1..9))
    };
    for _ in 0..10 {
        let _ = write!(
            sql,
            "DO $$ BEGIN INSERT INTO t (a, b, c, d) VALUES {}; SET CONSTRAINTS ALL IMMEDIATE; \
             EXCEPTION WHEN OTHERS THEN END $$;",
            row(random)
        );
    }
    sql
}

/// Records with a number each, some of them bad.
fn file(random: &mut Rng, rows: u64) -> String {
    let mut csv = "no,a,b,c,d\n".to_owned();
    let careless = random.u8(..3);
    for no in 1..=rows {
        let odd = |random: &mut Rng| random.u8(..60) < careless;
        let a = if odd(random) {
            "x".to_owned()
        } else {
            random.u16(..if careless == 0 { 3000 } else { 60 }).to_string()
        };
        let b = if odd(random) {
            String::new()
        } else {
            random.u8(1..if careless == 0 { 3 } else { 8 }).to_string()
        };
        let b = if odd(random) { "0".to_owned() } else { b };
        let c = ["a", "B", "", "aa", "d", "\"e\ne\""][random.usize(..6)].to_owned();
        let c = if odd(random) { "too long".to_owned() } else { c };
        let d = if odd(random) { "1e9".to_owned() } else { format!("{}.5", random.u8(1..9)) };
        let _ = writeln!(csv, "{no},{a},{b},{c},{d}");
        if odd(random) {
            let _ = writeln!(csv, "{no},{a}");
        }
    }
    csv
}

/// Places that the report tells, all if no kind has more than it tells.
fn bad(report: &Value) -> (BTreeSet<u64>, bool) {
    let findings = report["findings"].as_array().unwrap();
    let places = findings.iter().flat_map(|finding| finding["first"].as_array().unwrap());
    let records = places.map(|place| place["record"].as_u64().unwrap()).collect();
    let told = |finding: &Value| finding["first"].as_array().unwrap().len() as u64;
    (records, findings.iter().all(|finding| told(finding) == finding["records"].as_u64().unwrap()))
}

/// Bad only for repeating the key of a record that is bad itself.
fn only_repeats_bad(report: &Value, record: u64, bad: &BTreeSet<u64>) -> bool {
    let findings = report["findings"].as_array().unwrap().iter();
    let mut of_record = findings
        .flat_map(|finding| finding["first"].as_array().unwrap())
        .filter(|place| place["record"] == record);
    of_record.all(|place| place["first_record"].as_u64().is_some_and(|first| bad.contains(&first)))
}

fn rejected(database: &Database) -> BTreeSet<u64> {
    let rows = database.rows("SELECT record FROM howdah.reject");
    rows.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect()
}

fn one(major: u32, seed: u64) -> (bool, bool) {
    let mut random = Rng::with_seed(seed);
    let (sql, rows) = (table(&mut random, major), random.u64(1..60));
    let csv = file(&mut random, rows);
    let what = format!("PostgreSQL {major}, seed {seed}\n{sql}\n{csv}");
    let files = Files::new();
    let source = files.put("a.csv", csv.as_bytes());
    let database = Server::shared(major).database();
    database.sql(&sql);
    let options = ["--format", "csv", "--header"];
    let finished = check(&database, &[&source]).args(options).run(PATIENCE);
    let told = report_of(&finished, &what);
    assert_forgotten(&database);
    let (bad, all) = bad(&told);
    let copied = database
        .copy_in("COPY t (no, a, b, c, d) FROM STDIN (FORMAT csv, HEADER true)", csv.clone().into_bytes());
    // What is deferred fails behind COPY's own answer.
    let taken = copied.is_ok() && database.value("SELECT count(*) FROM t WHERE no IS NOT NULL") != "0";
    assert_eq!(finished.code == Some(0), taken, "{what}\n{copied:?}\n{told:#}");
    if taken {
        return (true, true);
    }
    howdah("load")
        .args(options)
        .args(["--on-error", "skip", "--jobs", "1", "--indexes", "keep", "--table", "t", "--quiet"])
        .args(["--to", &database.conninfo()])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(3);
    let rejected = rejected(&database);
    if all {
        assert_eq!(told["rows_bad"], bad.len() as u64, "{what}\n{told:#}");
        assert!(rejected.is_subset(&bad), "{what}\n{rejected:?} {bad:?}\n{told:#}");
        for record in bad.difference(&rejected) {
            assert!(
                only_repeats_bad(&told, *record, &bad),
                "record {record}, {what}\n{rejected:?}\n{told:#}"
            );
        }
    } else {
        assert!(
            told["rows_bad"].as_u64().unwrap() >= rejected.len() as u64,
            "{what}\n{rejected:?}\n{told:#}"
        );
    }
    (false, all)
}

fn report_of(finished: &howdah_testkit::Finished, what: &str) -> Value {
    assert!(matches!(finished.code, Some(0 | 3)), "{what}\n{}\n{}", finished.stdout, finished.stderr);
    super::told(finished)
}

#[test]
fn what_is_clean_is_what_copy_takes_and_what_is_bad_is_what_a_load_leaves_out() {
    let (mut clean, mut compared) = (0, 0);
    for major in MAJORS {
        for seed in 0..RUNS {
            let (is_clean, is_compared) = one(major, seed * 100 + u64::from(major));
            clean += u32::from(is_clean);
            compared += u32::from(is_compared && !is_clean);
        }
    }
    // Both must be there to be worth something.
    assert!(clean >= 3 && compared >= 10, "{clean} clean, {compared} bad and compared record by record");
}

#[test]
fn a_clean_file_is_clean() {
    for major in MAJORS {
        let (database, files) = (Server::shared(major).database(), Files::new());
        database
            .sql("CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL CHECK (b <> ''), c int REFERENCES t)");
        let records: String = (1..=5000).map(|no| format!("{no},b{no},{}\n", 5001 - no)).collect();
        let source = files.put("a.csv", format!("a,b,c\n{records}").as_bytes());
        let told = report(&check(&database, &[&source]), 0);
        assert_eq!(
            (&told["rows_read"], &told["rows_good"], &told["rows_bad"]),
            (&5000.into(), &5000.into(), &0.into())
        );
        assert_eq!(told["findings"].as_array().unwrap().len(), 0, "{told:#}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "0");
        assert_forgotten(&database);
    }
}
