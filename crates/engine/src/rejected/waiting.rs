//! Whether rejected records are still to be loaded, before a load of them begins: mended once more, their
//! file is another to the ledger, which would take what it has for new rows.

use crate::again;
use howdah_model::{Error, ErrorKind, Job, LedgerChoice, RejectsOf, Result};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;

/// Refuses a new load, called `job_id`, of rejected records none of which is still to be loaded; not with
/// `--force`, nor for a check.
///
/// # Errors
/// `Usage` in that case; those of the session.
pub(crate) async fn expect_waiting(session: &Session, job: &Job, job_id: &str) -> Result<()> {
    let (Some(of), LedgerChoice::Schema(schema)) = (&job.rejects_of, &job.ledger) else { return Ok(()) };
    if job.force || job.arrival.check {
        return Ok(());
    }
    let settled = Ledger::new(schema).rejects_settled(session, of).await?;
    // A run of this job that was stopped behind that goes on.
    if settled.waiting > 0 || settled.loaded_by.iter().any(|by| by == job_id) {
        return Ok(());
    }
    Err(if settled.loaded_by.is_empty() { none_rejected(of) } else { all_loaded(of, &settled.loaded_by) })
}

fn none_rejected(of: &RejectsOf) -> Error {
    let message = format!("job {} has rejected no records that these files could hold", of.job_id);
    Error::new(ErrorKind::Usage, message).with_hint(
        "`howdah status JOB --reject-file FILE` writes those that it has rejected; --force loads these files all the same",
    )
}

fn all_loaded(of: &RejectsOf, by: &[String]) -> Error {
    let message = format!(
        "all records of these files that job {} has rejected are loaded, or rejected once more, by {}",
        of.job_id,
        by.join(", ")
    );
    let options: Vec<String> = by.iter().map(|id| format!("`{}`", again::option("--rejects", id))).collect();
    Error::new(ErrorKind::Usage, message).with_hint(format!(
        "what is still rejected, and nothing else, is loaded by {}; --force loads these files all the same",
        options.join(" or ")
    ))
}
