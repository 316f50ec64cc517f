//! What the client knows of the columns' types, for loads that go on without bad records: by it, values are
//! told apart that the server is certain to take.

use super::new_table::may_widen;
use crate::Context;
use crate::widen::is_fixed;
use howdah_model::{
    BinaryType, Bounds, Column, ErrorKind, Job, KnownTypes, OnError, RelationKind, Result, Table, TablePlan,
};
use howdah_target::session::Session;
use howdah_target::session::column_types::{self, ColumnTypes};
use std::collections::BTreeMap;

/// The beginning of the note; an earlier run's plan has it already.
const SKIPS: &str = "records that the table does not take";

/// Settles it for each table.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &mut [TablePlan],
) -> Result<()> {
    let skips = job.bad_records.on_error != OnError::Stop;
    let found = if skips { read_types(context, session, tables).await? } else { Vec::new() };
    let found = found.into_iter().chain(std::iter::repeat_with(|| None));
    for (table, found) in tables.iter_mut().zip(found) {
        table.known = None;
        table.notes.retain(|note| !note.starts_with(SKIPS));
        if !skips {
            continue;
        }
        table.notes.push(format!("{SKIPS} are kept in the ledger, and the load goes on"));
        // What waits has numbers of its own, the records' places; those of a sequence would have gaps.
        let has_places = table.staging.as_ref().is_some_and(|staging| staging.place.is_some());
        table.number.take_if(|_| !has_places);
        let Some((columns, read)) = found else { continue };
        let types: Option<Vec<BinaryType>> =
            read.columns.into_iter().map(|column| column.map(|(_, of)| of)).collect();
        let bounds = columns.iter().map(|name| bounds(job, table, name)).collect();
        let known = |types| KnownTypes { types, bounds, time_zone: read.time_zone };
        table.known = types.filter(|_| read.usual_settings).map(known);
    }
    Ok(())
}

/// The columns that the file fills, and their types.
pub(super) type Types = (Vec<String>, ColumnTypes);

/// Those of each table; `None` where rows are not copied into the table itself.
pub(super) async fn read_types(
    context: &Context,
    session: &Session,
    tables: &[TablePlan],
) -> Result<Vec<Option<Types>>> {
    let new = context.connection.attend(session, new_types(session, tables)).await?;
    let reading = |table| {
        let known = of_new(table, &new);
        async move {
            match known {
                Some(known) => Ok(Some(known)),
                None => types_of(session, table).await,
            }
        }
    };
    let reading: Vec<_> = tables.iter().map(reading).collect();
    context.connection.attend_each(session, reading).await
}

/// The types of tables that are going to be made, by their names: a thousand of these have a dozen types.
async fn new_types(session: &Session, tables: &[TablePlan]) -> Result<Option<NewTypes>> {
    let mut new = tables.iter().filter(|table| is_new(table));
    let Some(first) = new.next() else { return Ok(None) };
    let columns = new.chain([first]).flat_map(|table| &table.table.columns);
    let by_type: BTreeMap<&String, &Column> = columns.map(|column| (&column.type_name, column)).collect();
    let of_type =
        |(name, column): (&&String, &&Column)| Column { name: (*name).clone(), ..(*column).clone() };
    let table = Table { columns: by_type.iter().map(of_type).collect(), ..first.table.clone() };
    let names: Vec<String> = by_type.into_keys().cloned().collect();
    match column_types::read(session, &table, &names).await {
        // Each table is asked for alone then.
        Err(error) if error.kind() == ErrorKind::Server => Ok(None),
        read => {
            let read = read?;
            let by_name = names.into_iter().zip(read.columns.iter().cloned()).collect();
            Ok(Some(NewTypes { by_name, read }))
        }
    }
}

/// What [`new_types`] says of a table that is going to be made.
fn of_new(table: &TablePlan, new: &Option<NewTypes>) -> Option<Types> {
    let NewTypes { by_name, read } = new.as_ref().filter(|_| is_new(table))?;
    let fields: Vec<String> = table.fields.iter().flatten().cloned().collect();
    if fields.is_empty() {
        return None;
    }
    let of = |name: &String| {
        let column = table.table.columns.iter().find(|column| column.name == *name)?;
        by_name.get(&column.type_name).cloned()
    };
    let columns = fields.iter().map(of).collect::<Option<Vec<_>>>()?;
    Some((fields, ColumnTypes { columns, ..read.clone() }))
}

/// Types of columns that are going to be made, by their names, and what is the same for all.
struct NewTypes {
    by_name: BTreeMap<String, Option<(u32, BinaryType)>>,
    read: ColumnTypes,
}

fn is_new(table: &TablePlan) -> bool {
    !table.is_there() && table.table.kind == RelationKind::Table
}

async fn types_of(session: &Session, table: &TablePlan) -> Result<Option<Types>> {
    if !matches!(table.table.kind, RelationKind::Table | RelationKind::Partitioned) {
        return Ok(None);
    }
    let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
    match column_types::read(session, &table.table, &columns).await {
        // A type of a new table that the server does not understand is told when the table is made.
        Err(error) if error.kind() == ErrorKind::Server => Ok(None),
        read => Ok(Some((columns, read?))),
    }
}

fn bounds(job: &Job, table: &TablePlan, name: &str) -> Bounds {
    let column = table.table.columns.iter().find(|column| column.name == name);
    let Some(column) = column else { return Bounds::default() };
    // A column that becomes wider while rows come takes more than it does now.
    let keeps_type = is_fixed(&job.arrival) || !may_widen(job, table, column);
    Bounds {
        chars_max: chars_max(&column.type_name).filter(|_| keeps_type),
        type_name: column.type_name.clone(),
        // A partition may have a trigger of its own that fills it.
        not_null: column.not_null && !column.has_default && table.table.kind == RelationKind::Table,
    }
}

/// `character varying(20)` or `character(5)`, as `format_type` writes these.
fn chars_max(type_name: &str) -> Option<u32> {
    let number = ["character varying(", "character("].iter().find_map(|of| type_name.strip_prefix(of));
    number?.strip_suffix(')')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_of_limited_length_have_a_limit() {
        assert_eq!(chars_max("character varying(20)"), Some(20));
        assert_eq!(chars_max("character(5)"), Some(5));
        for other in ["character varying", "character varying(20)[]", "text", "numeric(10,2)", "bit(3)"] {
            assert_eq!(chars_max(other), None, "{other}");
        }
    }
}
