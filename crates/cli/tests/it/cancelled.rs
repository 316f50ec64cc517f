//! Statements of a load that somebody cancels (`pg_cancel_backend`): the load ends and says why, in whatever
//! form rows were sent, and the same command goes on.

use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, Running, Server};
use std::path::PathBuf;

const ROWS: u64 = 4000;

/// Rows take long as long as `pace` says so.
const SLOW: &str = "CREATE TABLE pace (seconds float8); INSERT INTO pace VALUES (0.2); \
     CREATE FUNCTION slow(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
         IF id % 500 = 0 THEN PERFORM pg_sleep((SELECT seconds FROM public.pace)); END IF; RETURN id; END $$";

/// Cancels what sleeps in a statement of this kind, as soon as there is such a thing.
fn cancel(database: &Database, running: &mut Running, kind: &str) {
    let sql = format!(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event = 'PgSleep' AND query ~ '{kind}'"
    );
    while database.value(&sql) == "0" {
        assert!(running.is_running(), "{kind}: over before it was cancelled");
    }
}

/// What does not end with this never ends.
#[track_caller]
fn ends(database: &Database, load: &HowdahCommand, kind: &str) -> String {
    let mut running = load.spawn();
    cancel(database, &mut running, kind);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("(SQLSTATE 57014)") && !told.contains("trying again"), "{kind}: {told}");
    told
}

fn load(scene: &Scene, sources: &[PathBuf], options: &[&str]) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB"]).args(options).args(sources)
}

fn slow_scene(plain: &[&[u8]]) -> Scene {
    let scene = Scene::new(Server::shared(15), plain);
    scene.database.sql(&format!("{SLOW}; ALTER TABLE t ADD CHECK (slow(id) = id)"));
    scene
}

#[test]
fn a_load_whose_copy_or_insert_is_cancelled_ends_and_goes_on_with_the_same_command() {
    let plain = csv(81, 1, ROWS);
    let files = Files::new();
    let source = [files.put("a.csv", &plain)];
    for (kind, options) in [
        ("^COPY", &[] as &[&str]),
        ("^COPY", &["--on-error", "skip"]),
        ("^COPY", &["--mode", "truncate"]),
        ("^COPY", &["--mode", "truncate", "--freeze"]),
        ("^INSERT", &["--atomic"]),
        ("^INSERT", &["--mode", "merge", "--key", "id"]),
    ] {
        let scene = slow_scene(&[&plain]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
        let told = ends(&scene.database, &load(&scene, &source, options), kind);
        assert!(told.contains("hint: somebody has cancelled this statement"), "{options:?}: {told}");
        scene.database.sql("UPDATE pace SET seconds = 0");
        load(&scene, &source, options).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{options:?}"));
    }
}

/// None of them is tried by itself then.
#[test]
fn a_load_whose_copy_of_several_files_is_cancelled_ends() {
    let files = Files::new();
    let plain: Vec<Vec<u8>> = (0..8).map(|no| csv(82 + no, 1 + no * 500, 500)).collect();
    let sources: Vec<PathBuf> =
        plain.iter().enumerate().map(|(no, plain)| files.put(&format!("{no}.csv"), plain)).collect();
    let scene = slow_scene(&plain.iter().map(Vec::as_slice).collect::<Vec<_>>());
    ends(&scene.database, &scene.load().args(["--jobs", "1"]).args(&sources), "^COPY");
    scene.database.sql("UPDATE pace SET seconds = 0");
    scene.load().args(["--jobs", "1"]).args(&sources).run(PATIENCE).expect_code(0);
    scene.assert_exact("together");
}

#[test]
fn an_index_whose_build_is_cancelled_is_told_and_built_by_restore() {
    let plain = csv(83, 1, ROWS);
    let files = Files::new();
    let source = [files.put("a.csv", &plain)];
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql(&format!("{SLOW}; CREATE INDEX slow ON t (slow(id)); CREATE INDEX other ON t (part)"));
    let told = ends(&scene.database, &load(&scene, &source, &["--indexes", "rebuild"]), "CREATE INDEX");
    assert!(told.contains("hint: `howdah restore"), "{told}");
    let indexes = "SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY 1) FROM pg_index WHERE indrelid = 't'::regclass";
    assert_eq!(scene.database.value(indexes), "other");
    scene.database.sql("UPDATE pace SET seconds = 0");
    scene.verb("restore").run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value(indexes), "other slow");
    scene.assert_exact("restored");
}

