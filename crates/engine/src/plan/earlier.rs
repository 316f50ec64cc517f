//! A job that an earlier run has begun goes on as that run decided.
//!
//! What decides which bytes become which rows (fields, readings, formats, chunk borders) is taken from the
//! plan in the ledger, not found again: by now the table exists and may hold rows, so that looking anew could
//! come to another end. Only what may differ between runs is new: sessions, memory, and the columns' types,
//! which the earlier run may have widened.

use super::evolve;
use super::head::{Head, HeadReader, Heads};
use super::identity::{Began, Settled};
use super::sources::Source;
use super::tune::unlogged_table;
use super::{History, Planned, around_rows, indexes, is_filled, lay_out, mended, new_table};
use crate::begin::in_turn_ms;
use crate::budget::Extent;
use crate::done;
use crate::emptied;
use crate::feed::{self, Opened, mending_shape, rewriting_shape};
use crate::load::file_nos;
use crate::widen::{Open, holds};
use crate::{Connection, again};
use howdah_model::{
    BadRecords, Column, Error, ErrorKind, Event, FilePlan, IfDone, Job, KnownFiles, Mode, OnError, Plan,
    Receipt, Relation, Result, Table, TableChange, TablePlan, Taper, ToastCompression, Tune, UnloggedTable,
    ValueSettings, Verify, counted, plural, show_size,
};
use howdah_source::Object;
use howdah_target::ledger::{Believed, JobRow, JobStatus, Ledger, Origin};
use howdah_target::session::{Session, catalog};
use howdah_target::sql::quote_relation;
use howdah_target::staging;
use howdah_target::truncate;
use howdah_target::tune::table as tuned_table;
use howdah_transcode::decompress::may_have_parts;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Whether a table is empty is worth a word, but nobody is waited for who holds it.
const LOOK_WITHIN_MS: u64 = 500;

/// What the ledger says of this run of the job; `None` if the tables that held its rows are gone, and the
/// rows with them.
pub(super) async fn go_on(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    job: &Job,
    row: JobRow,
) -> Result<Option<Settled>> {
    let done = row.status == JobStatus::Done;
    let mut tables = Vec::new();
    for plan in &row.plan.tables {
        tables.push(catalog::find_table(session, &quote_relation(&plan.table.relation)).await?);
    }
    if done || row.chunks > 0 {
        let gone = tables.iter().filter(|table| table.is_none()).count();
        if gone == tables.len() {
            return Ok(None);
        }
        let replaced = replaced(&row, &tables);
        if !done && let Some(table) = replaced {
            let error = || {
                let restore = again::command(connection, "restore", &row.job_id, ledger.schema());
                not_the_table(&row, table, &restore)
            };
            return if job.force { Ok(None) } else { Err(error()) };
        }
        if !done && let Some((table, columns)) = other_columns(&row, &tables) {
            return if job.force { Ok(None) } else { Err(not_the_columns(&row, table, &columns)) };
        }
    }
    if !done && row.chunks > 0 && !staging_is_there(session, &row.plan).await? {
        return Ok(None);
    }
    if emptied_since(session, ledger, job, &row).await? {
        return Ok(None);
    }
    let moved = row.origin == Origin::Elsewhere;
    // A table that came with the ledger is none that was made anew: that it is empty may be meant.
    if done && !moved && row.rows_stored > 0 && emptied::made_anew(session, &row.plan).await? {
        return Ok(None);
    }
    tell_of_tables(connection, session, &row, &tables).await;
    if moved && !done && row.chunks > 0 {
        expect_tellable(job, &row.job_id).map(|()| tell_moved(connection, &row.job_id))?;
    }
    let tables: Option<Vec<Table>> = tables.into_iter().collect();
    let history = match &row.finished_at {
        Some(at) if done => History::Done { at: at.clone() },
        _ => History::Begun(standing(session, ledger, job, &row).await?),
    };
    let (chunk_bytes, taper) = borders(job, &row)?;
    // A run that came to nothing binds nobody: its user may have put right what was wrong with the table, or
    // made it.
    let has_made =
        |tables: &Vec<Table>| row.plan.tables.iter().zip(tables).any(|(plan, table)| made(plan, table));
    let bound = done || row.chunks > 0 || tables.as_ref().is_some_and(has_made);
    let value_settings = if bound { row.plan.value_settings.clone() } else { ValueSettings::new() };
    let begun = &row.plan.job;
    let once_more = begun.force || begun.known == KnownFiles::Load || begun.once_more_until.is_some();
    let (chunk_bytes, began) = (Some(chunk_bytes), Some(Began { at: row.started_at, once_more }));
    let earlier = tables.filter(|_| bound).map(|tables| (row.plan, tables));
    let doubted_for = match (&earlier, done) {
        (Some(_), false) => ledger.doubted_for(session, Believed::Jobs).await?,
        _ => Vec::new(),
    };
    let name = row.job_id;
    Ok(Some(Settled {
        name,
        chunk_bytes,
        taper,
        history,
        began,
        earlier,
        doubted_for,
        value_settings,
        own: None,
        changed: Vec::new(),
        closed: None,
    }))
}

