//! Files of which another job, that did not end, has stored rows.

use crate::gate::{let_other_jobs_pass, open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, MAJORS, Server};
use std::path::PathBuf;

const STORED: &str = "SELECT count(*) FROM t";

/// What a failed load hints at is another job to the ledger, which must not store the same rows once more.
#[test]
fn rows_of_a_load_that_failed_are_not_stored_again_under_other_options() {
    let mut plain = csv(71, 1, 20_000);
    let good = plain.clone();
    plain.extend_from_slice(b"20001,7\n");
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let wanted = [&good[..], b"20001,7,,\n"].concat();
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&wanted]);
        let load = |options: &[&str]| {
            let of_file = ["--table", "t", "--chunk-size", "64kB", "--jobs", "1"];
            scene.verb("load").args(of_file).args(options).arg(&source)
        };
        let failed = load(&[]).run(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains("--lenient"), "{failed}");
        let stored = scene.database.value("SELECT count(*) FROM t");
        assert_ne!(stored, "0");
        let refused = load(&["--lenient"]).run(PATIENCE).expect_code(1).stderr;
        let told = format!("which did not end, has stored {stored} rows of");
        assert!(refused.contains(&told) && refused.contains("hint: finish that job"), "{refused}");
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), stored);
        assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job"), "1", "nothing is noted");
        scene.database.sql("TRUNCATE t");
        load(&["--lenient"]).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn rows_of_a_load_that_failed_are_stored_again_where_that_is_asked_for() {
    let files = Files::new();
    let source = files.put("a.csv", &[&csv(72, 1, 20_000)[..], b"20001,7\n"].concat());
    let scene = Scene::new(Server::shared(15), &[]);
    let load = |options: &[&str]| {
        let of_file = ["--table", "t", "--chunk-size", "64kB", "--jobs", "1"];
        scene.verb("load").args(of_file).args(options).arg(&source)
    };
    load(&[]).run(PATIENCE).expect_code(1);
    let stored: u64 = scene.database.value("SELECT count(*) FROM t").parse().unwrap();
    load(&["--lenient", "--force"]).run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), (stored + 20_001).to_string());
    load(&["--lenient", "--mode", "truncate"]).run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), "20001");
}

/// A load of `a.csv` and `b.csv` that has failed behind the first, and one of the second alone that has
/// failed on its way since.
struct Overtaken {
    scene: Scene,
    _files: Files,
    paths: [PathBuf; 2],
}

impl Overtaken {
    fn new(major: u32, options: &[&str]) -> Overtaken {
        // The larger file is read first.
        let plain = [csv(73, 1, 12_000), csv(74, 20_001, 9000)];
        let files = Files::new();
        let paths = [files.put("a.csv", &plain[0]), files.put("b.csv", &plain[1])];
        let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
        let overtaken = Overtaken { scene, _files: files, paths };
        for (load, last) in [(overtaken.both().args(options), 20_000), (overtaken.second(), 25_000)] {
            overtaken.scene.database.sql(&format!(
                "ALTER TABLE t DROP CONSTRAINT IF EXISTS full_up; ALTER TABLE t ADD CONSTRAINT full_up CHECK (id < {last})"
            ));
            let refused = load.run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains("full_up"), "{refused}");
        }
        overtaken.scene.database.sql("ALTER TABLE t DROP CONSTRAINT full_up");
        overtaken
    }

    fn load(&self) -> HowdahCommand {
        self.scene.load().args(["--chunk-size", "64kB", "--jobs", "1"])
    }

    fn both(&self) -> HowdahCommand {
        self.load().args(&self.paths)
    }

    fn second(&self) -> HowdahCommand {
        self.load().arg(&self.paths[1])
    }
}

#[test]
fn a_job_that_goes_on_does_not_store_rows_of_another_that_did_not_end() {
    for major in MAJORS {
        let overtaken = Overtaken::new(major, &[]);
        let (scene, both) = (&overtaken.scene, overtaken.both());
        let job = scene.database.value("SELECT job_id FROM howdah.job ORDER BY started_at LIMIT 1");
        let stored = scene.database.value(STORED);
        for load in [both.clone(), both.clone().args(["--known", "skip"]), scene.verb("resume").arg(&job)] {
            let refused = load.run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains("which did not end, has stored") && refused.contains("b.csv"),
                "{refused}"
            );
            assert_eq!(scene.database.value(STORED), stored);
        }
        overtaken.second().run(PATIENCE).expect_code(0);
        both.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn rows_that_wait_do_not_come_beside_those_of_another_job_that_did_not_end() {
    let overtaken = Overtaken::new(18, &["--atomic"]);
    let refused = overtaken.both().arg("--atomic").run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("which did not end, has stored"), "{refused}");
}

