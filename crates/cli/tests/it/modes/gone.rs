//! The table is dropped, renamed, moved or has lost a column when a load comes to it: it is named, with what
//! is to be done, whatever the load was about to do with it.

use super::PATIENCE;
use crate::scene::{Files, Scene, csv, while_waiting};
use howdah_testkit::Server;

const ROWS: u64 = 500;
const WAYS: [&[&str]; 7] = [
    &[],
    &["--mode", "truncate"],
    &["--mode", "truncate", "--freeze"],
    &["--mode", "merge", "--key", "id"],
    &["--mode", "replace"],
    &["--atomic"],
    &["--indexes", "rebuild"],
];

/// What a load says that comes to the table when this was done.
#[track_caller]
fn told(scene: &Scene, sql: &str, load: &howdah_testkit::HowdahCommand) -> String {
    let lock = ("LOCK TABLE t IN SHARE MODE", "t");
    while_waiting(&scene.database, lock, sql, || load.spawn()).wait(PATIENCE).expect_code(1).stderr
}

fn scene(plain: &[u8]) -> Scene {
    let scene = Scene::new(Server::shared(15), &[plain]);
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id); CREATE SCHEMA elsewhere");
    scene
}

#[test]
fn a_table_that_is_gone_when_a_load_comes_to_it_is_named_in_every_mode() {
    let plain = csv(121, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for way in WAYS {
        let scene = scene(&plain);
        let told = told(&scene, "DROP TABLE t", &scene.load().args(way).arg(&source));
        assert!(
            told.contains("public.t is not there any more: it was dropped, renamed or moved"),
            "{way:?}: {told}"
        );
        assert!(
            told.contains("hint: if it was renamed or moved, give it its name and schema back"),
            "{told}"
        );
        assert!(told.contains("the rows that were in went with it: make it anew"), "{way:?}: {told}");
    }
}

#[test]
fn a_table_that_gets_its_name_or_column_back_is_loaded_by_the_same_command() {
    let plain = csv(122, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (way, sql, back, message) in [
        (1, "ALTER TABLE t RENAME TO u", "ALTER TABLE u RENAME TO t", "public.t is not there any more: "),
        (
            3,
            "ALTER TABLE t SET SCHEMA elsewhere",
            "ALTER TABLE elsewhere.t SET SCHEMA public",
            "public.t is not there any more: ",
        ),
        (
            5,
            "ALTER TABLE t RENAME note TO u",
            "ALTER TABLE t RENAME u TO note",
            "public.t was changed while the load was at work: ",
        ),
    ] {
        let scene = scene(&plain);
        let load = scene.load().args(WAYS[way]).arg(&source);
        let told = told(&scene, sql, &load);
        assert!(told.contains(message) && told.contains("and the same command goes on"), "{sql}: {told}");
        scene.database.sql(back);
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(sql);
    }
}
