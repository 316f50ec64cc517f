//! What `--evolve` does to a table that exists so that the data fits.
//!
//! Columns are added for fields that the table has no column for, and columns get a wider type where the
//! values seen in all files need one. Nothing else is ever changed, and nothing at all unless asked.

use super::columns::{Columns, find_column, told_reading};
use super::head::Head;
use super::new_table::told_column;
use super::tables::Shape;
use crate::Context;
use crate::misfits::Misfits;
use crate::widen::{
    characters, drops_zone_or_day, holds_text, is_fixed, is_inferred, is_number, needed, needed_as_read,
    without_limit,
};
use howdah_model::{Column, Error, ErrorKind, Evolve, Job, NewColumn, Relation, Result, Table, TableChange};
use howdah_target::session::Session;
use howdah_target::sql::{quote_ident, quote_relation};
use howdah_transcode::infer::{self, Among, ColumnState};
use std::collections::BTreeMap;

/// What the files hold of one column.
#[derive(Default)]
struct Seen {
    state: ColumnState,
    among: Among,
    witnesses: Vec<Vec<u8>>,
    /// The longest value has so many characters.
    characters_max: usize,
    /// Some file has more values than were seen.
    incomplete: bool,
}

/// The table as it will be, and what leads there.
pub(super) async fn shape(
    context: &Context,
    session: &Session,
    job: &Job,
    table: Table,
    heads: &[Head],
) -> Result<Shape> {
    let before = table.columns.clone();
    let mut shape = Shape { staging: None, table, create: None, changes: Vec::new() };
    if job.shaping.evolve == Evolve::None {
        return Ok(shape);
    }
    let by_name = job.columns.is_none() && !job.ignore_extra;
    for name in heads.iter().filter(|_| by_name).flat_map(|head| head.names.iter().flatten()) {
        let wanted = job.map.get(name).unwrap_or(name);
        if find_column(&shape.table, wanted).is_none() {
            shape.table.columns.push(new_column(infer::snake(std::slice::from_ref(wanted)).remove(0)));
        }
    }
    let mut seen = seen(job, &shape.table, heads);
    let relation = &shape.table.relation;
    for column in &mut shape.table.columns {
        let seen = seen.remove(&column.name).unwrap_or_default();
        let added = !before.iter().any(|known| known.name == column.name);
        let change = match added {
            true => Some(add(context, session, job, column, &seen).await?),
            false => widen(context, session, job, relation, column, seen).await?,
        };
        shape.changes.extend(change);
    }
    Ok(shape)
}

/// What the files hold, by column.
fn seen(job: &Job, table: &Table, heads: &[Head]) -> BTreeMap<String, Seen> {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for head in heads {
        // What does not match is said when the columns are chosen.
        let Ok(matched) = Columns::matched(job, table, head) else { continue };
        let Some(found) = &head.found else { continue };
        let columns = &found.columns;
        let of_fields = columns.states.iter().zip(&columns.among).zip(&columns.witnesses);
        let of_fields = of_fields.zip(&columns.characters_max);
        for (name, (((state, among), witnesses), characters_max)) in matched.fields.iter().zip(of_fields) {
            let Some(name) = name else { continue };
            let seen = seen.entry(name.clone()).or_default();
            seen.among.join(&mut seen.state, among, state);
            seen.witnesses.extend_from_slice(witnesses);
            seen.characters_max = seen.characters_max.max(*characters_max);
            seen.incomplete |= !columns.complete;
        }
    }
    seen
}

/// The table as it will be when what an earlier run has planned is done, too.
pub(super) fn with_changes(mut table: Table, changes: &[TableChange]) -> Table {
    for change in changes {
        let (TableChange::Add(planned) | TableChange::Widen(planned)) = change;
        let name = &planned.name;
        if !table.columns.iter().any(|column| column.name == *name) {
            table.columns.push(new_column(name.clone()));
        }
        let column = table.columns.iter_mut().find(|column| column.name == *name);
        column.into_iter().for_each(|column| column.type_name.clone_from(&planned.type_name));
    }
    table
}

