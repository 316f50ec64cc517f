//! `--on-error skip`: what the table takes is stored, and what it does not take is kept byte for byte with
//! its reason.

mod early;
mod foreign;
mod keys;
mod layouts;
mod many;
mod modifiers;
mod no_temp;
mod place;
mod random;
mod reload;
mod sqlstates;
mod stopped;
mod tried;
mod whatever;
mod whose;

use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, Server};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const ROWS: u64 = 20_000;

/// Every reason there is, and where it stands: record, SQLSTATE, column, and the record itself.
const BAD: &[(u64, &str, Option<&str>, &[u8])] = &[
    (1, "22P02", Some("id"), b"one,ann,1.5,2024-01-01,1"),
    (17, "22P04", Some("boss"), b"17,bob,1.5,2024-01-01"),
    (18, "22P04", None, b"18,bob,1.5,2024-01-01,1,more"),
    (500, "22021", Some("name"), b"500,b\xffb,1.5,2024-01-01,1"),
    (501, "22021", Some("name"), b"501,b\x00b,1.5,2024-01-01,1"),
    (2000, "22003", Some("id"), b"99999999999,ann,1.5,2024-01-01,1"),
    (2001, "22001", Some("name"), b"2001,\"too\nlong a name\",1.5,2024-01-01,1"),
    (3000, "23502", Some("name"), b"3000,,1.5,2024-01-01,1"),
    (4000, "23514", None, b"4000,ann,-1.5,2024-01-01,1"),
    (5000, "23505", None, b"4999,ann,1.5,2024-01-01,1"),
    (6000, "23503", None, b"6000,ann,1.5,2024-01-01,77"),
    (7000, "22008", Some("day"), b"7000,ann,1.5,2024-02-30,1"),
    (7001, "22007", Some("day"), b"7001,ann,1.5,tomorrow or so,1"),
    (8000, "23P01", None, b"8000,ann,13,2024-01-01,1"),
    (8003, "23P01", None, b"8003,ann,13,2024-01-01,1"),
    (9000, "P0001", None, b"9000,raise,1.5,2024-01-01,1"),
    (20_000, "22P02", Some("amount"), b"20000,ann,1.5x,2024-01-01,1"),
];

fn record(id: u64) -> Vec<u8> {
    match BAD.iter().find(|(record, ..)| *record == id) {
        Some((.., bytes)) => bytes.to_vec(),
        None if id == 7999 => b"7999,ann,13,2024-01-01,1".to_vec(),
        None => format!("{id},\"n\n{}\",1.5,2024-01-{:02},1", id % 10, id % 28 + 1).into_bytes(),
    }
}

fn records(rows: u64) -> Vec<u8> {
    let mut text = b"id,name,amount,day,boss\n".to_vec();
    for id in 1..=rows {
        text.extend(record(id));
        text.push(b'\n');
    }
    text
}

/// A table that has a reason to refuse each of them.
fn make_table(database: &Database) {
    database.sql(
        "CREATE EXTENSION IF NOT EXISTS btree_gist;
         CREATE TABLE boss (id int PRIMARY KEY);
         INSERT INTO boss VALUES (1);
         CREATE TABLE t (id int PRIMARY KEY, name varchar(10) NOT NULL, amount numeric CHECK (amount > 0), day date,
             boss int REFERENCES boss DEFERRABLE INITIALLY DEFERRED,
             EXCLUDE USING gist (amount WITH =) WHERE (amount = 13));
         CREATE FUNCTION complain() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF new.name = 'raise' THEN RAISE 'a secret of the row'; END IF; RETURN new; END $$;
         CREATE TRIGGER complain BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION complain();",
    );
}

fn load(database: &Database) -> HowdahCommand {
    load_plainly(database).args(["--on-error", "skip"])
}

fn load_plainly(database: &Database) -> HowdahCommand {
    howdah("load")
        .args(["--json", "--chunk-size", "32kB", "--jobs", "2", "--indexes", "keep"])
        .args(["--to", &database.conninfo()])
}

fn told(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr))
}

