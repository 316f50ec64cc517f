//! `--on-error skip` where rows wait in staging tables: what the table refuses is kept, the rest comes in.

use super::{assert_nothing_left, load};
use crate::indexes::wait_for;
use crate::scene::{END_SESSIONS, Files, PATIENCE, gzip};
use fastrand::Rng;
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, Server};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Reasons of every kind; `code` is a second key, and `id` that by which rows are merged.
const TABLE: &str = "CREATE EXTENSION IF NOT EXISTS btree_gist; \
    CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1), (2); \
    CREATE TABLE t (id int PRIMARY KEY, code int UNIQUE, n int, boss int CONSTRAINT led REFERENCES boss, at int4range, \
        kept int NOT NULL DEFAULT 5, CONSTRAINT small CHECK (n < 100), CONSTRAINT whole CHECK (100 / n > 0), \
        CONSTRAINT apart EXCLUDE USING gist (boss WITH =, at WITH &&)); \
    INSERT INTO t VALUES (1, 10, 1, 1, '[1,5)', 7), (2, 20, 1, NULL, NULL, 7)";

/// The records, and for each the SQLSTATE with which it is left out of a load into the table, which has rows
/// of ids 1 and 2.
const RECORDS: &[(&str, &str)] = &[
    ("3,30,1,1,\"[5,9)\"", ""),
    ("4,40,100,1,", "23514"),
    ("5,50,0,1,", "22012"),
    ("6,30,1,1,", "23505"),
    ("7,20,1,1,", "23505"),
    ("8,80,1,9,", "23503"),
    ("9,90,1,1,\"[8,10)\"", "23P01"),
    ("10,100,1,1,\"[2,3)\"", "23P01"),
    ("11,40,1,2,\"[8,10)\"", ""),
    ("12,30,100,,", "23514"),
    ("13,90,1,,", ""),
    ("14,,,,", ""),
    ("15,100,x,,", "22P02"),
];

fn csv(more: &[(&str, &str)]) -> (String, Vec<(u64, String, String)>) {
    let mut csv = "id,code,n,boss,at\n".to_owned();
    let mut bad = Vec::new();
    for (no, (record, sqlstate)) in (1..).zip(RECORDS.iter().chain(more)) {
        let _ = writeln!(csv, "{record}");
        if !sqlstate.is_empty() {
            bad.push((no, (*sqlstate).to_owned(), format!("{record}\n")));
        }
    }
    (csv, bad)
}

pub(super) fn skipping(database: &Database, source: &Path, options: &[&str]) -> HowdahCommand {
    load(database, &[source]).args(["--on-error", "skip", "--json", "--quiet"]).args(options.iter().copied())
}

pub(super) fn told(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr))
}

/// Record, SQLSTATE and bytes of what the ledger keeps.
fn kept(database: &Database) -> Vec<(u64, String, String)> {
    let rows = database
        .rows("SELECT record, sqlstate, convert_from(bytes, 'UTF8') FROM howdah.reject ORDER BY record");
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    rows.iter().map(|row| (text(&row[0]).parse().unwrap(), text(&row[1]), text(&row[2]))).collect()
}

/// Read is stored and rejected, wherever it is told.
#[track_caller]
pub(super) fn assert_accounts(
    database: &Database,
    summary: &Value,
    (read, rejected): (u64, u64),
    what: &str,
) {
    let counts = ["rows_read", "rows_stored", "rows_rejected"].map(|key| summary[key].as_u64().unwrap());
    assert_eq!(counts, [read, read - rejected, rejected], "{what}: {summary:#}");
    let file = &summary["files"][0];
    assert_eq!((&file["rows_rejected"], &file["done"]), (&rejected.into(), &true.into()), "{what}");
    let expected = format!("{} {rejected}", read - rejected);
    for sql in [
        "SELECT sum(rows) || ' ' || sum(rejected) FROM howdah.chunk",
        "SELECT rows_stored || ' ' || rows_rejected FROM howdah.file",
        "SELECT rows_stored || ' ' || (SELECT count(*) FROM howdah.reject) FROM howdah.job",
    ] {
        assert_eq!(database.value(sql), expected, "{what}: {sql}");
    }
    assert_nothing_left(database, what);
}

