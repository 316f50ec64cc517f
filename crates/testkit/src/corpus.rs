//! The corpus of messy files in `crates/testkit/corpus`: one text file a case, with the rows that a careful
//! person would read from it. `corpus/README.md` says how a case is written.
//!
//! Leaves: cases with the bytes of the file, and whether what came out agrees. A case that is not written as
//! the README says panics with its name.

use crate::database::Row;
use encoding_rs::Encoding;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A file and what must come of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The kind of mess: the folder.
    pub kind: String,
    /// The name in its folder.
    pub name: String,
    /// One line that says what is special.
    pub about: String,
    /// The file.
    pub bytes: Vec<u8>,
    /// Mending is asked for.
    pub lenient: bool,
    /// The columns of a table that is there before, in SQL.
    pub table: Option<String>,
    /// What must come of it.
    pub wanted: Wanted,
}

/// What must come of a case.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The load fails, and its message holds these words.
    pub error: Option<String>,
    /// The rows, or else a failure whose message holds these words.
    pub or_error: Option<String>,
    /// The table's columns, where there is one right answer.
    pub columns: Option<Vec<String>>,
    /// Their types; a `numeric` without digits stands for any.
    pub types: Option<Vec<String>>,
    /// The rows as PostgreSQL prints them.
    pub rows: Vec<Row>,
    /// Records that are beyond mending.
    pub left_out: u64,
}

const FILE: &str = "--- file\n";
const ROWS: &str = "--- rows\n";

/// The folder of the corpus.
pub fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every case, sorted by kind and name.
pub fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in names(&corpus_folder()) {
        let folder = corpus_folder().join(&kind);
        if !folder.is_dir() {
            continue;
        }
        for file in names(&folder) {
            let name = file.strip_suffix(".case");
            let name = name.unwrap_or_else(|| panic!("{kind}/{file}: not a .case file"));
            let text = fs::read_to_string(folder.join(&file)).expect("a case in UTF-8");
            cases.push(case(&kind, name, &text).unwrap_or_else(|error| panic!("{kind}/{name}: {error}")));
        }
    }
    cases
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).into_string().expect("a name in UTF-8")).collect();
    names.sort();
    names
}

fn case(kind: &str, name: &str, text: &str) -> Result<Case, String> {
    let (head, rest) = text.split_once(FILE).ok_or("there is no line `--- file`")?;
    let mut head: Table = head.parse().map_err(|error| format!("{error}"))?;
    let (file, rows) = rest.split_once(ROWS).unwrap_or((rest, ""));
    let mut take = |key: &str| head.remove(key);
    let about = words(take("about"))?.ok_or("`about` is missing")?;
    let eol = words(take("eol"))?.unwrap_or_else(|| "lf".to_owned());
    let encoding = words(take("encoding"))?.unwrap_or_else(|| "utf-8".to_owned());
    let ends = take("final_newline").is_none_or(|value| value.as_bool() != Some(false));
    let lenient = take("lenient").is_some_and(|value| value.as_bool() == Some(true));
    let table = words(take("table"))?;
    let wanted = Wanted {
        error: words(take("error"))?,
        or_error: words(take("or_error"))?,
        columns: list(take("columns"))?,
        types: list(take("types"))?,
        rows: read_rows(rows)?,
        left_out: take("left_out").and_then(|value| value.as_integer()).map_or(0, i64::unsigned_abs),
    };
    if let Some(key) = head.keys().next() {
        return Err(format!("nothing is called `{key}`"));
    }
    if wanted.error.is_none() && !rest.contains(ROWS) {
        return Err("there is neither `error` nor `--- rows`".to_owned());
    }
    let bytes = file_bytes(file, &eol, &encoding, ends)?;
    Ok(Case { kind: kind.to_owned(), name: name.to_owned(), about, bytes, lenient, table, wanted })
}

fn words(value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{other:?}: a text is wanted")),
    }
}

fn list(value: Option<Value>) -> Result<Option<Vec<String>>, String> {
    let Some(Value::Array(values)) = value else {
        return if value.is_none() { Ok(None) } else { Err("a list is wanted".to_owned()) };
    };
    values.into_iter().map(|value| words(Some(value))).collect()
}

