//! Connections that are lost at every second statement of a load in turn: of one that begins at the even
//! ones, of one that goes on at the odd ones.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{Fault, Proxy, Server, side_by_side};
use std::path::Path;

/// Three chunks.
const ROWS: u64 = 2000;
/// More than any of the loads sends something.
const SENDS_MAX: u64 = 400;
const LANES: usize = 4;
/// What a load has to change and to put back.
const SETUP: &str = "\
    CREATE INDEX dropped ON t (part); \
    CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
    CREATE TRIGGER quiet BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION quiet()";
const LEFT_SQL: &str = "\
    SELECT (SELECT count(*) FROM pg_indexes WHERE indexname = 'dropped') || ' ' || \
           (SELECT tgenabled::text FROM pg_trigger WHERE tgname = 'quiet')";

/// How a load is started.
#[derive(Clone, Copy)]
struct Way {
    options: &'static [&'static str],
    /// An earlier run has stored some chunks.
    begun: bool,
}

/// Loads with the connection cut over which something is sent for this time. False where the load was over
/// before.
fn cut_at(skip: u64, way: Way, source: &Path, plain: &[u8]) -> bool {
    let server = Server::shared(18);
    let (scene, proxy) = (Scene::new(server, &[plain]), Proxy::before_server(server));
    let database = &scene.database;
    database.sql(SETUP);
    let options = ["--jobs", "1", "--chunk-size", "64kB", "--tune", "session"];
    let load = scene.load_to(&database.conninfo_through(&proxy)).args(options).args(way.options).arg(source);
    if way.begun {
        database.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (id < 1500)");
        load.run(PATIENCE).expect_code(1);
        database.sql("ALTER TABLE t DROP CONSTRAINT few");
    }
    // A statement that has arrived is carried out all the same.
    proxy.set_times(Fault::CutAtSend { skip, arrives: (skip / 2).is_multiple_of(2) }, 1);
    let done = load.run(PATIENCE);
    let what = format!("{:?}, cut at send {skip}", way.options);
    assert_eq!(done.code, Some(0), "{what}\n{}", done.stderr);
    scene.assert_exact(&what);
    scene.assert_done(&what);
    assert_eq!(database.value(LEFT_SQL), "1 O", "{what}\n{}", done.stderr);
    proxy.fired() > 0
}

fn cut_at_each(way: Way) {
    let (files, plain) = (Files::new(), csv(71, 1, ROWS));
    let source = files.put("a.csv", &plain);
    side_by_side(0..LANES as u64, |lane| {
        let first = 2 * lane + u64::from(way.begun);
        let struck =
            (first..SENDS_MAX).step_by(2 * LANES).take_while(|skip| cut_at(*skip, way, &source, &plain));
        assert!(struck.count() > 5, "a load sends something more often");
    });
}

#[test]
fn a_load_that_loses_a_connection_anywhere_tries_again() {
    cut_at_each(Way { options: &["--indexes", "rebuild", "--triggers", "disable"], begun: false });
}

#[test]
fn a_run_that_goes_on_and_loses_a_connection_anywhere_tries_again() {
    cut_at_each(Way { options: &["--indexes", "rebuild", "--triggers", "keep"], begun: true });
}
