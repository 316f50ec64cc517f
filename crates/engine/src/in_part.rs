//! Files of which a job that did not end has stored rows: under other options they are another job's, which would store these
//! rows once more.

use crate::begin::in_turn_ms;
use crate::plan::is_filled;
use crate::{Connection, again};
use howdah_model::{Error, ErrorKind, Mode, Plan, Result};
use howdah_target::ledger::{Ledger, StoredInPart};
use howdah_target::session::Session;

/// Rows of another job that those of this one would come on top of, where it is new to the ledger; with `--force` also those of other
/// versions of the files.
///
/// # Errors
/// Those of ledger and session; with `--force`, where only a warning hangs on it, those of the session alone.
pub(crate) async fn find(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Option<StoredInPart>> {
    match look(session, ledger, plan).await {
        Err(_) if plan.job.force && !session.is_closed() => Ok(None),
        looked => looked,
    }
}

async fn look(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Option<StoredInPart>> {
    let arrival = &plan.job.arrival;
    let comes_on_top = arrival.mode == Mode::Append && !arrival.check;
    if !comes_on_top || ledger.find(session, &plan.job_id).await?.is_some() {
        return Ok(None);
    }
    for stored in ledger.stored_in_part(session, plan, plan.job.force).await? {
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
        "job {job_id}, which did not end, has stored {rows} rows of {location} in {table}; with the options given now they would be stored once more"
    );
    Error::new(ErrorKind::Table, message).with_hint(format!(
        "finish that job by its own command or `{resume}`; or remove the rows that it has stored, delete it from the ledger, and run this \
         again; --mode truncate empties the table first, --force loads the file beside what is there"
    ))
}

/// What is said where `--force` means to load the files all the same.
pub(crate) fn warning(stored: &StoredInPart) -> String {
    let StoredInPart { job_id, location, table, rows, .. } = stored;
    format!(
        "job {job_id}, which did not end, has stored {rows} rows of {location} in {table}: those of this load come beside them"
    )
}
