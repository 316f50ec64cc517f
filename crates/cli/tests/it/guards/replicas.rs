//! Replicas that are behind, and slots that keep WAL.

use super::{PLAIN, load, wait_for_words};
use crate::indexes::pause;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Server, ServerOptions, side_by_side};
use std::path::PathBuf;

const ROWS: u64 = 10_000;

fn table(server: &Server) -> (Database, Files, PathBuf) {
    let database = server.database();
    database.sql(PLAIN);
    // Eleven chunks: longer than any lag that is asked for.
    database.sql(&pause(0.4));
    let files = Files::new();
    let source = files.put("a.csv", &csv(62, 1, ROWS));
    (database, files, source)
}

/// The standby falls behind from now on, until it restarts.
fn hold(database: &Database, standby: &Server) {
    let database = database.on(standby);
    assert!(database.wait_for("SELECT count(*) FROM pg_class WHERE relname = 't'", 1, || true));
    database.sql("SELECT pg_wal_replay_pause()");
}

/// The standby replays nothing until the load has said that it waits: however slow the machine is, it falls
/// behind.
#[test]
fn a_standby_that_is_behind_is_waited_for() {
    side_by_side([(13, "200kB"), (18, "500ms")], |(major, lag)| {
        let server = Server::private(major, &ServerOptions::default().replicated());
        let standby = server.standby(&ServerOptions::default().replicated());
        let (database, _files, source) = table(&server);
        hold(&database, &standby);
        let mut running = load(&database, &source).args(["--max-replica-lag", lag, "--jobs", "1"]).spawn();
        wait_for_words(&mut running, "paused: the replica standby is ");
        database.on(&standby).sql("SELECT pg_wal_replay_resume()");
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the load goes on, after a pause of"), "PostgreSQL {major}, {lag}: {told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    });
}

#[test]
fn a_standby_that_does_not_come_nearer_ends_the_load() {
    let server = Server::private(15, &ServerOptions::default().replicated());
    let options = ServerOptions::default().replicated().set("recovery_min_apply_delay", "1h");
    let _standby = server.standby(&options);
    let (database, _files, source) = table(&server);
    let load = load(&database, &source).args(["--max-replica-lag", "100kB", "--pause-for", "2s"]);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("more than 0 MB (--max-replica-lag): the load has paused for 2 s and gives up"),
        "{told}"
    );
    assert!(told.contains("hint: put that right, then run the same command again"), "{told}");
}

/// What holds a load up is said while it does, also where no limit of time is about it.
#[test]
fn a_synchronous_standby_that_is_away_is_named_as_what_is_waited_for() {
    let server = Server::private(15, &ServerOptions::default());
    let (database, _files, source) = table(&server);
    let load = load(&database, &source).args(["--retry-for", "2s", "--pause-for", "2s"]);
    database.sql("ALTER SYSTEM SET synchronous_standby_names = 'ghost'");
    database.sql("SELECT pg_reload_conf()");
    let mut running = load.spawn();
    wait_for_words(&mut running, "has waited in COMMIT for a synchronous standby");
    database.sql("ALTER SYSTEM RESET synchronous_standby_names");
    database.sql("SELECT pg_reload_conf()");
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
}

#[test]
fn a_ledger_that_others_have_locked_is_named_as_what_is_waited_for() {
    let (database, files, source) = table(Server::shared(18));
    load(&database, &files.put("first.csv", &csv(63, 20_000, 10))).run(PATIENCE).expect_code(0);
    let holder = database.connect();
    holder.sql("BEGIN; LOCK TABLE howdah.job");
    let mut running = load(&database, &source).spawn();
    wait_for_words(&mut running, "of this load has waited for a lock (relation)");
    drop(holder);
    running.wait(PATIENCE).expect_code(0);
}

#[test]
fn a_standby_that_restarts_while_it_is_behind_is_still_waited_for() {
    let server = Server::private(15, &ServerOptions::default().replicated());
    let standby = server.standby(&ServerOptions::default().replicated());
    let (database, _files, source) = table(&server);
    hold(&database, &standby);
    let load = load(&database, &source).args(["--max-replica-lag", "100kB", "--jobs", "1"]);
    let mut running = load.clone().spawn();
    wait_for_words(&mut running, "paused: the replica standby is ");
    standby.stop_fast();
    wait_for_words(&mut running, "the replica standby is not connected any more: the load waits 300 s");
    // It replays what it has when it starts.
    standby.start();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the load goes on, after a pause of"), "{told}");
    assert!(!told.contains("has not come back"), "{told}");

    hold(&database, &standby);
    // The first half of the pause is for it to go, which is at once, and for the load to see that.
    let mut running = load.args(["--force", "--pause-for", "12s"]).spawn();
    wait_for_words(&mut running, "paused: the replica standby is ");
    standby.stop_immediate();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("the replica standby was too far behind and has not come back within 6 s"),
        "{told}"
    );
    assert!(told.contains("the load goes on, after a pause of"), "{told}");
}

#[test]
fn who_may_not_see_replicas_is_told_the_grant() {
    let (database, _files, source) = table(Server::shared(15));
    let role = format!("guest_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let told = load.args(["--max-replica-lag", "1GB"]).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("GRANT pg_monitor TO"), "{told}");
}

#[test]
fn a_slot_from_which_nobody_reads_is_told() {
    let server = Server::private(15, &ServerOptions::default());
    let (database, _files, source) = table(&server);
    database.sql("SELECT pg_create_physical_replication_slot('forgotten', true)");
    let mut running = load(&database, &source).args(["--max-replica-lag", "100kB"]).spawn();
    wait_for_words(&mut running, "warning: the replication slot forgotten from which nobody reads keeps");
    running.wait(PATIENCE).expect_code(0);
}

#[test]
fn whoever_waits_for_replicas_where_there_is_none_is_warned() {
    let (database, _files, source) = table(Server::shared(18));
    database.sql("DROP TRIGGER pause ON t");
    let load = load(&database, &source);
    let told = load.clone().args(["--max-replica-lag", "1MB"]).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("warning: --max-replica-lag: no replica is connected"), "{told}");
    let told = load.arg("--force").run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("no replica"), "{told}");
}
