//! The records of a window under a dialect, read so that one stray quote cannot swallow the rest.
//!
//! [`Cells`] is the strict reading. Where it gives up (a quote that never closes, or that closes in the
//! middle of a field some lines later), the line alone is taken for a broken record, and reading goes on
//! behind it. A quoted field whose own quotes are not escaped is mended first, if closing only at quotes that
//! end a field makes sense of it.

use super::windows::Window;
use crate::cells::{Cells, Flaw, Next, Record};
use howdah_model::{Dialect, Eol, Escape, Result};
use std::ops::Range;

/// The lines of a record are not looked for beyond so many bytes: sixteen times the longest field in the
/// files this was tried on, and few enough to keep a stray quote cheap.
const LOOK_BYTES: usize = 64 << 10;

/// A field that is mended holds no more lines than this: further on, a quote that ends a field is another
/// field's.
const MENDED_LINES_MAX: usize = 8;

/// So many quotes may swallow lines before the dialect's quote is believed in no more.
const SWALLOWED_MAX: u32 = 32;

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Its first byte in the window's text.
    pub(super) start: usize,
    /// Its bytes, line ending included.
    pub(super) length: usize,
    /// The reading is not as the dialect says.
    pub(super) flaw: Option<Flaw>,
    /// A quote would have swallowed the following lines.
    pub(super) broken: bool,
    /// Of a broken one: its field does not end in the window, and the file does not end with it either.
    pub(super) open: bool,
}

/// Which rows of a window may be lines of a field that begins before the window or ends behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Edges {
    /// The rows before this one end a field.
    begun: usize,
    /// The rows from this one on begin a field.
    open: Option<usize>,
    begins_inside: bool,
    has_quote: bool,
}

impl Edges {
    pub(super) fn new(window: &Window) -> Edges {
        Edges { begins_inside: window.begins_inside, ..Edges::default() }
    }

    /// Takes in row `no`.
    pub(super) fn add(&mut self, reader: &Reader, window: &Window, row: Row, no: usize) {
        if row.open && self.open.is_none() {
            self.open = Some(no);
        }
        // The first quote of the window that is no datum tells, if it begins within a record.
        let looks = self.begins_inside && !self.has_quote;
        let bytes = window.text.get(row.start..row.start + row.length).filter(|_| looks);
        let Some((bytes, quote)) = bytes.and_then(|bytes| Some((bytes, reader.first_bare_quote(bytes)?)))
        else {
            return;
        };
        self.has_quote = true;
        if (row.broken || row.flaw.is_some()) && reader.cells.closes(bytes, quote, true) {
            self.begun = no + 1;
        }
    }

    /// These rows, of `count` ones: those at the beginning and those at the end.
    pub(super) fn ranges(self, count: usize) -> [Range<usize>; 2] {
        let is_inside = self.begins_inside && !self.has_quote;
        let begun = if is_inside { count } else { self.begun };
        [0..begun, self.open.unwrap_or(count).max(begun)..count]
    }
}

/// Cuts windows. Costs no allocation a record.
pub(super) struct Reader {
    cells: Cells,
    line: Cells,
    doubled: Cells,
    pub(super) dialect: Dialect,
    mended: Vec<u8>,
    pub(super) record: Record,
    swallowed: u32,
}

impl Reader {
    /// # Errors
    /// As [`Cells::new`].
    pub(super) fn new(dialect: &Dialect) -> Result<Reader> {
        // What is a comment is asked when the table is known.
        let dialect = Dialect { comment: None, ..dialect.clone() };
        let line = Dialect { quote: None, escape: Escape::None, ..dialect.clone() };
        Ok(Reader {
            cells: Cells::new(&dialect)?,
            line: Cells::new(&line)?,
            doubled: Cells::new(&Dialect { escape: Escape::Doubled, ..dialect.clone() })?,
            dialect,
            mended: Vec::new(),
            record: Record::default(),
            swallowed: 0,
        })
    }

