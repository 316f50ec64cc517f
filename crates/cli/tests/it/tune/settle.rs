//! The next load of any job puts back what dead jobs have left behind.

use super::{GATE, HELD, held, load};
use crate::gate::{open_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, PLAIN_SCHEMA, open_entries, restore, schema, wait_for};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Database, MAJORS, Server, ServerOptions, side_by_side};
use std::path::PathBuf;

const ROWS: u64 = 5000;

fn prepared(major: u32) -> (Database, Files, PathBuf, PathBuf) {
    let files = Files::new();
    let source = files.put("a.csv", &csv(51, 1, ROWS));
    let other = files.put("b.csv", &csv(52, ROWS + 1, 100));
    (Server::shared(major).database(), files, source, other)
}

#[test]
fn the_next_load_of_another_table_puts_back_what_a_killed_one_has_left() {
    side_by_side(MAJORS, |major| {
        let (database, _files, source, other) = prepared(major);
        database.sql(PLAIN_SCHEMA);
        database.sql("CREATE TABLE u (id bigint, part integer, amount numeric, note text)");
        database.sql(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
        );
        shut_gate_behind(&database, 1);
        // Whoever has no superuser's ways disables triggers, and that is what is left behind.
        let role = format!("owner_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}; ALTER TABLE t OWNER TO {role}; \
             ALTER TABLE u OWNER TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
            database.name()
        ));
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let before = schema(&database);
        let load_as = |table: &str, source: &PathBuf| {
            let load = crate::scene::howdah("load")
                .args(["--format", "csv", "--header", "--table", table, "--to", &to]);
            load.arg(source).args(["--tune", "table", "--chunk-size", "64kB", "--jobs", "2"])
        };
        let killed = load_as("t", &source).args(["--indexes", "rebuild", "--triggers", "disable"]);
        let mut running = killed.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
        running.kill();
        open_gate(&database);
        assert!(held(&database) > 0 && open_entries(&database) > 3);
        let told = load_as("u", &other).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("was killed and has left something to put back"), "{told}");
        assert!(told.contains("of public.t is enabled again"), "{told}");
        assert!(told.contains("the index t_note of public.t is built"), "{told}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
        assert_eq!((held(&database), open_entries(&database)), (0, 0));
        // And the killed one goes on.
        killed.run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
    });
}

#[test]
fn what_a_load_at_work_has_changed_is_left_to_it() {
    let (database, _files, source, other) = prepared(15);
    database
        .sql("CREATE TABLE t (id bigint, part integer, amount numeric, note text); CREATE INDEX ON t (part)");
    database.sql(GATE);
    let before = schema(&database);
    let mut long = load(&database, &source, "table").args(["--indexes", "rebuild"]).spawn();
    assert!(wait_for(&database, &mut long, HELD, 2));
    assert!(wait_for(&database, &mut long, "SELECT count(*) FROM howdah.undo", 1));
    let told =
        load(&database, &other, "none").args(["--indexes", "keep"]).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("was killed"), "{told}");
    assert_eq!((held(&database), open_entries(&database)), (2, 1));
    database.sql("DELETE FROM gate");
    long.wait(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
}

#[test]
fn a_load_that_has_survived_a_restart_of_the_server_is_not_taken_for_dead() {
    let server = Server::private(15, &ServerOptions::default());
    let database = server.database();
    let files = Files::new();
    let source = files.put("a.csv", &csv(53, 1, ROWS));
    database.sql("CREATE TABLE t (id bigint, part integer, amount numeric, note text)");
    database.sql(GATE);
    let before = schema(&database);
    let mut running = load(&database, &source, "table").spawn();
    assert!(wait_for(&database, &mut running, HELD, 2));
    server.crash_and_restart();
    // The session that held the job is gone; the next look opens another.
    let at_work = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'";
    assert!(wait_for(&database, &mut running, at_work, 1), "{}", running.stderr_so_far());
    let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("is at work"), "{told}");
    assert_eq!(held(&database), 2);
    database.sql("DELETE FROM gate");
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
}

