//! UNLOGGED tables, which a crash of the server empties behind the load (`howdah_target::ledger::Volatile`).

use howdah_model::{Error, ErrorKind, Plan, Relation};
use howdah_target::ledger::{Ledger, Volatile};

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
        let relation = &plan.tables[table_no as usize].table.relation;
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
         --job-id loads everything",
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
