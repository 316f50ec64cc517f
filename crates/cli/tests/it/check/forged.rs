//! A ledger that is shared, in which somebody calls tables of others those of a check.

use super::check;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server};
use std::path::PathBuf;

/// A ledger, a role that may write to it as a load must, and tables that are no business of any load's.
fn prepared(major: u32) -> (Database, PathBuf, Files) {
    let (database, files) = (Server::shared(major).database(), Files::new());
    let mallory = format!("mallory_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
         CREATE TABLE orders AS SELECT 1 AS id; CREATE ROLE {mallory} LOGIN"
    ));
    let source = files.put("a.csv", &csv(1, 1, 30));
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--job-id", "honest"]);
    load.arg(&source).run(PATIENCE).expect_code(0);
    database.sql(&format!(
        "GRANT USAGE ON SCHEMA howdah TO {mallory}; GRANT SELECT, INSERT, UPDATE ON howdah.job, howdah.undo TO {mallory}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA howdah TO {mallory}"
    ));
    (database, files.put("b.csv", &csv(2, 31, 30)), files)
}

/// The job is begun, and has made the table, as she says.
fn forge(database: &Database, job: &str, is_check: bool, schema: &str, name: &str, oid: &str) {
    database.sql(&format!(
        "SET ROLE mallory_{}; \
         INSERT INTO howdah.job (job_id, work_key, status, plan, howdah_version) \
         SELECT '{job}', '{job}', 'running', jsonb_set(plan, '{{job,arrival,check}}', '{is_check}'), howdah_version \
         FROM howdah.job WHERE job_id = 'honest'; \
         INSERT INTO howdah.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, ledger_oid) \
         VALUES ('{job}', 'staging', '{schema}', '{name}', '{oid}'::regclass, '{name}', 'public.t', \
                 '{{DROP TABLE public.orders}}', 'howdah.undo'::regclass)",
        database.name()
    ));
}

#[test]
fn no_table_is_dropped_that_a_forged_check_names() {
    for major in MAJORS {
        for verb in ["check", "load", "restore"] {
            let (database, source, _files) = prepared(major);
            let digest = database.value("SELECT left(encode(sha256('three'), 'hex'), 16)");
            forge(&database, "one", true, "public", "orders", "public.orders");
            database.sql("CREATE TABLE public.check_a AS SELECT 2 AS id");
            forge(&database, "two", true, "public", "check_a", "public.check_a");
            // The right name and another table.
            database.sql(&format!("CREATE TABLE howdah.check_{digest}_0 AS SELECT 3 AS id"));
            forge(&database, "three", true, "howdah", &format!("check_{digest}_0"), "public.orders");
            let run = match verb {
                "check" => check(&database, &[&source]),
                "load" => howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).arg(&source),
                _ => howdah("restore").args(["--to", &database.conninfo(), "--ledger", "howdah"]),
            };
            let done = run.run(PATIENCE).expect_code(0);
            for (job, table) in [
                ("one", "public.orders"),
                ("two", "public.check_a"),
                ("three", &format!("howdah.check_{digest}_0")),
            ] {
                let rows = database.value(&format!("SELECT count(*) FROM {table}"));
                assert_eq!(rows, "1", "PostgreSQL {major}, {verb}");
                let told = format!(
                    "the ledger says that {job}, a check, has made the table {table}, which it has not"
                );
                let is_told = done.stderr.contains(&told);
                assert!(is_told || verb != "restore", "PostgreSQL {major}\n{}", done.stderr);
            }
            if verb == "restore" {
                let left = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
                assert_eq!(database.value(left), "0", "PostgreSQL {major}");
            }
        }
        let (database, ..) = prepared(major);
        forge(&database, "one", false, "public", "orders", "public.orders");
        let restore = howdah("restore").args(["--to", &database.conninfo(), "--ledger", "howdah"]);
        let refused = restore.run(PATIENCE).expect_code(1).stderr;
        assert!(
            refused.contains("says that job one has made the table public.orders: no job gives"),
            "{refused}"
        );
        assert_eq!(database.value("SELECT count(*) FROM orders"), "1", "PostgreSQL {major}");
        // What went with a staging table that is gone.
        let digest = database.value("SELECT left(encode(sha256('one'), 'hex'), 16)");
        database.sql(&format!(
            "UPDATE howdah.undo SET schema_name = 'howdah', table_name = 'staging_{digest}_0', table_oid = 1, \
             statements = '{{DROP TABLE IF EXISTS public.orders}}' WHERE job_id = 'one'"
        ));
        restore.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM orders"), "1", "PostgreSQL {major}");
    }
}
