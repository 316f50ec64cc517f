//! Bytes that are no character are told with file, record, byte and column, whoever finds them.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::{Database, MAJORS, Server};

#[test]
fn the_column_of_a_broken_byte_is_told() {
    let files = Files::new();
    let plain = b"id,\"full, name\",town\n1,\"ada\n\",Rome\n2,\"b, \xffb\",Oslo\n";
    // Several spellings of NULL: the client reads all records.
    let spelled = b"id,\"full, name\",town\n1,ada,n/a\n1,,Rome\n2,\"b, \xffb\",Oslo\n4,NULL,\n5,NULL,N/A\n";
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, full_name text, town text)");
    let told = ["--format", "csv", "--header", "--columns", "id,full_name,town"];
    let found = ["--encoding", "UTF8"];
    for (name, bytes, options, record) in [
        ("told.csv", &plain[..], &told[..], 2),
        ("found.csv", &plain[..], &found[..], 2),
        ("spelled.csv", &spelled[..], &found[..], 3),
    ] {
        let source = files.put(name, bytes);
        let command = load(&database).args(["--table", "t"]).args(options).arg(&source);
        let refused = command.run(PATIENCE).expect_code(1);
        for words in [format!(", record {record}, byte "), "column full_name".to_owned()] {
            assert!(refused.stderr.contains(&words), "{words}\n{}", refused.stderr);
        }
        // Of a file that is UTF-8 elsewhere another encoding reads all the rest wrong.
        let first = if options == found { "--lenient" } else { "--on-error skip" };
        assert!(refused.stderr.contains(&format!("hint: {first}")), "{}", refused.stderr);
        assert!(refused.stderr.contains("all of the file is in LATIN1 or WIN1252"), "{}", refused.stderr);
        database.sql("TRUNCATE t");
    }
}

#[test]
fn rows_of_a_file_that_is_mended_are_counted_before_the_file_is_done() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,name\n1,a\n2,b\0c\n3,d\n");
    let database = Server::shared(15).database();
    let done = load(&database).args(["--create", "--nul", "strip"]).arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("a.csv: 3 rows from 22 B"), "{}", done.stderr);
}

const RECORDS: usize = 30_000;
const BROKEN: usize = 20_000;

/// Two records in the middle are broken, and where the first one begins.
fn records(header: &str, delimiter: &str) -> (Vec<u8>, usize) {
    let (mut bytes, mut byte) = (header.as_bytes().to_vec(), 0);
    for id in 1..=RECORDS {
        let name: &[u8] = match id {
            BROKEN => b"b\xe9b",
            id if id == BROKEN + 1 => b"b\0b",
            _ => "zo\u{eb}".as_bytes(),
        };
        if id == BROKEN {
            byte = bytes.len();
        }
        bytes.extend([id.to_string().as_bytes(), name, b"Oslo\n"].join(delimiter.as_bytes()));
    }
    (bytes, byte)
}

/// Columns of the table, and how its files are read.
struct Way {
    columns: &'static str,
    options: &'static [&'static str],
    compressed: bool,
}

const WAYS: &[Way] = &[
    Way {
        columns: "id text, name text, town text",
        options: &["--format", "csv", "--encode", "csv"],
        compressed: false,
    },
    Way {
        columns: "id text, name text, town text",
        options: &["--format", "csv", "--encode", "text"],
        compressed: false,
    },
    Way {
        columns: "id int, name text, town text",
        options: &["--format", "csv", "--encode", "binary"],
        compressed: false,
    },
    Way { columns: "id int, name text, town text", options: &["--format", "csv"], compressed: true },
    Way { columns: "id text, name text, town text", options: &["--format", "text"], compressed: false },
    // Each leaf is copied into.
    Way {
        columns: "id int, name text, town text) PARTITION BY HASH (id",
        options: &["--format", "csv"],
        compressed: false,
    },
    // One field is left out.
    Way {
        columns: "id int, name text",
        options: &["--format", "csv", "--header", "--ignore-extra"],
        compressed: false,
    },
];

