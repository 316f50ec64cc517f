//! Quotes that open or close nothing: `5" pipe`, `"the "old" one"`, `"never closed`.
//!
//! A field that begins with a quote may end at any quote that a delimiter or a line ending follows; or its
//! quote is a datum; or its closing quote was lost. The search goes through these readings of all fields of a
//! record, nearest ends first, for one that gives the record its width.

use crate::cells::{Cells, End, Record};
use std::collections::HashSet;

/// How many closing quotes of one field are tried: each may be a datum before the true one.
const CLOSINGS_MAX: usize = 8;

/// How many readings across lines are compared.
const READINGS_MAX: usize = 16;

/// How many quotes are looked at for the one that closes a field.
const QUOTES_MAX: usize = 128;

/// Bytes looked at for one record beyond a few times its line, so that no input makes the search slow. Fields
/// are usually read once or twice; a record that needs more has been read in hundreds of ways.
const WORK_BYTES: usize = 32 << 10;
const WORK_LINES: usize = 4;

/// How far [`Reach::Lines`] goes. A field with quotes in it and more lines than this is not found.
const LINES_BYTES: usize = 16 << 10;

/// How far the search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A field ends in the line it begins in, at the nearest quote that may close it, or the nearest one that
    /// looks escaped and has a delimiter behind it. A quote is a datum only where no other stands in its
    /// field: the reading that takes no pair of quotes apart.
    Whole,
    /// A field ends in the line it begins in, at the nearest quote that may close it.
    Line,
    /// There, or, its closing quote being lost, before the delimiter of the next quoted field, or with the
    /// line if no further quote stands in it.
    LostQuote,
    /// At a farther quote in the line: those before it are data.
    LineFar,
    /// At any quote in the line that has a delimiter behind it, also if it is escaped: `"C:\"` and
    /// `"so he said ""` end here.
    LineAnyQuote,
    /// At a quote that is not escaped, in any line.
    Lines,
}

/// One record to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    /// How fields and lines end: those of the dialect, with any line ending.
    pub(super) cells: &'a Cells,
    pub(super) bytes: &'a [u8],
    pub(super) at_end: bool,
    /// Bytes of the first line, its line ending included.
    pub(super) line_bytes: usize,
    pub(super) reach: Reach,
}

/// How one field that begins with a quote is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Up to the first closing quote at or behind `from`; without any, the quote is a datum.
    Closing { from: usize, tried: usize },
    /// Up to the first quote that has a delimiter behind it, escaped or not.
    AnyQuote,
    /// The quote is a datum.
    Datum,
    /// Up to where its closing quote must have been.
    Lost,
}

/// A field that can be read in another way.
struct Branch {
    at: usize,
    way: Way,
    fields: usize,
}

impl Way {
    const FIRST: Way = Way::Closing { from: 0, tried: 0 };
}

impl Reach {
    /// How many closing quotes of one field are tried.
    fn closings_max(self) -> usize {
        match self {
            Reach::Whole | Reach::Line | Reach::LostQuote => 1,
            Reach::LineFar | Reach::LineAnyQuote | Reach::Lines => CLOSINGS_MAX,
        }
    }
}

