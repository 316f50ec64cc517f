//! Runs the rules: all of them in one snapshot, in a transaction that can write nothing, and the places of
//! what they find in order.

use super::DOING;
use super::guarded;
use super::rules::{Rule, Unchecked};
use crate::build::lift_sql;
use crate::copy::server_error::safe_message;
use crate::error::session_error;
use crate::session::Session;
use crate::session::rights::who;
use crate::sql::{quote_ident, quote_literal, quote_relation};
use futures_util::{Stream, StreamExt, TryStreamExt};
use howdah_model::{Error, Relation, Result, sqlstate};
use std::collections::HashSet;
use std::future::ready;
use std::pin::Pin;
use tokio_postgres::SimpleQueryMessage;

/// Joins and sorts over all rows get this memory, where the server's own `work_mem` is less.
const WORK_MEM_KB: u32 = 64 << 10;

/// A query that the planner thinks dearer is not run: at some ten microseconds a unit that is hours. Sorting
/// a hundred million rows comes to less than a hundredth of it; comparing a million rows with a million
/// others to more.
const COST_MAX: f64 = 1e9;

/// Ways to carry out a query that somebody has turned off for the role or the database are open to it, until
/// the transaction ends. Before PostgreSQL 18 the planner adds ten billion to the cost of such a way,
/// whatever it costs.
pub(crate) const ALL_WAYS_SQL: &str = "SELECT pg_catalog.set_config(name, 'on', true) FROM pg_catalog.pg_settings \
    WHERE pg_catalog.starts_with(name, 'enable_') AND boot_val = 'on' AND setting = 'off'";

/// Of a temporary table without rows the planner expects some thousand, and for looking one up some ten
/// units, by an index or in a table of a few pages. Reading a larger table for each row costs far more.
const COST_BY_INDEX_MAX: f64 = 200_000.0;

/// A row that does not meet a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The record's place.
    pub place: i64,
    /// Which rule.
    pub rule_no: usize,
    /// The place of the record whose key it repeats.
    pub first: Option<i64>,
}

/// Rows of a staging table are counted by the planner.
///
/// # Errors
/// Those of the session.
pub async fn analyze(session: &Session, staging: &Relation) -> Result<()> {
    let sql = format!("ANALYZE {}", quote_relation(staging));
    session.client().batch_execute(&sql).await.map_err(|error| session_error(&error, DOING))
}

/// Its rows.
///
/// # Errors
/// Those of the session.
pub async fn rows(session: &Session, staging: &Relation) -> Result<u64> {
    let sql = format!("SELECT pg_catalog.count(*) FROM {}", quote_relation(staging));
    let rows = session.rows(&sql, &[], DOING).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

/// Opens the transaction in which rules are asked. Policies must not hide rows: a query that they would hide
/// some from fails instead.
///
/// # Errors
/// Those of the session.
pub async fn begin(session: &Session) -> Result<()> {
    let sql = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off; \
         SELECT pg_catalog.set_config(name, greatest(setting::pg_catalog.int4, {WORK_MEM_KB})::pg_catalog.text, true) \
         FROM pg_catalog.pg_settings WHERE name = 'work_mem'; {ALL_WAYS_SQL}; {}",
        lift_sql(session.server_version())
    );
    session.client().batch_execute(&sql).await.map_err(|error| session_error(&error, DOING))
}

/// Those of the rules that the server can run for this role; the others are named, with the reason.
///
/// # Errors
/// Those of the session.
pub async fn feasible(session: &Session, rules: Vec<Rule>) -> Result<(Vec<Rule>, Vec<Unchecked>)> {
    let (mut good, mut unchecked) = (Vec::new(), Vec::new());
    for rule in rules {
        match under_savepoint(session, &format!("EXPLAIN (FORMAT JSON) {}", rule.sql)).await? {
            Ok(plan) if cost(&plan) > COST_MAX => unchecked.push(Refusal::endless().of(&rule)),
            Ok(_) => good.push(rule),
            Err(refusal)
                if refusal.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE
                    && is_hidden(session, &rule).await? =>
            {
                unchecked.push(Refusal::hidden().of(&rule));
            }
            Err(refusal) if refusal.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE => {
                let role = who(session).await?.role;
                unchecked.push(refusal.lacking(&rule, &role).of(&rule));
            }
            Err(refusal) => unchecked.push(refusal.of(&rule)),
        }
    }
    Ok((good, unchecked))
}

/// With these settings, each rule finds what it looks for by an index, as far as the planner's estimates for
/// a temporary table without rows tell.
///
/// # Errors
/// Those of the session.
pub(crate) async fn finds_by_index(session: &Session, settings: &str, rules: &[Rule]) -> Result<bool> {
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    run(&format!("SAVEPOINT howdah_settings; {settings}")).await?;
    let mut all = true;
    for rule in rules {
        let plan = under_savepoint(session, &format!("EXPLAIN (FORMAT JSON) {}", rule.sql)).await?;
        all &= plan.is_ok_and(|plan| cost(&plan) <= COST_BY_INDEX_MAX);
    }
    run("ROLLBACK TO SAVEPOINT howdah_settings").await?;
    Ok(all)
}

/// Policies may hide rows of the table that the rule reads.
async fn is_hidden(session: &Session, rule: &Rule) -> Result<bool> {
    let Some(other) = &rule.reads else { return Ok(false) };
    let name = quote_literal(&quote_relation(other));
    let sql = format!("SELECT pg_catalog.row_security_active({name}::pg_catalog.regclass)");
    Ok(under_savepoint(session, &sql).await?.is_ok_and(|active| active == "t"))
}

