//! What others do to a table while rows wait to come into it, and what its keys are compared by.

use super::{changes, load};
use crate::gate::{open_gate, shut_gate_behind};
use crate::indexes::kills::{CHUNKS, wait_for};
use crate::scene::{END_SESSIONS, END_SLEEPERS, Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server};
use std::fmt::Write as _;
use std::path::Path;

const RETYPED: &str = "column zip was read as integer, and it is text by now";

fn zips(database: &Database) -> String {
    database.value("SELECT coalesce(string_agg(zip::text, ' ' ORDER BY id), '') FROM t")
}

#[test]
fn rows_that_wait_are_not_cast_to_what_a_column_has_become() {
    let files = Files::new();
    let source = files.put("z.csv", b"id,zip\n1,00742\n2,00743\n");
    for (major, mode) in [
        (13, &["--mode", "merge", "--key", "id"][..]),
        (18, &["--atomic"]),
        (15, &["--mode", "insert-new", "--key", "id"]),
    ] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, zip int)");
        let load = load(&database, &[&source]).args(mode.iter().copied());
        // The table is held before its rows wait, and until the load is killed.
        shut_gate_behind(&database, 0);
        let mut running = load.clone().args(["--lock-timeout", "10min"]).spawn();
        let staged = "SELECT count(*) FROM pg_class WHERE relname LIKE 'staging\\_%'";
        assert!(wait_for(&database, &mut running, staged, 1), "{mode:?}\n{}", running.stderr_so_far());
        let holder = database.connect();
        holder.sql("BEGIN; LOCK TABLE t IN SHARE MODE");
        open_gate(&database);
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass";
        let waits =
            wait_for(&database, &mut running, CHUNKS, 1) && wait_for(&database, &mut running, waits, 1);
        running.kill();
        drop(holder);
        assert!(waits, "{mode:?}: the load was over before it was killed");
        database.sql(END_SESSIONS);
        // What waits is not in the table, and not told as if it were.
        let status = |options: &[&str]| {
            let status = howdah("status").args(["--to", &database.conninfo()]).args(options);
            status.run(PATIENCE).expect_code(0).stdout
        };
        let (told, json) = (status(&[]), status(&["--json"]));
        assert!(told.contains("public.t, 2 more wait in staging tables"), "{mode:?}\n{told}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["rows_stored"], &json[0]["rows_waiting"]), (&0.into(), &2.into()), "{mode:?}");
        let job = json[0]["job_id"].as_str().unwrap();
        let told = status(&[job]);
        assert!(
            told.contains("0 rows stored, 2 more wait in staging tables, in 1 chunk"),
            "{mode:?}\n{told}"
        );
        // Who may not read it is not told that none waits.
        let reader = format!("reader_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {reader} LOGIN; GRANT USAGE ON SCHEMA howdah TO {reader}; \
             GRANT SELECT ON howdah.migration, howdah.job, howdah.file, howdah.chunk, howdah.chunk_part, \
             howdah.undo, howdah.tuned TO {reader}; GRANT SELECT (job_id) ON howdah.reject TO {reader}"
        ));
        let to = database.conninfo().replace("user=postgres", &format!("user={reader}"));
        let seen = howdah("status").args(["--to", &to, "--json"]).run(PATIENCE).expect_code(0).stdout;
        let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
        assert_eq!(
            (&seen[0]["rows_stored"], &seen[0]["rows_waiting"]),
            (&2.into(), &serde_json::Value::Null)
        );
        let seen = howdah("status").args(["--to", &to]).run(PATIENCE).expect_code(0).stdout;
        assert!(seen.contains("how many of them wait in staging tables is unknown"), "{seen}");
        database.sql(&format!("DROP OWNED BY {reader}; DROP ROLE {reader}"));
        database.sql("ALTER TABLE t ALTER zip TYPE text");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(RETYPED), "{mode:?}\n{refused}");
        assert_eq!(zips(&database), "", "{mode:?}");
        howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
        load.run(PATIENCE).expect_code(0);
        assert_eq!(zips(&database), "00742 00743", "{mode:?}");
    }
}

