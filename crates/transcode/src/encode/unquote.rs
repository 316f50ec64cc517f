//! Records of csv written as COPY text, which the server reads faster.
//!
//! Whole records enter; lines that COPY text reads to the same values and the same NULLs leave, one a record.
//! The formats differ in quotes and backslashes alone: what stands outside quotes stays as it is, but for
//! backslashes; quotes go; what stood inside them gets a backslash where COPY text would take it for
//! something else.
//!
//! Refused, and then sent as csv, is what cannot be said in COPY text, or not be told apart from what COPY
//! would refuse: quotes that are never closed, a line that begins with `\.`, a quoted field that is the
//! spelling of NULL, a last record `""` without a line ending, and bytes that quotes keep from becoming one
//! character or line ending. Whatever else is wrong with a record stays wrong.
//!
//! The rules are those of `CopyReadLineText`, `CopyReadAttributesText` and `CopyReadAttributesCSV` in
//! PostgreSQL's `copyfromparse.c`, and of `ProcessCopyOptions` in `copy.c`; why and what was measured is in
//! `docs/decisions/2026-11-22-unquote.md`.

use crate::split::Rules;
use crate::split::block::{BLOCK_BYTES, Block, positions};
use howdah_model::{ColumnChoice, Format, FormatKind};

#[cfg(test)]
mod tests;

/// The only spelling of NULL with a backslash that both formats read alike.
const BACKSLASH_N: &str = "\\N";
/// A block, and as much behind it as is copied from its last byte.
const WINDOW_BYTES: usize = 2 * BLOCK_BYTES;

/// Rewrites the records of one kind of file.
#[derive(Debug, Clone)]
pub struct Unquoter {
    quote: u8,
    escape: u8,
    delimiter: u8,
    /// The spelling of NULL; `None` is `\N`.
    null: Option<String>,
}

impl Unquoter {
    /// For files of this format. `None` where it is not csv, or says what COPY text has no words for.
    pub fn new(format: &Format) -> Option<Unquoter> {
        let delimiter = format.delimiter;
        let null = (format.null != BACKSLASH_N).then(|| format.null.clone());
        let plain = [delimiter, format.quote, format.escape].iter().all(|byte| byte.is_ascii() && *byte != 0);
        let can = format.kind == FormatKind::Csv
            // A quoted field that is the spelling of NULL goes as csv, but for this one.
            && (format.force_null == ColumnChoice::None || null.is_some())
            && format.force_not_null == ColumnChoice::None
            && format.default.is_none()
            && !Rules::embeds_ascii(format)
            && plain
            && format.quote != b'\\'
            // COPY csv refuses such options, and goes on doing so.
            && !format.null.as_bytes().contains(&format.quote)
            // Behind a backslash, letters and digits are not themselves.
            && !delimiter.is_ascii_alphanumeric()
            && !matches!(delimiter, b'.' | b'\\')
            // In another encoding the same letters are other bytes.
            && null.as_ref().is_none_or(|null| null.is_ascii() && !null.contains('\\'));
        can.then_some(Unquoter { quote: format.quote, escape: format.escape, delimiter, null })
    }

    /// The format of what [`Unquoter::unquote`] writes.
    pub fn sent_format(&self, format: &Format) -> Format {
        let (null, encoding) = (format.null.clone(), format.encoding.clone());
        Format { delimiter: self.delimiter, null, encoding, ..Format::text() }
    }

    /// Writes whole records to the beginning of `out` as lines of COPY text; returns how many bytes these
    /// take. `None` where they have to be sent as they are, or where `out` has less than 64 bytes beyond what
    /// is written.
    pub fn unquote(&self, records: &[u8], out: &mut [u8]) -> Option<usize> {
        let mut writing = Writing { unquoter: self, records, out, length: 0, field: 0, in_quote: false };
        let mut at = 0;
        while let Some(rest) = records.get(at..).filter(|rest| !rest.is_empty()) {
            at += match rest.first_chunk() {
                Some(window) => writing.block(at, window, BLOCK_BYTES)?,
                None => {
                    let mut window = [0; WINDOW_BYTES];
                    window.get_mut(..rest.len())?.copy_from_slice(rest);
                    writing.block(at, &window, rest.len().min(BLOCK_BYTES))?
                }
            };
        }
        let Writing { out, length, in_quote, .. } = writing;
        let ends = |bytes: &[u8]| bytes.last().is_none_or(|byte| is_line_end(*byte));
        // A last record of nothing but quotes would be none without them.
        let is_lost = !ends(records) && ends(out.get(..length)?);
        (!in_quote && !is_lost).then_some(length)
    }

    /// The bytes of a block that are more than themselves outside quotes, and inside.
    #[inline]
    fn specials(&self, block: &Block, in_quote: bool) -> (u64, u64) {
        let quotes = positions(block, self.quote);
        let outside = quotes | positions(block, b'\\');
        if quotes == 0 && !in_quote {
            return (outside, 0);
        }
        let others = positions(block, self.delimiter) | positions(block, b'\n') | positions(block, b'\r');
        let escapes = if self.escape == self.quote { 0 } else { positions(block, self.escape) };
        (outside, outside | others | escapes)
    }

