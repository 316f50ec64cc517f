//! The last step left of the queue: a buffer with whole records becomes a chunk, is made ready for COPY, and
//! waits in the queue for a session.

use super::{Failure, Feeder};
use crate::budget::Buffers;
use crate::pipeline::{Run, unwanted};
use crate::plan::field_targets;
use howdah_model::plan::Encode;
use howdah_model::{CopyChunk, Error, ErrorKind, Origin, Place, Result, Stage};
use howdah_transcode::encode::Rewriter;
use howdah_transcode::split::Rules;
use std::ops::Range;

/// What the chunks of one file go through.
pub(super) struct Emitter {
    pub(super) file_no: u32,
    pub(super) rules: Rules,
    rewriter: Option<Rewriter>,
}

impl Emitter {
    pub(super) fn new(run: &Run, file_no: u32) -> Result<Emitter> {
        let plan = &run.plan;
        let table = &plan.tables[plan.files[file_no as usize].table_no as usize];
        let rewriter = match table.encode {
            Encode::PassThrough => None,
            Encode::CopyText => Some(Rewriter::new(&plan.format, &field_targets(table, &plan.format))?),
        };
        Ok(Emitter { file_no, rules: super::rules(run, file_no)?, rewriter })
    }

    /// Checks, encodes and queues the records in `range` of the data buffer. Whichever buffer is not sent
    /// goes back to the pool here.
    pub(super) fn emit(
        &self,
        feeder: &Feeder,
        origin: Origin,
        Buffers { data, scratch }: Buffers,
        range: Range<usize>,
    ) -> Result<(), Failure> {
        let run = &feeder.run;
        let fail = |error: Error| Failure { chunk_no: origin.chunk_no, error };
        if !run.halt.wants(self.file_no, origin.chunk_no) {
            return Err(fail(unwanted()));
        }
        let records = &data.filled()[range.clone()];
        self.rules.check_first_line(records).map_err(|offence| {
            let place = Place {
                record: Some(origin.first_record + offence.record),
                byte: Some(origin.start_byte + offence.byte as u64),
                ..self.place(run)
            };
            fail(Error::new(ErrorKind::Record, offence.message).with_hint(offence.hint).at(place))
        })?;
        let bytes = match (&self.rewriter, scratch) {
            (Some(rewriter), Some(mut scratch)) => {
                run.tally
                    .time(Stage::Encode, || {
                        scratch.rewrite(|out| rewriter.rewrite(&self.rules, records, out))
                    })
                    .map_err(|bad| {
                        let place = Place {
                            record: Some(origin.first_record + bad.record),
                            byte: Some(origin.start_byte + bad.byte as u64),
                            ..self.place(run)
                        };
                        fail(Error::new(ErrorKind::Record, bad.message).at(place))
                    })?;
                scratch.freeze()
            }
            _ => data.freeze().slice(range),
        };
        feeder.queue.blocking_send(CopyChunk { origin, bytes }).map_err(|_| fail(unwanted()))
    }

    fn place(&self, run: &Run) -> Place {
        Place { file: Some(run.plan.files[self.file_no as usize].location.clone()), ..Place::default() }
    }
}
