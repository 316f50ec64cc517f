//! What is done to the tables when all rows are in.

use crate::auto::load;
use crate::gate::{open_gate, remove_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, wait_for};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Server, ServerOptions};

fn rows(from: u32, to: u32) -> String {
    (from..to).fold("id,name\n".to_owned(), |text, no| text + &format!("{no},name {no}\n"))
}

#[test]
fn statistics_are_renewed_where_a_table_has_grown_by_a_tenth() {
    let files = Files::new();
    let many = files.put("many.csv", rows(0, 2000).as_bytes());
    let few = files.put("few.csv", rows(2000, 2100).as_bytes());
    let more = files.put("more.csv", rows(2100, 2500).as_bytes());
    for version in [13, 15, 18] {
        let database = Server::shared(version).database();
        let known = || database.value("SELECT reltuples::int FROM pg_class WHERE relname = 't'");
        for (source, expected) in [(&many, "2000"), (&few, "2000"), (&more, "2500")] {
            load(&database).args(["--create", "--table", "t"]).arg(source).run(PATIENCE).expect_code(0);
            assert_eq!(known(), expected, "{version}");
        }
    }
}

#[test]
fn statistics_are_renewed_where_a_merge_has_changed_more_than_a_tenth() {
    let files = Files::new();
    let changed = |count: u32| {
        let renamed =
            (0..count).fold("id,name\n".to_owned(), |text, no| text + &format!("{no},now {no} of {count}\n"));
        let same = rows(count, 2000);
        files
            .put(&format!("changed-{count}.csv"), (renamed + same.trim_start_matches("id,name\n")).as_bytes())
    };
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, name text) WITH (autovacuum_enabled = false); \
         INSERT INTO t SELECT n, 'name ' || n FROM generate_series(0, 1999) n; ANALYZE t; \
         INSERT INTO t SELECT n, 'name ' || n FROM generate_series(2000, 2099) n",
    );
    for (count, expected) in [(0, "2000"), (200, "2000"), (400, "2100")] {
        let command =
            load(&database).args(["--table", "t", "--mode", "merge", "--key", "id"]).arg(changed(count));
        command.run(PATIENCE).expect_code(0);
        let known = database.value("SELECT reltuples::int FROM pg_class WHERE relname = 't'");
        assert_eq!(known, expected, "{count}");
    }
    // Who asks for it gets it.
    database.sql("DELETE FROM t WHERE id >= 2050");
    let again = ["--table", "t", "--mode", "merge", "--key", "id", "--force", "--after", "analyze"];
    load(&database).args(again).arg(changed(400)).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT reltuples::int FROM pg_class WHERE relname = 't'"), "2050");
}

#[test]
fn what_is_asked_for_is_done_and_no_more() {
    let files = Files::new();
    let source = files.put("many.csv", rows(0, 2000).as_bytes());
    // Sessions of others keep pages from counting as visible to all.
    let server = Server::private(15, &ServerOptions::default());
    let database = server.database();
    let run = |after: &str| {
        database.sql(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (id int, name text) WITH (autovacuum_enabled = false)",
        );
        let command = load(&database).args(["--table", "t", "--force", "--after", after]).arg(&source);
        command.run(PATIENCE).expect_code(0);
        database.value(
            "SELECT reltuples::int || ' ' || (relallvisible = relpages) FROM pg_class WHERE relname = 't'",
        )
    };
    assert_eq!(run("none"), "-1 true");
    assert_eq!(run("analyze"), "2000 false");
    assert_eq!(run("vacuum,checkpoint"), "2000 true");
}

#[test]
fn each_thing_behind_the_rows_has_its_time_in_the_summary() {
    let files = Files::new();
    let source = files.put("many.csv", rows(0, 20_000).as_bytes());
    let database = Server::shared(15).database();
    let stages = |after: &[&str]| {
        let arguments = [&["--create", "--table", "t", "--force", "--json"], after].concat();
        let done = load(&database).args(arguments).arg(&source).run(PATIENCE).expect_code(0);
        let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        ["vacuum", "analyze", "checkpoint"].map(|stage| json["stages"][stage].as_f64().unwrap() > 0.0)
    };
    assert_eq!(stages(&[]), [false, true, false]);
    assert_eq!(stages(&["--after", "none"]), [false; 3]);
    assert_eq!(stages(&["--after", "vacuum,checkpoint"]), [true; 3]);
}

