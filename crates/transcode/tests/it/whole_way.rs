//! The whole way of a file without a server: found, read, mended, inferred, by this crate alone.
//!
//! Enters: the bytes of a file. Leaves: columns and rows as PostgreSQL would store them, as far as that can
//! be said without it, or the error that a user would see.

use howdah_model::{Dialect, Error, ErrorKind, Mend, Reading, Result};
use howdah_testkit::Row;
use howdah_transcode::dialect::{self, Finding, Given, LONG_HEAD_BYTES, Sample, WINDOW_BYTES};
use howdah_transcode::infer::{ColumnState, Inferred, read, snake};
use howdah_transcode::mend::{Counts, Field, Shape, reader};
use howdah_transcode::{decompress, encode};
use std::io::Read;
use std::sync::Arc;

const RECORD_BYTES_MAX: usize = 1 << 20;

/// What came of a file.
pub(crate) struct Loaded {
    pub(crate) finding: Finding,
    /// Names and types.
    pub(crate) columns: Vec<(String, Inferred)>,
    pub(crate) rows: Vec<Row>,
    pub(crate) left_out: u64,
}

/// Loads a file with no option but `--lenient`.
pub(crate) fn load(bytes: &[u8], lenient: bool) -> Result<Loaded> {
    let finding = find(bytes)?;
    if finding.width == 0 {
        return Err(Error::new(ErrorKind::Usage, "no table can be made from files without a record"));
    }
    let counts = Arc::new(Counts::new(finding.width));
    let lines = copy_text(bytes, lenient, &finding, &counts)?;
    let mut rows: Vec<Row> = lines.lines().map(row).collect();
    let mut states = vec![ColumnState::default(); finding.width];
    for row in &rows {
        for (state, value) in states.iter_mut().zip(row) {
            value.iter().for_each(|value| state.observe(value.as_bytes()));
        }
    }
    let names =
        if finding.names.is_empty() { vec![String::new(); finding.width] } else { finding.names.clone() };
    let columns: Vec<_> =
        snake(&names).into_iter().zip(states.iter().map(|state| state.finish(true))).collect();
    for row in &mut rows {
        for (value, (_, inferred)) in row.iter_mut().zip(&columns) {
            *value = value.take().map(|value| stored(&value, inferred));
        }
    }
    Ok(Loaded { finding, columns, rows, left_out: counts.mended(Mend::LeftOut) })
}

/// Finds how a file is written of which no option says anything.
pub(crate) fn find(bytes: &[u8]) -> Result<Finding> {
    let mut head_bytes = WINDOW_BYTES;
    loop {
        let finding = dialect::find(&sample(bytes, head_bytes), &Given::default())?;
        if !finding.has_open_field || head_bytes == LONG_HEAD_BYTES {
            return Ok(finding);
        }
        head_bytes *= 16;
    }
}

fn sample(bytes: &[u8], head_bytes: usize) -> Sample<'_> {
    if bytes.len() <= head_bytes + 2 * WINDOW_BYTES {
        return Sample::of_whole(bytes);
    }
    let middle = (bytes.len() / 2).max(head_bytes);
    Sample {
        head: &bytes[..head_bytes],
        middle: &bytes[middle..middle + WINDOW_BYTES],
        tail: &bytes[bytes.len() - WINDOW_BYTES..],
        whole: false,
        size_bytes: Some(bytes.len() as u64),
    }
}

/// The records as lines of COPY text.
fn copy_text(bytes: &[u8], lenient: bool, finding: &Finding, counts: &Arc<Counts>) -> Result<String> {
    let mut plain = Vec::new();
    let recoded = finding.encoding.name != "UTF8";
    if recoded {
        let mut reader = encode::to_utf8(&whatwg(&finding.encoding.name), bytes, encode::Malformed::Refused)?;
        reader.read_to_end(&mut plain).map_err(decompress::error)?;
    } else {
        plain.extend_from_slice(bytes);
    }
    let span = if recoded { finding.utf8 } else { finding.plain };
    let shape = Shape {
        dialect: finding.dialect.clone(),
        fields: vec![Field::as_it_is(); finding.width],
        names: Vec::new(),
        data_start_byte: span.start_byte,
        data_end_byte: span.end_byte,
        end: None,
        lenient,
        skips: false,
        nul: howdah_model::Nul::Reject,
        record_bytes_max: RECORD_BYTES_MAX,
        read,
    };
    let mut lines = String::new();
    reader(&shape, &plain[..], Arc::clone(counts))?.read_to_string(&mut lines).map_err(decompress::error)?;
    Ok(lines)
}

/// The WHATWG's name for an encoding of the server.
fn whatwg(name: &str) -> String {
    match name {
        "LATIN1" => "iso-8859-1".to_owned(),
        "LATIN9" => "iso-8859-15".to_owned(),
        "KOI8R" => "koi8-r".to_owned(),
        "KOI8U" => "koi8-u".to_owned(),
        "SJIS" => "shift_jis".to_owned(),
        "UHC" => "euc-kr".to_owned(),
        other => match other.strip_prefix("WIN") {
            Some(page) => format!("windows-{page}"),
            None => other.replace("LATIN", "iso-8859-").replace('_', "-"),
        },
    }
}

/// The fields of a line of COPY text.
fn row(line: &str) -> Row {
    line.split('\t').map(|field| (field != "\\N").then(|| unescaped(field))).collect()
}

fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        text.push(match escaped {
            None => character,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some(other) => other,
        });
    }
    text
}

/// As PostgreSQL stores the value, as far as this can be said without it.
fn stored(value: &str, inferred: &Inferred) -> String {
    let reading = inferred.reading.as_ref();
    let text = reading.map_or_else(|| value.to_owned(), |reading| reread(reading, value));
    match inferred.type_name.as_str() {
        "boolean" => text.chars().next().map_or(text.clone(), |first| match first.to_ascii_lowercase() {
            't' | 'y' => "true".to_owned(),
            'f' | 'n' => "false".to_owned(),
            _ => if text.eq_ignore_ascii_case("on") { "true" } else { "false" }.to_owned(),
        }),
        "uuid" => text.to_ascii_lowercase(),
        "date" if reading.is_none() => text.replace(['/', '.'], "-"),
        _ => text,
    }
}

fn reread(reading: &Reading, value: &str) -> String {
    let mut out = Vec::new();
    assert!(read(reading, value.as_bytes(), &mut out), "a value is not in the spelling that all have");
    String::from_utf8(out).unwrap()
}

impl Loaded {
    /// What was found, in short.
    pub(crate) fn found(&self) -> String {
        let Dialect { delimiter, quote, escape, eol, nulls, .. } = &self.finding.dialect;
        let quote = quote.map(char::from);
        let (name, width) = (&self.finding.encoding.name, self.finding.width);
        format!("{width} fields by {delimiter:?}, {quote:?} {escape:?}, {eol:?}, NULL {nulls:?}, {name}")
    }
}
