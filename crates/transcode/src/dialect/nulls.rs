//! What the data says for "no value".
//!
//! A word is NULL where the rest of its column proves that it is no value: `NA` among numbers. Words that
//! mean nothing else (`\N`, `NULL`) are NULL in columns of text too, unless the empty field says it a
//! thousand times as often: then the word is the name of something. The empty field is NULL wherever it
//! occurs, except beside `\N` in columns of text, as in COPY's text format. A word that is NULL among numbers
//! stays a value in columns of text if it looks like their values (`NA` among `DE` and `FR`; `null` among
//! documents of JSON is a value everywhere), or stands there much more often. Among other text it is NULL.
//! Both are said to be unsure. Of a file that was not seen whole nobody knows whether the word, or the empty
//! field, stands further on: a word stays a value in columns of text that it was not seen in, and the empty
//! field is NULL beside it. Both do not hold for words that mean nothing else. A word without quotes in a
//! column whose values all have some (R writes `NA` so) is NULL as among numbers. Files of a table that are
//! cut alike are judged together, as one.

use super::cell_types::{Class, is_missing, kind};
use super::regions::Regions;
use super::rows::Reader;
use super::table::{Lines, Profile};
use super::windows::{Window, Windows};
use super::{Cut, Finding, Given, Unsure};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What says which words are NULL.
pub const NULL_OPTION: &str = "--null";

/// Words that are NULL even among text.
const UNMISTAKABLE: &[&str] = &["\\N", "NULL", "(null)", "<NULL>", "<null>", "<NA>", "#N/A", "null"];

/// Words among text that are worth a question.
const SUSPICIOUS: &[&str] = &["NA", "N/A", "n/a", "-", "?", "#N/A", "NaN", "nan"];

/// A value of JSON, in a column of which other values are no NULL.
const JSON_NULL: &str = "null";

/// A word that stands for NULL so many times less often than the empty field does not stand for it.
const RARE: usize = 1000;

/// So many records of a file are compared with the words of others.
const SHAPED_RECORDS: usize = 200;

/// Longer values are like no word that stands for NULL.
const SHAPE_BYTES_MAX: usize = 16;

/// More spellings than this are not one file's.
const SPELLINGS_MAX: usize = 6;

/// A column that a word stands in.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Column {
    words: usize,
    /// Of these and what follows those of columns of text alone are counted.
    values: usize,
    /// Values that look like the word.
    alike: usize,
    quoted: usize,
}

impl Column {
    fn count(&mut self, word: &str, shape: Shape, times: usize) {
        self.values += times;
        self.quoted += if shape.quoted { times } else { 0 };
        self.alike += if shape.is_like(word) { times } else { 0 };
    }

    fn add(&mut self, other: &Column) {
        self.words += other.words;
        self.values += other.values;
        self.alike += other.alike;
        self.quoted += other.quoted;
    }

    /// All values have quotes, as R writes them around text: what has none is no text.
    fn proves_null(&self) -> bool {
        self.values > 0 && self.quoted == self.values
    }
}

/// Where a word stands, after what the columns hold.
#[derive(Default)]
struct Use<'a> {
    /// So often in columns that have a class, or whose quotes prove that it is NULL.
    typed: usize,
    /// In columns of text.
    text: usize,
    /// These columns of text.
    columns: BTreeMap<usize, &'a Column>,
}

impl Use<'_> {
    /// Columns prove that it is NULL, and there is text of which it may be a value.
    fn is_doubtful(&self, spelling: &str) -> bool {
        let may_be_value = || self.typed > 0 && !UNMISTAKABLE.contains(&spelling);
        self.text > 0 && !spelling.trim().is_empty() && (spelling == JSON_NULL || may_be_value())
    }

    /// More than half of the values of a column of text look like it.
    fn looks_like_a_value(&self) -> bool {
        self.columns.values().any(|column| column.alike * 2 > column.values)
    }
}

/// What a word is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    Upper,
    Lower,
    Capital,
    Signs,
    Document,
    Other,
}

impl Look {
    fn of(value: &[u8]) -> Look {
        let Some((first, rest)) = value.split_first() else { return Look::Other };
        let upper = rest.iter().all(u8::is_ascii_uppercase);
        let lower = rest.iter().all(u8::is_ascii_lowercase);
        match first {
            b'A'..=b'Z' if upper => Look::Upper,
            b'A'..=b'Z' if lower => Look::Capital,
            b'a'..=b'z' if lower => Look::Lower,
            _ if matches!(value.trim_ascii(), [b'{', .., b'}'] | [b'[', .., b']']) => Look::Document,
            _ if value.iter().all(u8::is_ascii_punctuation) => Look::Signs,
            _ => Look::Other,
        }
    }
}

