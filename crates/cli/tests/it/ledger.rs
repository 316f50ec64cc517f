//! What the ledger is for: refusing what is done, showing what was, and what happens without one.

use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Fault, HowdahCommand, Proxy, Server};
use std::time::Duration;

#[test]
fn a_finished_job_is_refused_and_loaded_once_more_with_force() {
    let plain = csv(51, 1, 3000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let load = scene.load().args(["--chunk-size", "64kB"]).arg(&source);
    load.run(PATIENCE).expect_code(0);
    let refused = load.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("error: this job finished at 20"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(
            "hint: --force, or --known load where rows are appended, loads the same files once more"
        ),
        "{}",
        refused.stderr
    );
    let job = scene.database.value("SELECT job_id FROM howdah.job");
    let refused = scene.verb("resume").arg(job).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("hint: --force loads the same files once more"), "{}", refused.stderr);
    scene.assert_exact("refused");
    load.clone().arg("--force").run(PATIENCE).expect_code(0);
    scene.want(&plain);
    scene.assert_exact("with --force");
    load.run(PATIENCE).expect_code(1);
    scene.assert_exact("refused again");
}

#[test]
fn an_event_trigger_that_forbids_the_ledger_is_said_with_the_way_out() {
    let plain = csv(52, 1, 100);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql(
        "CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''secret''; END'; \
         CREATE EVENT TRIGGER forbid ON ddl_command_start EXECUTE FUNCTION forbid()",
    );
    let told = scene.load().arg(&source).run(PATIENCE).expect_code(1).stderr;
    let said = "the ledger \"howdah\" cannot be created: an event trigger of the database forbids it";
    assert!(told.contains(said) && told.contains("--ledger none") && !told.contains("secret"), "{told}");
    scene.load().args(["--ledger", "none"]).arg(&source).run(PATIENCE).expect_code(0);
    scene.assert_exact("without a ledger");
}

#[test]
fn a_forced_rerun_that_was_killed_is_gone_on_with_and_doubles_exactly() {
    let plain = csv(55, 1, 6000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (major, again) in [(15, &["--force"][..]), (18, &[])] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
        load.run(PATIENCE).expect_code(0);
        let first = scene.chunks();
        shut_gate_behind(&scene.database, 2);
        let mut running = load.clone().arg("--force").spawn();
        assert!(scene.wait_for_chunks(first + 2, || running.is_running()));
        running.kill();
        open_gate(&scene.database);
        assert!(scene.chunks() < 2 * first, "killed too late to show anything");
        load.clone().args(again).run(PATIENCE).expect_code(0);
        scene.want(&plain);
        scene.assert_exact(&format!("gone on with by {again:?}"));
        assert_eq!(scene.chunks(), 2 * first);
        let done = scene.database.value("SELECT count(*) FROM howdah.job WHERE status = 'done'");
        assert_eq!((done.as_str(), &*scene.database.value("SELECT count(*) FROM howdah.job")), ("2", "2"));
        load.run(PATIENCE).expect_code(1);
        scene.assert_exact("refused once both are done");
    }
}

/// Deletes the jobs, and what the ledger deletes with them.
const DELETE_JOBS: &str = "DELETE FROM howdah.job";
const FORGOTTEN: &str = "which was deleted from it: they are forgotten, and everything is loaded";

/// What is left of a job in other tables of the ledger says nothing to a new one of its name.
#[test]
fn a_job_whose_row_was_deleted_is_loaded_from_the_beginning() {
    let plain = csv(56, 1, 6000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let skip = ["--on-error", "skip", "--max-errors", "1"];
    for (major, options) in
        [(13, &[][..]), (15, &["--mode", "truncate"]), (18, &["--mode", "merge", "--key", "id"]), (18, &skip)]
    {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
        let load = scene.load().args(options).args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
        load.run(PATIENCE).expect_code(0);
        // The step by which a table was emptied is left without any chunk, too.
        let more = if options.contains(&"truncate") { "DELETE FROM howdah.chunk" } else { "TRUNCATE t" };
        scene.database.sql(&format!("{more}; {DELETE_JOBS}"));
        let told = load.run(PATIENCE).expect_code(0).stderr;
        let is_told = told.contains(FORGOTTEN) || options.contains(&"merge");
        assert!(is_told && told.contains("check  read 6,000 = stored 6,000"), "{options:?}: {told}");
        scene.assert_exact(&format!("deleted when it was done, with {options:?}"));
        load.run(PATIENCE).expect_code(1);

        scene
            .database
            .sql(&format!("TRUNCATE t; {DELETE_JOBS}; DELETE FROM howdah.chunk; DELETE FROM howdah.step"));
        scene.slow_rows_down("BEFORE", Duration::from_millis(100));
        let mut running = load.spawn();
        assert!(scene.wait_for_chunks(2, || running.is_running()));
        running.kill();
        scene.database.sql(&format!("DROP TRIGGER pause ON t; TRUNCATE t; {DELETE_JOBS}"));
        let told = load.run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains(FORGOTTEN), "{options:?}: {told}");
        scene.assert_exact(&format!("deleted when it was killed, with {options:?}"));
    }
}

