//! One record of any [`Dialect`], cut into its fields: the one strict reading that finding a dialect,
//! inferring types and mending all start from.
//!
//! A quoted field begins with the quote right behind the delimiter (or the blanks that the dialect trims) and
//! ends at the first quote that is not escaped; a quote anywhere else in an unquoted field is a datum, as in
//! RFC 4180. (COPY lets quotes open anywhere. Where the two differ is a [`Flaw`], so nothing is read in two
//! ways unnoticed.) Line endings inside quotes are data.

use howdah_model::{Dialect, Eol, Error, ErrorKind, Escape, Result};
use std::ops::Range;

/// How to cut the records of one dialect.
#[derive(Debug, Clone)]
pub struct Cells {
    delimiter: Vec<u8>,
    repeats: bool,
    trim: bool,
    quote: Option<u8>,
    escape: Escape,
    eol: Option<Eol>,
    /// Spellings of NULL, and the fields in which each is a value.
    nulls: Vec<(Vec<u8>, Vec<usize>)>,
    comment: Vec<u8>,
    /// Records of so many fields are records, whatever they begin with.
    width: Option<usize>,
    /// The bytes at which an unquoted field may end or be wrong. With this table a field costs about a cycle
    /// a byte; searches of `memchr` are no faster on fields of a few bytes, and it takes every dialect.
    stops: [bool; 256],
}

/// The fields of one record. Kept and filled again, so that records cost no allocation.
#[derive(Debug, Clone, Default)]
pub struct Record {
    text: Vec<u8>,
    cells: Vec<Cell>,
}

#[derive(Debug, Clone)]
struct Cell {
    value: Range<usize>,
    quoted: bool,
    /// Backslashes of COPY text were undone: it is not written as its value is.
    escaped: bool,
    null: bool,
}

/// What is not as the dialect says. Offsets count from the first byte of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A quote stands inside an unquoted field, at this offset; it was read as a datum.
    QuoteInside(usize),
    /// Something stands between a closing quote and the delimiter, from this offset on; it was added to the
    /// field.
    TextAfterQuote(usize),
    /// The bytes end inside the field whose quote opened at this offset.
    Unclosed(usize),
    /// A line ending that is not the file's stands outside quotes, at this offset; it was read as a datum.
    LineEnding(usize),
}

impl Flaw {
    /// Where it is.
    pub(crate) fn at(self) -> usize {
        match self {
            Flaw::QuoteInside(at) | Flaw::TextAfterQuote(at) | Flaw::Unclosed(at) | Flaw::LineEnding(at) => {
                at
            }
        }
    }
}

/// What [`Cells::read`] found. Lengths include the line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A record.
    Record {
        /// Its bytes.
        length: usize,
        /// The first thing that is wrong with it.
        flaw: Option<Flaw>,
    },
    /// A comment of so many bytes.
    Comment(usize),
    /// The record does not end in these bytes, and more may come.
    More,
    /// There are no bytes.
    End,
}

impl Record {
    /// How many fields there are; an empty line has one.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// There is no field: nothing was read yet.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value of field `no`, without quotes and escapes.
    pub fn value(&self, no: usize) -> &[u8] {
        self.cells.get(no).map_or(&[], |cell| &self.text[cell.value.clone()])
    }

    /// Field `no` stood in quotes, so that it is no spelling of NULL.
    pub fn quoted(&self, no: usize) -> bool {
        self.cells.get(no).is_some_and(|cell| cell.quoted)
    }

    /// Field `no` was written with backslashes of COPY text, so that its value is no spelling of NULL either.
    pub fn escaped(&self, no: usize) -> bool {
        self.cells.get(no).is_some_and(|cell| cell.escaped)
    }

    /// Field `no` is NULL: not quoted, and, as it is written, one of the dialect's spellings.
    pub fn is_null(&self, no: usize) -> bool {
        self.cells.get(no).is_some_and(|cell| cell.null)
    }

