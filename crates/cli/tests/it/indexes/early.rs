//! Of several tables, the one that has all its rows gets its indexes back while rows of the others still
//! come.

use super::{open_entries, restore, schema, wait_for};
use crate::crash::forgetful;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Running, Server, side_by_side};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The file of `small` is the largest, and comes first; `large` has fifteen.
const SMALL_ROWS: u64 = 6000;
const PARTS: u64 = 15;
const PART_ROWS: u64 = 4000;
const LARGE_ROWS: u64 = PARTS * PART_ROWS;

const CHUNKS_OF_LARGE: &str = "SELECT count(*) FROM howdah.chunk JOIN howdah.file USING (job_id, file_no) \
    WHERE target = 'public.large'";
const BACK_OF_SMALL: &str = "SELECT count(*) FROM howdah.undo WHERE table_name LIKE 'small%' AND kind = 'index' AND undone_at IS NOT NULL";

struct Tables {
    database: Database,
    files: Files,
    job: PathBuf,
}

/// An index whose building takes so long, and which has statistics.
fn slow_index(seconds: f64) -> String {
    format!(
        "CREATE FUNCTION slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql SET search_path = pg_catalog AS \
             'BEGIN IF $1 = 7 THEN PERFORM pg_sleep({seconds}); END IF; RETURN $1; END'; \
         CREATE INDEX small_slow ON small (slow(id))"
    )
}

impl Tables {
    fn new(server: &Server) -> Tables {
        let files = Files::new();
        let small = files.put("small.csv", &csv(81, 1, SMALL_ROWS));
        let mut job = "copy-options = \"(FORMAT csv, HEADER true)\"\n".to_owned();
        let mut add = |path: PathBuf, table: &str| {
            job.push_str(&format!("[[source]]\nlocation = {path:?}\ntable = '{table}'\n"));
        };
        add(small, "small");
        for no in 0..PARTS {
            let part = csv(82 + no, 1 + no * PART_ROWS, PART_ROWS);
            add(files.put(&format!("large{no}.csv"), &part), "large");
        }
        let job = files.put("job.toml", job.as_bytes());
        let database = server.database();
        database.sql(
            "CREATE TABLE small (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE INDEX small_note ON small (note); \
             CREATE TABLE large (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE INDEX large_note ON large (note)",
        );
        Tables { database, files, job }
    }

    /// COPY into `large` takes so much longer for each chunk.
    fn slow_down(&self, seconds: f64) {
        self.database.sql(&format!(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END'; \
             CREATE TRIGGER pause BEFORE INSERT ON large FOR EACH STATEMENT EXECUTE FUNCTION pause()"
        ));
    }

    fn load(&self) -> HowdahCommand {
        self.load_by("2")
    }

    fn load_by(&self, sessions: &str) -> HowdahCommand {
        let load = howdah("load").args(["--to", &self.database.conninfo(), "--indexes", "rebuild"]);
        load.args(["--chunk-size", "64kB", "--jobs", sessions, "--job"]).arg(&self.job)
    }

    #[track_caller]
    fn assert_exact(&self, before: &str, what: &str) {
        for (table, rows) in [("small", SMALL_ROWS), ("large", LARGE_ROWS)] {
            let counted = format!("SELECT count(*) || ' ' || count(DISTINCT id) FROM {table}");
            assert_eq!(self.database.value(&counted), format!("{rows} {rows}"), "{what}: {table}");
        }
        assert_eq!(schema(&self.database), before, "{what}");
        assert_eq!(open_entries(&self.database), 0, "{what}");
    }
}

fn wait_until(database: &Database, running: &mut Running, what: &str) {
    let counted = format!("SELECT ({what})::int");
    assert!(wait_for(database, running, &counted, 1), "in vain: {what}");
}

