//! `--rejects JOB`: mended records come on top of what their job has loaded, however it was loaded.

use super::told;
use crate::indexes::wait_for;
use crate::scene::{Files, PATIENCE, howdah, run_told};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::path::{Path, PathBuf};

const OPEN: &str = "SELECT count(*) FROM howdah.reject WHERE loaded_by IS NULL";

fn load(database: &Database) -> HowdahCommand {
    howdah("load").args(["--json", "--to", &database.conninfo(), "--on-error", "skip"])
}

/// Loads three records, one of them bad, and mends that; its job and the mended file.
fn mended(database: &Database, files: &Files, options: &[&str]) -> (String, PathBuf) {
    let source = files.put("day.csv", b"id,n\n1,5\n2,many\n3,5\n");
    let rejects = files.path().join("bad.csv");
    let first = load(database).args(["--table", "t"]).args(options.iter().copied()).arg("--reject-file");
    let first = first.arg(&rejects).arg(&source).run(PATIENCE).expect_code(3);
    let written = std::fs::read_to_string(&rejects).unwrap();
    std::fs::write(&rejects, written.replace("many", "7")).unwrap();
    (told(&first)["job"].as_str().unwrap().to_owned(), rejects)
}

fn reload(database: &Database, job: &str, rejects: &Path) -> HowdahCommand {
    load(database).args(["--rejects", job]).arg(rejects)
}

/// What the job emptied or replaced holds its rows now, and what it merged is to be merged with.
#[test]
fn mended_records_come_on_top_whatever_the_mode_of_their_job() {
    let files = Files::new();
    for (mode, wanted) in [
        (&["--mode", "append"][..], "1=5 2=7 3=5 9=9"),
        (&["--mode", "truncate"], "1=5 2=7 3=5"),
        (&["--mode", "replace"], "1=5 2=7 3=5"),
        (&["--mode", "merge", "--key", "id"], "1=5 2=7 3=5 9=9"),
        (&["--mode", "insert-new", "--key", "id", "--atomic"], "1=5 2=7 3=5 9=9"),
    ] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (9, 9)");
        let (job, rejects) = mended(&database, &files, mode);
        let again = reload(&database, &job, &rejects).run(PATIENCE).expect_code(0);
        assert_eq!(told(&again)["rows_stored"], 1, "{mode:?} {}", again.stderr);
        assert_eq!(
            database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"),
            wanted,
            "{mode:?}"
        );
        assert_eq!(database.value(OPEN), "0", "{mode:?}");
        let refused =
            reload(&database, &job, &rejects).args(mode.iter().copied()).run(PATIENCE).expect_code(2);
        assert!(
            refused.stderr.contains("--rejects takes from its job what --mode says"),
            "{}",
            refused.stderr
        );
    }
}

/// The mended file is a file like others to those options that say what a load of it is which comes once
/// more.
#[test]
fn mended_records_are_loaded_once_by_who_retries() {
    let files = Files::new();
    for (mode, is_appended) in
        [(&["--mode", "append"][..], true), (&["--mode", "merge", "--key", "id"], false)]
    {
        let database = Server::shared(18).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, n int)");
        let (job, rejects) = mended(&database, &files, mode);
        let run = |options: &[&str]| reload(&database, &job, &rejects).args(options).run(PATIENCE);
        let known = || run(&["--known", "skip"]);
        if is_appended {
            known().expect_code(0);
        } else {
            let refused = known().expect_code(2).stderr;
            assert!(refused.contains("error: --known is for rows that are appended"), "{refused}");
            run(&[]).expect_code(0);
        }
        let finished = run(&[]).expect_code(1).stderr;
        assert!(
            finished.contains("this job finished at") || finished.contains("already, by job"),
            "{finished}"
        );
        let again = run(&["--if-done", "ok"]).expect_code(0);
        assert_eq!(told(&again)["rows_stored"], 1, "{}", again.stderr);
        if is_appended {
            let nothing = known().expect_code(0).stderr;
            assert!(nothing.contains("nothing new: the file is in public.t already"), "{nothing}");
        }
        let piped =
            howdah("load").args(["--to", &database.conninfo(), "--rejects", &job, "--if-done", "ok", "-"]);
        let refused = piped.stdin("id,n\n2,7\n").run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains("--if-done ok needs --job-id for a pipe"), "{refused}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "3");
    }
}

