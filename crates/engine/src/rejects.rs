//! Records that the table does not take, where the load goes on without them (`--on-error skip`).
//!
//! A chunk goes the usual way until the server refuses one of its records. Then its records are looked at one
//! by one ([`sift`]), the good ones stored, and the bad ones kept in the ledger, in one transaction
//! ([`store_rest`]). How many are borne is asked behind each ([`bear`]).

use crate::feed::sifter;
use crate::first_records::is_first;
use crate::locate;
use crate::pipeline::Run;
use crate::plan::{chunk_format, plain_bytes};
use bytes::Bytes;
use howdah_model::plan::{Care, Encode};
use howdah_model::{
    Aside, CopyChunk, Error, ErrorKind, Form, MaxErrors, OnError, Place, Plan, Reject, Result, counted,
    sqlstate,
};
use howdah_target::commit::{ChunkError, ChunkTarget, CopyProgress, Outcome};
use howdah_target::salvage::{
    Constraints, Refused, Salvage, are_in_doubt, is_about_a_row, is_of_constraint, is_raised,
    refers_to_itself,
};
use howdah_target::session::Session;
use howdah_transcode::split::Rules;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// If so many records in a row from the first on are refused, the file is not what the table is for. A share
/// of the records is not asked for before, either.
const ALL_BAD: u64 = 1000;
/// Rejected records of a chunk whose places in the file are looked up by reading it again, where they cannot
/// be told from what was sent.
const LOOKED_UP_MAX: usize = 20;
/// All together they take no longer: the chunk's transaction is open meanwhile, and a session that waits for
/// us for as long as the watcher says (`watch.rs`) is taken for one that talks to nobody.
const LOOKING_UP: Duration = Duration::from_secs(5);

/// How long later chunks wait for the first one while no session stores it.
const FIRST_WITHIN: Duration = Duration::from_secs(20);

/// The load goes on without bad records.
pub(crate) fn skips(run: &Run) -> bool {
    run.plan.job.bad_records.on_error == OnError::Skip
}

/// Rows of the chunk's table keep breaking constraints: sending it as it is would be in vain. Where they
/// cannot be told by the form that was made for them, its records are set aside.
pub(crate) fn expects_broken(run: &Run, chunk: &mut CopyChunk) -> bool {
    let table_no = run.plan.file(chunk.origin.file_no).table_no;
    let are_inserted = run.probes.are_inserted(table_no);
    let expected = skips(run) && (are_inserted || run.probes.are_broken(table_no));
    let is_binary = chunk.faster.as_ref().is_some_and(|faster| faster.form == Form::Binary);
    let keeps_form = run.probes.keep_form(table_no) && chunk.faster.is_some() || are_inserted && is_binary;
    if expected && !keeps_form {
        sift(run, chunk);
    }
    expected
}

/// COPY does not do it for this table: older servers fail at some conditions behind WHERE.
pub(crate) fn leave_none_out(run: &Run, chunk: &CopyChunk) {
    run.probes.leave_none_out(run.plan.file(chunk.origin.file_no).table_no);
}

/// What the table refuses can be told in the form that was made for the rows: they broke a constraint, or a
/// trigger raised an error, and are cut out of binary.
pub(crate) fn stays_written(chunk: &CopyChunk, error: &Error) -> bool {
    (is_of_constraint(error) || is_raised(error))
        && chunk.faster.as_ref().is_some_and(|faster| faster.form == Form::Binary)
}

/// Sets all records of the chunk aside that are not certain; the others are sent as they are.
pub(crate) fn sift(run: &Run, chunk: &mut CopyChunk) {
    chunk.faster = None;
    if !chunk.aside.is_empty() {
        return;
    }
    if let Some(sifter) = sifter(&run.plan, chunk.origin.file_no) {
        chunk.aside = sifter.all(&chunk.bytes);
    }
}

