//! Records of a staging table that have the same key: found, told by their places, or all but one deleted.

use super::table::{Into, KeyColumn};
use super::{AGAIN, DOING};
use crate::build::{lift_sql, with_lift};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{OWN_TABLESPACE_SQL, quote_ident, quote_relation};
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

/// Of a row among all in the order of the key's index, and of the place that is named so: it has the key of
/// the one before, by the index's own equality, which may be another than that of the type (which PARTITION
/// BY would go by). And the order, as window `w`.
fn repeats(into: &Into, place: &str) -> (String, String) {
    let same = |KeyColumn { name, operators, .. }: &KeyColumn| {
        let name = quote_ident(name);
        format!("pg_catalog.lag({name}) OVER w {} {name}", operators[0])
    };
    let by = |column: &KeyColumn| format!("{} USING {}", quote_ident(&column.name), column.operators[2]);
    let same: Vec<String> = into.key.iter().map(same).collect();
    let by: Vec<String> = into.key.iter().map(by).collect();
    (same.join(" AND "), format!("WINDOW w AS (ORDER BY {}, {place})", by.join(", ")))
}

/// The earliest record that repeats a key; `None` if there is none.
///
/// # Errors
/// Those of the session.
pub async fn earliest(session: &Session, into: &Into) -> Result<Option<Twins>> {
    let Some(place) = into.staging.place.as_ref().map(|place| quote_ident(&place.name)) else {
        return Ok(None);
    };
    let (is_again, window) = repeats(into, &place);
    let sql = format!(
        "SELECT before, {place}, pg_catalog.count(*) OVER () FROM ( \
             SELECT {place}, CASE WHEN {is_again} THEN pg_catalog.lag({place}) OVER w END AS before FROM {} {window}) AS twins \
         WHERE before IS NOT NULL ORDER BY {place} LIMIT 1",
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
    let (is_again, window) = repeats(into, &if keep_last { format!("{place} DESC") } else { place });
    let sql = format!(
        "{}; DELETE FROM {staging} AS s USING (SELECT ctid AS tid, {is_again} AS is_again FROM {staging} {window}) AS d \
         WHERE s.ctid = d.tid AND d.is_again",
        lift_sql(session.server_version())
    );
    match session.client().batch_execute(&sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(refused(session, &error).await),
    }
}

async fn refused(session: &Session, error: &tokio_postgres::Error) -> Error {
    with_lift(session, session_error(error, DOING), AGAIN).await
}