/// Options that would be ignored otherwise.
#[test]
fn what_their_job_decides_cannot_be_said_beside_mended_records() {
    let database = Server::shared(15).database();
    for (option, value) in
        [("--delimiter", ";"), ("--columns", "a"), ("--types", "a=int"), ("--triggers", "keep")]
    {
        let refused = reload(&database, "j", Path::new("a.csv")).args([option, value]).run(PATIENCE);
        let refused = refused.expect_code(2).stderr;
        assert!(refused.contains(&format!("takes from its job what {option} says")), "{refused}");
    }
}

/// A load of mended records that was killed goes on by its own words, and settles them as it would have.
#[test]
fn a_killed_load_of_mended_records_settles_them_when_it_is_resumed() {
    let files = Files::new();
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, n int)");
    let (job, rejects) = mended(&database, &files, &[]);
    database.sql(
        "CREATE TABLE gate (); INSERT INTO gate DEFAULT VALUES; \
         CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END'; \
         CREATE TRIGGER pause BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pause()",
    );
    let mut running = reload(&database, &job, &rejects).spawn();
    let copies = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND datname = current_database() \
                  AND wait_event = 'PgSleep'";
    assert!(wait_for(&database, &mut running, copies, 1));
    running.kill();
    database.sql("DELETE FROM gate");
    let second = database.value("SELECT job_id FROM howdah.job ORDER BY started_at DESC LIMIT 1");
    assert_eq!(database.value(OPEN), "1");
    howdah("resume").args(["--to", &database.conninfo(), &second]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"), "1=5 2=7 3=5");
    assert_eq!(database.value(OPEN), "0");
}

/// Nothing comes between the end of such a job and the note that they are loaded.
#[test]
fn mended_records_that_come_all_at_once_are_settled_with_them() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, n int)");
    let (job, rejects) = mended(&database, &files, &["--atomic"]);
    database.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not now''; END'; \
         CREATE TRIGGER refuse BEFORE UPDATE ON howdah.reject FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    reload(&database, &job, &rejects).run(PATIENCE).expect_code(1);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
    assert_eq!(database.value(OPEN), "1");
    database.sql("DROP TRIGGER refuse ON howdah.reject");
    reload(&database, &job, &rejects).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"), "1=5 2=7 3=5");
    assert_eq!(database.value(OPEN), "0");
}

/// The order of records is lost with those that are left out, which is told.
#[test]
fn that_order_does_not_count_for_rejected_records_is_said() {
    let files = Files::new();
    let source = files.put("day.csv", b"id,n\n1,old\n1,5\n2,5\n2,new\n");
    let rejects = files.path().join("bad.csv");
    for (keep, warns) in [("last", true), ("error", false)] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, n int)");
        let first = load(&database).args(["--table", "t", "--mode", "merge", "--key", "id", "--keep", keep]);
        let first = told(&first.arg("--reject-file").arg(&rejects).arg(&source).run(PATIENCE).expect_code(3));
        let warnings = first["warnings"].to_string();
        assert_eq!(warnings.contains("2 records were rejected"), warns, "{warnings}");
        let written = std::fs::read_to_string(&rejects).unwrap();
        std::fs::write(&rejects, written.replace("old", "1").replace("new", "9")).unwrap();
        let again = reload(&database, first["job"].as_str().unwrap(), &rejects).run(PATIENCE);
        let warnings = told(&again.expect_code(0))["warnings"].to_string();
        assert_eq!(warnings.contains("is overwritten by these"), warns, "{warnings}");
        assert_eq!(database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"), "1=1 2=9");
    }
}