#[test]
fn the_plan_tells_where_statistics_take_longer_than_the_rows() {
    let files = Files::new();
    let header: Vec<String> = (0..400).map(|no| format!("c{no}")).collect();
    let records = format!("{}\n", ["x"; 400].join(",")).repeat(12_000);
    let source = files.put("wide.csv", format!("{}\n{records}", header.join(",")).as_bytes());
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(&format!("CREATE TABLE t ({} text)", header.join(" text, ")));
        let told = |after: &[&str]| {
            let plan =
                howdah("plan").args(["--to", &database.conninfo(), "--table", "t"]).args(after).arg(&source);
            plan.run(PATIENCE)
                .expect_code(0)
                .stdout
                .contains("ANALYZE behind the last row takes the server about")
        };
        assert!(told(&[]) && !told(&["--after", "none"]), "{version}");
        database.sql(
            "ALTER DATABASE CURRENT SET default_statistics_target = 1"
                .replace("CURRENT", database.name())
                .as_str(),
        );
        assert!(!told(&[]), "{version}");
    }
}

#[test]
fn what_may_not_be_done_is_told_and_the_load_is_done() {
    let files = Files::new();
    let source = files.put("many.csv", rows(0, 2000).as_bytes());
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id int, name text); DROP ROLE IF EXISTS loader_after; CREATE ROLE loader_after LOGIN; \
         GRANT SELECT, INSERT ON t TO loader_after",
    );
    let to = format!("{} options='-c role=loader_after'", database.conninfo());
    let command = howdah("load").args([
        "--to",
        &to,
        "--ledger",
        "none",
        "--table",
        "t",
        "--after",
        "vacuum,checkpoint",
    ]);
    let done = command.arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("CHECKPOINT was not done: the server says: "), "{}", done.stderr);
    let vacuum = "warning: VACUUM of public.t was not done: role loader_after is not the owner of public.t; all rows are in";
    assert!(done.stderr.contains(vacuum), "{}", done.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2000");
    database.sql("DROP OWNED BY loader_after; DROP ROLE loader_after");
}

/// The server only warns the session, and skips the table.
#[test]
fn statistics_that_the_role_may_not_renew_are_told_with_the_grant() {
    let files = Files::new();
    let source = files.put("many.csv", rows(0, 2000).as_bytes());
    for version in [13, 18] {
        let database = Server::shared(version).database();
        let role = format!("analyst_{}", database.name());
        database.sql(&format!(
            "CREATE TABLE t (id int, name text); CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT ON t TO {role}"
        ));
        let to = format!("{} options='-c role={role}'", database.conninfo());
        let load = |more: &[&str]| {
            let command = howdah("load").args(["--to", &to, "--ledger", "none", "--table", "t"]);
            command.args(more.iter().copied()).arg(&source).run(PATIENCE).expect_code(0).stderr
        };
        let known = || database.value("SELECT reltuples::int > 0 FROM pg_class WHERE relname = 't'");
        let lacks = format!("ANALYZE of public.t was not done: role {role} is not the owner of public.t");
        let told = load(&[]);
        assert!(told.contains(&lacks) && !told.contains("warning"), "{version}: {told}");
        // One line is enough for many tables.
        database.sql(&format!("CREATE TABLE u (LIKE t); GRANT INSERT, SELECT ON u TO {role}"));
        std::fs::create_dir_all(files.path().join("in")).unwrap();
        let (t, u) = (files.put("in/t.csv", rows(0, 2000).as_bytes()), rows(0, 2000));
        files.put("in/u.csv", u.as_bytes());
        let both =
            howdah("load").args(["--to", &to, "--ledger", "none"]).arg(t.with_file_name("{table}.csv"));
        let told = both.run(PATIENCE).expect_code(0).stderr;
        let lacks_both = lacks.replace("public.t was", "public.t and 1 other table was");
        assert!(told.contains(&lacks_both) && told.matches("was not done").count() == 1, "{told}");
        let told = load(&["--after", "analyze"]);
        assert!(told.contains(&format!("warning: {lacks}")), "{version}: {told}");
        assert_eq!(known(), "f", "{version}");
        let grant = format!("GRANT MAINTAIN ON \"public\".\"t\" TO \"{role}\"");
        assert_eq!(told.contains(&grant), version == 18, "{told}");
        let may =
            if version == 18 { grant } else { format!("ALTER DATABASE {} OWNER TO {role}", database.name()) };
        database.sql(&may);
        let told = load(&["--after", "analyze"]);
        assert!(!told.contains("was not done"), "{version}: {told}");
        assert_eq!(known(), "t", "{version}");
        database.sql(&format!(
            "ALTER DATABASE {} OWNER TO postgres; DROP OWNED BY {role}; DROP ROLE {role}",
            database.name()
        ));
    }
}

