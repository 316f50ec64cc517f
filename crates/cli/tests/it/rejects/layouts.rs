//! Rejected records of files of one table that are written in different ways, and records that are kept in
//! two ways.

use super::{load, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::path::{Path, PathBuf};

const OPEN: &str = "SELECT count(*) FROM howdah.reject WHERE loaded_by IS NULL";
const STORED: &str = "SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM t";

/// Loads these files; the job, and the base of the reject files' names.
fn skip(database: &Database, files: &Files, sources: &[PathBuf], options: &[&str]) -> (String, PathBuf) {
    let bad = files.path().join("bad.csv");
    let first = load(database).args(options).args(["--table", "t", "--reject-file"]).arg(&bad);
    let first = sources.iter().fold(first, HowdahCommand::arg).run(PATIENCE);
    (told(&first.expect_code(3))["job"].as_str().unwrap().to_owned(), bad)
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Two files that are written differently, one bad record each: every layout has a file, and each comes back
/// by its own.
#[test]
fn rejected_records_of_one_table_go_to_a_file_for_each_way_of_writing() {
    for (name, one, other, options, wanted) in [
        (
            "order",
            "id,n\n1,5\nx,7\n",
            "n,id\n5,3\n8,x\n",
            &["--format", "csv", "--header"][..],
            ["\"id\",\"n\"\nx,7\n", "\"n\",\"id\"\n8,x\n"],
        ),
        (
            "line ending",
            "id,n\n1,5\nx,7\n",
            "id,n\r\n3,5\r\nx,8\r\n",
            &["--format", "csv", "--header"],
            ["\"id\",\"n\"\nx,7\n", "\"id\",\"n\"\r\nx,8\r\n"],
        ),
        (
            "delimiter",
            "id,n\n1,5\nx,7\n",
            "id;n\n3;5\nx;8\n",
            &[],
            ["\"id\",\"n\"\nx,7\n", "\"id\";\"n\"\nx;8\n"],
        ),
    ] {
        let (files, database) = (Files::new(), Server::shared(15).database());
        database.sql("CREATE TABLE t (id int, n int)");
        let sources = [files.put("a.csv", one.as_bytes()), files.put("b.csv", other.as_bytes())];
        let (job, bad) = skip(&database, &files, &sources, options);
        assert!(!bad.exists(), "{name}");
        let written = [with(&bad, ".layout1"), with(&bad, ".layout2")];
        assert_eq!(written.each_ref().map(|path| std::fs::read_to_string(path).unwrap()), wanted, "{name}");
        for (no, path) in written.iter().enumerate() {
            let id = ["2", "4"][no];
            std::fs::write(path, wanted[no].replace('x', id)).unwrap();
            let again = load(&database).args(["--rejects", &job, "--table", "t"]).arg(path);
            again.run(PATIENCE).expect_code(0);
            assert_eq!(database.value(OPEN), (1 - no).to_string(), "{name}");
        }
        assert_eq!(database.value(STORED), "1=5 2=7 3=5 4=8", "{name}");
    }
}

/// A name that says nothing is enough where one layout is left, and is refused where several are.
#[test]
fn a_file_of_rejected_records_whose_layout_nobody_knows_is_refused() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int)");
    let sources = [files.put("a.csv", b"id,n\n1,5\nx,7\n"), files.put("b.csv", b"n,id\n5,3\n8,x\n")];
    let (job, bad) = skip(&database, &files, &sources, &["--format", "csv", "--header"]);
    let reload = |path: &Path| load(&database).args(["--rejects", &job]).arg(path);
    let renamed = files.put("renamed.csv", b"n,id\n8,4\n");
    let refused = reload(&renamed).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("written in different ways") && refused.contains("FILE.layout1"), "{refused}");
    let mixed = reload(&with(&bad, ".layout1")).arg(with(&bad, ".layout2"));
    let refused = mixed.run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("load each of them by a command of its own"), "{refused}");
    let one = files.put("mended.layout1", b"id,n\n2,7\n");
    reload(&one).run(PATIENCE).expect_code(0);
    reload(&renamed).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(STORED), "1=5 2=7 3=5 4=8");
    assert_eq!(database.value(OPEN), "0");
}

