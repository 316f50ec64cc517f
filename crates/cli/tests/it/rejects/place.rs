//! Where rejected records are written: never over a source, and whole or not at all.

use super::{load, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Server, SmallDisk};
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

const BAD: &[u8] = b"id,n\n1,5\nx,7\n";
const GOOD: &[u8] = b"id,n\n1,5\n2,7\n";

fn table() -> Database {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, n int)");
    database
}

fn skip(database: &Database, source: &Path, bad: &Path) -> HowdahCommand {
    load(database).args(["--table", "t", "--reject-file"]).arg(bad).arg(source)
}

#[test]
fn a_source_is_no_place_for_rejected_records() {
    let (files, database) = (Files::new(), table());
    std::fs::create_dir(files.path().join("in")).unwrap();
    let source = files.put("in/a.csv", BAD);
    let (link, folder) = (files.path().join("link.csv"), files.path().join("in"));
    symlink(&source, &link).unwrap();
    let fresh = folder.join("bad.csv");
    for (given, bad) in [
        (&source, &source),
        (&source, &link),
        (&link, &source),
        (&folder, &fresh),
        (&folder.join("*"), &fresh),
    ] {
        let check = howdah("check").args(["--to", &database.conninfo(), "--table", "t", "--reject-file"]);
        for command in [skip(&database, given, bad), check.arg(bad).arg(given)] {
            let refused = command.run(PATIENCE).expect_code(2).stderr;
            assert!(refused.contains("would be one of the sources"), "{refused}");
        }
    }
    let done = skip(&database, &folder, &files.path().join("bad.csv")).run(PATIENCE).expect_code(3);
    let job = told(&done)["job"].as_str().unwrap().to_owned();
    let status = howdah("status").args([&job, "--to", &database.conninfo(), "--reject-file"]).arg(&link);
    let refused = status.run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("is a source of the job"), "{refused}");
    assert_eq!(std::fs::read(&source).unwrap(), BAD);
}

/// What is written beside the named file is looked at as well.
#[test]
fn a_source_named_as_records_that_were_sent_stays() {
    let (files, database) = (Files::new(), table());
    let text = b"id,n,more\n1,5,a\nx,7,b\n";
    let source = files.put("a.csv.sent", text);
    let options = ["--format", "csv", "--header", "--ignore-extra"];
    let done = skip(&database, &source, &files.path().join("a.csv")).args(options).run(PATIENCE);
    let told = told(&done.expect_code(2));
    assert_eq!((&told["error"]["kind"], &told["rows_rejected"]), (&"usage".into(), &1.into()), "{told}");
    assert_eq!(std::fs::read(&source).unwrap(), text);
}

/// A file of an earlier run would be taken for this one's.
#[test]
fn an_older_file_of_rejected_records_goes_when_there_are_none() {
    let (files, database) = (Files::new(), table());
    let (source, bad) = (files.put("a.csv", BAD), files.path().join("bad.csv"));
    let sent = files.put("bad.csv.sent", b"id\tn\nx\t7\n");
    let other = files.put("bad.csv.public.other", b"id\n");
    skip(&database, &source, &bad).run(PATIENCE).expect_code(3);
    assert!(bad.exists() && !sent.exists());
    files.put("a.csv", GOOD);
    skip(&database, &source, &bad).run(PATIENCE).expect_code(0);
    assert!(!bad.exists() && other.exists());
    files.put("bad.csv", b"id,n\nx,7\n");
    let check = howdah("check").args(["--to", &database.conninfo(), "--table", "t", "--reject-file"]);
    check.arg(&bad).arg(&source).run(PATIENCE).expect_code(0);
    assert!(!bad.exists());
}

/// Moved into its place when it is whole, where something can be moved to.
#[test]
fn rejected_records_are_written_through_links_and_to_devices() {
    let (files, database) = (Files::new(), table());
    let source = files.put("a.csv", BAD);
    let (bad, link) = (files.put("bad.csv", b"older"), files.path().join("link"));
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&bad, &link).unwrap();
    let done = skip(&database, &source, &link).run(PATIENCE).expect_code(3);
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "\"id\",\"n\"\nx,7\n");
    assert_eq!(bad.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 3);
    let job = told(&done)["job"].as_str().unwrap().to_owned();
    let status = howdah("status").args([&job, "--to", &database.conninfo(), "--reject-file", "/dev/stdout"]);
    let shown = status.run(PATIENCE).expect_code(0).stdout;
    assert!(shown.starts_with("\"id\",\"n\"\nx,7\n"), "{shown}");
}