/// Stores what the table takes of a chunk, and keeps the rest; what was refused comes back.
///
/// # Errors
/// As for a chunk that is stored whole; `TooManyErrors`.
pub(crate) async fn store_rest(
    run: &Run,
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    progress: &CopyProgress,
) -> Result<(Outcome, Vec<Reject>), ChunkError> {
    let table_no = run.plan.file(chunk.origin.file_no).table_no;
    let probe = run.probes.of(session, table_no, target.table).await?;
    let constraints = Constraints {
        probe: probe.as_deref(),
        are_broken: run.probes.are_broken(table_no),
        are_left_out: run.probes.are_left_out(table_no),
        are_asked: run.probes.are_asked(table_no),
        are_inserted: run.probes.are_inserted(table_no),
        to_come_bytes: plain_bytes(&run.plan.files)
            .unwrap_or(0)
            .saturating_sub(run.tally.bytes_stored.load(Relaxed)),
    };
    if are_all_bad(run) {
        return Err(too_many(run, None, ALL_BAD, ALL_BAD).into());
    }
    let Some(mut salvage) = Salvage::begin(session, target, chunk, progress).await? else {
        return Ok((Outcome::AlreadyStored, Vec::new()));
    };
    let rows = || rows(&run.plan, chunk);
    let bear = |stored: u64, refused: u64| bear(run, chunk, stored, refused);
    let refused = salvage.copy(&rows, &bear, constraints).await?;
    run.first_records.saw(chunk, &refused);
    if are_all_bad(run) {
        salvage.give_up().await;
        return Err(too_many(run, None, ALL_BAD, ALL_BAD).into());
    }
    if run.tally.rows_stored() + run.tally.rows_rejected() == 0
        && let Some(first) = of_no_row(chunk, &refused)
    {
        salvage.give_up().await;
        let error = first.error.clone();
        return Err(placed(run, chunk, first).await.unwrap_or(error).into());
    }
    if salvage.is_outdated() {
        run.probes.forget(table_no).await;
    }
    let broken: Vec<&Error> =
        refused.iter().map(|refused| &refused.error).filter(|error| is_of_constraint(error)).collect();
    run.probes.saw(table_no, probe.as_deref(), &broken, salvage.had_to_ask());
    run.probes.set_inserted(table_no, salvage.had_to_insert());
    let rejects = rejects(run, chunk, refused).await;
    let outcome = salvage.commit(&as_kept(run, chunk.origin.file_no, &rejects)).await?;
    Ok((outcome, rejects))
}

/// As the ledger keeps them, for people who look at the file: bytes of what it was converted to are not told.
/// A check forgets its ledger, and finds lines by them before.
pub(crate) fn as_kept<'a>(run: &Run, file_no: u32, rejects: &'a [Reject]) -> Cow<'a, [Reject]> {
    if run.plan.table_of(file_no).recode.is_none() || run.plan.job.arrival.check {
        return Cow::Borrowed(rejects);
    }
    let kept = rejects.iter().map(|reject| Reject { byte: None, ..reject.clone() });
    Cow::Owned(kept.collect())
}

/// Finds the record that a policy, a foreign key, a deferred constraint or a trigger behind the rows refuses,
/// of which COPY names no line, or that fits no page, for which COPY names the last line of those that it
/// stores at a time: by storing parts of the chunk, in a transaction that is rolled back.
pub(crate) async fn place(
    run: &Run,
    session: &mut Session,
    target: &ChunkTarget<'_>,
    chunk: &CopyChunk,
    progress: &CopyProgress,
    mut failed: ChunkError,
) -> ChunkError {
    if failed.error.sqlstate() == Some(sqlstate::PROGRAM_LIMIT_EXCEEDED) {
        failed.line = None;
    }
    let is_nameless = failed.line.is_none() && is_about_a_row(&failed.error);
    if !is_nameless || skips(run) || chunk.faster.is_some() {
        return failed;
    }
    let relation = target.table.stored_in();
    if failed.error.sqlstate() == Some(sqlstate::FOREIGN_KEY_VIOLATION)
        && !matches!(refers_to_itself(session, relation).await, Ok(false))
    {
        return failed;
    }
    let Ok(Some(salvage)) = Salvage::begin(session, target, chunk, progress).await else { return failed };
    let Ok(Some(first)) = salvage.first_refused(&|| rows(&run.plan, chunk)).await else { return failed };
    placed(run, chunk, first).await.map_or(failed, ChunkError::from)
}

