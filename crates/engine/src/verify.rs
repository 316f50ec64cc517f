//! Behind the last chunk, where `--verify` asks for it: what is stored, compared with the sources.
//!
//! Counting asks the tables themselves how many rows each chunk has left there, and compares that with the
//! receipts. For a checksum the same flow that has loaded the files runs once more: feeders read, split and
//! encode, sessions take chunks from the queue. But a chunk goes into a temporary table, and what it comes to
//! there is compared with what the table holds of it ([`howdah_target::verify`]).

mod difference;
mod together;

use crate::Context;
use crate::arrival::on_session;
use crate::feed::open_all;
use crate::load::by_file;
use crate::partitioner::Partitioner;
use crate::pipeline::{self, Receipts, Run};
use crate::rejects;
use bytes::Bytes;
use difference::{Difference, Expected, other_values, result};
use howdah_model::{
    Care, ChunkId, CopyChunk, Error, ErrorKind, Keep, Plan, Receipt, Relation, Result, Silent, Stage,
    Verified, Verify, plural,
};
use howdah_target::commit::{ChunkError, ChunkTarget, CopyProgress};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use howdah_target::verify::{self, Again, Sum, Summed};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use together::Summing;

/// Compares what is where the chunks were copied to: the tables, or their staging tables. `None` if that was
/// not asked.
///
/// # Errors
/// Differs, with the first records that are not stored as they were read; what ends a load.
pub(crate) async fn compare(run: &Arc<Run>) -> Result<Option<Verified>> {
    let by = run.plan.job.verify;
    let Some(ledger) = run.ledger.as_ref().filter(|_| by != Verify::None) else { return Ok(None) };
    run.is_at("comparing what is stored with what was read");
    let start = Instant::now();
    let compared = Box::pin(compare_all(run, ledger, by)).await;
    run.tally.spend(Stage::Verify, start.elapsed());
    compared.map(Some)
}

async fn compare_all(run: &Arc<Run>, ledger: &Ledger, by: Verify) -> Result<Verified> {
    run.tell(match by {
        Verify::Checksum => "the files are read once more and compared with what is stored",
        Verify::Count | Verify::None => "the rows are counted that are stored",
    });
    let job_id = &run.plan.job_id;
    if let Some(verified) = thinned_out(run, ledger, by).await? {
        return Ok(verified);
    }
    let receipts = async |session: &Session| ledger.receipts(session, job_id).await;
    let receipts = by_file(on_session(run, receipts).await?);
    let mut found = look(run, ledger, by).await?;
    let together = async |session: &Session| ledger.chunks_together(session, job_id).await;
    found.together = on_session(run, together).await?;
    found.together.retain(|chunk, _| !run.plan.table_of(chunk.file_no).frozen);
    check_counts(run, ledger, &receipts, &mut found).await?;
    if by == Verify::Checksum {
        refuse_several_kinds(run, &found)?;
    }
    let (sums, rows_of_others) = (found.sum(run), found.others.values().sum());
    let counted = if by == Verify::Checksum { read_again(run, ledger, receipts, found).await? } else { 0 };
    if counted > 0 {
        let of = howdah_model::counted(counted, "chunk");
        run.warn(format!(
            "the rows of {of} were counted, and their values not compared: an earlier run has left records out, and which they \
             are is not known to the record"
        ));
    }
    // The low half of a sum: no overflow tells anything.
    let checksum = (by == Verify::Checksum && counted == 0).then(|| format!("{:016x}", sums.hashes as u64));
    // Whoever asks later is told what holds for all rows.
    let by = if counted > 0 { Verify::Count } else { by };
    if keeps_one_of_several(run) {
        on_session(run, async |session| ledger.verified(session, job_id, by).await).await?;
    }
    Ok(Verified { by, rows: sums.rows, checksum, rows_of_others })
}

