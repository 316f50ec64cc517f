//! Random dialects, and tables written in them.

use super::table::{Clean, DELIMITER, Kind, LINE_ENDING, QUOTE};
use super::{BROKEN, percent, pick};
use encoding_rs::WINDOWS_1252;
use fastrand::Rng;
use std::fmt;

/// A dialect.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) delimiter: &'static str,
    pub(super) quote: Option<char>,
    /// Doubled, or behind a backslash.
    pub(super) doubled: bool,
    pub(super) quoting: Quoting,
    pub(super) eol: &'static str,
    pub(super) header: bool,
    pub(super) encoding: Encoding,
    /// The spelling of NULL.
    pub(super) null: &'static str,
}

/// What is put in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Needed,
    Text,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    Windows1252,
}

const DELIMITERS: [&str; 20] = [
    ",", ",", ",", ",", ",", ",", ",", ",", ";", ";", ";", "\t", "\t", "|", "|", ", ", "^", "||", "\u{1f}",
    " ",
];

const ENCODINGS: [Encoding; 10] = [
    Encoding::Utf8,
    Encoding::Utf8,
    Encoding::Utf8,
    Encoding::Utf8,
    Encoding::Utf8,
    Encoding::Utf8Bom,
    Encoding::Utf8Bom,
    Encoding::Utf16Le,
    Encoding::Utf16Be,
    Encoding::Windows1252,
];

impl Drawn {
    pub(super) fn draw(rng: &mut Rng) -> Drawn {
        let delimiter = pick(rng, &DELIMITERS);
        let quote = match rng.u8(..20) {
            0 if delimiter != " " => None,
            1..=3 => Some('\''),
            _ => Some('"'),
        };
        Drawn {
            delimiter,
            quote,
            doubled: percent(rng, 75),
            quoting: *pick(rng, &[&Quoting::Needed, &Quoting::Needed, &Quoting::Text, &Quoting::All]),
            eol: pick(rng, &["\n", "\n", "\n", "\r\n", "\r\n", "\r"]),
            header: percent(rng, 85),
            encoding: ENCODINGS[rng.usize(..ENCODINGS.len())],
            null: "",
        }
    }

    /// Makes the table one that this dialect can say, so that there is one right answer.
    pub(super) fn adapt(&self, clean: &mut Clean, rng: &mut Rng) {
        let delimiter = self.delimiter.trim();
        let fits = |text: &str| {
            let text = match self.quote {
                Some(quote) => text.replace(QUOTE, &quote.to_string()).replace(DELIMITER, delimiter),
                // A character that is no delimiter, and never the last.
                None => text.replace(QUOTE, "").replace(DELIMITER, ":"),
            };
            let line_ending = if self.quote.is_none() || self.eol == "\r" { " " } else { self.eol };
            text.replace(LINE_ENDING, line_ending)
        };
        for value in clean.rows.iter_mut().flatten().flatten() {
            *value = fits(value);
        }
        for name in &mut clean.names {
            if self.delimiter == " " || self.quote.is_none() {
                *name = name.replace(' ', "_");
            }
        }
        // The first record of a file without a header is one like all others, and a gap among spaces is none.
        for (kind, no) in clean.kinds.iter().zip(0..) {
            for row in clean.rows.iter_mut().take(if self.delimiter == " " { usize::MAX } else { 1 }) {
                let value: &mut Option<String> = &mut row[no];
                if value.is_none() {
                    *value = Some(filling(*kind, rng));
                }
            }
        }
    }

    pub(super) fn header_line(&self, names: &[String]) -> String {
        let line: Vec<String> = names.iter().map(|name| self.field(Some(name), Kind::Word)).collect();
        line.join(self.delimiter)
    }

    /// Row `no` of the table.
    pub(super) fn record(&self, clean: &Clean, no: usize) -> String {
        self.fields(clean, no).join(self.delimiter)
    }

    /// The fields of row `no` as they are written.
    pub(super) fn fields(&self, clean: &Clean, no: usize) -> Vec<String> {
        let row = clean.rows[no].iter().zip(&clean.kinds);
        row.map(|(value, kind)| self.field(value.as_deref(), *kind)).collect()
    }

    pub(super) fn field(&self, value: Option<&str>, kind: Kind) -> String {
        let Some(value) = value else { return self.null.to_owned() };
        let Some(quote) = self.quote else { return value.to_owned() };
        let special = |character: char| {
            self.delimiter.contains(character) || character == quote || matches!(character, '\n' | '\r')
        };
        let quoted = match self.quoting {
            Quoting::All => true,
            Quoting::Text => kind.is_text(),
            Quoting::Needed => false,
        };
        if !quoted && !value.contains(special) {
            return value.to_owned();
        }
        let escaped = if self.doubled { format!("{quote}{quote}") } else { format!("\\{quote}") };
        format!("{quote}{}{quote}", value.replace(quote, &escaped))
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf16Le => {
                format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
            }
            Encoding::Utf16Be => {
                format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect()
            }
            Encoding::Windows1252 => WINDOWS_1252.encode(text).0.into_owned(),
            Encoding::Utf8Bom => broken(&format!("\u{feff}{text}")),
            Encoding::Utf8 => broken(text),
        }
    }

    /// Nothing in it needs many records to be seen.
    pub(super) fn is_plain(&self) -> bool {
        self.quote == Some('"') && [",", ";", "\t", "|"].contains(&self.delimiter) && self.is_utf8()
    }

    pub(super) fn is_utf8(&self) -> bool {
        matches!(self.encoding, Encoding::Utf8 | Encoding::Utf8Bom)
    }
}

/// What is no UTF-8, each one U+FFFD.
const BROKEN_BYTES: [&[u8]; 4] = [b"\xff", b"\xe9", b"\xa9", b"\xe2\x82"];

fn broken(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == BROKEN {
            let choice = characters.next().and_then(|digit| digit.to_digit(10)).unwrap_or(0) as usize;
            bytes.extend(BROKEN_BYTES[choice % BROKEN_BYTES.len()]);
        } else {
            bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
        }
    }
    bytes
}

/// A value for a field that must not be empty.
fn filling(kind: Kind, rng: &mut Rng) -> String {
    match kind {
        Kind::Number => rng.u32(1..4000).to_string(),
        Kind::Fraction => format!("{}.25", rng.u32(..300)),
        Kind::Day => "2019-05-04".to_owned(),
        Kind::Time => "06:30:00".to_owned(),
        Kind::Moment => "2019-05-04 06:30:00".to_owned(),
        Kind::Truth => "true".to_owned(),
        Kind::Code => "A-17".to_owned(),
        Kind::Word | Kind::Phrase | Kind::Remark => "heather".to_owned(),
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Drawn { delimiter, quote, quoting, eol, encoding, null, .. } = self;
        let escape = if self.doubled { "doubled" } else { "backslash" };
        let header = if self.header { "header" } else { "no header" };
        write!(
            f,
            "{delimiter:?}, quote {quote:?} {quoting:?} {escape}, {eol:?}, {header}, {encoding:?}, NULL {null:?}"
        )
    }
}
