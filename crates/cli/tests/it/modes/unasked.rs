//! `--on-error skip` and `howdah check` demand what the server demands, and no more.

use super::load;
use super::skip::{skipping, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Server};
use std::path::Path;

fn check(database: &Database, source: &Path, code: i32) -> String {
    let check =
        howdah("check").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv", "--header"]);
    check.arg(source).run(PATIENCE).expect_code(code).stdout
}

#[test]
fn a_foreign_key_whose_trigger_does_not_fire_refuses_nothing() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,boss\n1,1\n2,9\n");
    for (major, is_replica) in [(13, false), (18, false), (15, true)] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1); \
             CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES boss)",
        );
        match is_replica {
            true => {
                let name = database.name();
                database.sql(&format!("ALTER DATABASE {name} SET session_replication_role = replica"));
            }
            false => database.sql("ALTER TABLE t DISABLE TRIGGER ALL"),
        }
        check(&database, &source, 0);
        skipping(&database, &source, &["--atomic"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), "2", "PostgreSQL {major}");
        // A new table's foreign keys look at all rows when they are added.
        if is_replica {
            let replacing = skipping(&database, &source, &["--mode", "replace", "--force"]);
            replacing.run(PATIENCE).expect_code(3);
            assert_eq!(database.value("SELECT count(*) FROM t"), "1", "PostgreSQL {major}");
        }
    }
}

#[test]
fn rows_that_led_nowhere_before_are_merged() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,boss,v\n1,9,new\n2,8,new\n3,7,new\n4,1,new\n");
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1); \
             CREATE TABLE t (id int PRIMARY KEY, boss int, v text); INSERT INTO t VALUES (1, 9, 'old'), (2, 9, 'old'); \
             ALTER TABLE t ADD CONSTRAINT led FOREIGN KEY (boss) REFERENCES boss NOT VALID",
        );
        let skip = skipping(&database, &source, &["--mode", "merge", "--key", "id"]);
        let done = skip.run(PATIENCE).expect_code(3);
        assert_eq!(told(&done)["rows_rejected"], 2, "{}", done.stdout);
        assert_eq!(
            database.value("SELECT string_agg(t::text, ' ' ORDER BY id) FROM t"),
            "(1,9,new) (2,9,old) (4,1,new)",
            "PostgreSQL {major}"
        );
    }
}

#[test]
fn columns_that_are_computed_when_they_are_read_refuse_nothing() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,total,qty\n1,5,0\n2,6,3\n");
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, total numeric, qty int, unit numeric GENERATED ALWAYS AS (total / qty) VIRTUAL)",
    );
    check(&database, &source, 0);
    for mode in [&["--atomic"][..], &["--mode", "merge", "--key", "id"]] {
        database.sql("TRUNCATE t");
        skipping(&database, &source, mode).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT sum(qty) FROM t"), "3", "{mode:?}");
    }
    // A CHECK is looked at when they are stored.
    database.sql("TRUNCATE t; ALTER TABLE t ADD CHECK (unit < 100)");
    let refused =
        load(&database, &[&source]).args(["--force", "--atomic"]).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("22012"), "{refused}");
    check(&database, &source, 3);
    skipping(&database, &source, &["--atomic", "--force"]).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT id FROM t"), "2");
}

#[test]
fn an_empty_range_is_told_where_a_key_without_overlaps_takes_none() {
    let files = Files::new();
    let source = files.put("a.csv", b"room,during\n1,\"[2026-01-01,2026-01-05)\"\n1,empty\n2,empty\n");
    let database = Server::shared(18).database();
    database.sql(
        "CREATE EXTENSION IF NOT EXISTS btree_gist; \
         CREATE TABLE t (room int, during daterange, PRIMARY KEY (room, during WITHOUT OVERLAPS))",
    );
    assert!(check(&database, &source, 3).contains("23514"));
    let done = skipping(&database, &source, &["--atomic"]).run(PATIENCE).expect_code(3);
    assert_eq!(told(&done)["rows_rejected"], 2, "{}", done.stdout);
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
    let kept = "SELECT string_agg(DISTINCT sqlstate || ' ' || message, ',') FROM howdah.reject";
    assert_eq!(
        database.value(kept),
        "23514 violates key t_pkey WITHOUT OVERLAPS, which takes no empty range"
    );
}

#[test]
fn a_check_that_is_not_valid_refuses_no_row_that_stays_as_it_is() {
    let files = Files::new();
    let unchanged = files.put("same.csv", b"id,qty\n1,-1\n");
    let source = files.put("a.csv", b"id,qty\n1,-1\n2,-3\n3,5\n4,-4\n");
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id numeric PRIMARY KEY, qty int, note text DEFAULT 'new', twice int GENERATED ALWAYS AS (qty * 2) STORED); \
             INSERT INTO t VALUES (1.0, -1, 'a'), (2, -2, 'b'), (3, 3, 'c'); \
             ALTER TABLE t ADD CONSTRAINT positive CHECK (qty > 0) NOT VALID",
        );
        for (source, code) in [(&unchanged, 0), (&source, 3)] {
            let check =
                howdah("check").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
            check
                .args(["--header", "--mode", "merge", "--key", "id"])
                .arg(source)
                .run(PATIENCE)
                .expect_code(code);
        }
        let skip = skipping(&database, &source, &["--mode", "merge", "--key", "id"]);
        let done = skip.run(PATIENCE).expect_code(3);
        assert_eq!(told(&done)["rows_rejected"], 2, "{}", done.stdout);
        assert_eq!(
            database.value("SELECT string_agg(t::text, ' ' ORDER BY id) FROM t"),
            "(1.0,-1,a,-2) (2,-2,b,-4) (3,5,c,10)",
            "PostgreSQL {major}"
        );
    }
}
