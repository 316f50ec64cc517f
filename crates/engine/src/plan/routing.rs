//! Which rows of a partitioned table the client copies into leaf partitions itself.
//!
//! That gains where the leaves keep their indexes: rows of one leaf behind one another meet the same pages.
//! Without indexes the server's own search costs it less than the check of each leaf's constraint: see
//! docs/decisions/2026-11-22-partitions.md. Each leaf costs two round trips more, so by itself this is done
//! beside a near server only. What the client cannot tell with certainty, the server does: see
//! `howdah_transcode::route`.

use super::sent_form::chunk_format;
use crate::Context;
use crate::budget::Layout;
use howdah_model::plan::{Encode, IndexesPlan, TablePlan};
use howdah_model::route::{Destination, PartitionedTable, RoutePlan, Strategy};
use howdah_model::{ErrorKind, Job, OnError, PartitionsChoice, Plan, RelationKind, Result};
use howdah_target::session::{Session, column_types, foreign, partitions};
use howdah_transcode::route::Router;

/// Settles for each table whether its rows leave the server's own tables, and whether the client routes them,
/// which it says.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    job: &Job,
    indexes: &[IndexesPlan],
    tables: &mut [TablePlan],
) -> Result<()> {
    for table in tables.iter_mut() {
        table.outside = match table.table.kind {
            RelationKind::Foreign | RelationKind::View => true,
            RelationKind::Partitioned if table.staging.is_none() => {
                context.connection.attend(session, partitions::has_foreign(session, &table.table)).await?
            }
            RelationKind::Partitioned | RelationKind::Table => false,
        };
        table.notes.retain(|note| !note.starts_with(GO_ON) && !note.starts_with(foreign::CLOSED));
        if table.outside {
            let asking = foreign::why_slow(session, &table.table);
            table.notes.extend(context.connection.attend(session, asking).await?);
            let asking = foreign::closed(session, &table.table);
            table.notes.extend(context.connection.attend(session, asking).await?);
        }
    }
    let routed =
        |table: &&mut TablePlan| table.table.kind == RelationKind::Partitioned && table.staging.is_none();
    for table in tables.iter_mut().filter(routed) {
        table.route = None;
        table.notes.retain(|note| !note.starts_with(BY_CLIENT) && !note.starts_with(BY_SERVER));
        let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
        // Frozen rows are copied into leaves alone, whatever that costs.
        let auto = job.partitions == PartitionsChoice::Auto && !job.arrival.freeze;
        let route = if job.partitions == PartitionsChoice::Parent {
            Err("--partitions parent".to_owned())
        } else if job.bad_records.on_error == OnError::Skip {
            Err("it also says which rows it does not take, by their order in the file".to_owned())
        } else if auto && context.connection.server_cpus().is_none() {
            Err("each COPY would cost round trips to a distant server".to_owned())
        } else if auto && !keeps_indexes(context, session, indexes, table).await? {
            Err("that costs less where no index is kept meanwhile".to_owned())
        } else {
            read(context, session, table, &columns).await?
        };
        table.notes.push(match &route {
            Ok(route) => describe(route, &columns),
            Err(reason) => format!("{BY_SERVER}: {reason}"),
        });
        table.route = route.ok();
        if let Some(route) = table.route.as_mut().filter(|_| job.arrival.freeze) {
            route.leaf_rows_min = 0;
        }
    }
    Ok(())
}

/// The beginnings of the notes; an earlier run's plan has them already.
const BY_CLIENT: &str = "rows are copied into their leaf partitions";
pub(super) const BY_SERVER: &str = "the server finds the partition of each row";
const GO_ON: &str = "rows go on to the server of";

/// Rows that go on slowly to another server, table by table.
pub(crate) fn slow_ways(plan: &Plan) -> impl Iterator<Item = &str> {
    let notes = plan.tables.iter().flat_map(|table| &table.notes);
    notes.map(String::as_str).filter(|note| note.starts_with(GO_ON))
}