#[test]
fn the_small_table_has_its_indexes_back_before_the_last_chunk_of_the_large_one() {
    side_by_side(MAJORS, |major| {
        let tables = Tables::new(Server::shared(major));
        tables.slow_down(0.15);
        tables.database.sql(&slow_index(1.5));
        let before = schema(&tables.database);
        let mut running = tables.load().spawn();
        // Whatever the sessions are at, there are no more of them than may copy.
        let at_work = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
             AND (query LIKE 'COPY%' OR query LIKE '%CREATE INDEX%') AND pid <> pg_backend_pid() \
             AND backend_type = 'client backend'";
        let (mut most, mut built) = (0, false);
        let deadline = Instant::now() + PATIENCE;
        let is_building = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND query LIKE '%CREATE INDEX small_slow%' AND state = 'active' AND pid <> pg_backend_pid()";
        while running.is_running() && Instant::now() < deadline {
            let chunks = tables.database.try_rows(CHUNKS_OF_LARGE).map_or(0, |rows| number(&rows[0][0]));
            if chunks > 0 && chunks < 50 {
                most = most.max(number(&tables.database.rows(at_work)[0][0]));
                built |= number(&tables.database.rows(is_building)[0][0]) > 0;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(built && most <= 2, "PostgreSQL {major}: {built}, {most} at work\n{told}");
        tables.assert_exact(&before, &format!("PostgreSQL {major}\n{told}"));
        let early = "SELECT max(undone_at) FILTER (WHERE table_name = 'small' AND kind = 'index') \
                        < (SELECT max(stored_at) FROM howdah.chunk JOIN howdah.file USING (job_id, file_no) \
                           WHERE target = 'public.large') \
                        AND count(*) FILTER (WHERE table_name = 'small' AND kind = 'index') = 3 FROM howdah.undo";
        assert_eq!(tables.database.value(early), "t", "PostgreSQL {major}\n{told}");
        let statistics = "SELECT count(*) > 0 FROM pg_statistic WHERE starelid = 'small_slow'::regclass";
        assert_eq!(tables.database.value(statistics), "t", "PostgreSQL {major}\n{told}");
    });
}

fn number(value: &Option<String>) -> u64 {
    value.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn partitions_have_their_indexes_back_early_too() {
    let tables = Tables::new(Server::shared(15));
    tables.slow_down(0.15);
    tables.database.sql(
        "DROP TABLE small; CREATE TABLE small (id bigint PRIMARY KEY, part integer, amount numeric, note text) \
             PARTITION BY RANGE (id); \
         CREATE TABLE small1 PARTITION OF small FOR VALUES FROM (0) TO (3000); \
         CREATE TABLE small2 PARTITION OF small FOR VALUES FROM (3000) TO (100000); \
         CREATE INDEX small_note ON small (note)",
    );
    let before = schema(&tables.database);
    let told = tables.load().run(PATIENCE).expect_code(0).stderr;
    tables.assert_exact(&before, &told);
    let early = "SELECT max(undone_at) FILTER (WHERE table_name LIKE 'small%' AND kind = 'index') \
                    < (SELECT max(stored_at) FROM howdah.chunk JOIN howdah.file USING (job_id, file_no) \
                       WHERE target = 'public.large') \
                    AND count(*) FILTER (WHERE table_name LIKE 'small%' AND kind = 'index') = 4 FROM howdah.undo";
    assert_eq!(tables.database.value(early), "t", "{told}");
}

/// Behind the last row nobody waits for a build that was begun early: others begin beside it.
#[test]
fn a_build_that_outlasts_the_rows_goes_on_beside_the_others() {
    let tables = Tables::new(Server::shared(18));
    tables.slow_down(0.02);
    // An index sees no rows but its table's, and it sees locks.
    tables.database.sql(&slow_index(0.0).replace(
        "PERFORM pg_sleep(0)",
        "WHILE NOT pg_try_advisory_xact_lock_shared(4712) LOOP PERFORM pg_sleep(0.01); END LOOP",
    ));
    let before = schema(&tables.database);
    let gate = tables.database.connect();
    gate.sql("SELECT pg_advisory_lock(4712)");
    let mut running = tables.load().spawn();
    let large_note = "EXISTS (SELECT FROM howdah.undo WHERE name = 'large_note' AND undone_at IS NOT NULL)";
    wait_until(&tables.database, &mut running, large_note);
    drop(gate);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    tables.assert_exact(&before, &told);
    let beside = "SELECT max(undone_at) FILTER (WHERE name = 'large_note') < max(undone_at) FILTER (WHERE name = 'small_slow') \
        FROM howdah.undo WHERE kind = 'index'";
    assert_eq!(tables.database.value(beside), "t", "{told}");
}

/// What a unique index has against the rows is known at once, and ends the load behind the last row, as ever.
#[test]
fn a_key_that_rows_contradict_lets_the_other_table_come_in() {
    let tables = Tables::new(Server::shared(15));
    tables.slow_down(0.1);
    let twice = [csv(81, 1, SMALL_ROWS), b"1,0,0,again\n".to_vec()].concat();
    tables.files.put("small.csv", &twice);
    let before = schema(&tables.database);
    let told = tables.load().run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("several rows of the table have the same key; it is tried once more"), "{told}");
    assert!(told.contains("error: the index small_pkey of public.small cannot be put back"), "{told}");
    assert_eq!(tables.database.value("SELECT count(*) FROM large"), LARGE_ROWS.to_string());
    tables.database.sql("DELETE FROM small WHERE note = 'again'");
    restore(&tables.database).run(PATIENCE).expect_code(0);
    tables.assert_exact(&before, &told);
}

#[test]
fn no_kill_loses_an_index_that_is_built_early() {
    let building = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND query LIKE '%CREATE INDEX small_slow%' AND state = 'active' AND pid <> pg_backend_pid()";
    std::thread::scope(|scope| {
        for (no, major) in MAJORS.into_iter().enumerate() {
            scope.spawn(move || {
                let steps = [(building, 1), (BACK_OF_SMALL, 1), (BACK_OF_SMALL, 3)];
                for (nth, (sql, least)) in steps.into_iter().enumerate() {
                    kill_at(major, (sql, least), (no + nth).is_multiple_of(2));
                }
            });
        }
    });
}

/// Ends a load when the query gives so much and rows are still to come; then it is restored, or not, and run
/// again.
fn kill_at(major: u32, (sql, least): (&str, u64), restores: bool) {
    let tables = Tables::new(Server::shared(major));
    tables.slow_down(0.15);
    tables.database.sql(&slow_index(1.0));
    let before = schema(&tables.database);
    let what = format!("PostgreSQL {major}, {sql} = {least}");
    let mut running = tables.load().spawn();
    assert!(wait_for(&tables.database, &mut running, sql, least), "{what}");
    let others = number(&tables.database.rows(CHUNKS_OF_LARGE)[0][0]);
    running.kill();
    assert!(others < 55, "{what}: {others} chunks");
    if restores {
        restore(&tables.database).run(PATIENCE).expect_code(0);
        assert_eq!(open_entries(&tables.database), 0, "{what}");
        assert_eq!(schema(&tables.database), before, "{what}");
    }
    let told = tables.load().run(PATIENCE).expect_code(0).stderr;
    tables.assert_exact(&before, &format!("{what}\n{told}"));
}

#[test]
fn ctrl_c_puts_back_what_was_begun_early() {
    let tables = Tables::new(Server::shared(13));
    tables.slow_down(0.15);
    tables.database.sql(&slow_index(2.0));
    let before = schema(&tables.database);
    let mut running = tables.load().spawn();
    wait_until(
        &tables.database,
        &mut running,
        "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%CREATE INDEX small_slow%' \
                 AND state = 'active' AND pid <> pg_backend_pid())",
    );
    running.interrupt();
    let told = running.wait(PATIENCE).expect_code(130).stderr;
    assert_eq!(open_entries(&tables.database), 0, "{told}");
    assert_eq!(schema(&tables.database), before, "{told}");
    assert_eq!(told.matches("the index small_slow of public.small is built").count(), 1, "{told}");
    tables.load().run(PATIENCE).expect_code(0);
    tables.assert_exact(&before, &told);
}

/// The index makes the chunks of its table durable with itself; what a crash takes of others is loaded again.
#[test]
fn a_crash_behind_an_early_build_loses_nothing() {
    side_by_side([13, 18], |major| {
        let server = Server::private(major, &forgetful());
        let tables = Tables::new(&server);
        tables.slow_down(0.1);
        let before = schema(&tables.database);
        tables.database.sql("CHECKPOINT");
        let mut running = tables.load().args(["--retry-for", "10min"]).spawn();
        assert!(wait_for(&tables.database, &mut running, BACK_OF_SMALL, 2));
        assert!(wait_for(&tables.database, &mut running, CHUNKS_OF_LARGE, 8));
        server.crash_and_restart();
        assert_eq!(tables.database.value(BACK_OF_SMALL), "2", "an index that was back is lost");
        assert_eq!(tables.database.value("SELECT count(*) FROM small"), SMALL_ROWS.to_string());
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        tables.assert_exact(&before, &format!("PostgreSQL {major}\n{told}"));
    });
}

/// One session alone has nothing to gain, and rows that come in one transaction are not there before its end.
#[test]
fn where_one_session_copies_or_rows_come_at_once_nothing_is_built_early() {
    for (sessions, options) in [("1", &[][..]), ("2", &["--mode", "truncate", "--freeze"])] {
        let tables = Tables::new(Server::shared(18));
        tables.slow_down(0.02);
        let before = schema(&tables.database);
        let told = tables.load_by(sessions).args(options.iter().copied()).run(PATIENCE).expect_code(0).stderr;
        tables.assert_exact(&before, &told);
        let late = "SELECT min(undone_at) > (SELECT max(stored_at) FROM howdah.chunk) FROM howdah.undo WHERE kind = 'index'";
        assert_eq!(tables.database.value(late), "t", "{options:?}: {told}");
    }
}