/// Every value stays what it is, and those that are still to come may need the room.
#[test]
fn rows_that_wait_come_into_columns_that_have_grown() {
    const NAPS: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    let files = Files::new();
    let first: String = (1..=9_000).map(|id| format!("{id},{id:05},1.50,0\n")).collect();
    let last = "9001,00742,2.25,1\n9002,007420000,1234567.25,0\n";
    let source = files.put("g.csv", format!("id,zip,amount,nap\n{first}{last}").as_bytes());
    for (major, mode, amount, refused) in [
        (13, &["--mode", "merge", "--key", "id"][..], "numeric(9,2)", false),
        (18, &["--atomic"], "numeric(9,2)", false),
        (15, &["--atomic"], "numeric(12,4)", true),
    ] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE FUNCTION nap(int) RETURNS bool LANGUAGE plpgsql AS \
                 $$ BEGIN IF $1 = 1 THEN PERFORM pg_sleep(600); END IF; RETURN true; END $$; \
             CREATE DOMAIN napping AS int CHECK (nap(VALUE)); \
             CREATE TABLE t (id int PRIMARY KEY, zip varchar(5) COLLATE \"C\", amount numeric(6,2), nap napping)",
        );
        let load = load(&database, &[&source]).args(mode.iter().copied());
        let load = load.args(["--jobs", "1", "--chunk-size", "64kB", "--memory", "64MB"]);
        let mut running = load.spawn();
        let hit = wait_for(&database, &mut running, NAPS, 1);
        running.kill();
        assert!(hit, "PostgreSQL {major}, {mode:?}: the load was over before it was killed");
        database.sql(END_SESSIONS);
        assert_ne!(database.value(CHUNKS), "0");
        database.sql(&format!(
            "CREATE OR REPLACE FUNCTION nap(int) RETURNS bool LANGUAGE sql AS 'SELECT true'; \
             ALTER TABLE t ALTER zip TYPE varchar(9) COLLATE \"C\", ALTER amount TYPE {amount}"
        ));
        let done = load.run(PATIENCE).expect_code(i32::from(refused));
        let told = "column amount was read as numeric(6,2), and it is numeric(12,4) by now";
        assert_eq!(done.stderr.contains(told), refused, "PostgreSQL {major}, {mode:?}\n{}", done.stderr);
        let stored = "SELECT concat_ws(' ', count(*), max(length(zip)), max(amount)) FROM t";
        let wanted = if refused { "0" } else { "9002 9 1234567.25" };
        assert_eq!(database.value(stored), wanted, "PostgreSQL {major}, {mode:?}");
    }
}

/// The lock that makes rows wait is the one under which the column gets another type.
#[test]
fn the_same_when_a_column_changes_in_the_last_moment() {
    let files = Files::new();
    let source = files.put("z.csv", b"id,zip,n\n1,00742,1\n");
    for (major, mode) in [(13, &["--mode", "merge", "--key", "id"][..]), (18, &["--atomic"])] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, zip int, n int)");
        shut_gate_behind(&database, 0);
        let load = load(&database, &[&source]).args(mode.iter().copied());
        let mut running = load.args(["--lock-timeout", "10min"]).spawn();
        let staged = "SELECT count(*) FROM pg_class WHERE relname LIKE 'staging\\_%'";
        assert!(wait_for(&database, &mut running, staged, 1), "{mode:?}\n{}", running.stderr_so_far());
        let other = database.connect();
        other.sql("BEGIN; ALTER TABLE t ALTER zip TYPE text");
        open_gate(&database);
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass";
        assert!(wait_for(&database, &mut running, waits, 1), "{mode:?}\n{}", running.stderr_so_far());
        other.sql("COMMIT");
        let refused = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(RETYPED), "{mode:?}\n{refused}");
        assert_eq!(zips(&database), "", "{mode:?}");
    }
}

/// Linguistic order is not that of the bytes, by which such an index compares.
#[test]
fn a_key_that_is_compared_byte_by_byte_is_cut_byte_by_byte() {
    let files = Files::new();
    let mut text = "code,v\n".to_owned();
    for no in 0..40_000 {
        let letter = if no % 2 == 0 { 'a' } else { 'A' };
        let next = char::from(b'a' + u8::try_from(no / 2 % 26).unwrap());
        let _ = writeln!(
            text,
            "{}{next}{no:050},{no}",
            if no % 4 < 2 { letter } else { letter.to_ascii_uppercase() }
        );
    }
    let source = files.put("t.csv", text.as_bytes());
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (code text COLLATE \"en-x-icu\" NOT NULL, v int); \
             CREATE UNIQUE INDEX ON t (code text_pattern_ops)",
        );
        let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "code", "--jobs", "4"]);
        assert_eq!(changes(&load), [40_000, 0, 0, 0, 0], "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) || ' ' || sum(v) FROM t"), "40000 799980000");
    }
}

/// A row may have what another has until the transaction ends.
#[test]
fn rows_come_together_where_a_primary_key_is_deferrable() {
    const ROWS: u32 = 40_000;
    let files = Files::new();
    let mut text = "code,pos\n".to_owned();
    for no in 0..ROWS {
        let _ = writeln!(text, "k{no:050},{}", (no + ROWS / 2) % ROWS);
    }
    let source = files.put("t.csv", text.as_bytes());
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE TABLE t (code text UNIQUE, pos int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED); \
             INSERT INTO t SELECT 'k' || lpad(no::text, 50, '0'), no FROM generate_series(0, {ROWS} - 1) no"
        ));
        let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "code", "--jobs", "4"]);
        assert_eq!(changes(&load), [0, u64::from(ROWS), 0, 0, 0], "PostgreSQL {major}");
    }
}