#[test]
fn a_job_whose_row_is_deleted_while_it_is_at_work_is_not_loaded_beside_itself() {
    let plain = csv(57, 1, 6000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    shut_gate_behind(&scene.database, 1);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()));
    scene.database.sql(DELETE_JOBS);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    open_gate(&scene.database);
    assert!(refused.contains("was deleted from the ledger while a run of it is at work"), "{refused}");
    running.wait(PATIENCE).expect_code(1);
    scene.database.sql("TRUNCATE t");
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("when the other one had ended");
}

/// What others have dropped is not nothing.
#[test]
fn a_role_that_may_not_read_the_ledger_is_told_so_when_it_restores() {
    let plain = csv(59, 1, 10);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.load().arg(&source).run(PATIENCE).expect_code(0);
        let role = format!("other_{}", scene.database.name());
        scene.database.sql(&format!("CREATE ROLE {role} LOGIN"));
        let to = scene.database.conninfo().replace("user=postgres", &format!("user={role}"));
        let job = scene.database.value("SELECT job_id FROM howdah.job");
        let restore = || howdah("restore").args(["--to", &to]).run(PATIENCE);
        let of_job = |verb: &str| howdah(verb).args(["--to", &to, &job]).run(PATIENCE);
        for grant in [
            "USAGE ON SCHEMA \"howdah\"",
            "SELECT, INSERT, UPDATE, DELETE ON \"howdah\".migration, \"howdah\".job, \"howdah\".file, \"howdah\".chunk, \
             \"howdah\".chunk_part, \"howdah\".step",
            "SELECT ON \"howdah\".job, \"howdah\".undo, \"howdah\".tuned",
        ] {
            let refused = restore().expect_code(1).stderr;
            assert!(refused.contains("42501"), "{refused}");
            let grant = format!("GRANT {grant} TO \"{role}\"");
            assert!(refused.contains(&grant), "{grant}\n{refused}");
            let refused = of_job("restore").expect_code(1).stderr;
            assert!(refused.contains(&grant), "{grant}\n{refused}");
            scene.database.sql(&grant);
        }
        for done in [restore(), of_job("restore")] {
            let done = done.expect_code(0).stderr;
            assert!(done.contains("there is nothing to put back"), "{done}");
        }
        // Who only looks may have no rights on the journal.
        let unread = "warning: what jobs have changed and not put back yet is not shown: ";
        assert!(!of_job("status").expect_code(0).stderr.contains(unread));
        for ledger_table in ["undo", "tuned"] {
            scene.database.sql(&format!("REVOKE ALL ON howdah.{ledger_table} FROM {role}"));
            for shown in [of_job("status"), howdah("status").args(["--to", &to]).run(PATIENCE)] {
                let shown = shown.expect_code(0);
                assert!(shown.stdout.contains("done"), "{}", shown.stdout);
                assert!(shown.stderr.contains(unread) && shown.stderr.contains("GRANT"), "{}", shown.stderr);
            }
        }
    }
}

/// A server that is alive, only slow to open a session.
#[test]
fn a_load_that_fails_because_its_sessions_are_ended_is_noted_as_failed() {
    let plain = csv(58, 1, 10_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    shut_gate_behind(&scene.database, 2);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    let mut running = load.clone().args(["--retry-for", "0s"]).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    scene.database.sql(&format!(
        "BEGIN; CREATE FUNCTION slow_login() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2); END'; \
         CREATE EVENT TRIGGER slow_login ON login EXECUTE FUNCTION slow_login(); COMMIT; {END_SESSIONS}"
    ));
    let failed = running.wait(PATIENCE).expect_code(1);
    assert!(failed.stderr.contains("57P01"), "{}", failed.stderr);
    assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "failed");
    open_gate(&scene.database);
    scene.database.sql("DROP EVENT TRIGGER slow_login");
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("gone on with");
}