#[test]
fn a_job_that_was_killed_behind_its_last_row_is_put_right_by_the_run_that_is_told_so() {
    let (database, _files, source, other) = prepared(15);
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    let next = load(&database, &other, "none");
    let load = load(&database, &source, "table");
    load.run(PATIENCE).expect_code(0);
    // What it leaves that is killed between its end in the ledger and the last of what it puts back.
    database.sql(
        "ALTER TABLE t SET (autovacuum_enabled = false); \
         UPDATE howdah.tuned SET undone_at = NULL WHERE name = 'autovacuum_enabled'",
    );
    assert_eq!(held(&database), 1);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("this job finished"), "{told}");
    assert!(told.contains("was killed and has left something to put back"), "{told}");
    assert_eq!((held(&database), schema(&database)), (0, before.clone()), "{told}");

    // Or that an error has ended, and that could not put it back.
    database.sql(
        "ALTER TABLE t SET (autovacuum_enabled = false); UPDATE howdah.job SET status = 'failed'; \
         UPDATE howdah.tuned SET undone_at = NULL WHERE name = 'autovacuum_enabled'",
    );
    let told = next.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("ended with an error and has left something to put back"), "{told}");
    assert_eq!((held(&database), schema(&database)), (0, before), "{told}");
}

#[test]
fn a_run_whose_job_is_held_by_another_says_who_is_to_put_back() {
    let (database, _files, source, _) = prepared(15);
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    // As the session of a run whose client was cut off does, until the server finds out.
    let holder = database.connect();
    holder.sql("SELECT pg_advisory_lock_shared(hashtextextended('howdah/held', 114827953725800))");
    let told =
        load(&database, &source, "table").args(["--job-id", "held"]).run(PATIENCE).expect_code(0).stderr;
    drop(holder);
    assert!(told.contains("another run of this job holds it still"), "{told}");
    assert!(held(&database) > 0);
    restore(&database).run(PATIENCE).expect_code(0);
    assert_eq!((held(&database), schema(&database)), (0, before), "{told}");
}

/// The second run holds the job when the first one ends, and is told behind that that the job is done.
#[test]
fn a_run_that_is_told_that_its_job_is_done_puts_back_what_was_left_to_it() {
    let (database, _files, source, _) = prepared(15);
    database.sql(PLAIN_SCHEMA);
    let before = schema(&database);
    database.sql(GATE);
    let load = load(&database, &source, "table").args(["--indexes", "keep"]);
    let mut first = load.spawn();
    assert!(wait_for(&database, &mut first, HELD, 2), "{}", first.stderr_so_far());
    // A run that begins waits at its row in the ledger; one that ends does not.
    database.sql(
        "CREATE TABLE row_gate AS SELECT 1; \
         CREATE FUNCTION wait_at_row() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN WHILE EXISTS (SELECT FROM public.row_gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END'; \
         CREATE TRIGGER wait BEFORE INSERT ON howdah.job FOR EACH ROW EXECUTE FUNCTION wait_at_row()",
    );
    let mut second = load.spawn();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' \
        AND query LIKE '%INSERT INTO \"howdah\".job %' AND datname = current_database()";
    assert!(wait_for(&database, &mut second, waits, 1), "{}", second.stderr_so_far());
    database.sql("DELETE FROM gate");
    let told = first.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("another run of this job holds it still"), "{told}");
    assert_eq!(held(&database), 2, "{told}");
    database.sql("DELETE FROM row_gate");
    let told = second.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("this job finished"), "{told}");
    database
        .sql("DROP TABLE gate, row_gate; DROP FUNCTION wait() CASCADE; DROP FUNCTION wait_at_row() CASCADE");
    assert_eq!((held(&database), schema(&database)), (0, before), "{told}");
}
