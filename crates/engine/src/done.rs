//! Loads of which nothing is left to do, and what a load says of files that others have loaded.

use crate::Context;
use crate::indexes::tell;
use crate::load::Outcome;
use crate::plan::{in_tables, ledger_of};
use crate::tally::Tally;
use howdah_model::summary::Status;
use howdah_model::{Error, ErrorKind, Event, KnownFiles, Plan, Result};
use std::sync::atomic::Ordering::Relaxed;

/// All files are in their tables already.
pub(crate) fn nothing_new(context: &Context, plan: &Plan) -> Outcome {
    tell(context, format!("nothing new: {}", in_tables(plan).unwrap_or_default()));
    done(context, &Tally::new(plan, context.connection.display()), plan)
}

/// The error says that the job has finished, by this run or by another one at the same time.
pub(crate) fn is_told(outcome: &Result<Outcome>) -> Option<&Error> {
    let error = match outcome {
        Ok(outcome) => outcome.error.as_ref(),
        Err(error) => Some(error),
    };
    error.filter(|error| error.kind() == ErrorKind::JobDone)
}

/// The account of a job that has finished, from the ledger: for who asks once more, having lost the answer.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn account(context: &Context, plan: &Plan, told: &Error) -> Result<Outcome> {
    let tally = Tally::new(plan, context.connection.display());
    if let Some(ledger) = ledger_of(&plan.job) {
        let session = context.connection.open().await?;
        let reading = ledger.receipts(&session, &plan.job_id);
        for receipt in context.connection.attend(&session, reading).await? {
            if (receipt.file_no as usize) < plan.files.len() {
                tally.known_chunk(receipt.file_no, receipt.rows, receipt.omitted);
                tally.stored(receipt.file_no, receipt.rows, true);
            }
        }
    }
    (0..).zip(&plan.files).for_each(|(no, _)| tally.file(no).read_done.store(true, Relaxed));
    tell(context, format!("nothing is left to do: {}", told.message()));
    Ok(done(context, &tally, plan))
}

fn done(context: &Context, tally: &Tally, plan: &Plan) -> Outcome {
    let summary = tally.summary(plan, Status::Done);
    context.listener.on_event(&Event::Done { summary: Box::new(summary.clone()) });
    Outcome { summary, error: None, written: Vec::new() }
}

/// Says which files are left out; a warning of those that are loaded once more comes back. The ledger keeps neither.
pub(crate) fn tell_known(context: &Context, plan: &mut Plan) -> Option<String> {
    let known = in_tables(plan);
    plan.known = Vec::new();
    if plan.job.known == KnownFiles::Skip && !plan.job.force {
        known.into_iter().for_each(|known| tell(context, format!("left out: {known}")));
        return None;
    }
    known.map(|known| format!("rows come once more: {known}"))
}
