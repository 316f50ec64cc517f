//! Rows of a chunk as they stand in its bytes.

use super::Refused;
use bytes::Bytes;
use howdah_model::Aside;
use std::ops::Range;

/// Where rows stand, by their numbers in the chunk.
pub(super) enum Places<'a> {
    /// All of them.
    All(Vec<Range<usize>>),
    /// Those that are set aside.
    Aside(&'a [Aside]),
}

impl Places<'_> {
    /// Their numbers, in order.
    pub(super) fn rows(&self) -> Vec<u64> {
        match self {
            Places::All(ranges) => (0..ranges.len() as u64).collect(),
            Places::Aside(aside) => aside.iter().map(|aside| aside.row).collect(),
        }
    }

    /// Nowhere, if it is none of these.
    pub(super) fn of(&self, row: u64) -> Range<usize> {
        let range = match self {
            Places::All(ranges) => usize::try_from(row).ok().and_then(|row| ranges.get(row)),
            Places::Aside(aside) => {
                let found = aside.binary_search_by_key(&row, |aside| aside.row).ok();
                found.map(|no| &aside[no].range)
            }
        };
        range.cloned().unwrap_or_default()
    }
}

/// Their numbers, in order.
pub(super) fn rows_of(refused: &[Refused]) -> Vec<u64> {
    let mut rows: Vec<u64> = refused.iter().map(|refused| refused.row).collect();
    rows.sort_unstable();
    rows
}

/// The rows' bytes, neighbours in one piece.
pub(super) fn pieces(bytes: &Bytes, places: &Places<'_>, rows: &[u64]) -> Vec<Bytes> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for range in rows.iter().map(|row| places.of(*row)) {
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges.into_iter().map(|range| bytes.slice(range)).collect()
}

/// Which of the rows stands at the line that the server names, and whether that is certain. It counts lines,
/// not records, and not in every version alike: where a row before it has more lines than one, this is a hint
/// for where to cut.
pub(super) fn row_of_line(
    bytes: &[u8],
    places: &Places<'_>,
    rows: &[u64],
    line: u64,
) -> Option<(usize, bool)> {
    let (mut line_now, mut one_line_each) = (1, true);
    let at = rows.iter().position(|row| {
        let record = &bytes[places.of(*row)];
        let ends = |byte| record.iter().filter(|other| **other == byte).count() as u64;
        let (feeds, returns) = (ends(b'\n'), ends(b'\r'));
        one_line_each &= feeds + returns <= 1 || (feeds + returns == 2 && record.ends_with(b"\r\n"));
        line_now += feeds.max(returns).max(1);
        line < line_now
    })?;
    Some((at, one_line_each))
}