/// What the plan cannot see, and the server refuses when the table is to be changed.
#[test]
fn a_load_that_cannot_even_begin_is_noted_as_failed() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,name\n1,fir\n2,oak\n3000000000,elm\n");
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE a (id integer, name text); CREATE VIEW v AS SELECT id FROM a");
        let to = database.conninfo();
        let load = howdah("load").args(["--evolve", "widen", "--to", &to]).arg(&source);
        let failed = load.run(PATIENCE).expect_code(1);
        assert!(failed.stderr.contains("table public.a cannot be changed"), "{}", failed.stderr);
        let told = "SELECT status || ' ' || rows_stored || ' ' || (finished_at IS NOT NULL) FROM howdah.job";
        assert_eq!(database.value(told), "failed 0 true");
        let list = howdah("status").args(["--to", &to]).run(PATIENCE).expect_code(0).stdout;
        assert!(list.contains("failed") && !list.contains("running"), "{list}");
        database.sql("DROP VIEW v");
        load.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT sum(id) FROM a"), "3000000003");
        assert_eq!(database.value(told), "done 3 true");
    }
}

#[test]
fn a_file_that_another_job_has_loaded_into_the_table_is_noticed() {
    let plain = csv(56, 1, 100);
    let files = Files::new();
    let sources = ["a.csv", "b.csv", "c.csv"].map(|name| files.put(name, &plain));
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("CREATE TABLE other (LIKE t)");
        let said = |load: HowdahCommand| load.run(PATIENCE).expect_code(0).stderr;
        let refused = |load: HowdahCommand| load.run(PATIENCE).expect_code(1).stderr;
        let load = |name: &str| scene.load().args(["--job-id", name]);
        let notice = "already, by job";
        let [a, _, c] = sources.each_ref().map(|source| source.display());
        assert!(!said(load("one").arg(&sources[0])).contains(notice));
        let one = refused(load("two").arg(&sources[0]));
        assert!(one.contains("error: the file is in public.t already, by job one of 20"), "{one}");
        assert!(one.contains(&format!("Z: {a}\n")) && one.contains("hint: `--known load`"), "{one}");
        let two = load("two").arg(&sources[0]).arg(&sources[1]);
        let told = "1 of 2 files is in public.t already, by job one of 20";
        assert!(refused(two.clone()).contains(told));
        let two = said(two.args(["--known", "load"]));
        assert!(two.contains(&format!("warning: rows come once more: {told}")), "{two}");
        let three = said(load("three").args(["--known", "skip"]).args(&sources));
        let told = "left out: 2 of 3 files are in public.t already, by job two of 20";
        assert!(three.contains(told) && three.contains(&format!("Z: {a} and 1 more")), "{three}");
        let link = files.path().join(format!("link{major}.csv"));
        std::os::unix::fs::symlink(&sources[2], &link).unwrap();
        let linked = refused(load("four").arg(&link));
        assert!(linked.contains("by job three of 20") && linked.contains(&format!("Z: {c}\n")), "{linked}");
        // Neither another table, nor another version of the file is told.
        let elsewhere = scene.verb("load").args(["--header", "--table", "other"]).arg(&sources[0]);
        assert!(!said(elsewhere).contains(notice));
        let forced = said(load("three").arg("--force").args(&sources));
        assert!(forced.contains("warning: rows come once more: all 3 files"), "{forced}");
        files.put("c.csv", &csv(57, 1, 101));
        assert!(!said(load("five").arg(&sources[2])).contains(notice));
        files.put("c.csv", &plain);
    }
}

