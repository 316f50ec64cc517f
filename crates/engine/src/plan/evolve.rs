//! What `--evolve` does to a table that exists so that the data fits.
//!
//! Columns are added for fields that the table has no column for, and columns get a wider type where the values
//! seen need one. Nothing else is ever changed, and nothing at all unless asked.

use super::columns::find_column;
use super::head::Head;
use super::tables::Shape;
use crate::widen::{holds, is_inferred, wider};
use howdah_model::{Column, Evolve, Job, NewColumn, Table, TableChange};
use howdah_transcode::infer;

/// The table as it will be, and what leads there.
pub(super) fn shape(job: &Job, table: Table, heads: &[Head]) -> Shape {
    let mut shape = Shape { table, create: None, changes: Vec::new() };
    for head in heads {
        let (Some(found), Some(names)) = (&head.found, &head.names) else { continue };
        for (no, name) in names.iter().enumerate() {
            let Some(state) = found.columns.states.get(no) else { continue };
            let wanted = job.map.get(name).unwrap_or(name);
            let inferred = state.finish(found.columns.complete);
            match find_column(&shape.table, wanted).cloned() {
                None if job.shaping.evolve != Evolve::None => {
                    let name = infer::snake(std::slice::from_ref(wanted)).remove(0);
                    add(&mut shape, name, inferred, found.columns.complete);
                }
                Some(column) if job.shaping.evolve == Evolve::Widen && !state.is_empty() => {
                    widen(&mut shape, &column, &inferred);
                }
                None | Some(_) => {}
            }
        }
    }
    shape
}

fn add(shape: &mut Shape, name: String, inferred: infer::Inferred, complete: bool) {
    shape.table.columns.push(Column {
        name: name.clone(),
        type_name: inferred.type_name.clone(),
        type_oid: 0,
        not_null: false,
        has_default: false,
        generated: false,
        identity: false,
    });
    let may_widen = !complete && inferred.type_name != "text";
    let (type_name, evidence) = (inferred.type_name, inferred.evidence);
    shape.changes.push(TableChange::Add(NewColumn { name, type_name, evidence, may_widen }));
}

/// Only types that inference gives are touched: of others nobody but their owner knows what they mean.
fn widen(shape: &mut Shape, column: &Column, inferred: &infer::Inferred) {
    if !is_inferred(&column.type_name) || holds(&column.type_name, &inferred.type_name) {
        return;
    }
    let type_name = wider(&column.type_name, &inferred.type_name);
    for known in shape.table.columns.iter_mut().filter(|known| known.name == column.name) {
        known.type_name.clone_from(&type_name);
    }
    shape.changes.push(TableChange::Widen(NewColumn {
        name: column.name.clone(),
        type_name,
        evidence: inferred.evidence.clone(),
        may_widen: false,
    }));
}
