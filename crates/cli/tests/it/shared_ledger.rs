//! A ledger that others may write: what a killed load has left is put back or the load is refused, and it is
//! told how to go on.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::rights::Stage as Least;
use crate::scene::{END_SESSIONS, PATIENCE, howdah, run_told};
use crate::strangers::Stage;
use howdah_testkit::{Finished, HowdahCommand, MAJORS};

const OPEN: &str = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
const KEY: &str = "SELECT count(*) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'p'";

fn owner(stage: &Stage) -> String {
    format!("owner_{}", stage.database.name())
}

/// The load of a role that owns table and ledger, which others may write, killed when it had changed all that
/// it changes before the first row; the same command again.
fn killed(stage: &Stage, options: &[&str]) -> HowdahCommand {
    let owner = owner(stage);
    stage.database.sql(&format!(
        "CREATE ROLE {owner} LOGIN; ALTER TABLE t OWNER TO {owner}; GRANT ALL ON SCHEMA public TO {owner}; \
         CREATE SCHEMA howdah AUTHORIZATION {owner}"
    ));
    stage.load_as(&owner, 1, &[]).expect_code(0);
    stage.grant_ledger();
    stage.database.sql("DELETE FROM t");
    shut_gate_behind(&stage.database, 0);
    let load = stage.verb("load", &owner).args(["--format", "csv", "--header", "--table", "t"]);
    let load = load.args(options).arg(stage.files.put("big.csv", b"a,b\n1,x\n2,y\n"));
    let mut running = load.spawn();
    let sleeps =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    let hit = stage.database.wait_for(sleeps, 1, || running.is_running());
    assert!(hit, "{}", running.stderr_so_far());
    running.kill();
    remove_gate(&stage.database);
    stage.database.sql(END_SESSIONS);
    load
}

#[test]
fn a_load_never_ends_well_without_the_keys_that_a_killed_run_of_it_has_dropped() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.database.sql("ALTER TABLE t ADD PRIMARY KEY (a)");
        let load = killed(&stage, &["--indexes", "rebuild"]);
        assert_ne!(stage.database.value(OPEN), "0", "PostgreSQL {major}");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(
            refused.contains("has changed the index t_pkey of public.t and 1 more"),
            "PostgreSQL {major}: {refused}"
        );
        assert!(!refused.contains("put back when this one ends"), "PostgreSQL {major}: {refused}");
        assert_eq!(stage.database.value("SELECT count(*) FROM t"), "0", "PostgreSQL {major}: {refused}");
        match major % 3 {
            0 => {
                let told = load.args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0).stderr;
                assert!(told.contains("put back when this one ends"), "PostgreSQL {major}: {told}");
            }
            1 => {
                run_told(&refused, "howdah restore ", str::to_owned);
                assert_eq!(stage.database.value(KEY), "1", "PostgreSQL {major}");
                load.run(PATIENCE).expect_code(0);
            }
            _ => {
                let job_id = stage.database.value("SELECT job_id FROM howdah.job WHERE status <> 'done'");
                let verb = |verb: &str| stage.verb(verb, &owner(&stage)).arg(&job_id);
                let refused = verb("resume").run(PATIENCE).expect_code(1).stderr;
                assert!(refused.contains("may be written by"), "PostgreSQL {major}: {refused}");
                let Finished { stdout: status, stderr: warned, .. } =
                    verb("status").run(PATIENCE).expect_code(0);
                assert!(warned.contains("may be written by"), "PostgreSQL {major}: {warned}");
                let further = status.split("go on with it: ").nth(1).unwrap_or_else(|| panic!("{status}"));
                run_told(&format!("`{}`", further.trim()), "howdah resume ", str::to_owned);
            }
        }
        assert_eq!(stage.database.value(OPEN), "0", "PostgreSQL {major}");
        assert_eq!(stage.database.value(KEY), "1", "PostgreSQL {major}");
        assert_eq!(stage.database.value("SELECT count(*) FROM t"), "2", "PostgreSQL {major}");
    }
}