    /// Values in order.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.cells.iter().map(|cell| &self.text[cell.value.clone()])
    }

    /// Every field is empty or blank: a blank line, one of delimiters alone, or NUL bytes that fill up a
    /// file.
    pub(crate) fn is_blank(&self) -> bool {
        self.values().all(|value| value.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace()))
    }

    /// The bytes of all values.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Drops the fields from `width` on.
    pub(crate) fn truncate(&mut self, width: usize) {
        self.cells.truncate(width);
        self.text.truncate(self.cells.last().map_or(0, |cell| cell.value.end));
    }

    /// Drops the fields that are marked.
    pub(crate) fn remove(&mut self, marked: &[bool]) {
        let mut marks = marked.iter();
        self.cells.retain(|_| marks.next() != Some(&true));
    }

    /// Puts other values in the place of those that there are.
    pub(crate) fn rewrite(&mut self, cells: &Cells, each: impl Fn(&[u8]) -> Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        for (no, cell) in self.cells.iter_mut().enumerate() {
            let from = self.text.len();
            self.text.extend(each(&text[cell.value.clone()]));
            cell.value = from..self.text.len();
            let may_be_null = !cell.quoted && !cell.escaped;
            cell.null = may_be_null && (cell.null || cells.spells_null(&self.text[from..], no));
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
    }

    /// What was appended to the text since it had `from` bytes becomes a field.
    fn push(&mut self, from: usize, quoted: bool, null: bool) {
        self.cells.push(Cell { value: from..self.text.len(), quoted, escaped: false, null });
    }
}

/// Where a field ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// Behind a delimiter: another field follows at this offset.
    Field(usize),
    /// Behind the line ending, or at the end of the file.
    Record(usize),
    More,
}

/// What a byte outside quotes does to the line.
enum Line {
    /// A line ending of the file; the next record begins at this offset.
    Ends(usize),
    /// Another line ending.
    Foreign,
    /// It goes on.
    GoesOn,
    /// The next byte decides.
    More,
}

/// Bytes outside quotes up to a delimiter, a line ending or the end of the file.
struct Stretch {
    end: usize,
    next: End,
    flaw: Option<Flaw>,
}

impl Cells {
    /// The rules of this dialect for a table of so many columns: what begins like a comment and has the shape
    /// of a record is one. A sign of comments is found from a sample, and a value may begin with it later.
    ///
    /// # Errors
    /// As [`Cells::new`].
    pub fn of_table(dialect: &Dialect, width: usize) -> Result<Cells> {
        Ok(Cells { width: Some(width), ..Cells::new(dialect)? })
    }

