//! Partitions that a load makes (`--create-partitions`): as their table, or not at all.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server};
use std::path::Path;

fn load(database: &Database, source: &Path) -> HowdahCommand {
    let to = database.conninfo();
    let load = howdah("load").args(["--format", "csv", "--table", "t", "--to", &to]).arg(source);
    load.args(["--create-partitions", "month"])
}

#[test]
fn a_partition_has_the_access_method_of_its_table() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-02\n2,2024-02-03\n");
    for (major, of_table, expected) in
        [(15, "", "heap"), (18, "", "heap"), (18, "USING other_heap", "other_heap")]
    {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler; \
             CREATE TABLE t (id int, day date) PARTITION BY RANGE (day) {of_table}"
        ));
        load(&database, &source).run(PATIENCE).expect_code(0);
        let methods = "SELECT string_agg(m.amname, ',') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
                       JOIN pg_am m ON m.oid = c.relam WHERE i.inhparent = 't'::regclass";
        assert_eq!(database.value(methods), format!("{expected},{expected}"), "PostgreSQL {major}");
    }
}

#[test]
fn partitions_that_are_published_as_they_are_made_are_said() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-02\n");
    for (major, options, is_said) in
        [(13, "", true), (18, "", true), (18, "WITH (publish_via_partition_root)", false)]
    {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE TABLE t (id int, day date) PARTITION BY RANGE (day); CREATE PUBLICATION p FOR TABLE t {options}"
        ));
        let told = load(&database, &source).run(PATIENCE).expect_code(0).stderr;
        let said = "the publication p is of t, and with it of the partitions that this load makes";
        assert_eq!(told.contains(said), is_said, "PostgreSQL {major}: {told}");
    }
}

#[test]
fn a_partition_belongs_to_the_owner_of_its_table() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-02\n2,2024-02-03\n");
    for major in MAJORS {
        for owner_may in [true, false] {
            let database = Server::shared(major).database();
            let (owner, loader) =
                (format!("owner_{}", database.name()), format!("loader_{}", database.name()));
            database.sql(&format!(
                "CREATE ROLE {owner}; CREATE ROLE {loader} LOGIN IN ROLE {owner}; REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
                 GRANT CREATE ON SCHEMA public TO {loader}; GRANT CREATE ON DATABASE {} TO {loader}; \
                 CREATE TABLE t (id int, day date) PARTITION BY RANGE (day); ALTER TABLE t OWNER TO {owner}",
                database.name()
            ));
            if owner_may {
                database.sql(&format!("GRANT CREATE ON SCHEMA public TO {owner}"));
            }
            let to = database.conninfo().replace("user=postgres", &format!("user={loader}"));
            let load = howdah("load").args(["--format", "csv", "--table", "t", "--to", &to]).arg(&source);
            let told = load.args(["--create-partitions", "month"]).run(PATIENCE).expect_code(0).stderr;
            let owners =
                "SELECT string_agg(DISTINCT relowner::regrole::text, ',') FROM pg_class WHERE relispartition";
            let expected = if owner_may { &owner } else { &loader };
            assert_eq!(database.value(owners), *expected, "PostgreSQL {major}: {told}");
            assert_eq!(told.contains("may not give it to owner_"), !owner_may, "PostgreSQL {major}: {told}");
            database.sql(&format!("DROP OWNED BY {owner}, {loader}; DROP ROLE {owner}, {loader}"));
        }
    }
}

#[test]
fn an_event_trigger_that_forbids_it_is_named_as_the_reason() {
    let files = Files::new();
    let first = files.put("a.csv", b"1,2024-01-02\n");
    let second = files.put("b.csv", b"2,2024-02-03\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, day date) PARTITION BY RANGE (day)");
        load(&database, &first).run(PATIENCE).expect_code(0);
        database.sql(
            "CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS \
                 'BEGIN RAISE ''secret'' USING ERRCODE = ''42501''; END'; \
             CREATE EVENT TRIGGER forbid ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION forbid()",
        );
        let told = load(&database, &second).run(PATIENCE).expect_code(1).stderr;
        assert!(
            told.contains(
                "a partition of public.t cannot be made: an event trigger of the database forbids it"
            ) && told.contains("hint: pg_event_trigger tells which")
                && !told.contains("secret"),
            "PostgreSQL {major}: {told}"
        );
        assert_eq!(database.value("SELECT count(*) FROM t"), "1");
    }
}

#[test]
fn a_check_tells_of_days_that_no_partition_can_be_made_for() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-02\n2,\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, day date) PARTITION BY RANGE (day); \
             CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fill()",
        );
        let to = database.conninfo();
        let check = howdah("check").args(["--format", "csv", "--table", "t", "--to", &to]).arg(&source);
        let told = check.args(["--create-partitions", "month"]).run(PATIENCE).expect_code(3).stdout;
        assert!(told.contains("no partition takes NULL in column day"), "PostgreSQL {major}: {told}");
        let skipped = load(&database, &source).args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), "1", "{}", skipped.stderr);
    }
}

