//! `howdah plan`: everything load would do, and why; touches nothing.

use super::Process;
use super::load::json;
use crate::Exit;
use crate::options::LoadOptions;
use crate::printer::line;
use crate::rejected::{Rejected, kept_line};
use crate::shaping::change_line;
use crate::units::{show_bytes, show_count, show_rows};
use howdah_engine::model::plan::Codec;
use howdah_engine::model::{
    Eol, FilePlan, IfDone, IndexesPlan, Jobs, KnownFiles, LedgerChoice, NewTable, Plan, Result, Silent,
    TablePlan, counted,
};
use howdah_engine::plan::History;
use howdah_engine::{Connection, Planned, spelling};
use std::fmt::Write;
use std::sync::Arc;

/// Files listed; of more, their number.
const FILES_LISTED: usize = 50;

/// Characters shown of a value.
const CELL_CHARACTERS: usize = 40;

/// Plans and prints the plan.
///
/// # Errors
/// Those of planning.
pub async fn plan(options: LoadOptions, process: &Process<'_>) -> Result<Exit> {
    let settings = process.resolve(options)?;
    let connection = process.connect_again(settings.access.clone()).await?;
    let (job, _) = process.stop.guard(Rejected::prepare(settings, &connection)).await?;
    let server = connection.display();
    let context = process.context(connection, Arc::new(Silent));
    let planned = howdah_engine::plan(&context, job).await?;
    if process.printer.json() {
        process.printer.out(&json(&planned.plan));
    } else {
        process.printer.out(&text(&planned, &server, rejected_line(&context.connection, &planned)));
    }
    Ok(Exit::Success)
}

/// What an earlier run of the job has rejected, if it has.
fn rejected_line(connection: &Connection, planned: &Planned) -> Option<String> {
    let (History::Begun(receipts), LedgerChoice::Schema(schema)) =
        (&planned.history, &planned.plan.job.ledger)
    else {
        return None;
    };
    let rejected = receipts.iter().map(|receipt| receipt.omitted.rejected).sum();
    (rejected > 0).then(|| kept_line(connection, &planned.plan.job_id, schema, rejected))
}

fn text(planned: &Planned, server: &str, rejected: Option<String>) -> String {
    let plan = &planned.plan;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "job {} on {server} (PostgreSQL {})",
        line(&plan.job_id),
        show_version(plan.server_version)
    );
    let _ = writeln!(text, "  {}", history(planned));
    if let Some(rejected) = rejected {
        let _ = writeln!(text, "  {}", line(&rejected));
    }
    show_known(&mut text, planned);
    let _ = writeln!(text, "  {}", ledger(plan));
    let _ = writeln!(text, "  {}", memory(planned));
    for warning in &plan.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    for (no, table) in plan.tables.iter().enumerate() {
        show_table(&mut text, planned, no, table);
    }
    super::tuning::show(&mut text, &plan.tuning);
    text.trim_end().to_owned()
}

/// Files that are in their tables already, and what becomes of them.
fn show_known(text: &mut String, planned: &Planned) {
    let plan = &planned.plan;
    let is_done = matches!(planned.history, History::Done { .. });
    let Some(known) = howdah_engine::in_tables(plan).filter(|_| !is_done) else { return };
    let fate = match plan.job.known {
        _ if plan.job.force => "loaded once more, by --force",
        KnownFiles::Refuse => "load would refuse them without --known skip or --known load",
        KnownFiles::Skip => "left out, by --known skip",
        KnownFiles::Load => "loaded once more, by --known load",
    };
    let _ = writeln!(text, "  {known}: {fate}");
    for file in plan.known.iter().take(FILES_LISTED) {
        let _ = writeln!(
            text,
            "    {} is in {}, by job {} of {}",
            file.location,
            file.table,
            line(&file.job_id),
            file.at
        );
    }
}

