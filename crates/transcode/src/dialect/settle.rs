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
    settle_quote(dialect, windows, given);
}

/// Tabs and `\N` are what COPY writes in its text format, and what others write who mean the same. Quotes
/// are data there, unless they are needed somewhere.
fn settle_copy_text(dialect: &mut Dialect, windows: &Windows, given: &Given) {
    let plain = Dialect { quote: None, escape: Escape::None, ..dialect.clone() };
    let Ok(mut reader) = Reader::new(&plain) else { return };
    let (mut nulls, mut escapes) = (0usize, Escapes::default());
    let has_marker = windows.all().any(|window| window.end_marker().is_some());
    for window in windows.all() {
        let mut at = window.from;
        while let Some(row) = reader.next(window, at) {
            nulls += reader.record.values().filter(|value| *value == b"\\N").count();
            at += row.length;
        }
        escapes.add(&window.text[window.from..window.end_marker().unwrap_or(window.text.len())]);
    }
    let no_quotes = !windows.all().any(|window| memchr::memchr(b'"', &window.text).is_some());
    let quotes = Quotes::count(dialect, windows);
    let copies = nulls > 0 || ((escapes.doubled > 0 || has_marker) && no_quotes);
    if !copies || escapes.foreign > 0 && nulls == 0 || quotes.are_meant() {
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

/// How a dialect's quotes are used.
#[derive(Default)]
struct Quotes {
    cells: usize,
    quoted: usize,
    /// Records with a quoted field that only quotes can write: a delimiter, a line ending, a quote is in it.
    needed: usize,
    /// Records with a quote inside a quoted field that is written as the dialect says.
    escaped: usize,
    /// Records with a quote inside a quoted field that is not.
    bare: usize,
    /// Records with any quote astray.
    flawed: usize,
}

impl Quotes {
    fn count(dialect: &Dialect, windows: &Windows) -> Quotes {
        let mut counts = Quotes::default();
        let (Some(quote), Ok(mut reader)) = (dialect.quote, Reader::new(dialect)) else { return counts };
        let delimiter = dialect.delimiter.as_bytes();
        for window in windows.all() {
            let mut at = window.from;
            while let Some(row) = reader.next(window, at) {
                at += row.length;
                counts.flawed += usize::from(row.flaw.is_some() || row.broken);
                counts.bare += usize::from(matches!(row.flaw, Some(Flaw::TextAfterQuote(_))));
                if row.flaw.is_some() || row.broken {
                    continue;
                }
                let record = &reader.record;
                let quoted = || (0..record.len()).filter(|no| record.quoted(*no)).map(|no| record.value(no));
                let holds = |value: &[u8], what: &[u8]| memchr::memmem::find(value, what).is_some();
                let special =
                    |value: &[u8]| [delimiter, b"\n", b"\r", &[quote]].iter().any(|what| holds(value, what));
                counts.cells += record.len();
                counts.quoted += quoted().count();
                counts.needed += usize::from(quoted().any(special));
                counts.escaped += usize::from(quoted().any(|value| value.contains(&quote)));
            }
        }
        counts
    }

    /// Quotes are used as such, not as data that happens to stand at the beginning and the end of a field.
    fn are_meant(&self) -> bool {
        self.needed > self.flawed || self.quoted * 4 > self.cells
    }
}

/// Quotes that open nothing anywhere are data. Quotes inside quotes that are not escaped, more than once, where
/// none is escaped, are never escaped.
fn settle_quote(dialect: &mut Dialect, windows: &Windows, given: &Given) {
    let counts = Quotes::count(dialect, windows);
    let open = given.escape.is_none();
    if given.quote.is_none() && open && counts.quoted == 0 && counts.flawed > counts.bare {
        (dialect.quote, dialect.escape) = (None, Escape::None);
    } else if open && dialect.escape == Escape::Doubled && counts.bare > 1 && counts.escaped == 0 {
        dialect.escape = Escape::None;
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