    fn is_border(&self, byte: u8) -> bool {
        byte == self.delimiter || is_line_end(byte)
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Records on their way.
struct Writing<'a> {
    unquoter: &'a Unquoter,
    records: &'a [u8],
    out: &'a mut [u8],
    /// Bytes written.
    length: usize,
    /// Where in `out` the field begins that has quotes.
    field: usize,
    in_quote: bool,
}

impl Writing<'_> {
    /// Takes the first `length` bytes of the window, which lies at `at` of the records, and perhaps the one
    /// behind them; returns how many it took.
    #[inline]
    fn block(&mut self, at: usize, window: &[u8; WINDOW_BYTES], length: usize) -> Option<usize> {
        let (outside, inside) = self.unquoter.specials(window.first_chunk()?, self.in_quote);
        let mut from = 0;
        while from < length {
            let specials = if self.in_quote { inside } else { outside } & (u64::MAX << from);
            let to = (specials.trailing_zeros() as usize).min(length);
            // Always as much as there can be, which takes no look at how much there is.
            let run: &Block = window.get(from..)?.first_chunk()?;
            *self.out.get_mut(self.length..)?.first_chunk_mut()? = *run;
            self.length += to - from;
            if to == length {
                return Some(length);
            }
            from = to + self.special(at + to)?;
        }
        Some(from)
    }

    /// Takes the special byte at `at` of the records, and perhaps the next one; returns how many it took.
    #[inline]
    fn special(&mut self, at: usize) -> Option<usize> {
        let byte = *self.records.get(at)?;
        if self.in_quote {
            self.inside(at, byte)
        } else if byte == self.unquoter.quote {
            self.open(at)
        } else {
            self.backslash(at)
        }
    }

    /// Outside quotes a backslash is data to csv, unless it begins a NULL.
    #[inline]
    fn backslash(&mut self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1).and_then(|before| self.records.get(before));
        let next = self.records.get(at + 1);
        if self.unquoter.null.is_none() && next == Some(&b'N') {
            let is_border = |byte: &u8| self.unquoter.is_border(*byte);
            if before.is_none_or(is_border) && self.records.get(at + 2).is_none_or(is_border) {
                self.push([b'\\', b'N'])?;
                return Some(2);
            }
        }
        let is_marker = next == Some(&b'.') && before.is_none_or(|byte| is_line_end(*byte));
        if is_marker {
            return None;
        }
        self.push([b'\\', b'\\'])?;
        Some(1)
    }

    #[inline]
    fn open(&mut self, at: usize) -> Option<usize> {
        if self.joins(at) {
            return None;
        }
        if let Some(null) = &self.unquoter.null {
            let before = at.checked_sub(1).and_then(|before| self.records.get(before));
            // What stands before the quote in the field would have to be remembered.
            if !null.is_empty() && !before.is_none_or(|byte| self.unquoter.is_border(*byte)) {
                return None;
            }
            self.field = self.length;
        }
        self.in_quote = true;
        Some(1)
    }

    #[inline]
    fn inside(&mut self, at: usize, byte: u8) -> Option<usize> {
        let Unquoter { quote, escape, .. } = *self.unquoter;
        // The escape is tried first: it may be the quote itself.
        if byte == escape
            && let Some(&next) = self.records.get(at + 1)
            && (next == quote || next == escape)
        {
            self.literal(next)?;
            return Some(2);
        }
        if byte != quote {
            self.literal(byte)?;
            return Some(1);
        }
        if self.joins(at) || self.may_be_null(at) {
            return None;
        }
        self.in_quote = false;
        Some(1)
    }

    /// Without the quote at `at`, bytes of two broken characters would become a whole one, or a `\r` and a
    /// `\n` the end of a line.
    #[inline]
    fn joins(&self, at: usize) -> bool {
        let before = self.length.checked_sub(1).and_then(|before| self.out.get(before));
        match (before, self.records.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => true,
            (Some(before), Some(next)) => !before.is_ascii() && !next.is_ascii(),
            _ => false,
        }
    }

    /// COPY text would take the field whose quotes close at `at` for NULL; csv does not. A `\N` that was
    /// quoted has a second backslash.
    #[inline]
    fn may_be_null(&self, at: usize) -> bool {
        let Some(null) = &self.unquoter.null else { return false };
        if self.length - self.field > null.len() {
            return false;
        }
        let ends = self.records.get(at + 1).is_none_or(|byte| self.unquoter.is_border(*byte));
        !ends || self.out.get(self.field..self.length) == Some(null.as_bytes())
    }

    /// A byte that is nothing but itself.
    #[inline]
    fn literal(&mut self, byte: u8) -> Option<()> {
        match byte {
            b'\n' => self.push([b'\\', b'n']),
            b'\r' => self.push([b'\\', b'r']),
            b'\\' => self.push([b'\\', b'\\']),
            byte if byte == self.unquoter.delimiter => self.push([b'\\', byte]),
            byte => self.push([byte]),
        }
    }

    #[inline]
    fn push<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        *self.out.get_mut(self.length..)?.first_chunk_mut()? = bytes;
        self.length += N;
        Some(())
    }
}