/// Rows of the ledger: record, first byte, bytes in hex, SQLSTATE, column.
fn kept(database: &Database) -> BTreeMap<u64, (Option<u64>, String, String, Option<String>)> {
    let rows = database.rows(
        "SELECT record, start_byte, encode(bytes, 'hex'), sqlstate, column_name, message FROM howdah.reject",
    );
    let number = |text: &Option<String>| text.as_ref().map(|text| text.parse().unwrap());
    let kept = rows.iter().map(|row| {
        assert!(!row[5].as_ref().unwrap().contains("secret"), "{row:?}");
        let (record, byte) = (number(&row[0]).unwrap(), number(&row[1]));
        (record, (byte, row[2].clone().unwrap(), row[3].clone().unwrap(), row[4].clone()))
    });
    let counted = rows.len();
    let kept: BTreeMap<_, _> = kept.collect();
    assert_eq!(kept.len(), counted, "one row a record");
    kept
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Of two records with the same key either may be the one that is refused: they come from different chunks.
fn check(database: &Database, plain: &[u8]) {
    let stored: u64 = database.value("SELECT count(*) FROM t").parse().unwrap();
    assert_eq!(stored, ROWS - BAD.len() as u64);
    let wrong = database.value(
        "SELECT count(*) FROM t WHERE name <> E'n\\n' || id % 10 AND id <> 7999 OR amount NOT IN (1.5, 13)",
    );
    assert_eq!(wrong, "0");
    let kept = kept(database);
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), BAD.iter().map(|bad| bad.0).collect::<Vec<_>>());
    for (record, sqlstate, column, bytes) in BAD {
        let (byte, told, code, of) = &kept[record];
        assert_eq!(told, &hex(&[bytes, &b"\n"[..]].concat()), "record {record}");
        assert_eq!((code.as_str(), of.as_deref()), (*sqlstate, *column), "record {record}");
        let at = byte.unwrap() as usize;
        assert!(plain[at..].starts_with(bytes), "record {record} at byte {at}");
    }
}

fn skips_every_kind_of_bad_record(major: u32, name: &str, options: &[&str]) {
    let (files, plain) = (Files::new(), records(ROWS));
    let bytes = if name.ends_with(".gz") { gzip(&plain) } else { plain.clone() };
    let source = files.put(name, &bytes);
    let database = Server::shared(major).database();
    make_table(&database);
    let done = load(&database).args(options).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(3);
    check(&database, &plain);
    let summary = told(&done);
    let bad = BAD.len() as u64;
    assert_eq!(
        (&summary["rows_read"], &summary["rows_stored"], &summary["rows_rejected"]),
        (&ROWS.into(), &(ROWS - bad).into(), &bad.into())
    );
    assert_eq!(summary["files"][0]["rows_rejected"], bad);
    assert_eq!(summary["left_out"].as_array().unwrap().len(), BAD.len());
    let chunks = database.value("SELECT sum(rows) || ' ' || sum(rejected) FROM howdah.chunk");
    assert_eq!(chunks, format!("{} {bad}", ROWS - bad));
    assert!(!done.stdout.contains("secret") && !done.stderr.contains("secret"));
}

#[test]
fn bad_records_of_a_plain_file_are_kept_on_postgresql_13() {
    skips_every_kind_of_bad_record(13, "t.csv", &["--format", "csv", "--header"]);
}

#[test]
fn bad_records_of_a_plain_file_are_kept_on_postgresql_15() {
    skips_every_kind_of_bad_record(15, "t.csv", &["--format", "csv", "--header", "--encode", "binary"]);
}

#[test]
fn bad_records_of_a_compressed_file_are_kept_on_postgresql_18() {
    skips_every_kind_of_bad_record(18, "t.csv.gz", &["--format", "csv", "--header", "--encode", "csv"]);
}

