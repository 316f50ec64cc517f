//! The answer to a COMMIT is lost: to the one that brings all rows in, where nobody is to try again and the
//! job is done nevertheless, or to the one that leaves records out.

use super::assert_nothing_left;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, Fault, MAJORS, Proxy, Server};
use std::path::Path;

const ROWS: u64 = 5_000;
const LOCK: &str = "BEGIN; LOCK TABLE t IN SHARE MODE; SELECT pg_sleep(600)";

fn wait_for(database: &Database, sql: &str) {
    assert!(database.wait_for(sql, 1, || true), "never: {sql}");
}

#[test]
fn a_lost_answer_to_the_last_commit_neither_doubles_nor_bars_the_way() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(61, 1, ROWS));
    let ways = [&["--atomic"][..], &["--mode", "merge", "--key", "id", "--atomic"]];
    for (major, way) in MAJORS.iter().flat_map(|major| ways.map(|way| (*major, way))) {
        let server = Server::shared(major);
        let (database, proxy) = (server.database(), Proxy::before_server(server));
        database.sql("CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text)");
        let load = |to: &str| {
            let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", to]);
            load.args(["--retry-for", "0", "--lock-timeout", "10min"]).args(way).arg(&source)
        };
        let failed = std::thread::scope(|scope| {
            scope.spawn(|| database.try_sql(LOCK));
            let held =
                "SELECT count(*) > 0 FROM pg_locks WHERE relation = 't'::regclass AND mode = 'ShareLock'";
            wait_for(&database, held);
            let running = load(&database.conninfo_through(&proxy)).spawn();
            // The last transaction waits for the table.
            wait_for(
                &database,
                "SELECT count(*) > 0 FROM pg_locks WHERE relation = 't'::regclass AND NOT granted",
            );
            proxy.set_times(Fault::CutAfterCommit { skip: 0 }, 1);
            database.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'ShareLock'");
            running.wait(PATIENCE)
        });
        assert_eq!(failed.code, Some(1), "PostgreSQL {major}, {way:?}: {}", failed.stderr);
        let again = load(&database.conninfo()).run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("this job finished at"), "PostgreSQL {major}, {way:?}: {again}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "{major}, {way:?}");
        assert_nothing_left(&database, &format!("PostgreSQL {major}, {way:?}"));
    }
}

#[test]
fn a_lost_answer_leaves_no_record_out_of_the_account() {
    let files = Files::new();
    let first = files.put("first.csv", &csv(61, 1, 10));
    let mut bytes = csv(62, 100, 200);
    bytes.extend_from_slice(b"7000,-1,1.5,bad\n");
    let source = files.put("a.csv", &bytes);
    for major in MAJORS {
        let server = Server::shared(major);
        let (database, proxy) = (server.database(), Proxy::before_server(server));
        database.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer CHECK (part >= 0), amount numeric, note text)",
        );
        let load = |to: &str, source: &Path| {
            let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", to]);
            load.args(["--atomic", "--on-error", "skip", "--retry-for", "10min"]).arg(source)
        };
        // It makes the ledger.
        load(&database.conninfo(), &first).run(PATIENCE).expect_code(0);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| database.try_sql(&LOCK.replace("TABLE t", "TABLE howdah.reject")));
            let of_reject = "FROM pg_locks WHERE relation = 'howdah.reject'::regclass AND";
            wait_for(&database, &format!("SELECT count(*) > 0 {of_reject} mode = 'ShareLock'"));
            let running = load(&database.conninfo_through(&proxy), &source).spawn();
            wait_for(&database, &format!("SELECT count(*) > 0 {of_reject} NOT granted"));
            proxy.set_times(Fault::CutAfterCommit { skip: 0 }, 1);
            database.sql(&format!("SELECT pg_terminate_backend(pid) {of_reject} mode = 'ShareLock'"));
            running.wait(PATIENCE)
        });
        assert_eq!(done.code, Some(3), "PostgreSQL {major}: {}", done.stderr);
        assert_eq!(proxy.fired(), 1, "PostgreSQL {major}");
        let account = "SELECT concat_ws(' ', rows_read, rows_stored, rows_rejected) FROM howdah.file \
            WHERE location LIKE '%/a.csv'";
        let read = database.value("SELECT count(*) FROM t WHERE id >= 100").parse::<u64>().unwrap() + 1;
        assert_eq!(database.value(account), format!("{read} {} 1", read - 1), "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "1", "PostgreSQL {major}");
        assert_nothing_left(&database, &format!("PostgreSQL {major}"));
    }
}
