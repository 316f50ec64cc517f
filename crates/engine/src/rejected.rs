//! Rejected records of a job, out of the ledger into a file that people can mend, and the load of that file.
//!
//! The file is written as the job's own files are, with a header that names the columns. Where records are not kept as
//! the file had them (fields were left out, another dialect rewritten), it is in the words that were sent in their
//! place.

mod layout;
mod reload;

use crate::Connection;
use crate::arrival::on_session;
use crate::history::JobRow;
use crate::pipeline::Run;
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Result};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use layout::Layouts;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub use reload::reload;

/// What a file of records that were sent in place of those of the job's files ends with, if there are both or may be.
const AS_SENT: &str = ".sent";
/// What the name of a file has before its layout's number, if the table's files are written in different ways.
const LAYOUT: &str = ".layout";

/// Records of one layout (its index), kept in one way: as the files have them, or not.
type Group = (usize, bool);

/// Writes the rejected records of a job that nobody has loaded since; returns how many went into which file. Records of
/// several tables, or of files that are written in different ways, or kept in two ways, go to as many files, whose names begin
/// with `path`.
///
/// # Errors
/// `Local` if a file cannot be written; those of the connection and the ledger.
pub async fn write_files(
    connection: &Connection,
    schema: &str,
    row: &JobRow,
    path: &Path,
) -> Result<Vec<(PathBuf, u64)>> {
    let (ledger, session) = (Ledger::new(schema), connection.open().await?);
    let files = connection.attend(&session, ledger.rejected_files(&session, &row.job_id)).await?;
    let layouts = Layouts::new(row);
    let of_file = |(no, as_in_file): &(u32, bool)| Some((layouts.of_file(*no)?, *as_in_file));
    let mut groups: Vec<Group> = files.iter().filter_map(of_file).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut written: BTreeMap<Group, Open> = BTreeMap::new();
    for group in &groups {
        let head = layouts.all[group.0].head(group.1);
        written.insert(*group, Open::new(head, path_of(&layouts, path, &groups, *group))?);
    }
    if !groups.is_empty() {
        write_records(&ledger, &session, (row, &layouts), &mut written).await?;
    }
    written.into_values().map(Open::finish).collect()
}

async fn write_records(
    ledger: &Ledger,
    session: &Session,
    (row, layouts): (&JobRow, &Layouts<'_>),
    written: &mut BTreeMap<Group, Open>,
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
        // Tables may have names that no file can have.
        name.push(format!(".{}", relation(index)).replace(['/', '\0'], "_"));
    }
    if groups.iter().any(|(other, _)| *other != index && relation(*other) == relation(index)) {
        name.push(format!("{LAYOUT}{}", layout.no));
    }
    if !as_in_file && (layout.is_rewritten() || groups.contains(&(index, true))) {
        name.push(AS_SENT);
    }
    name.into()
}

/// A file under way.
struct Open {
    path: PathBuf,
    file: BufWriter<File>,
    eol: Vec<u8>,
    records: u64,
}

impl Open {
    fn new((head, eol): (Vec<u8>, Vec<u8>), path: PathBuf) -> Result<Open> {
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        let mut open = Open { path, file: BufWriter::new(file), eol, records: 0 };
        open.put(&head)?;
        Ok(open)
    }

    /// The last record of a file need not have a line ending.
    fn write(&mut self, record: &[u8]) -> Result<()> {
        self.put(record)?;
        if !record.ends_with(&self.eol) {
            let eol = self.eol.clone();
            self.put(&eol)?;
        }
        self.records += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| unwritable(&self.path, &error))
    }

    fn finish(mut self) -> Result<(PathBuf, u64)> {
        self.file.flush().map_err(|error| unwritable(&self.path, &error))?;
        Ok((self.path, self.records))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("the file of rejected records cannot be written: {error}"))
        .in_file(path.display().to_string())
        .with_hint(
            "they are in the ledger's table reject; `howdah status JOB --reject-file FILE` writes them",
        )
}

/// Notes in the ledger that the records which another job has rejected are settled: in the table, or rejected by this one. If it
/// has read fewer than there are, nothing is noted, and a warning says so.
///
/// # Errors
/// Those of the connection and the ledger.
pub(crate) async fn settle(run: &Run) -> Result<()> {
    let (Some(ledger), Some(of)) = (&run.ledger, &run.plan.job.rejects_of) else { return Ok(()) };
    let read = run.tally.rows_read();
    let by = (run.plan.job_id.as_str(), read);
    let note = async |session: &Session| ledger.rejects_loaded(session, of, by).await;
    let waiting = on_session(run, note).await?;
    if waiting > read {
        run.warn(format!(
            "these files had {read} of the {waiting} records that job {} has rejected; which, nobody knows, so that all stay \
             noted as not loaded",
            of.job_id
        ));
    }
    Ok(())
}
