//! Chunks of a load that goes on without bad records: what the table may not take is set aside, and does not
//! spoil the form in which the others are sent.
//!
//! Records that contradict the dialect, that cannot be rewritten, or that the reader of their file has kept,
//! are refused here; those with values that are not certain are shown to the server by themselves
//! (`howdah_target::salvage`).

use super::emit::{Emitter, Refusal};
use super::{Failure, Feeder};
use crate::budget::{Buffer, Buffers};
use crate::pipeline::{Run, unwanted};
use crate::plan::chunk_format;
use bytes::Bytes;
use howdah_model::plan::Encode;
use howdah_model::{Aside, CopyChunk, Doubt, Eol, ErrorKind, OnError, Origin, Plan, Result, Stage, sqlstate};
use howdah_transcode::encode::from_utf8;
use howdah_transcode::mend::Kept;
use howdah_transcode::sift::Sifter;
use howdah_transcode::split::{Rules, State, Tail};
use std::ops::Range;

/// What tells the records of one file apart.
pub(super) struct Sieve {
    sifter: Option<Sifter>,
}

impl Sieve {
    /// None where a bad record ends the load.
    pub(super) fn new(plan: &Plan, file_no: u32) -> Option<Sieve> {
        let skips = plan.job.bad_records.on_error == OnError::Skip;
        skips.then(|| Sieve { sifter: sifter(plan, file_no) })
    }
}

/// What can be said of single records of a file's chunks without the server; nothing where the types of the
/// columns are not known to the client.
pub(crate) fn sifter(plan: &Plan, file_no: u32) -> Option<Sifter> {
    let table = plan.table_of(file_no);
    let known = table.known.as_ref()?;
    let (format, eol) = (chunk_format(table), eol_of_chunk(plan, file_no));
    let rules = Rules::new(&format, plan.server_version, eol).ok()?;
    let columns = table.fields.iter().flatten().cloned().collect();
    Sifter::new((&format, eol, &rules), columns, known)
}

/// The line ending of the records as they are sent.
pub(crate) fn eol_of_chunk(plan: &Plan, file_no: u32) -> Option<Eol> {
    let file = plan.file(file_no);
    match plan.table(file.table_no).encode {
        Encode::CopyText => Some(Eol::Lf),
        Encode::PassThrough => file.eol,
    }
}

/// Where a record that begins at `start` ends.
fn end_of_record(rules: &Rules, records: &[u8], start: usize) -> usize {
    match rules.tail(State::START, &records[start..]) {
        Tail::Border(end) => start + end,
        Tail::EndMarker(_) | Tail::Unfinished(_) => records.len(),
    }
}

impl Emitter {
    /// Queues the records in `range` of the data buffer, doubtful ones set aside. `kept` says that some may
    /// stand there for records of the file that are not to be stored.
    pub(super) fn emit_sifted(
        &self,
        sieve: &Sieve,
        feeder: &Feeder,
        origin: Origin,
        Buffers { mut data, mut scratch }: Buffers,
        (range, kept): (Range<usize>, bool),
    ) -> Result<(), Failure> {
        // The server says by their order which rows it does not take, so these plans have no route.
        debug_assert!(self.lanes.is_none(), "rows with bad ones among them are not laid out by leaf");
        let run = &feeder.run;
        let fail = |error| Failure { chunk_no: origin.chunk_no, error };
        if !run.halt.wants(self.file_no, origin.chunk_no) {
            return Err(fail(unwanted()));
        }
        let records = &data.filled()[range.clone()];
        let odd = self.odd_records(run, &origin, records, kept);
        let for_numbers = self.numbered.as_ref().map(|by| by.take_buffers(&mut scratch)).unwrap_or_default();
        for good in between(&odd, records.len()) {
            self.widen(feeder, &origin, records, good).map_err(fail)?;
        }
        let (range, odd) = self.spell_null_between(run, &mut data, range, odd);
        let records = &data.filled()[range.clone()];
        for good in between(&odd, records.len()) {
            self.make_partitions(feeder, &origin, &records[good]).map_err(fail)?;
        }
        let (bytes, faster, aside) = match (&self.rewriter, scratch.pop()) {
            (Some(_), Some(mut last)) => {
                let aside = run.tally.time(Stage::Encode, || {
                    last.rewrite(|out| self.rewrite_good(run, &origin, records, &odd, out))
                });
                let text = last.freeze();
                let faster = aside.is_empty().then(|| self.faster.encode(&text, scratch)).flatten();
                (text, faster, aside)
            }
            (_, last) => {
                scratch.extend(last);
                let sifter = sieve.sifter.as_ref();
                let encode = || self.faster.encode_most(&self.rules, sifter, records, scratch);
                let (faster, aside) = run.tally.time(Stage::Encode, encode);
                // What is odd to the dialect may be fit for COPY all the same.
                let both = odd.iter().all(|odd| place_of(&aside, odd.row).is_some());
                let faster = faster.filter(|_| both);
                let aside = match sifter {
                    _ if both => merged(odd, aside),
                    // What has broken bytes is refused by COPY and by the sifter, which tells more of the
                    // others than COPY.
                    Some(sifter) if self.looks_at_characters() => merged(odd, sifter.all(records)),
                    _ => odd,
                };
                (data.freeze().slice(range), faster, aside)
            }
        };
        self.queue(feeder, CopyChunk { origin, bytes, faster, refused: None, aside }, for_numbers)
    }

