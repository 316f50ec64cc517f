//! What others do to a table, or have left undone, while a new one takes its place or its keys tell good rows
//! from bad ones.

use super::{assert_nothing_left, load};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::indexes::{PLAIN_SCHEMA, kills, schema};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Finished, MAJORS, Running, Server};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: u64 = 5000;

/// `PLAIN_SCHEMA` with more that can be changed.
fn made(database: &Database) {
    database.sql(&format!(
        "{PLAIN_SCHEMA}; ALTER TABLE t ADD own bigint GENERATED ALWAYS AS IDENTITY, ADD free text DEFAULT 'x'"
    ));
}

/// Replaces the table; as soon as the new one is there, others change the old one.
fn replace_beside(database: &Database, source: &Path, changes: &str) -> Finished {
    replace_beside_when(database, source, "SELECT FROM pg_class WHERE relname LIKE 'howdah\\_new%'", changes)
}

/// The same as soon as the query gives a row.
fn replace_beside_when(database: &Database, source: &Path, when: &str, changes: &str) -> Finished {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            database.sql(&format!(
                "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE; \
                 DO $$ BEGIN FOR i IN 1..60000 LOOP \
                     EXIT WHEN EXISTS ({when}); PERFORM pg_sleep(0.01); \
                 END LOOP; END $$; {changes}; COMMIT"
            ));
        });
        let held = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'AccessShareLock' AND granted";
        assert!(database.wait_for(held, 1, || true));
        load(database, &[source]).args(["--mode", "replace", "--lock-timeout", "100ms"]).run(PATIENCE)
    })
}

#[test]
fn what_says_nothing_about_rows_is_taken_along() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(71, 1, ROWS));
    let changes = "ALTER TABLE t SET (fillfactor = 60, autovacuum_enabled = off); ALTER TABLE t RESET (autovacuum_enabled); \
         ALTER TABLE t SET (toast.autovacuum_enabled = off); \
         ALTER TABLE t ALTER note SET STATISTICS 300, ALTER note SET STORAGE EXTERNAL, ALTER note SET (n_distinct = 7), \
             ALTER part SET DEFAULT 9, ALTER free DROP DEFAULT; \
         COMMENT ON COLUMN t.note IS 'it''s'; COMMENT ON TABLE t IS 'all'; GRANT SELECT ON t TO PUBLIC";
    for major in MAJORS {
        let [database, wanted] = [(); 2].map(|()| Server::shared(major).database());
        [&database, &wanted].into_iter().for_each(made);
        wanted.sql(changes);
        replace_beside(&database, &source, changes).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        assert_eq!(schema(&database), schema(&wanted), "PostgreSQL {major}");
        assert_nothing_left(&database, "replaced");
    }
}

#[test]
fn what_others_change_of_columns_and_constraints_is_not_lost() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(72, 1, ROWS));
    for (major, changes, told) in [
        (13, "ALTER TABLE t ADD extra int DEFAULT 3", "the column extra"),
        (18, "ALTER TABLE t ADD CONSTRAINT positive CHECK (part >= 0)", "the constraint positive"),
        (15, "ALTER TABLE t ALTER free SET NOT NULL", "the column free"),
        (18, "ALTER TABLE t ALTER free SET NOT NULL", "the column free"),
        (15, "ALTER TABLE t DROP free", "the column free"),
        (15, "ALTER TABLE t ALTER free TYPE varchar(20)", "the column free"),
    ] {
        let database = Server::shared(major).database();
        made(&database);
        database.sql("INSERT INTO t (id, part, amount, note) VALUES (0, 0, 0, 'there')");
        let refused = replace_beside(&database, &source, changes).expect_code(1);
        let wanted = format!("public.t was changed while its new rows were loaded: {told}");
        assert!(refused.stderr.contains(&wanted), "{changes}\n{}", refused.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t"), "1", "{changes}");
        assert_nothing_left(&database, changes);
        let changed = schema(&database);
        load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{changes}");
        assert_eq!(schema(&database), changed, "{changes}");
    }
}

