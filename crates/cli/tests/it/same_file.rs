//! One file by several paths: loaded once by a command, and one job whichever path names it.

use crate::auto::load;
use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::Server;
use std::os::unix::fs::symlink;

#[test]
fn a_file_named_by_several_paths_is_loaded_once_and_is_one_job() {
    let files = Files::new();
    let root = files.path().to_str().unwrap();
    std::fs::create_dir(files.path().join("sub")).unwrap();
    files.put("a.csv", b"id\n1\n2\n");
    symlink(files.path().join("a.csv"), files.path().join("link.csv")).unwrap();
    symlink(files.path(), files.path().join("sub/back")).unwrap();
    let ways = ["a.csv", "sub/../a.csv", "link.csv", "sub/back/a.csv"];
    let mut paths: Vec<String> = ways.iter().map(|way| format!("{root}/{way}")).collect();
    paths.push(format!("file://{root}/link.csv"));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    load(&database).args(["--table", "t"]).args(&paths).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
    database.sql("TRUNCATE t; DROP SCHEMA howdah CASCADE");
    load(&database).args(["--table", "t"]).arg(&paths[0]).run(PATIENCE).expect_code(0);
    for path in &paths {
        let again = load(&database).args(["--table", "t"]).arg(path).run(PATIENCE).expect_code(1);
        assert!(again.stderr.contains("error: this job finished at 20"), "{path}\n{}", again.stderr);
    }
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn a_load_goes_on_by_another_path_and_is_refused_when_its_link_leads_elsewhere() {
    let plain = csv(91, 1, 6000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let other = files.put("b.csv", &csv(92, 10_000, 100));
    let link = files.path().join("link.csv");
    symlink(&source, &link).unwrap();
    let scene = Scene::new(Server::shared(18), &[&plain]);
    shut_gate_behind(&scene.database, 2);
    let begin = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = begin.clone().arg(&link).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    running.kill();
    open_gate(&scene.database);
    std::fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    let refused = begin.clone().arg(&link).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("this path leads to another file now"), "{}", refused.stderr);
    begin.arg(&source).run(PATIENCE).expect_code(0);
    scene.assert_exact("by the file's own path");
    assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job"), "1");
}
