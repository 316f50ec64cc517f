//! Two tables one after the other in a file, the second where the sample does not reach: it is said, and the
//! first is loaded, whatever the file is compressed by and written in.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::Server;
use std::fmt::Write as _;

/// More than a plan's sample and a piece of a chunk hold, in several chunks.
const RECORDS: usize = 12_000;

/// The chunks.
const CHUNK: [&str; 2] = ["--chunk-size", "64kB"];

/// What is said where the file is read.
fn another() -> String {
    format!("another table begins at record {}", RECORDS + 1)
}

/// Between the two tables.
const BORDERS: [&str; 3] = ["\n", "\nTrees of the year\n\n", ""];

/// A long table, and behind it another one of `width` fields; `delimiter` between fields.
fn two_tables(border: &str, delimiter: &str, width: usize) -> String {
    let mut text = "id,day,name,height\n".to_owned();
    for no in 0..RECORDS {
        let _ = writeln!(text, "{no},2024-01-{:02},tree {no},{}.5", no % 28 + 1, no % 40);
    }
    text.push_str(border);
    let fields = ["city", "street", "trees", "owner"];
    text.push_str(&fields[..width].join(","));
    text.push('\n');
    for no in 0..RECORDS {
        let record = ["Rome".to_owned(), format!("street {no}"), no.to_string(), "town".to_owned()];
        text.push_str(&record[..width].join(","));
        text.push('\n');
    }
    text.replace(',', delimiter)
}

fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// What is the first table's alone.
fn expected() -> String {
    let ids = RECORDS * (RECORDS - 1) / 2;
    format!("{RECORDS} {ids}")
}

const FOUND: &str = "SELECT count(*) || ' ' || sum(id) FROM t";

#[test]
fn the_first_of_two_tables_is_loaded_and_the_second_is_said() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let mut no = 0;
    for (border, width) in BORDERS.into_iter().flat_map(|border| [(border, 3), (border, 4)]) {
        if border.is_empty() && width == 4 {
            continue;
        }
        // A delimiter of two characters is one that COPY cannot be told.
        for delimiter in [",", "; "] {
            let text = two_tables(border, delimiter, width);
            let written =
                [("csv", text.clone().into_bytes()), ("csv.gz", gzip(text.as_bytes())), ("", utf16(&text))];
            for (name, bytes) in written {
                for lenient in [false, true] {
                    no += 1;
                    let source = files.put(&format!("{no}.{name}"), &bytes);
                    let command = load(&database).args(["--create", "--table", "t"]).args(CHUNK);
                    let command = if lenient { command.arg("--lenient") } else { command };
                    let case = format!("{border:?} {width} {delimiter:?} {name} lenient {lenient}");
                    let done = command.arg(&source).run(PATIENCE);
                    assert_eq!(done.code, Some(0), "{case}\n{}", done.stderr);
                    assert_eq!(database.value(FOUND), expected(), "{case}");
                    let is_said = ["the first of several tables", &another()];
                    assert!(
                        is_said.iter().any(|words| done.stderr.contains(words)),
                        "{case}\n{}",
                        done.stderr
                    );
                    database.sql("DROP TABLE t");
                }
            }
        }
    }
}

#[test]
fn of_a_pipe_the_first_table_is_loaded() {
    let database = Server::shared(15).database();
    let command = load(&database).args(["--create", "--table", "t", "-"]).args(CHUNK);
    let done = command.stdin(two_tables("\n", ",", 3)).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains(&another()), "{}", done.stderr);
    assert_eq!(database.value(FOUND), expected());
}

