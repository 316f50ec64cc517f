//! Rows that come frozen: all of a table or none, whatever happens to the load, and nothing is left for
//! VACUUM to do.

use super::{assert_nothing_left, load};
use crate::indexes::schema;
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv, howdah};
use howdah_testkit::{
    Database, Fault, HowdahCommand, MAJORS, Proxy, Running, Server, ServerOptions, side_by_side,
};
use std::path::Path;
use std::time::Duration;

const ROWS: u64 = 20_000;

/// All pages that have rows are visible to all: since version 16 the server extends a table by some more,
/// which are not.
#[track_caller]
fn assert_visible(database: &Database, table: &str, what: &str) {
    let sql = format!(
        "SELECT r.tableoid::regclass, count(DISTINCT (ctid::text::point)[0]), \
                (SELECT relallvisible FROM pg_class WHERE oid = r.tableoid) FROM {table} r GROUP BY r.tableoid"
    );
    let rows = database.rows(&sql);
    assert!(!rows.is_empty() && rows.iter().all(|row| row[1] == row[2]), "{what}: {rows:?}");
}

/// A table with a key, an index, and 5,000 rows of others.
fn prepared(server: &Server) -> Database {
    let database = server.database();
    database.sql(
        "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); CREATE INDEX ON t (note); \
         INSERT INTO t SELECT id, 0, 0, 'old' FROM generate_series(1, 5000) id",
    );
    database
}

/// Each COPY takes a little longer, so that it can be hit.
fn slow_down(database: &Database) {
    database.sql(
        "CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'; \
         CREATE TRIGGER nap BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nap()",
    );
}

/// What was to be hit has been: the next COPY naps no more.
fn hurry(database: &Database) {
    database
        .sql("CREATE OR REPLACE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
}

/// A load that empties `t` first, of many chunks.
fn frozen(database: &Database, sources: &[&Path]) -> HowdahCommand {
    load(database, sources).args(["--mode", "truncate", "--freeze", "--chunk-size", "128kB"])
}

/// Waits until the table's transaction is open; false if the load has ended before.
fn wait_until_held(database: &Database, running: &mut Running) -> bool {
    let held = "SELECT count(*) > 0 FROM pg_locks \
                WHERE relation = 't'::regclass AND mode = 'AccessExclusiveLock' AND granted";
    database.wait_for(held, 1, || running.is_running())
}

#[test]
fn rows_come_frozen_and_visible_in_one_transaction_of_one_session() {
    let files = Files::new();
    let sources = [files.put("a.csv", &csv(71, 1, ROWS)), files.put("b.csv", &csv(72, 1 + ROWS, ROWS))];
    for major in MAJORS {
        let database = prepared(Server::shared(major));
        let before = schema(&database);
        let command = load(&database, &[&sources[0], &sources[1]]).args([
            "--mode",
            "truncate",
            "--freeze",
            "--chunk-size",
            "128kB",
            "--jobs",
            "4",
            "--verify",
            "checksum",
        ]);
        command.run(PATIENCE).expect_code(0);
        let rows = database
            .rows("SELECT count(*), count(DISTINCT xmin::text), count(*) FILTER (WHERE note = 'old') FROM t");
        assert_eq!(
            rows[0],
            [Some("40000"), Some("1"), Some("0")].map(|text| text.map(str::to_owned)),
            "{major}"
        );
        let chunks = "SELECT count(*) > 8 AND sum(rows) = 40000 FROM howdah.chunk";
        assert_eq!(database.value(chunks), "t", "PostgreSQL {major}");
        // Version 13 knows of no page that is visible to all before VACUUM has been there.
        if major > 13 {
            assert_visible(&database, "t", &format!("PostgreSQL {major}"));
        }
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "frozen");
        let again = command.run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("this job finished at"), "{again}");
    }
}

