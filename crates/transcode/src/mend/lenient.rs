//! Chooses how a record that does not fit is read.
//!
//! Each way of reading that gives the record exactly its width is judged by how many of the records behind it
//! are whole: a quote read wrongly swallows or breaks them, a delimiter that is a datum leaves them alone.
//! The first of the best ways is taken. Where no way gives the width, the record is its line, and fields are
//! added or dropped; what is then still too wide is left out.

use super::neighbours::Agreement;
use super::other_line_ending::{self, ends_otherwise};
use super::stray_quote::{Reach, Search};
use super::width::{self, Fitted};
use super::{broken_bytes, neighbours, other_delimiter, other_quotes};
use crate::cells::{Cells, Flaw, Next, Record};
use howdah_model::{Dialect, Eol, Escape, Mend, Nul, Result};

/// Bytes behind a record that mending looks at, at most.
const LOOK_AHEAD_BYTES: usize = 64 << 10;

/// Records behind a reading that are looked at. A reading that swallows or breaks records shows in the first
/// one or two; a few more tell chance from sense.
const WHOLE_MAX: usize = 8;

/// Lines of one reading that are looked at.
const LINES_MAX: usize = 64;

/// A record that does not fit, and what stands behind it.
pub(super) struct Ahead<'a> {
    pub(super) bytes: &'a [u8],
    /// The data ends with them.
    pub(super) at_end: bool,
    /// Bytes of the first line, its line ending included.
    pub(super) line_bytes: usize,
    /// Bytes of the record as the dialect cuts it, if it ends anywhere near.
    pub(super) strict: Option<usize>,
    /// What is wrong with it but its width.
    pub(super) flaw: Option<Flaw>,
}

/// What became of it.
pub(super) enum Mended {
    /// It is to be stored; so was it mended.
    Row(Vec<Mend>),
    /// Nothing stands in it.
    Blank,
    /// It is to be left out.
    Beyond,
}

/// The other ways of reading the records of one file.
pub(super) struct Lenient {
    width: usize,
    nul: Nul,
    eol: Option<Eol>,
    strict: Cells,
    any_line_ending: Cells,
    /// The likeliest first.
    others: Vec<Other>,
}

/// Another style of rows.
struct Other {
    cells: Cells,
    mend: Mend,
    /// What stands in every row of this style.
    mark: Vec<u8>,
    when: When,
    /// The mark stands in many values, too: the records behind must speak for the style.
    weak: bool,
}

/// Which rows may be in another style.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Any,
    /// Those in which a quote stands where it may not.
    QuoteFlaw,
    /// Those that the file's delimiter does not split.
    OneField,
}

/// One way.
#[derive(Clone, Copy)]
enum Way<'l> {
    /// As it was cut.
    AsCut,
    AnyLineEnding,
    Other(&'l Other),
    Stray(Reach),
}

/// A way that gives the width.
struct Choice {
    length: usize,
    record: Record,
    mend: Mend,
    /// Whole records behind it.
    whole: usize,
}

impl Choice {
    /// No other can be better.
    fn is_certain(&self) -> bool {
        self.whole == WHOLE_MAX
    }
}

impl Ahead<'_> {
    /// How many bytes must be in sight.
    pub(super) fn bytes(line_bytes: usize, strict: Option<usize>) -> usize {
        line_bytes.max(strict.unwrap_or(0)).saturating_add(LOOK_AHEAD_BYTES)
    }

    /// A quote stands where it may not.
    fn has_quote_flaw(&self) -> bool {
        self.flaw.is_some_and(|flaw| !matches!(flaw, Flaw::LineEnding(_)))
    }
}

impl Other {
    fn all(dialect: &Dialect, width: usize) -> Result<Vec<Other>> {
        let quote = |other: &Dialect| other.quote.into_iter().collect::<Vec<u8>>();
        let escapes = other_quotes::escapes(dialect).into_iter().map(|other| {
            let before = if other.escape == Escape::Backslash { vec![b'\\'] } else { quote(&other) };
            let mark = [before, quote(&other)].concat();
            (other, Mend::OtherQuotes, mark, When::QuoteFlaw, false)
        });
        let quotes = other_quotes::quotes(dialect).into_iter().map(|other| {
            let mark = quote(&other);
            (other, Mend::OtherQuotes, mark, When::Any, false)
        });
        let delimiters = other_delimiter::dialects(dialect, width).into_iter().map(|other| {
            let weak = other_delimiter::is_weak(&other.delimiter);
            let mark = other.delimiter.clone().into_bytes();
            (other, Mend::OtherDelimiter, mark, if weak { When::OneField } else { When::Any }, weak)
        });
        let all = escapes.chain(quotes).chain(delimiters);
        all.map(|(other, mend, mark, when, weak)| {
            Ok(Other { cells: Cells::new(&other)?, mend, mark, when, weak })
        })
        .collect()
    }
}

