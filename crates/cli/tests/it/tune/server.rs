//! Settings of the whole server. Each test has a server of its own: these settings are everybody's.

use super::{GATE, HELD, held, load, plan};
use crate::gate::{open_gate, remove_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, restore, wait_for};
use crate::known::signal;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server, ServerOptions};
use std::path::PathBuf;

pub(super) const ROWS: u64 = 5000;
pub(super) const PLAIN: &str = "CREATE TABLE t (id bigint, part integer, amount numeric, note text)";

pub(super) fn prepared(major: u32) -> (Server, Database, Files, PathBuf) {
    let options = ServerOptions::default().set("checkpoint_timeout", "5min").set("max_wal_size", "512MB");
    let server = Server::private(major, &options);
    let files = Files::new();
    let source = files.put("a.csv", &csv(44, 1, ROWS));
    let database = server.database();
    database.sql(PLAIN);
    (server, database, files, source)
}

/// The lines of `postgresql.auto.conf`, comments aside, in any order.
pub(super) fn auto_conf(server: &Server) -> Vec<String> {
    let text = std::fs::read_to_string(server.data_dir().join("postgresql.auto.conf")).unwrap();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// A reload takes a moment to reach everybody.
pub(super) fn wait_until(database: &Database, name: &str, value: &str) {
    let is_so = format!("SELECT current_setting('{name}') = '{value}'");
    let came = database.wait_for(&is_so, 1, || true);
    assert!(came, "{name}: {} and not {value}", database.value(&format!("SHOW {name}")));
}

#[test]
fn settings_of_the_server_are_put_back_as_they_were_or_were_not() {
    for major in MAJORS {
        let (server, database, _files, source) = prepared(major);
        database.sql("ALTER SYSTEM SET checkpoint_timeout = '7min'");
        database.sql("ALTER SYSTEM SET bgwriter_delay = '111ms'");
        database.sql("SELECT pg_reload_conf()");
        wait_until(&database, "checkpoint_timeout", "7min");
        let before = auto_conf(&server);
        let told = plan(&database, &source, "server").run(PATIENCE).expect_code(0).stdout;
        assert!(
            told.contains("checkpoint_timeout of the server: before 7min, during 30min, after 7min"),
            "{told}"
        );
        assert!(
            told.contains("max_wal_size of the server: before not set there (512MB is in force)"),
            "{told}"
        );
        assert!(told.contains("risk: after a crash the server replays up to so much WAL"), "{told}");
        assert_eq!(auto_conf(&server), before, "a plan changes nothing");
        shut_gate_behind(&database, 1);
        let mut running = load(&database, &source, "server").spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
        wait_until(&database, "checkpoint_timeout", "30min");
        let during = auto_conf(&server).join("\n");
        assert!(during.contains("max_wal_size = ") && !during.contains("fsync"), "{during}");
        open_gate(&database);
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("set for the whole server while rows come: max_wal_size = "), "{told}");
        assert_eq!(auto_conf(&server), before, "PostgreSQL {major}\n{told}");
        wait_until(&database, "checkpoint_timeout", "7min");
        wait_until(&database, "max_wal_size", "512MB");
        assert_eq!(held(&database), 0);
    }
}

#[test]
fn what_somebody_has_set_higher_is_not_lowered() {
    let options = ServerOptions::default().set("checkpoint_timeout", "1h").set("max_wal_size", "64GB");
    let server = Server::private(15, &options);
    let database = server.database();
    database.sql(PLAIN);
    let files = Files::new();
    let source = files.put("a.csv", &csv(45, 1, 100));
    let told = plan(&database, &source, "server").run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("max_wal_size stays at 64GB: that is enough"), "{told}");
    assert!(told.contains("checkpoint_timeout stays at 1h: that is enough"), "{told}");
}

#[test]
fn what_somebody_sets_meanwhile_is_left_alone() {
    let (_server, database, _files, source) = prepared(15);
    shut_gate_behind(&database, 1);
    let mut running = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1));
    database.sql("ALTER SYSTEM SET max_wal_size = '77GB'");
    open_gate(&database);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("max_wal_size of the server is not put back: somebody has set it"), "{told}");
    database.sql("SELECT pg_reload_conf()");
    wait_until(&database, "max_wal_size", "77GB");
    assert_eq!(held(&database), 0);
}

