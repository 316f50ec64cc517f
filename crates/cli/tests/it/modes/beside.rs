//! Others write the keys of the files, or make and drop indexes, while a load asks what the table has.

use super::skip::{skipping, told};
use super::{assert_nothing_left, load};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, Server};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const ROWS: u64 = 20_000;
/// Longer than a load of them takes, three times over.
const WRITTEN: u64 = 150;
const EACH_MS: u64 = 20;

/// The table refuses more each time that the rows are brought in.
#[test]
fn keys_that_others_write_while_rows_come_in_are_left_out_one_after_the_other() {
    let text: String = (1..=ROWS).fold("id,note\n".to_owned(), |mut text, id| {
        let _ = writeln!(text, "{id},n");
        text
    });
    let files = Files::new();
    let source = files.put("a.csv", text.as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, note text)");
        let done = std::thread::scope(|scope| {
            let load = skipping(&database, &source, &["--atomic"]);
            let loading = scope.spawn(move || load.run(PATIENCE).expect_code(3));
            let staged = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                          WHERE nspname = 'howdah' AND relname LIKE 'staging%' AND relkind = 'r'";
            assert!(database.wait_for(staged, 1, || !loading.is_finished()));
            let mut written = 0;
            // Those of the end, which are asked about last.
            while !loading.is_finished() && written < WRITTEN {
                let id = ROWS - written;
                written += u64::from(database.try_sql(&format!("INSERT INTO t VALUES ({id}, 'w')")).is_ok());
                std::thread::sleep(Duration::from_millis(EACH_MS));
            }
            loading.join().unwrap()
        });
        let told = told(&done);
        let (stored, rejected) =
            (told["rows_stored"].as_u64().unwrap(), told["rows_rejected"].as_u64().unwrap());
        assert_eq!(stored + rejected, ROWS, "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string(), "PostgreSQL {major}");
        let kept = "SELECT count(*) FROM howdah.reject WHERE sqlstate = '23505'";
        assert_eq!(database.value(kept), rejected.to_string(), "PostgreSQL {major}");
        assert_nothing_left(&database, "written beside");
    }
}

/// Definitions are told of what is there at that moment, which may be less than what the query has found.
#[test]
fn what_others_make_and_drop_meanwhile_ends_no_load() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v\n1,1\n2,2\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id); \
             CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100)",
        );
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for [make, drop] in [
                ["CREATE INDEX a ON t (v)", "DROP INDEX IF EXISTS a"],
                [
                    "ALTER TABLE low ADD CONSTRAINT u UNIQUE (v)",
                    "ALTER TABLE low DROP CONSTRAINT IF EXISTS u",
                ],
                [
                    "CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (200)",
                    "DROP TABLE IF EXISTS high",
                ],
            ] {
                let (database, over) = (&database, &over);
                scope.spawn(move || {
                    while !over.load(Relaxed) {
                        // Where a load has the table to itself, this fails.
                        let _ = database.try_sql(make);
                        let _ = database.try_sql(drop);
                    }
                });
            }
            let ran = std::panic::catch_unwind(|| {
                for _ in 0..6 {
                    for verb in ["plan", "check"] {
                        let command = howdah(verb).args(["--format", "csv", "--header", "--table", "t"]);
                        let told = command.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE);
                        // A check finds that the rows are there already.
                        assert!(
                            matches!(told.code, Some(0 | 3)),
                            "PostgreSQL {major}, {verb}: {}",
                            told.stderr
                        );
                    }
                    let load = load(&database, &[&source]).args(["--mode", "truncate", "--force"]);
                    load.run(PATIENCE).expect_code(0);
                }
            });
            over.store(true, Relaxed);
            ran.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
        });
        assert_eq!(database.value("SELECT count(*) FROM t"), "2", "PostgreSQL {major}");
        assert_nothing_left(&database, "dropped beside");
    }
}
