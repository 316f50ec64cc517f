//! Rejected records of a job, out of the ledger into a file that people can mend, and the load of that file.
//!
//! The file is written as the job's own files are, with a header that names the columns. Where records are
//! not kept as the file had them (fields were left out, another dialect rewritten), it is in the words that
//! were sent in their place.

mod layout;
mod place;
mod reload;
mod waiting;
mod writer;

use crate::arrival::on_session;
use crate::history::{self, JobRow};
use crate::pipeline::Run;
use crate::retry::{self, Patience};
use crate::{Connection, Context, again};
use futures_util::StreamExt;
use howdah_model::{Plan, RejectsOf, Result, ValueSettings, counted, plural, sqlstate};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use layout::{Layout, Layouts};
use place::Judged;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use writer::Writer;

pub use place::RejectFile;
pub use reload::reload;
pub(crate) use waiting::expect_waiting;
pub(crate) use writer::expect_no_source;

/// What a file of records that were sent in place of those of the job's files ends with, if there are both or
/// may be.
const AS_SENT: &str = ".sent";
/// What the name of a file has before its layout's number, if the table's files are written in different
/// ways.
const LAYOUT: &str = ".layout";

/// Records of one layout (its index), kept in one way: as the files have them, or not.
type Group = (usize, bool);

/// Writes the rejected records of a job that nobody has loaded since; returns how many went into which file.
/// Records of several tables, or of files that are written in different ways, or kept in two ways, go to as
/// many files, whose names begin with `path`.
///
/// # Errors
/// `Local` if a file cannot be written; `Usage` if it is one of the job's; those of the connection and the
/// ledger.
pub async fn write_files(
    connection: &Connection,
    schema: &str,
    row: &JobRow,
    path: &Path,
) -> Result<Vec<(PathBuf, u64)>> {
    let (ledger, session) = (Ledger::new(schema), connection.open().await?);
    let written = write(connection, &ledger, &session, row, path, &Judged::default()).await;
    written
        .and_then(|replaced| {
            replaced.kept.first().map_or(Ok(replaced.written), |path| Err(writer::busy(path)))
        })
        .map_err(|error| again::in_full(error, connection, &row.job_id, schema))
}

