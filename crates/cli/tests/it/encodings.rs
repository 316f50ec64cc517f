//! Files in other encodings than UTF-8 where the client has to know their fields.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{HowdahCommand, Server};

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

#[test]
fn bytes_mean_the_same_whether_the_client_reads_them_or_the_server() {
    let files = Files::new();
    let source = files.put("t.csv", b"id,note\n1,a\x80b\n2,\xe9\n");
    let unassigned = files.put("u.csv", b"id,note\n1,a\x81b\n2,\xe9\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    for (encoding, expected) in [("LATIN1", "c280"), ("LATIN5", "c280"), ("WIN1252", "e282ac")] {
        for client in [&["--lenient"][..], &[]] {
            let load = load(&database).args(["--table", "t", "--force", "--encoding", encoding]).args(client);
            load.arg(&source).run(PATIENCE).expect_code(0);
            let stored = "SELECT encode(convert_to(note, 'UTF8'), 'hex') FROM t WHERE id = 1";
            assert_eq!(database.value(stored), format!("61{expected}62"), "{encoding} {client:?}");
            database.sql("TRUNCATE t");
        }
    }
    let load = || load(&database).args(["--table", "t", "--force", "--encoding", "WIN1252"]).arg(&unassigned);
    load().run(PATIENCE).expect_code(1);
    load().args(["--nul", "strip"]).run(PATIENCE).expect_code(1);
}

#[test]
fn what_is_no_character_of_the_files_encoding_is_mended_or_kept_as_in_utf8() {
    let mut utf16: Vec<u8> = "id,note\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for id in 0..2000 {
        let row = if id == 1000 { "1000,\u{20ac}".to_owned() } else { format!("{id},zo\u{eb}") };
        let mut units: Vec<u16> = row.encode_utf16().collect();
        units.iter_mut().filter(|unit| **unit == 0x20AC).for_each(|unit| *unit = 0xDC00);
        utf16.extend(units.into_iter().chain([10]).flat_map(u16::to_le_bytes));
    }
    let files = Files::new();
    let source = files.put("t.csv", &utf16);
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    let load = || load(&database).args(["--table", "t", "--encoding", "UTF-16LE", "--force"]).arg(&source);
    let refused = load().run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("begins no character of UTF-16LE"), "{refused}");
    database.sql("TRUNCATE t");
    let mended = load().arg("--lenient").run(PATIENCE).expect_code(0).stderr;
    assert!(mended.contains("mended 1 "), "{mended}");
    assert_eq!(
        database.value("SELECT count(*) || note FROM t WHERE id >= 1000 GROUP BY note HAVING count(*) = 1"),
        "1\u{fffd}"
    );
    database.sql("TRUNCATE t");
    let kept = load().args(["--on-error", "skip"]).run(PATIENCE).expect_code(3).stderr;
    assert!(kept.contains("record 1001") && kept.contains("1 rejected"), "{kept}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "1999");
}

#[test]
fn utf8_is_no_foreign_encoding_however_it_is_spelled() {
    let files = Files::new();
    let source = files.put("t.csv", b"id,note\n1,zo\xc3\xab\n2,b\xe9b\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    for (option, code, rows) in [(&["--lenient"][..], 0, "2"), (&["--on-error", "skip"], 3, "1")] {
        let load = load(&database).args(["--table", "t", "--encoding", "utf-8", "--force"]).args(option);
        load.arg(&source).run(PATIENCE).expect_code(code);
        assert_eq!(database.value("SELECT count(*) FROM t"), rows, "{option:?}");
        database.sql("TRUNCATE t");
    }
}

