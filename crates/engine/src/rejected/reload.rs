//! The load of files of rejected records, mended or not.

use super::layout::{IGNORED, Layout, Layouts};
use super::{AS_SENT, LAYOUT};
use crate::history::JobRow;
use crate::{Connection, again};
use howdah_model::{
    Arrival, Error, ErrorKind, Format, Header, IndexesChoice, Job, KnownFiles, LedgerChoice, Mode, RejectsOf,
    Relation, Result, Shaping, TablePlan, Told,
};
use howdah_target::ledger::Ledger;
use howdah_target::sql::quote_relation;
use howdah_transcode::infer;
use std::collections::{BTreeMap, BTreeSet};

/// How records are read again whose dialect COPY cannot be told.
fn as_found(plan: &TablePlan) -> Shaping {
    let told = Told {
        header: Some(true),
        encoding: Some(plan.recode.clone().unwrap_or_else(|| "UTF8".to_owned())),
        // A few records show neither all spellings of NULL nor where they are values.
        dialect: plan.dialect.clone(),
        ..Told::default()
    };
    let spelled = plan.fields.iter().zip(&plan.readings).filter_map(|(field, reading)| {
        let (name, reading) = (field.as_ref()?, reading.as_ref()?);
        let column = plan.table.columns.iter().find(|column| column.name == *name)?;
        Some((name.clone(), format!("{}:{}", column.type_name, infer::spelling(reading))))
    });
    Shaping { told: Some(told), types: spelled.collect(), ..Shaping::default() }
}

/// The load of files that [`write_files`](super::write_files) has written, mended or not, into the table that
/// their records were meant for. What `typed` says of sources, sessions and so on holds; how the files are
/// written, and how rows come into the table, are those of the job that rejected the records, but they come
/// on top of what is there: what that job emptied or replaced, or deleted for having no record, it has dealt
/// with. `typed.table` says which table where that job has loaded several.
///
/// # Errors
/// `Usage` without files, where the table must be named, and where nobody knows how a file is written; those
/// of the connection and the ledger.
pub async fn reload(connection: &Connection, schema: &str, row: &JobRow, typed: Job) -> Result<Job> {
    let job = to_reload(connection, schema, row, typed).await;
    job.map_err(|error| again::in_full(error, connection, &row.job_id, schema))
}

async fn to_reload(connection: &Connection, schema: &str, row: &JobRow, typed: Job) -> Result<Job> {
    let layouts = Layouts::new(&row.plan);
    let meant = meant(row, &layouts, typed.table.as_deref())?;
    let session = connection.open().await?;
    let ledger = Ledger::new(schema);
    let waiting = connection.attend(&session, ledger.rejected_files(&session, &row.job_id)).await?;
    connection.keep(session);
    let mut kept = Vec::new();
    for source in &typed.sources {
        let location = &source.location;
        kept.push(kept_in(&meant, &waiting, location).ok_or_else(|| of_no_layout(row, location))?);
    }
    let Some((layout, as_in_file)) = kept.pop() else {
        return Err(Error::new(ErrorKind::Usage, "--rejects needs the file of rejected records")
            .with_hint("`howdah status JOB --reject-file FILE` writes it"));
    };
    if kept.iter().any(|(other, other_as_in_file)| (other.no, *other_as_in_file) != (layout.no, as_in_file)) {
        let message = "--rejects: these files are written in different ways";
        return Err(
            Error::new(ErrorKind::Usage, message).with_hint("load each of them by a command of its own")
        );
    }
    of_layout(schema, row, layout, as_in_file, typed)
}