fn show_table(text: &mut String, planned: &Planned, no: usize, table: &TablePlan) {
    let plan = &planned.plan;
    let _ = writeln!(text, "table {}", table.table.relation);
    if let Some(create) = &table.create {
        show_new_table(text, create);
    }
    for change in &table.changes {
        let _ = writeln!(text, "  {}", change_line(&table.table.relation, change));
    }
    let _ = writeln!(text, "  {}", table.copy_sql);
    for note in table.notes.iter().chain(&table.unsure) {
        let _ = writeln!(text, "  {note}");
    }
    let first = |other: &TablePlan| other.table.relation == table.table.relation;
    if plan.tables.iter().position(first) == Some(no) {
        let of_table = plan.indexes.iter().filter(|indexes| indexes.relation == table.table.relation);
        of_table.for_each(|indexes| show_indexes(text, indexes));
        let of_table = plan.triggers.iter().filter(|triggers| triggers.relation == table.table.relation);
        for note in of_table.flat_map(|triggers| &triggers.notes) {
            let _ = writeln!(text, "  {note}");
        }
    }
    for (column, reading) in table.fields.iter().zip(&table.readings) {
        if let (Some(column), Some(reading)) = (column, reading) {
            let _ = writeln!(text, "  {column} is read as {}", spelling(reading));
        }
    }
    let files: Vec<(u32, &FilePlan)> =
        (0..).zip(&plan.files).filter(|(_, file)| file.table_no as usize == no).collect();
    for (file_no, file) in files.iter().take(FILES_LISTED) {
        show_file(text, plan, *file_no, file);
        show_first(text, planned.previews.get(*file_no as usize).map_or(&[], Vec::as_slice));
    }
    if files.len() > FILES_LISTED {
        let _ = writeln!(
            text,
            "  and {} more",
            counted(&show_count((files.len() - FILES_LISTED) as u64), "file")
        );
    }
}

/// What becomes of the table's indexes, once for each table.
fn show_indexes(text: &mut String, indexes: &IndexesPlan) {
    for note in &indexes.notes {
        let _ = writeln!(text, "  {note}");
    }
    if indexes.new {
        let _ = writeln!(text, "  its key is built behind the last row where that takes less time");
    }
    for fate in &indexes.rebuilt {
        let _ = writeln!(
            text,
            "  {} {} is dropped, and built behind the last row: {}",
            fate.what, fate.name, fate.reason
        );
    }
    if let Some(workers) = indexes.workers {
        let _ = writeln!(
            text,
            "  its parallel_workers are {workers} until then, so that strings are sorted in little memory by several processes"
        );
    }
    for fate in &indexes.kept {
        let _ = writeln!(text, "  {} {} is kept: {}", fate.what, fate.name, fate.reason);
    }
}

fn show_file(text: &mut String, plan: &Plan, file_no: u32, file: &FilePlan) {
    let size = file.stored_bytes.map_or("size unknown".to_owned(), show_bytes);
    let codec = match file.codec {
        Codec::None => "not compressed",
        Codec::Gzip => "gzip",
        Codec::Zstd => "zstd",
        Codec::Bzip2 => "bzip2",
        Codec::Xz => "xz",
        Codec::Lz4 => "lz4",
    };
    let eol = match file.eol {
        Some(Eol::Lf) => "lines end with LF",
        Some(Eol::Cr) => "lines end with CR",
        Some(Eol::CrLf) => "lines end with CR LF",
        None => "no complete line",
    };
    let how = match (file.ranged, file.stored_bytes) {
        (true, Some(bytes)) => {
            format!("{} ranges read side by side", show_count(plan.borders(file_no).chunks(bytes)))
        }
        _ => "read in order, in one thread".to_owned(),
    };
    let _ = writeln!(
        text,
        "  file {}: {size}, {codec}, {eol}, data from byte {}; {how}",
        file.location, file.data_start_byte
    );
    if let Some(found) = &file.found {
        let _ = writeln!(text, "    found: {found}");
    }
    for evidence in file.evidence.iter().chain(&file.unsure) {
        let _ = writeln!(text, "      {evidence}");
    }
    if let Some(end) = file.data_end_byte {
        let _ = writeln!(text, "    the data ends at byte {end}; what follows is not loaded");
    }
    if !file.rereadable {
        let _ = writeln!(
            text,
            "    it cannot be read twice: chunks are committed synchronously, and a rerun needs the same bytes under the same --job-id"
        );
    }
}

