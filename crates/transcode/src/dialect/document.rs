//! Files of text that are no tables: JSON, XML, HTML, SQL.
//!
//! Cut at their commas they would be loaded in part, so they are refused with a word on what to do instead. What may
//! be a table of such values is none of them: one that has a header, or records with more than the value.

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
    "to load each line into one column of json or jsonb, give --format csv --delimiter '\\x02' --quote '\\x01' --columns COLUMN",
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
    "convert it to CSV first: sed 's/\"/\"\"/g; s/\u{fe}/\"/g; s/\\x14/,/g' FILE, with FILE in UTF-8; to load its lines as they are, name \
     its --delimiter '\\x14'",
);

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
/// `Unsupported` if what was decompressed is compressed still.
pub(super) fn refuse_packed(plain: &[u8]) -> Result<()> {
    if !PACKED.iter().any(|begin| plain.starts_with(begin)) {
        return Ok(());
    }
    let message = "what the file holds is compressed once more, which is not undone";
    Err(Error::new(ErrorKind::Unsupported, message)
        .with_hint("decompress it once first, or pipe it: gzip -dc FILE | howdah load -"))
}

impl Finding {
    /// # Errors
    /// `Unsupported` if a file whose delimiter was found to be no bar begins with the upper edge of a drawn table.
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
pub(super) fn refuse(text: &[u8], at_end: bool) -> Result<()> {
    let text = text.trim_ascii_start();
    let refusal = match text.first() {
        Some(b'{' | b'[') => json(text, at_end),
        Some(b'<') => markup(text),
        _ if is_concordance(text) => Some(CONCORDANCE),
        _ => is_script(text).then_some(SQL),
    };
    refusal.map_or(Ok(()), |refusal| Err(refused(refusal)))
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
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
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

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(text in "[{\\[<]?[-{}\\[\\]:,\"\\\\a1 \n<>/;]{0,60}", at_end: bool) {
            let _ = refuse(text.as_bytes(), at_end);
        }
    }
}
