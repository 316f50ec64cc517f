//! Chunks of a watched file that hold a record which does not fit, with `--lenient`.
//!
//! Such a file goes untouched like any other, but its chunks are looked at in the order of the file, since where
//! a mended chunk ends is known only when it is mended. A chunk without a fault is sent as it is.

use crate::pipeline::Run;
use howdah_model::{Care, Format, Plan, Result};
use howdah_transcode::infer;
use howdah_transcode::inspect::Inspector;
use howdah_transcode::mend::{self, Counts, Field, Mended, Shape, Span};
use std::io::Read;
use std::sync::Arc;

/// Finds and mends the records of one file that do not fit.
pub(super) struct Mender {
    inspector: Inspector,
    shape: Shape,
    format: Format,
    counts: Arc<Counts>,
}

impl Mender {
    /// `None` where records are not mended on the way: without `--lenient`, and where all are rewritten.
    pub(super) fn new(run: &Run, file_no: u32) -> Result<Option<Mender>> {
        let Some(shape) = mending_shape(&run.plan, file_no) else { return Ok(None) };
        let format = run.plan.tables[run.plan.files[file_no as usize].table_no as usize].format.clone();
        let width = shape.fields.len();
        let inspector = Inspector::new(&format, &shape.dialect, width)?.for_server(run.plan.server_version);
        Ok(Some(Mender { inspector, shape, format, counts: run.tally.file(file_no).mends(width) }))
    }

    /// Nothing is wrong with these whole records.
    pub(super) fn is_clean(&self, records: &[u8]) -> bool {
        self.inspector.inspect(records).is_none()
    }

    /// Mends the records of a chunk; `plain` begins with it.
    pub(super) fn mend(&self, plain: impl Read, span: Span, out: &mut Vec<u8>) -> Result<Mended> {
        mend::chunk(&self.shape, &self.format, plain, span, Arc::clone(&self.counts), out)
    }
}

/// How such records are read. `None` where none are mended on the way.
pub(crate) fn mending_shape(plan: &Plan, file_no: u32) -> Option<Shape> {
    let table = &plan.tables[plan.files[file_no as usize].table_no as usize];
    let mended = plan.job.shaping.lenient && table.care == Care::Watched;
    Some(Shape {
        dialect: table.dialect.clone().filter(|_| mended)?,
        fields: vec![Field::as_it_is(); table.fields.len()],
        data_start_byte: 0,
        data_end_byte: None,
        lenient: true,
        record_bytes_max: usize::try_from(plan.record_bytes_max / 2).unwrap_or(usize::MAX),
        read: infer::read,
    })
}
