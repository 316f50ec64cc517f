//! Files that a finished job has loaded into the table they would go to: rows that are appended would be
//! there twice.

use super::identity::{Settled, Version};
use super::sources::Source;
use super::{History, ledger_of};
use crate::{Connection, again};
use howdah_model::{
    Error, ErrorKind, FilePlan, Job, KnownFile, KnownFiles, Mode, Plan, Relation, Result, Table, sqlstate,
};
use howdah_target::ledger::{FileToLoad, Ledger, LoadedFile};
use howdah_target::session::{Session, catalog};
use howdah_target::sql::quote_relation;
use howdah_target::truncate;
use std::collections::{BTreeMap, BTreeSet};

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

    /// Of a job that has stored rows: what others had loaded of its files when it began first was gone from
    /// the tables then, or it would not have begun. That they hold rows again says nothing of it: these are
    /// the job's own. Of a file that has changed since, another version was asked for then.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(super) async fn forget_gone(
        &mut self,
        session: &Session,
        job: &Job,
        versions: &[Version],
        settled: &Settled,
    ) -> Result<()> {
        let is_meant = settled.began.as_ref().is_none_or(|began| began.once_more);
        let Some(ledger) = ledger_of(job).filter(|_| settled.history.has_rows() && !is_meant) else {
            return Ok(());
        };
        let changed = ever_changed(settled);
        let is_own =
            |kept: bool, version: &Version| kept && !version.is_any_of(|name| changed.contains(name));
        let files = self.known.iter_mut().zip(&self.kept).zip(versions);
        let own = files.filter(|((_, kept), version)| is_own(**kept, version));
        let mut own: Vec<_> = own.map(|((known, _), _)| known).collect();
        let jobs: BTreeSet<String> =
            own.iter().filter_map(|known| Some(known.as_ref()?.job_id.clone())).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let gone = ledger.done_before(session, &settled.name, &jobs).await?;
        own.iter_mut().for_each(|known| drop(known.take_if(|file| gone.contains(&file.job_id))));
        Ok(())
    }

    /// A job that goes on has rows of its own of these files, whoever has loaded them as well; `--known skip`
    /// leaves out those of which it has none. Of those that were known when it began, what its beginner has
    /// said holds.
    ///
    /// # Errors
    /// Table, for files whose rows wait in a staging table.
    pub(super) fn go_on(
        &mut self,
        connection: &Connection,
        job: &mut Job,
        versions: &[Version],
        settled: &mut Settled,
    ) -> Result<()> {
        let (History::Begun(receipts), Some(began)) = (&settled.history, &settled.began) else {
            return Ok(());
        };
        let mut none = Vec::new();
        let (files, is_staged) = match &mut settled.earlier {
            Some((earlier, _)) => (&mut earlier.files, earlier.job.arrival.is_staged()),
            None => (&mut none, false),
        };
        let begun: BTreeSet<u32> = receipts.iter().map(|receipt| receipt.file_no).collect();
        let of_begun = (0..).zip(files.iter()).filter(|(no, _)| begun.contains(no));
        let begun: BTreeSet<String> = of_begun.flat_map(|(_, file)| names(file).cloned()).collect();
        let is_wanted =
            |file: &KnownFile| of(job) == KnownFiles::Load || began.once_more && file.at < began.at;
        let mut left_out = BTreeSet::new();
        for (known, version) in self.known.iter_mut().zip(versions) {
            let is_begun = version.is_any_of(|name| begun.contains(name));
            if let Some(file) = known.as_ref().filter(|file| is_begun && is_staged && !is_wanted(file)) {
                return Err(waits_as_well(connection, job, &settled.name, file));
            }
            known.take_if(|_| is_begun);
            if known.is_some() && of(job) == KnownFiles::Skip {
                left_out.extend(version.paths().map(str::to_owned));
            }
        }
        for file in files {
            let is_left_out = names(file).any(|name| left_out.contains(name));
            file.left_out = is_left_out;
        }
        // Whoever has come since, or is at work on them, is still asked for.
        job.once_more_until = began.once_more.then(|| began.at.clone());
        Ok(())
    }

    /// Everything that was found may be this run's.
    pub(super) fn with_all(self) -> Choice {
        Choice { kept: vec![true; self.known.len()], ..self }
    }

    /// Some of what was found is left out.
    pub(super) fn leaves_out(&self) -> bool {
        self.kept.contains(&false)
    }

    /// What the plan says of them: those that are left out, or that are loaded once more.
    pub(super) fn known(&self, job: &Job) -> Vec<KnownFile> {
        let skips = of(job) == KnownFiles::Skip;
        let told = self.known.iter().zip(&self.kept).filter(|(_, kept)| skips || **kept);
        told.filter_map(|(known, _)| known.clone()).collect()
    }

    /// A load does not load files once more unless it is told to, or has begun to.
    ///
    /// # Errors
    /// `FilesLoaded` or Table, with the job that has loaded them.
    pub(super) fn expect_new(&self, job: &Job, settled: &Settled) -> Result<()> {
        let (mut known, files) = (self.known(job), self.kept.len());
        known.retain(|file| !comes_once_more(job, file));
        let goes_on = match settled.history {
            History::Fresh => false,
            History::Begun(_) => settled.history.has_rows(),
            History::Done { .. } | History::NothingNew => return Ok(()),
        };
        if of(job) != KnownFiles::Refuse || known.is_empty() {
            return Ok(());
        }
        let kind = kind_of(&known, files);
        Err(Error::new(kind, told(&known, files, false)).with_hint(match (goes_on, &job.resumes) {
            (true, Some(job)) => format!(
                "the `howdah load` command of job {job} with `--known skip` goes on without them, with `--known load` it loads \
                 them once more"
            ),
            (true, None) => {
                "`--known skip` goes on without them, `--known load` loads them once more".to_owned()
            }
            (false, _) => hint(known.len() == files).to_owned(),
        }))
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

/// The file was in its table before the job began, which its beginner has said is to come once more. What
/// ended within the same second may have come since.
pub(crate) fn comes_once_more(job: &Job, file: &KnownFile) -> bool {
    job.once_more_until.as_ref().is_some_and(|until| file.at < *until)
}

fn latest<'a>(known: impl Iterator<Item = &'a KnownFile>) -> Option<&'a KnownFile> {
    known.max_by(|one, other| (&one.at, &other.location).cmp(&(&other.at, &one.location)))
}

