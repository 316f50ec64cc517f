//! Looks at records that pass to the server untouched, for what contradicts the dialect that was found.
//!
//! A dialect found from a sample may be wrong about later bytes: quotes may begin after half of the file, a
//! row may have another delimiter. COPY would refuse some of that with a message about types, and load the
//! rest as garbage. Enters: a chunk of whole records. Leaves: the first record that is not as the [`Dialect`]
//! says, or nothing. What is odd here is what the careful reader ([`mend`](crate::mend)) refuses, at the same
//! record, so that it does not matter which way a file takes.
//!
//! # How
//! Blocks of 64 bytes become bit masks ([`block`](crate::split::block)); delimiters between line endings are
//! counted by popcount, and quotes must stand next to delimiters and line endings. Only if a mask shows
//! something odd, the chunk is read once more, field by field, for the place and the words. Characters are
//! checked by `simdutf8`, where there are any beyond ASCII.
//!
//! # Speed
//! `examples/inspect_throughput` measures it. One core of a virtual machine that was busy with other work, 1
//! MiB in the cache: 4 to 5 GB/s for csv and text of records of 40 to 80 bytes, 4 GB/s with characters beyond
//! ASCII in every record. Splitting the same bytes takes about half as long.

use crate::cells::{Cells, Flaw, Next, Record};
use crate::dialect::copy_escape;
use crate::fault::{BYTE_ORDER_MARK, Fault, HINT};
use crate::mend::other_quotes;
use crate::split::block::{BLOCK_BYTES, Block, counting_quotes, escaped, fill, parity, positions};
use crate::split::{Rules, VERSION_MARKER_STRICT};
use howdah_model::{Dialect, Eol, Error, ErrorKind, Escape, Format, FormatKind, Result};

/// Looks at the chunks of one file.
#[derive(Debug, Clone)]
pub struct Inspector {
    width: usize,
    delimiter: u8,
    /// `\N` is a spelling of NULL.
    knows_null_word: bool,
    eol: Eol,
    quoting: Quoting,
    /// The byte told to COPY for a quote where the dialect has none.
    forbidden: Option<u8>,
    is_utf8: bool,
    is_csv: bool,
    /// The server takes a line `\.` for the end of the data.
    has_marker: bool,
    /// For each field: a value `\N` in it is none. Empty where the dialect knows of `\N`.
    no_null_words: Vec<bool>,
    /// Bytes of characters may look like delimiters: nothing can be said.
    is_blind: bool,
    cells: Cells,
    /// Styles that may explain an odd record, by name.
    others: Vec<(String, Cells)>,
}

/// A record that contradicts the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// Its number in the chunk, counted from 0.
    pub record: u64,
    /// The offset of its first byte in the chunk.
    pub byte: usize,
    /// The field that it stands in, counted from 0, where it stands in one.
    pub field: Option<usize>,
    /// What is odd.
    pub kind: OddityKind,
    /// The same in words; no values.
    pub message: String,
    /// What the user can do.
    pub hint: &'static str,
}

/// What may be odd about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddityKind {
    /// Another number of fields.
    Width,
    /// A quote where none may stand, or quotes in another style.
    Quote,
    /// Another line ending than the file's.
    LineEnding,
    /// A NUL byte.
    Nul,
    /// Bytes that are no character of UTF-8.
    Encoding,
    /// A byte order mark before its first field.
    Mark,
    /// A line that the server takes for the end of the data.
    Marker,
    /// COPY's NULL, in a file that was found to have another one, for a column that cannot hold it as text.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// There are no quotes and no escapes.
    Plain,
    /// The backslashes of COPY's text format.
    Text,
    /// This quote; two of them inside quotes are one.
    Doubled(u8),
    /// This quote, which cannot be written inside quotes.
    Bare(u8),
    /// This quote; a backslash makes it a datum.
    Backslash(u8),
}

/// What of the blocks before matters to the next one.
#[derive(Debug, Clone, Copy)]
struct Carry {
    in_quote: bool,
    after_escape: bool,
    /// The last byte was a delimiter or ended a record, or there was none.
    field_starts: bool,
    /// The last byte ended a record, or there was none.
    record_starts: bool,
    after_closing: bool,
    after_cr: bool,
    /// Delimiters in the record so far.
    delimiters: u64,
    beyond_ascii: bool,
}