/// They are lost with the index and do not come back with it.
#[test]
fn an_index_on_expressions_that_is_built_again_has_statistics() {
    let files = Files::new();
    let source = files.put("few.csv", rows(100_000, 101_000).as_bytes());
    let bad = files.put("bad.csv", (rows(200_000, 201_000) + "x,y\n").as_bytes());
    for (version, table) in [(13, "t"), (15, "leaf"), (18, "t")] {
        let database = Server::shared(version).database();
        let make = |parted: &str| {
            database.sql(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id int, name text) {parted}; \
                 INSERT INTO t SELECT no, 'name ' || no FROM generate_series(1, 50000) no; \
                 CREATE INDEX i ON t (lower(name)); CREATE INDEX plain ON t (id); ANALYZE t"
            ));
        };
        let parted =
            "PARTITION BY RANGE (id); CREATE TABLE leaf PARTITION OF t FOR VALUES FROM (0) TO (1000000)";
        let known = || {
            database.value(&format!(
                "SELECT count(*) FROM pg_stats WHERE tablename IN (SELECT indexrelid::regclass::text FROM pg_index \
                 WHERE indrelid = '{table}'::regclass)"
            ))
        };
        let load = |source: &std::path::PathBuf| {
            load(&database).args(["--table", "t", "--force", "--indexes", "rebuild"]).arg(source)
        };
        make(if table == "leaf" { parted } else { "WITH (autovacuum_enabled = false)" });
        assert_eq!(known(), "1", "{version}");
        let told = load(&source).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("is built, in"), "{told}");
        assert_eq!(known(), "1", "{version}: {told}");
        let told = load(&bad).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("is built, in"), "{told}");
        assert_eq!(known(), "1", "{version}: {told}");
        load(&source).args(["--after", "none"]).run(PATIENCE).expect_code(0);
        assert_eq!(known(), "0", "{version}");
        // A killed one.
        shut_gate_behind(&database, 0);
        let mut running = load(&source).args(["--chunk-size", "16kB", "--jobs", "1"]).spawn();
        let dropped = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL AND kind = 'index'";
        assert!(wait_for(&database, &mut running, dropped, 2), "{}", running.stderr_so_far());
        running.kill();
        remove_gate(&database);
        crate::indexes::restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(known(), "1", "{version}");
    }
}

