//! `howdah status`: what the ledger of a database remembers.

use super::Process;
use super::load::json;
use crate::Exit;
use crate::access::Access;
use crate::options::StatusOptions;
use crate::printer::{Printer, line};
use crate::rejected::kept_line;
use crate::settings::ledger_schema;
use crate::units::{show_count, show_rows};
use howdah_engine::history::{self, FileRow, JobRow, JobStatus};
use howdah_engine::model::{ErrorKind, Result, counted, plural};
use howdah_engine::{Connection, again, rejected};

/// Lists the jobs, or shows one.
///
/// # Errors
/// Those of the connection and the ledger; `Usage` when there is no such job.
pub async fn status(options: &StatusOptions, process: &Process<'_>) -> Result<Exit> {
    let connection = process.connect_again(Access::typed(&options.target)).await?;
    process.stop.guard(show(options, &connection, process.printer)).await
}

async fn show(options: &StatusOptions, connection: &Connection, printer: &Printer) -> Result<Exit> {
    let schema = &ledger_schema(&options.target)?;
    let Some(id) = &options.job else {
        return show_all(connection, schema, printer).await;
    };
    let row = history::job(connection, schema, id).await?;
    tell_unread(connection, schema, printer).await?;
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
        if !row.to_put_back.is_empty() || row.status != JobStatus::Done {
            tell_strange(connection, schema, printer).await?;
        }
        let told = Told {
            restore: again::command(connection, "restore", &row.job_id, schema),
            further: again::further(connection, &row.plan, schema),
            rejected: rejected_line(connection, schema, &row).await?,
        };
        printer.out(&one(&row, &told));
    }
    Ok(Exit::Success)
}

/// Rejected records that nobody has loaded since.
async fn rejected_line(connection: &Connection, schema: &str, row: &JobRow) -> Result<Option<String>> {
    // Without a record that was left out nothing is looked for.
    let kept = match row.rows_rejected {
        0 => None,
        _ => rejected::kept(connection, schema, row).await?,
    };
    let kept = kept.filter(|kept| *kept > 0);
    Ok(kept.map(|kept| kept_line(connection, &row.job_id, schema, kept)))
}

async fn show_all(connection: &Connection, schema: &str, printer: &Printer) -> Result<Exit> {
    let rows = history::jobs(connection, schema, printer.json()).await?;
    tell_unread(connection, schema, printer).await?;
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

/// What this role may not read must not look like nothing.
async fn tell_unread(connection: &Connection, schema: &str, printer: &Printer) -> Result<()> {
    match history::expect_journal(connection, schema).await {
        Err(error) if error.sqlstate() == Some("42501") => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            printer.warn(&format!("what jobs have changed and not put back yet is not shown: {error}{hint}"));
            Ok(())
        }
        done => done,
    }
}

/// The commands that are told name the ledger, which says that it is trusted.
async fn tell_strange(connection: &Connection, schema: &str, printer: &Printer) -> Result<()> {
    match history::expect_own(connection, schema, false).await {
        Err(error) if error.kind() == ErrorKind::Ledger => {
            printer.warn(error.message());
            Ok(())
        }
        done => done.map(drop),
    }
}

fn list<P>(rows: &[JobRow<P>]) -> String {
    let head = ["job", "status", "rows", "rejected", "chunks", "started", "finished", "table"];
    let row = |[job, status, stored, rejected, chunks, started, finished, table]: [&str; 8]| {
        format!(
            "{job:<20} {status:<12} {stored:>16} {rejected:>10} {chunks:>8}  {started:<20}  {finished:<20}  {table}"
        )
    };
    let mut lines = vec![row(head)];
    lines.extend(rows.iter().map(|job| {
        let table = match &job.tables[..] {
            [] => String::new(),
            [table] => table.clone(),
            [table, others @ ..] => format!("{table} and {} more", show_count(others.len() as u64)),
        };
        let restore = if job.to_put_back.is_empty() { "" } else { "  (to restore)" };
        row([
            &job.job_id,
            job.status.as_str(),
            &show_count(job.rows_stored),
            &show_count(job.rows_rejected),
            &show_count(job.chunks),
            &job.started_at,
            job.finished_at.as_deref().unwrap_or("-"),
            &format!("{table}{}{restore}", waiting(job)),
        ])
    }));
    one_each(&lines)
}

/// A line each: names of jobs, tables and files may hold line endings.
fn one_each(lines: &[String]) -> String {
    lines.iter().map(|text| line(text)).collect::<Vec<_>>().join("\n")
}

/// Why the last run did not end well, with its place; the hint on a line of its own.
fn why(row: &JobRow) -> Vec<String> {
    let Some(error) = &row.error else { return Vec::new() };
    let of = |key: &str| match &error[key] {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let place = ["file", "line", "record", "byte", "column"].into_iter();
    let place: Vec<String> = place.filter_map(|key| Some(format!("{key} {}", of(key)?))).collect();
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    let sqlstate = of("sqlstate").map(|code| format!(" (SQLSTATE {code})")).unwrap_or_default();
    let message = of("message").unwrap_or_default();
    let hint = of("hint").map(|hint| format!("hint: {hint}"));
    std::iter::once(format!("error: {place}{message}{sqlstate}")).chain(hint).collect()
}

fn file_line(file: &FileRow) -> String {
    let rejected = match file.rows_rejected {
        0 => String::new(),
        rejected => format!(", {} rejected", show_count(rejected)),
    };
    format!("file {} -> {}: {}{rejected}", file.location, file.table, show_rows(file.rows_stored))
}

/// Where the other rows are, if not in their tables.
fn waiting<P>(row: &JobRow<P>) -> String {
    match row.rows_waiting {
        Some(0) => String::new(),
        None => ", how many of them wait in staging tables is unknown".to_owned(),
        Some(waiting) => {
            let wait = plural(waiting, "waits in a staging table", "wait in staging tables");
            format!(", {} more {wait}", show_count(waiting))
        }
    }
}

/// What stands beside the ledger's words on one job.
struct Told {
    restore: String,
    further: String,
    rejected: Option<String>,
}

fn one(row: &JobRow, Told { restore, further, rejected }: &Told) -> String {
    let mut lines = vec![
        format!("job {}: {}", row.job_id, row.status.as_str()),
        format!("started {}, finished {}", row.started_at, row.finished_at.as_deref().unwrap_or("-")),
        format!(
            "{} stored{}, in {}",
            show_rows(row.rows_stored),
            waiting(row),
            counted(&show_count(row.chunks), "chunk")
        ),
    ];
    if let Some(by) = &row.verified {
        lines.push(format!("compared with the sources by {by}, and found equal"));
    }
    lines.extend(row.files.iter().map(file_line));
    lines.extend(rejected.clone());
    lines.extend(why(row));
    if !row.to_put_back.is_empty() {
        lines.push(format!("changed and not put back yet: {}", row.to_put_back.join(", ")));
        lines.push(format!("put it back: {restore}"));
    }
    if row.status != JobStatus::Done {
        lines.push(format!("go on with it: {further}"));
    }
    one_each(&lines)
}