    /// The rules of this dialect.
    ///
    /// # Errors
    /// `Usage` if the delimiter contains the quote or a line ending.
    pub fn new(dialect: &Dialect) -> Result<Cells> {
        let delimiter = dialect.delimiter.as_bytes().to_vec();
        let wrong = |byte: &u8| matches!(byte, b'\n' | b'\r') || Some(*byte) == dialect.quote;
        if delimiter.iter().any(wrong) {
            let message = "the delimiter must not contain the quote or a line ending";
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let null =
            |null: &String| (null.as_bytes().to_vec(), dialect.kept.get(null).cloned().unwrap_or_default());
        let copies = dialect.quote.is_none() && dialect.escape == Escape::Backslash;
        let mut stops = [false; 256];
        let specials = [Some(b'\n'), Some(b'\r'), delimiter.first().copied(), dialect.quote];
        for byte in specials.into_iter().flatten().chain(copies.then_some(b'\\')) {
            stops[usize::from(byte)] = true;
        }
        Ok(Cells {
            delimiter,
            repeats: dialect.repeats,
            trim: dialect.trim,
            quote: dialect.quote,
            escape: dialect.escape,
            eol: dialect.eol,
            nulls: dialect.nulls.iter().map(null).collect(),
            comment: dialect.comment.clone().unwrap_or_default().into_bytes(),
            width: None,
            stops,
        })
    }

    fn spells_null(&self, written: &[u8], field_no: usize) -> bool {
        self.nulls.iter().any(|(null, kept)| null == written && !kept.contains(&field_no))
    }

    /// Cuts the record that `bytes` begin with. `at_end` says that the file ends with them.
    pub fn read(&self, bytes: &[u8], at_end: bool, record: &mut Record) -> Next {
        // A record is never as long as that.
        self.read_near(bytes, at_end, record, usize::MAX).unwrap_or(Next::More)
    }

    /// As [`Cells::read`], but only if the record has no flaw or ends within `astray_bytes` behind its first
    /// one; else that flaw. A quote that is taken for another lets a record run to the end of the file, and
    /// so it may be for each line of it.
    pub(crate) fn read_near(
        &self,
        bytes: &[u8],
        at_end: bool,
        record: &mut Record,
        astray_bytes: usize,
    ) -> Result<Next, Flaw> {
        record.clear();
        if bytes.is_empty() {
            return Ok(if at_end { Next::End } else { Next::More });
        }
        if self.comment.is_empty() || !bytes.starts_with(&self.comment) {
            return self.record(bytes, at_end, record, astray_bytes);
        }
        let Some(length) = self.line_length(bytes, at_end) else { return Ok(Next::More) };
        let marked = self.marked_record(bytes, length, at_end, record, astray_bytes);
        marked.unwrap_or(Ok(Next::Comment(length)))
    }

    /// The record of the table's width, flawed or not, that begins like a comment, whose first line has so
    /// many bytes; `None` if it is a comment. Comments hold no field whose quotes close in another line.
    fn marked_record(
        &self,
        bytes: &[u8],
        line_bytes: usize,
        at_end: bool,
        record: &mut Record,
        astray_bytes: usize,
    ) -> Option<Result<Next, Flaw>> {
        let width = self.width?;
        let line = self.record(&bytes[..line_bytes], true, record, usize::MAX);
        if matches!(line, Ok(Next::Record { flaw: Some(Flaw::Unclosed(_)), .. })) {
            return Some(self.record(bytes, at_end, record, astray_bytes));
        }
        (record.len() == width).then_some(line)
    }

    fn record(
        &self,
        bytes: &[u8],
        at_end: bool,
        record: &mut Record,
        astray_bytes: usize,
    ) -> Result<Next, Flaw> {
        record.clear();
        let mut flaw: Option<Flaw> = None;
        let mut at = if self.repeats { self.skip_delimiters(bytes, 0) } else { 0 };
        loop {
            let end = self.field(bytes, at, at_end, record, &mut flaw);
            let (End::Field(read) | End::Record(read)) = end else {
                return flaw
                    .filter(|flaw| bytes.len() - flaw.at() > astray_bytes)
                    .map_or(Ok(Next::More), Err);
            };
            if let Some(flaw) = flaw.filter(|flaw| read.saturating_sub(flaw.at()) > astray_bytes) {
                return Err(flaw);
            }
            match end {
                End::Field(next) => at = next,
                _ => return Ok(Next::Record { length: read, flaw }),
            }
        }
    }

    /// The bytes of the first line, whatever stands in it; `None` if its end is not there.
    fn line_length(&self, bytes: &[u8], at_end: bool) -> Option<usize> {
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            match self.line(bytes, at, at_end) {
                Line::Ends(length) => return Some(length),
                Line::More => return None,
                Line::Foreign | Line::GoesOn => {}
            }
        }
        at_end.then_some(bytes.len())
    }

    #[inline]
    fn field(
        &self,
        bytes: &[u8],
        start: usize,
        at_end: bool,
        record: &mut Record,
        flaw: &mut Option<Flaw>,
    ) -> End {
        let opening = if self.trim { self.skip_blanks(bytes, start) } else { start };
        if self.is_quote(bytes, opening) {
            return self.quoted_field(bytes, opening, at_end, record, flaw);
        }
        let Some(stretch) = self.stretch(bytes, start, at_end) else { return End::More };
        *flaw = flaw.or(stretch.flaw);
        self.unquoted_field(&bytes[start..stretch.end], &stretch, record);
        stretch.next
    }