/// The dialect is found, and watched: a record of another width contradicts it.
#[test]
fn bad_records_of_a_file_whose_dialect_is_found_are_kept() {
    let files = Files::new();
    let mut text = "id;name;amount\n".to_owned();
    for id in 1..=ROWS {
        text += &match id {
            7000 => "7000;short\n".to_owned(),
            7001 => "seven;ann;1\n".to_owned(),
            15_000 => "15000;ann;1;more\n".to_owned(),
            _ => format!("{id};name {id};{}\n", id * 3),
        };
    }
    let source = files.put("found.csv", text.as_bytes());
    for (options, as_in_file) in [(&[][..], "t"), (&["--ignore-extra"][..], "f")] {
        let database = Server::shared(15).database();
        let columns = if options.is_empty() { "id int, name text, amount int" } else { "id int, name text" };
        database.sql(&format!("CREATE TABLE t ({columns})"));
        let done =
            load(&database).args(options).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 3).to_string(), "{}", done.stderr);
        let kept = database.rows(
            "SELECT record, start_byte, as_in_file, convert_from(bytes, 'UTF8') FROM howdah.reject ORDER BY record",
        );
        let of = |record: u64| {
            let row = kept.iter().find(|row| row[0] == Some(record.to_string())).unwrap();
            row.iter().map(|value| value.clone().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(kept.len(), 3);
        assert_eq!(of(7000)[3], "7000;short\n");
        assert_eq!(of(15_000)[3], "15000;ann;1;more\n");
        // A record that has lost a field on its way is kept as it was sent.
        let seven = of(7001);
        let sent = if as_in_file == "t" { "seven;ann;1\n" } else { "seven\tann\n" };
        assert_eq!((seven[2].as_str(), seven[3].as_str()), (as_in_file, sent));
        let at: usize = seven[1].parse().unwrap();
        assert!(text[at..].starts_with("seven;ann;1\n"));
    }
}

/// A record that has lost a field on its way, among others that have no fault.
#[test]
fn records_that_were_rewritten_on_their_way_are_kept_as_they_were_sent() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note,n\n1,x,1\nseven,y,2\n3,z,3\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, note text)");
        let bad = files.path().join(format!("bad{major}.csv"));
        let options = ["--ignore-extra", "--format", "csv", "--header", "--table", "t"];
        let command =
            load(&database).args(options).args([std::ffi::OsStr::new("--reject-file"), bad.as_os_str()]);
        command.arg(&source).run(PATIENCE).expect_code(3);
        let kept =
            "SELECT record || ' ' || as_in_file || ' ' || convert_from(bytes, 'UTF8') FROM howdah.reject";
        assert_eq!(database.value(kept), "2 false seven\ty\n", "PostgreSQL {major}");
        let sent = std::fs::read_to_string(format!("{}.sent", bad.display())).unwrap();
        assert_eq!(sent, "id\tnote\nseven\ty\n", "PostgreSQL {major}");
    }
}

/// Status and plan say how many there are, where, and what writes them.
#[track_caller]
fn assert_kept_is_told(database: &Database, job: &str, source: &Path) {
    let kept = database.value("SELECT count(*) FROM howdah.reject");
    let told = format!(
        "{kept} rejected records are in the table howdah.reject, written out by: howdah status {job} --to"
    );
    let status =
        howdah("status").args(["--to", &database.conninfo(), job]).run(PATIENCE).expect_code(0).stdout;
    let plan = howdah("plan").args(["--to", &database.conninfo(), "--table", "t", "--on-error", "skip"]);
    let plan = plan.args(["--format", "csv", "--header"]).arg(source).run(PATIENCE).expect_code(0).stdout;
    for text in [&status, &plan] {
        assert!(text.contains(&told) && text.contains(" --reject-file rejected.csv\n"), "{text}");
    }
}

