//! Records to lines of COPY's text format, with COPY's defaults: tab, `\N`, `\n`, backslash sequences
//! (<https://www.postgresql.org/docs/current/sql-copy.html>).

use super::{Counts, ReadValue, Shape};
use crate::cells::Record;
use crate::encode;
use howdah_model::Reading;
use std::sync::Arc;

/// Writes the fields that the table has.
pub(super) struct Lines {
    kept: Vec<Kept>,
    read: ReadValue,
    value: Vec<u8>,
    counts: Arc<Counts>,
}

struct Kept {
    field_no: usize,
    reading: Option<Reading>,
    /// Values rewritten since [`Lines::count`] was called.
    values_read: u64,
}

impl Lines {
    pub(super) fn new(shape: &Shape, counts: Arc<Counts>) -> Lines {
        let kept = shape.fields.iter().enumerate().filter(|(_, field)| field.keep);
        let kept =
            kept.map(|(field_no, field)| Kept { field_no, reading: field.reading.clone(), values_read: 0 });
        Lines { kept: kept.collect(), read: shape.read, value: Vec::new(), counts }
    }

    /// Appends one line. Fields that the record lacks are NULL. A value that its reading does not
    /// understand goes as it stands: the server refuses it with its column and its place.
    pub(super) fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        // One look at all values saves one at each; most records have nothing to escape.
        let plain = is_plain(record.text());
        for (no, kept) in self.kept.iter_mut().enumerate() {
            if no > 0 {
                out.push(b'\t');
            }
            if kept.field_no >= record.len() || record.is_null(kept.field_no) {
                out.extend_from_slice(b"\\N");
                continue;
            }
            let value = record.value(kept.field_no);
            self.value.clear();
            if let Some(reading) = &kept.reading
                && (self.read)(reading, value, &mut self.value)
            {
                kept.values_read += 1;
                encode::escape(&self.value, out);
            } else if plain || is_plain(value) {
                out.extend_from_slice(value);
            } else {
                encode::escape(value, out);
            }
        }
        out.push(b'\n');
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
