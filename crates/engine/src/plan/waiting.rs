//! A table that is not there, though rows of jobs that did not end wait for it in staging tables, or are in a
//! table that has another name by now.

use super::ledger_of;
use crate::Context;
use crate::indexes::restore_command;
use howdah_model::{Error, ErrorKind, Job};
use howdah_target::ledger::UndoKind;
use howdah_target::session::{Session, catalog};
use std::collections::{BTreeMap, BTreeSet};

/// So many jobs are named; of more, their number.
const JOBS_MAX: usize = 3;

/// The error of a table that cannot be loaded, with a hint at the rows of jobs that did not end. Best effort:
/// the error is known.
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
    let asking = async { Ok(catalog::new_relation(session, written).await?.to_string()) };
    let Ok(relation) = context.connection.attend(session, asking).await else { return error };
    let Some(hint) = told(context, session, job, &[relation]).await.into_values().next() else {
        return error;
    };
    let hint = error.hint().map_or_else(|| hint.clone(), |told| format!("{told}; {hint}"));
    error.with_hint(hint)
}

/// What to say of those of these tables, `schema.name`, for which rows of other jobs wait, with the commands
/// that drop them, or which were renamed. Nobody is refused for what cannot be asked.
pub(super) async fn told(
    context: &Context,
    session: &Session,
    job: &Job,
    relations: &[String],
) -> BTreeMap<String, String> {
    let Some(ledger) = ledger_of(job).filter(|_| !relations.is_empty()) else { return BTreeMap::new() };
    let asking = async {
        let open = ledger.open_undos(session, None).await?;
        let waits = open.into_iter().filter(|undo| undo.change.kind == UndoKind::Staging);
        let mut jobs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for undo in waits {
            jobs.entry(undo.change.definition).or_default().insert(undo.job_id);
        }
        Ok((jobs, ledger.renamed(session, relations).await?))
    };
    let (jobs, renamed) = context.connection.attend(session, asking).await.unwrap_or_default();
    let restore = |job_id: &str| restore_command(context, &ledger, job_id);
    let told = |relation: &String| {
        let now = renamed.iter().find(|(table, ..)| table == relation);
        let told = told_of(jobs.get(relation), now.map(|(_, job_id, now)| (job_id, now)), &restore);
        told.map(|told| (relation.clone(), told))
    };
    relations.iter().filter_map(told).collect()
}

/// The same of one table: the jobs whose rows wait for it, and the one that has stored rows in it under
/// another name.
fn told_of(
    jobs: Option<&BTreeSet<String>>,
    renamed: Option<(&String, &String)>,
    restore: &dyn Fn(&str) -> String,
) -> Option<String> {
    let wait = |job_id: &String| {
        let restore = restore(job_id);
        format!("rows of job {job_id} wait for it in a staging table, which {restore} drops")
    };
    let jobs = || jobs.into_iter().flatten();
    let mut told: Vec<String> = jobs().take(JOBS_MAX).map(wait).collect();
    let more = jobs().count().saturating_sub(JOBS_MAX);
    if more > 0 {
        told.push(format!("and so do those of {more} more"));
    }
    told.extend(renamed.map(|(job_id, now)| {
        format!(
            "job {job_id}, which did not end, has stored rows in the table of this name, which is {now} now: give it the name back, then \
             the command of that job goes on"
        )
    }));
    (!told.is_empty()).then(|| told.join("; "))
}
