//! What is known of a job when its run is over: that it has finished, or why it has not.

use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use crate::web::Web;
use howdah_testkit::{Running, Server};
use serde_json::Value;
use std::time::Duration;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Who has lost the answer of a load asks once more, and gets it.
#[test]
fn a_run_of_a_finished_job_is_as_good_as_the_run_that_has_finished_it() {
    let plain = csv(91, 1, 2000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (major, mode) in [(13, &[][..]), (18, &["--mode", "merge", "--key", "id"])] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("CREATE UNIQUE INDEX ON t (id)");
        let load = || scene.load().args(mode).arg(&source);
        load().run(PATIENCE).expect_code(0);
        let refused = load().run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("error: this job finished at"), "{refused}");
        let again = load().args(["--if-done", "ok", "--json"]).run(PATIENCE).expect_code(0);
        assert!(again.stderr.contains("nothing is left to do: this job finished at"), "{}", again.stderr);
        let summary = json(&again.stdout);
        for (key, wanted) in
            [("status", "done".into()), ("rows_read", 2000.into()), ("rows_stored", 2000.into())]
        {
            assert_eq!(summary[key], Value::clone(&wanted), "{key} {summary}");
        }
        assert_eq!(summary["files"][0]["rows_stored"], 2000, "{summary}");
        assert!(summary["error"].is_null() && summary["files"][0]["done"] == true, "{summary}");
        scene.assert_exact(&format!("PostgreSQL {major}"));
        scene.assert_done(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn the_answer_of_a_finished_job_tells_what_it_has_left_out() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let source = files.put("t.csv", b"1\nx\n3\n");
    let load = || {
        let load = howdah("load").args(["--to", &database.conninfo(), "--format", "csv", "--table", "t"]);
        load.args(["--on-error", "skip", "--if-done", "ok", "--json"]).arg(&source)
    };
    for _ in 0..2 {
        let summary = json(&load().run(PATIENCE).expect_code(3).stdout);
        let rows = [&summary["rows_read"], &summary["rows_stored"], &summary["rows_rejected"]];
        assert_eq!(rows, [3, 2, 1], "{summary}");
    }
    let without = howdah("load").args(["--to", &database.conninfo(), "--if-done", "ok", "--ledger", "none"]);
    let refused = without.arg(&source).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("--if-done ok needs a ledger"), "{refused}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

/// Nothing but a name tells that it is loaded already: without one a retry would store the rows again.
#[test]
fn what_is_not_known_again_is_done_by_its_name_alone() {
    let plain = csv(93, 1, 50);
    let web = Web::new().without_tags();
    let url = web.put("a.csv", &plain);
    for source in ["-", &url] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let run = |verb: &str, options: &[&str]| {
            let run = scene.verb(verb).args(["--format", "csv", "--header", "--table", "t"]).args(options);
            let run = run.args(["--if-done", "ok", source]);
            if source == "-" { run.stdin(plain.clone()).run(PATIENCE) } else { run.run(PATIENCE) }
        };
        for verb in ["load", "plan"] {
            let refused = run(verb, &[]).expect_code(2).stderr;
            let message = "--if-done ok needs --job-id for a pipe or a URL without a version";
            assert!(refused.contains(message) && refused.contains("hint: "), "{refused}");
        }
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), "0");
        for _ in 0..2 {
            run("load", &["--job-id", "day"]).expect_code(0);
        }
        scene.assert_exact(source);
        scene.assert_done(source);
    }
}

/// What is not shown of a URL may choose the file: the ledger knows both by one name, and time and size are
/// the same.
#[test]
fn urls_that_differ_in_what_is_not_kept_are_not_taken_for_one_another() {
    let web = Web::new().dated();
    let url = |code: &str| web.put(&format!("a.csv?code={code}"), format!("id,land\n1,{code}\n").as_bytes());
    let (one, other) = (url("DE"), url("FR"));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, land text)");
    let load = |url: &str, options: &[&str]| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).args(options);
        load.arg(url).run(PATIENCE)
    };
    let lands = || database.value("SELECT string_agg(land, ',' ORDER BY land) FROM t");
    load(&one, &["--known", "skip"]).expect_code(0);
    let told = load(&other, &["--known", "skip"]).expect_code(0).stderr;
    assert!(
        told.contains("nothing tells whether http://") && told.contains("a.csv?*** was loaded"),
        "{told}"
    );
    assert_eq!(lands(), "DE,FR");
    let refused = load(&other, &["--if-done", "ok"]).expect_code(2).stderr;
    assert!(refused.contains("needs --job-id for a pipe or a URL without a version"), "{refused}");
    database.sql("TRUNCATE t");
    for (url, job) in [(&one, "de"), (&other, "fr"), (&one, "de")] {
        load(url, &["--job-id", job, "--if-done", "ok"]).expect_code(0);
    }
    assert_eq!(lands(), "DE,FR");
}

