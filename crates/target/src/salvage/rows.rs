//! Rows of a chunk as they stand in its bytes.

use super::Refused;
use bytes::Bytes;
use std::ops::Range;

/// The number of a row in its chunk, and where it stands.
pub(super) type Row = (u64, Range<usize>);

/// Their numbers, in order.
pub(super) fn rows_of(refused: &[Refused]) -> Vec<u64> {
    let mut rows: Vec<u64> = refused.iter().map(|refused| refused.row).collect();
    rows.sort_unstable();
    rows
}

/// The rows' bytes, neighbours in one piece.
pub(super) fn pieces(bytes: &Bytes, rows: &[Row]) -> Vec<Bytes> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (_, range) in rows {
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range.clone()),
        }
    }
    ranges.into_iter().map(|range| bytes.slice(range)).collect()
}

/// Which of the rows stands at the line that the server names. It counts lines, not records, and not in every
/// version alike: this is a hint for where to cut.
pub(super) fn row_of_line(bytes: &[u8], rows: &[Row], line: u64) -> Option<usize> {
    let mut line_now = 1;
    rows.iter().position(|(_, range)| {
        let record = &bytes[range.clone()];
        let ends = |byte| record.iter().filter(|other| **other == byte).count() as u64;
        let lines = ends(b'\n').max(ends(b'\r')).max(1);
        line_now += lines;
        line < line_now
    })
}
