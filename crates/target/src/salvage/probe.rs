//! Rows that the table's constraints refuse, of many rows in a few questions.
//!
//! COPY ends at the first row that breaks a constraint, so that finding a thousand of them takes thousands of COPYs. Here the
//! rows go into a temporary table that has none, each with its number, and the queries of [`crate::check`] say
//! which of them a constraint does not take. What no query can tell (triggers, exclusion constraints), and what comes in
//! between, COPY finds: after this, all others are still shown to it.

use super::filter::Filter;
use super::of_rule;
use crate::check::facts::Facts;
use crate::check::found;
use crate::check::rows::Rows;
use crate::check::rules::{Rule, rules_for};
use crate::copy::placed::Placed;
use crate::error::session_error;
use crate::session::{INFOS_MAX, Session};
use crate::sql::{quote_ident, quote_relation};
use futures_util::StreamExt;
use howdah_model::arrival::PlaceColumn;
use howdah_model::{Arrival, Error, Relation, RelationKind, Result, StagingPlan, TablePlan};
use std::collections::HashSet;
use tokio_postgres::types::Type;

/// Where temporary tables are.
const SCHEMA: &str = "pg_temp";

/// Another value when what table `$1` demands may be another: no row of the catalog is written without a new `xmin`.
const STAMP_SQL: &str = "\
    SELECT pg_catalog.hashtextextended(pg_catalog.string_agg(part, ' ' ORDER BY part), 0) FROM ( \
        SELECT 'r' || xmin FROM pg_catalog.pg_class WHERE oid = $1 \
        UNION ALL SELECT 'a' || attnum || ':' || xmin FROM pg_catalog.pg_attribute WHERE attrelid = $1 AND attnum > 0 \
        UNION ALL SELECT 'c' || oid || ':' || xmin FROM pg_catalog.pg_constraint WHERE conrelid = $1 \
        UNION ALL SELECT 'i' || indexrelid || ':' || xmin FROM pg_catalog.pg_index WHERE indrelid = $1 \
        UNION ALL SELECT 't' || oid || ':' || xmin FROM pg_catalog.pg_trigger WHERE tgrelid = $1) AS parts (part)";

/// What is needed to ask about the rows of one table.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Of the table when it was read.
    stamp: Option<i64>,
    make_sql: String,
    rules: Vec<Rule>,
    /// What COPY itself can tell of them.
    filter: Option<Filter>,
    /// Nothing but these rules refuses rows, so that of several with one key the first is stored.
    tells_all: bool,
    /// The table as if its rows were to come through the temporary one.
    plan: TablePlan,
}

/// What is known of the table's constraints.
#[derive(Debug, Clone, Copy, Default)]
pub struct Constraints<'a> {
    /// The way to ask about many rows at once, if there is one.
    pub probe: Option<&'a Probe>,
    /// Rows of other chunks have broken many, so it is asked before any row is shown to COPY.
    pub are_broken: bool,
}

impl<'a> Constraints<'a> {
    pub(super) fn filtered(&self) -> Option<(&'a Probe, &'a Filter)> {
        let probe = self.probe.filter(|_| self.are_broken)?;
        Some((probe, probe.filter()?))
    }
}

/// A row that a constraint does not take.
pub(super) struct Broken {
    /// Its number in the chunk.
    pub(super) row: u64,
    pub(super) error: Error,
}

impl Probe {
    /// Reads what the table demands. `None` where queries would not tell: a trigger may change rows before they are stored,
    /// policies hide some of them, or this role may not make temporary tables or read the table.
    ///
    /// # Errors
    /// Those of the session, which is outside a transaction before and after.
    pub async fn read(session: &Session, plan: &TablePlan) -> Result<Option<Probe>> {
        if !matches!(plan.table.kind, RelationKind::Table | RelationKind::Partitioned)
            || plan.staging.is_some()
        {
            return Ok(None);
        }
        // Before the rest: what changes in between is noticed, too.
        let stamp = stamp(session, plan).await.map_err(|error| session_error(&error, crate::check::DOING))?;
        let facts = Facts::read(session, plan).await?;
        if facts.may_change_rows() {
            return Ok(None);
        }
        let Some(probe) = Probe::new(facts, plan) else { return Ok(None) };
        Probe { stamp, ..probe }.with_what_is_feasible(session).await
    }

