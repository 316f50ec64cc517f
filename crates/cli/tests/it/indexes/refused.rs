//! Rows that contradict a key which was not there to refuse them, and things put back by hand.

use super::{PLAIN_SCHEMA, load, open_entries, restore, schema};
use crate::scene::{Files, PATIENCE, csv, howdah, run_told};
use howdah_testkit::{Database, MAJORS, Server};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: u64 = 500;

/// A file with one id twice.
fn doubled(files: &Files) -> PathBuf {
    let mut bytes = csv(12, 1, ROWS);
    bytes.extend_from_slice(b"17,1,1.00,again\n");
    files.put("a.csv", &bytes)
}

fn rebuild(database: &Database, source: &Path) -> howdah_testkit::Finished {
    load(database, source).args(["--indexes", "rebuild"]).run(PATIENCE)
}

#[test]
fn duplicates_leave_the_rows_in_and_name_the_key_and_the_way_out() {
    let files = Files::new();
    let source = doubled(&files);
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(PLAIN_SCHEMA);
        let before = schema(&database);
        let finished = rebuild(&database, &source).expect_code(1);
        let told = &finished.stderr;
        let job = database.value("SELECT job_id FROM howdah.job");
        assert!(
            told.contains("error: the index t_pkey of public.t cannot be put back: several rows of the table have the same key (SQLSTATE 23505)"),
            "{told}"
        );
        assert!(
            told.contains(&format!("then `howdah restore {job} --to 'dbname={} ", database.name())),
            "{told}"
        );
        let error = told.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(!error.contains("17"), "no values: {error}");
        assert!(told.contains("; what comes after the rows is not done"), "{told}");
        // The other indexes are back, and the ledger knows what is not.
        assert_eq!(open_entries(&database), 2);
        assert_eq!(database.value("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"), "2");
        assert_eq!(database.value("SELECT status FROM howdah.job"), "failed");
        let status =
            howdah("status").args(["--to", &database.conninfo()]).arg(&job).run(PATIENCE).expect_code(0);
        assert!(
            status.stdout.contains("changed and not put back yet: the index t_pkey of public.t"),
            "{}",
            status.stdout
        );
        // Another job is told.
        let other = files.put("b.csv", &csv(13, 10_000, 10));
        let told = load(&database, &other).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains(&format!("job {job} has dropped t_pkey of public.t")), "{told}");
        restore(&database).run(PATIENCE).expect_code(1);
        database.sql("DELETE FROM t WHERE id = 17 AND note = 'again'");
        let restored = restore(&database).arg(&job[..6]).run(PATIENCE).expect_code(0);
        assert!(restored.stderr.contains("the constraint t_pkey of public.t is back"), "{}", restored.stderr);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert!(restore(&database).run(PATIENCE).expect_code(0).stderr.contains("nothing to put back"));
        // The job itself is finished by running it again, without a row twice.
        let told = rebuild(&database, &source).expect_code(0).stderr;
        assert!(!told.contains("dropped from"), "nothing was to come: {told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS + 10).to_string());
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
    }
}

/// Typed in another shell, where nothing names the server.
#[test]
fn the_command_that_is_told_leads_to_the_server_and_ledger_of_the_load() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(18).database();
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    let load = load(&database, &source).args([
        "--indexes",
        "rebuild",
        "--job-id",
        "night load",
        "--ledger",
        "books",
    ]);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    let command = told.split('`').find(|text| text.starts_with("howdah restore"));
    let command =
        command.unwrap_or_else(|| panic!("{told}")).replacen("howdah", env!("CARGO_BIN_EXE_howdah"), 1);
    database.sql("DELETE FROM t WHERE note = 'again'");
    let typed = Command::new("sh").args(["-c", &command]).env_clear().output().unwrap();
    let said = String::from_utf8_lossy(&typed.stderr);
    assert!(said.contains("the constraint t_pkey of public.t is back"), "{command}\n{said}");
    let schema = schema(&database);
    assert!(before.lines().all(|line| schema.contains(line)), "{schema}");
}

#[test]
fn a_row_without_its_counterpart_leaves_the_foreign_key_there_but_not_valid() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(14, 1, ROWS));
    let database = Server::shared(15).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; CREATE TABLE parent (part integer PRIMARY KEY); INSERT INTO parent SELECT generate_series(100, 255); \
         ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parent"
    ));
    let before = schema(&database);
    let told = rebuild(&database, &source).expect_code(1).stderr;
    assert!(
        told.contains("the foreign key f of public.t holds for new rows, but rows are in the table"),
        "{told}"
    );
    assert_eq!(database.value("SELECT convalidated FROM pg_constraint WHERE conname = 'f'"), "f");
    database.sql("INSERT INTO parent SELECT generate_series(0, 99)");
    restore(&database).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
}

