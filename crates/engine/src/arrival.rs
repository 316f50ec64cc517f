//! Behind the last chunk: rows that waited in staging tables come into their tables, side by side or all at
//! once.
//!
//! Which parts are in, the ledger knows: a run that goes on does the others.

pub(crate) mod judge;
pub(crate) mod leave_out;
mod parts;
mod place;

use crate::Context;
use crate::indexes::{Crew, restore_command};
use crate::load::by_file;
use crate::pipeline::Run;
use crate::plan::arrival::events;
use crate::retry::patiently;
use crate::scarce::BrokenOff;
use crate::spot::Spots;
use crate::{begin, emptied, rejected, rejects};
use futures_util::{StreamExt, stream};
use howdah_model::plan::TablePlan;
use howdah_model::summary::Status;
use howdah_model::{
    Changes, Error, ErrorKind, Keep, Mode, Plan, Relation, Result, Stage, StagingPlan, TuneScope, Verify,
    counted, plural,
};
use howdah_target::arrival::duplicates::{self, Twins};
use howdah_target::arrival::order;
use howdah_target::arrival::part::{self, Surroundings, WAL_COMPRESSION, Way};
use howdah_target::arrival::table::Into;
use howdah_target::arrival::verify;
use howdah_target::check::left_out::LeftOut;
use howdah_target::ledger::{Ending, Ledger, Proof};
use howdah_target::replace::{self, Locks, Missing, Replacement};
use howdah_target::rewrite;
use howdah_target::session::Session;
use howdah_target::staging::{self, Making};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Tables with their staging tables.
type Staged<'a> = [(&'a TablePlan, &'a StagingPlan)];

/// The tables of a plan whose rows wait, each once, with the first plan that goes there.
pub(crate) fn staged(plan: &Plan) -> Vec<(&TablePlan, &StagingPlan)> {
    let mut seen = BTreeSet::new();
    let staged = plan.tables.iter().filter_map(|table| Some((table, table.staging.as_ref()?)));
    staged.filter(|(_, staging)| seen.insert(&staging.relation)).collect()
}

/// Makes the staging tables that the plan has.
///
/// # Errors
/// Those of [`staging::make`] and of [`columns_of_all`].
pub(crate) async fn make_staging(session: &Session, ledger: &Ledger, plan: &Plan, fresh: bool) -> Result<()> {
    for (first, staging) in staged(plan) {
        let table = columns_of_all(plan, first, staging)?;
        let left_out = LeftOut::read(session, &table, &left_out(plan, staging)).await?;
        let arrival = &plan.job.arrival;
        let making = Making { key: &arrival.key, fresh, lock_timeout_ms: arrival.lock_timeout_ms };
        staging::make(session, ledger, &plan.job_id, &table, staging, making).await?;
        left_out.fill(session, staging).await?;
    }
    Ok(())
}

/// The plan of a table whose rows wait, with the columns of all its files: `first` itself, unless these fill
/// different ones.
///
/// # Errors
/// Columns, where they do, and what some leave out is not the same to rows that wait as to the table.
pub(crate) fn columns_of_all<'a>(
    plan: &Plan,
    first: &'a TablePlan,
    staging: &StagingPlan,
) -> Result<Cow<'a, TablePlan>> {
    let each = columns_of_each(plan, staging);
    if each.iter().all(|columns| each.first() == Some(columns)) {
        return Ok(Cow::Borrowed(first));
    }
    let (arrival, relation) = (&plan.job.arrival, &first.table.relation);
    if arrival.atomic || arrival.mode == Mode::Replace || arrival.has_key() {
        let message = format!("files for {relation} fill different columns");
        return Err(Error::new(ErrorKind::Columns, message).with_hint("load them one after the other"));
    }
    let filled: BTreeSet<&String> = each.into_iter().flatten().collect();
    Ok(Cow::Owned(TablePlan { fields: filled.into_iter().cloned().map(Some).collect(), ..first.clone() }))
}

/// Columns that some files fill and others do not.
fn left_out<'a>(plan: &'a Plan, staging: &StagingPlan) -> BTreeSet<&'a String> {
    let each = columns_of_each(plan, staging);
    let by_all = |name: &&String| each.iter().all(|columns| columns.contains(name));
    each.iter().flatten().copied().filter(|name| !by_all(name)).collect()
}

