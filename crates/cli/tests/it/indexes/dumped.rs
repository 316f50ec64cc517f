//! A database is dumped behind a killed load and restored: tables have other OIDs there, and lack what the
//! load has dropped.

use super::{CHUNKS, PLAIN_SCHEMA, load, open_entries, restore, schema, wait_for};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Database, Server};
use std::path::Path;
use std::process::Command;

const TUNED: &str = "SELECT count(*) FROM howdah.tuned WHERE undone_at IS NULL";

/// A database that a killed load has left, and what it was before.
fn left_by_a_killed_load(server: &Server) -> (Database, String) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(61, 1, 5000));
    let database = server.database();
    database.sql(PLAIN_SCHEMA);
    database.sql("CREATE SCHEMA \"it's\"; CREATE TABLE \"it's\".parent (part integer PRIMARY KEY)");
    database.sql("INSERT INTO \"it's\".parent SELECT generate_series(0, 255)");
    database.sql("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES \"it's\".parent");
    let before = schema(&database);
    shut_gate_behind(&database, 1);
    let load = load(&database, &source).args(["--indexes", "rebuild", "--tune", "table"]);
    let mut running = load.args(["--chunk-size", "64kB", "--jobs", "2"]).spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
    running.kill();
    remove_gate(&database);
    assert!(open_entries(&database) > 3);
    assert_eq!(database.value(TUNED), "2");
    (database, before)
}

pub(crate) fn dumped_into(from: &Database, to: &Database) {
    dumped_with(&[], from, to);
}

fn dumped_with(options: &[&str], from: &Database, to: &Database) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/psql/bin");
    let dump = Command::new(folder.join("pg_dump"))
        .args(["--dbname", &from.conninfo()])
        .args(options)
        .output()
        .unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let files = Files::new();
    let script = files.put("dump.sql", &dump.stdout);
    let psql = Command::new(folder.join("psql"))
        .args(["--quiet", "--no-psqlrc", "--dbname", &to.conninfo(), "--file"])
        .arg(script)
        .output()
        .unwrap();
    assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
}

#[test]
fn what_a_killed_load_has_dropped_is_put_back_in_a_database_restored_from_a_dump() {
    for major in [13, 18] {
        let server = Server::shared(major);
        let (database, before) = left_by_a_killed_load(server);
        let copy = server.database();
        // Other tables have the OIDs that the journal names, or may have.
        copy.sql("CREATE SCHEMA earlier; CREATE TABLE earlier.t (id bigint); DROP SCHEMA earlier CASCADE");
        dumped_into(&database, &copy);
        let told = restore(&copy).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("has come from another database: tables are found by their names"), "{told}");
        assert_eq!(schema(&copy), before, "PostgreSQL {major}\n{told}");
        assert_eq!((open_entries(&copy), copy.value(TUNED).as_str()), (0, "0"));
        // The dump of a dump, and a table that has not come along.
        let second = server.database();
        dumped_into(&database, &second);
        second.sql("DROP TABLE t");
        let told = restore(&second).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the index t_note of public.t is not put back: the table is gone"), "{told}");
        let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("another database"), "{told}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
    }
}

#[test]
fn a_ledger_that_was_copied_without_its_rows_is_a_new_one() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(62, 1, 100));
    let server = Server::shared(15);
    let database = server.database();
    database.sql(PLAIN_SCHEMA);
    load(&database, &source).run(PATIENCE).expect_code(0);
    let copy = server.database();
    dumped_with(&["--schema-only"], &database, &copy);
    load(&copy, &source).run(PATIENCE).expect_code(0);
    assert_eq!(copy.value("SELECT count(*) FROM t"), "100");
    load(&copy, &source).run(PATIENCE).expect_code(1);
    // A table of it that another version has made otherwise, or that is no ledger's.
    let other = server.database();
    dumped_with(&["--schema-only"], &database, &other);
    other.sql("ALTER TABLE howdah.job ADD COLUMN later integer");
    let told = load(&other, &source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("DROP SCHEMA \"howdah\" CASCADE"), "{told}");
}