/// Rows that one transaction has written are summed up together, but those of files with other columns
/// otherwise.
fn refuse_several_kinds(run: &Run, found: &Found) -> Result<()> {
    let is_of_several = |table_no: &&u32| found.firsts.iter().filter(|first| first == table_no).count() > 1;
    match found.rewritten.iter().find(is_of_several) {
        None => Ok(()),
        Some(table_no) => {
            let relation = &run.plan.table(*table_no).table.relation;
            let message = format!(
                "a column of {relation} became wider meanwhile, and files of several kinds came into it: their values cannot be compared"
            );
            Err(Error::new(ErrorKind::Ledger, message).with_hint(
                "all rows are in; run the same command with --verify count, which compares their number",
            ))
        }
    }
}

/// Of several records of one key only one stays in the staging table, once all are there.
fn keeps_one_of_several(run: &Run) -> bool {
    run.plan.job.arrival.has_key() && run.plan.job.arrival.keep != Keep::Error
}

/// What an earlier run has compared of staging tables that may have been thinned out since.
async fn thinned_out(run: &Run, ledger: &Ledger, by: Verify) -> Result<Option<Verified>> {
    if !keeps_one_of_several(run) || run.tally.bytes_stored.load(Relaxed) > 0 {
        return Ok(None);
    }
    let by_then = async |session: &Session| ledger.verified_by(session, &run.plan.job_id).await;
    let by = match on_session(run, by_then).await?.as_deref() {
        Some(then) if then == by.as_str() => by,
        Some(then) if then == Verify::Count.as_str() => {
            let message = "the rows were counted, and their values not compared: an earlier run has counted them, and those of one key \
                           may have been left out since";
            run.warn(message.to_owned());
            Verify::Count
        }
        _ => return Ok(None),
    };
    Ok(Some(Verified { by, rows: run.tally.rows_stored(), checksum: None, rows_of_others: 0 }))
}

/// Writes down that all was found equal.
///
/// # Errors
/// What ends a load.
pub(crate) async fn note(run: &Run, verified: Option<Verified>) -> Result<()> {
    let (Some(ledger), Some(mut verified)) = (&run.ledger, verified) else { return Ok(()) };
    // Rows that have waited were compared before some of them were left out.
    if run.tally.rows_stored() < verified.rows {
        (verified.rows, verified.checksum) = (run.tally.rows_stored(), None);
    }
    let (job_id, by) = (&run.plan.job_id, verified.by);
    on_session(run, async |session| ledger.verified(session, job_id, by).await).await?;
    run.tally.set_verified(verified);
    Ok(())
}

const ANEW_HINT: &str = "one transaction has written as many rows of this table: where ALTER TABLE has written all rows anew, none tells \
                         any more what stored it; run the same command without --verify";

/// What was found in the tables.
#[derive(Default)]
struct Found {
    chunks: HashMap<ChunkId, Sum>,
    /// All that is in tables that this job has made, by their first number in the plan: where a column became
    /// wider meanwhile, the server has written all rows anew, in one transaction. Of frozen tables all that
    /// this job has stored.
    made: HashMap<u32, Sum>,
    /// Of those, the tables whose rows one transaction has written.
    rewritten: HashSet<u32>,
    /// As [`firsts`].
    firsts: Vec<u32>,
    others: BTreeMap<Relation, u64>,
    /// Chunks of small files that came in one transaction, each with the first of them, under which all are
    /// summed up.
    together: HashMap<ChunkId, ChunkId>,
}

impl Found {
    /// The first number of the table that the file goes to.
    fn table_of(&self, run: &Run, file_no: u32) -> u32 {
        self.firsts[run.plan.file(file_no).table_no as usize]
    }

    /// The chunk that this one is summed up under.
    fn summed_under(&self, chunk: ChunkId) -> ChunkId {
        self.together.get(&chunk).copied().unwrap_or(chunk)
    }