    fn new(facts: Facts, plan: &TablePlan) -> Option<Probe> {
        let is_taken = |name: &String| plan.table.columns.iter().any(|column| column.name == *name);
        let name = (0..).map(|no| format!("place{no}")).find(|name| !is_taken(name))?;
        let relation =
            Relation { schema: SCHEMA.to_owned(), name: format!("howdah_probe_{}", plan.table.oid) };
        let sequence = Relation { schema: SCHEMA.to_owned(), name: String::new() };
        let staging = StagingPlan { relation, place: Some(PlaceColumn { name, sequence }) };
        let (own, temporary) = (quote_relation(plan.copied_into()), quote_relation(&staging.relation));
        let columns = plan.copy_sql.strip_prefix(&format!("COPY {own} "))?;
        let copy_sql = format!("COPY {temporary} {columns}");
        let filled = plan.fields.iter().flatten().map(|name| format!(", {}", quote_ident(name)));
        let place = quote_ident(&staging.place.as_ref()?.name);
        let make_sql = format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {temporary} ON COMMIT DELETE ROWS AS \
             SELECT NULL::pg_catalog.int8 AS {place}{} FROM {own} WITH NO DATA",
            filled.collect::<String>()
        );
        let tells_all = facts.has_rules_alone();
        let rows = Rows::new(facts, plan, &staging)?;
        // Partitions may be made while the load goes on: whether one takes a row is for COPY to say.
        let rules = rules_for(&[rows], &Arrival::default(), true).rules;
        let plan = TablePlan { staging: Some(staging), copy_sql, ..plan.clone() };
        Some(Probe { stamp: None, make_sql, filter: Filter::new(&rules), rules, tells_all, plan })
    }

    /// Leaves rules out that this role may not ask.
    async fn with_what_is_feasible(mut self, session: &Session) -> Result<Option<Probe>> {
        let run = async |sql: &str| session.client().batch_execute(sql).await;
        let made = async {
            run("BEGIN").await?;
            run(&self.make_sql).await
        };
        let feasible = match made.await {
            Ok(()) => found::feasible(session, std::mem::take(&mut self.rules)).await.map(Some),
            Err(error) if error.as_db_error().is_some() => Ok(None),
            Err(error) => Err(session_error(&error, crate::check::DOING)),
        };
        // Best effort: a session that is gone has rolled back.
        let _ = run("ROLLBACK").await;
        let Some((rules, _)) = feasible? else { return Ok(None) };
        self.rules = rules;
        if let Some(filter) = &self.filter {
            let tried = async {
                run("BEGIN READ WRITE").await.is_ok()
                    && filter.is_feasible(session, &self.plan.table.relation).await
            };
            let is_feasible = tried.await;
            let _ = run("ROLLBACK").await;
            self.filter.take_if(|_| !is_feasible);
        }
        Ok((!self.rules.is_empty()).then_some(self))
    }

    /// COPY itself could have told and left out the rows that were refused for these reasons.
    pub fn leaves_out(&self, reasons: &[&Error]) -> bool {
        let is_of_one_row = |error: &&Error| matches!(error.sqlstate(), Some("23502" | "23514"));
        self.filter.is_some() && reasons.len() < INFOS_MAX && reasons.iter().all(is_of_one_row)
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The table demands what it did, until the transaction ends.
    pub(super) async fn is_current(&self, session: &Session) -> Result<bool, tokio_postgres::Error> {
        let lock =
            format!("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE", quote_relation(&self.plan.table.relation));
        session.client().batch_execute(&lock).await?;
        Ok(stamp(session, &self.plan).await? == self.stamp)
    }

    /// Makes the temporary table, which lasts as long as the connection; to be run in a transaction.
    pub(super) fn make_sql(&self) -> &str {
        &self.make_sql
    }

    /// How rows come into it.
    pub(super) fn placed(&self) -> Option<Placed> {
        Placed::new(&self.plan, Some(0))
    }

    /// Asks about the rows that are in the temporary table. Of a row that repeats one which is refused itself nothing is said.
    ///
    /// # Errors
    /// Those of the session; the transaction is aborted then.
    pub(super) async fn ask(&self, session: &Session) -> Result<Vec<Broken>> {
        let mut stream = found::stream(session, &self.rules).await?;
        let (mut found, mut repeats) = (Vec::new(), Vec::new());
        let mut refused = HashSet::new();
        while let Some(one) = stream.next().await {
            let one = one?;
            match one.first {
                Some(first) => repeats.push((one, first)),
                None if refused.insert(one.place) => found.push(self.broken(&one)),
                None => {}
            }
        }
        // In the order of the file: which of them are refused is known when their repetitions are looked at.
        for (one, first) in repeats.into_iter().filter(|_| self.tells_all) {
            if !refused.contains(&first) && refused.insert(one.place) {
                found.push(self.broken(&one));
            }
        }
        Ok(found)
    }

    fn broken(&self, found: &found::Found) -> Broken {
        Broken { row: found.place.cast_unsigned(), error: of_rule(&self.rules[found.rule_no]) }
    }
}

async fn stamp(session: &Session, plan: &TablePlan) -> Result<Option<i64>, tokio_postgres::Error> {
    let rows = session.client().query_typed(STAMP_SQL, &[(&plan.table.oid, Type::OID)]).await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}