    #[inline]
    fn unquoted_field(&self, written: &[u8], stretch: &Stretch, record: &mut Record) {
        let written = if self.trim { trimmed(written) } else { written };
        // Delimiters at the end of a line that is lined up with them.
        if self.repeats && written.is_empty() && matches!(stretch.next, End::Record(_)) && !record.is_empty()
        {
            return;
        }
        let from = record.text.len();
        // NULL is what is written so, before backslashes are undone.
        let null = self.spells_null(written, record.len());
        let escaped = self.copies() && !null && written.contains(&b'\\');
        if escaped {
            record.text.extend_from_slice(&crate::encode::attributes::text_value(written));
        } else {
            record.text.extend_from_slice(written);
        }
        record.cells.push(Cell { value: from..record.text.len(), quoted: false, escaped, null });
    }

    fn quoted_field(
        &self,
        bytes: &[u8],
        opening: usize,
        at_end: bool,
        record: &mut Record,
        flaw: &mut Option<Flaw>,
    ) -> End {
        let from = record.text.len();
        let Some(behind) = self.unescape(bytes, opening + 1, at_end, &mut record.text) else {
            if !at_end {
                return End::More;
            }
            flaw.get_or_insert(Flaw::Unclosed(opening));
            record.push(from, true, false);
            return End::Record(bytes.len());
        };
        let Some(stretch) = self.stretch(bytes, behind, at_end) else { return End::More };
        let rest = &bytes[behind..stretch.end];
        let is_plain = rest.is_empty() || self.trim && trimmed(rest).is_empty();
        if !is_plain {
            *flaw = flaw.or(Some(match stretch.flaw {
                Some(Flaw::LineEnding(at)) if trimmed(&bytes[behind..at]).is_empty() => Flaw::LineEnding(at),
                _ => Flaw::TextAfterQuote(behind),
            }));
            record.text.extend_from_slice(rest);
        }
        record.push(from, true, false);
        stretch.next
    }

    /// Unescapes up to the closing quote; one past it. `None`: it is not in these bytes.
    fn unescape(&self, bytes: &[u8], mut at: usize, at_end: bool, text: &mut Vec<u8>) -> Option<usize> {
        let quote = self.quote?;
        loop {
            let Some(special) = self.next_special(bytes, at) else {
                text.extend_from_slice(bytes.get(at..)?);
                return None;
            };
            text.extend_from_slice(&bytes[at..special]);
            let after = bytes.get(special + 1).copied();
            if after.is_none() && !at_end {
                return None;
            }
            if self.escapes(bytes, special) {
                text.extend(after);
                at = special + 2;
            } else if bytes[special] == quote {
                return Some(special + 1);
            } else {
                text.push(bytes[special]);
                at = special + 1;
            }
        }
    }

    /// Where the field at `at` opens with a quote, blanks before it or not.
    pub(crate) fn opening(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let opening = self.skip_blanks(bytes, at);
        self.is_quote(bytes, opening).then_some(opening)
    }

    pub(crate) fn is_quote(&self, bytes: &[u8], at: usize) -> bool {
        self.quote.is_some() && bytes.get(at).copied() == self.quote
    }

    /// The first byte from `at` on, inside quotes, that closes or escapes.
    pub(crate) fn next_special(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let (quote, rest) = (self.quote?, bytes.get(at..)?);
        let found = match self.escape {
            Escape::Backslash => memchr::memchr2(quote, b'\\', rest),
            Escape::Doubled | Escape::None => memchr::memchr(quote, rest),
        };
        found.map(|offset| at + offset)
    }

    /// The first quote from `at` on.
    pub(crate) fn next_quote(&self, bytes: &[u8], at: usize) -> Option<usize> {
        memchr::memchr(self.quote?, bytes.get(at..)?).map(|offset| at + offset)
    }

    /// Where the delimiter begins that ends at `at`.
    pub(crate) fn before_delimiter(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let before = bytes.get(..at)?.strip_suffix(self.delimiter.as_slice())?;
        (before.len() < at).then_some(before.len())
    }