    /// Gives NULL one spelling in the records between odd ones, which stay as the file has them.
    fn spell_null_between(
        &self,
        run: &Run,
        data: &mut Buffer,
        range: Range<usize>,
        mut odd: Vec<Aside>,
    ) -> (Range<usize>, Vec<Aside>) {
        if self.one_null.is_none() {
            return (range, odd);
        }
        let (mut from, mut end) = (range.start, range.start);
        let mut take = |data: &mut Buffer, piece: Range<usize>| {
            let length = piece.len();
            data.filled_mut().copy_within(piece, end);
            end += length;
            end - range.start - length..end - range.start
        };
        for aside in &mut odd {
            let Range { start, end } = aside.range;
            let there = range.start + start..range.start + end;
            let good = self.spell_null(run, data, from..there.start);
            take(data, good);
            let as_read = || Bytes::copy_from_slice(&data.filled()[there.clone()]);
            aside.in_file.get_or_insert_with(as_read);
            from = there.end;
            aside.range = take(data, there);
        }
        let good = self.spell_null(run, data, from..range.end);
        take(data, good);
        (range.start..end, odd)
    }

    /// Records that contradict the dialect that was found, or end in another way than COPY of the whole file
    /// bears.
    fn odd_records(&self, run: &Run, origin: &Origin, records: &[u8], kept: bool) -> Vec<Aside> {
        let mut odd = if kept { self.kept_records(records) } else { Vec::new() };
        odd.extend(self.first_line_refusal(run, origin, records).map(|bad| self.aside(records, bad)));
        let forbidden = self.forbidden_refusals(run, origin, records).into_iter();
        odd.extend(forbidden.map(|bad| self.aside(records, bad)));
        let headers = self.header_refusals(run, origin, records).into_iter();
        odd.extend(headers.map(|bad| self.aside(records, bad)));
        let (mut start, mut row) = (0, 0);
        let look = |start: usize| {
            let rest = records.get(start..)?;
            if start == 0 { self.look(run, rest) } else { self.look_behind(run, rest) }
        };
        while let Some(mut oddity) = look(start) {
            (oddity.record, oddity.byte) = (oddity.record + row, oddity.byte + start);
            let found = self.aside(records, self.oddity(run, origin, oddity));
            (start, row) = (found.range.end, found.row + 1);
            odd.push(found);
        }
        odd.sort_by_key(|aside| aside.row);
        odd.dedup_by_key(|aside| aside.row);
        odd
    }

    /// Records that were read and are not to be stored.
    fn kept_records(&self, records: &[u8]) -> Vec<Aside> {
        let (mut found, mut start, mut row) = (Vec::new(), 0, 0);
        while let Some(at) = Kept::find(records, start) {
            let end = end_of_record(&self.rules, records, at);
            row += self.rules.scan(State::START, &records[start..at]).records;
            if let Some(kept) = Kept::parse(&records[at..end]) {
                let doubt = Doubt::Refused(kept.error());
                let as_read = self.recode.as_ref().and_then(|name| from_utf8(name, &kept.bytes));
                let in_file = Some(as_read.unwrap_or(kept.bytes).into());
                found.push(Aside { row, range: at..end, doubt, in_file });
            }
            (start, row) = (end, row + 1);
        }
        found
    }

    fn aside(&self, records: &[u8], bad: Refusal) -> Aside {
        let range = bad.offset..end_of_record(&self.rules, records, bad.offset);
        let error = match bad.error.sqlstate() {
            Some(_) => bad.error,
            None => bad.error.with_sqlstate(sqlstate::BAD_COPY_FILE_FORMAT),
        };
        Aside::new(bad.record, range, Doubt::Refused(error))
    }

    /// Rewrites what can be; records that are odd, or cannot be rewritten, stand in between as they are.
    fn rewrite_good(
        &self,
        run: &Run,
        origin: &Origin,
        records: &[u8],
        odd: &[Aside],
        out: &mut Vec<u8>,
    ) -> Vec<Aside> {
        let Some(rewriter) = &self.rewriter else { return Vec::new() };
        let mut aside = Vec::new();
        let (mut row, mut odd) = (0, odd.iter());
        let mut next = odd.next();
        let mut start = 0;
        while start < records.len() {
            let stop = next.map_or(records.len(), |odd| odd.range.start);
            let bad = match rewriter.rewrite(&self.rules, &records[start..stop], out) {
                Ok(_) => next.cloned(),
                Err(bad) => {
                    let error = howdah_model::Error::new(ErrorKind::Record, bad.message);
                    let refusal = self.refusal(run, origin, row + bad.record, start + bad.byte, error);
                    Some(self.aside(records, refusal))
                }
            };
            let Some(bad) = bad else { break };
            if next.is_some_and(|odd| odd.row == bad.row) {
                next = odd.next();
            }
            let (at, bytes) = (out.len(), &records[bad.range.clone()]);
            out.extend_from_slice(bytes);
            let as_read = || self.recode.is_none().then(|| Bytes::copy_from_slice(bytes));
            let in_file = bad.in_file.or_else(as_read);
            (start, row) = (bad.range.end, bad.row + 1);
            aside.push(Aside { range: at..out.len(), in_file, ..bad });
        }
        aside
    }
}

/// The parts of the records that no odd one stands in.
fn between(odd: &[Aside], length: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(odd.iter().map(|aside| aside.range.end));
    let ends = odd.iter().map(|aside| aside.range.start).chain(std::iter::once(length));
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end)
}

/// Which one of these, in the order of the file, is about the row.
fn place_of(aside: &[Aside], row: u64) -> Option<usize> {
    aside.binary_search_by_key(&row, |aside| aside.row).ok()
}

/// What is known of odd records is said of them; of the others what the sifter says.
fn merged(mut odd: Vec<Aside>, aside: Vec<Aside>) -> Vec<Aside> {
    let others: Vec<Aside> = aside.into_iter().filter(|other| place_of(&odd, other.row).is_none()).collect();
    odd.extend(others);
    odd.sort_by_key(|aside| aside.row);
    odd
}