#[test]
fn no_kill_leaves_the_server_tuned() {
    for major in MAJORS {
        for query in [HELD, CHUNKS] {
            let (server, database, _files, source) = prepared(major);
            let before = auto_conf(&server);
            shut_gate_behind(&database, 1);
            let mut running = load(&database, &source, "server").spawn();
            assert!(wait_for(&database, &mut running, query, 1));
            running.kill();
            open_gate(&database);
            assert!(held(&database) > 0);
            restore(&database).run(PATIENCE).expect_code(0);
            assert_eq!(auto_conf(&server), before, "PostgreSQL {major}: {query}");
            assert_eq!(held(&database), 0);
        }
    }
}

#[test]
fn of_two_loads_that_tune_the_server_the_last_puts_back() {
    let (server, database, files, source) = prepared(18);
    database.sql(GATE);
    let before = auto_conf(&server);
    let other = files.put("b.csv", &csv(46, ROWS + 1, 300));
    let mut long = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut long, HELD, 9));
    wait_until(&database, "checkpoint_timeout", "30min");
    let during = auto_conf(&server);
    let told = load(&database, &other, "server").run(PATIENCE).expect_code(0).stderr;
    assert!(long.is_running(), "{told}");
    assert_eq!(auto_conf(&server), during, "{told}");
    database.sql("DELETE FROM gate");
    long.wait(PATIENCE).expect_code(0);
    assert_eq!(auto_conf(&server), before);
}

/// Each has found room for another size of WAL, before either knew of the other.
#[test]
fn the_last_of_two_loads_that_chose_different_values_puts_back_what_was_there() {
    let (server, database, files, source) = prepared(15);
    load(&database, &files.put("first.csv", &csv(48, 90_000, 1)), "table").run(PATIENCE).expect_code(0);
    let before = auto_conf(&server);
    let other = database.connect();
    other.sql("SELECT pg_advisory_lock_shared(hashtextextended('howdah/other', x'686f77646168'::int8))");
    let lock = "hashtextextended('howdah', x'74756e6564'::int8)";
    other.sql(&format!("SELECT pg_advisory_lock({lock})"));
    let mut second = load(&database, &source, "server").spawn();
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    assert!(database.wait_for(waits, 1, || second.is_running()), "{}", second.stderr_so_far());
    other.sql(
        "INSERT INTO howdah.tuned (job_id, table_oid, schema_name, table_name, name, value_during, ledger_oid) \
         VALUES ('other', 0, '', '', 'max_wal_size', '3GB', 'howdah.tuned'::regclass)",
    );
    other.sql("ALTER SYSTEM SET max_wal_size = '3GB'");
    other.sql(&format!("SELECT pg_advisory_unlock({lock})"));
    let told = second.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("set for the whole server while rows come: max_wal_size = 3GB"), "{told}");
    assert!(told.contains("max_wal_size of the server is not put back yet: another load uses it"), "{told}");
    assert!(auto_conf(&server).contains(&"max_wal_size = '3GB'".to_owned()), "{told}");
    drop(other);
    let told = restore(&database).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(auto_conf(&server), before, "{told}");
    assert_eq!(held(&database), 0);
}

/// What is set for the server is noted under a lock that all others wait for who set it or put it back.
#[test]
fn a_load_that_was_stopped_while_it_tunes_keeps_no_other_from_that() {
    for major in [13, 18] {
        let (server, database, files, source) = prepared(major);
        let before = auto_conf(&server);
        load(&database, &files.put("first.csv", &csv(48, 90_000, 1)), "table").run(PATIENCE).expect_code(0);
        database.sql(
            "CREATE TABLE gate AS SELECT 1; \
             CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END'; \
             CREATE TRIGGER wait BEFORE INSERT ON howdah.tuned FOR EACH ROW WHEN (NEW.table_oid = 0) EXECUTE FUNCTION wait()",
        );
        let mut stopped = load(&database, &source, "server").spawn();
        let holds = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        assert!(database.wait_for(holds, 1, || stopped.is_running()), "{}", stopped.stderr_so_far());
        signal(&stopped, "STOP");
        database.sql("DELETE FROM gate");
        let other = files.put("b.csv", &csv(49, ROWS + 1, 300));
        let told = load(&database, &other, "server").args(["--retry-for", "10min"]).run(PATIENCE);
        signal(&stopped, "CONT");
        let told = told.expect_code(0).stderr;
        assert!(told.contains("set for the whole server while rows come"), "PostgreSQL {major}: {told}");
        stopped.wait(PATIENCE).expect_code(0);
        assert_eq!(auto_conf(&server), before, "PostgreSQL {major}");
        assert_eq!(held(&database), 0);
    }
}