/// Chunks that are stored decide how the others are cut.
fn borders(job: &Job, row: &JobRow) -> Result<(u64, Option<Taper>)> {
    let (chunk_bytes, taper) = (row.plan.chunk_bytes, row.plan.taper);
    if chunk_bytes == 0 && row.status != JobStatus::Done {
        let message = format!("the ledger says that job {} is loaded in chunks of no bytes", row.job_id);
        return Err(Error::new(ErrorKind::Ledger, message).with_hint(
            "somebody has changed it: see who may write to the ledger; take the rows of the job out of its tables, then load under another --job-id",
        ));
    }
    match job.chunk_bytes.filter(|bytes| *bytes != chunk_bytes && row.status != JobStatus::Done) {
        None => Ok((chunk_bytes, taper)),
        Some(bytes) if row.chunks == 0 => Ok((bytes, None)),
        Some(_) => {
            let message = format!("job {} was begun with chunks of {}", row.job_id, show_size(chunk_bytes));
            Err(Error::new(ErrorKind::Usage, message).with_hint("leave --chunk-size out to go on with it"))
        }
    }
}

/// The receipts of an unfinished job, without those of tables that were emptied since: `--force` loads their
/// rows again.
async fn standing(session: &Session, ledger: &Ledger, job: &Job, row: &JobRow) -> Result<Vec<Receipt>> {
    expect_none_in(session, ledger, job, row).await?;
    let mut receipts = ledger.receipts(session, &row.job_id).await?;
    let gone = emptied::behind(session, ledger, &row.plan).await?;
    if let Some(table) = gone.first().filter(|_| !job.force) {
        return Err(table.error(&row.job_id));
    }
    if !row.plan.job.arrival.is_staged() {
        let lost: Vec<i32> = gone.iter().flat_map(|table| file_nos(&row.plan, &table.relation)).collect();
        receipts.retain(|receipt| !lost.iter().any(|no| u32::try_from(*no) == Ok(receipt.file_no)));
    }
    Ok(receipts)
}

/// What has come in part by part does not come at once with the rest.
async fn expect_none_in(session: &Session, ledger: &Ledger, job: &Job, row: &JobRow) -> Result<()> {
    if !job.arrival.atomic || row.plan.job.arrival.atomic {
        return Ok(());
    }
    for TablePlan { table, .. } in &row.plan.tables {
        let (_, rows) = ledger.steps_done(session, &row.job_id, &table.relation).await?;
        if rows > 0 {
            let message = format!(
                "job {} was begun without --atomic, and {} of {} that it has stored are in the table already",
                row.job_id,
                counted(rows, "row"),
                table.relation
            );
            return Err(
                Error::new(ErrorKind::Usage, message).with_hint("leave --atomic out to go on with it")
            );
        }
    }
    Ok(())
}