/// A name stays with its work: files of which nothing was stored may be mended, others only by force.
#[test]
fn a_named_job_takes_mended_files() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE n (a int, b text)");
    let run = |text: &str, options: &[&str], code: i32| {
        let source = files.path().join("n.csv");
        if std::fs::read_to_string(&source).ok().as_deref() != Some(text) {
            files.put("n.csv", text.as_bytes());
        }
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "n", "--job-id", "nightly"]);
        let load = load.args(["--format", "csv", "--jobs", "1", "--chunk-size", "64kB"]).args(options);
        let finished = load.arg(source).run(PATIENCE).expect_code(code);
        (finished.stderr, database.value("SELECT count(*) FROM n"))
    };
    run("zz,x\n", &[], 1);
    assert_eq!(run("1,x\n", &[], 0).1, "1");
    let again = run("1,x\n", &[], 1);
    assert!(again.0.contains("this job finished"), "{}", again.0);
    let other = run("1,x\n2,y\n", &[], 1);
    assert!(
        other.0.contains("/n.csv: job nightly is in the ledger with other files: this file has 8 bytes now"),
        "{}",
        other.0
    );
    assert_eq!(run("1,x\n2,y\n", &["--force"], 0).1, "3");
}

#[test]
fn plan_touches_nothing_and_tells_what_load_would_do() {
    let plain = csv(52, 1, 5000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let plan = scene
        .verb("plan")
        .args(["--format", "csv", "--header", "--table", "t", "--chunk-size", "64kB"])
        .arg(&source);
    let told = plan.run(PATIENCE).expect_code(0).stdout;
    for words in ["no earlier run", "COPY \"public\".\"t\"", "a.csv", "not compressed"] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    plan.clone().arg("--json").run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0");
    assert_eq!(scene.database.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'howdah'"), "0");
    let empty = scene.verb("status").run(PATIENCE).expect_code(0).stdout;
    assert!(empty.contains("the ledger howdah of postgresql://postgres@127.0.0.1:"), "{empty}");
    assert!(empty.contains(" is not there"), "{empty}");

    shut_gate_behind(&scene.database, 2);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    running.kill();
    let (before, chunks) = (scene.database.digest("t"), scene.chunks());
    let told = plan.run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("an earlier run has stored"), "{told}");
    assert_eq!((scene.database.digest("t"), scene.chunks()), (before, chunks));
    open_gate(&scene.database);

    scene.load().args(["--chunk-size", "64kB"]).arg(&source).run(PATIENCE).expect_code(0);
    let told = plan.run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("load would refuse it without --force"), "{told}");
}

/// Nothing to put back is an answer only of the database that the load went to.
#[test]
fn what_looks_for_a_load_where_none_was_is_told_so() {
    let database = Server::shared(18).database();
    let told = howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(1).stderr;
    let place = format!("/{}: no load has noted anything there", database.name());
    assert!(
        told.contains("error: there is no ledger howdah in postgresql://") && told.contains(&place),
        "{told}"
    );
    assert!(told.contains("hint: give --to and --ledger as for the load"), "{told}");
    let told = howdah("resume").args(["x", "--to", &database.conninfo()]).run(PATIENCE).expect_code(2).stderr;
    assert!(told.contains(&format!("/{} has no job x", database.name())), "{told}");
    for verb in [&["restore"][..], &["status"], &["resume", "x"]] {
        let without =
            howdah(verb[0]).args(&verb[1..]).args(["--ledger", "none", "--to", &database.conninfo()]);
        let told = without.run(PATIENCE).expect_code(2).stderr;
        assert!(told.contains("hint: give the --ledger of the load, or leave it out"), "{told}");
    }

    let folder = tempfile::tempdir().unwrap();
    for verb in [&["restore"][..], &["status"], &["resume", "x"]] {
        let command = howdah(verb[0]).args(&verb[1..]).envs([("HOWDAH_DATA", folder.path())]);
        let told = command.run(PATIENCE).expect_code(2).stderr;
        assert!(told.contains("no server is named, and no embedded server has been made yet"), "{told}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{verb:?}");
    }
}

#[test]
fn status_lists_and_shows_jobs() {
    let plain = csv(53, 1, 2000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    scene.load().args(["--job-id", "first"]).arg(&source).run(PATIENCE).expect_code(0);
    let list = scene.verb("status").run(PATIENCE).expect_code(0).stdout;
    assert!(list.contains("first") && list.contains("done") && list.contains("2,000"), "{list}");
    let one = scene.verb("status").arg("first").run(PATIENCE).expect_code(0).stdout;
    assert!(one.contains("job first: done") && one.contains("a.csv -> public.t"), "{one}");
    let unknown = scene.verb("status").arg("second").run(PATIENCE).expect_code(2);
    assert!(unknown.stderr.contains("has no job second"), "{}", unknown.stderr);
    let json = scene.verb("status").args(["first", "--json"]).run(PATIENCE).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["job_id"], &json[0]["status"]), (&"first".into(), &"done".into()));
}