/// It is asked for again with those of the tables that have grown.
#[test]
fn statistics_that_were_not_renewed_with_an_index_are_renewed_at_the_end() {
    let files = Files::new();
    let source = files.put("few.csv", rows(100_000, 101_000).as_bytes());
    let database = Server::shared(15).database();
    database.sql(
        "CREATE SEQUENCE tries; CREATE TABLE t (id int, name text) WITH (autovacuum_enabled = false); \
         INSERT INTO t SELECT no, 'name ' || no FROM generate_series(1, 2000) no; \
         CREATE FUNCTION lowered(name text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
             IF current_query() LIKE '%ANALYZE%' AND nextval('public.tries') = 1 THEN RAISE 'not now'; END IF; \
             RETURN lower(name); END $$",
    );
    database.sql("CREATE INDEX i ON t (lowered(name))");
    let load = load(&database).args(["--table", "t", "--indexes", "rebuild"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("ANALYZE of public.t was not done"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM pg_stats WHERE tablename = 'i'"), "1", "{told}");
}

/// No connection was lost but the one that the stop has ended.
#[test]
fn a_load_that_is_stopped_in_analyze_doubts_nothing_of_what_it_has_stored() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let source = files.put("a.csv", rows(0, 2000).as_bytes());
    database.sql(
        "CREATE TABLE t (id int, name text) WITH (autovacuum_enabled = false); \
         CREATE FUNCTION lowered(name text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
             IF current_query() LIKE '%ANALYZE%' THEN PERFORM pg_sleep(600); END IF; RETURN lower(name); END $$",
    );
    database.sql("CREATE INDEX i ON t (lowered(name))");
    let mut running = load(&database).args(["--table", "t"]).arg(&source).spawn();
    let sleeps = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'PgSleep'";
    assert!(wait_for(&database, &mut running, sleeps, 1), "{}", running.stderr_so_far());
    running.interrupt();
    let told = running.wait(PATIENCE).stderr;
    assert!(
        told.contains("ANALYZE of public.t was not done: stopped by the user; all rows are in"),
        "{told}"
    );
    assert!(!told.contains("cannot be asked"), "{told}");
    assert_eq!(database.value("SELECT status FROM howdah.job"), "done");
}

#[test]
fn statistics_that_are_left_out_for_another_session_are_told() {
    let files = Files::new();
    let source = files.put("a.csv", rows(0, 2000).as_bytes());
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql("CREATE TABLE t (id int, name text) WITH (autovacuum_enabled = false)");
        let load = load(&database).args(["--table", "t", "--force", "--json"]).arg(&source);
        let left_out = |told: &str| {
            told.contains("ANALYZE of public.t was left out, since another session holds the table")
        };
        let other = database.connect();
        other.sql("BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE");
        let done = load.run(PATIENCE).expect_code(0);
        let told: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert!(left_out(&told["warnings"].to_string()) && left_out(&done.stderr), "{told}\n{}", done.stderr);
        other.sql("COMMIT");
        let done = load.run(PATIENCE).expect_code(0);
        assert!(!left_out(&done.stderr), "{}", done.stderr);
    }
}

#[test]
fn checkpoints_for_want_of_wal_are_told_and_those_that_somebody_asked_for_are_not() {
    let files = Files::new();
    let source = files.put("a.csv", rows(0, 20_000).as_bytes());
    let next_segment = "SELECT pg_logical_emit_message(true, '', ''); SELECT pg_switch_wal()";
    for (version, view) in
        [(13, "checkpoints_req) FROM pg_stat_bgwriter"), (18, "num_requested) FROM pg_stat_checkpointer")]
    {
        // Two segments: the least there is.
        let server = Server::private(version, &ServerOptions::default().set("max_wal_size", "32MB"));
        for (command, is_told) in [("CHECKPOINT", false), (next_segment, true)] {
            let database = server.database();
            database.sql("CREATE TABLE t (id int, name text)");
            shut_gate_behind(&database, 1);
            let load = load(&database).args(["--table", "t", "--chunk-size", "64kB"]).arg(&source);
            let mut running = load.spawn();
            assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
            let requested = format!("SELECT sum({view}");
            let before: u64 = database.value(&requested).parse().unwrap();
            // One that comes while another is under way is none of its own.
            for no in 1..=6 {
                database.sql(command);
                assert!(
                    wait_for(&database, &mut running, &requested, before + no),
                    "{}",
                    running.stderr_so_far()
                );
            }
            open_gate(&database);
            let told = running.wait(PATIENCE).expect_code(0).stderr;
            let words = "checkpoints came while rows did that were not due by time: max_wal_size is 32 MB";
            assert_eq!(told.contains(words), is_told, "PostgreSQL {version}, {command}\n{told}");
        }
    }
}
