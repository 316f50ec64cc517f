//! What the score leaves open, decided for the dialect that won: escapes, COPY's own text format, the
//! delimiter of a single column, comments.

use super::escapes::Escapes;
use super::rows::Reader;
use super::table::{Lines, mark};
use super::windows::{Window, Windows};
use super::{Given, Unsure};
use crate::cells::{Cells, Flaw, Next, Record};
use howdah_model::{Dialect, Escape, counted, plural, show_count};

/// Stands between the fields of a file that has one field a record: a control character that text does not
/// hold, so that commas in later records stay data and COPY can be told.
const NO_DELIMITERS: [&str; 4] = ["\x1f", "\x1e", "\x02", "\x03"];

/// So many line breaks and tabs written with a backslash are no chance, where backslashes are used for
/// nothing else.
const BREAKS_SURE: usize = 3;

/// What is left open behind the dialect.
pub(super) struct Settled {
    pub(super) unsure: Option<Unsure>,
    pub(super) may_escape_with: Vec<Option<u8>>,
}

/// Completes the dialect.
pub(super) fn settle(dialect: &mut Dialect, windows: &Windows, given: &Given) -> Settled {
    if dialect.delimiter.is_empty() {
        let holds =
            |text: &str| windows.all().any(|w| memchr::memmem::find(&w.text, text.as_bytes()).is_some());
        let free = NO_DELIMITERS.iter().find(|delimiter| !holds(delimiter));
        dialect.delimiter = free.map(|free| (*free).to_owned()).unwrap_or_default();
    }
    let escapes = Escapes::count(dialect, windows);
    let quotes = Quotes::count(dialect, windows);
    let may_be_text = given.quote.is_none_or(|quote| quote.is_none())
        && !dialect.delimiter.is_empty()
        && !quotes.are_meant();
    // Those of COPY's text format are data, which seldom stand around whole fields alone.
    let is_quoted = quotes.quoted > 0 && (quotes.flawed == 0 || dialect.delimiter != "\t");
    let unsure = may_be_text.then(|| settle_copy_text(dialect, &escapes, is_quoted, given)).flatten();
    settle_quote(dialect, &quotes, given);
    let unsure = unsure.or_else(|| unsure_endings(dialect, &escapes));
    let mut may_escape_with = Vec::new();
    if given.escape.is_none() && dialect.escape != Escape::Backslash {
        if may_be_text && !is_quoted && escapes.foreign == 0 {
            may_escape_with.push(None);
        }
        let escaping = Dialect { escape: Escape::Backslash, ..dialect.clone() };
        let fits = || {
            // A backslash that ends a path would let records run together.
            let other = Quotes::count(&escaping, windows);
            other.flawed <= quotes.flawed && other.cells >= quotes.cells
        };
        let may_escape = escapes.foreign == escapes.quotes && quotes.escaped == 0;
        if dialect.quote.is_some() && may_escape && fits() {
            may_escape_with.push(dialect.quote);
        }
    }
    Settled { unsure, may_escape_with }
}

/// MySQL writes a backslash before a line ending in quotes, which COPY keeps.
fn unsure_endings(dialect: &Dialect, escapes: &Escapes) -> Option<Unsure> {
    let quoted = dialect.quote.is_some() && dialect.escape == Escape::Backslash;
    (quoted && escapes.endings > 0).then(|| Unsure {
        what: "backslashes before line endings are kept, as COPY keeps them, and may be escapes".to_owned(),
        option: "an export that doubles quotes (ESCAPED BY '\"')",
    })
}