#[test]
fn more_bad_records_than_are_borne_end_the_load_and_a_rerun_goes_on() {
    let (files, plain) = (Files::new(), records(ROWS));
    let source = files.put("t.csv", &plain);
    let database = Server::shared(15).database();
    make_table(&database);
    let run = |options: &[&str], code| {
        load(&database)
            .args(["--format", "csv", "--header"])
            .args(options)
            .args(["--table", "t"])
            .arg(&source)
            .run(PATIENCE)
            .expect_code(code)
    };
    let stopped = run(&["--max-errors", "5"], 1);
    let error = told(&stopped)["error"].clone();
    assert_eq!(error["kind"], "too_many_errors", "{error}");
    assert!(error["message"].as_str().unwrap().contains("--max-errors 5 allows"), "{error}");
    let job = told(&stopped)["job"].as_str().unwrap().to_owned();
    assert_kept_is_told(&database, &job, &source);
    let stopped = run(&["--max-errors", "0.05%"], 1);
    assert!(told(&stopped)["error"]["message"].as_str().unwrap().contains("--max-errors 0.05% allows"));
    let done = run(&["--max-errors", "17"], 3);
    check(&database, &plain);
    let summary = told(&done);
    assert_eq!((&summary["rows_read"], &summary["rows_rejected"]), (&ROWS.into(), &17.into()));
    assert_eq!(database.value("SELECT count(DISTINCT job_id) FROM howdah.chunk"), "1");
}

#[test]
fn a_load_that_stopped_at_a_bad_record_goes_on_without_it_when_told() {
    let (files, plain) = (Files::new(), records(ROWS));
    let source = files.put("t.csv", &plain);
    let database = Server::shared(18).database();
    make_table(&database);
    let stop =
        load_plainly(&database).args(["--format", "csv", "--header"]).args(["--table", "t"]).arg(&source);
    stop.run(PATIENCE).expect_code(1);
    load(&database)
        .args(["--format", "csv", "--header"])
        .args(["--table", "t"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(3);
    check(&database, &plain);
    assert_eq!(database.value("SELECT count(*) FROM howdah.job"), "1");
}

#[test]
fn rejected_records_need_a_ledger() {
    let database = Server::shared(15).database();
    let refused = load(&database)
        .args(["--ledger", "none"])
        .args(["--table", "t"])
        .arg("t.csv")
        .run(PATIENCE)
        .expect_code(2);
    assert!(refused.stderr.contains("--on-error skip needs a ledger"), "{}", refused.stderr);
}

/// What was refused is written as the file is, mended, and loaded with the options it had.
#[test]
fn rejected_records_are_mended_in_a_file_and_loaded() {
    let files = Files::new();
    let mut text = "id;when;name;amount\n".to_owned();
    for id in 1..=ROWS {
        text += &match id {
            300 => "300;2024-01-01;\"semi;colon\";many\n".to_owned(),
            9000 => "9000;2024-13-01;b;2\n".to_owned(),
            12_000 => "12000;2024-01-01;c;-5\n".to_owned(),
            _ => format!("{id};2024-01-01;name {id};1\n"),
        };
    }
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, \"when\" date, amount int CHECK (amount > 0))");
    let rejects = files.path().join("rejects.csv");
    let first = load(&database)
        .arg("--reject-file")
        .arg(&rejects)
        .args(["--table", "t"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(3);
    let job = told(&first)["job"].as_str().unwrap().to_owned();
    let written = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(
        written,
        "\"id\";\"when\";\"name\";\"amount\"\n300;2024-01-01;\"semi;colon\";many\n9000;2024-13-01;b;2\n12000;2024-01-01;c;-5\n"
    );
    // The same from the ledger, later.
    let later = files.path().join("later.csv");
    let status = howdah("status").args([&job, "--to", &database.conninfo(), "--reject-file"]).arg(&later);
    status.run(PATIENCE).expect_code(0);
    assert_eq!(std::fs::read_to_string(&later).unwrap(), written);
    // Two are mended; one is as bad as before.
    std::fs::write(&rejects, written.replace("many", "7").replace("2024-13-01", "2024-12-01")).unwrap();
    let again = load(&database).args(["--rejects", &job[..8], "--table", "public.t"]);
    let again = again.arg(&rejects).run(PATIENCE).expect_code(3);
    let told = told(&again);
    assert_eq!((&told["rows_stored"], &told["rows_rejected"]), (&2.into(), &1.into()));
    assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 1).to_string());
    assert_eq!(
        database.value("SELECT name || amount || \"when\" FROM t WHERE id = 300"),
        "semi;colon72024-01-01"
    );
    let open = database
        .rows("SELECT job_id, convert_from(bytes, 'UTF8') FROM howdah.reject WHERE loaded_by IS NULL");
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(
        (open[0][0].as_deref(), open[0][1].as_deref()),
        (told["job"].as_str(), Some("12000;2024-01-01;c;-5\n"))
    );
    the_rest_is_mended(&database, (&job, told["job"].as_str().unwrap()), &rejects);
}

/// The one that is left is mended in the same file, which still has the other two.
fn the_rest_is_mended(database: &Database, (first, second): (&str, &str), rejects: &Path) {
    let mended = std::fs::read_to_string(rejects).unwrap().replace(";-5", ";5");
    std::fs::write(rejects, &mended).unwrap();
    let reload =
        |job: &str, options: &[&str]| load(database).args(["--rejects", job]).args(options).arg(rejects);
    let count = || database.value("SELECT count(*) FROM t").parse::<u64>().unwrap();
    let refused = reload(first, &[]).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains(&format!("by {second}")), "{refused}");
    assert!(refused.contains(&format!("`--rejects {second}`")), "{refused}");
    assert_eq!(count(), ROWS - 1);
    // Three records where one is left: taken, with a warning.
    let warned = told(&reload(second, &["--job-id", "three"]).run(PATIENCE).expect_code(0));
    assert!(warned["warnings"].to_string().contains("these files had 3 records, and only 1"), "{warned}");
    assert_eq!(count(), ROWS + 2);
    assert_eq!(database.value("SELECT count(*) FROM howdah.reject WHERE loaded_by IS NULL"), "0");
    reload(first, &["--force"]).run(PATIENCE).expect_code(0);
    assert_eq!(count(), ROWS + 5);
    // It never rejected any.
    let other = rejects.with_extension("other");
    std::fs::copy(rejects, &other).unwrap();
    let refused = load(database).args(["--rejects", "three"]).arg(&other);
    let refused = refused.run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("job three has rejected no records"), "{refused}");
}

