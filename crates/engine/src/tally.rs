//! Counts what happens, thread-safe and cheap, and turns the counts into a [`Summary`].

mod first_rejects;
pub(crate) mod pauses;

use crate::jobs::{Seen, Trace};
use crate::limit;
use first_rejects::FirstRejects;
use howdah_model::summary::Status;
use howdah_model::{
    Changes, FilePlan, FileSummary, LeftOut, Mend, Omitted, Plan, ReadValues, Reject, Relation, SessionsStep,
    Stage, Summary, TableSummary, Verified,
};
use howdah_target::ledger::FileAccount;
use howdah_transcode::mend::Counts;
use parking_lot::Mutex;
use pauses::Pauses;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const STAGES: [Stage; 13] = [
    Stage::Read,
    Stage::Decompress,
    Stage::Split,
    Stage::Encode,
    Stage::Copy,
    Stage::Commit,
    Stage::Indexes,
    Stage::Finish,
    Stage::Apply,
    Stage::Verify,
    Stage::Vacuum,
    Stage::Analyze,
    Stage::Checkpoint,
];

/// One file's counters.
#[derive(Debug, Default)]
pub(crate) struct FileTally {
    /// Stored bytes read, in the reading under way or the last one.
    pub bytes_read: AtomicU64,
    /// The most that an earlier reading of this run has read.
    bytes_read_before: AtomicU64,
    /// Records found, those in receipts of earlier runs included.
    pub rows_read: AtomicU64,
    /// Rows in the table.
    pub rows_stored: AtomicU64,
    /// Of these, stored by another run.
    pub rows_before: AtomicU64,
    /// Chunks found, those with receipts of earlier runs included.
    pub chunks: AtomicU64,
    /// Records left out, those of chunks in receipts of earlier runs included.
    left_out: AtomicU64,
    /// Of these, left out by another run.
    left_out_before: AtomicU64,
    /// Records that the table refused, those of chunks in receipts of earlier runs included.
    rejected: AtomicU64,
    /// Of these, refused in another run.
    rejected_before: AtomicU64,
    /// The first of them in this run.
    first_rejects: FirstRejects,
    /// All its chunks have been found.
    pub read_done: AtomicBool,
    /// Chunks found and not yet stored.
    pub open_chunks: AtomicU64,
    /// What was done to records that did not fit, in the last reading of the file.
    mends: Mutex<Option<Arc<Counts>>>,
    told_done: AtomicBool,
}

impl FileTally {
    /// Stored bytes that this run had to read: those that are read once more count once.
    fn bytes_read_once(&self) -> u64 {
        self.bytes_read.load(Relaxed).max(self.bytes_read_before.load(Relaxed))
    }

    /// It is read once more: its rows are counted from zero. What other runs had stored stays known.
    fn restart(&self) {
        self.bytes_read_before.fetch_max(self.bytes_read.swap(0, Relaxed), Relaxed);
        self.chunks.store(0, Relaxed);
        self.rows_read.store(0, Relaxed);
        self.left_out.store(0, Relaxed);
        self.rejected.store(0, Relaxed);
        self.rows_stored.store(0, Relaxed);
        self.read_done.store(false, Relaxed);
        self.open_chunks.store(0, Relaxed);
        self.first_rejects.begin_round();
    }

    /// A chunk was found that is to be stored.
    pub(crate) fn found_chunk(&self, records: u64, omitted: Omitted) {
        self.count_chunk(records, omitted);
        self.open_chunks.fetch_add(1, Relaxed);
    }

    fn count_chunk(&self, records: u64, omitted: Omitted) {
        self.chunks.fetch_add(1, Relaxed);
        self.rows_read.fetch_add(records, Relaxed);
        self.left_out.fetch_add(omitted.left_out, Relaxed);
    }

    /// Counters for a reading of the file that begins now.
    pub(crate) fn fresh_mends(&self, fields: usize) -> Arc<Counts> {
        let counts = Arc::new(Counts::new(fields));
        *self.mends.lock() = Some(Arc::clone(&counts));
        counts
    }

    /// Counters for chunks that are mended one by one: they go on when chunks are loaded once more.
    pub(crate) fn mends(&self, fields: usize) -> Arc<Counts> {
        let mut mends = self.mends.lock();
        Arc::clone(mends.get_or_insert_with(|| Arc::new(Counts::new(fields))))
    }

    /// The counters of the reading under way or, if there is none, of the last one.
    pub(crate) fn mends_so_far(&self) -> Option<Arc<Counts>> {
        self.mends.lock().clone()
    }