/// What is taken from the old table, or made anew, when the new one has it already.
#[test]
fn indexes_and_foreign_keys_that_are_dropped_meanwhile_do_not_come_back() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(77, 1, ROWS));
    let made = |database: &Database| {
        database.sql(
            "CREATE TABLE o (id int PRIMARY KEY); INSERT INTO o SELECT generate_series(0, 255); \
             CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text, \
                 CONSTRAINT t_key UNIQUE (id, part), CONSTRAINT t_fk FOREIGN KEY (part) REFERENCES o); \
             CREATE INDEX t_part ON t (part)",
        );
    };
    let all_built = "SELECT FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
                     WHERE c.relname LIKE 'howdah\\_new%' AND k.contype = 'f' AND k.convalidated";
    for (major, changes, code) in [
        (13, "ALTER TABLE t DROP CONSTRAINT t_key", 0),
        (18, "DROP INDEX t_part; ALTER TABLE t DROP CONSTRAINT t_fk", 0),
        (15, "ALTER INDEX t_part RENAME TO t_other", 1),
        (
            18,
            "ALTER TABLE t DROP CONSTRAINT t_fk, ADD CONSTRAINT t_fk FOREIGN KEY (part) REFERENCES o ON DELETE CASCADE",
            1,
        ),
    ] {
        let [database, wanted] = [(); 2].map(|()| Server::shared(major).database());
        [&database, &wanted].into_iter().for_each(made);
        wanted.sql(changes);
        let replaced = replace_beside_when(&database, &source, all_built, changes);
        if replaced.expect_code(code).stderr.contains("has got an index or a foreign key") {
            load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
        }
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{changes}");
        assert_eq!(schema(&database), schema(&wanted), "{changes}");
        assert_nothing_left(&database, changes);
    }
}

/// Each builds what the other has not, none drops what the other goes on with.
#[test]
fn equal_runs_that_replace_a_table_at_once_do_not_hinder_each_other() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(73, 1, ROWS));
    for major in [13, 18] {
        let database = Server::shared(major).database();
        made(&database);
        let before = schema(&database);
        for round in 0..3 {
            let command = load(&database, &[&source]).args(["--mode", "replace", "--force"]);
            let runs: Vec<_> = (0..3).map(|_| command.spawn()).collect();
            for run in runs {
                let finished = run.wait(PATIENCE);
                let done = finished.code == Some(0) || finished.stderr.contains("this job finished");
                assert!(done, "PostgreSQL {major}, round {round}\n{}", finished.stderr);
            }
            assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
            assert_eq!(schema(&database), before, "PostgreSQL {major}");
            assert_nothing_left(&database, "after both");
        }
    }
}

#[test]
fn a_sequence_goes_on_where_it_was_told_to_and_a_table_stays_in_its_tablespace() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, 10));
    let database = Server::shared(18).database();
    made(&database);
    let name = database.name();
    database.sql(&format!("ALTER DATABASE {name} SET allow_in_place_tablespaces = on"));
    database.sql("CREATE TABLESPACE elsewhere LOCATION ''");
    database.sql(&format!("ALTER DATABASE {name} SET default_tablespace = 'elsewhere'"));
    database.sql("ALTER TABLE t DROP own; ALTER TABLE t ADD own bigint GENERATED BY DEFAULT AS IDENTITY; ALTER TABLE t ALTER own RESTART WITH 700");
    let source = {
        let text = std::fs::read_to_string(&source).unwrap();
        // The file brings the column, so that no value is drawn before the table is replaced.
        let lines: Vec<String> = text.lines().take(1).map(|line| format!("{line},own\n")).collect();
        files.put("own.csv", (lines.concat() + "1,2,3.5,note,5\n").as_bytes())
    };
    load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
    database.sql("INSERT INTO t (id) VALUES (-1)");
    assert_eq!(database.value("SELECT own FROM t WHERE id = -1"), "700");
    let elsewhere = "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class WHERE reltablespace <> 0 AND relnamespace = 'public'::regnamespace";
    assert_eq!(database.value(elsewhere), "");
    database.sql(&format!("ALTER DATABASE {name} RESET default_tablespace"));
    database.sql("DROP SCHEMA howdah CASCADE");
    database.sql("DROP TABLESPACE elsewhere");
}