#[test]
fn who_waits_for_others_that_set_the_server_is_told_so() {
    let (_server, database, files, source) = prepared(15);
    load(&database, &files.put("first.csv", &csv(48, 90_000, 1)), "table").run(PATIENCE).expect_code(0);
    let other = database.connect();
    other.sql("SELECT pg_advisory_lock(hashtextextended('howdah', x'74756e6564'::int8))");
    let waits = load(&database, &source, "server").args(["--retry-for", "0s"]);
    let told = waits.run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("the server's settings stay as they are")
            && told.contains("other loads of this ledger set the server")
            && told.contains(", now by process "),
        "{told}"
    );
    drop(other);
}

/// ALTER SYSTEM is the cluster's, and each ledger knows its own loads alone.
#[test]
fn of_two_ledgers_one_tunes_the_server_and_the_other_leaves_it_as_it_is() {
    let (server, database, files, source) = prepared(15);
    database.sql(GATE);
    let before = auto_conf(&server);
    let mut long = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut long, HELD, 9));
    wait_until(&database, "checkpoint_timeout", "30min");
    let during = auto_conf(&server);
    let (other, elsewhere) = (files.put("b.csv", &csv(46, ROWS + 1, 300)), server.database());
    elsewhere.sql(PLAIN);
    let planned = plan(&elsewhere, &other, "server").run(PATIENCE).expect_code(0).stdout;
    assert!(planned.contains("a load of another ledger tunes the server"), "{planned}");
    for (database, ledger) in [(&elsewhere, "howdah"), (&database, "second")] {
        let told =
            load(database, &other, "server").args(["--ledger", ledger]).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("a load of another ledger tunes the server"), "{ledger}: {told}");
        assert_eq!(database.value(&format!("SELECT count(*) FROM {ledger}.tuned WHERE table_oid = 0")), "0");
        assert_eq!(auto_conf(&server), during, "{ledger}: {told}");
    }
    // Killed, it leaves what it has changed, which no other may take for what was there before.
    long.kill();
    database.sql("DELETE FROM gate");
    elsewhere.sql(GATE);
    elsewhere.sql("ALTER SYSTEM RESET checkpoint_timeout");
    elsewhere.sql("SELECT pg_reload_conf()");
    wait_until(&elsewhere, "checkpoint_timeout", "5min");
    let mut second = load(&elsewhere, &source, "server").spawn();
    let of_server = format!("{HELD} AND table_oid = 0");
    assert!(wait_for(&elsewhere, &mut second, &of_server, 1), "{}", second.stderr_so_far());
    let left = restore(&database).arg("--all").run(PATIENCE).expect_code(1).stderr;
    assert!(left.contains("a load of another ledger tunes the server"), "{left}");
    assert!(held(&database) > 0);
    elsewhere.sql("DELETE FROM gate");
    second.wait(PATIENCE).expect_code(0);
    restore(&database).arg("--all").run(PATIENCE).expect_code(0);
    assert_eq!(auto_conf(&server), before);
}

#[test]
fn each_missing_right_is_named_and_with_them_the_server_is_tuned() {
    let (server, database, _files, source) = prepared(15);
    database.sql("CREATE ROLE tuner LOGIN; ALTER TABLE t OWNER TO tuner");
    database.sql(&format!("GRANT CREATE ON DATABASE {} TO tuner", database.name()));
    let to = database.conninfo().replace("user=postgres", "user=tuner");
    let as_tuner = || {
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
        load.arg(&source).args(["--tune", "server", "--chunk-size", "64kB"])
    };
    let before = auto_conf(&server);
    let refused = as_tuner().run(PATIENCE).expect_code(1).stderr;
    let hint = refused.lines().find(|line| line.starts_with("hint: ")).unwrap();
    let grants = hint
        .trim_start_matches("hint: let a superuser run ")
        .split("; ")
        .filter(|part| part.starts_with("GRANT"));
    let grants: Vec<&str> = grants.collect();
    assert!(grants.len() >= 4, "{hint}");
    grants.iter().for_each(|grant| database.sql(grant));
    as_tuner().run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) > 3 FROM howdah.tuned WHERE table_oid = 0"), "t");
    assert_eq!(auto_conf(&server), before);
}

