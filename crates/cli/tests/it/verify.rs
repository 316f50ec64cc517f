//! `--verify`: what is stored is compared with the sources behind the last row, and what differs is found,
//! whoever did it.

use crate::gate::{open_gate, shut_gate_behind};
use crate::rights::Stage;
use crate::scene::{Files, PATIENCE, Scene, csv, gzip, howdah};
use howdah_testkit::{Database, Fault, Finished, HowdahCommand, MAJORS, Proxy, S3, Server, side_by_side};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

const ROWS: u64 = 6_000;
/// Some eight chunks of it.
const CHUNK: [&str; 2] = ["--chunk-size", "64kB"];

fn told(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Both ways are content, with this many rows.
#[track_caller]
fn assert_verified(finished: &Finished, by: &str, rows: u64) {
    let verified = &told(finished)["verified"];
    assert_eq!((&verified["by"], &verified["rows"]), (&by.into(), &rows.into()), "{}", finished.stdout);
    assert_eq!(verified["checksum"].is_string(), by == "checksum", "{verified}");
}

/// Fails with a difference whose words hold these.
#[track_caller]
fn assert_differs(finished: Finished, words: &[&str]) {
    let finished = finished.expect_code(1);
    let summary = told(&finished);
    assert_eq!(summary["error"]["kind"], "differs", "{}", finished.stdout);
    assert!(summary["verified"].is_null());
    for word in words {
        assert!(finished.stderr.contains(word), "{word}\n{}", finished.stderr);
    }
}

fn load(scene: &Scene, by: &str) -> HowdahCommand {
    scene.load().args(["--json", "--verify", by]).args(CHUNK)
}

#[test]
fn plain_and_compressed_files_of_several_chunks_are_found_equal() {
    for major in MAJORS {
        let (one, two) = (csv(1, 0, ROWS), csv(2, ROWS, ROWS / 2));
        for by in ["count", "checksum"] {
            let files = Files::new();
            let scene = Scene::new(Server::shared(major), &[&one, &two]);
            scene.database.sql("INSERT INTO t VALUES (-1, 1, 1, 'of another')");
            let sources = [files.put("one.csv", &one), files.put("two.csv.gz", &gzip(&two))];
            let done = load(&scene, by).args(sources).run(PATIENCE).expect_code(0);
            assert_verified(&done, by, ROWS + ROWS / 2);
            assert_eq!(told(&done)["verified"]["rows_of_others"], 1);
            assert!(told(&done)["stages"]["verify"].as_f64().unwrap() > 0.0);
            assert_eq!(scene.database.value("SELECT verified FROM howdah.job"), by);
            let job = told(&done)["job"].as_str().unwrap().to_owned();
            let status = scene.verb("status").arg(job).run(PATIENCE).expect_code(0).stdout;
            assert!(status.contains(&format!("compared with the sources by {by}")), "{status}");
            assert_eq!(scene.database.value("SELECT count(*) > 4 FROM howdah.chunk"), "t");
        }
    }
}

#[test]
fn values_of_all_kinds_are_compared_as_the_server_reads_them() {
    let types = "k integer, f double precision, n numeric, z timestamptz, a text[], j jsonb, b bytea, t text, c char(5), d date";
    let records = [
        r#"1,NaN,1.50,2024-03-31 02:30:00+02,"{a,""b c"",NULL}","{""b"": 1, ""a"": [1.0]}",\x00ff,,x,epoch"#,
        r#"02,-0,NaN,infinity,{},null,\x,"""""",ab   ,2024-02-29"#,
        r#" 3 ,1e-310,00012.0000,2024-01-01 00:00:00 America/New_York,"{{1},{2}}","""t""",,"two
lines",,infinity"#,
        r#",,,,,,,,,"#,
        r#"4,0.1,-0.0,1999-12-31 23:59:60+00,{NULL},[],\\,NULL,NULL,-infinity"#,
    ];
    let csv = format!("k,f,n,z,a,j,b,t,c,d\n{}\n", records.join("\n"));
    for major in MAJORS {
        let (files, database) = (Files::new(), Server::shared(major).database());
        database.sql(&format!(
            "CREATE TABLE t ({types}); ALTER DATABASE \"{}\" SET extra_float_digits = 0",
            database.name()
        ));
        let source = files.put("nasty.csv", csv.as_bytes());
        let load = howdah("load")
            .args(["--format", "csv", "--header", "--table", "t", "--json", "--verify", "checksum"]);
        let done = load.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(0);
        assert_verified(&done, "checksum", 5);
    }
}

#[test]
fn a_trigger_that_changes_a_value_is_found_with_the_column() {
    for major in MAJORS {
        let (files, plain) = (Files::new(), csv(3, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql(
            "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN NEW.amount := NEW.amount + 1; RETURN NEW; END'; \
             CREATE TRIGGER change BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 4000) EXECUTE FUNCTION change()",
        );
        let source = files.put("a.csv", &plain);
        let failed = load(&scene, "checksum").arg(&source).run(PATIENCE);
        assert_differs(
            failed,
            &["column amount", "a.csv", "record ", "other values are in the table", "in amount"],
        );
        // Nothing is loaded twice, and rows that are put right are found right.
        let again = load(&scene, "checksum").arg(&source).run(PATIENCE);
        assert_differs(again, &["in amount"]);
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), ROWS.to_string());
        // Which rows there are, the trigger has not changed.
        load(&scene, "count").arg(&source).run(PATIENCE).expect_code(0);
    }
}

/// As long as a load commits chunk by chunk, others see its rows and may change them.
fn meddle(database: &Database, sql: &str) {
    database.sql(&format!(
        "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF pg_trigger_depth() = 1 THEN {sql}; END IF; RETURN NULL; END'; \
         CREATE TRIGGER meddle AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION meddle()"
    ));
}

#[test]
fn rows_deleted_changed_or_doubled_meanwhile_are_found() {
    let cases = [
        ("DELETE FROM t WHERE id = 7", "count", "expected"),
        ("UPDATE t SET note = note WHERE id = 7", "count", "expected"),
        ("INSERT INTO t SELECT * FROM t WHERE id = 7", "count", "expected"),
        (
            "UPDATE t SET note = ''other'' WHERE id = 7 AND xmin = pg_current_xact_id()::xid",
            "checksum",
            "in note",
        ),
    ];
    for (major, (sql, by, words)) in MAJORS.into_iter().cycle().zip(cases) {
        let (files, plain) = (Files::new(), csv(4, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        meddle(&scene.database, sql);
        // One session: the row is there when later chunks meet it.
        let failed = load(&scene, by).args(["--jobs", "1"]).arg(files.put("a.csv", &plain)).run(PATIENCE);
        assert_differs(failed, &["records 1 to ", words]);
    }
}

/// No row tells any more what stored it: that is no loss, and is not told as one.
#[test]
fn of_a_table_that_another_has_written_anew_is_said_why_nothing_can_be_compared() {
    for major in MAJORS {
        let (files, plain) = (Files::new(), csv(6, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("INSERT INTO t VALUES (-1, 1, 1, 'of another')");
        let source = files.put("a.csv", &plain);
        load(&scene, "count").arg(&source).run(PATIENCE).expect_code(0);
        scene.database.sql("UPDATE howdah.job SET status = 'failed', verified = NULL");
        scene.database.sql("ALTER TABLE t ALTER amount TYPE real");
        let failed = load(&scene, "count").arg(&source).run(PATIENCE);
        assert_differs(failed, &["written all rows anew", "without --verify"]);
        let whole = scene.load().args(CHUNK).arg(&source).run(PATIENCE).expect_code(0);
        assert!(whole.stderr.contains("stored by another run"), "{}", whole.stderr);
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), (ROWS + 1).to_string());
        // Rows that somebody has deleted are not mistaken for it.
        scene.database.sql("UPDATE howdah.job SET status = 'failed'; DELETE FROM t WHERE id > 0");
        let failed = load(&scene, "count").arg(&source).run(PATIENCE);
        assert_differs(failed, &["has changed or deleted rows"]);
    }
}

#[test]
fn others_who_write_beside_the_load_do_not_matter() {
    for major in MAJORS {
        let (files, plain) = (Files::new(), csv(5, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("INSERT INTO t SELECT -i, 1, 1, 'old' FROM generate_series(1, 1000) i");
        scene.slow_down("AFTER", Duration::from_millis(20));
        let source = files.put("a.csv", &plain);
        let loading = load(&scene, "checksum").arg(&source).spawn();
        for round in 0..20 {
            scene.database.sql(&format!(
                "INSERT INTO t SELECT 100000 + {round}, 1, 1, 'new' FROM generate_series(1, 10); \
                 DELETE FROM t WHERE id = -{round}; UPDATE t SET note = 'x' WHERE id = -500 - {round}; \
                 SELECT FROM t WHERE id BETWEEN 0 AND 100 FOR UPDATE"
            ));
        }
        assert_verified(&loading.wait(PATIENCE).expect_code(0), "checksum", ROWS);
    }
}

#[test]
fn a_table_whose_column_became_wider_meanwhile_is_verified_whole() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    // Too large for all of it to be looked at before.
    let (mut text, wide) = ("id,code,note\n".to_owned(), "w".repeat(300));
    for no in 0..120_000 {
        let _ = writeln!(
            text,
            "{no},{},{wide}",
            if no == 100_000 { "x".to_owned() } else { (no % 100).to_string() }
        );
    }
    let source = files.put("late.csv", text.as_bytes());
    let to = database.conninfo();
    let load = |options: &[&str]| {
        let load = howdah("load").args(["--table", "late", "--json", "--to", &to, "--chunk-size", "1MB"]);
        load.args(options).arg(&source).run(PATIENCE)
    };
    let done = load(&["--create", "--verify", "checksum"]).expect_code(0);
    assert!(done.stderr.contains("column code of public.late became text"), "{}", done.stderr);
    assert_verified(&done, "checksum", 120_000);
    assert_eq!(told(&done)["verified"]["rows_of_others"], 0);
    // Whose rows a table had before that is written anew, nobody can tell.
    let refused = load(&["--evolve", "widen", "--verify", "count", "--known", "load"]).expect_code(2).stderr;
    assert!(refused.contains("may become wider"), "{refused}");
}

/// Exit code 2 says that nothing was touched.
#[test]
fn values_that_cannot_be_compared_when_all_rows_are_in_are_no_usage_error() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let (mut text, wide) = ("id,code,note\n".to_owned(), "w".repeat(300));
    for no in 0..120_000 {
        let code = if no == 100_000 { "x".to_owned() } else { (no % 100).to_string() };
        let _ = writeln!(text, "{no},{code},{wide}");
    }
    let sources = [
        files.put("late.csv", text.as_bytes()),
        files.put("turned.csv", b"note,code,id\nw,1,120000\nw,2,120001\n"),
    ];
    let load = |by: &str| {
        let load =
            howdah("load").args(["--table", "late", "--create", "--json", "--to", &database.conninfo()]);
        load.args(["--chunk-size", "1MB", "--verify", by]).args(&sources).run(PATIENCE)
    };
    let failed = load("checksum").expect_code(1);
    assert_eq!(told(&failed)["error"]["kind"], "ledger", "{}", failed.stderr);
    assert!(failed.stderr.contains("files of several kinds came into it"), "{}", failed.stderr);
    assert_eq!(database.value("SELECT count(*) FROM late"), "120002");
    assert_verified(&load("count").expect_code(0), "count", 120_002);
}

#[test]
fn a_pipe_is_refused_before_anything_is_loaded_and_counted_where_that_is_asked() {
    let plain = csv(6, 0, 100);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let refused = load(&scene, "checksum").arg("-").stdin(plain.clone()).run(PATIENCE).expect_code(2);
    assert!(refused.stderr.contains("a pipe does not allow"), "{}", refused.stderr);
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0");
    let done = load(&scene, "count").arg("-").stdin(plain.clone()).run(PATIENCE).expect_code(0);
    assert_verified(&done, "count", 100);
}

#[test]
fn several_tables_partitions_and_tables_that_the_load_makes_are_found_equal() {
    for major in MAJORS {
        let (one, two) = (csv(7, 0, ROWS), csv(8, 0, ROWS / 3));
        let files = Files::new();
        let scene = Scene::partitioned(Server::shared(major), &[&one]);
        scene.database.sql("CREATE TABLE u (note text, id int, part numeric, amount float8, extra serial)");
        files.put("t.csv", &one);
        files.put("u.csv", &two);
        files.put("made.csv", &two);
        let to = scene.database.conninfo();
        let source = files.path().join("{table}.csv");
        let load = howdah("load")
            .args(["--table", "{table}", "--create", "--json", "--to", &to, "--verify", "checksum"]);
        let done = load.args(CHUNK).arg(source).run(PATIENCE).expect_code(0);
        assert_verified(&done, "checksum", ROWS + 2 * (ROWS / 3));
        scene.assert_exact("partitions");
    }
}

/// They were compared while they waited: the sum is not that of the rows that stay.
#[test]
fn rows_that_are_left_out_behind_the_comparison_leave_no_checksum_and_that_is_said() {
    let (files, scene) = (Files::new(), Scene::new(Server::shared(15), &[]));
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
    let source = files.put("a.csv", &[csv(9, 0, 10), b"7,1,2,of a key that is there\n".to_vec()].concat());
    let command = scene.load().args(["--verify", "checksum", "--atomic", "--on-error", "skip"]);
    let account = command.arg(&source).run(PATIENCE).expect_code(3).stderr;
    assert!(account.contains("verify 10 rows compared with the files read again, with others"), "{account}");
}

#[test]
fn what_was_rejected_is_not_looked_for() {
    for major in MAJORS {
        let (files, scene) = (Files::new(), Scene::new(Server::shared(major), &[]));
        scene.database.sql(
            "ALTER TABLE t ADD CHECK (amount < 1e10), ADD PRIMARY KEY (id); CREATE TABLE k (part int); \
             INSERT INTO k SELECT generate_series(0, 255); ALTER TABLE k ADD PRIMARY KEY (part); \
             ALTER TABLE t ADD FOREIGN KEY (part) REFERENCES k",
        );
        let mut plain = csv(9, 0, ROWS);
        for id in [7, 7, 8, 4000] {
            plain.extend(
                format!("{id},1,2,of a key that is there\n{id},1,2,of a key that is there\n").bytes(),
            );
        }
        plain.extend(b"x,1,2,no number\n9000000,1,1e10,check\n9000001\n9000002,999,1,no such key\n");
        for (name, bytes) in [("a.csv", plain.clone()), ("b.csv.gz", gzip(&plain))] {
            scene.database.sql("TRUNCATE t");
            let source = files.put(name, &bytes);
            let done = load(&scene, "checksum")
                .args(["--on-error", "skip"])
                .arg(&source)
                .run(PATIENCE)
                .expect_code(3);
            let summary = told(&done);
            let stored: u64 = scene.database.value("SELECT count(*) FROM t").parse().unwrap();
            assert_verified(&done, "checksum", stored);
            // Read is stored and rejected: of the file, in the ledger as in the summary.
            let file = &summary["files"][0];
            let (read, rejected) =
                (file["rows_read"].as_u64().unwrap(), file["rows_rejected"].as_u64().unwrap());
            assert_eq!((read, stored + rejected), (ROWS + 12, ROWS + 12), "{summary}");
            assert_eq!(rejected, 12, "{summary}");
            let job = summary["job"].as_str().unwrap();
            let ledger = scene.database.value(&format!(
                "SELECT sum(rows) || ' ' || sum(rejected) || ' ' || \
                 (SELECT count(*) FROM howdah.reject r WHERE r.job_id = c.job_id AND r.file_no = c.file_no) \
                 FROM howdah.chunk c WHERE job_id = '{job}' GROUP BY job_id, file_no"
            ));
            assert_eq!(ledger, format!("{stored} {rejected} {rejected}"));
            let account = "SELECT rows_read || ' ' || rows_stored || ' ' || rows_rejected FROM howdah.file WHERE job_id";
            let account = scene.database.value(&format!("{account} = '{job}'"));
            assert_eq!(account, format!("{read} {stored} {rejected}"));
        }
    }
}

#[test]
fn records_that_howdah_reads_and_writes_anew_are_compared_as_it_wrote_them() {
    // Days and amounts in other people's spelling, another encoding, and records that no type takes, or no
    // mend.
    let mut text = "id;day;amount;note\n".to_owned();
    for id in 0..5000 {
        let amount =
            if id % 1000 == 7 { "x".to_owned() } else { format!("{}.{:03},5", id % 9 + 1, id % 900) };
        let _ = writeln!(text, "{id};{:02}/12/2023;{amount};gr\u{fc}n {id}", id % 28 + 1);
        if id % 1700 == 1 {
            text.push_str("12;13\n;;;\n");
        }
    }
    let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let cases: [(&[u8], &[&str], i32); 3] = [
        (text.as_bytes(), &["--on-error", "skip"], 3),
        (&latin1, &["--on-error", "skip", "--chunk-size", "16kB"], 3),
        (text.as_bytes(), &["--lenient", "--on-error", "skip", "--nul", "strip"], 3),
    ];
    for (major, (bytes, options, code)) in MAJORS.into_iter().zip(cases) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        database.sql("CREATE TABLE t (id int, day date, amount numeric, note text)");
        for (name, bytes) in [("a.csv", bytes.to_vec()), ("b.csv.gz", gzip(bytes))] {
            let to = database.conninfo();
            let spelt = ["--types", "day=date:d/m/y,amount=numeric:1.234,56"];
            let load = howdah("load").args(["--table", "t", "--json", "--to", &to, "--verify", "checksum"]);
            let load = load.args(spelt).args(options);
            let done = load.arg(files.put(name, &bytes)).run(PATIENCE).expect_code(code);
            let rows = told(&done)["rows_stored"].as_u64().unwrap();
            assert!(rows >= 4995, "{}", done.stdout);
            assert_verified(&done, "checksum", rows);
        }
        assert_eq!(database.value("SELECT count(*) FROM t WHERE day < '2023-12-01'"), "0");
    }
}

#[test]
fn a_load_that_was_killed_is_verified_whole_by_the_run_that_ends_it() {
    side_by_side(MAJORS, |major| {
        let (files, plain) = (Files::new(), csv(10, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        shut_gate_behind(&scene.database, 2);
        let source = files.put("a.csv", &plain);
        let mut running = load(&scene, "checksum").args(["--jobs", "1"]).arg(&source).spawn();
        assert!(scene.wait_for_chunks(2, || running.is_running()));
        running.kill();
        open_gate(&scene.database);
        let done = load(&scene, "checksum").arg(&source).run(PATIENCE).expect_code(0);
        assert!(told(&done)["rows_stored_before"].as_u64().unwrap() > 0);
        assert_verified(&done, "checksum", ROWS);
        scene.assert_exact("killed");
    });
}

/// A table with a key, some rows of which the file `csv(.., 0, ROWS)` has too.
fn keyed(major: u32, plain: &[u8]) -> Scene {
    let scene = Scene::new(Server::shared(major), &[plain]);
    scene.database.sql(
        "ALTER TABLE t ADD PRIMARY KEY (id); INSERT INTO t SELECT * FROM wanted WHERE id % 3 = 0; \
                        UPDATE t SET note = 'old' WHERE id % 2 = 0",
    );
    scene
}

const MODES: &[&[&str]] = &[
    &["--mode", "merge", "--key", "id"],
    &["--mode", "merge", "--key", "id", "--atomic"],
    &["--mode", "merge", "--key", "id", "--keep", "last", "--delete-missing"],
    &["--mode", "insert-new", "--key", "id"],
    &["--mode", "insert-new", "--key", "id", "--atomic", "--keep", "first"],
    &["--mode", "truncate"],
    &["--mode", "replace"],
];

#[test]
fn rows_that_wait_in_a_staging_table_are_verified_there_and_where_they_come() {
    for (no, mode) in MODES.iter().enumerate() {
        for by in ["count", "checksum"] {
            let (files, mut plain) = (Files::new(), csv(11, 0, ROWS));
            let scene = keyed(MAJORS[no % 3], &plain);
            if mode.contains(&"--keep") {
                plain.extend(b"5,1,1,again\n4000,1,1,again\n");
            }
            let done =
                load(&scene, by).args(*mode).arg(files.put("a.csv", &plain)).run(PATIENCE).expect_code(0);
            let rows = ROWS + if mode.contains(&"--keep") { 2 } else { 0 };
            assert_verified(&done, by, rows);
            assert_eq!(scene.database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{mode:?}");
        }
    }
    for major in MAJORS {
        let (files, plain) = (Files::new(), csv(12, 0, ROWS));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let source = files.put("a.csv", &plain);
        assert_verified(
            &load(&scene, "checksum").arg("--atomic").arg(source).run(PATIENCE).expect_code(0),
            "checksum",
            ROWS,
        );
        scene.assert_exact("atomic");
    }
}

#[test]
fn a_trigger_that_changes_rows_on_their_way_from_a_staging_table_is_found() {
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--atomic"], "note := 'changed'", "0"),
        (&["--mode", "merge", "--key", "id", "--atomic"], "note := 'changed'", "0"),
        (&["--mode", "merge", "--key", "id"], "note := 'changed'", "5000"),
        (&["--mode", "insert-new", "--key", "id"], "part := -1", "5000"),
    ];
    for (major, (mode, change, there)) in MAJORS.into_iter().cycle().zip(cases) {
        let (files, plain) = (Files::new(), csv(13, 0, 5000));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql(&format!(
            "ALTER TABLE t ADD PRIMARY KEY (id); \
             CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.{change}; RETURN NEW; END$$; \
             CREATE TRIGGER change BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 4000) EXECUTE FUNCTION change()"
        ));
        let source = files.put("a.csv", &plain);
        assert_differs(load(&scene, "checksum").args(mode).arg(&source).run(PATIENCE), &["public.t"]);
        // What comes at once is looked at before anybody sees it.
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), there, "{mode:?}");
        scene.database.sql("DROP TRIGGER change ON t; DELETE FROM t");
        if there == "0" {
            load(&scene, "checksum").args(mode).arg(&source).run(PATIENCE).expect_code(0);
        }
    }
}

#[test]
fn what_a_role_lacks_for_it_is_said_in_the_plan() {
    for major in MAJORS {
        let (files, plain) = (Files::new(), csv(14, 0, 50));
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let (database, role) =
            (scene.database.name().to_owned(), format!("verifier_{}", scene.database.name()));
        scene.database.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE \"{database}\" TO {role}; \
             GRANT USAGE ON SCHEMA public TO {role}; REVOKE TEMPORARY ON DATABASE \"{database}\" FROM PUBLIC; \
             GRANT SELECT (id) ON t TO {role}; CREATE VIEW v AS SELECT * FROM t; GRANT INSERT ON v TO {role}; \
             CREATE FUNCTION into_t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER into_t INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION into_t()"
        ));
        let source = files.put("a.csv", &plain);
        let to = scene.database.conninfo().replace("user=postgres", &format!("user={role}"));
        let load = |by: &str| scene.load_to(&to).args(["--json", "--verify", by]).arg(&source);
        let lacks = |by: &str, grant: &str| {
            let refused = load(by).run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains(&format!("GRANT {grant}")), "{grant}\n{refused}");
        };
        lacks("count", "SELECT (\"xmin\", \"part\", \"amount\", \"note\") ON \"public\".\"t\"");
        scene.database.sql(&format!("GRANT SELECT (xmin, part, amount, note) ON t TO {role}"));
        lacks("checksum", "TEMPORARY ON DATABASE");
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0");
        scene.database.sql(&format!("GRANT TEMPORARY ON DATABASE \"{database}\" TO {role}"));
        assert_verified(&load("checksum").run(PATIENCE).expect_code(0), "checksum", 50);
        let of_view = howdah("load").args(["--table", "v", "--to", &to, "--verify", "count"]).arg(&source);
        let refused = of_view.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("ordinary and partitioned tables"), "{refused}");
    }
}

