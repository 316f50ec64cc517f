//! A table that is not there, though rows of jobs that did not end wait for it in staging tables, or are in a table that has another
//! name by now.

use super::ledger_of;
use crate::Context;
use crate::indexes::restore_command;
use howdah_model::{Error, ErrorKind, Job};
use howdah_target::ledger::UndoKind;
use howdah_target::session::{Session, catalog};
use std::collections::BTreeSet;

/// So many jobs are named; of more, their number.
const JOBS_MAX: usize = 3;

/// The error of a table that cannot be loaded, with a hint at the rows of jobs that did not end. Best effort: the error is known.
pub(super) async fn with_waiting_rows(
    context: &Context,
    session: &Session,
    job: &Job,
    written: &str,
    error: Error,
) -> Error {
    if error.kind() != ErrorKind::Table {
        return error;
    }
    let Some(hint) = told(context, session, job, written).await else { return error };
    let hint = error.hint().map_or_else(|| hint.clone(), |told| format!("{told}; {hint}"));
    error.with_hint(hint)
}

/// That rows of other jobs wait for a table of this name, if so, with the commands that drop them, or that theirs was renamed. Nobody is
/// refused for what cannot be asked.
pub(super) async fn told(context: &Context, session: &Session, job: &Job, written: &str) -> Option<String> {
    let ledger = ledger_of(job)?;
    let asking = async {
        let relation = catalog::new_relation(session, written).await?.to_string();
        let open = ledger.open_undos(session, None).await?;
        let waits = open.into_iter().filter(|undo| undo.change.kind == UndoKind::Staging);
        let jobs = waits.filter(|undo| undo.change.definition == relation).map(|undo| undo.job_id);
        Ok((jobs.collect::<BTreeSet<String>>(), ledger.renamed(session, &relation).await?))
    };
    let (jobs, renamed) = context.connection.attend(session, asking).await.unwrap_or_default();
    let wait = |job_id: &String| {
        let restore = restore_command(context, &ledger, job_id);
        format!("rows of job {job_id} wait for it in a staging table, which {restore} drops")
    };
    let mut told: Vec<String> = jobs.iter().take(JOBS_MAX).map(wait).collect();
    let more = jobs.len().saturating_sub(JOBS_MAX);
    if more > 0 {
        told.push(format!("and so do those of {more} more"));
    }
    told.extend(renamed.first().map(|(job_id, now)| {
        format!(
            "job {job_id}, which did not end, has stored rows in the table of this name, which is {now} now: give it the name back, then \
             the command of that job goes on"
        )
    }));
    (!told.is_empty()).then(|| told.join("; "))
}
