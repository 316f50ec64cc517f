//! Loads at the same time: the same job shares its chunks, different jobs keep out of each other's way.

use crate::scene::{Files, PATIENCE, Scene, csv, gzip, howdah, while_waiting};
use howdah_testkit::{MAJORS, Running, Server};
use std::time::Duration;

#[test]
fn the_same_job_started_three_times_at_once_stores_every_row_once() {
    let plain = csv(21, 1, 20_000);
    let files = Files::new();
    let sources = [files.put("a.csv", &plain), files.put("a.csv.gz", &gzip(&plain))];
    for (round, (major, source)) in
        [(13, &sources[0]), (15, &sources[1]), (18, &sources[0])].into_iter().enumerate()
    {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.slow_down("AFTER", Duration::from_millis(15));
        let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(source);
        let mut runs: Vec<Running> = (0..3).map(|_| load.spawn()).collect();
        if round > 0 {
            // One of them dies on the way; the others take over its chunks.
            let first = &mut runs[0];
            scene.wait_for_chunks(5, || first.is_running());
            runs.swap_remove(0).kill();
        }
        let mut done = 0;
        for run in runs {
            let finished = run.wait(PATIENCE);
            match finished.code {
                Some(0) => done += 1,
                _ => assert!(finished.stderr.contains("this job finished"), "{}", finished.stderr),
            }
        }
        assert!(done > 0, "nobody finished");
        scene.assert_exact(&format!("PostgreSQL {major}"));
        scene.assert_done(&format!("PostgreSQL {major}"));
    }
}

/// Both were asked to load the file once more, and found each other at work: nothing is left to do for the
/// later one, whose option would be no advice.
#[test]
fn a_run_that_comes_to_a_job_that_another_has_finished_is_told_so() {
    let plain = csv(25, 1, 100);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for option in [&["--force"][..], &["--known", "load"]] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        scene.load().arg(&source).run(PATIENCE).expect_code(0);
        let by_another = "INSERT INTO howdah.job SELECT (jsonb_populate_record(j, \
            jsonb_build_object('job_id', j.job_id || '-2'))).* FROM howdah.job j";
        let held = ("LOCK TABLE howdah.job IN SHARE MODE", "howdah.job");
        let load = scene.load().args(option).arg(&source);
        let refused = while_waiting(&scene.database, held, by_another, || load.spawn());
        let told = refused.wait(PATIENCE).expect_code(1).stderr;
        assert!(
            told.contains("error: this job finished at ") && told.contains(", by another run of it"),
            "{told}"
        );
        assert!(told.contains("hint: they are in once; "), "{told}");
        scene.assert_exact("once");
    }
}

#[test]
fn different_jobs_load_the_same_table_at_once() {
    let parts = [csv(22, 1, 12_000), csv(23, 50_001, 9000), csv(24, 90_001, 3000)];
    let files = Files::new();
    let scene = Scene::new(Server::shared(18), &[&parts[0], &parts[1], &parts[2]]);
    scene.slow_down("BEFORE", Duration::from_millis(10));
    let runs: Vec<Running> = parts
        .iter()
        .enumerate()
        .map(|(no, part)| {
            let source = files.put(&format!("{no}.csv"), part);
            scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(source).spawn()
        })
        .collect();
    runs.into_iter().for_each(|run| drop(run.wait(PATIENCE).expect_code(0)));
    scene.assert_exact("three jobs");
    assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job WHERE status = 'done'"), "3");
}

#[test]
fn the_same_job_started_three_times_at_once_leaves_records_out_once() {
    let files = Files::new();
    let mut csv = "id,n\n".to_owned();
    for id in 1..=20_000 {
        csv += &format!("{id},{}\n", if id % 50 == 0 { 0 } else { id });
    }
    let source = files.put("a.csv", csv.as_bytes());
    let ways = [&["--atomic"][..], &["--mode", "merge", "--key", "id"]];
    for (major, way) in MAJORS.into_iter().flat_map(|major| ways.map(|way| (major, way))) {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE CHECK (n > 0)); \
             CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END'; \
             CREATE TRIGGER nap BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nap()",
        );
        let load = howdah("load")
            .args(["--chunk-size", "64kB", "--jobs", "2", "--table", "t", "--on-error", "skip"])
            .args(["--format", "csv", "--header", "--to", &database.conninfo()])
            .args(way)
            .arg(&source);
        let runs: Vec<Running> = (0..3).map(|_| load.spawn()).collect();
        let ended: Vec<_> = runs.into_iter().map(|run| run.wait(PATIENCE)).collect();
        let told: Vec<_> = ended.iter().map(|ended| format!("{:?} {}", ended.code, ended.stderr)).collect();
        let what = format!("PostgreSQL {major} {way:?}\n{}", told.join("\n"));
        assert!(ended.iter().any(|ended| ended.code == Some(3)), "{what}");
        assert_eq!(database.value("SELECT count(*) || ' ' || sum(id - n) FROM t"), "19600 0", "{what}");
        let kept = "SELECT count(*) || ' ' || count(DISTINCT record) FROM howdah.reject";
        assert_eq!(database.value(kept), "400 400", "{what}");
    }
}
