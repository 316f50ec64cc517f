//! `--on-error skip` where rows wait in staging tables: a record whose entry in an index would be too long is
//! left out as any other that the table refuses.

use super::assert_nothing_left;
use super::skip::{skipping, told};
use crate::scene::{Files, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{MAJORS, Server};

const WAYS: [&[&str]; 4] = [
    &["--atomic"],
    &["--mode", "merge", "--key", "id"],
    &["--mode", "insert-new", "--key", "id"],
    &["--mode", "replace"],
];

#[test]
fn a_record_with_an_entry_that_is_too_long_does_not_come() {
    let mut rng = Rng::with_seed(7);
    let mut letters = |count: usize| (0..count).map(|_| rng.alphanumeric()).collect::<String>();
    let csv = format!("id,note\n1,{}\n2,{}\n3,{}\n4,short\n", letters(2000), letters(9000), "a".repeat(9000));
    let files = Files::new();
    let source = files.put("a.csv", csv.as_bytes());
    for (major, index) in MAJORS.into_iter().zip(["(note)", "USING spgist (note)", "(id) INCLUDE (note)"]) {
        for way in WAYS {
            let database = Server::shared(major).database();
            database
                .sql(&format!("CREATE TABLE t (id int PRIMARY KEY, note text); CREATE INDEX ON t {index}"));
            let one_by_one: Vec<String> = csv
                .lines()
                .skip(1)
                .filter(|record| {
                    let (id, note) = record.split_once(',').unwrap();
                    database.try_sql(&format!("INSERT INTO t VALUES ({id}, '{note}')")).is_err()
                })
                .map(|record| record.split_once(',').unwrap().0.to_owned())
                .collect();
            database.sql("TRUNCATE t");
            let done = skipping(&database, &source, way).run(PATIENCE);
            let what = format!("PostgreSQL {major} {index} {way:?}: {}", done.stderr);
            let rejected = database.rows("SELECT record, sqlstate FROM howdah.reject ORDER BY record");
            let refused: Vec<_> =
                one_by_one.iter().map(|id| [Some(id.clone()), Some("54000".into())]).collect();
            assert_eq!(rejected, refused, "{what}");
            let summary = told(&done.expect_code(if one_by_one.is_empty() { 0 } else { 3 }));
            assert_eq!(summary["rows_stored"], 4 - one_by_one.len() as u64, "{what}");
            assert_nothing_left(&database, &what);
        }
    }
}
