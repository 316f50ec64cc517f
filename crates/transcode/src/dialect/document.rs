//! Files of text that are no tables: JSON, XML, HTML, SQL.
//!
//! Cut at their commas they would be loaded in part, so they are refused with a word on what to do instead.
//! What may be a table of such values is none of them: one that has a header, or records with more than the
//! value.

use super::windows::Window;
use super::{Finding, Given};
use howdah_model::{Error, ErrorKind, Result};

/// So many lines, or values of JSON, are looked at.
const LINES_MAX: usize = 200;
const VALUES_MAX: usize = 10;

/// JSON that the sample or the file cuts is believed from so many tokens on.
const TOKENS_SURE: usize = 8;

/// What the file looks like, and what its user can do.
type Refusal = (&'static str, &'static str);

const JSON_LINES: Refusal = (
    "lines of JSON",
    "to load each line into one column of json or jsonb, make the table first (CREATE TABLE ... (COLUMN jsonb)) and give, without --create, \
     --format csv --delimiter '\\x02' --quote '\\x01' --columns COLUMN",
);
const JSON: Refusal = (
    "a JSON document",
    "convert it to CSV first, for example with jq; if it is a table, name its --delimiter",
);
const XML: Refusal = ("an XML document", "convert it to CSV first; if it is a table, name its --delimiter");
const HTML: Refusal = (
    "an HTML page",
    "save its table as CSV or load the file that it links to; if it is a table, name its --delimiter",
);
const SQL: Refusal =
    ("an SQL script or dump", "run it with psql -f FILE; if it is a table, name its --delimiter");

const CONCORDANCE: Refusal = (
    "a load file of Concordance",
    "convert it to CSV first: sed 's/\"/\"\"/g; s/\u{fe}/\"/g' FILE | tr '\\024' ,  with FILE in UTF-8; to load its lines as they are, name \
     its --delimiter '\\x14'",
);

const JSON_SEQUENCE: Refusal = (
    "a sequence of JSON texts",
    "have its record separators taken out, which makes lines of JSON of it: tr -d '\\036' < FILE",
);

/// ASCII's separators of records and of units (fields).
const RECORD_SEPARATOR: u8 = 0x1e;
const UNIT_SEPARATOR: u8 = 0x1f;

/// What SQL scripts begin with, settings and comments aside.
const STATEMENTS: [&str; 15] = [
    "INSERT INTO ",
    "CREATE TABLE ",
    "CREATE SCHEMA ",
    "CREATE DATABASE ",
    "CREATE EXTENSION ",
    "CREATE TYPE ",
    "CREATE FUNCTION ",
    "CREATE ROLE ",
    "DROP TABLE ",
    "DROP DATABASE ",
    "ALTER TABLE ",
    "PRAGMA ",
    "BEGIN;",
    "BEGIN TRANSACTION;",
    "START TRANSACTION;",
];

/// Lines of scripts that say nothing yet.
const BEFORE_STATEMENTS: [&str; 8] =
    ["--", "/*", "*", "SET ", "SELECT PG_CATALOG.", "\\RESTRICT ", "\\CONNECT ", "USE "];

const DRAWING: Refusal = (
    "a table drawn in characters",
    "have the table written as csv (psql --csv, mysql --batch); to load its lines as they are, give --format csv",
);