    /// All chunks of the file have been found and stored.
    pub(crate) fn is_complete(&self) -> bool {
        self.read_done.load(Relaxed) && self.open_chunks.load(Relaxed) == 0
    }

    /// True once, when that is so.
    pub(crate) fn becomes_done(&self) -> bool {
        self.is_complete() && !self.told_done.swap(true, Relaxed)
    }
}

/// The files of one table.
#[derive(Debug, Default)]
pub(crate) struct FilesOfTable {
    /// By their numbers in the plan.
    pub(crate) numbers: Vec<u32>,
    /// So many of them, from the first on, are known to be complete.
    complete: AtomicUsize,
}

impl FilesOfTable {
    /// All chunks of all of them are in. What was looked at before is not looked at again: there may be many
    /// files.
    pub(crate) fn are_complete(&self, tally: &Tally) -> bool {
        let known = self.complete.load(Relaxed);
        let more = self.numbers.iter().skip(known).take_while(|file_no| tally.file(**file_no).is_complete());
        let complete = known + more.count();
        self.complete.store(complete, Relaxed);
        complete == self.numbers.len()
    }

    /// They are read once more.
    pub(crate) fn restart(&self) {
        self.complete.store(0, Relaxed);
    }
}

/// All counters of one run.
#[derive(Debug)]
pub(crate) struct Tally {
    /// For people: no password.
    server: String,
    /// How long it took to plan, and to begin the job.
    pub planned_for: OnceLock<Duration>,
    started: Instant,
    /// Per file of the plan.
    pub files: Vec<FileTally>,
    stages_ns: [AtomicU64; STAGES.len()],
    /// Plain bytes in chunks stored by this run.
    pub bytes_stored: AtomicU64,
    /// Transient failures tried again.
    pub retries: AtomicU64,
    /// Sessions copying now.
    pub sessions: AtomicU32,
    sessions_max: AtomicU32,
    waits: Mutex<HashMap<String, u64>>,
    /// What was seen since it was last asked for.
    seen: Mutex<Seen>,
    /// When the server took the first bytes.
    first_bytes: OnceLock<Instant>,
    trace: Mutex<Trace>,
    warnings: Mutex<Vec<String>>,
    /// What became of the rows in each table, by `schema.name`.
    changes: Mutex<BTreeMap<String, Changes>>,
    /// Rows that have come from a staging table into this one, where others still wait.
    come: Mutex<BTreeMap<String, u64>>,
    tuned: Mutex<Vec<String>>,
    verified: Mutex<Option<Verified>>,
    /// When no chunk was begun.
    pub pauses: Pauses,
    /// The files are read once more, after a crash of the server.
    again: AtomicBool,
}

impl Tally {
    /// All zero, the clock running.
    pub(crate) fn new(plan: &Plan, server: String) -> Tally {
        Tally {
            server,
            planned_for: OnceLock::new(),
            started: Instant::now(),
            files: plan.files.iter().map(|_| FileTally::default()).collect(),
            stages_ns: std::array::from_fn(|_| AtomicU64::new(0)),
            bytes_stored: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            sessions: AtomicU32::new(0),
            sessions_max: AtomicU32::new(0),
            waits: Mutex::new(HashMap::new()),
            seen: Mutex::default(),
            first_bytes: OnceLock::new(),
            trace: Mutex::default(),
            warnings: Mutex::default(),
            changes: Mutex::default(),
            come: Mutex::default(),
            tuned: Mutex::default(),
            verified: Mutex::default(),
            pauses: Pauses::default(),
            again: AtomicBool::new(false),
        }
    }

    /// The counters of one file.
    pub(crate) fn file(&self, file_no: u32) -> &FileTally {
        &self.files[file_no as usize]
    }

    /// The largest number of sessions that copied at once.
    pub(crate) fn sessions(&self) -> u32 {
        self.sessions_max.load(Relaxed)
    }

