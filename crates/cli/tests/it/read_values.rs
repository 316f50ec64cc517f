//! What values mean is decided once for a job: another run of it, and a load of what it has rejected, read
//! days and times as its first run did, whatever the environment, role and database say by then.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, Server};
use std::fmt::Write as _;
use std::path::Path;

const ROWS: u64 = 12_000;
const DMY: [(&str, &str); 1] = [("PGDATESTYLE", "ISO, DMY")];

/// Days that are another in the other order, as a `date` or as a time without an offset; nothing says which
/// is meant.
fn days() -> Vec<u8> {
    let mut text = String::new();
    for row in 0..ROWS {
        let _ = writeln!(text, "{:02}/{:02}/2024 10:00,{row}", row % 12 + 1, row / 12 % 12 + 1);
    }
    text.into_bytes()
}

/// Those that are not what the file says with the day first.
const SWAPPED: &str =
    "SELECT count(*) FROM t WHERE day::date <> make_date(2024, (n / 12 % 12 + 1)::int, (n % 12 + 1)::int)";

fn begin(database: &Database, source: &Path, options: &[&str]) -> HowdahCommand {
    howdah("load")
        .args(["--to", &database.conninfo(), "--table", "t", "--job-id", "E", "--jobs", "1"])
        .args(["--chunk-size", "64kB", "--indexes", "keep"])
        .args(options)
        .arg(source)
}

/// A table that refuses a record in the middle.
fn half(day: &str) -> Database {
    let database = Server::shared(15).database();
    database.sql(&format!("CREATE TABLE t (day {day}, n int CONSTRAINT half CHECK (n <> 9000))"));
    database
}

fn stop_half_way(database: &Database, first: &HowdahCommand) {
    first.run(PATIENCE).expect_code(1);
    let stored: u64 = database.value("SELECT count(*) FROM t").parse().unwrap();
    assert!((1..ROWS).contains(&stored), "{stored}");
    database.sql("ALTER TABLE t DROP CONSTRAINT half");
}

#[track_caller]
fn expect_whole(database: &Database, done: &Finished, say: &str) {
    assert!(done.stderr.contains(say), "{}", done.stderr);
    assert_eq!(database.value("SELECT count(DISTINCT n) FROM t"), ROWS.to_string());
    assert_eq!(database.value(SWAPPED), "0", "{}", done.stderr);
}

#[test]
fn a_job_goes_on_with_the_date_style_that_it_began_with() {
    let files = Files::new();
    let source = files.put("e.csv", &days());
    let said =
        "values are read as job E has begun to: with DateStyle \"ISO, DMY\" (this session has \"ISO, MDY\")";
    for (options, resumes) in [
        (["--header=false"].as_slice(), true),
        (&["--header=false", "--verify", "checksum"], false),
        (&["--format", "csv"], true),
        (&["--format", "csv", "--verify", "checksum"], false),
    ] {
        let database = half("date");
        let load = begin(&database, &source, options);
        stop_half_way(&database, &load.clone().envs(DMY));
        let again = if resumes { howdah("resume").args(["E", "--to", &database.conninfo()]) } else { load };
        let done = again.run(PATIENCE).expect_code(0);
        expect_whole(&database, &done, said);
        let kept = "SELECT plan -> 'value_settings' ->> 'DateStyle' FROM howdah.job";
        assert_eq!(database.value(kept), "ISO, DMY");
    }
}

#[test]
fn a_job_that_has_stored_nothing_is_read_as_its_next_run_is_told() {
    let files = Files::new();
    let source = files.put("e.csv", &days());
    let database = half("date");
    database.sql("ALTER TABLE t ADD CONSTRAINT none CHECK (n < 0)");
    let load = begin(&database, &source, &["--format", "csv"]);
    load.run(PATIENCE).expect_code(1);
    database.sql("ALTER TABLE t DROP CONSTRAINT half, DROP CONSTRAINT none");
    let done = load.envs(DMY).run(PATIENCE).expect_code(0);
    expect_whole(&database, &done, "stored 12,000");
    assert!(!done.stderr.contains("values are read"), "{}", done.stderr);
}

