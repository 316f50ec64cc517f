//! Splits a file that can only be read in order (compressed, or a pipe) as its bytes come, in one thread.

use super::blank_end;
use super::bounded::{Bounded, Limit};
use super::emit::Emitter;
use super::end_marker::{self, MARKER_BYTES};
use super::mender::{Mender, table_end};
use super::sight::{PIECE_BYTES, Sight};
use super::stored::{Opened, StoredBytes};
use super::{Failure, Feeder, first_byte};
use crate::budget::{Buffer, Buffers};
use crate::done;
use crate::pipeline::{Receipts, Run, unwanted};
use howdah_model::{
    Borders, Care, Codec, Error, ErrorKind, FilePlan, Mend, Omitted, OnError, Origin, Place, Plan, Reading,
    Receipt, Result, Stage, TablePlan, counted,
};
use howdah_transcode::dialect::{TABLE_END_BYTES, TableEnd};
use howdah_transcode::encode::{self, Malformed};
use howdah_transcode::inspect::{Oddity, OddityKind};
use howdah_transcode::mend::{Counts, Field, Shape, Span};
use howdah_transcode::split::{self, State, Tail};
use howdah_transcode::{decompress, infer, mend};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// Makes one file into chunks.
pub(super) fn feed(feeder: &Feeder, file_no: u32, opened: Opened, buffers: Buffers) -> Result<(), Failure> {
    let location = opened.object.location().to_owned();
    let in_file = |failure: Failure| Failure { error: failure.error.in_file(&location), ..failure };
    let mut splitter =
        Splitter::new(feeder, file_no, opened).map_err(|error| in_file(Failure { chunk_no: 0, error }))?;
    let mut buffers = Some(buffers);
    while !splitter.ended {
        let chunk_no = splitter.borders.chunk_no(splitter.offset);
        let taken = buffers.take().map_or_else(|| feeder.take_buffers(), Ok);
        let taken = taken.map_err(|error| in_file(Failure { chunk_no, error }))?;
        splitter.next_chunk(taken).map_err(in_file)?;
    }
    if let Some((record, byte)) = splitter.counted().and_then(|counts| counts.end_marker()) {
        end_marker::tell(&feeder.run, file_no, record, byte);
    }
    if let Some((record, byte)) = splitter.other_table() {
        let chunk_no = splitter.borders.chunk_no(splitter.offset) + 1;
        let told = tell_other_table(
            &feeder.run,
            &location,
            Place { record: Some(record), byte: Some(byte), ..Place::default() },
        );
        told.map_err(|error| in_file(Failure { chunk_no, error }))?;
    }
    if splitter.lacks_end.load(Relaxed) {
        feeder.run.warn(format!(
            "{location} is BGZF and has no empty block at its end: it may be cut short; compare its size with the original"
        ));
    }
    feeder.run.tally.file(file_no).read_done.store(true, Relaxed);
    feeder.run.tell_if_done(file_no);
    Ok(())
}

/// What follows is not loaded: that is an error only where it was asked for.
fn tell_other_table(run: &Run, location: &str, place: Place) -> Result<()> {
    if run.plan.job.shaping.all_tables {
        let message =
            "another table begins here, too far from the beginning of what can only be read in order";
        return Err(Error::new(ErrorKind::Unsupported, message).at(place).with_hint(
            "decompress the file, so that all its tables can be found; or leave --all-tables out to load the first alone",
        ));
    }
    let (record, byte) = (place.record.unwrap_or_default(), place.byte.unwrap_or_default());
    let message = format!(
        "another table begins at record {record}, byte {byte}, of {location}: the first one is loaded"
    );
    run.warn(message);
    Ok(())
}

struct Splitter<'a> {
    feeder: &'a Feeder,
    borders: Borders,
    emitter: Emitter,
    mender: Option<Mender>,
    /// Where records that go untouched may end.
    end: Option<TableEnd>,
    /// Number and byte of the record that another table begins with.
    other_table: Option<(u64, u64)>,
    /// What was read may be cut short.
    lacks_end: Arc<AtomicBool>,
    plain: Plain,
    /// Plain offset of the next byte from `plain`.
    offset: u64,
    records: u64,
    /// What the reader of a file that is rewritten has counted.
    counts: Option<Arc<Counts>>,
    /// Of that, what the chunks so far account for.
    omitted: Omitted,
    receipts: Receipts,
    /// The file has no version: only the bytes of its chunks tell whether it is the same as before.
    digests: bool,
    ended: bool,
}

