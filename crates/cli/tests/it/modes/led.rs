//! `--on-error skip`: records that do not go together, where one that goes has led to the other.

use super::assert_nothing_left;
use super::skip::skipping;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{MAJORS, Server, side_by_side};

/// A record that repeats a value of one which itself cannot come is good. That goes since the record that
/// would have freed its value, or that it refers to, goes.
#[test]
fn what_repeats_a_value_of_a_record_that_goes_in_the_end_comes() {
    const MERGED: &str =
        "CREATE TABLE t (id int PRIMARY KEY, u int, g text UNIQUE); INSERT INTO t VALUES (8, 77, 'e6'); ";
    let merge = ["--mode", "merge", "--key", "id"];
    let unique = format!("{MERGED} ALTER TABLE t ADD UNIQUE (u)");
    let excluded = format!("{MERGED} ALTER TABLE t ADD EXCLUDE USING btree (u WITH =)");
    let referred = "CREATE TABLE t (id int PRIMARY KEY, u int REFERENCES t, g text UNIQUE)";
    let freed = "36,77,k7\n41,64,x\n8,64,b8\n40,1,k7\n";
    // The first takes what the second gives up, which repeats another value of the first: both go.
    let circle = "36,77,k7\n8,64,k7\n41,1,x\n";
    let cases: [(&str, &[&str], &str, &str, &str); 5] = [
        (&unique, &merge, freed, "1 3", "8 77 e6, 40 1 k7, 41 64 x"),
        (&excluded, &merge, freed, "1 3", "8 77 e6, 40 1 k7, 41 64 x"),
        (&unique, &merge, circle, "1 2", "8 77 e6, 41 1 x"),
        (referred, &["--atomic"], "10,,b\n1,2,a\n2,,b\n3,,a\n", "2 3", "3  a, 10  b"),
        // Two reasons, one of which stays.
        (referred, &["--atomic"], "10,,b\n1,2,a\n2,,b\n10,,a\n", "2 3 4", "10  b"),
    ];
    let files = Files::new();
    side_by_side(MAJORS, |major| {
        for (no, (table, options, records, refused, stored)) in cases.iter().enumerate() {
            let what = format!("PostgreSQL {major}, {table}: {records}");
            let database = Server::shared(major).database();
            database.sql(table);
            let source = files.put(&format!("{major}-{no}.csv"), format!("id,u,g\n{records}").as_bytes());
            let done = skipping(&database, &source, options).run(PATIENCE).expect_code(3);
            let rejects = "SELECT string_agg(record::text, ' ' ORDER BY record) FROM howdah.reject";
            assert_eq!(database.value(rejects), *refused, "{what}\n{}", done.stderr);
            let rows = "SELECT string_agg(concat(id, ' ', u, ' ', g), ', ' ORDER BY id) FROM t";
            assert_eq!(database.value(rows), *stored, "{what}");
            assert_nothing_left(&database, &what);
        }
    });
}
