//! Rejected records of a job, out of the ledger into a file that people can mend, and the load of that file.
//!
//! The file is written as the job's own files are, with a header that names the columns. Where records are not kept as
//! the file had them (fields were left out, another dialect rewritten), it is in the words that were sent in their
//! place.

use crate::Connection;
use crate::history::JobRow;
use crate::plan::chunk_format;
use futures_util::StreamExt;
use howdah_model::plan::Encode;
use howdah_model::{
    BadRecords, Eol, Error, ErrorKind, Format, Header, Job, LedgerChoice, Place, Result, Shaping, SourceSpec,
    TablePlan,
};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use howdah_target::sql::quote_relation;
use howdah_transcode::header;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a file of records that were sent in place of those of the job's files ends with, if there are both.
const AS_SENT: &str = ".sent";
/// Fields that go nowhere are called so in a header, with a number behind.
const IGNORED: &str = "howdah_ignored_";

/// Records of one table, written in one way.
type Group = (u32, bool);

/// Writes the rejected records of a job that nobody has loaded since; returns how many went into which file. Records of
/// several tables, or kept in two ways, go to as many files, whose names begin with `path`.
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
    let mut groups: Vec<Group> =
        files.iter().filter_map(|(no, as_in_file)| Some((table_no(row, *no)?, *as_in_file))).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut written: BTreeMap<Group, Open> = BTreeMap::new();
    for group in &groups {
        written.insert(*group, Open::new(row, *group, path_of(row, path, &groups, *group))?);
    }
    if !groups.is_empty() {
        write_records(&ledger, &session, row, &mut written).await?;
    }
    written.into_values().map(Open::finish).collect()
}

async fn write_records(
    ledger: &Ledger,
    session: &Session,
    row: &JobRow,
    written: &mut BTreeMap<Group, Open>,
) -> Result<()> {
    let mut rejects = ledger.rejects(session, &row.job_id).await?;
    while let Some(reject) = rejects.next().await {
        let reject = reject?;
        let group = table_no(row, reject.file_no).map(|no| (no, reject.as_in_file));
        if let Some(open) = group.and_then(|group| written.get_mut(&group)) {
            open.write(&reject.bytes)?;
        }
    }
    Ok(())
}

fn table_no(row: &JobRow, file_no: u32) -> Option<u32> {
    row.plan.files.get(file_no as usize).map(|file| file.table_no)
}

fn path_of(row: &JobRow, path: &Path, groups: &[Group], (table_no, as_in_file): Group) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if groups.iter().any(|(other, _)| *other != table_no) {
        // Tables may have names that no file can have.
        name.push(
            format!(".{}", row.plan.tables[table_no as usize].table.relation).replace(['/', '\0'], "_"),
        );
    }
    if !as_in_file && groups.contains(&(table_no, true)) {
        name.push(AS_SENT);
    }
    name.into()
}

/// A file under way.
struct Open {
    path: PathBuf,
    file: BufWriter<File>,
    eol: &'static [u8],
    records: u64,
}

impl Open {
    fn new(row: &JobRow, (table_no, as_in_file): Group, path: PathBuf) -> Result<Open> {
        let table = &row.plan.tables[table_no as usize];
        let (format, names, eol) = form(row, table_no, table, as_in_file);
        let eol = match eol {
            Some(Eol::CrLf) => &b"\r\n"[..],
            Some(Eol::Cr) => b"\r",
            Some(Eol::Lf) | None => b"\n",
        };
        let head = header::record(&format, eol_of(eol), &names);
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        let mut open = Open { path, file: BufWriter::new(file), eol, records: 0 };
        open.put(&head)?;
        Ok(open)
    }

