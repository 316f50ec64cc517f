//! Rights that the role lacks, on all tables of the plan and on the ledger, told in one error: who has to ask an administrator for them
//! asks once.

use super::ledger_of;
use crate::Context;
use howdah_model::plan::TablePlan;
use howdah_model::{Error, Job, Result, sqlstate};
use howdah_target::session::{Session, rights};

/// Refuses where the role may not have the rows come in.
///
/// # Errors
/// Table with SQLSTATE 42501 and what to grant; those of the session.
pub(super) async fn expect_none(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &[TablePlan],
) -> Result<()> {
    let mut lacking = Vec::new();
    for table in tables {
        if let Err(error) = context.connection.attend(session, of_table(session, job, table)).await {
            if !is_of_rights(&error) {
                return Err(error);
            }
            lacking.push(error);
        }
    }
    // Who lacks nothing on the tables learns of the ledger when the load makes or opens it.
    if let (false, Some(ledger)) = (lacking.is_empty(), ledger_of(job)) {
        lacking.extend(context.connection.attend(session, ledger.lacking(session)).await?);
    }
    lacking.into_iter().reduce(|all, next| joined(&all, &next)).map_or(Ok(()), Err)
}

async fn of_table(session: &Session, job: &Job, plan: &TablePlan) -> Result<()> {
    if plan.create.is_some() {
        return rights::check_create(session, &plan.table.relation).await;
    }
    let columns: Vec<String> = plan.fields.iter().flatten().cloned().collect();
    rights::check(session, &plan.table, &rights::needs(&job.arrival, columns)).await
}

fn is_of_rights(error: &Error) -> bool {
    error.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE)
}

fn joined(first: &Error, next: &Error) -> Error {
    let error = Error::new(first.kind(), format!("{}; {}", first.message(), next.message()))
        .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE);
    let hints: Vec<&str> = [first.hint(), next.hint()].into_iter().flatten().collect();
    error.with_hint(hints.join("; "))
}
