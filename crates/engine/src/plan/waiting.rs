//! A table that is not there, though rows of jobs that did not end wait for it in staging tables.

use super::ledger_of;
use crate::Context;
use crate::indexes::restore_command;
use howdah_model::{Error, ErrorKind, Job};
use howdah_target::ledger::UndoKind;
use howdah_target::session::{Session, catalog};
use std::collections::BTreeSet;

/// The error of a table that cannot be loaded, with a hint at the rows that wait for one of this name. Best effort: the error is known.
pub(super) async fn with_waiting_rows(
    context: &Context,
    session: &Session,
    job: &Job,
    written: &str,
    error: Error,
) -> Error {
    let Some(ledger) = ledger_of(job).filter(|_| error.kind() == ErrorKind::Table) else { return error };
    let asking = async {
        let relation = catalog::new_relation(session, written).await?.to_string();
        let open = ledger.open_undos(session, None).await?;
        let waits = open.into_iter().filter(|undo| undo.change.kind == UndoKind::Staging);
        let jobs = waits.filter(|undo| undo.change.definition == relation).map(|undo| undo.job_id);
        Ok(jobs.collect::<BTreeSet<String>>())
    };
    let jobs = context.connection.attend(session, asking).await.unwrap_or_default();
    let Some(job_id) = jobs.first() else { return error };
    let restore = restore_command(context, &ledger, job_id);
    let hint = format!("rows of job {job_id} wait for it in a staging table, which {restore} drops");
    let hint = error.hint().map_or_else(|| hint.clone(), |told| format!("{told}; {hint}"));
    error.with_hint(hint)
}