/// Others may write to the folder. What they put there is neither written to nor followed, and what is
/// rejected is for the caller's eyes.
#[test]
fn rejected_records_go_nowhere_that_somebody_else_has_laid_out() {
    const RECORDS: &str = "\"id\",\"n\"\nx,7\n";
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let (files, database) = (Files::new(), table());
    let source = files.put("a.csv", BAD);
    let (bad, unfinished) = (files.path().join("bad.csv"), files.path().join("bad.csv.unfinished"));
    skip(&database, &source, &bad).run(PATIENCE).expect_code(3);
    assert_eq!((std::fs::read_to_string(&bad).unwrap().as_str(), mode(&bad)), (RECORDS, 0o600));
    std::fs::remove_file(&bad).unwrap();

    let precious = files.put("precious", b"mine");
    symlink(&precious, &unfinished).unwrap();
    skip(&database, &source, &bad).arg("--force").run(PATIENCE).expect_code(3);
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    assert_eq!((std::fs::read_to_string(&bad).unwrap().as_str(), mode(&bad)), (RECORDS, 0o600));
    assert!(!bad.is_symlink() && !unfinished.exists());
    std::fs::remove_file(&bad).unwrap();

    std::fs::write(&unfinished, b"").unwrap();
    std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o666)).unwrap();
    let mut opened = std::fs::File::open(&unfinished).unwrap();
    skip(&database, &source, &bad).arg("--force").run(PATIENCE).expect_code(3);
    let mut read = String::new();
    opened.read_to_string(&mut read).unwrap();
    assert_eq!((read.as_str(), mode(&bad)), ("", 0o600));

    // Only root can play somebody else.
    if lchown(&bad, Some(65_534), Some(65_534)).is_err() {
        return;
    }
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o666)).unwrap();
    skip(&database, &source, &bad).arg("--force").run(PATIENCE).expect_code(3);
    assert_eq!((std::fs::read_to_string(&bad).unwrap().as_str(), mode(&bad)), (RECORDS, 0o600));
    let link = files.path().join("link.csv");
    symlink(&precious, &link).unwrap();
    lchown(&link, Some(65_534), Some(65_534)).unwrap();
    let refused = skip(&database, &source, &link).arg("--force").run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("link.csv is a link of another user"), "{refused}");
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
}

/// As many as there are, and also those of a pipe, which is not read again.
#[test]
fn records_behind_some_that_were_passed_over_are_numbered_as_in_the_file() {
    let files = Files::new();
    for (dialect, is_staged) in [(",", false), ("||", false), (",", true), ("||", true)] {
        let (mut text, mut bad) = (format!("id{dialect}n\n"), Vec::new());
        for no in 1..=20_000 {
            let _ = match no {
                // Blank, then too many fields, within a chunk and at its beginning.
                3 | 9_000..=9_002 => writeln!(text),
                5 | 12_000 => writeln!(text, "{no}{dialect}1{dialect}what{dialect}is{dialect}this"),
                _ if no % 100 == 7 => writeln!(text, "{no}{dialect}-1"),
                _ => writeln!(text, "{no}{dialect}1"),
            };
            bad.extend((no % 100 == 7).then_some(no));
        }
        let source = files.put("a.csv", text.as_bytes());
        for is_pipe in [true, false] {
            let database = Server::shared(18).database();
            database.sql("CREATE TABLE t (id int, n int CHECK (n > 0))");
            let load = load(&database).args(["--lenient", "--max-errors", "100%", "--table", "t"]);
            let load = load.args(if is_staged { &["--atomic"][..] } else { &[] });
            let what = format!("{dialect}, staged: {is_staged}, pipe: {is_pipe}");
            let done = match is_pipe {
                true => load.arg("-").stdin(text.as_bytes().to_vec()).run(PATIENCE),
                false => load.arg(&source).run(PATIENCE),
            };
            let told = told(&done.expect_code(3));
            assert_eq!(told["rows_rejected"], bad.len() + 2, "{what}: {told}");
            // The id is the number of its record.
            let id = r"substring(convert_from(bytes, 'UTF8') FROM '^[0-9]+')";
            let kept = |which: &str| {
                database.value(&format!(
                    "SELECT count(*) FROM howdah.reject WHERE sqlstate = '23514' AND {which}"
                ))
            };
            assert_eq!(kept(&format!("{id} <> record::text")), "0", "{what}: {told}");
            assert_eq!(kept("true"), bad.len().to_string(), "{what}");
            if !is_staged {
                assert_eq!(kept("record IS NULL"), "0", "{what}");
            }
        }
    }
}

