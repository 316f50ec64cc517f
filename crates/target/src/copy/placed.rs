//! Rows of a chunk with the places of their records before them, for a staging table that keeps these.
//!
//! Rows that are shown to COPY in parts, with gaps, cannot be numbered by a sequence. A field before the
//! first needs no knowledge of what stands in the record: it means the same in csv and in text, whatever the
//! record's own fields are.

use crate::sql::{quote_ident, quote_relation};
use bytes::{BufMut, Bytes, BytesMut};
use howdah_model::FormatKind;
use howdah_model::plan::{Encode, TablePlan};
use std::ops::Range;

/// So many bytes are written anew at a time, for all rows of a chunk together would be another chunk in
/// memory.
const AT_ONCE_BYTES: usize = 1 << 20;
/// Bytes of the largest piece handed to the connection.
const PIECE_BYTES: usize = 64 << 10;

/// How rows get their places.
pub(crate) struct Placed {
    /// The COPY statement that takes them.
    pub(crate) sql: String,
    first: i64,
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Placed {
    /// `None` for a table without places. `first` is the place of the chunk's first record.
    pub(crate) fn new(table: &TablePlan, first: Option<i64>) -> Option<Placed> {
        let place = table.staging.as_ref()?.place.as_ref()?;
        let head = format!("COPY {} (", quote_relation(table.copied_into()));
        let rest = table.copy_sql.strip_prefix(&head)?;
        let (delimiter, quote, null) = match table.encode {
            Encode::CopyText => (b'\t', None, "\\N"),
            Encode::PassThrough => {
                let format = &table.format;
                let quote = (format.kind == FormatKind::Csv).then_some(format.quote);
                (format.delimiter, quote, format.null.as_str())
            }
        };
        // What is quoted is not NULL, and a number is read with its sign.
        let sign = !null.is_empty() && null.bytes().all(|byte| byte.is_ascii_digit());
        let before = quote.into_iter().chain((quote.is_none() && sign).then_some(b'+')).collect();
        let behind = quote.into_iter().chain([delimiter]).collect();
        Some(Placed {
            sql: format!("{head}{}, {rest}", quote_ident(&place.name)),
            first: first?,
            before,
            behind,
        })
    }

    /// How many rows go at once, of so many that take these bytes.
    pub(crate) fn rows_at_once(rows: usize, bytes: usize) -> usize {
        (rows.saturating_mul(AT_ONCE_BYTES) / bytes.max(1)).clamp(1, rows.max(1))
    }

    /// The rows as they are sent: their numbers in the chunk, and where they stand in it.
    pub(crate) fn pieces(
        &self,
        bytes: &Bytes,
        rows: impl Iterator<Item = (u64, Range<usize>)>,
    ) -> Vec<Bytes> {
        let (mut pieces, mut piece) = (Vec::new(), BytesMut::new());
        for (row, range) in rows {
            piece.put_slice(&self.before);
            piece.put_slice(self.first.saturating_add_unsigned(row).to_string().as_bytes());
            piece.put_slice(&self.behind);
            piece.put_slice(&bytes[range]);
            if piece.len() >= PIECE_BYTES {
                pieces.push(piece.split().freeze());
            }
        }
        if !piece.is_empty() {
            pieces.push(piece.freeze());
        }
        pieces
    }
}
