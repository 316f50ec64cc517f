//! The rows of a load, as the test knows them, and the files that say the same.
//!
//! The model reaches the server as one csv file in UTF-8, by the server's own COPY; the load reads the same rows in
//! whatever format, encoding and compression its scenario has drawn.

use crate::scene::gzip;
use fastrand::Rng;
use std::fmt::Write as _;

/// Columns of a file, in its order.
pub(super) const HEADER: &str = "id,part,score,amount,day,note";

/// What the table must hold.
#[derive(Debug, Clone)]
pub(super) struct Record {
    id: u64,
    part: u8,
    score: i16,
    amount_cents: i64,
    /// Day of 2024, or none.
    day: Option<u16>,
    note: Option<String>,
}

/// COPY's two formats that consist of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Text,
}

/// How a file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    Latin1,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Gzip,
    Zstd,
}

impl Codec {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Codec::Plain => "",
            Codec::Gzip => ".gz",
            Codec::Zstd => ".zst",
        }
    }
}

/// Rows with ids from `first` on; `wide` ones have notes that the server stores out of line.
pub(super) fn records(random: &mut Rng, first: u64, count: u64, charset: Charset, wide: bool) -> Vec<Record> {
    (first..first + count)
        .map(|id| Record {
            id,
            part: random.u8(..),
            score: random.i16(..),
            amount_cents: random.i64(-9_999_999..9_999_999),
            day: (random.u8(..10) > 0).then(|| random.u16(1..=366)),
            note: note(random, charset, wide && id % 50 == 0),
        })
        .collect()
}

fn note(random: &mut Rng, charset: Charset, wide: bool) -> Option<String> {
    const NASTY: [&str; 8] = ["\n", "\"", "\\", ",", "\t", "'", "\r\n", "%s"];
    let letters: &[char] = match charset {
        Charset::Utf8 => &['a', 'z', ' ', 'é', '€', '漢', '🐘'],
        Charset::Latin1 => &['a', 'z', ' ', 'é', 'ß', 'ÿ', '£'],
    };
    match random.u8(..20) {
        0 => None,
        1 => Some(String::new()),
        2 => Some((0..random.u8(1..6)).map(|_| NASTY[random.usize(..NASTY.len())]).collect()),
        3 => Some((0..random.u8(1..30)).map(|_| letters[random.usize(..letters.len())]).collect()),
        _ => {
            let words = if wide { random.usize(200..400) } else { random.usize(1..4) };
            Some((0..words).fold(String::new(), |mut text, _| {
                let _ = write!(text, "{:016x}", random.u64(..));
                text
            }))
        }
    }
}

impl Record {
    fn fields(&self) -> [Option<String>; 6] {
        let sign = if self.amount_cents < 0 { "-" } else { "" };
        let cents = self.amount_cents.abs();
        [
            Some(self.id.to_string()),
            Some(self.part.to_string()),
            Some(self.score.to_string()),
            Some(format!("{sign}{}.{:02}", cents / 100, cents % 100)),
            self.day.map(day_of_2024),
            self.note.clone(),
        ]
    }
}

fn day_of_2024(mut day: u16) -> String {
    const DAYS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, days) in DAYS.into_iter().enumerate() {
        if day <= days {
            return format!("2024-{:02}-{day:02}", month + 1);
        }
        day -= days;
    }
    unreachable!("a year of 366 days")
}

/// The model: csv in UTF-8 with a header.
pub(super) fn model(records: &[Record]) -> Vec<u8> {
    text_of(records, Format::Csv).into_bytes()
}

/// A file of these records.
pub(super) fn file(records: &[Record], format: Format, charset: Charset, codec: Codec) -> Vec<u8> {
    let text = text_of(records, format);
    let bytes: Vec<u8> = match charset {
        Charset::Utf8 => text.into_bytes(),
        Charset::Latin1 => text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect(),
    };
    match codec {
        Codec::Plain => bytes,
        Codec::Gzip => gzip(&bytes),
        Codec::Zstd => zstd::encode_all(bytes.as_slice(), 1).unwrap(),
    }
}

fn text_of(records: &[Record], format: Format) -> String {
    let mut text = if format == Format::Csv { format!("{HEADER}\n") } else { String::new() };
    for record in records {
        let fields = record.fields().map(|field| match format {
            Format::Csv => field.map_or_else(String::new, |value| csv_field(&value)),
            Format::Text => field.map_or_else(|| "\\N".to_owned(), |value| text_field(&value)),
        });
        text += &fields.join(if format == Format::Csv { "," } else { "\t" });
        text.push('\n');
    }
    text
}

fn csv_field(value: &str) -> String {
    if value.is_empty() || value.contains(['"', ',', '\n', '\r']) || value == "\\." {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

fn text_field(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}