#[test]
fn what_was_put_back_by_hand_is_recognised_and_something_else_of_its_name_is_not_touched() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(18).database();
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    rebuild(&database, &source).expect_code(1);
    database.sql("CREATE INDEX t_pkey ON t (amount)");
    let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("the index t_pkey of public.t cannot be put back: another one of this name is there"),
        "{told}"
    );
    assert!(told.contains("hint: drop or rename it, then `howdah restore"), "{told}");
    database.sql("DROP INDEX t_pkey; DELETE FROM t WHERE note = 'again'; ALTER TABLE t ADD PRIMARY KEY (id)");
    let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the constraint t_pkey of public.t is there already, as it was"), "{told}");
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
}

/// What a schema says, in any order.
fn sayings(schema: &str) -> Vec<&str> {
    let mut lines: Vec<&str> =
        schema.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_somebody_has_set_meanwhile_stays_and_what_a_key_that_is_back_lacks_is_put_back() {
    let files = Files::new();
    let source = doubled(&files);
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "{PLAIN_SCHEMA}; CREATE UNIQUE INDEX t_twice ON t ((id * 2)); ALTER INDEX t_twice ALTER COLUMN 1 SET STATISTICS 77; \
             COMMENT ON INDEX t_twice IS 'old'; COMMENT ON INDEX t_pkey IS 'the index'; COMMENT ON CONSTRAINT t_pkey ON t IS 'the key'; \
             ALTER TABLE t CLUSTER ON t_twice; ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey"
        ));
        let before = schema(&database);
        rebuild(&database, &source).expect_code(1);
        database.sql(
            "DELETE FROM t WHERE note = 'again'; ALTER TABLE t ADD PRIMARY KEY (id); CREATE UNIQUE INDEX t_twice ON t ((id * 2)); \
             COMMENT ON INDEX t_twice IS 'new'; ALTER TABLE t CLUSTER ON t_part; ALTER TABLE t REPLICA IDENTITY FULL",
        );
        let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
        assert!(
            told.contains(
                "the marks of the index t_twice of public.t: what somebody has set instead meanwhile stays"
            ),
            "{told}"
        );
        let expected = before
            .replace("'old'", "'new'")
            .replace("CLUSTER ON t_twice", "CLUSTER ON t_part")
            .replace("REPLICA IDENTITY USING INDEX t_pkey", "REPLICA IDENTITY FULL");
        assert_eq!(sayings(&schema(&database)), sayings(&expected), "PostgreSQL {major}");
        assert_eq!(open_entries(&database), 0);
    }
}

#[test]
fn a_table_that_is_gone_or_renamed_is_told() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    rebuild(&database, &source).expect_code(1);
    database.sql("ALTER TABLE t RENAME TO moved");
    let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("the table public.t is now public.moved"), "{told}");
    database.sql("DROP TABLE moved; CREATE TABLE t (id bigint)");
    let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("warning: the index t_pkey of public.t is not put back: the table is gone"),
        "{told}"
    );
    assert_eq!(open_entries(&database), 0);
}

/// A name is no value, and without it nobody knows what to give back its name.
#[test]
fn a_column_that_is_gone_is_named() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    rebuild(&database, &source).expect_code(1);
    database.sql("ALTER TABLE t RENAME id TO number");
    let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("column \"id\" does not exist (SQLSTATE 42703)"), "{told}");
}

/// Nothing is there for a script to rely on, though nothing is left to do.
#[test]
fn what_did_not_come_back_is_not_counted_as_restored() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    rebuild(&database, &source).expect_code(1);
    database.sql("DROP TABLE t; CREATE TABLE t (id bigint)");
    let restored = || restore(&database).args(["-q", "--json"]).run(PATIENCE).expect_code(0);
    let finished = restored();
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(document, serde_json::json!({"restored": 0, "not_restored": 2}));
    for what in ["index", "constraint"] {
        let warning = format!("warning: the {what} t_pkey of public.t is not put back: the table is gone");
        assert!(finished.stderr.contains(&warning), "{}", finished.stderr);
    }
    assert_eq!(open_entries(&database), 0);
    assert!(restored().stdout.contains(r#""restored": 0"#));
}

#[test]
fn each_key_that_cannot_be_put_back_is_told_in_whatever_quiet() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(15).database();
    database.sql(&format!("{PLAIN_SCHEMA}; CREATE UNIQUE INDEX t_twice ON t ((id * 2))"));
    let load = load(&database, &source).args(["--indexes", "rebuild", "-q", "--json"]);
    let finished = load.run(PATIENCE).expect_code(1);
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let warnings: Vec<&str> =
        document["warnings"].as_array().unwrap().iter().filter_map(|warning| warning.as_str()).collect();
    let is_named = |name: &str| {
        let told = format!("the index {name} of public.t cannot be put back: several rows");
        assert!(finished.stderr.contains(&told), "{}", finished.stderr);
        warnings.iter().any(|warning| warning.contains(&told))
    };
    // One is the error, the other one a warning.
    assert!(is_named("t_pkey") != is_named("t_twice"), "{warnings:?}");
    let restored = restore(&database).arg("-q").run(PATIENCE).expect_code(1).stderr;
    for name in ["t_pkey", "t_twice"] {
        assert!(restored.contains(&format!("the index {name} of public.t cannot be put back")), "{restored}");
    }
    // What is told can be typed as it is.
    database.sql("DELETE FROM t WHERE note = 'again'");
    run_told(&finished.stderr, "howdah restore ", str::to_owned);
    assert_eq!(open_entries(&database), 0);
}

