//! Small files share transactions: each is stored once all the same, and what is wrong with one is said of
//! that one.

use crate::round_trips::BY_THE_CLOCK;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Fault, Finished, HttpFailure, MAJORS, Proxy, S3, Server};
use serde_json::Value;
use std::ops::Range;

/// Enough for more than one transaction of each thread that reads.
const FILES: u64 = 600;
const HEADER: &str = "id,amount,note\n";

fn told(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Three rows that no other file has.
fn rows(no: u64) -> String {
    let row = |id: u64| format!("{id},{}.50,\"note, {id}\"\n", id % 7);
    (3 * no..3 * no + 3).map(row).collect()
}

fn put_all(files: &Files, count: u64) {
    for no in 0..count {
        files.put(&format!("part{no:04}.csv"), format!("{HEADER}{}", rows(no)).as_bytes());
    }
}

fn make_table(database: &Database) {
    database.sql("CREATE TABLE t (id bigint, amount numeric, note text)");
}

/// All rows, once each, each file with its own chunk; how many transactions have stored them.
#[track_caller]
fn assert_all_in(database: &Database, files: u64) -> u64 {
    let rows = "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || min(id) || ' ' || max(id) FROM t";
    let wanted = format!("{0} {0} 0 {1}", 3 * files, 3 * files - 1);
    assert_eq!(database.value(rows), wanted);
    let chunks = "SELECT count(*) || ' ' || count(DISTINCT file_no) || ' ' || min(rows) || ' ' || max(rows) FROM howdah.chunk";
    assert_eq!(database.value(chunks), format!("{files} {files} 3 3"));
    database.value("SELECT count(DISTINCT xid) FROM howdah.chunk").parse().unwrap()
}

#[test]
fn many_small_files_take_few_transactions_in_every_form() {
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"]) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        put_all(&files, FILES);
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--encode", form]);
        load.arg(files.path()).run(PATIENCE).expect_code(0);
        let transactions = assert_all_in(&database, FILES);
        assert!(transactions < FILES / 4, "{transactions} for {FILES} files as {form}");
    }
}

/// Of a file far away a transaction of its own would cost three round trips.
#[test]
fn a_further_small_file_costs_a_load_no_round_trip() {
    let flights = |count: u64| {
        let (files, database) = (Files::new(), Server::shared(15).database());
        make_table(&database);
        put_all(&files, count);
        let proxy = Proxy::before_server(Server::shared(15));
        proxy.set(Fault::Delay(std::time::Duration::from_millis(10)));
        proxy.leave_out_of_flights(&BY_THE_CLOCK);
        let to = database.conninfo_through(&proxy);
        let load = howdah("load").args(["--to", &to, "--table", "t", "--jobs", "1"]);
        load.arg(files.path()).run(PATIENCE).expect_code(0);
        proxy.flights()
    };
    let (few, many) = (flights(4), flights(400));
    assert!(many < few + 396 / 4, "{few} round trips for 4 files, {many} for 400");
}

/// How the record of such a file would end, it does not tell.
#[test]
fn files_of_one_value_without_a_line_ending_share_transactions() {
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"]) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        database.sql("CREATE TABLE t (note text)");
        database.sql("CREATE TABLE wanted (LIKE t)");
        for no in 0..FILES {
            let bytes = match no % 50 {
                48 => r"\.".to_owned(),
                49 => "\"a\rb\"".to_owned(),
                _ => format!("note {no}"),
            };
            files.put(&format!("part{no:04}.csv"), bytes.as_bytes());
            database.copy_in("COPY wanted FROM STDIN (FORMAT csv)", bytes.into_bytes()).unwrap();
        }
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--encode", form]);
        load.args(["--format", "csv", "--header=false"]).arg(files.path()).run(PATIENCE).expect_code(0);
        assert_eq!(database.digest("t"), database.digest("wanted"), "{form}");
        let transactions: u64 =
            database.value("SELECT count(DISTINCT xid) FROM howdah.chunk").parse().unwrap();
        assert!(transactions < FILES / 4, "{form}: {transactions}");
    }
}