    /// What is expected of the chunks, by those that they are summed up under.
    fn expected(&self, receipts: &HashMap<u32, Receipts>) -> HashMap<ChunkId, Expected> {
        let mut expected: HashMap<ChunkId, Expected> = HashMap::new();
        for receipt in receipts.values().flat_map(BTreeMap::values) {
            let all = expected.entry(self.summed_under(receipt.chunk())).or_default();
            *all = Expected { rows: all.rows + receipt.rows, chunks: all.chunks + 1 };
        }
        expected
    }

    /// All rows of this job.
    fn sum(&self, run: &Run) -> Sum {
        let of_chunk = |(chunk, sum): (&ChunkId, &Sum)| {
            (!self.rewritten.contains(&self.table_of(run, chunk.file_no))).then_some(*sum)
        };
        let of_made = self.rewritten.iter().filter_map(|table_no| self.made.get(table_no).copied());
        self.chunks.iter().filter_map(of_chunk).chain(of_made).fold(Sum::default(), Sum::and)
    }
}

/// For each table of the plan the number of the first one that is the same relation.
fn firsts(plan: &Plan) -> Vec<u32> {
    let mut first: BTreeMap<&Relation, u32> = BTreeMap::new();
    (0..).zip(&plan.tables).map(|(no, table)| *first.entry(&table.table.relation).or_insert(no)).collect()
}

/// Looks what the tables hold.
async fn look(run: &Run, ledger: &Ledger, by: Verify) -> Result<Found> {
    let mut found = Found { firsts: firsts(&run.plan), ..Found::default() };
    for (table_no, table) in (0..).zip(&run.plan.tables) {
        let relation = table.stored_in();
        let columns: Vec<String> = match by {
            Verify::Checksum => table.fields.iter().flatten().cloned().collect(),
            Verify::Count | Verify::None => Vec::new(),
        };
        let made = table.create.is_some() && table.staging.is_none();
        let (summed, sessions) = (Summed { columns: &columns, of_others: made }, run.tally.sessions());
        let look = async |session: &Session| {
            verify::stored(session, ledger, &run.plan.job_id, relation, summed, sessions).await
        };
        let stored = on_session(run, look).await?;
        found.others.insert(relation.clone(), stored.others.rows);
        if table.frozen {
            found.made.insert(
                found.firsts[table_no as usize],
                stored.chunks.values().copied().fold(Sum::default(), Sum::and),
            );
        } else if made {
            let all = stored.chunks.values().copied().fold(stored.others, Sum::and);
            found.made.insert(found.firsts[table_no as usize], all);
        }
        let is_ours = |file_no: u32| {
            let file = run.plan.files.get(file_no as usize);
            file.is_some_and(|file| file.table_no == table_no)
        };
        found.chunks.extend(stored.chunks.into_iter().filter(|(chunk, _)| is_ours(chunk.file_no)));
    }
    Ok(found)
}

/// Each chunk has left as many rows in its table as its receipt says; or, where these were written anew, all
/// chunks have.
async fn check_counts(
    run: &Run,
    ledger: &Ledger,
    receipts: &HashMap<u32, Receipts>,
    found: &mut Found,
) -> Result<()> {
    let differences = differing_counts(run, receipts, found);
    let Some(first) = differences.first() else { return Ok(()) };
    let firsts = found.firsts.clone();
    let table_of = |file_no: u32| firsts[run.plan.file(file_no).table_no as usize];
    let table_no = table_of(first.file_no);
    let of_table = || differences.iter().filter(|difference| table_of(difference.file_no) == table_no);
    let missing: u64 = of_table().map(|difference| difference.expected_rows).sum();
    let are_gone = of_table().all(|&Difference { file_no, chunk_no, .. }| {
        !found.chunks.contains_key(&ChunkId { file_no, chunk_no })
    });
    let stored_in = run.plan.table(table_no).stored_in();
    let most = async |session: &Session| {
        verify::most_of_one_other(session, ledger, &run.plan.job_id, stored_in).await
    };
    // What cannot be asked leaves the other hint.
    let is_anew = are_gone && on_session(run, most).await.is_ok_and(|most| most >= missing);
    result(run, receipts, differences)
        .map_err(|error| if is_anew { error.with_hint(ANEW_HINT) } else { error })
}