/// What the files of each plan fill whose rows wait in this staging table.
fn columns_of_each<'a>(plan: &'a Plan, staging: &StagingPlan) -> Vec<BTreeSet<&'a String>> {
    let all = plan.tables.iter().filter(|table| table.staging.as_ref() == Some(staging));
    all.map(|table| table.fields.iter().flatten().collect()).collect()
}

/// What the end of a job does besides: its staging tables are dropped.
pub(crate) fn ending_sql(ledger: &Ledger, plan: &Plan) -> String {
    let drop = |relation: &Relation| format!("{}; ", staging::drop_sql(ledger, &plan.job_id, relation));
    let drops = staged(plan).into_iter().map(|(table, staging)| {
        // The new table that was filled from it has got another name by then.
        let is_filled = plan.job.arrival.mode == Mode::Replace && !staging::is_new_table(staging);
        let filled = is_filled.then(|| drop(&staging::new_table(&table.table.relation, staging)));
        drop(&staging.relation) + &filled.unwrap_or_default()
    });
    drops.collect()
}

/// Brings all rows in.
///
/// # Errors
/// What the tables have against rows; records of one key; what ends a load.
pub(crate) async fn bring_in(run: &Run) -> Result<()> {
    let tables = staged(&run.plan);
    let (Some(ledger), false) = (&run.ledger, tables.is_empty()) else { return Ok(()) };
    // Who has lost the job may find its staging tables empty.
    run.halt.result()?;
    expect_not_emptied(run, ledger).await?;
    run.is_at(at_what(run.plan.job.arrival.mode));
    let start = Instant::now();
    let done = bring_in_all(run, ledger, tables).await;
    run.tally.spend(Stage::Apply, start.elapsed());
    done
}

fn at_what(mode: Mode) -> &'static str {
    match mode {
        Mode::Merge => "merging rows into their tables",
        Mode::InsertNew => "inserting new rows into their tables",
        Mode::Replace => "putting new tables in the place of the old ones",
        Mode::Append | Mode::Truncate => "bringing rows into their tables",
    }
}

/// How long the account of a load that has failed may be waited for.
const NOTED_WITHIN: Duration = Duration::from_secs(1);

async fn bring_in_all(run: &Run, ledger: &Ledger, tables: Vec<(&TablePlan, &StagingPlan)>) -> Result<()> {
    if run.plan.job.arrival.delete_missing {
        expect_none_left_out(run)?;
    }
    let relations: Vec<&Relation> = tables.iter().map(|(table, _)| &table.table.relation).collect();
    let arrival = &run.plan.job.arrival;
    let in_order = async |session: &Session| order::parents_first(session, &relations, arrival).await;
    let order = on_session(run, in_order).await?;
    let tables: Vec<_> = order.into_iter().map(|no| tables[no]).collect();
    let mut all = Vec::new();
    for (table, staging) in &tables {
        let read =
            async |session: &Session| Into::read(session, table, staging, &run.plan.job.arrival.key).await;
        let into = on_session(run, read).await?;
        on_session(run, async |session| into.expect_columns(session, table).await).await?;
        let events = events(&run.plan.job.arrival);
        on_session(run, async |session| rewrite::expect_no_rules(session, &into.relation, &events).await)
            .await?;
        all.push(into);
    }
    let leaves_out = leave_out::is_for(&run.plan.job);
    let mut failing = None;
    loop {
        let left_out = if leaves_out { leave_out::all(run, ledger, &tables, &all).await? } else { 0 };
        let Err(failed) = come_in(run, ledger, &tables, &all).await else { return Ok(()) };
        // What cannot be told by asking is not told by asking again; but others may change the table in
        // between, so that it refuses more.
        let is_first = failing.is_none();
        let is_told = is_first || left_out > 0;
        let since = failing.get_or_insert_with(Instant::now).elapsed();
        let is_late = !is_first && since.as_millis() >= u128::from(run.plan.job.retry_for_ms);
        if !leaves_out || !is_told || is_late || !leave_out::is_broken(&failed) {
            let failed = Box::pin(place::located(run, ledger, (&tables, &all), failed)).await;
            return Err(if rejects::skips(run) { leave_out::hinted(run, failed, is_told) } else { failed });
        }
    }
}

