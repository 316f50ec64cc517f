//! Files of which another job, that did not end, has stored rows.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{MAJORS, Server};

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
