//! What somebody drops between two steps of putting back is built once more, and what has lost its table is
//! given up.

use super::{CHUNKS, PLAIN_SCHEMA, load, open_entries, restore, schema, wait_for};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::path::{Path, PathBuf};

const ROWS: u64 = 2000;

fn prepared(major: u32, schema: &str) -> (Database, Files, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(17, 1, ROWS));
    let database = Server::shared(major).database();
    database.sql(schema);
    (database, files, source)
}

/// Such commands fail where this is so.
fn refuse(database: &Database, tag: &str, condition: &str) {
    database.sql(&format!(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF {condition} THEN RAISE 'not yet'; END IF; END $$; \
         CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('{tag}') EXECUTE FUNCTION refuse()"
    ));
}

/// A load that is killed, and what it has left is put back as far as `tag` is allowed.
fn put_back_up_to(database: &Database, source: &Path, tag: &str, condition: &str) {
    shut_gate_behind(database, 1);
    let mut running = load(database, source).args(["--indexes", "rebuild", "--chunk-size", "64kB"]).spawn();
    assert!(wait_for(database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
    running.kill();
    remove_gate(database);
    refuse(database, tag, condition);
    let told = restore(database).run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("cannot be put back: the server says: a trigger or function raised an error"),
        "{told}"
    );
    database.sql("DROP EVENT TRIGGER refuse; DROP FUNCTION refuse()");
}

fn restored(database: &Database) -> String {
    let told = restore(database).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(open_entries(database), 0, "{told}");
    told
}

#[test]
fn an_index_that_is_dropped_before_its_constraint_comes_is_built_once_more() {
    for major in [13, 18] {
        let with_key = format!(
            "{PLAIN_SCHEMA}; ALTER TABLE t ADD COLUMN parent bigint REFERENCES t (id); COMMENT ON INDEX t_pkey IS 'key'; \
             ALTER TABLE t CLUSTER ON t_pkey"
        );
        let (database, _files, source) = prepared(major, &with_key);
        let before = schema(&database);
        put_back_up_to(&database, &source, "ALTER TABLE", "true");
        database.sql("DROP INDEX t_pkey");
        let told = restored(&database);
        assert!(
            told.contains("somebody has dropped what it goes on with, which is built once more"),
            "{told}"
        );
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
    }
}

const PARTITIONED: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text, PRIMARY KEY (part, id)) PARTITION BY RANGE (part); \
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100); \
    CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (256) PARTITION BY HASH (id); \
    CREATE TABLE high0 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
    CREATE TABLE high1 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
    CREATE INDEX t_note ON t (note)";

/// Some have become parts of theirs.
const SOME_ATTACHED: &str = "(SELECT count(*) > 2 FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE c.relkind IN ('i', 'I'))";

#[test]
fn indexes_that_are_dropped_before_they_become_parts_are_built_once_more() {
    let drops = [
        // With those that are parts of it already.
        "DROP INDEX t_note",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "DROP INDEX high_note_idx",
        "DROP INDEX t_note, high_note_idx",
        "ALTER TABLE low DROP CONSTRAINT low_pkey",
        "DROP INDEX t_note, low_note_idx, high_note_idx, high0_note_idx, high1_note_idx",
    ];
    side_by_side([13, 18], |major| {
        for drop in drops.into_iter().skip(major as usize % 2).step_by(2) {
            let (database, _files, source) = prepared(major, PARTITIONED);
            let before = schema(&database);
            put_back_up_to(&database, &source, "ALTER INDEX", SOME_ATTACHED);
            database.sql(drop);
            let told = restored(&database);
            assert_eq!(schema(&database), before, "PostgreSQL {major}, {drop}\n{told}");
        }
    });
}

#[test]
fn what_has_lost_its_parent_is_told_once() {
    for major in MAJORS {
        let (database, _files, source) = prepared(major, PARTITIONED);
        put_back_up_to(&database, &source, "ALTER INDEX", "true");
        database.sql("ALTER TABLE t DETACH PARTITION low; DROP TABLE t");
        let told = restored(&database);
        assert!(
            told.contains("the attachment of the index low_pkey of public.low is not put back: "),
            "{told}"
        );
        let told = restored(&database);
        assert!(!told.contains("not put back"), "{told}");
    }
}

/// As where several runs of a job are at work and one of them has built the index of a key, and not yet made
/// it one.
#[test]
fn another_run_of_the_job_drops_nothing_that_one_is_putting_back() {
    for (major, held) in [(13, true), (18, true), (15, false)] {
        let (database, _files, source) = prepared(major, PLAIN_SCHEMA);
        let before = schema(&database);
        put_back_up_to(&database, &source, "ALTER TABLE", "true");
        let other = database.connect();
        let hold = "SELECT pg_advisory_lock_shared(hashtextextended('howdah/' || job_id, 114827953725800)) FROM howdah.job";
        if held {
            other.sql(hold);
        }
        let told =
            load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
        let dropped = if held { "1" } else { "2" };
        let times = "SELECT count(*) FROM howdah.undo WHERE kind = 'index' AND name = 't_pkey'";
        assert_eq!(database.value(times), dropped, "PostgreSQL {major}\n{told}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
        assert_eq!(open_entries(&database), 0, "PostgreSQL {major}\n{told}");
    }
}
