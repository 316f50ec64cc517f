//! Files that a finished job has loaded into the table they would go to: rows that are appended would be there twice.

use super::identity::{Settled, Version};
use super::sources::Source;
use super::{History, ledger_of};
use howdah_model::{Error, ErrorKind, Job, KnownFile, KnownFiles, Mode, Plan, Result};
use howdah_target::ledger::{FileToLoad, LoadedFile};
use howdah_target::session::{Session, catalog};
use howdah_target::truncate;
use std::collections::{BTreeMap, BTreeSet};

/// What somebody who holds the table for himself answers with.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The files that were found, and which of them are this run's.
pub(super) struct Choice {
    known: Vec<Option<KnownFile>>,
    kept: Vec<bool>,
    /// So many came since the job began, and are no part of it.
    pub(super) came: usize,
}

impl Choice {
    /// All but what is left out by `--known skip`.
    pub(super) fn new(job: &Job, known: Vec<Option<KnownFile>>) -> Choice {
        let skips = of(job) == KnownFiles::Skip;
        let kept = known.iter().map(|known| !skips || known.is_none()).collect();
        Choice { known, kept, came: 0 }
    }

    /// What is this run's.
    pub(super) fn keep<T>(&self, found: &mut Vec<T>) {
        let mut kept = self.kept.iter();
        found.retain(|_| kept.next().copied().unwrap_or(true));
    }

    /// There is none.
    pub(super) fn is_nothing(&self) -> bool {
        !self.kept.contains(&true)
    }

    /// Leaves out what is not of the job, which has begun before it came.
    pub(super) fn keep_own(&mut self, own: Option<Vec<bool>>) {
        let Some(own) = own else { return };
        let mut own = own.into_iter();
        for (kept, known) in self.kept.iter_mut().zip(&self.known).filter(|(kept, _)| **kept) {
            *kept = own.next().unwrap_or(true);
            self.came += usize::from(!*kept && known.is_none());
        }
    }

    /// What the plan says of them: those that are left out, or that are loaded once more.
    pub(super) fn known(&self, job: &Job) -> Vec<KnownFile> {
        let skips = of(job) == KnownFiles::Skip;
        let told = self.known.iter().zip(&self.kept).filter(|(_, kept)| skips || **kept);
        told.filter_map(|(known, _)| known.clone()).collect()
    }

    /// A load that is new does not load files once more unless it is told to.
    ///
    /// # Errors
    /// Table, with the job that has loaded them.
    pub(super) fn expect_new(&self, job: &Job, settled: &Settled) -> Result<()> {
        let (known, files) = (self.known(job), self.kept.len());
        if of(job) != KnownFiles::Refuse || settled.history != History::Fresh || known.is_empty() {
            return Ok(());
        }
        let hint = if known.len() == files {
            "`--known load` loads them once more, `--known skip` has nothing to do then"
        } else {
            "`--known skip` loads only the others, `--known load` loads all of them"
        };
        Err(Error::new(ErrorKind::Table, told(&known, files)).with_hint(hint))
    }

    /// The latest job that has loaded any of them.
    pub(super) fn latest_job(&self) -> Option<String> {
        latest(self.known.iter().flatten()).map(|known| known.job_id.clone())
    }
}

/// `--force` means to load everything once more.
fn of(job: &Job) -> KnownFiles {
    if job.force { KnownFiles::Load } else { job.known }
}

fn latest<'a>(known: impl Iterator<Item = &'a KnownFile>) -> Option<&'a KnownFile> {
    known.max_by(|one, other| (&one.at, &other.location).cmp(&(&other.at, &one.location)))
}

/// Which of these files are in their tables already.
pub fn in_tables(plan: &Plan) -> Option<String> {
    if plan.known.is_empty() {
        return None;
    }
    let of_plan: BTreeSet<&str> = plan.files.iter().map(|file| file.location.as_str()).collect();
    let left_out = if of(&plan.job) == KnownFiles::Skip { plan.known.len() } else { 0 };
    Some(told(&plan.known, of_plan.len() + left_out))
}

fn told(known: &[KnownFile], files: usize) -> String {
    let Some(latest) = latest(known.iter()) else { return String::new() };
    let what = match (known.len(), files) {
        (1, 1) => "the file is".to_owned(),
        (count, files) if count == files => format!("all {files} files are"),
        (1, files) => format!("1 of {files} files is"),
        (count, files) => format!("{count} of {files} files are"),
    };
    let is_one = |of: fn(&KnownFile) -> &str| known.iter().all(|file| of(file) == of(latest));
    let table = if is_one(|file| &file.table) { latest.table.clone() } else { "their tables".to_owned() };
    let by = if is_one(|file| &file.job_id) { "by" } else { "the latest by" };
    let others = match known.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let KnownFile { location, job_id, at, .. } = latest;
    format!("{what} in {table} already, {by} job {job_id} of {at}: {location}{others}")
}

/// What the ledger knows of each source, where rows are appended. A table that is not there, or is empty, holds nothing, whatever was
/// loaded into it. A job that is gone on with is asked for its own files.
pub(super) async fn look(session: &Session, job: &Job, sources: &[Source]) -> Result<Vec<Option<KnownFile>>> {
    let mut known = vec![None; sources.len()];
    let appends = job.arrival.mode == Mode::Append && !job.arrival.check;
    let Some(ledger) = ledger_of(job).filter(|_| appends) else { return Ok(known) };
    let versions: Vec<Version> = sources.iter().map(|source| Version::of(&source.object)).collect();
    let files: Vec<FileToLoad<'_>> =
        versions.iter().enumerate().flat_map(|(no, file)| file.names(no)).collect();
    let mut tables: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for LoadedFile { no, file } in ledger.loaded(session, &files).await? {
        let Some(source) = sources.get(no).filter(|_| job.resumes.as_ref() != Some(&file.job_id)) else {
            continue;
        };
        let table = match tables.get(source.table.as_str()) {
            Some(table) => table.clone(),
            None => {
                let table = table_with_rows(session, &source.table, job.arrival.lock_timeout_ms).await?;
                tables.entry(&source.table).or_insert(table).clone()
            }
        };
        let is_later = |other: &Option<KnownFile>| other.as_ref().is_none_or(|other| other.at < file.at);
        if table.as_ref() == Some(&file.table) && is_later(&known[no]) {
            known[no] = Some(file);
        }
    }
    Ok(known)
}

/// The table's name in the ledger, if it holds rows, as far as can be told. What else there is to say about it, planning says.
async fn table_with_rows(session: &Session, written: &str, lock_timeout_ms: u64) -> Result<Option<String>> {
    let table = match catalog::find_table(session, written).await {
        Err(error) if error.kind() == ErrorKind::Table => return Ok(None),
        found => found?,
    };
    let Some(table) = table else { return Ok(None) };
    let is_empty = match truncate::is_empty(session, &table.relation, lock_timeout_ms).await {
        Err(error) if error.sqlstate() == Some(LOCK_NOT_AVAILABLE) => None,
        looked => looked?,
    };
    Ok((is_empty != Some(true)).then(|| table.relation.to_string()))
}
