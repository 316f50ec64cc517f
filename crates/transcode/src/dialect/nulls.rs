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
//! column whose values all have some (R writes `NA` so) is NULL as among numbers.

use super::Unsure;
use super::cell_types::{Class, is_missing, kind};
use super::rows::Reader;
use super::table::{Lines, Profile};
use super::windows::Window;
use std::collections::BTreeMap;
use std::ops::Range;

/// Words that are NULL even among text.
const UNMISTAKABLE: &[&str] = &["\\N", "NULL", "(null)", "<NULL>", "<null>", "<NA>", "#N/A", "null"];

/// Words among text that are worth a question.
const SUSPICIOUS: &[&str] = &["NA", "N/A", "n/a", "-", "?", "#N/A", "NaN", "nan"];

/// A value of JSON, in a column of which other values are no NULL.
const JSON_NULL: &str = "null";

/// A word that stands for NULL so many times less often than the empty field does not stand for it.
const RARE: usize = 1000;

/// More spellings than this are not one file's.
const SPELLINGS_MAX: usize = 6;

#[derive(Default, Clone)]
struct Use {
    /// In columns that have a class.
    typed: usize,
    /// In columns of text.
    text: usize,
    /// These columns of text.
    columns: BTreeMap<usize, Column>,
}

/// A column of text that a word stands in.
#[derive(Default, Clone)]
struct Column {
    words: usize,
    values: usize,
    /// Values that look like the word.
    alike: usize,
    quoted: usize,
}

impl Column {
    /// All values have quotes, as R writes them around text: what has none is no text.
    fn proves_null(&self) -> bool {
        self.values > 0 && self.quoted == self.values
    }
}

impl Use {
    /// Columns prove that it is NULL, and there is text of which it may be a value.
    fn is_doubtful(&self, spelling: &str) -> bool {
        let may_be_value = || self.typed > 0 && !UNMISTAKABLE.contains(&spelling);
        self.text > 0 && !spelling.trim().is_empty() && (spelling == JSON_NULL || may_be_value())
    }

    /// More than half of the values of a column of text look like it.
    fn looks_like_a_value(&self) -> bool {
        self.columns.values().any(|column| column.alike * 2 > column.values)
    }

    /// Columns whose quotes prove that the word is NULL are as good as those of numbers.
    fn take_proofs(&mut self) {
        let proven: usize =
            self.columns.values().filter(|column| column.proves_null()).map(|column| column.words).sum();
        (self.typed, self.text) = (self.typed + proven, self.text - proven);
        self.columns.retain(|_, column| !column.proves_null());
    }
}

/// What a word is made of.
#[derive(PartialEq, Eq)]
enum Look {
    Upper,
    Lower,
    Capital,
    Signs,
}

impl Look {
    fn of(value: &[u8]) -> Option<Look> {
        let (first, rest) = value.split_first()?;
        let upper = rest.iter().all(u8::is_ascii_uppercase);
        let lower = rest.iter().all(u8::is_ascii_lowercase);
        match first {
            b'A'..=b'Z' if upper => Some(Look::Upper),
            b'A'..=b'Z' if lower => Some(Look::Capital),
            b'a'..=b'z' if lower => Some(Look::Lower),
            _ if value.iter().all(u8::is_ascii_punctuation) => Some(Look::Signs),
            _ => None,
        }
    }
}

/// Codes and words of one kind: `NA` and `DE`, `none` and `severe`; or documents, of which `null` is one.
fn are_alike(word: &[u8], value: &[u8]) -> bool {
    if word == JSON_NULL.as_bytes() {
        return matches!(value.trim_ascii(), [b'{', .., b'}'] | [b'[', .., b']']);
    }
    value.len() <= word.len() * 2 && Look::of(word).is_some_and(|look| Look::of(value) == Some(look))
}

/// Every spelling found, with where it stands.
#[derive(Default)]
pub(super) struct Spellings {
    uses: BTreeMap<String, Use>,
}

impl Spellings {
    /// Looks at the records of `range`.
    pub(super) fn add(
        &mut self,
        lines: &Lines,
        range: Range<usize>,
        profile: &Profile,
        reader: &mut Reader,
        window: &Window,
    ) {
        let classes = profile.classes();
        for no in range {
            let kinds = lines.kinds(no);
            let suspicious = kinds.len() == profile.width()
                && lines.lines.get(no).is_some_and(|line| !line.is_blank() && !line.broken)
                && kinds.iter().any(|kind| !kind.is_value());
            let Some(line) = lines.lines.get(no).filter(|_| suspicious) else { continue };
            line.read_again(reader, window);
            for (column, class) in classes.iter().enumerate().take(reader.record.len()) {
                let value = reader.record.value(column);
                let is_value = reader.record.quoted(column) || reader.record.escaped(column);
                if is_value || kind(value).is_value() {
                    continue;
                }
                self.count(value, *class, column);
            }
        }
    }

