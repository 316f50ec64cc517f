//! A server that loses what it had acknowledged: the barrier notices, and the load brings it again. What
//! somebody deletes is none of that.

use crate::gate::{move_gate_behind, open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use howdah_testkit::{MAJORS, Server, ServerOptions, side_by_side};
use std::path::Path;
use std::time::Duration;

/// So begins what is told of chunks that are loaded again.
const LOST: &str = "the server crashed and lost";

/// Asynchronous commits stay in the server's memory, which a crash empties, until one of these limits.
pub(crate) fn forgetful() -> ServerOptions {
    ServerOptions::default()
        .set("wal_writer_delay", "10s")
        .set("wal_writer_flush_after", "100MB")
        .set("wal_buffers", "32MB")
}

/// The load lives through the crash; what was acknowledged before and lost is loaded again.
#[test]
fn chunks_lost_in_a_crash_of_the_server_are_loaded_again() {
    /// The server may write its WAL for reasons of its own just before a crash; then nothing is lost.
    const TRIES_MAX: u32 = 5;
    let plain = csv(7, 1, 30_000);
    let files = Files::new();
    let sources = [files.put("a.csv", &plain), files.put("a.csv.gz", &gzip(&plain))];
    side_by_side(MAJORS.iter().zip([&sources[0], &sources[1], &sources[0]]), |(major, source)| {
        let lost = (0..TRIES_MAX).any(|_| crash_loses_chunks(*major, source, &plain));
        assert!(lost, "PostgreSQL {major}: {TRIES_MAX} crashes lost nothing, so nothing is proved");
    });
}

/// Crashes the server under a load. The load must come to its end and the table be exact; true if chunks
/// were lost and loaded again on the way.
fn crash_loses_chunks(major: u32, source: &Path, plain: &[u8]) -> bool {
    let server = Server::private(major, &forgetful());
    let scene = Scene::new(&server, &[plain]);
    scene.slow_down("BEFORE", Duration::from_millis(40));
    scene.database.sql("CHECKPOINT");
    let load =
        scene.load().args(["--chunk-size", "128kB", "--jobs", "2", "--retry-for", "10min"]).arg(source);

    // Some are in from an earlier run, durably.
    shut_gate_behind(&scene.database, 3);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(3, || running.is_running()));
    running.interrupt();
    running.wait(PATIENCE).expect_code(130);
    let durable = scene.chunks();

    move_gate_behind(&scene.database, durable + 5);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(durable + 5, || running.is_running()));
    server.crash_and_restart();
    assert!(scene.chunks() >= durable, "a synchronous commit was lost");
    open_gate(&scene.database);
    if major == 18 {
        // Long enough to be told how far it is.
        while running.is_running() && !running.stderr_so_far().contains(LOST) {
            std::thread::sleep(Duration::from_millis(5));
        }
        scene.database.sql(
            "CREATE OR REPLACE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep(4); RETURN NULL; END'",
        );
    }
    let finished = running.wait(PATIENCE).expect_code(0);
    assert!(finished.stderr.contains("check  read 30,000 = stored 30,000"), "{}", finished.stderr);
    scene.assert_exact(&format!("PostgreSQL {major}"));
    scene.assert_done(&format!("PostgreSQL {major}"));
    let (_, again) = finished.stderr.split_once(LOST).unwrap_or_default();
    let told = again.split("\njob ").next().unwrap_or_default();
    assert!(!told.contains(" left") && !told.contains("100 %"), "told as all done\n{}", finished.stderr);
    !again.is_empty()
}

/// Even where the administrator has turned `synchronous_commit` off, the job itself must outlive a crash.
#[test]
fn a_job_begun_on_a_server_that_never_waits_for_its_disk_outlives_a_crash() {
    let plain = csv(8, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let server = Server::private(18, &forgetful().set("synchronous_commit", "off"));
    let scene = Scene::new(&server, &[&plain]);
    scene.slow_down("BEFORE", Duration::from_millis(40));
    scene.database.sql("CHECKPOINT");
    let load =
        scene.load().args(["--chunk-size", "128kB", "--jobs", "2", "--retry-for", "10min"]).arg(&source);
    shut_gate_behind(&scene.database, 3);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(3, || running.is_running()));
    server.crash_and_restart();
    open_gate(&scene.database);
    running.wait(PATIENCE).expect_code(0);
    scene.assert_exact("synchronous_commit off everywhere");
    scene.assert_done("synchronous_commit off everywhere");
}

#[test]
fn what_somebody_deletes_from_the_ledger_is_not_loaded_again_as_if_a_crash_had_taken_it() {
    for (no, delete) in ["DELETE FROM howdah.chunk", "DELETE FROM howdah.job"].iter().enumerate() {
        let plain = csv(54 + no as u64, 1, 20_000);
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(15), &[&plain]);
        shut_gate_behind(&scene.database, 4);
        let mut running = scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source).spawn();
        assert!(scene.wait_for_chunks(4, || running.is_running()), "{}", running.stderr_so_far());
        scene.database.sql(delete);
        open_gate(&scene.database);
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("somebody has deleted that while job"), "{delete}: {told}");
        assert!(
            told.contains("hint: rows of the job are in public.t and would come twice"),
            "{delete}: {told}"
        );
        assert!(!told.contains(LOST), "{delete}: {told}");
        let doubled = "SELECT count(*) - count(DISTINCT id) FROM t";
        assert_eq!(scene.database.value(doubled), "0", "{delete}");
    }
}
