//! What queries find among the rows of the staging tables: counted as it comes, with the first few places of
//! each kind.

use super::kept;
use crate::arrival::judge::judged;
use crate::arrival::{columns_of_all, rows_for, staged};
use crate::attend::Asking;
use crate::load::by_file;
use crate::pipeline::Run;
use crate::retry::patiently;
use futures_util::StreamExt;
use howdah_model::arrival::file_of_place;
use howdah_model::{Error, ErrorKind, Result, Stage, plural};
use howdah_target::check::facts::Facts;
use howdah_target::check::found::{self, Found};
use howdah_target::check::rows::Rows;
use howdah_target::check::rules::{self, Rule, Rules, Unchecked};
use howdah_target::check::{defaults, entries};
use howdah_target::ledger::{Ledger, RejectKind};
use howdah_target::session::Session;
use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Places told of each kind of error.
pub(super) const FIRST: usize = 10;

/// A rule, and what does not meet it.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) rule: Rule,
    pub(super) records: u64,
    /// The first of them, each with the record whose key it repeats.
    pub(super) first: Vec<(i64, Option<i64>)>,
}

/// What all rules find.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) counted: Vec<Counted>,
    pub(super) unchecked: Vec<Unchecked>,
    /// Records that do not meet some rule, by the number of their file in the order of the sources.
    pub(super) bad: HashMap<u32, u64>,
    /// What COPY has refused; `None` where that was not asked.
    pub(super) refused: Option<Vec<RejectKind>>,
    last: Option<i64>,
}

impl Findings {
    fn new(rules: Vec<Rule>, unchecked: Vec<Unchecked>) -> Findings {
        let counted = rules.into_iter().map(|rule| Counted { rule, records: 0, first: Vec::new() });
        Findings { counted: counted.collect(), unchecked, ..Findings::default() }
    }

    fn count(&mut self, found: Found) {
        if let Some(counted) = self.counted.get_mut(found.rule_no) {
            counted.records += 1;
            if counted.first.len() < FIRST {
                counted.first.push((found.place, found.first));
            }
        }
        if self.last.replace(found.place) != Some(found.place) {
            *self.bad.entry(file_of_place(found.place).0).or_default() += 1;
        }
    }
}

/// Asks all rules of all rows. `keeps`: bad records are kept in the ledger until the check ends.
///
/// # Errors
/// Those of the session.
pub(super) async fn ask(run: &Run, ledger: &Ledger, keeps: bool) -> Result<Findings> {
    run.is_at("asking what the tables have against the rows");
    let start = Instant::now();
    let connection = &run.context.connection;
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let once = || async {
        let session = connection.open().await?;
        let mut asking = Asking::new(connection, session.backend());
        let receipts = connection.attend(&session, ledger.receipts(&session, &run.plan.job_id)).await?;
        run.set_receipts(by_file(receipts));
        let mut findings = connection.attend(&session, ask_once(run, &session)).await?;
        if keeps {
            // Before others come to them.
            findings.refused = Some(refused(run, ledger).await?);
            // The server waits for us while files are read, which is no reason to give it up.
            keep(run, ledger, &session, &findings).await?;
        }
        session.roll_back().await;
        asking.answered();
        Ok(findings)
    };
    let asked = patiently(&run.context, retry_for, once).await;
    run.tally.spend(Stage::Apply, start.elapsed());
    asked
}

/// Leaves the transaction open in which the rules were asked.
async fn ask_once(run: &Run, session: &Session) -> Result<Findings> {
    let Rules { rules, mut unchecked } = rules_of_all(run, session).await?;
    found::begin(session).await?;
    expect_all(run, session).await?;
    let (rules, refused) = found::feasible(session, rules).await?;
    unchecked.extend(warned_of(run, refused));
    let mut told = count(session, rules.clone(), unchecked.clone()).await;
    if told.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server) {
        // Some expression fails for some row.
        session.roll_back().await;
        found::begin(session).await?;
        let (rules, refused) = found::answerable(session, rules).await?;
        unchecked.extend(warned_of(run, refused));
        told = count(session, rules, unchecked).await;
    }
    told
}

