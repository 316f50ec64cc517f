//! One record of any [`Dialect`], cut into its fields: the one strict reading that finding a dialect,
//! inferring types and mending all start from.
//!
//! A quoted field begins with the quote right behind the delimiter (or the blanks that the dialect trims) and
//! ends at the first quote that is not escaped; a quote anywhere else in an unquoted field is a datum, as
//! in RFC 4180. (COPY lets quotes open anywhere. Where the two differ is a [`Flaw`], so nothing is read in two
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
    nulls: Vec<Vec<u8>>,
    comment: Vec<u8>,
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

    /// Values in order.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.cells.iter().map(|cell| &self.text[cell.value.clone()])
    }

    /// Every field is empty or blank: a blank line, or one of delimiters alone.
    pub fn is_blank(&self) -> bool {
        self.values().all(|value| value.trim_ascii().is_empty())
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
    }
}

/// Where a field ended.
enum End {
    /// Behind a delimiter: another field follows at this offset.
    Field(usize),
    /// Behind the line ending, or at the end of the file.
    Record(usize),
    More,
}

impl Cells {
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
        Ok(Cells {
            delimiter,
            repeats: dialect.repeats,
            trim: dialect.trim,
            quote: dialect.quote,
            escape: dialect.escape,
            eol: dialect.eol,
            nulls: dialect.nulls.iter().map(|null| null.as_bytes().to_vec()).collect(),
            comment: dialect.comment.clone().unwrap_or_default().into_bytes(),
        })
    }

    /// Field `no` of `record` is NULL: not quoted, and one of the spellings.
    pub fn is_null(&self, record: &Record, no: usize) -> bool {
        !record.quoted(no) && self.nulls.iter().any(|null| null == record.value(no))
    }

    /// Cuts the record that `bytes` begin with. `at_end` says that the file ends with them.
    pub fn read(&self, bytes: &[u8], at_end: bool, record: &mut Record) -> Next {
        record.clear();
        if bytes.is_empty() {
            return if at_end { Next::End } else { Next::More };
        }
        if !self.comment.is_empty() && bytes.starts_with(&self.comment) {
            return self.comment(bytes, at_end);
        }
        let mut flaw = None;
        let mut at = if self.repeats { self.skip_delimiters(bytes, 0) } else { 0 };
        loop {
            match self.field(bytes, at, at_end, record, &mut flaw) {
                End::Field(next) => at = next,
                End::Record(length) => return Next::Record { length, flaw },
                End::More => return Next::More,
            }
        }
    }

    fn comment(&self, bytes: &[u8], at_end: bool) -> Next {
        let found = (0..bytes.len()).find(|&at| self.ends_record(bytes, at));
        let length = found.and_then(|at| self.after_line_ending(bytes, at, at_end));
        match length {
            Some(length) => Next::Comment(length),
            None if at_end => Next::Comment(bytes.len()),
            None => Next::More,
        }
    }

    fn field(
        &self,
        bytes: &[u8],
        start: usize,
        at_end: bool,
        record: &mut Record,
        flaw: &mut Option<Flaw>,
    ) -> End {
        let from = record.text.len();
        let opening = if self.trim { self.skip_blanks(bytes, start) } else { start };
        let quoted = self.quote.is_some() && bytes.get(opening).copied() == self.quote;
        let mut at = start;
        if quoted {
            match self.quoted(bytes, opening + 1, at_end, &mut record.text) {
                Some(behind) => at = behind,
                None if !at_end => return End::More,
                None => {
                    flaw.get_or_insert(Flaw::Unclosed(opening));
                    record.cells.push(Cell { value: from..record.text.len(), quoted });
                    return End::Record(bytes.len());
                }
            }
        }
        let value_end = record.text.len();
        let (length, end) = self.unquoted(bytes, at, at_end, record);
        if quoted {
            let rest = bytes[at..at + length].trim_ascii();
            if rest.is_empty() && (self.trim || length == 0) {
                record.text.truncate(value_end);
            } else {
                flaw.get_or_insert(Flaw::TextAfterQuote(at));
            }
        } else {
            let quote = self.quote.and_then(|quote| bytes[at..at + length].iter().position(|&b| b == quote));
            if let Some(inside) = quote {
                flaw.get_or_insert(Flaw::QuoteInside(at + inside));
            }
        }
        let mut value = from..record.text.len();
        if self.trim && !quoted {
            let text = &record.text[value.clone()];
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
            let lead = text.iter().take_while(|byte| blank(byte)).count();
            let tail = text[lead..].iter().rev().take_while(|byte| blank(byte)).count();
            value = value.start + lead..value.end - tail;
        }
        let trailing = self.repeats && matches!(end, End::Record(_)) && value.is_empty() && !quoted;
        if !trailing || record.cells.is_empty() {
            record.cells.push(Cell { value, quoted });
        }
        end
    }

    /// Unescapes up to the closing quote; one past it. `None`: it is not in these bytes.
    fn quoted(&self, bytes: &[u8], mut at: usize, at_end: bool, text: &mut Vec<u8>) -> Option<usize> {
        let quote = self.quote?;
        loop {
            let special = match self.escape {
                Escape::Backslash => memchr::memchr2(quote, b'\\', bytes.get(at..)?),
                Escape::Doubled | Escape::None => memchr::memchr(quote, bytes.get(at..)?),
            };
            let Some(special) = special.map(|offset| at + offset) else {
                text.extend_from_slice(&bytes[at..]);
                return None;
            };
            text.extend_from_slice(&bytes[at..special]);
            let after = bytes.get(special + 1).copied();
            if after.is_none() && !at_end {
                return None;
            }
            let escapes = match self.escape {
                Escape::Doubled => after == Some(quote),
                Escape::Backslash => {
                    bytes[special] == b'\\' && matches!(after, Some(b) if b == quote || b == b'\\')
                }
                Escape::None => false,
            };
            if escapes {
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

    /// Takes bytes up to the delimiter or line ending; how many, and where the field ends.
    fn unquoted(&self, bytes: &[u8], start: usize, at_end: bool, record: &mut Record) -> (usize, End) {
        let copies = self.quote.is_none() && self.escape == Escape::Backslash;
        let mut at = start;
        while at < bytes.len() {
            if copies && bytes[at] == b'\\' {
                at += 2;
                continue;
            }
            if self.ends_record(bytes, at) {
                let Some(next) = self.after_line_ending(bytes, at, at_end) else { return (0, End::More) };
                self.take(&bytes[start..at], copies, record);
                return (at - start, End::Record(next));
            }
            if self.is_delimiter(bytes, at) {
                let mut next = at + self.delimiter.len();
                if self.repeats {
                    next = self.skip_delimiters(bytes, next);
                }
                if !at_end && next + self.delimiter.len().max(2) > bytes.len() {
                    return (0, End::More);
                }
                self.take(&bytes[start..at], copies, record);
                return (at - start, End::Field(next));
            }
            at += 1;
        }
        if !at_end {
            return (0, End::More);
        }
        self.take(&bytes[start..], copies, record);
        (bytes.len() - start, End::Record(bytes.len()))
    }

    fn take(&self, value: &[u8], copies: bool, record: &mut Record) {
        // The NULL spelling is looked for before backslashes are undone.
        if copies && value.contains(&b'\\') && !self.nulls.iter().any(|null| null == value) {
            record.text.extend_from_slice(&crate::encode::attributes::text_value(value));
        } else {
            record.text.extend_from_slice(value);
        }
    }

    fn is_delimiter(&self, bytes: &[u8], at: usize) -> bool {
        !self.delimiter.is_empty() && bytes[at..].starts_with(&self.delimiter)
    }

    fn skip_delimiters(&self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() && self.is_delimiter(bytes, at) {
            at += self.delimiter.len();
        }
        at
    }

    fn skip_blanks(&self, bytes: &[u8], mut at: usize) -> usize {
        while matches!(bytes.get(at), Some(b' ' | b'\t')) && !self.is_delimiter(bytes, at) {
            at += 1;
        }
        at
    }

    /// A line ending of the dialect begins at `at`.
    fn ends_record(&self, bytes: &[u8], at: usize) -> bool {
        match (bytes[at], self.eol) {
            (b'\n', Some(Eol::Lf) | None) | (b'\r', Some(Eol::Cr) | None) => true,
            (b'\r', Some(Eol::CrLf)) => bytes.get(at + 1).is_none_or(|&byte| byte == b'\n'),
            _ => false,
        }
    }

    /// One past the line ending at `at`; `None` if its second byte may still come.
    fn after_line_ending(&self, bytes: &[u8], at: usize, at_end: bool) -> Option<usize> {
        let pairs = bytes[at] == b'\r' && self.eol != Some(Eol::Cr);
        match bytes.get(at + 1) {
            Some(b'\n') if pairs => Some(at + 2),
            None if pairs && !at_end => None,
            _ => Some(at + 1),
        }
    }
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