/// A crash of the server has emptied UNLOGGED tables behind the job, so that it begins anew. One whose chunks
/// have come as they were read goes on without those that are lost.
async fn emptied_since(session: &Session, ledger: &Ledger, job: &Job, row: &JobRow) -> Result<bool> {
    let (done, arrival) = (row.status == JobStatus::Done, &row.plan.job.arrival);
    let mut now = Vec::new();
    for TablePlan { table, .. } in &row.plan.tables {
        let storages = tuned_table::look(session, &table.relation).await?;
        now.extend(unlogged_table(&table.relation, &storages));
    }
    let has_rows = done || (row.chunks > 0 && !arrival.is_staged());
    if now.is_empty() || !has_rows && !arrival.is_staged() {
        return Ok(false);
    }
    let was =
        |table: &UnloggedTable| row.plan.tuning.unlogged.iter().find(|was| was.relation == table.relation);
    if let Some(table) = now.iter().find(|table| has_rows && was(table).is_none()) {
        return Err(emptied::unknown(&row.job_id, &table.relation));
    }
    let watching = emptied::watching(ledger.clone(), &row.plan);
    if !watching.has_lost(session, &row.job_id).await? {
        return Ok(false);
    }
    for table in now.iter().filter(|_| !job.force) {
        // A crash leaves the file, and SET LOGGED, behind which a crash takes the marks alone, makes another
        // one.
        let is_kept = was(table).is_none_or(|was| was.files.iter().all(|file| table.files.contains(file)));
        if !is_kept && is_filled(session, &table.relation, in_turn_ms(job)).await? {
            return Err(emptied::written_anew(&row.job_id, &table.relation));
        }
    }
    if !(done || arrival.is_staged()) {
        return Ok(false);
    }
    let all =
        row.plan.tables.iter().all(|table| {
            now.iter().any(|unlogged| unlogged.whole && unlogged.relation == table.table.relation)
        });
    if all || arrival.has_key() { Ok(true) } else { Err(emptied::in_part(&row.job_id)) }
}

/// The staging tables that chunks were copied into, if they were.
async fn staging_is_there(session: &Session, plan: &Plan) -> Result<bool> {
    for staging in plan.tables.iter().filter_map(|table| table.staging.as_ref()) {
        if !staging::exists(session, &staging.relation).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A table that is not there any more, or not the one that rows were stored in. Of a ledger that has come
/// from another database no OID tells: rows came along with it into the table of that name, but what waits in
/// staging tables is not relied on.
fn replaced<'a>(row: &'a JobRow, tables: &[Option<Table>]) -> Option<&'a Table> {
    let same = |was: &Table, is: &Table| match row.origin {
        Origin::Elsewhere => !row.plan.job.arrival.is_staged(),
        Origin::Here => was.oid == 0 || was.oid == is.oid,
    };
    let pairs = row.plan.tables.iter().map(|plan| &plan.table).zip(tables);
    let mut others = pairs.filter(|(was, is)| !is.as_ref().is_some_and(|is| same(was, is)));
    others.next().map(|(was, _)| was)
}

/// Columns that the job fills and that are not the ones by now in which its rows were stored, with their
/// table. Rows that wait in staging tables come into the columns as they are then.
fn other_columns<'a>(row: &'a JobRow, tables: &[Option<Table>]) -> Option<(&'a Relation, Vec<&'a str>)> {
    let tables = row.plan.tables.iter().zip(tables).filter_map(|(plan, now)| Some((plan, now.as_ref()?)));
    let mut others = tables.filter(|(plan, _)| plan.staging.is_none() && row.origin == Origin::Here);
    others.find_map(|(plan, now)| {
        let is_other = |was: &&Column| {
            let is = now.columns.iter().find(|is| is.name == was.name);
            was.attnum != 0 && is.is_some_and(|is| is.attnum != was.attnum)
        };
        let filled = plan
            .table
            .columns
            .iter()
            .filter(|was| plan.fields.iter().flatten().any(|name| *name == was.name));
        let names: Vec<&str> = filled.filter(is_other).map(|was| was.name.as_str()).collect();
        (!names.is_empty()).then_some((&plan.table.relation, names))
    })
}

fn not_the_columns(row: &JobRow, relation: &Relation, columns: &[&str]) -> Error {
    let JobRow { job_id, rows_stored, .. } = row;
    let message = format!(
        "{} {} of {relation}, in which job {job_id} has stored rows ({rows_stored} in all), {} dropped and made anew, or renamed",
        plural(columns.len() as u64, "column", "columns"),
        columns.join(", "),
        plural(columns.len() as u64, "was", "were"),
    );
    Error::new(ErrorKind::Table, message).with_hint(AS_THEY_ARE_NOW)
}

