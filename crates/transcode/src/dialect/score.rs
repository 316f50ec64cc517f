//! How well a dialect explains a sample: the bits it takes to write the sample down, once its records and
//! cells are known.
//!
//! This weighs row patterns and cell types together, as van den Burg, Nazábal and Sutton do (2019), but
//! adds where they multiply, so that a few polluted records cost what they are and no more. In a record of
//! the usual width delimiters cost nothing, for they are where they must be; in any other they cost as
//! much as in text. A cell of a known kind costs less than the same characters as text, and least in a
//! column whose other cells are of that kind. What is not explained (a quote that opens nothing, a line
//! that only the wrong quote holds together) costs as text and something on top.

use super::candidates::is_usual_in_text;
use super::cell_types::{KINDS, Kind, kind};
use super::rows::{Edges, Reader, Row};
use super::table::mark;
use super::windows::Window;
use crate::cells::Record;
use howdah_model::Dialect;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a dialect makes of a sample.
#[derive(Debug, Clone)]
pub(super) struct Score {
    /// Bits to write the sample down; fewer are better.
    pub(super) bits: f64,
    /// Fields of the usual record.
    pub(super) width: usize,
    /// Records seen, blank ones aside.
    pub(super) records: usize,
    /// Those of the usual width.
    pub(super) regular: usize,
    /// Columns whose usual cell is neither text nor empty.
    pub(super) typed_columns: usize,
    /// Cells of all records.
    pub(super) cells: usize,
    /// Those that stand in quotes.
    pub(super) quoted: usize,
    /// Cells in quotes that hold quotes themselves.
    pub(super) escaped: usize,
    /// Cells in quotes, the first record aside, of columns all of whose values are in quotes.
    pub(super) quoted_throughout: usize,
    /// Records with a quote that is not where the dialect has quotes.
    pub(super) flawed: usize,
    /// The first record is of the usual width.
    pub(super) begins_regular: bool,
    /// For each of [`USUAL_DELIMITERS`]: records that have it between words, outside quotes. Counted where
    /// blanks, colons and the like delimit, or several characters.
    pub(super) between_words: [usize; USUAL_DELIMITERS.len()],
    /// Records with a document of JSON that stands in several fields.
    pub(super) cut_documents: usize,
}

/// Delimiters of which text has little.
pub(super) const USUAL_DELIMITERS: [&str; 4] = [",", "\t", ";", "|"];

/// So many cells with quotes in quotes are no chance.
const ESCAPED_SURE: usize = 3;

impl Score {
    /// Cells that stand in quotes, of a thousand.
    pub(super) fn quoted_permille(&self) -> usize {
        self.quoted * 1000 / self.cells.max(1)
    }

    /// Text full of quotes is cut into regular records without a flaw: it was written with these quotes.
    pub(super) fn proves_quotes(&self) -> bool {
        self.escaped >= ESCAPED_SURE
            && self.flawed == 0
            && self.width > 1
            && self.regular * 10 >= self.records * 9
    }
}

/// A cell more or less is a decision too.
const CELL_BITS: f64 = 1.5;
/// That a cell stands in quotes, which the text in it makes likely.
const QUOTED_BITS: f64 = 0.5;
/// A record of another width than the usual one, on top of its delimiters.
const IRREGULAR_BITS: f64 = 6.0;
/// A quote that is not where the dialect has quotes: about two of them as text.
const FLAW_BITS: f64 = 20.0;
/// A line that must be read against the dialect.
const BROKEN_BITS: f64 = 40.0;
/// To say that a column has cells of a further kind.
const KIND_BITS: f64 = 1.0;

/// Tenths of bits for each byte of text: rounded from letter frequencies in English words for letters; what
/// may delimit or quote is dear, since text has little of it.
const fn price(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 47,
        b'A'..=b'Z' => 50,
        b'0'..=b'9' => 40,
        b' ' => 40,
        b'.' | b'-' | b'_' | b'(' | b')' | b'/' => 55,
        0x80..=0xFF => 40,
        0..=0x1F | 0x7F => 90,
        _ => 80,
    }
}

const PRICES: [u8; 256] = {
    let mut prices = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        prices[byte] = price(byte as u8);
        byte += 1;
    }
    prices
};

/// Bits of these bytes as text.
pub(super) fn text_bits(bytes: &[u8]) -> f64 {
    // Whole numbers are added at one byte a cycle, and every candidate prices every byte.
    let tenths: u64 = bytes.iter().map(|byte| u64::from(PRICES[usize::from(*byte)])).sum();
    tenths as f64 / 10.0
}

