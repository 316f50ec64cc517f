//! Ranges of a file whose records are mended where they need it, one after the other.

use super::{Before, End, RangedFile, Slice, found};
use crate::budget::Buffers;
use crate::feed::mender::Mender;
use crate::feed::sight::Sight;
use crate::feed::{Failure, Feeder};
use howdah_model::{ErrorKind, Omitted, Origin, Result, Stage};
use howdah_transcode::mend::{Mended, Span};
use howdah_transcode::split::State;
use std::io::{self, Read};

impl RangedFile {
    /// Sends a range as it is if its records are as the dialect says, else mended. Where the next range's
    /// first record begins is known only then.
    pub(super) fn load_lenient(
        &self,
        mender: &Mender,
        feeder: &Feeder,
        no: u64,
        buffers: Buffers,
    ) -> Result<(), Failure> {
        let run = &feeder.run;
        let fail = |error| Failure { chunk_no: no, error };
        let mut slice = self.slice(no, buffers);
        let sight = self.see(feeder, &mut slice).map_err(fail)?;
        let before = self.before.wait(no, || self.wanted(run, no)).map_err(fail)?;
        let start_byte = match before {
            Before::Record(byte) if byte < slice.end => byte,
            // States are never passed on here: each range ends with a record.
            Before::Record(_) | Before::State(_) | Before::Ended => {
                self.before.pass(no + 1, before);
                return self.count(feeder, no, 0).map(|_| ());
            }
        };
        // Chunks are smaller than memory, so the difference fits.
        let first = usize::try_from(start_byte - slice.start).unwrap_or(usize::MAX);
        match self.clean_end(feeder, &mut slice, first, sight).map_err(fail)? {
            Some(end) => self.send_as_it_is(feeder, slice, first, &end),
            None => self.send_mended(mender, feeder, slice, start_byte),
        }
    }

    /// Where the last record ends, if nothing is wrong with any.
    fn clean_end(
        &self,
        feeder: &Feeder,
        slice: &mut Slice,
        first: usize,
        sight: Sight,
    ) -> Result<Option<End>> {
        let run = &feeder.run;
        let from = (first, State::START);
        let sight = self.fit(run, slice.buffers.data.filled(), from, sight);
        // A line that COPY takes for the end of the data is one of the things to be mended.
        let found = found(&sight, slice.buffers.data.filled(), from).filter(|found| found.marker.is_none());
        let Some(found) = found else { return Ok(None) };
        let end = match self.read_tail(feeder, slice, &found) {
            Ok(end) => end,
            // Most likely a quote that nobody closes.
            Err(error) if error.kind() == ErrorKind::RecordTooLong => return Ok(None),
            Err(error) => return Err(error),
        };
        let oddity = sight.oddity(run, &self.emitter, slice.buffers.data.filled(), first..end.end);
        Ok(oddity.is_none().then_some(End { records: found.records + end.records, ..end }))
    }

    fn send_as_it_is(&self, feeder: &Feeder, slice: Slice, first: usize, end: &End) -> Result<(), Failure> {
        let no = slice.no;
        let end_byte = slice.start + end.end as u64;
        self.before.pass(no + 1, Before::Record(end_byte));
        if end.records > 0 {
            feeder.run.tally.file(self.file_no()).found_chunk(end.records, Omitted::default());
        }
        let before = self.count(feeder, no, end.records)?;
        if end.records == 0 {
            return Ok(());
        }
        let start_byte = slice.start + first as u64;
        let origin = self.origin(no, (start_byte, end_byte), before, end.records, Omitted::default());
        self.emitter.emit(feeder, origin, slice.buffers, first..end.end, None)
    }

    fn send_mended(
        &self,
        mender: &Mender,
        feeder: &Feeder,
        slice: Slice,
        start_byte: u64,
    ) -> Result<(), Failure> {
        let (run, no) = (&feeder.run, slice.no);
        let fail = |error| Failure { chunk_no: no, error };
        // Places of records that are left out need their numbers.
        let records_before = self.records.wait(no, || self.wanted(run, no)).map_err(fail)?;
        let span = Span { start_byte, border_byte: slice.end, records_before };
        let plain = Plain { file: self, feeder, no, offset: start_byte };
        // The records as they were read are read again by the mender, as far as it looks.
        let mut buffers = slice.buffers;
        let write = || mender.mend(feeder, plain, span, &mut buffers.data);
        let mended = run.tally.time(Stage::Encode, write).map_err(fail)?;
        mender.tell_end_marker(run, self.file_no());
        let after = if mended.ended { Before::Ended } else { Before::Record(mended.end_byte) };
        self.before.pass(no + 1, after);
        let Mended { rows, omitted, end_byte, .. } = mended;
        let records = rows + omitted.records();
        // Before the last range says that all chunks were found: a file is done when none of them is open.
        if records > 0 {
            run.tally.file(self.file_no()).found_chunk(rows, omitted);
        }
        self.count(feeder, no, records)?;
        if records == 0 {
            return Ok(());
        }
        let origin = self.origin(no, (start_byte, end_byte), records_before, rows, omitted);
        self.emitter.emit_mended(feeder, origin, buffers)
    }

    fn origin(
        &self,
        no: u64,
        bytes: (u64, u64),
        records_before: u64,
        records: u64,
        omitted: Omitted,
    ) -> Origin {
        Origin {
            file_no: self.file_no(),
            chunk_no: no,
            start_byte: bytes.0,
            end_byte: bytes.1,
            first_record: records_before + 1,
            records,
            omitted,
            digest: None,
        }
    }
}

/// The file from an offset on, as far as its data goes.
struct Plain<'a> {
    file: &'a RangedFile,
    feeder: &'a Feeder,
    no: u64,
    offset: u64,
}

impl Read for Plain<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.file.bytes.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let room = left.min(out.len());
        if room == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(self.feeder, self.no, self.offset, &mut out[..room]);
        let count = read.map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}
