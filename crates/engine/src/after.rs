//! When all rows are in: statistics for the planner, which without them takes a table of millions for an empty one; and
//! on demand VACUUM and CHECKPOINT.
//!
//! The load is done by then. What cannot be done here is told and changes nothing about that; a stop ends it.

use crate::Context;
use crate::pipeline::Run;
use crate::tune;
use futures_util::{StreamExt, stream};
use howdah_model::{After, Relation, RelationKind, Result, Stage, sqlstate};
use howdah_target::session::Session;
use howdah_target::upkeep;
use std::collections::BTreeMap;
use std::time::Instant;

/// Tables looked after side by side. Each is the work of one server process.
const AT_ONCE: usize = 2;

/// A table and what came into it.
struct Loaded<'a> {
    relation: &'a Relation,
    kind: RelationKind,
    rows: u64,
}

/// Does what was asked for, or what is useful.
pub(crate) async fn run(run: &Run) {
    let start = Instant::now();
    let (context, asked) = (&run.context, run.plan.job.after.as_deref());
    let kept_from = tune::tables(run);
    if asked.is_none() && !kept_from.is_empty() {
        run.is_at("VACUUM");
    }
    let due = stream::iter(&kept_from).filter_map(|relation| async move {
        let inserted = rows_inserted(run, relation);
        let vacuuming = async |session: &Session| upkeep::vacuum_if_due(session, relation, inserted).await;
        let work = on_session(context, vacuuming);
        let done = if asked.is_none() { context.stop.guard(work).await } else { Ok(false) };
        let vacuumed = matches!(done, Ok(true));
        tell_failure(run, &format!("VACUUM of {relation}"), done.map(|_| ()));
        vacuumed.then_some(relation)
    });
    let vacuumed: Vec<&Relation> = due.collect().await;
    let analyzed = run.analyzed.lock().clone();
    let is_done = |relation: &Relation| vacuumed.contains(&relation) || analyzed.contains(relation);
    let is_left = |table: &Loaded<'_>| table.rows > 0 && !is_done(table.relation);
    let tables: Vec<Loaded<'_>> = loaded(run).into_iter().filter(is_left).collect();
    let is_asked = asked.is_none_or(|steps| steps.iter().any(|step| *step != After::Checkpoint));
    if is_asked && !tables.is_empty() {
        run.is_at(verb(asked));
    }
    let each = stream::iter(tables).for_each_concurrent(AT_ONCE, |table| async move {
        let done = context.stop.guard(upkeep_of(run, asked, &table)).await;
        tell_failure(run, &format!("{} of {}", verb(asked), table.relation), done);
    });
    each.await;
    if asked.is_some_and(|steps| steps.contains(&After::Checkpoint)) {
        run.is_at("CHECKPOINT");
        let done =
            context.stop.guard(on_session(context, async |session| upkeep::checkpoint(session).await)).await;
        tell_failure(run, "CHECKPOINT", done);
    }
    run.tally.spend(Stage::Finish, start.elapsed());
}

/// Tables with the rows that this run has stored in each.
fn loaded(run: &Run) -> Vec<Loaded<'_>> {
    let mut tables: BTreeMap<&Relation, Loaded<'_>> = BTreeMap::new();
    for (no, file) in run.plan.files.iter().enumerate() {
        let table = &run.plan.table(file.table_no).table;
        let entry = tables.entry(&table.relation);
        let loaded = entry.or_insert(Loaded { relation: &table.relation, kind: table.kind, rows: 0 });
        loaded.rows += run.tally.rows_of(no);
    }
    tables.into_values().collect()
}

/// Rows that this run has inserted into the table, as far as it knows: those of a partition by the table's name alone it does not.
fn rows_inserted(run: &Run, relation: &Relation) -> u64 {
    let has_key = run.plan.job.arrival.has_key();
    let by_key = has_key.then(|| run.tally.changes_of(relation)).flatten();
    let stored =
        || loaded(run).iter().filter(|table| table.relation == relation).map(|table| table.rows).sum();
    by_key.map_or_else(stored, |changes| changes.inserted)
}

/// Rows of the table that are new, changed or gone: records of a key that say what is there already make no statistics stale.
fn rows_changed(run: &Run, table: &Loaded<'_>) -> u64 {
    let by_key = run.plan.job.arrival.has_key().then(|| run.tally.changes_of(table.relation)).flatten();
    by_key.map_or(table.rows, |changes| changes.inserted + changes.updated + changes.deleted)
}

fn verb(asked: Option<&[After]>) -> &'static str {
    match asked {
        Some(steps) if steps.contains(&After::Vacuum) => "VACUUM",
        _ => "ANALYZE",
    }
}

async fn upkeep_of(run: &Run, asked: Option<&[After]>, table: &Loaded<'_>) -> Result<()> {
    let context = &run.context;
    if !matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
        return Ok(());
    }
    let Some(steps) = asked else {
        // ANALYZE of a partitioned table reads all its partitions, whichever have grown.
        if table.kind == RelationKind::Partitioned {
            return Ok(());
        }
        let connection = &context.connection;
        let session = connection.open().await?;
        let if_grown = upkeep::analyze_if_grown(&session, table.relation, rows_changed(run, table));
        connection.attend(&session, if_grown).await?;
        connection.keep(session);
        return Ok(());
    };
    if steps.contains(&After::Vacuum) {
        on_session(context, async |session| upkeep::vacuum(session, table.relation).await).await
    } else if steps.contains(&After::Analyze) {
        on_session(context, async |session| upkeep::analyze(session, table.relation).await).await
    } else {
        Ok(())
    }
}

async fn on_session<T>(context: &Context, work: impl AsyncFnOnce(&Session) -> Result<T>) -> Result<T> {
    let session = context.connection.open().await?;
    context.connection.attend(&session, work(&session)).await
}

fn tell_failure(run: &Run, what: &str, done: Result<()>) {
    let Err(error) = done else { return };
    let message = format!("{what} was not done: {}; all rows are in", error.message());
    match error.sqlstate() {
        // Nobody has asked for it, and autovacuum does it later.
        Some(sqlstate::INSUFFICIENT_PRIVILEGE) if run.plan.job.after.is_none() => {
            run.tell(message);
        }
        _ => run.warn(message),
    }
}
