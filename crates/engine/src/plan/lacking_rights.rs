//! Rights that the role lacks, on all tables of the plan and on the ledger, told in one error: who has to ask
//! an administrator for them asks once. What else stands in the way is told behind them, not in their place.

use super::identity::{Identity, Settled, Version};
use super::ledger_of;
use super::loaded::Choice;
use crate::Context;
use crate::retry::{Directive, directive};
use howdah_model::plan::TablePlan;
use howdah_model::{Error, ErrorKind, Job, Mode, Result, Verify, sqlstate};
use howdah_target::session::{Session, rights};
use howdah_target::{guards, replace, verify};
use std::collections::BTreeSet;

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
    let mut lacking = match job.arrival.mode == Mode::Replace && !job.arrival.check {
        true => to_replace(context, session, tables).await?,
        false => Vec::new(),
    };
    // Who may act for the owner of a table that is replaced has the other rights.
    let mut asked = BTreeSet::new();
    let others = tables.iter().filter(|_| lacking.is_empty()).filter(|table| {
        // What a role may make in a schema, it may make under every name.
        table.create.is_none() || asked.insert(&table.table.relation.schema)
    });
    let asking: Vec<_> = others.map(|table| async { Ok(of_table(session, job, table).await) }).collect();
    for told in context.connection.attend_each(session, asking).await? {
        if let Err(error) = told {
            if !is_of_rights(&error) && (lacking.is_empty() || may_pass(&error)) {
                return Err(error);
            }
            lacking.push(error);
        }
    }
    lacking.extend(for_options(context, session, job, tables).await?);
    // Who lacks nothing on the tables learns of the ledger when the load makes or opens it.
    if let (false, Some(ledger)) = (lacking.is_empty(), ledger_of(job)) {
        match context.connection.attend(session, ledger.lacking(session)).await {
            Err(error) if may_pass(&error) => return Err(error),
            Err(error) => lacking.push(error),
            Ok(found) => lacking.extend(found),
        }
    }
    lacking.into_iter().reduce(|all, next| joined(&all, &next)).map_or(Ok(()), Err)
}

/// The new table is its owner's in the end, for whom the role has to act. What else is in the way is told
/// later.
async fn to_replace(context: &Context, session: &Session, tables: &[TablePlan]) -> Result<Vec<Error>> {
    let mut lacking = Vec::new();
    for table in tables.iter().filter(|table| table.create.is_none()) {
        match context.connection.attend(session, replace::check(session, &table.table.relation)).await {
            Err(error) if is_of_rights(&error) => lacking.push(error),
            Err(error) if may_pass(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(lacking)
}

/// What options need beyond what has rows come in; what else stands in their way is told later.
async fn for_options(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &[TablePlan],
) -> Result<Vec<Error>> {
    let mut told = Vec::new();
    let compared = tables.iter().filter(|table| job.verify != Verify::None && table.create.is_none());
    for table in compared {
        let columns: Vec<String> = table.fields.iter().flatten().cloned().collect();
        let checking = verify::check(session, &table.table, &columns, job.verify);
        told.push(context.connection.attend(session, checking).await);
    }
    if job.guards.max_replica_lag.is_some() {
        let looking = guards::expect_sight_of_replicas(session);
        told.push(context.connection.attend(session, looking).await);
    }
    let mut lacking = Vec::new();
    for error in told.into_iter().filter_map(Result::err) {
        if may_pass(&error) {
            return Err(error);
        }
        if is_of_rights(&error) {
            lacking.push(error);
        }
    }
    Ok(lacking)
}

/// Who the job is. Where the ledger is closed to the role, that is put off until the rights on the tables are
/// asked for: it is a new job till then, of which nothing is carried out.
pub(super) fn put_off_closed(
    told: Result<(Identity, Settled, Choice)>,
    job: &Job,
    versions: &[Version],
) -> Result<(Identity, Settled, Choice)> {
    match told {
        Err(error) if is_of_rights(&error) && error.kind() == ErrorKind::Ledger && job.resumes.is_none() => {
            let identity = Identity::new(job, versions);
            let settled = identity.untold(job, error);
            Ok((identity, settled, Choice::new(job, vec![None; versions.len()])))
        }
        told => told,
    }
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

/// The next try tells all.
fn may_pass(error: &Error) -> bool {
    directive(error) != Directive::GiveUp
}

/// The first is of rights.
fn joined(first: &Error, next: &Error) -> Error {
    let error = Error::new(first.kind(), format!("{}; {}", first.message(), next.message()))
        .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE);
    let hints: Vec<&str> = [first.hint(), next.hint()].into_iter().flatten().collect();
    error.with_hint(hints.join("; "))
}