/// Rows meet indexes when they come.
async fn keeps_indexes(
    context: &Context,
    session: &Session,
    indexes: &[IndexesPlan],
    table: &TablePlan,
) -> Result<bool> {
    let plan = indexes.iter().find(|plan| plan.relation == table.table.relation);
    if plan.is_some_and(|plan| !plan.rebuilt.is_empty() && plan.kept.is_empty()) {
        return Ok(false);
    }
    context.connection.attend(session, partitions::has_indexes(session, &table.table)).await
}

async fn read(
    context: &Context,
    session: &Session,
    table: &TablePlan,
    columns: &[String],
) -> Result<std::result::Result<RoutePlan, String>> {
    let reading = column_types::read(session, &table.table, columns);
    let types = match context.connection.attend(session, reading).await {
        Err(error) if error.kind() == ErrorKind::Server => return Ok(Err(error.message().to_owned())),
        read => read?,
    };
    if !types.may_lock {
        return Ok(Err("INSERT on the whole table is needed to keep its partitions as they are".to_owned()));
    }
    if !types.usual_settings {
        return Ok(Err("the session's settings give values another meaning".to_owned()));
    }
    let reading = partitions::read(session, &table.table, columns, &types);
    let route = match context.connection.attend(session, reading).await? {
        Ok(route) => route,
        Err(reason) => return Ok(Err(reason)),
    };
    let can = Router::reader(&chunk_format(table), None, &route.time_zone).is_some();
    Ok(match Router::new(&route) {
        None => Err("the server alone can read the bounds of its partitions".to_owned()),
        Some(_) if !can => Err("the format says what the server alone can carry out".to_owned()),
        Some(_) => Ok(route),
    })
}

/// `rows are copied into their leaf partitions (365 of them, by RANGE (ts)) ...`
fn describe(route: &RoutePlan, columns: &[String]) -> String {
    let name = |no: u32| columns.get(no as usize).map_or("?", String::as_str);
    let PartitionedTable { strategy, keys, .. } = &route.root;
    let keys: Vec<&str> = keys.iter().map(|key| name(key.field_no)).collect();
    let strategy = match strategy {
        Strategy::Hash => "HASH",
        Strategy::List => "LIST",
        Strategy::Range => "RANGE",
    };
    let (leaves, others) = (route.leaves.len(), left_to_server(&route.root));
    let others = match others {
        0 => String::new(),
        _ => format!("; {others} others get theirs through the table"),
    };
    format!("{BY_CLIENT} ({leaves} of them, by {strategy} ({})){others}", keys.join(", "))
}

fn left_to_server(table: &PartitionedTable) -> usize {
    let all = table.partitions.iter().map(|partition| &partition.to).chain(&table.default);
    all.map(|to| match to {
        Destination::Leaf(_) => 0,
        Destination::Server => 1,
        Destination::Partitioned(table) => left_to_server(table),
    })
    .sum()
}

/// Further buffers that chunks would use so that their rows can be laid out by leaf, where the rows
/// themselves take `rows`.
pub(super) fn scratch(table: &TablePlan, rows: u32) -> u32 {
    if table.route.is_some() { rows.max(1) } else { 0 }
}

/// What there is no memory for is not done. Rows that are laid out as text are better than binary rows that
/// are not.
pub(super) fn settle(tables: &mut [TablePlan], layout: &Layout) {
    for table in tables {
        let Some(route) = &mut table.route else { continue };
        let needed = u32::from(table.encode == Encode::CopyText);
        let room = layout.chunk_buffers.saturating_sub(1 + needed);
        if table.binary.as_ref().is_some_and(|binary| 2 * binary.buffers > room) {
            table.binary = None;
        }
        if table.text_sql.is_some() && room < 2 {
            table.text_sql = None;
        }
        route.buffers = table.binary.as_ref().map_or(1, |binary| binary.buffers);
        if room == 0 {
            table.route = None;
            table.notes.retain(|note| !note.starts_with(BY_CLIENT));
            table.notes.push(format!("{BY_SERVER}: there is no memory to lay rows out (--memory)"));
        }
    }
}
