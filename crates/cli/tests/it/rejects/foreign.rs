//! Bad records of files that howdah reads itself, since COPY cannot be told their dialect or they are to be
//! mended.

use super::{ROWS, hex, load, told};
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::{Database, Server};
use std::path::{Path, PathBuf};

/// A file in a dialect that COPY has no words for, every kind of bad record in it.
fn foreign_file() -> String {
    let mut text = "id||when||name||amount\n".to_owned();
    for id in 1..=ROWS {
        text += &match id {
            1 => "one||31/01/2024||a||1\n".to_owned(),
            300 => "300||31/01/2024||\"semi||colon\"||7||many\n".to_owned(),
            301 => "301||31/01/2024||short\n".to_owned(),
            9000 => "9000||31/31/2024||b||2\n".to_owned(),
            12_000 => "12000||31/01/2024||\"two\nlines\"||-5\n".to_owned(),
            19_999 => "19999||31/01/2024||n\0l||5\n".to_owned(),
            ROWS => "20000||tomorrow||last||5".to_owned(),
            _ => format!("{id}||31/01/2024||\"name || {id}\"||{id}\n"),
        };
    }
    text
}

fn in_utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn from_utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16(&units).unwrap()
}

const FOREIGN_KEPT: &[&str] = &[
    "1 f 22P02 id",
    "300 t 22P04 ",
    "301 t 22P04 ",
    "9000 t 22007 when",
    "12000 f 23514 ",
    "19999 t 22021 name",
    "20000 t 22007 when",
];

/// Loads a foreign file; where its bad records are written, and the job.
fn skip_in_foreign_file(database: &Database, source: &Path) -> (PathBuf, String) {
    database.sql("CREATE TABLE t (id int, name text, \"when\" date, amount int CHECK (amount > 0))");
    let load = |max: &str| {
        let options =
            ["--verify", "checksum", "--max-errors", max, "--types", "when=date:d/m/y", "--table", "t"];
        load(database).args(options).arg(source)
    };
    let stopped = told(&load("4").run(PATIENCE).expect_code(1));
    assert_eq!(stopped["error"]["kind"], "too_many_errors", "{stopped}");
    let rejects = source.with_extension("bad");
    let done = load("100").arg("--reject-file").arg(&rejects).run(PATIENCE).expect_code(3);
    let summary = told(&done);
    let counts = (&summary["rows_read"], &summary["rows_rejected"]);
    assert_eq!(counts, (&ROWS.into(), &7.into()), "{}: {}", source.display(), done.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 7).to_string());
    (rejects, summary["job"].as_str().unwrap().to_owned())
}

