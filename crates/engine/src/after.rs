//! When all rows are in: statistics for the planner, which without them takes a table of millions for an
//! empty one; and on demand VACUUM and CHECKPOINT.
//!
//! The load is done by then. What cannot be done here is told and changes nothing about that; a stop ends it.

use crate::Context;
use crate::pipeline::Run;
use crate::scarce::Scarce;
use crate::tune;
use futures_util::{StreamExt, stream};
use howdah_model::{After, Error, ErrorKind, Relation, RelationKind, Result, Stage, counted, sqlstate};
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
    let vacuumed = vacuum_each(run).await;
    analyze_each(run, &vacuumed).await;
    if asks_for(run, After::Checkpoint) {
        let (connection, start) = (&run.context.connection, Instant::now());
        run.is_at("CHECKPOINT");
        // It makes room, whatever there is.
        let work = async {
            let session = connection.open().await?;
            connection.attend(&session, upkeep::checkpoint(&session)).await
        };
        tell_failure(run, "CHECKPOINT", run.context.stop.guard(work).await);
        run.tally.spend(Stage::Checkpoint, start.elapsed());
    }
}

fn asks_for(run: &Run, step: After) -> bool {
    run.plan.job.after.as_ref().is_some_and(|steps| steps.contains(&step))
}

/// VACUUM without the statistics, which have their own time in the summary: of what was asked for, or, if
/// nothing was, of tables that autovacuum was kept from and for which it is due. Returns the tables of which
/// it was done.
async fn vacuum_each(run: &Run) -> Vec<Relation> {
    let (start, asked) = (Instant::now(), asks_for(run, After::Vacuum));
    let relations: Vec<Relation> = match &run.plan.job.after {
        None => tune::tables(run).into_iter().collect(),
        Some(_) if asked => with_rows(run).map(|table| table.relation.clone()).collect(),
        Some(_) => Vec::new(),
    };
    if relations.is_empty() {
        return relations;
    }
    run.is_at("VACUUM");
    let each = stream::iter(relations).map(|relation| async move {
        let inserted = rows_inserted(run, &relation);
        let work = on_session(&run.context, async |session| match asked {
            true => upkeep::vacuum(session, &relation).await.map(|()| true),
            false => upkeep::vacuum_if_due(session, &relation, inserted).await,
        });
        let done = run.context.stop.guard(work).await;
        let vacuumed = matches!(done, Ok(true));
        tell_failure(run, &format!("VACUUM of {relation}"), done.map(|_| ()));
        vacuumed.then_some(relation)
    });
    let done: Vec<Option<Relation>> = each.buffered(AT_ONCE).collect().await;
    run.tally.spend(Stage::Vacuum, start.elapsed());
    done.into_iter().flatten().collect()
}

/// Statistics of tables that VACUUM was done of, and of those that were asked for or have grown. Not a second
/// time of those whose indexes on expressions have had them made.
async fn analyze_each(run: &Run, vacuumed: &[Relation]) {
    let (start, asked) = (Instant::now(), asks_for(run, After::Analyze));
    let by_itself = run.plan.job.after.is_none();
    let of_vacuumed = if by_itself { Due::IfGrown(u64::MAX) } else { Due::Asked };
    let mut tables: BTreeMap<&Relation, Due> =
        vacuumed.iter().map(|relation| (relation, of_vacuumed)).collect();
    if asked || by_itself {
        for table in with_rows(run) {
            // ANALYZE of a partitioned table reads all its partitions, whichever have grown.
            let due = match table.kind {
                _ if asked => Due::Asked,
                RelationKind::Partitioned => continue,
                _ => Due::IfGrown(rows_changed(run, &table)),
            };
            tables.entry(table.relation).or_insert(due);
        }
    }
    let analyzed = run.analyzed.lock().clone();
    tables.retain(|relation, _| !analyzed.contains(*relation));
    if tables.is_empty() {
        return;
    }
    run.is_at("ANALYZE");
    let each = stream::iter(tables).map(|(relation, due)| async move {
        (relation, run.context.stop.guard(analyze(run, relation, due)).await)
    });
    tell_failures(run, each.buffered(AT_ONCE).collect().await);
    run.tally.spend(Stage::Analyze, start.elapsed());
}

/// Why a table gets new statistics.
#[derive(Clone, Copy)]
enum Due {
    Asked,
    /// So many of its rows are new, changed or gone.
    IfGrown(u64),
}