    /// The record that begins at `start`; its fields are in [`Reader::record`]. `None` at the end of what
    /// is whole.
    pub(super) fn next(&mut self, window: &Window, start: usize) -> Option<Row> {
        let rest = window.text.get(start..).filter(|rest| !rest.is_empty())?;
        // A line is looked at in full, however long it is.
        let line_bytes = memchr::memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 2);
        let mut looked = &rest[..rest.len().min(LOOK_BYTES.max(line_bytes))];
        let mut at_end = window.at_end && looked.len() == rest.len();
        let row = |length, flaw| Row { start, length, flaw, broken: false, open: false };
        let mut open = false;
        if self.swallowed < SWALLOWED_MAX {
            let mut next = self.cells.read(looked, at_end, &mut self.record);
            if next == Next::More && looked.len() < rest.len() {
                // Fields that have ended may stand at the beginning of a line that has not.
                looked = &rest[..end_of_line(rest, looked.len())];
                at_end = window.at_end && looked.len() == rest.len();
                next = self.cells.read(looked, at_end, &mut self.record);
            }
            if next == Next::More
                && looked.len() < rest.len()
                && self.closes_behind(rest, looked.len(), window)
            {
                (looked, at_end) = (rest, window.at_end);
                next = self.cells.read(looked, at_end, &mut self.record);
            }
            let all = looked.len() == rest.len();
            match next {
                Next::Record { flaw: flaw @ Some(Flaw::TextAfterQuote(_)), length } => {
                    if let Some(length) = self.mend(looked, at_end) {
                        return Some(row(length, flaw));
                    }
                    self.cells.read(looked, at_end, &mut self.record);
                    if !swallows(flaw, &looked[..length]) {
                        return Some(row(length, flaw));
                    }
                }
                Next::Record { length, flaw } if !swallows(flaw, &looked[..length]) => {
                    return Some(row(length, flaw));
                }
                Next::Comment(_) | Next::End => return None,
                Next::More if all && !many_lines(looked) => return None,
                Next::More => open = !window.at_end,
                Next::Record { .. } => {}
            }
            self.swallowed += 1;
        }
        let all = looked.len() == rest.len();
        match self.line.read(looked, at_end, &mut self.record) {
            Next::Record { length, .. } => Some(Row { broken: true, open, ..row(length, None) }),
            _ if all => None,
            // A line longer than what is looked at is cut there.
            _ => Some(Row { broken: true, open, ..row(looked.len(), None) }),
        }
    }

    /// Reads the bytes of a row that [`Reader::next`] gave once more, as it did, whatever was read since.
    pub(super) fn again(&mut self, bytes: &[u8], broken: bool) {
        let cells = if broken { &self.line } else { &self.cells };
        let next = cells.read(bytes, true, &mut self.record);
        let unescaped = matches!(next, Next::Record { flaw: Some(Flaw::TextAfterQuote(_)), .. });
        if !broken && unescaped && self.mend(bytes, true).is_none() {
            self.cells.read(bytes, true, &mut self.record);
        }
    }

    /// The field that is open at `at` ends further on as a field does.
    fn closes_behind(&self, bytes: &[u8], at: usize, window: &Window) -> bool {
        // Escapes go in pairs, which must not be taken apart.
        let is_plain = |byte: &u8| Some(*byte) != self.dialect.quote && *byte != b'\\';
        let mut at = bytes[..at].iter().rposition(is_plain).map_or(0, |plain| plain + 1);
        while let Some(special) = self.cells.next_special(bytes, at) {
            if self.cells.escapes(bytes, special) {
                at = special + 2;
            } else if self.cells.is_quote(bytes, special) {
                return self.cells.closes(bytes, special, window.at_end);
            } else {
                at = special + 1;
            }
        }
        false
    }

    /// The first quote that nothing escapes, if these bytes begin inside quotes.
    fn first_bare_quote(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(special) = self.cells.next_special(bytes, at) {
            if self.cells.escapes(bytes, special) {
                at = special + 2;
            } else if self.cells.is_quote(bytes, special) {
                return Some(special);
            } else {
                at = special + 1;
            }
        }
        None
    }

    /// A field in quotes is open at the end of these bytes, which begin with a record.
    pub(super) fn is_open(&mut self, bytes: &[u8]) -> bool {
        self.dialect.quote.is_some() && self.cells.read(bytes, false, &mut self.record) == Next::More
    }

    /// Where the next record begins, if `from` stands inside a field in quotes; `None` if that does not end
    /// in the window.
    pub(super) fn behind_open_field(&mut self, window: &Window, from: usize) -> Option<usize> {
        let quote = from + self.first_bare_quote(&window.text[from..])?;
        if !self.cells.closes(&window.text, quote, window.at_end) {
            return None;
        }
        let behind = quote + 1;
        match self.cells.read(&window.text[behind..], window.at_end, &mut self.record) {
            Next::Record { length, flaw: None } => Some(behind + length),
            Next::End => Some(behind),
            _ => None,
        }
    }

    /// This offset of the file's last window stands inside quotes: the file ends outside, behind an odd
    /// number of them.
    pub(super) fn is_quoted(&self, window: &Window, at: usize) -> bool {
        let (mut at, mut inside) = (at, false);
        while let Some(special) = self.cells.next_special(&window.text, at) {
            let escaped =
                self.dialect.escape == Escape::Backslash && self.cells.escapes(&window.text, special);
            inside ^= !escaped && self.cells.is_quote(&window.text, special);
            at = special + if escaped { 2 } else { 1 };
        }
        inside
    }

    /// Reads a record once more, with every quote doubled that does not end a field; how long it is, if that
    /// reading has no flaw and holds no more lines than a field may.
    fn mend(&mut self, bytes: &[u8], at_end: bool) -> Option<usize> {
        let quote = self.dialect.quote.filter(|_| self.dialect.escape != Escape::Backslash)?;
        self.mended.clear();
        let (mut at, mut inside, mut field_start, mut endings) = (0, false, true, 0);
        let length = loop {
            let Some(&byte) = bytes.get(at) else { break at_end.then_some(at)? };
            let rest = &bytes[at + 1..];
            let ends = rest.is_empty() || matches!(rest[0], b'\n' | b'\r') || self.delimits(rest);
            // What looks like another field's first quote says that this field was never closed.
            let opens = self.delimits_behind() || matches!(self.mended.last(), Some(b'\n' | b'\r'));
            self.mended.push(byte);
            at += 1;
            if byte == quote && inside {
                if ends {
                    inside = false;
                } else if rest[0] == quote && !self.ends_behind(rest) {
                    self.mended.push(quote);
                    at += 1;
                } else if opens {
                    return None;
                } else {
                    self.mended.push(quote);
                }
            } else if byte == quote && field_start {
                inside = true;
            } else if matches!(byte, b'\n' | b'\r') {
                endings += 1;
                if !inside && self.ends_line(&bytes[..at], rest) {
                    break at;
                }
                if endings > MENDED_LINES_MAX {
                    return None;
                }
            }
            field_start = !inside && self.delimits_behind();
        };
        match self.doubled.read(&self.mended, true, &mut self.record) {
            Next::Record { length: read, flaw: None } if read == self.mended.len() => Some(length),
            _ => None,
        }
    }

    /// The line ending that was read last ends a record.
    fn ends_line(&self, read: &[u8], rest: &[u8]) -> bool {
        let pair = rest.first() == Some(&b'\n');
        match (read, self.dialect.eol) {
            ([.., b'\r', b'\n'], Some(Eol::CrLf) | None) => true,
            ([.., b'\n'], eol) => matches!(eol, Some(Eol::Lf) | None),
            (_, Some(Eol::Cr)) => true,
            (_, eol) => eol.is_none() && !pair,
        }
    }

    fn delimits(&self, bytes: &[u8]) -> bool {
        let delimiter = self.dialect.delimiter.as_bytes();
        !delimiter.is_empty() && bytes.starts_with(delimiter)
    }

    fn delimits_behind(&self) -> bool {
        let delimiter = self.dialect.delimiter.as_bytes();
        !delimiter.is_empty() && self.mended.ends_with(delimiter)
    }

    /// The quote that `rest` begins with ends the field, so that it is no second half of a doubled one.
    fn ends_behind(&self, rest: &[u8]) -> bool {
        let behind = &rest[1..];
        behind.is_empty() || matches!(behind[0], b'\n' | b'\r') || self.delimits(behind)
    }
}

