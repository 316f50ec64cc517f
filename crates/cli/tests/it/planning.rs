//! What happens to the session of a load while it plans: it is ended, it waits, its answer is lost.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{Proxy, Running, Server};
use std::time::{Duration, Instant};

const ENDED_SQL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const WAITING_SQL: &str = "SELECT FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const HELD_SQL: &str = "SELECT FROM pg_locks WHERE relation = 'howdah.migration'::regclass \
    AND mode = 'AccessExclusiveLock' AND granted";

/// Returns once the statement gives a row.
fn wait_for(scene: &Scene, sql: &str, running: Option<&Running>) {
    let deadline = Instant::now() + PATIENCE;
    while scene.database.rows(sql).is_empty() {
        assert!(
            Instant::now() < deadline,
            "{sql}\n{}",
            running.map(Running::stderr_so_far).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Plans a load while the ledger is locked for so long, which is what it asks first and waits for.
fn plan_behind_a_lock(held_for: Duration, strike: impl FnOnce(&Scene, &Proxy, &Running)) -> String {
    let (one, two) = (csv(77, 1, 2000), csv(78, 10_000, 2000));
    let files = Files::new();
    let (first, second) = (files.put("a.csv", &one), files.put("b.csv", &two));
    let server = Server::shared(15);
    let proxy = Proxy::before_server(server);
    let scene = Scene::new(server, &[&one, &two]);
    scene.load().arg(&first).run(PATIENCE).expect_code(0);
    let finished = std::thread::scope(|scope| {
        let seconds = held_for.as_secs();
        let lock = format!("BEGIN; LOCK TABLE howdah.migration; SELECT pg_sleep({seconds}); COMMIT");
        let database = &scene.database;
        scope.spawn(move || database.sql(&lock));
        wait_for(&scene, HELD_SQL, None);
        let running = scene.load_to(&database.conninfo_through(&proxy)).arg(&second).spawn();
        wait_for(&scene, WAITING_SQL, Some(&running));
        strike(&scene, &proxy, &running);
        running.wait(PATIENCE).expect_code(0)
    });
    assert!(finished.stderr.contains("check  read 2,000 = stored 2,000"), "{}", finished.stderr);
    scene.assert_exact("planned behind a lock");
    finished.stderr
}

#[test]
fn a_session_that_is_ended_while_planning_is_no_reason_to_give_up() {
    plan_behind_a_lock(Duration::from_secs(4), |scene, _, running| wait_for(scene, ENDED_SQL, Some(running)));
}

#[test]
fn an_answer_that_cannot_come_is_not_waited_for_but_a_lock_is() {
    const GIVEN_UP: &str = "the connection is dead";
    // Longer than an answer may take before another session looks.
    let held_for = Duration::from_secs(13);
    let stderr = plan_behind_a_lock(held_for, |_, proxy, running| {
        std::thread::sleep(held_for - Duration::from_secs(2));
        assert!(!running.stderr_so_far().contains(GIVEN_UP), "{}", running.stderr_so_far());
        proxy.forget_all();
    });
    assert!(stderr.contains(GIVEN_UP), "{stderr}");
}