    /// The byte at `at`, which stands inside quotes, makes the next one a datum.
    pub(crate) fn escapes(&self, bytes: &[u8], at: usize) -> bool {
        match self.escape {
            Escape::Doubled => self.is_quote(bytes, at) && self.is_quote(bytes, at + 1),
            Escape::Backslash => {
                let behind = bytes.get(at + 1);
                bytes.get(at) == Some(&b'\\') && (behind == Some(&b'\\') || self.is_quote(bytes, at + 1))
            }
            Escape::None => false,
        }
    }

    /// A field may end behind the quote at `at`: a delimiter or a line ending follows, blanks before it or
    /// not.
    pub(crate) fn closes(&self, bytes: &[u8], at: usize, at_end: bool) -> bool {
        let behind = self.skip_blanks(bytes, at + 1);
        match bytes.get(behind) {
            None => at_end,
            Some(b'\n' | b'\r') => true,
            Some(_) => self.behind_delimiter(bytes, behind).is_some(),
        }
    }

    /// Appends the field at `start`, no quote of which means anything.
    pub(crate) fn plain_field(&self, bytes: &[u8], start: usize, at_end: bool, record: &mut Record) -> End {
        let Some(stretch) = self.stretch(bytes, start, at_end) else { return End::More };
        self.unquoted_field(&bytes[start..stretch.end], &stretch, record);
        stretch.next
    }

    /// Appends what stands between two quotes as a field. Quotes that nothing escapes are data.
    pub(crate) fn push_between(&self, bytes: &[u8], opening: usize, closing: usize, record: &mut Record) {
        let (from, content) = (record.text.len(), &bytes[opening + 1..closing]);
        let mut at = 0;
        while at < content.len() {
            at += usize::from(self.escapes(content, at));
            record.text.push(content[at]);
            at += 1;
        }
        record.push(from, true, false);
    }

    /// Where the field ends whose closing quote stands before `at`.
    pub(crate) fn end_of_field(&self, bytes: &[u8], at: usize, at_end: bool) -> End {
        self.stretch(bytes, at, at_end).map_or(End::More, |stretch| stretch.next)
    }

    /// Bytes outside quotes from `start` on; `None` if they do not end here.
    #[inline]
    fn stretch(&self, bytes: &[u8], start: usize, at_end: bool) -> Option<Stretch> {
        let (mut at, mut flaw) = (start, None);
        while let Some(offset) = bytes.get(at..)?.iter().position(|&byte| self.stops[usize::from(byte)]) {
            at += offset;
            if self.copies() && bytes[at] == b'\\' {
                // COPY drops a backslash with nothing behind it.
                if at + 1 == bytes.len() && at_end {
                    return Some(Stretch { end: at, next: End::Record(bytes.len()), flaw });
                }
                at += 2;
                continue;
            }
            if let Some(next) = self.behind_delimiter(bytes, at) {
                return Some(Stretch { end: at, next: End::Field(next), flaw });
            }
            let here = match self.line(bytes, at, at_end) {
                Line::Ends(next) => return Some(Stretch { end: at, next: End::Record(next), flaw }),
                Line::More => return None,
                Line::Foreign => Some(Flaw::LineEnding(at)),
                Line::GoesOn => (Some(bytes[at]) == self.quote).then_some(Flaw::QuoteInside(at)),
            };
            flaw = flaw.or(here);
            at += 1;
        }
        at_end.then_some(Stretch { end: bytes.len(), next: End::Record(bytes.len()), flaw })
    }

    /// The backslash sequences of COPY's text format.
    fn copies(&self) -> bool {
        self.quote.is_none() && self.escape == Escape::Backslash
    }

    /// One past the delimiter, or the delimiters that count as one, at `at`.
    fn behind_delimiter(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let (first, more) = self.delimiter.split_first()?;
        if bytes.get(at) != Some(first) || !(more.is_empty() || bytes[at + 1..].starts_with(more)) {
            return None;
        }
        let next = at + self.delimiter.len();
        Some(if self.repeats { self.skip_delimiters(bytes, next) } else { next })
    }

    fn skip_delimiters(&self, bytes: &[u8], mut at: usize) -> usize {
        while !self.delimiter.is_empty() && bytes[at..].starts_with(&self.delimiter) {
            at += self.delimiter.len();
        }
        at
    }

