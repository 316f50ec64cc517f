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

/// Values of sequences are taken by a session of their own, and another one marks a load by which the server
/// is tuned.
#[test]
fn sessions_that_do_not_copy_are_not_those_left_to_others() {
    let options =
        ServerOptions::default().set("max_connections", "14").set("superuser_reserved_connections", "3");
    let server = Server::private(15, &options);
    let database = server.database();
    let files = Files::new();
    let source = files.put("t.csv", format!("note\n{}", "x\n".repeat(30_000)).as_bytes());
    // 14, less 3 for superusers, 5 for others, and those that do not copy.
    for (key, tune, most) in [("int", "none", 4), ("bigserial", "none", 3), ("bigserial", "server", 2)] {
        database.sql(&format!("CREATE TABLE t (id {key}, note text)"));
        let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        while database.value(others) != "0" {}
        let load =
            crate::indexes::load(&database, &source).args(["--jobs", "8", "--reserve-connections", "5"]);
        let told = load.args(["--force", "--tune", tune]).run(PATIENCE).expect_code(0).stderr;
        let says = format!("at most {most} sessions copy at once");
        assert!(told.contains(&says), "{key}, --tune {tune}: {told}");
        database.sql("DROP TABLE t");
    }
}

#[test]
fn connections_are_left_to_others_behind_the_last_chunk() {
    let options =
        ServerOptions::default().set("max_connections", "14").set("superuser_reserved_connections", "3");
    let server = Server::private(15, &options);
    let database = server.database();
    // Each statement on the table, and each index, counts who is there.
    let count = "BEGIN PERFORM pg_sleep(0.5); INSERT INTO crowd SELECT count(*) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend'; RETURN NULL; END";
    database.sql(&format!(
        "{PLAIN}; CREATE TABLE crowd (sessions int); \
         CREATE FUNCTION count_them() RETURNS trigger LANGUAGE plpgsql AS '{}'; \
         CREATE FUNCTION count_builders() RETURNS event_trigger LANGUAGE plpgsql AS '{}'; \
         CREATE TRIGGER crowd AFTER INSERT OR UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION count_them(); \
         CREATE EVENT TRIGGER crowd ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION count_builders()",
        count.replace('\'', "''"),
        count.replace('\'', "''").replace("RETURN NULL; ", "")
    ));
    let files = Files::new();
    let source = files.put("a.csv", &csv(67, 1, 60_000));
    // 14, less 3 for superusers and 7 for others: two of them work.
    let load = |options: &[&str]| {
        let few = ["--jobs", "8", "--reserve-connections", "7"];
        load(&database, &source).args(few).args(options.iter().copied()).run(PATIENCE).expect_code(0).stderr
    };
    database.sql("CREATE UNIQUE INDEX t_id ON t (id)");
    let told = load(&["--mode", "merge", "--key", "id"]);
    assert!(told.contains("rows are merged into public.t"), "{told}");
    let most = "SELECT max(sessions) <= 4 FROM crowd";
    assert_eq!(database.value(most), "t", "{told}");
    database.sql(
        "DROP INDEX t_id; CREATE INDEX ON t (part); CREATE INDEX ON t (amount); CREATE INDEX ON t (note)",
    );
    database.sql("TRUNCATE crowd, t");
    let told = load(&["--indexes", "rebuild"]);
    assert_eq!(database.value("SELECT count(*) >= 3 FROM crowd"), "t", "{told}");
    assert_eq!(database.value(most), "t", "{told}");
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