/// What of a value is compared with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    look: Look,
    bytes: usize,
    quoted: bool,
}

impl Shape {
    fn of(value: &[u8], quoted: bool) -> Shape {
        Shape { look: Look::of(value), bytes: value.len().min(SHAPE_BYTES_MAX), quoted }
    }

    /// Codes and words of one kind: `NA` and `DE`, `none` and `severe`; or documents, of which `null` is one.
    /// The same word in quotes is a value, and one without is none.
    fn is_like(self, word: &str) -> bool {
        let is_alike = match word {
            JSON_NULL => self.look == Look::Document,
            _ => self.bytes <= word.len() * 2 && Look::of(word.as_bytes()) == self.look,
        };
        is_alike && !self.quoted && self.look != Look::Other
    }
}

/// Every word of a file that may stand for NULL, with where it stands.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Spellings {
    words: BTreeMap<String, BTreeMap<usize, Column>>,
    profile: Profile,
    /// What the first values of columns of text are like.
    shapes: BTreeMap<usize, BTreeMap<Shape, usize>>,
    /// Backslashes escape, and there are no quotes.
    is_copy_text: bool,
    /// There is more of the table than was seen.
    has_more: bool,
}

impl Spellings {
    /// The words of all these files, whose fields are the same. A word is compared with the values of its
    /// columns also in files that it does not stand in.
    pub fn of_all(files: &[&Spellings]) -> Spellings {
        let mut all = Spellings::default();
        for file in files {
            all.profile.join(&file.profile);
            for (word, theirs) in &file.words {
                let columns = all.words.entry(word.clone()).or_default();
                theirs.iter().for_each(|(no, column)| columns.entry(*no).or_default().add(column));
            }
        }
        for (word, columns) in &mut all.words {
            for (no, column) in columns {
                files.iter().for_each(|file| file.compare_with(word, *no, column));
            }
        }
        all
    }

    /// Compares a word of another file with the values of the column here, where that is not yet done.
    fn compare_with(&self, word: &str, no: usize, column: &mut Column) {
        if !self.profile.is_text(no) {
            column.values += self.profile.values(no);
        } else if self.words.get(word).is_none_or(|columns| !columns.contains_key(&no)) {
            let shapes = self.shapes.get(&no).into_iter().flatten();
            shapes.for_each(|(shape, times)| column.count(word, *shape, *times));
        }
    }

    /// Of very many files some are enough to compare words with, and to tell what the columns hold.
    pub fn keep_words(&mut self) {
        self.shapes = BTreeMap::new();
        if self.words.keys().all(String::is_empty) {
            (self.words, self.profile) = (BTreeMap::new(), Profile::default());
        }
    }

    /// Whether words of this file are read otherwise beside `all`, those of its own among them. Of a file
    /// that was seen whole, those that stand in it.
    pub fn are_otherwise_in(&self, all: &Spellings) -> bool {
        let (alone, among) = (self.settle(), self.among(all).settle());
        let words: BTreeSet<&String> = alone.nulls.iter().chain(&among.nulls).collect();
        words.into_iter().any(|word| {
            let stands_in = |no: &usize| self.words.get(word).is_some_and(|columns| columns.contains_key(no));
            let is_null = |settled: &Settled| settled.nulls.contains(word);
            let kept = |settled: &Settled| -> Vec<usize> {
                let kept = settled.kept.get(word).into_iter().flatten().copied();
                kept.filter(|no| self.has_more || stands_in(no)).collect()
            };
            (self.has_more || self.words.contains_key(word))
                && (is_null(&alone) != is_null(&among) || kept(&alone) != kept(&among))
        })
    }

    /// The words of all, and what is this file's own.
    fn among(&self, all: &Spellings) -> Spellings {
        Spellings { is_copy_text: self.is_copy_text, has_more: self.has_more, ..all.clone() }
    }
}

