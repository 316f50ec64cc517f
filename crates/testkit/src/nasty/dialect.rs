//! Draws a dialect that COPY accepts: its rules for options are those of `ProcessCopyOptions`
//! (`src/backend/commands/copy.c`).

use super::{percent, pick};
use fastrand::Rng;
use howdah_model::{ColumnChoice, Format, FormatKind, Header};

/// Weighted towards those whose characters contain ASCII bytes.
const ENCODINGS: [&str; 14] = [
    "UTF8",
    "UTF8",
    "LATIN1",
    "LATIN1",
    "SJIS",
    "SJIS",
    "SHIFT_JIS_2004",
    "BIG5",
    "GBK",
    "GB18030",
    "UHC",
    "JOHAB",
    "EUC_JP",
    "WIN1251",
];

/// One to five columns whose names need care.
pub(super) fn columns(rng: &mut Rng) -> Vec<String> {
    let odd = ["a", "B b", "c,c", "d\"d", "e\ne", "f;f", "g\\g", "h\tt", "select", "\\."];
    let first = rng.usize(..odd.len());
    (0..rng.usize(1..=5)).map(|at| odd[(first + at) % odd.len()].to_owned()).collect()
}

/// A dialect the server knows.
pub(super) fn format(rng: &mut Rng, major: u32, columns: &[String]) -> Format {
    let mut format = if percent(rng, 65) { csv(rng, major, columns) } else { text(rng) };
    if percent(rng, 60) {
        format.encoding = Some((*pick(rng, &ENCODINGS)).to_owned());
    }
    // HEADER for text, and MATCH for both, came with 15; DEFAULT with 16.
    if percent(rng, 40) && (format.kind == FormatKind::Csv || major >= 15) {
        format.header = if major >= 15 && percent(rng, 30) { Header::Match } else { Header::Names };
    }
    if major >= 16 && percent(rng, 20) {
        format.default = Some((*pick(rng, &["\\D", "dflt", "!"])).to_owned());
        let default = format.default.as_deref().unwrap_or_default();
        let clash = |byte: u8| default.as_bytes().contains(&byte);
        if default == format.null
            || clash(format.delimiter)
            || (format.kind == FormatKind::Csv && clash(format.quote))
        {
            format.default = None;
        }
    }
    format
}

fn csv(rng: &mut Rng, major: u32, columns: &[String]) -> Format {
    let mut format = Format::csv();
    format.delimiter = *pick(rng, b",,,;|\t\\. x\x01");
    format.quote = *pick(rng, b"\"\"\"'`\\q$\x02");
    if format.quote == format.delimiter {
        format.quote = b'"';
    }
    format.escape = if percent(rng, 60) { format.quote } else { *pick(rng, b"\\\\\"'^e") };
    format.null = null(rng, &["", "", "", "NULL", "\\N", "n", " "], &[format.delimiter, format.quote]);
    format.force_null = choice(rng, major, columns);
    format.force_not_null = choice(rng, major, columns);
    format
}

fn text(rng: &mut Rng) -> Format {
    let mut format = Format::text();
    format.delimiter = *pick(rng, b"\t\t\t,;|' \"\x01A");
    format.null = null(rng, &["\\N", "\\N", "", "NULL", "\\n", "x", "\\."], &[format.delimiter]);
    format
}

/// A NULL spelling that contains none of these bytes.
fn null(rng: &mut Rng, spellings: &[&str], without: &[u8]) -> String {
    let spelling = *pick(rng, spellings);
    let clash = spelling.bytes().any(|byte| without.contains(&byte));
    if clash { String::new() } else { spelling.to_owned() }
}

/// Some columns, all of them (since 17 as `*`), or, mostly, none.
fn choice(rng: &mut Rng, major: u32, columns: &[String]) -> ColumnChoice {
    if percent(rng, 75) {
        return ColumnChoice::None;
    }
    if major >= 17 && percent(rng, 30) {
        return ColumnChoice::All;
    }
    let mut named: Vec<String> = columns.iter().filter(|_| rng.bool()).cloned().collect();
    if named.is_empty() {
        named.push(columns[0].clone());
    }
    ColumnChoice::Named(named)
}
