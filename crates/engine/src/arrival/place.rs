//! Which record it is that a table refuses when rows come in from its staging table: the server tells none. Where records are told apart by a
//! key their places are kept, and the queries of `howdah check` find the first of those that break what the error names.

use super::Staged;
use super::judge::judged;
use super::leave_out::is_broken;
use crate::attend::Asking;
use crate::load::by_file;
use crate::pipeline::Run;
use crate::spot::Spots;
use futures_util::StreamExt;
use howdah_model::{Error, Mode, Place, Result};
use howdah_target::check::facts::Facts;
use howdah_target::check::found;
use howdah_target::check::rows::Rows;
use howdah_target::check::rules::{self, Rule};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use std::pin::pin;
use std::time::Duration;

/// The error is known by then, and somebody waits for it.
const WITHIN: Duration = Duration::from_secs(30);

/// The error with the record that it is about, if that can be told.
pub(super) async fn located(run: &Run, ledger: &Ledger, tables: &Staged<'_>, error: Error) -> Error {
    if !is_broken(&error) || error.place().record.is_some() {
        return error;
    }
    let looking = tokio::time::timeout(WITHIN, Box::pin(look(run, ledger, tables, &error)));
    let place = match run.context.stop.guard(async { Ok(looking.await) }).await {
        Ok(Ok(Ok(place))) => place,
        // It has failed for another reason already.
        _ => None,
    };
    match place {
        Some(place) => error.at(place),
        None => error,
    }
}

async fn look(run: &Run, ledger: &Ledger, tables: &Staged<'_>, error: &Error) -> Result<Option<Place>> {
    if tables.iter().all(|(_, staging)| staging.place.is_none()) {
        return Ok(None);
    }
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let mut asking = Asking::new(connection, session.backend());
    let receipts = ledger.receipts(&session, &run.plan.job_id).await?;
    run.set_receipts(by_file(receipts));
    let first = first(run, &session, tables, error).await;
    session.roll_back().await;
    asking.answered();
    let Some(spot) = first?.and_then(|place| Spots::new(run).of(place)) else { return Ok(None) };
    let (record, byte) = spot.found(run).await;
    let file = run.plan.files.get(spot.file_no as usize).map(|file| file.location.clone());
    Ok(Some(Place { file, record, byte, ..Place::default() }))
}

async fn first(run: &Run, session: &Session, tables: &Staged<'_>, error: &Error) -> Result<Option<i64>> {
    let (job, mut all) = (&run.plan.job, Vec::new());
    for (table, staging) in tables {
        let facts = Facts::read(session, table).await?;
        // A trigger may have made of a row what a query does not see.
        if job.arrival.mode == Mode::Replace || !facts.may_change_arriving() {
            found::analyze(session, &staging.relation).await?;
            all.extend(Rows::new(facts, table, staging, &job.arrival));
        }
    }
    let mut rules = rules::rules_in_full(&all, job).rules;
    rules.retain(|rule| is_named(rule, error));
    found::begin(session).await?;
    let (rules, _) = found::feasible(session, rules).await?;
    let mut judged = pin!(judged(found::stream(session, &rules).await?, &rules));
    while let Some(reasons) = judged.next().await {
        if let Some(found) = reasons?.first() {
            return Ok(Some(found.place));
        }
    }
    Ok(None)
}

/// The server names what is broken, in quotes.
fn is_named(rule: &Rule, error: &Error) -> bool {
    let mut names = rule.column.iter().chain(&rule.constraint);
    error.sqlstate() == Some(rule.sqlstate.as_str())
        && names.any(|name| error.message().contains(&format!("\"{name}\"")))
}