/// The layouts of the table that is named, or of the only one.
fn meant<'a>(row: &JobRow, layouts: &'a Layouts<'a>, named: Option<&str>) -> Result<Vec<&'a Layout<'a>>> {
    let of_job: BTreeSet<&Relation> = layouts.all.iter().map(|layout| &layout.table.table.relation).collect();
    let is_named = |relation: &&&Relation| named.is_none_or(|name| is_called(relation, name));
    let mut fits = of_job.iter().filter(is_named);
    let (first, second) = (fits.next(), fits.next());
    if let (Some(relation), None) = (first, second) {
        let of_relation = |layout: &&Layout<'_>| layout.table.table.relation == **relation;
        return Ok(layouts.all.iter().filter(of_relation).collect());
    }
    let all: Vec<String> = of_job.iter().map(|relation| quote_relation(relation)).collect();
    let message = match (first, named) {
        (None, Some(name)) => format!("--table {name}: job {} has loaded no such table", row.job_id),
        _ => format!("job {} has loaded several tables", row.job_id),
    };
    let hint = format!("name the one that the records are for by --table: {}", all.join(" or "));
    Err(Error::new(ErrorKind::Usage, message).with_hint(hint))
}

/// As SQL would name it, or as messages do.
fn is_called(relation: &Relation, name: &str) -> bool {
    let Relation { schema, name: own } = relation;
    let quoted = format!("\"{}\"", own.replace('"', "\"\""));
    [
        own.clone(),
        relation.to_string(),
        quote_relation(relation),
        quoted.clone(),
        format!("{schema}.{quoted}"),
    ]
    .iter()
    .any(|spelling| spelling == name || (!name.contains('"') && *spelling == name.to_ascii_lowercase()))
}

/// How the records of this file are kept, by the end of its name and by what waits: the layout, and whether
/// they are as in the files of the job.
fn kept_in<'a>(
    meant: &[&'a Layout<'a>],
    waiting: &[(u32, bool)],
    location: &str,
) -> Option<(&'a Layout<'a>, bool)> {
    let name = location.strip_suffix(AS_SENT);
    let is_sent = name.is_some();
    let no: Option<usize> = name.unwrap_or(location).rsplit_once(LAYOUT).and_then(|(_, no)| no.parse().ok());
    let waits = |layout: &Layout<'_>, as_in_file: bool| {
        waiting.iter().any(|(file_no, kept)| *kept == as_in_file && layout.file_nos.contains(file_no))
    };
    let layout = match meant {
        [only] => Some(*only),
        _ => meant.iter().find(|layout| Some(layout.no) == no).copied().or_else(|| {
            // Without a number a file is written where the records of all others are settled.
            let mut left = meant.iter().filter(|layout| waits(layout, true) || waits(layout, false));
            left.next().filter(|_| left.next().is_none()).copied()
        }),
    }?;
    // Those that were sent have a name of their own where others may be as in the file.
    let as_in_file = layout.is_rewritten()
        || waits(layout, true)
        || (layout.table.recode.is_none() && !waits(layout, false));
    Some((layout, as_in_file && !is_sent))
}

fn of_no_layout(row: &JobRow, location: &str) -> Error {
    let message = format!(
        "the files of job {} are written in different ways, and the name of this one does not say in which it is",
        row.job_id
    );
    Error::new(ErrorKind::Usage, message).in_file(location).with_hint(format!(
        "`howdah status JOB --reject-file FILE` writes a file for each way: keep the end of its name, as in FILE{LAYOUT}1"
    ))
}

fn of_layout(schema: &str, row: &JobRow, layout: &Layout<'_>, as_in_file: bool, typed: Job) -> Result<Job> {
    let plan = layout.table;
    let (format, names, _) = layout.form(as_in_file);
    let of = &row.plan.job;
    let (shaping, format) = if as_in_file && plan.own_dialect().is_some() {
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
    if arrival.mode != Mode::Append && typed.known != KnownFiles::default() {
        let message =
            format!("--known is for rows that are appended, and those of job {} are not", row.job_id);
        return Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out"));
    }
    let rejects_of = RejectsOf {
        job_id: row.job_id.clone(),
        file_nos: layout.file_nos.clone(),
        as_in_file: Some(as_in_file),
        value_settings: row.plan.value_settings.clone(),
    };
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
        rejects_of: Some(rejects_of),
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