impl Inspector {
    /// For files of this dialect, of which COPY is told `format`, with so many fields in each record.
    ///
    /// # Errors
    /// `Internal` for a dialect of which COPY cannot be told more than the spellings of NULL.
    pub fn new(format: &Format, dialect: &Dialect, width: usize) -> Result<Inspector> {
        let told = dialect.to_format().or_else(|| dialect.to_format_but_null());
        let (Some(told), Some(eol)) = (told, dialect.eol) else {
            let message = "a dialect that COPY cannot be told does not pass untouched";
            return Err(Error::new(ErrorKind::Internal, message));
        };
        let quoting = match (dialect.quote, dialect.escape) {
            (None, Escape::Backslash) => Quoting::Text,
            (None, _) => Quoting::Plain,
            (Some(quote), Escape::Doubled) => Quoting::Doubled(quote),
            (Some(quote), Escape::None) => Quoting::Bare(quote),
            (Some(quote), Escape::Backslash) => Quoting::Backslash(quote),
        };
        Ok(Inspector {
            width,
            delimiter: told.delimiter,
            knows_null_word: dialect.nulls.iter().any(|null| null.as_bytes() == NULL_WORD),
            eol,
            quoting,
            forbidden: (quoting == Quoting::Plain).then_some(told.quote),
            is_utf8: is_utf8(format.encoding.as_deref()),
            is_csv: format.kind == FormatKind::Csv,
            has_marker: false,
            no_null_words: Vec::new(),
            is_blind: Rules::embeds_ascii(format) && !quoting.is_below_characters(told.delimiter),
            cells: Cells::new(dialect)?,
            others: other_styles(dialect)?,
        })
    }

    /// For files that go to this server (`server_version_num`): before version 18 a line `\.` of a csv file
    /// ends the data, and what follows it is lost without a word.
    #[must_use]
    pub fn for_server(self, server_version: u32) -> Inspector {
        Inspector { has_marker: self.is_csv && server_version < VERSION_MARKER_STRICT, ..self }
    }

    /// For a table of whose columns these, by field, hold no text: `\N` in them is COPY's NULL, which the
    /// sample did not have.
    #[must_use]
    pub fn for_typed(self, typed: Vec<bool>) -> Inspector {
        let is_known = self.quoting == Quoting::Text || self.knows_null_word;
        let no_null_words = if is_known || !typed.contains(&true) { Vec::new() } else { typed };
        Inspector { no_null_words, ..self }
    }

    /// Where the first backslash stands that may be one of COPY's text format, in records of a file of tabs
    /// that was found to have no escapes and uses no quotes.
    pub fn copy_escape(&self, bytes: &[u8]) -> Option<usize> {
        let quote = match self.quoting {
            Quoting::Plain => None,
            Quoting::Doubled(quote) | Quoting::Bare(quote) => Some(quote),
            Quoting::Text | Quoting::Backslash(_) => return None,
        };
        let may_be_text = self.delimiter == b'\t' && !quote.is_some_and(|quote| bytes.contains(&quote));
        may_be_text.then(|| copy_escape(self.delimiter, bytes)).flatten()
    }

    /// The first record of `bytes`, whole records, that contradicts the dialect.
    pub fn inspect(&self, bytes: &[u8]) -> Option<Oddity> {
        if self.is_as_told(bytes) { None } else { self.find(bytes) }
    }

    /// The same behind a record that was odd: more are to be expected. The masks are not asked, which would
    /// look at all of `bytes` for each.
    pub fn inspect_behind(&self, bytes: &[u8]) -> Option<Oddity> {
        if self.is_blind { None } else { self.find(bytes) }
    }