/// A load that has dropped the indexes of the table is killed.
fn killed(database: &Database, files: &Files) {
    shut_gate_behind(database, 3);
    let source = files.put("killed.csv", &csv(75, 1_000_000, 20_000));
    let load = load(database, &[&source]).args([
        "--indexes",
        "rebuild",
        "--chunk-size",
        "64kB",
        "--jobs",
        "1",
        "--tune",
        "table",
    ]);
    let mut running = load.spawn();
    let hit = kills::wait_for(database, &mut running, kills::CHUNKS, 3);
    running.kill();
    remove_gate(database);
    assert!(hit, "the load was over before it was killed");
    // The server stores the chunks whose commits it has got.
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'howdah%'";
    while database.value(others) != "0" {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_ne!(database.value("SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL"), "0");
}

#[test]
fn keys_that_a_killed_load_has_dropped_are_back_before_they_judge_rows() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(76, 1, ROWS));
    let twice = files.put("twice.csv", b"id,part,amount,note\n1,2,3,x\n7000001,2,3,y\n7000001,2,3,z\n");
    let ways: [(&str, &Path, &[&str], i32); 4] = [
        ("replace", &source, &["--mode", "replace"], 0),
        ("merge", &source, &["--mode", "merge", "--key", "id"], 0),
        ("skip", &twice, &["--on-error", "skip"], 3),
        ("atomic", &twice, &["--on-error", "skip", "--atomic"], 3),
    ];
    for (major, (what, source, options, code)) in [13, 18, 15, 18].into_iter().zip(ways) {
        let database = Server::shared(major).database();
        made(&database);
        let before = schema(&database);
        killed(&database, &files);
        let rows: u64 = database.value("SELECT count(*) FROM t").parse().unwrap();
        let check = howdah("check").args(["--to", &database.conninfo(), "--table", "t"]);
        let refused = check.args(["--format", "csv", "--header"]).arg(source).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("which was killed before it has put it back"), "{}", refused.stderr);
        assert!(refused.stderr.contains("howdah restore "), "{}", refused.stderr);
        let plan = howdah("plan").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
        let plan = plan.args(["--header", "--mode", "truncate", "--on-error", "skip"]).arg(source);
        let told = plan.run(PATIENCE).expect_code(0).stdout;
        assert!(told.contains(" of public.t: put back as soon as the table is empty"), "{told}");
        let finished = load(&database, &[source]).args(options).run(PATIENCE).expect_code(code);
        assert!(finished.stderr.contains("is put back before rows come"), "{what}\n{}", finished.stderr);
        let wanted = match what {
            "replace" => ROWS,
            "merge" => rows + ROWS,
            _ => rows + 2,
        };
        assert_eq!(
            database.value("SELECT count(*) FROM t"),
            wanted.to_string(),
            "{what}\n{}",
            finished.stderr
        );
        assert_eq!(schema(&database), before, "{what}");
        assert_nothing_left(&database, what);
    }
}

