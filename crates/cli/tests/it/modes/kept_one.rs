//! `--keep first|last` with `--on-error skip`: of several records of a key the first or last counts that the
//! table takes.

use super::skip::{skipping, told};
use crate::scene::{Files, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{Database, Server};
use std::collections::BTreeSet;
use std::fmt::Write as _;

type Records = Vec<(u32, u32)>;

/// Records of a key and another value that is unique: all of one key may be refused, but where one is taken,
/// the key is there.
fn loaded(database: &Database, there: &Records, records: &Records, keep: &str, more: &[&str]) -> Records {
    let files = Files::new();
    let mut csv = "k,u\n".to_owned();
    records.iter().for_each(|(key, value)| writeln!(csv, "{key},{value}").unwrap());
    let source = files.put("a.csv", csv.as_bytes());
    database.sql("DROP SCHEMA IF EXISTS howdah CASCADE; DROP TABLE IF EXISTS t; CREATE TABLE t (k int PRIMARY KEY, u int UNIQUE)");
    for (key, value) in there {
        database.sql(&format!("INSERT INTO t VALUES ({key}, {value})"));
    }
    let options = [&["--key", "k", "--keep", keep], more].concat();
    let done = skipping(database, &source, &options).run(PATIENCE);
    let what = format!("{there:?} {records:?} {options:?} {:?} {}", done.code, done.stderr);
    let summary = told(&done);
    let numbers = |sql: &str| -> Vec<usize> {
        database.rows(sql).into_iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect()
    };
    let rejected: BTreeSet<usize> = numbers("SELECT record FROM howdah.reject").into_iter().collect();
    assert_eq!(done.code, Some(if rejected.is_empty() { 0 } else { 3 }), "{what}");
    let stored: Records = numbers("SELECT k FROM t ORDER BY k")
        .into_iter()
        .zip(numbers("SELECT u FROM t ORDER BY k"))
        .map(|(key, value)| (u32::try_from(key).unwrap(), u32::try_from(value).unwrap()))
        .collect();
    let kept: Vec<(usize, (u32, u32))> =
        (1..).zip(records.iter().copied()).filter(|(no, _)| !rejected.contains(no)).collect();
    let keys: BTreeSet<u32> = kept.iter().map(|(_, (key, _))| *key).collect();
    for key in &keys {
        let mut of_key = kept.iter().map(|(_, record)| *record).filter(|record| record.0 == *key);
        let counts = if keep == "first" { of_key.next() } else { of_key.next_back() }.unwrap();
        let was_there = more.contains(&"insert-new") && there.iter().any(|row| row.0 == *key);
        assert!(was_there || stored.contains(&counts), "{counts:?} of {stored:?}: {what}");
    }
    let duplicates = (kept.len() - keys.len()) as u64;
    assert_eq!(summary["tables"][0]["changes"]["duplicates"], duplicates, "{what}");
    stored
}

#[test]
fn behind_a_record_that_is_left_out_the_next_one_of_its_key_counts() {
    let database = Server::shared(15).database();
    for mode in ["merge", "insert-new"] {
        for atomic in [&[][..], &["--atomic"]] {
            let more = [&["--mode", mode], atomic].concat();
            let load = |there: Records, records: Records, keep: &str| {
                loaded(&database, &there, &records, keep, &more)
            };
            assert_eq!(load(vec![], vec![(4, 8), (1, 8), (1, 7)], "first"), [(1, 7), (4, 8)]);
            assert_eq!(load(vec![], vec![(1, 5), (2, 1), (2, 5)], "last"), [(1, 5), (2, 1)]);
            // A record that does not count meets nothing.
            assert_eq!(load(vec![(9, 6)], vec![(2, 1), (2, 6)], "first"), [(2, 1), (9, 6)]);
            assert_eq!(load(vec![(9, 6)], vec![(2, 1), (2, 6)], "last"), [(2, 1), (9, 6)]);
        }
    }
    let mut random = Rng::with_seed(20_261_130);
    for _ in 0..24 {
        let mut draw =
            |count: usize| -> Records { (0..count).map(|_| (random.u32(0..5), random.u32(0..7))).collect() };
        let (rows, records) = (draw(3), draw(12));
        let mut there = Records::new();
        for row in rows {
            if there.iter().all(|other| other.0 != row.0 && other.1 != row.1) {
                there.push(row);
            }
        }
        let keep = ["first", "last"][random.usize(..2)];
        let mode = ["merge", "insert-new"][random.usize(..2)];
        let atomic: &[&str] = if random.bool() { &["--atomic"] } else { &[] };
        loaded(&database, &there, &records, keep, &[&["--mode", mode], atomic].concat());
    }
}