impl Lenient {
    pub(super) fn new(dialect: &Dialect, width: usize, nul: Nul) -> Result<Lenient> {
        Ok(Lenient {
            width,
            nul,
            eol: dialect.eol,
            strict: Cells::of_table(dialect, width)?,
            any_line_ending: Cells::of_table(&other_line_ending::dialect(dialect), width)?,
            others: Other::all(dialect, width)?,
        })
    }

    /// Mends the record, of which `record` holds the fields as the dialect cuts it; how many bytes it takes.
    pub(super) fn mend(&self, ahead: &Ahead, record: &mut Record) -> (usize, Mended) {
        let mut mends = Vec::new();
        let length = match ahead.strict.filter(|_| ahead.flaw.is_none()) {
            Some(length) if record.len() == self.width => length,
            Some(length) if width::is_blank(record) => return (length, Mended::Blank),
            as_cut => match self.best(ahead, record) {
                Some(choice) => {
                    *record = choice.record;
                    mends.push(choice.mend);
                    choice.length
                }
                None => match self.fit(ahead, as_cut, record, &mut mends) {
                    (length, None) => length,
                    (length, Some(other)) => return (length, other),
                },
            },
        };
        let row = &ahead.bytes[..length];
        if ends_otherwise(row, self.eol) && !mends.contains(&Mend::OtherLineEnding) {
            mends.push(Mend::OtherLineEnding);
        }
        broken_bytes::replace(&self.strict, record, self.nul, &mut mends);
        // Halves of a character that an escape stood between: no character in the file, but one in the value.
        if !mends.contains(&Mend::BrokenBytes) && std::str::from_utf8(row).is_err() {
            mends.push(Mend::BrokenBytes);
        }
        (length, Mended::Row(mends))
    }

    /// The record as it was cut, if it has no flaw, or else its first line, made as wide as it must be.
    fn fit(
        &self,
        ahead: &Ahead,
        as_cut: Option<usize>,
        record: &mut Record,
        mends: &mut Vec<Mend>,
    ) -> (usize, Option<Mended>) {
        let length = match as_cut {
            Some(length) => length,
            None => match [Reach::Whole, Reach::Line]
                .into_iter()
                .find_map(|reach| self.search(ahead, reach).first(record))
            {
                Some(length) => length,
                None => return (ahead.line_bytes, Some(Mended::Beyond)),
            },
        };
        let behind = ahead.bytes.get(length..).unwrap_or_default();
        let agrees = |record: &Record| {
            neighbours::agree(&self.strict, record, behind, ahead.at_end) != Agreement::Contradicts
        };
        match width::fit(record, self.width, agrees) {
            Fitted::Row(mend) => {
                mends.extend(ahead.has_quote_flaw().then_some(Mend::StrayQuote));
                mends.extend(mend);
                (length, None)
            }
            Fitted::Blank => (length, Some(Mended::Blank)),
            Fitted::Beyond => (length, Some(Mended::Beyond)),
        }
    }

