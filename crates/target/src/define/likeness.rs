//! What others have made since a load was planned to make it: it serves if it is the same, for values were
//! read for the types that were planned. The server is asked: it is the planned one that is made beside, in a
//! transaction that is rolled back.

use super::type_of;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, NewColumn, NewTable, Relation, Result, sqlstate};
use tokio_postgres::types::Type;

/// The two tables have the same columns, in the same order, and the same primary key.
const ALIKE_SQL: &str = "\
    SELECT pg_catalog.count(DISTINCT c.shape) = 1 AND pg_catalog.count(*) = 2 \
    FROM (SELECT t.relkind::pg_catalog.text || ' ' || coalesce(pg_catalog.string_agg(pg_catalog.concat_ws(' ', \
              pg_catalog.quote_ident(a.attname), a.atttypid, a.atttypmod, a.attcollation, a.attnotnull, a.atthasdef, a.attidentity, \
              (SELECT pg_catalog.array_position(i.indkey::pg_catalog.int2[], a.attnum) FROM pg_catalog.pg_index i \
               WHERE i.indrelid = t.oid AND i.indisprimary)), ', ' ORDER BY a.attnum), '') AS shape \
          FROM pg_catalog.pg_class t \
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped \
          WHERE t.oid IN (pg_catalog.to_regclass($1)::pg_catalog.oid, pg_catalog.to_regclass($2)::pg_catalog.oid) \
          GROUP BY t.oid, t.relkind) AS c";

/// The table that is there is the one that was planned.
///
/// # Errors
/// Those of the session.
pub(super) async fn is_like(session: &Session, relation: &Relation, table: &NewTable) -> Result<bool> {
    let name = format!("howdah_planned_{}", session.backend().pid);
    let planned = Relation { schema: relation.schema.clone(), name };
    let client = session.client();
    let making = format!("BEGIN; {}", super::create_sql(&planned, table));
    // Whatever keeps the planned one from being made leaves nothing that could be called the same.
    let made = client.batch_execute(&making).await.is_ok();
    let alike = match made {
        true => {
            let (one, other) = (quote_relation(relation), quote_relation(&planned));
            session
                .rows(
                    ALIKE_SQL,
                    &[(&one, Type::TEXT), (&other, Type::TEXT)],
                    "comparing the table with the plan",
                )
                .await
        }
        false => Ok(Vec::new()),
    };
    session.roll_back().await;
    Ok(alike?.first().is_some_and(|row| row.get(0)))
}

pub(super) fn made_otherwise(relation: &Relation) -> Error {
    let message = format!(
        "{relation} was made by others since this load was planned, with other columns or another primary key than planned"
    );
    Error::new(ErrorKind::Table, message)
        .with_sqlstate(sqlstate::DUPLICATE_TABLE)
        .with_hint("run the same command again: it is planned for the table that is there")
}

/// The actions of ALTER TABLE that add those of the columns that are not there, in the open transaction.
/// Where somebody adds one behind that look, the server refuses them with 42701 itself.
///
/// # Errors
/// Table with 42701, where one is there with another type; those of the session.
pub(super) async fn adding(
    session: &Session,
    relation: &Relation,
    columns: &[&NewColumn],
) -> Result<Vec<String>> {
    let table = quote_relation(relation);
    let mut actions = Vec::new();
    for column in columns {
        let (present, _) = type_of(session, &table, &column.name).await?;
        if present.is_empty() {
            actions.push(format!("ADD COLUMN {} {}", quote_ident(&column.name), column.type_name));
        } else if planned_type(session, &table, column).await? != present {
            return Err(added_otherwise(relation, column, &present));
        }
    }
    Ok(actions)
}

/// Its planned type as the server writes it; empty, where it cannot be added.
async fn planned_type(session: &Session, table: &str, column: &NewColumn) -> Result<String> {
    let name = format!("howdah_planned_{}", session.backend().pid);
    let adding = format!(
        "SAVEPOINT planned; ALTER TABLE {table} ADD COLUMN {} {}",
        quote_ident(&name),
        column.type_name
    );
    let added = session.client().batch_execute(&adding).await.is_ok();
    let planned =
        if added { type_of(session, table, &name).await.map(|(name, _)| name) } else { Ok(String::new()) };
    let back = session.client().batch_execute("ROLLBACK TO SAVEPOINT planned").await;
    back.map_err(|error| session_error(&error, "comparing a column with the plan"))?;
    planned
}

fn added_otherwise(relation: &Relation, column: &NewColumn, present: &str) -> Error {
    let message = format!(
        "column {} of {relation} was added by others since this load was planned, as {present}, not as {}",
        column.name, column.type_name
    );
    Error::new(ErrorKind::Table, message)
        .with_sqlstate(sqlstate::DUPLICATE_COLUMN)
        .with_hint("run the same command again: it is planned for the table as it is")
}
