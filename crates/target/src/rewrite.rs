//! Rules (`CREATE RULE`) rewrite INSERT, UPDATE and DELETE, and not COPY: rows that come by INSERT might go
//! elsewhere, or nowhere, and be counted as if they had come.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Error, ErrorKind, Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// A statement that a rule may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// INSERT
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
}

impl Event {
    /// As `pg_rewrite.ev_type` has it.
    fn code(self) -> &'static str {
        match self {
            Event::Update => "2",
            Event::Insert => "3",
            Event::Delete => "4",
        }
    }
}

/// The rules of the table on these events that are not disabled; one on UPDATE forbids ON CONFLICT even so.
/// Those of its partitions do not count for statements that name it.
const RULES_SQL: &str = "\
    SELECT pg_catalog.string_agg(r.rulename::pg_catalog.text, ', ' ORDER BY r.rulename) FROM pg_catalog.pg_rewrite r \
    WHERE r.ev_class = pg_catalog.to_regclass($1)::pg_catalog.oid AND r.ev_type::pg_catalog.text = ANY ($2) \
      AND (r.ev_enabled <> 'D' OR r.ev_type = '2')";

/// The names of the rules of the table on these events, in one text; `None` if it has none.
///
/// # Errors
/// Those of the session.
pub(crate) async fn rules(
    session: &Session,
    relation: &Relation,
    events: &[Event],
) -> Result<Option<String>> {
    let name = quote_relation(relation);
    let codes: Vec<&str> = events.iter().map(|event| event.code()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&codes, Type::TEXT_ARRAY)];
    let row = session.client().query_typed_one(RULES_SQL, &parameters).await;
    row.map(|row| row.get(0)).map_err(|error| session_error(&error, "looking for rules of the table"))
}

/// Refuses a table whose rules would rewrite how rows come into it.
///
/// # Errors
/// Table, with the rules; those of the session.
pub async fn expect_no_rules(session: &Session, relation: &Relation, events: &[Event]) -> Result<()> {
    let Some(rules) = rules(session, relation, events).await? else { return Ok(()) };
    let name = quote_relation(relation);
    let message = format!(
        "rows would come into {relation} by INSERT, which its rules ({rules}) rewrite: they might go elsewhere, or nowhere"
    );
    Err(Error::new(ErrorKind::Table, message).with_hint(format!(
        "DROP RULE, or where it is on INSERT or DELETE ALTER TABLE {name} DISABLE RULE ..., for the load; a load that appends \
         without --atomic copies rows, which no rule touches"
    )))
}
