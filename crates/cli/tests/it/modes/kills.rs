//! Loads of every mode that are killed at any step: run again or restored, the table is as it should be, and
//! nothing is left beside it.

use super::{assert_nothing_left, load, longest_wait_of_writers};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};
use std::path::PathBuf;
use std::time::Duration;

const ROWS: u64 = 30_000;

/// How a load brings rows in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Merge,
    MergeAtomic,
    MergeDelete,
    InsertNew,
    Atomic,
    Replace,
}

const WAYS: [Way; 6] =
    [Way::Merge, Way::MergeAtomic, Way::MergeDelete, Way::InsertNew, Way::Atomic, Way::Replace];

impl Way {
    fn args(self) -> &'static [&'static str] {
        match self {
            Way::Merge => &["--mode", "merge", "--key", "id"],
            Way::MergeAtomic => &["--mode", "merge", "--key", "id", "--atomic"],
            Way::MergeDelete => &["--mode", "merge", "--key", "id", "--delete-missing"],
            Way::InsertNew => &["--mode", "insert-new", "--key", "id"],
            Way::Atomic => &["--atomic"],
            Way::Replace => &["--mode", "replace"],
        }
    }

    /// The rows of the file over those that are there: ids 1 to 100, and some beyond.
    fn wanted_sql(self) -> &'static str {
        match self {
            Way::Merge | Way::MergeAtomic => {
                "CREATE TABLE wanted AS SELECT * FROM file UNION ALL SELECT * FROM t WHERE id > 30000"
            }
            Way::MergeDelete | Way::Replace => "CREATE TABLE wanted AS SELECT * FROM file",
            Way::InsertNew => {
                "CREATE TABLE wanted AS SELECT * FROM t UNION ALL SELECT * FROM file WHERE id NOT IN (SELECT id FROM t)"
            }
            Way::Atomic => "CREATE TABLE wanted AS SELECT * FROM t UNION ALL SELECT * FROM file",
        }
    }
}

struct Kill {
    database: Database,
    _files: Files,
    source: PathBuf,
    way: Way,
}

impl Kill {
    fn new(major: u32, way: Way) -> Kill {
        let files = Files::new();
        let bytes = csv(41, 1, ROWS);
        let source = files.put("a.csv", &bytes);
        let database = Server::shared(major).database();
        let key = if way == Way::Atomic { "" } else { " PRIMARY KEY" };
        database.sql(&format!(
            "CREATE TABLE file (id bigint, part integer, amount numeric, note text); \
             CREATE TABLE t (id bigint{key}, part integer, amount numeric, note text)"
        ));
        database.copy_in("COPY file FROM STDIN (FORMAT csv, HEADER true)", bytes).unwrap();
        database.sql(
            "INSERT INTO t SELECT id, 0, 0, 'old' FROM generate_series(1, 100) id; \
             INSERT INTO t SELECT id, 0, 0, 'beyond' FROM generate_series(40001, 40100) id",
        );
        database.sql(way.wanted_sql());
        // Statements on the table take a little longer, so that they can be hit.
        database.sql(
            "CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.15); RETURN NULL; END'; \
             CREATE TRIGGER nap BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION nap()",
        );
        Kill { database, _files: files, source, way }
    }

    fn command(&self) -> HowdahCommand {
        load(&self.database, &[&self.source]).args(self.way.args().iter().copied()).args([
            "--chunk-size",
            "128kB",
            "--jobs",
            "2",
        ])
    }