async fn analyze(run: &Run, relation: &Relation, due: Due) -> Result<()> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let work = async {
        match due {
            Due::Asked => upkeep::analyze(&session, relation).await.map(|()| true),
            Due::IfGrown(rows) => upkeep::analyze_if_grown(&session, relation, rows).await,
        }
    };
    let is_done =
        connection.attend_unless_scarce(&session, work).await?.map_err(|scarce| no_room(&scarce))?;
    if !is_done {
        run.warn(format!(
            "ANALYZE of {relation} was left out, since another session holds the table: unless that is autovacuum, which renews its \
             statistics, run ANALYZE {relation} when it is free; --after analyze waits for the table"
        ));
    }
    // The time-out for locks that was asked for is this session's own.
    if let Due::IfGrown(_) = due {
        connection.keep(session);
    }
    Ok(())
}

/// So many checkpoints that were not due by time are no accident.
const CHECKPOINTS_MIN: u64 = 3;

/// Behind each checkpoint, the first change of a page writes all of it into WAL: with indexes kept and one
/// every 96 MB of WAL, a load wrote 1.8 times as much of it. What cannot be asked is not told.
pub(crate) async fn tell_checkpoints(run: &Run) {
    let (connection, Some(before)) = (&run.context.connection, run.checkpoints.get()) else { return };
    // Who loads little is not kept waiting for a session and an answer.
    if run.tally.chunks() < CHECKPOINTS_MIN {
        return;
    }
    let asking = async {
        let session = connection.open().await?;
        let same_server = !run.is_on_another_server(&session).await;
        let now = connection.attend(&session, upkeep::checkpoints(&session)).await?;
        connection.keep(session);
        Ok::<_, Error>(same_server.then_some(now))
    };
    let Ok(Some(now)) = run.context.stop.guard(asking).await else { return };
    let forced = now.forced_since(before);
    if forced >= CHECKPOINTS_MIN {
        run.warn(format!(
            "{forced} checkpoints came while rows did that were not due by time: max_wal_size is {} MB; with more of it, or --tune server, \
             the server writes less WAL",
            now.max_wal_bytes >> 20
        ));
    }
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

/// Those that have got rows by this run, and that hold them themselves.
fn with_rows(run: &Run) -> impl Iterator<Item = Loaded<'_>> {
    let holds = |table: &Loaded<'_>| matches!(table.kind, RelationKind::Table | RelationKind::Partitioned);
    loaded(run).into_iter().filter(move |table| table.rows > 0 && holds(table))
}

/// Rows that this run has inserted into the table, as far as it knows: those of a partition by the table's
/// name alone it does not.
fn rows_inserted(run: &Run, relation: &Relation) -> u64 {
    let has_key = run.plan.job.arrival.has_key();
    let by_key = has_key.then(|| run.tally.changes_of(relation)).flatten();
    let stored =
        || loaded(run).iter().filter(|table| table.relation == relation).map(|table| table.rows).sum();
    by_key.map_or_else(stored, |changes| changes.inserted)
}

/// Rows of the table that are new, changed or gone: records of a key that say what is there already make no
/// statistics stale.
fn rows_changed(run: &Run, table: &Loaded<'_>) -> u64 {
    let by_key = run.plan.job.arrival.has_key().then(|| run.tally.changes_of(table.relation)).flatten();
    by_key.map_or(table.rows, |changes| changes.inserted + changes.updated + changes.deleted)
}

async fn on_session<T>(context: &Context, work: impl AsyncFnOnce(&Session) -> Result<T>) -> Result<T> {
    let session = context.connection.open().await?;
    let done = context.connection.attend_unless_scarce(&session, work(&session)).await?;
    done.map_err(|scarce| no_room(&scarce))
}

fn no_room(scarce: &Scarce) -> Error {
    Error::new(ErrorKind::Server, scarce.to_string()).with_sqlstate(sqlstate::DISK_FULL)
}

/// Of many tables that are for their owner to analyze one line is enough.
fn tell_failures(run: &Run, done: Vec<(&Relation, Result<()>)>) {
    let lacks_right = |done: &Result<()>| {
        done.as_ref().is_err_and(|error| error.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE))
    };
    let others = done.iter().filter(|(_, done)| lacks_right(done)).count().saturating_sub(1);
    let mut told = false;
    for (relation, done) in done {
        if lacks_right(&done) && std::mem::replace(&mut told, true) {
            continue;
        }
        let and_others = if told && others > 0 {
            format!(" and {}", counted(others, "other table"))
        } else {
            String::new()
        };
        tell_failure(run, &format!("ANALYZE of {relation}{and_others}"), done);
    }
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