/// Files of an unfinished job that have changed since it began, by all their names: before this run, or
/// before an earlier one.
fn ever_changed(settled: &Settled) -> BTreeSet<&str> {
    let Some((plan, _)) = &settled.earlier else { return BTreeSet::new() };
    let now: BTreeSet<u32> = settled.changed.iter().copied().collect();
    let changed = (0..).zip(&plan.files).filter(|(no, file)| now.contains(no) || file.has_ever_changed());
    changed.flat_map(|(_, file)| names(file).map(String::as_str)).collect()
}

fn names(file: &FilePlan) -> impl Iterator<Item = &String> {
    std::iter::once(&file.location).chain(&file.real_location)
}

/// Who asks whether a load is done may take the first for a yes: some files are not in.
fn kind_of(known: &[KnownFile], files: usize) -> ErrorKind {
    if known.len() == files { ErrorKind::FilesLoaded } else { ErrorKind::Table }
}

fn hint(all: bool) -> &'static str {
    if all {
        "`--known load` loads them once more, `--known skip` has nothing to do then"
    } else {
        "`--known skip` loads only the others, `--known load` loads all of them"
    }
}

fn waits_as_well(connection: &Connection, job: &Job, job_id: &str, file: &KnownFile) -> Error {
    let KnownFile { location, table, job_id: other, at, .. } = file;
    let message = format!(
        "{location} is in {table} already, by job {other} of {at}, and its rows wait in a staging table of job {job_id}, which did \
         not end"
    );
    let restore = match ledger_of(job) {
        Some(ledger) => again::command(connection, "restore", job_id, ledger.schema()),
        None => String::new(),
    };
    Error::new(ErrorKind::Table, message).with_hint(format!(
        "`{restore}` drops all rows that wait there; then run this again. `--known load` brings them in once more"
    ))
}

