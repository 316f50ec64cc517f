//! Triggers that do not fire for the rows of a load, in each way, and constraints that are checked all the
//! same.

use crate::gate::{move_gate_behind, open_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, load, open_entries, pause, restore, schema, wait_for};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};
use std::path::{Path, PathBuf};

const ROWS: u64 = 500;

/// A table with triggers in every state; what fires notes its name.
const SCHEMA: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text); \
    CREATE TABLE seen (name text); GRANT ALL ON seen TO PUBLIC; \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN INSERT INTO public.seen VALUES (TG_NAME); RETURN NEW; END'; \
    CREATE TRIGGER \"Before\" BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER after AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER once AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note(); \
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER never AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER mirrored AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER ever AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE TRIGGER changes AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note(); \
    ALTER TABLE t DISABLE TRIGGER never; ALTER TABLE t ENABLE REPLICA TRIGGER mirrored; \
    ALTER TABLE t ENABLE ALWAYS TRIGGER ever";

fn prepared(major: u32, sql: &str, rows: u64) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(31, 1, rows));
    let database = Server::shared(major).database();
    database.sql(sql);
    (database, files, source)
}

/// A role of this database that may keep a ledger and insert into the table.
fn role(database: &Database, kind: &str) -> String {
    let role = format!("{kind}_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    role
}

fn verb_as(verb: &str, database: &Database, role: &str, source: &Path) -> HowdahCommand {
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let command = howdah(verb).args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source);
    command.args(["--triggers", "disable"])
}

fn seen(database: &Database) -> String {
    database.value("SELECT coalesce(string_agg(DISTINCT name, ',' ORDER BY name), '') FROM seen")
}

/// The state of every trigger but those of the ledger, also of those that the server has made.
fn states(database: &Database) -> Vec<Vec<Option<String>>> {
    database.rows(
        "SELECT tgrelid::regclass, CASE WHEN tgname LIKE 'RI_%' THEN 'RI' ELSE tgname END, tgenabled, count(*) \
         FROM pg_trigger WHERE tgrelid::regclass::text NOT LIKE 'howdah.%' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    )
}

#[test]
fn whoever_may_set_the_role_of_the_session_touches_nothing_outside_it() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, SCHEMA, ROWS);
        let (before, states) = (schema(&database), states(&database));
        let told =
            load(&database, &source).args(["--triggers", "disable"]).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
        // What a replica would have fired.
        assert_eq!(seen(&database), "ever,mirrored", "PostgreSQL {major}");
        assert!(
            told.contains("the triggers Before, after, late, once do not fire for the rows of this load")
                && told.contains("the trigger ever fires nevertheless: ENABLE ALWAYS")
                && told.contains("the trigger mirrored fires for these rows: ENABLE REPLICA"),
            "{told}"
        );
        assert_eq!(database.value("SELECT count(*) FROM howdah.undo"), "0");
        assert!(schema(&database) == before && self::states(&database) == states, "PostgreSQL {major}");
    }
}

#[test]
fn a_granted_parameter_is_enough() {
    for major in MAJORS.into_iter().filter(|major| *major >= 15) {
        let (database, _files, source) = prepared(major, SCHEMA, ROWS);
        let role = role(&database, "granted");
        database.sql(&format!("GRANT SET ON PARAMETER session_replication_role TO {role}"));
        verb_as("load", &database, &role, &source).run(PATIENCE).expect_code(0);
        assert_eq!(seen(&database), "ever,mirrored", "PostgreSQL {major}");
        database.sql(&format!("REVOKE SET ON PARAMETER session_replication_role FROM {role}"));
    }
}

#[test]
fn the_owner_disables_what_is_enabled_and_each_comes_back_as_it_was() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, SCHEMA, ROWS);
        let role = role(&database, "owner");
        database.sql(&format!("ALTER TABLE t OWNER TO {role}"));
        let (before, states) = (schema(&database), states(&database));
        let planned = verb_as("plan", &database, &role, &source).run(PATIENCE).expect_code(0).stdout;
        let note = "the triggers Before, after, late, once are disabled while the load runs, for the rows of other \
                    sessions too";
        assert!(planned.contains(note), "{planned}");
        assert_eq!(self::states(&database), states, "a plan changes nothing");
        let told = verb_as("load", &database, &role, &source).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}");
        assert!(
            told.contains("disabled on public.t, to be enabled at the end: Before, after, late, once")
                && told.contains("the trigger late of public.t is enabled again"),
            "{told}"
        );
        assert_eq!(database.value("SELECT count(*) FROM howdah.undo WHERE undone_at IS NOT NULL"), "4");
        assert_eq!(open_entries(&database), 0);
        assert!(schema(&database) == before && self::states(&database) == states, "PostgreSQL {major}");
    }
}