fn make(database: &Database, columns: &str) {
    database.sql(&format!("DROP TABLE IF EXISTS t; CREATE TABLE t ({columns})"));
    if columns.contains("PARTITION") {
        database.sql("CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0)");
        database.sql("CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)");
    }
}

#[test]
fn broken_bytes_are_found_before_the_server_sees_them() {
    let (files, database) = (Files::new(), Server::shared(18).database());
    for (no, way) in WAYS.iter().enumerate() {
        let header = if way.options.contains(&"--header") { "id,name,town\n" } else { "" };
        let (bytes, byte) = records(header, if way.options[1] == "text" { "\t" } else { "," });
        let source = files.put(&format!("way_{no}"), &if way.compressed { gzip(&bytes) } else { bytes });
        let load = || {
            make(&database, way.columns);
            load(&database).args(["--table", "t", "--chunk-size", "64kB"]).args(way.options).arg(&source)
        };
        let refused = load().run(PATIENCE).expect_code(1);
        let place = format!(", record {BROKEN}, byte {byte}, column name");
        for words in [&place, "bytes into the record are no character of UTF-8"] {
            assert!(refused.stderr.contains(words), "{words}\n{}", refused.stderr);
        }
        load().args(["--force", "--on-error", "skip"]).run(PATIENCE).expect_code(3);
        let kept = database.value(
            "SELECT string_agg(concat_ws(' ', record, start_byte, sqlstate, column_name, message), '; ' ORDER BY record) \
             FROM howdah.reject",
        );
        let first = format!("{BROKEN} {byte} 22021 name the bytes");
        let second = format!("{} {} 22021 name the record holds a NUL byte", BROKEN + 1, byte + 15);
        assert!(kept.contains(&first) && kept.contains(&second), "{first}; {second}\n{kept}");
        assert_eq!(database.value("SELECT count(*) FROM t"), (RECORDS - 2).to_string(), "{no}");
        database.sql("TRUNCATE howdah.reject");
    }
}

/// What COPY says of a file is said of it by a load, in databases of every kind.
#[test]
fn a_load_refuses_the_bytes_that_copy_refuses() {
    let files = Files::new();
    let values: [&[u8]; 9] = [
        b"\xff",
        b"\0",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        "\u{ffff}\u{7f}".as_bytes(),
        "\u{e9}".as_bytes(),
        b"\\xe9",
        b"\\303\\251",
    ];
    let encodings = [("UTF8", "UTF8"), ("SQL_ASCII", "UTF8"), ("LATIN1", "UTF8"), ("UTF8", "SQL_ASCII")];
    for (major, (of_database, of_file)) in
        MAJORS.into_iter().flat_map(|major| encodings.map(|encodings| (major, encodings)))
    {
        let database = Server::shared(major).database_in(of_database);
        database.sql("CREATE TABLE t (a text, b text)");
        for value in values {
            let bytes = [b"1\tx\n2\ta", value, b"\n"].concat();
            let source = files.put("t.txt", &bytes);
            let stored =
                database.copy_in(&format!("COPY t FROM STDIN (ENCODING '{of_file}')"), bytes).is_ok();
            let options = ["--table", "t", "--format", "text", "--force", "--encoding", of_file];
            let loaded = load(&database).args(options).arg(&source).run(PATIENCE);
            let loaded = loaded.expect_code(if stored { 0 } else { 1 });
            // What backslashes stand for is in the encoding of the database, of which only the server knows.
            if (of_database, of_file, stored) == ("UTF8", "UTF8", false) {
                let place = "t.txt, line 2, record 2, byte 4, column b";
                assert!(loaded.stderr.contains(place), "{}: {}", value.escape_ascii(), loaded.stderr);
            }
        }
    }
}