    /// What was to be hit has been: no statement naps any more.
    fn hurry(&self) {
        self.database.sql(
            "CREATE OR REPLACE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        );
    }

    #[track_caller]
    fn assert_wanted(&self, what: &str) {
        assert_eq!(self.database.digest("t"), self.database.digest("wanted"), "{what}");
        assert_eq!(
            self.database.value("SELECT count(*) FROM howdah.job WHERE status <> 'done'"),
            "0",
            "{what}"
        );
        assert_nothing_left(&self.database, what);
    }
}

const MADE: &str = "SELECT count(*) FROM howdah.undo";
const CHUNKS: &str = "SELECT count(*) FROM howdah.chunk";
const STEPS: &str = "SELECT count(*) FROM howdah.step WHERE name <> 'parts'";
const NAPS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

/// Ends a load when the query gives so much; then it is run again, restored first or not.
fn kill_at(major: u32, way: Way, (sql, least): (&str, u64), restore: bool) -> bool {
    let kill = Kill::new(major, way);
    let what = format!("PostgreSQL {major}, {way:?}: {sql} = {least}, restore: {restore}");
    let mut running = kill.command().spawn();
    let hit = kill.database.wait_for(sql, least, || running.is_running());
    running.kill();
    kill.hurry();
    if restore {
        kill.database.sql(END_SESSIONS);
        let command = crate::scene::howdah("restore").args(["--to", &kill.database.conninfo()]);
        command.run(PATIENCE).expect_code(0);
        assert_nothing_left(&kill.database, &what);
    }
    let finished = kill.command().run(PATIENCE);
    let done = finished.code == Some(0) || finished.stderr.contains("this job finished");
    assert!(done, "{what}\n{}", finished.stderr);
    kill.assert_wanted(&what);
    hit
}

#[test]
fn no_kill_loses_or_doubles_a_row_in_any_mode() {
    let moments = [(MADE, 1), (CHUNKS, 3), (CHUNKS, 12), (NAPS, 1), (STEPS, 1), (STEPS, 2)];
    let hits: usize = std::thread::scope(|scope| {
        let campaigns: Vec<_> = MAJORS
            .into_iter()
            .enumerate()
            .map(|(no, major)| {
                scope.spawn(move || {
                    let cases = WAYS.into_iter().flat_map(|way| moments.map(|moment| (way, moment)));
                    // Each server sees a third of all cases, half of them restored.
                    let cases = cases.enumerate().filter(|(case, _)| case % MAJORS.len() == no);
                    cases.filter(|(case, (way, moment))| kill_at(major, *way, *moment, case % 2 == 0)).count()
                })
            })
            .collect();
        campaigns.into_iter().map(|campaign| campaign.join().unwrap()).sum()
    });
    assert!(hits >= 18, "{hits} of 36 kills hit a load that was still at work");
}

/// The table with the borders of its parts, which are values of the key, is beside the one that somebody has
/// dropped.
#[test]
fn what_is_beside_a_staging_table_that_was_dropped_by_hand_goes_too() {
    let kill = Kill::new(18, Way::Merge);
    shut_gate_behind(&kill.database, 3);
    let mut running = kill.command().spawn();
    assert!(kill.database.wait_for(CHUNKS, 3, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    kill.database.sql(END_SESSIONS);
    remove_gate(&kill.database);
    let left = |what: &str| {
        kill.database.value(&format!(
            "SELECT max(oid::regclass::text) FROM pg_class WHERE relname ~ '^{what}_' AND relkind = 'r'"
        ))
    };
    assert!(left("borders").starts_with("howdah.borders_"));
    kill.database.sql(&format!("DROP TABLE {}", left("staging")));
    crate::scene::howdah("restore").args(["--to", &kill.database.conninfo()]).run(PATIENCE).expect_code(0);
    assert_nothing_left(&kill.database, "restored");
}

/// A foreign key of the new table has been added when the load is killed, and its rows have not been looked
/// at.
#[test]
fn a_foreign_key_that_was_not_validated_is_validated_by_the_next_run() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(49, 1, 1000));
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE parent (part integer PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 255); \
             CREATE TABLE t (id bigint, part integer CONSTRAINT ref REFERENCES parent, amount numeric, note text); \
             CREATE FUNCTION nap() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
                 PERFORM pg_sleep(600) FROM pg_constraint k WHERE k.conname = 'ref' AND k.convalidated \
                     AND k.conrelid::regclass::text LIKE '%howdah_new%'; END $$; \
             CREATE EVENT TRIGGER nap ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION nap()",
        );
        let command = load(&database, &[&source]).args(["--mode", "replace"]);
        let mut running = command.spawn();
        let naps = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())";
        assert!(database.wait_for(naps, 1, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        database.sql(END_SESSIONS);
        let keys = "SELECT string_agg(convalidated::text, ' ' ORDER BY convalidated) FROM pg_constraint WHERE conname = 'ref'";
        assert_eq!(database.value(keys), "false true", "PostgreSQL {major}");
        database.sql("DROP EVENT TRIGGER nap");
        command.run(PATIENCE).expect_code(0);
        assert_eq!(database.value(keys), "true", "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "1000", "PostgreSQL {major}");
        assert_nothing_left(&database, "gone on with");
    });
}