/// What is said of the record, with its place.
async fn placed(run: &Run, chunk: &CopyChunk, refused: Refused) -> Option<Error> {
    let reject = rejects(run, chunk, vec![refused]).await.pop()?;
    let place = Place { record: reject.record, byte: reject.byte, ..Place::default() };
    Some(reject.error.at(place))
}

/// All of several records are refused in a way that a broken trigger refuses any.
fn of_no_row(chunk: &CopyChunk, refused: &[Refused]) -> Option<Refused> {
    let are_all = refused.len() > 1 && refused.len() as u64 == chunk.origin.records;
    refused.first().filter(|_| are_all && are_in_doubt(refused)).cloned()
}

/// Where each record of the chunk stands in its bytes. Those set aside may be in the words of the file among
/// others that were rewritten.
pub(crate) fn rows(plan: &Plan, chunk: &CopyChunk) -> Vec<Range<usize>> {
    let Some(rules) = rules(plan, chunk) else { return Vec::new() };
    let mut rows = Vec::new();
    for (bytes, _, aside) in stretches(chunk) {
        rows.extend(shifted(rules.ranges(&chunk.bytes[bytes.clone()]), bytes.start));
        rows.extend(aside.map(|aside| aside.range.clone()));
    }
    rows
}

/// The same of these records, whose numbers are in order, as many as there are.
fn ranges_of(plan: &Plan, chunk: &CopyChunk, numbers: &[u64]) -> Vec<Range<usize>> {
    let Some(rules) = rules(plan, chunk) else { return Vec::new() };
    let (mut ranges, mut left) = (Vec::with_capacity(numbers.len()), numbers);
    for (bytes, first, aside) in stretches(chunk) {
        let next = aside.map_or(u64::MAX, |aside| aside.row);
        let here;
        (here, left) = left.split_at(left.partition_point(|number| *number < next));
        let here: Vec<u64> = here.iter().map(|number| number - first).collect();
        if !here.is_empty() {
            ranges.extend(shifted(rules.ranges_of(&chunk.bytes[bytes.clone()], &here), bytes.start));
        }
        if let (Some(aside), Some((_, rest))) =
            (aside, left.split_first().filter(|(number, _)| **number == next))
        {
            ranges.push(aside.range.clone());
            left = rest;
        }
    }
    ranges
}

fn rules(plan: &Plan, chunk: &CopyChunk) -> Option<Rules> {
    let file_no = chunk.origin.file_no;
    let eol = crate::feed::eol_of_chunk(plan, file_no);
    Rules::new(&chunk_format(plan.table_of(file_no)), plan.server_version, eol).ok()
}

/// The bytes between records that are set aside, the number of the first record there, and the one that is
/// set aside behind them.
fn stretches(chunk: &CopyChunk) -> impl Iterator<Item = (Range<usize>, u64, Option<&Aside>)> {
    let behind = chunk.aside.iter().map(Some).chain([None]);
    behind.scan((0, 0), |(start, first), aside| {
        let end = aside.map_or(chunk.bytes.len(), |aside| aside.range.start);
        let stretch = (*start..end, *first, aside);
        (*start, *first) = aside.map_or((end, *first), |aside| (aside.range.end, aside.row + 1));
        Some(stretch)
    })
}

fn shifted(ranges: Vec<Range<usize>>, by: usize) -> impl Iterator<Item = Range<usize>> {
    ranges.into_iter().map(move |range| range.start + by..range.end + by)
}

/// The first thousand records of the load are refused, whatever comes behind them.
fn are_all_bad(run: &Run) -> bool {
    !bears_all(run) && run.first_records.refused(run) >= ALL_BAD
}

/// Where nothing is in yet, a later chunk waits for what becomes of the first, which may end the load: a job
/// with nothing but rejects in the ledger would be one that has begun. Not for long where no session has
/// stored that one since then.
pub(crate) fn waits_for_the_first(run: &Run, chunk: &CopyChunk, since: &mut Instant) -> bool {
    if run.first_records.are_under_way() {
        *since = Instant::now();
    }
    let is_open = !bears_all(run) && run.tally.rows_stored() + run.tally.rows_rejected() == 0;
    !is_first(run, chunk) && is_open && !are_all_bad(run) && since.elapsed() < FIRST_WITHIN
}

