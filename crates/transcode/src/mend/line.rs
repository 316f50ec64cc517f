//! Records to lines of COPY's text format, with COPY's defaults: tab, `\N`, `\n`, backslash sequences
//! (<https://www.postgresql.org/docs/current/sql-copy.html>).

use super::records::At;
use super::{Counts, ReadValue, Shape};
use crate::cells::Record;
use crate::encode;
use crate::infer::spelling;
use howdah_model::{Error, ErrorKind, Place, Reading, sqlstate};
use std::sync::Arc;

/// Writes the fields that the table has.
pub(super) struct Lines {
    kept: Vec<Kept>,
    read: ReadValue,
    value: Vec<u8>,
    counts: Arc<Counts>,
}

/// A value that its reading does not understand. To the server it may mean something else than to who wrote
/// it, so it never gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misread {
    column: String,
    reading: Reading,
}

impl Misread {
    /// In words, without the value.
    fn message(&self) -> String {
        format!("expected a value written like {}, got another spelling", spelling(&self.reading))
    }

    /// The same with the column.
    pub(super) fn reason(&self) -> String {
        format!("column {}: {}", self.column, self.message())
    }

    /// What the server would answer to a value that no date, or nothing else, is written like.
    pub(super) fn sqlstate(&self) -> &'static str {
        match self.reading {
            Reading::Date(_) | Reading::MonthName => sqlstate::INVALID_DATETIME_FORMAT,
            _ => sqlstate::INVALID_TEXT_REPRESENTATION,
        }
    }

    /// For a record that stands here.
    pub(super) fn error(&self, at: At) -> Error {
        let place = Place {
            record: Some(at.record),
            byte: Some(at.byte),
            column: Some(self.column.clone()),
            ..Place::default()
        };
        Error::new(ErrorKind::Record, self.message()).at(place).with_hint(
            "--types COLUMN=TYPE:SPELLING says how values are written, or --lenient leaves such records out",
        )
    }
}

struct Kept {
    field_no: usize,
    column: String,
    reading: Option<Reading>,
    empty_is_null: bool,
    /// Values rewritten since [`Lines::count`] was called.
    values_read: u64,
}

impl Kept {
    fn is_null(&self, record: &Record) -> bool {
        let no = self.field_no;
        no >= record.len() || record.is_null(no) || self.empty_is_null && record.value(no).is_empty()
    }
}

impl Lines {
    pub(super) fn new(shape: &Shape, counts: Arc<Counts>) -> Lines {
        let kept = shape.fields.iter().enumerate().filter_map(|(field_no, field)| {
            let (column, reading) = (field.column.clone()?, field.reading.clone());
            Some(Kept { field_no, column, reading, empty_is_null: field.empty_is_null, values_read: 0 })
        });
        Lines { kept: kept.collect(), read: shape.read, value: Vec::new(), counts }
    }

    /// Appends one line. Fields that the record lacks are NULL.
    ///
    /// # Errors
    /// The first value that its reading does not understand; nothing is appended.
    pub(super) fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Misread> {
        let start = out.len();
        // One look at all values saves one at each; most records have nothing to escape.
        let plain = is_plain(record.text());
        for (no, kept) in self.kept.iter_mut().enumerate() {
            if no > 0 {
                out.push(b'\t');
            }
            if kept.is_null(record) {
                out.extend_from_slice(b"\\N");
                continue;
            }
            let value = record.value(kept.field_no);
            if let Some(reading) = &kept.reading {
                self.value.clear();
                if !(self.read)(reading, value, &mut self.value) {
                    let misread = Misread { column: kept.column.clone(), reading: reading.clone() };
                    out.truncate(start);
                    self.discount(record, no);
                    return Err(misread);
                }
                kept.values_read += 1;
                encode::escape(&self.value, out);
            } else if plain || is_plain(value) {
                out.extend_from_slice(value);
            } else {
                encode::escape(value, out);
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// The record is not stored after all: the values of its first fields do not count.
    fn discount(&mut self, record: &Record, fields: usize) {
        for kept in self.kept.iter_mut().take(fields) {
            let was_read = kept.reading.is_some() && !kept.is_null(record);
            kept.values_read -= u64::from(was_read);
        }
    }

    /// Adds what was counted since the last call to the shared counters.
    pub(super) fn count(&mut self) {
        for kept in self.kept.iter_mut().filter(|kept| kept.values_read > 0) {
            self.counts.add_values_read(kept.field_no, std::mem::take(&mut kept.values_read));
        }
    }
}

/// Nothing in these bytes needs a backslash. Without a branch, so that the compiler takes many at a time.
fn is_plain(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |any, &byte| any | (byte < b' ') | (byte == b'\\'))
}
