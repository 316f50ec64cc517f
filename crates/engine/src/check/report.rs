//! The account of a check, made of what COPY has refused, what queries have found, and what was counted on
//! the way.

use super::findings::{self, Counted, FIRST, Findings};
use super::reread::Files;
use crate::locate::line::{WITHIN, hide_bytes, lines};
use crate::pipeline::Run;
use crate::spot::Spots;
use howdah_model::summary::Status;
use howdah_model::{
    BadPlace, CheckReport, CheckedFile, Finding, Mend, NotChecked, Place, Result, Summary, plural,
};
use howdah_target::check::rules::{Rule, Unchecked};
use howdah_target::ledger::{Ledger, RejectKind};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Files are read again for the first bytes of bad records; where that takes longer, these are left out.
const LOOKED_UP_WITHIN: Duration = Duration::from_secs(20);

/// The account of all that was read.
///
/// # Errors
/// Those of the session.
pub(super) async fn report(
    run: &Run,
    ledger: &Ledger,
    mut findings: Findings,
    status: Status,
) -> Result<CheckReport> {
    let kinds = match findings.refused.take() {
        Some(kinds) => kinds,
        None => findings::refused(run, ledger).await?,
    };
    let summary = run.tally.summary(&run.plan, status);
    let mut report = with_counts(run, summary, &findings);
    findings.counted.iter_mut().for_each(|counted| admit_refused(&mut counted.rule, &kinds));
    report.findings.extend(kinds.into_iter().map(|kind| refused(run, kind)));
    let (spots, mut files) = (Spots::new(run), Files::new(run, LOOKED_UP_WITHIN));
    let deadline = Instant::now() + LOOKED_UP_WITHIN;
    for counted in findings.counted.into_iter().filter(|counted| counted.records > 0) {
        report.findings.push(found(run, &spots, &mut files, counted, deadline).await);
    }
    report.not_checked = findings.unchecked.into_iter().map(not_checked).collect();
    if status == Status::Done {
        // They are a help, and worth no more waiting.
        let _ = timeout_at(deadline, add_lines(run, &mut report.findings)).await;
    }
    let places = report.findings.iter_mut().flat_map(|finding| &mut finding.first);
    hide_bytes(run, places.map(|place| (place.file.as_str(), &mut place.byte)));
    Ok(report)
}

/// Adds the lines in which the records begin.
async fn add_lines(run: &Run, findings: &mut [Finding]) {
    for file in &run.plan.files {
        let of_file = |place: &&BadPlace| place.file == file.location && place.line.is_none();
        let places = findings.iter().flat_map(|finding| &finding.first);
        let bytes: Vec<u64> = places.filter(of_file).filter_map(|place| place.byte).collect();
        let lines = lines(run, file, &bytes, WITHIN).await;
        for place in findings.iter_mut().flat_map(|finding| &mut finding.first) {
            if place.file == file.location && place.line.is_none() {
                place.line = place.byte.and_then(|byte| lines.get(&byte).copied());
            }
        }
    }
}

/// The same without what is wrong: where the server cannot be asked.
pub(super) fn bare(run: &Run, status: Status) -> CheckReport {
    with_counts(run, run.tally.summary(&run.plan, status), &Findings::default())
}

fn with_counts(run: &Run, summary: Summary, findings: &Findings) -> CheckReport {
    let file = |(planned, file): (&howdah_model::FilePlan, &howdah_model::FileSummary)| {
        let rows_bad = file.rows_rejected + findings.bad.get(&planned.input_no).copied().unwrap_or(0);
        CheckedFile {
            location: file.location.clone(),
            table: file.table.clone(),
            rows_read: file.rows_read,
            rows_good: file.rows_read.saturating_sub(rows_bad),
            rows_bad,
            bytes_read: file.bytes_read,
            done: file.done,
        }
    };
    let files: Vec<CheckedFile> = run.plan.files.iter().zip(&summary.files).map(file).collect();
    CheckReport {
        status: summary.status,
        rows_read: summary.rows_read,
        rows_good: files.iter().map(|file| file.rows_good).sum(),
        rows_bad: files.iter().map(|file| file.rows_bad).sum(),
        findings: left_out(&summary).into_iter().collect(),
        not_checked: Vec::new(),
        warnings: summary.warnings,
        unsure: summary.unsure,
        comments: summary.comments,
        mended: summary.mended,
        bytes_read: summary.bytes_read,
        wall_seconds: summary.wall_seconds,
        retries: summary.retries,
        files,
    }
}