/// It may not lock the table, as asking beforehand needs.
#[test]
fn a_role_with_rights_on_columns_only_leaves_bad_records_out() {
    let files = Files::new();
    let mut text = "id,n\n".to_owned();
    (0..4000).for_each(|id| text += &format!("{},{id}\n", if id % 50 == 0 { 7 } else { id }));
    let source = files.put("t.csv", text.as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        let role = format!("by_columns_{}", database.name());
        database.sql(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, n int, more text); CREATE ROLE \"{role}\" LOGIN; \
             GRANT INSERT (id, n), SELECT ON t TO \"{role}\"; GRANT CREATE ON DATABASE \"{}\" TO \"{role}\"",
            database.name()
        ));
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let load = howdah("load").args(["--to", &to, "--format", "csv", "--header", "--table", "t"]);
        load.args(["--on-error", "skip", "--chunk-size", "16kB"]).arg(&source).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), "3920", "PostgreSQL {major}");
        database.sql(&format!("DROP OWNED BY \"{role}\" CASCADE; DROP ROLE \"{role}\""));
    }
}

/// Which of the rejected records a file holds that has fewer, nobody can know.
#[test]
fn a_mended_file_without_all_rejected_records_settles_none() {
    let files = Files::new();
    let source = files.put("t.csv", b"id\n1\nx\ny\n2\n");
    let half = files.put("half.csv", b"\"id\"\n3\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY)");
    let first =
        load(&database).args(["--header", "--format", "csv", "--table", "t"]).arg(&source).run(PATIENCE);
    let job = told(&first.expect_code(3))["job"].as_str().unwrap().to_owned();
    let reload = || load(&database).args(["--rejects", &job]);
    let told_of_half = told(&reload().arg(&half).run(PATIENCE).expect_code(0));
    let warnings = told_of_half["warnings"].to_string();
    assert!(warnings.contains("had 1 of the 2 records"), "{told_of_half}");
    let open = "SELECT count(*) FROM howdah.reject WHERE loaded_by IS NULL";
    assert_eq!(database.value(open), "2");
    let whole = files.put("whole.csv", b"\"id\"\n4\n5\n");
    reload().arg(&whole).run(PATIENCE).expect_code(0);
    assert_eq!((database.value(open), database.value("SELECT count(*) FROM t")), ("0".into(), "5".into()));
    let nowhere = load(&database).args([
        "--header",
        "--format",
        "csv",
        "--table",
        "t",
        "--reject-file",
        "/no/such/bad.csv",
    ]);
    let refused = nowhere.arg(&source).run(PATIENCE).expect_code(1);
    assert!(
        refused.stderr.contains("--reject-file /no/such/bad.csv cannot be written"),
        "{}",
        refused.stderr
    );
}

