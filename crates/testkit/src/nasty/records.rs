//! Writes records in a dialect, with every freedom the dialect gives, and sometimes with none of its order.

use super::alphabet::{Alphabet, character_bytes};
use super::{NastyFile, NastyOptions, percent, pick};
use fastrand::Rng;
use howdah_model::{Format, FormatKind, Header};

/// COPY reads 64 KiB at a time; some files put their special bytes around that border.
const SERVER_BUFFER_BYTES: usize = 65_536;

/// Fills the file.
pub(super) fn write(rng: &mut Rng, file: &mut NastyFile, alphabet: &Alphabet, options: &NastyOptions) {
    let mut bytes = Vec::new();
    if file.format.header != Header::None {
        header(rng, file, alphabet, &mut bytes);
    }
    let header_bytes = bytes.len();
    if percent(rng, options.soup_percent) {
        soup(rng, alphabet, options.records_max * 8, &mut bytes);
    } else {
        records(rng, file, alphabet, options.records_max, &mut bytes);
    }
    if percent(rng, options.broken_percent) {
        let at = damage(rng, file, alphabet, &mut bytes);
        file.header_is_damaged = at < header_bytes;
    }
    file.bytes = bytes;
}

/// Always with the right names: wrong ones are another test's subject.
fn header(rng: &mut Rng, file: &NastyFile, alphabet: &Alphabet, out: &mut Vec<u8>) {
    for (at, column) in file.columns.iter().enumerate() {
        if at > 0 {
            out.push(file.format.delimiter);
        }
        field(rng, &file.format, column.as_bytes(), out);
    }
    out.extend_from_slice(alphabet.eol);
}

fn soup(rng: &mut Rng, alphabet: &Alphabet, pieces_max: usize, out: &mut Vec<u8>) {
    for _ in 0..rng.usize(..=pieces_max) {
        let piece = if percent(rng, 60) { alphabet.special(rng) } else { alphabet.plain(rng) };
        out.extend_from_slice(piece);
    }
}

fn records(rng: &mut Rng, file: &NastyFile, alphabet: &Alphabet, records_max: usize, out: &mut Vec<u8>) {
    let count = rng.usize(..=records_max);
    let long_record = percent(rng, 10).then(|| rng.usize(..=count));
    for number in 0..count {
        for at in 0..file.columns.len() {
            if at > 0 {
                out.push(file.format.delimiter);
            }
            if long_record == Some(number) && at == 0 {
                let left = SERVER_BUFFER_BYTES.saturating_sub(out.len() % SERVER_BUFFER_BYTES);
                out.resize(out.len() + left.saturating_sub(rng.usize(..12)), b'w');
            } else {
                value(rng, &file.format, alphabet, out);
            }
        }
        out.extend_from_slice(alphabet.eol);
    }
    // The last record often lacks its end; an end-of-data marker may follow, and things after it.
    if percent(rng, 30) {
        out.truncate(out.len() - alphabet.eol.len().min(out.len()));
    } else if percent(rng, 10) {
        out.extend_from_slice(b"\\.");
        if percent(rng, 80) {
            out.extend_from_slice(alphabet.eol);
        }
    }
}

/// One value: NULL, the default, nothing, or text of special and harmless pieces.
fn value(rng: &mut Rng, format: &Format, alphabet: &Alphabet, out: &mut Vec<u8>) {
    match rng.u32(..100) {
        0..10 => out.extend_from_slice(format.null.as_bytes()),
        10..15 => out.extend_from_slice(format.default.as_deref().unwrap_or_default().as_bytes()),
        15..25 => {}
        _ => {
            let mut text = Vec::new();
            for _ in 0..rng.usize(1..=6) {
                let piece = if percent(rng, 40) { alphabet.special(rng) } else { alphabet.plain(rng) };
                text.extend_from_slice(piece);
            }
            field(rng, format, &text, out);
        }
    }
}

/// Writes a text so that COPY reads it back, in one of the ways there are.
fn field(rng: &mut Rng, format: &Format, text: &[u8], out: &mut Vec<u8>) {
    match format.kind {
        FormatKind::Csv => csv_field(rng, format, text, out),
        FormatKind::Text => text_field(rng, format, text, out),
    }
}

/// Quoted when it must be, sometimes when it need not be, sometimes only in part.
fn csv_field(rng: &mut Rng, format: &Format, text: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| [format.delimiter, format.quote, b'\n', b'\r'].contains(byte);
    let must = text.iter().any(special) || text == b"\\." || text == format.null.as_bytes();
    if !must && percent(rng, 60) {
        out.extend_from_slice(text);
        return;
    }
    let before = text.iter().position(special).unwrap_or(0).min(if percent(rng, 15) { 3 } else { 0 });
    out.extend_from_slice(&text[..before]);
    out.push(format.quote);
    for character in characters(format, &text[before..]) {
        if character == [format.quote] || character == [format.escape] {
            out.push(format.escape);
        }
        out.extend_from_slice(character);
    }
    out.push(format.quote);
}

/// Backslashes before what would end the field; other escapes at random.
fn text_field(rng: &mut Rng, format: &Format, text: &[u8], out: &mut Vec<u8>) {
    for character in characters(format, text) {
        match character {
            b"\n" => out.extend_from_slice(pick::<&[u8]>(rng, &[b"\\n", b"\\\n", b"\\012", b"\\x0a"])),
            b"\r" => out.extend_from_slice(pick::<&[u8]>(rng, &[b"\\r", b"\\\r", b"\\015", b"\\x0D"])),
            b"\\" => out.extend_from_slice(b"\\\\"),
            [byte] if *byte == format.delimiter => out.extend([b'\\', *byte]),
            character => out.extend_from_slice(character),
        }
    }
}

/// The text cut so that no later byte of a character is taken for ASCII.
fn characters<'a>(format: &'a Format, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let bytes = character_bytes(format.encoding.as_deref(), *first).min(rest.len());
        let (character, after) = rest.split_at(bytes);
        rest = after;
        Some(character)
    })
}

/// Something COPY probably refuses, somewhere; returns where.
fn damage(rng: &mut Rng, file: &NastyFile, alphabet: &Alphabet, out: &mut Vec<u8>) -> usize {
    let extra_field =
        [alphabet.eol, &[file.format.delimiter].repeat(file.columns.len()), alphabet.eol].concat();
    let other_eol = if alphabet.eol == b"\n" { &b"\r"[..] } else { b"\n" };
    let quote = [file.format.quote];
    let choices: [&[u8]; 7] = [
        &extra_field,
        other_eol,
        &quote,
        b"\xff\xfe",
        b"\0",
        b"\\.",
        &[alphabet.eol, b"\\.", alphabet.eol].concat(),
    ];
    let piece = pick(rng, &choices).to_vec();
    let at = rng.usize(..=out.len());
    out.splice(at..at, piece);
    at
}
