//! A window cut into lines under the dialect that was found, and what its columns hold.

use super::cell_types::{CLASSES, Class, KINDS, Kind, kind};
use super::footer;
use super::rows::{Edges, Reader};
use super::windows::Window;
use std::collections::BTreeMap;
use std::ops::Range;

/// One record of a window, by its shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) start: usize,
    pub(super) length: usize,
    /// Fields.
    pub(super) width: usize,
    /// Fields that hold something.
    pub(super) filled: usize,
    /// What is filled stands together on the left.
    pub(super) left: bool,
    /// It begins with a sign of comments.
    pub(super) marked: bool,
    /// It begins with such a sign, and what follows is prose rather than names.
    pub(super) remark: bool,
    /// It was read against the dialect.
    pub(super) broken: bool,
    /// A quote is not where the dialect has quotes.
    pub(super) flawed: bool,
    /// A line drawn in characters: `---+---`.
    pub(super) ruled: bool,
    /// Its fields hold nothing, blanks neither, and delimiters or quotes are written for them.
    hollow: bool,
    /// The same of several fields, and not of blanks that delimit.
    pub(super) only_delimits: bool,
    /// The name of totals that it begins with.
    pub(super) total: Option<&'static str>,
    first_kind: usize,
}

impl Line {
    pub(super) fn is_blank(&self) -> bool {
        self.filled == 0
    }

    /// A record as good as any: whoever writes delimiters or quotes means fields, empty as they are.
    pub(super) fn is_empty_record(&self, width: usize) -> bool {
        self.hollow && self.width == width
    }

    /// Its fields, in the reader's record.
    pub(super) fn read_again(&self, reader: &mut Reader, window: &Window) {
        let bytes = window.text.get(self.start..self.start + self.length);
        reader.again(bytes.unwrap_or_default(), self.broken);
    }
}

/// The lines of one window.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    kinds: Vec<Kind>,
    /// Those that may be lines of a field which the window cuts.
    edges: [Range<usize>; 2],
}

/// So many records behind an empty one show that it stands among them.
const AMONG_LINES: usize = 3;

impl Lines {
    /// Records whose fields are all empty stand among the records of `range`: then one at the beginning or
    /// end is a record too, and no padding.
    pub(super) fn have_empty_records(&self, range: Range<usize>, width: usize) -> bool {
        let lines = self.lines.get(range).unwrap_or_default();
        let record = |line: &Line| !line.is_blank() && line.width == width && !line.marked;
        lines.windows(AMONG_LINES + 2).any(|around| match around {
            [before, empty, behind @ ..] => {
                record(before) && empty.is_blank() && empty.width == width && behind.iter().all(record)
            }
            _ => false,
        })
    }

    /// A line like this, of the table's width, stands between records that are not.
    pub(super) fn have_among(
        &self,
        range: Range<usize>,
        width: usize,
        is_like: impl Fn(&Line) -> bool,
    ) -> bool {
        let lines = self.lines.get(range).unwrap_or_default();
        let other = |line: &Line| line.width == width && !line.is_blank() && !is_like(line);
        lines.windows(3).any(|around| match around {
            [before, line, behind] => line.width == width && is_like(line) && other(before) && other(behind),
            _ => false,
        })
    }

    pub(super) fn read(reader: &mut Reader, window: &Window) -> Lines {
        let (mut lines, mut edges) = (Lines::default(), Edges::new(window));
        let mut at = window.from;
        while let Some(row) = reader.next(window, at) {
            let first_kind = lines.kinds.len();
            lines.kinds.extend(reader.record.values().map(kind));
            let kinds = &lines.kinds[first_kind..];
            // Blanks in quotes are a value.
            let quoted = |no: usize| reader.record.quoted(no) && !reader.record.value(no).is_empty();
            let filled =
                kinds.iter().enumerate().filter(|(no, kind)| **kind != Kind::Empty || quoted(*no)).count();
            let bytes = &window.text[at..at + row.length];
            let holds_but = |nothing: &[u8]| bytes.iter().any(|byte| !nothing.contains(byte));
            let hollow = holds_but(b"\r\n") && reader.record.values().all(<[u8]>::is_empty);
            lines.lines.push(Line {
                start: at,
                length: row.length,
                width: kinds.len(),
                filled,
                left: kinds.iter().take(filled).all(|kind| *kind != Kind::Empty),
                marked: mark(bytes).is_some(),
                remark: is_remark(bytes, kinds.len()),
                broken: row.broken,
                flawed: row.broken || row.flaw.is_some(),
                hollow,
                only_delimits: hollow && kinds.len() > 1 && holds_but(b"\r\n "),
                ruled: is_ruled(bytes) || are_ruled(reader.record.values()),
                total: footer::total_name(kinds, &reader.record),
                first_kind,
            });
            edges.add(reader, window, row, lines.len() - 1);
            at += row.length;
        }
        lines.edges = edges.ranges(lines.len());
        lines
    }

