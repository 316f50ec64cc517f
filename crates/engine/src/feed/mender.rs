//! Chunks of a watched file that hold a record which does not fit, with `--lenient`.
//!
//! Such a file goes untouched like any other, but where a chunk begins is known only when the one before it
//! has been found to be without a fault, or has been mended. A chunk without a fault is sent as it is.

use super::{Feeder, end_marker};
use crate::budget::Buffer;
use crate::pipeline::Run;
use howdah_model::{Care, Error, ErrorKind, Format, OnError, Place, Plan, Result};
use howdah_transcode::dialect::TableEnd;
use howdah_transcode::infer;
use howdah_transcode::mend::{self, Counts, Field, Mended, Shape, Span};
use std::io::Read;
use std::sync::Arc;

/// Mends the records of one file that do not fit.
pub(super) struct Mender {
    shape: Shape,
    format: Format,
    counts: Arc<Counts>,
}

impl Mender {
    /// `None` where records are not mended on the way: without `--lenient` and `--nul`, and where all are
    /// rewritten.
    pub(super) fn new(run: &Run, file_no: u32) -> Option<Mender> {
        let shape = mending_shape(&run.plan, file_no)?;
        let format = run.plan.table_of(file_no).format.clone();
        let width = shape.fields.len();
        Some(Mender { shape, format, counts: run.tally.file(file_no).mends(width) })
    }

    /// Tells of a line that ends the data before the file does, if it has come to one.
    pub(super) fn tell_end_marker(&self, run: &Run, file_no: u32) {
        if let Some((record, byte)) = self.counts.end_marker() {
            end_marker::tell(run, file_no, record, byte);
        }
    }

    /// Mends the records of a chunk; `plain` begins with it. They replace what is in `buffer`, and are
    /// counted against the budget: missing fields may make them many times as long as they were. Whoever
    /// calls it must have the turn in its file: the buffer may need the reserve.
    ///
    /// # Errors
    /// Those of `plain`; `RecordTooLong` when the budget has no room for them.
    pub(super) fn mend(
        &self,
        feeder: &Feeder,
        plain: impl Read,
        span: Span,
        buffer: &mut Buffer,
    ) -> Result<Mended> {
        buffer.truncate(0);
        let append = |piece: &[u8]| append(feeder, buffer, piece).map_err(|error| too_long(error, span));
        mend::chunk(&self.shape, &self.format, plain, span, Arc::clone(&self.counts), append)
    }
}

/// How such records are read. `None` where none are mended on the way.
pub(crate) fn mending_shape(plan: &Plan, file_no: u32) -> Option<Shape> {
    let shaping = &plan.job.shaping;
    if shaping.lenient || !shaping.nul.is_reject() { watched_shape(plan, file_no) } else { None }
}

/// How the records of a watched file are read, where somebody does.
pub(crate) fn watched_shape(plan: &Plan, file_no: u32) -> Option<Shape> {
    let table = plan.table_of(file_no);
    let shaping = &plan.job.shaping;
    // What is kept is written in letters, digits and blanks.
    let quote = table.dialect.as_ref().and_then(|dialect| dialect.quote);
    let keeps = quote.is_none_or(|quote| !quote.is_ascii_alphanumeric() && quote != b' ');
    Some(Shape {
        dialect: table.dialect.clone().filter(|_| table.care == Care::Watched)?,
        fields: vec![Field::as_it_is(); table.fields.len()],
        names: plan.file(file_no).header.clone(),
        data_start_byte: 0,
        data_end_byte: None,
        end: table_end(plan, file_no),
        lenient: shaping.lenient,
        skips: keeps && plan.job.bad_records.on_error == OnError::Skip,
        nul: shaping.nul,
        record_bytes_max: usize::try_from(plan.record_bytes_max / 2).unwrap_or(usize::MAX),
        read: infer::read,
    })
}

/// What tells where another table begins in a file that is read in order. Ranges are read side by side: the
/// plan has looked where their data ends.
pub(super) fn table_end(plan: &Plan, file_no: u32) -> Option<TableEnd> {
    let file = plan.file(file_no);
    let table = plan.table(file.table_no);
    let dialect = table.dialect.as_ref().filter(|_| !file.ranged && !file.typed.is_empty())?;
    let names: Vec<String> = table.fields.iter().map(|name| name.clone().unwrap_or_default()).collect();
    Some(TableEnd::new(dialect, &names, &file.typed))
}

fn append(feeder: &Feeder, buffer: &mut Buffer, mut piece: &[u8]) -> Result<()> {
    while !piece.is_empty() {
        let grow = feeder.run.budget.grow(buffer, piece.len());
        let room = feeder.handle.block_on(grow)?;
        let (now, later) = piece.split_at(room);
        buffer.spare()[..room].copy_from_slice(now);
        buffer.advance(room);
        piece = later;
    }
    Ok(())
}

/// It is not one record that is too long.
fn too_long(error: Error, span: Span) -> Error {
    if error.kind() != ErrorKind::RecordTooLong {
        return error;
    }
    let place =
        Place { record: Some(span.records_before + 1), byte: Some(span.start_byte), ..Place::default() };
    let message = "the records of a chunk are longer, when they are mended, than this memory budget allows";
    Error::new(ErrorKind::RecordTooLong, message)
        .at(place)
        .with_hint("give a larger --memory or, as long as the job has stored nothing, a smaller --chunk-size")
}
