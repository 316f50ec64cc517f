//! What a check has found, as a text to read from the top.

use crate::account::short;
use crate::units::{show_bytes, show_count, show_seconds};
use howdah_engine::model::summary::Status;
use howdah_engine::model::{BadPlace, CheckReport, CheckedFile, Finding, NotChecked, counted};
use std::fmt::Write;

/// Places shown of each kind; `--json` has more.
const PLACES_SHOWN: usize = 3;
/// Files listed by name; of more, only those with bad records.
const FILES_LISTED: usize = 20;

/// The text, several lines, without a line ending at the end.
pub fn text(report: &CheckReport) -> String {
    let mut text = String::new();
    let ended = match report.status {
        Status::Done => "done",
        Status::Failed => "FAILED",
        Status::Interrupted => "stopped",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "check  {ended} in {}; bytes read {}",
        show_seconds(report.wall_seconds.max(1e-9)),
        show_bytes(report.bytes_read)
    );
    let all = report.files.len() <= FILES_LISTED;
    let listed = report.files.iter().filter(|file| all || file.rows_bad > 0 || !file.done);
    listed.take(FILES_LISTED).for_each(|file| show_file(&mut text, file));
    report.findings.iter().for_each(|finding| show_finding(&mut text, finding));
    report.not_checked.iter().for_each(|not| show_not_checked(&mut text, not));
    let _ = write!(text, "{}", total(report));
    text
}

fn show_file(text: &mut String, file: &CheckedFile) {
    let state = if file.done { "" } else { "  not complete" };
    let _ = writeln!(
        text,
        "file   {} -> {}: read {} = good {} + bad {}{state}",
        short(&file.location),
        file.table,
        show_count(file.rows_read),
        show_count(file.rows_good),
        show_count(file.rows_bad)
    );
}

fn show_finding(text: &mut String, finding: &Finding) {
    let column = finding.column.as_ref().map(|column| format!(", column {column}")).unwrap_or_default();
    let sqlstate = finding.sqlstate.as_ref().map(|code| format!(" (SQLSTATE {code})")).unwrap_or_default();
    let _ = writeln!(
        text,
        "bad    {} for {}{column}{sqlstate}: {}",
        counted(&show_count(finding.records), "record"),
        finding.table,
        finding.reason
    );
    for place in finding.first.iter().take(PLACES_SHOWN) {
        let _ = writeln!(text, "       {}", place_words(place));
    }
    let more = finding.records.saturating_sub(finding.first.len().min(PLACES_SHOWN) as u64);
    if more > 0 && !finding.first.is_empty() {
        let _ = writeln!(text, "       and {} more", show_count(more));
    }
}

fn place_words(place: &BadPlace) -> String {
    let line = place.line.map(|line| format!(", line {}", show_count(line))).unwrap_or_default();
    let record = place.record.map(|record| format!(", record {}", show_count(record))).unwrap_or_default();
    let byte = place.byte.map(|byte| format!(", byte {}", show_count(byte))).unwrap_or_default();
    let first = match (&place.first_file, place.first_record) {
        (Some(file), Some(record)) if *file == place.file => {
            format!(", as record {}", show_count(record))
        }
        (Some(file), Some(record)) => format!(", as record {} of {}", show_count(record), short(file)),
        (Some(file), None) => format!(", as a record of {}", short(file)),
        (None, _) => String::new(),
    };
    format!("{}{line}{record}{byte}{first}", short(&place.file))
}

fn show_not_checked(text: &mut String, not: &NotChecked) {
    let _ = writeln!(text, "not checked: {} of {}: {}", not.what, not.table, not.reason);
}

fn total(report: &CheckReport) -> String {
    let counts = format!(
        "read {} = good {} + bad {}",
        show_count(report.rows_read),
        show_count(report.rows_good),
        show_count(report.rows_bad)
    );
    match report.status {
        Status::Done => format!("total  {counts}; nothing was stored"),
        Status::Failed | Status::Interrupted => {
            format!("total  {counts} so far, constraints not asked; nothing was stored")
        }
    }
}