/// Loads the records and these more, and compares what is kept; returns the summary.
fn leaves_out(database: &Database, options: &[&str], more: &[(&str, &str)], name: &str) -> Value {
    let files = Files::new();
    let (csv, bad) = csv(more);
    let bytes = if name.ends_with(".gz") { gzip(csv.as_bytes()) } else { csv.clone().into_bytes() };
    let source = files.put(name, &bytes);
    database.sql(TABLE);
    let options = [options, &["--chunk-size", "64kB", "--verify", "checksum"]].concat();
    let done = skipping(database, &source, &options).run(PATIENCE).expect_code(3);
    let what = format!("{options:?} {}", done.stderr);
    assert_eq!(kept(database), bad, "{what}");
    let places = database.rows("SELECT start_byte, bytes, as_in_file FROM howdah.reject ORDER BY record");
    for ((_, _, bytes), row) in bad.iter().zip(places) {
        let at: usize = row[0].as_ref().unwrap().parse().unwrap();
        assert!(csv[at..].starts_with(bytes) && row[2].as_deref() == Some("t"), "{what}: {row:?}");
    }
    let summary = told(&done);
    let read = (RECORDS.len() + more.len()) as u64;
    assert_accounts(database, &summary, (read, bad.len() as u64), &what);
    assert_eq!(summary["left_out"].as_array().unwrap().len(), bad.len(), "{summary:#}");
    summary
}

fn ids(database: &Database) -> String {
    database.value("SELECT string_agg(id || ':' || coalesce(code, 0) || ':' || kept, ' ' ORDER BY id) FROM t")
}

#[test]
fn records_that_the_table_refuses_do_not_come_with_an_atomic_load() {
    for (major, name) in MAJORS.into_iter().zip(["a.csv", "a.csv.gz", "a.csv"]) {
        let database = Server::shared(major).database();
        let more = [("1,,,,", "23505"), ("11,110,,,", "23505"), ("12,120,,,", "")];
        leaves_out(&database, &["--atomic"], &more, name);
        assert_eq!(ids(&database), "1:10:7 2:20:7 3:30:5 11:40:5 12:120:5 13:90:5 14:0:5", "{major}");
    }
}

#[test]
fn records_that_the_table_refuses_are_not_merged() {
    for major in MAJORS {
        for atomic in [&[][..], &["--atomic"]] {
            let database = Server::shared(major).database();
            // The row of 1 keeps its code; that of 2 may not take it.
            let more = [("1,10,2,1,\"[1,5)\"", ""), ("2,10,2,1,", "23505"), ("11,,,,", "23505")];
            let options = [&["--mode", "merge", "--key", "id"], atomic].concat();
            let summary = leaves_out(&database, &options, &more, "a.csv");
            let changes = &summary["tables"][0]["changes"];
            assert_eq!(
                (&changes["inserted"], &changes["updated"], &changes["duplicates"]),
                (&4.into(), &1.into(), &0.into()),
                "{summary:#}"
            );
            assert_eq!(ids(&database), "1:10:7 2:20:7 3:30:5 11:40:5 13:90:5 14:0:5", "{major}");
        }
    }
}

#[test]
fn of_several_records_of_one_key_one_that_is_good_by_itself_counts() {
    for major in MAJORS {
        let database = Server::shared(major).database();
        let more =
            [("14,140,1,,", ""), ("14,150,1,,", ""), ("14,140,100,,", "23514"), ("13,130,,9,", "23503")];
        let options = ["--mode", "merge", "--key", "id", "--keep", "last"];
        let summary = leaves_out(&database, &options, &more, "a.csv");
        assert_eq!(summary["tables"][0]["changes"]["duplicates"], 2, "{summary:#}");
        assert_eq!(ids(&database), "1:10:7 2:20:7 3:30:5 11:40:5 13:90:5 14:150:5", "{major}");
    }
}

