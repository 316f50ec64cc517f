//! What the data says for "no value".
//!
//! A word is NULL where the rest of its column proves that it is no value: `NA` among numbers. Words that
//! mean nothing else (`\N`, `NULL`) are NULL in columns of text too, unless the empty field says it a thousand
//! times as often: then the word is the name of something. The empty field is NULL wherever it
//! occurs, except beside `\N` in columns of text, as in COPY's text format. A word that is NULL in one
//! column is NULL in all of them, so a word that is a value in another column stays a value.

use super::Unsure;
use super::cell_types::{Class, is_missing, kind};
use super::rows::Reader;
use super::table::{Lines, Profile};
use super::windows::Window;
use std::collections::BTreeMap;

/// Words that are NULL even among text.
const UNMISTAKABLE: &[&str] = &["\\N", "NULL", "(null)", "<NULL>", "<null>", "<NA>", "#N/A", "null"];

/// Words among text that are worth a question.
const SUSPICIOUS: &[&str] = &["NA", "N/A", "n/a", "-", "?", "#N/A", "NaN", "nan"];

/// A word that stands for NULL so many times less often than the empty field does not stand for it.
const RARE: usize = 1000;

/// More spellings than this are not one file's.
const SPELLINGS_MAX: usize = 6;

#[derive(Default, Clone, Copy)]
struct Use {
    /// In columns that have a class.
    typed: usize,
    /// In columns of text.
    text: usize,
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
        range: std::ops::Range<usize>,
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
            if reader.next(window, line.start).is_none() {
                continue;
            }
            for (column, class) in classes.iter().enumerate().take(reader.record.len()) {
                let value = reader.record.value(column);
                if reader.record.quoted(column) || kind(value).is_value() {
                    continue;
                }
                self.count(value, *class, profile.is_whole(column));
            }
        }
    }

    fn count(&mut self, value: &[u8], class: Option<Class>, whole: bool) {
        // NaN is a value of numbers that have fractions.
        if value.eq_ignore_ascii_case(b"nan") && class == Some(Class::Number) && !whole {
            return;
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        let uses = self.uses.entry(text.to_owned()).or_default();
        if class.is_some() { uses.typed += 1 } else { uses.text += 1 }
    }

    /// The spellings of NULL, the empty field first; at least one.
    pub(super) fn settle(&self, copy_text: bool) -> (Vec<String>, Option<Unsure>) {
        let backslash = copy_text || self.uses.contains_key("\\N");
        let empty = self.uses.get("").map_or(0, |uses| uses.typed + uses.text);
        let mut found: Vec<(&String, usize)> = Vec::new();
        let mut left: Option<&String> = None;
        for (spelling, uses) in &self.uses {
            let sure = UNMISTAKABLE.contains(&spelling.as_str()) && uses.text.saturating_mul(RARE) >= empty;
            let null = match spelling.as_str() {
                blank if blank.trim().is_empty() => blank.is_empty() && (uses.typed > 0 || !backslash),
                _ => {
                    is_missing(spelling.as_bytes())
                        && (sure || (uses.typed > 0 && uses.text <= uses.typed * 4))
                }
            };
            if null {
                found.push((spelling, uses.typed + uses.text));
            } else if SUSPICIOUS.contains(&spelling.as_str()) {
                left = left.or(Some(spelling));
            }
        }
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found.truncate(SPELLINGS_MAX);
        found.sort_by_key(|(spelling, _)| !spelling.is_empty());
        let mut nulls: Vec<String> = found.into_iter().map(|(spelling, _)| spelling.clone()).collect();
        if nulls.is_empty() {
            nulls.push(if backslash { "\\N".to_owned() } else { String::new() });
        }
        let unsure = left.map(|spelling| Unsure {
            what: format!("\"{spelling}\" among text is read as text, it may stand for NULL"),
            option: "--null",
        });
        (nulls, unsure)
    }
}