#[test]
fn who_may_do_neither_is_told_what_to_do_before_anything_is_loaded() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, SCHEMA, ROWS);
        let role = role(&database, "guest");
        for verb in ["plan", "load"] {
            let told = verb_as(verb, &database, &role, &source).run(PATIENCE).expect_code(1).stderr;
            assert!(
                told.contains(
                    "the triggers Before, after, late, once cannot be disabled on public.t: public.t belongs to another \
                     role, and the role may not set session_replication_role"
                ),
                "{told}"
            );
            let grant = format!("GRANT SET ON PARAMETER session_replication_role TO \"{role}\"");
            assert_eq!(told.contains(&grant), major >= 15, "PostgreSQL {major}: {told}");
            assert!(told.contains("let the owner of the table"), "{told}");
        }
        assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    }
}

#[test]
fn a_kill_leaves_triggers_that_restore_enables() {
    side_by_side(MAJORS, |major| {
        let (database, _files, source) = prepared(major, SCHEMA, 20_000);
        let role = role(&database, "owner");
        database.sql(&format!("ALTER TABLE t OWNER TO {role}"));
        shut_gate_behind(&database, 2);
        let (before, states) = (schema(&database), states(&database));
        let load = verb_as("load", &database, &role, &source).args(["--chunk-size", "64kB", "--jobs", "2"]);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 2));
        running.kill();
        move_gate_behind(&database, 4);
        assert_eq!(open_entries(&database), 4, "PostgreSQL {major}");
        assert_ne!(self::states(&database), states);
        // The job that goes on finds them disabled, and a kill of that one changes nothing.
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 4));
        running.kill();
        open_gate(&database);
        // Somebody has enabled one by hand, and dropped another one.
        database.sql("ALTER TABLE t ENABLE TRIGGER once");
        // The gate is a trigger on a ledger that is this role's: nobody else reads that.
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let told = howdah("restore").args(["--to", &to]).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the trigger once of public.t is there already, as it was"), "{told}");
        assert!(
            schema(&database) == before && self::states(&database) == states,
            "PostgreSQL {major}: {told}"
        );
        load.run(PATIENCE).expect_code(0);
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "20000");
        assert!(schema(&database) == before && self::states(&database) == states, "PostgreSQL {major}");
    });
}

#[test]
fn triggers_fire_for_a_run_that_keeps_them_behind_one_that_was_killed() {
    for major in MAJORS {
        let (database, _files, source, role) = paused(major);
        shut_gate_behind(&database, 2);
        let (before, states) = (schema(&database), states(&database));
        let small = ["--chunk-size", "64kB", "--jobs", "1"];
        let mut running = verb_as("load", &database, &role, &source).args(small).spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 2));
        running.kill();
        open_gate(&database);
        assert_eq!(open_entries(&database), 4, "PostgreSQL {major}");
        // What the killed run was at is in, or never will be.
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        while database.value(&format!("SELECT count(pg_terminate_backend(pid)) {others}")) != "0" {}
        let rows: u64 = database.value("SELECT count(*) FROM t").parse().unwrap();
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let again = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
        let told = again.args(small).arg(&source).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(database.value("SELECT count(*) FROM t"), "20000");
        let fired = database.value("SELECT count(*) FROM seen WHERE name = 'after'");
        assert_eq!(fired, (20_000 - rows).to_string(), "PostgreSQL {major}: {told}");
        assert!(told.contains("the trigger after of public.t is enabled again"), "{told}");
        assert_eq!(open_entries(&database), 0);
        assert!(schema(&database) == before && self::states(&database) == states, "PostgreSQL {major}");
    }
}

const REFERS: &str = "CREATE TABLE parents (part integer PRIMARY KEY); INSERT INTO parents SELECT generate_series(0, 255); \
    ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parents";