/// Which row is of which chunk is told by the transaction that has stored it, and those of another server are
/// not those of a dump.
fn expect_tellable(job: &Job, job_id: &str) -> Result<()> {
    if job.verify == Verify::None {
        return Ok(());
    }
    let message = format!(
        "the ledger has come from another database: which rows job {job_id} has stored there cannot be told any more, as --verify asks"
    );
    Err(Error::new(ErrorKind::Ledger, message)
        .with_hint("run the job's `howdah load` command without --verify: it goes on with this job"))
}

/// The user should know what is relied on.
fn tell_moved(connection: &Connection, job_id: &str) {
    let message = format!(
        "the ledger has come from another database: the tables of job {job_id} are found by their names, and what it has stored \
         there is taken to have come along"
    );
    if let Some(listener) = connection.listener() {
        listener.on_event(&Event::Notice { message });
    }
}

/// What has become of the tables of a finished job.
async fn tell_of_tables(connection: &Connection, session: &Session, row: &JobRow, tables: &[Option<Table>]) {
    tell_made_anew(connection, row, tables);
    tell_empty(connection, session, row).await;
}

/// A finished job is taken for done, whoever has put another table in the place of its own: by hand, too,
/// tables are swapped for ones with the same rows.
fn tell_made_anew(connection: &Connection, row: &JobRow, tables: &[Option<Table>]) {
    let is_done_here = row.status == JobStatus::Done && row.origin == Origin::Here && row.rows_stored > 0;
    if !is_done_here || row.plan.job.arrival.mode == Mode::Replace {
        return;
    }
    let pairs = row.plan.tables.iter().map(|plan| &plan.table).zip(tables);
    let mut others =
        pairs.filter(|(was, is)| was.oid != 0 && is.as_ref().is_some_and(|is| is.oid != was.oid));
    if let (Some((was, _)), Some(listener)) = (others.next(), connection.listener()) {
        let message = format!(
            "the table {} in which job {} has stored its rows was dropped or made anew since, and may lack them: --force loads \
             everything again",
            was.relation, row.job_id
        );
        listener.on_event(&Event::Warning { message });
    }
}

/// Rows of a finished job may have been moved on and deleted, as from a table for what has just come. That is
/// not for a load to undo; but who has emptied the table to load it anew is told.
async fn tell_empty(connection: &Connection, session: &Session, row: &JobRow) {
    let (JobStatus::Done, Some(listener), 1..) = (row.status, connection.listener(), row.rows_stored) else {
        return;
    };
    let relations: BTreeSet<&Relation> = row.plan.tables.iter().map(|plan| &plan.table.relation).collect();
    for relation in &relations {
        if !matches!(truncate::is_empty(session, relation, LOOK_WITHIN_MS).await, Ok(Some(true))) {
            return;
        }
    }
    let (rows, tables) =
        (counted(row.rows_stored, "row"), plural(relations.len() as u64, "table is", "tables are"));
    let message = format!(
        "job {} has stored {rows}, and its {tables} empty now: --force loads everything again",
        row.job_id
    );
    listener.on_event(&Event::Warning { message });
}

const AS_THEY_ARE_NOW: &str = "--force loads everything again from the beginning, into the tables as they are now: remove rows of the job that are \
                               there first, as after a restore from a dump";

fn not_the_table(row: &JobRow, table: &Table, restore: &str) -> Error {
    let JobRow { job_id, rows_stored, .. } = row;
    let relation = &table.relation;
    if row.plan.job.arrival.is_staged() {
        let became = match row.origin {
            Origin::Elsewhere => "is another one here, as the ledger has come from another database",
            Origin::Here => "was dropped or made anew, as by --mode replace",
        };
        let message = format!(
            "the table {relation}, for which rows of job {job_id} wait in a staging table ({rows_stored} in all), {became}"
        );
        return Error::new(ErrorKind::Table, message).with_hint(format!(
            "`{restore}` drops the rows that wait; then the same command begins anew, with the table as it is now. Where they did not come \
             along with the ledger, so that there is nothing to drop, it does so with --force"
        ));
    }
    let became = match row.origin {
        Origin::Here => "was dropped or made anew",
        Origin::Elsewhere => "did not come along when the ledger came from another database",
    };
    let message =
        format!("the table {relation} in which job {job_id} has stored rows ({rows_stored} in all) {became}");
    Error::new(ErrorKind::Table, message).with_hint(AS_THEY_ARE_NOW)
}

