//! Files of which a job that did not end has stored rows: under other options, or among other files, they are another job's, which
//! would store these rows once more.

use crate::begin::{comes_on_top, in_turn_ms};
use crate::plan::is_filled;
use crate::{Connection, again};
use howdah_model::{Error, ErrorKind, Plan, Result};
use howdah_target::ledger::{Ledger, Own, StoredInPart};
use howdah_target::session::Session;

/// Rows of another job that those of this one would come on top of, but for files that are its `own`; with `--force` also those of
/// other versions of the files. What nobody is at work for comes first.
///
/// # Errors
/// Those of ledger and session; with `--force`, where only a warning hangs on it, those of the session alone.
pub(crate) async fn find(
    session: &Session,
    ledger: &Ledger,
    (plan, own): (&Plan, &Own),
) -> Result<Option<StoredInPart>> {
    match look(session, ledger, (plan, own)).await {
        Err(_) if plan.job.force && !session.is_closed() => Ok(None),
        looked => looked,
    }
}

async fn look(
    session: &Session,
    ledger: &Ledger,
    (plan, own): (&Plan, &Own),
) -> Result<Option<StoredInPart>> {
    if !comes_on_top(&plan.job) {
        return Ok(None);
    }
    for stored in ledger.stored_in_part(session, (plan, own), plan.job.force).await? {
        if is_there(session, ledger, plan, &stored).await? {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// The rows are in the table, as far as can be told: none waits elsewhere, and the table is not empty.
async fn is_there(session: &Session, ledger: &Ledger, plan: &Plan, stored: &StoredInPart) -> Result<bool> {
    let waits =
        ledger.find(session, &stored.job_id).await?.is_none_or(|row| row.plan.job.arrival.is_staged());
    let Some(table) = plan.tables.get(stored.table_no as usize).filter(|_| !waits) else { return Ok(false) };
    is_filled(session, &table.table.relation, in_turn_ms(&plan.job)).await
}

/// Why they are not stored once more.
pub(crate) fn error(connection: &Connection, ledger: &Ledger, stored: &StoredInPart) -> Error {
    let StoredInPart { job_id, location, table, rows, .. } = stored;
    let resume = again::command(connection, "resume", job_id, ledger.schema());
    let message = format!(
        "job {job_id}, which did not end, has stored {rows} rows of {location} in {table}; this load would store them once more"
    );
    Error::new(ErrorKind::Table, message).with_hint(format!(
        "finish that job by its own command or `{resume}`; or remove the rows that it has stored, delete it from the ledger, and run this \
         again; --mode truncate empties the table first, --force loads the file beside what is there"
    ))
}

/// What is said where `--force`, or `--known load` beside a load at work, means to load the files all the same.
pub(crate) fn warning(stored: &StoredInPart) -> String {
    let StoredInPart { job_id, location, table, rows, at_work, .. } = stored;
    let how = if *at_work { "is at work" } else { "did not end" };
    format!(
        "job {job_id}, which {how}, has stored {rows} rows of {location} in {table}: those of this load come beside them"
    )
}