/// The planner's estimate for all of a query; nothing for a plan that cannot be read.
fn cost(plan: &str) -> f64 {
    let plan: Option<serde_json::Value> = serde_json::from_str(plan).ok();
    plan.and_then(|plan| plan[0]["Plan"]["Total Cost"].as_f64()).unwrap_or(0.0)
}

/// Why a rule cannot be asked.
pub(super) struct Refusal {
    pub(super) sqlstate: String,
    pub(super) message: String,
}

impl Refusal {
    fn endless() -> Refusal {
        let message = "each row would have to be compared with each other, which would take hours".to_owned();
        Refusal { sqlstate: String::new(), message }
    }

    fn hidden() -> Refusal {
        let message = "row-level security policies may hide rows from this role".to_owned();
        Refusal { sqlstate: String::new(), message }
    }

    /// With the GRANT, where it is the table that the role may not read.
    fn lacking(self, rule: &Rule, role: &str) -> Refusal {
        let Some(other) = &rule.reads else { return self };
        let message = format!(
            "role {role} may not read {other}; its owner can run GRANT SELECT ON {} TO {}",
            quote_relation(other),
            quote_ident(role)
        );
        Refusal { sqlstate: String::new(), message }
    }

    pub(super) fn of(self, rule: &Rule) -> Unchecked {
        let what = match (&rule.column, &rule.constraint) {
            (Some(column), _) => format!("NOT NULL of column {column}"),
            (None, Some(constraint)) => format!("{constraint} ({})", rule.reason),
            (None, None) => rule.reason.clone(),
        };
        let reason = match self.sqlstate.as_str() {
            "" => self.message,
            _ => format!("the server says: {}", self.message),
        };
        Unchecked { table: rule.table.clone(), what, reason }
    }
}

/// The first value that a statement gives, or what the server has against it.
pub(super) async fn under_savepoint(
    session: &Session,
    sql: &str,
) -> Result<std::result::Result<String, Refusal>> {
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    run("SAVEPOINT howdah").await?;
    match session.client().simple_query(sql).await {
        Ok(answers) => {
            run("RELEASE SAVEPOINT howdah").await?;
            let value = answers.iter().find_map(|answer| match answer {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            Ok(Ok(value.unwrap_or_default()))
        }
        Err(error) => {
            let Some(db) = error.as_db_error() else { return Err(session_error(&error, DOING)) };
            run("ROLLBACK TO SAVEPOINT howdah; RELEASE SAVEPOINT howdah").await?;
            let message = safe_message(db, std::iter::empty());
            Ok(Err(Refusal { sqlstate: db.code().code().to_owned(), message }))
        }
    }
}

/// The rules such that they can be asked of all rows, for when asking them together has failed; those that
/// cannot are named. Opens the transaction anew.
///
/// # Errors
/// Those of the session.
pub async fn answerable(session: &Session, rules: Vec<Rule>) -> Result<(Vec<Rule>, Vec<Unchecked>)> {
    let (mut good, mut failing) = (Vec::new(), Vec::new());
    for rule in rules {
        let sql = format!("SELECT pg_catalog.count(*) FROM ({}) AS found", rule.sql);
        match under_savepoint(session, &sql).await? {
            Ok(_) => good.push(rule),
            Err(refusal) => failing.push((rule, refusal)),
        }
    }
    // Functions can be made only where something can be written.
    session.roll_back().await;
    let mut unchecked = Vec::new();
    for (no, (rule, refusal)) in failing.into_iter().enumerate() {
        match guarded::split(session, &rule, no).await? {
            Some(rules) => good.extend(rules),
            None => unchecked.push(refusal.of(&rule)),
        }
    }
    begin(session).await?;
    Ok((good, unchecked))
}

/// Which of these places the rules find.
///
/// # Errors
/// Those of the session.
pub async fn places(session: &Session, rules: &[Rule], among: &HashSet<i64>) -> Result<HashSet<i64>> {
    let places = stream(session, rules).await?.map_ok(|found| found.place);
    places.try_filter(|place| ready(among.contains(place))).try_collect().await
}

/// What the rules find, in the order of places.
///
/// # Errors
/// Those of the session.
pub async fn stream(
    session: &Session,
    rules: &[Rule],
) -> Result<Pin<Box<dyn Stream<Item = Result<Found>> + Send>>> {
    if rules.is_empty() {
        return Ok(Box::pin(futures_util::stream::empty()));
    }
    let each = rules
        .iter()
        .enumerate()
        .map(|(no, rule)| format!("SELECT f.place, {no}, f.first FROM ({}) AS f (place, first)", rule.sql));
    let sql = format!(
        "SELECT place, no, first FROM ({}) AS found (place, no, first) ORDER BY place, no, first",
        each.collect::<Vec<_>>().join(" UNION ALL ")
    );
    let none: [(&str, tokio_postgres::types::Type); 0] = [];
    let rows = session.client().query_typed_raw(&sql, none).await;
    let rows = rows.map_err(|error| session_error(&error, DOING))?;
    let found = |row: std::result::Result<tokio_postgres::Row, tokio_postgres::Error>| -> Result<Found> {
        let row = row.map_err(|error| -> Error { session_error(&error, DOING) })?;
        let rule_no = usize::try_from(row.get::<_, i32>(1)).unwrap_or(usize::MAX);
        Ok(Found { place: row.get(0), rule_no, first: row.get(2) })
    };
    Ok(Box::pin(rows.map(found)))
}
