//! Records that `--lenient` leaves out are known to the whole job, whichever run came upon them.

use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const ROWS: u64 = 12_000;
/// Rows with too many fields; the last of them in the middle of the file.
const LEFT_OUT: [u64; 3] = [40, 41, 5000];
/// Rows that a blank line follows.
const BLANK: [u64; 2] = [100, 4000];
/// Rows that the server refuses, until it is told not to; the first in a chunk that is mended.
const REFUSED: [u64; 3] = [5003, 9000, 11_000];

/// Records of three fields, a header before them.
fn records(delimiter: &str) -> Vec<u8> {
    let mut text = ["id", "name", "amount"].join(delimiter) + "\n";
    for id in 1..=ROWS {
        let surplus =
            if LEFT_OUT.contains(&id) { format!("{delimiter}17{delimiter}x") } else { String::new() };
        let _ = writeln!(text, "{id}{delimiter}name{id}{delimiter}{}{surplus}", id * 7);
        if BLANK.contains(&id) {
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// The number of the record with this id, and its first byte.
fn place_of(plain: &[u8], delimiter: &str, id: u64) -> (u64, u64) {
    let text = std::str::from_utf8(plain).unwrap();
    let line =
        text.split_inclusive('\n').position(|line| line.starts_with(&format!("{id}{delimiter}"))).unwrap();
    let byte: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    (line as u64, byte as u64)
}

fn refuse(database: &Database) {
    database.sql("CREATE TABLE t (id bigint, name text, amount bigint)");
    for id in REFUSED {
        database.sql(&format!("ALTER TABLE t ADD CONSTRAINT no_{id} CHECK (id <> {id})"));
    }
}

fn load(database: &Database, source: &Path) -> HowdahCommand {
    howdah("load")
        .args(["--lenient", "--json", "--chunk-size", "32kB", "--jobs", "2", "--table", "t"])
        .args(["--to", &database.conninfo()])
        .arg(source)
}

/// Runs stop amid the records that are left out and behind them, each at a record that is told by its place
/// in the file; the last one ends.
fn goes_on_knowing_what_was_left_out(name: &str, delimiter: &str, listed: usize) {
    let (files, plain) = (Files::new(), records(delimiter));
    let bytes = if name.ends_with(".gz") { gzip(&plain) } else { plain.clone() };
    let source = files.put(name, &bytes);
    let database = Server::shared(15).database();
    refuse(&database);
    for id in REFUSED {
        let failed = load(&database, &source).run(PATIENCE).expect_code(1);
        let told: Value = serde_json::from_str(&failed.stdout).unwrap();
        assert_eq!(told["error"]["sqlstate"], "23514", "{name}: {}", told["error"]);
        let (record, byte) = place_of(&plain, delimiter, id);
        assert_eq!(told["error"]["record"], record, "{name}: {}", told["error"]);
        assert_eq!(told["error"]["byte"], byte, "{name}: {}", told["error"]);
        database.sql(&format!("ALTER TABLE t DROP CONSTRAINT no_{id}"));
    }
    let ended = load(&database, &source).run(PATIENCE).expect_code(3);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let left_out = LEFT_OUT.len() as u64;
    assert_eq!(told["rows_read"], ROWS, "{name}");
    assert_eq!(told["rows_stored"], ROWS - left_out, "{name}");
    assert_eq!(told["rows_rejected"], left_out, "{name}");
    assert_eq!(told["rows_rejected_before"], left_out, "{name}");
    assert_eq!(told["files"][0]["rows_rejected"], left_out, "{name}");
    assert_eq!(told["mended"]["left_out"], left_out, "{name}");
    assert_eq!(told["left_out"].as_array().unwrap().len(), listed, "{name}");
    let omitted =
        database.rows("SELECT sum(left_out), sum(blank), sum(rows) FROM howdah.chunk").swap_remove(0);
    let omitted: Vec<u64> = omitted.into_iter().map(|count| count.unwrap().parse().unwrap()).collect();
    assert_eq!(omitted, [left_out, BLANK.len() as u64, ROWS - left_out], "{name}");
}

#[test]
fn a_resumed_lenient_load_of_a_plain_file_knows_what_was_left_out() {
    goes_on_knowing_what_was_left_out("plain.csv", ",", 0);
}

#[test]
fn a_resumed_lenient_load_of_a_compressed_file_knows_what_was_left_out() {
    goes_on_knowing_what_was_left_out("compressed.csv.gz", ",", LEFT_OUT.len());
}

#[test]
fn a_resumed_lenient_load_of_a_rewritten_file_knows_what_was_left_out() {
    goes_on_knowing_what_was_left_out("rewritten.txt", "||", LEFT_OUT.len());
}

/// Neither chunk has a row: their receipts alone know of them.
#[test]
fn records_left_out_behind_the_last_row_are_known_to_the_ledger() {
    for delimiter in [",", "||"] {
        let files = Files::new();
        let mut text = ["id", "name", "amount"].join(delimiter) + "\n";
        for id in 1..=20_000 {
            let surplus = if id > 16_000 { format!("{delimiter}17{delimiter}x") } else { String::new() };
            let _ = writeln!(text, "{id}{delimiter}name{id}{delimiter}{}{surplus}", id * 7);
        }
        let source = files.put("tail.csv", text.as_bytes());
        let database = Server::shared(18).database();
        database.sql("CREATE TABLE t (id bigint, name text, amount bigint)");
        let ended = load(&database, &source).run(PATIENCE).expect_code(3);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(
            (&told["rows_rejected"], &told["rows_stored"]),
            (&4000.into(), &16_000.into()),
            "{delimiter}"
        );
        assert_eq!(database.value("SELECT sum(left_out) FROM howdah.chunk"), "4000", "{delimiter}");
    }
}

/// Strictly, where the client writes all records anew: the line that the server names is none of the file's.
#[test]
fn a_record_that_the_server_refuses_is_told_by_its_place_in_a_rewritten_file() {
    let mut text = "id||name||amount\n".to_owned();
    for id in 1..=5000 {
        let _ = writeln!(text, "{id}||\"two\nlines {id}\"||{}", id * 7);
    }
    let line = text.find("\n3210||").unwrap() as u64 + 1;
    for (name, bytes) in
        [("plain.txt", text.clone().into_bytes()), ("compressed.txt.gz", gzip(text.as_bytes()))]
    {
        let files = Files::new();
        let source = files.put(name, &bytes);
        let database = Server::shared(13).database();
        database.sql("CREATE TABLE t (id bigint CHECK (id <> 3210), name text, amount bigint)");
        let load = howdah("load").args(["--json", "--chunk-size", "16kB", "--table", "t"]);
        let failed = load.args(["--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(1);
        let told: Value = serde_json::from_str(&failed.stdout).unwrap();
        assert_eq!(told["error"]["sqlstate"], "23514", "{name}: {}", told["error"]);
        assert_eq!(
            (&told["error"]["record"], &told["error"]["byte"]),
            (&3210.into(), &line.into()),
            "{name}"
        );
    }
}

/// Whoever has written them into the file may look for them in the table.
#[test]
fn values_for_a_generated_column_are_left_out_and_that_is_told() {
    let files = Files::new();
    let source = files.put("t.csv", b"a,twice\n1,2\n2,5\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (a int, twice int GENERATED ALWAYS AS (a * 2) STORED)");
        for verb in ["check", "load"] {
            let run =
                howdah(verb).args(["--to", &database.conninfo(), "--json", "--table", "t"]).arg(&source);
            let done = run.run(PATIENCE).expect_code(0);
            let told = "public.t: left out is field twice: column twice is generated";
            assert_eq!(done.stderr.matches(told).count(), 1, "{verb}: {}", done.stderr);
            assert!(done.stdout.contains(told), "{verb}: {}", done.stdout);
        }
        assert_eq!(database.value("SELECT sum(twice) FROM t"), "6");
    }
}
