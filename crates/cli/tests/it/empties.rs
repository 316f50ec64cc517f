//! Empty fields in quotes, in tables that are made for the files and in those that are there.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::Server;
use std::fmt::Write as _;

/// Everything in quotes, as many a program writes; the last record may lack fields.
fn table(number: fn(usize) -> String) -> String {
    let mut text = "id,n,day,note\n".to_owned();
    for no in 0..9000 {
        let (n, day) =
            if no % 3 == 0 { (String::new(), String::new()) } else { (number(no), "2024-01-02".to_owned()) };
        let note = if no % 2 == 0 { "" } else { "x" };
        writeln!(text, "\"{no}\",\"{n}\",\"{day}\",\"{note}\"").unwrap();
    }
    text
}

const STORED: &str =
    "SELECT concat_ws(' ', count(*), count(n), sum(n), count(day), count(note), sum(length(note))) FROM t";

#[test]
fn an_empty_field_in_quotes_is_null_to_columns_of_a_new_table_that_hold_no_text() {
    let (files, whole) = (Files::new(), table(|no| no.to_string()));
    let short = format!("{whole}\"9000\",\"\"\n");
    let comma = table(|no| format!("{no},25"));
    let (numbers, fractions) = ("27000000", "27001500.00");
    let plain = "id integer, n integer, day date, note text";
    let decimal = "id integer, n numeric, day date, note text";
    let read = "id integer, n numeric(6,2), day date, note text";
    for (no, (text, options, expected, sum, rows)) in [
        (&whole, &[][..], plain, numbers, 9000),
        (&whole, &["--encode", "csv"], plain, numbers, 9000),
        (&whole, &["--encode", "text", "--verify", "checksum"], plain, numbers, 9000),
        (&whole, &["--encode", "binary"], plain, numbers, 9000),
        (&whole, &["--on-error", "skip"], plain, numbers, 9000),
        (&whole, &["--types", "n=numeric"], decimal, numbers, 9000),
        (&short, &["--lenient"], plain, numbers, 9001),
        (&comma, &["--verify", "checksum"], read, fractions, 9000),
    ]
    .into_iter()
    .enumerate()
    {
        for source in [files.put("t.csv", text.as_bytes()), files.put("t.csv.gz", &gzip(text.as_bytes()))] {
            let database = Server::shared(if no % 2 == 0 { 15 } else { 18 }).database();
            load(&database)
                .args(["--create", "--table", "t", "--chunk-size", "64kB"])
                .args(options)
                .arg(&source)
                .run(PATIENCE)
                .expect_code(0);
            assert_eq!(shape(&database, "t"), expected, "{options:?}");
            let stored = format!("{rows} 6000 {sum} 6000 9000 4500");
            assert_eq!(database.value(STORED), stored, "{options:?} {source:?}");
        }
    }
}

#[test]
fn to_a_table_that_is_there_an_empty_field_in_quotes_is_what_it_is_to_copy() {
    let (files, database) = (Files::new(), Server::shared(18).database());
    let source = files.put("t.csv", b"id,n\n1,2\n2,\"\"\n3,4\n");
    database.sql("CREATE TABLE t (id int, n int)");
    let refused = load(&database).arg(&source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("--force-null n"), "{}", refused.stderr);
    // As to COPY; what was asked for is not what helps.
    let forced = load(&database)
        .args(["--table", "t", "--format", "csv", "--header", "--force-not-null", "n"])
        .arg(&source);
    let refused = forced.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("the type of n has none: leave that column out of it"), "{refused}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

/// As a disk that was full leaves them.
#[test]
fn a_compressed_file_without_a_byte_is_warned_of() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int)");
    let folder = |names: &[&str]| {
        for name in names {
            let bytes = if name.contains("good") { gzip(b"id\n1\n") } else { Vec::new() };
            std::fs::create_dir_all(files.path().join(names[0]).parent().unwrap()).unwrap();
            files.put(name, &bytes);
        }
        files.path().join(names[0]).parent().unwrap().to_owned()
    };
    let run = |verb: &str, source: &std::path::Path| {
        let run =
            howdah(verb).args(["--to", &database.conninfo(), "--table", "t", "--header", "--known", "load"]);
        let run = run.arg(source).run(PATIENCE).expect_code(0);
        format!("{}{}", run.stdout, run.stderr)
    };
    let one = folder(&["one/b.csv.gz", "one/good.csv.gz"]);
    for verb in ["plan", "load"] {
        let told = run(verb, &one);
        assert!(told.contains("one/b.csv.gz has 0 bytes, expected a compressed file"), "{told}");
    }
    let told = run("load", &folder(&["two/a.csv.ZST", "two/b.csv.gz", "two/c.csv", "two/good.csv.gz"]));
    assert!(told.contains("two/a.csv.ZST and another file have 0 bytes"), "{told}");
    let told = run("load", &folder(&["three/c.csv", "three/good.csv.gz"]));
    assert!(!told.contains("expected a compressed file"), "{told}");
}

/// The end of a file that can only be read in order is not seen before it is reached.
#[test]
fn blank_lines_behind_one_column_are_no_rows_however_the_file_comes() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let mut plain: String = (0..60_000).map(|no| format!("word{no}\n")).collect();
    plain.insert_str(0, "name\n");
    plain.push_str("\n\n");
    for (no, bytes) in [plain.clone().into_bytes(), gzip(plain.as_bytes()), Vec::new()].iter().enumerate() {
        let table = format!("t{no}");
        database.sql(&format!("CREATE TABLE {table} (name text)"));
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", &table]);
        let load = match bytes.is_empty() {
            true => load.arg("-").stdin(plain.as_bytes()),
            false => load.arg(files.put(&table, bytes)),
        };
        let stderr = load.run(PATIENCE).expect_code(0).stderr;
        assert_eq!(stderr.contains("2 blank lines at its end are not loaded"), no > 0, "{stderr}");
        assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "60000");
    }
}
