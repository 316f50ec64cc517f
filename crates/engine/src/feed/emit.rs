//! The last step left of the queue: a buffer with whole records becomes a chunk, is made ready for COPY, and
//! waits in the queue for a session.

use super::encoders::Encoders;
use super::lanes::Lanes;
use super::numbered::{Numbered, expect_place};
use super::oddities::Look;
use super::sieve::Sieve;
use super::{Asker, Failure, Feeder};
use crate::budget::{Buffer, Buffers};
use crate::pipeline::{Run, unwanted};
use crate::plan::field_targets;
use crate::rejects;
use crate::values;
use crate::widen::Misfit;
use bytes::Bytes;
use howdah_model::arrival::place_of;
use howdah_model::plan::{Care, Encode};
use howdah_model::{CopyChunk, Error, ErrorKind, Faster, Origin, Place, Result, Stage, TablePlan, sqlstate};
use howdah_target::sql::{quote_ident, quote_relation};
use howdah_transcode::cells::Cells;
use howdah_transcode::encode::{OneNull, Rewriter};
use howdah_transcode::inspect::{Oddity, OddityKind};
use howdah_transcode::number::Numbers;
use howdah_transcode::repeated_header::RepeatedHeader;
use howdah_transcode::route::Router;
use howdah_transcode::split::Rules;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What the chunks of one file go through.
pub(super) struct Emitter {
    pub(super) file_no: u32,
    pub(super) rules: Rules,
    pub(super) rewriter: Option<Rewriter>,
    /// Gives NULL the spelling that COPY is told, where the file has several.
    pub(super) one_null: Option<OneNull>,
    /// Writes records in another form for the server's sake.
    pub(super) faster: Encoders,
    /// Gives rows their numbers.
    pub(super) numbered: Option<Numbered>,
    /// Lays rows out by leaf partition.
    pub(super) lanes: Option<Lanes>,
    /// Looks at records that were not read yet.
    look: Option<Look>,
    /// Backslashes of COPY's text format were told of, or the sample spoke against them.
    escape_told: AtomicBool,
    /// Reads the fields of records that go untouched.
    cells: Option<Cells>,
    /// Finds records that say the names of the header again.
    header: Option<RepeatedHeader>,
    /// The byte that COPY is told for a quote of files that have none.
    forbidden: Option<u8>,
    /// All records are read and written anew before they get here.
    is_rewritten: bool,
    /// They came in this encoding, and not in UTF-8.
    pub(super) recode: Option<String>,
    /// Sets records aside that the table may not take, where these do not end the load.
    sieve: Option<Sieve>,
}

impl Emitter {
    pub(super) fn new(run: &Run, file_no: u32) -> Result<Emitter> {
        let plan = &run.plan;
        let table = plan.table_of(file_no);
        let rewriter = match table.encode {
            Encode::PassThrough => None,
            Encode::CopyText => Some(Rewriter::new(&table.format, &field_targets(table, &table.format))?),
        };
        let eol = plan.file(file_no).eol;
        let (faster, lanes) = (Encoders::new(table, eol), Lanes::new(table, eol));
        let numbered = Numbered::new(table, eol);
        let watched = table.dialect.as_ref().filter(|_| table.care == Care::Watched);
        let rules = super::rules(run, file_no)?;
        let look = Look::new(table, &rules, plan.server_version)?;
        let cells = watched.map(Cells::new).transpose()?;
        Ok(Emitter {
            file_no,
            rules,
            rewriter,
            one_null: watched.and_then(OneNull::new),
            faster,
            numbered,
            lanes,
            look,
            escape_told: AtomicBool::new(plan.file(file_no).foreign_escapes),
            cells,
            header: repeated_header(table, &plan.file(file_no).header)?,
            forbidden: table.format.unquoted.then_some(table.format.quote),
            is_rewritten: table.care == Care::Rewritten,
            recode: table.recode.clone(),
            sieve: Sieve::new(plan, file_no),
        })
    }

    /// Encodes and queues the records in `range` of the data buffer before the one with an `oddity`.
    /// Whichever buffer is not sent goes back to the pool here.
    pub(super) fn emit(
        &self,
        feeder: &Feeder,
        origin: Origin,
        buffers: Buffers,
        range: Range<usize>,
        oddity: Option<Oddity>,
    ) -> Result<(), Failure> {
        let run = &feeder.run;
        self.tell_copy_escape(run, &origin, &buffers.data.filled()[range.clone()]);
        if let Some(sieve) = &self.sieve {
            let kept = self.is_rewritten;
            return self.emit_sifted(sieve, feeder, origin, buffers, (range, kept));
        }
        let records = &buffers.data.filled()[range.clone()];
        let oddity = oddity.map(|oddity| self.oddity(run, &origin, oddity));
        let forbidden = self.forbidden_refusals(run, &origin, records).into_iter().next();
        let header = self.header_refusals(run, &origin, records).into_iter().next();
        let refusal = earlier(earlier(self.first_line_refusal(run, &origin, records), oddity), forbidden);
        let refusal = earlier(refusal, header);
        self.send(feeder, origin, buffers, range, refusal)
    }