/// As default privileges on tables are granted to roles that were never let into the schema.
#[test]
fn grants_on_tables_of_a_schema_that_nobody_else_enters_let_nobody_write() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.database.sql("ALTER TABLE t ADD PRIMARY KEY (a)");
        let load = killed(&stage, &["--indexes", "rebuild"]);
        stage.database.sql("GRANT ALL ON ALL TABLES IN SCHEMA howdah TO PUBLIC");
        load.run(PATIENCE).expect_code(1);
        stage.shut_ledger();
        load.run(PATIENCE).expect_code(0);
        assert_eq!(stage.database.value(OPEN), "0", "PostgreSQL {major}");
        assert_eq!(stage.database.value(KEY), "1", "PostgreSQL {major}");
        stage.verb("restore", &owner(&stage)).run(PATIENCE).expect_code(0);
    }
}

#[test]
fn a_load_never_ends_well_with_triggers_and_settings_as_a_killed_run_of_it_has_left_them() {
    for options in [&["--triggers", "disable"][..], &["--tune", "table"]] {
        let stage = Stage::new(18);
        stage.database.sql(
            "CREATE FUNCTION public.fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER fire BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.fired(); \
             CREATE TABLE other (a integer PRIMARY KEY); \
             ALTER TABLE t ADD CONSTRAINT refers FOREIGN KEY (a) REFERENCES other; INSERT INTO other VALUES (1), (2); GRANT SELECT, REFERENCES ON other TO PUBLIC",
        );
        let load = killed(&stage, options);
        let left = "SELECT (SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL) + \
                           (SELECT count(*) FROM howdah.tuned WHERE undone_at IS NULL)";
        assert_ne!(stage.database.value(left), "0", "{options:?}");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("and not put that back, and this one may not"), "{options:?}: {refused}");
        let done = load.args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(stage.database.value(left), "0", "{options:?}: {done}");
    }
}

/// The same command goes on where it would begin so.
#[test]
fn a_job_goes_on_in_no_other_table_than_its_command_says_whatever_others_have_written() {
    for major in [13, 18] {
        let stage = Stage::new(major);
        stage.share_ledger();
        let rows: String = (10..20_000).map(|a| format!("{a},x\n")).collect();
        let source = stage.files.put("big.csv", format!("a,b\n{rows}").as_bytes());
        let load =
            stage.verb("load", "postgres").args(["--table", "t", "--chunk-size", "64kB", "--job-id", "big"]);
        let load = load.arg(&source);
        load.run(PATIENCE).expect_code(0);
        let begin_again = "DELETE FROM howdah.chunk WHERE job_id = 'big' AND chunk_no = 1; \
                           UPDATE howdah.job SET status = 'failed' WHERE job_id = 'big'";
        stage.database.sql(begin_again);
        load.run(PATIENCE).expect_code(0);
        stage.database.sql(begin_again);
        // A table that the first run has made.
        let made =
            stage.verb("load", "postgres").args(["--table", "made", "--create", "--chunk-size", "64kB"]);
        let made = made.args(["--job-id", "big_made"]).arg(&source);
        made.run(PATIENCE).expect_code(0);
        stage.database.sql(&begin_again.replace("'big'", "'big_made'"));
        made.run(PATIENCE).expect_code(0);
        let oid = |table: &str| stage.database.value(&format!("SELECT '{table}'::regclass::oid"));
        stage.as_stranger(&format!(
            r#"UPDATE howdah.job SET plan = replace(replace(replace(plan::text, '"name": "t"', '"name": "other_t"'), '\"t\"', '\"other_t\"'),
                   '"oid": {}', '"oid": {}')::jsonb WHERE job_id = 'big'"#,
            oid("t"),
            oid("other_t")
        ));
        stage.database.sql("INSERT INTO other_t VALUES (1)");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("(rows go to other tables)"), "PostgreSQL {major}: {refused}");
        assert!(refused.contains("add --ledger howdah"), "PostgreSQL {major}: {refused}");
        let others = "SELECT count(*) > 1 FROM other_t";
        assert_eq!(stage.database.value(others), "f", "PostgreSQL {major}: {refused}");
        load.args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0);
        assert_eq!(stage.database.value(others), "t", "PostgreSQL {major}: as is trusted");
    }
}

