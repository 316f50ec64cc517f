//! pgbouncer: served in session mode, refused in the others before anything is sent that would stay with
//! somebody else.

use super::PLAIN;
use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Fault, PoolMode, Pooler, Proxy, Server, ServerOptions};
use std::time::{Duration, Instant};

const ROWS: u64 = 5000;

#[test]
fn a_pool_of_sessions_is_as_good_as_the_server() {
    let server = Server::shared(15);
    let pooler = Pooler::before_server(server, PoolMode::Session);
    let database = server.database();
    database.sql(&format!("{PLAIN}; CREATE INDEX ON t (part)"));
    let files = Files::new();
    let source = files.put("a.csv", &csv(71, 1, ROWS));
    let to = pooler.conninfo(&database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let load = load.args(["--chunk-size", "64kB", "--jobs", "3", "--indexes", "rebuild", "--tune", "table"]);
    // libpq sends them as parameters of their own, which pgbouncer knows; it refuses `options`.
    load.envs([("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "SQL, DMY")]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
    // What the load has set for its sessions has not stayed with the pool.
    let settings = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' \
                    AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    assert!(database.wait_for(settings, 1, || true));
    drop(pooler);
}

/// Each of these leaves something: all, prepared statements and locks, locks.
#[test]
fn a_pool_that_does_not_reset_all_is_refused_before_anything_is_set() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(71, 1, 10));
    for reset in ["", "RESET ALL", "RESET ALL; UNLISTEN *; DEALLOCATE ALL"] {
        let server = Server::private(15, &ServerOptions::default());
        let (pooler, database) = (Pooler::with_reset(&server, reset), server.database());
        database.sql(PLAIN);
        let load = || {
            let to = pooler.conninfo(&database);
            howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source)
        };
        for _ in 0..2 {
            let told = load().run(PATIENCE).expect_code(1).stderr;
            assert!(told.contains("hands sessions on as they were left"), "{reset}: {told}");
            assert!(told.contains("server_reset_query = DISCARD ALL"), "{reset}: {told}");
            let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
            assert_eq!(database.value(locks), "0", "{reset}");
        }
        drop(pooler);
    }
}

/// Whoever waits for a session that a full pool does not give is given that of a worker without work, or
/// between two chunks.
#[test]
fn a_load_gets_on_with_the_sessions_that_a_small_pool_has() {
    let plain = csv(72, 1, 4 * ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (room, jobs, pause) in [(2, "auto", None), (2, "4", None), (2, "4", Some(900)), (3, "4", Some(900))] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let pooler = Pooler::with_room(Server::shared(15), PoolMode::Session, room);
        if let Some(pause) = pause {
            scene.slow_down("AFTER", Duration::from_millis(pause));
        }
        let to = pooler.conninfo(&scene.database);
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
        let load = load.args(["--chunk-size", "64kB", "--jobs", jobs]).arg(&source);
        let told = load.run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("no answer from "), "{room} {jobs} {pause:?}: {told}");
        assert!(!told.contains("()"), "{told}");
        let warned = "warning: the server opens no further session: no answer within 5 s, as where the pool of a pooler is full; \
                      the load goes on with those that are open; a pool needs room for --jobs + 2 sessions of a load";
        // Without pauses it is over before, but on a slow machine.
        let times = told.matches(warned).count();
        assert!(times == 1 || times == 0 && pause.is_none(), "{room} {jobs} {pause:?}: {told}");
        scene.assert_exact(&format!("{room} {jobs}"));
    }
}

/// One holds the job, and one builds: who builds the next index is not to wait for a third.
#[test]
fn indexes_are_built_by_the_sessions_that_a_small_pool_has() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(73, 1, ROWS));
    let database = Server::shared(15).database();
    database.sql(&format!(
        "{PLAIN}; CREATE INDEX ON t (part); CREATE INDEX ON t (note); CREATE INDEX ON t (amount)"
    ));
    let pooler = Pooler::with_room(Server::shared(15), PoolMode::Session, 2);
    let to = pooler.conninfo(&database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let told = load.args(["--jobs", "4", "--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(told.matches(" is built, in ").count(), 3, "{told}");
    assert!(!told.contains("trying again"), "{told}");
}

/// The same, where one holds the job for `howdah restore`.
#[test]
fn what_a_killed_load_has_left_is_put_back_by_two_sessions() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, ROWS));
    let database = Server::shared(15).database();
    database.sql(&format!("{PLAIN}; CREATE INDEX ON t (part); CREATE INDEX ON t (note)"));
    shut_gate_behind(&database, 1);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t"]).arg(&source);
    let load = load.args(["--to", &database.conninfo(), "--indexes", "rebuild", "--chunk-size", "64kB"]);
    let mut running = load.spawn();
    let stored = "SELECT count(*) FROM howdah.chunk";
    assert!(database.wait_for(stored, 1, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    open_gate(&database);
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass";
    assert_eq!(database.value(indexes), "0");
    let pooler = Pooler::with_room(Server::shared(15), PoolMode::Session, 2);
    howdah("restore").args(["--all", "--to", &pooler.conninfo(&database)]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(indexes), "2");
}

#[test]
fn a_pool_of_transactions_is_refused_and_left_as_it_was() {
    for mode in [PoolMode::Transaction, PoolMode::Statement] {
        for major in [13, 18] {
            let server = Server::private(major, &ServerOptions::default());
            let pooler = Pooler::before_server(&server, mode);
            let database = server.database();
            database.sql(PLAIN);
            let files = Files::new();
            let source = files.put("a.csv", &csv(72, 1, 10));
            let to = pooler.conninfo(&database);
            for verb in ["load", "plan"] {
                let verb = howdah(verb)
                    .args(["--format", "csv", "--header", "--table", "t", "--to", &to])
                    .arg(&source);
                let told = verb.run(PATIENCE).expect_code(1).stderr;
                assert!(told.contains("that gives each transaction another session"), "{mode:?}: {told}");
                assert!(told.contains("pgbouncer: pool_mode = session"), "{mode:?}: {told}");
            }
            // The one server process that the pool has is as another client would like to find it.
            let other = ["-X", "-A", "-t", "-d", &to, "-c", "SHOW tcp_keepalives_idle"];
            let shown = std::process::Command::new(howdah_testkit::psql()).args(other).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            let seconds: u32 = shown.trim().parse().unwrap();
            assert_ne!(seconds, 60, "{mode:?}");
            assert_eq!(database.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
            drop(pooler);
        }
    }
}

/// As where the server restarts meanwhile: what broke off has told nothing, and is asked once more.
#[test]
fn a_pool_of_transactions_is_refused_though_the_look_at_it_breaks_off() {
    let server = Server::private(15, &ServerOptions::default());
    let pooler = Pooler::before_server(&server, PoolMode::Transaction);
    let proxy = Proxy::before_tcp(pooler.address());
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(72, 1, 10));
    let to = database.conninfo_through(&proxy);
    for skip in 1..8 {
        proxy.set_times(Fault::CutAtSend { skip, arrives: false }, 1);
        let load =
            howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
        let told = load.run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("that gives each transaction another session"), "{skip}: {told}");
    }
    drop(pooler);
}

