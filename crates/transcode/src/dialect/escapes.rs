//! Backslash sequences of a sample: whether COPY's text format has them all.

use super::rows::Reader;
use super::windows::{Window, Windows};
use crate::encode::attributes::text_value;
use crate::infer::json;
use howdah_model::{Dialect, Escape};

/// Where the first backslash stands in these bytes that speaks for COPY's text format, with this delimiter.
/// `None` if one speaks against it.
pub fn copy_escape(delimiter: u8, bytes: &[u8]) -> Option<usize> {
    let mut escapes = Escapes::default();
    escapes.add(bytes, &[delimiter], None);
    escapes.first.filter(|_| escapes.foreign == 0)
}

/// Whether backslashes before this delimiter escape it, where records are as regular with them as without:
/// they do if no other backslash speaks against that. `None` if that cannot be said. Drives (`C:\`) end with
/// one in each record, too.
pub(super) fn escape_delimiters(windows: &[Window], delimiter: &str) -> Option<bool> {
    let mut escapes = Escapes::default();
    for window in windows {
        escapes.add(&window.text[window.from..], delimiter.as_bytes(), None);
    }
    // `C:\temp\` has a backslash that looks like a tab's.
    let has_paths = escapes.letters > escapes.breaks;
    let may_escape = escapes.foreign == 0 && !has_paths && escapes.delimiters + escapes.drives > 0;
    let has_drives_alone = escapes.delimiters + escapes.doubled + escapes.endings == 0;
    may_escape.then_some(!has_drives_alone)
}

/// Backslash sequences.
#[derive(Default)]
pub(super) struct Escapes {
    /// Fields that are `\N`.
    pub(super) nulls: usize,
    /// `\\`
    pub(super) doubled: usize,
    /// `\n`, `\r` and `\t`.
    pub(super) letters: usize,
    /// Those of them that end a line of words or their field, or come twice. In the names of paths and users
    /// letters and digits follow, in regular expressions signs.
    pub(super) breaks: usize,
    /// Those before line endings.
    pub(super) endings: usize,
    /// Those before delimiters, drives (`C:\`) aside.
    delimiters: usize,
    /// Those that end a drive.
    drives: usize,
    /// Those that COPY's text format does not have, and documents that are none without their backslashes.
    pub(super) foreign: usize,
    /// Of the former those before the dialect's quote.
    pub(super) quotes: usize,
    /// The file ends with the line `\.`.
    pub(super) has_marker: bool,
    /// Where the first one begins that speaks for COPY's text format.
    first: Option<usize>,
}

impl Escapes {
    pub(super) fn count(dialect: &Dialect, windows: &Windows) -> Escapes {
        let mut escapes = Escapes::default();
        let plain = Dialect { quote: None, escape: Escape::None, ..dialect.clone() };
        let has_any = windows.all().any(|window| memchr::memchr(b'\\', &window.text).is_some());
        let Some(mut reader) = Reader::new(&plain).ok().filter(|_| has_any) else { return escapes };
        escapes.has_marker = windows.all().any(|window| window.end_marker().is_some());
        for window in windows.all() {
            let mut at = window.from;
            while let Some(row) = reader.next(window, at) {
                reader.record.values().for_each(|value| escapes.add_value(value));
                at += row.length;
            }
            let end = window.end_marker().unwrap_or(window.text.len());
            escapes.add(&window.text[window.from.min(end)..end], dialect.delimiter.as_bytes(), dialect.quote);
        }
        escapes
    }

    /// Looks at a field as it is written.
    fn add_value(&mut self, value: &[u8]) {
        self.nulls += usize::from(value == b"\\N");
        let is_document = |value: &[u8]| json::document(value).is_some();
        let is_broken = value.contains(&b'\\') && is_document(value) && !is_document(&text_value(value));
        self.foreign += usize::from(is_broken);
    }

    fn add(&mut self, text: &[u8], delimiter: &[u8], quote: Option<u8>) {
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
            let (before, behind) = (&text[..at + found], &text[at + found + 1..]);
            let mut speaks = false;
            match behind.first() {
                Some(b'\\') => {
                    self.doubled += 1;
                    speaks = true;
                }
                Some(b'n' | b'r' | b't') => {
                    self.letters += 1;
                    speaks = !behind.get(1).is_some_and(u8::is_ascii_lowercase);
                    self.breaks += usize::from(is_break(behind, delimiter));
                }
                Some(b'N') => {
                    let ends = |bytes: &[u8]| matches!(bytes.first(), None | Some(b'\n' | b'\r'));
                    let begins =
                        matches!(before.last(), None | Some(b'\n' | b'\r')) || before.ends_with(delimiter);
                    speaks = begins && (ends(&behind[1..]) || behind[1..].starts_with(delimiter));
                }
                Some(b'b' | b'f' | b'v' | b'x' | b'0'..=b'7') => {}
                Some(b'\n' | b'\r') => self.endings += 1,
                Some(_) if behind.starts_with(delimiter) => {
                    let is_drive = before.last() == Some(&b':');
                    self.drives += usize::from(is_drive);
                    self.delimiters += usize::from(!is_drive);
                }
                Some(byte) => {
                    self.foreign += 1;
                    self.quotes += usize::from(Some(*byte) == quote);
                }
                None => return,
            }
            if speaks && self.first.is_none() {
                self.first = Some(at + found);
            }
            at += found + 2;
            if at >= text.len() {
                return;
            }
        }
    }
}

/// Nothing follows the letter of a sequence but a blank, the end of the field, or the same sequence again.
fn is_break(behind: &[u8], delimiter: &[u8]) -> bool {
    let (letter, rest) = (behind.first(), behind.get(1..).unwrap_or_default());
    match rest {
        [] | [b' ' | b'\n' | b'\r', ..] => true,
        [b'\\', next, ..] => Some(next) == letter,
        _ => !delimiter.is_empty() && rest.starts_with(delimiter),
    }
}