fn show_new_table(text: &mut String, create: &NewTable) {
    let _ = writeln!(text, "  it is made when the load begins:");
    for column in &create.columns {
        let widens = if column.may_widen { "; may become wider" } else { "" };
        let _ = writeln!(text, "    {} {}  ({}{widens})", column.name, column.type_name, column.evidence);
    }
    if !create.primary_key.is_empty() {
        let _ = writeln!(text, "    primary key: {}", create.primary_key.join(", "));
    }
}

/// The first rows as they would be stored.
fn show_first(text: &mut String, rows: &[Vec<Option<String>>]) {
    let cell = |value: &Option<String>| match value {
        None => "NULL".to_owned(),
        Some(value) => {
            let mut shown: String = value.chars().take(CELL_CHARACTERS).map(visible).collect();
            if value.chars().nth(CELL_CHARACTERS).is_some() {
                shown.push('…');
            }
            shown
        }
    };
    for row in rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(text, "    | {}", cells.join(" | "));
    }
}

/// A terminal must not take what stands in a file for an order.
fn visible(letter: char) -> char {
    if letter.is_control() { '·' } else { letter }
}

fn history(planned: &Planned) -> String {
    match &planned.history {
        History::Fresh => "no earlier run: everything is loaded".to_owned(),
        History::Begun(receipts) => {
            let rows: u64 = receipts.iter().map(|receipt| receipt.rows).sum();
            format!(
                "an earlier run has stored {} in {}: these are skipped",
                show_rows(rows),
                counted(&show_count(receipts.len() as u64), "chunk")
            )
        }
        History::NothingNew => "nothing new: load would end at once".to_owned(),
        History::Done { at } if planned.plan.job.if_done == IfDone::Ok => {
            format!("this job finished at {at}: load would store nothing and end well, by --if-done ok")
        }
        History::Done { at } => format!("this job finished at {at}: load would refuse it without --force"),
    }
}

fn ledger(plan: &Plan) -> String {
    match &plan.job.ledger {
        LedgerChoice::Schema(schema) => {
            format!("ledger in schema {schema}: each chunk commits with its receipt, a rerun skips what is in")
        }
        LedgerChoice::None => {
            "no ledger: the load cannot be resumed, an answer lost at COMMIT stops it, and chunks commit synchronously".to_owned()
        }
    }
}

fn memory(planned: &Planned) -> String {
    let layout = &planned.layout;
    let sessions = match planned.plan.job.jobs {
        Jobs::Auto => format!("as many sessions as help, at most {}", layout.sessions_max),
        Jobs::Fixed(sessions) => counted(sessions, "session"),
    };
    let ahead = match layout.ahead_bytes {
        0 => String::new(),
        bytes => format!(", {} for parts of compressed files", show_bytes(bytes)),
    };
    let taper = planned.plan.taper.map_or(String::new(), |taper| {
        let least = show_bytes(taper.least_bytes);
        let place = match (taper.rises, planned.plan.files.iter().any(|file| file.ranged)) {
            (true, true) => "at the beginning and towards the end",
            (true, false) => "at the beginning",
            (false, _) => "towards the end",
        };
        format!(" (down to {least} {place})")
    });
    format!(
        "{sessions}; memory {}: {} chunk buffers for chunks of {}{taper}, records up to {}{ahead}",
        show_bytes(planned.plan.job.memory_bytes),
        layout.buffers,
        show_bytes(layout.chunk_bytes),
        show_bytes(layout.record_bytes_max),
    )
}

pub(super) fn show_version(version: u32) -> String {
    format!("{}.{}", version / 10_000, version % 10_000)
}
