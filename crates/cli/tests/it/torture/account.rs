//! What the ledger must say of a load that is done: every record stored or refused, and each refused one kept
//! once.

use super::mode::OnError;
use super::stage::Stage;
use super::written::Charset;
use howdah_testkit::Finished;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is wrong with it.
pub(super) fn check(stage: &Stage) -> Vec<String> {
    sums(stage).into_iter().chain(rejects(stage)).collect()
}

/// The job that is done, whatever others have been given up, or had their UNLOGGED table emptied by a crash
/// behind their end.
pub(super) fn of_job(stage: &Stage) -> String {
    let jobs = format!("{}.job WHERE status = 'done' AND {}", stage.ledger, stage.is_of_files());
    format!("job_id = (SELECT job_id FROM {jobs} ORDER BY started_at DESC LIMIT 1)")
}

/// File by file.
fn sums(stage: &Stage) -> Vec<String> {
    let sql = format!(
        "SELECT format('%s: %s read = %s stored + %s rejected', regexp_replace(location, '.*/', ''), \
             rows_read, rows_stored, rows_rejected) FROM {}.file WHERE {} ORDER BY 1",
        stage.ledger,
        of_job(stage)
    );
    let told: BTreeSet<String> =
        stage.database.rows(&sql).into_iter().filter_map(|mut row| row[0].take()).collect();
    let wanted = stage.refused.files.iter().map(|(name, records, refused)| {
        format!("{name}: {records} read = {} stored + {refused} rejected", records - refused)
    });
    let wanted: BTreeSet<String> = wanted.collect();
    let differ = told.symmetric_difference(&wanted);
    differ.map(|line| format!("the account and what it must be differ in: {line}")).collect()
}

/// `--lenient` alone counts what it leaves out; with `--on-error skip` it is kept.
fn rejects(stage: &Stage) -> Option<String> {
    let refused = &stage.refused;
    let (column, kept) = match stage.scenario.mode.on_error {
        OnError::Lenient => ("left_out", 0),
        OnError::Stop | OnError::Skip => ("rejected", refused.count),
    };
    let counted = format!("SELECT sum({column}) FROM {}.chunk WHERE {}", stage.ledger, of_job(stage));
    let counted = stage.database.value(&counted);
    if counted != refused.count.to_string() {
        return Some(format!("its chunks have left out {counted} records, and not {}", refused.count));
    }
    let sql = format!(
        "SELECT regexp_replace(location, '.*/', ''), record FROM {0}.reject JOIN {0}.file USING (job_id, file_no) WHERE {1}",
        stage.ledger,
        of_job(stage)
    );
    let rows = stage.database.rows(&sql);
    let got: BTreeSet<(String, u64)> = rows
        .iter()
        .map(|row| (row[0].clone().unwrap_or_default(), row[1].as_deref().unwrap_or("0").parse().unwrap()))
        .collect();
    if rows.len() as u64 != kept || got.len() != rows.len() {
        return Some(format!(
            "{} records are kept, {} different ones, and not {kept}",
            rows.len(),
            got.len()
        ));
    }
    if kept == 0 {
        return None;
    }
    let unknown = got.iter().find(|place| refused.find(place).is_none());
    let missing = refused.surely.keys().find(|place| !got.contains(place));
    if unknown.is_some() || missing.is_some() {
        return Some(format!("kept though good: {unknown:?}, bad and not kept: {missing:?}"));
    }
    as_in_file(stage)
}

/// What is kept is the record, and why it was refused.
fn as_in_file(stage: &Stage) -> Option<String> {
    let sql = format!(
        "SELECT regexp_replace(location, '.*/', ''), record, sqlstate, CASE WHEN as_in_file THEN encode(bytes, 'hex') END \
         FROM {0}.reject JOIN {0}.file USING (job_id, file_no) WHERE {1}",
        stage.ledger,
        of_job(stage)
    );
    let is_utf8 = stage.scenario.written.charset == Charset::Utf8;
    for row in stage.database.rows(&sql) {
        let [name, record, sqlstate, kept] = row.try_into().expect("four columns");
        let place = (name.unwrap_or_default(), record.unwrap_or_default().parse().unwrap());
        let Some(bad) = stage.refused.find(&place) else { continue };
        let hex: String = bad.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if is_utf8 && kept.as_ref().is_some_and(|kept| *kept != hex) {
            return Some(format!("{place:?} is kept as {kept:?}, and not as {hex}"));
        }
        if !sqlstate.as_deref().is_some_and(|code| bad.flaw.sqlstates().contains(&code)) {
            return Some(format!("{place:?}, {:?}, is kept for {sqlstate:?}", bad.flaw));
        }
    }
    None
}

/// What is wrong with the report of a check that nothing has struck: it must find what the load will.
pub(super) fn check_report(stage: &Stage, finished: &Finished) -> Vec<String> {
    let refused = &stage.refused;
    if finished.code != Some(stage.check_code()) {
        return vec![format!("it ended with {:?}, and not {}", finished.code, stage.check_code())];
    }
    let report: Value = serde_json::from_str(&finished.stdout).expect("a document");
    let wanted = [("rows_read", refused.records), ("rows_bad", refused.told)];
    let mut wrong: Vec<String> = wanted
        .into_iter()
        .filter(|(key, count)| report[key] != *count)
        .map(|(key, count)| format!("{key} is {}, and not {count}", report[key]))
        .collect();
    let findings = report["findings"].as_array().into_iter().flatten();
    for place in findings.flat_map(|finding| finding["first"].as_array().into_iter().flatten()) {
        let name = place["file"].as_str().and_then(|file| file.rsplit('/').next()).unwrap_or_default();
        let place = (name.to_owned(), place["record"].as_u64().unwrap_or(0));
        if refused.find(&place).is_none() {
            wrong.push(format!("it tells of {place:?}, which is good"));
        }
    }
    wrong
}
