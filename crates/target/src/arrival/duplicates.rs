//! Records of a staging table that have the same key: found, told by their places, or all but one deleted.

use super::table::{Into, KeyColumn};
use super::{AGAIN, DOING};
use crate::build::{lift_sql, with_lift};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{OWN_TABLESPACE_SQL, quote_columns, quote_ident, quote_relation};
use howdah_model::{Error, Result};
use tokio_postgres::error::SqlState;

/// Places of two records of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twins {
    /// The earlier record.
    pub first: i64,
    /// The later one: the earliest of all that repeat a key.
    pub second: i64,
    /// How many records repeat a key.
    pub repeated: u64,
}

/// Indexes the records by their key, as the table has it; false if some have the same key. Whoever brings
/// them into the table finds those of a part by it, in the order of the key.
///
/// # Errors
/// Those of the session.
pub async fn index_key(session: &Session, into: &Into) -> Result<bool> {
    let column = |column: &KeyColumn| format!("{} {}", quote_ident(&column.name), column.operator_class);
    let columns: Vec<String> = into.key.iter().map(column).collect();
    let sql = format!(
        "{OWN_TABLESPACE_SQL}; {}; CREATE UNIQUE INDEX IF NOT EXISTS {} ON {} ({})",
        lift_sql(session.server_version()),
        quote_ident(&format!("{}_key", into.staging.relation.name)),
        quote_relation(&into.staging.relation),
        columns.join(", ")
    );
    let mut built = session.client().batch_execute(&sql).await;
    // Another run of the job has built it in the same moment, and is done with that.
    if built.as_ref().is_err_and(is_of_catalog) {
        built = session.client().batch_execute(&sql).await;
    }
    match built {
        Ok(()) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && !is_of_catalog(&error) => {
            Ok(false)
        }
        Err(error) => Err(refused(session, &error).await),
    }
}

/// What is there twice is the index's name, not a key of the records.
fn is_of_catalog(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db| db.schema() == Some("pg_catalog"))
}

/// The earliest record that repeats a key; `None` if there is none.
///
/// # Errors
/// Those of the session.
pub async fn earliest(session: &Session, into: &Into) -> Result<Option<Twins>> {
    let Some(place) = into.staging.place.as_ref().map(|place| quote_ident(&place.name)) else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT before, {place}, pg_catalog.count(*) OVER () FROM ( \
             SELECT {place}, pg_catalog.lag({place}) OVER (PARTITION BY {} ORDER BY {place}) AS before FROM {}) AS twins \
         WHERE before IS NOT NULL ORDER BY {place} LIMIT 1",
        quote_columns(&into.key_names()),
        quote_relation(&into.staging.relation)
    );
    let client = session.client();
    let asking = async {
        client.batch_execute(&format!("BEGIN READ ONLY; {}", lift_sql(session.server_version()))).await?;
        client.query_typed(&sql, &[]).await
    };
    let rows = asking.await;
    session.roll_back().await;
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return Err(refused(session, &error).await),
    };
    Ok(rows.first().map(|row| Twins {
        first: row.get(0),
        second: row.get(1),
        repeated: row.get::<_, i64>(2).unsigned_abs(),
    }))
}

/// Deletes all records of each key but the first or the last. To do it again changes nothing.
///
/// # Errors
/// Those of the session.
pub async fn thin_out(session: &Session, into: &Into, keep_last: bool) -> Result<()> {
    let Some(place) = into.staging.place.as_ref().map(|place| quote_ident(&place.name)) else {
        return Ok(());
    };
    let staging = quote_relation(&into.staging.relation);
    let sql = format!(
        "{}; DELETE FROM {staging} AS s USING ( \
             SELECT ctid AS tid, pg_catalog.row_number() OVER (PARTITION BY {} ORDER BY {place}{}) AS no FROM {staging}) AS d \
         WHERE s.ctid = d.tid AND d.no > 1",
        lift_sql(session.server_version()),
        quote_columns(&into.key_names()),
        if keep_last { " DESC" } else { "" }
    );
    match session.client().batch_execute(&sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(refused(session, &error).await),
    }
}

async fn refused(session: &Session, error: &tokio_postgres::Error) -> Error {
    with_lift(session, session_error(error, DOING), AGAIN).await
}