/// Where nobody has said otherwise since.
#[test]
fn a_job_that_is_resumed_writes_the_file_that_it_was_begun_with() {
    let (files, database) = (Files::new(), table());
    database.sql("ALTER TABLE t ADD CONSTRAINT c CHECK (n < 100)");
    let folder = files.path().join("out");
    std::fs::create_dir(&folder).unwrap();
    let bad = folder.join("bad.csv");
    let stop = |name: &str| {
        // A bad record more than is borne.
        let text = format!("id,n\n{name},5\nx,7\ny,7\n");
        let source = files.put(&format!("{name}.csv"), text.as_bytes());
        let load =
            load(&database).args(["--table", "t", "--max-errors", "1", "--reject-file", "out/bad.csv"]);
        told(&load.current_dir(files.path()).arg(source).run(PATIENCE).expect_code(1))["job"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let resume = |job: &str| {
        let resume =
            howdah("resume").args(["--to", &database.conninfo(), "--json", "--max-errors", "2", job]);
        resume.run(PATIENCE).expect_code(3)
    };
    let job = stop("1");
    let _ = std::fs::remove_file(&bad);
    let told_of = resume(&job).stderr;
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "\"id\",\"n\"\nx,7\ny,7\n", "{told_of}");
    let job = stop("2");
    std::fs::remove_dir_all(&folder).unwrap();
    let warned = resume(&job).stderr;
    let command = format!("`howdah status {job} --to ");
    assert!(warned.contains("out/bad.csv cannot be written") && warned.contains(&command), "{warned}");
}

#[test]
fn a_load_that_fails_and_rejects_nothing_leaves_an_older_file_and_says_so() {
    let (files, database) = (Files::new(), table());
    let bad = files.put("bad.csv", b"id,n\nx,7\n");
    let source = files.put("a.csv", GOOD);
    let told_of = "bad.csv is left as an earlier run has written it: this one has failed";
    let failed = skip(&database, &source, &bad).args(["--format", "csv", "--header"]);
    database.sql("ALTER TABLE t RENAME TO other");
    let failed = failed.run(PATIENCE).expect_code(1);
    assert!(failed.stderr.contains(told_of), "{}", failed.stderr);
    database.sql(
        "ALTER TABLE other RENAME TO t; CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS \
                  'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'; \
                  CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()",
    );
    let failed = skip(&database, &source, &bad).args(["--retry-for", "1s"]).run(PATIENCE);
    assert!(failed.stderr.contains(told_of), "{}", failed.stderr);
    let warnings = told(&failed)["warnings"].to_string();
    assert!(warnings.contains(told_of), "{warnings}");
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "id,n\nx,7\n");
}

/// Nothing of such a load is in the table.
#[test]
fn a_load_that_came_to_nothing_keeps_no_mended_file_out_where_its_rejects_cannot_be_written() {
    let (files, database) = (Files::new(), table());
    database.sql(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; \
                  CREATE TRIGGER no AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION no()",
    );
    let folder = files.path().join("out");
    std::fs::create_dir(&folder).unwrap();
    let source = files.put("a.csv", b"id,n\n1,5\nx,7\n3,8\n");
    // The place of the file is taken while the load is under way.
    let bad = folder.join("bad.csv");
    std::fs::create_dir(folder.join("bad.csv.unfinished")).unwrap();
    let load = skip(&database, &source, &bad).arg("--atomic");
    let failed = load.run(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("the file of rejected records cannot be written"), "{failed}");
    let waiting = "SELECT count(*) FROM howdah.undo WHERE kind = 'staging' AND undone_at IS NULL";
    assert_eq!(database.value(waiting), "0", "{failed}");
    database.sql("DROP TRIGGER no ON t");
    files.put("a.csv", b"id,n\n1,5\n2,7\n3,8\n");
    for options in [&["--null", "-"][..], &[]] {
        database.sql("TRUNCATE t");
        let load = skip(&database, &source, &folder.join("other.csv")).args(["--atomic"]).args(options);
        load.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), "3");
    }
}

/// They are in the ledger, whatever has room for them here.
#[test]
fn a_disk_without_room_for_rejected_records_is_told_with_what_writes_them_later() {
    let Some(small) = SmallDisk::mount() else { return };
    let (files, database) = (Files::new(), table());
    let bad: String = (0..20_000).map(|no| format!("x{no},{no}\n")).collect();
    let source = files.put("a.csv", format!("id,n\n1,5\n{bad}").as_bytes());
    small.fill(64 << 10);
    let rejects = small.path().join("bad.csv");
    let ended = skip(&database, &source, &rejects).run(PATIENCE).expect_code(1).stderr;
    assert!(ended.contains("the load is done, but not the file of its rejected records: "), "{ended}");
    assert_eq!(ended.matches(" --reject-file FILE`").count(), 1, "{ended}");
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 0, "what is not whole is not left");
    let job = database.value("SELECT job_id FROM howdah.job");
    let later = files.path().join("later.csv");
    howdah("status")
        .args([&job, "--to", &database.conninfo(), "--reject-file"])
        .arg(&later)
        .run(PATIENCE)
        .expect_code(0);
    let written = std::fs::read_to_string(later).unwrap();
    assert!(written.ends_with(&format!("\n{bad}")), "{} bytes", written.len());
}