#[test]
fn a_killed_load_leaves_the_old_rows_and_its_next_run_all_of_the_new_ones() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(73, 1, ROWS));
    let cases = MAJORS.iter().flat_map(|major| ["keep", "rebuild"].map(|indexes| (*major, indexes)));
    side_by_side(cases, |(major, indexes)| {
        let what = format!("PostgreSQL {major}, --indexes {indexes}");
        let database = prepared(Server::shared(major));
        let before = schema(&database);
        slow_down(&database);
        let command = frozen(&database, &[&source]).args(["--indexes", indexes]);
        for delay_ms in [0, 150, 600] {
            let mut running = command.spawn();
            assert!(wait_until_held(&database, &mut running), "{what}: it has ended");
            std::thread::sleep(Duration::from_millis(delay_ms));
            let killed = running.kill();
            database.sql(END_SESSIONS);
            assert_eq!(
                database.value("SELECT count(*) FROM t WHERE note = 'old'"),
                "5000",
                "{what}: {}",
                killed.stderr
            );
            assert_eq!(database.value("SELECT count(*) FROM t"), "5000", "{what}");
            assert_eq!(database.value("SELECT count(*) FROM howdah.chunk"), "0", "{what}");
        }
        database.sql("DROP TRIGGER nap ON t; DROP FUNCTION nap");
        command.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{what}");
        assert_eq!(
            database.value("SELECT count(DISTINCT id) FROM t WHERE note <> 'old' OR note IS NULL"),
            ROWS.to_string(),
            "{what}"
        );
        assert_eq!(schema(&database), before, "{what}");
        assert_nothing_left(&database, &what);
    });
}

#[test]
fn a_transaction_that_is_lost_is_done_again_by_the_same_run() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, ROWS));
    side_by_side(MAJORS, |major| {
        let server = Server::private(major, &ServerOptions::default());
        let database = prepared(&server);
        slow_down(&database);
        let command = frozen(&database, &[&source]).args(["--json"]);
        for crashes in [false, true] {
            let mut running = command.clone().arg("--force").spawn();
            assert!(wait_until_held(&database, &mut running), "PostgreSQL {major}: it has ended");
            std::thread::sleep(Duration::from_millis(250));
            if crashes {
                server.crash_and_restart();
            } else {
                database.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'AccessExclusiveLock'");
            }
            let finished = running.wait(PATIENCE).expect_code(0);
            assert!(
                finished.stderr.contains("the transaction with the rows of public.t is lost"),
                "{}",
                finished.stderr
            );
            let told: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
            assert_eq!(
                (&told["rows_read"], &told["rows_stored"]),
                (&ROWS.into(), &ROWS.into()),
                "{}",
                finished.stdout
            );
            assert_eq!(
                database.value("SELECT count(*) || '/' || count(DISTINCT id) FROM t"),
                format!("{ROWS}/{ROWS}")
            );
            assert_nothing_left(&database, &format!("PostgreSQL {major}"));
        }
    });
}

#[test]
fn a_lost_answer_to_the_commit_of_a_table_neither_doubles_nor_loses_it() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(85, 1, ROWS));
    let faults = [Fault::CutAfterCommit { skip: 0 }, Fault::CutBeforeCommit { skip: 0 }];
    let cases = MAJORS.iter().flat_map(|major| faults.map(|fault| (*major, fault)));
    side_by_side(cases, |(major, fault)| {
        let server = Server::shared(major);
        let (database, proxy) = (prepared(server), Proxy::before_server(server));
        slow_down(&database);
        let to = database.conninfo_through(&proxy);
        let mut running = howdah("load")
            .args(["--format", "csv", "--header", "--table", "t", "--to", &to])
            .args(["--mode", "truncate", "--freeze", "--chunk-size", "128kB"])
            .arg(&source)
            .spawn();
        assert!(wait_until_held(&database, &mut running), "{fault:?}");
        proxy.set_times(fault, 1);
        hurry(&database);
        let finished = running.wait(PATIENCE).expect_code(0);
        assert!(
            finished.stderr.contains("the ledger tells whether its rows are in"),
            "{fault:?}: {}",
            finished.stderr
        );
        assert!(finished.stderr.contains("a.csv: 20,000 rows from"), "{fault:?}: {}", finished.stderr);
        let is_loaded_again = finished.stderr.contains("whose transaction was lost are loaded again");
        assert_eq!(
            is_loaded_again,
            fault == Fault::CutBeforeCommit { skip: 0 },
            "{fault:?}: {}",
            finished.stderr
        );
        let counts = "SELECT count(*) || '/' || count(DISTINCT id) FROM t";
        assert_eq!(database.value(counts), format!("{ROWS}/{ROWS}"), "PostgreSQL {major}, {fault:?}");
        let again = frozen(&database, &[&source]).run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("this job finished at"), "{again}");
        assert_nothing_left(&database, &format!("PostgreSQL {major}, {fault:?}"));
    });
}