#[test]
fn a_store_that_is_away_when_all_is_to_be_read_again_is_asked_again() {
    let plain = csv(21, 0, 500);
    let s3 = S3::start();
    s3.put("again", "a.csv", &plain);
    let proxy = Proxy::before_s3(&s3);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    shut_gate_behind(&scene.database, 0);
    let load = load(&scene, "checksum").envs(s3.env_through(&proxy)).arg("s3://again/a.csv");
    let running = load.spawn();
    let began = Instant::now();
    let waits =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    assert!(scene.database.wait_for(waits, 1, || began.elapsed() < PATIENCE));
    proxy.set(Fault::Refuse);
    open_gate(&scene.database);
    while !running.stderr_so_far().contains("trying again in") && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    proxy.set(Fault::Pass);
    assert_verified(&running.wait(PATIENCE).expect_code(0), "checksum", 500);
}

#[test]
fn all_rights_that_options_want_are_asked_for_at_once() {
    for major in [15, 18] {
        let stage = Stage::new(major);
        stage.sql("GRANT CONNECT, CREATE ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}");
        let source = stage.files.put("t.csv", b"a,b,k\n1,x,1\n");
        let (db, role) = (stage.database.name(), stage.quoted_role());
        let grants = [
            format!("GRANT INSERT ON \"s\".\"t\" TO {role}"),
            format!("GRANT SELECT ON \"s\".\"t\" TO {role}"),
            format!("GRANT TEMPORARY ON DATABASE \"{db}\" TO {role}"),
            format!("GRANT pg_monitor TO {role}"),
        ];
        let options = ["--verify", "checksum", "--max-replica-lag", "1GB"];
        for verb in ["plan", "load"] {
            let told = stage.verb(verb).args(options).arg(&source).run(PATIENCE).expect_code(1).stderr;
            for grant in &grants {
                assert!(told.contains(grant), "PostgreSQL {major}, {verb}: {grant}\n{told}");
            }
        }
        grants.iter().for_each(|grant| stage.database.sql(grant));
        stage.verb("load").args(options).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "1");
    }
}
