//! What a load may not drop, or could not put back, it keeps, and says why.

use super::{PLAIN_SCHEMA, load, open_entries, schema};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::path::PathBuf;

const ROWS: u64 = 500;

fn prepared(major: u32, sql: &str) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(11, 1, ROWS));
    let database = Server::shared(major).database();
    database.sql(sql);
    (database, files, source)
}

/// `howdah load` as another role, and what it says.
fn loaded_as(database: &Database, role: &str, source: &std::path::Path) -> String {
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source);
    load.args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr
}

#[test]
fn indexes_of_somebody_elses_table_are_kept() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, PLAIN_SCHEMA);
        let role = format!("guest_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
            database.name()
        ));
        let before = schema(&database);
        let told = loaded_as(&database, &role, &source);
        assert!(told.contains("is kept: the table belongs to another role"), "{told}");
        assert!(schema(&database) == before && !told.contains("dropped from"), "{told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    }
}

#[test]
fn what_could_not_be_made_again_is_not_dropped() {
    let (database, _files, source) = prepared(18, PLAIN_SCHEMA);
    let role = format!("owner_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; ALTER TABLE s.t OWNER TO {role}; \
         GRANT USAGE ON SCHEMA s TO {role}; GRANT CREATE ON DATABASE {0} TO {role}; \
         ALTER ROLE {role} IN DATABASE {0} SET search_path = s",
        database.name()
    ));
    let told = loaded_as(&database, &role, &source);
    assert!(told.contains("is kept: putting indexes back needs CREATE on the table's schema"), "{told}");
    // A role of one's own with all that it takes.
    database.sql(&format!("GRANT CREATE ON SCHEMA s TO {role}; TRUNCATE s.t; TRUNCATE howdah.job CASCADE"));
    let before = schema(&database);
    let told = loaded_as(&database, &role, &source);
    assert!(told.contains("dropped from s.t"), "{told}");
    assert_eq!(schema(&database), before);
}

/// What is dropped is read from the journal when it is to come back.
#[test]
fn nothing_is_dropped_by_a_role_that_may_not_read_the_journal() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    load(&database, &source).args(["--job-id", "first"]).run(PATIENCE).expect_code(0);
    let role = format!("blind_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; TRUNCATE t; ALTER TABLE t OWNER TO {role}; GRANT ALL ON SCHEMA public TO {role}; \
         GRANT USAGE ON SCHEMA howdah TO {role}; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA howdah TO {role}; \
         REVOKE SELECT ON howdah.undo FROM {role}"
    ));
    let before = schema(&database);
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let load = load.args(["--indexes", "rebuild", "--job-id", "second", "--known", "load"]);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("may not use the ledger in schema \"howdah\" as this needs"), "{refused}");
    let grant = refused.lines().find_map(|line| line.split_once(", its owner can run "));
    let (_, hint) = grant.unwrap_or_else(|| panic!("{refused}"));
    // Another ledger would have the rows of an earlier run come twice.
    let (grant, other) =
        hint.split_once("; or, only if no load of these files was begun with this one").unwrap();
    assert!(other.contains("--ledger NAME"), "{refused}");
    assert_eq!(schema(&database), before);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    database.sql(grant);
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("dropped from public.t"), "{told}");
    assert_eq!(schema(&database), before);
}

#[test]
fn a_key_that_others_depend_on_is_kept() {
    let sql = format!("{PLAIN_SCHEMA}; CREATE VIEW v AS SELECT id, note FROM t GROUP BY id");
    let (database, _files, source) = prepared(15, &sql);
    let before = schema(&database);
    let told = load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains(
            "the primary key t_pkey of public.t is kept: rule _RETURN on view public.v depends on it"
        ),
        "{told}"
    );
    assert!(told.contains("index t_note"), "{told}");
    assert_eq!(schema(&database), before);
}

#[test]
fn a_foreign_key_of_somebody_elses_table_keeps_the_key_it_hangs_on() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    let role = format!("owner_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE other (id bigint REFERENCES t); CREATE ROLE {role} LOGIN; ALTER TABLE t OWNER TO {role}; \
         GRANT CREATE ON SCHEMA public TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    let before = schema(&database);
    let told = loaded_as(&database, &role, &source);
    let reason = "t_pkey of public.t is kept: the foreign key other_id_fkey of public.other hangs on it: \
                  public.other belongs to another role";
    assert!(told.contains(reason), "{told}");
    assert!(told.contains("the index t_part of public.t is built"), "{told}");
    assert_eq!(schema(&database), before);
}