#[test]
fn what_the_table_refuses_is_told_in_the_words_of_the_file_and_the_old_rows_stay() {
    let files = Files::new();
    let text = String::from_utf8(csv(75, 1, ROWS)).unwrap();
    for (major, bad, told) in [
        (15, "17000,x,1.5,bad", "column part: invalid input syntax for type integer"),
        (18, "17,1,1.5,again", "duplicate key value violates unique constraint"),
        (13, "17000,1,1.5,bad\n17000,1,1.5,bad", "duplicate key value violates unique constraint"),
    ] {
        let source = files.put(
            "bad.csv",
            format!("{text}{bad}\n").replace("17000,1,1.5,bad\n", "27000,1,1.5,bad\n").as_bytes(),
        );
        let database = prepared(Server::shared(major));
        let command = frozen(&database, &[&source]);
        let failed = command.run(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains(told) && failed.contains("bad.csv"), "{failed}");
        assert!(failed.contains("stored 0"), "{failed}");
        assert_eq!(database.value("SELECT count(*) FROM t WHERE note = 'old'"), "5000", "PostgreSQL {major}");
        let source = files.put("bad.csv", text.as_bytes());
        let mended = frozen(&database, &[&source]);
        mended.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        assert_nothing_left(&database, &format!("PostgreSQL {major}"));
    }
}

#[test]
fn what_is_refused_for_rows_that_came_before_is_told_at_once_and_of_a_pipe_too() {
    let files = Files::new();
    let text = String::from_utf8(csv(79, 1, ROWS)).unwrap() + "17,1,1.5,again\n";
    let source = files.put("bad.csv", text.as_bytes());
    let trigger = "CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                     IF EXISTS (SELECT FROM t WHERE id = new.id) THEN RAISE 'once only'; END IF; RETURN new; END $$; \
                   CREATE TRIGGER once BEFORE INSERT ON t FOR EACH ROW WHEN (new.note = 'again') EXECUTE FUNCTION once()";
    for (major, pipe, sqlstate, extra) in [
        (15, false, "23505", ""),
        (18, true, "23505", ""),
        (13, true, "P0001", trigger),
        (18, false, "P0001", trigger),
    ] {
        let database = prepared(Server::shared(major));
        database.sql(extra);
        let sources: &[&Path] = if pipe { &[Path::new("-")] } else { &[&source] };
        let command = frozen(&database, sources).args(["--indexes", "keep", "--json"]).stdin(text.clone());
        let failed = command.run(PATIENCE).expect_code(1);
        let told: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
        let (error, what) = (&told["error"], format!("PostgreSQL {major}, {}", failed.stderr));
        assert_eq!(error["sqlstate"], sqlstate, "{what}");
        assert_eq!(error["record"], ROWS + 1, "{what}");
        assert!(!failed.stderr.contains("loaded again"), "{what}");
        assert_eq!(database.value("SELECT count(*) FROM t WHERE note = 'old'"), "5000", "{what}");
    }
}

#[test]
fn ctrl_c_leaves_the_old_rows_and_two_runs_at_once_store_all_rows_once() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(76, 1, ROWS));
    side_by_side(MAJORS, |major| {
        let database = prepared(Server::shared(major));
        slow_down(&database);
        let command = frozen(&database, &[&source]).args(["--lock-timeout", "200ms"]);
        let mut running = command.spawn();
        assert!(wait_until_held(&database, &mut running));
        running.interrupt();
        let stopped = running.wait(PATIENCE);
        assert_eq!(stopped.code, Some(130), "{}", stopped.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t WHERE note = 'old'"), "5000", "PostgreSQL {major}");
        let both = [command.spawn(), command.spawn()];
        for running in both {
            let finished = running.wait(PATIENCE);
            let is_late = finished.stderr.contains("this job finished at");
            assert!(finished.code == Some(0) || is_late, "PostgreSQL {major}: {}", finished.stderr);
        }
        assert_eq!(
            database.value("SELECT count(*) || '/' || count(DISTINCT id) FROM t"),
            format!("{ROWS}/{ROWS}")
        );
        assert_nothing_left(&database, &format!("PostgreSQL {major}"));
    });
}