async fn come_in(run: &Run, ledger: &Ledger, tables: &Staged<'_>, all: &[Into]) -> Result<()> {
    // What an earlier try has brought in is counted anew.
    run.steps.store(0, Relaxed);
    let mut waiting = Vec::new();
    for into in all {
        settle_duplicates(run, ledger, into).await?;
        let rows = on_session(run, async |session| into.staged_rows(session).await).await?;
        expect_all_staged(run, into, rows)?;
        if !into.key.is_empty() {
            // No autovacuum looks at a table that is minutes old: without, the planner expects a few rows and
            // joins them one by one.
            on_session(run, async |session| into.analyze_key(session).await).await?;
        }
        if rows == 0 && run.plan.job.arrival.delete_missing && !run.plan.job.force {
            return Err(nothing_to_keep(into));
        }
        waiting.push(rows);
    }
    let arrival = &run.plan.job.arrival;
    if arrival.mode == Mode::Replace {
        take_places(run, ledger, tables).await?;
    } else if arrival.atomic {
        at_once(run, ledger, all).await?;
    } else {
        for (into, rows) in all.iter().zip(&waiting) {
            parts::by_parts(run, ledger, into, *rows).await?;
        }
        for into in all.iter().rev().filter(|_| arrival.delete_missing) {
            parts::delete_missing(run, ledger, into, all).await?;
        }
        let by = run.plan.job.verify;
        for into in all.iter().filter(|_| by != Verify::None) {
            let check = async |session: &Session| {
                verify::check_alone(session, surroundings(run, ledger), way(run, into), by).await
            };
            on_session(run, check).await?;
        }
    }
    expect_not_emptied(run, ledger).await?;
    for (into, rows) in all.iter().zip(waiting) {
        account(run, ledger, into, rows).await?;
    }
    Ok(())
}

async fn expect_not_emptied(run: &Run, ledger: &Ledger) -> Result<()> {
    match on_session(run, async |session| ledger.has_lost(session, &run.plan.job_id).await).await? {
        true => Err(emptied::while_coming_in()),
        false => Ok(()),
    }
}

/// Does something on a session of its own, as often as it takes. The work leaves the session as it found it.
/// Where a disk of the server has next to no room it is broken off, and begun again when there is some.
pub(crate) async fn on_session<T>(run: &Run, work: impl AsyncFn(&Session) -> Result<T>) -> Result<T> {
    let connection = &run.context.connection;
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let once = || async {
        let session = connection.open().await?;
        let done = connection.attend_unless_scarce(&session, work(&session)).await?;
        if done.is_ok() {
            connection.keep(session);
        }
        Ok(done)
    };
    let mut broken_off = BrokenOff::default();
    loop {
        match patiently(&run.context, retry_for, once).await? {
            Ok(done) => return Ok(done),
            Err(scarce) => broken_off.wait(run, "a statement behind the last chunk", &scarce).await?,
        }
    }
}

/// Of several records of one key one is left, or the load fails.
async fn settle_duplicates(run: &Run, ledger: &Ledger, into: &Into) -> Result<()> {
    let keep = run.plan.job.arrival.keep;
    let unique = async |session: &Session| duplicates::index_key(session, into).await;
    if into.key.is_empty() || on_session(run, unique).await? {
        return Ok(());
    }
    if keep != Keep::Error {
        let thin_out = async |session: &Session| {
            duplicates::thin_out(session, into, keep == Keep::Last).await?;
            duplicates::index_key(session, into).await
        };
        return match on_session(run, thin_out).await? {
            true => Ok(()),
            false => Err(not_told_apart(into)),
        };
    }
    let twins = on_session(run, async |session| duplicates::earliest(session, into).await).await?;
    let Some(twins) = twins else { return Err(not_told_apart(into)) };
    let receipts = on_session(run, async |session| ledger.receipts(session, &run.plan.job_id).await).await?;
    run.set_receipts(by_file(receipts));
    Err(repeated(run, into, twins))
}

