//! Reads a file in any dialect, carefully, and gives its records as lines of COPY text.
//!
//! For files that COPY cannot be told how to read: several characters between fields, mixed line endings,
//! several spellings of NULL, values in other people's spelling, records to be mended. Plain UTF-8 bytes go
//! in; what comes out is split and loaded like any file of COPY text, one line a stored record. The output
//! is a pure function of the bytes and the [`Shape`], however the input is cut into pieces.
//!
//! # The flow
//! 1. `window` skips to the data and holds the bytes that are being looked at;
//! 2. [`Cells`](crate::cells::Cells) cuts the next record, by the one strict reading of the dialect, with
//!    [`Shape::lenient`] behind a byte order mark that may stand before it;
//! 3. a record with a [fault](crate::fault) is an error, or, with [`Shape::lenient`], goes to `lenient`,
//!    which looks for the reading that keeps it and the records behind it whole:
//!    - `other_line_ending`, `other_quotes`, `other_delimiter`: the row is in another style than the file;
//!    - `stray_quote`: quotes that open or close nothing are data;
//!    - `width`: fields are missing or surplus, whichever way the row is read; `neighbours` says whether
//!      values then stand in their columns;
//!    - `broken_bytes`: NUL and what is no character;
//! 4. `line` writes the fields that the table has, through their readings; a value that its reading does not
//!    understand is an error, or, with [`Shape::lenient`], its record is left out.
//!
//! What a record becomes depends on its bytes and a bounded number behind them (`LOOK_AHEAD_BYTES`), never on
//! records before it, so that a mended file is loaded in the same way from wherever it is read. A record
//! without a fault is never looked at twice: on a clean file `lenient` costs nothing and changes nothing.
//!
//! # Speed
//! `examples/inspect_throughput` measures it too. One core of a busy virtual machine: 330 to 380 MB/s for csv
//! of many short fields, 500 for quoted csv, 300 for text; the same with `lenient`.

mod broken_bytes;
mod chunk;
mod counts;
mod kept;
mod lenient;
mod line;
mod neighbours;
mod other_delimiter;
mod other_line_ending;
pub(crate) mod other_quotes;
mod passed;
mod records;
mod stray_quote;
mod stream;
mod width;
mod window;

pub use chunk::{Mended, Span, chunk, locate_in_chunk};
pub use counts::{Counts, LeftOut};
pub use kept::Kept;

use crate::dialect::TableEnd;
use howdah_model::{Dialect, Nul, Reading, Result};
use std::io::Read;
use std::sync::Arc;

/// Rewrites one value to PostgreSQL's spelling, appending it; `false`, and nothing appended, if the reading
/// does not say what it means.
pub type ReadValue = fn(&Reading, &[u8], &mut Vec<u8>) -> bool;

/// What becomes of one field of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The column of the table that it goes into; `None`: into none.
    pub column: Option<String>,
    /// How its values are written, if not as PostgreSQL reads them.
    pub reading: Option<Reading>,
    /// An empty value is NULL, however it is written.
    pub empty_is_null: bool,
}

impl Field {
    /// It goes into the table as it is, so that none of its values is refused and the name of its column is
    /// of no account.
    pub fn as_it_is() -> Field {
        Field { column: Some(String::new()), reading: None, empty_is_null: false }
    }
}

/// How a file is read.
#[derive(Debug, Clone)]
pub struct Shape {
    /// How records and fields are told apart.
    pub dialect: Dialect,
    /// The fields of a record, in the order of the file.
    pub fields: Vec<Field>,
    /// The names in the header: a comment that declares as many others (`#Fields: ...`) is an error. Empty:
    /// none is looked at.
    pub names: Vec<String>,
    /// Where the data begins: behind byte order mark, preamble and header.
    pub data_start_byte: u64,
    /// Where it ends, if not with the file.
    pub data_end_byte: Option<u64>,
    /// Records that do not fit may begin another table, with which the data ends, too.
    pub end: Option<TableEnd>,
    /// Mend records instead of refusing them.
    pub lenient: bool,
    /// Keep those that would be refused or left out, each as a line of its own ([`Kept`]), and go on.
    pub skips: bool,
    /// What becomes of NUL bytes.
    pub nul: Nul,
    /// The longest record. Twice as much is held at most.
    pub record_bytes_max: usize,
    /// What readings do.
    pub read: ReadValue,
}

/// The records of `plain`, UTF-8 bytes from the first byte of the file, as lines of COPY text.
///
/// Reading fails with an [`std::io::Error`] that carries a [`howdah_model::Error`], which
/// [`crate::decompress::error`] takes out; errors of `plain` are passed on. Without `lenient` the first
/// record that does not fit is an error of kind `Record` with its number (from 1) and the byte of `plain` it
/// begins at; the lines of the records before it come first. So is the first value that its reading does not
/// understand, with the name of its column. A record longer than [`Shape::record_bytes_max`] is
/// `RecordTooLong`, unless a lenient reading makes a shorter one of it.
///
/// # Errors
/// `Usage` if the dialect contradicts itself.
pub fn reader<'a, R: Read + Send + 'a>(
    shape: &Shape,
    plain: R,
    counts: Arc<Counts>,
) -> Result<Box<dyn Read + Send + 'a>> {
    Ok(Box::new(stream::Stream::new(shape, plain, counts)?))
}

/// The record that line `line_no` (from 1) of [`reader`]'s output came from, and its first byte in `plain`:
/// what a server means that complains about the line. `None` if there are fewer lines. Reads all of `plain`
/// up to there.
///
/// # Errors
/// As [`reader`] and its reading.
pub fn locate<R: Read>(shape: &Shape, plain: R, line_no: u64) -> Result<Option<(u64, u64)>> {
    let mut stream = stream::Stream::new(shape, plain, Arc::new(Counts::new(0)))?;
    for _ in 1..line_no {
        if stream.skip_line()?.is_none() {
            return Ok(None);
        }
    }
    Ok(stream.skip_line()?.map(|at| (at.record, at.byte)))
}

#[cfg(test)]
mod tests;