/// The table is named as in SQL, and an error tells those that there are.
#[test]
fn the_table_of_rejected_records_is_named_as_in_sql() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int)");
    let sources = [files.put("a.csv", b"id,n\n1,5\nx,7\n")];
    let (job, bad) = skip(&database, &files, &sources, &["--format", "csv", "--header"]);
    let reload = |table: &str| load(&database).args(["--rejects", &job, "--table", table]).arg(&bad);
    let refused = reload("other").run(PATIENCE).expect_code(2).stderr;
    assert!(
        refused.contains("has loaded no such table") && refused.contains("\"public\".\"t\""),
        "{refused}"
    );
    std::fs::write(&bad, "id,n\n2,7\n").unwrap();
    reload("T").run(PATIENCE).expect_code(0);
    assert_eq!(database.value(STORED), "1=5 2=7");
}

/// Each of the two files settles its own records, so that none is written again.
#[test]
fn records_that_are_kept_in_two_ways_are_settled_file_by_file() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int)");
    let sources = [files.put("a.csv", b"id||n\n1||5\nx||6\n3||5\n4\n5||9\n")];
    let (job, bad) = skip(&database, &files, &sources, &[]);
    let mend = |path: &Path, from: &str, to: &str, left: &str| {
        let written = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, written.replace(from, to)).unwrap();
        let again = load(&database).args(["--rejects", &job]).arg(path).run(PATIENCE).expect_code(0);
        assert_eq!(told(&again)["warnings"].to_string(), "[]");
        assert_eq!(database.value(OPEN), left);
    };
    mend(&bad, "\n4\n", "\n4||7\n", "1");
    mend(&with(&bad, ".sent"), "x", "2", "0");
    assert_eq!(database.value(STORED), "1=5 2=6 3=5 4=7 5=9");
    let later = files.path().join("later.csv");
    let status = howdah("status").args([&job, "--to", &database.conninfo(), "--reject-file"]).arg(&later);
    let said = status.run(PATIENCE).expect_code(0).stderr;
    assert!(said.contains("no file is written"), "{said}");
    assert!(!later.exists() && !with(&later, ".sent").exists());
}

/// What a staging table's table would refuse is read from the file again, in the file's encoding, and what
/// the server refuses before is kept as it was sent.
#[test]
fn rejected_records_in_an_encoding_that_the_server_cannot_read_come_back() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int CHECK (n > 0))");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let sources = [files.put("a.csv", &wide("id,n\n1,5\nx,6\n3,-5\n"))];
    let options = ["--format", "csv", "--header", "--encoding", "UTF16LE", "--atomic"];
    let (job, bad) = skip(&database, &files, &sources, &options);
    let sent = with(&bad, ".sent");
    assert_eq!(std::fs::read(&bad).unwrap(), wide("\u{feff}\"id\",\"n\"\n3,-5\n"));
    assert_eq!(std::fs::read_to_string(&sent).unwrap(), "\"id\",\"n\"\nx,6\n");
    std::fs::write(&bad, wide("\u{feff}\"id\",\"n\"\n3,7\n")).unwrap();
    std::fs::write(&sent, "id,n\n2,6\n").unwrap();
    for (path, left) in [(&bad, "1"), (&sent, "0")] {
        load(&database).args(["--rejects", &job]).arg(path).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(OPEN), left);
    }
    assert_eq!(database.value(STORED), "1=5 2=6 3=7");
}

/// The server reads the encoding itself, and the header is one of its records.
#[test]
fn the_header_of_rejected_records_is_in_the_encoding_of_their_files() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, \"größe\" text)");
    let latin = |text: &str| text.chars().map(|c| u8::try_from(c).unwrap()).collect::<Vec<u8>>();
    let sources = [files.put("a.csv", &latin("id,größe\n1,süß\nx,naß\n"))];
    let options = ["--format", "csv", "--header", "--encoding", "LATIN1"];
    let (job, bad) = skip(&database, &files, &sources, &options);
    assert_eq!(std::fs::read(&bad).unwrap(), latin("\"id\",\"größe\"\nx,naß\n"));
    std::fs::write(&bad, latin("\"id\",\"größe\"\n2,naß\n")).unwrap();
    load(&database).args(["--rejects", &job]).arg(&bad).run(PATIENCE).expect_code(0);
    let stored = "SELECT string_agg(id || '=' || \"größe\", ' ' ORDER BY id) FROM t";
    assert_eq!(database.value(stored), "1=süß 2=naß");
}