fn read_rows(text: &str) -> Result<Vec<Row>, String> {
    let lines = repeated(text)?;
    let row = |line: &&str| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"));
    // Long cases repeat few lines: each is read once.
    let mut read: Vec<(&str, Row)> = Vec::new();
    let mut rows = Vec::with_capacity(lines.len());
    for line in &lines {
        let known = read.iter().rev().take(8).find(|(known, _)| known == line).map(|(_, row)| row.clone());
        let row = match known {
            Some(row) => row,
            None => {
                let row: Row = row(line)?;
                read.push((line, row.clone()));
                row
            }
        };
        rows.push(row);
    }
    Ok(rows)
}

/// The lines of a section, `@repeat N` to `@end` written out.
fn repeated(text: &str) -> Result<Vec<&str>, String> {
    let mut lines = Vec::new();
    let mut block: Option<(usize, usize)> = None;
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if let Some(times) = line.strip_prefix("@repeat ") {
            let times = times.parse().map_err(|_| format!("{line}: not a number"))?;
            block = Some((lines.len(), times));
        } else if line == "@end" {
            let (from, times) = block.take().ok_or("@end without @repeat")?;
            let body = lines[from..].to_vec();
            (1..times).for_each(|_| lines.extend_from_slice(&body));
        } else {
            lines.push(line);
        }
    }
    Ok(if text.is_empty() { Vec::new() } else { lines })
}

fn file_bytes(text: &str, eol: &str, encoding: &str, ends: bool) -> Result<Vec<u8>, String> {
    let eol = match eol {
        "lf" => "\n",
        "crlf" => "\r\n",
        "cr" => "\r",
        other => return Err(format!("eol {other}: lf, crlf or cr")),
    };
    let mut plain = repeated(text)?.join(eol);
    if ends && !text.is_empty() {
        plain += eol;
    }
    let (name, mark) = match encoding.strip_suffix("-bom") {
        Some(name) => (name, "\u{feff}"),
        None => (encoding, ""),
    };
    let mut bytes = encode(mark, name)?;
    // Bytes in hexadecimal digits stand between angle brackets; all else is text.
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once('⟨') {
        let (inside, behind) = after.split_once('⟩').ok_or("⟨ without ⟩")?;
        bytes.extend(encode(&controls(before), name)?);
        if let Some(code) = inside.strip_prefix("U+") {
            let character = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
            let character = character.ok_or_else(|| format!("{inside}: no character"))?;
            bytes.extend(encode(&character.to_string(), name)?);
        } else {
            for digits in inside.split(' ') {
                let byte = u8::from_str_radix(digits, 16).map_err(|_| format!("{inside}: no bytes"))?;
                bytes.push(byte);
            }
        }
        rest = behind;
    }
    bytes.extend(encode(&controls(rest), name)?);
    Ok(bytes)
}

/// The pictures of control characters become what they show.
fn controls(text: &str) -> String {
    let control = |character: char| match u32::from(character) {
        code @ 0x2400..=0x2420 => char::from_u32(code - 0x2400).unwrap_or(character),
        0x2421 => '\x7f',
        _ => character,
    };
    text.chars().map(control).collect()
}

fn encode(text: &str, encoding: &str) -> Result<Vec<u8>, String> {
    match encoding {
        "utf-8" => Ok(text.as_bytes().to_vec()),
        "utf-16le" => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        "utf-16be" => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        other => {
            let known = Encoding::for_label(other.as_bytes()).ok_or(format!("encoding {other}: unknown"))?;
            let (bytes, _, lossy) = known.encode(text);
            if lossy { Err(format!("{other} has not all these characters")) } else { Ok(bytes.into_owned()) }
        }
    }
}

