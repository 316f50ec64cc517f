//! Runs the rules: all of them in one snapshot, in a transaction that can write nothing, and the places of what they find in
//! order.

use super::DOING;
use super::guarded;
use super::rules::{Rule, Unchecked};
use crate::copy::server_error::safe_message;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_relation;
use futures_util::{Stream, StreamExt};
use howdah_model::{Error, Relation, Result};
use std::pin::Pin;

/// Joins and sorts over all rows get this memory, where the server's own `work_mem` is less.
const WORK_MEM_KB: u32 = 64 << 10;

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

/// Opens the transaction in which rules are asked. Policies must not hide rows: a query that they would hide some from
/// fails instead.
///
/// # Errors
/// Those of the session.
pub async fn begin(session: &Session) -> Result<()> {
    let sql = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off; \
         SELECT pg_catalog.set_config(name, greatest(setting::pg_catalog.int4, {WORK_MEM_KB})::pg_catalog.text, true) \
         FROM pg_catalog.pg_settings WHERE name = 'work_mem'"
    );
    session.client().batch_execute(&sql).await.map_err(|error| session_error(&error, DOING))
}

/// Ends it. Best effort: nothing was changed.
pub async fn end(session: &Session) {
    let _ = session.client().batch_execute("ROLLBACK").await;
}

/// Those of the rules that the server can run for this role; the others are named, with the reason.
///
/// # Errors
/// Those of the session.
pub async fn feasible(session: &Session, rules: Vec<Rule>) -> Result<(Vec<Rule>, Vec<Unchecked>)> {
    let (mut good, mut unchecked) = (Vec::new(), Vec::new());
    for rule in rules {
        let explained = under_savepoint(session, &format!("EXPLAIN {}", rule.sql)).await?;
        match explained {
            None => good.push(rule),
            Some(refusal) => unchecked.push(refusal.of(&rule)),
        }
    }
    Ok((good, unchecked))
}

/// Why a rule cannot be asked.
struct Refusal {
    sqlstate: String,
    message: String,
}

impl Refusal {
    fn of(self, rule: &Rule) -> Unchecked {
        let what = match (&rule.column, &rule.constraint) {
            (Some(column), _) => format!("NOT NULL of column {column}"),
            (None, Some(constraint)) => format!("{constraint} ({})", rule.reason),
            (None, None) => rule.reason.clone(),
        };
        let reason = match (self.sqlstate.as_str(), &rule.reads) {
            ("42501", Some(other)) => format!(
                "this role may not read {other}; its owner can run GRANT SELECT ON {} TO this role",
                quote_relation(other)
            ),
            _ => format!("the server says: {}", self.message),
        };
        Unchecked { table: rule.table.clone(), what, reason }
    }
}

/// What the server has against a statement, if it is an answer.
async fn under_savepoint(session: &Session, sql: &str) -> Result<Option<Refusal>> {
    let run = async |sql: &str| session.client().batch_execute(sql).await;
    run("SAVEPOINT howdah").await.map_err(|error| session_error(&error, DOING))?;
    let done = run(sql).await;
    let end = match &done {
        Ok(()) => "RELEASE SAVEPOINT howdah",
        Err(_) => "ROLLBACK TO SAVEPOINT howdah; RELEASE SAVEPOINT howdah",
    };
    let Err(error) = done else {
        run(end).await.map_err(|error| session_error(&error, DOING))?;
        return Ok(None);
    };
    let Some(db) = error.as_db_error() else { return Err(session_error(&error, DOING)) };
    let refusal =
        Refusal { sqlstate: db.code().code().to_owned(), message: safe_message(db, std::iter::empty()) };
    run(end).await.map_err(|error| session_error(&error, DOING))?;
    Ok(Some(refusal))
}

/// The rules such that they can be asked of all rows, for when asking them together has failed; those that cannot are named.
/// Opens the transaction anew.
///
/// # Errors
/// Those of the session.
pub async fn answerable(session: &Session, rules: Vec<Rule>) -> Result<(Vec<Rule>, Vec<Unchecked>)> {
    let (mut good, mut failing) = (Vec::new(), Vec::new());
    for rule in rules {
        let sql = format!("SELECT pg_catalog.count(*) FROM ({}) AS found", rule.sql);
        match under_savepoint(session, &sql).await? {
            None => good.push(rule),
            Some(refusal) => failing.push((rule, refusal)),
        }
    }
    // Functions can be made only where something can be written.
    end(session).await;
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
        "SELECT place, no, first FROM ({}) AS found (place, no, first) ORDER BY place, no",
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
