//! What is under way is broken off before it fills a disk of the server, and comes again when there is room.

use super::disk::{Small, prepared};
use super::{PLAIN, load, wait_for_words};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Running};
use std::time::{Duration, Instant};

const ROWS: u64 = 5_000;
const SLEEPING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
const VACUUMING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'VacuumDelay'";
const BROKEN_OFF: &str = "MB are kept free: what is under way is broken off";

/// A trigger, and a function for an index, that take so long for each row.
fn slow(ms: u32) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION slow_row() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep({ms} / 1000.0); RETURN NEW; END $$; \
         CREATE OR REPLACE FUNCTION slow(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep({ms} / 1000.0); RETURN i; END $$"
    )
}

const SLOW_ROWS: &str = "CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow_row()";
const SLOW_INDEX: &str = "CREATE INDEX t_slow ON t (slow(id))";

/// Leaves next to no room as soon as this is under way, and waits until it is not.
#[track_caller]
fn fill_amidst(small: &Small, database: &Database, running: &mut Running, under_way: &str) {
    assert!(database.wait_for(under_way, 1, || running.is_running()), "{}", running.stderr_so_far());
    small.fill_but(20 << 20);
    let deadline = Instant::now() + PATIENCE;
    while database.value(under_way) != "0" {
        assert!(Instant::now() < deadline, "it goes on: {}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_under_way_is_broken_off_and_comes_again() {
    let Some((small, server)) = prepared() else { return };
    let files = Files::new();
    let source = files.put("a.csv", &csv(71, 1, ROWS));
    for (slowed, options) in [
        (SLOW_ROWS, &["--jobs", "3"][..]),
        (SLOW_ROWS, &["--mode", "merge", "--key", "id"]),
        (SLOW_ROWS, &["--atomic"]),
        (SLOW_INDEX, &["--mode", "replace"]),
    ] {
        let database = server.database();
        database.sql(&format!("{PLAIN}; CREATE UNIQUE INDEX ON t (id); {}; {slowed}", slow(20)));
        let mut running = load(&database, &source).args(options).spawn();
        fill_amidst(&small, &database, &mut running, SLEEPING);
        wait_for_words(&mut running, BROKEN_OFF);
        database.sql(&slow(0));
        small.clear();
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the server's disk for WAL has "), "{options:?}: {told}");
        let counted = database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t");
        assert_eq!(counted, format!("{ROWS} {ROWS}"), "{options:?}: {told}");
    }
}

#[test]
fn what_never_fits_ends_the_load() {
    let Some((small, server)) = prepared() else { return };
    let database = server.database();
    database.sql(&format!("{PLAIN}; {}; {SLOW_ROWS}", slow(20)));
    let files = Files::new();
    let source = files.put("a.csv", &csv(72, 1, ROWS));
    let load = load(&database, &source);
    let mut running = load.clone().args(["--pause-for", "2s"]).spawn();
    fill_amidst(&small, &database, &mut running, SLEEPING);
    small.clear();
    std::thread::sleep(Duration::from_secs(2));
    fill_amidst(&small, &database, &mut running, SLEEPING);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("a.csv was broken off 2 times in "), "{told}");
    assert!(told.contains("\nhint: free or add disk space on the server"), "{told}");
    small.clear();

    // All rows of a table in one transaction.
    let frozen = load.clone().args(["--freeze", "--mode", "truncate", "--force"]);
    let mut running = frozen.spawn();
    fill_amidst(&small, &database, &mut running, SLEEPING);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("with all rows of public.t (--freeze) was broken off: the server's"), "{told}");
    small.clear();
    database.sql(&slow(0));
    frozen.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
}

#[test]
fn a_load_that_has_failed_and_restore_break_an_index_build_off_too() {
    let Some((small, server)) = prepared() else { return };
    let database = server.database();
    database.sql(&format!("{PLAIN}; {}; {SLOW_INDEX}", slow(20)));
    let files = Files::new();
    let mut bytes = csv(73, 1, ROWS);
    bytes.extend_from_slice(b"none,1,1,\n");
    let source = files.put("a.csv", &bytes);
    let mut running = load(&database, &source).args(["--indexes", "rebuild"]).spawn();
    fill_amidst(&small, &database, &mut running, SLEEPING);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    let broken_off = "the index t_slow of public.t was broken off: the server's disk for WAL has ";
    assert!(told.contains(broken_off) && told.contains("`howdah restore "), "{told}");
    small.clear();

    let restore = howdah("restore").args(["--to", &database.conninfo()]);
    let mut running = restore.spawn();
    fill_amidst(&small, &database, &mut running, SLEEPING);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains(broken_off), "{told}");
    small.clear();
    database.sql(&slow(0));
    restore.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM pg_indexes WHERE indexname = 't_slow'"), "1");
}

#[test]
fn vacuum_is_broken_off_and_the_load_is_done() {
    let Some((small, server)) = prepared() else { return };
    let database = server.database();
    database.sql(&format!("{PLAIN}; ALTER ROLE postgres SET vacuum_cost_delay = 100"));
    database.sql("ALTER ROLE postgres SET vacuum_cost_limit = 1");
    let files = Files::new();
    let source = files.put("a.csv", &csv(74, 1, ROWS));
    let mut running = load(&database, &source).args(["--after", "vacuum"]).spawn();
    fill_amidst(&small, &database, &mut running, VACUUMING);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("VACUUM of public.t was not done: the server's disk for WAL has "), "{told}");
}
