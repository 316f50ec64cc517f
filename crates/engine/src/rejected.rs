//! Rejected records of a job, out of the ledger into a file that people can mend, and the load of that file.
//!
//! The file is written as the job's own files are, with a header that names the columns. Where records are not kept as
//! the file had them (fields were left out, another dialect rewritten), it is in the words that were sent in their
//! place.

use crate::Connection;
use crate::arrival::on_session;
use crate::history::JobRow;
use crate::pipeline::Run;
use crate::plan::chunk_format;
use futures_util::StreamExt;
use howdah_model::plan::Encode;
use howdah_model::{
    Arrival, Care, Eol, Error, ErrorKind, Escape, Format, Header, IndexesChoice, Job, LedgerChoice, Mode,
    RejectsOf, Result, Shaping, TablePlan, Told,
};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use howdah_target::sql::quote_relation;
use howdah_transcode::encode::from_utf8;
use howdah_transcode::{header, infer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a file of records that were sent in place of those of the job's files ends with, if there are both or may be.
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
    let table = &row.plan.tables[table_no as usize];
    let is_rewritten = table.care == Care::Rewritten || table.encode == Encode::CopyText;
    if !as_in_file && (is_rewritten || groups.contains(&(table_no, true))) {
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
    fn new(row: &JobRow, (table_no, as_in_file): Group, path: PathBuf) -> Result<Open> {
        let (head, eol) = head(row, table_no, as_in_file);
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

/// The header of a file of records that are kept so, and what ends them.
fn head(row: &JobRow, table_no: u32, as_in_file: bool) -> (Vec<u8>, Vec<u8>) {
    let table = &row.plan.tables[table_no as usize];
    let (format, names, eol) = form(row, table_no, table, as_in_file);
    let dialect = table.dialect.as_ref().filter(|_| as_in_file && table.care == Care::Rewritten);
    let ending = match dialect.map_or(eol, |dialect| dialect.eol) {
        Some(Eol::CrLf) => "\r\n",
        Some(Eol::Cr) => "\r",
        Some(Eol::Lf) | None => "\n",
    };
    match dialect {
        None => (header::record(&format, eol, &names), ending.into()),
        Some(dialect) => {
            let as_read = |text: String| match &table.recode {
                Some(encoding) => from_utf8(encoding, text.as_bytes()).unwrap_or_else(|| text.into_bytes()),
                None => text.into_bytes(),
            };
            (as_read(header::record_of_dialect(dialect, &names) + ending), as_read(ending.to_owned()))
        }
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
    // What is rewritten has the kept fields only.
    let is_rewritten = table.care == Care::Rewritten || table.encode == Encode::CopyText;
    let is_whole = as_in_file || !is_rewritten;
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

/// How records are read again whose dialect COPY cannot be told.
fn as_found(plan: &TablePlan) -> Shaping {
    let dialect = plan.dialect.as_ref();
    let null = dialect.and_then(|dialect| match dialect.nulls.as_slice() {
        [null] => Some(null.clone()),
        // There is one option for one spelling; several are found again.
        _ => None,
    });
    let told = Told {
        delimiter: dialect.map(|dialect| dialect.delimiter.clone()),
        quote: dialect.map(|dialect| dialect.quote),
        escape: dialect.and_then(|dialect| match dialect.escape {
            Escape::Backslash => Some(b'\\'),
            Escape::Doubled | Escape::None => dialect.quote,
        }),
        null,
        header: Some(true),
        encoding: Some(plan.recode.clone().unwrap_or_else(|| "UTF8".to_owned())),
    };
    let spelled = plan.fields.iter().zip(&plan.readings).filter_map(|(field, reading)| {
        let (name, reading) = (field.as_ref()?, reading.as_ref()?);
        let column = plan.table.columns.iter().find(|column| column.name == *name)?;
        Some((name.clone(), format!("{}:{}", column.type_name, infer::spelling(reading))))
    });
    Shaping { told: Some(told), types: spelled.collect(), ..Shaping::default() }
}

/// The load of files that [`write_files`] has written, mended or not, into the table that their records were meant for. What
/// `typed` says of sources, sessions and so on holds; how the files are written, and how rows come into the table, are those of
/// the job that rejected the records, but they come on top of what is there: what that job emptied or replaced, or deleted for
/// having no record, it has dealt with. `typed.table` says which table where that job has loaded several, as `schema.name`.
///
/// # Errors
/// `Usage` without files, and where the table must be named.
pub fn reload(schema: &str, row: &JobRow, typed: Job) -> Result<Job> {
    let Some(first) = typed.sources.first() else {
        return Err(Error::new(ErrorKind::Usage, "--rejects needs the file of rejected records")
            .with_hint("`howdah status JOB --reject-file FILE` writes it"));
    };
    let table = typed.table.as_deref();
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
    let is_rewritten = plan.care == Care::Rewritten;
    let as_in_file = (is_rewritten || plan.recode.is_none()) && !first.location.ends_with(AS_SENT);
    let (format, names, _) = form(row, no, plan, as_in_file);
    let of = &row.plan.job;
    let (shaping, format) = if as_in_file && is_rewritten {
        (as_found(plan), of.format.clone())
    } else {
        (Shaping::default(), Format { header: Header::Names, ..format })
    };
    let nul = if typed.shaping.nul.is_reject() { of.shaping.nul } else { typed.shaping.nul };
    let arrival = on_top(&of.arrival, typed.arrival.lock_timeout_ms);
    if arrival.is_staged() && typed.indexes == IndexesChoice::Rebuild {
        let message = format!("--indexes rebuild: rows of job {} come from a staging table", row.job_id);
        return Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out"));
    }
    Ok(Job {
        table: Some(quote_relation(&plan.table.relation)),
        format,
        shaping: Shaping { nul, ..shaping },
        columns: None,
        map: BTreeMap::new(),
        ignore_extra: names.iter().any(|name| name.starts_with(IGNORED)),
        arrival,
        triggers: of.triggers,
        create_partitions: of.create_partitions,
        ledger: LedgerChoice::Schema(schema.to_owned()),
        rejects_of: Some(RejectsOf { job_id: row.job_id.clone(), file_nos }),
        ..typed
    })
}

/// A few records more of what a job has loaded.
fn on_top(of: &Arrival, lock_timeout_ms: u64) -> Arrival {
    let mode = match of.mode {
        Mode::Truncate | Mode::Replace => Mode::Append,
        mode => mode,
    };
    Arrival { mode, delete_missing: false, freeze: false, lock_timeout_ms, ..of.clone() }
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
    let note = async |session: &Session| ledger.rejects_loaded(session, (&of.job_id, &of.file_nos), by).await;
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
