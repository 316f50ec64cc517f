//! After the rows: sequences whose columns the files have filled go on behind the largest value.

use crate::Context;
use crate::retry::patiently;
use howdah_model::{ErrorKind, Plan, Relation, Result, SequencesChoice, sqlstate};
use howdah_target::sequences::{self, Advanced, Late, Moved, SCAN_BYTES_MAX, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a table that is read for its largest value: not even an empty one.
const NOTHING: i64 = -1;

/// Moves the sequences of all tables, unless they are to stay. What cannot be moved is said, with the
/// statement that does it: the rows are in.
///
/// # Errors
/// `Interrupted`, and connections that stay away.
pub(crate) async fn advance(context: &Context, plan: &Plan) -> Result<()> {
    if plan.job.sequences != SequencesChoice::Advance {
        return Ok(());
    }
    let retry_for = Duration::from_millis(plan.job.retry_for_ms);
    let filled = filled(plan);
    if filled.is_empty() {
        return Ok(());
    }
    let found = patiently(context, retry_for, || read_all(context, &filled)).await?;
    for (relation, (found, late)) in filled.keys().zip(found) {
        late.iter().for_each(|late| context.warn(stays_late(late, relation)));
        if !found.is_empty() {
            patiently(context, retry_for, || advance_of(context, relation, &found)).await?;
        }
    }
    Ok(())
}

/// The same for a job that has finished, in case that its run was ended before. Nothing in the ledger tells,
/// and the same command may come each night: only what an index answers is asked, and only what is behind is
/// told.
///
/// # Errors
/// `Interrupted`, and connections that stay away.
pub(crate) async fn advance_left(context: &Context, plan: &Plan) -> Result<()> {
    if plan.job.sequences != SequencesChoice::Advance {
        return Ok(());
    }
    let retry_for = Duration::from_millis(plan.job.retry_for_ms);
    for (relation, columns) in filled(plan) {
        patiently(context, retry_for, || advance_left_of(context, &relation, &columns)).await?;
    }
    Ok(())
}

async fn advance_left_of(context: &Context, table: &Relation, columns: &[String]) -> Result<()> {
    let connection = &context.connection;
    let session = connection.open().await?;
    let reading = sequences::of_columns(&session, table, columns, NOTHING);
    let found = connection.attend(&session, reading).await?;
    for sequence in found.iter().filter(|sequence| sequence.is_quick && !sequence.is_hidden) {
        match connection.attend(&session, sequence.advance(&session, table)).await {
            Ok(Advanced::Moved(moved)) => context.tell(told(sequence, &moved)),
            // The run that has loaded the rows has told what stays at its end.
            Ok(Advanced::Stands | Advanced::AtItsEnd(_) | Advanced::Cycles) => {}
            // The run that has loaded the rows was refused as well, and has said so; or the table has gone
            // meanwhile.
            Err(error) if error.sqlstate().is_some_and(is_gone_or_refused) => {}
            Err(error) if error.kind() == ErrorKind::Server => {
                context.tell(stays(sequence, table, error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    connection.keep(session);
    Ok(())
}

fn is_gone_or_refused(sqlstate: &str) -> bool {
    matches!(
        sqlstate,
        sqlstate::INSUFFICIENT_PRIVILEGE | sqlstate::UNDEFINED_TABLE | sqlstate::UNDEFINED_COLUMN
    )
}

/// The columns of each table that fields of the files go into.
fn filled(plan: &Plan) -> BTreeMap<Relation, Vec<String>> {
    let mut filled: BTreeMap<Relation, Vec<String>> = BTreeMap::new();
    // A table that this load makes has no sequences.
    for table in plan.tables.iter().filter(|table| table.create.is_none()) {
        let names = table.fields.iter().flatten().cloned();
        filled.entry(table.table.relation.clone()).or_default().extend(names);
    }
    filled
}

/// The sequences of these columns of each table, and those that its defaults find late.
async fn read_all(
    context: &Context,
    filled: &BTreeMap<Relation, Vec<String>>,
) -> Result<Vec<(Vec<Sequence>, Vec<Late>)>> {
    let connection = &context.connection;
    let session = connection.open().await?;
    let look = async |(table, columns): (&Relation, &Vec<String>)| {
        sequences::could_fill(&session, table, columns).await
    };
    let looking: Vec<_> = filled.iter().map(look).collect();
    let could_fill = connection.attend_each(&session, looking).await?;
    let read = async |((table, columns), could_fill): ((&Relation, &Vec<String>), bool)| {
        if !could_fill {
            return Ok((Vec::new(), Vec::new()));
        }
        // Sent together: one round trip.
        let (found, mut late) = tokio::try_join!(
            sequences::of_columns(&session, table, columns, SCAN_BYTES_MAX),
            sequences::late(&session, table, columns)
        )?;
        late.retain(|late| found.iter().all(|sequence| sequence.column != late.column));
        Ok((found, late))
    };
    let reading: Vec<_> = filled.iter().zip(could_fill).map(read).collect();
    let all = connection.attend_each(&session, reading).await?;
    connection.keep(session);
    Ok(all)
}

async fn advance_of(context: &Context, table: &Relation, found: &[Sequence]) -> Result<()> {
    let connection = &context.connection;
    let session = connection.open().await?;
    for sequence in found {
        if !sequence.is_quick {
            let why = "its table is long and has no index that tells the largest value";
            context.warn(stays(sequence, table, why));
            continue;
        }
        if sequence.is_hidden {
            let why = "row-level security may hide rows from this role; who sees all of them can move it";
            context.warn(stays(sequence, table, why));
            continue;
        }
        match connection.attend(&session, sequence.advance(&session, table)).await {
            Ok(Advanced::Stands) => {}
            Ok(Advanced::Moved(moved)) => {
                context.tell(told(sequence, &moved));
            }
            Ok(Advanced::AtItsEnd(reached)) => context.warn(at_its_end(sequence, table, reached)),
            Ok(Advanced::Cycles) => {
                let why = "it cycles, and which of its values are free is not known";
                context.warn(stays(sequence, table, why));
            }
            Err(error) if error.kind() == ErrorKind::Server => {
                context.warn(stays(sequence, table, error.message()));
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

fn at_its_end(sequence: &Sequence, table: &Relation, reached: i64) -> String {
    let (Sequence { relation, column, .. }, by_hand) = (sequence, sequences::by_hand(sequence, table));
    format!(
        "sequence {relation} may stay behind the rows that were loaded (column {column} has reached {reached}, behind which the \
         sequence has no value): {by_hand}; moves it behind the others"
    )
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
