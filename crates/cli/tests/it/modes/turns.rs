//! Where many rows of each page change, they come in turns, so that most find room where they are: the same
//! rows, the same counts, few new entries of indexes; and a kill between two turns changes nothing about
//! that.

use super::{assert_nothing_left, changes, load};
use crate::indexes::wait_for;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, ServerOptions};
use std::fmt::Write as _;
use std::time::Instant;

/// Rows of the table; every second one has a record, and behind them come records of new keys.
const ROWS: u64 = 60_000;
const NEW: u64 = 3_000;
/// One record in ten says what is there already.
const CHANGED: u64 = ROWS / 2 / 10 * 9;
const SAME: u64 = ROWS / 2 - CHANGED;

const STEPS: &str = "SELECT count(*) FROM howdah.step WHERE name = 'part'";
/// The page of each row.
const PAGES: &str = "SELECT id, n, split_part(ltrim(ctid::text, '('), ',', 1)::int AS page FROM t";

struct Scene {
    database: Database,
    _files: Files,
    command: HowdahCommand,
}

/// A table `t` of full pages, and `wanted`, what is to become of it.
fn scene(server: &Server) -> Scene {
    let note = "x".repeat(100);
    let mut csv = "id,n,note\n".to_owned();
    for id in (0..ROWS).step_by(2) {
        let n = if id % 20 == 0 { 0 } else { 1 };
        let _ = writeln!(csv, "{id},{n},{note}");
    }
    for id in ROWS..ROWS + NEW {
        let _ = writeln!(csv, "{id},1,{note}");
    }
    let files = Files::new();
    let source = files.put("a.csv", csv.as_bytes());
    let database = server.database();
    database.sql(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, n int, note text); CREATE INDEX ON t (note, id); \
         INSERT INTO t SELECT id, 0, '{note}' FROM generate_series(0, {ROWS} - 1) id; \
         CREATE TABLE wanted AS SELECT id, CASE WHEN id % 2 = 0 AND id % 20 <> 0 THEN 1 ELSE 0 END AS n, note FROM t \
             UNION ALL SELECT id, 1, '{note}' FROM generate_series({ROWS}, {ROWS} + {NEW} - 1) id"
    ));
    database.sql(
        "ALTER TABLE t SET (autovacuum_enabled = off); ALTER TABLE wanted SET (autovacuum_enabled = off)",
    );
    database.sql("VACUUM ANALYZE t");
    database.sql(&format!("CREATE TABLE before AS {PAGES}"));
    let command = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "1"]);
    Scene { database, _files: files, command }
}

#[track_caller]
fn assert_wanted(database: &Database, what: &str) {
    assert_eq!(database.digest("t"), database.digest("wanted"), "{what}");
    assert_nothing_left(database, what);
}

#[test]
fn most_rows_find_room_on_their_pages() {
    for major in MAJORS {
        // Of its own: sessions that begin elsewhere on a server hold rows back for a moment, and others that
        // run beside begin many.
        let server = Server::private(major, &ServerOptions::default());
        let scene = scene(&server);
        // While rows change, images of pages are compressed where the server can: this role may.
        scene.database.sql(
            "CREATE TABLE seen AS SELECT ''::text AS setting; \
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN UPDATE seen SET setting = current_setting(''wal_compression''); RETURN NULL; END'; \
             CREATE TRIGGER see AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION see()",
        );
        let told = scene.command.clone().run(PATIENCE).expect_code(0);
        let what = format!("PostgreSQL {major}: {}", told.stderr);
        assert!(told.stderr.contains("rows are merged into public.t in 12 parts"), "{what}");
        let counts = format!("{NEW} inserted, {CHANGED} updated, {SAME} unchanged, 0 deleted");
        assert!(told.stderr.replace(',', "").contains(&counts.replace(',', "")), "{what}");
        assert_wanted(&scene.database, &what);
        let can =
            "SELECT coalesce('lz4' = ANY (enumvals), false) FROM pg_settings WHERE name = 'wal_compression'";
        let setting = if scene.database.value(can) == "t" { "lz4" } else { "off" };
        assert_eq!(scene.database.value("SELECT setting FROM seen"), setting, "PostgreSQL {major}");
        let stayed =
            format!("SELECT count(*) FROM before b JOIN ({PAGES}) t USING (id, page) WHERE b.n <> t.n");
        let stayed: u64 = scene.database.value(&stayed).parse().unwrap();
        // More than half do where nothing else is at work; the sessions of the load itself hold rows back for
        // a moment as they begin. In one go it is hardly one.
        assert!(
            stayed > CHANGED / 6,
            "PostgreSQL {major}: {stayed} of {CHANGED} rows found room on their pages"
        );
    }
}

