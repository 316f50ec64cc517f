//! Tables that are emptied, replaced or exchanged while a load is at work on them.

use crate::guards::wait_for_words;
use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, Running, Server};
use std::path::Path;
use std::time::Duration;

const ROWS: u64 = 10_000;

/// A load that has stored some of its rows.
fn at_work(scene: &Scene, source: &Path) -> Running {
    scene.slow_down("BEFORE", Duration::from_millis(100));
    let mut running = slow(scene).arg(source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()), "{}", running.stderr_so_far());
    running
}

fn slow(scene: &Scene) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB", "--jobs", "1"])
}

#[test]
fn a_table_that_others_put_in_its_place_does_not_pass_for_it() {
    let plain = csv(91, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let running = at_work(&scene, &source);
    scene.database.sql("BEGIN; CREATE TABLE u (LIKE t INCLUDING ALL); ALTER TABLE t RENAME TO t_old; ALTER TABLE u RENAME TO t; COMMIT");
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(
        failed.contains("public.t is another table by now: it was dropped, renamed or replaced"),
        "{failed}"
    );
    let again = slow(&scene).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(again.contains("was dropped or made anew"), "{again}");
    scene.database.sql("TRUNCATE t");
    slow(&scene).arg(&source).arg("--force").run(PATIENCE).expect_code(0);
    scene.assert_exact("by --force");
}

/// Whoever takes all rows away waits for those who bring some, however the two are begun.
#[test]
fn nobody_empties_or_replaces_a_table_that_others_load_into() {
    let (first, second) = (csv(92, 1, ROWS), csv(93, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    for (major, takes) in
        [(13, ["--mode", "truncate"]), (15, ["--mode", "replace"]), (18, ["--mode=truncate", "--freeze"])]
    {
        let scene = Scene::new(Server::shared(major), &[&second]);
        let running = at_work(&scene, &sources[0]);
        let mut taking = slow(&scene).args(takes).arg(&sources[1]).spawn();
        wait_for_words(&mut taking, "yet: job ");
        let brought = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(brought.contains("check  read 10,000 = stored 10,000"), "{takes:?}\n{brought}");
        taking.wait(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{takes:?}"));
    }
}

/// The second of two that empty the table empties it of the rows of the first, not of some of them.
#[test]
fn two_that_empty_the_same_table_come_one_after_the_other() {
    let files = Files::new();
    let plains = [csv(94, 1, ROWS), csv(95, 1_000_000, ROWS)];
    let sources = [files.put("first.csv", &plains[0]), files.put("second.csv", &plains[1])];
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[]);
        scene.slow_down("BEFORE", Duration::from_millis(20));
        let loads =
            sources.each_ref().map(|source| slow(&scene).args(["--mode", "truncate"]).arg(source).spawn());
        loads.into_iter().for_each(|load| drop(load.wait(PATIENCE).expect_code(0)));
        let rows = "SELECT count(*) || ' ' || count(DISTINCT id / 1000000) FROM t";
        assert_eq!(scene.database.value(rows), format!("{ROWS} 1"), "PostgreSQL {major}");
    }
}
