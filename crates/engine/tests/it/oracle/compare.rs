//! What howdah stored against what COPY stored.

use super::server::{Fate, Oracle, Target};
use super::variant::Variant;
use super::{LEDGER, has_header, is_in_order};
use crate::rig::Loaded;
use howdah_engine::model::{Borders, Error, FormatKind};
use howdah_testkit::NastyFile;

/// Both stored everything: the same rows, and howdah's account says so.
pub(super) fn check_stored(
    oracle: &Oracle,
    target: Target,
    rows: u64,
    loaded: &Loaded,
) -> Result<(), String> {
    let summary = loaded.summary.as_ref().ok_or("no error and no summary")?;
    let counted = (summary.rows_read, summary.rows_stored);
    if counted != (rows, rows) {
        return Err(format!("howdah read and stored {counted:?} rows"));
    }
    match oracle.strangers(target, rows) {
        (count, 0) if count == rows => Ok(()),
        (count, others) => Err(format!("{count} rows are in the table, {others} of them not COPY's")),
    }
}

/// Both refused: at the same record, which begins at the byte howdah says, and the chunks before it are in.
pub(super) fn check_refused(
    oracle: &Oracle,
    file: &NastyFile,
    target: Target,
    (record, reason): (u64, &str),
    variant: &Variant,
    loaded: &Loaded,
    error: &Error,
) -> Result<(), String> {
    let place = error.place();
    if loaded.plan.is_none() && has_header(file) && record == 1 {
        // The header itself is bad.
        return Ok(());
    }
    if target.without_last && place.byte.is_none() && place.record == Some(record) {
        // The server refused a rewritten record, which is not at the file's bytes.
        return Ok(());
    }
    let (Some(found), Some(byte)) = (place.record, place.byte) else {
        return Err(format!("howdah does not say where: {error}"));
    };
    // What precedes the record must be all the records before it: COPY takes them, and numbers them again.
    let before = usize::try_from(byte).ok().and_then(|byte| file.bytes.get(..byte));
    let before = before.ok_or_else(|| format!("byte {byte} is beyond the file: {error}"))?;
    if found != record && !is_seen_ahead(file, reason, (record, found), before) {
        return Err(format!("howdah refuses another record: {error}"));
    }
    match oracle.copy(target.number, file, before)? {
        Fate::Stored { rows } if rows == found - 1 => {}
        fate => return Err(format!("the record does not begin there: {error}; before it: {fate:?}")),
    }
    if is_in_order(variant) {
        check_only_earlier(oracle, target)?;
    }
    match (&loaded.plan, variant.ledger) {
        (Some(plan), true) => check_receipts(oracle, target, &plan.job_id, &plan.borders(0), byte),
        _ => Ok(()),
    }
}

/// COPY looks one byte beyond a `\r`: in csv always, in text while the line ending is not known, which is the
/// first record of a file and of a chunk. When that byte belongs to a broken character, the record before is
/// blamed. So where files of `\r` are cut, howdah may name the neighbour of the record that COPY names: the
/// later one where the cut lies between the two, in text the earlier one where a chunk begins with it.
fn is_seen_ahead(file: &NastyFile, reason: &str, (record, found): (u64, u64), before: &[u8]) -> bool {
    let is_about_characters = reason.ends_with("(22021)") || reason.ends_with("(22P05)");
    let cut_between = found == record + 1 && before.ends_with(b"\r");
    let is_neighbour = match file.format.kind {
        FormatKind::Csv => cut_between,
        FormatKind::Text => cut_between && record == 1 || found + 1 == record && file.bytes.contains(&b'\r'),
    };
    is_about_characters && is_neighbour
}

/// The table holds the first records of the file, however many, and nothing else.
fn check_only_earlier(oracle: &Oracle, target: Target) -> Result<(), String> {
    let (count, _) = oracle.strangers(target, 0);
    match oracle.strangers(target, count) {
        (_, 0) => Ok(()),
        (_, others) => Err(format!("of {count} rows stored {others} are not the first ones")),
    }
}

/// The receipts before the refused chunk cover the file up to it, and their rows are in the table.
fn check_receipts(
    oracle: &Oracle,
    target: Target,
    job_id: &str,
    borders: &Borders,
    byte: u64,
) -> Result<(), String> {
    let chunk = borders.chunk_no(byte);
    let counts = oracle.numbers(&format!(
        "SELECT coalesce(sum(rows) FILTER (WHERE chunk_no < {chunk}), 0), \
                count(*) FILTER (WHERE chunk_no = {chunk}), \
                coalesce(max(end_byte) FILTER (WHERE chunk_no < {chunk}), {}), \
                coalesce(sum(rows), 0), (SELECT count(*) FROM {}) \
         FROM {LEDGER}.chunk WHERE job_id = '{job_id}'",
        u64::MAX / 2,
        target.name()
    ));
    let [earlier, refused, end, all, stored] = counts[..] else { return Err("five numbers".to_owned()) };
    let missing = oracle.missing(target, earlier);
    if refused > 0 || missing > 0 || all != stored {
        return Err(format!(
            "{missing} of {earlier} rows before chunk {chunk} are missing; \
             {refused} receipts of that chunk; {all} rows in receipts, {stored} in the table"
        ));
    }
    // The last record before may end long after the border it crossed, never before it.
    if end < borders.start_byte(chunk) {
        return Err(format!("the chunks before {chunk} end at byte {end}"));
    }
    Ok(())
}