    /// One past the last line.
    pub(super) fn end(&self, window: &Window) -> usize {
        self.lines.last().map_or(window.from, |line| line.start + line.length)
    }

    /// The lines that are records of their own, whatever a window cuts.
    pub(super) fn inner(&self) -> &[Line] {
        let [begun, open] = &self.edges;
        self.lines.get(begun.end..open.start).unwrap_or_default()
    }

    /// A quote shows that this line belongs to a field which the window cuts.
    pub(super) fn is_of_cut_field(&self, no: usize) -> bool {
        let [begun, open] = &self.edges;
        // In a window without quotes all lines may.
        (begun.contains(&no) && begun.end < self.lines.len()) || open.contains(&no)
    }

    /// Drops the lines of a field that the window cuts: those at its edges of which fewer than three quarters
    /// have this width. Behind a stray quote more have: they are records.
    pub(super) fn drop_cut_fields(&mut self, width: usize) {
        let is_cut = |range: &Range<usize>| {
            let filled = || self.lines[range.clone()].iter().filter(|line| !line.is_blank());
            filled().filter(|line| line.width == width).count() * 4 < filled().count() * 3
        };
        let [begun, open] = &self.edges;
        let from = if is_cut(begun) { begun.end } else { 0 };
        let to = if is_cut(open) { open.start } else { self.lines.len() };
        self.lines.truncate(to);
        self.lines.drain(..from);
        self.edges = Default::default();
    }

    /// The file ends with this line, which has no line ending.
    pub(super) fn ends_early(&self, no: usize, window: &Window) -> bool {
        let line = self.lines.get(no).filter(|_| window.at_end && no + 1 == self.len());
        let last = line.and_then(|line| window.text.get(line.start..line.start + line.length)?.last());
        last.is_some_and(|byte| !matches!(byte, b'\n' | b'\r'))
    }

    /// The kinds of a line's cells.
    pub(super) fn kinds(&self, no: usize) -> &[Kind] {
        self.lines.get(no).map_or(&[], |line| &self.kinds[line.first_kind..line.first_kind + line.width])
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Line `no`'s fields, as text.
    pub(super) fn values(&self, no: usize, reader: &mut Reader, window: &Window) -> Vec<String> {
        let Some(line) = self.lines.get(no) else { return Vec::new() };
        line.read_again(reader, window);
        reader.record.values().map(|value| String::from_utf8_lossy(value).trim().to_owned()).collect()
    }
}

fn is_ruled(line: &[u8]) -> bool {
    let drawn = |byte: &u8| matches!(byte, b'-' | b'=' | b'+' | b'|' | b':' | b' ' | b'\n' | b'\r');
    line.iter().filter(|byte| matches!(byte, b'-' | b'=')).count() > 3 && line.iter().all(drawn)
}

/// Names that are underlined, each in its field: `--,----,---`.
fn are_ruled<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut fields, mut longest) = (0, 0);
    for value in values.map(<[u8]>::trim_ascii) {
        if value.is_empty() || value.iter().any(|byte| *byte != b'-') {
            return false;
        }
        (fields, longest) = (fields + 1, longest.max(value.len()));
    }
    fields > 1 && longest > 3
}

/// The sign of comments that a line begins with.
pub(super) fn mark(line: &[u8]) -> Option<&'static str> {
    ["#", "//", "%"].into_iter().find(|mark| line.starts_with(mark.as_bytes()))
}

/// A comment in words: a colon or a full stop before a blank, or more blanks than names have.
fn is_remark(line: &[u8], width: usize) -> bool {
    let line = line.trim_ascii_end();
    let holds = |what: &[u8]| memchr::memmem::find(line, what).is_some();
    let blanks = line.iter().filter(|byte| **byte == b' ').count();
    mark(line).is_some() && (holds(b": ") || holds(b". ") || line.ends_with(b".") || blanks > width * 2)
}

/// The width that most lines have, the greater of equals; at least 1.
pub(super) fn usual_width<'a>(lines: impl Iterator<Item = &'a Line>) -> usize {
    let (mut widths, mut marked) = (BTreeMap::<usize, usize>::new(), BTreeMap::<usize, usize>::new());
    for line in lines.filter(|line| !line.is_blank() && !line.broken) {
        let widths = if line.marked { &mut marked } else { &mut widths };
        *widths.entry(line.width).or_default() += 1;
    }
    // Comments do not count, unless everything looks like one.
    if widths.is_empty() {
        widths = marked;
    }
    widths.iter().max_by_key(|(_, count)| **count).map_or(1, |(width, _)| *width)
}

