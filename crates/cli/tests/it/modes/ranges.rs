//! Rows that come in by ranges of their key, whatever collation it has, and those that may not.

use super::{assert_nothing_left, changes, load};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{MAJORS, Server, side_by_side};
use std::fmt::Write as _;

/// Enough for several parts, with a note of this length.
const ROWS: u64 = 4_000;
const NOTE: usize = 900;

fn csv(header: &str, record: impl Fn(u64) -> String) -> Vec<u8> {
    let note = "x".repeat(NOTE);
    let mut csv = format!("{header},note\n");
    for id in 1..=ROWS {
        let _ = writeln!(csv, "{},{note}", record(id));
    }
    csv.into_bytes()
}

/// By a collation that takes `KEY1` and `key1` for the same, and by another one than the domain of the column
/// has.
#[test]
fn a_key_of_any_collation_is_cut_into_ranges() {
    let files = Files::new();
    let source = files.put("a.csv", &csv("k,v", |id| format!("key{id},{id}")));
    let kinds = [
        (
            "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            "text COLLATE ci",
        ),
        (
            "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
             CREATE DOMAIN d AS varchar(20) COLLATE ci",
            "d",
        ),
        ("CREATE DOMAIN d AS text COLLATE \"C\"", "d COLLATE \"POSIX\""),
    ];
    side_by_side(MAJORS, |major| {
        for (mode, (make, column)) in
            ["merge", "insert-new"].into_iter().flat_map(|mode| kinds.map(|kind| (mode, kind)))
        {
            let what = format!("PostgreSQL {major}, {mode}, {column}");
            let database = Server::shared(major).database();
            database.sql(&format!(
                "{make}; CREATE TABLE t (k {column} PRIMARY KEY, v int, note text); \
                 INSERT INTO t SELECT 'key' || n, 0, '' FROM generate_series(1, {ROWS} / 2) n"
            ));
            let command = load(&database, &[&source]).args(["--mode", mode, "--key", "k", "--jobs", "2"]);
            let half = ROWS / 2;
            let (done, sum) = match mode {
                "merge" => ([half, half, 0, 0, 0], ROWS * (ROWS + 1) / 2),
                _ => ([half, 0, half, 0, 0], ROWS * (ROWS + 1) / 2 - half * (half + 1) / 2),
            };
            assert_eq!(changes(&command), done, "{what}");
            assert_eq!(database.value("SELECT sum(v) FROM t"), sum.to_string(), "{what}");
            let parts =
                "SELECT count(*) > 1 AND max(rows) < sum(rows) * 0.8 FROM howdah.step WHERE name = 'part'";
            assert_eq!(database.value(parts), "t", "{what}");
            assert_nothing_left(&database, &what);
        }
    });
}

/// Constraints that a partition alone has, or that lead from a partition to the table that it is one of.
#[test]
fn what_partitions_want_to_be_known_of_all_rows_makes_one_part() {
    let files = Files::new();
    let source = files.put("a.csv", &csv("id,other", |id| format!("{id},{}", ROWS + 1 - id)));
    let partitioned = "CREATE TABLE t (id int PRIMARY KEY, other int, note text) PARTITION BY RANGE (id); \
                       CREATE TABLE leaf PARTITION OF t DEFAULT";
    let root = "CREATE TABLE root (id int PRIMARY KEY, other int, note text) PARTITION BY RANGE (id); \
                CREATE TABLE t PARTITION OF root DEFAULT";
    let tables = [
        format!(
            "{partitioned}; ALTER TABLE leaf ADD UNIQUE (other) DEFERRABLE INITIALLY DEFERRED; INSERT INTO t SELECT n, n, '' FROM generate_series(1, {ROWS}) n"
        ),
        format!(
            "{partitioned}; ALTER TABLE leaf ADD EXCLUDE (other WITH =) DEFERRABLE INITIALLY DEFERRED; INSERT INTO t SELECT n, n, '' FROM generate_series(1, {ROWS}) n"
        ),
        format!("{partitioned}; ALTER TABLE leaf ADD FOREIGN KEY (other) REFERENCES t"),
        format!(
            "{partitioned}; CREATE TABLE low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (2001); ALTER TABLE low ADD FOREIGN KEY (other) REFERENCES leaf"
        ),
        format!("{root}; ALTER TABLE root ADD FOREIGN KEY (other) REFERENCES root"),
    ];
    side_by_side(MAJORS, |major| {
        for table in &tables {
            let what = format!("PostgreSQL {major}, {table}");
            let database = Server::shared(major).database();
            database.sql(table);
            let command = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
            command.run(PATIENCE).expect_code(0);
            let rows = format!("SELECT count(*) = {ROWS} AND bool_and(other = {ROWS} + 1 - id) FROM t");
            assert_eq!(database.value(&rows), "t", "{what}");
            assert_eq!(database.value("SELECT count(*) FROM howdah.step WHERE name = 'part'"), "1", "{what}");
            assert_nothing_left(&database, &what);
        }
    });
}
