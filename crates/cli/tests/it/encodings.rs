//! Files in other encodings than UTF-8 where the client has to know their fields.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

#[test]
fn partitions_are_made_for_files_in_other_encodings() {
    let files = Files::new();
    let source = files.put("t.csv", b"name,day\nM\xfcller,2024-01-31\nM\xf6ller,2024-02-01\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (name text, day date) PARTITION BY RANGE (day)");
    let command =
        || load(&database).args(["--table", "t", "--create-partitions", "month", "--encoding", "LATIN1"]);
    let refused = command().args(["--format", "csv", "--header"]).arg(&source).run(PATIENCE).expect_code(2);
    assert!(refused.stderr.contains("hint: leave out --format"), "{}", refused.stderr);
    command().arg(&source).run(PATIENCE).expect_code(0);
    let rows = "SELECT string_agg(tableoid::regclass || ' ' || name, ', ' ORDER BY day) FROM t";
    assert_eq!(database.value(rows), "t_2024_01 Müller, t_2024_02 Möller");
}

#[test]
fn null_is_null_in_every_encoding() {
    let files = Files::new();
    // The word is "нет" in WIN1251.
    let source = files.put("t.csv", b"id,note,gone\n1,\xed\xe5\xf2,x\n2,\xe4\xe0,x\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    let command =
        || load(&database).args(["--table", "t", "--encoding", "WIN1251", "--null", "нет", "--ignore-extra"]);
    let refused = command().args(["--format", "csv", "--header"]).arg(&source).run(PATIENCE);
    assert!(refused.stderr.contains("hint: leave out --format"), "{}", refused.stderr);
    command().arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(t::text, ' ' ORDER BY id) FROM t"), "(1,) (2,да)");
}

#[test]
fn a_new_table_is_not_widened_for_parts_of_characters() {
    // The second byte of the character is the delimiter.
    let record = |id: u32| [format!("{id}|").as_bytes(), b"\x83\x7c\x83\x7c", b"|5\n"].concat();
    let bytes: Vec<u8> = b"id|word|no\n".iter().copied().chain((0..100_000).flat_map(record)).collect();
    let database = Server::shared(15).database();
    let command =
        load(&database).args(["--create", "--table", "t", "--encoding", "SJIS", "--delimiter", "|"]);
    // Of a pipe only a sample is seen beforehand.
    command.arg("-").stdin(bytes).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, word text, no integer");
    assert_eq!(database.value("SELECT count(*) || min(word) || sum(no) FROM t"), "100000ポポ500000");
}