#[test]
fn records_whose_key_is_there_are_not_bad_where_only_new_ones_come() {
    for major in MAJORS {
        let database = Server::shared(major).database();
        let more = [("1,20,100,9,", ""), ("2,,,,", "")];
        let summary = leaves_out(&database, &["--mode", "insert-new", "--key", "id"], &more, "a.csv");
        let changes = &summary["tables"][0]["changes"];
        assert_eq!((&changes["inserted"], &changes["unchanged"]), (&4.into(), &2.into()), "{summary:#}");
        assert_eq!(ids(&database), "1:10:7 2:20:7 3:30:5 11:40:5 13:90:5 14:0:5", "{major}");
    }
}

#[test]
fn records_that_no_partition_takes_and_those_that_lead_to_them_are_left_out() {
    for major in MAJORS {
        let files = Files::new();
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, parent int) PARTITION BY RANGE (id); \
             CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (100); \
             ALTER TABLE t ADD FOREIGN KEY (parent) REFERENCES t",
        );
        // 3 leads to a later record, 4 to one that is not there, 5 and 6 to that, 8 to one of no partition.
        let source = files.put("a.csv", b"id,parent\n3,7\n4,9\n5,4\n6,5\n200,\n7,\n8,200\n");
        for options in [&["--atomic"][..], &["--mode", "merge", "--key", "id"]] {
            database.sql("TRUNCATE t");
            let done = skipping(&database, &source, options).run(PATIENCE).expect_code(3);
            assert_eq!(
                database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"),
                "3 7",
                "{}",
                done.stderr
            );
            let states: Vec<String> =
                kept(&database).into_iter().map(|(no, state, _)| format!("{no} {state}")).collect();
            assert_eq!(states, ["2 23503", "3 23503", "4 23503", "5 23514", "7 23503"], "{}", done.stderr);
            assert_accounts(&database, &told(&done), (7, 5), &done.stderr);
            database.sql("DROP SCHEMA howdah CASCADE");
        }
    }
}

/// Several tables of one load, of which one leads to the other.
#[test]
fn records_that_lead_to_one_that_was_left_out_are_left_out() {
    let files = Files::new();
    files.put("boss.csv", b"id\n1\n200\n3\n");
    files.put("emp.csv", b"id,boss\n1,1\n2,200\n3,\n4,3\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE boss (id int PRIMARY KEY CHECK (id < 100)); \
             CREATE TABLE emp (id int PRIMARY KEY, boss int REFERENCES boss)",
        );
        let done = crate::scene::howdah("load")
            .args(["--format", "csv", "--header", "--atomic", "--on-error", "skip", "--json", "--quiet"])
            .args(["--to", &database.conninfo()])
            .arg(files.path().join("{table}.csv"))
            .run(PATIENCE)
            .expect_code(3);
        let stored = "SELECT (SELECT string_agg(id::text, ' ' ORDER BY id) FROM boss) || ', ' \
                          || (SELECT string_agg(id::text, ' ' ORDER BY id) FROM emp)";
        assert_eq!(database.value(stored), "1 3, 1 3 4", "PostgreSQL {major}: {}", done.stderr);
        let of_file = "SELECT string_agg(target || ' ' || rows_stored || ' ' || rows_rejected, ', ' ORDER BY target) \
                       FROM howdah.file";
        assert_eq!(database.value(of_file), "public.boss 2 1, public.emp 3 1");
        let states =
            "SELECT string_agg(record || ' ' || sqlstate, ', ' ORDER BY sqlstate) FROM howdah.reject";
        assert_eq!(database.value(states), "2 23503, 2 23514");
        let rejected = |no: usize| told(&done)["files"][no]["rows_rejected"].clone();
        assert_eq!((rejected(0), rejected(1)), (1.into(), 1.into()));
        assert_nothing_left(&database, "two tables");
    }
}

#[test]
fn more_than_are_borne_end_the_load_and_a_rerun_bears_them() {
    for major in MAJORS {
        let files = Files::new();
        let (csv, bad) = csv(&[]);
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(major).database();
        database.sql(TABLE);
        let merge = ["--mode", "merge", "--key", "id"];
        for max in ["7", "60%"] {
            let options = [&merge[..], &["--max-errors", max]].concat();
            let done = skipping(&database, &source, &options).run(PATIENCE).expect_code(1);
            let error = &told(&done)["error"];
            assert_eq!(error["kind"], "too_many_errors", "{error}");
            assert_eq!(ids(&database), "1:10:7 2:20:7");
        }
        let options = [&merge[..], &["--max-errors", "9"]].concat();
        let done = skipping(&database, &source, &options).run(PATIENCE).expect_code(3);
        assert_eq!(kept(&database), bad);
        assert_accounts(&database, &told(&done), (RECORDS.len() as u64, bad.len() as u64), &done.stderr);
        assert_eq!(database.value("SELECT count(*) FROM howdah.job"), "1");
    }
}

