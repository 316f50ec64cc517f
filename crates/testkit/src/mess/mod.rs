//! Generated mess: a clean random table, written in a random dialect, with one pollution of a random kind at
//! a random place. The same seed makes the same file.
//!
//! Leaves: the bytes and the clean table that must come back. What is drawn leaves one right answer to a
//! careful person: values have no blanks at their ends, a broken byte stands in text that has whole
//! characters too, a surplus field is put where the row has no other empty one.

mod dialect;
mod pollution;
mod table;

pub use pollution::MessKind;

use crate::database::Row;
use dialect::Drawn;
use fastrand::Rng;
use table::Clean;

/// A messy file.
#[derive(Debug, Clone)]
pub struct Mess {
    /// What was done to it.
    pub kind: MessKind,
    /// The file.
    pub bytes: Vec<u8>,
    /// Only `--lenient` gives the table back.
    pub lenient: bool,
    /// The names of the columns; `None` without a header.
    pub names: Option<Vec<String>>,
    /// The rows, as text.
    pub rows: Vec<Row>,
    /// Records that are beyond mending.
    pub left_out: u64,
    /// The dialect in words.
    pub about: String,
}

/// A file while it is made: lines without their endings, and what must come back.
struct Draft {
    clean: Clean,
    drawn: Drawn,
    /// Records, and whatever else stands in lines of its own; a record may hold line endings.
    lines: Vec<String>,
    /// Where the first data record is in `lines`.
    first_row: usize,
    final_newline: bool,
    /// An ending for each line, if they differ.
    endings: Option<Vec<&'static str>>,
    left_out: u64,
}

/// Stands for bytes that are no character until all else is encoded; followed by the digit of the choice.
const BROKEN: char = '\u{e000}';

impl Mess {
    /// The file of this seed.
    pub fn new(seed: u64) -> Mess {
        let rng = &mut Rng::with_seed(seed);
        let kind = MessKind::ALL[rng.usize(..MessKind::ALL.len())];
        // Not every table and dialect can be polluted in this way: draw until one can.
        loop {
            let (clean, drawn) = (Clean::draw(rng), Drawn::draw(rng));
            let mut draft = Draft::new(rng, clean, drawn);
            if kind.pollute(&mut draft, rng) {
                return draft.finish(kind);
            }
        }
    }
}

impl Draft {
    fn new(rng: &mut Rng, mut clean: Clean, drawn: Drawn) -> Draft {
        drawn.adapt(&mut clean, rng);
        let mut lines = Vec::new();
        if drawn.header {
            lines.push(drawn.header_line(&clean.names));
        }
        let first_row = lines.len();
        lines.extend((0..clean.rows.len()).map(|no| drawn.record(&clean, no)));
        Draft { clean, drawn, lines, first_row, final_newline: true, endings: None, left_out: 0 }
    }

    /// Writes row `no` once more, as it is now.
    fn rewrite(&mut self, no: usize) {
        self.lines[self.first_row + no] = self.drawn.record(&self.clean, no);
    }

    fn finish(self, kind: MessKind) -> Mess {
        let last = self.lines.len() - 1;
        let mut text = String::new();
        for (no, line) in self.lines.iter().enumerate() {
            text += line;
            if no < last || self.final_newline {
                text += self.endings.as_ref().map_or(self.drawn.eol, |endings| endings[no]);
            }
        }
        Mess {
            kind,
            bytes: self.drawn.encode(&text),
            lenient: kind.wants_lenient(),
            names: self.drawn.header.then_some(self.clean.names),
            rows: self.clean.rows,
            left_out: self.left_out,
            about: self.drawn.to_string(),
        }
    }
}

/// A number that the environment asks for: how many files, from which seed on.
pub fn asked(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

fn pick<'a, T: ?Sized>(rng: &mut Rng, choices: &[&'a T]) -> &'a T {
    choices[rng.usize(..choices.len())]
}

fn percent(rng: &mut Rng, chance: u32) -> bool {
    rng.u32(..100) < chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_file_and_every_kind_comes_up() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            let mess = Mess::new(seed);
            assert_eq!(mess.bytes, Mess::new(seed).bytes);
            assert!(!mess.rows.is_empty());
            let width = mess.rows[0].len();
            assert!(mess.rows.iter().all(|row| row.len() == width));
            assert!(mess.names.is_none_or(|names| names.len() == width));
            seen.insert(format!("{:?}", mess.kind));
        }
        assert_eq!(seen.len(), MessKind::ALL.len());
    }
}