/// A check tells all there is, unless it is told where to stop.
fn bears_all(run: &Run) -> bool {
    run.plan.job.arrival.check && run.plan.job.bad_records.max.is_none()
}

/// Too many records are refused, with those of a chunk under way.
fn bear(run: &Run, chunk: &CopyChunk, stored_now: u64, refused_now: u64) -> Result<()> {
    // Whatever comes behind them in a long chunk is not looked at.
    if stored_now == 0 && refused_now >= ALL_BAD && is_first(run, chunk) && !bears_all(run) {
        run.first_records.saw_leading(chunk, refused_now);
        return Err(too_many(run, None, ALL_BAD, ALL_BAD));
    }
    let rejected = run.tally.rows_rejected() + refused_now;
    let read = run.tally.rows_stored() + stored_now + rejected;
    if rejected == 0 || bears_all(run) || !is_too_many(run.plan.job.bad_records.max, rejected, read) {
        return Ok(());
    }
    Err(too_many(run, run.plan.job.bad_records.max, rejected, read))
}

fn is_too_many(max: Option<MaxErrors>, rejected: u64, read: u64) -> bool {
    match max {
        None => false,
        Some(MaxErrors::Count(count)) => rejected > count,
        Some(share) => read >= ALL_BAD && is_beyond(share, rejected, read),
    }
}

fn is_beyond(max: MaxErrors, rejected: u64, read: u64) -> bool {
    match max {
        MaxErrors::Count(count) => rejected > count,
        MaxErrors::MilliPercent(share) => rejected.saturating_mul(100_000) > read.saturating_mul(share),
    }
}

/// So many of the rows that wait in staging tables are refused besides.
///
/// # Errors
/// `TooManyErrors`.
pub(crate) fn bear_waiting(run: &Run, refused: u64) -> Result<()> {
    let (rejected, read) =
        (run.tally.rows_rejected() + refused, run.tally.rows_stored() + run.tally.rows_rejected());
    let max = run.plan.job.bad_records.max;
    let is_beyond = max.is_some_and(|max| is_beyond(max, rejected, read));
    match is_beyond || rejected == read && read >= ALL_BAD {
        true => Err(too_many(run, max, rejected, read)
            .with_hint(format!("{CHECK_HINT}; a larger --max-errors goes on here"))),
        false => Ok(()),
    }
}

/// When all rows are in: a share of few records is asked for now.
///
/// # Errors
/// `TooManyErrors`.
pub(crate) fn check(run: &Run) -> Result<()> {
    let (rejected, stored) = (run.tally.rows_rejected(), run.tally.rows_stored());
    if are_all_bad(run) {
        return Err(too_many(run, None, ALL_BAD, ALL_BAD));
    }
    match run.plan.job.bad_records.max {
        Some(max) if is_beyond(max, rejected, stored + rejected) => {
            Err(too_many(run, Some(max), rejected, stored + rejected))
        }
        _ => Ok(()),
    }
}

/// Where all of them are told, whatever is stored.
const CHECK_HINT: &str = "howdah check with the same files and table lists them";

/// What a check does not list: it has all rows before it looks at foreign keys. No order of files would do,
/// as sessions store them side by side.
fn parents_hint(run: &Run) -> &'static str {
    let Plan { job, tables, .. } = &run.plan;
    match tables.len() > 1 && !job.arrival.is_staged() {
        true => {
            "; rows that foreign keys refuse until others of this load are in come in by --atomic, or by a load behind theirs"
        }
        false => "",
    }
}

fn too_many(run: &Run, max: Option<MaxErrors>, rejected: u64, read: u64) -> Error {
    let records = counted(read, "record");
    let message = match max {
        Some(MaxErrors::Count(count)) if rejected > count => {
            format!("the table refuses {rejected} of {records}, more than --max-errors {count} allows")
        }
        Some(MaxErrors::MilliPercent(share)) if is_beyond(MaxErrors::MilliPercent(share), rejected, read) => {
            let percent = share as f64 / 1000.0;
            format!("the table refuses {rejected} of {records}, more than --max-errors {percent}% allows")
        }
        _ => format!("the table refuses all of the first {read} records"),
    };
    let hint = match run.tally.rows_rejected() {
        // The chunk that ends the load is not in, and neither are its records in the ledger.
        0 => CHECK_HINT.to_owned(),
        _ => format!("{CHECK_HINT}; those of chunks that are in stand in the ledger's table reject"),
    };
    Error::new(ErrorKind::TooManyErrors, message).with_hint(hint + parents_hint(run))
}