#[test]
fn foreign_keys_are_checked_behind_the_rows_whoever_loads() {
    for major in MAJORS {
        let (database, files, source) = prepared(major, &format!("{SCHEMA}; {REFERS}"), ROWS);
        let before = schema(&database);
        let disable = ["--triggers", "disable", "--indexes", "keep"];
        let told = load(&database, &source).args(disable).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the foreign key f of public.t is validated"), "{told}");
        assert_eq!(seen(&database), "ever,mirrored", "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        // A row that it would have refused is not overlooked.
        let wrong = files.put("b.csv", b"id,part,amount,note\n1000,999,1.00,wrong\n");
        let told = load(&database, &wrong).args(disable).run(PATIENCE).expect_code(1).stderr;
        assert!(
            told.contains("the foreign key f of public.t holds for new rows, but rows are in the table"),
            "{told}"
        );
        assert_eq!(database.value("SELECT convalidated FROM pg_constraint WHERE conname = 'f'"), "f");
        database.sql("DELETE FROM t WHERE part = 999");
        restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
    }
}

#[test]
fn constraints_that_stay_go_on_being_checked() {
    for major in MAJORS {
        // The table that is referred to belongs to somebody else: its owner's triggers stay.
        let (database, files, source) = prepared(major, &format!("{SCHEMA}; {REFERS}"), ROWS);
        let role = role(&database, "owner");
        database.sql(&format!("ALTER TABLE t OWNER TO {role}; GRANT CREATE ON SCHEMA public TO {role}"));
        let told = verb_as("load", &database, &role, &source).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the foreign key f is checked for each row: it stays"), "{told}");
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}");
        let wrong = files.put("b.csv", b"id,part,amount,note\n1000,999,1.00,wrong\n");
        let told = verb_as("load", &database, &role, &wrong).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("23503"), "{told}");
        // A key that is deferrable is checked by a trigger, too: a superuser's load disables what users have
        // made.
        let (database, files, _) = prepared(
            major,
            &format!("{SCHEMA}; ALTER TABLE t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"),
            ROWS,
        );
        let before = schema(&database);
        let twice = files.put("c.csv", b"id,part,amount,note\n7,1,1.00,a\n7,1,1.00,b\n");
        let disable = ["--triggers", "disable", "--indexes", "keep"];
        let told = load(&database, &twice).args(disable).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("23505") && told.contains("disabled on public.t"), "{told}");
        assert_eq!(seen(&database), "", "PostgreSQL {major}");
        assert!(open_entries(&database) == 0 && schema(&database) == before, "PostgreSQL {major}");
    }
}

#[test]
fn what_the_role_itself_leaves_unchecked_is_said() {
    let major = MAJORS[0];
    let (database, _files, source) = prepared(major, &format!("{SCHEMA}; {REFERS}"), ROWS);
    let role = role(&database, "copier");
    database.sql(&format!("ALTER ROLE {role} SET session_replication_role = replica"));
    let because = "the role has session_replication_role = replica";
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let told = load.arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(&format!("the foreign key f is NOT checked for these rows: {because}")), "{told}");
    assert!(told.contains(&format!("do not fire: {because}")), "{told}");
    assert_eq!(seen(&database), "ever,mirrored");
}

#[test]
fn a_foreign_key_that_comes_meanwhile_is_not_circumvented() {
    let (database, _files, source) = prepared(18, SCHEMA, 20_000);
    shut_gate_behind(&database, 2);
    let load =
        load(&database, &source).args(["--triggers", "disable", "--chunk-size", "64kB", "--jobs", "2"]);
    let mut running = load.spawn();
    assert!(wait_for(&database, &mut running, CHUNKS, 2));
    database.sql(REFERS);
    open_gate(&database);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("public.t has a foreign key or a deferrable key now"), "{told}");
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the foreign key f of public.t is validated"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "20000");
    assert_eq!(seen(&database), "ever,mirrored");
}

#[test]
fn triggers_of_partitions_come_back_with_those_of_their_parents() {
    for major in MAJORS {
        for owner in [false, true] {
            let sql = SCHEMA.replacen("note text);", "note text) PARTITION BY RANGE (part);", 1)
                + "; CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100); \
                   CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (256) PARTITION BY HASH (id); \
                   CREATE TABLE high0 PARTITION OF high FOR VALUES WITH (MODULUS 1, REMAINDER 0); \
                   CREATE TRIGGER of_low AFTER INSERT ON low FOR EACH ROW EXECUTE FUNCTION note(); \
                   CREATE TRIGGER of_high AFTER INSERT ON high FOR EACH ROW EXECUTE FUNCTION note()";
            let (database, _files, source) = prepared(major, &sql, ROWS);
            let role = if owner { role(&database, "owner") } else { "postgres".to_owned() };
            for table in ["t", "low", "high", "high0"] {
                database.sql(&format!("ALTER TABLE {table} OWNER TO {role}"));
            }
            let (before, states) = (schema(&database), states(&database));
            let told = verb_as("load", &database, &role, &source).run(PATIENCE).expect_code(0).stderr;
            assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
            let fired = if owner { "ever" } else { "ever,mirrored" };
            assert_eq!(seen(&database), fired, "PostgreSQL {major}, owner: {owner}\n{told}");
            assert_eq!(self::states(&database), states, "PostgreSQL {major}, owner: {owner}\n{told}");
            assert_eq!(schema(&database), before, "PostgreSQL {major}, owner: {owner}");
        }
    }
}