/// How files begin that other programs have compressed: gzip, zstd, xz.
const PACKED: [&[u8]; 3] = [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0"];

/// # Errors
/// `Unsupported` if the file, of which these are the head and its plain bytes, is no table of lines, and
/// nobody says that it is one.
pub(super) fn refuse_others(head: &Window, plain: &[u8], given: &Given) -> Result<()> {
    if given.dialect.is_some() {
        return Ok(());
    }
    refuse_separators(&head.text, head.at_end, given.delimiter.as_deref())?;
    if given.delimiter.is_some() {
        return Ok(());
    }
    refuse_packed(plain)?;
    refuse(&head.text, head.at_end)
}

/// # Errors
/// `Unsupported` if what was decompressed is compressed still.
fn refuse_packed(plain: &[u8]) -> Result<()> {
    if !PACKED.iter().any(|begin| plain.starts_with(begin)) {
        return Ok(());
    }
    let message = "what the file holds is compressed once more, which is not undone";
    Err(Error::new(ErrorKind::Unsupported, message)
        .with_hint("decompress it once first, or pipe it: gzip -dc FILE | howdah load -"))
}

impl Finding {
    /// # Errors
    /// `Unsupported` if a file whose delimiter was found to be no bar begins with the upper edge of a drawn
    /// table.
    pub(super) fn refuse_drawing(&self, text: &[u8], given: &Given) -> Result<()> {
        let is_told = given.delimiter.is_some() || given.dialect.is_some();
        let is_understood = self.width > 1 && self.dialect.delimiter == "|";
        let mut lines = text.trim_ascii_start().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let edge = lines.next().unwrap_or_default();
        let is_edge = edge.starts_with(b"+-") && edge.iter().all(|byte| matches!(byte, b'+' | b'-'));
        let is_below = |line: &[u8]| line.len() > 1 && line.starts_with(b"|") && line.ends_with(b"|");
        if is_told || is_understood || !is_edge || !lines.next().is_some_and(is_below) {
            return Ok(());
        }
        Err(refused(DRAWING))
    }
}

fn refused((what, hint): Refusal) -> Error {
    let message = format!("the file looks like {what}, which is not loaded");
    Error::new(ErrorKind::Unsupported, message).with_hint(hint)
}

/// # Errors
/// `Unsupported` if a file that begins with `text`, or with `at_end` is that, is no table.
fn refuse(text: &[u8], at_end: bool) -> Result<()> {
    let text = text.trim_ascii_start();
    let refusal = match text.first() {
        Some(b'{' | b'[') => json(text, at_end),
        Some(b'<') => markup(text),
        Some(&RECORD_SEPARATOR) => is_json_sequence(&text[1..], at_end).then_some(JSON_SEQUENCE),
        _ if is_concordance(text) => Some(CONCORDANCE),
        _ => is_script(text).then_some(SQL),
    };
    refusal.map_or(Ok(()), |refusal| Err(refused(refusal)))
}

/// # Errors
/// `Unsupported` if the records of a file that begins with `text`, or with `at_end` is that, are ended by
/// ASCII's record separator and not by line endings: all of them would be one record. `delimiter` is the one
/// that was told.
fn refuse_separators(text: &[u8], at_end: bool, delimiter: Option<&str>) -> Result<()> {
    let others = [UNIT_SEPARATOR, b',', b';', b'\t', b'|'].into_iter().map(|field| (RECORD_SEPARATOR, field));
    let ways = others.chain([(UNIT_SEPARATOR, RECORD_SEPARATOR)]);
    let mut told = ways.filter(|(_, field)| delimiter.is_none_or(|told| told.as_bytes() == [*field]));
    let Some((record, _)) = told.find(|way| are_separated(text, at_end, *way)) else { return Ok(()) };
    let lines = whole_lines(text, at_end);
    let (has_lines, ends_lines) = (lines.len() > 1, lines.iter().all(|line| line.ends_with(&[record])));
    let hint = match (has_lines, ends_lines) {
        (false, _) => {
            format!("have a line for each record: tr '\\{record:03o}' '\\n' < FILE | howdah load -")
        }
        (true, true) => {
            format!(
                "have them taken out before the line endings: tr -d '\\{record:03o}' < FILE | howdah load -"
            )
        }
        (true, false) => {
            "convert it to CSV first, with quotes around values that hold line endings".to_owned()
        }
    };
    let message = format!("expected line endings between records, got the control character 0x{record:02x}");
    Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
}

/// Cut at `record` the text has records of one number of fields, and cut at its line endings it has not, or
/// has one line, or lines that each end with `record`.
fn are_separated(text: &[u8], at_end: bool, (record, field): (u8, u8)) -> bool {
    let width = |piece: &[u8]| memchr::memchr_iter(field, piece).count();
    let even = |pieces: &[&[u8]]| {
        let widths = || pieces.iter().map(|piece| width(piece));
        pieces.len() > 1 && widths().all(|one| one > 0) && widths().min() == widths().max()
    };
    let whole = if at_end { text } else { &text[..memchr::memrchr(record, text).unwrap_or(0)] };
    let pieces: Vec<&[u8]> = whole
        .split(|byte| *byte == record)
        .map(<[u8]>::trim_ascii)
        .filter(|piece| !piece.is_empty())
        .collect();
    if !even(&pieces) {
        return false;
    }
    let lines = whole_lines(text, at_end);
    let ends_lines = lines.iter().all(|line| line.ends_with(&[record]));
    // Where lines are records, what stands within one is data.
    let is_usual = record == RECORD_SEPARATOR;
    match lines.len() {
        0 | 1 => true,
        _ => is_usual && field == UNIT_SEPARATOR && (ends_lines || !even(&lines)),
    }
}

/// Every value up to [`VALUES_MAX`] is JSON, and each begins a line.
fn json(text: &[u8], at_end: bool) -> Option<Refusal> {
    let (mut rest, mut values) = (text, 0);
    while values < VALUES_MAX && matches!(rest.first(), Some(b'{' | b'[')) {
        match value(rest) {
            Scanned::Whole(length) => {
                let behind = &rest[length..];
                rest = behind.trim_ascii_start();
                let gap = &behind[..behind.len() - rest.len()];
                if !rest.is_empty() && !gap.contains(&b'\n') && !gap.contains(&b'\r') {
                    return None;
                }
                values += 1;
            }
            Scanned::Open(tokens) if values > 0 || !at_end || tokens >= TOKENS_SURE => {
                return Some(if values > 0 { JSON_LINES } else { JSON });
            }
            Scanned::Open(_) | Scanned::Wrong => return None,
        }
    }
    match values {
        VALUES_MAX.. => Some(JSON_LINES),
        _ if !rest.is_empty() => None,
        0..=1 => Some(JSON),
        _ => Some(JSON_LINES),
    }
}

/// RFC 7464: a record separator before each value.
fn is_json_sequence(text: &[u8], at_end: bool) -> bool {
    let first = text.split(|byte| *byte == RECORD_SEPARATOR).next().unwrap_or_default();
    json(first.trim_ascii_start(), at_end || first.len() < text.len()).is_some()
}

enum Scanned {
    /// So many bytes are a value.
    Whole(usize),
    /// The text ends inside a value, behind so many tokens.
    Open(usize),
    Wrong,
}

/// What may come next in JSON.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

/// Reads an object or an array.
fn value(text: &[u8]) -> Scanned {
    let (mut open, mut next, mut at, mut tokens) = (Vec::new(), Next::Value, 0, 0);
    loop {
        at += text[at..].len() - text[at..].trim_ascii_start().len();
        let Some(&byte) = text.get(at) else { return Scanned::Open(tokens) };
        tokens += 1;
        let is_value = matches!(next, Next::Value | Next::ValueOrEnd);
        match byte {
            b'{' | b'[' if is_value => {
                open.push(byte);
                next = if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd };
                at += 1;
            }
            b'}' | b']' if matches!(next, Next::ValueOrEnd | Next::KeyOrEnd | Next::CommaOrEnd) => {
                // `{` and `}`, `[` and `]` stand two apart in ASCII.
                if open.pop() != Some(byte - 2) {
                    return Scanned::Wrong;
                }
                at += 1;
                if open.is_empty() {
                    return Scanned::Whole(at);
                }
                next = Next::CommaOrEnd;
            }
            b',' if next == Next::CommaOrEnd => {
                next = if open.last() == Some(&b'{') { Next::Key } else { Next::Value };
                at += 1;
            }
            b':' if next == Next::Colon => {
                next = Next::Value;
                at += 1;
            }
            b'"' if is_value || matches!(next, Next::Key | Next::KeyOrEnd) => {
                let Some(length) = string(&text[at..]) else { return Scanned::Open(tokens) };
                next = if is_value { Next::CommaOrEnd } else { Next::Colon };
                at += length;
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if is_value => {
                let Some(length) = word(&text[at..]) else { return Scanned::Wrong };
                next = Next::CommaOrEnd;
                at += length;
            }
            _ => return Scanned::Wrong,
        }
    }
}

/// How long the string is with its quotes; `None` if it does not end.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// A number or a word of JSON, as far as it goes.
fn word(text: &[u8]) -> Option<usize> {
    let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let word = &text[..text.iter().take_while(|byte| of_word(byte)).count()];
    let known = [&b"true"[..], b"false", b"null", b"NaN", b"Infinity"];
    let is_cut = word.len() == text.len();
    let is_word = known.iter().any(|known| *known == word || (is_cut && known.starts_with(word)));
    (is_word || matches!(word, [b'-' | b'0'..=b'9', ..])).then_some(word.len())
}

/// Names in such brackets alone (`<DATE>,<OPEN>`) are a header.
fn markup(text: &[u8]) -> Option<Refusal> {
    let begins = |what: &[u8]| text.get(..what.len()).is_some_and(|text| text.eq_ignore_ascii_case(what));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(HTML);
    }
    let mut lines = lines(text).filter(|line| !line.is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    let is_tag = |line: &[u8]| line.starts_with(b"<") && line.ends_with(b">");
    let tags = is_tag(first) && second.map_or_else(|| has_end(first), is_tag);
    (begins(b"<?xml") || (tags && has_end(text))).then_some(XML)
}

/// An element is closed.
fn has_end(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"</").is_some()
}