/// A new table with a foreign key is made anew by the next run. That takes a lock on the table that it refers
/// to.
#[test]
fn writers_of_a_table_that_a_left_one_refers_to_get_through() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(50, 1, 1000));
    side_by_side([13, 18], |major| {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE parent (part integer PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 255); \
             CREATE TABLE t (id bigint, part integer CONSTRAINT ref REFERENCES parent, amount numeric, note text); \
             CREATE FUNCTION nap() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
                 PERFORM pg_sleep(600) FROM pg_constraint k WHERE k.conname = 'ref' AND k.convalidated \
                     AND k.conrelid::regclass::text LIKE '%howdah_new%'; END $$; \
             CREATE EVENT TRIGGER nap ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION nap()",
        );
        let naps = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())";
        let command = load(&database, &[&source]);
        let command = command.args(["--mode", "replace", "--on-error", "skip", "--lock-timeout", "300ms"]);
        let mut running = command.spawn();
        assert!(database.wait_for(naps, 1, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        database.sql(END_SESSIONS);
        database.sql("DROP EVENT TRIGGER nap");
        // Rows of the left table are none of the next one.
        database.sql("SET session_replication_role = replica; DELETE FROM parent WHERE part = 7");
        let writes = [0, 255].map(|part| format!("UPDATE parent SET part = {part} WHERE part = {part}"));
        let writes = writes.each_ref().map(String::as_str);
        let longest = longest_wait_of_writers(&database, writes, &command, "cannot be replaced yet", 3);
        assert!(longest < Duration::from_millis(2500), "PostgreSQL {major}: a writer waited for {longest:?}");
        assert_eq!(database.value("SELECT count(*) FROM t WHERE part = 7"), "0", "PostgreSQL {major}");
        assert_nothing_left(&database, "made anew");
    });
}

/// What waits in a new table is nobody else's: begun anew, the load neither leaves it nor goes on with it.
#[test]
fn what_a_killed_load_that_replaces_has_left_is_dropped_by_force() {
    for (major, changed) in [(13, false), (15, true), (18, false)] {
        let kill = Kill::new(major, Way::Replace);
        let what = format!("PostgreSQL {major}, changed: {changed}");
        shut_gate_behind(&kill.database, 2);
        let mut running = kill.command().spawn();
        assert!(
            kill.database.wait_for(CHUNKS, 2, || running.is_running()),
            "{what}: {}",
            running.stderr_so_far()
        );
        running.kill();
        kill.database.sql(END_SESSIONS);
        remove_gate(&kill.database);
        if changed {
            let file = std::fs::File::options().append(true).open(&kill.source).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
        let told = kill.command().arg("--force").run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("they stay until"), "{what}\n{told}");
        assert_eq!(kill.database.digest("t"), kill.database.digest("wanted"), "{what}");
        assert_nothing_left(&kill.database, &what);
        let anew = "SELECT count(*) FROM howdah.undo WHERE kind = 'staging'";
        assert_eq!(kill.database.value(anew), "2", "{what}");
    }
}
