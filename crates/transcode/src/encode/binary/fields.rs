//! The fields of whole records, cut as COPY cuts them, 64 bytes at a time.
//!
//! What COPY would refuse, and what its versions do not read alike, is not cut: then nothing comes out. The
//! rules are those of `CopyReadLineText`, `CopyReadAttributesText` and `CopyReadAttributesCSV` in
//! PostgreSQL's `copyfromparse.c`.

use crate::encode::attributes;
use crate::split::block::{BLOCK_BYTES, positions_of_any};
use howdah_model::{ColumnChoice, Eol, Format, FormatKind};

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Its value; none is NULL.
    pub(crate) value: Option<&'a [u8]>,
    /// It is the last of its record.
    pub(crate) ends_record: bool,
}

/// A walk over the fields of records.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    format: &'a Format,
    eol: Eol,
    delimiter: u8,
    /// What makes a field more than its bytes: the quote of csv, the backslash of text.
    of_kind: u8,
    null: &'a [u8],
    /// In quotes that is NULL to some columns, too.
    forces_null: bool,
    bytes: &'a [u8],
    /// Where the next field begins.
    at: usize,
    /// The first byte of the block that `specials` is about.
    block: usize,
    /// Bytes of the block, not yet passed, that are more than themselves.
    specials: u64,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(format: &'a Format, eol: Eol, bytes: &'a [u8], from: usize) -> Fields<'a> {
        let of_kind = if format.kind == FormatKind::Csv { format.quote } else { b'\\' };
        let (delimiter, null) = (format.delimiter, format.null.as_bytes());
        let forces_null = format.force_null != ColumnChoice::None;
        let mut fields = Fields {
            format,
            eol,
            delimiter,
            of_kind,
            null,
            forces_null,
            bytes,
            at: 0,
            block: 0,
            specials: 0,
        };
        fields.load();
        fields.seek(from);
        fields
    }

    /// Where the next field begins.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A record begins here as the end of the data does.
    #[inline]
    pub(crate) fn may_be_marker(&self) -> bool {
        self.bytes.get(self.at) == Some(&b'\\') && self.bytes.get(self.at + 1) == Some(&b'.')
    }

    /// The next field. Its value stands in the records or, if it had to be written anew, in `value`.
    #[inline(always)]
    pub(crate) fn next<'b>(&mut self, value: &'b mut Vec<u8>) -> Option<Field<'b>>
    where
        'a: 'b,
    {
        let start = self.at;
        let stop = self.next_special();
        if self.bytes.get(stop) == Some(&self.of_kind) {
            return match self.format.kind {
                FormatKind::Csv => self.quoted(start, stop, value),
                FormatKind::Text => self.escaped(start, stop, value),
            };
        }
        let written = self.bytes.get(start..stop)?;
        let ends_record = self.pass_end(stop)?;
        Some(Field { value: (written != self.null).then_some(written), ends_record })
    }

    /// A csv field with a quote at `stop`.
    #[inline(never)]
    fn quoted<'b>(&mut self, start: usize, stop: usize, value: &'b mut Vec<u8>) -> Option<Field<'b>>
    where
        'a: 'b,
    {
        let Format { quote, escape, .. } = *self.format;
        if stop == start {
            // Most fields with quotes have two: one at each end.
            let inside = start + 1;
            let close = inside + memchr::memchr2(quote, escape, self.bytes.get(inside..)?)?;
            let is_close = self.bytes.get(close) == Some(&quote);
            if is_close && self.bytes.get(close + 1).is_none_or(|next| self.is_border(*next)) {
                self.seek(close + 1);
                let written = self.bytes.get(inside..close).filter(|written| self.is_certain(written))?;
                let border = self.next_special();
                return Some(Field { value: Some(written), ends_record: self.pass_end(border)? });
            }
        }
        value.clear();
        value.extend_from_slice(self.bytes.get(start..stop)?);
        let mut at = stop;
        while let Some(byte) = self.bytes.get(at)
            && !self.is_border(*byte)
        {
            if *byte == quote {
                at = attributes::quoted(self.format, self.bytes, at + 1, value)?;
            } else {
                value.push(*byte);
                at += 1;
            }
        }
        self.seek(at);
        let border = self.next_special();
        let ends_record = self.pass_end(border)?;
        self.is_certain(value).then_some(Field { value: Some(value), ends_record })
    }

    /// A value in quotes is no NULL, whatever the column.
    fn is_certain(&self, value: &[u8]) -> bool {
        !self.forces_null || value != self.null
    }

    /// A text field with a backslash at `stop`.
    #[inline(never)]
    fn escaped<'b>(&mut self, start: usize, mut stop: usize, value: &'b mut Vec<u8>) -> Option<Field<'b>>
    where
        'a: 'b,
    {
        while self.bytes.get(stop) == Some(&b'\\') {
            // The end of the data, or an error. A backslash at the very end is read differently by and by.
            if self.bytes.get(stop + 1).is_none_or(|next| *next == b'.') {
                return None;
            }
            self.seek(stop + 2);
            stop = self.next_special();
        }
        let written = self.bytes.get(start..stop)?;
        let ends_record = self.pass_end(stop)?;
        if written == self.null {
            return Some(Field { value: None, ends_record });
        }
        *value = attributes::text_value(written);
        // Escapes can make any bytes. They mean characters of the server's encoding, whatever that of the
        // file is, so that only ASCII is certain.
        let beyond_ascii = |bytes: &[u8]| bytes.iter().filter(|byte| !byte.is_ascii()).count();
        let is_certain = beyond_ascii(value) == beyond_ascii(written)
            && simdutf8::basic::from_utf8(value).is_ok()
            && !value.contains(&0);
        is_certain.then_some(Field { value: Some(value), ends_record })
    }

    fn is_border(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }

    /// Passes the delimiter or line ending at `stop`, where there is one; whether it ends the record.
    #[inline]
    fn pass_end(&mut self, stop: usize) -> Option<bool> {
        let Some(byte) = self.bytes.get(stop).copied() else {
            self.at = stop;
            return Some(true);
        };
        self.at = stop + 1;
        if byte == self.delimiter {
            return Some(false);
        }
        match (self.eol, byte) {
            (Eol::Lf, b'\n') | (Eol::Cr, b'\r') => Some(true),
            (Eol::CrLf, b'\r') if self.bytes.get(stop + 1) == Some(&b'\n') => {
                self.seek(stop + 2);
                Some(true)
            }
            _ => None,
        }
    }

    /// Goes on from `at`, which is not passed yet.
    fn seek(&mut self, at: usize) {
        self.at = at;
        if at >= self.block + BLOCK_BYTES {
            self.block = at - at % BLOCK_BYTES;
            self.load();
        }
        self.specials &= u64::MAX << (at - self.block);
    }

    /// Passes the next special byte and says where it is; behind the last one, the end.
    #[inline]
    fn next_special(&mut self) -> usize {
        if self.specials == 0 && !self.load_next() {
            return self.bytes.len();
        }
        let at = self.block + self.specials.trailing_zeros() as usize;
        self.specials &= self.specials - 1;
        at
    }

    /// Goes on to the next block with special bytes; false if there is none. Once in ten fields or so: in the
    /// way of the others it would cost them the saving of all registers.
    #[inline(never)]
    fn load_next(&mut self) -> bool {
        while self.specials == 0 {
            self.block += BLOCK_BYTES;
            if self.block >= self.bytes.len() {
                return false;
            }
            self.load();
        }
        true
    }

    #[inline]
    fn load(&mut self) {
        let rest = self.bytes.get(self.block..).unwrap_or_default();
        let mut short = [0; BLOCK_BYTES];
        let block = rest.first_chunk().unwrap_or_else(|| {
            short.iter_mut().zip(rest).for_each(|(byte, from)| *byte = *from);
            &short
        });
        self.specials = positions_of_any(block, [b'\n', b'\r', self.delimiter, self.of_kind]);
        if rest.len() < BLOCK_BYTES {
            self.specials &= !(u64::MAX << rest.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes beyond ASCII that escapes make are characters of the server's encoding, which nobody here knows.
    #[test]
    fn escapes_are_certain_that_make_ascii() {
        let format = Format::text();
        let read = |bytes: &[u8]| {
            let mut value = Vec::new();
            let mut fields = Fields::new(&format, Eol::Lf, bytes, 0);
            fields.next(&mut value).map(|field| field.value.map(<[u8]>::to_vec))
        };
        assert_eq!(read(b"a\\x41\\tb\n"), Some(Some(b"aA\tb".to_vec())));
        assert_eq!(read("é\\x41\n".as_bytes()), Some(Some("éA".as_bytes().to_vec())));
        assert_eq!(read(b"a\\xc3\\xa9\n"), None);
        assert_eq!(read(b"a\\303\\251\n"), None);
    }
}