/// Nobody can read a pipe twice: the server writes the rows.
#[test]
fn records_of_pipes_and_of_rewritten_files_are_kept_as_they_would_be_loaded() {
    let files = Files::new();
    let text = "id;note;n\r\n1;\"a;b\";1\r\n2;x;5\r\n3;\"\"\"y\"\"\r\nz\";7\r\n4;;8\r\n";
    let source = files.put("a.csv", text.as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, note text, n int CHECK (n < 5))");
        for (options, is_pipe) in
            [(&["--delimiter", ";", "--format", "csv"][..], true), (&["--types", "n=int"], false)]
        {
            database.sql("TRUNCATE t; DROP SCHEMA IF EXISTS howdah CASCADE");
            let command = crate::scene::howdah("load")
                .args([
                    "--on-error",
                    "skip",
                    "--atomic",
                    "--header",
                    "--table",
                    "t",
                    "--to",
                    &database.conninfo(),
                ])
                .args(options.iter().copied());
            let command =
                if is_pipe { command.arg("-").stdin(text.as_bytes()) } else { command.arg(&source) };
            let done = command.run(PATIENCE).expect_code(3);
            assert_eq!(database.value("SELECT count(*) FROM t"), "1", "{}", done.stderr);
            let kept = kept(&database);
            assert_eq!(kept.iter().map(|row| row.0).collect::<Vec<_>>(), [2, 3, 4], "{kept:?}");
            let bad = files.path().join("bad.csv");
            crate::scene::howdah("status")
                .args(["--to", &database.conninfo()])
                .arg(database.value("SELECT job_id FROM howdah.job"))
                .arg("--reject-file")
                .arg(&bad)
                .run(PATIENCE)
                .expect_code(0);
            database.sql("ALTER TABLE t DROP CONSTRAINT IF EXISTS t_n_check");
            crate::scene::howdah("load")
                .args([
                    "--to",
                    &database.conninfo(),
                    "--rejects",
                    &database.value("SELECT job_id FROM howdah.job"),
                ])
                .arg(&bad)
                .run(PATIENCE)
                .expect_code(0);
            let notes = "SELECT string_agg(id || coalesce(note, '-'), ',' ORDER BY id) FROM t";
            assert_eq!(database.value(notes), "1a;b,2x,3\"y\"\r\nz,4-", "PostgreSQL {major}");
            database.sql("ALTER TABLE t ADD CONSTRAINT t_n_check CHECK (n < 5) NOT VALID");
        }
    }
}

/// What a trigger or a policy says, no query tells; a trigger may mend what is bad.
#[test]
fn where_rows_may_change_before_they_are_stored_none_is_left_out() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,n\n1,1\n2,-2\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.n := abs(new.n); RETURN new; END'; \
         CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n > 0)); \
         CREATE TRIGGER mend BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION mend()",
    );
    skipping(&database, &source, &["--atomic"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT sum(n) FROM t"), "3");
    database.sql("TRUNCATE t; ALTER TABLE t DISABLE TRIGGER mend; DROP SCHEMA howdah CASCADE");
    skipping(&database, &source, &["--atomic"]).run(PATIENCE).expect_code(3);
    database.sql(
        "TRUNCATE t; DROP SCHEMA howdah CASCADE; CREATE OR REPLACE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF new.id = 2 THEN RAISE ''no''; END IF; RETURN new; END'; ALTER TABLE t ENABLE TRIGGER mend",
    );
    let failed = skipping(&database, &source, &["--atomic"]).run(PATIENCE).expect_code(1);
    assert!(
        failed.stdout.contains("not what triggers, policies and constraints of one partition refuse"),
        "{} {}",
        failed.stdout,
        failed.stderr
    );
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

/// The rows of records that were left out must not be deleted for having no record.
#[test]
fn where_rows_without_a_record_are_deleted_none_is_left_out() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,n\n1,1\n2,-2\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n > 0)); INSERT INTO t VALUES (2, 2)");
    let options = ["--mode", "merge", "--key", "id", "--delete-missing", "--atomic"];
    let failed = skipping(&database, &source, &options).run(PATIENCE).expect_code(1);
    assert!(failed.stdout.contains("--delete-missing would delete"), "{} {}", failed.stdout, failed.stderr);
    assert_eq!(database.value("SELECT sum(n) FROM t"), "2");
    assert_nothing_left(&database, "delete-missing");
}

