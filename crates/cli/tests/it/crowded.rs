//! A server whose table of locks holds what one session's chunk needs, and not what those of several do.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Connection, Database, Server, ServerOptions};
use std::fmt::Write as _;

const ROWS: usize = 200_000;

fn with_leaves(server: &Server, leaves: usize) -> Database {
    let database = server.database();
    database.sql("CREATE TABLE t (a int, b int) PARTITION BY LIST (a)");
    let of_leaf = |no: usize| format!("CREATE TABLE t_{no} PARTITION OF t FOR VALUES IN ({no})");
    // What one transaction makes it locks, too.
    for first in (0..leaves).step_by(20) {
        let some: Vec<String> = (first..leaves.min(first + 20)).map(of_leaf).collect();
        database.sql(&some.join("; "));
    }
    database
}

#[test]
fn chunks_that_lock_more_than_there_is_room_for_at_once_come_one_after_the_other() {
    let options =
        ServerOptions::default().set("max_locks_per_transaction", "10").set("max_connections", "20");
    let server = Server::private(18, &options);
    let files = Files::new();
    let load = |leaves: usize, jobs: &[&str]| {
        let database = with_leaves(&server, leaves);
        let mut text = String::new();
        (0..ROWS).for_each(|no| _ = writeln!(text, "{},{no}", no * 7919 % leaves));
        let source = files.put(&format!("{leaves}.csv"), text.as_bytes());
        let load =
            howdah("load").args(["--format", "csv", "--table", "t", "--chunk-size", "256kB"]).args(jobs);
        (load.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE), database)
    };
    for jobs in [&[][..], &["--jobs", "3"]] {
        let (done, database) = load(900, jobs);
        let done = done.expect_code(0).stderr;
        assert_eq!(
            database.value("SELECT count(*) || ' ' || count(DISTINCT b) FROM t"),
            format!("{ROWS} {ROWS}")
        );
        assert!(done.contains("check  read 200,000 = stored 200,000"), "{done}");
    }
    // One session alone has no room, which the plan knows.
    let database = with_leaves(&server, 2000);
    let source = files.put("few.csv", b"1,1\n");
    let plan = howdah("plan").args(["--format", "csv", "--table", "t", "--to", &database.conninfo()]);
    let told = plan.arg(&source).run(PATIENCE).expect_code(0).stdout;
    let note = "locks 2001 tables and indexes, and the server's lock table is made for 420: raise max_locks_per_transaction";
    assert!(told.contains(note), "{told}");
    let failed = load(2000, &[]).0.expect_code(1).stderr;
    let hint = "hint: the server has too few locks for so many partitions and indexes: raise its max_locks_per_transaction";
    assert!(failed.contains("out of shared memory (SQLSTATE 53200)") && failed.contains(hint), "{failed}");
    assert!(failed.contains("a small --chunk-size"), "{failed}");
    // TRUNCATE needs the same locks, however small the chunks are.
    let truncate = howdah("load").args(["--format", "csv", "--table", "t", "--mode", "truncate"]);
    let failed =
        truncate.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("53200") && failed.contains("in one transaction: raise its"), "{failed}");
    assert!(!failed.contains("--chunk-size"), "{failed}");
}

const TABLES: usize = 400;