fn key_columns(into: &Into) -> String {
    into.key.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The operators and the comparison of an operator class that somebody has made may contradict each other.
fn not_told_apart(into: &Into) -> Error {
    let message = format!(
        "records for {} have the same key ({}) by the unique index, and not by the operators of its operator class: which of them count \
         cannot be told",
        into.relation,
        key_columns(into)
    );
    Error::new(ErrorKind::Record, message).with_hint("leave one record of each key in the sources")
}

fn repeated(run: &Run, into: &Into, twins: Twins) -> Error {
    let spots = Spots::new(run);
    let first = spots.place_in_file(run, twins.first);
    let also = match (first.file, first.record) {
        (Some(file), Some(record)) => format!(" as record {record} of {file}"),
        (Some(file), None) => format!(" as a record of {file}"),
        _ => " as an earlier record".to_owned(),
    };
    let more = match twins.repeated {
        0 | 1 => String::new(),
        count => format!("; {count} records repeat a key"),
    };
    let message = format!("it has the same key ({}){also}{more}", key_columns(into));
    Error::new(ErrorKind::Record, message)
        .at(spots.place_in_file(run, twins.second))
        .with_hint("--keep last lets the last record of each key count, --keep first the first")
}

/// Of several records of one key one counts, by their order; a record that is left out, or comes later than
/// the others, has none.
pub(crate) fn warn_of_order(run: &Run) {
    let arrival = &run.plan.job.arrival;
    if !arrival.has_key() || arrival.keep == Keep::Error {
        return;
    }
    let rejected = rows_rejected(run);
    if rejected > 0 {
        let records = plural(rejected, "record was", "records were");
        run.warn(format!(
            "{rejected} {records} rejected: where one of them is the one of its key that --keep lets count, another record of this \
             key counts in its place"
        ));
    }
    if let (Some(of), Mode::Merge) = (&run.plan.job.rejects_of, arrival.mode) {
        let job_id = &of.job_id;
        run.warn(format!(
            "what records of job {job_id}, or others since, say of the same keys is overwritten by these, also where it is newer"
        ));
    }
}

fn rows_rejected(run: &Run) -> u64 {
    (0..run.plan.files.len()).map(|no| run.tally.account(no).rows_rejected).sum()
}

/// The rows of records that were left out while they were read have no record in the staging table.
fn expect_none_left_out(run: &Run) -> Result<()> {
    let left_out = rows_rejected(run);
    if left_out == 0 {
        return Ok(());
    }
    let records = plural(left_out, "record was", "records were");
    let message =
        format!("{left_out} {records} left out, whose rows --delete-missing would delete: none is changed");
    Err(Error::new(ErrorKind::Record, message)
        .with_hint("mend them in the sources (howdah check lists them), or leave out --delete-missing"))
}

/// Rows that were acknowledged are there, unless another record of their key counts.
fn expect_all_staged(run: &Run, into: &Into, staged: u64) -> Result<()> {
    let stored = rows_for(run, &into.relation);
    let thinned_out = !into.key.is_empty() && run.plan.job.arrival.keep != Keep::Error;
    if staged >= stored || thinned_out {
        return Ok(());
    }
    let message = format!(
        "of {} for {} that the load has stored {staged} wait in its staging table: the server has lost the others, as after a \
         failover to a standby that was behind",
        counted(stored, "row"),
        into.relation
    );
    Err(Error::new(ErrorKind::ConnectionLost, message)
        .with_hint("run the same command again: it loads what is not there"))
}

fn nothing_to_keep(into: &Into) -> Error {
    let message =
        format!("the sources hold no record, so that --delete-missing would empty {}", into.relation);
    Error::new(ErrorKind::Record, message).with_hint("--force does that")
}

fn way<'a>(run: &Run, into: &'a Into) -> Way<'a> {
    let arrival = &run.plan.job.arrival;
    Way {
        into,
        mode: arrival.mode,
        delete_missing: arrival.delete_missing,
        all_change: false,
        many_new: false,
    }
}

fn surroundings<'a>(run: &'a Run, ledger: &'a Ledger) -> Surroundings<'a> {
    let lock_timeout_ms = run.plan.job.arrival.lock_timeout_ms;
    // Rows that are changed where they are fill the WAL with images of the pages they are on.
    let settings = &run.plan.tuning.settings;
    let compress_wal =
        settings.iter().any(|setting| setting.scope == TuneScope::Session && setting.name == WAL_COMPRESSION);
    let (job_id, chunks) = (&run.plan.job_id, run.tally.chunks());
    Surroundings { ledger, job_id, lock_timeout_ms, chunks, compress_wal }
}

/// The end of a job in the transaction that brings its rows in, with what else is to be done in it.
fn done(rows_stored: u64, sql: &str) -> Ending<'_> {
    Ending { status: Status::Done, rows_stored, proof: Proof::default(), holder_pid: None, error: None, sql }
}