/// Nor those of records that were left out while they were read: by COPY, the encoder, or as beyond mending.
#[test]
fn where_rows_without_a_record_are_deleted_none_is_left_out_while_it_is_read() {
    let files = Files::new();
    for (major, options, bad) in [
        (18, &["--on-error", "skip"][..], "2,x\n"),
        (15, &["--on-error", "skip", "--atomic"], "2,\n"),
        (13, &["--on-error", "skip"], "2\n"),
        (15, &["--lenient"], "2,3,4,5,6\n"),
    ] {
        let many: String = (3..2000).map(|id| format!("{id},1\n")).collect();
        let source = files.put("a.csv", format!("id,n\n1,5\n{bad}{many}").as_bytes());
        let database = Server::shared(major).database();
        database
            .sql("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL); INSERT INTO t VALUES (1, 1), (2, 2)");
        let load = || {
            crate::scene::howdah("load")
                .args(["--to", &database.conninfo(), "--table", "t", "--mode", "merge", "--key", "id"])
                .arg("--delete-missing")
                .args(options.iter().copied())
                .arg(&source)
        };
        let rejects = files.path().join("bad.csv");
        let skips = options.contains(&"skip");
        let first = if skips { load().arg("--reject-file").arg(&rejects) } else { load() };
        let failed = first.run(PATIENCE).expect_code(1);
        assert!(failed.stderr.contains("--delete-missing would delete"), "{options:?} {}", failed.stderr);
        assert!(failed.stderr.contains("howdah check lists them"), "{options:?} {}", failed.stderr);
        if skips {
            assert_eq!(std::fs::read_to_string(&rejects).unwrap(), format!("\"id\",\"n\"\n{bad}"));
            assert!(failed.stderr.contains("rejected records: 1 in "), "{}", failed.stderr);
        }
        assert_eq!(database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"), "1=1 2=2");
        assert_nothing_left(&database, bad);
        load().run(PATIENCE).expect_code(1);
        files.put("a.csv", format!("id,n\n1,5\n2,7\n{many}").as_bytes());
        load().run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT sum(n) FROM t WHERE id < 3"), "12", "{options:?}");
    }
}

/// One INSERT after the other into such a table tells which records are stored and refused.
#[test]
fn random_records_are_left_out_as_if_they_were_inserted_one_after_the_other() {
    for (major, seed) in MAJORS.into_iter().zip([7, 8, 9]) {
        let mut random = Rng::with_seed(seed);
        let files = Files::new();
        let mut csv = "id,code,n,boss,at\n".to_owned();
        for _ in 0..2_000 {
            let mut field = |values: std::ops::Range<i32>, null: u8| match random.u8(..100) < null {
                true => String::new(),
                false => random.i32(values).to_string(),
            };
            let (id, code, n, boss) =
                (field(1..2_500, 0), field(1..3_000, 20), field(0..110, 5), field(0..3, 50));
            let from = random.i32(1..1_000);
            let _ = writeln!(csv, "{id},{code},{n},{boss},\"[{from},{})\"", from + 3);
        }
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(major).database();
        database.sql(TABLE);
        database.sql(
            "CREATE TABLE wanted (LIKE t INCLUDING ALL); ALTER TABLE wanted ADD FOREIGN KEY (boss) REFERENCES boss; \
             INSERT INTO wanted SELECT * FROM t; \
             CREATE TABLE refused (record int, state text); \
             CREATE TABLE f (no int GENERATED ALWAYS AS IDENTITY, id int, code int, n int, boss int, at int4range)",
        );
        let copy = "COPY f (id, code, n, boss, at) FROM STDIN (FORMAT csv, HEADER true)";
        database.copy_in(copy, csv.clone().into_bytes()).unwrap();
        database.sql(
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM f ORDER BY no LOOP \
                 BEGIN INSERT INTO wanted (id, code, n, boss, at) VALUES (r.id, r.code, r.n, r.boss, r.at); \
                 EXCEPTION WHEN OTHERS THEN INSERT INTO refused VALUES (r.no, SQLSTATE); END; \
             END LOOP; END $$",
        );
        let options = ["--atomic", "--chunk-size", "16kB", "--jobs", "2", "--verify", "checksum"];
        let done = skipping(&database, &source, &options).run(PATIENCE).expect_code(3);
        let what = format!("PostgreSQL {major}, seed {seed}: {}", done.stderr);
        assert_eq!(database.digest("t"), database.digest("wanted"), "{what}");
        let records = |sql: &str| {
            database.value(&format!("SELECT string_agg(record::text, ' ' ORDER BY record) FROM {sql}"))
        };
        assert_eq!(records("howdah.reject"), records("refused"), "{what}");
        let rejected = database.value("SELECT count(*) FROM refused").parse().unwrap();
        assert!((100..1_900).contains(&rejected), "{what}: {rejected}");
        assert_accounts(&database, &told(&done), (2_000, rejected), &what);
    }
}

pub(super) const ROWS: u64 = 20_000;
pub(super) const NAPS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
pub(super) const KEPT: &str = "SELECT count(*) FROM howdah.reject";

/// Ends a load when the query gives so much: while records are taken away, or when that is done and the
/// others come. Restored or not, it is run again.
fn kill_at(major: u32, options: &[&str], (slow, sql): (&str, &str), restore: bool) -> bool {
    let files = Files::new();
    let mut csv = "id,n\n".to_owned();
    for id in 1..=ROWS {
        // One in fifty is bad by itself, as many repeat a value of the one before.
        let _ = writeln!(
            csv,
            "{id},{}",
            if id % 50 == 0 {
                0
            } else if id % 50 == 1 {
                id + 1
            } else {
                id
            }
        );
    }
    let source = files.put("a.csv", csv.as_bytes());
    let first = files.put("first.csv", b"id,n\n");
    let database = Server::shared(major).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE CHECK (n > 0)); \
         CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END'",
    );
    // Makes the ledger.
    load(&database, &[&first]).run(PATIENCE).expect_code(0);
    database
        .sql(&format!("CREATE TRIGGER nap AFTER INSERT ON {slow} FOR EACH STATEMENT EXECUTE FUNCTION nap()"));
    let options = [options, &["--chunk-size", "64kB", "--jobs", "2"]].concat();
    let command = skipping(&database, &source, &options);
    let what = format!("PostgreSQL {major}, {options:?}, {slow}, restore: {restore}");
    let mut running = command.spawn();
    let hit = wait_for(&database, &mut running, sql, 1);
    running.kill();
    database.sql(END_SESSIONS);
    if restore {
        crate::scene::howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(KEPT), "0", "{what}");
    }
    database.sql(&format!("DROP TRIGGER nap ON {slow}"));
    let done = command.args(["--verify", "checksum"]).run(PATIENCE).expect_code(3);
    let bad = ROWS / 50 * 2;
    let wanted = format!("{} {}", ROWS - bad, ROWS - bad);
    let stored = "SELECT count(*) || ' ' || count(*) FILTER (WHERE id = n OR id % 50 = 1) FROM t";
    assert_eq!(database.value(stored), wanted, "{what} {}", done.stderr);
    let kept = "SELECT count(*) || ' ' || count(DISTINCT record) FROM howdah.reject";
    assert_eq!(database.value(kept), format!("{bad} {bad}"), "{what}");
    let summary = told(&done);
    let counts = ["rows_read", "rows_stored", "rows_rejected"].map(|key| summary[key].as_u64().unwrap());
    assert_eq!(counts, [ROWS, ROWS - bad, bad], "{what}");
    assert!(summary["rows_stored_before"].as_u64().unwrap() <= ROWS - bad, "{what}: {summary:#}");
    assert_nothing_left(&database, &what);
    hit
}