/// What may pass and does not is not sent again once for each file before it.
#[test]
fn a_record_that_cannot_be_locked_costs_few_tries() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    make_table(&database);
    put_all(&files, 250);
    database.sql("CREATE SEQUENCE calls");
    database.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('calls'); \
         IF NEW.id = 720 THEN RAISE 'locked' USING ERRCODE = '55P03'; END IF; RETURN NEW; END $$",
    );
    database.sql("CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()");
    let load = howdah("load").args([
        "--to",
        &database.conninfo(),
        "--table",
        "t",
        "--retry-for",
        "1s",
        "--jobs",
        "1",
    ]);
    load.arg(files.path()).run(PATIENCE).expect_code(1);
    // All again for each of the 240 files before it: 86,000.
    let calls: u64 = database.value("SELECT last_value FROM calls").parse().unwrap();
    assert!(calls < 10_000, "{calls}");
}

/// What ends a file must not go on in the next one.
#[test]
fn ends_of_files_stay_ends_of_records() {
    let odd: [(&str, &[u8]); 8] = [
        ("without_line_ending", b"id,amount,note\n1,1,a"),
        ("other_line_endings", b"id,amount,note\r\n2,2,b\r\n3,3,c"),
        ("empty_last_value", b"id,amount,note\n4,4,"),
        ("quoted_last_value", b"id,amount,note\n5,5,\"\""),
        ("quoted_line_ending", b"id,amount,note\n6,6,\"x\n\"\n"),
        ("only_a_header", b"id,amount,note\n"),
        ("backslash", b"id,amount,note\n7,7,\\"),
        ("plain", b"id,amount,note\n8,8,d\n"),
    ];
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"]) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        database.sql("CREATE TABLE wanted (LIKE t)");
        for round in 0..4 {
            for (name, bytes) in odd {
                files.put(&format!("{name}_{round}.csv"), bytes);
                let sql = "COPY wanted FROM STDIN (FORMAT csv, HEADER true)";
                database.copy_in(sql, bytes.to_vec()).unwrap();
            }
        }
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--encode", form]);
        let load = load.args(["--format", "csv", "--header"]);
        load.arg(files.path()).run(PATIENCE).expect_code(0);
        assert_eq!(database.digest("t"), database.digest("wanted"), "{form}");
    }
}

/// Behind a quote that is not closed, the records of the next file would be values.
#[test]
fn an_open_quote_ends_with_its_file() {
    for major in MAJORS {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        put_all(&files, 20);
        files.put("part0007.csv", b"id,amount,note\n21,1,\"a\n22,1,b\n");
        files.put("part0008.csv", b"id,amount,note\n24,1,c\"\n25,1,\"d\"\n");
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--json"]);
        let load = load.args(["--format", "csv", "--header", "--on-error", "skip"]);
        let done = load.arg(files.path()).run(PATIENCE).expect_code(3);
        assert_eq!(told(&done)["rows_rejected"].as_u64(), Some(2), "{}", done.stdout);
        let wrong = "SELECT count(*) FROM t WHERE note LIKE E'%\\n%' OR id IN (21, 22)";
        assert_eq!(database.value(wrong), "0");
    }
}

#[test]
fn a_bad_record_is_told_of_its_file_and_skipped_alone() {
    for major in MAJORS {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        put_all(&files, 100);
        files.put("part0042.csv", format!("{HEADER}126,0,a\nnone,0,b\n128,0,c\n").as_bytes());
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header", "--json"]);
        let load = load.args(["--format", "csv"]).arg(files.path());
        let failed = load.run(PATIENCE).expect_code(1);
        let error = &told(&failed)["error"];
        let file = error["place"]["file"].as_str().or(error["file"].as_str()).unwrap_or_default();
        assert!(file.ends_with("part0042.csv"), "{}", failed.stdout);
        assert!(failed.stderr.contains("record 2"), "{}", failed.stderr);
        // The same job goes on.
        let done = load.args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
        assert_eq!(told(&done)["rows_rejected"].as_u64(), Some(1), "{}", done.stdout);
        let rows = "SELECT count(*) || ' ' || count(DISTINCT id) FROM t";
        assert_eq!(database.value(rows), "299 299");
        assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "1");
    }
}