#[test]
fn a_job_goes_on_beside_rows_that_its_beginner_knew_of() {
    let overtaken = Overtaken::new(15, &[]);
    let scene = &overtaken.scene;
    scene.database.sql(
        "UPDATE howdah.chunk SET stored_at = stored_at - interval '1 hour'; \
         ALTER TABLE t ADD CONSTRAINT full_up CHECK (id < 0) NOT VALID",
    );
    let load = overtaken.both().args(["--null", "-"]);
    load.clone().arg("--force").run(PATIENCE).expect_code(1);
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT full_up");
    let stored: u64 = scene.database.value(STORED).parse().unwrap();
    load.run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value(STORED), (stored + 21_000).to_string());
}

#[test]
fn a_job_that_has_stored_nothing_yet_does_not_store_rows_of_another_that_did_not_end() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(75, 1, 9000));
    let scene = Scene::new(Server::shared(13), &[]);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(&source);
    let first = load.clone().args(["--null", "-"]);
    for (load, last) in [(&first, 0), (&load, 5000)] {
        scene.database.sql(&format!(
            "ALTER TABLE t DROP CONSTRAINT IF EXISTS full_up; ALTER TABLE t ADD CONSTRAINT full_up CHECK (id < {last})"
        ));
        load.run(PATIENCE).expect_code(1);
    }
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT full_up");
    let stored = scene.database.value(STORED);
    let refused = first.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains(&format!("which did not end, has stored {stored} rows of")), "{refused}");
    assert_eq!(scene.database.value(STORED), stored);
}

/// Its rows must not be removed, as those of one that did not end.
#[test]
fn a_job_at_work_is_not_said_not_to_have_ended() {
    let plain = csv(76, 1, 9000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[]);
    shut_gate_behind(&scene.database, 1);
    let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
    let_other_jobs_pass(&scene.database);
    let beside = scene.load().args(["--null", "-"]).arg(&source);
    let refused = beside.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("error: the file is being loaded into public.t, by job"), "{refused}");
    assert!(refused.contains("`--known load` loads all of them beside it"), "{refused}");
    let loaded = beside.args(["--known", "load"]).run(PATIENCE).expect_code(0).stderr;
    assert!(loaded.contains(", which is at work, has stored"), "{loaded}");
    open_gate(&scene.database);
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value(STORED), "18000");
}

/// The rows in the table are its own.
#[test]
fn a_job_goes_on_where_rows_of_another_were_removed_before_it_began() {
    let overtaken = Overtaken::new(15, &[]);
    let scene = &overtaken.scene;
    scene.database.sql("TRUNCATE t; ALTER TABLE t ADD CONSTRAINT full_up CHECK (id < 20000)");
    let load = overtaken.both().args(["--null", "-"]);
    load.run(PATIENCE).expect_code(1);
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT full_up");
    load.run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value(STORED), "21000");
}

/// A load of `a.csv` that has failed on its way.
struct Failed {
    scene: Scene,
    files: Files,
    source: PathBuf,
    good: Vec<u8>,
    stored: u64,
}

impl Failed {
    fn new(major: u32) -> Failed {
        let (files, good) = (Files::new(), csv(77, 1, 20_000));
        let source = files.put("a.csv", &[&good[..], b"20001,7\n"].concat());
        let scene = Scene::new(Server::shared(major), &[]);
        let mut failed = Failed { scene, files, source, good, stored: 0 };
        failed.load(&[]).arg(&failed.source).run(PATIENCE).expect_code(1);
        failed.stored = failed.rows();
        assert_ne!(failed.stored, 0);
        failed
    }

    fn load(&self, options: &[&str]) -> HowdahCommand {
        self.scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).args(options)
    }

    /// The file as its user has mended it.
    fn mend(&self) {
        self.files.put("a.csv", &self.good);
    }

    fn rows(&self) -> u64 {
        self.scene.database.value(STORED).parse().unwrap()
    }

    #[track_caller]
    fn assert_refused(&self, load: &HowdahCommand) {
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        let told = format!("which did not end, has stored {} rows of", self.stored);
        assert!(refused.contains(&told) && refused.contains("with the file as it was then; or"), "{refused}");
        assert_eq!(self.rows(), self.stored);
        assert_eq!(self.scene.database.value("SELECT count(*) FROM howdah.job"), "1", "nothing is noted");
    }
}