#[test]
fn a_kill_while_records_are_left_out_or_behind_loses_and_doubles_nothing() {
    let ways =
        [&["--atomic"][..], &["--mode", "merge", "--key", "id"], &["--mode", "insert-new", "--key", "id"]];
    let moments = [("howdah.reject", NAPS), ("t", KEPT)];
    let hits: usize = std::thread::scope(|scope| {
        let of_server = |(no, major): (usize, u32)| {
            scope.spawn(move || {
                let cases = ways.into_iter().flat_map(|way| moments.map(|moment| (way, moment)));
                let hits = cases
                    .enumerate()
                    .filter(|(case, (way, moment))| kill_at(major, way, *moment, (case + no) % 2 == 0));
                hits.count()
            })
        };
        let campaigns: Vec<_> = MAJORS.into_iter().enumerate().map(of_server).collect();
        campaigns.into_iter().map(|campaign| campaign.join().unwrap()).sum()
    });
    assert!(hits >= 9, "{hits} of 18 kills hit a load that was still at work");
}

/// What another session stores while rows come in is looked for once more.
#[test]
fn what_others_store_in_between_is_looked_for_again() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,n\n1,1\n2,2\n3,3\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        // The other one's row comes when all has been looked at, and stays.
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE); CREATE TABLE gate (id int); \
             CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN LOCK TABLE public.gate IN ACCESS SHARE MODE; RETURN NULL; END'; \
             CREATE TRIGGER wait BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION wait()",
        );
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass";
        let done = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                database.sql(&format!(
                    "SET session_replication_role = replica; BEGIN; LOCK TABLE gate IN ACCESS EXCLUSIVE MODE; \
                     DO $$ BEGIN FOR i IN 1..60000 LOOP \
                         PERFORM pg_stat_clear_snapshot(); \
                         IF ({waits}) > 0 THEN EXIT; END IF; PERFORM pg_sleep(0.01); \
                     END LOOP; END $$; INSERT INTO t VALUES (9, 2); COMMIT"
                ));
            });
            let held = "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'gate'::regclass";
            while database.value(held) == "0" {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let options = ["--atomic", "--lock-timeout", "10min"];
            let done = skipping(&database, &source, &options).run(PATIENCE).expect_code(3);
            other.join().unwrap();
            done
        });
        assert_eq!(
            database.value("SELECT string_agg(id || ':' || n, ' ' ORDER BY id) FROM t"),
            "1:1 3:3 9:2"
        );
        assert_eq!(kept(&database), [(2, "23505".to_owned(), "2,2\n".to_owned())]);
        assert_accounts(&database, &told(&done), (3, 1), &done.stderr);
    }
}