#[test]
fn triggers_whose_state_differs_between_partitions_are_not_made_even() {
    for major in MAJORS {
        let sql = SCHEMA.replacen("note text);", "note text) PARTITION BY RANGE (part);", 1)
            + "; CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (256); ALTER TABLE low DISABLE TRIGGER after; \
               ALTER TABLE ONLY t DISABLE TRIGGER \"Before\"; ALTER TABLE low ENABLE TRIGGER \"Before\"";
        let (database, _files, source) = prepared(major, &sql, ROWS);
        let role = role(&database, "owner");
        database.sql(&format!("ALTER TABLE t OWNER TO {role}; ALTER TABLE low OWNER TO {role}"));
        let states = states(&database);
        let told = verb_as("load", &database, &role, &source).run(PATIENCE).expect_code(0).stderr;
        assert!(
            told.contains(
                "the state of the triggers after, Before differs between the table and its partitions: each has its own again"
            ),
            "{told}"
        );
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}");
        assert_eq!(self::states(&database), states, "PostgreSQL {major}: {told}");
        assert_eq!(open_entries(&database), 0);
        database.sql("TRUNCATE seen, t; DELETE FROM howdah.job");
        load(&database, &source).args(["--triggers", "disable"]).run(PATIENCE).expect_code(0);
        assert_eq!(seen(&database), "ever,mirrored", "PostgreSQL {major}");
        assert_eq!(self::states(&database), states, "PostgreSQL {major}");
    }
}

#[test]
fn kept_triggers_and_foreign_keys_are_said_with_what_they_cost() {
    let (database, files, _) =
        prepared(15, &format!("{SCHEMA}; {REFERS}; INSERT INTO t VALUES (0, 0)"), ROWS);
    let much = files.put("much.csv", &csv(17, 1, 2000));
    std::fs::OpenOptions::new().write(true).open(&much).unwrap().set_len(300 << 20).unwrap();
    let to = database.conninfo();
    let plan = howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&much);
    let told = plan.run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("the trigger Before fires for each row: about 4."), "{told}");
    assert!(told.contains("the foreign key f is checked for each row: about 1"), "{told}");
    assert!(!told.contains("the trigger never") && !told.contains("the trigger once"), "{told}");
}

/// Each chunk takes a while, which no option changes.
fn paused(major: u32) -> (Database, Files, PathBuf, String) {
    let (database, files, source) = prepared(major, SCHEMA, 20_000);
    let role = role(&database, "owner");
    database.sql(&format!(
        "ALTER TABLE t OWNER TO {role}; {}; ALTER TABLE t ENABLE ALWAYS TRIGGER pause",
        pause(0.1)
    ));
    (database, files, source, role)
}

#[test]
fn of_two_loads_neither_fires_what_the_other_enables() {
    for major in MAJORS {
        let (database, files, source, role) = paused(major);
        let short = files.put("short.csv", &csv(32, 50_001, 7000));
        let (before, states) = (schema(&database), states(&database));
        let load = |source: &Path| {
            verb_as("load", &database, &role, source).args(["--chunk-size", "64kB", "--jobs", "1"])
        };
        let mut first = load(&short).spawn();
        assert!(wait_for(&database, &mut first, CHUNKS, 1), "{}", first.stderr_so_far());
        let mut second = load(&source).args(["--on-error", "skip"]).spawn();
        assert!(
            wait_for(&database, &mut second, "SELECT count(DISTINCT job_id) FROM howdah.chunk", 2),
            "{}",
            second.stderr_so_far()
        );
        first.wait(PATIENCE).expect_code(0);
        assert!(second.is_running(), "{}", second.stderr_so_far());
        let told = second.wait(PATIENCE).expect_code(0).stderr;
        assert!(
            told.contains("disabled on public.t, to be enabled at the end"),
            "PostgreSQL {major}: {told}"
        );
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}: {told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "27000");
        assert_eq!(open_entries(&database), 0);
        assert!(
            schema(&database) == before && self::states(&database) == states,
            "PostgreSQL {major}: {told}"
        );
    }
}

#[test]
fn a_run_that_is_stopped_does_not_make_triggers_fire_for_another_of_its_job() {
    for major in MAJORS {
        let (database, _files, source, role) = paused(major);
        shut_gate_behind(&database, 1);
        let (before, states) = (schema(&database), states(&database));
        let load = verb_as("load", &database, &role, &source).args(["--chunk-size", "64kB", "--jobs", "1"]);
        let mut first = load.spawn();
        assert!(wait_for(&database, &mut first, CHUNKS, 1), "{}", first.stderr_so_far());
        let mut second = load.spawn();
        let sessions = "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert!(wait_for(&database, &mut second, sessions, 2), "{}", second.stderr_so_far());
        first.interrupt();
        open_gate(&database);
        let told = first.wait(PATIENCE).stderr;
        assert!(told.contains("is enabled again"), "{told}");
        let told = second.wait(PATIENCE).expect_code(0).stderr;
        assert_eq!(seen(&database), "ever", "PostgreSQL {major}: {told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "20000");
        assert_eq!(open_entries(&database), 0);
        assert!(
            schema(&database) == before && self::states(&database) == states,
            "PostgreSQL {major}: {told}"
        );
    }
}
