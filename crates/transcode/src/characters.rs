//! Looks at records that go to the server in a format that was told, for bytes that no text can hold.
//!
//! Enters: a chunk of whole records that are to be UTF-8. Leaves: the first one with bytes that are no
//! character, or with a NUL, or nothing. COPY refuses such a record in every database, one of SQL_ASCII too,
//! and says its line alone. What backslashes stand for is not looked at: the encoding of the database decides
//! about that.
//!
//! # Speed
//! `simdutf8` and `memchr` do it. One core of a virtual machine that was busy with other work, pieces of 256
//! KiB in the cache: 56 GB/s of ASCII, 16 with characters beyond it in every record; the client splits 3 to
//! 11 GB/s.

use crate::encode::{attributes, is_storable};
use crate::fault::Fault;
use crate::header::field_behind;
use crate::inspect::{Oddity, OddityKind, is_utf8};
use crate::split::{Rules, State};
use howdah_model::{Format, FormatKind};

#[cfg(test)]
mod tests;

/// Bytes that are searched in one go for what is broken: where much is, nothing is read more often than
/// twice.
const WINDOW_BYTES: usize = 64 << 10;

/// Mending needs a format that is found.
const ENCODING_HINT: &str = "--on-error skip goes on without such records; where all of the file is in LATIN1 or WIN1252, say so with --encoding, \
                             after removing the rows that this load has stored";
const NUL_HINT: &str =
    "--on-error skip goes on without such records; --nul strip, which takes no --format, removes the bytes";

/// Looks at the chunks of files in one format.
#[derive(Debug, Clone)]
pub struct Characters {
    format: Format,
    rules: Rules,
}

impl Characters {
    /// For files of this format, which are split by these rules. `None` where they are not in UTF-8: the
    /// server judges.
    pub fn new(format: &Format, rules: &Rules) -> Option<Characters> {
        let checks = is_utf8(format.encoding.as_deref());
        checks.then(|| Characters { format: format.clone(), rules: rules.clone() })
    }

    /// Nothing in `bytes`, whole records, is broken.
    pub fn are_whole(&self, bytes: &[u8]) -> bool {
        is_storable(bytes)
    }

    /// The first record of `bytes`, whole records, that COPY would refuse for its bytes.
    pub fn inspect(&self, bytes: &[u8]) -> Option<Oddity> {
        let broken = first_broken(bytes)?;
        // The broken byte ends no record, and decides whether a carriage return before it does.
        let scan = self.rules.scan(State::START, bytes.get(..=broken)?);
        let start = scan.last_border.unwrap_or(0);
        let at = broken - start;
        let field = Some(field_behind(&self.format, bytes.get(start..broken)?));
        let (kind, fault, hint) = match bytes.get(broken) {
            Some(0) => (OddityKind::Nul, Fault::Nul { field }, NUL_HINT),
            _ => (OddityKind::Encoding, Fault::NotUtf8 { at, field }, ENCODING_HINT),
        };
        Some(Oddity { record: scan.records, byte: start, field, kind, message: fault.message(), hint })
    }
}

/// The field of a record in UTF-8, counted from 0, that a database of UTF-8 refuses for its bytes, be they
/// written as they are or by backslashes.
pub fn broken_field(format: &Format, record: &[u8]) -> Option<usize> {
    if let Some(broken) = first_broken(record) {
        return Some(field_behind(format, record.get(..broken)?));
    }
    if format.kind == FormatKind::Csv {
        return None;
    }
    let (mut found, mut no) = (None, 0);
    attributes::text(format, record, |field| {
        let is_broken = || !is_storable(&attributes::text_value(&record[field.clone()]));
        if found.is_none() && is_broken() {
            found = Some(no);
        }
        no += 1;
    });
    found
}

/// The first byte that is a NUL or begins no character.
fn first_broken(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min(at + WINDOW_BYTES);
        let nul = memchr::memchr(0, &bytes[at..end]);
        let text = &bytes[at..nul.map_or(end, |nul| at + nul)];
        match simdutf8::compat::from_utf8(text) {
            Ok(_) if nul.is_some() => return Some(at + text.len()),
            Ok(_) => at = end,
            // The window has cut a character.
            Err(error) if error.error_len().is_none() && nul.is_none() && end < bytes.len() => {
                at += error.valid_up_to();
            }
            Err(error) => return Some(at + error.valid_up_to()),
        }
    }
    None
}
