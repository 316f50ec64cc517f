//! Each reason for which a table refuses a record.

use super::{assert_forgotten, check, places, report, state};
use crate::scene::{CASELESS_SQL, Files, gzip};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::collections::BTreeSet;

const ROWS: u64 = 20_000;

/// Record, SQLSTATE, column, constraint, and the record itself.
type Bad = (u64, &'static str, Option<&'static str>, Option<&'static str>, &'static [u8]);

/// Every reason there is, and where it stands.
const BAD: &[Bad] = &[
    (1, "22P02", Some("id"), None, b"one,ann,1.5,2024-01-01,1,"),
    (17, "22P04", Some("code"), None, b"17,bob,1.5,2024-01-01,1"),
    (18, "22P04", None, None, b"18,bob,1.5,2024-01-01,1,,more"),
    (500, "22021", Some("name"), None, b"500,b\xffb,1.5,2024-01-01,1,"),
    (501, "22021", Some("name"), None, b"501,b\x00b,1.5,2024-01-01,1,"),
    (2000, "22003", Some("id"), None, b"99999999999,ann,1.5,2024-01-01,1,"),
    (2001, "22001", Some("name"), None, b"2001,\"too\nlong a name\",1.5,2024-01-01,1,"),
    (3000, "23502", Some("name"), None, b"3000,,1.5,2024-01-01,1,"),
    (4000, "23514", None, Some("positive"), b"4000,ann,-1.5,2024-01-01,1,"),
    (5000, "23505", None, Some("t_pkey"), b"4999,ann,1.5,2024-01-01,1,"),
    (5001, "23505", None, Some("t_pkey"), b"900001,ann,1.5,2024-01-01,1,"),
    (6000, "23503", None, Some("has_boss"), b"6000,ann,1.5,2024-01-01,77,"),
    (7000, "22008", Some("day"), None, b"7000,ann,1.5,2024-02-30,1,"),
    (7001, "22007", Some("day"), None, b"7001,ann,1.5,tomorrow or so,1,"),
    (8001, "23505", None, Some("code_key"), b"8001,ann,1.5,2024-01-01,1,Taken"),
    (8003, "23505", None, Some("code_key"), b"8003,ann,1.5,2024-01-01,1,NEW"),
    (9000, "23514", None, Some("small"), b"900000,ann,1.5,2024-01-01,1,"),
    (9001, "23514", None, Some("even"), b"9001,ann,1.5,2024-01-01,1,odd"),
    (20_000, "22P02", Some("amount"), None, b"20000,ann,1.5x,2024-01-01,1,"),
];

/// This one has two reasons.
const TWICE: (u64, &str) = (5002, "5002,ann,-1,2024-01-01,78,");

fn record(id: u64) -> Vec<u8> {
    match BAD.iter().find(|(record, ..)| *record == id) {
        Some((.., bytes)) => bytes.to_vec(),
        None if id == TWICE.0 => TWICE.1.into(),
        None if id == 8002 => b"8002,ann,1.5,2024-01-01,1,new".to_vec(),
        // What the index leaves out may be there twice.
        None if id > 8100 && id < 8110 => format!("{id},ann,1.5,2024-01-01,1,free").into_bytes(),
        None => format!("{id},\"n\n{}\",1.5,2024-01-{:02},1,", id % 10, id % 28 + 1).into_bytes(),
    }
}

fn records() -> Vec<u8> {
    let mut text = b"id,name,amount,day,boss,code\n".to_vec();
    for id in 1..=ROWS {
        text.extend(record(id));
        text.push(b'\n');
    }
    text
}

/// A table that has a reason to refuse each of them.
fn make_table(database: &Database) {
    database.sql(
        "CREATE TABLE boss (id int PRIMARY KEY);
         INSERT INTO boss VALUES (1);
         CREATE FUNCTION is_even(text) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT $1 <> 'odd' $$;
         CREATE TABLE t (id int PRIMARY KEY, name varchar(10) NOT NULL, amount numeric CONSTRAINT positive CHECK (amount > 0),
             day date, boss int CONSTRAINT has_boss REFERENCES boss DEFERRABLE INITIALLY DEFERRED,
             code text CONSTRAINT even CHECK (is_even(code)), made timestamptz NOT NULL DEFAULT now(),
             twice bigint GENERATED ALWAYS AS (id::bigint * 2) STORED CONSTRAINT small CHECK (twice NOT IN (1800000)));
         CREATE UNIQUE INDEX code_key ON t (lower(code)) WHERE code <> 'free';
         INSERT INTO t VALUES (900001, 'old', 1, '2024-01-01', 1, 'taken');",
    );
}

fn expected() -> BTreeSet<super::Told> {
    let own = |text: Option<&str>| text.map(str::to_owned);
    let mut expected: BTreeSet<super::Told> = BAD
        .iter()
        .map(|(record, sqlstate, column, constraint, _)| {
            ((*sqlstate).to_owned(), own(*column), own(*constraint), Some(*record))
        })
        .collect();
    for (sqlstate, constraint) in [("23514", "positive"), ("23503", "has_boss")] {
        expected.insert((sqlstate.to_owned(), None, own(Some(constraint)), Some(TWICE.0)));
    }
    expected
}