/// The letter thorn for quotes, in UTF-8 or in one byte, and a control character between fields.
fn is_concordance(text: &[u8]) -> bool {
    let first = lines(text).next().unwrap_or_default();
    [&b"\xc3\xbe\x14\xc3\xbe"[..], b"\xfe\x14\xfe"].iter().any(|between| {
        let quote = &between[..between.len() / 2];
        first.starts_with(quote) && memchr::memmem::find(first, between).is_some()
    })
}

/// The first statement is one of SQL, and a line ends as statements do.
fn is_script(text: &[u8]) -> bool {
    let is_before = |line: &[u8]| line.is_empty() || BEFORE_STATEMENTS.iter().any(|word| begins(line, word));
    let first = lines(text).take(LINES_MAX).find(|line| !is_before(line));
    let copies = |line: &[u8]| begins(line, "COPY ") && line.to_ascii_uppercase().ends_with(b" FROM STDIN;");
    let is_statement = |line: &[u8]| copies(line) || STATEMENTS.iter().any(|word| begins(line, word));
    first.is_some_and(is_statement) && lines(text).take(LINES_MAX).any(|line| line.ends_with(b";"))
}

fn begins(line: &[u8], word: &str) -> bool {
    line.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
}

/// Lines that hold something, but for the last one where the text cuts it.
fn whole_lines(text: &[u8], at_end: bool) -> Vec<&[u8]> {
    let end = if at_end { text.len() } else { memchr::memrchr2(b'\n', b'\r', text).unwrap_or(0) };
    lines(&text[..end]).filter(|line| !line.is_empty()).collect()
}