#[test]
fn without_wal_where_the_server_needs_none() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(77, 1, 10 * ROWS));
    let minimal = ServerOptions::default().set("wal_level", "minimal").set("max_wal_senders", "0");
    for major in MAJORS {
        let server = Server::private(major, &minimal);
        let database = server.database();
        database.sql("CREATE TABLE t (id bigint, part integer, amount numeric, note text)");
        let command = frozen(&database, &[&source]);
        let planned = howdah("plan")
            .args(["--format", "csv", "--header", "--table", "t", "--mode", "truncate", "--freeze"]);
        let planned = planned.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(0);
        assert!(planned.stdout.contains("without WAL"), "{}", planned.stdout);
        let before = database.value("SELECT pg_current_wal_lsn()");
        command.run(PATIENCE).expect_code(0);
        let share =
            format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{before}') * 10 < pg_table_size('t')");
        assert_eq!(database.value(&share), "t", "PostgreSQL {major}");
        // It is on the disk all the same.
        server.crash_and_restart();
        assert_eq!(database.value("SELECT count(*) FROM t"), (10 * ROWS).to_string(), "PostgreSQL {major}");
    }
}

#[test]
fn tables_that_the_load_makes_come_frozen_side_by_side() {
    let files = Files::new();
    for no in 1..=5 {
        files.put(&format!("n{no}.csv"), &csv(78, 1, 2_000 * no));
    }
    let database = Server::shared(18).database();
    let pattern = files.path().join("{table}.csv");
    let command = howdah("load").args(["--to", &database.conninfo(), "--create", "--freeze", "--jobs", "2"]);
    command.arg(&pattern).run(PATIENCE).expect_code(0);
    for no in 1..=5 {
        let rows = database.rows(&format!("SELECT count(*), count(DISTINCT xmin::text) FROM n{no}"));
        assert_visible(&database, &format!("n{no}"), "made by the load");
        let expected = [(2_000 * no).to_string(), "1".to_owned()].map(Some);
        assert_eq!(rows[0], expected, "n{no}");
    }
}

#[test]
fn rows_of_partitions_come_frozen_too() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(83, 1, 2 * ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY LIST (part); \
             CREATE TABLE few PARTITION OF t FOR VALUES IN (1); CREATE TABLE many PARTITION OF t DEFAULT PARTITION BY HASH (id); \
             CREATE TABLE many_0 PARTITION OF many FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE many_1 PARTITION OF many FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
             CREATE INDEX ON t (id); INSERT INTO t SELECT i, i % 10, 0, 'old' FROM generate_series(1, 1000) i",
        );
        let before = schema(&database);
        let command = frozen(&database, &[&source]).args(["--after", "analyze", "--verify", "checksum"]);
        command.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), (2 * ROWS).to_string(), "PostgreSQL {major}");
        if major > 13 {
            assert_visible(&database, "t", &format!("PostgreSQL {major}"));
        }
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
    }
}

#[test]
fn files_of_two_kinds_share_the_transaction_of_their_table() {
    let files = Files::new();
    let ordinary = files.put("a.csv", &csv(84, 1, ROWS));
    let turned: String = (1..=2_000).map(|no| format!("note {no},{}\n", ROWS + no)).collect();
    let turned = files.put("b.csv", format!("note,id\n{turned}").as_bytes());
    let database = prepared(Server::shared(15));
    let load = |by: &str| {
        let load = load(&database, &[&ordinary, &turned]).args(["--mode", "truncate", "--freeze"]);
        load.args(["--chunk-size", "128kB", "--verify", by]).run(PATIENCE)
    };
    let refused = load("checksum").expect_code(2).stderr;
    assert!(refused.contains("files of several kinds come into public.t in one transaction"), "{refused}");
    let finished = load("count").expect_code(0).stderr;
    assert!(finished.contains("verify 22,000 rows"), "{finished}");
    let rows = database.rows("SELECT count(*), count(DISTINCT xmin::text), count(part) FROM t");
    assert_eq!(rows[0], ["22000", "1", "20000"].map(|text| Some(text.to_owned())));
}

