//! Rejected records, mended and loaded by `--rejects`: struck, run again to the end, and then in the table,
//! each once.

use super::account::of_job;
use super::data::{self, Record};
use super::scenario::Records;
use super::shape::Shape;
use super::stage::Stage;
use super::world::World;
use super::written::Charset;
use crate::scene::PATIENCE;
use howdah_testkit::HowdahCommand;
use std::collections::BTreeMap;

/// A repeated record is mended into one whose key is by so much greater.
const OF_REPEATS: u64 = 5_000_000;

/// What rejected records are to become, by the names of files and the numbers of records.
pub(super) type Mended = BTreeMap<(String, u64), Record>;

/// Of all bad records of these files.
pub(super) fn of(files: &[Records]) -> Mended {
    let of_file = |file: &Records| {
        let bad = (1..).zip(&file.records).filter(|(_, record)| record.flaw.is_some());
        let mended = bad.map(|(no, record)| ((file.name.clone(), no), record.mended(OF_REPEATS)));
        mended.collect::<Vec<_>>()
    };
    files.iter().flat_map(of_file).collect()
}

/// The load of what a finished job has rejected; `None` where it has rejected nothing, or where files of it
/// are not as the test writes them.
pub(super) fn load(world: &World<'_>, stage: &Stage) -> Option<HowdahCommand> {
    let scenario = &stage.scenario;
    let is_plain = scenario.places.len() == 1 && scenario.written.charset == Charset::Utf8;
    // What a crash takes of an UNLOGGED table, the job itself would have to load again.
    if stage.refused.count == 0 || !is_plain || scenario.shape == Shape::Unlogged {
        return None;
    }
    let rows = stage.database.rows(&format!(
        "SELECT regexp_replace(location, '.*/', ''), record, as_in_file, job_id \
         FROM {0}.reject JOIN {0}.file USING (job_id, file_no) WHERE {1} ORDER BY file_no, record",
        stage.ledger,
        of_job(stage)
    ));
    let job = rows.first()?[3].clone()?;
    let mended = |row: &Vec<Option<String>>| {
        let place = (row[0].clone()?, row[1].as_deref()?.parse().ok()?);
        stage.mended.get(&place).filter(|_| row[2].as_deref() == Some("t")).cloned()
    };
    let mended: Vec<Record> = rows.iter().map(mended).collect::<Option<_>>()?;
    let path = stage.reject_file().with_extension("mended");
    let written = stage.status(world, &job).arg("--reject-file").arg(&path).run(PATIENCE);
    written.expect_code(0);
    let written = std::fs::read(&path).ok()?;
    let header = written.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let records = mended.iter().flat_map(|record| scenario.written.record(record));
    let bytes: Vec<u8> = written[..header].iter().copied().chain(records).collect();
    std::fs::write(&path, bytes).expect("the mended file");
    let copy =
        format!("COPY {}.wanted FROM STDIN (FORMAT csv, HEADER true, ENCODING 'UTF8')", scenario.places[0]);
    stage.database.copy_in(&copy, data::model(&mended)).expect("what must be stored");
    Some(stage.load_mended(world, &job, &path))
}

/// So many records of the job are still rejected, as its ledger has it.
pub(super) fn left(stage: &Stage) -> u64 {
    stage.ledger_count("reject WHERE loaded_by IS NULL")
}