    /// The masks show nothing odd in `bytes`, whole records.
    pub fn is_as_told(&self, bytes: &[u8]) -> bool {
        if self.is_blind {
            return true;
        }
        // Of several fields such a line has too few.
        if self.has_marker && self.width == 1 && memchr::memmem::find(bytes, b"\\.").is_some() {
            return false;
        }
        let holds = |what: &[u8]| memchr::memmem::find(bytes, what).is_some();
        // Sequences of COPY text that may stand for NUL.
        if self.quoting == Quoting::Text && (holds(b"\\0") || holds(b"\\x0")) {
            return false;
        }
        if !self.no_null_words.is_empty() && holds(NULL_WORD) {
            return false;
        }
        let mut carry = Carry::START;
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            if !self.block(block, u64::MAX, &mut carry) {
                return false;
            }
        }
        if !rest.is_empty() {
            let mut block = [b' '; BLOCK_BYTES];
            block[..rest.len()].copy_from_slice(rest);
            if !self.block(&block, u64::MAX >> (BLOCK_BYTES - rest.len()), &mut carry) {
                return false;
            }
        }
        let ended = carry.record_starts || carry.delimiters + 1 == self.width as u64;
        let broken = self.is_utf8 && carry.beyond_ascii && simdutf8::basic::from_utf8(bytes).is_err();
        let marked = || self.is_utf8 && carry.beyond_ascii && may_begin_with_mark(bytes);
        ended && !carry.in_quote && !carry.after_cr && !broken && !marked()
    }

    /// Looks at the bytes of a block that are set in `valid`, which are the first ones.
    #[inline]
    fn block(&self, block: &Block, valid: u64, carry: &mut Carry) -> bool {
        let at = |byte| positions(block, byte) & valid;
        // Bytes that mean nothing to records: those inside quotes, or behind a backslash.
        let (data, quotes) = self.data(at, carry);
        let last = valid & !(valid >> 1);
        let (line_feeds, carriage_returns) = (at(b'\n') & !data, at(b'\r') & !data);
        let after_cr = carriage_returns << 1 | u64::from(carry.after_cr);
        let (ends, foreign) = match self.eol {
            Eol::Lf => (line_feeds, carriage_returns),
            Eol::Cr => (carriage_returns, line_feeds),
            Eol::CrLf => (line_feeds, (line_feeds ^ after_cr) & valid),
        };
        carry.after_cr = self.eol == Eol::CrLf && carriage_returns & last != 0;
        carry.beyond_ascii |= block.iter().fold(0, |all, byte| all | byte) >= 0x80;
        let delimiters = at(self.delimiter) & !data;
        let misplaced = if quotes == 0 && !carry.after_closing {
            0
        } else {
            self.misplaced(quotes, data, delimiters | ends, line_feeds | carriage_returns, carry) & valid
        };
        carry.after_closing = quotes & !data & last != 0;
        carry.field_starts = (delimiters | ends) & last != 0;
        carry.record_starts = ends & last != 0;
        let odd_bytes = foreign | at(0) | self.forbidden.map_or(0, at);
        odd_bytes | misplaced == 0 && self.counts(delimiters, ends, carry)
    }

    /// The bytes that mean nothing to records, opening quotes among them, and the quotes that count.
    #[inline]
    fn data(&self, at: impl Fn(u8) -> u64, carry: &mut Carry) -> (u64, u64) {
        let quotes = match self.quoting {
            Quoting::Plain => return (0, 0),
            Quoting::Text => {
                let (data, next_is_data) = escaped(at(b'\\'), carry.after_escape);
                carry.after_escape = next_is_data;
                return (data, 0);
            }
            Quoting::Doubled(quote) | Quoting::Bare(quote) => at(quote),
            Quoting::Backslash(quote) => {
                let (quotes, next_is_escaped) =
                    counting_quotes(at(quote), at(b'\\'), carry.in_quote, carry.after_escape);
                carry.after_escape = next_is_escaped;
                quotes
            }
        };
        if quotes == 0 {
            return (fill(carry.in_quote), 0);
        }
        let quoted = parity(quotes) ^ fill(carry.in_quote);
        carry.in_quote = quoted >> 63 == 1;
        (quoted, quotes)
    }

    /// Quotes that open behind anything but a border, and bytes that are none behind a quote that closes. Two
    /// quotes inside quotes close and open.
    #[inline]
    fn misplaced(&self, quotes: u64, data: u64, borders: u64, line_endings: u64, carry: &Carry) -> u64 {
        let openings = quotes & data;
        let after_closing = (quotes & !data) << 1 | u64::from(carry.after_closing);
        let doubled = if matches!(self.quoting, Quoting::Doubled(_)) { after_closing & openings } else { 0 };
        let may_open = borders << 1 | u64::from(carry.field_starts) | doubled;
        openings & !may_open | after_closing & !(borders | line_endings | doubled)
    }

    /// Every record that ends in the block has the right number of delimiters.
    #[inline]
    fn counts(&self, mut delimiters: u64, mut ends: u64, carry: &mut Carry) -> bool {
        while ends != 0 {
            // All bits up to the first end.
            let record = ends ^ (ends - 1);
            carry.delimiters += u64::from((delimiters & record).count_ones());
            if carry.delimiters + 1 != self.width as u64 {
                return false;
            }
            carry.delimiters = 0;
            delimiters &= !record;
            ends &= !record;
        }
        carry.delimiters += u64::from(delimiters.count_ones());
        true
    }

    /// Reads the chunk record by record.
    fn find(&self, bytes: &[u8]) -> Option<Oddity> {
        let (mut record, mut record_no, mut at) = (Record::default(), 0, 0);
        while let Next::Record { length, flaw } = self.cells.read(&bytes[at..], true, &mut record) {
            let written = &bytes[at..at + length];
            if let Some(odd) = self.odd(written, &mut record, flaw) {
                return Some(Oddity { record: record_no, byte: at, ..odd });
            }
            at += length;
            record_no += 1;
        }
        None
    }

    /// The first field that is `\N` and cannot be.
    fn null_word(&self, record: &Record) -> Option<usize> {
        let is_one =
            |no: &usize| record.value(*no) == NULL_WORD && !record.quoted(*no) && !record.is_null(*no);
        (0..record.len()).filter(|no| self.no_null_words.get(*no) == Some(&true)).find(is_one)
    }

    /// What is odd about one record, the first of its chunk.
    fn odd(&self, written: &[u8], record: &mut Record, flaw: Option<Flaw>) -> Option<Oddity> {
        let odd = |kind, message, field| Oddity { record: 0, byte: 0, field, kind, message, hint: HINT };
        if let Some(byte) = self.forbidden.filter(|byte| written.contains(byte)) {
            let message = format!(
                "expected no byte 0x{byte:02x}, which COPY is told for the quote that the file has not"
            );
            return Some(odd(OddityKind::Quote, message, None));
        }
        if self.has_marker && without_ending(written) == b"\\." {
            let message = "the line is one that this server takes for the end of the data".to_owned();
            return Some(odd(OddityKind::Marker, message, None));
        }
        let Some(fault) = Fault::of(written, record, flaw, self.width, self.is_utf8) else {
            let field = self.null_word(record)?;
            let message =
                "the field holds \\N, which COPY writes for NULL, and the file was found to have none"
                    .to_owned();
            return Some(Oddity { hint: NULL_WORD_HINT, ..odd(OddityKind::Null, message, Some(field)) });
        };
        let kind = match fault {
            Fault::Flaw(Flaw::LineEnding(_)) => OddityKind::LineEnding,
            Fault::Flaw(_) => OddityKind::Quote,
            Fault::Width { .. } => OddityKind::Width,
            Fault::Nul { .. } => OddityKind::Nul,
            Fault::NotUtf8 { .. } => OddityKind::Encoding,
            Fault::Mark => OddityKind::Mark,
        };
        let explained = matches!(kind, OddityKind::Quote | OddityKind::Width)
            .then(|| self.others.iter().find(|(_, other)| fits(other, written, self.width, record)))
            .flatten();
        Some(match explained {
            Some((style, _)) => {
                let message = format!("{}; with {style} it has {}", fault.message(), self.width);
                odd(OddityKind::Quote, message, None)
            }
            None => Oddity { hint: fault.hint(), ..odd(kind, fault.message(), fault.field()) },
        })
    }
}