#[test]
fn what_is_not_loaded_is_said_even_when_quiet_and_in_the_document() {
    let files = Files::new();
    let database = Server::shared(15).database();
    // Beyond what a plan sees of a pipe, and in its sight.
    let short = "a,b\n1,2\n3,4\n5,6\n\n\nname,of,trees\nx,y,z\nx,y,z\nx,y,z\n";
    let source = files.put("short.csv", short.as_bytes());
    let quiet = |no: u32| {
        let command = load(&database).args(["--create", "--quiet", "--json"]).args(CHUNK);
        command.args(["--table", &format!("t{no}")])
    };
    for (done, words) in [
        (quiet(1).arg("-").stdin(two_tables("\n", ",", 3)).run(PATIENCE), another().as_str()),
        (quiet(2).arg(&source).run(PATIENCE), "holds several tables: the first one is loaded"),
    ] {
        let done = done.expect_code(0);
        let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let warnings = document["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{document}");
        let warning = warnings[0].as_str().unwrap();
        assert!(warning.contains(words), "{warning}");
        assert_eq!(done.stderr, format!("warning: {warning}\n"));
    }
}

#[test]
fn a_chunk_that_another_table_cut_short_is_known_again() {
    let files = Files::new();
    let source = files.put("t.csv.gz", &gzip(two_tables("\n", ",", 3).as_bytes()));
    let database = Server::shared(15).database();
    let once = || load(&database).args(["--create", "--table", "t"]).args(CHUNK).arg(&source);
    once().run(PATIENCE).expect_code(0);
    // As a kill would leave it that came after the last chunk, or before a middle one.
    for lost in ["false", "chunk_no = 3"] {
        database.sql("UPDATE howdah.job SET status = 'running', finished_at = NULL");
        database.sql(&format!("DELETE FROM howdah.chunk WHERE {lost}"));
        let kept = database.value("SELECT sum(rows) FROM howdah.chunk");
        database.sql(&format!("DELETE FROM t WHERE ctid NOT IN (SELECT ctid FROM t LIMIT {kept})"));
        once().run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), RECORDS.to_string(), "{lost}");
    }
}

#[test]
fn all_tables_are_loaded_where_they_can_be_found() {
    let files = Files::new();
    let text = two_tables("\nTrees of the year\n\n", ",", 3);
    let database = Server::shared(15).database();
    for (name, bytes) in [("a.csv", text.clone().into_bytes()), ("b.csv", utf16(&text))] {
        let source = files.put(name, &bytes);
        let command = load(&database).args(["--create", "--all-tables", "--table", "t"]).args(CHUNK);
        command.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(FOUND), expected());
        assert_eq!(shape(&database, "t_2"), "city text, street text, trees integer", "{name}");
        assert_eq!(database.value("SELECT count(*) || ' ' || sum(trees) FROM t_2"), expected(), "{name}");
        database.sql("DROP TABLE t, t_2");
    }
    let source = files.put("c.csv.gz", &gzip(text.as_bytes()));
    let command = load(&database).args(["--create", "--all-tables", "--table", "t"]).args(CHUNK);
    let refused = command.arg(&source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains(&format!("record {}, byte ", RECORDS + 1)), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: decompress the file"), "{}", refused.stderr);
}

/// A field that only later records have makes no other table of these, whatever is said of it.
#[test]
fn records_with_a_field_more_than_the_others_are_refused_as_copy_refuses_them() {
    let files = Files::new();
    let four: String = (1..=10).map(|no| format!("{no},item {no},{no},EUR\n")).collect();
    let source = files.put("d.csv", format!("id,name,qty\n1,item 1,1\n2,item 2,2\n{four}").as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, qty int, currency text)");
    let load_t = |option: &[&str]| {
        load(&database).args(["--table", "t"]).args(option.iter().copied()).arg(&source).run(PATIENCE)
    };
    let refused = load_t(&[]).expect_code(1).stderr;
    assert!(refused.contains("record 3") && !refused.contains("several tables"), "{refused}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    let told = load_t(&["--lenient"]).expect_code(3).stderr;
    assert!(told.contains("10 records left out"), "{told}");
    let refused =
        load(&database).args(["--create", "--table", "new"]).arg(&source).run(PATIENCE).expect_code(1);
    assert_eq!(database.value("SELECT count(*) FROM new"), "0");
    assert!(refused.stderr.contains("made by this load and still empty"), "{}", refused.stderr);
}