    /// Adds time to a stage.
    pub(crate) fn spend(&self, stage: Stage, spent: Duration) {
        self.stages_ns[stage as usize]
            .fetch_add(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Runs `work` and adds its time to a stage.
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.spend(stage, start.elapsed());
        done
    }

    /// One more session copies.
    pub(crate) fn session_opened(&self) {
        let open = self.sessions.fetch_add(1, Relaxed) + 1;
        self.sessions_max.fetch_max(open, Relaxed);
    }

    /// One session fewer copies.
    pub(crate) fn session_closed(&self) {
        self.sessions.fetch_sub(1, Relaxed);
    }

    /// Sessions were seen in these wait events, some of them without a chunk.
    pub(crate) fn saw_waits(&self, seen: &[(String, u32)], without_chunk: u32) {
        self.seen.lock().look(seen, without_chunk);
        let mut waits = self.waits.lock();
        for (wait, sessions) in seen {
            *waits.entry(wait.clone()).or_default() += u64::from(*sessions);
        }
    }

    /// What was seen of the sessions since this was asked last.
    pub(crate) fn take_seen(&self) -> Seen {
        std::mem::take(&mut self.seen.lock())
    }

    /// The time since the server took the first bytes, which it has.
    pub(crate) fn since_first_bytes(&self) -> Duration {
        self.first_bytes.get_or_init(Instant::now).elapsed()
    }

    /// The number of sessions was thought over.
    pub(crate) fn decided(&self, step: SessionsStep) {
        self.trace.lock().push(step);
    }

    /// The number of sessions that was found, if one was looked for.
    pub(crate) fn sessions_found(&self) -> Option<u32> {
        self.trace.lock().sessions()
    }

    /// The user is to know this; false if it is known already.
    pub(crate) fn warn(&self, message: &str) -> bool {
        let mut warnings = self.warnings.lock();
        let is_new = !warnings.iter().any(|known| known == message);
        if is_new {
            warnings.push(message.to_owned());
        }
        is_new
    }

    /// All rows have come from the staging table into this one.
    pub(crate) fn set_changes(&self, table: &Relation, changes: Changes) {
        self.changes.lock().insert(table.to_string(), changes);
    }

    /// That is known of this table.
    pub(crate) fn has_changes(&self, table: &Relation) -> bool {
        self.changes_of(table).is_some()
    }

    /// What has come of its rows, where they came from a staging table.
    pub(crate) fn changes_of(&self, table: &Relation) -> Option<Changes> {
        self.changes.lock().get(&table.to_string()).copied()
    }

    /// Rows still wait in a staging table when the load ends; so many have come into this one.
    pub(crate) fn set_come(&self, table: &Relation, rows: u64) {
        self.come.lock().insert(table.to_string(), rows);
    }

    /// Rows that are in no table at the end of this run: of all that were stored, those that still wait.
    pub(crate) fn rows_waiting(&self, plan: &Plan) -> u64 {
        let come = self.come.lock();
        let waiting = come.iter().map(|(table, rows)| self.rows_for(plan, table).saturating_sub(*rows));
        waiting.sum()
    }

    fn rows_for(&self, plan: &Plan, table: &str) -> u64 {
        let of_table = |file: &FilePlan| plan.table(file.table_no).table.relation.to_string() == table;
        let files = plan.files.iter().enumerate().filter(|(_, file)| of_table(file));
        files.map(|(no, _)| self.rows_of(no)).sum()
    }

    /// Names of those that were changed for the whole server.
    pub(crate) fn tuned_of_server(&self) -> Vec<String> {
        let tuned = self.tuned.lock();
        tuned.iter().filter_map(|tuned| Some(tuned.split_once(" of the server = ")?.0.to_owned())).collect()
    }

    /// A setting was changed for this load.
    pub(crate) fn tuned(&self, setting: String) {
        self.tuned.lock().push(setting);
    }

    /// What is stored is what was read.
    pub(crate) fn set_verified(&self, verified: Verified) {
        *self.verified.lock() = Some(verified);
    }

    /// The files are read once more, after a crash of the server.
    pub(crate) fn reads_again(&self) -> bool {
        self.again.load(Relaxed)
    }

    /// A chunk is in; `before`: by another run. True when it is the first time that this is counted: of what
    /// is read once more, most is known already.
    pub(crate) fn stored(&self, file_no: u32, rows: u64, before: bool) -> bool {
        let first = !self.reads_again();
        let file = self.file(file_no);
        file.rows_stored.fetch_add(rows, Relaxed);
        if before && first {
            file.rows_before.fetch_add(rows, Relaxed);
        }
        first
    }

    /// A chunk was found that is in already, with so many rows.
    pub(crate) fn known_chunk(&self, file_no: u32, rows: u64, omitted: Omitted) {
        let file = self.file(file_no);
        file.count_chunk(rows + omitted.rejected, omitted);
        file.rejected.fetch_add(omitted.rejected, Relaxed);
        if !self.again.load(Relaxed) {
            file.left_out_before.fetch_add(omitted.left_out, Relaxed);
            file.rejected_before.fetch_add(omitted.rejected, Relaxed);
        }
    }

    /// Records of a chunk were refused that is in otherwise.
    pub(crate) fn rejected(&self, location: &str, file_no: u32, rejects: &[Reject]) {
        let file = self.file(file_no);
        file.rejected.fetch_add(rejects.len() as u64, Relaxed);
        file.first_rejects.add(location, rejects);
    }

    /// What the server has lost comes once more.
    pub(crate) fn begin_round(&self) {
        self.files.iter().for_each(|file| file.first_rejects.begin_round());
    }

    /// Records refused, those of other runs of the job included.
    pub(crate) fn rows_rejected(&self) -> u64 {
        self.files.iter().map(|file| file.rejected.load(Relaxed)).sum()
    }

    /// What the ledger says at the end of a file's rows: some may have been stored by another run at the same
    /// time.
    pub(crate) fn settle(&self, file_no: usize, rows: u64, rejected: u64) {
        if let Some(file) = self.files.get(file_no) {
            file.rows_stored.store(rows, Relaxed);
            file.rejected.store(rejected, Relaxed);
            // Rows that another run has stored to wait may have been left out since.
            file.rows_before.fetch_min(rows, Relaxed);
        }
    }

    /// Rows in the tables, those of other runs of the job included.
    pub(crate) fn rows_stored(&self) -> u64 {
        self.files.iter().map(|file| file.rows_stored.load(Relaxed)).sum()
    }

    /// Chunks that are in, those of other runs of the job included.
    pub(crate) fn chunks(&self) -> u64 {
        self.files.iter().map(|file| file.chunks.load(Relaxed)).sum()
    }

    /// Records read, those of other runs of the job included.
    pub(crate) fn rows_read(&self) -> u64 {
        (0..self.files.len()).map(|no| self.account(no).rows_read).sum()
    }

    /// Rows of one file in its table.
    pub(crate) fn rows_of(&self, file_no: usize) -> u64 {
        self.files.get(file_no).map_or(0, |file| file.rows_stored.load(Relaxed))
    }

    /// What was counted of one file.
    pub(crate) fn account(&self, file_no: usize) -> FileAccount {
        let Some(file) = self.files.get(file_no) else { return FileAccount::default() };
        let left_out = file.left_out.load(Relaxed);
        FileAccount {
            rows_read: file.rows_read.load(Relaxed) + left_out,
            rows_stored: file.rows_stored.load(Relaxed),
            rows_rejected: file.rejected.load(Relaxed) + left_out,
        }
    }

    /// The files are read once more.
    pub(crate) fn restart_rows(&self) {
        self.again.store(true, Relaxed);
        self.files.iter().for_each(FileTally::restart);
    }

    /// The account so far.
    pub(crate) fn summary(&self, plan: &Plan, status: Status) -> Summary {
        let files: Vec<FileSummary> =
            plan.files.iter().enumerate().map(|(no, _)| self.file_summary(plan, no)).collect();
        let changes = self.changes.lock();
        let come = self.come.lock().clone();
        let mut tables: BTreeMap<String, TableSummary> = BTreeMap::new();
        for file in &files {
            let table = tables.entry(file.table.clone()).or_insert_with(|| TableSummary {
                table: file.table.clone(),
                rows_read: 0,
                rows_stored: 0,
                changes: changes.get(&file.table).copied(),
            });
            table.rows_read += file.rows_read;
            table.rows_stored += file.rows_stored;
        }
        for (name, rows) in come {
            tables.entry(name).and_modify(|table| table.rows_stored = rows);
        }
        let rows_stored = tables.values().map(|table| table.rows_stored).sum();
        let sum = |count: fn(&FileTally) -> &AtomicU64| {
            self.files.iter().map(|file| count(file).load(Relaxed)).sum::<u64>()
        };
        let mut summary = Summary {
            job: plan.job_id.clone(),
            status,
            server: self.server.clone(),
            rows_read: files.iter().map(|file| file.rows_read).sum(),
            rows_stored,
            rows_stored_before: sum(|file| &file.rows_before).min(rows_stored),
            rows_waiting: self.rows_waiting(plan),
            rows_rejected: files.iter().map(|file| file.rows_rejected).sum(),
            rows_rejected_before: sum(|file| &file.left_out_before) + sum(|file| &file.rejected_before),
            comments: self.mends().map(|counts| counts.comments()).sum(),
            mended: self.mended(),
            left_out: self.left_out(plan),
            warnings: self.warnings.lock().clone(),
            unsure: plan.unsure(),
            read: self.read_values(plan),
            bytes_read: files.iter().map(|file| file.bytes_read).sum(),
            planning_seconds: self.planned_for.get().map_or(0.0, Duration::as_secs_f64),
            wall_seconds: self.started.elapsed().as_secs_f64(),
            stages: self.stages(),
            sessions: self.sessions_max.load(Relaxed),
            sessions_trace: self.trace.lock().steps(),
            waits: self.wait_shares(),
            limit: None,
            retries: self.retries.load(Relaxed),
            tuned: self.tuned.lock().clone(),
            paused_seconds: self.pauses.paused(Instant::now()).as_secs_f64(),
            files,
            tables: tables.into_values().collect(),
            verified: self.verified.lock().clone(),
        };
        summary.limit = limit::of(&summary);
        summary
    }

    fn file_summary(&self, plan: &Plan, no: usize) -> FileSummary {
        let (file, tally) = (&plan.files[no], &self.files[no]);
        let FileAccount { rows_read, mut rows_stored, rows_rejected } = self.account(no);
        let table = plan.table(file.table_no).table.relation.to_string();
        // Which file the rows are of that have come in is not known.
        if self.come.lock().contains_key(&table) {
            rows_stored = 0;
        }
        FileSummary {
            location: file.location.clone(),
            table,
            rows_read,
            rows_stored,
            rows_rejected,
            bytes_read: tally.bytes_read_once(),
            done: tally.read_done.load(Relaxed)
                && tally.open_chunks.load(Relaxed) == 0
                && rows_read == rows_stored + rows_rejected,
        }
    }

    fn mends(&self) -> impl Iterator<Item = Arc<Counts>> {
        self.files.iter().filter_map(FileTally::mends_so_far)
    }

    /// What this run has mended. Records left out are those of the whole job: they are told from the rest by
    /// being in no table, whichever run it was.
    fn mended(&self) -> BTreeMap<Mend, u64> {
        let mut mended = BTreeMap::new();
        for counts in self.mends() {
            for mend in Mend::ALL {
                *mended.entry(mend).or_insert(0) += counts.mended(mend);
            }
        }
        mended.insert(Mend::LeftOut, self.files.iter().map(|file| file.left_out.load(Relaxed)).sum());
        mended.retain(|_, count| *count > 0);
        mended
    }

    fn left_out(&self, plan: &Plan) -> Vec<LeftOut> {
        let of_file = |(file, tally): (&FilePlan, &FileTally)| {
            let mut left_out = tally.mends_so_far().map(|counts| counts.left_out()).unwrap_or_default();
            // Chunks that a crash of the server took were mended twice.
            left_out.sort_by_key(|out| out.byte);
            left_out.dedup();
            let location = file.location.clone();
            let mended = left_out.into_iter().map(move |out| LeftOut {
                file: location.clone(),
                record: Some(out.record),
                line: None,
                byte: Some(out.byte),
                column: None,
                sqlstate: None,
                reason: out.reason,
            });
            mended.chain(tally.first_rejects.in_order())
        };
        plan.files.iter().zip(&self.files).flat_map(of_file).collect()
    }

    /// Files of one table add up.
    fn read_values(&self, plan: &Plan) -> Vec<ReadValues> {
        let mut read: Vec<ReadValues> = Vec::new();
        for (file, tally) in plan.files.iter().zip(&self.files) {
            let (table, counts) = (plan.table(file.table_no), tally.mends_so_far());
            for (no, (column, reading)) in table.fields.iter().zip(&table.readings).enumerate() {
                let (Some(column), Some(reading), Some(counts)) = (column, reading, &counts) else {
                    continue;
                };
                let relation = table.table.relation.to_string();
                let values = counts.values_read(no);
                match read.iter_mut().find(|known| known.table == relation && known.column == *column) {
                    Some(known) => known.values += values,
                    None => read.push(ReadValues {
                        table: relation,
                        column: column.clone(),
                        reading: reading.clone(),
                        values,
                    }),
                }
            }
        }
        read
    }

    fn stages(&self) -> BTreeMap<Stage, f64> {
        let seconds =
            |stage: Stage| Duration::from_nanos(self.stages_ns[stage as usize].load(Relaxed)).as_secs_f64();
        STAGES.into_iter().map(|stage| (stage, seconds(stage))).collect()
    }

    fn wait_shares(&self) -> BTreeMap<String, f64> {
        let waits = self.waits.lock();
        let all: u64 = waits.values().sum();
        // A count of samples: far below 2^53.
        waits.iter().map(|(wait, seen)| (wait.clone(), *seen as f64 / all.max(1) as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_read_once_more_count_once() {
        let file = FileTally::default();
        file.bytes_read.fetch_add(100, Relaxed);
        file.restart();
        file.bytes_read.fetch_add(30, Relaxed);
        assert_eq!(file.bytes_read_once(), 100);
        // A crash in the midst of the first reading.
        file.bytes_read.fetch_add(110, Relaxed);
        assert_eq!(file.bytes_read_once(), 140);
    }
}