#[test]
fn a_load_that_fails_puts_its_indexes_back() {
    let files = Files::new();
    let mut bytes = csv(15, 1, ROWS);
    bytes.extend_from_slice(b"18,x,1.00,wrong\n");
    let source = files.put("a.csv", &bytes);
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    let told = rebuild(&database, &source).expect_code(1).stderr;
    assert!(told.contains("column part") && told.contains("the index t_note of public.t is built"), "{told}");
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
}

/// The catalogs have a unique index of the names in a schema; it is that, and no key of the table, that is
/// violated.
#[test]
fn a_name_that_another_session_takes_meanwhile_is_not_told_as_duplicate_rows() {
    let files = Files::new();
    let source = doubled(&files);
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    rebuild(&database, &source).expect_code(1);
    database.sql("DELETE FROM t WHERE note = 'again'; CREATE TABLE other (id int)");
    // Ends when the restore waits for it.
    let restored_beside = |made: &str| {
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| {
                database.sql(&format!(
                    "DO 'BEGIN {made}; \
                     WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
                                       AND wait_event = ''transactionid'') LOOP \
                         PERFORM pg_sleep(0.02); PERFORM pg_stat_clear_snapshot(); END LOOP; END'"
                ));
            });
            let taken =
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
            while database.rows(taken).is_empty() {
                assert!(!taking.is_finished(), "nobody is waited for");
            }
            restore(&database).run(PATIENCE)
        })
    };
    let told = restored_beside("CREATE INDEX t_pkey ON other (id)").expect_code(1).stderr;
    assert!(told.contains("another one of this name is there"), "{told}");
    database.sql("DROP INDEX t_pkey");
    // The very one is not made twice.
    let told = restored_beside("CREATE UNIQUE INDEX t_pkey ON t (id)").expect_code(0).stderr;
    assert!(told.contains("is there already, as it was"), "{told}");
}

/// The journal has definitions of before, and a column may get another type while the rows come.
#[test]
fn what_would_not_come_back_to_a_widened_column_stays() {
    let row = |id: u32, (name, surprise): (&str, &str)| {
        let value =
            |column: &str, usual: &str| if name == column { surprise.to_owned() } else { usual.to_owned() };
        let ip = value("ip", "10.0.0.1");
        format!("{id},{},{},{},{ip}\n", value("k", "7"), value("n", "8"), value("doc", "\"{}\""))
    };
    let files = Files::new();
    for (surprise, refusal) in [
        (("id", "x1"), "foreign key constraint"),
        (("k", "n/a"), "foreign key constraint"),
        (("n", "n/a"), "operator does not exist"),
        (("doc", "n/a"), "no default operator class"),
        (("ip", "n/a"), "operator class"),
        (("n", "3000000000"), ""),
    ] {
        let mut text = "id,k,n,doc,ip\n".to_owned();
        for id in 1..50_000 {
            text += &match (id, surprise) {
                (20_000, ("id", _)) => "x1,7,8,\"{}\",10.0.0.1\n".to_owned(),
                (20_000, surprise) => row(id, surprise),
                _ => row(id, ("", "")),
            };
        }
        let source = files.put("t.csv", text.as_bytes());
        let database = Server::shared(15).database();
        database.sql(
            "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (7); \
             CREATE TABLE t (id int PRIMARY KEY, k int REFERENCES p, n int, doc jsonb, ip inet); \
             CREATE TABLE r (id int REFERENCES t); CREATE INDEX plain ON t (n); CREATE INDEX part ON t (id) WHERE n > 0; \
             CREATE INDEX docs ON t USING gin (doc); CREATE INDEX nets ON t USING gist (ip inet_ops)",
        );
        let before = schema(&database);
        let load = crate::auto::load(&database).args(["--evolve", "widen", "--indexes", "rebuild"]);
        let load = load.args(["--table", "t", "--chunk-size", "64kB"]).arg(&source);
        let code = if refusal.is_empty() { 0 } else { 1 };
        let told = load.run(PATIENCE).expect_code(code).stderr;
        assert!(told.contains(refusal), "{surprise:?}\n{told}");
        assert_eq!(open_entries(&database), 0, "{surprise:?}\n{told}");
        let after = if refusal.is_empty() { before.replace("n bigint", "n integer") } else { before };
        assert_eq!(schema(&database).replace("n bigint", "n integer"), after, "{surprise:?}");
        let gone = "SELECT count(*) FROM howdah.undo WHERE name = 'plain'";
        assert_eq!(database.value(gone), "1", "{surprise:?}");
    }
}