/// How COPY writes NULL in its text format.
const NULL_WORD: &[u8] = b"\\N";

const NULL_WORD_HINT: &str = "--format text reads the file as COPY's text format, with its escapes, and --null '\\N' takes the field alone for NULL";

/// A byte order mark stands where a record may begin.
fn may_begin_with_mark(bytes: &[u8]) -> bool {
    let mut marks = memchr::memmem::find_iter(bytes, BYTE_ORDER_MARK);
    marks.any(|at| at == 0 || matches!(bytes[at - 1], b'\n' | b'\r'))
}

/// The record without its line ending. Blanks behind `\.` make it a value to every server.
fn without_ending(written: &[u8]) -> &[u8] {
    let line = written.strip_suffix(b"\n").unwrap_or(written);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The record has its width, and something in quotes, by these rules.
fn fits(cells: &Cells, written: &[u8], width: usize, record: &mut Record) -> bool {
    let whole = Next::Record { length: written.len(), flaw: None };
    cells.read(written, true, record) == whole
        && record.len() == width
        && (0..width).any(|field_no| record.quoted(field_no))
}

/// The styles of quotes that a record may have instead.
fn other_styles(dialect: &Dialect) -> Result<Vec<(String, Cells)>> {
    let escapes = other_quotes::escapes(dialect).into_iter().map(|other| match other.escape {
        Escape::Backslash => ("backslashes before quotes".to_owned(), other),
        Escape::Doubled | Escape::None => ("doubled quotes".to_owned(), other),
    });
    let quotes = other_quotes::quotes(dialect)
        .into_iter()
        .map(|other| (format!("{} for the quote", char::from(other.quote.unwrap_or_default())), other));
    escapes.chain(quotes).map(|(name, other)| Ok((name, Cells::new(&other)?))).collect()
}

/// COPY's default is the client's encoding, which is UTF8.
pub(crate) fn is_utf8(encoding: Option<&str>) -> bool {
    let name = encoding.unwrap_or("utf8").to_ascii_lowercase().replace(['-', '_'], "");
    name == "utf8" || name == "unicode"
}

impl Quoting {
    /// No later byte of a character looks like a byte that matters: below 0x30 there is none in any encoding
    /// that PostgreSQL reads.
    fn is_below_characters(self, delimiter: u8) -> bool {
        match self {
            Quoting::Plain => delimiter < 0x30,
            Quoting::Doubled(quote) | Quoting::Bare(quote) => delimiter < 0x30 && quote < 0x30,
            Quoting::Text | Quoting::Backslash(_) => false,
        }
    }
}

impl Carry {
    const START: Carry = Carry {
        in_quote: false,
        after_escape: false,
        field_starts: true,
        record_starts: true,
        after_closing: false,
        after_cr: false,
        delimiters: 0,
        beyond_ascii: false,
    };
}

#[cfg(test)]
mod tests;