/// Whether the job has made this table, or is to change it. A run that was killed before it could note the
/// table's OID (`Ledger::made`) has made what it had planned.
fn made(plan: &TablePlan, table: &Table) -> bool {
    let looks_planned = || {
        let typeless = |column: &Column| Column { type_oid: 0, attnum: 0, ..column.clone() };
        plan.table.oid == 0 && table.columns.iter().map(typeless).eq(plan.table.columns.iter().map(typeless))
    };
    (plan.create.is_some() && (plan.table.oid == table.oid || looks_planned()))
        || plan.changes.iter().any(|change| matches!(change, TableChange::Add(_)))
}

/// What cannot be mended is a record that was rejected with `--on-error skip`, and none that counts without:
/// chunks that are stored would be found to hold other records.
pub(super) fn expect_same_count(plan: &Plan, before: &BadRecords) -> Result<()> {
    let now = plan.job.bad_records.on_error;
    // Of those that are read in ranges the lines stay in their places.
    let is_mended = |(no, file): (u32, &FilePlan)| {
        !file.ranged && rewriting_shape(plan, no).or_else(|| mending_shape(plan, no)).is_some()
    };
    if now == before.on_error || !plan.job.shaping.lenient || !(0..).zip(&plan.files).any(is_mended) {
        return Ok(());
    }
    let (was, hint) = match before.on_error {
        OnError::Skip => ("with", "give --on-error skip again"),
        OnError::Stop => ("without", "leave out --on-error skip"),
    };
    let message = format!(
        "job {} has stored rows {was} --on-error skip, which decides how --lenient counts what it cannot mend",
        plan.job_id
    );
    Err(Error::new(ErrorKind::Usage, message)
        .with_hint(format!("{hint}; --force loads everything again from the beginning")))
}

/// The job as the earlier run planned it.
pub(super) async fn planned(
    heads: &Heads<'_>,
    mut plan: Plan,
    settled: Settled,
    (earlier, tables): (Plan, Vec<Table>),
    sources: Vec<Source>,
) -> Result<Planned> {
    let bad_records = earlier.job.bad_records;
    (plan.tables, plan.files) = (earlier.tables, earlier.files);
    mended::read_anew(heads, &mut plan, &settled.changed, &sources).await?;
    let compares = plan.job.if_done == IfDone::Ok && done::only_bytes_tell(&plan);
    if settled.history.has_rows() || compares && matches!(settled.history, History::Done { .. }) {
        expect_same_count(&plan, &bad_records)?;
    }
    for (planned, table) in plan.tables.iter_mut().zip(tables) {
        planned.changes.retain(|change| !is_made(change, &table));
        planned.changes.iter_mut().for_each(|change| take_type(change, &table));
        planned.table = evolve::with_changes(table, &planned.changes);
        let keep = plan.job.toast_compression == ToastCompression::Keep || plan.job.tune == Some(Tune::None);
        planned.toast_compression.take_if(|_| keep);
    }
    let rows_to_come = indexes::rows_to_come(&plan, &[], &settled.history);
    let dated =
        around_rows(heads.context, heads.session, &mut plan, &rows_to_come, &settled.history, heads.to_load)
            .await?;
    let extent = Extent {
        near_cpus: heads.context.connection.server_cpus(),
        has_parts: plan.files.iter().any(|file| may_have_parts(file.codec)),
        pipes: feed::pipes_at_once(&plan.files),
        ..Extent::default()
    };
    let layout = lay_out(&mut plan, &settled, extent)?;
    let begun = matches!(settled.history, History::Begun(_));
    let (opened, open) = match heads.told {
        Some(_) if begun && plan.tables.iter().any(|table| new_table::has_open(&plan.job, table)) => {
            look_again(heads, &plan, sources).await?
        }
        _ => (unread(&plan, &sources)?, Vec::new()),
    };
    let previews = plan.files.iter().map(|_| Vec::new()).collect();
    let (began, history) = (Instant::now(), settled.history);
    Ok(Planned { began, plan, layout, history, open, dated, previews, opened, reject_file: None })
}

/// A column that was widened is not widened again, as it may have become wider still.
fn is_made(change: &TableChange, table: &Table) -> bool {
    let TableChange::Widen(wider) = change else { return false };
    let column = table.columns.iter().find(|column| column.name == wider.name);
    column.is_some_and(|column| holds(&column.type_name, &wider.type_name))
}