#[test]
fn a_job_goes_on_with_the_time_zone_that_it_began_with() {
    let files = Files::new();
    let source = files.put("e.csv", &days());
    for options in
        [["--header=false"].as_slice(), &["--format", "csv"], &["--format", "csv", "--encode", "text"]]
    {
        let database = half("timestamptz");
        let load = begin(&database, &source, options);
        let zoned = [("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "ISO, DMY")];
        stop_half_way(&database, &load.clone().envs(zoned));
        let here = [("PGTZ", "America/New_York"), ("PGDATESTYLE", "ISO, DMY")];
        let done = load.envs(here).run(PATIENCE).expect_code(0);
        let said = "with TimeZone \"Asia/Tokyo\" (this session has \"America/New_York\")";
        expect_whole(&database, &done, said);
        let hours = "SELECT string_agg(DISTINCT to_char(day AT TIME ZONE 'UTC', 'HH24:MI'), ' ') FROM t";
        assert_eq!(database.value(hours), "01:00");
    }
}

#[test]
fn partitions_are_made_for_the_days_of_the_time_zone_that_a_job_began_with() {
    let files = Files::new();
    let mut text = String::new();
    // In UTC the day before, read in Tokyo; the day itself, read in New York.
    for row in 0..ROWS {
        let _ = writeln!(text, "2024-01-{:02} 05:00,{row}", row / 4000 * 10 + 1);
    }
    let source = files.put("e.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (day timestamptz, n int CONSTRAINT half CHECK (n <> 6000)) PARTITION BY RANGE (day)",
    );
    let load = begin(&database, &source, &["--format", "csv", "--create-partitions", "day"]);
    stop_half_way(&database, &load.clone().envs([("PGTZ", "Asia/Tokyo")]));
    load.envs([("PGTZ", "America/New_York")]).run(PATIENCE).expect_code(0);
    let parts = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid";
    assert_eq!(database.value(parts), "t_2023_12_31 t_2024_01_10 t_2024_01_20");
    assert_eq!(database.value("SELECT count(DISTINCT n) FROM t"), ROWS.to_string());
}

#[test]
fn rejected_records_are_read_as_the_others_of_their_job() {
    let files = Files::new();
    let source = files.put("e.csv", &days());
    let database = half("date");
    let rejected = files.path().join("rejected.csv");
    let load = begin(&database, &source, &["--header=false", "--on-error", "skip"])
        .args(["--reject-file", rejected.to_str().unwrap()]);
    load.envs(DMY).run(PATIENCE).expect_code(3);
    database.sql("ALTER TABLE t DROP CONSTRAINT half");
    let reload = howdah("load").args(["--to", &database.conninfo(), "--rejects", "E"]).arg(&rejected);
    let done = reload.run(PATIENCE).expect_code(0);
    let said = "values are read as by job E, which has rejected these records: with DateStyle \"ISO, DMY\"";
    expect_whole(&database, &done, said);
}

#[test]
fn sessions_that_come_later_read_values_as_the_others() {
    let files = Files::new();
    let source = files.put("e.csv", &days());
    let database = Server::shared(15).database();
    let (role, name) = (format!("loader_{}", database.name()), database.name().to_owned());
    // When the first rows are in, the role's own setting goes, and so does the session.
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {name} TO {role}; ALTER ROLE {role} SET datestyle = 'ISO, DMY'; \
         CREATE TABLE t (day date, n int); GRANT INSERT, SELECT ON t TO {role}; \
         CREATE SEQUENCE statements; \
         CREATE FUNCTION strike() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
           IF nextval('statements') = 3 THEN \
             EXECUTE 'ALTER ROLE {role} RESET datestyle'; \
           ELSIF currval('statements') = 5 THEN PERFORM pg_terminate_backend(pg_backend_pid()); \
           END IF; RETURN NULL; END $$; \
         CREATE TRIGGER strike BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION strike()"
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--to", &to, "--table", "t", "--format", "csv", "--chunk-size", "64kB"]);
    let done = load.args(["--jobs", "1"]).arg(&source).run(PATIENCE).expect_code(0);
    assert!(database.value("SELECT last_value FROM statements").parse::<u64>().unwrap() > 5);
    expect_whole(&database, &done, "stored 12,000");
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