/// The plan has found that it may, and the ledger holds all settings, when one of them is refused.
#[test]
fn a_setting_that_is_refused_leaves_none_of_the_others_changed() {
    let (server, database, files, source) = prepared(15);
    database
        .sql("CREATE ROLE tuner LOGIN; ALTER TABLE t OWNER TO tuner; GRANT pg_read_all_settings TO tuner");
    database.sql(&format!("GRANT CREATE ON DATABASE {} TO tuner", database.name()));
    let to = database.conninfo().replace("user=postgres", "user=tuner");
    let load = |source: &PathBuf| {
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
        load.arg(source).args(["--tune", "server"])
    };
    let hinted = load(&source).run(PATIENCE).expect_code(1).stderr;
    let hint = hinted.lines().find(|line| line.starts_with("hint: ")).unwrap();
    let grants = hint.trim_start_matches("hint: let a superuser run ").split("; ");
    grants.filter(|part| part.starts_with("GRANT")).for_each(|grant| database.sql(grant));
    load(&source).run(PATIENCE).expect_code(0);
    let before = auto_conf(&server);
    let last =
        database.value("SELECT name FROM howdah.tuned WHERE table_oid = 0 ORDER BY number DESC LIMIT 1");
    database.sql(&format!(
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS \
             'BEGIN REVOKE ALTER SYSTEM ON PARAMETER {last} FROM tuner; RETURN NULL; END'; \
         CREATE TRIGGER take AFTER INSERT ON howdah.tuned EXECUTE FUNCTION take()"
    ));
    let other = files.put("b.csv", &csv(45, 1, 10));
    let told = load(&other).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains(&format!("permission denied to set parameter \"{last}\"")), "{told}");
    assert_eq!(auto_conf(&server), before);
    assert_eq!(database.value(HELD), "0");
    let changed = "SELECT count(*) FROM howdah.tuned WHERE table_oid = 0 AND undone_at IS NOT NULL";
    assert_ne!(database.value(changed), "0", "{told}");
}

#[test]
fn before_version_15_a_superuser_is_needed() {
    let (_server, database, _files, source) = prepared(13);
    database.sql("CREATE ROLE tuner LOGIN; GRANT INSERT ON t TO tuner");
    let to = database.conninfo().replace("user=postgres", "user=tuner");
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let told = load.arg(&source).args(["--tune", "server"]).run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("before PostgreSQL 15 only a superuser may change the server's settings"),
        "{told}"
    );
}

#[test]
fn values_of_the_role_are_not_taken_for_the_servers() {
    // In the file, of the role; by the connection.
    for (of_server, of_role, by_connection) in
        [("64MB", "8GB", false), ("2GB", "64MB", false), ("64MB", "8GB", true), ("2GB", "64MB", true)]
    {
        let options = ServerOptions::default().set("maintenance_work_mem", of_server);
        let server = Server::private(15, &options);
        let files = Files::new();
        let source = files.put("a.csv", &csv(47, 1, ROWS));
        let database = server.database();
        database.sql(PLAIN);
        let mut to = database.conninfo();
        if by_connection {
            to += &format!(" options='-c maintenance_work_mem={of_role} -c effective_io_concurrency=7'");
        } else {
            database.sql(&format!(
                "ALTER ROLE postgres SET maintenance_work_mem = '{of_role}'; ALTER ROLE postgres SET effective_io_concurrency = 7"
            ));
        }
        let verb = |verb: &str| {
            let command = howdah(verb).args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
            command.arg(&source).args(["--tune", "server"])
        };
        let case = format!("server {of_server}, role {of_role}");
        let told = verb("plan").run(PATIENCE).expect_code(0).stdout;
        for left in [
            format!(
                "maintenance_work_mem stays at {of_role}: the role, database or connection has this value"
            ),
            "effective_io_concurrency stays at 7: the role, database or connection".to_owned(),
            "autovacuum_work_mem stays at -1: what it goes by is not changed".to_owned(),
        ] {
            assert!(told.contains(&left), "{case}: {told}");
        }
        let before = auto_conf(&server);
        shut_gate_behind(&database, 1);
        let mut running = verb("load").args(["--chunk-size", "64kB", "--jobs", "2"]).spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{case}: {}", running.stderr_so_far());
        let during = auto_conf(&server).join("\n");
        assert!(during.contains("max_wal_size") && !during.contains("work_mem"), "{case}: {during}");
        open_gate(&database);
        running.wait(PATIENCE).expect_code(0);
        assert_eq!(auto_conf(&server), before, "{case}");
    }
}

/// The connection may be lost when all is as it was in the file, and the server has not read it yet.
#[test]
fn what_was_put_back_in_the_file_alone_is_read_by_the_server() {
    let (server, database, _files, source) = prepared(18);
    let before = auto_conf(&server);
    shut_gate_behind(&database, 1);
    let mut running = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1));
    wait_until(&database, "checkpoint_timeout", "30min");
    running.kill();
    open_gate(&database);
    database.sql("ALTER SYSTEM RESET ALL");
    assert_eq!(auto_conf(&server), before);
    restore(&database).run(PATIENCE).expect_code(0);
    wait_until(&database, "checkpoint_timeout", "5min");
    assert_eq!(held(&database), 0);
}

