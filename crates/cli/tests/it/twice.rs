//! Loads at the same time: the same job shares its chunks, different jobs keep out of each other's way.

use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{Running, Server};
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
