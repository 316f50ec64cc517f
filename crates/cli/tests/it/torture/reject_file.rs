//! The file of rejected records: whatever has struck the load, what stands in its place is whole, and what
//! `howdah status` writes afterwards is every rejected record, as its file has it.

use super::account::of_job;
use super::mode::OnError;
use super::stage::Stage;
use super::world::World;
use super::written::Charset;
use crate::scene::PATIENCE;
use fastrand::Rng;

/// What a load calls it.
pub(super) const NAME: &str = "rejected";

/// Whether a load is to write one.
pub(super) fn draw(random: &mut Rng, on_error: OnError) -> bool {
    on_error == OnError::Skip && random.bool()
}

/// What is wrong with the files of a job that is done.
pub(super) fn check(world: &World<'_>, stage: &Stage) -> Option<String> {
    let scenario = &stage.scenario;
    // Several tables have a file each, and what is sent instead of the file's own bytes is in other words.
    let is_plain = scenario.places.len() == 1 && scenario.written.charset == Charset::Utf8;
    if !scenario.knobs.reject_file || !is_plain || stage.refused.count == 0 {
        return None;
    }
    let kept = kept(stage)?;
    if let Ok(written) = std::fs::read(stage.reject_file()) {
        let records = behind_header(&written);
        // A run that was killed behind its last chunk leaves the file of the run before.
        if !kept.concat().ends_with(records) && !are_among(records, &kept) {
            return Some(format!("the file of rejected records holds others: {} bytes", records.len()));
        }
    }
    let job =
        stage.database.value(&format!("SELECT job_id FROM {}.job WHERE {}", stage.ledger, of_job(stage)));
    let later = stage.reject_file().with_extension("later");
    let status =
        stage.status(world, &job).args(["--reject-file", &later.display().to_string()]).run(PATIENCE);
    status.expect_code(0);
    let written = std::fs::read(&later).unwrap_or_default();
    (behind_header(&written) != kept.concat())
        .then(|| format!("`howdah status` writes {} bytes of rejected records, and not all", written.len()))
}

/// Records that the job keeps, as their files have them, in their order; `None` where some are kept as they
/// were sent.
fn kept(stage: &Stage) -> Option<Vec<Vec<u8>>> {
    let sql = format!(
        "SELECT regexp_replace(location, '.*/', ''), record, as_in_file FROM {0}.reject JOIN {0}.file USING (job_id, file_no) \
         WHERE {1} ORDER BY file_no, record",
        stage.ledger,
        of_job(stage)
    );
    let record = |row: Vec<Option<String>>| {
        let [name, record, as_in_file] = row.try_into().ok()?;
        let place = (name?, record?.parse().ok()?);
        let bad = stage.refused.find(&place).filter(|_| as_in_file.as_deref() == Some("t"))?;
        Some(bad.bytes.clone())
    };
    stage.database.rows(&sql).into_iter().map(record).collect()
}

fn behind_header(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    &bytes[end..]
}

/// Whole records, each of them one of these, in their order.
fn are_among(mut bytes: &[u8], kept: &[Vec<u8>]) -> bool {
    for record in kept {
        bytes = bytes.strip_prefix(record.as_slice()).unwrap_or(bytes);
    }
    bytes.is_empty()
}
