//! Chunks of a watched file that hold a record which does not fit, with `--lenient`.
//!
//! Such a file goes untouched like any other, but its chunks are looked at in the order of the file, since where
//! a mended chunk ends is known only when it is mended. A chunk without a fault is sent as it is.

use crate::pipeline::Run;
use howdah_model::{Care, Format, Result};
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
        let table = &run.plan.tables[run.plan.files[file_no as usize].table_no as usize];
        let watched = table.dialect.as_ref().filter(|_| table.care == Care::Watched);
        let Some(dialect) = watched.filter(|_| run.plan.job.shaping.lenient) else { return Ok(None) };
        let width = table.fields.len();
        Ok(Some(Mender {
            inspector: Inspector::new(&table.format, dialect, width)?.for_server(run.plan.server_version),
            shape: Shape {
                dialect: dialect.clone(),
                fields: vec![Field::as_it_is(); width],
                data_start_byte: 0,
                data_end_byte: None,
                lenient: true,
                record_bytes_max: usize::try_from(run.plan.record_bytes_max / 2).unwrap_or(usize::MAX),
                read: infer::read,
            },
            format: table.format.clone(),
            counts: run.tally.file(file_no).mends(width),
        }))
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
