//! Files of which a job that did not end has stored rows: mended, under other options, or among other files,
//! they are another job's, which would store these rows once more.

use crate::begin::{comes_on_top, in_turn_ms};
use crate::load::file_nos;
use crate::plan::is_filled;
use crate::{Connection, again};
use howdah_model::{Error, ErrorKind, Event, Job, Plan, Relation, Result, Table, TablePlan, counted};
use howdah_target::ledger::{JobRow, JobStatus, Ledger, Origin, Own, StoredInPart, UndoKind};
use howdah_target::session::{Session, catalog};
use howdah_target::sql::quote_relation;
use std::collections::BTreeSet;

/// Rows of another job that those of this one would come on top of, but for files that are its `own`. What
/// nobody is at work for comes first.
///
/// # Errors
/// Those of ledger and session; with `--force`, where only a warning hangs on it, those of the session alone.
pub(crate) async fn find(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    own: &Own,
) -> Result<Option<StoredInPart>> {
    let noted = noted(session, ledger, plan, own).await;
    find_among(session, ledger, plan, noted).await
}

/// What the ledger says of such rows, in one flight.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn noted(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    own: &Own,
) -> Result<Vec<StoredInPart>> {
    if !comes_on_top(&plan.job) {
        return Ok(Vec::new());
    }
    ledger.stored_in_part(session, plan, own).await
}

/// As [`find`], where this is what the ledger says.
///
/// # Errors
/// As there.
pub(crate) async fn find_among(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    noted: Result<Vec<StoredInPart>>,
) -> Result<Option<StoredInPart>> {
    match look(session, ledger, plan, noted).await {
        Err(_) if plan.job.force && !session.is_closed() => Ok(None),
        looked => looked,
    }
}