/// Bits of a cell whose kind is known.
fn cell_bits(kind: Kind, value: &[u8]) -> f64 {
    let each = match kind {
        Kind::Empty | Kind::Text => return text_bits(value),
        Kind::Missing | Kind::Boolean => return 1.0,
        Kind::Integer | Kind::Decimal | Kind::Money | Kind::Percent => 3.3,
        Kind::Date | Kind::Timestamp => 1.7,
        Kind::Time => 2.2,
        Kind::Uuid => 3.5,
        Kind::Address => 2.8,
        Kind::Email | Kind::Url => 4.2,
    };
    // Blanks that the dialect does not trim are paid for, so that a dialect that does is better.
    let blanks = value.len() - value.trim_ascii().len();
    each * (value.len() - blanks) as f64 + text_bits(b" ") * blanks as f64
}

struct Line {
    /// Fields; 0 of what is no record: blank lines, comments, broken lines.
    width: usize,
    first_cell: usize,
    bits: f64,
    text_bits: f64,
    broken: bool,
    flawed: bool,
    /// Cells in quotes.
    quoted: usize,
    /// Those of them that hold quotes.
    escaped: usize,
    /// Those of [`USUAL_DELIMITERS`] that stand between words.
    between_words: [bool; USUAL_DELIMITERS.len()],
    cuts_document: bool,
}

/// Every record of the windows, cut and priced; what depends on the usual width comes later.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    kinds: Vec<Kind>,
    /// Of each of these cells, whether it stands in quotes.
    in_quotes: Vec<bool>,
    comments: bool,
    /// The delimiter stands in texts, too, has several characters, or blanks around it.
    may_cut: bool,
    /// Lines at the edges of windows that may be those of one field, which the window cuts.
    edges: Vec<Range<usize>>,
}

/// Fewer than half of the lines begin with a sign of comments.
pub(super) fn few_are_marked(windows: &[Window]) -> bool {
    let (mut lines, mut marked) = (0usize, 0usize);
    for window in windows {
        for line in window.text[window.from..].split(|byte| matches!(byte, b'\n' | b'\r')) {
            lines += usize::from(!line.is_empty());
            marked += usize::from(mark(line).is_some());
        }
    }
    marked * 2 < lines
}

/// Scores a dialect; `None` if there is no such dialect.
///
/// With `comments`, lines that begin with `#`, `//` or `%` are text: they are comments, whatever the dialect.
/// Line endings cost the same between records and inside quotes, so that no dialect gains by where it sees
/// them.
pub(super) fn score(dialect: &Dialect, windows: &[Window], comments: bool) -> Option<Score> {
    let mut reader = Reader::new(dialect).ok()?;
    let may_cut = is_usual_in_text(&dialect.delimiter) || dialect.delimiter.len() > 1 || dialect.trim;
    let mut lines = Lines { comments, may_cut, ..Lines::default() };
    for window in windows {
        lines.read(&mut reader, window);
    }
    Some(lines.score(&dialect.delimiter))
}

/// The line ending of a record.
fn ending(record: &[u8]) -> &[u8] {
    let pair = record.ends_with(b"\r\n");
    let bytes = match record.last() {
        _ if pair => 2,
        Some(b'\n' | b'\r') => 1,
        _ => 0,
    };
    &record[record.len() - bytes..]
}

/// `05:53:01`: this cell ends with a time of day to the second.
fn ends_with_seconds(cell: &[u8]) -> bool {
    let last = cell.len().checked_sub(8).map(|at| &cell[at..]);
    last.is_some_and(|time| matches!(time, [_, _, b':', _, _, b':', _, _]))
        && matches!(kind(cell), Kind::Time | Kind::Timestamp)
}

/// Begins with exactly three digits.
fn begins_with_milliseconds(cell: &[u8]) -> bool {
    cell.iter().take_while(|byte| byte.is_ascii_digit()).count() == 3
}

/// `05:53:01,007`, as programs write the time into logs: what the cell is without the milliseconds.
fn is_logged_time(cell: &[u8]) -> Option<Kind> {
    let (time, milliseconds) = cell.split_at_checked(cell.len().checked_sub(4)?)?;
    let is_one =
        milliseconds[0] == b',' && begins_with_milliseconds(&milliseconds[1..]) && ends_with_seconds(time);
    is_one.then(|| kind(time))
}

/// A comma cuts the milliseconds of a logged time off, and what stands behind them is not cut: it delimits
/// nothing.
fn cuts_logged_time(time: &[u8], next: &[u8]) -> bool {
    next.len() > 3 && begins_with_milliseconds(next) && ends_with_seconds(time)
}