#[test]
fn a_plan_that_cannot_be_read_is_the_trouble_of_its_own_job() {
    let plain = csv(53, 1, 100);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    scene.load().args(["--job-id", "first"]).arg(&source).run(PATIENCE).expect_code(0);
    let others = |name: &str| {
        scene.database.sql(&format!(
            "INSERT INTO howdah.job (job_id, work_key, status, plan, howdah_version) \
             SELECT '{name}', 'other', 'failed', '{{}}', howdah_version FROM howdah.job WHERE job_id = 'first'"
        ));
    };
    others("fir");
    others("second");
    let list = scene.verb("status").run(PATIENCE).expect_code(0).stdout;
    assert!(["fir ", "first ", "second "].iter().all(|name| list.contains(name)), "{list}");
    let json = scene.verb("status").arg("--json").run(PATIENCE).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |name: &str| {
        json.as_array().unwrap().iter().find(|job| job["job_id"] == name).unwrap()["plan"].clone()
    };
    assert!(of("second").is_null() && of("first")["job_id"] == "first", "{json}");
    for name in ["first", "firs"] {
        let one = scene.verb("status").arg(name).run(PATIENCE).expect_code(0).stdout;
        assert!(one.contains("job first: done"), "{one}");
    }
    let told = scene.verb("status").arg("second").run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("job second in the ledger \"howdah\" has a plan that cannot be read"), "{told}");
    scene.database.sql("DELETE FROM howdah.job WHERE work_key = 'other'");
    scene.load().args(["--job-id", "firm", "--force"]).arg(&source).run(PATIENCE).expect_code(0);
    let several = scene.verb("status").arg("fir").run(PATIENCE).expect_code(2).stderr;
    assert!(several.contains("several jobs begin with fir"), "{several}");
}

/// A subscriber stops when a row of a table comes that it has not got.
#[test]
fn a_publication_that_takes_in_what_a_load_makes_is_told_before_it_is_made() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n");
    for (major, of, told) in [
        (
            13,
            "ALL TABLES",
            "warning: the publication p is of all tables, also of those that this load makes (in howdah)",
        ),
        (
            18,
            "TABLES IN SCHEMA made",
            "warning: the publication p is of all tables in schema made, also of those",
        ),
    ] {
        let database = Server::shared(major).database();
        let role = format!("publisher_{}", database.name());
        database.sql(&format!(
            "CREATE TABLE t (id int, note text); CREATE SCHEMA made; CREATE PUBLICATION p FOR {of}; \
             CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}"
        ));
        let run = |verb: &str, role: &str, args: &[&str]| {
            let to = format!("{} options='-c role={role}'", database.conninfo());
            howdah(verb).args(["--to", &to]).args(args.iter().copied()).arg(&source).run(PATIENCE)
        };
        let make: &[&str] =
            if major == 13 { &["--table", "t"] } else { &["--create", "--table", "made.new"] };
        assert!(run("plan", "postgres", make).expect_code(0).stdout.contains(told));
        if major == 13 {
            // It may not even make the ledger.
            let refused = run("load", &role, make).expect_code(1).stderr;
            assert!(refused.contains(told), "{refused}");
        }
        let loaded = run("load", "postgres", make).expect_code(0).stderr;
        assert_eq!(loaded.matches(told).count(), 1, "{loaded}");
        // Now all is there.
        let more = run("load", "postgres", &["--table", "t", "--force"]).expect_code(0).stderr;
        assert!(!more.contains("publication"), "{more}");
        database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

/// Of a howdah before the first release, or of a later one.
#[test]
fn a_ledger_of_another_version_is_refused_by_every_verb() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n");
    for (major, version, hint) in
        [(13, 14, "hint: it is of a howdah before the first release"), (18, 16, "or a newer one")]
    {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, note text)");
        let verb = |verb: &str| howdah(verb).args(["--to", &database.conninfo()]);
        let load = |name: &str| verb(name).args(["--table", "t"]).arg(&source);
        load("load").run(PATIENCE).expect_code(0);
        let job = database.value("SELECT job_id FROM howdah.job");
        database.sql(&format!("UPDATE howdah.migration SET version = {version}"));
        let commands = [
            load("load"),
            load("plan"),
            load("check"),
            verb("status"),
            verb("restore"),
            verb("resume").arg(&job),
        ];
        for command in commands {
            let refused = command.run(PATIENCE).expect_code(1).stderr;
            let told = format!("the ledger in schema \"howdah\" has version {version}; this howdah knows 15");
            assert!(refused.contains(&told) && refused.contains(hint), "{refused}");
        }
    }
}

