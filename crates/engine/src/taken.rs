//! Rows that others take out of a table while a load brings some: TRUNCATE, or a partition that is dropped or
//! detached, between two chunks.
//!
//! Nothing tells of it but the table's files. Where these are other ones at the end than before the first
//! rows, or that is not known because an earlier run stored them, and only there, it is looked whether the
//! table holds as many rows as the job has stored: VACUUM FULL, CLUSTER and ALTER TABLE lose none. Fewer are
//! a certain loss; as many are none that could be told from rows that others have brought.

use crate::arrival::on_session;
use crate::load::file_nos;
use crate::pipeline::Run;
use futures_util::future::try_join_all;
use howdah_model::{Mode, Plan, Relation, Result};
use howdah_target::session::Session;
use howdah_target::storage::{self, StorageFiles};
use std::collections::{BTreeMap, BTreeSet};

/// The files of each table that rows come into for all to see.
pub(crate) type Files = BTreeMap<Relation, StorageFiles>;

/// Reads them.
///
/// # Errors
/// Those of the session.
pub(crate) async fn files(session: &Session, plan: &Plan) -> Result<Files> {
    let read = async |relation: &Relation| {
        StorageFiles::read(session, relation).await.map(|files| (relation.clone(), files))
    };
    Ok(try_join_all(relations(plan).into_iter().map(read)).await?.into_iter().collect())
}

/// What comes in one transaction with the end of the job, or in one that empties the table, is in, whatever
/// becomes of it.
fn relations(plan: &Plan) -> BTreeSet<&Relation> {
    let arrival = &plan.job.arrival;
    let by_and_by = !(arrival.check || arrival.atomic || arrival.mode == Mode::Replace);
    let tables = plan.tables.iter().filter(|table| by_and_by && !table.frozen);
    tables.map(|table| &table.table.relation).collect()
}

/// Warns of tables that hold fewer rows than the job has `stored` there, unless their files are those that
/// they had before.
pub(crate) async fn warn(run: &Run, files: &Files, stored: impl Iterator<Item = (&Relation, u64)>) {
    for (relation, rows) in stored {
        let Some(now) = files.get(relation) else { continue };
        if run.files.get(relation).is_some_and(|before| before.are_kept(now)) {
            continue;
        }
        run.is_at("counting rows");
        // The rows have come as they were to: what cannot be asked does not make the load fail.
        let fewer = async |session: &Session| storage::fewer_rows(session, relation, rows).await;
        if let Ok(Some(held)) = on_session(run, fewer).await {
            run.warn(told(run.plan.job.arrival.mode, relation, held, rows));
        }
    }
}

fn told(mode: Mode, relation: &Relation, held: u64, stored: u64) -> String {
    let again = match mode {
        Mode::Truncate => "the same command with --force empties it and loads everything again",
        Mode::Merge | Mode::InsertNew => {
            "the same command with --force goes by the key and brings those back that are gone"
        }
        Mode::Append | Mode::Replace => {
            "take what this job has stored out of it (TRUNCATE, if it holds nothing else), then the same command with --force loads \
             everything again"
        }
    };
    format!(
        "{relation} holds {held} rows, and this job has stored {stored} there: others have taken rows out of it since the job began. If \
         that was not meant: {again}"
    )
}

/// The same of a load without a ledger.
///
/// # Errors
/// Those of the session.
pub(crate) async fn warn_without_ledger(run: &Run) -> Result<()> {
    let files = on_session(run, async |session| files(session, &run.plan).await).await?;
    let rows = |relation: &Relation| {
        let numbers = file_nos(&run.plan, relation).into_iter().filter_map(|no| usize::try_from(no).ok());
        numbers.map(|no| run.tally.rows_of(no)).sum()
    };
    warn(run, &files, files.keys().map(|relation| (relation, rows(relation)))).await;
    Ok(())
}