/// What else would have come together with it does so before and behind it.
#[test]
fn a_bad_record_leaves_most_files_together() {
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"]) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        database.sql("ALTER TABLE t ADD CHECK (amount >= 0)");
        put_all(&files, 240);
        files.put("part0100.csv", format!("{HEADER}300,0,a\n301,-1,b\n302,0,c\n").as_bytes());
        let load =
            howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header", "--jobs", "1"]);
        let load = load.args(["--format", "csv", "--encode", form, "--on-error", "skip"]);
        load.arg(files.path()).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t"), "719 719");
        let reject = "SELECT record || ' ' || regexp_replace(location, '.*/', '') FROM howdah.reject NATURAL JOIN howdah.file";
        assert_eq!(database.value(reject), "2 part0100.csv", "PostgreSQL {major}");
        let transactions = "SELECT count(DISTINCT xid) FROM howdah.chunk";
        let transactions: u64 = database.value(transactions).parse().unwrap();
        assert!(transactions < 10, "{form}: {transactions}");
    }
}

/// The server tells where each of them is, so that little is tried in vain.
#[test]
fn many_bad_records_cost_about_one_try_each() {
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"].into_iter().cycle()) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        database.sql("ALTER TABLE t ADD CHECK (amount >= 0)");
        put_all(&files, 400);
        let bad: Vec<u64> = (7..400).step_by(20).collect();
        for no in &bad {
            let id = 3 * no;
            // A line ending in quotes counts as a line to COPY.
            let records = format!("{id},0,\"a\n\"\n{},-1,b\n{},0,c\n", id + 1, id + 2);
            files.put(&format!("part{no:04}.csv"), format!("{HEADER}{records}").as_bytes());
        }
        let load =
            howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header", "--jobs", "1"]);
        let load = load.args(["--format", "csv", "--encode", form, "--on-error", "skip"]);
        load.arg(files.path()).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t"), "1180 1180");
        assert_eq!(database.value("SELECT count(*) || ' ' || sum(rows) FROM howdah.chunk"), "400 1180");
        let rejects = "SELECT string_agg(regexp_replace(location, '.*/part0*|[.]csv', '', 'g') || ':' || record, ' ' ORDER BY location) \
                       FROM howdah.reject NATURAL JOIN howdah.file";
        let wanted: Vec<String> = bad.iter().map(|no| format!("{no}:2")).collect();
        assert_eq!(database.value(rejects), wanted.join(" "), "PostgreSQL {major}");
        let failed = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        let failed: usize = database.value(failed).parse().unwrap();
        assert!(failed < 2 * bad.len(), "PostgreSQL {major}, {form}: {failed}");
    }
}

/// Loads 40 files again and again, each time with another COMMIT of these cut off behind or before it; what
/// each load tells.
fn with_lost_commits(skips: Range<u64>, options: &[&str]) -> Vec<Value> {
    let faults = skips.flat_map(|skip| [Fault::CutAfterCommit { skip }, Fault::CutBeforeCommit { skip }]);
    let run = |fault| {
        let (files, database) = (Files::new(), Server::shared(15).database());
        make_table(&database);
        put_all(&files, 40);
        let proxy = Proxy::before_server(Server::shared(15));
        proxy.set_times(fault, 1);
        let to = database.conninfo_through(&proxy);
        let load = howdah("load").args(["--to", &to, "--table", "t", "--json"]).args(options);
        let done = load.arg(files.path()).run(PATIENCE).expect_code(0);
        assert_all_in(&database, 40);
        told(&done)
    };
    faults.map(run).collect()
}

#[test]
fn lost_answers_to_commit_double_nothing() {
    with_lost_commits(0..6, &[]);
}

