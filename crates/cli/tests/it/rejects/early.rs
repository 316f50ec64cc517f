//! Files that are not what the table is for: a load ends when the table refuses all of their first thousand
//! records.

use super::{load, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;

#[test]
fn a_file_of_nothing_but_bad_records_ends_the_load_early() {
    let files = Files::new();
    let text: String = (0..200_000).map(|no| format!("x{no},y\n")).collect();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    // What the client can tell, what the server says of values, and what COPY alone finds.
    for table in ["(a int, b int)", "(a text CHECK (a = 'a'), b text)", "(a text PRIMARY KEY, b text UNIQUE)"]
    {
        database.sql(&format!("DROP TABLE IF EXISTS t; CREATE TABLE t {table}"));
        if table.contains("UNIQUE") {
            database.sql("INSERT INTO t VALUES ('', 'y')");
        }
        let stopped = load(&database)
            .args(["--format", "csv"])
            .args(["--table", "t"])
            .arg(&source)
            .run(PATIENCE)
            .expect_code(1);
        let error = told(&stopped)["error"].clone();
        assert_eq!(error["kind"], "too_many_errors", "{table}: {error}");
        assert!(error["message"].as_str().unwrap().contains("refuses all of the first"), "{table}: {error}");
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "0");
    }
}

#[test]
fn chunks_behind_the_first_wait_for_it_however_long_it_takes() {
    let files = Files::new();
    let text: String = (0..200_000).map(|no| format!("x{no},y\n")).collect();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql(
        "CREATE FUNCTION refused(a text) RETURNS bool LANGUAGE plpgsql AS
         $$BEGIN IF a = 'x0' THEN PERFORM pg_sleep(6); END IF; RETURN false; END$$;
         CREATE TABLE t (a text CHECK (refused(a)), b text)",
    );
    let stopped = load(&database).args(["--format", "csv"]).args(["--table", "t"]).arg(&source).run(PATIENCE);
    let error = told(&stopped.expect_code(1))["error"].clone();
    assert_eq!(error["kind"], "too_many_errors", "{error}");
    assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "0");
}

/// The last chunk, which is smaller, is made ready before it: the one session would wait with it for nobody.
#[test]
fn a_chunk_behind_the_first_is_not_stored_before_it() {
    let files = Files::new();
    let record = |no: u32| if no % 10 == 3 { format!("{no},x\n") } else { format!("{no},a text,{no},1.5\n") };
    let text: String = (0..60_000).map(record).collect();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int, name varchar(20), n int, x numeric)");
    for _ in 0..4 {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
        let load = load.args(["--on-error", "skip", "--jobs", "1", "--force"]);
        load.arg(&source).run(PATIENCE).expect_code(3);
        let order =
            "SELECT string_agg(chunk_no::text, ' ' ORDER BY stored_at) FROM howdah.chunk GROUP BY job_id";
        for row in database.rows(order) {
            assert!(row[0].as_deref().unwrap().starts_with("0 1"), "{row:?}");
        }
    }
}

#[test]
fn good_records_behind_a_thousand_bad_ones_make_them_no_better() {
    let files = Files::new();
    let database = Server::shared(15).database();
    // What the client can tell, and what the server says.
    for table in ["(a int, b text)", "(a text CHECK (a = '1'), b text)"] {
        for (bad, code, stored) in [(1000, 1, "0"), (999, 3, "5000")] {
            database.sql(&format!("DROP TABLE IF EXISTS t; CREATE TABLE t {table}"));
            let source = files.put("t.csv", ["x,y\n".repeat(bad), "1,y\n".repeat(5000)].concat().as_bytes());
            let ended = load(&database)
                .args(["--format", "csv", "--force"])
                .args(["--table", "t"])
                .arg(&source)
                .run(PATIENCE)
                .expect_code(code);
            if code == 1 {
                let error = told(&ended)["error"].clone();
                assert_eq!(error["kind"], "too_many_errors", "{table}: {error}");
            }
            assert_eq!(database.value("SELECT count(*) FROM t"), stored, "{table}, {bad} bad");
        }
    }
}

/// Rows of another file are in by the time that those of the first one are refused.
#[test]
fn the_first_thousand_are_those_of_the_first_file_whatever_is_stored_meanwhile() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let put = |name: &str, bad: usize| {
        files.put(&format!("{name}.csv"), format!("a,b\n{}", "x,y and more\n".repeat(bad)).as_bytes())
    };
    files.put("good.csv", format!("a,b\n{}", "1,y\n".repeat(100)).as_bytes());
    for (bad, code) in [(1000, 1), (999, 3)] {
        put("bad", bad);
        database.sql(
            "DROP TABLE IF EXISTS bad, good; CREATE TABLE bad (a text CHECK (a = '1'), b text); CREATE TABLE good (LIKE bad); \
             CREATE OR REPLACE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN WHILE NOT EXISTS (SELECT FROM good) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END'; \
             CREATE TRIGGER pause BEFORE INSERT ON bad FOR EACH STATEMENT EXECUTE FUNCTION pause()",
        );
        let command = load(&database).args(["--force"]).arg(files.path().join("{table}.csv"));
        command.run(PATIENCE).expect_code(code);
        assert_eq!(database.value("SELECT count(*) FROM good"), "100");
    }
}