fn differing_counts(run: &Run, receipts: &HashMap<u32, Receipts>, found: &mut Found) -> Vec<Difference> {
    let mut differences = Vec::new();
    let expected = found.expected(receipts);
    for receipt in receipts.values().flat_map(BTreeMap::values) {
        let Some(expected) = expected.get(&receipt.chunk()) else { continue };
        let rows = found.chunks.get(&receipt.chunk()).map_or(0, |sum| sum.rows);
        if rows != expected.rows {
            differences.push(Difference::of_count(receipt, *expected, rows));
        }
    }
    let firsts = found.firsts.clone();
    let table_of = |file_no: u32| firsts[run.plan.file(file_no).table_no as usize];
    let mut expected_rows: BTreeMap<u32, u64> = BTreeMap::new();
    for (file_no, chunks) in receipts {
        *expected_rows.entry(table_of(*file_no)).or_default() +=
            chunks.values().map(|receipt| receipt.rows).sum::<u64>();
    }
    let mut of_frozen: BTreeMap<u32, Difference> = BTreeMap::new();
    for difference in &differences {
        let table_no = table_of(difference.file_no);
        let expected = expected_rows.get(&table_no).copied().unwrap_or_default();
        let planned = run.plan.table(table_no);
        match found.made.get(&table_no) {
            Some(all) if all.rows == expected => {
                found.rewritten.insert(table_no);
                if !planned.frozen {
                    found.others.remove(&planned.table.relation);
                }
            }
            Some(all) if planned.frozen => {
                of_frozen.insert(
                    table_no,
                    Difference { of_table: true, ..difference.clone() }.counted(all.rows, expected),
                );
            }
            _ => {}
        }
    }
    differences.retain(|difference| {
        let table_no = table_of(difference.file_no);
        !found.rewritten.contains(&table_no) && !of_frozen.contains_key(&table_no)
    });
    differences.extend(of_frozen.into_values());
    differences
}

/// Reads all files again and compares each chunk with what is stored of it. How many could only be counted
/// comes back.
async fn read_again(
    run: &Arc<Run>,
    ledger: &Ledger,
    receipts: HashMap<u32, Receipts>,
    found: Found,
) -> Result<u64> {
    let mut plan = run.plan.clone();
    let stored_in = plan.tables.iter().map(|table| table.stored_in().clone()).collect();
    for table in &mut plan.tables {
        verify::aim(table)?;
    }
    (plan.job.create_partitions, plan.job.arrival.freeze) = (None, false);
    let opened = open_all(&run.context, &plan).await?;
    // The second reading is no progress of the load.
    let context = Context { listener: Arc::new(Silent), ..run.context.clone() };
    let partitioner = Partitioner::new(None, Vec::new())?;
    let nothing_in = HashMap::new();
    let mut again = Run::new(&context, plan, run.layout, None, nothing_in, (Vec::new(), partitioner));
    again.budget = run.budget.clone();
    let comparison = Comparison {
        ledger: ledger.clone(),
        receipts,
        read: found.rewritten.iter().map(|table_no| (*table_no, Mutex::default())).collect(),
        found,
        stored_in,
        read_together: Mutex::default(),
        chunks: AtomicU64::new(0),
        counted: AtomicU64::new(0),
        explained: AtomicBool::new(false),
        differences: Mutex::default(),
    };
    again.comparison = Some(comparison);
    let again = Arc::new(again);
    pipeline::run(&again, opened).await?;
    again.comparison.as_ref().map_or(Ok(0), |comparison| comparison.result(run))
}