/// Parts that came in before another one failed are counted once, however often the rest is tried: else the
/// server would be said to have lost them.
#[test]
fn parts_that_are_in_are_not_taken_for_lost_where_another_is_refused_again() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let rows: String = (1..=20_000).map(|id| format!("{id},{id:0200}\n")).collect();
    let source = files.put("a.csv", format!("id,note\n{rows}").as_bytes());
    // The last row is refused as soon as another part is in, which the ledger says.
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, note text); \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             FOR i IN 1..60000 LOOP \
                 EXIT WHEN (SELECT count(*) FROM howdah.step WHERE name = 'part') > 1; PERFORM pg_sleep(0.01); \
             END LOOP; \
             RAISE 'refused by a trigger' USING ERRCODE = 'check_violation'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 20000) EXECUTE FUNCTION refuse()",
    );
    let options = ["--mode", "merge", "--key", "id", "--jobs", "2"];
    let failed = skipping(&database, &source, &options).run(PATIENCE).expect_code(1);
    let said = told(&failed)["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("a trigger or function raised an error"), "{said}");
    assert!(!failed.stdout.contains("lost commits"), "{}", failed.stdout);
    assert_ne!(database.value("SELECT count(*) FROM t"), "0", "another part is in");
    database.sql("DROP TRIGGER refuse ON t");
    skipping(&database, &source, &options).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "20000");
}