    /// The same of records that were mended: nothing is wrong with them, but for those that are kept. What
    /// they came from is not needed any more.
    pub(super) fn emit_mended(
        &self,
        feeder: &Feeder,
        origin: Origin,
        buffers: Buffers,
    ) -> Result<(), Failure> {
        let range = 0..buffers.data.filled().len();
        if let Some(sieve) = &self.sieve {
            return self.emit_sifted(sieve, feeder, origin, buffers, (range, true));
        }
        let records = &buffers.data.filled()[range.clone()];
        let refusal = self.header_refusals(&feeder.run, &origin, records).into_iter().next();
        self.send(feeder, origin, buffers, range, refusal)
    }

    /// Encodes and queues the records before the one that is refused.
    fn send(
        &self,
        feeder: &Feeder,
        origin: Origin,
        Buffers { mut data, mut scratch }: Buffers,
        range: Range<usize>,
        refusal: Option<Refusal>,
    ) -> Result<(), Failure> {
        let run = &feeder.run;
        let fail = |error: Error| Failure { chunk_no: origin.chunk_no, error };
        if !run.halt.wants(self.file_no, origin.chunk_no) {
            return Err(fail(unwanted()));
        }
        let records = &data.filled()[range.clone()];
        let good = 0..refusal.as_ref().map_or(records.len(), |bad| bad.offset);
        self.widen(feeder, &origin, records, good.clone()).map_err(fail)?;
        let range = self.spell_null(run, &mut data, range.start..range.start + good.end);
        self.make_partitions(feeder, &origin, &data.filled()[range.clone()]).map_err(fail)?;
        let for_lanes = self.lanes.as_ref().map(|lanes| lanes.take_buffers(&mut scratch)).unwrap_or_default();
        let for_numbers = self.numbered.as_ref().map(|by| by.take_buffers(&mut scratch)).unwrap_or_default();
        let (bytes, faster, refusal) = match (&self.rewriter, scratch.pop()) {
            (Some(rewriter), Some(mut last)) => {
                let records = &data.filled()[range];
                run.tally.time(Stage::Encode, || {
                    let refused = last.rewrite(|out| self.rewrite(run, &origin, rewriter, records, out));
                    let text = last.freeze();
                    let faster = self.faster.encode(&text, scratch);
                    (text, faster, refused.or(refusal))
                })
            }
            (_, last) => {
                let records = &data.filled()[range.clone()];
                scratch.extend(last);
                let faster = run.tally.time(Stage::Encode, || self.faster.encode(records, scratch));
                (data.freeze().slice(range), faster, refusal)
            }
        };
        let (origin, refused) = match refusal {
            None => (origin, None),
            Some(bad) if bad.record == 0 => return Err(fail(bad.error)),
            Some(bad) => {
                let end_byte = origin.start_byte + bad.offset as u64;
                (Origin { records: bad.record, end_byte, ..origin }, Some(bad.error))
            }
        };
        let faster = match &self.lanes {
            Some(lanes) => {
                run.tally.time(Stage::Encode, || lanes.lay_out(&bytes, faster, for_lanes, origin.chunk_no))
            }
            None => faster,
        };
        let chunk = CopyChunk { origin, bytes, faster, refused, aside: Vec::new() };
        self.queue(feeder, chunk, for_numbers)
    }

    /// Gives NULL one spelling in these records, and says where they stand then.
    pub(super) fn spell_null(&self, run: &Run, data: &mut Buffer, range: Range<usize>) -> Range<usize> {
        let Some(one_null) = &self.one_null else { return range };
        let start = range.start;
        let respell = || one_null.respell(&mut data.filled_mut()[range]);
        start..start + run.tally.time(Stage::Encode, respell)
    }