/// What chunks are compared with that are read again.
pub(crate) struct Comparison {
    ledger: Ledger,
    receipts: HashMap<u32, Receipts>,
    found: Found,
    /// What is read of tables whose rows were written anew, by their number.
    read: HashMap<u32, Mutex<Sum>>,
    /// What is read of chunks that came together, by the first of them; none where one of them could only be
    /// counted.
    read_together: Mutex<HashMap<ChunkId, Option<Sum>>>,
    /// Where the rows of each table of the plan are.
    stored_in: Vec<Relation>,
    /// Chunks that were compared.
    chunks: AtomicU64,
    /// Those among them whose rows were only counted.
    counted: AtomicU64,
    /// The columns of one difference are being looked for.
    explained: AtomicBool,
    differences: Mutex<Vec<Difference>>,
}

impl Comparison {
    /// Compares a chunk, and remembers where it differs.
    pub(crate) async fn compare(
        &self,
        run: &Run,
        session: &mut Session,
        target: &ChunkTarget<'_>,
        chunk: &CopyChunk,
        progress: &CopyProgress,
    ) -> Result<(), ChunkError> {
        let origin = &chunk.origin;
        let receipt = self.receipts.get(&origin.file_no).and_then(|chunks| chunks.get(&origin.chunk_no));
        let Some(receipt) = receipt else {
            let message = format!("chunk {} is read now and was not before", origin.chunk_no);
            return Err(Error::new(ErrorKind::SourceChanged, message).into());
        };
        let file = run.plan.file(origin.file_no);
        let good = match self.good(run, session, receipt, chunk).await? {
            Good::All => None,
            Good::These(records) => Some(records),
            Good::Unknown => {
                if let Some(first) = self.found.together.get(&origin.chunk()) {
                    self.read_together.lock().insert(*first, None);
                }
                self.chunks.fetch_add(1, Relaxed);
                self.counted.fetch_add(1, Relaxed);
                return Ok(());
            }
        };
        let stored = self.found.chunks.get(&origin.chunk()).copied().unwrap_or_default();
        let summed = self.summed(run, origin);
        let again = Again {
            target,
            ledger: &self.ledger,
            stored_in: &self.stored_in[file.table_no as usize],
            stored,
            good: good.as_deref(),
            explain: summed == Summing::Alone(origin.chunk()) && !self.explained.load(Relaxed),
        };
        let compared = verify::read_again(session, again, chunk, progress).await?;
        self.chunks.fetch_add(1, Relaxed);
        if !self.add(summed, compared.read) && compared.read != stored {
            self.explained.store(true, Relaxed);
            let expected = Expected { rows: receipt.rows, chunks: 1 };
            let difference = Difference::of_values(receipt, expected, compared.read, &compared.columns);
            self.differences.lock().push(difference);
        }
        Ok(())
    }

    /// The records that were stored, where some were rejected, or may have been.
    async fn good(&self, run: &Run, session: &Session, receipt: &Receipt, chunk: &CopyChunk) -> Result<Good> {
        if receipt.omitted.rejected == 0 {
            let all = || Good::These(vec![chunk.bytes.clone()]);
            return Ok(if chunk.aside.is_empty() { Good::All } else { all() });
        }
        let rejected = self.ledger.rejected_of_chunk(session, &run.plan.job_id, &chunk.origin).await?;
        let rows = rejects::rows(&run.plan, chunk);
        let table = run.plan.table_of(chunk.origin.file_no);
        let struck = match struck_by_bytes(chunk, &rows, &rejected) {
            // What is left out of a staging table may be kept in other words than are sent.
            struck if struck.len() < rejected.len() && table.staging.is_some() => {
                let omits = |receipt: &Receipt| receipt.omitted.left_out + receipt.omitted.blank > 0;
                // The reader of a rewritten file reads ahead: in which chunk a record was left out is not
                // known.
                let omits = match table.care {
                    Care::Rewritten => self.receipts[&receipt.file_no].values().any(omits),
                    Care::Server | Care::Watched => omits(receipt),
                };
                if omits { None } else { struck_by_number(chunk, rows.len() as u64, &rejected) }
            }
            struck => Some(struck),
        };
        let Some(struck) = struck else { return Ok(Good::Unknown) };
        let good = (0..).zip(rows).filter(|(row, _)| !struck.contains(row) && in_file(chunk, *row).is_none());
        Ok(Good::These(good.map(|(_, range)| chunk.bytes.slice(range)).collect()))
    }

