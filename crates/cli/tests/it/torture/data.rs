//! The rows of a load, as the test knows them.
//!
//! The model reaches the server as csv in UTF-8, by the server's own COPY; the load reads the same rows as
//! [`super::written`] writes them, flaws included.

use super::flaw::Flaw;
use super::written::Charset;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of a file, in its order.
pub(super) const HEADER: &str = "id,part,score,amount,day,note";
const COLUMNS: usize = 6;
/// Rows of files have ids from here on; smaller ones are for rows that were there before.
pub(super) const FIRST_ID: u64 = 1000;

/// A row, or a record that is refused.
#[derive(Debug, Clone)]
pub(super) struct Record {
    id: u64,
    part: u8,
    score: i16,
    amount_cents: i64,
    /// Day of 2024, or none.
    day: Option<u16>,
    note: Option<String>,
    /// Its file has no column for notes.
    is_short: bool,
    /// What is wrong with it.
    pub(super) flaw: Option<Flaw>,
    /// The table must hold it.
    pub(super) is_stored: bool,
}

/// What rows are made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stuff {
    pub(super) charset: Charset,
    /// Some notes are so wide that the server stores them out of line.
    pub(super) wide: bool,
    /// Every row has a day, one of so many.
    pub(super) days: Option<u16>,
}

/// Rows with ids from `first` on.
pub(super) fn records(random: &mut Rng, first: u64, count: u64, stuff: Stuff) -> Vec<Record> {
    let one = |id| Record {
        id,
        part: random.u8(..),
        score: random.i16(..),
        amount_cents: random.i64(-9_999_999..9_999_999),
        day: match stuff.days {
            Some(days) => Some(random.u16(1..=days)),
            None => (random.u8(..10) > 0).then(|| random.u16(1..=366)),
        },
        note: note(random, stuff.charset, stuff.wide && id % 50 == 0),
        is_short: false,
        flaw: None,
        is_stored: true,
    };
    (first..first + count).map(one).collect()
}

fn note(random: &mut Rng, charset: Charset, wide: bool) -> Option<String> {
    const NASTY: [&str; 10] = ["\n", "\"", "\\", ",", "\t", "'", "\r\n", "%s", ";", "|"];
    let letters = charset.letters();
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

/// Gives some records the key of an earlier one; of each key only the first, or the last, is stored.
pub(super) fn repeat_keys(random: &mut Rng, files: &mut [Vec<Record>], last_counts: bool) {
    let mut places: Vec<(usize, usize)> =
        (0..files.len()).flat_map(|file| (0..files[file].len()).map(move |no| (file, no))).collect();
    let repeats = places.len() / 300;
    for _ in 0..repeats {
        let (from, to) = (places[random.usize(..places.len())], places[random.usize(..places.len())]);
        let (id, part) = (files[from.0][from.1].id, files[from.0][from.1].part);
        let record = &mut files[to.0][to.1];
        (record.id, record.part) = (id, part);
    }
    if last_counts {
        places.reverse();
    }
    let mut seen = BTreeMap::new();
    for (file, no) in places {
        let record = &mut files[file][no];
        record.is_stored = seen.insert(record.id, ()).is_none();
    }
}

impl Record {
    /// Its fields as a file has them.
    pub(super) fn fields(&self) -> Vec<Option<String>> {
        let sign = if self.amount_cents < 0 { "-" } else { "" };
        let cents = self.amount_cents.abs();
        let mut fields = vec![
            Some(self.id.to_string()),
            Some(self.part.to_string()),
            Some(self.score.to_string()),
            Some(format!("{sign}{}.{:02}", cents / 100, cents % 100)),
            self.day.map(day_of_2024),
            self.note.clone(),
        ];
        if self.is_short {
            fields.pop();
        }
        if let Some(flaw) = self.flaw {
            flaw.spoil(&mut fields, self.id);
        }
        fields
    }

    /// The good record that a bad one is mended into; one that another has the key of gets a key by itself.
    pub(super) fn mended(&self, of_repeats: u64) -> Record {
        let id = if self.flaw == Some(Flaw::Repeat) { self.id + of_repeats } else { self.id };
        Record { id, flaw: None, is_stored: true, ..self.clone() }
    }

    /// What `--nul` makes of a value with a NUL byte.
    pub(super) fn take_nul(&mut self, instead: &str) {
        self.note = Some(format!("nul {instead}"));
    }

    /// Its file has no notes.
    pub(super) fn shorten(&mut self) {
        (self.is_short, self.note) = (true, None);
    }

    /// Columns of its file, in their order.
    pub(super) fn header(&self) -> impl Iterator<Item = &'static str> {
        HEADER.split(',').take(if self.is_short { COLUMNS - 1 } else { COLUMNS })
    }

    /// What `--lenient` makes of a record that is short of its last field.
    pub(super) fn lose_note(&mut self) {
        self.note = None;
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

/// The model: what must be stored of these records, as csv in UTF-8 with a header.
pub(super) fn model(records: &[Record]) -> Vec<u8> {
    let stored = records.iter().filter(|record| record.is_stored).map(|record| Record {
        flaw: None,
        is_short: false,
        ..record.clone()
    });
    super::written::Format::Csv.text_of(&stored.collect::<Vec<_>>()).into_bytes()
}
