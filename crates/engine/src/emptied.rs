//! Tables that were emptied behind a job: UNLOGGED ones by a crash of the server
//! (`howdah_target::ledger::Volatile`), any by another job or by somebody's TRUNCATE between two runs. Or
//! rows of which another job has deleted, as its own files had no record of them.

use crate::arrival::on_session;
use crate::load::file_nos;
use crate::pipeline::Run;
use crate::taken;
use futures_util::future::try_join_all;
use howdah_model::{Error, ErrorKind, Mode, Plan, Relation, Result, TablePlan, counted};
use howdah_target::ledger::{Ledger, StoredRows, Taken, Volatile};
use howdah_target::session::{Session, catalog};
use howdah_target::sql::quote_relation;
use howdah_target::truncate;
use std::collections::BTreeSet;

/// What is said of a run that goes on with a job.
pub(crate) const EMPTIED: &str = "the server has crashed since an earlier run of this job and emptied the UNLOGGED tables, of rows \
                                  that were in them before as well: what that run had stored there is loaded again";

/// The ledger as it is to be asked and written for this plan.
pub(crate) fn watching(ledger: Ledger, plan: &Plan) -> Ledger {
    let unlogged = &plan.tuning.unlogged;
    if unlogged.is_empty() || plan.job.arrival.check {
        return ledger;
    }
    let by_steps = plan.job.arrival.is_staged();
    let goes_there = |table_no: u32| {
        let relation = &plan.table(table_no).table.relation;
        unlogged.iter().any(|table| table.relation == *relation)
    };
    let files = (0..).zip(&plan.files).filter(|(_, file)| !by_steps && goes_there(file.table_no));
    let file_nos = files.map(|(no, _)| no).collect();
    ledger.with_volatile(Volatile { file_nos, by_steps, in_part: unlogged.iter().any(|table| !table.whole) })
}

/// Rows that came into their tables from staging tables are gone.
pub(crate) fn while_coming_in() -> Error {
    Error::new(ErrorKind::Table, "the server crashed and has emptied the UNLOGGED tables that rows came into")
        .with_hint("run the same command again: it loads everything from the beginning")
}

/// The job that has a ledger knows; this one has none.
pub(crate) fn may_be_emptied() -> Error {
    let message = "the session that the load began with was lost: if the server crashed, it has emptied the UNLOGGED tables, and \
                   without a ledger nobody knows whether all rows are in";
    Error::new(ErrorKind::ConnectionLost, message)
        .with_hint("look at the tables before loading again; with a ledger the load finds out by itself")
}

/// The rows may have come while the table was logged, or by a version that left no marks.
pub(crate) fn unknown(job_id: &str, relation: &Relation) -> Error {
    let message = format!(
        "job {job_id} has stored rows in {relation} without noting that it is UNLOGGED: whether a crash of the server has emptied \
         it since is not known"
    );
    Error::new(ErrorKind::Table, message).with_hint(
        "look at the table: if the rows are there, nothing is to be done, or ALTER TABLE ... SET LOGGED lets the job go on; another \
         --job-id with --known load loads everything",
    )
}

/// What proves the rows is gone, as after a crash of the server, and the table is not as that leaves it.
pub(crate) fn written_anew(job_id: &str, relation: &Relation) -> Error {
    let message = format!(
        "the server has crashed since job {job_id} has stored rows in {relation}, which holds rows now and was written anew (by \
         ALTER TABLE ... SET LOGGED, VACUUM FULL, CLUSTER or TRUNCATE): whether those of the job are among them is not known"
    );
    Error::new(ErrorKind::Table, message).with_hint(
        "look at the table: if they are, take them out of it, or empty it if it holds nothing else; --force then loads them again, beside \
         what is there",
    )
}

/// Some of the rows are gone, and some are not.
pub(crate) fn in_part(job_id: &str) -> Error {
    let message = format!(
        "the server has crashed since job {job_id} and emptied UNLOGGED tables that it has loaded; its rows in the others are still \
         there"
    );
    Error::new(ErrorKind::Table, message)
        .with_hint("load the files of the emptied tables by a command of their own, or --force loads all of them once more")
}

/// A table that holds no row any more, or not all, of those that an unfinished job has stored there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) relation: Relation,
    stored: StoredRows,
}

impl Gone {
    /// Why the job does not go on as if its rows were there.
    pub(crate) fn error(&self, job_id: &str) -> Error {
        let Gone { relation, stored: StoredRows { rows, taken_by, goes_on, taken } } = self;
        let rows = counted(*rows, "row");
        let message = match taken_by {
            Some(other) if *taken == Taken::Partition => format!(
                "job {other} has emptied a partition of {relation} since job {job_id}, which did not end, has stored {rows} there, \
                 some of which may have been in it"
            ),
            Some(other) if *taken == Taken::Missing => format!(
                "job {other} has deleted rows of {relation} (--delete-missing) since job {job_id}, which did not end, has stored {rows} \
                 there, which may be among them"
            ),
            Some(other) => format!(
                "job {other} has emptied {relation} since job {job_id}, which did not end, has stored {rows} there"
            ),
            None => format!(
                "{relation} is empty, though job {job_id}, which did not end, has stored {rows} there: somebody has emptied it"
            ),
        };
        Error::new(ErrorKind::Table, message).with_hint(match goes_on {
            _ if *taken != Taken::All => {
                "--mode insert-new with the key brings in those that are gone; or take those that are left out of it, then --force \
                 loads again what the job had stored there"
            }
            true => {
                "take what came after that out of it, then --force loads again what the job had stored there"
            }
            false => "--force loads again what the job had stored there, into the table as it is now",
        })
    }
}

