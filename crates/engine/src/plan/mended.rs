//! A file that was mended between two runs of a job: where nothing of it is in, the job goes on with it as it
//! is now.
//!
//! Only where rows are appended as they are read, and only where the file comes into the same table in the
//! same way: what is in of other files stays as it was decided, and so do the borders of their chunks.

use super::head::Heads;
use super::identity::{Settled, Version};
use super::sources::Source;
use super::{as_begun, earlier, file_plan, tables};
use crate::{Connection, emptied};
use howdah_model::{Error, ErrorKind, FilePlan, Job, Mode, Plan, Result, TablePlan};
use howdah_target::ledger::{JobRow, JobStatus, Ledger};
use howdah_target::session::Session;
use std::collections::{BTreeSet, HashMap};

/// The unfinished job, if files of it have changed of which it has stored nothing, and all others are as they
/// were.
///
/// # Errors
/// Those of ledger and session, and of the job that goes on.
pub(super) async fn go_on(
    (connection, session, ledger): (&Connection, &Session, &Ledger),
    job: &Job,
    row: &JobRow,
    versions: &[Version],
) -> Result<Option<Settled>> {
    let Some(changed) = read_as_now((session, ledger), job, row, versions).await? else { return Ok(None) };
    let settled = earlier::go_on(connection, session, ledger, job, row.clone()).await?;
    // What strangers may have written of the job is compared with what its files say, and these are others by
    // now.
    let goes_on = |settled: &Settled| settled.earlier.is_some() && settled.doubted_for.is_empty();
    Ok(settled.filter(goes_on).map(|settled| Settled { changed, ..settled }))
}

/// The job would go on with the files of it that have changed, were it not for these that came since.
///
/// # Errors
/// Those of ledger and session.
pub(super) async fn goes_on_without(
    of_ledger: (&Session, &Ledger),
    job: &Job,
    row: &JobRow,
    versions: &[Version],
    came: &[&Version],
) -> Result<bool> {
    let has_come = |version: &Version| came.iter().any(|came| came.location == version.location);
    let own: Vec<Version> = versions.iter().filter(|version| !has_come(version)).cloned().collect();
    Ok(read_as_now(of_ledger, job, row, &own).await?.is_some())
}

/// The numbers of the files that the job would read as they are now; `None` where it does not go on with what
/// has changed.
async fn read_as_now(
    (session, ledger): (&Session, &Ledger),
    job: &Job,
    row: &JobRow,
    versions: &[Version],
) -> Result<Option<Vec<u32>>> {
    let arrival = &row.plan.job.arrival;
    let is_plain = arrival.mode == Mode::Append && !arrival.is_staged() && !arrival.check;
    if job.force || !is_plain || row.status == JobStatus::Done || row.chunks == 0 {
        return Ok(None);
    }
    let Some(changed) = changed(&row.plan.files, versions) else { return Ok(None) };
    let (_, begun) = ledger.begun_files(session, &row.job_id).await?;
    if changed.iter().any(|no| begun.contains(no)) {
        return Ok(None);
    }
    // Were its rows loaded again by --force, that would be a new job, which doubles those that are there in
    // other tables.
    let is_whole = emptied::behind(session, ledger, &row.plan).await?.is_empty();
    Ok(is_whole.then_some(changed))
}

/// The numbers of the files that have changed; `None` if there are none, or if the files are not the same by
/// their names.
fn changed(files: &[FilePlan], versions: &[Version]) -> Option<Vec<u32>> {
    let names: BTreeSet<&str> = files.iter().map(|file| file.location.as_str()).collect();
    // Of a file of several tables each has its own part.
    if names.len() != files.len() || versions.len() != files.len() {
        return None;
    }
    let found: HashMap<&str, &Version> =
        versions.iter().map(|version| (version.real_location.as_str(), version)).collect();
    let mut changed = Vec::new();
    for (no, file) in (0..).zip(files) {
        if found.get(real_location(file))?.differs_from(file)? {
            changed.push(no);
        }
    }
    (!changed.is_empty()).then_some(changed)
}

/// Has the plan take these files as they are now.
///
/// # Errors
/// `SourceChanged`, where one does not come into its table as before; those of files, tables and session.
pub(super) async fn read_anew(
    heads: &Heads<'_>,
    plan: &mut Plan,
    changed: &[u32],
    sources: &[Source],
) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let numbers: HashMap<String, u32> =
        changed.iter().map(|no| (real_location(plan.file(*no)).to_owned(), *no)).collect();
    let found = sources
        .iter()
        .filter(|source| numbers.contains_key(source.object.real_location()))
        .map(Source::unread);
    let found = heads.read_all(found.collect()).await?;
    let planning = Box::pin(tables::plan_all(heads, &plan.job, &plan.job_id, found));
    let (tables, placed) = planning.await?;
    let mut told = Vec::new();
    for (table_no, head) in placed {
        let table = &tables[table_no as usize];
        let now = file_plan(&head, table_no, table);
        let Some(no) = numbers.get(real_location(&now)) else { continue };
        let was = plan.file(*no).clone();
        if !is_alike(table, plan.table(was.table_no)) {
            return Err(is_otherwise(plan, &now));
        }
        if !was.left_out {
            told.push(now.location.clone());
        }
        plan.files[*no as usize] = FilePlan {
            table_no: was.table_no,
            input_no: was.input_no,
            left_out: was.left_out,
            // Where nothing told its size, it had none for the files before it.
            cut_as_bytes: was.cut_as_bytes.or(was.stored_bytes).or(Some(0)),
            has_changed: true,
            ..now
        };
    }
    plan.warnings.extend(warning(&told, &plan.job_id));
    match changed.iter().find(|no| !plan.file(**no).has_changed) {
        Some(no) => Err(is_otherwise(plan, plan.file(*no))),
        None => Ok(()),
    }
}

/// What is said of the files that are taken as they are now.
fn warning(locations: &[String], job_id: &str) -> Option<String> {
    let (first, others) = locations.split_first()?;
    Some(match others.len() {
        0 => format!(
            "{first} has changed since job {job_id} began; nothing of it is in, and it is read as it is now"
        ),
        others => format!(
            "{first} and {others} more have changed since job {job_id} began; nothing of them is in, and they are read as they are now"
        ),
    })
}

fn real_location(file: &FilePlan) -> &str {
    file.real_location.as_ref().unwrap_or(&file.location)
}

/// The same table in the same way, which needs no further change.
fn is_alike(table: &TablePlan, was: &TablePlan) -> bool {
    table.table.relation == was.table.relation
        && table.create.is_none()
        && table.changes.is_empty()
        && as_begun::is_read_alike(table, was)
}

fn is_otherwise(plan: &Plan, file: &FilePlan) -> Error {
    let message = format!(
        "this file has changed since job {} began, and is written otherwise than it was: another header, other delimiters, or values \
         of other types",
        plan.job_id
    );
    Error::new(ErrorKind::SourceChanged, message).in_file(&file.location).with_hint(
        "write it as it was written, but for the bad records, to go on with that job; or remove the rows that the job has stored and \
         load all files with --force",
    )
}