/// What all tables demand.
async fn rules_of_all(run: &Run, session: &Session) -> Result<Rules> {
    let arrival = &run.plan.job.arrival;
    let (mut all, mut tables, mut of_defaults) = (Vec::new(), Vec::new(), Rules::default());
    for (table, staging) in staged(&run.plan) {
        found::analyze(session, &staging.relation).await?;
        let table = columns_of_all(&run.plan, table, staging)?;
        let mut facts = Facts::read(session, &table).await?;
        let (broken, unchecked) = defaults::tried(session, &mut facts, &table, arrival).await?;
        let Some(rows) = Rows::new(facts, &table, staging, arrival) else { continue };
        of_defaults.rules.extend(defaults::rules(&rows, &broken));
        of_defaults.unchecked.extend(unchecked);
        all.push(rows);
        tables.push(table);
    }
    let mut of_entries = entries::too_long(session, &all, &tables, arrival).await?;
    of_entries.unchecked = warned_of(run, of_entries.unchecked);
    let mut rules = rules::rules_in_full(&all, &run.plan.job);
    for more in [of_defaults, of_entries] {
        rules.rules.extend(more.rules);
        rules.unchecked.extend(more.unchecked);
    }
    Ok(rules)
}

/// What a query would have told, had it been possible here and now: nobody is to take silence for consent.
fn warned_of(run: &Run, refused: Vec<Unchecked>) -> Vec<Unchecked> {
    for Unchecked { table, what, reason } in &refused {
        run.warn(format!("{what} of {table} is not checked: {reason}"));
    }
    refused
}

/// The tables are not logged, while the receipts of their chunks are: a crash of the server empties the one
/// and keeps the other.
async fn expect_all(run: &Run, session: &Session) -> Result<()> {
    for (table, staging) in staged(&run.plan) {
        let (expected, got) =
            (rows_for(run, &table.table.relation), found::rows(session, &staging.relation).await?);
        if got != expected {
            let message = format!(
                "the server crashed, which empties the tables of a check: expected {expected} rows for {}, got {got}",
                table.table.relation
            );
            return Err(Error::new(ErrorKind::Server, message).with_hint("run the same command again"));
        }
    }
    Ok(())
}

/// What COPY has refused, by reason.
///
/// # Errors
/// Those of the session.
pub(super) async fn refused(run: &Run, ledger: &Ledger) -> Result<Vec<RejectKind>> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let first = u32::try_from(FIRST).unwrap_or(u32::MAX);
    let kinds = connection.attend(&session, ledger.reject_kinds(&session, &run.plan.job_id, first)).await?;
    connection.keep(session);
    Ok(kinds)
}

async fn keep(run: &Run, ledger: &Ledger, session: &Session, findings: &Findings) -> Result<()> {
    let rules: Vec<Rule> = findings.counted.iter().map(|counted| counted.rule.clone()).collect();
    let unread = kept::keep(run, ledger, session, &rules).await?;
    if unread > 0 {
        run.warn(format!(
            "{unread} bad {}",
            plural(
                unread,
                "record is not in the reject file: it comes from a pipe, or was rewritten on its way",
                "records are not in the reject file: they come from a pipe, or were rewritten on their way"
            )
        ));
    }
    Ok(())
}

async fn count(session: &Session, rules: Vec<Rule>, unchecked: Vec<Unchecked>) -> Result<Findings> {
    let mut findings = Findings::new(rules.clone(), unchecked);
    let mut judged = pin!(judged(found::stream(session, &rules).await?, &rules));
    while let Some(reasons) = judged.next().await {
        reasons?.into_iter().for_each(|found| findings.count(found));
    }
    Ok(findings)
}