/// The tables of an unfinished job that were emptied since it has stored rows there. One that holds other
/// rows by now tells only by a step of the ledger; whoever does not see all rows of a table judges it by that
/// alone.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn behind(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Vec<Gone>> {
    let mut gone = Vec::new();
    for found in stored(session, ledger, plan).await? {
        let lock_timeout_ms = plan.job.arrival.lock_timeout_ms;
        if found.stored.taken_by.is_some()
            || truncate::is_empty(session, &found.relation, lock_timeout_ms).await? == Some(true)
        {
            gone.push(found);
        }
    }
    Ok(gone)
}

/// No other job has emptied a table, or deleted rows of it, since this one has stored rows there.
///
/// # Errors
/// Table, if one has; those of ledger and session.
pub(crate) async fn expect_not_by_others(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<()> {
    none_by_others(&plan.job_id, &stored(session, ledger, plan).await?)
}

fn none_by_others(job_id: &str, all: &[Gone]) -> Result<()> {
    let by_others = all.iter().find(|found| found.stored.taken_by.is_some());
    by_others.map_or(Ok(()), |found| Err(found.error(job_id)))
}

/// The same at the end of a load. Who takes rows out of a table waits for those who load into it, unless
/// these have lost for a moment what tells of them. What comes in one transaction with the end of the job is
/// in, whatever became of it since.
pub(crate) async fn expect_not_meanwhile(run: &Run, ledger: &Ledger) -> Result<()> {
    if run.plan.job.arrival.atomic {
        return Ok(());
    }
    let plan = &run.plan;
    // Sent together: one round trip.
    let asking = async |session: &Session| {
        tokio::try_join!(stored(session, ledger, plan), taken::files(session, plan))
    };
    let (all, files) = on_session(run, asking).await?;
    none_by_others(&plan.job_id, &all)?;
    taken::warn(run, &files, all.iter().map(|found| (&found.relation, found.stored.rows))).await;
    Ok(())
}

/// The tables that the ledger says the job has stored rows in, but for those that a crash has emptied, which
/// is known by marks.
async fn stored(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Vec<Gone>> {
    let arrival = &plan.job.arrival;
    // A new table is nobody else's before it takes its place.
    if arrival.check || arrival.mode == Mode::Replace {
        return Ok(Vec::new());
    }
    let crashed = watching(ledger.clone(), plan).has_lost(session, &plan.job_id).await?;
    let is_crashed =
        |relation: &Relation| crashed && plan.tuning.unlogged.iter().any(|table| table.relation == *relation);
    let relations: BTreeSet<&Relation> = plan.tables.iter().map(|table| &table.table.relation).collect();
    let by_steps = arrival.is_staged();
    let ask = async |relation: &Relation| {
        let file_nos = file_nos(plan, relation);
        let stored = ledger.stored_in(session, &plan.job_id, relation, &file_nos, by_steps).await?;
        Ok(Gone { relation: relation.clone(), stored })
    };
    // Sent together.
    let standing = relations.into_iter().filter(|relation| !is_crashed(relation));
    let all: Vec<Gone> = try_join_all(standing.map(ask)).await?;
    Ok(all.into_iter().filter(|found| found.stored.rows > 0).collect())
}

/// Forgets what the job has stored in tables that were emptied since: it is loaded again. The tables, for the
/// user to be told.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn forget_behind(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Vec<Relation>> {
    let mut forgotten = Vec::new();
    for Gone { relation, .. } in behind(session, ledger, plan).await? {
        // Rows that wait in staging tables are where they were.
        let file_nos = if plan.job.arrival.is_staged() { Vec::new() } else { file_nos(plan, &relation) };
        ledger.forget_gone(session, &plan.job_id, &relation, &file_nos).await?;
        forgotten.push(relation);
    }
    Ok(forgotten)
}

/// All tables that a finished job has loaded were dropped, and those that were made anew hold no row: nothing
/// of it is left.
///
/// # Errors
/// Those of the session.
pub(crate) async fn made_anew(session: &Session, plan: &Plan) -> Result<bool> {
    for TablePlan { table, .. } in &plan.tables {
        let Some(now) = catalog::find_table(session, &quote_relation(&table.relation)).await? else {
            continue;
        };
        let is_other = table.oid != 0 && table.oid != now.oid;
        let lock_timeout_ms = plan.job.arrival.lock_timeout_ms;
        if !is_other || truncate::is_empty(session, &table.relation, lock_timeout_ms).await? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}