/// A column that was added has the type that it has got since, by the earlier run or somebody else.
fn take_type(change: &mut TableChange, table: &Table) {
    let TableChange::Add(added) = change else { return };
    if let Some(column) = table.columns.iter().find(|column| column.name == added.name) {
        added.type_name.clone_from(&column.type_name);
    }
}

/// The sources in the order of the plan's files.
fn unread(plan: &Plan, sources: &[Source]) -> Result<Vec<Opened>> {
    let known = Known::new(sources.iter().map(|source| &source.object));
    let opened = |file: &FilePlan| {
        let no = known.of(&file.location, file.real_location.as_deref()).next().ok_or_else(|| lost(file))?;
        Ok(HeadReader::new(sources[no].object.clone()).into_opened())
    };
    plan.files.iter().map(opened).collect()
}

/// Objects by number. A job may have a hundred thousand, so that looking through all of them for each would
/// take hours.
#[derive(Default)]
struct Known {
    by_location: HashMap<String, Vec<usize>>,
    by_real_location: HashMap<String, Vec<usize>>,
}

impl Known {
    fn new<'a>(objects: impl Iterator<Item = &'a Object>) -> Known {
        let mut known = Known::default();
        for (no, object) in objects.enumerate() {
            known.by_location.entry(object.location().to_owned()).or_default().push(no);
            known.by_real_location.entry(object.real_location().to_owned()).or_default().push(no);
        }
        known
    }

    /// Those that a file of the plan may be: this run may have been given another path to it.
    fn of(&self, location: &str, real_location: Option<&str>) -> impl Iterator<Item = usize> {
        let real_location = real_location.unwrap_or(location);
        let by_location = self.by_location.get(location);
        by_location.into_iter().chain(self.by_real_location.get(real_location)).flatten().copied()
    }
}

fn lost(file: &FilePlan) -> Error {
    let message = "the file is in the job's plan and is not found any more";
    Error::new(ErrorKind::SourceChanged, message).in_file(&file.location)
}

/// Columns that can still be widened need to know what the sample of the files held.
async fn look_again(
    heads: &Heads<'_>,
    plan: &Plan,
    sources: Vec<Source>,
) -> Result<(Vec<Opened>, Vec<Open>)> {
    let found = heads.read_all(sources).await?;
    let known = Known::new(found.iter().map(Head::object));
    let mut found: Vec<Option<Head>> = found.into_iter().map(Some).collect();
    let mut placed = Vec::new();
    for file in &plan.files {
        let is_there = |no: &usize| found[*no].is_some();
        let is_same_part = |no: &usize| {
            let same_part =
                |head: &Head| head.data_start_byte == file.data_start_byte || head.found.is_none();
            found[*no].as_ref().is_some_and(|head| same_part(head) || !file.rereadable)
        };
        let may_be = || known.of(&file.location, file.real_location.as_deref());
        let no = may_be().find(is_same_part).or_else(|| may_be().find(is_there));
        let head = no.and_then(|no| found[no].take()).ok_or_else(|| lost(file))?;
        placed.push((file.table_no, head));
    }
    let open = new_table::open(&plan.job, &plan.tables, &placed);
    Ok((placed.into_iter().map(|(_, head)| head.into_opened()).collect(), open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_source::Sources;

    #[tokio::test]
    async fn a_file_is_known_by_its_name_and_by_where_that_leads() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        std::fs::write(path("a"), "1").unwrap();
        std::fs::write(path("c"), "2").unwrap();
        std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
        let sources = Sources::of_process();
        let mut objects = sources.list(&path("link")).await.unwrap();
        objects.extend(sources.list(&path("c")).await.unwrap());
        let known = Known::new(objects.iter());
        let first = |location: &str, real: Option<&str>| known.of(location, real).next();
        assert_eq!(first(&path("link"), Some(&path("a"))), Some(0));
        assert_eq!(first(&path("other"), Some(&path("a"))), Some(0));
        assert_eq!(first(&path("a"), None), Some(0));
        assert_eq!(first(&path("c"), None), Some(1));
        assert_eq!(first(&path("other"), None), None);
    }
}
