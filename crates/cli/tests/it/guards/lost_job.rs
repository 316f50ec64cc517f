//! The lock by which others see that the job is at work.

use super::{PLAIN, load};
use crate::indexes::{CHUNKS, pause, wait_for};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv};
use howdah_testkit::Server;

/// The session that holds the job is lost, and somebody takes the job before it is held again.
#[test]
fn a_load_whose_job_another_process_has_taken_meanwhile_gives_up() {
    let database = Server::shared(18).database();
    database.sql(PLAIN);
    database.sql(&pause(0.2));
    let files = Files::new();
    let source = files.put("a.csv", &csv(65, 1, 60_000));
    let load = load(&database, &source).args(["--jobs", "1"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
    // 'howdah' as a number is the seed of these locks.
    let take =
        "SELECT pg_advisory_lock(hashtextextended('howdah/' || job_id, 114827953725800)) FROM howdah.job";
    let failed = std::thread::scope(|scope| {
        let taken = scope.spawn(|| database.try_sql(&format!("{take}; SELECT pg_sleep(600)")));
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert!(wait_for(&database, &mut running, waits, 1), "{}", running.stderr_so_far());
        database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted \
             AND mode = 'ShareLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        let failed = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(!taken.is_finished(), "{failed}");
        database.sql(END_SESSIONS);
        failed
    });
    assert!(failed.contains("is being put back by another process"), "{failed}");
    assert!(failed.contains("run the same command again"), "{failed}");
    database.sql("DROP TRIGGER pause ON t");
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "60000");
}