/// So many rejected records of a job are kept, and nobody has loaded them since; `None` where this role may
/// not see that.
///
/// # Errors
/// Those of the connection and the ledger.
pub async fn kept(connection: &Connection, schema: &str, row: &JobRow) -> Result<Option<u64>> {
    let (ledger, session) = (Ledger::new(schema), connection.open().await?);
    let all = RejectsOf {
        job_id: row.job_id.clone(),
        file_nos: (0..).zip(&row.plan.files).map(|(no, _)| no).collect(),
        as_in_file: None,
        value_settings: ValueSettings::new(),
    };
    let kept = connection.attend(&session, ledger.rejects_settled(&session, &all)).await;
    match kept {
        Ok(settled) => Ok(Some(settled.waiting)),
        Err(error) if error.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What has become of the files of rejected records when a run has ended.
#[derive(Debug, Default)]
pub struct Replaced {
    /// So many records are in these.
    pub written: Vec<(PathBuf, u64)>,
    /// These are not the run's own to replace, and stand in the way of records.
    kept: Vec<PathBuf>,
    /// The same of one that would have been removed.
    older: Option<PathBuf>,
}

impl Replaced {
    /// What the user is to be warned of.
    pub fn warnings(&self, connection: &Connection, schema: &str, row: &JobRow) -> Vec<String> {
        let left = |path: &PathBuf| {
            format!(
                "{} is left as it is: another command has written it, or it is mended by now",
                path.display()
            )
        };
        let elsewhere = match row.plan.job.arrival.check {
            true => "a check with another --reject-file writes the bad records".to_owned(),
            false => {
                let file = " --reject-file rejected.csv";
                let write = again::command_with(connection, "status", &row.job_id, schema, file);
                format!(
                    "the rejected records of this job are in the ledger, and written elsewhere by `{write}`"
                )
            }
        };
        let kept = self.kept.iter().map(|path| format!("{}; {elsewhere}", left(path)));
        kept.chain(self.older.iter().map(|path| format!("{}; nothing is rejected here", left(path))))
            .collect()
    }
}

/// Files of others are left as they are.
async fn write(
    connection: &Connection,
    ledger: &Ledger,
    session: &Session,
    row: &JobRow,
    path: &Path,
    judged: &Judged,
) -> Result<Replaced> {
    let files = connection.attend(session, ledger.rejected_files(session, &row.job_id)).await?;
    let layouts = Layouts::new(&row.plan);
    let of_file = |(no, as_in_file): &(u32, bool)| Some((layouts.of_file(*no)?, *as_in_file));
    let mut groups: Vec<Group> = files.iter().filter_map(of_file).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut written: BTreeMap<Group, Writer> = BTreeMap::new();
    let mut kept = Vec::new();
    for group in &groups {
        let head = layouts.all[group.0].head(group.1);
        let path = path_of(&layouts, path, &groups, *group);
        expect_no_source(&row.plan, &path)?;
        // Looked at behind the lock that the writer holds.
        match Writer::new(head, path.clone())?.filter(|_| !judged.is_of_another(&path)) {
            Some(writer) => _ = written.insert(*group, writer),
            None => kept.push(path),
        }
    }
    if !written.is_empty() {
        write_records(ledger, session, row, &layouts, &mut written).await?;
    }
    let written = written.into_values().map(Writer::finish).collect::<Result<_>>()?;
    Ok(Replaced { written, kept, older: None })
}

/// The same for a run that has ended: what an earlier one has written to these names is not this one's, and
/// goes. What may be of another command stays.
///
/// # Errors
/// As for [`write_files`]; `Local` if an older file cannot be removed.
pub async fn replace_files(
    connection: &Connection,
    schema: &str,
    row: &JobRow,
    file: &RejectFile,
) -> Result<Replaced> {
    let replaced = replace(connection, &Ledger::new(schema), row, file).await;
    replaced.map_err(|error| again::in_full(error, connection, &row.job_id, schema))
}

/// The same for this job, as the ledger knows it; failures that may pass are tried again for `retry_for`.
/// Returns the warnings, too.
///
/// # Errors
/// As for [`replace_files`]; those of the ledger; `Interrupted` if stopped between two tries.
pub async fn replace_files_of(
    context: &Context,
    schema: &str,
    job_id: &str,
    file: &RejectFile,
    retry_for: Duration,
) -> Result<(Replaced, Vec<String>)> {
    let (connection, mut patience) = (&context.connection, Patience::new(retry_for));
    loop {
        let replacing = async {
            let row = history::job(connection, schema, job_id).await?;
            let replaced = replace_files(connection, schema, &row, file).await?;
            let warnings = replaced.warnings(connection, schema, &row);
            Ok((replaced, warnings))
        };
        match replacing.await {
            Err(error) => retry::wait(context, &mut patience, error).await?,
            replaced => return replaced,
        }
    }
}

async fn replace(
    connection: &Connection,
    ledger: &Ledger,
    row: &JobRow,
    file: &RejectFile,
) -> Result<Replaced> {
    let session = connection.open().await?;
    let judged = file.judge(ledger, &session, &row.job_id, &row.plan).await?;
    let mut replaced = write(connection, ledger, &session, row, file.path(), &judged).await?;
    if row.plan.job.rejects_of.is_some() {
        // Beside the file that it has read may stand others of the same job, not loaded yet.
        return Ok(replaced);
    }
    let is_done = |name: &PathBuf| {
        replaced.written.iter().any(|(other, _)| other == name) || replaced.kept.contains(name)
    };
    for name in names(&row.plan, file.path()).into_iter().filter(|name| !is_done(name)) {
        let is_left = !writer::remove_older(&row.plan, &name, |name| !judged.is_of_another(name))?;
        if is_left && name == file.path() {
            replaced.older = Some(name);
        }
    }
    Ok(replaced)
}

/// All names that files of rejected records of this job can have.
fn names(plan: &Plan, path: &Path) -> BTreeSet<PathBuf> {
    let layouts = Layouts::new(plan);
    let mut names = BTreeSet::new();
    for layout in &layouts.all {
        for of_table in [String::new(), of_table(layout)] {
            for of_layout in [String::new(), of_layout(layout)] {
                for as_sent in ["", AS_SENT] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(format!("{of_table}{of_layout}{as_sent}"));
                    names.insert(name.into());
                }
            }
        }
    }
    names
}

/// Tables may have names that no file can have.
fn of_table(layout: &Layout<'_>) -> String {
    format!(".{}", layout.table.table.relation).replace(['/', '\0'], "_")
}

fn of_layout(layout: &Layout<'_>) -> String {
    format!("{LAYOUT}{}", layout.no)
}

async fn write_records(
    ledger: &Ledger,
    session: &Session,
    row: &JobRow,
    layouts: &Layouts<'_>,
    written: &mut BTreeMap<Group, Writer>,
) -> Result<()> {
    let mut rejects = ledger.rejects(session, &row.job_id).await?;
    while let Some(reject) = rejects.next().await {
        let reject = reject?;
        let group = layouts.of_file(reject.file_no).map(|index| (index, reject.as_in_file));
        if let Some(open) = group.and_then(|group| written.get_mut(&group)) {
            open.write(&reject.bytes)?;
        }
    }
    Ok(())
}

fn path_of(layouts: &Layouts<'_>, path: &Path, groups: &[Group], (index, as_in_file): Group) -> PathBuf {
    let layout = &layouts.all[index];
    let relation = |index: usize| &layouts.all[index].table.table.relation;
    let mut name = path.as_os_str().to_owned();
    if groups.iter().any(|(other, _)| relation(*other) != relation(index)) {
        name.push(of_table(layout));
    }
    if groups.iter().any(|(other, _)| *other != index && relation(*other) == relation(index)) {
        name.push(of_layout(layout));
    }
    if !as_in_file && (layout.is_rewritten() || groups.contains(&(index, true))) {
        name.push(AS_SENT);
    }
    name.into()
}

/// Notes in the ledger that the records which another job has rejected are settled: in the table, or rejected
/// by this one. If it has read fewer than there are, nothing is noted, and a warning says so.
///
/// # Errors
/// Those of the connection and the ledger.
pub(crate) async fn settle(run: &Run) -> Result<()> {
    let (Some(ledger), Some(of)) = (&run.ledger, &run.plan.job.rejects_of) else { return Ok(()) };
    let waiting = on_session(run, async |session| settle_within(run, ledger, session).await).await?;
    let read = run.tally.rows_read();
    if waiting > read {
        run.warn(format!(
            "these files had {read} of the {} that job {} has rejected; which, nobody knows, so that all stay \
             noted as not loaded",
            counted(waiting, "record"),
            of.job_id
        ));
    } else if waiting < read && waiting > 0 {
        run.warn(format!(
            "these files had {}, and only {waiting} that job {} has rejected {} not loaded yet: others may be in the \
             table twice",
            counted(read, "record"),
            of.job_id,
            plural(waiting, "was", "were")
        ));
    }
    Ok(())
}

/// The same in the open transaction, where it ends the job; how many of them were not settled before comes
/// back.
pub(crate) async fn settle_within(run: &Run, ledger: &Ledger, session: &Session) -> Result<u64> {
    let Some(of) = &run.plan.job.rejects_of else { return Ok(0) };
    ledger.rejects_loaded(session, of, &run.plan.job_id, run.tally.rows_read()).await
}