fn new_column(name: String) -> Column {
    Column {
        name,
        attnum: 0,
        type_name: "text".to_owned(),
        type_oid: 0,
        not_null: false,
        has_default: false,
        generated: false,
        identity: false,
    }
}

async fn add(
    context: &Context,
    session: &Session,
    job: &Job,
    column: &mut Column,
    seen: &Seen,
) -> Result<TableChange> {
    let telling = told_column(session, job, &column.name);
    let added = context.connection.attend(session, telling).await?.unwrap_or_else(|| {
        let infer::Inferred { type_name, evidence, .. } = seen.state.finish(!seen.incomplete);
        let may_widen = seen.incomplete && type_name != "text";
        NewColumn { name: column.name.clone(), type_name, evidence, may_widen, empty_is_null: false }
    });
    column.type_name.clone_from(&added.type_name);
    Ok(TableChange::Add(added))
}

/// Only types that inference gives are touched: of others nobody but their owner knows what they mean. Values
/// that are read in a spelling are looked at when they come, as they are then; here only where columns cannot
/// be altered then. Where nobody knows how they are meant, nothing is done.
async fn widen(
    context: &Context,
    session: &Session,
    job: &Job,
    relation: &Relation,
    column: &mut Column,
    seen: Seen,
) -> Result<Option<TableChange>> {
    let Seen { state, among, witnesses, characters_max, .. } = seen;
    let has = column.type_name.as_str();
    if job.shaping.evolve != Evolve::Widen || !is_inferred(has) {
        return Ok(None);
    }
    let proven = || infer::reading_for(&state, &among.days_alone(), has);
    let is_open =
        infer::is_order_open(&state, &among, has) || is_number(has) && infer::is_number_open(&state);
    let reading = told_reading(job, &column.name).or_else(proven);
    let mut wanted = match (reading, characters(has)) {
        (Some(reading), _) => needed_as_read(has, &state, &reading).filter(|_| is_fixed(&job.arrival)),
        (None, _) if is_open => None,
        (None, Some(limit)) => (characters_max > limit).then(|| without_limit(limit)),
        (None, None) => needed(has, &state),
    };
    let is_doubtful = |wanted: &infer::Inferred| {
        let is_certain = infer::misfit(&state, has).is_some() || drops_zone_or_day(has, &state);
        wanted.type_name == "text" && characters(has).is_none() && !is_certain
    };
    if wanted.as_ref().is_some_and(is_doubtful) {
        let mut misfits = Misfits::new(has);
        witnesses.iter().for_each(|value| misfits.observe(value));
        let asking = misfits.needed(session, relation, &column.name);
        wanted = context.connection.attend(session, asking).await?;
    }
    let Some(infer::Inferred { type_name, evidence, .. }) = wanted else { return Ok(None) };
    if job.arrival.key.contains(&column.name) && type_name == "text" && !holds_text(has) {
        return Err(other_key(relation, column));
    }
    column.type_name.clone_from(&type_name);
    let name = column.name.clone();
    Ok(Some(TableChange::Widen(NewColumn {
        name,
        type_name,
        evidence,
        may_widen: false,
        empty_is_null: false,
    })))
}

/// The record 007 is that of the row 7 while the key is a number, and a new row once it is text.
fn other_key(relation: &Relation, column: &Column) -> Error {
    let Column { name, type_name, .. } = column;
    let message = format!(
        "column {name} of {relation} is part of the key, and some value of it is no {type_name}: as text, one key written in two ways \
         would be two"
    );
    Error::new(ErrorKind::Columns, message).with_hint(format!(
        "mend these values, or leave out --evolve widen: then --on-error skip leaves out their records; if text is meant, ALTER TABLE {} \
         ALTER COLUMN {} TYPE text first",
        quote_relation(relation),
        quote_ident(name)
    ))
}