impl Search<'_> {
    /// The first reading of all, whatever its width: its bytes, `record` filled with its fields.
    pub(super) fn first(&self, record: &mut Record) -> Option<usize> {
        self.search(None, record, |_, _| true)
    }

    /// The readings that have `width` fields, told to `found` with their bytes until it says that it is
    /// content. Beyond [`Reach::Lines`] the first one is near enough.
    pub(super) fn each(&self, width: usize, mut found: impl FnMut(usize, &Record) -> bool) {
        let mut readings = 0;
        self.search(Some(width), &mut Record::default(), |length, record| {
            readings += 1;
            found(length, record) || self.reach != Reach::Lines || readings == READINGS_MAX
        });
    }

    fn search(
        &self,
        width: Option<usize>,
        record: &mut Record,
        mut found: impl FnMut(usize, &Record) -> bool,
    ) -> Option<usize> {
        record.truncate(0);
        let (mut at, mut way) = (0, Way::FIRST);
        let mut work_left = WORK_BYTES.saturating_add(self.line_bytes.saturating_mul(WORK_LINES));
        let mut branches: Vec<Branch> = Vec::new();
        // What can follow depends on the place and the fields so far alone, so each pair is entered once.
        let mut entered = HashSet::new();
        while work_left > 0 {
            let fields = record.len();
            let (end, other) = self.field(at, way, record, &mut work_left);
            branches.extend(other.map(|way| Branch { at, way, fields }));
            match end {
                End::Record(length) => {
                    if width.is_none_or(|width| fields + 1 == width) && found(length, record) {
                        return Some(length);
                    }
                    work_left = work_left.saturating_sub(length - at);
                }
                End::Field(next) => {
                    work_left = work_left.saturating_sub(next - at);
                    if width.is_none_or(|width| fields + 1 < width && entered.insert((next, fields))) {
                        (at, way) = (next, Way::FIRST);
                        continue;
                    }
                }
                End::More => work_left = work_left.saturating_sub(self.bytes.len() - at),
            }
            let branch = branches.pop()?;
            record.truncate(branch.fields);
            (at, way) = (branch.at, branch.way);
        }
        None
    }

    /// Appends the field at `at`, read in this way; where it ends, and the next way. What is looked at for a
    /// closing quote is taken from `work_left`.
    fn field(&self, at: usize, way: Way, record: &mut Record, work_left: &mut usize) -> (End, Option<Way>) {
        let plain = |record: &mut Record| self.cells.plain_field(self.bytes, at, self.at_end, record);
        if self.reach == Reach::Whole {
            return self.whole_field(at, way, record, work_left);
        }
        let Some(opening) = self.cells.opening(self.bytes, at) else { return (plain(record), None) };
        let until = match way {
            Way::Lost => return (self.lost(opening, record), None),
            Way::Closing { from, tried } if tried < self.reach.closings_max() => {
                let any = self.reach == Reach::LineAnyQuote;
                self.closing(from.max(opening + 1), any, work_left)
            }
            _ => None,
        };
        match (until, way) {
            (Some(closing), Way::Closing { tried, .. }) => {
                let end = self.closed(opening, closing, record);
                (end, Some(Way::Closing { from: closing + 1, tried: tried + 1 }))
            }
            _ => (plain(record), (self.reach == Reach::LostQuote).then_some(Way::Lost)),
        }
    }

    /// As [`Search::field`], for [`Reach::Whole`].
    fn whole_field(
        &self,
        at: usize,
        way: Way,
        record: &mut Record,
        work_left: &mut usize,
    ) -> (End, Option<Way>) {
        let opening = self.cells.opening(self.bytes, at);
        let (closing, other) = match (opening, way) {
            (None, _) | (_, Way::Datum | Way::Lost) => (None, None),
            (Some(opening), Way::Closing { .. }) => {
                (self.closing(opening + 1, false, work_left), Some(Way::AnyQuote))
            }
            (Some(opening), Way::AnyQuote) => (self.closing(opening + 1, true, work_left), Some(Way::Datum)),
        };
        if let Some((opening, closing)) = opening.zip(closing) {
            return (self.closed(opening, closing, record), other);
        }
        if other.is_some() {
            return (End::More, other);
        }
        let end = self.cells.plain_field(self.bytes, at, self.at_end, record);
        let (End::Field(next) | End::Record(next)) = end else { return (End::More, None) };
        let written = self.bytes.get(..next).unwrap_or(self.bytes);
        let is_whole = self.cells.next_quote(written, opening.map_or(at, |opening| opening + 1)).is_none();
        (if is_whole { end } else { End::More }, None)
    }

    /// Appends the field between these quotes.
    fn closed(&self, opening: usize, closing: usize, record: &mut Record) -> End {
        self.cells.push_between(self.bytes, opening, closing, record);
        self.cells.end_of_field(self.bytes, closing + 1, self.at_end)
    }

    /// The first quote at or behind `from`, which stands inside quotes, that may close them; with `any` also
    /// if it is escaped.
    fn closing(&self, from: usize, any: bool, work_left: &mut usize) -> Option<usize> {
        let limit = match self.reach {
            Reach::Lines => self.bytes.len().min(self.line_bytes.saturating_add(LINES_BYTES)),
            _ => self.line_bytes,
        };
        let mut at = from;
        for _ in 0..QUOTES_MAX {
            let before = at;
            at = self.cells.next_special(self.bytes.get(..limit)?, at)?;
            *work_left = work_left.saturating_sub(at - before);
            let escapes = self.cells.escapes(self.bytes, at);
            let quote = at + usize::from(escapes && any);
            let may_close = self.cells.is_quote(self.bytes, quote) && (!escapes || quote > at);
            if may_close && self.cells.closes(self.bytes, quote, self.at_end) {
                return Some(quote);
            }
            at += 1 + usize::from(escapes);
        }
        None
    }

    /// Appends the field whose closing quote was lost.
    fn lost(&self, opening: usize, record: &mut Record) -> End {
        let line = &self.bytes[..self.line_bytes];
        let Some(quote) = self.cells.next_quote(line, opening + 1) else {
            let value_end = line.trim_ascii_end().len().max(opening + 1);
            self.cells.push_between(self.bytes, opening, value_end, record);
            return End::Record(self.line_bytes);
        };
        let Some(value_end) = self.cells.before_delimiter(line, quote).filter(|&end| end > opening) else {
            return End::More;
        };
        self.cells.push_between(self.bytes, opening, value_end, record);
        End::Field(quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::{Dialect, Escape};

    fn read(dialect: &Dialect, reach: Reach, width: usize, text: &str) -> Option<(Vec<String>, usize)> {
        let cells = Cells::new(&Dialect { eol: None, ..dialect.clone() }).unwrap();
        let line_bytes = text.find('\n').map_or(text.len(), |at| at + 1);
        let search = Search { cells: &cells, bytes: text.as_bytes(), at_end: true, line_bytes, reach };
        let mut first = None;
        search.each(width, |length, record| {
            first =
                Some((record.values().map(|v| String::from_utf8_lossy(v).into_owned()).collect(), length));
            true
        });
        first
    }

    fn line(width: usize, text: &str) -> Vec<String> {
        read(&Dialect::csv(), Reach::Line, width, text).unwrap_or_default().0
    }

    #[test]
    fn quotes_that_close_nothing_are_data() {
        assert_eq!(line(3, "1,5\" pipe,2\n"), ["1", "5\" pipe", "2"]);
        assert_eq!(line(2, "1,\"the \"old\" one\"\n"), ["1", "the \"old\" one"]);
        assert_eq!(line(2, "\"Crocodile\" Dundee,1986\n"), ["\"Crocodile\" Dundee", "1986"]);
        assert_eq!(line(3, "\"abc,5,\"d,e\"\n"), ["\"abc", "5", "d,e"]);
        let far = read(&Dialect::csv(), Reach::LineFar, 2, "\"[{\"n\":\"x\",\"m\":\"y\"}]\",5\n");
        assert_eq!(far.unwrap().0, ["[{\"n\":\"x\",\"m\":\"y\"}]", "5"]);
        assert_eq!(line(2, "1, \"a\" \n"), ["1", "a"]);
    }

    #[test]
    fn a_quote_more_beside_the_closing_one_is_a_datum() {
        let whole = |width, text| read(&Dialect::csv(), Reach::Whole, width, text).unwrap_or_default().0;
        assert_eq!(whole(2, "\"a\",\"zinc\"\"\n\"b\",\"c\"\n"), ["a", "zinc\""]);
        assert_eq!(whole(2, "\"a\",\"\"zinc\"\n"), ["a", "\"zinc"]);
        assert_eq!(whole(3, "\"a\",\"(F,OH)\"\",\"8\"\n"), ["a", "(F,OH)\"", "8"]);
        assert_eq!(whole(2, "1,\"the \"old\"\"\n"), ["1", "the \"old\""]);
        assert_eq!(whole(3, "\"a,\"b\",\"c,d\"\n"), ["\"a", "b", "c,d"]);
        assert_eq!(whole(2, "1,5\" pipe\n"), [""; 0]);
    }

    #[test]
    fn a_lost_closing_quote_is_at_the_delimiter_or_the_end_of_the_line() {
        assert_eq!(line(3, "1,\"b,c\n2,d,e\n"), ["1", "\"b", "c"]);
        assert_eq!(line(2, "1,\"b,c\n2,d\n"), [""; 0]);
        let lost = |text| read(&Dialect::csv(), Reach::LostQuote, 2, text).unwrap().0;
        assert_eq!(lost("1,\"b,c\n2,d\n"), ["1", "b,c"]);
        assert_eq!(lost("\"1,1,\"b,c\"\n2,d\n"), ["1,1", "b,c"]);
        assert_eq!(line(2, "1,\"b"), ["1", "\"b"]);
    }

    #[test]
    fn a_quote_that_looks_escaped_may_close() {
        let dialect = Dialect { escape: Escape::Backslash, ..Dialect::csv() };
        let found = read(&dialect, Reach::LineAnyQuote, 2, "\"C:\\\",5\n");
        assert_eq!(found.unwrap().0, ["C:\\", "5"]);
        let found = read(&Dialect::csv(), Reach::LineAnyQuote, 2, "\"so he said \"hi\"\",5\n");
        assert_eq!(found.unwrap().0, ["so he said \"hi\"", "5"]);
    }

    #[test]
    fn a_field_of_several_lines_with_quotes_inside_is_found() {
        let text = "1,\"one\nsays \"hi\"\nend\",2\n3,d,4\n";
        let (values, length) = read(&Dialect::csv(), Reach::Lines, 3, text).unwrap();
        assert_eq!(values, ["1", "one\nsays \"hi\"\nend", "2"]);
        assert_eq!(length, text.len() - "3,d,4\n".len());
    }

    #[test]
    fn the_search_is_bounded() {
        let text = "\"\",".repeat(20_000);
        for reach in
            [Reach::Whole, Reach::Line, Reach::LostQuote, Reach::LineFar, Reach::LineAnyQuote, Reach::Lines]
        {
            assert_eq!(read(&Dialect::csv(), reach, 7, &text), None, "{reach:?}");
        }
    }
}