    /// Gives the rows their numbers and queues them. Of a chunk with doubtful records each that is sent gets
    /// its number then.
    pub(super) fn queue(
        &self,
        feeder: &Feeder,
        mut chunk: CopyChunk,
        for_numbers: Vec<Buffer>,
    ) -> Result<(), Failure> {
        let origin = chunk.origin;
        let file = feeder.run.plan.file(self.file_no);
        let staging = feeder.run.plan.table(file.table_no).staging.as_ref();
        let fail = |error| Failure { chunk_no: origin.chunk_no, error };
        expect_place(staging, (&file.location, file.input_no), &origin).map_err(fail)?;
        if chunk.aside.is_empty() {
            chunk.faster = self.numbered(feeder, &origin, &chunk.bytes, chunk.faster, for_numbers);
        }
        let joint = self.joint(&feeder.run, &chunk);
        if feeder.hand_over(chunk, joint) { Ok(()) } else { Err(fail(unwanted())) }
    }

    fn asker<'a>(&self, feeder: &'a Feeder, origin: &Origin) -> Asker<'a> {
        Asker::new(&feeder.run, &feeder.handle, origin.chunk())
    }

    /// The rows with their numbers, where these come from the client.
    fn numbered(
        &self,
        feeder: &Feeder,
        origin: &Origin,
        bytes: &Bytes,
        faster: Option<Faster>,
        buffers: Vec<Buffer>,
    ) -> Option<Faster> {
        let Some(numbered) = &self.numbered else { return faster };
        let run = &feeder.run;
        let file = run.plan.file(self.file_no);
        let is_staged = run.plan.table(file.table_no).staging.is_some();
        let numbers = if is_staged {
            place_of(file.input_no, origin.start_byte).map(|first| Numbers {
                first,
                increment: 1,
                count: origin.records,
            })
        } else {
            run.numbers.take(&self.asker(feeder, origin), &numbered.plan, origin.records)
        };
        let Some(numbers) = numbers else { return faster };
        run.tally.time(Stage::Encode, || numbered.number(bytes, faster, buffers, &numbers))
    }

    /// A line ending that COPY of the whole file would refuse, and COPY of the chunk would not.
    pub(super) fn first_line_refusal(&self, run: &Run, origin: &Origin, records: &[u8]) -> Option<Refusal> {
        let offence = self.rules.check_first_line(records).err()?;
        let offset = self.rules.record_start(records, offence.record).unwrap_or(offence.byte);
        let error = Error::new(ErrorKind::Record, offence.message).with_hint(offence.hint);
        Some(self.refusal(run, origin, offence.record, offset, error))
    }

    /// Records with a byte that COPY would take for a quote, in a file that has none.
    pub(super) fn forbidden_refusals(&self, run: &Run, origin: &Origin, records: &[u8]) -> Vec<Refusal> {
        let Some(byte) = self.forbidden.filter(|byte| records.contains(byte)) else {
            return Vec::new();
        };
        let refusal = |(no, range): (u64, Range<usize>)| {
            let message = format!(
                "it holds the byte 0x{byte:02x}, which COPY is told for a quote of a file without any"
            );
            let error = Error::new(ErrorKind::Record, message)
                .with_hint(format!("give a byte that the file does not hold: --quote '\\x{:02x}'", byte + 1));
            self.refusal(run, origin, no, range.start, error)
        };
        let ranges = (0..).zip(self.rules.ranges(records));
        ranges.filter(|(_, range)| records[range.clone()].contains(&byte)).map(refusal).collect()
    }

    /// Records that say the names of the header again.
    pub(super) fn header_refusals(&self, run: &Run, origin: &Origin, records: &[u8]) -> Vec<Refusal> {
        let Some(header) = &self.header else { return Vec::new() };
        let refusal = |(no, range): (u64, Range<usize>)| {
            let error = Error::new(ErrorKind::Record, "the record says the names of the header again")
                .with_hint(
                    "files put together have their headers among the records: --on-error skip keeps such records apart; if it is one of \
                     values, make the table with types that hold them, and leave out --create for --format csv --header, and --delimiter if \
                     that is no comma",
                );
            self.refusal(run, origin, no, range.start, error)
        };
        header.find(&self.rules, records).into_iter().map(refusal).collect()
    }

    /// Nothing is odd about any of these records.
    pub(super) fn is_as_told(&self, run: &Run, records: &[u8]) -> bool {
        self.look.as_ref().is_none_or(|look| look.is_as_told(run, records))
    }

    /// Records are looked at for their bytes alone.
    pub(super) fn looks_at_characters(&self) -> bool {
        matches!(self.look, Some(Look::Characters(_)))
    }

    /// The first record that contradicts the dialect that was found, of which COPY would store what it does
    /// not mean, or that no database can store.
    pub(super) fn look(&self, run: &Run, records: &[u8]) -> Option<Oddity> {
        self.look.as_ref()?.look(run, records)
    }

    /// Says once that backslashes which are kept as they are may be escapes.
    fn tell_copy_escape(&self, run: &Run, origin: &Origin, records: &[u8]) {
        let found = self.look.as_ref().filter(|_| !self.escape_told.load(Relaxed));
        let Some(at) = found.and_then(|look| look.copy_escape(records)) else { return };
        let ranges = (0..).zip(self.rules.ranges(records));
        let before = ranges.take_while(|(_, range)| range.start <= at).last().map_or(0, |(no, _)| no);
        if !self.escape_told.swap(true, Relaxed) {
            let location = &run.plan.file(self.file_no).location;
            run.warn(format!(
                "record {} of {location} holds backslashes that may be those of COPY's text format, which its sample had not: they are \
                 kept as they are; --format text reads them as COPY does",
                origin.first_record + before
            ));
        }
    }

    /// The same behind an odd record.
    pub(super) fn look_behind(&self, run: &Run, records: &[u8]) -> Option<Oddity> {
        self.look.as_ref()?.look_behind(run, records)
    }

    pub(super) fn oddity(&self, run: &Run, origin: &Origin, oddity: Oddity) -> Refusal {
        let error = Error::new(ErrorKind::Record, oddity.message).with_hint(oddity.hint);
        let plan = &run.plan;
        let table = plan.table_of(self.file_no);
        let column = oddity.field.and_then(|no| table.fields.get(no)?.clone());
        let mut error = error.at(Place { column, ..Place::default() });
        if matches!(oddity.kind, OddityKind::Encoding | OddityKind::Nul) {
            error = error.with_sqlstate(sqlstate::CHARACTER_NOT_IN_REPERTOIRE);
        }
        self.refusal(run, origin, oddity.record, oddity.byte, error)
    }

    /// Makes a new table wide enough for the good ones of these records.
    pub(super) fn widen(
        &self,
        feeder: &Feeder,
        origin: &Origin,
        records: &[u8],
        good: Range<usize>,
    ) -> Result<()> {
        let run = &feeder.run;
        let table = run.plan.table_of(self.file_no);
        let kept: Vec<Option<String>>;
        let fields = match &self.cells {
            Some(_) => &table.fields,
            None => {
                // What is rewritten has the kept fields only.
                kept = table.fields.iter().filter(|field| field.is_some()).cloned().collect();
                &kept
            }
        };
        let relation = table.copied_into();
        let Some(mut watches) = run.widener.watches(relation, fields) else { return Ok(()) };
        let tell = |each: &mut dyn FnMut(usize, &[u8])| self.tell(&records[good.clone()], each);
        run.tally.time(Stage::Encode, || tell(&mut |no, value| watches.observe(no, value)));
        let asker = self.asker(feeder, origin);
        if !run.widener.is_fixed() {
            return run.widener.settle(&asker, relation, watches, &tell);
        }
        match run.widener.misfit(&asker, relation, watches, &tell, rejects::skips(run))? {
            Some(misfit) => Err(self.first_misfit(feeder, origin, fields, records, good, misfit)?),
            None => Ok(()),
        }
    }

    /// The values of these records.
    fn tell(&self, records: &[u8], each: &mut dyn FnMut(usize, &[u8])) {
        match &self.cells {
            Some(cells) => values::of_records(cells, records, each),
            None => values::of_copy_text(records, each),
        }
    }

    /// The first of the good records with a value that its column does not hold, which more records never
    /// make right.
    fn first_misfit(
        &self,
        feeder: &Feeder,
        origin: &Origin,
        fields: &[Option<String>],
        records: &[u8],
        good: Range<usize>,
        mut misfit: Misfit,
    ) -> Result<Error> {
        let run = &feeder.run;
        let table = run.plan.table_of(self.file_no);
        let relation = table.copied_into();
        let among = |end: usize| {
            let Some(mut watches) = run.widener.watches(relation, fields) else { return Ok(None) };
            let tell = |each: &mut dyn FnMut(usize, &[u8])| self.tell(&records[good.start..end], each);
            tell(&mut |no, value| watches.observe(no, value));
            let asker = self.asker(feeder, origin);
            run.widener.misfit(&asker, relation, watches, &tell, rejects::skips(run))
        };
        let ranges: Vec<(u64, Range<usize>)> = (0..)
            .zip(self.rules.ranges(records))
            .filter(|(_, range)| good.start <= range.start && range.end <= good.end)
            .collect();
        let (mut fit, mut end) = (0, ranges.len());
        while fit + 1 < end {
            let middle = fit.midpoint(end);
            match among(ranges[middle - 1].1.end)? {
                Some(found) => (end, misfit) = (middle, found),
                None => fit = middle,
            }
        }
        let error = misfit_error(table, misfit);
        let Some((no, range)) = ranges.get(end.saturating_sub(1)) else { return Ok(error) };
        Ok(self.refusal(run, origin, *no, range.start, error).error)
    }

    /// Makes the partitions that these records need, where that was asked for.
    pub(super) fn make_partitions(&self, feeder: &Feeder, origin: &Origin, records: &[u8]) -> Result<()> {
        let run = &feeder.run;
        let file = run.plan.file(self.file_no);
        let table = run.plan.table(file.table_no);
        let relation = &table.table.relation;
        let Some((column, time_zone)) = run.partitioner.column(relation) else { return Ok(()) };
        let is_key = |field: &&Option<String>| field.as_deref() == Some(column);
        // What is rewritten has the kept fields only.
        let is_there = |field: &&Option<String>| table.care != Care::Rewritten || field.is_some();
        let field_no = table.fields.iter().filter(is_there).position(|field| is_key(&field));
        let reader = Router::reader(&table.format, file.eol, time_zone);
        let Some((no, reader)) = field_no.and_then(|no| u32::try_from(no).ok()).zip(reader) else {
            return Ok(());
        };
        run.partitioner.settle(&self.asker(feeder, origin), relation, records, &reader, no)
    }

    /// Rewrites the records before the first one that cannot be.
    fn rewrite(
        &self,
        run: &Run,
        origin: &Origin,
        rewriter: &Rewriter,
        records: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Refusal> {
        let bad = rewriter.rewrite(&self.rules, records, out).err()?;
        let error = Error::new(ErrorKind::Record, bad.message);
        Some(self.refusal(run, origin, bad.record, bad.byte, error))
    }

    pub(super) fn refusal(
        &self,
        run: &Run,
        origin: &Origin,
        record: u64,
        offset: usize,
        error: Error,
    ) -> Refusal {
        let place = Place {
            file: Some(run.plan.file(self.file_no).location.clone()),
            record: Some(origin.first_record + record),
            // What is rewritten stands elsewhere in the file.
            byte: (!self.is_rewritten).then_some(origin.start_byte + offset as u64),
            ..Place::default()
        };
        Refusal { record, offset, error: error.at(place) }
    }
}

