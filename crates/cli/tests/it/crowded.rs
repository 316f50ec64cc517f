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