/// Rows (ascending) as numbers of records in the file, some of which may not have been sent.
fn numbers_in_file(run: &Run, chunk: &CopyChunk, rows: &[u64]) -> Vec<Option<u64>> {
    let origin = &chunk.origin;
    let care = run.plan.table_of(origin.file_no).care;
    let before = origin.first_record.saturating_sub(1);
    match (run.tally.file(origin.file_no).mends_so_far(), care) {
        (None, _) => rows.iter().map(|row| Some(origin.first_record + row)).collect(),
        // What is rewritten is numbered as it is sent, from the beginning of the file.
        (Some(counts), Care::Rewritten) => {
            let sent: Vec<u64> = rows.iter().map(|row| before + row).collect();
            counts.numbers(0, &sent)
        }
        (Some(counts), Care::Server | Care::Watched) => counts.numbers(before, rows),
    }
}

/// What is kept of the records that were refused.
async fn rejects(run: &Run, chunk: &CopyChunk, refused: Vec<Refused>) -> Vec<Reject> {
    let (plan, origin) = (&run.plan, &chunk.origin);
    let file = plan.file(origin.file_no);
    let table = plan.table(file.table_no);
    let shaping = &plan.job.shaping;
    // What was mended may be as long as it was.
    let untouched = !shaping.lenient
        && shaping.nul.is_reject()
        && table.own_dialect().is_none()
        && table.encode == Encode::PassThrough
        && table.recode.is_none()
        && locate::is_untouched(chunk);
    let mut rejects = Vec::with_capacity(refused.len());
    let began = Instant::now();
    let look_up = async |no: usize, row: u64| {
        let left = LOOKING_UP.saturating_sub(began.elapsed());
        if no >= LOOKED_UP_MAX || left.is_zero() {
            return None;
        }
        tokio::time::timeout(left, locate::record_of_row(run, origin, row)).await.ok().flatten()
    };
    let numbers: Vec<u64> = refused.iter().map(|refused| refused.row).collect();
    let ranges = ranges_of(plan, chunk, &numbers);
    let in_file = numbers_in_file(run, chunk, &numbers);
    for (no, ((Refused { row, error }, range), number)) in
        refused.into_iter().zip(ranges).zip(in_file).enumerate()
    {
        let aside = chunk.aside.binary_search_by_key(&row, |aside| aside.row).ok().map(|no| &chunk.aside[no]);
        let in_file = aside.and_then(|aside| aside.in_file.clone());
        let known = error.place().clone();
        let (record, byte) = match (known.record, known.byte) {
            (Some(record), Some(byte)) => (Some(record), Some(byte)),
            _ if untouched => (Some(origin.first_record + row), Some(origin.start_byte + range.start as u64)),
            _ => match look_up(no, row).await {
                Some((record, byte)) => (Some(record), Some(byte)),
                None => (number, None),
            },
        };
        let as_in_file = untouched || in_file.is_some();
        let bytes: Bytes = in_file.unwrap_or_else(|| chunk.bytes.slice(range));
        let error = error.at(Place { file: Some(file.location.clone()), ..Place::default() });
        rejects.push(Reject { record, byte, bytes, as_in_file, error });
    }
    rejects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_is_a_number_a_share_or_all_of_the_first_thousand() {
        let percent = |share: u64| Some(MaxErrors::MilliPercent(share * 1000));
        assert!(!is_too_many(None, 1000, 1001));
        assert!(
            !is_too_many(Some(MaxErrors::Count(5)), 5, 6) && is_too_many(Some(MaxErrors::Count(5)), 6, 7)
        );
        assert!(!is_too_many(percent(10), 100, 1000) && is_too_many(percent(10), 101, 1000));
        // Of few records a share says little yet.
        assert!(!is_too_many(percent(10), 50, 60) && is_beyond(MaxErrors::MilliPercent(10_000), 50, 60));
    }
}