/// All rows are in by then.
#[test]
fn a_load_whose_analyze_is_cancelled_is_done_and_says_so() {
    let plain = csv(84, 1, ROWS);
    let files = Files::new();
    let source = [files.put("a.csv", &plain)];
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql(&format!("{SLOW}; CREATE STATISTICS of_t ON (slow(id)), (part + 1) FROM t"));
    let mut running = load(&scene, &source, &["--indexes", "keep", "--after", "analyze"]).spawn();
    cancel(&scene.database, &mut running, "ANALYZE");
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("warning: ANALYZE of public.t was not done: "), "{told}");
    scene.assert_exact("analyze");
}

/// Page by page, until it is cancelled.
#[test]
fn a_load_whose_vacuum_is_cancelled_is_done_and_says_so() {
    let plain = csv(85, 1, ROWS);
    let files = Files::new();
    let source = [files.put("a.csv", &plain)];
    for (major, options) in [(13, &["--after", "vacuum"] as &[&str]), (18, &["--after", "vacuum,analyze"])] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let name = scene.database.name().to_owned();
        scene.database.sql(&format!(
            "ALTER DATABASE {name} SET vacuum_cost_delay = 100; ALTER DATABASE {name} SET vacuum_cost_limit = 1"
        ));
        let mut running = load(&scene, &source, options).spawn();
        let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                      WHERE datname = current_database() AND state = 'active' AND query ~ '^VACUUM'";
        while scene.database.value(cancel) == "0" {
            assert!(running.is_running(), "over before it was cancelled");
        }
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        let says = "warning: VACUUM of public.t was not done: the server says: canceling statement due to user request; \
                    all rows are in";
        assert!(told.contains(says), "{told}");
        assert!(!told.contains("ANALYZE of public.t was not done"), "{told}");
        scene.assert_exact(&format!("PostgreSQL {major}"));
        assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "done");
    }
}

/// Those that look what the others wait for, whether there is room, and who waits for them; one of them holds
/// the job.
#[test]
fn a_load_goes_on_whose_looks_at_the_server_are_cancelled() {
    let plain = csv(86, 1, ROWS);
    let files = Files::new();
    let source = [files.put("a.csv", &plain)];
    for options in [&[] as &[&str], &["--atomic"]] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        shut_gate_behind(&scene.database, 0);
        let mut running = load(&scene, &source, options).spawn();
        let waits = "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND wait_event = 'PgSleep'";
        while scene.database.value(waits) == "0" {
            assert!(running.is_running(), "{}", running.stderr_so_far());
        }
        let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' \
                        AND query ~ 'pg_stat_get_activity|pg_replication_slots|pg_stat_get_db_numbackends'";
        let session = scene.database.connect();
        let mut cancelled = 0;
        while cancelled < 20 {
            cancelled += session.rows(cancel)[0][0].as_ref().unwrap().parse::<u32>().unwrap();
            assert!(running.is_running(), "{options:?}: {}", running.stderr_so_far());
        }
        open_gate(&scene.database);
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("57014") && !told.contains("warning"), "{options:?}: {told}");
        scene.assert_exact(&format!("{options:?}"));
    }
}

/// The rows are in; the sequence is for its owner to move.
#[test]
fn a_load_that_is_kept_from_moving_a_sequence_says_so() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,n\n7,1\n9,2\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id serial PRIMARY KEY, n int)");
    let holder = database.connect();
    holder.sql("BEGIN; ALTER SEQUENCE t_id_seq INCREMENT BY 1");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header"]);
    let mut running = load.arg(&source).spawn();
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                  WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()";
    while database.value(cancel) == "0" {
        assert!(running.is_running(), "{}", running.stderr_so_far());
    }
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    let says = "sequence public.t_id_seq may stay behind the rows that were loaded";
    assert!(told.contains(says) && told.contains("setval("), "{told}");
    holder.sql("ROLLBACK");
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}
