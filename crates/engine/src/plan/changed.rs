//! What has become of the files of a job that has stored rows of them.

use super::identity::Version;
use crate::{Connection, in_part};
use howdah_model::{Error, ErrorKind, FilePlan, Job, Mode, Result, counted};
use howdah_target::ledger::{JobRow, Ledger};
use howdah_target::session::Session;
use std::collections::{BTreeMap, HashMap};

/// None of these jobs, of which files have changed, has stored rows that may stand.
///
/// # Errors
/// `SourceChanged` for the first that has; those of ledger and session.
pub(super) async fn expect_none(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    job: &Job,
    changed: impl Iterator<Item = &JobRow>,
    found: &[Version],
) -> Result<()> {
    for row in changed {
        if in_part::may_stand(session, ledger, job, row).await? {
            return Err(error(row, found));
        }
        in_part::tell_waiting(connection, session, ledger, row).await;
    }
    Ok(())
}

/// Why the job does not go on, by all files that are found now.
pub(super) fn error(row: &JobRow, versions: &[Version]) -> Error {
    let JobRow { job_id, started_at, rows_stored, .. } = row;
    let mut message = format!("the sources are not what job {job_id} read when it began at {started_at}");
    let mut changed: BTreeMap<&str, String> = BTreeMap::new();
    // The first of a name counts, whichever name that is.
    let mut by_name: HashMap<&str, &Version> = HashMap::new();
    for version in versions {
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
    let arrival = &row.plan.job.arrival;
    let adds_rows = arrival.mode == Mode::Append && !arrival.is_staged() && *rows_stored > 0;
    let beside = match adds_rows {
        true => {
            format!(
                "--force loads all of them, as they are now, beside the {} that the job has stored: remove these first",
                counted(*rows_stored, "row")
            )
        }
        false => "load them as they are now with --force".to_owned(),
    };
    let error = Error::new(ErrorKind::SourceChanged, message)
        .with_hint(format!("put the sources back as they were to finish that job; or {beside}"));
    match first {
        Some((location, _)) => error.in_file(*location),
        None => error,
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