#[test]
fn bad_records_of_a_dialect_that_copy_cannot_be_told_are_kept_as_the_file_has_them() {
    let files = Files::new();
    let text = foreign_file();
    let wide = [&b"\xff\xfe"[..], &in_utf16(&text)].concat();
    for (name, bytes) in
        [("plain", text.clone().into_bytes()), ("packed", gzip(text.as_bytes())), ("wide", wide)]
    {
        let (source, is_wide) = (files.put(name, &bytes), name == "wide");
        let database = Server::shared(15).database();
        let (rejects, job) = skip_in_foreign_file(&database, &source);
        let kept = database.rows(
            "SELECT concat_ws(' ', record, as_in_file, sqlstate, coalesce(column_name, '')), encode(bytes, 'hex'), start_byte \
             FROM howdah.reject ORDER BY record",
        );
        let value = |row: usize, no: usize| kept[row][no].as_deref().unwrap_or_default();
        assert_eq!((0..7).map(|row| value(row, 0)).collect::<Vec<_>>(), FOREIGN_KEPT, "{name}");
        let in_file = |text: &str| if is_wide { in_utf16(text) } else { text.into() };
        assert_eq!(value(1, 1), hex(&in_file("300||31/01/2024||\"semi||colon\"||7||many\n")), "{name}");
        assert_eq!(value(6, 1), hex(&in_file("20000||tomorrow||last||5")), "{name}");
        // Of a file that is converted bytes would be those of another text.
        match value(3, 2).parse::<usize>() {
            Ok(at) => assert!(!is_wide && text[at..].starts_with("9000||"), "{name}"),
            Err(_) => assert!(is_wide, "{name}"),
        }

        let mut written = std::fs::read(&rejects).unwrap();
        // Without its mark no editor knows it.
        let mark: &[u8] = if is_wide { b"\xff\xfe" } else { b"" };
        assert!(written.starts_with(mark), "{name}");
        written.drain(..mark.len());
        let written = if is_wide { from_utf16(&written) } else { String::from_utf8(written).unwrap() };
        assert_eq!(
            written,
            "\"id\"||\"when\"||\"name\"||\"amount\"\n300||31/01/2024||\"semi||colon\"||7||many\n301||31/01/2024||short\n\
             9000||31/31/2024||b||2\n19999||31/01/2024||n\0l||5\n20000||tomorrow||last||5\n"
        );
        let mends = [
            ("||many", ""),
            ("||short", "||short||1"),
            ("31/31", "31/12"),
            ("\0", ""),
            ("tomorrow", "01/02/2024"),
        ];
        let mended = mends.iter().fold(written, |text, (from, to)| text.replace(from, to));
        std::fs::write(&rejects, [mark, &in_file(&mended)].concat()).unwrap();
        let again = load(&database).args(["--rejects", &job, "--table", "public.t"]).arg(&rejects);
        again.run(PATIENCE).expect_code(0);
        let loaded = "SELECT string_agg(id || name || \"when\" || amount, ' ' ORDER BY id) FROM t WHERE id IN (300, 9000, 20000)";
        let wanted = "300semi||colon2024-01-317 9000b2024-12-312 20000last2024-02-015";
        assert_eq!(database.value(loaded), wanted, "{name}");
    }
}

/// What the server has refused of such a file is mended as it was sent.
#[test]
fn rejected_records_of_a_foreign_dialect_are_mended_as_they_were_sent() {
    let files = Files::new();
    let source = files.put("foreign.csv", foreign_file().as_bytes());
    let database = Server::shared(15).database();
    let (rejects, job) = skip_in_foreign_file(&database, &source);
    let mut sent = rejects.into_os_string();
    sent.push(".sent");
    let written = std::fs::read_to_string(&sent).unwrap();
    assert_eq!(
        written,
        "id\twhen\tname\tamount\none\t2024-01-31\ta\t1\n12000\t2024-01-31\ttwo\\nlines\t-5\n"
    );
    std::fs::write(&sent, written.replace("one", "1").replace("-5", "5")).unwrap();
    let again = load(&database).args(["--rejects", &job, "--table", "public.t"]).arg(&sent);
    again.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT name || amount FROM t WHERE id = 12000"), "two\nlines5");
    assert_eq!(database.value("SELECT count(*) FROM t WHERE id = 1"), "1");
}

/// What cannot be mended is kept; without `--on-error skip` it is listed alone.
#[test]
fn records_beyond_mending_are_kept() {
    let files = Files::new();
    for (name, delimiter) in [("known.csv", ","), ("foreign.csv", "||")] {
        let mut text = format!("id{delimiter}name\n");
        for id in 1..=ROWS {
            text += &match id {
                70 => "70\n".to_owned(),
                80 => ["80", "a", "b", "c\n"].join(delimiter),
                _ => format!("{id}{delimiter}n{id}\n"),
            };
        }
        let source = files.put(name, text.as_bytes());
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int, name text)");
        let options = ["--lenient", "--verify", "checksum", "--table", "t"];
        let done = load(&database).args(options).arg(&source).run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS - 1).to_string(), "{}", done.stderr);
        assert_eq!(database.value("SELECT count(*) FROM t WHERE id = 70 AND name IS NULL"), "1");
        let kept = "SELECT string_agg(record || ':' || convert_from(bytes, 'UTF8'), ' ') FROM howdah.reject";
        assert_eq!(database.value(kept), ["80:80", "a", "b", "c\n"].join(delimiter));
        let summary = told(&done);
        assert_eq!(
            (&summary["rows_read"], &summary["rows_rejected"]),
            (&ROWS.into(), &1.into()),
            "{summary}"
        );
    }
}