/// It may be one of columns, which lets no row be deleted.
#[test]
fn tables_of_howdahs_own_are_heaps_whatever_the_default_is() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n2,y\n");
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler; \
             ALTER DATABASE {} SET default_table_access_method = other; \
             CREATE UNLOGGED TABLE t (id int PRIMARY KEY, note text CHECK (note <> 'y')) USING heap",
            database.name()
        ));
        let to = database.conninfo();
        let load = howdah("load").args(["--to", &to, "--table", "t", "--mode", "merge", "--key", "id"]);
        // Its rows wait: the staging table stays.
        load.arg(&source).run(PATIENCE).expect_code(1);
        howdah("load")
            .args(["--to", &to, "--table", "t"])
            .arg(files.put("b.csv", b"id,note\n3,x\n"))
            .run(PATIENCE)
            .expect_code(0);
        let of = "SELECT string_agg(DISTINCT a.amname, ' ') FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
                  WHERE c.relnamespace = 'howdah'::regnamespace AND c.relkind = 'r'";
        assert_eq!(database.value(of), "heap", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname = 'unlogged_mark'"), "1");
    }
}

/// Nothing can tell whether the chunk is in, so nothing is sent again.
#[test]
fn without_a_ledger_a_lost_answer_to_commit_is_an_error_and_never_a_double() {
    let plain = csv(54, 1, 10_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (major, jobs, fault) in [
        (13, "1", Fault::CutAfterCommit { skip: 0 }),
        (18, "3", Fault::CutAfterCommit { skip: 0 }),
        // Whoever stands between tells that the server is gone.
        (15, "1", Fault::RefuseAfterCommit),
        (18, "2", Fault::RefuseAfterCommit),
    ] {
        let server = Server::shared(major);
        let (scene, proxy) = (Scene::new(server, &[&plain]), Proxy::before_server(server));
        let load = scene
            .load_to(&scene.database.conninfo_through(&proxy))
            .args(["--ledger", "none", "--chunk-size", "64kB", "--retry-for", "10min", "--jobs", jobs])
            .arg(&source);
        proxy.set_times(fault, 1);
        let failed = load.run(PATIENCE).expect_code(1);
        assert!(failed.stderr.contains("the answer to COMMIT was lost"), "{}", failed.stderr);
        assert!(failed.stderr.contains("hint: without a ledger nobody knows"), "{}", failed.stderr);
        let doubled = scene.database.value("SELECT count(*) - count(DISTINCT id) FROM t");
        assert_eq!(doubled, "0", "PostgreSQL {major}");
        assert_ne!(scene.database.value("SELECT count(*) FROM t"), "0", "the lost answer's chunk is in");
        assert_eq!(scene.database.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'howdah'"), "0");
    }
}

#[test]
fn a_ledger_that_is_dropped_under_a_load_is_blamed_itself() {
    let plain = csv(59, 1, 10_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    shut_gate_behind(&scene.database, 2);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| scene.database.sql("DROP SCHEMA howdah CASCADE"));
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert!(scene.database.wait_for(waits, 1, || !dropping.is_finished()));
        open_gate(&scene.database);
    });
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    let error = told.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("relation \"howdah.chunk\" does not exist") && !error.contains("file "), "{told}");
    assert!(told.contains("hint: the schema \"howdah\" is not a complete ledger"), "{told}");
}

#[test]
fn an_empty_name_is_not_that_of_the_only_job() {
    let plain = csv(58, 1, 30);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.load().arg(&source).run(PATIENCE).expect_code(0);
    for verb in ["resume", "status", "restore"] {
        let refused = scene.verb(verb).arg("").run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains("expected the name of a job, got an empty one"), "{verb}: {refused}");
        assert!(refused.contains("hint: `howdah status` lists the jobs"), "{verb}: {refused}");
    }
}