/// Where a chunk ends in its buffer, and how many records it has.
#[derive(Clone, Copy)]
struct Cut {
    end: usize,
    records: u64,
    last_border: usize,
}

impl<'a> Splitter<'a> {
    fn new(feeder: &'a Feeder, file_no: u32, opened: Opened) -> Result<Splitter<'a>> {
        let run = &feeder.run;
        let file = run.plan.file(file_no);
        let care = run.plan.table(file.table_no).care;
        // Nothing else tells whether a run that goes on gets the same bytes.
        let digests = file.version.is_none() && run.ledger.is_some();
        let mut stored = StoredBytes::new(run, file_no, opened, &feeder.handle);
        if digests {
            stored.expect_codec(run, file_no)?;
        }
        let (waited_ns, lacks_end) = (stored.waited_ns(), stored.lacks_end());
        let decoder = plain_of(feeder, file_no, stored)?;
        let mut splitter = Splitter {
            feeder,
            borders: run.plan.borders(file_no),
            emitter: Emitter::new(run, file_no)?,
            mender: Mender::new(run, file_no),
            end: table_end(&run.plan, file_no),
            other_table: None,
            lacks_end,
            plain: Plain { decoder, waited_ns, back: Vec::new(), back_from: 0 },
            offset: 0,
            records: 0,
            counts: run.tally.file(file_no).mends_so_far().filter(|_| care == Care::Rewritten),
            omitted: Omitted::default(),
            receipts: run.receipts(file_no),
            digests,
            ended: false,
        };
        splitter.skip_header(first_byte(&run.plan, file))?;
        Ok(splitter)
    }

    fn skip_header(&mut self, data_start_byte: u64) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        while self.offset < data_start_byte {
            let want = usize::try_from(data_start_byte - self.offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let count = self.plain.read(self.feeder, &mut piece[..want])?;
            if count == 0 {
                return Err(Error::new(ErrorKind::SourceChanged, "the file ends inside its header"));
            }
            self.offset += count as u64;
        }
        Ok(())
    }

    /// Fills one chunk, from the current offset to the end of the last record that starts before the border.
    fn next_chunk(&mut self, mut buffers: Buffers) -> Result<(), Failure> {
        let run = &self.feeder.run;
        let start_byte = self.offset;
        let chunk_no = self.borders.chunk_no(start_byte);
        let fail = |error| Failure { chunk_no, error };
        if !run.halt.wants(self.emitter.file_no, chunk_no) {
            return Err(fail(unwanted()));
        }
        let border_byte = self.borders.end_byte(chunk_no);
        let mut sight = Sight::new(State::START, 0);
        let filled = self.fill(&mut buffers.data, border_byte, &mut sight);
        if self.mends(&filled, &buffers.data, &sight) {
            return self.next_mended(buffers, start_byte, border_byte);
        }
        let cut = filled.map_err(fail)?;
        self.look_behind_marker(&buffers.data.filled()[cut.end..], cut, start_byte).map_err(fail)?;
        let (cut, oddity) = self.look(&buffers.data, cut, start_byte, &sight).map_err(fail)?;
        let cut = self.without_blank_end(&buffers.data.filled()[..cut.end], cut, start_byte);
        let omitted = self.omitted_since();
        let origin = Origin {
            file_no: self.emitter.file_no,
            chunk_no,
            start_byte,
            end_byte: start_byte + cut.end as u64,
            first_record: self.records + 1,
            records: cut.records,
            omitted,
            digest: self.digests.then(|| XxHash3_64::oneshot(&buffers.data.filled()[..cut.end])),
        };
        self.records += cut.records;
        // Behind the last record that is stored some may have been left out: that must be known, too.
        if cut.records == 0 && omitted == Omitted::default() {
            return Ok(());
        }
        match self.receipts.get(&chunk_no) {
            Some(receipt) => self.skip(&origin, receipt).map_err(fail),
            None if run.is_over => Err(fail(done::beyond_the_end(&origin))),
            None => {
                run.tally.file(origin.file_no).found_chunk(origin.records, omitted);
                self.emitter.emit(self.feeder, origin, buffers, 0..cut.end, oddity)
            }
        }
    }

    /// The file may end with this chunk, and with blank lines, which an earlier run may have stored.
    fn without_blank_end(&self, records: &[u8], cut: Cut, start_byte: u64) -> Cut {
        let receipt = self.receipts.get(&self.borders.chunk_no(start_byte));
        let is_stored = receipt.is_some_and(|receipt| receipt.end_byte == start_byte + cut.end as u64);
        let is_last = !is_stored && self.ended && self.other_table.is_none() && cut.last_border == cut.end;
        let left_out = is_last.then(|| blank_end::leave_out(&self.feeder.run, self.emitter.file_no, records));
        let shorter = |(end, lines)| Cut { end, records: cut.records - lines, last_border: end };
        left_out.flatten().map_or(cut, shorter)
    }

    /// Looks for what contradicts the dialect in records that are to be stored. Where that is another table,
    /// the data ends before it. A chunk that is stored already and ends elsewhere may have ended so, too.
    fn look(
        &mut self,
        data: &Buffer,
        cut: Cut,
        start_byte: u64,
        sight: &Sight,
    ) -> Result<(Cut, Option<Oddity>)> {
        let chunk_no = self.borders.chunk_no(start_byte);
        let end_byte = start_byte + cut.end as u64;
        if self.receipts.get(&chunk_no).is_some_and(|receipt| receipt.end_byte == end_byte) {
            return Ok((cut, None));
        }
        let records = &data.filled()[..cut.end];
        let oddity = sight.oddity(&self.feeder.run, &self.emitter, records, 0..cut.end);
        let (Some(end), Some(found)) = (&self.end, &oddity) else { return Ok((cut, oddity)) };
        if found.kind != OddityKind::Width {
            return Ok((cut, oddity));
        }
        let mut behind = records[found.byte..].to_vec();
        behind.truncate(TABLE_END_BYTES);
        let mut at_end = self.ended;
        if behind.len() < TABLE_END_BYTES && !at_end {
            let mut ahead = Vec::new();
            let missing = (TABLE_END_BYTES - behind.len()) as u64;
            Lent { feeder: self.feeder, plain: &mut self.plain }
                .take(missing)
                .read_to_end(&mut ahead)
                .map_err(plain_error)?;
            self.plain.put_back(&ahead);
            at_end = (ahead.len() as u64) < missing;
            behind.extend(ahead);
        }
        if !end.is_at(&behind, at_end) {
            return Ok((cut, oddity));
        }
        self.ended = true;
        self.other_table = Some((self.records + found.record + 1, start_byte + found.byte as u64));
        Ok((Cut { end: found.byte, records: found.record, last_border: found.byte }, None))
    }

    /// What follows the marker that `behind` begins with is looked for until there is some.
    fn look_behind_marker(&mut self, behind: &[u8], cut: Cut, start_byte: u64) -> Result<()> {
        let Some(behind) = behind.get(MARKER_BYTES..) else { return Ok(()) };
        let mut is_data = split::is_data(behind);
        let mut piece = vec![0; PIECE_BYTES];
        while !is_data {
            let count = self.plain.read(self.feeder, &mut piece)?;
            if count == 0 {
                return Ok(());
            }
            is_data = split::is_data(&piece[..count]);
        }
        let (record, byte) = (self.records + cut.records + 1, start_byte + cut.end as u64);
        end_marker::tell(&self.feeder.run, self.emitter.file_no, record, byte);
        Ok(())
    }

    /// What was counted while records of the file were mended or rewritten.
    fn counted(&self) -> Option<Arc<Counts>> {
        self.feeder.run.tally.file(self.emitter.file_no).mends_so_far()
    }

    /// Number and byte of the record that another table begins with.
    fn other_table(&self) -> Option<(u64, u64)> {
        self.other_table.or_else(|| self.counted()?.other_table())
    }

    /// Records that the reader of a rewritten file has passed over since the last chunk. It reads ahead,
    /// always as far for the same bytes, so that each run counts the same for a chunk; the last chunk has the
    /// rest.
    fn omitted_since(&mut self) -> Omitted {
        let Some(counts) = &self.counts else { return Omitted::default() };
        let now = Omitted {
            left_out: counts.mended(Mend::LeftOut),
            blank: counts.mended(Mend::BlankRow),
            rejected: 0,
        };
        let before = std::mem::replace(&mut self.omitted, now);
        Omitted { left_out: now.left_out - before.left_out, blank: now.blank - before.blank, rejected: 0 }
    }

    /// With `--lenient`, something is wrong with a record of this chunk.
    fn mends(&self, filled: &Result<Cut>, data: &Buffer, sight: &Sight) -> bool {
        if self.mender.is_none() {
            return false;
        }
        match filled {
            // A line that COPY takes for the end of the data ends it before the file does.
            Ok(cut) if cut.end < data.filled().len() => true,
            Ok(cut) => {
                let records = &data.filled()[..cut.end];
                sight.oddity(&self.feeder.run, &self.emitter, records, 0..cut.end).is_some()
            }
            // Most likely a quote that nobody closes.
            Err(error) => error.kind() == ErrorKind::RecordTooLong,
        }
    }

    /// Goes back to where the chunk began and mends its records.
    fn next_mended(
        &mut self,
        mut buffers: Buffers,
        start_byte: u64,
        border_byte: u64,
    ) -> Result<(), Failure> {
        let chunk_no = self.borders.chunk_no(start_byte);
        let fail = |error| Failure { chunk_no, error };
        self.plain.put_back(buffers.data.filled());
        let span = Span { start_byte, border_byte, records_before: self.records };
        let plain = Lent { feeder: self.feeder, plain: &mut self.plain };
        let Some(mender) = &self.mender else { return Ok(()) };
        let write = || mender.mend(self.feeder, plain, span, &mut buffers.data);
        let mended = self.feeder.run.tally.time(Stage::Encode, write).map_err(fail)?;
        self.plain.put_back(&mended.rest);
        self.offset = mended.end_byte;
        self.ended = mended.ended;
        let origin = Origin {
            file_no: self.emitter.file_no,
            chunk_no,
            start_byte,
            end_byte: mended.end_byte,
            first_record: self.records + 1,
            records: mended.rows,
            omitted: mended.omitted,
            digest: self.digests.then(|| XxHash3_64::oneshot(buffers.data.filled())),
        };
        let records = mended.rows + mended.omitted.records();
        self.records += records;
        if records == 0 {
            return Ok(());
        }
        match self.receipts.get(&chunk_no) {
            Some(receipt) => self.skip(&origin, receipt).map_err(fail),
            None if self.feeder.run.is_over => Err(fail(done::beyond_the_end(&origin))),
            None => {
                self.feeder.run.tally.file(origin.file_no).found_chunk(origin.records, origin.omitted);
                self.emitter.emit_mended(self.feeder, origin, buffers)
            }
        }
    }

    /// A chunk that is in the table already must be the one that was stored.
    fn skip(&self, origin: &Origin, receipt: &Receipt) -> Result<()> {
        let same_place = (receipt.start_byte, receipt.end_byte, receipt.rows + receipt.omitted.rejected)
            == (origin.start_byte, origin.end_byte, origin.records);
        // A ledger written by a howdah that took no digests holds none.
        let same_bytes = receipt.digest.is_none() || receipt.digest == origin.digest;
        if !same_place || !same_bytes {
            let place = Place {
                record: Some(origin.first_record),
                byte: Some(origin.start_byte),
                ..Place::default()
            };
            let difference = if same_place {
                "as many bytes, but not the same".to_owned()
            } else {
                format!(
                    "expected {} up to byte {}, got {} up to byte {}",
                    counted(receipt.rows + receipt.omitted.rejected, "record"),
                    receipt.end_byte,
                    origin.records,
                    origin.end_byte
                )
            };
            let chunk_no = origin.chunk_no;
            return Err(Error::new(
                ErrorKind::SourceChanged,
                format!(
                    "chunk {chunk_no} holds other records than an earlier run stored from it: {difference}"
                ),
            )
            .at(place)
            .with_hint(done::other_bytes_hint(&self.feeder.run, origin.file_no)));
        }
        let run = &self.feeder.run;
        let omitted = Omitted { rejected: receipt.omitted.rejected, ..origin.omitted };
        run.tally.known_chunk(origin.file_no, receipt.rows, omitted);
        run.stored(origin.file_no, receipt.rows, origin.end_byte - origin.start_byte, true);
        Ok(())
    }

    /// Reads up to the border and on to the end of the record that crosses it.
    fn fill(&mut self, buffer: &mut Buffer, border_byte: u64, sight: &mut Sight) -> Result<Cut> {
        let mut cut = Cut { end: 0, records: 0, last_border: 0 };
        while self.offset < border_byte {
            let want = usize::try_from(border_byte - self.offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let old = buffer.filled().len();
            if self.read(buffer, want, &cut)? == 0 {
                return Ok(self.end(cut, old));
            }
            sight.see(&self.feeder.run, &self.emitter, buffer.filled());
            cut.records = sight.scan.records;
            cut.last_border = sight.scan.last_border.unwrap_or(0);
            if let Some(marker) = sight.scan.end_marker {
                return Ok(self.end(cut, 0_usize.saturating_add_signed(marker)));
            }
        }
        self.fill_tail(buffer, sight.scan.state, cut)
    }

    fn fill_tail(&mut self, buffer: &mut Buffer, mut state: State, mut cut: Cut) -> Result<Cut> {
        while !state.at_record_start() {
            let old = buffer.filled().len();
            if self.read(buffer, PIECE_BYTES, &cut)? == 0 {
                return Ok(self.end(cut, old));
            }
            let piece = &buffer.filled()[old..];
            match self.emitter.rules.tail(state, piece) {
                Tail::Border(border) => {
                    self.plain.put_back(&piece[border..]);
                    self.offset -= (piece.len() - border) as u64;
                    buffer.truncate(old + border);
                    cut.records += 1;
                    break;
                }
                Tail::EndMarker(marker) => return Ok(self.end(cut, old.saturating_add_signed(marker))),
                Tail::Unfinished(after) => state = after,
            }
        }
        cut.end = buffer.filled().len();
        Ok(cut)
    }

    /// The data ends at `end` of the buffer; what follows the last border is a record without a line ending.
    fn end(&mut self, cut: Cut, end: usize) -> Cut {
        self.ended = true;
        Cut { end, records: cut.records + u64::from(end > cut.last_border), ..cut }
    }

    /// Reads at most `want` bytes, making room for them.
    fn read(&mut self, buffer: &mut Buffer, want: usize, cut: &Cut) -> Result<usize> {
        let grow = self.feeder.run.budget.grow_as_read(buffer, want);
        let room = self.feeder.handle.block_on(grow).map_err(|error| {
            let record = self.records + cut.records + 1;
            let byte = self.offset - (buffer.filled().len() - cut.last_border) as u64;
            error.at(Place { record: Some(record), byte: Some(byte), ..Place::default() })
        })?;
        let count = self.plain.read(self.feeder, &mut buffer.spare()[..room])?;
        buffer.advance(count);
        self.offset += count as u64;
        Ok(count)
    }
}

/// The bytes to split: those of the file, decompressed and in an encoding that the server reads, or the COPY
/// text that its records are rewritten to.
fn plain_of(feeder: &Feeder, file_no: u32, stored: StoredBytes) -> Result<Box<dyn Read + Send>> {
    let run = &feeder.run;
    let file = run.plan.file(file_no);
    let table = run.plan.table(file.table_no);
    let helpers = Arc::clone(&feeder.unpackers);
    let plain = decompress::ahead(file.codec, stored, helpers, feeder.ahead_bytes)?;
    let plain = bounded(feeder, file_no, plain);
    let plain = plain_utf8(file, recoding(&run.plan, file), plain, 0)?;
    match rewriting_shape(&run.plan, file_no) {
        Some(shape) => mend::reader(&shape, plain, run.tally.file(file_no).fresh_mends(table.fields.len())),
        None => Ok(plain),
    }
}

/// A bomb is an error.
fn bounded(feeder: &Feeder, file_no: u32, plain: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let run = &feeder.run;
    if run.plan.file(file_no).codec == Codec::None {
        return plain;
    }
    let limit = run.plan.job.max_decompressed_bytes.map_or(Limit::Ratio, Limit::Bytes);
    let tally = Arc::clone(run);
    let stored_bytes = move || tally.tally.file(file_no).bytes_read.load(Relaxed);
    Box::new(Bounded::new(plain, stored_bytes, limit))
}

/// The encoding that a file is rewritten from, and what becomes of what is no character of it.
pub(crate) type Recoding = Option<(String, Malformed)>;

/// What is no character is left to whoever mends records or keeps them as rejects, if there is somebody.
pub(crate) fn recoding(plan: &Plan, file: &FilePlan) -> Recoding {
    let goes_on = plan.job.shaping.lenient || plan.job.bad_records.on_error == OnError::Skip;
    let malformed = if goes_on { Malformed::Marked } else { Malformed::Refused };
    Some((plan.table(file.table_no).recode.clone()?, malformed))
}

/// A file's data as the server reads it, or in UTF-8; `plain` begins at byte `from` of the plain bytes.
pub(crate) fn plain_utf8(
    file: &FilePlan,
    recoding: Recoding,
    mut plain: Box<dyn Read + Send>,
    from: u64,
) -> Result<Box<dyn Read + Send>> {
    if let Some(end_byte) = file.data_end_byte {
        plain = Box::new(plain.take(end_byte.saturating_sub(from)));
    }
    match recoding {
        Some((encoding, malformed)) => encode::to_utf8(&encoding, plain, malformed),
        None => Ok(plain),
    }
}

/// How the records of a file are read that are all rewritten.
pub(crate) fn rewriting_shape(plan: &Plan, file_no: u32) -> Option<Shape> {
    let file = plan.file(file_no);
    let table = plan.table(file.table_no);
    let dialect = table.dialect.as_ref().filter(|_| table.care == Care::Rewritten)?;
    Some(Shape {
        dialect: dialect.clone(),
        fields: fields(table),
        names: file.header.clone(),
        data_start_byte: file.data_start_byte,
        data_end_byte: None,
        end: table_end(plan, file_no),
        lenient: plan.job.shaping.lenient,
        skips: plan.job.bad_records.on_error == OnError::Skip,
        nul: plan.job.shaping.nul,
        // The reader may hold two of them, and the chunk's buffer a third.
        record_bytes_max: usize::try_from(plan.record_bytes_max / 2).unwrap_or(usize::MAX),
        read: infer::read,
    })
}

/// What becomes of each field.
fn fields(table: &TablePlan) -> Vec<Field> {
    let is_null = table.dialect.as_ref().is_some_and(|dialect| dialect.nulls == [""]);
    let made = || table.create.iter().flat_map(|create| &create.columns).filter(|_| is_null);
    let field = |(column, reading): (&Option<String>, &Option<Reading>)| Field {
        column: column.clone(),
        reading: reading.clone(),
        empty_is_null: made().any(|made| made.empty_is_null && Some(&made.name) == column.as_ref()),
    };
    table.fields.iter().zip(&table.readings).map(field).collect()
}

/// The decoder, with room to take back what was read too far, and a clock.
struct Plain {
    decoder: Box<dyn Read + Send>,
    waited_ns: Arc<AtomicU64>,
    back: Vec<u8>,
    back_from: usize,
}

impl Plain {
    fn read(&mut self, feeder: &Feeder, out: &mut [u8]) -> Result<usize> {
        let back = &self.back[self.back_from..];
        if !back.is_empty() {
            let count = back.len().min(out.len());
            out[..count].copy_from_slice(&back[..count]);
            self.back_from += count;
            return Ok(count);
        }
        let start = Instant::now();
        let count = self.decoder.read(out);
        let waited = Duration::from_nanos(self.waited_ns.swap(0, Relaxed));
        feeder.run.tally.spend(Stage::Read, waited);
        feeder.run.tally.spend(Stage::Decompress, start.elapsed().saturating_sub(waited));
        count.map_err(plain_error)
    }

    fn put_back(&mut self, bytes: &[u8]) {
        let rest = &self.back[self.back_from..];
        self.back = [bytes, rest].concat();
        self.back_from = 0;
    }
}

/// The plain bytes, for whoever reads on from here.
struct Lent<'a> {
    feeder: &'a Feeder,
    plain: &'a mut Plain,
}

impl Read for Lent<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.plain.read(self.feeder, out).map_err(io::Error::other)
    }
}

/// An error of the source comes through the decoder unchanged; anything else is damaged data.
pub(crate) fn plain_error(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => decompress::error(error),
    }
}