/// Which of these files are in their tables already.
pub fn in_tables(plan: &Plan) -> Option<String> {
    if plan.known.is_empty() {
        return None;
    }
    let left_out = if of(&plan.job) == KnownFiles::Skip { plan.known.len() } else { 0 };
    Some(told(&plan.known, files_to_load(plan) + left_out, false))
}

fn files_to_load(plan: &Plan) -> usize {
    let loaded = plan.files.iter().filter(|file| !file.left_out);
    loaded.map(|file| file.location.as_str()).collect::<BTreeSet<&str>>().len()
}

/// How files came to be known since the load was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownState {
    /// Another job is at work on them.
    AtWork,
    /// Another job has loaded them since.
    SincePlanned,
}

/// Nobody has begun to load any of these files since they were looked for.
///
/// # Errors
/// Table, with the job that has; `FilesLoaded` where all are in.
pub(crate) fn expect_unknown(plan: &Plan, known: &[KnownFile], state: KnownState) -> Result<()> {
    if known.is_empty() {
        return Ok(());
    }
    let (files, skips) = (files_to_load(plan), plan.job.known == KnownFiles::Skip);
    let message = told(known, files, state == KnownState::AtWork);
    let kind = match state {
        KnownState::AtWork => ErrorKind::Table,
        KnownState::SincePlanned => kind_of(known, files),
    };
    Err(Error::new(kind, message).with_hint(match state {
        KnownState::AtWork if skips => {
            "run the same command again when that job has ended: it loads what is not in by then"
        }
        KnownState::AtWork => {
            "`--known skip` loads what is not in when that job has ended, `--known load` loads all of them beside it"
        }
        KnownState::SincePlanned if skips => "run the same command again: it leaves them out",
        KnownState::SincePlanned => hint(known.len() == files),
    }))
}

fn told(known: &[KnownFile], files: usize, at_work: bool) -> String {
    let Some(latest) = latest(known.iter()) else { return String::new() };
    let what = match (known.len(), files) {
        (1, 1) => "the file is".to_owned(),
        (count, files) if count == files => format!("all {files} files are"),
        (1, files) => format!("1 of {files} files is"),
        (count, files) => format!("{count} of {files} files are"),
    };
    let is_one = |of: fn(&KnownFile) -> &str| known.iter().all(|file| of(file) == of(latest));
    let table = if is_one(|file| &file.table) { latest.table.clone() } else { "their tables".to_owned() };
    let there = if at_work { format!("being loaded into {table}") } else { format!("in {table} already") };
    let by = if is_one(|file| &file.job_id) { "by" } else { "the latest by" };
    let others = match known.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let KnownFile { location, job_id, at, .. } = latest;
    let since = if has_other_table(known) { MADE_ANEW } else { "" };
    format!("{what} {there}, {by} job {job_id} of {at}: {location}{others}{since}")
}

const MADE_ANEW: &str =
    "; the table was dropped or made anew since, and may lack their rows: `--known load` loads them";

/// Rows of some of these were stored in another table of the name.
pub(crate) fn has_other_table(known: &[KnownFile]) -> bool {
    known.iter().any(|file| file.made_anew)
}

