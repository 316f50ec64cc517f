//! Whether what is stored can be compared with the sources, asked before anything is stored.

use super::new_table;
use crate::Context;
use howdah_model::{Error, ErrorKind, Plan, Result, TablePlan, Verify};
use howdah_target::session::Session;
use howdah_target::verify;
use std::collections::BTreeSet;

/// The beginning of the note; an earlier run's plan has it already.
const COMPARED: &str = "when all rows are in,";

/// Looks whether the files and the tables allow it, and says in the plan what is compared. Asked anew by
/// every run.
///
/// # Errors
/// Usage, for a pipe that is to be read twice; Table, with what the role lacks; those of the session.
pub(super) async fn choose(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let by = plan.job.verify;
    for table in &mut plan.tables {
        table.notes.retain(|note| !note.starts_with(COMPARED));
    }
    if by == Verify::None {
        return Ok(());
    }
    if let Some(pipe) = plan.files.iter().find(|file| by == Verify::Checksum && !file.rereadable) {
        let message = "--verify checksum reads the files a second time, which a pipe does not allow";
        return Err(Error::new(ErrorKind::Usage, message)
            .in_file(&pipe.location)
            .with_hint("give --verify count, or load from a file"));
    }
    if by == Verify::Checksum && plan.job.arrival.freeze {
        refuse_several_kinds(&plan.tables)?;
    }
    for table in &mut plan.tables {
        // Of a table that the job has made, all rows are its own.
        if table.create.is_none() && table.staging.is_none() && new_table::has_open(&plan.job, table) {
            return Err(rewritten(table));
        }
        let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
        if table.create.is_none() {
            let checking = verify::check(session, &table.table, &columns, by);
            context.connection.attend(session, checking).await?;
        }
        table.notes.push(describe(table, by));
    }
    Ok(())
}

/// Rows that came in one transaction are compared together, and those of files with other columns are summed
/// up otherwise.
fn refuse_several_kinds(tables: &[TablePlan]) -> Result<()> {
    let mut seen = BTreeSet::new();
    match tables.iter().find(|table| !seen.insert(&table.table.relation)) {
        None => Ok(()),
        Some(TablePlan { table, .. }) => {
            let message = format!(
                "files of several kinds come into {} in one transaction: their values cannot be told apart there",
                table.relation
            );
            Err(Error::new(ErrorKind::Usage, message).with_hint("give --verify count, or leave out --freeze"))
        }
    }
}

/// What changes the type of a column writes all rows anew, and takes from them what tells who has stored
/// them.
fn rewritten(table: &TablePlan) -> Error {
    let message = format!(
        "columns of {} may become wider, which leaves no trace of what has stored its rows",
        table.table.relation
    );
    Error::new(ErrorKind::Usage, message)
        .with_hint("leave out --verify or --evolve, or give --atomic, whose rows wait in a staging table")
}

fn describe(table: &TablePlan, by: Verify) -> String {
    if by == Verify::Count {
        return format!("{COMPARED} those that each chunk has left in the table are counted");
    }
    let filled: Vec<&String> = table.fields.iter().flatten().collect();
    let left_out: Vec<&str> = table
        .table
        .columns
        .iter()
        .filter(|column| !filled.contains(&&column.name))
        .map(|column| column.name.as_str())
        .collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!(", but for what no field fills: {}", left_out.join(", ")),
    };
    format!("{COMPARED} the files are read once more and compared with them value by value{left_out}")
}
