//! `howdah resume`: what it may do in another way than the load that it goes on with.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::process::Command;

const JOB: &str = "SELECT job_id FROM howdah.job ORDER BY started_at LIMIT 1";

fn load(database: &Database, options: &[&str]) -> HowdahCommand {
    howdah("load").args(["--to", &database.conninfo(), "--format", "csv", "--table", "t"]).args(options)
}

fn resume(database: &Database, options: &[&str]) -> HowdahCommand {
    let job = database.value(JOB);
    howdah("resume").args(["--to", &database.conninfo(), &job]).args(options)
}

/// What an error advises is taken by the command that has brought it.
#[test]
fn a_job_goes_on_with_more_bad_records_and_is_loaded_once_more() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let source = files.put("t.csv", b"1\nx\ny\n4\n5\n");
    let first = load(&database, &["--on-error", "skip", "--max-errors", "1"]).arg(&source);
    first.run(PATIENCE).expect_code(1);
    let few = resume(&database, &[]).run(PATIENCE).expect_code(1).stderr;
    assert!(few.contains("more than --max-errors 1 allows"), "{few}");
    let options = ["--max-errors", "5", "--jobs", "1", "--retry-for", "5s", "--pause-for", "5s"];
    resume(&database, &options).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT count(*) FROM t"), "3");
    let done = resume(&database, &[]).run(PATIENCE).expect_code(1).stderr;
    let hint =
        "hint: --force loads the same files once more; changed files make another job; `howdah status ";
    assert!(done.contains(hint), "{done}");
    resume(&database, &["--force", "--max-errors", "5"]).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT count(*) FROM t"), "6");
    assert_eq!(database.value("SELECT count(*) FROM howdah.job"), "2");
}

/// A job goes on with the options it was begun with.
#[test]
fn what_only_another_job_can_be_given_is_said_to_be_another_job() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY)");
    let source = files.put("t.csv", b"1\n2\n1\n");
    let begun =
        load(&database, &["--mode", "merge", "--key", "id"]).arg(&source).run(PATIENCE).expect_code(1);
    assert!(
        begun
            .stderr
            .ends_with("hint: --keep last lets the last record of each key count, --keep first the first\n")
    );
    let stopped = resume(&database, &[]).run(PATIENCE).expect_code(1).stderr;
    let hint = "; resume takes no --keep: the job's `howdah load` command with it is another job\n";
    assert!(stopped.ends_with(hint), "{stopped}");
    let keep = ["--mode", "merge", "--key", "id", "--keep", "last"];
    load(&database, &keep).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

/// What says how a job is run, and not which rows it stores, its own command takes: the advice to remove rows
/// first would lose them.
#[test]
fn an_option_that_makes_no_other_job_goes_on_with_this_one() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int CHECK (id < 19990))");
    let rows: String = (1..=20_000).map(|id| format!("{id}\n")).collect();
    let source = files.put("t.csv", rows.as_bytes());
    let load = |options: &[&str]| {
        load(&database, &["--chunk-size", "16kB", "--jobs", "1"]).args(options).arg(&source)
    };
    load(&["--on-error", "skip", "--max-errors", "1"]).run(PATIENCE).expect_code(1);
    let few = resume(&database, &["--max-errors", "2"]).run(PATIENCE).expect_code(1).stderr;
    let hint = "hint: howdah check with the same files and table lists them\n";
    assert!(few.ends_with(hint), "{few}");
    database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
    load(&["--on-error", "stop"]).run(PATIENCE);
    assert_eq!(database.value("SELECT count(*) FROM howdah.job"), "1");
    let rows = database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t WHERE id < 19990");
    assert_eq!(rows, "19989 19989");
    let all = "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM howdah.reject)";
    assert_eq!(database.value(all), "20000");
    assert_eq!(database.value("SELECT status FROM howdah.job"), "done");
}

