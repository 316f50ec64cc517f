//! After the rows: sequences whose columns the files have filled go on behind the largest value.

use crate::pipeline::Run;
use crate::retry::patiently;
use howdah_model::{ErrorKind, Event, Relation, Result};
use howdah_target::sequences::{self, Late, Moved, SCAN_BYTES_MAX, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Moves the sequences of all tables. What cannot be moved is said, with the statement that does it: the rows are in.
///
/// # Errors
/// `Interrupted`, and connections that stay away.
pub(crate) async fn advance(run: &Run) -> Result<()> {
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    for (relation, columns) in filled(run) {
        patiently(&run.context, retry_for, || advance_of(run, &relation, &columns)).await?;
    }
    Ok(())
}

/// The columns of each table that fields of the files go into.
fn filled(run: &Run) -> BTreeMap<Relation, Vec<String>> {
    let mut filled: BTreeMap<Relation, Vec<String>> = BTreeMap::new();
    // A table that this load makes has no sequences.
    for plan in run.plan.tables.iter().filter(|plan| plan.create.is_none()) {
        let names = plan.fields.iter().flatten().cloned();
        filled.entry(plan.table.relation.clone()).or_default().extend(names);
    }
    filled
}

async fn advance_of(run: &Run, table: &Relation, columns: &[String]) -> Result<()> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let reading = sequences::of_columns(&session, table, columns, SCAN_BYTES_MAX);
    let found = connection.attend(&session, reading).await?;
    let late = connection.attend(&session, sequences::late(&session, table, columns, &found)).await?;
    late.iter().for_each(|late| run.warn(stays_late(late, table)));
    for sequence in found {
        if !sequence.is_quick {
            let why = "its table is long and has no index that tells the largest value";
            run.warn(stays(&sequence, table, why));
            continue;
        }
        if sequence.is_hidden {
            let why = "row-level security may hide rows from this role; who sees all of them can move it";
            run.warn(stays(&sequence, table, why));
            continue;
        }
        match connection.attend(&session, sequence.advance(&session, table)).await {
            Ok(None) => {}
            Ok(Some(moved)) => {
                let message = told(&sequence, &moved);
                run.context.listener.on_event(&Event::Notice { message });
            }
            Err(error) if error.kind() == ErrorKind::Server => {
                run.warn(stays(&sequence, table, error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    connection.keep(session);
    Ok(())
}

fn told(sequence: &Sequence, moved: &Moved) -> String {
    let Sequence { relation, column, .. } = sequence;
    format!(
        "sequence {relation} was at {} and goes on behind {}, which column {column} has reached",
        moved.from, moved.to
    )
}

fn stays(sequence: &Sequence, table: &Relation, why: &str) -> String {
    let (Sequence { relation, .. }, by_hand) = (sequence, sequences::by_hand(sequence, table));
    format!("sequence {relation} may stay behind the rows that were loaded ({why}): {by_hand}; moves it")
}

fn stays_late(late: &Late, table: &Relation) -> String {
    let by_hand = match late.by_hand(table) {
        Some(sql) => format!("{sql}; moves it"),
        None => "setval moves it".to_owned(),
    };
    format!(
        "the sequence of column {} of {table} may stay behind the rows that were loaded (the column's default finds it by name, \
         whenever a row comes): {by_hand}",
        late.column
    )
}