    /// The best of the ways that give the width.
    fn best(&self, ahead: &Ahead, as_cut: &Record) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        for way in self.ways(ahead, as_cut) {
            match way {
                Way::AsCut => self.consider(&mut best, ahead, ahead.strict, as_cut, Mend::OtherLineEnding),
                Way::AnyLineEnding => {
                    self.read(&mut best, ahead, &self.any_line_ending, Mend::OtherLineEnding, false);
                }
                Way::Other(other) => self.read(&mut best, ahead, &other.cells, other.mend, other.weak),
                Way::Stray(reach) => self.stray(&mut best, ahead, reach),
            }
            if best.as_ref().is_some_and(Choice::is_certain) {
                break;
            }
        }
        best.filter(|best| self.is_better_than_cut(best, ahead, as_cut))
    }

    /// A record without a flaw stays as it was cut if that keeps as many records whole as quotes read as data
    /// do, or more than another style: its fields are added or dropped, or it is left out where it is too
    /// wide for that. Only one that is too wide and takes whole records with it is torn apart all the same.
    fn is_better_than_cut(&self, best: &Choice, ahead: &Ahead, as_cut: &Record) -> bool {
        let Some(length) = ahead.strict.filter(|_| ahead.flaw.is_none()) else { return true };
        let Some(behind) = ahead.bytes.get(length..) else { return true };
        let whole = self.whole(behind, ahead.at_end);
        best.whole > whole
            || best.whole == whole && best.mend != Mend::StrayQuote
            || !width::can_fit(as_cut, self.width)
                && length > ahead.line_bytes
                && self.swallows(ahead, length)
    }

    /// Considers the record by other rules, if it has no flaw then. What is weak must look like the records
    /// behind.
    fn read(&self, best: &mut Option<Choice>, ahead: &Ahead, cells: &Cells, mend: Mend, weak: bool) {
        let mut record = Record::default();
        let read = cells.read_near(ahead.bytes, ahead.at_end, &mut record, 0);
        let Ok(Next::Record { length, .. }) = read else { return };
        // A quote of another style that stands alone in a value reaches to the next one, however many records
        // on.
        if mend != Mend::OtherLineEnding && length > ahead.line_bytes && self.swallows(ahead, length) {
            return;
        }
        let behind = ahead.bytes.get(length..).unwrap_or_default();
        let looks_alike = || {
            record.len() == self.width
                && neighbours::agree(&self.strict, &record, behind, ahead.at_end) == Agreement::Agrees
        };
        if !weak || looks_alike() {
            self.consider(best, ahead, Some(length), &record, mend);
        }
    }

    fn stray(&self, best: &mut Option<Choice>, ahead: &Ahead, reach: Reach) {
        // These find what the nearer ones miss.
        let is_later = !matches!(reach, Reach::Whole | Reach::Lines);
        if is_later && best.as_ref().is_some_and(|best| best.mend == Mend::StrayQuote) {
            return;
        }
        self.search(ahead, reach).each(self.width, |length, record| {
            if reach == Reach::Lines && self.swallows(ahead, length) {
                return false;
            }
            self.consider(best, ahead, Some(length), record, Mend::StrayQuote);
            best.as_ref().is_some_and(Choice::is_certain) && reach != Reach::Lines
        });
    }

    /// A line within the first `length` bytes begins a record that is whole. A reading across lines is then
    /// no reading of one record.
    fn swallows(&self, ahead: &Ahead, length: usize) -> bool {
        let Some(read) = ahead.bytes.get(..length) else { return true };
        let mut record = Record::default();
        memchr::memchr2_iter(b'\n', b'\r', read).take(LINES_MAX).any(|line_end| {
            let line = &read[line_end + 1..];
            let next = self.any_line_ending.read_near(line, false, &mut record, 0);
            matches!(next, Ok(Next::Record { .. })) && record.len() == self.width
        })
    }

    /// Takes a reading if it has the width and keeps more records whole than the best so far. Of readings
    /// with quotes as data that keep as many, the shortest: the longer one has swallowed a record.
    fn consider(
        &self,
        best: &mut Option<Choice>,
        ahead: &Ahead,
        length: Option<usize>,
        record: &Record,
        mend: Mend,
    ) {
        let quoted = (0..record.len()).any(|no| record.quoted(no));
        let fits = record.len() == self.width && (mend != Mend::OtherQuotes || quoted);
        let Some((length, behind)) = length.and_then(|length| Some((length, ahead.bytes.get(length..)?)))
        else {
            return;
        };
        if !fits {
            return;
        }
        let whole = self.whole(behind, ahead.at_end);
        let is_better = best.as_ref().is_none_or(|best| {
            let shorter = best.mend == Mend::StrayQuote && mend == best.mend && length < best.length;
            whole > best.whole || whole == best.whole && shorter
        });
        if is_better {
            *best = Some(Choice { length, record: record.clone(), mend, whole });
        }
    }

    /// The ways that may make sense, the likeliest first.
    fn ways(&self, ahead: &Ahead, as_cut: &Record) -> Vec<Way<'_>> {
        let mut ways = Vec::new();
        if matches!(ahead.flaw, Some(Flaw::LineEnding(_))) {
            ways.extend([Way::AnyLineEnding, Way::AsCut]);
        }
        let row = &ahead.bytes[..ahead.strict.unwrap_or(0).max(ahead.line_bytes).min(ahead.bytes.len())];
        let others = self.others.iter().filter(|other| match other.when {
            When::Any => true,
            When::QuoteFlaw => ahead.has_quote_flaw(),
            When::OneField => ahead.flaw.is_none() && as_cut.len() == 1,
        });
        let others = others.filter(|other| memchr::memmem::find(row, &other.mark).is_some());
        ways.extend(others.map(Way::Other));
        if ahead.flaw.is_some() || ahead.strict.is_some_and(|length| length > ahead.line_bytes) {
            let in_line = [Reach::Whole, Reach::Line, Reach::LostQuote, Reach::LineFar, Reach::LineAnyQuote];
            ways.extend(in_line.map(Way::Stray));
        }
        if ahead.has_quote_flaw() {
            ways.push(Way::Stray(Reach::Lines));
        }
        ways
    }

    fn search<'s>(&'s self, ahead: &'s Ahead, reach: Reach) -> Search<'s> {
        let Ahead { bytes, at_end, line_bytes, .. } = *ahead;
        Search { cells: &self.any_line_ending, bytes, at_end, line_bytes, reach }
    }

    /// How many records at the beginning of `bytes` are whole, one after the other. The end of the data
    /// counts as many.
    fn whole(&self, mut bytes: &[u8], at_end: bool) -> usize {
        let (mut record, mut whole) = (Record::default(), 0);
        while whole < WHOLE_MAX {
            match self.strict.read_near(bytes, at_end, &mut record, 0) {
                Ok(Next::Record { length, .. }) if record.len() == self.width => {
                    whole += 1;
                    bytes = &bytes[length..];
                }
                Ok(Next::Comment(length)) => bytes = &bytes[length..],
                Ok(Next::End) => return WHOLE_MAX,
                Ok(Next::Record { .. } | Next::More) | Err(_) => break,
            }
        }
        whole
    }
}