/// Such a load is killed that has dropped the key of an empty table: the records with which its file goes on
/// do not matter.
fn killed_on_its_way(database: &Database, source: &Path) {
    shut_gate_behind(database, 3);
    let mut running = load(database, &[source]).args(SMALL_CHUNKS).args(["--indexes", "rebuild"]).spawn();
    let hit = kills::wait_for(database, &mut running, kills::CHUNKS, 3);
    running.kill();
    remove_gate(database);
    assert!(hit, "the load was over before it was killed");
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'howdah%'";
    while database.value(others) != "0" {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(database.value("SELECT to_regclass('t_pkey') IS NULL"), "t");
}

const SMALL_CHUNKS: [&str; 4] = ["--chunk-size", "64kB", "--jobs", "1"];

#[test]
fn keys_that_a_jobs_earlier_run_has_dropped_are_back_before_they_judge_rows() {
    let files = Files::new();
    let (once, twice) = (csv(84, 1, 20_000), b"1,2,3,again\n20000,2,3,again\n");
    let late = files.put("late.csv", &[&once[..], twice].concat());
    let early = files.put("early.csv", doubled_in_each_chunk(&once).as_bytes());
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(PLAIN_SCHEMA);
        let before = schema(&database);
        killed_on_its_way(&database, &late);
        let again = load(&database, &[&late]).args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
        assert!(again.stderr.contains("is put back before rows come"), "{}", again.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t"), "20000", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject WHERE sqlstate = '23505'"), "2");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "gone on with");
        // What is stored already contradicts the key.
        database.sql("TRUNCATE t; DROP SCHEMA howdah CASCADE");
        killed_on_its_way(&database, &early);
        let skip = load(&database, &[&early]).args(["--on-error", "skip"]);
        let refused = skip.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("several rows of the table have the same key"), "{refused}");
        assert!(
            refused.contains("hint: the rows are in the table; remove those that are too many"),
            "{refused}"
        );
        database.sql("DELETE FROM t WHERE note = 'first'");
        skip.run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), "20000", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "20000", "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
    }
}

/// Chunks of one file come in any order, so that no single one is sure to be among the first.
fn doubled_in_each_chunk(plain: &[u8]) -> String {
    let mut text = String::new();
    for line in std::str::from_utf8(plain).unwrap().split_inclusive('\n') {
        let id = line.split(',').next().and_then(|field| field.parse::<u64>().ok());
        if let Some(id) = id.filter(|id| id % 200 == 1) {
            text += &format!("{id},2,3,first\n");
        }
        text += line;
    }
    text
}

/// Whoever puts back what a killed load has dropped is not that load.
#[test]
fn a_load_waits_for_whoever_puts_back_what_a_killed_one_has_dropped() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(85, 1, 100));
    let database = Server::shared(18).database();
    made(&database);
    killed(&database, &files);
    let job = database.value("SELECT job_id FROM howdah.job");
    let key = format!("pg_catalog.hashtextextended('howdah/{job}', {})", 0x686f_7764_6168_i64);
    let holder = database.connect();
    holder.sql(&format!("SELECT pg_advisory_lock({key})"));
    let restore = howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(1).stderr;
    let message = format!("what job {job} has dropped is being put back by another process");
    assert!(restore.contains(&message) && restore.contains("hint: wait until that is done"), "{restore}");
    let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "id"]);
    let given_up = merge.clone().args(["--retry-for", "1s"]).run(PATIENCE).expect_code(1).stderr;
    assert!(given_up.contains("is being put back by another process"), "{given_up}");
    let mut waiting = merge.spawn();
    wait_for_words(&mut waiting, "is being put back by another process: waiting for that");
    drop(holder);
    waiting.wait(PATIENCE).expect_code(0);
    assert_nothing_left(&database, "put back");
}

/// Nothing tells whether somebody wants it back under another name.
#[test]
fn it_is_told_how_to_close_what_cannot_come_back_to_a_changed_table() {
    let files = Files::new();
    for (change, told, back) in [
        ("ALTER TABLE t RENAME note TO remark", "if the column was dropped, the index went with it", "3"),
        ("ALTER TABLE t DROP note", "if the column was dropped, the index went with it", "2"),
        ("ALTER TABLE t RENAME TO u", "or keep the new one and set undone_at", "0"),
    ] {
        let database = Server::shared(15).database();
        made(&database);
        killed(&database, &files);
        database.sql(change);
        let restore = || howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE);
        let refused = restore().expect_code(1).stderr;
        assert!(refused.contains(told) && refused.contains("undone_at"), "{change}\n{refused}");
        if change.contains("RENAME note") {
            database.sql("ALTER TABLE t RENAME remark TO note");
        } else {
            database.sql("UPDATE howdah.undo SET undone_at = now() WHERE undone_at IS NULL");
        }
        restore().expect_code(0);
        let indexes = "SELECT count(*) FROM pg_index WHERE indrelid IN (to_regclass('t'), to_regclass('u'))";
        assert_eq!(database.value(indexes), back, "{change}");
    }
}