impl Finding {
    pub(super) fn find_nulls(
        &mut self,
        cut: &Cut,
        regions: &Regions,
        windows: &Windows,
        given: &Given,
        reader: &mut Reader,
    ) {
        if let Some(nulls) = &given.nulls {
            self.dialect.nulls.clone_from(nulls);
            return;
        }
        let below = regions.start + regions.header_lines;
        let data = below + regions.lines_drawn_below_header(&cut.head);
        let mut spellings = Spellings {
            profile: cut.profile(regions.width, data, regions.end),
            is_copy_text: self.is_copy_text(),
            has_more: !windows.head.at_end,
            ..Spellings::default()
        };
        let range = |no: usize, lines: &Lines| match no {
            0 => data..regions.end.unwrap_or(lines.len()).max(data),
            _ => 0..lines.len(),
        };
        for (no, (lines, window)) in cut.with_windows(windows).enumerate() {
            spellings.add(lines, range(no, lines), reader, window);
        }
        if spellings.are_compared() {
            for (no, (lines, window)) in cut.with_windows(windows).enumerate() {
                spellings.compare(lines, range(no, lines), regions.width, reader, window);
            }
        }
        spellings.look_at_shapes(&cut.head, range(0, &cut.head), reader, &windows.head);
        let settled = match &given.spellings {
            Some(all) => spellings.among(all).settle(),
            None => spellings.settle(),
        };
        self.spellings = spellings;
        (self.dialect.nulls, self.dialect.kept) = (settled.nulls, settled.kept);
        self.unsure.extend(settled.unsure);
    }
}

impl Spellings {
    /// Looks at the records of `range`.
    fn add(&mut self, lines: &Lines, range: Range<usize>, reader: &mut Reader, window: &Window) {
        for no in range {
            let kinds = lines.kinds(no);
            let suspicious = kinds.len() == self.profile.width()
                && lines.lines.get(no).is_some_and(|line| !line.is_blank() && !line.broken)
                && kinds.iter().any(|kind| !kind.is_value());
            let Some(line) = lines.lines.get(no).filter(|_| suspicious) else { continue };
            line.read_again(reader, window);
            for column in 0..self.profile.width().min(reader.record.len()) {
                let value = reader.record.value(column);
                let is_value = reader.record.quoted(column) || reader.record.escaped(column);
                if is_value || kind(value).is_value() {
                    continue;
                }
                let Ok(word) = std::str::from_utf8(value) else { continue };
                self.words.entry(word.to_owned()).or_default().entry(column).or_default().words += 1;
            }
        }
    }

    /// Some words may be values of the text they stand in: then all values of these columns are to be
    /// compared.
    fn are_compared(&self) -> bool {
        let stands_in_text =
            |columns: &BTreeMap<usize, Column>| columns.keys().any(|no| self.profile.class(*no).is_none());
        self.words.iter().any(|(word, columns)| is_compared(word) && stands_in_text(columns))
    }

    /// Compares words with the values of the records of `range`.
    fn compare(
        &mut self,
        lines: &Lines,
        range: Range<usize>,
        width: usize,
        reader: &mut Reader,
        window: &Window,
    ) {
        let classes = self.profile.classes();
        for line in lines.lines.get(range).unwrap_or_default() {
            if line.width != width || line.broken {
                continue;
            }
            line.read_again(reader, window);
            for (word, columns) in self.words.iter_mut().filter(|(word, _)| is_compared(word)) {
                for (no, column) in columns.iter_mut().filter(|(no, _)| classes[**no].is_none()) {
                    if let Some(shape) = shape_of(reader, *no) {
                        column.count(word, shape, 1);
                    }
                }
            }
        }
    }

    fn look_at_shapes(&mut self, lines: &Lines, range: Range<usize>, reader: &mut Reader, window: &Window) {
        let text: Vec<usize> = self.text_columns().collect();
        for line in lines.lines.get(range).unwrap_or_default().iter().take(SHAPED_RECORDS) {
            line.read_again(reader, window);
            for no in text.iter().filter(|no| **no < reader.record.len()) {
                if let Some(shape) = shape_of(reader, *no) {
                    *self.shapes.entry(*no).or_default().entry(shape).or_default() += 1;
                }
            }
        }
    }

    fn text_columns(&self) -> impl Iterator<Item = usize> {
        (0..self.profile.width()).filter(|column| self.profile.is_text(*column))
    }