/// Of the last half second of January February is made; the server rounds halves away from the year 2000.
#[test]
fn a_time_gets_the_partition_of_what_its_column_rounds_it_to() {
    let files = Files::new();
    let source =
        files.put("a.csv", b"1,2024-01-31 23:59:59.7\n2,2024-01-31 23:59:59.2\n3,1999-06-30 23:59:59.5\n");
    for major in MAJORS {
        for (key, made) in [
            ("timestamp(0)", "t_1999_06=3 t_2024_01=2 t_2024_02=1"),
            ("timestamptz(0)", "t_1999_06=3 t_2024_01=2 t_2024_02=1"),
            ("timestamp", "t_1999_06=3 t_2024_01=1 t_2024_01=2"),
        ] {
            let database = Server::shared(major).database();
            database.sql(&format!("CREATE TABLE t (id int, at {key}) PARTITION BY RANGE (at)"));
            let done = load(&database, &source).envs([("PGTZ", "UTC")]).run(PATIENCE);
            let done = done.expect_code(0);
            let rows = "SELECT string_agg(tableoid::regclass || '=' || id, ' ' ORDER BY tableoid::regclass::text, id) FROM t";
            assert_eq!(database.value(rows), made, "PostgreSQL {major}, {key}: {}", done.stderr);
        }
    }
}

/// Microseconds of so far a day are more than a float8 holds.
#[test]
fn a_local_time_far_from_now_gets_the_partition_of_its_own_month() {
    let files = Files::new();
    let source = files
        .put("a.csv", b"1,9999-12-31 23:59:59.999999\n2,1500-01-01 00:00:00\n3,1500-02-28 23:58:44.999999\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, at timestamptz) PARTITION BY RANGE (at)");
        let done = load(&database, &source).envs([("PGTZ", "Europe/London")]).run(PATIENCE).expect_code(0);
        let rows = "SELECT string_agg(tableoid::regclass || '=' || id, ' ' ORDER BY id) FROM t";
        let made = "t_9999_12=1 t_1500_01=2 t_1500_02=3";
        assert_eq!(database.value(rows), made, "PostgreSQL {major}: {}", done.stderr);
        assert_eq!(database.value("SELECT count(*) FROM pg_inherits"), "3", "PostgreSQL {major}");
    }
}

/// The month of a row meets a partition that does not take it.
#[test]
fn a_day_whose_partition_would_overlap_another_is_a_bad_record() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-05\n2,2024-02-01\n3,2024-02-20\n4,2024-02-02\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, day date) PARTITION BY RANGE (day); \
             CREATE TABLE t_q PARTITION OF t FOR VALUES FROM ('2024-02-15') TO ('2024-03-10')",
        );
        let failed = load(&database, &source).run(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains("record 2") && failed.contains("hint: "), "PostgreSQL {major}: {failed}");
        assert!(failed.contains("would overlap partition \"t_q\""), "PostgreSQL {major}: {failed}");
        let skipped =
            load(&database, &source).args(["--on-error", "skip"]).run(PATIENCE).expect_code(3).stderr;
        // Once for the month.
        assert_eq!(skipped.matches("would overlap").count(), 1, "PostgreSQL {major}: {skipped}");
        let ids = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t";
        assert_eq!(database.value(ids), "1 3", "PostgreSQL {major}");
    }
}

#[test]
fn a_check_tells_of_days_that_are_too_far_for_a_partition() {
    let files = Files::new();
    let source =
        files.put("a.csv", b"1,2024-01-02\n2,infinity\n3,0044-03-15 BC\n4,12345-01-01\n5,-infinity\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int, day date) PARTITION BY RANGE (day)");
    let to = database.conninfo();
    let check = howdah("check").args(["--format", "csv", "--table", "t", "--to", &to]).arg(&source);
    let told = check.args(["--create-partitions", "month"]).run(PATIENCE).expect_code(3).stdout;
    assert!(told.contains("none is made for infinity"), "{told}");
    assert!(told.contains("read 5 = good 1 + bad 4"), "{told}");
    load(&database, &source)
        .args(["--on-error", "skip", "--max-errors", "100%"])
        .run(PATIENCE)
        .expect_code(3);
    assert_eq!(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), "1");
}

#[test]
fn the_name_that_is_taken_is_told() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-05\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int, day date) PARTITION BY RANGE (day); CREATE TABLE t_2024_01 ()");
    let failed = load(&database, &source).run(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("relation \"t_2024_01\" already exists"), "{failed}");
}

#[test]
fn rows_beside_a_partition_that_covers_a_part_of_a_day_are_told_what_to_do() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,2024-01-05 03:00\n2,2024-01-05 10:00\n3,2024-01-06 10:00\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, at timestamp) PARTITION BY RANGE (at); \
             CREATE TABLE t_night PARTITION OF t FOR VALUES FROM ('2024-01-05 00:00') TO ('2024-01-05 06:00')",
        );
        let load = || {
            let load = howdah("load").args(["--format", "csv", "--table", "t", "--create-partitions", "day"]);
            load.args(["--to", &database.conninfo()]).arg(&source)
        };
        let failed = load().run(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains("would overlap partition \"t_night\""), "PostgreSQL {major}: {failed}");
        assert!(failed.contains("make the partitions beside it by hand"), "PostgreSQL {major}: {failed}");
        assert!(
            failed.contains("record 2") && failed.contains("of which no other covers a part"),
            "{failed}"
        );
        load().args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
        let ids = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t";
        assert_eq!(database.value(ids), "1 3", "PostgreSQL {major}");
    }
}