#[test]
fn rows_of_a_load_that_failed_are_not_stored_again_from_the_mended_file() {
    for major in MAJORS {
        let failed = Failed::new(major);
        failed.mend();
        let link = failed.files.path().join("link.csv");
        std::os::unix::fs::symlink(&failed.source, &link).unwrap();
        failed.assert_refused(&failed.load(&["--null", "-"]).arg(&failed.source));
        failed.assert_refused(&failed.load(&["--job-id", "mine"]).arg(&failed.source));
        failed.assert_refused(&failed.load(&["--null", "-"]).arg(&link));
        failed.load(&["--null", "-", "--force"]).arg(&link).run(PATIENCE).expect_code(0);
        assert_eq!(failed.rows(), failed.stored + 20_000);
    }
}

/// A file that is written anew each day under one name is loaded, once somebody has seen to the rows of the
/// day that failed.
#[test]
fn a_job_that_failed_is_no_obstacle_once_its_rows_are_gone_or_known() {
    let failed = Failed::new(15);
    let day = |seed: u64, options: &[&str]| {
        failed.files.put("a.csv", &csv(seed, 1, 1000));
        failed.load(options).args(["--null", "-"]).arg(&failed.source).run(PATIENCE).expect_code(0);
        failed.rows()
    };
    assert_eq!(day(1, &["--mode", "truncate"]), 1000);
    assert_eq!(day(2, &[]), 2000, "emptied by a job");
    failed
        .scene
        .database
        .sql("DELETE FROM howdah.job WHERE status = 'done'; DELETE FROM howdah.step; TRUNCATE t");
    assert_eq!(day(3, &[]), 1000, "empty");
    assert_eq!(day(4, &[]), 2000, "another day was loaded since");
    failed.scene.database.sql("DELETE FROM howdah.job WHERE status = 'done'; DROP TABLE t");
    failed.scene.database.sql("CREATE TABLE t (LIKE wanted); INSERT INTO t (id) VALUES (0)");
    assert_eq!(day(5, &[]), 1001, "made anew");
}

/// So it is for the command that failed, which names what has changed.
#[test]
fn a_job_that_failed_is_no_obstacle_to_its_own_command_once_that_has_loaded_another_day() {
    let failed = Failed::new(13);
    let run = |seed: u64, options: &[&str]| {
        failed.files.put("a.csv", &csv(seed, 1, 1000));
        failed.load(options).arg(&failed.source).run(PATIENCE)
    };
    let refused = run(1, &[]).expect_code(1).stderr;
    assert!(refused.contains("the sources are not what job"), "{refused}");
    failed.scene.database.sql("DELETE FROM t; INSERT INTO t (id) VALUES (0)");
    run(2, &["--force"]).expect_code(0);
    run(3, &[]).expect_code(0);
    assert_eq!(failed.rows(), 2001);
    failed.files.put("a.csv", &[&csv(4, 1, 20_000)[..], b"20001,7\n"].concat());
    failed.load(&[]).arg(&failed.source).run(PATIENCE).expect_code(1);
    let refused = run(5, &[]).expect_code(1).stderr;
    assert!(refused.contains("the sources are not what job"), "another one failed since: {refused}");
}

#[test]
fn a_job_that_failed_without_a_row_or_on_a_file_of_another_name_is_no_obstacle() {
    let failed = Failed::new(18);
    let tomorrow = failed.files.put("b.csv", &csv(78, 1, 1000));
    failed.load(&[]).arg(&tomorrow).run(PATIENCE).expect_code(0);
    assert_eq!(failed.rows(), failed.stored + 1000);
    let source = failed.files.put("c.csv", b"id,part,amount,note\n1,7\n");
    failed.load(&[]).arg(&source).run(PATIENCE).expect_code(1);
    failed.files.put("c.csv", b"id,part,amount,note\n1,7,1.5,-\n");
    failed.load(&["--null", "-"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(failed.rows(), failed.stored + 1001);
}

#[test]
fn a_plan_says_that_a_load_will_be_refused_for_rows_of_another_job() {
    let failed = Failed::new(15);
    failed.mend();
    let plan = |options: &[&str]| {
        let plan =
            failed.scene.verb("plan").args(["--format", "csv", "--header", "--table", "t", "--null", "-"]);
        plan.args(options).arg(&failed.source).run(PATIENCE).expect_code(0).stdout
    };
    let planned = plan(&[]);
    let told = format!("which did not end, has stored {} rows of", failed.stored);
    assert!(
        planned.contains("warning: a load will be refused: job ") && planned.contains(&told),
        "{planned}"
    );
    assert!(planned.contains("; finish that job by"), "{planned}");
    for options in [&["--force"][..], &["--mode", "truncate"], &["--ledger", "none"]] {
        let planned = plan(options);
        assert!(!planned.contains("will be refused"), "{options:?} {planned}");
    }
}