    fn use_of<'a>(&'a self, word: &str) -> Use<'a> {
        let mut uses = Use::default();
        for (no, column) in self.words.get(word).into_iter().flatten() {
            match self.profile.class(*no) {
                // NaN is a number. A file whose numbers happen to be whole is often one of several, others of
                // which have fractions.
                Some(Class::Number) if word.eq_ignore_ascii_case("nan") => {}
                // Columns whose quotes prove that the word is NULL are as good as those of numbers.
                None if !(is_word(word) && is_compared(word) && column.proves_null()) => {
                    uses.text += column.words;
                    uses.columns.insert(*no, column);
                }
                _ => uses.typed += column.words,
            }
        }
        uses
    }

    /// The spellings of NULL, the empty field first; at least one.
    fn settle(&self) -> Settled {
        let backslash = self.is_copy_text || self.words.contains_key("\\N");
        let empty = self.use_of("");
        let empty = empty.typed + empty.text;
        let mut found: Vec<(&String, usize)> = Vec::new();
        let mut unsure: Option<Unsure> = None;
        let mut kept: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for spelling in self.words.keys() {
            let uses = self.use_of(spelling);
            if uses.typed + uses.text == 0 {
                continue;
            }
            let is_json = spelling == JSON_NULL && uses.looks_like_a_value();
            let sure = UNMISTAKABLE.contains(&spelling.as_str())
                && uses.text.saturating_mul(RARE) >= empty
                && !is_json;
            let looks_null = uses.typed > 0 && uses.text <= uses.typed * 4 && !uses.looks_like_a_value();
            let null = match spelling.as_str() {
                blank if blank.trim().is_empty() => blank.is_empty() && (uses.typed > 0 || !backslash),
                _ => is_missing(spelling.as_bytes()) && (sure || looks_null),
            };
            let doubtful = uses.is_doubtful(spelling);
            let among_numbers =
                !null && uses.typed > 0 && is_word(spelling) && is_missing(spelling.as_bytes());
            if null || among_numbers {
                found.push((spelling, uses.typed + uses.text));
            }
            if among_numbers {
                unsure = unsure.or(Some(question(spelling, "NULL, but as itself in columns of text")));
                kept.insert(spelling.clone(), uses.columns.keys().copied().collect());
                continue;
            }
            if null && doubtful && !sure {
                unsure = unsure.or(Some(question(spelling, "NULL, it may be a value")));
            } else if !null && (doubtful || SUSPICIOUS.contains(&spelling.as_str())) {
                unsure = unsure.or(Some(question(spelling, "text, it may stand for NULL")));
            }
        }
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found.truncate(SPELLINGS_MAX);
        found.sort_by_key(|(spelling, _)| !spelling.is_empty());
        let mut nulls: Vec<String> = found.into_iter().map(|(spelling, _)| spelling.clone()).collect();
        if nulls.is_empty() {
            nulls.push(if backslash { "\\N".to_owned() } else { String::new() });
        }
        self.keep_unseen(Settled { nulls, kept, unsure }, backslash)
    }

    /// Of a file that was not seen whole nobody knows what stands further on.
    fn keep_unseen(&self, mut settled: Settled, backslash: bool) -> Settled {
        let words: Vec<String> = settled.nulls.iter().filter(|word| is_word(word)).cloned().collect();
        if !self.has_more || words.is_empty() {
            return settled;
        }
        if !backslash && !settled.nulls[0].is_empty() {
            settled.nulls.insert(0, String::new());
        }
        for word in words {
            let uses = self.use_of(&word);
            let is_kept = settled.kept.contains_key(&word);
            let columns: Vec<usize> =
                self.text_columns().filter(|no| is_kept || !uses.columns.contains_key(no)).collect();
            if !columns.is_empty() {
                settled.unsure = settled.unsure.or(Some(question(
                    &word,
                    "NULL, but as itself in columns of text that it was not seen in",
                )));
                settled.kept.insert(word, columns);
            }
        }
        settled
    }
}

/// What of the field is compared with words, if it is a value.
fn shape_of(reader: &Reader, no: usize) -> Option<Shape> {
    let (value, quoted) = (reader.record.value(no), reader.record.quoted(no));
    (kind(value).is_value() || quoted && !value.is_empty()).then(|| Shape::of(value, quoted))
}

/// A word of which the values beside it tell what it is.
fn is_compared(word: &str) -> bool {
    word == JSON_NULL || is_word(word) && !word.trim().is_empty() && is_missing(word.as_bytes())
}

/// A word that may be a value.
fn is_word(spelling: &str) -> bool {
    !spelling.is_empty() && !UNMISTAKABLE.contains(&spelling)
}

/// What spells NULL.
struct Settled {
    nulls: Vec<String>,
    /// Columns in which one of these is a value.
    kept: BTreeMap<String, Vec<usize>>,
    unsure: Option<Unsure>,
}

fn question(spelling: &str, read_as: &str) -> Unsure {
    Unsure { what: format!("\"{spelling}\" among text is read as {read_as}"), option: NULL_OPTION }
}