/// One transaction for all tables, which is also the end of the job.
async fn at_once(run: &Run, ledger: &Ledger, tables: &[Into]) -> Result<()> {
    let ways: Vec<Way<'_>> = tables.iter().map(|into| way(run, into)).collect();
    let rows = run.tally.rows_stored();
    let come = plural(rows, "row comes", "rows come");
    run.tell(format!("{rows} {come} into {} in one transaction", names(tables)));
    let sql = ending_sql(ledger, &run.plan);
    let ending = done(rows, &sql);
    let work = async |session: &Session| {
        let end = async |session: &Session| {
            for way in &ways {
                verify::check(session, surroundings(run, ledger), *way, run.plan.job.verify).await?;
            }
            // Once this is done, no run of the job comes to it any more.
            rejected::settle_within(run, ledger, session).await?;
            ledger.end_within(session, &run.plan.job_id, ending).await
        };
        begin::expect_held(run, session).await?;
        part::commit_all(session, surroundings(run, ledger), &ways, end).await
    };
    run.when_open().await?;
    on_session(run, work).await?;
    let steps_each = if run.plan.job.arrival.delete_missing { 2 } else { 1 };
    run.steps.store(steps_each * tables.len() as u64, Relaxed);
    Ok(())
}

/// New tables get their rows, where these have waited elsewhere, and their indexes, and take the places of
/// the old ones, all in one transaction.
async fn take_places(run: &Run, ledger: &Ledger, tables: &Staged<'_>) -> Result<()> {
    let mut named = Vec::new();
    for (table, staging) in tables {
        let (old, new) = (&table.table.relation, staging::new_table(&table.table.relation, staging));
        let prepared = prepare(run, ledger, table, staging, Replacement { old, new: &new }).await;
        let is_there = async |session: &Session| staging::exists(session, &staging.relation).await;
        // If not, another run of the job has brought its rows in meanwhile, as the ledger says.
        if prepared.is_ok() || on_session(run, is_there).await? {
            prepared?;
        }
        named.push((old, new));
    }
    let names: Vec<String> = named.iter().map(|(old, _)| old.to_string()).collect();
    run.tell(format!("a new table takes the place of {}", names.join(", ")));
    let all: Vec<(Replacement<'_>, u64)> =
        named.iter().map(|(old, new)| (Replacement { old, new }, rows_for(run, old))).collect();
    let (job_id, rows) = (&run.plan.job_id, run.tally.rows_stored());
    let sql = ending_sql(ledger, &run.plan);
    let ending = done(rows, &sql);
    let locks = Locks::new(run.plan.job.arrival.lock_timeout_ms);
    let work = async |session: &Session| {
        let end = async |session: &Session| {
            ledger.expect_chunks(session, job_id, run.tally.chunks()).await?;
            ledger.end_within(session, job_id, ending).await
        };
        replace::swap(session, ledger, job_id, &all, &locks, end).await
    };
    on_session(run, work).await?;
    run.steps.store(all.len() as u64, Relaxed);
    Ok(())
}

async fn prepare(
    run: &Run,
    ledger: &Ledger,
    table: &TablePlan,
    staging: &StagingPlan,
    replacement: Replacement<'_>,
) -> Result<()> {
    if !staging::is_new_table(staging) {
        let around = surroundings(run, ledger);
        let fill =
            async |session: &Session| replace::fill(session, around, table, staging, replacement).await;
        run.when_open().await?;
        on_session(run, fill).await?;
    }
    build_what_is_missing(run, replacement).await
}

/// Indexes side by side, then foreign keys one after the other, each of which locks another table as well.
async fn build_what_is_missing(run: &Run, replacement: Replacement<'_>) -> Result<()> {
    on_session(run, async |session| replace::expect_alike(session, replacement).await).await?;
    let lock_timeout_ms = run.plan.job.arrival.lock_timeout_ms;
    let dropping =
        async |session: &Session| replace::drop_surplus(session, replacement, lock_timeout_ms).await;
    on_session(run, dropping).await?;
    let missing = on_session(run, async |session| replace::missing(session, replacement).await).await?;
    let (indexes, foreign_keys): (Vec<Missing>, Vec<Missing>) =
        missing.into_iter().partition(|missing| missing.is_index);
    let crew = Crew::of(run, indexes.len());
    let build = async |missing: &Missing, workers| {
        run.when_open().await?;
        let build = async |session: &Session| {
            replace::build(session, replacement, missing, workers, lock_timeout_ms).await
        };
        on_session(run, build).await
    };
    let building = stream::iter(indexes.iter().enumerate()).map(|(no, index)| build(index, crew.workers(no)));
    let built: Vec<Result<()>> = building.buffer_unordered(crew.builders()).collect().await;
    built.into_iter().collect::<Result<()>>()?;
    for key in &foreign_keys {
        build(key, None).await?;
    }
    Ok(())
}

fn names(tables: &[Into]) -> String {
    tables.iter().map(|into| into.relation.to_string()).collect::<Vec<_>>().join(", ")
}

/// What the table's steps have changed, by whichever run. `waiting` rows were left in the staging table of
/// all that came: the others did not count.
async fn account(run: &Run, ledger: &Ledger, into: &Into, waiting: u64) -> Result<()> {
    let read = async |session: &Session| ledger.steps_done(session, &run.plan.job_id, &into.relation).await;
    let (changes, rows) = on_session(run, read).await?;
    if rows != waiting {
        let message = format!(
            "{} waited for {}, but {rows} were dealt with: the parts that were done at different times do not meet, as after \
             a VACUUM FULL or CLUSTER of the staging table in between",
            counted(waiting, "row"),
            into.relation
        );
        // What comes by its key may come again.
        let restore = restore_command(&run.context, ledger, &run.plan.job_id);
        return Err(Error::new(ErrorKind::Internal, message).with_hint(format!(
            "{restore} drops the rows that wait; then the same command loads them again"
        )));
    }
    let changes = Changes { duplicates: rows_for(run, &into.relation).saturating_sub(waiting), ..changes };
    if changes.held_back > 0 {
        let (rows, were) = if changes.held_back == 1 { ("row", "was") } else { ("rows", "were") };
        let deleted = if run.plan.job.arrival.delete_missing { " or deleted" } else { "" };
        run.warn(format!(
            "{} {rows} of {} that {were} to be changed{deleted} {were} held back by a trigger or a row-level security policy",
            changes.held_back, into.relation
        ));
    }
    run.tally.set_changes(&into.relation, changes);
    Ok(())
}

pub(crate) fn rows_for(run: &Run, relation: &Relation) -> u64 {
    let files = run.plan.files.iter().enumerate();
    let of_table = files.filter(|(_, file)| run.plan.table(file.table_no).table.relation == *relation);
    of_table.map(|(no, _)| run.tally.rows_of(no)).sum()
}

/// Notes for the account how many rows have come into tables of a load that did not end well. Best effort:
/// what cannot be asked counts as waiting.
pub(crate) async fn note_waiting(run: &Run) {
    let Some(ledger) = &run.ledger else { return };
    let tables = staged(&run.plan);
    if tables.is_empty() {
        return;
    }
    let tables: Vec<&Relation> = tables.iter().map(|(table, _)| &table.table.relation).collect();
    let asking = async {
        let session = run.context.connection.open().await?;
        let mut come = Vec::new();
        for table in &tables {
            come.push(ledger.steps_done(&session, &run.plan.job_id, table).await?.1);
        }
        Ok::<_, Error>(come)
    };
    let come = tokio::time::timeout(NOTED_WITHIN, asking).await;
    let come = come.ok().and_then(Result::ok).unwrap_or_else(|| vec![0; tables.len()]);
    for (table, rows) in tables.into_iter().zip(come).filter(|(table, _)| !run.tally.has_changes(table)) {
        run.tally.set_come(table, rows);
    }
}

/// The job cannot be gone on with as it is: what waits in staging tables is forgotten, so that the mended
/// files are a job of their own. Where some of it has come in, the rest waits for the next run.
pub(crate) fn is_for_good(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Record
        | ErrorKind::RecordTooLong
        | ErrorKind::Columns
        | ErrorKind::Table
        | ErrorKind::Decompress
        | ErrorKind::Unsupported
        | ErrorKind::SourceChanged
        | ErrorKind::Differs => true,
        ErrorKind::Server => error.sqlstate().is_some_and(|state| ["22", "23", "P0"].contains(&&state[..2])),
        _ => false,
    }
}

/// Some rows of the job have come into a table.
pub(crate) async fn has_begun(context: &Context, ledger: &Ledger, plan: &Plan) -> Result<bool> {
    let session = context.connection.open().await?;
    for (table, _) in staged(plan) {
        if ledger.steps_done(&session, &plan.job_id, &table.table.relation).await?.1 > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
