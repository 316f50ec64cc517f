//! Columns that a sequence fills: whether the client takes its values by the chunk and sends them.
//!
//! What that saves, and how values are taken: `howdah_target::numbers`.

use super::indexes::RowsToCome;
use super::sent_form::chunk_format;
use crate::Context;
use crate::budget::Layout;
use howdah_model::arrival::PlaceColumn;
use howdah_model::plan::{NumberPlan, TablePlan};
use howdah_model::{RelationKind, Result};
use howdah_target::copy::with_column;
use howdah_target::numbers;
use howdah_target::session::Session;
use howdah_transcode::number::Numberer;

/// With fewer rows, asking for their numbers would cost more than it saves: a row saves 0.23 microseconds
/// (measured), and a session and its statements are taken for some 5 ms (not measured).
const ROWS_MIN: u64 = 20_000;

/// The beginning of the note; an earlier run's plan has it already.
const BY_CLIENT: &str = "values of sequence";

/// Settles for each table whether its rows are numbered by the client.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    tables: &mut [TablePlan],
    rows_to_come: &RowsToCome,
) -> Result<()> {
    for table in tables {
        table.number = None;
        table.notes.retain(|note| !note.starts_with(BY_CLIENT));
        let is_large =
            rows_to_come.get(&table.table.relation).is_some_and(|to_come| to_come.rows >= ROWS_MIN);
        let is_plain = table.table.kind == RelationKind::Table && table.create.is_none();
        let place = table.staging.as_ref().and_then(|staging| staging.place.clone());
        if let Some(place) = place {
            table.number = of_places(table, place);
            continue;
        }
        if table.staging.is_some()
            || !is_large
            || !is_plain
            || Numberer::new(&chunk_format(table), None).is_none()
        {
            continue;
        }
        let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
        let reading = numbers::filled(session, table.table.oid, &columns);
        let (Some(filled), Some(last)) = (context.connection.attend(session, reading).await?, columns.last())
        else {
            continue;
        };
        let with = |sql: &String| with_column(sql, last, &filled.column);
        let Some(copy_sql) = with(&table.copy_sql) else { continue };
        let (text_sql, binary_sql) = (
            table.text_sql.as_ref().and_then(with),
            table.binary.as_ref().and_then(|binary| with(&binary.copy_sql)),
        );
        let numbers::Filled { column, sequence, number_bytes } = filled;
        table.number =
            Some(NumberPlan { column, sequence, number_bytes, copy_sql, text_sql, binary_sql, buffers: 0 });
    }
    Ok(())
}

/// Places of records, which the client knows, as the last column of a staging table.
fn of_places(table: &TablePlan, place: PlaceColumn) -> Option<NumberPlan> {
    Numberer::new(&chunk_format(table), None)?;
    let last = table.fields.iter().flatten().last()?;
    let with = |sql: &String| with_column(sql, last, &place.name);
    Some(NumberPlan {
        copy_sql: with(&table.copy_sql)?,
        text_sql: table.text_sql.as_ref().and_then(with),
        binary_sql: table.binary.as_ref().and_then(|binary| with(&binary.copy_sql)),
        column: place.name,
        sequence: place.sequence,
        number_bytes: 8,
        buffers: 0,
    })
}

/// Further buffers that chunks would use so that rows get their numbers, where the rows themselves take
/// `rows`: short rows may become twice as long.
pub(super) fn scratch(table: &TablePlan, rows: u32) -> u32 {
    if table.number.is_some() { rows.max(1) + 1 } else { 0 }
}

/// What there is no memory for is left to the server.
pub(super) fn settle(tables: &mut [TablePlan], layout: &Layout, rewritten: impl Fn(&TablePlan) -> u32) {
    for table in tables {
        let further = layout.chunk_buffers.saturating_sub(1 + rewritten(table));
        let rows = table.binary.as_ref().map_or(u32::from(table.text_sql.is_some()), |binary| binary.buffers);
        let buffers = further.saturating_sub(rows).min(scratch(table, rows));
        table.number.take_if(|_| buffers == 0);
        if let Some(number) = &mut table.number {
            number.buffers = buffers;
            if table.staging.is_some() {
                continue;
            }
            table.notes.push(format!(
                "{BY_CLIENT} {} for {} are taken by the chunk and sent with the rows",
                number.sequence, number.column
            ));
        }
    }
}