/// NUL bytes are dropped or replaced where they stand, whichever way a file is read; with other faults beside
/// them.
#[test]
fn nul_bytes_are_dropped_or_replaced_and_counted() {
    let files = Files::new();
    let mut plain = b"id,name,day\n".to_vec();
    for id in 1..=ROWS {
        plain.extend(match id {
            50 => b"50,a\0b\0,2024-01-01\n".to_vec(),
            9000 => b"9000,\0,2024-01-01\n".to_vec(),
            9001 => b"9001,too,2024-01-01,many\n".to_vec(),
            9002 => b"9002,bad,2024-31-01\n".to_vec(),
            _ => format!("{id},n{id},2024-01-01\n").into_bytes(),
        });
    }
    let plain_file = files.put("nul.csv", &plain);
    let gzip_file = files.put("nul.csv.gz", &gzip(&plain));
    for (nul, first, second) in [("strip", "ab", ""), ("replace", "a\u{fffd}b\u{fffd}", "\u{fffd}")] {
        for source in [&plain_file, &gzip_file] {
            let database = Server::shared(15).database();
            database.sql("CREATE TABLE t (id int, name text, day date)");
            let run = load(&database).args(["--nul", nul, "--table", "t"]).arg(source);
            let summary = told(&run.run(PATIENCE).expect_code(3));
            let values = database.rows("SELECT name FROM t WHERE id IN (50, 9000) ORDER BY id");
            let stripped = second.is_empty();
            assert_eq!(values[0][0].as_deref(), Some(first), "{nul} {}", source.display());
            assert_eq!(values[1][0].as_deref(), if stripped { None } else { Some(second) }, "{nul}");
            assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 2).to_string());
            assert_eq!((&summary["rows_read"], &summary["rows_rejected"]), (&ROWS.into(), &2.into()));
            assert_eq!(summary["mended"]["nul_bytes"], 2, "{summary}");
            let kept = database
                .rows("SELECT record, convert_from(bytes, 'UTF8') FROM howdah.reject ORDER BY record");
            let many = vec![Some("9001".to_owned()), Some("9001,too,2024-01-01,many\n".to_owned())];
            assert_eq!(
                (&kept[0], kept[1][0].as_deref()),
                (&many, Some("9002")),
                "{nul} {}",
                source.display()
            );
        }
    }
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, day date)");
    let refused = load_plainly(&database).args(["--nul", "reject", "--table", "t"]).arg(&plain_file);
    let refused = told(&refused.run(PATIENCE).expect_code(1));
    assert_eq!((&refused["error"]["record"], &refused["error"]["column"]), (&50.into(), &"name".into()));
}

/// What is advised works.
#[test]
fn a_document_with_the_escape_that_jsonb_refuses_is_kept_or_taken_by_json() {
    let files = Files::new();
    let source = files.put("t.csv", b"1,{}\n2,\"{\"\"a\"\": \"\"\\u0000\"\"}\"\n3,[]\n");
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, doc jsonb)");
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
        for options in [&[][..], &["--atomic"]] {
            let failed = load.clone().args(options).arg(&source).run(PATIENCE).expect_code(1).stderr;
            let hint = "hint: jsonb holds no \\u0000, nor characters that the encoding of the database lacks: --on-error skip keeps";
            for told in ["record 2, ", "column doc", "(SQLSTATE 22P05)", hint] {
                assert!(failed.contains(told), "{told}: {failed}");
            }
        }
        load.clone().args(["--on-error", "skip"]).arg(&source).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), "1 3");
        database.sql("TRUNCATE t; ALTER TABLE t ALTER doc TYPE json");
        load.clone().arg("--force").arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), "3");
    }
}