    fn skip_blanks(&self, bytes: &[u8], mut at: usize) -> usize {
        while bytes.get(at).is_some_and(|&byte| is_blank(byte)) && self.behind_delimiter(bytes, at).is_none()
        {
            at += 1;
        }
        at
    }

    /// What the byte at `at`, which stands outside quotes, does to the line.
    fn line(&self, bytes: &[u8], at: usize, at_end: bool) -> Line {
        let after = bytes.get(at + 1);
        match (bytes[at], self.eol) {
            (b'\n', Some(Eol::Lf) | None) | (b'\r', Some(Eol::Cr)) => Line::Ends(at + 1),
            (b'\r', Some(Eol::CrLf) | None) if after.is_none() && !at_end => Line::More,
            (b'\r', Some(Eol::CrLf) | None) if after == Some(&b'\n') => Line::Ends(at + 2),
            (b'\r', None) => Line::Ends(at + 1),
            (b'\n' | b'\r', _) => Line::Foreign,
            _ => Line::GoesOn,
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Without spaces and tabs at its ends.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dialect: &Dialect, bytes: &[u8]) -> Vec<Vec<String>> {
        let cells = Cells::new(dialect).unwrap();
        let (mut record, mut at, mut rows) = (Record::default(), 0, Vec::new());
        loop {
            match cells.read(&bytes[at..], true, &mut record) {
                Next::Record { length, .. } => {
                    rows.push(record.values().map(|v| String::from_utf8_lossy(v).into_owned()).collect());
                    at += length;
                }
                Next::Comment(length) => at += length,
                Next::More => panic!("more is wanted at the end"),
                Next::End => return rows,
            }
        }
    }

    #[test]
    fn quotes_delimiters_and_line_endings_in_every_way() {
        let csv = Dialect::csv();
        assert_eq!(all(&csv, b"a,\"b\"\"\n,\",c\n\n\"x\""), [vec!["a", "b\"\n,", "c"], vec![""], vec!["x"]]);
        let mixed = Dialect { eol: None, delimiter: ", ".to_owned(), ..csv.clone() };
        assert_eq!(all(&mixed, b"a, b\r\nc,d, e\rf\n"), [vec!["a", "b"], vec!["c,d", "e"], vec!["f"]]);
        let spaces = Dialect { delimiter: " ".to_owned(), repeats: true, ..csv.clone() };
        assert_eq!(all(&spaces, b"  a   b \nc \"d  e\"\n"), [vec!["a", "b"], vec!["c", "d  e"]]);
        let single = Dialect { quote: Some(b'\''), escape: Escape::Backslash, trim: true, ..csv.clone() };
        assert_eq!(all(&single, b"'a\\'b' , c ,'\\\\\\n'\n"), [vec!["a'b", "c", "\\\\n"]]);
        let text =
            Dialect { delimiter: "\t".to_owned(), quote: None, escape: Escape::Backslash, ..csv.clone() };
        assert_eq!(all(&text, b"a\\tb\tc\\\td\t\"\n"), [vec!["a\tb", "c\td", "\""]]);
        let comments = Dialect { comment: Some("#".to_owned()), ..csv };
        assert_eq!(all(&comments, b"# x\na,b\n#"), [vec!["a", "b"]]);
    }

    #[test]
    fn what_is_not_as_the_dialect_says_is_noted() {
        let cells = Cells::new(&Dialect::csv()).unwrap();
        let flaw = |bytes: &[u8]| match cells.read(bytes, true, &mut Record::default()) {
            Next::Record { flaw, .. } => flaw,
            other => panic!("{other:?}"),
        };
        assert_eq!(flaw(b"a,b\"c\n"), Some(Flaw::QuoteInside(3)));
        assert_eq!(flaw(b"a,\"b\"c\n"), Some(Flaw::TextAfterQuote(5)));
        assert_eq!(flaw(b"a,\"b\n"), Some(Flaw::Unclosed(2)));
        assert_eq!(flaw(b"a,\"b\"\n"), None);
        assert_eq!(flaw(b"a,b\rc\n"), Some(Flaw::LineEnding(3)));
        assert_eq!(flaw(b"a,\"b\"\r\n"), Some(Flaw::LineEnding(5)));
        assert_eq!(flaw(b"a,\"\r\"\n"), None);
    }

    #[test]
    fn a_record_with_a_flaw_is_read_near_it_only_however_much_is_in_sight() {
        let cells = Cells::new(&Dialect::csv()).unwrap();
        let near = |bytes: &[u8], at_end, astray_bytes| {
            cells.read_near(bytes, at_end, &mut Record::default(), astray_bytes)
        };
        let bytes = b"a\"b,\"c\nd\",e\n";
        let flaw = Flaw::QuoteInside(1);
        let whole = Next::Record { length: bytes.len(), flaw: Some(flaw) };
        for astray_bytes in 0..bytes.len() {
            let expected = if astray_bytes < bytes.len() - 1 { Err(flaw) } else { Ok(whole) };
            assert_eq!(near(bytes, true, astray_bytes), expected, "{astray_bytes}");
            for cut in 5..bytes.len() {
                let expected = if cut > astray_bytes + 1 { Err(flaw) } else { Ok(Next::More) };
                assert_eq!(near(&bytes[..cut], false, astray_bytes), expected, "{cut} {astray_bytes}");
            }
        }
        assert_eq!(near(b"a,b\n", true, 0), Ok(Next::Record { length: 4, flaw: None }));
    }

    #[test]
    fn null_in_copy_text_is_told_by_how_it_is_written() {
        let nulls = vec!["\\N".to_owned()];
        let text = Dialect { quote: None, escape: Escape::Backslash, nulls, ..Dialect::csv() };
        let (cells, mut record) = (Cells::new(&text).unwrap(), Record::default());
        cells.read(b"\\N,\\\\N,N\n", true, &mut record);
        assert_eq!(record.values().collect::<Vec<_>>(), [&b"\\N"[..], b"\\N", b"N"]);
        assert_eq!([0, 1, 2].map(|no| record.is_null(no)), [true, false, false]);
    }

    #[test]
    fn what_begins_like_a_comment_and_has_the_width_is_a_record() {
        let dialect = Dialect { comment: Some("#".to_owned()), ..Dialect::csv() };
        let cells = Cells::of_table(&dialect, 2).unwrap();
        let read = |bytes: &[u8]| {
            let mut record = Record::default();
            (cells.read(bytes, true, &mut record), record.len())
        };
        for record in ["#a,1\n", "#a,\"b\n\"\"c\"\n", "#,"] {
            let whole = Next::Record { length: record.len(), flaw: None };
            assert_eq!(read(record.as_bytes()), (whole, 2), "{record}");
            for cut in 1..record.len() {
                let next = cells.read(&record.as_bytes()[..cut], false, &mut Record::default());
                assert_eq!(next, Next::More, "{record} {cut}");
            }
        }
        for (comment, length) in [("# a\nb,c\n", 4), ("#a,b,c\n", 7), ("# a \"b\n\"\n", 7)] {
            assert_eq!(read(comment.as_bytes()).0, Next::Comment(length), "{comment}");
        }
        let flawed = |length, flaw| (Next::Record { length, flaw: Some(flaw) }, 2);
        assert_eq!(read(b"#\"a\",1\n"), flawed(7, Flaw::QuoteInside(1)));
        assert_eq!(read(b"#a,\"b\nc,1\n"), flawed(10, Flaw::Unclosed(3)));
    }

    #[test]
    fn bytes_cut_anywhere_are_asked_for_again() {
        let dialect = Dialect { eol: None, delimiter: "||".to_owned(), ..Dialect::csv() };
        let cells = Cells::new(&dialect).unwrap();
        let bytes = b"a||\"b\"\"c\"||d\r\n";
        for cut in 0..bytes.len() {
            assert_eq!(cells.read(&bytes[..cut], false, &mut Record::default()), Next::More, "{cut}");
        }
        let next = cells.read(bytes, false, &mut Record::default());
        assert_eq!(next, Next::Record { length: bytes.len(), flaw: None });
    }
}