#[test]
fn rows_of_others_in_a_table_that_the_load_made_stay() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(79, 1, ROWS));
    let database = Server::shared(15).database();
    let load = |options: &[&str]| {
        let load = howdah("load").args([
            "--to",
            &database.conninfo(),
            "--create",
            "--table",
            "t",
            "--chunk-size",
            "128kB",
        ]);
        load.args(options).arg(&source)
    };
    // The first run makes the table, and waits for others who have it.
    let mut running = load(&["--freeze", "--lock-timeout", "100ms"]).spawn();
    let made =
        "SELECT count(*) FROM howdah.job WHERE (plan #>> '{tables,0,table,oid}')::oid = to_regclass('t')";
    assert!(database.wait_for(made, 1, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    database.sql(END_SESSIONS);
    database.sql("INSERT INTO t (id, note) VALUES (-1, 'other') ON CONFLICT DO NOTHING");
    let finished = load(&["--freeze"]).run(PATIENCE);
    let rows = database
        .value("SELECT count(*) FILTER (WHERE id > 0) || '/' || count(*) FILTER (WHERE id < 0) FROM t");
    assert_eq!(rows, format!("{ROWS}/1"), "{}", finished.stderr);
    let was_done = finished.stderr.contains("this job finished at");
    assert!(was_done || finished.stderr.contains("rows are in public.t already"), "{}", finished.stderr);
}

#[test]
fn a_file_without_a_record_empties_the_table() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,part,amount,note\n");
    let database = prepared(Server::shared(13));
    load(&database, &[&source]).args(["--mode", "truncate", "--freeze"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn verify_tells_that_rows_are_gone_though_all_came_in_one_transaction() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(80, 1, ROWS));
    let database = prepared(Server::shared(15));
    database.sql(
        "CREATE FUNCTION thief() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE id = 7; RETURN NULL; END'; \
         CREATE TRIGGER thief AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION thief()",
    );
    let verify = |source: &Path, by: &str| {
        let load = frozen(&database, &[source]);
        load.args(["--verify", by]).run(PATIENCE).expect_code(1).stderr
    };
    let told = verify(&source, "count");
    assert!(
        told.contains("public.t: 19999 rows are in the table as this load has stored them, expected 20000"),
        "{told}"
    );
    database.sql("ALTER FUNCTION thief() RENAME TO other; CREATE OR REPLACE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS \
                  'BEGIN UPDATE t SET part = part + 1 WHERE id = 8; RETURN NULL; END'");
    let told = verify(&files.put("b.csv", &csv(82, 1, ROWS)), "checksum");
    assert!(told.contains("since all came in one transaction"), "{told}");
}

#[test]
fn where_rows_cannot_come_frozen_is_said_before_any_is_read() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(81, 1, 10));
    let database = prepared(Server::shared(18));
    database.sql(
        "CREATE TABLE parts (id bigint, part integer, amount numeric, note text) PARTITION BY RANGE (id)",
    );
    let refused = |options: &[&str]| {
        let load =
            howdah("load").args(["--format", "csv", "--header", "--to", &database.conninfo(), "--freeze"]);
        load.args(options).arg(&source).run(PATIENCE).stderr
    };
    for (options, told) in [
        (&["--table", "t"][..], "neither does this load make the table, nor does it empty it"),
        (
            &["--table", "parts", "--mode", "truncate"],
            "the server takes no COPY FREEZE into a partitioned table",
        ),
        (
            &["--table", "parts", "--mode", "truncate", "--partitions", "parent"],
            "it finds the partition of each row: --partitions parent",
        ),
        (&["--table", "t", "--atomic"], "not from a staging table"),
        (
            &["--table", "t", "--mode", "truncate", "--on-error", "skip"],
            "a record that is refused takes all of them with it",
        ),
        (&["--table", "t", "--ledger", "none"], "exclude each other"),
    ] {
        let stderr = refused(options);
        assert!(stderr.contains(told) && !stderr.contains("says why"), "{options:?}: {stderr}");
    }
    assert_eq!(database.value("SELECT count(*) FROM t"), "5000");
}

/// The key of a record, as the file spells it.
type KeyOf = fn(u64) -> String;