/// Marks the usual delimiters that this cell holds. A comma between digits is part of a number, and a tab at
/// an end may be there to line something up.
fn look_between_words(cell: &[u8], found: &mut [bool; USUAL_DELIMITERS.len()]) {
    for (no, delimiter) in USUAL_DELIMITERS.iter().enumerate() {
        let byte = delimiter.as_bytes()[0];
        let of_number = |at: Option<usize>| {
            at.and_then(|at| cell.get(at))
                .is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.'))
        };
        found[no] |= memchr::memchr_iter(byte, cell)
            .filter(|at| byte != b'\t' || (*at > 0 && at + 1 < cell.len()))
            .any(|at| byte != b',' || !of_number(at.checked_sub(1)) || !of_number(Some(at + 1)));
    }
}

/// One field begins with a quote, and a later one ends with it: a field in quotes that was cut.
fn cuts_quotes(record: &Record) -> bool {
    let mut values = record.values();
    let opens =
        |value: &[u8]| value.len() > 1 && value[0] == b'"' && memchr::memchr(b'"', &value[1..]).is_none();
    let closes = |value: &[u8]| value.len() > 1 && memchr::memchr(b'"', value) == Some(value.len() - 1);
    values.any(opens) && values.any(closes)
}

/// An object of JSON begins in one field and ends in another.
fn cuts_document(record: &Record) -> bool {
    let mut is_open = false;
    for value in record.values() {
        if is_open && value.contains(&b'}') {
            return true;
        }
        let opening = memchr::memmem::rfind(value, b"{\"");
        is_open |= opening.is_some_and(|at| !value[at..].contains(&b'}'));
    }
    false
}

impl Lines {
    fn read(&mut self, reader: &mut Reader, window: &Window) {
        let (mut at, first, mut edges) = (window.from, self.lines.len(), Edges::new(window));
        while let Some(row) = reader.next(window, at) {
            let bytes = &window.text[at..at + row.length];
            at += row.length;
            let line = self.line(reader, row, bytes);
            self.lines.push(line);
            edges.add(reader, window, row, self.lines.len() - 1 - first);
        }
        let ranges = edges.ranges(self.lines.len() - first).into_iter().filter(|range| !range.is_empty());
        self.edges.extend(ranges.map(|range| range.start + first..range.end + first));
    }

    fn line(&mut self, reader: &Reader, row: Row, bytes: &[u8]) -> Line {
        let (record, first_cell, text_bits) = (&reader.record, self.kinds.len(), text_bits(bytes));
        let no_record = |bits| Line {
            width: 0,
            first_cell,
            bits,
            text_bits,
            broken: row.broken,
            flawed: row.flaw.is_some(),
            quoted: 0,
            escaped: 0,
            between_words: Default::default(),
            cuts_document: false,
        };
        if self.comments && mark(bytes).is_some() {
            return Line { broken: false, ..no_record(text_bits) };
        }
        if row.broken {
            return no_record(text_bits + BROKEN_BITS);
        }
        let ending_bits = self::text_bits(ending(bytes));
        if record.is_blank() {
            return no_record(ending_bits);
        }
        let mut bits = ending_bits + if row.flaw.is_some() { FLAW_BITS } else { 0.0 };
        if reader.dialect.quote.is_none() && cuts_quotes(record) {
            bits += BROKEN_BITS;
        }
        let (mut quoted, mut escaped, mut between_words) = (0, 0, Default::default());
        let quote = reader.dialect.quote.unwrap_or_default();
        let comma_delimits = reader.dialect.delimiter.starts_with(',');
        for (no, value) in record.values().enumerate() {
            let kind = match kind(value) {
                Kind::Text if record.len() > 1 => is_logged_time(value).unwrap_or(Kind::Text),
                _ if comma_delimits && cuts_logged_time(value, record.value(no + 1)) => Kind::Text,
                kind => kind,
            };
            self.kinds.push(kind);
            self.in_quotes.push(record.quoted(no));
            quoted += usize::from(record.quoted(no));
            escaped += usize::from(record.quoted(no) && memchr::memchr(quote, value).is_some());
            // Quotes that are astray hold no field together.
            let in_quotes = record.quoted(no) && row.flaw.is_none();
            if self.may_cut && kind == Kind::Text && !in_quotes {
                look_between_words(value, &mut between_words);
            }
            let quoted = if record.quoted(no) { QUOTED_BITS } else { 0.0 };
            bits += cell_bits(kind, value) + CELL_BITS + quoted;
        }
        let cuts_document = cuts_document(record);
        Line { width: record.len(), bits, quoted, escaped, between_words, cuts_document, ..no_record(0.0) }
    }