/// Tabs and `\N` are what COPY writes in its text format, and what others write who mean the same. So are
/// backslashes that are doubled, where all others are COPY's, too. Quotes are data there: where fields are
/// quoted as csv quotes them, only tabs and `\N` say so.
fn settle_copy_text(
    dialect: &mut Dialect,
    escapes: &Escapes,
    is_quoted: bool,
    given: &Given,
) -> Option<Unsure> {
    let (has_nulls, has_doubled) = (escapes.nulls > 0, escapes.doubled > 0);
    let has_tabs = dialect.delimiter == "\t";
    let copies = if has_tabs {
        let shows = has_doubled || escapes.has_marker || escapes.breaks >= BREAKS_SURE;
        has_nulls || shows && !is_quoted
    } else {
        let signs = [has_nulls, has_doubled, escapes.has_marker];
        !is_quoted && escapes.foreign == 0 && signs.into_iter().filter(|sign| *sign).count() > 1
    };
    let all_known = escapes.foreign == 0;
    if copies && (all_known || has_nulls) {
        dialect.quote = None;
        dialect.escape = given.escape.unwrap_or(if all_known { Escape::Backslash } else { Escape::None });
        return None;
    }
    let may_copy = has_doubled || has_tabs && escapes.letters > 0;
    let is_told = given.escape.is_some() || dialect.escape == Escape::Backslash;
    if !may_copy || !all_known || is_told {
        return None;
    }
    // As text, their quotes would be stored.
    let (what, option) = if is_quoted && !has_tabs {
        ("backslashes may be escapes, and are kept as they are", "--escape '\\'")
    } else {
        ("backslashes may be those of COPY's text format, and are kept as they are", "--format text")
    };
    Some(Unsure { what: what.to_owned(), option })
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

/// Quotes that open nothing anywhere are data. Quotes inside quotes that are not escaped, more than once,
/// where none is escaped, are never escaped.
fn settle_quote(dialect: &mut Dialect, counts: &Quotes, given: &Given) {
    let open = given.escape.is_none() && dialect.quote.is_some();
    if given.quote.is_none() && open && counts.quoted == 0 && counts.flawed > counts.bare {
        (dialect.quote, dialect.escape) = (None, Escape::None);
    } else if open && dialect.escape == Escape::Doubled && counts.bare > 1 && counts.escaped == 0 {
        dialect.escape = Escape::None;
    }
}

/// So many values in single quotes are no chance: of random files one in four had such a value where it had
/// an apostrophe.
const APOSTROPHES_SURE: usize = 6;

/// Single quotes around a few values, none of which needs them: they may be part of these.
pub(super) fn quotes_of_few(dialect: &Dialect, windows: &Windows) -> Option<Unsure> {
    if dialect.quote != Some(b'\'') {
        return None;
    }
    let counts = Quotes::count(dialect, windows);
    let is_few = counts.needed == 0 && (1..APOSTROPHES_SURE).contains(&counts.quoted);
    let (values, are) = (counted(counts.quoted, "value"), plural(counts.quoted, "is", "are"));
    let what = format!("the single quotes around {values} {are} taken for quotes, and may be data");
    is_few.then_some(Unsure { what, option: "--quote" })
}

/// Fields of a dialect without quotes that begin with one: it may open them, though nothing closes it. COPY's
/// own text format says for certain that quotes are data.
pub(super) fn quotes_as_data(dialect: &Dialect, windows: &Windows) -> Option<Unsure> {
    if dialect.quote.is_some() || dialect.escape == Escape::Backslash {
        return None;
    }
    let mut reader = Reader::new(dialect).ok()?;
    let mut records = 0u64;
    for window in windows.all() {
        let mut at = window.from;
        while let Some(row) = reader.next(window, at) {
            at += row.length;
            let record = &reader.record;
            records += u64::from((0..record.len()).any(|no| record.value(no).first() == Some(&b'"')));
        }
    }
    let (of, have) = (counted(&show_count(records), "record"), plural(records, "has", "have"));
    let what = format!("{of} in the sample {have} a field that begins with '\"', which is taken for data");
    (records > 0).then_some(Unsure { what, option: "--quote" })
}

/// The byte that COPY is told for a quote, where there is none, and the sample has the usual one: Hive writes
/// 0x01 to 0x03.
pub(super) fn unused(dialect: &Dialect, windows: &Windows) -> Option<u8> {
    let none = dialect.quote.is_none() && dialect.escape != Escape::Backslash;
    let usual = dialect.unused_bytes().next().filter(|_| none)?;
    let holds = |byte: u8| windows.all().any(|window| memchr::memchr(byte, &window.text).is_some());
    if holds(usual) { dialect.unused_bytes().find(|byte| !holds(*byte)) } else { None }
}

/// Whether the file ends inside a field in quotes, as one does that is still being written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileEnd {
    /// No quote of the last record says so.
    Whole,
    /// That quote may be a datum: others are, or the last line is whole.
    Doubtful,
    CutOff,
}

/// A quote that opens a field of the last record, and closes nowhere, ends a dialect without quotes: it is
/// the dialect's quote again where the last line has no ending and no other record has a quote astray.
pub(super) fn settle_end(dialect: &mut Dialect, windows: &Windows) -> FileEnd {
    if dialect.quote.is_some() || dialect.escape == Escape::Backslash {
        return FileEnd::Whole;
    }
    let Some(window) = windows.all().last().filter(|window| window.at_end && !window.padded) else {
        return FileEnd::Whole;
    };
    let quoting = Dialect { quote: Some(b'"'), escape: Escape::Doubled, ..dialect.clone() };
    let is_ending = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let end = window.text.iter().rposition(|byte| !is_ending(byte)).map_or(0, |last| last + 1);
    let start = window.text[..end].iter().rposition(is_ending).map_or(0, |ending| ending + 1);
    let (Ok(cells), mut record) = (Cells::new(&quoting), Record::default()) else { return FileEnd::Whole };
    let last = cells.read(&window.text[start..end], true, &mut record);
    if !matches!(last, Next::Record { flaw: Some(Flaw::Unclosed(_)), .. }) {
        return FileEnd::Whole;
    }
    if end < window.text.len() || Quotes::count(&quoting, windows).flawed > 1 {
        return FileEnd::Doubtful;
    }
    *dialect = quoting;
    FileEnd::CutOff
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
