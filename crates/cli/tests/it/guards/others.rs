//! Connections for others, and others who wait for our locks.

use super::{PLAIN, load, wait_for_words};
use crate::indexes::pause;
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Server, ServerOptions};

#[test]
fn connections_are_left_to_others() {
    let options =
        ServerOptions::default().set("max_connections", "14").set("superuser_reserved_connections", "3");
    let server = Server::private(15, &options);
    let database = server.database();
    database.sql(PLAIN);
    database.sql(&pause(0.05));
    let files = Files::new();
    let source = files.put("a.csv", &csv(63, 1, 10_000));
    let load = load(&database, &source).args(["--jobs", "8", "--reserve-connections", "5", "--json"]);
    let finished = load.run(PATIENCE).expect_code(0);
    assert!(
        finished.stderr.contains("of which 5 are left to others (--reserve-connections)"),
        "{}",
        finished.stderr
    );
    // 14, less 3 for superusers, 5 for others, and two that do not copy.
    let sessions: u32 = finished
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"sessions\": ")?.trim_end_matches(',').parse().ok())
        .unwrap();
    assert!((1..=4).contains(&sessions), "{sessions}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "10000");
}

#[test]
fn others_who_wait_for_our_locks_are_told() {
    let database = Server::shared(15).database();
    database.sql(PLAIN);
    database.sql(crate::tune::GATE);
    let files = Files::new();
    let source = files.put("a.csv", &csv(64, 1, 10));
    let mut running = load(&database, &source).args(["--tune", "none"]).spawn();
    let at_work =
        "SELECT FROM pg_locks WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND granted";
    while database.rows(at_work).is_empty() {
        assert!(running.is_running(), "{}", running.stderr_so_far());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let other = howdah_testkit::Database::socket_conninfo(&database);
    let waiting = std::process::Command::new(howdah_testkit::psql())
        .args(["--no-psqlrc", "--dbname", &other, "--command", "CREATE INDEX ON t (id)"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut waiting = waiting.unwrap();
    wait_for_words(&mut running, "for a lock that this load holds");
    database.sql("DELETE FROM gate");
    running.wait(PATIENCE).expect_code(0);
    waiting.wait().unwrap();
}