    /// The best score, lines at the edges of windows taken for records or for text.
    fn score(&self, delimiter: &str) -> Score {
        let all = self.score_without(delimiter, &[]);
        // Only who writes fields in quotes writes long ones.
        let quoted = self.lines.iter().filter(|line| line.quoted > 0 && !line.flawed).count();
        let flawed = self.lines.iter().filter(|line| line.flawed || line.broken).count();
        if self.edges.is_empty() || quoted <= flawed {
            return all;
        }
        // One that holds most of the sample must not say what the usual width is.
        let mut edges = self.edges.clone();
        let mut best = self.score_without(delimiter, &edges);
        for edge in &self.edges {
            let fewer: Vec<Range<usize>> = edges.iter().filter(|other| *other != edge).cloned().collect();
            let score = self.score_without(delimiter, &fewer);
            if score.bits < best.bits {
                (best, edges) = (score, fewer);
            }
        }
        if best.bits < all.bits { best } else { all }
    }

    /// The score if these lines are text.
    fn score_without(&self, delimiter: &str, edges: &[Range<usize>]) -> Score {
        let is_text = |no: usize| edges.iter().any(|edge| edge.contains(&no));
        let lines = || self.lines.iter().enumerate().filter(|(no, _)| !is_text(*no)).map(|(_, line)| line);
        let records = || lines().filter(|line| line.width > 0);
        let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
        records().for_each(|line| *widths.entry(line.width).or_default() += 1);
        // Of widths as frequent as one another the greatest.
        let width = widths.iter().max_by_key(|(_, count)| **count).map_or(1, |(width, _)| *width);
        let (count, delimiter_bits) = (widths.values().sum::<usize>(), text_bits(delimiter.as_bytes()));
        let text = edges.iter().flat_map(|edge| &self.lines[edge.clone()]).map(|line| line.text_bits);
        let mut bits = text.sum::<f64>() + FLAW_BITS * edges.len() as f64;
        bits += lines().filter(|line| line.width == 0).map(|line| line.bits).sum::<f64>();
        let mut columns = vec![[0u32; KINDS]; width];
        for line in records() {
            let alike = widths.get(&line.width).copied().unwrap_or(1);
            bits += line.bits + (count as f64 / alike as f64).log2();
            if line.width == width {
                for (column, kind) in columns.iter_mut().zip(&self.kinds[line.first_cell..]) {
                    column[*kind as usize] += 1;
                }
            } else {
                bits += IRREGULAR_BITS + delimiter_bits * (line.width - 1) as f64;
            }
        }
        bits += columns.iter().map(column_bits).sum::<f64>();
        let typed_columns = columns.iter().filter(|column| is_typed(column)).count();
        let regular = widths.get(&width).copied().unwrap_or(0);
        let (cells, quoted) =
            records().fold((0, 0), |(cells, quoted), line| (cells + line.width, quoted + line.quoted));
        let begins_regular = records().next().is_some_and(|line| line.width == width);
        let between_words = std::array::from_fn(|no| records().filter(|line| line.between_words[no]).count());
        let cut_documents = records().filter(|line| line.cuts_document).count();
        let records = count + lines().filter(|line| line.broken).count();
        let escaped = lines().map(|line| line.escaped).sum();
        let quoted_throughout =
            self.quoted_throughout(lines().filter(|line| line.width == width).skip(1), width);
        let flawed = lines().filter(|line| line.flawed || line.broken).count();
        Score {
            bits,
            width,
            records,
            regular,
            typed_columns,
            cells,
            quoted,
            escaped,
            quoted_throughout,
            flawed,
            begins_regular,
            between_words,
            cut_documents,
        }
    }

    /// Counts the cells in quotes of the columns that have no value without.
    fn quoted_throughout<'l>(&self, records: impl Iterator<Item = &'l Line>, width: usize) -> usize {
        let (mut quoted, mut has_bare) = (vec![0usize; width], vec![false; width]);
        for line in records {
            for (no, cell) in (line.first_cell..line.first_cell + width).enumerate() {
                quoted[no] += usize::from(self.in_quotes[cell]);
                let is_value = !matches!(self.kinds[cell], Kind::Empty | Kind::Missing);
                has_bare[no] |= is_value && !self.in_quotes[cell];
            }
        }
        quoted.iter().zip(&has_bare).filter(|(_, has_bare)| !**has_bare).map(|(quoted, _)| quoted).sum()
    }
}

/// The kinds of a column's cells, each at the price of how rare it is in this column.
fn column_bits(counts: &[u32; KINDS]) -> f64 {
    let total = f64::from(counts.iter().sum::<u32>());
    let some = counts.iter().filter(|count| **count > 0);
    some.map(|count| KIND_BITS + f64::from(*count) * (total / f64::from(*count)).log2()).sum()
}

fn is_typed(counts: &[u32; KINDS]) -> bool {
    let untyped = [Kind::Empty, Kind::Missing, Kind::Text].map(|kind| counts[kind as usize]);
    let typed: u32 = counts.iter().sum::<u32>() - untyped.iter().sum::<u32>();
    typed > counts[Kind::Text as usize]
}