/// Words that are NULL to the job's files are NULL in few records of them, too.
#[test]
fn mended_records_are_read_in_the_dialect_of_their_job() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int, day date, remark text)");
    let mut text = "id,n,day,remark\n".to_owned();
    for id in 1..=2000 {
        text += &match id {
            1500 => "1500,,2024-01-01,NA,more\n".to_owned(),
            1600 => "1600,NA,2024-01-01,,more\n".to_owned(),
            _ if id % 9 == 0 => {
                format!("{id},NA,2024-01-01,{}\n", if id % 90 == 0 { "NA" } else { "good to know" })
            }
            _ if id % 7 == 0 => format!("{id},,2024-01-01,good to know\n"),
            _ => format!("{id},{id},2024-01-01,as it is\n"),
        };
    }
    let (source, rejects) = (files.put("day.csv", text.as_bytes()), files.path().join("bad.csv"));
    let first = load(&database).args(["--table", "t", "--reject-file"]).arg(&rejects).arg(&source);
    let first = told(&first.run(PATIENCE).expect_code(3));
    let nulls = "SELECT count(*) FROM t WHERE id % 90 = 0 AND remark IS NULL";
    assert_eq!(database.value(nulls), "22");
    let written = std::fs::read_to_string(&rejects).unwrap();
    std::fs::write(&rejects, written.replace(",more", "")).unwrap();
    reload(&database, first["job"].as_str().unwrap(), &rejects).run(PATIENCE).expect_code(0);
    let mended = database.rows("SELECT n, remark FROM t WHERE id IN (1500, 1600) ORDER BY id");
    assert_eq!(mended, [[None, None], [None, None]]);
}

#[test]
fn the_command_that_writes_the_rejected_records_is_told_in_full() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, n int)");
    let (job, rejects) = mended(&database, &files, &["--ledger", "my books"]);
    std::fs::remove_file(&rejects).unwrap();
    let needed =
        load(&database).args(["--rejects", &job, "--ledger", "my books"]).run(PATIENCE).expect_code(2);
    let into = rejects.display().to_string();
    run_told(&needed.stderr, "howdah status ", |command| command.replace("FILE", &into));
    assert!(std::fs::read_to_string(&rejects).unwrap().contains("2,many"));
}

/// Each night's bad records go to a file of one name.
#[test]
fn mended_records_of_another_job_are_loaded_from_a_file_that_one_was_loaded_from_in_part() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, n int)");
    let (job, rejects) = mended(&database, &files, &[]);
    reload(&database, &job, &rejects).run(PATIENCE).expect_code(0);
    database.sql("UPDATE howdah.job SET status = 'failed' WHERE plan #>> '{job,rejects_of}' IS NOT NULL");
    database.sql("UPDATE howdah.reject SET loaded_by = NULL");
    let text = std::fs::read_to_string(&rejects).unwrap();
    std::fs::write(&rejects, text.replace('7', "77")).unwrap();
    let refused = reload(&database, &job, &rejects).args(["--job-id", "mine"]).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("which did not end, has stored 1 row of"), "{}", refused.stderr);
    let source = files.put("next.csv", b"id,n\n11,5\n12,many\n13,5\n");
    let next = load(&database).args(["--table", "t", "--reject-file"]).arg(&rejects).arg(&source);
    let next = next.run(PATIENCE).expect_code(3);
    let text = std::fs::read_to_string(&rejects).unwrap();
    std::fs::write(&rejects, text.replace("many", "7")).unwrap();
    reload(&database, told(&next)["job"].as_str().unwrap(), &rejects).run(PATIENCE).expect_code(0);
    assert_eq!(
        database.value("SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t"),
        "1=5 2=7 3=5 11=5 12=7 13=5"
    );
}