/// The sample that tells the borders of the parts is another one then, but they are kept.
#[test]
fn parts_meet_when_the_staging_table_is_written_anew_in_between() {
    for major in MAJORS {
        let plain = csv(97, 1, 30_000);
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let (load, staging) = one_part_of_two(&scene, &source);
        scene.database.sql(&format!("CREATE INDEX other ON {staging} (note); CLUSTER {staging} USING other"));
        let done = load.run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains("come into") || done.contains("are merged into"), "{done}");
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

/// As where the borders could not be kept.
#[test]
fn parts_that_do_not_meet_are_told_with_the_way_out() {
    let plain = csv(97, 1, 30_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let (load, staging) = one_part_of_two(&scene, &source);
    let borders = staging.replace("staging_", "borders_");
    scene.database.sql(&format!(
        "TRUNCATE {borders}; CREATE INDEX other ON {staging} (note); CLUSTER {staging} USING other"
    ));
    let failed = load.run(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("the parts that were done at different times do not meet"), "{failed}");
    assert!(failed.contains("drops the rows that wait; then the same command loads them again"), "{failed}");
    scene.verb("restore").run(PATIENCE).expect_code(0);
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("by the way out");
}

/// Neither the catalog, which every role reads, nor the server's log tells the keys by which rows are cut
/// into parts.
#[test]
fn no_other_role_reads_the_keys_that_cut_a_merge_into_parts() {
    for major in [13, 18] {
        let database = Server::shared(major).database();
        let (files, name) = (Files::new(), database.name().to_owned());
        let mut text = "email,n\n".to_owned();
        (0..40_000).for_each(|no| _ = writeln!(text, "somebody{no:040}@{name}.example,{no}"));
        let source = files.put("t.csv", text.as_bytes());
        database.sql(&format!(
            "CREATE TABLE t (email text PRIMARY KEY, n int); CREATE TABLE gate AS SELECT 1; \
             CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END'; \
             CREATE TRIGGER gate BEFORE INSERT ON t EXECUTE FUNCTION gate(); CREATE ROLE nobody_{name}; \
             ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_duration_statement = 0"
        ));
        let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "email", "--jobs", "2"]);
        let nothing_is_seen = |when: &str| {
            let said =
                format!("SELECT count(*) FROM pg_description WHERE description LIKE '%@{name}.example%'");
            assert_eq!(database.value(&said), "0", "PostgreSQL {major}, {when}");
            let read = format!(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'howdah'::regnamespace AND relkind = 'r' \
                 AND has_table_privilege('nobody_{name}', oid, 'SELECT')"
            );
            assert_eq!(database.value(&read), "0", "PostgreSQL {major}, {when}");
            let kept = database.value(
                "SELECT (xpath('//n/text()', query_to_xml(format('SELECT count(*) AS n FROM %s', oid::regclass), true, true, '')))[1]::text \
                 FROM pg_class WHERE relname LIKE 'borders\\_%'",
            );
            assert!(kept.parse::<u32>().unwrap() > 1, "PostgreSQL {major}, {when}: one part");
        };
        let mut running = load.spawn();
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
        assert!(database.wait_for(waiting, 1, || running.is_running()), "{}", running.stderr_so_far());
        nothing_is_seen("amid the merge");
        running.kill();
        nothing_is_seen("after the kill");
        database.sql("DELETE FROM gate");
        load.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), "40000");
        super::assert_nothing_left(&database, &format!("PostgreSQL {major}"));
        let log = Server::shared(major).log();
        let told: Vec<&str> =
            log.lines().filter(|line| line.contains("somebody0") && line.contains(&name)).take(5).collect();
        assert!(told.is_empty(), "{told:#?}");
    }
}

/// A load of which one part has come, and another has been refused; the staging table where the rows wait.
fn one_part_of_two(scene: &Scene, source: &Path) -> (HowdahCommand, String) {
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id), ADD CONSTRAINT stop CHECK (id <> 29999)");
    let load = load(&scene.database, &[source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
    load.run(PATIENCE).expect_code(1);
    assert_eq!(scene.database.value("SELECT count(*) > 0 FROM t"), "t");
    let staging = scene.database.value(
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'howdah'::regnamespace AND relname LIKE 'staging\\_%' \
         AND relkind = 'r'",
    );
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT stop");
    (load, staging)
}

/// Whether rows of a published table may be changed, the server says only of a table that it can lock.
#[test]
fn a_published_table_that_others_hold_is_waited_for_as_long_as_was_said() {
    let files = Files::new();
    let source = files.put("t.csv", b"id,note\n1,a\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, note text); CREATE PUBLICATION p FOR TABLE t");
    let plan =
        howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &database.conninfo()]);
    let plan = plan.args(["--mode", "merge", "--key", "id", "--lock-timeout", "300ms", "--retry-for", "0s"]);
    let held = "SET application_name = 'somebody'; BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)";
    let told = std::thread::scope(|scope| {
        let holding = scope.spawn(|| drop(database.try_sql(held)));
        let locked = "SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND relation = 't'::regclass";
        assert!(database.wait_for(locked, 1, || true));
        let told = plan.clone().arg(&source).run(PATIENCE);
        database.sql(END_SLEEPERS);
        holding.join().unwrap();
        told.expect_code(1).stderr
    });
    assert!(told.contains("may be changed cannot be asked yet: other sessions hold it"), "{told}");
    assert!(told.contains("application somebody"), "{told}");
    plan.arg(&source).run(PATIENCE).expect_code(0);
}
