//! `--on-error skip` and `--verify` together, where a run goes on behind records that an earlier one has left
//! out.

use super::assert_nothing_left;
use super::skip::{KEPT, NAPS, ROWS, assert_accounts, told};
use crate::indexes::wait_for;
use crate::scene::{END_SESSIONS, Files, PATIENCE, howdah};
use howdah_testkit::Server;

/// A record by its id, with the end of its line.
type RecordOf = fn(u64) -> String;

/// Records are kept as the file has them, or as the server writes their rows, and neither is what is sent.
#[test]
fn records_that_an_earlier_run_has_left_out_do_not_differ() {
    let ways: [(&str, RecordOf, &[&str]); 4] = [
        ("id,more,n\n", |id| format!("{id},x,{}\n", id % 50), &["--ignore-extra"]),
        ("id||note||n\n", |id| format!("{id}||note {id}||{}\n", id % 50), &[]),
        (
            "id||note||n\n",
            |id| if id == 7 { "7||short\n".to_owned() } else { format!("{id}||note {id}||{}\n", id % 50) },
            &["--lenient"],
        ),
        // Behind a line that is no record the numbers of the records do not tell the rows.
        (
            "id||note||n\n",
            |id| format!("{}{id:06}||note {id}||{}\n", if id == 7 { "\n" } else { "" }, id % 50),
            &["--lenient"],
        ),
    ];
    for (header, record, options) in ways {
        let files = Files::new();
        let csv = (1..=ROWS).fold(header.to_owned(), |csv, id| csv + &record(id));
        let source = files.put("a.csv", csv.as_bytes());
        let database = Server::shared(15).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, note text, n int CHECK (n > 0)); \
             CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END'; \
             CREATE TRIGGER nap AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nap()",
        );
        let options =
            [options, &["--atomic", "--verify", "checksum", "--chunk-size", "64kB", "--jobs", "2"]].concat();
        let to = database.conninfo();
        let command = howdah("load").args(["--table", "t", "--on-error", "skip", "--json", "--to", &to]);
        let command = command.args(options.iter().copied()).arg(&source);
        let mut running = command.spawn();
        let hit = wait_for(&database, &mut running, NAPS, 1);
        let killed = running.kill();
        assert!(hit, "{options:?} {killed:?}");
        database.sql(END_SESSIONS);
        let rejected: u64 = database.value(KEPT).parse().unwrap();
        assert!(rejected >= ROWS / 50, "{rejected} {options:?}");
        database.sql("DROP TRIGGER nap ON t");
        let done = command.run(PATIENCE).expect_code(3);
        let summary = told(&done);
        assert_eq!(summary["rows_stored_before"], ROWS - rejected, "{options:?} {}", done.stderr);
        assert_accounts(&database, &summary, (ROWS, rejected), &done.stderr);
        assert_eq!(summary["verified"]["rows"], ROWS - rejected, "{options:?}");
        let by = if csv.contains("\n\n") { "count" } else { "checksum" };
        assert_eq!(done.stderr.contains("values not compared"), by == "count", "{}", done.stderr);
        assert_eq!(summary["verified"]["by"], by, "{options:?}");
        assert_eq!(database.value("SELECT verified FROM howdah.job"), by, "{options:?}");
        assert_nothing_left(&database, &done.stderr);
    }
}

/// What an index computes fails for one record, which keeps no other from being looked at.
#[test]
fn a_record_whose_key_cannot_be_computed_is_left_out_alone() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n0,1\n5,2\n5,3\n-1,4\n-1,4\n2,7\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (a int, b int); CREATE UNIQUE INDEX ON t ((10 / a)) WHERE b < 9; \
         CREATE UNIQUE INDEX ON t (b) WHERE sqrt(a) > 1",
    );
    let to = database.conninfo();
    let run = |verb: &str, options: &[&str]| {
        let command =
            howdah(verb).args(["--format", "csv", "--header", "--table", "t", "--json", "--to", &to]);
        command.args(options.iter().copied()).arg(&source).run(PATIENCE).expect_code(3)
    };
    let checked = told(&run("check", &[]));
    let states: Vec<&str> =
        checked["findings"].as_array().unwrap().iter().map(|it| it["sqlstate"].as_str().unwrap()).collect();
    assert_eq!(states, ["2201F", "22012"], "{checked:#}");
    let stored = "SELECT string_agg(b::text, ' ' ORDER BY b) FROM t";
    let done = run("load", &["--on-error", "skip", "--atomic"]);
    assert_eq!(database.value(stored), "2 7", "{}", done.stderr);
    // Of indexes that are no keys as well.
    database.sql(
        "DROP TABLE t; CREATE TABLE t (a int, b int); CREATE INDEX ON t ((10 / a)); CREATE INDEX ON t (b) WHERE sqrt(a) > 1",
    );
    let done = run("load", &["--on-error", "skip", "--atomic", "--force"]);
    assert_eq!(database.value(stored), "2 3 7", "{}", done.stderr);
}