/// As `wal_compression = lz4` on a server that was built without, to which the data directory has been moved.
#[test]
fn a_value_of_an_earlier_run_that_this_server_does_not_take_is_left_out() {
    let (server, database, _files, source) = prepared(15);
    let before = auto_conf(&server);
    shut_gate_behind(&database, 1);
    let mut running = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1));
    running.kill();
    open_gate(&database);
    database.sql("ALTER SYSTEM RESET ALL");
    database.sql("UPDATE howdah.tuned SET value_during = 'of_another_build' WHERE name = 'max_wal_size'");
    let told = load(&database, &source, "server").run(PATIENCE).expect_code(0).stderr;
    let named = "max_wal_size of the server stays as it is: it does not take of_another_build";
    assert!(told.contains(named), "{told}");
    assert_eq!(auto_conf(&server), before);
    assert_eq!(held(&database), 0);
}

/// A superuser's load was killed, and the owner of the table puts back what he can.
#[test]
fn what_a_role_may_not_put_back_is_named_with_who_may() {
    let (server, database, _files, source) = prepared(15);
    let before = auto_conf(&server);
    database.sql("CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; CREATE INDEX t_part ON s.t (part)");
    database.sql("CREATE ROLE owner LOGIN; ALTER TABLE s.t OWNER TO owner; GRANT USAGE ON SCHEMA s TO owner");
    let shape = crate::indexes::schema(&database);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--tune", "server"]);
    let load = load.args(["--to", &database.conninfo(), "--indexes", "rebuild", "--chunk-size", "64kB"]);
    shut_gate_behind(&database, 1);
    let mut running = load.arg(&source).spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
    running.kill();
    remove_gate(&database);
    database.sql("GRANT USAGE ON SCHEMA howdah TO owner; GRANT ALL ON ALL TABLES IN SCHEMA howdah TO owner");
    let to = database.conninfo().replace("user=postgres", "user=owner");
    let as_owner = || howdah("restore").args(["--to", &to]).run(PATIENCE).expect_code(1).stderr;
    let told = as_owner();
    let grant = "the schema's owner can run GRANT CREATE ON SCHEMA \"s\" TO \"owner\", then `howdah restore";
    let settings = ["not put back for the whole server are ", "max_wal_size", "as a superuser"];
    assert!(told.contains(grant) && settings.iter().all(|part| told.contains(part)), "{told}");
    assert!(!told.contains("--tune table"), "{told}");
    database.sql("GRANT CREATE ON SCHEMA s TO owner");
    let told = as_owner();
    assert!(told.contains("the index t_part of s.t is built"), "{told}");
    assert!(
        told.contains("` has to run as the role of the load that changed them, or as a superuser"),
        "{told}"
    );
    let by_another =
        told.split("`howdah restore ").find(|rest| rest.contains("` has to run as")).unwrap_or_default();
    assert!(by_another.contains(" host=") && !by_another.contains("user="), "{told}");
    // That one's own ledger it hardly is.
    assert!(by_another.contains(" --ledger howdah` has to run as"), "{told}");
    assert!(held(&database) > 3);
    restore(&database).args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0);
    assert_eq!(auto_conf(&server), before);
    database.sql("REVOKE CREATE ON SCHEMA s FROM owner");
    assert_eq!(crate::indexes::schema(&database), shape);
    assert_eq!(held(&database), 0);
}

#[test]
fn wal_that_is_not_archived_is_told_beforehand() {
    let options = ServerOptions::default().set("archive_mode", "on").set("archive_command", "false");
    let server = Server::private(15, &options);
    let files = Files::new();
    let source = files.put("a.csv", &csv(44, 1, 10));
    let database = server.database();
    database.sql(PLAIN);
    let told = || plan(&database, &source, "table").run(PATIENCE).expect_code(0).stdout;
    assert!(!told().contains("WAL is not archived"));
    database.sql("SELECT pg_switch_wal()");
    assert!(database.wait_for("SELECT count(last_failed_time) FROM pg_stat_archiver", 1, || true));
    assert!(told().contains("WAL is not archived (the last try failed at 20"));
    let loaded = load(&database, &source, "table").run(PATIENCE).expect_code(0);
    assert!(loaded.stderr.contains("WAL is not archived"), "{}", loaded.stderr);

    database.sql("ALTER SYSTEM SET archive_command = 'true'");
    database.sql("SELECT pg_reload_conf()");
    let archived = "SELECT count(*) FROM pg_stat_archiver WHERE last_archived_time > last_failed_time";
    assert!(database.wait_for(archived, 1, || true));
    assert!(!told().contains("WAL is not archived"));
}
