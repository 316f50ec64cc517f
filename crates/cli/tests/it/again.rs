//! Loads without a word about the file that are run again: stopped half-way, finished, their table dropped.
//! What the first run decided holds for all.

use crate::auto::{load, shape};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::scene::{END_SLEEPERS, Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROWS: u64 = 60_000;

/// Makes the table, in small chunks one after the other.
fn slow_load(database: &Database, source: &Path) -> HowdahCommand {
    load(database).args(["--create", "--table", "t", "--chunk-size", "64kB", "--jobs", "1"]).arg(source)
}

/// Kills the load once some of its rows are in, and not all.
fn kill_half_way(database: &Database, source: &Path) {
    shut_gate_behind(database, 3);
    let mut running = slow_load(database, source).spawn();
    let stored = database.wait_for("SELECT count(*) FROM howdah.chunk", 3, || running.is_running());
    assert!(stored, "{}", running.stderr_so_far());
    running.kill();
    remove_gate(database);
}

/// Days and months up to 12; once, far from where a sample would be taken, the proof which is which.
fn days(header: &str) -> Vec<u8> {
    let mut text = header.to_owned();
    for row in 0..ROWS {
        let (day, month) = if row == 21_000 { (25, 3) } else { (row % 12 + 1, row / 12 % 12 + 1) };
        let _ = writeln!(text, "{day:02}/{month:02}/2024,{row}");
    }
    text.into_bytes()
}

#[test]
fn a_stopped_load_goes_on_with_the_readings_it_began_with() {
    let files = Files::new();
    for (name, header, day, number) in
        [("header.csv", "day,v\n", "day", "v"), ("bare.csv", "", "column_1", "column_2")]
    {
        let source = files.put(name, &days(header));
        let database = Server::shared(15).database();
        kill_half_way(&database, &source);
        let done = slow_load(&database, &source).run(PATIENCE).expect_code(0);
        assert!(done.stderr.contains("stored 60,000"), "{}", done.stderr);
        let wrong = format!(
            "SELECT count(*) FROM t WHERE {number} <> 21000 AND {day} <> \
             make_date(2024, ({number} / 12 % 12 + 1)::int, ({number} % 12 + 1)::int)"
        );
        assert_eq!(database.value(&wrong), "0");
        assert_eq!(database.value(&format!("SELECT count(DISTINCT {number}) FROM t")), "60000");
    }
}

#[test]
fn a_load_whose_table_was_dropped_begins_afresh() {
    let files = Files::new();
    let source = files.put("a.csv", &days("day,v\n"));
    let database = Server::shared(18).database();
    kill_half_way(&database, &source);
    let count = "SELECT count(*) || ' ' || count(DISTINCT v) FROM t";
    database.sql("DROP TABLE t");
    slow_load(&database, &source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(count), "60000 60000", "dropped half-way");
    slow_load(&database, &source).run(PATIENCE).expect_code(1);
    database.sql("DROP TABLE t");
    slow_load(&database, &source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(count), "60000 60000", "dropped when all was in");
    slow_load(&database, &source).run(PATIENCE).expect_code(1);
}

#[test]
fn rows_are_not_added_to_those_of_a_table_made_anew() {
    let files = Files::new();
    let source = files.put("a.csv", &days("day,v\n"));
    let database = Server::shared(13).database();
    kill_half_way(&database, &source);
    database.sql("DROP TABLE t; CREATE TABLE t (day date, v int)");
    let refused = slow_load(&database, &source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("was dropped or made anew"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: --force"), "{}", refused.stderr);
    slow_load(&database, &source).arg("--force").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) || ' ' || count(DISTINCT v) FROM t"), "60000 60000");
}

#[test]
fn a_table_made_for_a_header_takes_such_files_again() {
    let files = Files::new();
    for (names, header) in [
        ("snake", ",a,b"),
        ("snake", "name,name,#"),
        ("keep", "name,,name"),
        ("snake", "The number of the very long winded thing that nobody ever reads to its end,b,c"),
        ("keep", "The number of the very long winded thing that nobody ever reads to its end,b,c"),
    ] {
        let database = Server::shared(15).database();
        let first = files.put("first.csv", format!("{header}\n1,2,x\n3,4,y\n").as_bytes());
        let second = files.put("second.csv", format!("{header}\n5,6,z\n7,8,u\n").as_bytes());
        let load = |source: &Path| {
            let command = load(&database).args(["--create", "--table", "t", "--names", names]).arg(source);
            command.run(PATIENCE).expect_code(0);
        };
        load(&first);
        load(&second);
        let sql = "SELECT string_agg(t::text, ' ' ORDER BY t::text) FROM t";
        assert_eq!(database.value(sql), "(1,2,x) (3,4,y) (5,6,z) (7,8,u)", "{header}");
    }
}

#[test]
fn what_one_file_proves_holds_for_the_others_of_its_table() {
    let files = Files::new();
    files.put("1.csv", b"day;n\n13/02/2024;1.234,56\n14/03/2024;12,5\n");
    files.put("2.csv", b"day;n\n01/02/2024;1.234\n03/04/2024;2.345\n");
    files.put("3.csv", b"");
    for made in [false, true] {
        let database = Server::shared(15).database();
        if made {
            database.sql("CREATE TABLE t (day date, n numeric)");
        }
        let all = files.path().join("*.csv");
        load(&database).args(["--create", "--table", "t"]).arg(all).run(PATIENCE).expect_code(0);
        let sql = "SELECT string_agg(t::text, ' ' ORDER BY day) FROM t";
        let wanted = "(2024-02-01,1234) (2024-02-13,1234.56) (2024-03-14,12.5) (2024-04-03,2345)";
        assert_eq!(database.value(sql), wanted, "made {made}");
    }
}

#[test]
fn a_spelling_told_for_all_columns_is_used_for_all_and_unknown_names_are_refused() {
    let files = Files::new();
    let source = files.put("a.csv", b"a;b\n1.234;2.345\n3.456;7.891\n");
    let database = Server::shared(15).database();
    let load =
        |types: &str| load(&database).args(["--create", "--table", "t", "--types", types]).arg(&source);
    let refused = load("c=text").run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("no field fills: c"), "{}", refused.stderr);
    load("*=numeric:1.234,56").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT sum(a) + sum(b) FROM t"), (1234 + 2345 + 3456 + 7891).to_string());

    // These might be hours of days; it was told that they are seconds.
    let moments = files.put("m.csv", b"at\n2024013112\n2024013113\n");
    database.sql("CREATE TABLE m (at timestamp)");
    let load = || self::load(&database).args(["--table", "m"]).arg(&moments);
    load().run(PATIENCE).expect_code(1);
    load().args(["--types", "at=timestamp:epoch"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT min(at) FROM m"), "2034-02-20 01:51:52");
}

#[test]
fn evolving_changes_what_must_be_changed_once_and_nothing_else() {
    let files = Files::new();
    files.put("1.csv", b"id,n,when\n1,1.5e3,2024-01-02 03:04:05\n2,7e20,2024-01-02 03:04:06\n");
    files.put("2.csv", b"id;n;when\n3;2.25e-3;some day\n4;17;no day\n");
    files.put("3.csv", b"id\tn\twhen\n70000\t1\t2024-02-03\n6\t1\t2024-02-04\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id smallint, n bigint, \"when\" date, ok boolean); \
         INSERT INTO t VALUES (0, 9007199254740993, '2024-01-05'); \
         CREATE TABLE rewrites (); \
         CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS \
           'BEGIN INSERT INTO rewrites DEFAULT VALUES; END'; \
         CREATE EVENT TRIGGER note ON table_rewrite EXECUTE FUNCTION note()",
    );
    let evolve =
        || load(&database).args(["--evolve", "widen", "--table", "t"]).arg(files.path().join("*.csv"));
    let planned = howdah("plan").args(["--to", &database.conninfo(), "--evolve", "widen", "--table", "t"]);
    let planned = planned.arg(files.path().join("*.csv")).run(PATIENCE).expect_code(0);
    assert!(planned.stdout.contains("widens public.t.n to numeric"), "{}", planned.stdout);
    evolve().run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, n numeric, when text, ok boolean");
    assert_eq!(database.value("SELECT count(*) FROM rewrites"), "1");
    assert_eq!(database.value("SELECT t::text FROM t WHERE id = 0"), "(0,9007199254740993,2024-01-05,)");
    assert_eq!(database.value("SELECT count(*) FROM t"), "7");
}

#[test]
fn columns_told_by_position_are_widened_and_none_is_added() {
    let files = Files::new();
    let source = files.put("a.csv", b"x,y\n1,20000000000\n3,4\n");
    let bare = files.put("b.csv", b"1,2\n3000000000,4\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, b int); CREATE TABLE w (j jsonb, d double precision, ok boolean)");
    let evolve = |options: &[&str], source: &Path| {
        load(&database)
            .args(["--evolve", "widen", "--table"])
            .args(options)
            .arg(source)
            .run(PATIENCE)
            .expect_code(0);
    };
    evolve(&["t", "--columns", "a,b"], &source);
    assert_eq!(shape(&database, "t"), "a integer, b bigint");
    evolve(&["t"], &bare);
    assert_eq!(shape(&database, "t"), "a bigint, b bigint");
    let fitting = files.put("w.csv", b"j,d,ok\n\"{\"\"a\"\":1}\",1e5,1\n\"{\"\"a\"\": 2}\",2e5,0\n");
    evolve(&["w"], &fitting);
    assert_eq!(shape(&database, "w"), "j jsonb, d double precision, ok boolean");
}

/// A transaction has read the table and is not at its end: a change of the table has to wait for it, but
/// readers need not wait behind the change, nor does it go on waiting when its load is stopped.
#[test]
fn readers_get_through_while_a_change_of_the_table_waits() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,weight\n70000,1\n70001,2\n");
    side_by_side(["add", "widen"], |evolve| {
        let database = Server::shared(15).database();
        let count = |what: &str| {
            let counted = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {what}"
            );
            database.value(&counted)
        };
        let naps = || count("wait_event = 'PgSleep'");
        let waiting = || count("wait_event_type = 'Lock' AND query SIMILAR TO '%(ALTER|LOCK) TABLE%'");
        let id = if evolve == "add" { "integer" } else { "smallint" };
        database.sql(&format!("CREATE TABLE t (id {id}); INSERT INTO t VALUES (1)"));
        let command = load(&database).args(["--evolve", evolve, "--table", "t", "--lock-timeout", "300ms"]);
        // The table is another one, which the ledger cannot tell.
        let command = command.args(["--job-id", evolve, "--known", "load"]).arg(&source);
        let over = AtomicBool::new(false);
        let longest = std::thread::scope(|scope| {
            scope.spawn(|| database.try_sql("BEGIN; SELECT count(*) FROM t; SELECT pg_sleep(600); COMMIT"));
            let until = |is_so: &dyn Fn() -> bool| {
                let deadline = Instant::now() + PATIENCE;
                while !is_so() {
                    assert!(Instant::now() < deadline, "{evolve}");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            until(&|| naps() == "1");
            let stopped = command.spawn();
            until(&|| waiting() == "1");
            stopped.interrupt();
            stopped.wait(PATIENCE).expect_code(130);
            until(&|| waiting() == "0");
            assert_eq!(naps(), "1", "{evolve}: what a stopped load waits for is not what ends its waiting");
            let reader = scope.spawn(|| {
                let mut longest = Duration::ZERO;
                while !over.load(Relaxed) {
                    let start = Instant::now();
                    database.value("SELECT count(*) FROM t");
                    longest = longest.max(start.elapsed());
                }
                longest
            });
            let mut running = command.spawn();
            wait_for_words(&mut running, "table public.t cannot be changed yet: other sessions hold it");
            database.sql(END_SLEEPERS);
            let finished = running.wait(PATIENCE);
            over.store(true, Relaxed);
            finished.expect_code(0);
            reader.join().unwrap()
        });
        assert!(longest < Duration::from_secs(3), "{evolve}: a reader waited for {longest:?}");
        assert_eq!(shape(&database, "t"), "id integer, weight integer", "{evolve}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "3", "{evolve}");
    });
}

/// The table that a failed load has made is in the way of the next one, which knows better how the file is
/// written.
#[test]
fn a_table_that_a_failed_load_has_made_for_another_header_is_told() {
    let files = Files::new();
    let source = files.put("t.csv", b"id;name\n1;x\n2;y\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        let create = || load(&database).args(["--create", "--table", "t"]).arg(&source);
        let wrong = create().args(["--delimiter", ",", "--types", "id_name=integer"]).run(PATIENCE);
        assert!(wrong.expect_code(1).stderr.contains("22P02"));
        assert_eq!(shape(&database, "t"), "id_name integer");
        let right = || create().args(["--delimiter", ";"]).run(PATIENCE);
        let told = right().expect_code(1).stderr;
        let job = database.value("SELECT job_id FROM howdah.job");
        let hint = format!(
            "; or, if the table is as job {job} has made it, which has stored nothing: DROP TABLE \"public\".\"t\", and it is made anew"
        );
        assert!(told.contains("none of the 2 fields of the header") && told.contains(&hint), "{told}");
        database.sql("DROP TABLE \"public\".\"t\"");
        right().expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, name text");
    }
}

/// The run behind it does what was planned, and knows that it is done.
#[test]
fn columns_that_were_to_be_added_and_widened_are_when_nothing_is_in_the_way_any_more() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let source = files.put("a.csv", b"id,w,extra\n1,longer,2.5\n");
    for (no, mode) in ["--mode merge --key id", "--atomic", "--mode replace", ""].into_iter().enumerate() {
        let table = format!("t{no}");
        database.sql(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, w varchar(4)); CREATE VIEW in_the_way AS SELECT w FROM {table}"
        ));
        let load =
            load(&database).args(["--table", &table, "--evolve", "widen"]).args(mode.split_whitespace());
        let load = load.arg(&source);
        let refused = load.clone().run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("in_the_way"), "{refused}");
        database.sql("DROP VIEW in_the_way");
        load.run(PATIENCE).expect_code(0);
        let stored = format!("SELECT concat_ws(' ', id, w, extra) FROM {table}");
        assert_eq!(database.value(&stored), "1 longer 2.5", "{mode}");
    }
}