/// What finds such a header among records as they are cut into chunks. Who says how files are written, in
/// COPY's words, gets what COPY makes of them.
fn repeated_header(table: &TablePlan, names: &[String]) -> Result<Option<RepeatedHeader>> {
    match (table.care, &table.dialect) {
        (Care::Watched, Some(dialect)) => RepeatedHeader::in_records(dialect, names),
        (Care::Rewritten, _) if names.len() == table.fields.len() => {
            // What is rewritten has the kept fields only.
            let kept = names.iter().zip(&table.fields).filter(|(_, field)| field.is_some());
            let kept: Vec<String> = kept.map(|(name, _)| name.clone()).collect();
            Ok(RepeatedHeader::in_copy_text(&kept))
        }
        _ => Ok(None),
    }
}

/// Where columns are not altered while rows come.
fn misfit_error(table: &TablePlan, misfit: Misfit) -> Error {
    let Misfit { name, has, wanted } = misfit;
    let relation = &table.table.relation;
    let when = if table.frozen { "while its rows come frozen" } else { "while rows wait in a staging table" };
    // Limits that the next value may be beyond are of no use.
    let room = if wanted.starts_with("numeric") { "numeric" } else { &wanted };
    let message = format!("a value needs {wanted}, and the column is {has}, which is not altered {when}");
    let alter =
        format!("ALTER TABLE {} ALTER COLUMN {} TYPE {room}", quote_relation(relation), quote_ident(&name));
    Error::new(ErrorKind::Record, message)
        .at(Place { column: Some(name), ..Place::default() })
        .with_hint(format!("run `{alter}`, then the same command again"))
}

fn earlier(one: Option<Refusal>, other: Option<Refusal>) -> Option<Refusal> {
    one.into_iter().chain(other).min_by_key(|refusal| refusal.offset)
}

/// A record of a chunk that the server will not see.
pub(super) struct Refusal {
    /// Its number in the chunk, from 0.
    pub(super) record: u64,
    /// Where it begins in the chunk.
    pub(super) offset: usize,
    pub(super) error: Error,
}