/// A table that is empty where its rows come, and whose statistics say so: what the first turn has brought is
/// not in them for the next.
#[test]
fn turns_meet_more_rows_than_the_statistics_say() {
    for major in MAJORS {
        let files = Files::new();
        let csv = (1..=400_000_u64).fold("id,n\n".to_owned(), |mut csv, id| {
            let _ = writeln!(csv, "{id},1");
            csv
        });
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(major).database();
        // What the sessions of the parts are told, by a trigger of each statement that inserts.
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT -id, 0 FROM generate_series(1, 20000) id; \
             ALTER TABLE t SET (autovacuum_enabled = off); \
             CREATE TABLE seen (nestloop text, staged float8); \
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO seen SELECT current_setting('enable_nestloop'), max(c.reltuples) FROM pg_class c \
                     JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'howdah' \
                     WHERE c.relkind = 'r' AND c.relname LIKE 'staging%'; \
                 RETURN NULL; END $$; \
             CREATE TRIGGER see AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION see()",
        );
        database.sql("VACUUM ANALYZE t");
        let command = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
        assert_eq!(changes(&command), [400_000, 0, 0, 0, 0], "PostgreSQL {major}");
        let seen = "SELECT count(*) > 2 AND count(*) FILTER (WHERE nestloop = 'off') >= 2 AND bool_and(staged > 200000) FROM seen";
        assert_eq!(database.value(seen), "t", "PostgreSQL {major}");
    }
}

/// Few records for a large table: its other rows are not read, also where its statistics are older than most
/// of it.
#[test]
fn rows_of_few_records_are_looked_up() {
    for major in MAJORS {
        let files = Files::new();
        // In disorder, half of them new, in two ranges.
        let csv = (0..60_000_u64).fold("id,n\n".to_owned(), |mut csv, no| {
            let _ = writeln!(csv, "{},1", 170_000 + no * 7_919 % 60_000);
            csv
        });
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off); \
             INSERT INTO t SELECT id, 0 FROM generate_series(0, 999) id",
        );
        database.sql("VACUUM ANALYZE t");
        database.sql("INSERT INTO t SELECT id, 0 FROM generate_series(1000, 199999) id");
        let command = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
        assert_eq!(changes(&command), [30_000, 30_000, 0, 0, 0], "PostgreSQL {major}");
        assert_eq!(database.value(STEPS), "2", "PostgreSQL {major}");
        // The server tells a moment later what was read.
        let began = Instant::now();
        let found = "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 't'";
        let is_told = database.wait_for(found, 30_000, || began.elapsed() < PATIENCE);
        let passed = database.value("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 't'");
        assert!(is_told && passed == "0", "PostgreSQL {major}: {passed} rows read one behind the other");
        let wanted = "SELECT count(*) = 60000 AND min(id) = 170000 AND max(id) = 229999 FROM t WHERE n = 1";
        assert_eq!(database.value(wanted), "t", "PostgreSQL {major}");
        assert_nothing_left(&database, "looked up");
    }
}

/// Every range of keys that lie all over the table has rows on all its pages: no row finds more room there
/// for coming later.
#[test]
fn keys_that_lie_all_over_the_table_have_no_turns() {
    for major in MAJORS {
        let scene = scene(Server::shared(major));
        scene.database.sql(
            "CREATE TABLE kept AS SELECT * FROM t; TRUNCATE t; \
             INSERT INTO t SELECT * FROM kept ORDER BY md5(id::text); DROP TABLE kept",
        );
        scene.database.sql("VACUUM ANALYZE t");
        let told = scene.command.clone().run(PATIENCE).expect_code(0);
        let what = format!("PostgreSQL {major}: {}", told.stderr);
        assert!(told.stderr.contains("rows are merged into public.t in 1 part"), "{what}");
        assert_wanted(&scene.database, &what);
    }
}

#[test]
fn a_kill_between_turns_loses_and_doubles_nothing() {
    for (major, least) in MAJORS.into_iter().zip([1, 4, 9]) {
        let Scene { database, command, _files } = scene(Server::shared(major));
        // So many parts come, and the next one, whose own step is counted, waits until the load is killed.
        database.sql(&format!(
            "CREATE TABLE gate AS SELECT 1; CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 WHILE EXISTS (SELECT FROM gate) AND ({STEPS}) > {least} LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END $$; \
             CREATE TRIGGER wait BEFORE UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION wait()"
        ));
        let mut running = command.spawn();
        let hit = wait_for(&database, &mut running, STEPS, least);
        assert!(hit, "PostgreSQL {major}, after {least} parts: {}", running.stderr_so_far());
        running.kill();
        database.sql("DELETE FROM gate");
        assert_eq!(changes(&command), [NEW, CHANGED, SAME, 0, 0], "PostgreSQL {major}, after {least} parts");
        assert_wanted(&database, &format!("PostgreSQL {major}, killed after {least} parts"));
    }
}