#[test]
fn partitions_heirs_and_published_identities_are_kept() {
    for (sql, reason) in [
        (
            "CREATE TABLE parent (id bigint PRIMARY KEY, part integer, amount numeric, note text) PARTITION BY RANGE (id); \
             CREATE TABLE t PARTITION OF parent DEFAULT",
            "the table is a partition",
        ),
        (
            "CREATE TABLE parent (id bigint, part integer, amount numeric, note text); \
             CREATE TABLE t () INHERITS (parent); CREATE INDEX ON t (id)",
            "the table inherits from another",
        ),
        (
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE PUBLICATION p FOR TABLE t",
            "logical replication needs it as the table's replica identity",
        ),
        (
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (-1)",
            "other tables inherit from it",
        ),
        (
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE SCHEMA _timescaledb_catalog; \
             CREATE TABLE _timescaledb_catalog.hypertable (schema_name name, table_name name); \
             INSERT INTO _timescaledb_catalog.hypertable VALUES ('public', 't')",
            "it is a hypertable of TimescaleDB",
        ),
        (
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass); \
             INSERT INTO pg_catalog.pg_dist_partition VALUES ('t')",
            "it is a distributed table of Citus",
        ),
    ] {
        for major in MAJORS {
            let (database, _files, source) = prepared(major, sql);
            let before = schema(&database);
            let told =
                load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
            assert!(told.contains(&format!("is kept: {reason}")), "PostgreSQL {major}: {told}");
            assert_eq!(schema(&database), before, "PostgreSQL {major}");
        }
    }
}

/// The worker that applies what comes finds the rows to change by it, whatever the replica identity is.
#[test]
fn keys_by_which_a_subscription_finds_rows_are_kept() {
    let flat = "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text)";
    let full = format!("{flat}; ALTER TABLE t REPLICA IDENTITY FULL");
    let partitioned = "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text) PARTITION BY RANGE (id); \
                       CREATE TABLE p PARTITION OF t DEFAULT; ALTER TABLE p REPLICA IDENTITY FULL";
    for (sql, major) in [(flat, 13), (&full, 15), (partitioned, 18)] {
        let (database, _files, source) = prepared(major, sql);
        database
            .sql("CREATE SUBSCRIPTION s CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)");
        database.sql(
            "INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 't'::regclass, 'r' FROM pg_subscription",
        );
        let role = format!("owner_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}; ALTER TABLE t OWNER TO {role}; \
             GRANT CREATE ON DATABASE {} TO {role}",
            database.name()
        ));
        if sql == partitioned {
            database.sql(&format!("ALTER TABLE p OWNER TO {role}"));
        }
        let told = loaded_as(&database, &role, &source);
        let kept = "primary key t_pkey of public.t is kept: ";
        assert!(told.contains(kept) && told.contains("logical replication needs it"), "{sql}\n{told}");
        let keys = "SELECT count(*) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'p'";
        assert_eq!(database.value(keys), "1", "{sql}");
        database.sql("ALTER SUBSCRIPTION s SET (slot_name = NONE)");
        database.sql("DROP SUBSCRIPTION s");
    }
}

#[test]
fn the_plan_says_what_stays_and_what_goes_and_changes_nothing() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    let before = schema(&database);
    let to = database.conninfo();
    let plan = howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    let told = plan.args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("primary key t_pkey is dropped, and built behind the last row"), "{told}");
    assert_eq!(schema(&database), before);
}

#[test]
fn a_table_that_is_in_use_is_not_waited_for_longer_than_some_seconds() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    let before = schema(&database);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            let _ = database.try_sql("BEGIN; SELECT count(*) FROM t; SELECT pg_sleep(600); COMMIT");
        });
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        assert!(database.wait_for(naps, 1, || !held.is_finished()));
        let load = load(&database, &source).args(["--indexes", "rebuild"]);
        let finished = load.run(PATIENCE).expect_code(1);
        assert!(
            finished.stderr.contains("it was not free within 3000 ms; public.t is held by process "),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains(" (role postgres, active) (SQLSTATE 55P03)"), "{}", finished.stderr);
        assert!(finished.stderr.contains("--indexes keep"), "{}", finished.stderr);
        database.sql(END_SESSIONS);
        held.join().unwrap();
    });
    assert!(open_entries(&database) == 0 && schema(&database) == before);
    load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
}

/// Others queue behind whoever waits.
#[test]
fn what_comes_back_is_waited_for_as_the_lock_timeout_says() {
    for (given, within) in [("200ms", "2s"), ("3s", "2s 3s"), ("1min", "2s 5s")] {
        let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
        let before = schema(&database);
        database.sql(
            "CREATE TABLE seen (lock_timeout text); \
             CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS \
                 'BEGIN INSERT INTO public.seen VALUES (current_setting(''lock_timeout'')); END'; \
             CREATE EVENT TRIGGER note ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION note()",
        );
        let load = load(&database, &source).args(["--indexes", "rebuild", "--lock-timeout", given]);
        let told = load.run(PATIENCE).expect_code(0).stderr;
        // Indexes of the ledger are built with a wait of its own, 2 s.
        let seen = "SELECT string_agg(DISTINCT lock_timeout, ' ') FROM seen";
        assert_eq!(database.value(seen), within, "{told}");
        database.sql("DROP EVENT TRIGGER note; DROP FUNCTION note; DROP TABLE seen");
        assert_eq!(schema(&database), before);
    }
}

