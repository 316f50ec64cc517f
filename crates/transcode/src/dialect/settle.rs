//! What the score leaves open, decided for the dialect that won: escapes, COPY's own text format, the
//! delimiter of a single column, comments.

use super::Given;
use super::rows::Reader;
use super::table::{Lines, mark};
use super::windows::{Window, Windows};
use crate::cells::Flaw;
use howdah_model::{Dialect, Escape};

/// Stands between the fields of a file that has one field a record: a control character that text does not
/// hold, so that commas in later records stay data and COPY can be told.
const NO_DELIMITERS: [&str; 4] = ["\x1f", "\x1e", "\x02", "\x03"];

/// Completes the dialect.
pub(super) fn settle(dialect: &mut Dialect, windows: &Windows, given: &Given) {
    if dialect.delimiter.is_empty() {
        let holds =
            |text: &str| windows.all().any(|w| memchr::memmem::find(&w.text, text.as_bytes()).is_some());
        let free = NO_DELIMITERS.iter().find(|delimiter| !holds(delimiter));
        dialect.delimiter = free.map(|free| (*free).to_owned()).unwrap_or_default();
    }
    if dialect.delimiter == "\t" && given.quote.is_none_or(|quote| quote.is_none()) {
        settle_copy_text(dialect, windows, given);
    }
    if given.escape.is_none() && dialect.escape == Escape::Doubled && dialect.quote.is_some() {
        settle_escape(dialect, windows);
    }
}

/// Tabs and `\N` are what COPY writes in its text format, and what others write who mean the same. Quotes
/// are data there, unless they are needed somewhere.
fn settle_copy_text(dialect: &mut Dialect, windows: &Windows, given: &Given) {
    let plain = Dialect { quote: None, escape: Escape::None, ..dialect.clone() };
    let Ok(mut reader) = Reader::new(&plain) else { return };
    let (mut nulls, mut escapes) = (0usize, Escapes::default());
    for window in windows.all() {
        let mut at = window.from;
        while let Some(row) = reader.next(window, at) {
            nulls += reader.record.values().filter(|value| *value == b"\\N").count();
            at += row.length;
        }
        escapes.add(&window.text[window.from..]);
    }
    let no_quotes = !windows.all().any(|window| memchr::memchr(b'"', &window.text).is_some());
    let copies = nulls > 0 || (escapes.doubled > 0 && no_quotes);
    if !copies || escapes.foreign > 0 && nulls == 0 || quotes_are_needed(dialect, windows) {
        return;
    }
    dialect.quote = None;
    let all_known = escapes.foreign == 0;
    dialect.escape = given.escape.unwrap_or(if all_known { Escape::Backslash } else { Escape::None });
}

/// Backslash sequences.
#[derive(Default)]
struct Escapes {
    /// `\\`
    doubled: usize,
    /// Those that COPY's text format does not have.
    foreign: usize,
}

impl Escapes {
    fn add(&mut self, text: &[u8]) {
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
            match text.get(at + found + 1) {
                Some(b'\\') => self.doubled += 1,
                Some(
                    b'N'
                    | b't'
                    | b'n'
                    | b'r'
                    | b'b'
                    | b'f'
                    | b'v'
                    | b'x'
                    | b'0'..=b'7'
                    | b'\t'
                    | b'\n'
                    | b'\r',
                ) => {}
                Some(_) => self.foreign += 1,
                None => return,
            }
            at += found + 2;
            if at >= text.len() {
                return;
            }
        }
    }
}

/// A quoted field holds what only quotes can hold: a delimiter, a line ending, a doubled quote.
fn quotes_are_needed(dialect: &Dialect, windows: &Windows) -> bool {
    let Some(quote) = dialect.quote else { return false };
    let Ok(mut reader) = Reader::new(dialect) else { return false };
    let (mut needed, mut flawed) = (0, 0);
    each_record(&mut reader, windows, |reader, flaw| {
        flawed += usize::from(flaw.is_some());
        let special = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\t') || *byte == quote;
        let quoted = |no: &usize| reader.record.quoted(*no);
        needed += usize::from(
            (0..reader.record.len()).filter(quoted).any(|no| reader.record.value(no).iter().any(special)),
        );
    });
    needed > flawed
}

/// Quotes inside quotes that are not doubled, more than once, where none is doubled.
fn settle_escape(dialect: &mut Dialect, windows: &Windows) {
    let Some(quote) = dialect.quote else { return };
    let Ok(mut reader) = Reader::new(dialect) else { return };
    let (mut bare, mut doubled) = (0, 0);
    each_record(&mut reader, windows, |reader, flaw| {
        if matches!(flaw, Some(Flaw::TextAfterQuote(_))) {
            bare += 1;
        } else {
            let quoted = |no: &usize| reader.record.quoted(*no);
            doubled += (0..reader.record.len())
                .filter(quoted)
                .filter(|no| reader.record.value(*no).contains(&quote))
                .count();
        }
    });
    if bare > 1 && doubled == 0 {
        dialect.escape = Escape::None;
    }
}

fn each_record(reader: &mut Reader, windows: &Windows, mut look: impl FnMut(&Reader, Option<Flaw>)) {
    for window in windows.all() {
        let mut at = window.from;
        while let Some(row) = reader.next(window, at) {
            if !row.broken {
                look(reader, row.flaw);
            }
            at += row.length;
        }
    }
}

/// The sign of comments among the data, if lines that begin with it never have the shape of a record.
pub(super) fn comment(cut: &[(&Lines, &Window, usize)], width: usize) -> Option<String> {
    let mut found: Option<&'static str> = None;
    for (lines, window, from) in cut {
        let last = lines.lines.iter().rposition(|line| !line.marked && !line.is_blank()).unwrap_or(0);
        for (no, line) in lines.lines.iter().enumerate().skip(*from).filter(|(_, line)| line.marked) {
            if line.width == width {
                return None;
            }
            // What stands at the end is a footnote.
            if no < last {
                found = found.or(mark(&window.text[line.start..]));
            }
        }
    }
    found.map(str::to_owned)
}