/// A quote that closes nowhere, or in the middle of a field, took lines with it.
fn swallows(flaw: Option<Flaw>, record: &[u8]) -> bool {
    let suspicious = matches!(flaw, Some(Flaw::TextAfterQuote(_) | Flaw::Unclosed(_)));
    suspicious && memchr::memchr2(b'\n', b'\r', without_ending(record)).is_some()
}

fn without_ending(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// One past the line ending that stands at `from` or behind it.
fn end_of_line(bytes: &[u8], from: usize) -> usize {
    let Some(at) = memchr::memchr2(b'\n', b'\r', &bytes[from..]) else { return bytes.len() };
    let pair = bytes[from + at..].starts_with(b"\r\n");
    from + at + if pair { 2 } else { 1 }
}

/// More lines than the last record of a window holds.
fn many_lines(rest: &[u8]) -> bool {
    memchr::memchr2_iter(b'\n', b'\r', rest).nth(40).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Sample;
    use crate::dialect::encoding::Encoding;
    use crate::dialect::windows::Windows;

    fn widths(bytes: &[u8]) -> Vec<(usize, bool)> {
        let encoding = Encoding { name: "UTF8".to_owned(), bom_bytes: 0, recoded: false };
        let sample = Sample::of_whole(bytes);
        let windows = Windows::new(&sample, &encoding);
        let mut reader = Reader::new(&Dialect::csv()).unwrap();
        let (mut at, mut widths) = (0, Vec::new());
        while let Some(row) = reader.next(&windows.head, at) {
            widths.push((reader.record.len(), row.broken));
            at += row.length;
        }
        assert_eq!(at, bytes.len());
        widths
    }

    #[test]
    fn a_stray_quote_costs_one_line() {
        let whole = (2, false);
        assert_eq!(widths(b"a,b\n1,\"x\n2,\"y\"\n3,z\n"), [whole, (2, true), whole, whole]);
        assert_eq!(widths(b"a,b\n1,\"x\n2,y\n3,z"), [whole, (2, true), whole, whole]);
        assert_eq!(widths(b"a,\"b\nc\"\n1,2\n"), [whole, whole]);
        assert_eq!(widths(b"a,b\"\n1,2\n"), [whole, whole]);
    }

    #[test]
    fn a_record_ends_behind_what_is_looked_at() {
        let whole = (3, false);
        for before in 0..40 {
            let text = "say \"\"it\"\"\n".repeat((LOOK_BYTES - before) / 11 + 1);
            let padding = &"x".repeat(LOOK_BYTES - before)[..(LOOK_BYTES - before) % 11];
            let bytes = format!("\"{padding}{text}\",a name,5\r\n\"b\",c,6\r\n");
            assert!(widths(bytes.as_bytes()) == [whole, whole], "{before}");
        }
    }
}