#[test]
fn a_path_that_the_database_cannot_hold_is_told() {
    let files = Files::new();
    let source = files.put("жук.csv", b"id,part,amount,note\n1,1,1,a\n");
    let database = Server::shared(15).database_in("LATIN1");
    database.sql("CREATE TABLE t (id bigint, part integer, amount numeric, note text)");
    let load = load(&database).args(["--table", "t"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("has a character that the database's encoding lacks"), "{told}");
    assert!(told.contains("hint: rename the file"), "{told}");
    load.args(["--ledger", "none"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
}

#[test]
fn names_and_records_that_the_database_cannot_hold_are_told_as_such() {
    let (files, database) = (Files::new(), Server::shared(15).database_in("LATIN1"));
    let source = files.put("t.csv", "id,é,日本\n1,a,b\n".as_bytes());
    let create = load(&database).args(["--create", "--table", "t"]).arg(&source);
    let told = create.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("no column can be named \"日本\"") && told.contains(", LATIN1, lacks"), "{told}");
    // What is advised works.
    create.args(["--ledger", "none", "--columns", "id,e,nihon"]).run(PATIENCE).expect_code(0);
    let source = files.put("r.csv", "1,a\n2,€\n".as_bytes());
    database.sql("CREATE TABLE r (id int, note text)");
    for format in [&["--format", "csv"][..], &[]] {
        let load = load(&database).args(["--table", "r"]).args(format).arg(&source);
        let told = load.run(PATIENCE).expect_code(1).stderr;
        let hint = "hint: the encoding of the database lacks a character of the record: --on-error skip";
        assert!(told.contains("record 2") && told.contains(hint), "{told}");
    }
}

/// What such a database holds is no text to a client whose sessions speak UTF-8.
#[test]
fn keys_of_any_bytes_are_merged_in_a_database_without_an_encoding() {
    let files = Files::new();
    let letters = [b'a', b'b', 0xe9, 0xf1, 0xfc];
    let key = |id: usize| {
        let mixed = id * 7_368_787 % 9_765_625;
        (0..10).map(|place| letters[mixed / 5_usize.pow(place) % 5]).collect::<Vec<u8>>()
    };
    let record = |id: usize| [&key(id)[..], format!(",{id}\n").as_bytes()].concat();
    let bytes: Vec<u8> = b"k,v\n".iter().copied().chain((0..300_000).flat_map(record)).collect();
    let source = files.put("mk.csv", &bytes);
    let database = Server::shared(18).database_in("SQL_ASCII");
    database.sql("CREATE TABLE mt (k text PRIMARY KEY, v int)");
    let options = ["--table", "mt", "--header", "--format", "csv", "--encoding", "LATIN1", "--jobs", "2"];
    load(&database)
        .args(options)
        .args(["--mode", "merge", "--key", "k"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(database.value("SELECT count(*) || ' ' || sum(v) FROM mt"), "300000 44999850000");
}

#[test]
fn a_name_that_is_not_utf8_is_told_as_such() {
    let files = Files::new();
    let source = files.put("t.csv", b"id\n1\n");
    let database = Server::shared(18).database_in("SQL_ASCII");
    // As the server reads a name in a session of LATIN1: the bytes as they come.
    database.sql("CREATE TABLE t (id int); CREATE INDEX name ON t (id)");
    database.sql("UPDATE pg_class SET relname = (SELECT string_agg(chr(c), '') FROM unnest('{105,233}'::int[]) c)::name WHERE relname = 'name'");
    // A load of so few records looks at no index unless it is told to.
    let rebuild = load(&database).args(["--table", "t", "--indexes", "rebuild"]).arg(&source);
    let refused = rebuild.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("22021") && refused.stderr.contains("hint: "), "{}", refused.stderr);
}

/// One text would have two spellings there: the file's bytes, and UTF-8 where records are rewritten.
#[test]
fn what_would_have_to_be_rewritten_is_refused_by_a_database_without_an_encoding() {
    let files = Files::new();
    let plain = files.put("n1.csv", b"name,day\ncaf\xe9,2024-12-31\n");
    let rewritten = files.put("n2.csv", b"name,day\ncaf\xe9,31.12.2024\n");
    let in_utf8 = files.put("n3.csv", "name,day\ncaf\u{e9},31.12.2024\n".as_bytes());
    let database = Server::shared(18).database_in("SQL_ASCII");
    database.sql("CREATE TABLE mk (name text PRIMARY KEY, day date)");
    let command = |encoding: &str| {
        load(&database).args([
            "--table",
            "mk",
            "--header",
            "--encoding",
            encoding,
            "--mode",
            "merge",
            "--key",
            "name",
        ])
    };
    command("LATIN1").arg(&plain).run(PATIENCE).expect_code(0);
    let refused = command("LATIN1").arg(&rewritten).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("n2.csv") && refused.contains("iconv -f LATIN1 -t UTF-8"), "{refused}");
    assert_eq!(database.value("SELECT string_agg(encode(name::bytea, 'hex'), ' ') FROM mk"), "636166e9");
    command("UTF8").arg(&in_utf8).run(PATIENCE).expect_code(0);
}

/// Refused before anything is read or made: PostgreSQL knows it, and the client does not.
#[test]
fn an_encoding_that_the_server_alone_reads_is_told_as_such_where_records_are_rewritten() {
    let files = Files::new();
    let source = files.put("t.csv", b"id,note\n1,\xd0\x61\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    for encoding in ["JOHAB", "MULE_INTERNAL"] {
        let command = load(&database).args(["--table", "t", "--lenient", "--encoding", encoding]);
        let refused = command.arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&format!("{encoding} is read by PostgreSQL alone")), "{refused}");
        assert!(
            refused.contains(&format!("hint: convert the files: iconv -f {encoding} -t UTF-8")),
            "{refused}"
        );
    }
}

/// The bytes that howdah counts are those of the text that it makes of such a file: they would lead whoever
/// looks at the file to another record.
#[test]
fn no_byte_is_told_of_files_that_are_converted_but_the_line() {
    let files = Files::new();
    let text: String = (0..100).map(|id| format!("{id},zo\u{eb}\n")).collect();
    let text = format!("id,note\n{text}").replace("50,zo\u{eb}\n", "50,zo\u{eb},5,6\n");
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let source = files.put("t.csv", &wide);
    let narrow = files.put("n.csv", &text.chars().map(|c| c as u8).collect::<Vec<u8>>());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    let byte = "id,note\n".len() + (0..50).map(|id| format!("{id},zo.\n").len()).sum::<usize>();
    for (encoding, source, byte) in [("UTF-16LE", &source, None), ("LATIN1", &narrow, Some(byte))] {
        let given = |load: HowdahCommand| load.args(["--encoding", encoding]).arg(source);
        let place = match byte {
            Some(byte) => format!("line 52, record 51, byte {byte}"),
            None => "line 52, record 51:".to_owned(),
        };
        let load = || given(load(&database).args(["--table", "t", "--force"]));
        let refused = load().run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&place), "{encoding}: {refused}");
        let kept = load().args(["--on-error", "skip"]).run(PATIENCE).expect_code(3).stderr;
        assert!(
            kept.contains("record 51") && kept.contains(", byte ") == byte.is_some(),
            "{encoding}: {kept}"
        );
        let stored = database.value("SELECT coalesce(start_byte::text, '') FROM howdah.reject");
        assert_eq!(stored, byte.map(|byte| byte.to_string()).unwrap_or_default(), "{encoding}");
        database.sql("DROP SCHEMA howdah CASCADE; TRUNCATE t");
    }
}