    /// Some words may be values of the text they stand in: then all values of these columns are to be
    /// compared.
    pub(super) fn are_doubtful(&self) -> bool {
        self.uses.iter().any(|(spelling, uses)| uses.is_doubtful(spelling) || may_be_proven(spelling, uses))
    }

    /// All records were compared.
    pub(super) fn take_proofs(&mut self) {
        for (_, uses) in self.uses.iter_mut().filter(|(spelling, uses)| may_be_proven(spelling, uses)) {
            uses.take_proofs();
        }
    }

    /// Compares doubtful words with the values of the records of `range`.
    pub(super) fn compare(
        &mut self,
        lines: &Lines,
        range: Range<usize>,
        width: usize,
        reader: &mut Reader,
        window: &Window,
    ) {
        for line in lines.lines.get(range).unwrap_or_default() {
            if line.width != width || line.broken {
                continue;
            }
            line.read_again(reader, window);
            let is_compared =
                |(word, uses): &(&String, &mut Use)| uses.is_doubtful(word) || may_be_proven(word, uses);
            for (word, uses) in self.uses.iter_mut().filter(is_compared) {
                for (no, column) in &mut uses.columns {
                    let (value, quoted) = (reader.record.value(*no), reader.record.quoted(*no));
                    if kind(value).is_value() || quoted && !value.is_empty() {
                        column.values += 1;
                        column.quoted += usize::from(quoted);
                        // The same word in quotes is a value, and one without is none.
                        column.alike += usize::from(!quoted && are_alike(word.as_bytes(), value));
                    }
                }
            }
        }
    }

    fn count(&mut self, value: &[u8], class: Option<Class>, column: usize) {
        // NaN is a number. A file whose numbers happen to be whole is often one of several, others of which
        // have fractions.
        if value.eq_ignore_ascii_case(b"nan") && class == Some(Class::Number) {
            return;
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        let uses = self.uses.entry(text.to_owned()).or_default();
        if class.is_some() {
            uses.typed += 1;
        } else {
            uses.text += 1;
            uses.columns.entry(column).or_default().words += 1;
        }
    }

    /// The spellings of NULL, the empty field first; at least one. `unseen` is the table's profile where
    /// there is more of it.
    pub(super) fn settle(&self, copy_text: bool, unseen: Option<&Profile>) -> Settled {
        let backslash = copy_text || self.uses.contains_key("\\N");
        let empty = self.uses.get("").map_or(0, |uses| uses.typed + uses.text);
        let mut found: Vec<(&String, usize)> = Vec::new();
        let mut unsure: Option<Unsure> = None;
        let mut kept: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (spelling, uses) in &self.uses {
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
        let words: Vec<String> = nulls.iter().filter(|word| is_word(word)).cloned().collect();
        let Some(profile) = unseen.filter(|_| !words.is_empty()) else {
            return Settled { nulls, kept, unsure };
        };
        if !backslash && !nulls[0].is_empty() {
            nulls.insert(0, String::new());
        }
        let not_in = |word: &String, column: &usize| {
            self.uses.get(word).is_none_or(|uses| !uses.columns.contains_key(column))
        };
        for word in words {
            let is_kept = kept.contains_key(&word);
            let text = (0..profile.width()).filter(|column| profile.is_text(*column));
            let columns: Vec<usize> = text.filter(|column| is_kept || not_in(&word, column)).collect();
            if !columns.is_empty() {
                unsure = unsure.or(Some(question(
                    &word,
                    "NULL, but as itself in columns of text that it was not seen in",
                )));
                kept.insert(word, columns);
            }
        }
        Settled { nulls, kept, unsure }
    }
}

/// Quotes around the other values of its columns may prove that it is none.
fn may_be_proven(spelling: &str, uses: &Use) -> bool {
    uses.text > 0 && is_word(spelling) && is_missing(spelling.as_bytes()) && !spelling.trim().is_empty()
}

/// A word that may be a value.
fn is_word(spelling: &str) -> bool {
    !spelling.is_empty() && !UNMISTAKABLE.contains(&spelling)
}

/// What spells NULL.
pub(super) struct Settled {
    pub(super) nulls: Vec<String>,
    /// Columns in which one of these is a value.
    pub(super) kept: BTreeMap<String, Vec<usize>>,
    pub(super) unsure: Option<Unsure>,
}

fn question(spelling: &str, read_as: &str) -> Unsure {
    Unsure { what: format!("\"{spelling}\" among text is read as {read_as}"), option: "--null" }
}