fn tells_every_kind(major: u32, name: &str, options: &[&str]) {
    let (files, plain) = (Files::new(), records());
    let bytes = if name.ends_with(".gz") { gzip(&plain) } else { plain.clone() };
    let source = files.put(name, &bytes);
    let database = Server::shared(major).database();
    make_table(&database);
    let before = state(&database);
    let told = report(&check(&database, &[&source]).args(options), 3);
    let what = format!("PostgreSQL {major}, {name} {options:?}: {told:#}");
    let bad = if options.is_empty() {
        // Without a word about the encoding, a byte that is none of UTF-8 makes it another one.
        let records =
            |told: BTreeSet<super::Told>| told.into_iter().map(|told| told.3).collect::<BTreeSet<_>>();
        let mut expected = records(expected());
        expected.remove(&Some(500));
        assert_eq!(records(places(&told)), expected, "{what}");
        BAD.len() as u64
    } else {
        assert_eq!(places(&told), expected(), "{what}");
        BAD.len() as u64 + 1
    };
    assert_eq!(told["rows_read"], ROWS, "{what}");
    assert_eq!(told["rows_bad"], bad, "{what}");
    assert_eq!(told["rows_good"], ROWS - bad, "{what}");
    assert_eq!(told["not_checked"].as_array().unwrap().len(), 0, "{what}");
    for finding in told["findings"].as_array().unwrap() {
        for place in finding["first"].as_array().unwrap() {
            let (record, byte) = (place["record"].as_u64().unwrap(), place["byte"].as_u64());
            if let Some(byte) = byte {
                assert!(plain[byte as usize..].starts_with(&self::record(record)), "record {record}: {what}");
            } else {
                assert!(name.ends_with(".gz"), "record {record} has no byte: {what}");
            }
        }
    }
    assert_eq!(state(&database), before);
    assert_forgotten(&database);
}

#[test]
fn every_kind_of_error_is_told_with_its_place() {
    for major in MAJORS {
        tells_every_kind(major, "a.csv", &["--format", "csv", "--header"]);
    }
}

#[test]
fn every_kind_of_error_is_found_in_files_of_any_make() {
    tells_every_kind(15, "a.csv", &[]);
    tells_every_kind(15, "a.csv.gz", &["--format", "csv", "--header"]);
}

/// Repeated is what the index takes for one value: `a` and `A` of `ci`, which are two to their type, and not
/// 1.0 and 1.00 of `record_image_ops`, which are one.
#[test]
fn records_of_one_key_are_found_by_the_operators_of_the_index() {
    let files = Files::new();
    let source =
        files.put("a.csv", b"id,k,n\n1,a,(1.0)\n2,b,(1.00)\n3,A,(2)\n4,c,(1.00)\n5,,\n6,,\n7,a,(3)\n");
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        database.sql(CASELESS_SQL);
        database.sql(
            "CREATE TYPE n AS (a numeric); CREATE TABLE t (id int, k text, n n); \
             CREATE UNIQUE INDEX by_k ON t (k ci, (id > 0)); CREATE UNIQUE INDEX by_n ON t (n record_image_ops)",
        );
        let found = places(&report(&check(&database, &[&source]), 3));
        let expected = [(3, "by_k"), (7, "by_k"), (4, "by_n")]
            .map(|(record, index)| ("23505".to_owned(), None, Some(index.to_owned()), Some(record)));
        assert_eq!(found, BTreeSet::from(expected), "PostgreSQL {major}");
    });
}

/// The same says which records count where several have one key.
#[test]
fn records_that_do_not_count_are_known_by_the_operators_of_the_index() {
    let files = Files::new();
    let caseless = files.put("a.csv", b"k,u\na,1\nA,2\nb,1\n");
    let images = files.put("b.csv", b"k,u\n(1.0),1\n(1.00),2\n(2),2\n");
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        database.sql(CASELESS_SQL);
        database.sql("CREATE TYPE n AS (a numeric)");
        for (key, source, keep, code) in
            [("text ci", &caseless, "last", 0), ("n record_image_ops", &images, "first", 3)]
        {
            let (column, class) = key.split_once(' ').unwrap();
            database.sql(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (k {column}, u int UNIQUE); CREATE UNIQUE INDEX ON t (k {class})"
            ));
            let merge = ["--mode", "merge", "--key", "k", "--keep", keep];
            let found = places(&report(&check(&database, &[source]).args(merge), code));
            let expected =
                (code == 3).then(|| ("23505".to_owned(), None, Some("t_u_key".to_owned()), Some(3)));
            assert_eq!(found, expected.into_iter().collect(), "PostgreSQL {major}, {key}");
        }
    });
}