#[test]
fn what_is_to_be_loaded_once_more_is_never_as_good_as_done() {
    let plain = csv(94, 1, 50);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let job = files.put("job.toml", b"if-done = \"ok\"\nknown = \"skip\"\n");
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let load = |options: &[&str]| scene.load().args(options).arg(&source).run(PATIENCE);
    load(&["--if-done", "ok"]).expect_code(0);
    let planned = scene.verb("plan").args(["--format", "csv", "--header", "--table", "t", "--if-done", "ok"]);
    let told = planned.arg(&source).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains(": load would store nothing and end well, by --if-done ok"), "{told}");
    let refused = load(&["--if-done", "ok", "--force"]).expect_code(2).stderr;
    assert!(refused.contains("error: --force loads once more what has finished: --if-done ok"), "{refused}");
    scene.assert_exact("refused");
    load(&["--force", "--job", job.to_str().unwrap()]).expect_code(0);
    scene.want(&plain);
    scene.assert_exact("what is typed wins");
}

/// The first run was not over yet when the second began.
#[test]
fn runs_of_one_job_at_the_same_time_all_end_well() {
    let plain = csv(92, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    scene.slow_down("AFTER", Duration::from_millis(15));
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2", "--if-done", "ok"]).arg(&source);
    let runs: Vec<Running> = (0..3).map(|_| load.spawn()).collect();
    runs.into_iter().for_each(|run| drop(run.wait(PATIENCE).expect_code(0)));
    scene.assert_exact("three runs");
    scene.assert_done("three runs");
}

#[test]
fn why_a_job_failed_is_in_the_ledger_until_it_runs_again() {
    let files = Files::new();
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, n int)");
        let source = files.put("t.csv", b"1,1\n2,2\n3,x\n");
        let load = || {
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--job-id", "j"]);
            load.args(["--format", "csv"]).arg(&source)
        };
        load().run(PATIENCE).expect_code(1);
        let place = "SELECT concat_ws(' ', error ->> 'record', error ->> 'column', error ->> 'sqlstate') FROM howdah.job";
        assert_eq!(database.value(place), "3 n 22P02");
        let status = |arguments: &[&str]| {
            let status = howdah("status").args(["--to", &database.conninfo()]).args(arguments);
            status.run(PATIENCE).expect_code(0).stdout
        };
        let one = status(&["j"]);
        for told in
            ["error: file ", "record 3, ", "column n: ", "(SQLSTATE 22P02)", "t.csv -> public.t: 0 rows"]
        {
            assert!(one.contains(told), "{told}: {one}");
        }
        let list = status(&[]);
        let finished = database.value(
            "SELECT to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM howdah.job",
        );
        assert!(list.contains("public.t") && list.contains(&finished) && list.contains("rejected"), "{list}");
        let told = &json(&status(&["j", "--json"]))[0];
        assert_eq!(
            (&told["error"]["record"], &told["error"]["sqlstate"]),
            (&3.into(), &"22P02".into()),
            "{told}"
        );
        assert_eq!(
            (&told["tables"][0], &told["files"][0]["rows_stored"]),
            (&"public.t".into(), &0.into()),
            "{told}"
        );

        database.sql("ALTER TABLE t ALTER COLUMN n TYPE text");
        load().run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT (error IS NULL)::text FROM howdah.job WHERE job_id = 'j'"), "true");
        let done = status(&["j"]);
        assert!(done.contains("t.csv -> public.t: 3 rows") && !done.contains("error: "), "{done}");
    }
}