/// What the key's type rounds or cuts lies in another partition than what the file has.
#[test]
fn rows_whose_key_is_rounded_into_another_partition_come_frozen() {
    let files = Files::new();
    let cases: [(&str, &str, KeyOf); 4] = [
        ("timestamp(0)", "RANGE (k)", |no| match no {
            700 => "2024-01-31 23:59:59.7".to_owned(),
            _ => format!("2024-0{}-05 11:59:59", no % 2 + 1),
        }),
        ("numeric(10,2)", "RANGE (k)", |no| match no {
            700 => "99.996".to_owned(),
            _ => format!("{}.25", no % 2 * 100 + 50),
        }),
        ("time(0)", "RANGE (k)", |no| match no {
            700 => "11:59:59.8".to_owned(),
            _ => format!("{}:30:00", no % 2 * 12 + 10),
        }),
        ("varchar(2)", "LIST (k)", |no| match no {
            700 => "ab ".to_owned(),
            _ => ["ab", "cd"][usize::from(no % 2 == 1)].to_owned(),
        }),
    ];
    for (key, by, value) in cases {
        let csv = (0..2000).fold("id,k\n".to_owned(), |csv, no| csv + &format!("{no},{}\n", value(no)));
        let source = files.put("a.csv", csv.as_bytes());
        for major in [13, 18] {
            let database = Server::shared(major).database();
            let (one, two) = match key {
                "timestamp(0)" => ("FROM (MINVALUE) TO ('2024-02-01')", "FROM ('2024-02-01') TO (MAXVALUE)"),
                "numeric(10,2)" => ("FROM (MINVALUE) TO (100)", "FROM (100) TO (MAXVALUE)"),
                "time(0)" => ("FROM (MINVALUE) TO ('12:00')", "FROM ('12:00') TO (MAXVALUE)"),
                _ => ("IN ('ab')", "IN ('cd')"),
            };
            for table in ["t", "wanted"] {
                database.sql(&format!(
                    "CREATE TABLE {table} (id int, k {key}) PARTITION BY {by}; \
                     CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES {one}; \
                     CREATE TABLE {table}_2 PARTITION OF {table} FOR VALUES {two}"
                ));
            }
            database
                .copy_in("COPY wanted FROM STDIN (FORMAT csv, HEADER)", csv.clone().into_bytes())
                .unwrap();
            for freeze in [true, false] {
                let options = if freeze {
                    &["--mode", "truncate", "--freeze"][..]
                } else {
                    &["--mode", "truncate", "--force"]
                };
                let done = load(&database, &[&source]).args(options).run(PATIENCE).expect_code(0);
                let what = format!("PostgreSQL {major}, {key}, freeze: {freeze}: {}", done.stderr);
                for part in ["1", "2"] {
                    let digest = |table: &str| database.digest(&format!("{table}_{part}"));
                    assert_eq!(digest("t"), digest("wanted"), "{what}");
                }
                assert!(!done.stderr.contains("are loaded again"), "{what}");
            }
        }
    }
}

/// The server marks pages of many rows that it stores at once: none where each row meets a trigger or a
/// volatile default, and none of wide values. The guide says so.
#[test]
fn pages_of_rows_that_come_one_by_one_are_left_to_a_vacuum() {
    let files = Files::new();
    let narrow = files.put("a.csv", &csv(73, 1, 2_000));
    let wide: String = (0..20).map(|id| format!("{id},1,2,{}\n", "y".repeat(9000))).collect();
    let wide = files.put("wide.csv", format!("id,part,amount,note\n{wide}").as_bytes());
    let itself = "'t'::regclass";
    let toast = "(SELECT reltoastrelid FROM pg_class WHERE oid = 't'::regclass)";
    let external = "DROP INDEX t_note_idx; ALTER TABLE t ALTER note SET STORAGE EXTERNAL";
    let trigger = "CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
                   CREATE TRIGGER same BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION same()";
    for major in [15, 18] {
        for (change, source, relation, are_marked) in [
            (external, &wide, itself, true),
            (external, &wide, toast, false),
            (trigger, &narrow, itself, false),
            ("ALTER TABLE t ADD at timestamptz DEFAULT clock_timestamp()", &narrow, itself, false),
        ] {
            let database = prepared(Server::shared(major));
            database.sql(&format!("CREATE EXTENSION pg_visibility; {change}"));
            let marked = || {
                database.value(&format!("SELECT all_frozen > 0 FROM pg_visibility_map_summary({relation})"))
            };
            let command = frozen(&database, &[source]);
            command.run(PATIENCE).expect_code(0);
            assert_eq!(marked() == "t", are_marked, "PostgreSQL {major}: {change}");
            if !are_marked {
                command.args(["--force", "--after", "vacuum"]).run(PATIENCE).expect_code(0);
                assert_eq!(marked(), "t", "PostgreSQL {major}: {change}");
            }
        }
    }
}