impl Case {
    /// `kind/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// What is wrong with these rows, in whatever order; `None` when they are as wanted.
    pub fn disagreement(&self, got: &[Row]) -> Option<String> {
        let sorted = |rows: &[Row]| {
            let mut rows: Vec<Row> =
                rows.iter().map(|row| row.iter().map(|v| v.as_deref().map(plain)).collect()).collect();
            rows.sort();
            rows
        };
        let (wanted, got) = (sorted(&self.wanted.rows), sorted(got));
        if wanted == got {
            return None;
        }
        let at = wanted.iter().zip(&got).take_while(|(one, other)| one == other).count();
        let (one, other) = (wanted.get(at), got.get(at));
        let counts = format!("{} rows wanted, {} got", wanted.len(), got.len());
        Some(format!("{counts}; wanted {one:?}, got {other:?}"))
    }

    /// What is wrong with these columns and their types (as `format_type` prints them); `None` when they are
    /// as wanted.
    pub fn wrong_columns(&self, got: &[(String, String)]) -> Option<String> {
        let names: Vec<&String> = got.iter().map(|(name, _)| name).collect();
        let types: Vec<&str> = got.iter().map(|(_, name)| short(name)).collect();
        let wanted = self.wanted.columns.as_ref();
        if wanted.is_some_and(|wanted| !wanted.iter().eq(names.iter().copied())) {
            return Some(format!("columns {wanted:?} wanted, {names:?} got"));
        }
        let same =
            |wanted: &String, got: &str| wanted == got || wanted == "numeric" && got.starts_with("numeric");
        let wanted = self.wanted.types.as_ref()?;
        let agree =
            wanted.len() == types.len() && wanted.iter().zip(&types).all(|(one, other)| same(one, other));
        (!agree).then(|| format!("types {wanted:?} wanted, {types:?} got"))
    }
}

/// PostgreSQL's short words for types.
fn short(name: &str) -> &str {
    match name {
        "int" => "integer",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        other => other,
    }
}

/// A number without zeros at the end of its fraction: the scale of a numeric column is not the point of most
/// cases. Anything else as it is.
fn plain(value: &str) -> String {
    let digits = value.strip_prefix('-').unwrap_or(value);
    match digits.split_once('.') {
        Some((whole, fraction))
            if !whole.is_empty()
                && !fraction.is_empty()
                && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) =>
        {
            value.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_the_readme_says() {
        let text = "about = \"x\"\nlenient = true\neol = \"crlf\"\nfinal_newline = false\nencoding = \"windows-1252\"\n\
                    left_out = 2\n--- file\na␉b␠\n@repeat 2\né⟨FF 00⟩␀\n@end\n--- rows\n[\"1\", null]\n";
        let case = case("k", "n", text).unwrap();
        assert_eq!(case.bytes, b"a\tb \r\n\xe9\xff\0\0\r\n\xe9\xff\0\0");
        assert_eq!(case.wanted.rows, [vec![Some("1".to_owned()), None]]);
        assert!(case.lenient && case.wanted.left_out == 2);
        let utf16 = file_bytes("é⟨U+A0⟩\n", "lf", "utf-16be-bom", true).unwrap();
        assert_eq!(utf16, b"\xfe\xff\0\xe9\0\xa0\0\n");
    }

    #[test]
    fn rows_agree_in_any_order_and_scale_but_in_nothing_else() {
        let row = |a: &str, b: Option<&str>| vec![Some(a.to_owned()), b.map(str::to_owned)];
        let mut case = case("k", "n", "about = \"x\"\n--- file\n--- rows\n").unwrap();
        case.wanted.rows = vec![row("1.50", None), row("007", Some(""))];
        assert_eq!(case.disagreement(&[row("007", Some("")), row("1.5", None)]), None);
        assert!(case.disagreement(&[row("7", Some("")), row("1.5", None)]).is_some());
        assert!(case.disagreement(&[row("007", None), row("1.5", None)]).is_some());
    }

    #[test]
    fn every_kind_has_at_least_twelve_cases() {
        let cases = corpus();
        let mut kinds: Vec<&str> = cases.iter().map(|case| case.kind.as_str()).collect();
        let few = kinds.chunk_by(|a, b| a == b).find(|kind| kind.len() < 12);
        assert_eq!(few, None);
        assert!(cases.len() >= 400, "{}", cases.len());
        kinds.dedup();
        assert!(kinds.len() >= 30, "{kinds:?}");
    }
}
