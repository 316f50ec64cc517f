//! Loads of several ledgers, and whoever passes himself off as one, while the server is tuned.

use super::server::{PLAIN, ROWS, auto_conf, prepared, wait_until};
use super::{GATE, HELD, held, load};
use crate::guards::wait_for_words;
use crate::indexes::wait_for;
use crate::scene::{PATIENCE, csv};

/// Sessions that say that they tune the server.
const MARKS: &str =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = x'74756e65'::int";
const MARK: &str = "SELECT pg_advisory_lock_shared(x'74756e65'::int, hashtext('another'))";
const TOLD: &str = "a load of another ledger tunes the server";

#[test]
fn a_load_that_leaves_the_server_as_it_is_keeps_no_other_from_putting_it_back() {
    let (server, database, files, source) = prepared(15);
    database.sql(GATE);
    let before = auto_conf(&server);
    let mut first = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut first, HELD, 9), "{}", first.stderr_so_far());
    wait_until(&database, "checkpoint_timeout", "30min");
    let elsewhere = server.database();
    elsewhere.sql(&format!("{PLAIN}; {GATE}"));
    let mut second = load(&elsewhere, &files.put("b.csv", &csv(46, 1, ROWS)), "server").spawn();
    let at_work =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    assert!(wait_for(&elsewhere, &mut second, at_work, 1), "{}", second.stderr_so_far());
    assert_eq!(database.value(MARKS), "1");
    database.sql("DELETE FROM gate");
    let told = first.wait(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains(TOLD), "{told}");
    assert_eq!(auto_conf(&server), before, "{told}");
    assert!(second.is_running());
    elsewhere.sql("DELETE FROM gate");
    second.wait(PATIENCE).expect_code(0);
    assert_eq!(auto_conf(&server), before);
}

#[test]
fn the_end_of_another_load_that_tunes_the_server_is_waited_for() {
    let (server, database, _files, source) = prepared(13);
    database.sql(GATE);
    let before = auto_conf(&server);
    let mut running = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut running, HELD, 8), "{}", running.stderr_so_far());
    let elsewhere = server.database();
    let other = elsewhere.connect();
    other.sql(MARK);
    database.sql("DELETE FROM gate");
    wait_for_words(&mut running, TOLD);
    assert_ne!(auto_conf(&server), before);
    other.sql("SELECT pg_advisory_unlock_all()");
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("warning"), "{told}");
    assert_eq!(auto_conf(&server), before, "{told}");
    assert_eq!(held(&database), 0);
}

/// Any role may take an advisory lock.
#[test]
fn a_role_that_may_not_change_the_server_keeps_nobody_from_it() {
    for major in [13, 18] {
        let (server, database, _files, source) = prepared(major);
        let before = auto_conf(&server);
        database.sql("CREATE ROLE nobody LOGIN");
        let to = database.conninfo().replace("user=postgres", "user=nobody");
        let sleeping = format!("{MARK}, pg_sleep(600)");
        let mut forger =
            std::process::Command::new(howdah_testkit::psql()).args([&to, "-c", &sleeping]).spawn().unwrap();
        assert!(database.wait_for(MARKS, 1, || true));
        let mut running = load(&database, &source, "server").spawn();
        assert!(wait_for(&database, &mut running, HELD, 8), "{}", running.stderr_so_far());
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        forger.kill().unwrap();
        forger.wait().unwrap();
        assert!(!told.contains(TOLD), "{told}");
        assert_eq!(auto_conf(&server), before, "PostgreSQL {major}\n{told}");
        assert_eq!(held(&database), 0);
    }
}

/// Without it a load of another ledger would tune the server beside this one.
#[test]
fn a_load_whose_mark_is_lost_sets_it_again() {
    let (server, database, _files, source) = prepared(18);
    database.sql(GATE);
    let before = auto_conf(&server);
    let mut running = load(&database, &source, "server").spawn();
    assert!(wait_for(&database, &mut running, HELD, 9), "{}", running.stderr_so_far());
    assert!(wait_for(&database, &mut running, MARKS, 1), "{}", running.stderr_so_far());
    let marking = MARKS.replace("count(*)", "pid");
    let lost = database.value(&marking);
    database.sql(&format!("SELECT pg_terminate_backend({lost})"));
    let renewed = format!("{MARKS} AND pid <> {lost}");
    assert!(wait_for(&database, &mut running, &renewed, 1), "{}", running.stderr_so_far());
    database.sql("DELETE FROM gate");
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(auto_conf(&server), before);
    assert_eq!(database.value(MARKS), "0");
}
