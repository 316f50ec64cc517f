//! Where rejected records are written: never over a source, and whole or not at all.

use super::{load, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::os::unix::fs::{PermissionsExt, symlink};
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