/// Lines without the blanks around them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks_like(text: &str) -> Option<String> {
        refuse(text.as_bytes(), true).err().map(|error| error.message().to_owned())
    }

    #[test]
    fn documents_are_told_from_tables() {
        for (what, texts) in [
            (
                "lines of JSON",
                &[
                    "{\"a\": 1, \"b\": [true, null]}\n{\"a\": 2}\n",
                    "[1,2]\r\n[3,\"]\"]\r\n",
                    "{}\n{\"a\": \"\\\"}\"}\n{\"b\": ",
                ][..],
            ),
            (
                "a JSON document",
                &[
                    "{\"a\": {\"b\": -1.5e3}}",
                    "[\n {\"a\": 1},\n {\"a\": 2}\n]\n",
                    "[{\"a\":1,\"b\":2},\n{\"a\"",
                ],
            ),
            (
                "an XML document",
                &[
                    "<?xml version=\"1.0\"?>\n<a>1</a>\n",
                    "<rows>\n <row>1</row>\n</rows>\n",
                    "<a><b>1</b></a>",
                ],
            ),
            ("an HTML page", &["<!DOCTYPE html>\n<p>x", "\n<html lang=en>"]),
            (
                "an SQL script or dump",
                &[
                    "--\n-- PostgreSQL database dump\n--\n\n\\restrict x\nSET a = 0;\nSELECT pg_catalog.x();\n\nCOPY public.t (a) FROM stdin;\n1\n\\.\n",
                    "INSERT INTO t VALUES (1, 2);\nINSERT INTO t VALUES (3, 4);\n",
                    "create table t (\n  a int\n);\n",
                    "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n",
                ],
            ),
            (
                "a load file of Concordance",
                &["\u{fe}id\u{fe}\x14\u{fe}name\u{fe}\n\u{fe}1\u{fe}\x14\u{fe}a, b\u{fe}\n"],
            ),
            ("a sequence of JSON texts", &["\x1e{\"a\": 1}\n\x1e{\"a\": 2}\n", "\x1e[1]\x1e[2]"]),
        ] {
            for text in texts {
                assert_eq!(
                    looks_like(text),
                    Some(format!("the file looks like {what}, which is not loaded")),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn tables_of_documents_are_tables() {
        for text in [
            "",
            "{",
            "[section]\nkey=value\n",
            "doc\n{\"a\": 1}\n",
            "{\"a\": 1},5\n{\"a\": 2},6\n",
            "{1,2},3\n{4,5},6\n",
            "\"{\"\"a\"\": 1}\"\n",
            "[1]\nx\n",
            "<DATE>,<OPEN>,<HIGH>\n20240102,1,2\n",
            "<DATE>\n20240102\n",
            "<p>x</p>,5\n<p>y</p>,6\n",
            "-- a remark\nid;name\n1;x\n",
            "copy of,name\n1,2;\n",
            "insert into,1\n",
            "\\N\t1\n",
        ] {
            assert_eq!(looks_like(text), None, "{text}");
        }
    }

    #[test]
    fn records_between_separators_are_told_from_lines_that_hold_some() {
        let hint = |text: &str, at_end, delimiter| {
            let refused = refuse_separators(text.as_bytes(), at_end, delimiter).err();
            refused.map(|error| {
                error.hint().unwrap_or_default().split(':').next().unwrap_or_default().to_owned()
            })
        };
        let (lines, taken_out) =
            (Some("have a line for each record"), Some("have them taken out before the line endings"));
        let converted = Some("convert it to CSV first, with quotes around values that hold line endings");
        for (text, delimiter, expected) in [
            ("id\x1fname\x1e1\x1fa\x1e2\x1fb", None, lines),
            ("id\x1fname\x1e1\x1fa\x1e2\x1fb\x1e\n", Some("\x1f"), lines),
            ("id\x1ename\x1f1\x1ea\x1f2\x1eb\x1f", None, lines),
            ("id,name\x1e1,a\x1e", None, lines),
            ("id\x1fname\x1e\n1\x1fa\x1e\n2\x1fb\x1e\n", None, taken_out),
            ("id\x1fname\x1e1\x1fa\nb\x1e2\x1fc\x1e", None, converted),
            ("id\x1fname\x1e1\x1fa\x1e2\x1fb", Some(","), None),
            ("id\x1fnames\n1\x1fa\x1eb\n2\x1fc\x1ed\n", None, None),
            ("id\x1fnames\n1\x1fa\n2\x1fc\x1ed\n", None, None),
            ("id,names\n1,a\x1eb\n2,c\x1ed\n", None, None),
            ("a\x1eb\x1ec", None, None),
            ("id,name\n1,a\n", None, None),
        ] {
            assert_eq!(hint(text, true, delimiter).as_deref(), expected, "{text:?}");
        }
        assert_eq!(hint("id\x1fname\x1e1\x1fa\x1e2", false, None).as_deref(), lines);
        assert_eq!(hint("id\x1fname\x1e\n1\x1fa\x1e\n2\x1f", false, None).as_deref(), taken_out);
        assert_eq!(hint("id\x1fname", false, None), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(text in "[{\\[<]?[-{}\\[\\]:,\"\\\\a1 \n<>/;]{0,60}", at_end: bool) {
            let _ = refuse(text.as_bytes(), at_end);
        }
    }
}