    /// Chunks of small files that came together, of which other is stored than was read.
    fn differing_together(&self) -> Vec<Difference> {
        let read = self.read_together.lock();
        if read.is_empty() {
            return Vec::new();
        }
        let expected = self.found.expected(&self.receipts);
        let difference = |(first, read): (&ChunkId, &Option<Sum>)| {
            let read = (*read)?;
            let stored = self.found.chunks.get(first).copied().unwrap_or_default();
            let receipt = self.receipts.get(&first.file_no)?.get(&first.chunk_no)?;
            let expected = expected.get(first).copied().unwrap_or_default();
            (read != stored).then(|| Difference::of_values(receipt, expected, read, &[]))
        };
        read.iter().filter_map(difference).collect()
    }

    /// How many chunks were only counted.
    fn result(&self, run: &Run) -> Result<u64> {
        let mut differences = self.differences.lock().clone();
        differences.extend(self.differing_together());
        result(run, &self.receipts, differences)?;
        for (table_no, read) in &self.read {
            let read = *read.lock();
            if self.found.made.get(table_no) != Some(&read) {
                return Err(other_values(run.plan.table(*table_no)));
            }
        }
        let read = self.chunks.load(Relaxed);
        let stored: u64 = self.receipts.values().map(|chunks| chunks.len() as u64).sum();
        if read == stored {
            return Ok(self.counted.load(Relaxed));
        }
        let were = plural(read, "chunk was", "chunks were");
        let message = format!("{read} {were} read now, expected the {stored} that were stored");
        Err(Error::new(ErrorKind::SourceChanged, message))
    }
}

/// The records of a chunk that were stored.
enum Good {
    All,
    These(Vec<Bytes>),
    /// The others are kept in other words than are sent, and their numbers are not known.
    Unknown,
}

/// What the file has, where the reader has kept a record: what is sent only stands for it.
fn in_file(chunk: &CopyChunk, row: u64) -> Option<&Bytes> {
    let aside = chunk.aside.binary_search_by_key(&row, |aside| aside.row);
    aside.ok().and_then(|no| chunk.aside[no].in_file.as_ref())
}

/// A record as it is kept, with its number where that is known.
type Kept = (Option<u64>, Bytes);

/// The rows, counted from 0, that are rejected records as they are kept. Of records that are byte for byte
/// the same, it makes no difference which was stored.
fn struck_by_bytes(chunk: &CopyChunk, rows: &[Range<usize>], rejected: &[Kept]) -> HashSet<u64> {
    let mut times: HashMap<&Bytes, u64> = HashMap::new();
    for (_, record) in rejected {
        *times.entry(record).or_default() += 1;
    }
    let mut is_rejected = |record: &Bytes| match times.get_mut(record) {
        Some(times) if *times > 0 => {
            *times -= 1;
            true
        }
        _ => false,
    };
    let record = |row: u64, range: &Range<usize>| match in_file(chunk, row) {
        Some(in_file) => in_file.clone(),
        None => chunk.bytes.slice(range.clone()),
    };
    let struck = (0..).zip(rows).filter(|(row, range)| is_rejected(&record(*row, range)));
    struck.map(|(row, _)| row).collect()
}

/// The same by the numbers of the records, of which none was left out.
fn struck_by_number(chunk: &CopyChunk, rows: u64, rejected: &[Kept]) -> Option<HashSet<u64>> {
    let row = |record: Option<u64>| record?.checked_sub(chunk.origin.first_record).filter(|row| *row < rows);
    let struck: HashSet<u64> = rejected.iter().map(|(record, _)| row(*record)).collect::<Option<_>>()?;
    (struck.len() == rejected.len()).then_some(struck)
}