#[test]
fn what_came_together_is_compared_together() {
    for by in ["count", "checksum"] {
        let (files, database) = (Files::new(), Server::shared(18).database());
        make_table(&database);
        put_all(&files, 50);
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--json"]);
        let load = load.args(["--verify", by]).arg(files.path());
        database.sql(
            "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 NEW.amount := 9; RETURN CASE WHEN NEW.id = 60 THEN NEW END; END $$;
             CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 DELETE FROM t WHERE id = 60; RETURN NULL; END $$",
        );
        let trigger = match by {
            "count" => "AFTER INSERT ON t FOR EACH ROW WHEN (NEW.id = 60) EXECUTE FUNCTION lose()",
            _ => "BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 60) EXECUTE FUNCTION change()",
        };
        database.sql(&format!("CREATE TRIGGER spoil {trigger}"));
        let failed = load.run(PATIENCE).expect_code(1);
        assert_eq!(told(&failed)["error"]["kind"], "differs", "{}", failed.stdout);
        assert!(failed.stderr.contains("in the same transaction"), "{}", failed.stderr);
        // None of them is named for another.
        assert!(failed.stderr.contains(".csv: public.t: of its records"), "{}", failed.stderr);
        database.sql("DROP TRIGGER spoil ON t; TRUNCATE t");
        let done = load.args(["--force"]).run(PATIENCE).expect_code(0);
        assert_eq!(told(&done)["verified"]["rows"].as_u64(), Some(150), "{}", done.stdout);
        assert_eq!(told(&done)["verified"]["by"], by);
        assert!(database.value("SELECT count(DISTINCT xid) FROM howdah.chunk").parse::<u64>().unwrap() < 25);
    }
}

/// A temporary table for each of them would leave its rows in the catalogs behind.
#[test]
fn files_are_read_again_into_one_table_a_session() {
    for (major, form) in MAJORS.into_iter().zip(["csv", "text", "binary"].into_iter().cycle()) {
        let (files, database) = (Files::new(), Server::shared(major).database());
        make_table(&database);
        database.sql(
            "ALTER TABLE t ADD CHECK (amount >= 0); CREATE SEQUENCE made;
             CREATE FUNCTION count_made() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
                 PERFORM nextval('made') FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%howdah_read'; END $$;
             CREATE EVENT TRIGGER count_made ON ddl_command_end WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION count_made()",
        );
        put_all(&files, FILES);
        // One that is too large to come with others, in several chunks, and one that does not come in whole.
        files.put("part0100.csv", format!("{HEADER}300,0,a\n301,-1,b\n302,0,c\n").as_bytes());
        let large: String = (0..4000).map(|no| format!("{},1,large\n", 10_000 + no)).collect();
        files.put("part0200.csv", format!("{HEADER}{large}").as_bytes());
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header", "--json"]);
        let load = load.args(["--format", "csv", "--encode", form, "--jobs", "1", "--chunk-size", "16kB"]);
        let load = load.args(["--on-error", "skip", "--verify", "checksum"]).arg(files.path());
        let verified = told(&load.run(PATIENCE).expect_code(3))["verified"].clone();
        let rows = 3 * (FILES - 1) - 1 + 4000;
        assert_eq!(verified["rows"].as_u64(), Some(rows), "{verified}");
        assert!(verified["checksum"].is_string(), "{verified}");
        assert_eq!(database.value("SELECT last_value FROM made"), "1", "PostgreSQL {major}");
    }
}

/// Commits of the comparison are among them.
#[test]
fn what_is_read_again_counts_once_where_the_connection_is_lost() {
    for summary in with_lost_commits(2..10, &["--verify", "checksum"]) {
        assert_eq!(summary["verified"]["rows"].as_u64(), Some(120), "{summary}");
    }
}

/// Of an object far away that is small, what the plan has read is all there is to load.
#[test]
fn a_small_object_is_asked_for_once() {
    const OBJECTS: u64 = 90;
    let (s3, database) = (S3::start(), Server::shared(15).database());
    make_table(&database);
    for no in 0..OBJECTS {
        s3.put("small", &format!("part{no:04}.csv"), format!("{HEADER}{}", rows(no)).as_bytes());
    }
    let proxy = Proxy::before_s3(&s3);
    // Counts, and lets all of them through.
    proxy.set(Fault::Http { every: u64::MAX, failure: HttpFailure::Reset });
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "s3://small/*.csv"]);
    load.envs(s3.env_through(&proxy)).run(PATIENCE).expect_code(0);
    assert_all_in(&database, OBJECTS);
    assert_eq!(proxy.gets(), OBJECTS);
}
