//! What the ledger must say of a load that is done: every record stored or refused, and each refused one kept once.

use super::mode::OnError;
use super::stage::Stage;
use std::collections::BTreeSet;

/// What is wrong with it.
pub(super) fn check(stage: &Stage) -> Vec<String> {
    sums(stage).into_iter().chain(rejects(stage)).collect()
}

/// The job that is done, whatever others have been given up, or had their UNLOGGED table emptied by a crash behind their end.
fn of_job(stage: &Stage) -> String {
    let jobs = format!("{}.job WHERE status = 'done'", stage.ledger);
    format!("job_id = (SELECT job_id FROM {jobs} ORDER BY started_at DESC LIMIT 1)")
}

fn sums(stage: &Stage) -> Option<String> {
    let sql = format!(
        "SELECT format('%s read = %s stored + %s rejected', sum(rows_read), sum(rows_stored), sum(rows_rejected)) \
         FROM {}.file WHERE {}",
        stage.ledger,
        of_job(stage)
    );
    let (told, refused) = (stage.database.value(&sql), &stage.refused);
    let stored = refused.records - refused.count;
    let wanted = format!("{} read = {stored} stored + {} rejected", refused.records, refused.count);
    (told != wanted).then(|| format!("the account says {told}, and not {wanted}"))
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
    let unknown =
        got.iter().find(|place| !refused.surely.contains(place) && !refused.perhaps.contains(place));
    let missing = refused.surely.difference(&got).next();
    (unknown.is_some() || missing.is_some())
        .then(|| format!("kept though good: {unknown:?}, bad and not kept: {missing:?}"))
}