/// Records that could not be read at all, so that no table has seen them.
fn left_out(summary: &Summary) -> Option<Finding> {
    let records = *summary.mended.get(&Mend::LeftOut)?;
    let unread: Vec<_> = summary.left_out.iter().filter(|out| out.sqlstate.is_none()).collect();
    let place = |out: &&howdah_model::LeftOut| BadPlace {
        file: out.file.clone(),
        line: None,
        record: out.record,
        byte: out.byte,
        first_file: None,
        first_record: None,
    };
    Some(Finding {
        table: summary.tables.first().map(|table| table.table.clone()).unwrap_or_default(),
        sqlstate: None,
        column: None,
        constraint: None,
        reason: unread.first().map_or_else(|| "it cannot be read".to_owned(), |out| out.reason.clone()),
        records,
        first: unread.iter().take(FIRST).map(place).collect(),
    })
}

fn location(run: &Run, file_no: u32) -> String {
    run.plan.files.get(file_no as usize).map(|file| file.location.clone()).unwrap_or_default()
}

fn refused(run: &Run, kind: RejectKind) -> Finding {
    let place = |(file_no, record, byte): (u32, Option<u64>, Option<u64>)| BadPlace {
        file: location(run, file_no),
        line: None,
        record,
        byte,
        first_file: None,
        first_record: None,
    };
    Finding {
        table: kind.table,
        sqlstate: kind.sqlstate,
        column: kind.column,
        constraint: None,
        reason: kind.message,
        records: kind.records,
        first: kind.first.into_iter().map(place).collect(),
    }
}

/// What a foreign key leads to may be among the records that COPY has refused: nobody has read their keys.
fn admit_refused(rule: &mut Rule, kinds: &[RejectKind]) {
    let leads = rule.leads_to_records && rule.sqlstate == howdah_model::sqlstate::FOREIGN_KEY_VIOLATION;
    let Some(other) = rule.reads.as_ref().filter(|_| leads).map(ToString::to_string) else {
        return;
    };
    let records: u64 = kinds.iter().filter(|kind| kind.table == other).map(|kind| kind.records).sum();
    if records > 0 {
        let were = plural(records, "record that was", "records that were");
        rule.reason += &format!(", unless it is in the {records} {were} refused for it");
    }
}

async fn found(
    run: &Run,
    spots: &Spots,
    files: &mut Files<'_>,
    counted: Counted,
    deadline: Instant,
) -> Finding {
    let mut first = Vec::new();
    for (place, earlier) in counted.first {
        let Place { file, record, .. } = spots.place_in_file(run, place);
        let earlier = earlier.map(|place| spots.place_in_file(run, place)).unwrap_or_default();
        let looking = async {
            let Some(spot) = spots.of(place) else { return (None, None) };
            files.place(&spot).await
        };
        let looked_up = timeout_at(deadline, looking).await.unwrap_or((None, None));
        first.push(BadPlace {
            file: file.unwrap_or_default(),
            line: None,
            record: looked_up.0.or(record),
            byte: looked_up.1,
            first_file: earlier.file,
            first_record: earlier.record,
        });
    }
    let rule = counted.rule;
    Finding {
        table: rule.table.to_string(),
        sqlstate: Some(rule.sqlstate),
        column: rule.column,
        constraint: rule.constraint,
        reason: rule.reason,
        records: counted.records,
        first,
    }
}

fn not_checked(unchecked: Unchecked) -> NotChecked {
    let Unchecked { table, what, reason } = unchecked;
    NotChecked { table: table.to_string(), what, reason }
}