/// Rows that go anyway contradict no key.
#[test]
fn what_contradicts_a_key_is_in_nobodys_way_who_empties_the_table() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(86, 1, ROWS));
    for major in [13, 18] {
        let database = Server::shared(major).database();
        made(&database);
        let before = schema(&database);
        killed(&database, &files);
        let twice = "INSERT INTO t (id, part, amount, note) SELECT id, part, amount, note FROM t LIMIT 1";
        database.sql(twice);
        let replace = load(&database, &[&source]).args(["--mode", "replace"]);
        let refused = replace.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("or empty the table, whose rows --mode replace does without"), "{refused}");
        let skip = load(&database, &[&source]).args(["--mode", "truncate", "--on-error", "skip"]);
        let told = skip.run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("is put back before rows come"), "{told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "emptied");
    }
}

/// A load that goes on until its pipe is closed; it has begun when the query gives that value.
fn load_slowly(
    database: &Database,
    files: &Files,
    options: &[&str],
    (begun, value): (&str, &str),
) -> (Running, File) {
    let fifo = files.path().join("slow.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let working = load(database, &[&fifo]).args(options).spawn();
    let mut pipe = File::options().write(true).open(&fifo).unwrap();
    pipe.write_all(&csv(78, 2_000_000, ROWS)).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while database.value(begun) != value {
        assert!(Instant::now() < deadline, "{begun}");
        std::thread::sleep(Duration::from_millis(5));
    }
    (working, pipe)
}

/// A load at work puts them back itself, so that nobody else can.
#[test]
fn a_table_whose_indexes_a_load_at_work_has_dropped_is_not_replaced() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(77, 1, ROWS));
    let database = Server::shared(15).database();
    made(&database);
    let before = schema(&database);
    let begun = "SELECT to_regclass('howdah.undo') IS NOT NULL AND to_regclass('t_pkey') IS NULL";
    let (working, pipe) = load_slowly(&database, &files, &["--indexes", "rebuild"], (begun, "t"));
    for options in [["--mode", "replace"], ["--on-error", "skip"]] {
        let refused = load(&database, &[&source]).args(options).run(PATIENCE).expect_code(1);
        assert!(
            refused.stderr.contains("which is at work and puts it back when it ends"),
            "{}",
            refused.stderr
        );
    }
    drop(pipe);
    working.wait(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
}

/// Such a publication lets no row be changed that nothing identifies, also none of the tables that a load
/// makes.
#[test]
fn a_publication_of_all_tables_keeps_no_rows_from_coming() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(79, 1, 100));
    let twice = files.put("twice.csv", b"id,part,amount,note\n1,2,3,x\n7000001,2,3,y\n7000001,2,3,z\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        made(&database);
        database.sql("CREATE PUBLICATION everything FOR ALL TABLES; ALTER TABLE t REPLICA IDENTITY NOTHING");
        let merge = ["--mode", "merge", "--key", "id", "--keep", "last"];
        let refused = load(&database, &[&twice]).args(merge).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("can come on top only, as it is in a publication"), "{refused}");
        database.sql("ALTER TABLE t REPLICA IDENTITY FULL");
        let told = load(&database, &[&source]).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the publication everything is of all tables"), "{told}");
        load(&database, &[&twice]).args(merge).run(PATIENCE).expect_code(0);
        for options in [["--on-error", "skip"].as_slice(), &["--on-error", "skip", "--atomic"]] {
            load(&database, &[&twice])
                .args(options)
                .args(["--known", "load", "--job-id", &options.concat().replace("--", "")])
                .run(PATIENCE)
                .expect_code(3);
        }
        let check = howdah("check").args([
            "--to",
            &database.conninfo(),
            "--table",
            "t",
            "--format",
            "csv",
            "--header",
        ]);
        check.arg(&twice).run(PATIENCE).expect_code(3);
        howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), "101", "PostgreSQL {major}");
        let refused = load(&database, &[&twice]).args(["--mode", "replace"]).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("it is part of the publication everything"), "{}", refused.stderr);
        database.sql("DROP PUBLICATION everything");
        assert_nothing_left(&database, "published");
    }
}

