//! Defaults that cannot be stored: of columns that no file fills, the server computes them for each row, and
//! what fails keeps each out.
//!
//! A default looks at no column, so that it is tried once, by an assignment: that holds a value against the
//! column's type as storing does, where a cast would cut it to fit.

use super::DOING;
use super::facts::{Column, Facts};
use super::found::under_savepoint;
use super::guarded::is_about_a_row;
use super::rows::Rows;
use super::rules::{Rule, Unchecked};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::{Arrival, Mode, Result, TablePlan};

/// A default that cannot be stored.
#[derive(Debug, Clone)]
pub struct Broken {
    column: String,
    sqlstate: String,
    message: String,
}

/// Tries the defaults of the columns that the plan does not fill. Those that fail are taken out of the facts,
/// so that the rest of a row can be looked at all the same; those that nobody can try are named.
///
/// # Errors
/// Those of the session.
pub async fn tried(
    session: &Session,
    facts: &mut Facts,
    plan: &TablePlan,
    arrival: &Arrival,
) -> Result<(Vec<Broken>, Vec<Unchecked>)> {
    let is_filled = |column: &Column| plan.fields.iter().flatten().any(|field| *field == column.name);
    // Where there is no default, COPY stores NULL whatever a domain has against it, as into a table that
    // takes another's place; INSERT asks.
    let is_inserted = (arrival.has_key() || arrival.atomic) && arrival.mode != Mode::Replace;
    let is_tried = |column: &Column| {
        !is_filled(column)
            && !column.is_numbered
            && column.generated.is_none()
            && (column.default.is_some() || is_inserted)
    };
    let mut tried: Vec<&mut Column> = facts.columns.iter_mut().filter(|column| is_tried(column)).collect();
    let (mut broken, mut unchecked) = (Vec::new(), Vec::new());
    let begun = session.client().batch_execute("BEGIN READ ONLY").await;
    begun.map_err(|error| session_error(&error, DOING))?;
    // Most tables have none that fails.
    if under_savepoint(session, &assigned_sql(tried.iter().map(|column| &**column))).await?.is_err() {
        for column in &mut tried {
            let Err(refusal) = under_savepoint(session, &assigned_sql(std::iter::once(&**column))).await?
            else {
                continue;
            };
            if is_about_a_row(&refusal.sqlstate) {
                // One reason for a row is enough.
                (column.default, column.not_null) = (None, false);
                let (column, sqlstate) = (column.name.clone(), refusal.sqlstate);
                broken.push(Broken { column, sqlstate, message: refusal.message });
            } else {
                let what = format!("default of column {}", column.name);
                let reason = format!("the server says: {}", refusal.message);
                unchecked.push(Unchecked { table: facts.relation.clone(), what, reason });
            }
        }
    }
    session.roll_back().await;
    Ok((broken, unchecked))
}

/// A block that assigns each its default.
fn assigned_sql<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    let assigned = columns.enumerate().map(|(no, column)| {
        let default = column.default.as_deref().unwrap_or("NULL");
        format!("howdah_{no} {} := {default}; ", column.type_name)
    });
    let declared: String = assigned.collect();
    format!("DO {}", quote_literal(&format!("DECLARE {declared}BEGIN END")))
}

/// No row can be stored that has it.
pub fn rules(rows: &Rows, broken: &[Broken]) -> Vec<Rule> {
    let rule = |Broken { column, sqlstate, message }: &Broken| Rule {
        table: rows.facts.relation.clone(),
        sqlstate: sqlstate.clone(),
        column: Some(column.clone()),
        constraint: None,
        reason: format!(
            "the default of column {column}, which no file fills, cannot be stored: the server says: {message}"
        ),
        sql: format!("SELECT {}, NULL::pg_catalog.int8 FROM {}", rows.place, rows.from()),
        reads: None,
        among: None,
        leads_to_records: false,
        condition: None,
    };
    broken.iter().map(rule).collect()
}