    /// The last record of a file need not have a line ending.
    fn write(&mut self, record: &[u8]) -> Result<()> {
        self.put(record)?;
        if !record.ends_with(self.eol) {
            self.put(self.eol)?;
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

fn eol_of(bytes: &[u8]) -> Option<Eol> {
    match bytes {
        b"\r\n" => Some(Eol::CrLf),
        b"\r" => Some(Eol::Cr),
        _ => Some(Eol::Lf),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("the file of rejected records cannot be written: {error}"))
        .in_file(path.display().to_string())
        .with_hint(
            "they are in the ledger's table reject; `howdah status JOB --reject-file FILE` writes them",
        )
}

/// How records of a table are kept: their format, the names of their fields, their line ending.
fn form(
    row: &JobRow,
    table_no: u32,
    table: &TablePlan,
    as_in_file: bool,
) -> (Format, Vec<String>, Option<Eol>) {
    let file = row.plan.files.iter().find(|file| file.table_no == table_no);
    let eol = file.and_then(|file| file.eol);
    let is_whole = as_in_file || table.encode == Encode::PassThrough;
    let names = table.fields.iter().enumerate().filter_map(|(no, field)| match field {
        Some(column) => Some(column.clone()),
        None => is_whole.then(|| format!("{IGNORED}{}", no + 1)),
    });
    let names = names.collect();
    if as_in_file {
        return (table.format.clone(), names, eol);
    }
    let eol = if table.encode == Encode::CopyText { Some(Eol::Lf) } else { eol };
    (chunk_format(table), names, eol)
}

/// A load of files that [`write_files`] has written, mended or not, into the table that their records were meant for.
#[derive(Debug, Clone)]
pub struct Reload {
    /// What to load.
    pub job: Job,
    /// The job that rejected the records.
    of: String,
    /// Its files of that table.
    file_nos: Vec<u32>,
}

impl Reload {
    /// `sources` are the files; `table` says which one where the job has loaded several, as `schema.name`.
    ///
    /// # Errors
    /// `Usage` without files, and where the table must be named.
    pub fn new(
        schema: &str,
        row: &JobRow,
        sources: Vec<SourceSpec>,
        table: Option<&str>,
        bad_records: BadRecords,
    ) -> Result<Reload> {
        let Some(first) = sources.first() else {
            return Err(Error::new(ErrorKind::Usage, "--rejects needs the file of rejected records")
                .with_hint("`howdah status JOB --reject-file FILE` writes it"));
        };
        let is_meant = |plan: &&TablePlan| table.is_none_or(|name| plan.table.relation.to_string() == *name);
        let mut tables = row.plan.tables.iter().filter(is_meant);
        let (Some(plan), None) = (tables.next(), tables.next()) else {
            return Err(Error::new(ErrorKind::Usage, format!("job {} loads several tables", row.job_id))
                .with_hint("name the one that the records are for by --table SCHEMA.NAME"));
        };
        let is_of =
            |no: &u32| table_no(row, *no).is_some_and(|no| row.plan.tables[no as usize].table == plan.table);
        let file_nos: Vec<u32> = (0..).take(row.plan.files.len()).filter(is_of).collect();
        let no = file_nos.first().and_then(|no| table_no(row, *no)).unwrap_or(0);
        let as_in_file = plan.care != howdah_model::Care::Rewritten
            && plan.recode.is_none()
            && !first.location.ends_with(AS_SENT);
        let (format, names, _) = form(row, no, plan, as_in_file);
        let job = Job {
            id: None,
            sources,
            table: Some(quote_relation(&plan.table.relation)),
            format: Format { header: Header::Names, ..format },
            shaping: Shaping::default(),
            columns: None,
            map: BTreeMap::new(),
            ignore_extra: names.iter().any(|name| name.starts_with(IGNORED)),
            chunk_bytes: None,
            force: false,
            ledger: LedgerChoice::Schema(schema.to_owned()),
            bad_records,
            ..row.plan.job.clone()
        };
        Ok(Reload { job, of: row.job_id.clone(), file_nos })
    }

    /// Notes in the ledger that the records are settled: in the table, or rejected by the new job.
    ///
    /// # Errors
    /// Those of the connection and the ledger.
    pub async fn settle(&self, connection: &Connection, schema: &str, by: &str) -> Result<()> {
        let (ledger, session) = (Ledger::new(schema), connection.open().await?);
        let noting = ledger.rejects_loaded(&session, &self.of, &self.file_nos, by);
        connection.attend(&session, noting).await.map_err(|error| error.at(Place::default()))
    }
}