#[test]
fn a_job_whose_name_looks_like_an_option_goes_on_by_the_command_that_is_told() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int CHECK (id < 4))");
    let source = files.put("t.csv", b"1\n2\n4\n");
    load(&database, &["--job-id=-x"]).arg(&source).run(PATIENCE).expect_code(1);
    database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
    let status =
        howdah("status").args(["--to", &database.conninfo(), "--", "-x"]).run(PATIENCE).expect_code(0);
    let told = status.stdout.split("go on with it: ").nth(1).unwrap_or_else(|| panic!("{}", status.stdout));
    let command = told.replacen("howdah", env!("CARGO_BIN_EXE_howdah"), 1);
    let typed = Command::new("sh").args(["-c", &command]).env_clear().output().unwrap();
    assert!(typed.status.success(), "{command}\n{}", String::from_utf8_lossy(&typed.stderr));
    assert_eq!(database.value("SELECT count(*) FROM t"), "3");
}

#[test]
fn a_job_with_a_long_record_goes_on_with_more_memory() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    let source = files.put("t.csv", format!("1,a\n2,{}\n3,c\n", "n".repeat(8 << 20)).as_bytes());
    let stopped = load(&database, &["--memory", "64MB"]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(stopped.contains("raise --memory"), "{stopped}");
    resume(&database, &["--memory", "256MB"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "3");
}

/// What is advised works: a smaller chunk size as long as nothing is stored, and more memory behind that.
#[test]
fn the_advice_of_a_job_whose_chunks_are_too_long_for_its_memory_is_taken() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let long = ["--chunk-size", "64MB", "--memory", "512MB", "--jobs", "2"];
    let refused = |hint: &str| {
        let refused = resume(&database, &["--memory", "64MB"]).run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains("chunks of 64MB do not fit a memory budget"), "{refused}");
        assert!(refused.ends_with(hint), "{refused}");
    };
    let made = ["--create", "--types", "*=int"];
    for (table, options) in [("t", &["--format", "csv"][..]), ("made", &made)] {
        database.sql("DROP SCHEMA IF EXISTS howdah CASCADE; DROP TABLE IF EXISTS t; CREATE TABLE t (id int)");
        let source = files.put("bad.csv", b"id\nx\n");
        let load = howdah("load").args(["--to", &database.conninfo(), "--header", "--table", table]);
        let load = load.args(options).arg(&source);
        load.clone().args(long).run(PATIENCE).expect_code(1);
        refused(
            "hint: give a smaller --chunk-size or a larger --memory; resume takes no --chunk-size: give it to the job's \
             `howdah load` command, which goes on with this job; remove nothing\n",
        );
        database.sql(&format!("ALTER TABLE {table} ALTER id TYPE text"));
        load.args(["--memory", "64MB", "--chunk-size", "64kB"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(&format!("SELECT string_agg(id, ' ') FROM {table}")), "x");
        let job = "SELECT concat_ws(' ', count(*), max(plan ->> 'chunk_bytes')) FROM howdah.job";
        assert_eq!(database.value(job), "1 65536");
    }

    database.sql(
        "DROP SCHEMA howdah CASCADE; DROP TABLE t; CREATE TABLE t (id int); \
         CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN WHILE NOT EXISTS (SELECT FROM howdah.chunk) LOOP PERFORM pg_sleep(0.01); END LOOP; RAISE ''late''; END'; \
         CREATE TRIGGER late BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION late()",
    );
    let sources = [files.put("a.csv", b"1\n"), files.put("b.csv", b"2\n")];
    load(&database, &long).args(&sources).run(PATIENCE).expect_code(1);
    refused("hint: chunks of this size are stored, and the others are as long: give a larger --memory\n");
    let other = load(&database, &["--chunk-size", "64kB"]).args(&sources).run(PATIENCE).expect_code(2).stderr;
    assert!(other.contains("hint: leave --chunk-size out to go on with it"), "{other}");
    database.sql("DROP TRIGGER late ON t");
    resume(&database, &["--memory", "512MB"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), "1 2");
}

#[test]
fn what_a_job_cannot_have_is_refused_when_it_goes_on() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    load(&database, &["--atomic"]).arg(files.put("t.csv", b"1\nx\n")).run(PATIENCE).expect_code(1);
    for (options, wanted) in [
        (["--max-errors", "5"], "--max-errors is for a job that was begun with --on-error skip"),
        (["--memory", "much"], "--memory: expected a size"),
        (
            ["--triggers", "disable"],
            "--triggers disable is for rows that come into the table as they are read",
        ),
    ] {
        let refused = resume(&database, &options).run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains(wanted), "{refused}");
    }
}