async fn look(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    noted: Result<Vec<StoredInPart>>,
) -> Result<Option<StoredInPart>> {
    for stored in noted? {
        if is_there(session, ledger, plan, &stored).await? {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// The rows are in the table, as far as can be told: none waits elsewhere, the table is the one that they
/// came into, it is not empty, and no other job has emptied it since.
async fn is_there(session: &Session, ledger: &Ledger, plan: &Plan, stored: &StoredInPart) -> Result<bool> {
    let Some(table) = plan.tables.get(stored.table_no as usize).map(|table| &table.table) else {
        return Ok(false);
    };
    let row = ledger.find(session, &stored.job_id).await?;
    if row.is_some_and(|row| row.plan.job.arrival.is_staged() || is_made_anew(&row, table)) {
        return Ok(false);
    }
    if !is_filled(session, &table.relation, in_turn_ms(&plan.job)).await? {
        return Ok(false);
    }
    let jobs = BTreeSet::from([stored.job_id.clone()]);
    Ok(!ledger.standing(session, &table.relation, &jobs).await?.is_empty())
}

/// Rows that the job has stored of an earlier version of the files are in its tables, or may come in yet.
/// What waits in staging tables comes in with a step, and there only by a run of that job.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn may_stand(session: &Session, ledger: &Ledger, job: &Job, row: &JobRow) -> Result<bool> {
    if ledger.is_worked_on(session, &row.job_id).await? {
        return Ok(true);
    }
    for TablePlan { table, .. } in &row.plan.tables {
        let stands = match row.plan.job.arrival.is_staged() {
            // Where that cannot be read they may.
            true => {
                let steps = ledger.steps_done(session, &row.job_id, &table.relation).await;
                !steps.is_ok_and(|(_, rows)| rows == 0)
            }
            false => match catalog::find_table(session, &quote_relation(&table.relation)).await? {
                Some(now) => is_filled(session, &now.relation, in_turn_ms(job)).await?,
                None => false,
            },
        };
        if stands {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rows of an earlier version of the files wait in staging tables, which stay until somebody drops them: only
/// that job would take them from there. Best effort, as only a notice hangs on it.
pub(crate) async fn tell_waiting(connection: &Connection, session: &Session, ledger: &Ledger, row: &JobRow) {
    let Some(listener) = connection.listener().filter(|_| row.plan.job.arrival.is_staged()) else { return };
    let left = ledger.open_undos(session, Some(&row.job_id)).await.unwrap_or_default();
    if left.iter().any(|undo| undo.change.kind == UndoKind::Staging) {
        let restore = again::command(connection, "restore", &row.job_id, ledger.schema());
        let message = format!(
            "staging tables of job {} hold rows of an earlier version of these files, and stay: `{restore}` drops them",
            row.job_id
        );
        listener.on_event(&Event::Notice { message });
    }
}

/// Jobs of the same work, whatever versions of the files they were of, where rows of them could be in the
/// way.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn of_the_work(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Vec<JobRow>> {
    if plan.job.arrival.is_staged() || !comes_on_top(&plan.job) {
        return Ok(Vec::new());
    }
    ledger.of_work(session, &plan.work_key, &plan.identity).await
}

/// Before the first row of a load: what of these jobs those of earlier versions of its files have left in the
/// ledger is forgotten where the table is empty. Put back, such a file would go on behind rows that are gone,
/// once the table holds those of this load.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn forget_emptied(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    jobs: Vec<JobRow>,
) -> Result<()> {
    for row in jobs {
        let is_earlier = row.plan.identity != plan.identity && row.job_id != plan.job_id;
        let has_rows = row.status != JobStatus::Done && row.chunks > 0;
        // Who is at work for it looks after it.
        if is_earlier && has_rows && ledger.take_job(session, &row.job_id).await? {
            let forgotten = forget_emptied_of(session, ledger, plan, &row).await;
            ledger.leave_job(session, &row.job_id).await?;
            forgotten?;
        }
    }
    Ok(())
}

async fn forget_emptied_of(session: &Session, ledger: &Ledger, plan: &Plan, row: &JobRow) -> Result<()> {
    let relations: BTreeSet<&Relation> = row.plan.tables.iter().map(|table| &table.table.relation).collect();
    for relation in relations {
        let is_here = plan.tables.iter().any(|table| table.table.relation == *relation);
        if is_here && !is_filled(session, relation, in_turn_ms(&plan.job)).await? {
            ledger.forget_gone(session, &row.job_id, relation, &file_nos(&row.plan, relation)).await?;
        }
    }
    Ok(())
}

/// The job has stored its rows in another table of this name. Of a ledger that has come from another database
/// no OID tells.
fn is_made_anew(row: &JobRow, table: &Table) -> bool {
    let mut was = row.plan.tables.iter().map(|plan| &plan.table);
    let is_other = |was: &Table| was.relation == table.relation && was.oid != 0 && was.oid != table.oid;
    row.origin != Origin::Elsewhere && was.any(is_other)
}

/// Why they are not stored once more.
pub(crate) fn error(connection: &Connection, ledger: &Ledger, stored: &StoredInPart) -> Error {
    let StoredInPart { job_id, location, table, written, rows, has_changed, .. } = stored;
    let rows = counted(*rows, "row");
    let resume = again::command(connection, "resume", job_id, ledger.schema());
    let as_it_was = if *has_changed { ", with the file as it was then" } else { "" };
    let (same, name_back) = match written == table {
        true => (String::new(), String::new()),
        false => (
            format!(", as {written}"),
            format!("if {table} has another name since, give it back that of {written}, then "),
        ),
    };
    let message = format!(
        "job {job_id}, which did not end, has stored {rows} of {location} in {table}{same}; this load would store them once more"
    );
    Error::new(ErrorKind::Table, message).with_hint(format!(
        "{name_back}finish that job by its own command or `{resume}`{as_it_was}; or remove the rows that it has stored, delete it from the ledger, and run this \
         again; --mode truncate empties the table first, --force loads the file beside what is there"
    ))
}

/// What is said where `--force`, or `--known load` beside a load at work, means to load the files all the
/// same.
pub(crate) fn warning(stored: &StoredInPart) -> String {
    let StoredInPart { job_id, location, table, rows, at_work, .. } = stored;
    let rows = counted(*rows, "row");
    let how = if *at_work { "is at work" } else { "did not end" };
    format!(
        "job {job_id}, which {how}, has stored {rows} of {location} in {table}: those of this load come beside them"
    )
}