#[test]
fn a_table_at_the_other_end_of_a_foreign_key_that_is_not_free_is_the_one_named() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    database.sql(
        "CREATE TABLE parents (part int PRIMARY KEY); INSERT INTO parents SELECT generate_series(0, 255); \
         ALTER TABLE t ADD FOREIGN KEY (part) REFERENCES parents; CREATE TABLE busy AS SELECT 1",
    );
    let before = schema(&database);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            database.sql(
                "DO 'BEGIN LOCK TABLE parents IN ACCESS SHARE MODE; \
                     WHILE EXISTS (SELECT FROM busy) LOOP PERFORM pg_sleep(0.01); END LOOP; END'",
            );
        });
        let locked = "SELECT count(*) FROM pg_locks WHERE relation = 'parents'::regclass AND granted";
        assert!(database.wait_for(locked, 1, || true));
        let load = load(&database, &source).args(["--indexes", "rebuild"]);
        let told = load.run(PATIENCE).expect_code(1).stderr;
        database.sql("DELETE FROM busy");
        assert!(
            told.contains(
                "the foreign keys of public.t cannot be dropped: other sessions use public.parents, which one of them ties to it, \
                 and it was not free within 3000 ms; public.parents is held by process "
            ),
            "{told}"
        );
    });
    assert!(open_entries(&database) == 0 && schema(&database) == before);
}

#[test]
fn what_an_event_trigger_forbids_to_drop_stays_with_a_hint() {
    let (database, _files, source) = prepared(15, PLAIN_SCHEMA);
    // Makes the ledger.
    load(&database, &source).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
    let before = schema(&database);
    database.sql(
        "TRUNCATE t; CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS \
             'BEGIN RAISE EXCEPTION ''nothing is dropped here''; END'; \
         CREATE EVENT TRIGGER forbid ON sql_drop EXECUTE FUNCTION forbid()",
    );
    let load = load(&database, &source).arg("--force");
    let refused = load.args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("hint: --indexes keep leaves them where they are"), "{refused}");
    database.sql("DROP EVENT TRIGGER forbid; DROP FUNCTION forbid()");
    assert!(open_entries(&database) == 0 && schema(&database) == before);
}

/// Its function runs in the load's transactions, and finds by the role's path what it names.
#[test]
fn event_triggers_that_name_tables_without_their_schema_stop_no_load() {
    side_by_side(MAJORS, |major| {
        let (database, _files, source) = prepared(
            major,
            "CREATE TABLE parent (part integer PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 255); \
             CREATE TABLE t (id bigint PRIMARY KEY, part integer REFERENCES parent CHECK (part >= 0), amount numeric DEFAULT abs(-1), \
                             note text, no integer GENERATED BY DEFAULT AS IDENTITY, UNIQUE (id, part) DEFERRABLE); \
             CREATE INDEX t_note ON t (lower(note)); CLUSTER t USING t_note; \
             CREATE TABLE ddl_log (tag text); \
             CREATE FUNCTION note_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO ddl_log VALUES (tg_tag); END'",
        );
        // Makes the ledger.
        load(&database, &source).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
        let before = schema(&database);
        for how in [["--indexes", "rebuild"], ["--mode", "replace"]] {
            database.sql(
                "TRUNCATE t; CREATE EVENT TRIGGER note_ddl ON ddl_command_end EXECUTE FUNCTION note_ddl(); \
                 CREATE EVENT TRIGGER note_drop ON sql_drop EXECUTE FUNCTION note_ddl()",
            );
            load(&database, &source).arg("--force").args(how).run(PATIENCE).expect_code(0);
            database.sql("DROP EVENT TRIGGER note_ddl; DROP EVENT TRIGGER note_drop");
            assert!(
                open_entries(&database) == 0 && schema(&database) == before,
                "PostgreSQL {major} {how:?}"
            );
        }
        assert!(database.value("SELECT count(DISTINCT tag) > 3 FROM ddl_log") == "t");
        // What the server has written under an empty path is run under it.
        database.sql(
            "CREATE VIEW v AS SELECT id FROM t; \
             CREATE EVENT TRIGGER note_ddl ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION note_ddl()",
        );
        let before = (schema(&database), database.value("SELECT count(*) FROM t"));
        let refused =
            load(&database, &source).args(["--mode", "replace", "--force"]).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("ALTER FUNCTION ... SET search_path"), "{}", refused.stderr);
        assert_eq!(
            (schema(&database), database.value("SELECT count(*) FROM t")),
            before,
            "PostgreSQL {major}"
        );
    });
}