/// `3/4/2024` is another day by another DateStyle, and chunks of a byte take a transaction for each record.
#[test]
fn a_job_goes_on_with_no_settings_that_others_have_written() {
    let stage = Stage::new(15);
    stage.share_ledger();
    stage.database.sql("CREATE TABLE days (a integer, b date)");
    let rows: String = (0..200_000).map(|a| format!("{a},03/04/2024\n")).collect();
    let source = stage.files.put("days.csv", format!("a,b\n{rows}").as_bytes());
    let load = stage.verb("load", "postgres").args(["--table", "days", "--job-id", "days"]);
    let load = load.args(["--format", "csv", "--header"]).arg(&source);
    load.run(PATIENCE).expect_code(0);
    let begin_again = "DELETE FROM howdah.chunk WHERE job_id = 'days' AND chunk_no = 1; \
                       DELETE FROM days WHERE ctid IN (SELECT ctid FROM days OFFSET 100000); \
                       UPDATE howdah.job SET status = 'failed' WHERE job_id = 'days'";
    stage.database.sql(begin_again);
    stage.database.sql("CREATE TABLE kept AS SELECT plan FROM howdah.job WHERE job_id = 'days'");
    let days = stage.database.value("SELECT count(*) FROM days");
    for (forged, what) in [
        ("'{value_settings,DateStyle}', '\"ISO, DMY\"'", "(values are read otherwise: with DateStyle"),
        ("'{chunk_bytes}', '1'", "(in chunks of 1B)"),
        ("'{chunk_bytes}', '0'", "in chunks of no bytes"),
    ] {
        stage.as_stranger(&format!(
            "UPDATE howdah.job SET plan = jsonb_set(plan, {forged}) WHERE job_id = 'days'"
        ));
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(what) && refused.contains("hint:"), "{forged}: {refused}");
        assert_eq!(stage.database.value("SELECT count(*) FROM days"), days, "{forged}");
        stage.database.sql("UPDATE howdah.job SET plan = (SELECT plan FROM kept) WHERE job_id = 'days'");
    }
    let is_asked_again = load.run(PATIENCE).stderr;
    assert!(!is_asked_again.contains("was begun otherwise"), "{is_asked_again}");
}

/// Whoever may read a ledger in a way that holds rows of it.
#[test]
fn a_load_does_not_wait_for_who_holds_what_a_killed_check_has_left() {
    let stage = Stage::new(15);
    stage.load_as("postgres", 1, &[]).expect_code(0);
    let (running, _pipe) = stage.begin_check();
    running.kill();
    stage.database.sql(END_SESSIONS);
    let other = stage.database.connect();
    other.sql("BEGIN; SELECT FROM howdah.job FOR KEY SHARE");
    let told = stage.load_as("postgres", 2, &[]).expect_code(0).stderr;
    assert!(told.contains("other sessions hold rows or tables of check-"), "{told}");
    other.sql("COMMIT");
    let told = stage.load_as("postgres", 3, &[]).expect_code(0).stderr;
    assert!(told.contains("was killed: what it has left is dropped"), "{told}");
}

/// A role that drops nothing needs no rights on the journal; but an index that others have dropped refuses
/// nothing.
#[test]
fn a_load_that_skips_bad_records_and_does_not_see_what_others_have_dropped_says_so() {
    for major in [13, 18] {
        let stage = Least::new(major);
        stage.sql(
            "GRANT CONNECT, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             GRANT INSERT, SELECT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
        );
        let to = stage.database.conninfo();
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &to]);
        load.arg(stage.files.put("first.csv", b"a,b\n0,x\n")).run(PATIENCE).expect_code(0);
        stage.sql(
            "GRANT USAGE ON SCHEMA howdah TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO {role}; \
             REVOKE ALL ON howdah.undo, howdah.tuned FROM {role}",
        );
        let told = |file: &str, options: &[&str]| {
            let source = stage.files.put(file, format!("a,b\n1,{file}\n").as_bytes());
            stage.verb("load").args(options).arg(source).run(PATIENCE).expect_code(0).stderr
        };
        let unseen = "warning: what other loads have dropped of the tables and not put back is not seen";
        assert!(!told("second.csv", &[]).contains(unseen));
        let skip = ["--on-error", "skip"];
        let skipping = told("third.csv", &skip);
        let grant = format!(
            "GRANT SELECT ON \"howdah\".job, \"howdah\".undo, \"howdah\".tuned TO {}",
            stage.quoted_role()
        );
        assert!(skipping.contains(unseen) && skipping.contains(&grant), "{skipping}");
        stage.database.sql(&grant);
        assert!(!told("fourth.csv", &skip).contains(unseen));
    }
}