/// What the ledger knows of each source, where rows are appended. A table that is not there, is empty, or was
/// emptied by another job since, holds nothing, whatever was loaded into it. A job that is gone on with is
/// asked for its own files.
pub(super) async fn look(session: &Session, job: &Job, sources: &[Source]) -> Result<Vec<Option<KnownFile>>> {
    let mut known = vec![None; sources.len()];
    let appends = job.arrival.mode == Mode::Append && !job.arrival.check;
    let Some(ledger) = ledger_of(job).filter(|_| appends) else { return Ok(known) };
    let versions: Vec<Version> = sources.iter().map(|source| Version::of(&source.object)).collect();
    let files: Vec<FileToLoad<'_>> =
        versions.iter().enumerate().flat_map(|(no, file)| file.names(no)).collect();
    let mut by_table: BTreeMap<&str, Vec<LoadedFile>> = BTreeMap::new();
    for loaded in ledger.loaded(session, &files).await? {
        let source = sources.get(loaded.no);
        if let Some(source) = source.filter(|_| job.resumes.as_ref() != Some(&loaded.file.job_id)) {
            by_table.entry(&source.table).or_default().push(loaded);
        }
    }
    for (written, mut loaded) in by_table {
        let Some(table) = table_with_rows(session, written, job.arrival.lock_timeout_ms).await? else {
            continue;
        };
        let relation = table.relation;
        keep_same(session, &ledger, &relation, table.oid, &mut loaded).await?;
        if loaded.is_empty() {
            continue;
        }
        let jobs = loaded.iter().map(|loaded| loaded.file.job_id.clone()).collect();
        let standing = ledger.standing(session, &relation, &jobs).await?;
        let made_anew = ledger.made_anew(session, (&relation.to_string(), table.oid), &jobs).await?;
        for loaded in &mut loaded {
            loaded.file.made_anew = made_anew.contains(&loaded.file.job_id);
        }
        for LoadedFile { no, file } in loaded.into_iter().filter(|it| standing.contains(&it.file.job_id)) {
            if known[no].as_ref().is_none_or(|other: &KnownFile| other.at < file.at) {
                known[no] = Some(file);
            }
        }
    }
    Ok(known)
}

/// Those that were loaded into this table, or into what is the same, whose files are told as being in it.
async fn keep_same(
    session: &Session,
    ledger: &Ledger,
    relation: &Relation,
    oid: u32,
    loaded: &mut Vec<LoadedFile>,
) -> Result<()> {
    let table = relation.to_string();
    let as_written = |loaded: &LoadedFile| (loaded.file.job_id.clone(), loaded.file.table.clone());
    let others = loaded.iter().filter(|loaded| loaded.file.table != table).map(as_written).collect();
    let same = ledger.same_tables(session, &table, oid, &others).await?;
    loaded.retain(|loaded| loaded.file.table == table || same.contains(&as_written(loaded)));
    loaded.iter_mut().for_each(|loaded| loaded.file.table.clone_from(&table));
    Ok(())
}

/// The table, if it holds rows, as far as can be told. What else there is to say about it, planning says.
async fn table_with_rows(session: &Session, written: &str, lock_timeout_ms: u64) -> Result<Option<Table>> {
    let table = match catalog::find_table(session, written).await {
        Err(error) if error.kind() == ErrorKind::Table => return Ok(None),
        found => found?,
    };
    let Some(table) = table else { return Ok(None) };
    Ok(is_filled(session, &table.relation, lock_timeout_ms).await?.then_some(table))
}

/// The table is there and holds rows, as far as can be told.
pub(crate) async fn holds_rows(session: &Session, relation: &Relation, lock_timeout_ms: u64) -> Result<bool> {
    Ok(table_with_rows(session, &quote_relation(relation), lock_timeout_ms).await?.is_some())
}

/// The table holds rows, or somebody has it for himself.
pub(crate) async fn is_filled(session: &Session, relation: &Relation, lock_timeout_ms: u64) -> Result<bool> {
    match truncate::is_empty(session, relation, lock_timeout_ms).await {
        Err(error) if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => Ok(true),
        looked => Ok(looked? != Some(true)),
    }
}
