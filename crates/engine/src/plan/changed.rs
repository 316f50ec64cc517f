//! What has become of the files of a job that has stored rows of them.

use super::identity::Version;
use super::mended;
use crate::{Connection, in_part};
use howdah_model::{Error, ErrorKind, FilePlan, Job, Mode, Result, counted};
use howdah_target::ledger::{JobRow, Ledger};
use howdah_target::session::Session;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// None of these jobs, of which files have changed, has stored rows that may stand.
///
/// # Errors
/// `SourceChanged` for the first that has; those of ledger and session.
pub(super) async fn expect_none(
    (connection, session, ledger): (&Connection, &Session, &Ledger),
    job: &Job,
    changed: impl Iterator<Item = &JobRow>,
    versions: &[Version],
    found: &[Version],
) -> Result<()> {
    for row in changed {
        if in_part::may_stand(session, ledger, job, row).await? {
            return Err(refusal((session, ledger), job, row, versions, found).await?);
        }
        in_part::tell_waiting(connection, session, ledger, row).await;
    }
    Ok(())
}

/// Why the job does not go on, by all files that are found now.
///
/// # Errors
/// Those of ledger and session.
pub(super) async fn refusal(
    (session, ledger): (&Session, &Ledger),
    job: &Job,
    row: &JobRow,
    versions: &[Version],
    found: &[Version],
) -> Result<Error> {
    let mut ways = vec!["put the sources back as they were to finish that job".to_owned()];
    let came = came_since(row, versions);
    if let Some(first) = came.first()
        && mended::goes_on_without((session, ledger), job, row, versions, &came).await?
    {
        let what = match came.len() - 1 {
            0 => format!("{} came since: move it", first.location),
            more => format!("{} and {} more came since: move them", first.location, counted(more, "file")),
        };
        ways.push(format!(
            "{what} aside for one run, which goes on with the job and reads what has changed as it is now"
        ));
    }
    let JobRow { job_id, started_at, .. } = row;
    let message = format!("the sources are not what job {job_id} read when it began at {started_at}");
    ways.push(as_they_are_now(row));
    Ok(of_files(row, found, message).with_hint(ways.join("; or ")))
}

/// Why a name does not come to mean other files, by all that are found now.
pub(super) fn other_files(row: &JobRow, found: &[Version]) -> Error {
    let message = format!("job {} is in the ledger with other files", row.job_id);
    of_files(row, found, message).with_hint(
        "choose another --job-id to load the files as they are now, or give the job what it was begun with",
    )
}

/// The files of now that the job did not begin with.
fn came_since<'a>(row: &JobRow, versions: &'a [Version]) -> Vec<&'a Version> {
    let files = row.plan.files.iter();
    let names: BTreeSet<&str> = files
        .flat_map(|file| std::iter::once(&file.location).chain(&file.real_location))
        .map(String::as_str)
        .collect();
    versions.iter().filter(|version| !version.is_any_of(|name| names.contains(name))).collect()
}

/// The error with what has become of the files of the job.
fn of_files(row: &JobRow, found: &[Version], mut message: String) -> Error {
    let mut changed: BTreeMap<&str, String> = BTreeMap::new();
    // The first of a name counts, whichever name that is.
    let mut by_name: HashMap<&str, &Version> = HashMap::new();
    for version in found {
        for name in version.paths() {
            by_name.entry(name).or_insert(version);
        }
    }
    for file in &row.plan.files {
        if let Some(how) = how_changed(file, &by_name) {
            changed.insert(&file.location, how);
        }
    }
    let first = changed.first_key_value();
    if let Some((_, how)) = first {
        message += &format!(": {how}");
        match changed.len() - 1 {
            0 => {}
            1 => message += ", and 1 file more has changed",
            more => message += &format!(", and {more} files more have changed"),
        }
    }
    let error = Error::new(ErrorKind::SourceChanged, message);
    match first {
        Some((location, _)) => error.in_file(*location),
        None => error,
    }
}

fn as_they_are_now(row: &JobRow) -> String {
    let (arrival, rows_stored) = (&row.plan.job.arrival, row.rows_stored);
    let adds_rows = arrival.mode == Mode::Append && !arrival.is_staged() && rows_stored > 0;
    match adds_rows {
        true => {
            format!(
                "--force loads all of them, as they are now, beside the {} that the job has stored: remove these first",
                counted(rows_stored, "row")
            )
        }
        false => "load them as they are now with --force".to_owned(),
    }
}

/// What has become of a file of the job among those that are found now; `None` if it is what it was.
fn how_changed(file: &FilePlan, by_name: &HashMap<&str, &Version>) -> Option<String> {
    let location = &file.location;
    let real_location = file.real_location.as_ref().unwrap_or(location);
    let found = by_name.get(location.as_str()).or_else(|| by_name.get(real_location.as_str()));
    let Some(found) = found else { return Some("this file is gone".to_owned()) };
    match (found.stored_bytes, file.stored_bytes) {
        _ if found.real_location != *real_location => Some("this path leads to another file now".to_owned()),
        (Some(got), Some(expected)) if got != expected => {
            Some(format!("this file has {} now, expected {expected}", counted(got, "byte")))
        }
        _ if found.version == file.version => None,
        _ if location.contains("://") => Some("this file has another ETag or time now".to_owned()),
        _ => Some("this file was written since".to_owned()),
    }
}
