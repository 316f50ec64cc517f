//! Which record it is that a table refuses when rows come in from its staging table: the server tells none.
//! Where records are told apart by a key their places are kept, and the queries of `howdah check` find the
//! first of those that break what the error names. What triggers and policies refuse no query finds: the rows
//! are tried by halves.

use super::judge::judged;
use super::leave_out::is_broken;
use super::{Staged, surroundings, way};
use crate::attend::Asking;
use crate::check::reread::Files;
use crate::load::by_file;
use crate::pipeline::Run;
use crate::spot::Spots;
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Mode, Place, Result, sqlstate};
use howdah_target::arrival::part::Way;
use howdah_target::arrival::refusing;
use howdah_target::arrival::table::Into;
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
/// Of these, for its first byte, which the file is read again for.
const REREAD_WITHIN: Duration = Duration::from_secs(10);

/// The error with the record that it is about, if that can be told.
pub(super) async fn located(
    run: &Run,
    ledger: &Ledger,
    (tables, all): (&Staged<'_>, &[Into]),
    error: Error,
) -> Error {
    if !(is_broken(&error) || is_told_by_storing(run, &error)) || error.place().record.is_some() {
        return error;
    }
    let looking = tokio::time::timeout(WITHIN, Box::pin(look(run, ledger, (tables, all), &error)));
    let place = match run.context.stop.guard(async { Ok(looking.await) }).await {
        Ok(Ok(Ok(place))) => place,
        // It has failed for another reason already.
        _ => None,
    };
    match place {
        // What is said of that very record, where it was tried by itself.
        Some((place, told)) => told.unwrap_or(error).at(place),
        None => error,
    }
}

/// Bringing the row in tells the same of it once more. Where its foreign key leads hangs on the rows that
/// come with it.
fn is_told_by_storing(run: &Run, error: &Error) -> bool {
    let is_of_rows = match error.sqlstate() {
        Some(state) => {
            let is_of_value = ["22", "23", "P0"].iter().any(|class| state.starts_with(class));
            (is_of_value && state != sqlstate::FOREIGN_KEY_VIOLATION) || error.kind() == ErrorKind::Record
        }
        None => error.kind() == ErrorKind::Record,
    };
    // No trigger fires for the rows of a new table.
    is_of_rows && run.plan.job.arrival.mode != Mode::Replace
}

/// A record, and what is said of it in place of the error.
type Told<T> = Option<(T, Option<Error>)>;

async fn look(
    run: &Run,
    ledger: &Ledger,
    (tables, all): (&Staged<'_>, &[Into]),
    error: &Error,
) -> Result<Told<Place>> {
    if tables.iter().all(|(_, staging)| staging.place.is_none()) {
        return Ok(None);
    }
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let mut asking = Asking::new(connection, session.backend());
    let receipts = ledger.receipts(&session, &run.plan.job_id).await?;
    run.set_receipts(by_file(receipts));
    let asked = if is_broken(error) { first(run, &session, tables, error).await } else { Ok(None) };
    session.roll_back().await;
    let found = match asked {
        Ok(Some(place)) => Ok(Some((place, None))),
        Ok(None) if is_told_by_storing(run, error) => {
            let ways: Vec<Way<'_>> = all.iter().map(|into| way(run, into)).collect();
            let tried = refusing::first(&session, surroundings(run, ledger), &ways, error).await;
            session.roll_back().await;
            tried.map(|found| found.map(|(place, told)| (place, Some(told))))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    asking.answered();
    let Some((place, told)) = found? else { return Ok(None) };
    let Some(spot) = Spots::new(run).of(place) else { return Ok(None) };
    let (record, byte) = Files::new(run, REREAD_WITHIN).place(&spot).await;
    let file = run.plan.files.get(spot.file_no as usize).map(|file| file.location.clone());
    Ok(Some((Place { file, record, byte, ..Place::default() }, told)))
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