/// pg_upgrade from a version before 18 leaves it so: there NOT NULL had no name, and gets one by that of the
/// table that it is found in.
#[test]
fn not_null_of_a_new_table_that_pg_upgrade_has_named_is_no_change() {
    let files = Files::new();
    let source = files.put("first.csv", &csv(84, 1, 20_000));
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id bigint NOT NULL, part integer, amount numeric, note text)");
    let load = load(&database, &[&source]).args(["--mode", "replace", "--chunk-size", "64kB", "--jobs", "1"]);
    shut_gate_behind(&database, 3);
    let mut running = load.spawn();
    let hit = kills::wait_for(&database, &mut running, kills::CHUNKS, 3);
    running.kill();
    remove_gate(&database);
    assert!(hit, "the load was over before it was killed");
    database.sql(
        "DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE %s RENAME CONSTRAINT %I TO howdah_new_id_not_null', conrelid::regclass, conname) \
         FROM pg_constraint WHERE contype = 'n' AND conrelid <> 't'::regclass AND conname = 't_id_not_null'); END $$",
    );
    load.run(PATIENCE).expect_code(0);
    let names = "SELECT count(*) || ' ' || (SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'n') FROM t";
    assert_eq!(database.value(names), "20000 t_id_not_null");
}

/// The new table of a load that was killed draws from the sequence of the old one.
#[test]
fn a_new_table_that_a_killed_load_has_left_is_in_nobodys_way() {
    let files = Files::new();
    let first = files.put("first.csv", &csv(82, 1, 20_000));
    let second = files.put("second.csv", &csv(83, 1, ROWS));
    for major in [13, 18] {
        let database = Server::shared(major).database();
        made(&database);
        let before = schema(&database);
        let killed =
            load(&database, &[&first]).args(["--mode", "replace", "--chunk-size", "64kB", "--jobs", "1"]);
        shut_gate_behind(&database, 3);
        let mut running = killed.spawn();
        let hit = kills::wait_for(&database, &mut running, kills::CHUNKS, 3);
        let rival = load(&database, &[&second]).args(["--mode", "replace"]);
        running.kill();
        remove_gate(&database);
        assert!(hit, "the load was over before it was killed");
        let done = rival.run(PATIENCE).expect_code(0).stderr;
        let job = database.value("SELECT job_id FROM howdah.job WHERE status <> 'done'");
        let left = format!("job {job}, which did not end, has left rows in a new table for public.t");
        assert!(done.contains(&left), "{done}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        let refused = killed.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&format!("rows of job {job} wait in a staging table")), "{refused}");
        assert!(refused.contains(&format!("hint: `howdah restore {job} --to ")), "{refused}");
        howdah("restore").args(["--to", &database.conninfo(), &job]).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "restored");
        killed.run(PATIENCE).expect_code(0);
        assert_eq!(
            database.value("SELECT count(*) || ' ' || count(own) FROM t"),
            "20000 20000",
            "PostgreSQL {major}"
        );
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_nothing_left(&database, "both");
    }
}

#[test]
fn a_table_that_another_load_replaces_at_the_moment_is_left_to_it() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(84, 1, ROWS));
    let database = Server::shared(18).database();
    made(&database);
    let begun = "SELECT count(*) FROM pg_class WHERE relname LIKE 'howdah\\_new%' AND relkind = 'r'";
    let (working, pipe) = load_slowly(&database, &files, &["--mode", "replace"], (begun, "1"));
    let refused = load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(1);
    assert!(
        refused.stderr.contains("is at work on a new table that is to take the place of public.t"),
        "{}",
        refused.stderr
    );
    drop(pipe);
    working.wait(PATIENCE).expect_code(0);
    load(&database, &[&source]).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
}
