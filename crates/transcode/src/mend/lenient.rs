//! Chooses how a record that does not fit is read.
//!
//! Each way of reading that gives the record exactly its width is judged by how many of the records behind it
//! are whole: a quote read wrongly swallows or breaks them, a delimiter that is a datum leaves them alone. The
//! first of the best ways is taken. Where no way gives the width, the record is its line, and fields are added
//! or dropped; what is then still too wide is left out.

use super::other_line_ending::{self, ends_otherwise};
use super::stray_quote::{Reach, Search};
use super::width::{self, Fitted};
use super::{broken_bytes, other_delimiter, other_quotes};
use crate::cells::{Cells, Flaw, Next, Record};
use howdah_model::{Dialect, Eol, Mend, Result};

/// Bytes behind a record that mending looks at, at most.
pub const LOOK_AHEAD_BYTES: usize = 64 << 10;

/// Records behind a reading that are looked at. A reading that swallows or breaks records shows in the first
/// one or two; a few more tell chance from sense.
const WHOLE_MAX: usize = 8;

/// A record that does not fit, and what stands behind it.
pub(super) struct Ahead<'a> {
    pub(super) bytes: &'a [u8],
    /// The data ends with them.
    pub(super) at_end: bool,
    /// Bytes of the first line, its line ending included.
    pub(super) line_bytes: usize,
    /// Bytes of the record as the dialect cuts it, if it ends at all.
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
    eol: Option<Eol>,
    strict: Cells,
    any_line_ending: Cells,
    escapes: Vec<Cells>,
    quotes: Vec<Cells>,
    delimiters: Vec<Cells>,
    weak_delimiters: Vec<Cells>,
}

/// One way.
#[derive(Clone, Copy)]
enum Way<'l> {
    /// As it was cut.
    AsCut,
    /// By other rules; where these are other quotes, a field must stand in them.
    Other(&'l Cells, Option<Mend>),
    Stray(Reach),
}

fn others(cells: &[Cells], mend: Mend) -> impl Iterator<Item = Way<'_>> {
    cells.iter().map(move |cells| Way::Other(cells, Some(mend)))
}

/// A way that gives the width.
struct Choice {
    length: usize,
    record: Record,
    mend: Option<Mend>,
    /// Whole records behind it.
    whole: usize,
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

impl Lenient {
    pub(super) fn new(dialect: &Dialect, width: usize) -> Result<Lenient> {
        let cells =
            |dialects: Vec<Dialect>| -> Result<Vec<Cells>> { dialects.iter().map(Cells::new).collect() };
        let delimiters = other_delimiter::dialects(dialect, width);
        let (weak, strong) =
            delimiters.into_iter().partition(|other| other_delimiter::is_weak(&other.delimiter));
        Ok(Lenient {
            width,
            eol: dialect.eol,
            strict: Cells::new(dialect)?,
            any_line_ending: Cells::new(&other_line_ending::dialect(dialect))?,
            escapes: cells(other_quotes::escapes(dialect))?,
            quotes: cells(other_quotes::quotes(dialect))?,
            delimiters: cells(strong)?,
            weak_delimiters: cells(weak)?,
        })
    }

    /// Mends the record, of which `record` holds the fields as the dialect cuts it; how many bytes it takes.
    pub(super) fn mend(&self, ahead: &Ahead, record: &mut Record) -> (usize, Mended) {
        let mut mends = Vec::new();
        let length = match ahead.strict.filter(|_| ahead.flaw.is_none()) {
            Some(length) if record.len() == self.width => length,
            Some(length) if record.is_blank() => return (length, Mended::Blank),
            as_cut => match self.best(ahead, record) {
                Some(choice) => {
                    *record = choice.record;
                    mends.extend(choice.mend);
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
        broken_bytes::replace(&self.strict, record, &mut mends);
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
            None => match self.search(ahead, Reach::Line).find(None, record) {
                Some(length) => length,
                None => return (ahead.line_bytes, Some(Mended::Beyond)),
            },
        };
        match width::fit(record, self.width) {
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
            let Some(choice) = self.read(way, ahead, as_cut) else { continue };
            let is_whole = choice.whole == WHOLE_MAX;
            if best.as_ref().is_none_or(|best| choice.whole > best.whole) {
                best = Some(choice);
            }
            if is_whole {
                break;
            }
        }
        best
    }

    /// The ways that may make sense, the likeliest first.
    fn ways(&self, ahead: &Ahead, as_cut: &Record) -> Vec<Way<'_>> {
        let mut ways = Vec::new();
        if matches!(ahead.flaw, Some(Flaw::LineEnding(_))) {
            ways.push(Way::Other(&self.any_line_ending, None));
            ways.push(Way::AsCut);
        }
        if ahead.has_quote_flaw() {
            ways.extend(others(&self.escapes, Mend::OtherQuotes));
        }
        ways.extend(others(&self.quotes, Mend::OtherQuotes));
        ways.extend(others(&self.delimiters, Mend::OtherDelimiter));
        if ahead.flaw.is_none() && as_cut.len() == 1 {
            ways.extend(others(&self.weak_delimiters, Mend::OtherDelimiter));
        }
        if ahead.flaw.is_some() || ahead.strict.is_some_and(|length| length > ahead.line_bytes) {
            ways.extend([Reach::Line, Reach::LineAnyQuote, Reach::LineEnd].map(Way::Stray));
        }
        if ahead.has_quote_flaw() {
            ways.push(Way::Stray(Reach::Lines));
        }
        ways
    }

    /// Reads the record in this way; `None` if it has not its width then.
    fn read(&self, way: Way, ahead: &Ahead, as_cut: &Record) -> Option<Choice> {
        let mut record = Record::default();
        let (length, mend) = match way {
            Way::AsCut => {
                record.clone_from(as_cut);
                (ahead.strict?, Some(Mend::OtherLineEnding))
            }
            Way::Other(cells, mend) => match cells.read(ahead.bytes, ahead.at_end, &mut record) {
                Next::Record { length, flaw: None } => (length, mend),
                _ => return None,
            },
            Way::Stray(reach) => {
                (self.search(ahead, reach).find(Some(self.width), &mut record)?, Some(Mend::StrayQuote))
            }
        };
        let quoted = (0..record.len()).any(|no| record.quoted(no));
        if record.len() != self.width || mend == Some(Mend::OtherQuotes) && !quoted {
            return None;
        }
        let behind = ahead.bytes.get(length..)?;
        Some(Choice { length, record, mend, whole: self.whole(behind, ahead.at_end) })
    }

    fn search<'s>(&'s self, ahead: &'s Ahead, reach: Reach) -> Search<'s> {
        let Ahead { bytes, at_end, line_bytes, .. } = *ahead;
        Search { cells: &self.any_line_ending, bytes, at_end, line_bytes, reach }
    }

    /// How many records at the beginning of `bytes` are whole, one after the other. The end of the data counts
    /// as many.
    fn whole(&self, mut bytes: &[u8], at_end: bool) -> usize {
        let (mut record, mut whole) = (Record::default(), 0);
        while whole < WHOLE_MAX {
            match self.strict.read(bytes, at_end, &mut record) {
                Next::Record { length, flaw: None } if record.len() == self.width => {
                    whole += 1;
                    bytes = &bytes[length..];
                }
                Next::Comment(length) => bytes = &bytes[length..],
                Next::End => return WHOLE_MAX,
                Next::Record { .. } | Next::More => break,
            }
        }
        whole
    }
}