/// What the columns hold, over lines of one width.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    counts: Vec<[u32; KINDS]>,
}

/// So many of a column's values must agree before it has a class: pollution is rarer.
const AGREE_PERCENT: u32 = 75;

impl Profile {
    pub(super) fn new(width: usize) -> Profile {
        Profile { counts: vec![[0; KINDS]; width] }
    }

    /// Adds the lines `range` of a window; whether one of them counts.
    pub(super) fn add(&mut self, lines: &Lines, range: Range<usize>) -> bool {
        let mut counts = false;
        for no in range {
            let kinds = lines.kinds(no);
            if kinds.len() == self.counts.len() && !lines.lines.get(no).is_none_or(|line| line.broken) {
                counts = true;
                for (column, kind) in self.counts.iter_mut().zip(kinds) {
                    column[*kind as usize] += 1;
                }
            }
        }
        counts
    }

    /// Takes in what the columns of another file hold.
    pub(super) fn join(&mut self, other: &Profile) {
        self.counts.resize(self.counts.len().max(other.counts.len()), [0; KINDS]);
        for (column, theirs) in self.counts.iter_mut().zip(&other.counts) {
            for (count, more) in column.iter_mut().zip(theirs) {
                *count = count.saturating_add(*more);
            }
        }
    }

    /// How many values a column has.
    pub(super) fn values(&self, column: usize) -> usize {
        let counts = self.counts.get(column).into_iter().flatten();
        counts.zip(ALL_KINDS).filter(|(_, kind)| kind.is_value()).map(|(count, _)| *count as usize).sum()
    }

    /// No line has been added.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|column| column.iter().all(|count| *count == 0))
    }

    pub(super) fn width(&self) -> usize {
        self.counts.len()
    }

    /// A column has values, and these are text.
    pub(super) fn is_text(&self, column: usize) -> bool {
        let is_filled = |counts: &[u32; KINDS]| {
            ALL_KINDS.iter().any(|kind| kind.is_value() && counts[*kind as usize] > 0)
        };
        self.class(column).is_none() && self.counts.get(column).is_some_and(is_filled)
    }

    /// A column has values, and all of them are text.
    pub(super) fn holds_words_alone(&self, column: usize) -> bool {
        let counts = self.counts.get(column);
        counts.is_some_and(|counts| {
            let others =
                ALL_KINDS.iter().filter(|kind| kind.class().is_some()).any(|kind| counts[*kind as usize] > 0);
            counts[Kind::Text as usize] > 0 && !others
        })
    }

    /// The class of most values of a column.
    pub(super) fn class(&self, column: usize) -> Option<Class> {
        let counts = self.counts.get(column)?;
        let missing = counts[Kind::Empty as usize] + counts[Kind::Missing as usize];
        let values = counts.iter().sum::<u32>() - missing;
        let of = |class: Class| -> u32 {
            ALL_KINDS
                .iter()
                .filter(|kind| kind.class() == Some(class))
                .map(|kind| counts[*kind as usize])
                .sum()
        };
        CLASSES.into_iter().find(|class| values > 0 && of(*class) * 100 >= values * AGREE_PERCENT)
    }

    /// Columns that have a class.
    pub(super) fn classes(&self) -> Vec<Option<Class>> {
        (0..self.counts.len()).map(|column| self.class(column)).collect()
    }
}

const ALL_KINDS: [Kind; KINDS] = [
    Kind::Empty,
    Kind::Missing,
    Kind::Integer,
    Kind::Decimal,
    Kind::Money,
    Kind::Percent,
    Kind::Boolean,
    Kind::Date,
    Kind::Time,
    Kind::Timestamp,
    Kind::Uuid,
    Kind::Address,
    Kind::Email,
    Kind::Url,
    Kind::Text,
];

/// How a line's cells agree with the columns: cells of the column's class, and text where it has a class.
pub(super) fn agreement(kinds: &[Kind], classes: &[Option<Class>]) -> (usize, usize) {
    let (mut same, mut text) = (0, 0);
    for (kind, class) in kinds.iter().zip(classes) {
        match (kind, class) {
            (_, None) | (Kind::Empty | Kind::Missing, _) => {}
            (Kind::Text, Some(_)) => text += 1,
            // `n` among numbers is a name.
            (Kind::Boolean, Some(class)) if *class != Class::Boolean => text += 1,
            (kind, class) => same += usize::from(kind.class() == *class),
        }
    }
    (same, text)
}