/// What is left where a pooler hands out another session all the same; here the session itself forgets what
/// was prepared.
#[test]
fn a_session_that_has_lost_what_was_prepared_in_it_is_told_as_such() {
    let database = Server::shared(15).database();
    database.sql(&format!(
        "{PLAIN}; CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN EXECUTE ''DEALLOCATE ALL''; RETURN NULL; END'; \
         CREATE TRIGGER forget AFTER INSERT ON t EXECUTE FUNCTION forget()"
    ));
    let files = Files::new();
    let source = files.put("a.csv", &csv(72, 1, ROWS));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--chunk-size", "64kB"]);
    let told = load.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("(SQLSTATE 26000)") && told.contains("as behind a pool of transactions"), "{told}");
}

/// Neither port nor address nor the age of the process tells it from the server then.
#[test]
fn a_pool_of_transactions_on_a_socket_of_the_servers_port_is_refused() {
    let server = Server::private(15, &ServerOptions::default());
    let pooler = Pooler::on_socket(&server, PoolMode::Transaction);
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(73, 1, 10));
    let to = pooler.conninfo(&database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("that gives each transaction another session"), "{told}");
    drop(pooler);
}

/// What pgbouncer says of it has the SQLSTATE of a connection that broke.
#[test]
fn options_that_a_pooler_does_not_take_are_refused_at_once() {
    let server = Server::shared(15);
    let pooler = Pooler::before_server(server, PoolMode::Session);
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, 10));
    let to = format!("{} options='-c work_mem=8MB'", pooler.conninfo(&database));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("unsupported startup parameter") && !told.contains("trying again"), "{told}");
    assert!(told.contains("hint: a pooler does not take `options`"), "{told}");
    assert!(told.contains("PGOPTIONS") && told.contains("ignore_startup_parameters = options"), "{told}");
    drop(pooler);
}

/// The session that would leave it is the load's own.
#[test]
fn a_pool_of_one_session_is_refused_and_not_waited_for() {
    let server = Server::private(15, &ServerOptions::default());
    let pooler = Pooler::with_room(&server, PoolMode::Session, 1);
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(75, 1, 10));
    let to = pooler.conninfo(&database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let began = Instant::now();
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}: {told}", began.elapsed());
    assert!(told.contains("has one session for this role, expected two at least"), "{told}");
    assert!(told.contains("a pool needs room for --jobs + 2 sessions"), "{told}");
    drop(pooler);
}

/// Another client of the pool may leave it.
#[test]
fn a_pool_that_is_full_is_not_waited_for_longer_than_was_said() {
    let server = Server::shared(15);
    let pooler = Pooler::with_room(server, PoolMode::Session, 2);
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(75, 1, 10));
    let to = pooler.conninfo(&database);
    let sleeps = ["-X", "-q", "-d", &to, "-c", "SELECT pg_sleep(600)"];
    let mut other = std::process::Command::new(howdah_testkit::psql()).args(sleeps).spawn().unwrap();
    let is_in =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    assert!(database.wait_for(is_in, 1, || true));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let began = Instant::now();
    let told = load.args(["--retry-for", "10s"]).run(PATIENCE).expect_code(1).stderr;
    other.kill().unwrap();
    other.wait().unwrap();
    // Once for what others have left behind, once for the rows; the other one sleeps for minutes.
    assert!(began.elapsed() < Duration::from_secs(200), "{:?}: {told}", began.elapsed());
    assert!(told.contains("no answer from ") && told.contains(" within 10 s"), "{told}");
    assert!(told.contains("if this is a pooler, a pool needs room for --jobs + 2 sessions"), "{told}");
    drop(pooler);
}

/// A pooler says so at once, and with the SQLSTATE of a connection that broke.
#[test]
fn a_load_goes_on_with_the_sessions_that_a_pooler_lets_in() {
    let plain = csv(76, 1, 4 * ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let pooler = Pooler::with_settings(Server::shared(15), PoolMode::Session, "max_client_conn = 3");
    scene.slow_down("AFTER", Duration::from_millis(500));
    let to = pooler.conninfo(&scene.database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let load = load.args(["--chunk-size", "64kB", "--jobs", "4", "--retry-for", "1s"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("the server opens no further session: ") && told.contains("(max_client_conn)"),
        "{told}"
    );
    scene.assert_exact("max_client_conn");
    drop(pooler);
}
