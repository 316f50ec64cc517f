//! Files that were loaded into a table of another name: since it was given that, or since it is a partition,
//! or has partitions.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, MAJORS, Server};
use std::path::Path;

const ROWS: u64 = 1000;

fn load(scene: &Scene, table: &str, source: &Path) -> HowdahCommand {
    scene.verb("load").args(["--table", table]).arg(source)
}

#[test]
fn a_file_is_known_whatever_name_its_table_has_by_now() {
    let plain = csv(211, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in MAJORS {
        for (change, now) in [
            ("ALTER TABLE t RENAME TO t2", "public.t2"),
            ("CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s", "s.t"),
            ("ALTER TABLE t RENAME TO t2; CREATE TABLE t (LIKE t2)", "public.t2"),
        ] {
            let scene = Scene::new(Server::shared(major), &[]);
            load(&scene, "t", &source).run(PATIENCE).expect_code(0);
            scene.database.sql(change);
            let refused = load(&scene, now, &source).run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains(&format!("the file is in {now} already, by job ")),
                "{change}\n{refused}"
            );
            let rows = format!("SELECT count(*) FROM {now}");
            assert_eq!(scene.database.value(&rows), ROWS.to_string(), "{change}");
            scene.database.sql(&format!("INSERT INTO wanted SELECT * FROM {now}"));
            load(&scene, "wanted", &source).run(PATIENCE).expect_code(0);
            let told =
                load(&scene, now, &source).args(["--known", "load"]).run(PATIENCE).expect_code(0).stderr;
            assert_eq!(scene.database.value(&rows), (2 * ROWS).to_string(), "{change}\n{told}");
        }
    }
}

#[test]
fn a_ledger_of_another_database_goes_by_names_and_so_do_tables_made_anew() {
    let plain = csv(212, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    load(&scene, "t", &source).run(PATIENCE).expect_code(0);
    scene.database.sql("UPDATE howdah.job SET ledger_oid = 1; ALTER TABLE t RENAME TO t2");
    load(&scene, "t2", &source).run(PATIENCE).expect_code(0);
    scene.database.sql("DROP TABLE t2; CREATE TABLE t2 (LIKE wanted); INSERT INTO t2 SELECT * FROM wanted");
    let refused = load(&scene, "t2", &source).arg("--job-id=mine").run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("the file is in public.t2 already, by job "), "{refused}");
}

#[test]
fn what_was_loaded_into_a_partitioned_table_is_in_its_partitions() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,part,amount,note\n1,9,1.5,x\n2,9,1.5,y\n");
    for major in [13, 18] {
        for (first, second) in [("t", "t_rest"), ("t_rest", "t")] {
            let scene = Scene::partitioned(Server::shared(major), &[]);
            load(&scene, first, &source).run(PATIENCE).expect_code(0);
            let refused = load(&scene, second, &source).run(PATIENCE).expect_code(1).stderr;
            let told = format!("the file is in public.{second} already, by job ");
            assert!(refused.contains(&told), "{first} {second}\n{refused}");
            assert_eq!(scene.database.value("SELECT count(*) FROM t"), "2");
            scene.database.sql("ALTER TABLE t DETACH PARTITION t_rest");
            if second == "t" {
                scene
                    .database
                    .sql("CREATE TABLE t_more PARTITION OF t DEFAULT; INSERT INTO t_more VALUES (0, 9)");
                load(&scene, second, &source).run(PATIENCE).expect_code(0);
            }
        }
    }
}

/// A load that failed behind its first rows, and the file mended.
#[test]
fn rows_of_a_job_that_did_not_end_are_known_under_another_name_of_the_table() {
    let good = csv(213, 1, 20_000);
    let bad = [&good[..], b"20001,7\n"].concat();
    let files = Files::new();
    let source = files.put("a.csv", &bad);
    let of_file = ["--format", "csv", "--header", "--chunk-size", "64kB", "--jobs", "1"];
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[]);
        load(&scene, "t", &source).args(of_file).run(PATIENCE).expect_code(1);
        let stored = scene.database.value("SELECT count(*) FROM t");
        let job = scene.database.value("SELECT job_id FROM howdah.job");
        scene.database.sql("ALTER TABLE t RENAME TO t2");
        let refused = load(&scene, "t2", &source).args(of_file).run(PATIENCE).expect_code(1).stderr;
        let told = format!("which did not end, has stored {stored} rows of ");
        assert!(refused.contains(&told) && refused.contains(" in public.t2, as public.t;"), "{refused}");
        assert!(refused.contains("give it back that of public.t, then finish that job"), "{refused}");
        assert_eq!(scene.database.value("SELECT count(*) FROM t2"), stored);
        let lost = load(&scene, "t", &source).args(of_file).run(PATIENCE).expect_code(1).stderr;
        let told = format!(
            "job {job}, which did not end, has stored rows in the table of this name, which is public.t2 now"
        );
        assert!(lost.contains(&told), "{lost}");
        scene.database.sql("ALTER TABLE t2 RENAME TO t");
        let again = load(&scene, "t", &source).args(of_file).run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("were stored by another run of this job"), "{again}");
    }
}

/// There may be thousands of them, of hundreds of tables each: this one could not be read.
#[test]
fn plans_of_jobs_that_have_taken_no_row_since_are_left_alone() {
    let plain = csv(214, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        load(&scene, "t", &source).run(PATIENCE).expect_code(0);
        scene.database.sql(
            "INSERT INTO howdah.job (job_id, work_key, status, plan, howdah_version, ledger_oid, started_at, finished_at) \
                 SELECT 'older', 'other', 'done', '{\"tables\": 1}', howdah_version, ledger_oid, now() - interval '1 hour', now() - interval '1 hour' \
                 FROM howdah.job; \
             INSERT INTO howdah.step (job_id, target, name, part_no, done_at) \
                 VALUES ('older', 'public.other', 'truncate', 0, now() - interval '1 hour')",
        );
        let refused = load(&scene, "t", &source).arg("--job-id=mine").run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("the file is in public.t already, by job "), "{refused}");
    }
}
