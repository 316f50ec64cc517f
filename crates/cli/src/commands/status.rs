//! `howdah status`: what the ledger of a database remembers.

use super::load::json;
use crate::Exit;
use crate::access::Access;
use crate::options::StatusOptions;
use crate::printer::Printer;
use crate::settings::ledger_schema;
use crate::units::{show_count, show_rows};
use howdah_engine::history::{self, JobRow, JobStatus};
use howdah_engine::model::Result;
use howdah_engine::{Connection, Stop, again, rejected};
use std::path::PathBuf;

/// Lists the jobs, or shows one.
///
/// # Errors
/// Those of the connection and the ledger; `Usage` when there is no such job.
pub async fn status(
    options: &StatusOptions,
    printer: &Printer,
    stop: &Stop,
    site_packages: &[PathBuf],
) -> Result<Exit> {
    let connection =
        stop.guard(super::connect_again(Access::typed(&options.target), printer, site_packages)).await?;
    stop.guard(show(options, &connection, printer)).await
}

async fn show(options: &StatusOptions, connection: &Connection, printer: &Printer) -> Result<Exit> {
    let schema = &ledger_schema(&options.target)?;
    let Some(id) = &options.job else {
        return show_all(connection, schema, printer).await;
    };
    let row = history::job(connection, schema, id).await?;
    if let Some(path) = &options.reject_file {
        let written = rejected::write_files(connection, schema, &row, path).await?;
        if written.is_empty() {
            printer.say("rejected records: none that nobody has loaded since; no file is written");
        }
        for (path, records) in written {
            printer.say(&format!("rejected records: {} in {}", show_count(records), path.display()));
        }
    }
    if printer.json() {
        printer.out(&json(&[row]));
    } else {
        let restore = again::command(connection, "restore", &row.job_id, schema);
        printer.out(&one(&row, &restore, &again::further(connection, &row.plan, schema)));
    }
    Ok(Exit::Success)
}

async fn show_all(connection: &Connection, schema: &str, printer: &Printer) -> Result<Exit> {
    let rows = history::jobs(connection, schema, printer.json()).await?;
    if printer.json() {
        printer.out(&json(&rows));
    } else if rows.is_empty() {
        let what = if history::exists(connection, schema).await? { "has no jobs" } else { "is not there" };
        printer.out(&format!("the ledger {schema} of {} {what}", connection.display()));
    } else {
        printer.out(&list(&rows));
    }
    Ok(Exit::Success)
}

fn list<P>(rows: &[JobRow<P>]) -> String {
    let mut lines =
        vec![format!("{:<20} {:<12} {:>16} {:>8}  {}", "job", "status", "rows", "chunks", "started")];
    lines.extend(rows.iter().map(|row| {
        let restore = if row.to_put_back.is_empty() { "" } else { "  (to restore)" };
        format!(
            "{:<20} {:<12} {:>16} {:>8}  {}{restore}",
            row.job_id,
            row.status.as_str(),
            show_count(row.rows_stored),
            show_count(row.chunks),
            row.started_at
        )
    }));
    lines.join("\n")
}

/// Where the rows are, if not in their tables.
fn waiting(row: &JobRow) -> &'static str {
    let waits = row.plan.job.arrival.is_staged() && row.status != JobStatus::Done && row.chunks > 0;
    if waits { ", read into staging tables" } else { "" }
}

fn one(row: &JobRow, restore: &str, further: &str) -> String {
    let mut lines = vec![
        format!("job {}: {}", row.job_id, row.status.as_str()),
        format!("started {}, finished {}", row.started_at, row.finished_at.as_deref().unwrap_or("-")),
        format!("{} in {} chunks{}", show_rows(row.rows_stored), show_count(row.chunks), waiting(row)),
    ];
    if let Some(by) = &row.verified {
        lines.push(format!("compared with the sources by {by}, and found equal"));
    }
    for file in &row.plan.files {
        let table = &row.plan.tables[file.table_no as usize].table.relation;
        lines.push(format!("file {} -> {table}", file.location));
    }
    if !row.to_put_back.is_empty() {
        lines.push(format!("changed and not put back yet: {}", row.to_put_back.join(", ")));
        lines.push(format!("put it back: {restore}"));
    }
    if row.status != JobStatus::Done {
        lines.push(format!("go on with it: {further}"));
    }
    lines.join("\n")
}