/// What comes in by one transaction locks all that it comes into: the plan knows it, and who comes to that
/// end is told what helps.
#[test]
fn rows_of_more_tables_than_there_are_locks_for_do_not_come_at_once() {
    let options =
        ServerOptions::default().set("max_locks_per_transaction", "10").set("max_connections", "20");
    let server = Server::private(15, &options);
    let (database, files) = (server.database(), Files::new());
    for first in (0..TABLES).step_by(20) {
        let of_table = |no: usize| format!("CREATE TABLE t_{no} (a int PRIMARY KEY, b text)");
        database.sql(&(first..first + 20).map(of_table).collect::<Vec<_>>().join("; "));
    }
    (0..TABLES).for_each(|no| _ = files.put(&format!("t_{no}.csv"), b"a,b\n1,x\n"));
    let run = |verb: &str, atomic: bool| {
        let run = howdah(verb).args(["--header", "--to", &database.conninfo()]);
        let run = if atomic { run.arg("--atomic") } else { run };
        run.arg(files.path().join("{table}.csv")).run(PATIENCE)
    };
    let warns = "warning: the transaction that ends this load locks 2400 tables and indexes, and the server's lock table is made for";
    let told = run("plan", true).expect_code(0);
    assert!(format!("{}{}", told.stdout, told.stderr).contains(warns), "{told:?}");
    let told = run("plan", false).expect_code(0);
    assert!(!format!("{}{}", told.stdout, told.stderr).contains("lock table"), "{told:?}");
    let failed = run("load", true).expect_code(1).stderr;
    assert!(failed.contains(warns) && failed.contains("(SQLSTATE 53200)"), "{failed}");
    let hint = "hint: the server has too few locks for so many tables, partitions and indexes in one transaction: raise its \
                max_locks_per_transaction";
    assert!(failed.contains(hint), "{failed}");
    let session = database.connect();
    for no in 0..TABLES {
        assert!(session.rows(&format!("SELECT FROM t_{no}")).is_empty(), "t_{no}: {failed}");
    }
    // What it has left can be taken away in parts.
    howdah("restore").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
    let left = "SELECT count(*) FROM pg_tables WHERE schemaname = 'howdah' AND tablename ~ 'stag'";
    assert_eq!(database.value(left), "0");
    run("load", false).expect_code(0);
}

#[test]
fn indexes_of_more_partitions_than_there_are_locks_for_stay_unless_they_are_to_go() {
    let options =
        ServerOptions::default().set("max_locks_per_transaction", "10").set("max_connections", "20");
    let server = Server::private(18, &options);
    let database = with_leaves(&server, 600);
    for no in 0..600 {
        database.sql(&format!("CREATE INDEX ON t_{no} (b)"));
    }
    database.sql("CREATE INDEX of_all ON ONLY t (b)");
    for no in 0..600 {
        database.sql(&format!("ALTER INDEX of_all ATTACH PARTITION t_{no}_b_idx"));
    }
    let files = Files::new();
    let source = files.put("few.csv", b"1,1\n");
    let plan = |indexes: &str| {
        let plan = howdah("plan").args(["--format", "csv", "--table", "t", "--to", &database.conninfo()]);
        let told = plan.args(["--indexes", indexes]).arg(&source).run(PATIENCE).expect_code(0);
        format!("{}{}", told.stdout, told.stderr)
    };
    let told = plan("rebuild");
    let warns = "warning: to drop and rebuild indexes of public.t locks 1202 tables and indexes, and the server's lock table is made for";
    assert!(told.contains(warns) && told.contains("or give --indexes keep"), "{told}");
    assert!(!plan("keep").contains("to drop and rebuild"), "{told}");
    // A pipe may bring so many rows that indexes would go.
    let plan = howdah("plan").args(["--format", "csv", "--table", "t", "--to", &database.conninfo(), "-"]);
    let told = plan.stdin(b"1,1\n".to_vec()).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("is kept: to drop and rebuild it locks 1202 tables and indexes"), "{told}");
    assert!(!told.contains("give --indexes keep"), "{told}");
}

#[test]
fn fewer_jobs_are_not_advised_where_there_is_no_connection_at_all() {
    let server = Server::private(15, &ServerOptions::default().set("max_connections", "8"));
    let (database, files) = (server.database(), Files::new());
    database.sql("CREATE TABLE t (a int); CREATE ROLE plain LOGIN; ALTER TABLE t OWNER TO plain");
    let others: Vec<Connection> = (0..6).map(|_| database.connect()).collect();
    let source = files.put("one.csv", b"1\n");
    let plan = howdah("plan").args(["--format", "csv", "--table", "t", "--retry-for", "1s"]);
    let failed = plan.args(["--to", &format!("{} user=plain", database.conninfo())]).arg(&source);
    let failed = failed.run(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("53300") && failed.contains("pg_stat_activity tells who"), "{failed}");
    drop(others);
}
