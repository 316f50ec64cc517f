//! What `--evolve` does to a table that exists so that the data fits.
//!
//! Columns are added for fields that the table has no column for, and columns get a wider type where the values
//! seen in all files need one. Nothing else is ever changed, and nothing at all unless asked.

use super::columns::{Columns, find_column};
use super::head::Head;
use super::tables::Shape;
use crate::widen::{is_inferred, needed};
use howdah_model::{Column, Evolve, Job, NewColumn, Table, TableChange};
use howdah_transcode::infer::{self, ColumnState};
use std::collections::BTreeMap;

/// What the files hold of one column.
#[derive(Default)]
struct Seen {
    state: ColumnState,
    /// Some file has more values than were seen.
    incomplete: bool,
}

/// The table as it will be, and what leads there.
pub(super) fn shape(job: &Job, table: Table, heads: &[Head]) -> Shape {
    let before = table.columns.clone();
    let mut shape = Shape { staging: None, table, create: None, changes: Vec::new() };
    if job.shaping.evolve == Evolve::None {
        return shape;
    }
    let by_name = job.columns.is_none() && !job.ignore_extra;
    for name in heads.iter().filter(|_| by_name).flat_map(|head| head.names.iter().flatten()) {
        let wanted = job.map.get(name).unwrap_or(name);
        if find_column(&shape.table, wanted).is_none() {
            shape.table.columns.push(new_column(infer::snake(std::slice::from_ref(wanted)).remove(0)));
        }
    }
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for head in heads {
        // What does not match is said when the columns are chosen.
        let Ok(matched) = Columns::matched(job, &shape.table, head) else { continue };
        let Some(found) = &head.found else { continue };
        for (name, state) in matched.fields.iter().zip(&found.columns.states) {
            let Some(name) = name else { continue };
            let seen = seen.entry(name.clone()).or_default();
            seen.state.join(state);
            seen.incomplete |= !found.columns.complete;
        }
    }
    for column in &mut shape.table.columns {
        let seen = seen.remove(&column.name).unwrap_or_default();
        let added = !before.iter().any(|known| known.name == column.name);
        let change = if added { add(column, &seen) } else { widen(job, column, &seen) };
        shape.changes.extend(change);
    }
    shape
}

fn new_column(name: String) -> Column {
    Column {
        name,
        type_name: "text".to_owned(),
        type_oid: 0,
        not_null: false,
        has_default: false,
        generated: false,
        identity: false,
    }
}

fn add(column: &mut Column, seen: &Seen) -> Option<TableChange> {
    let infer::Inferred { type_name, evidence, .. } = seen.state.finish(!seen.incomplete);
    column.type_name.clone_from(&type_name);
    let may_widen = seen.incomplete && type_name != "text";
    Some(TableChange::Add(NewColumn { name: column.name.clone(), type_name, evidence, may_widen }))
}

/// Only types that inference gives are touched: of others nobody but their owner knows what they mean.
fn widen(job: &Job, column: &mut Column, seen: &Seen) -> Option<TableChange> {
    if job.shaping.evolve != Evolve::Widen || seen.state.is_empty() || !is_inferred(&column.type_name) {
        return None;
    }
    let infer::Inferred { type_name, evidence, .. } = needed(&column.type_name, &seen.state)?;
    column.type_name.clone_from(&type_name);
    Some(TableChange::Widen(NewColumn { name: column.name.clone(), type_name, evidence, may_widen: false }))
}
