//! The borders by which rows of a staging table are cut into parts, in a table beside it: the sample that has
//! told them is another one when something has written the staging table anew (VACUUM FULL, CLUSTER), and
//! parts that are done at different times must meet. They are values of its rows: they are for the owner's
//! eyes alone, as the rows are (which the comment of a table is not), and go with them. The server writes
//! them down itself, so that its log of statements has none.

use super::AGAIN;
use crate::build::{lift_sql, with_lift};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_relation;
use crate::staging;
use howdah_model::{Relation, Result, sqlstate};

/// What its name begins with, in the place of what that of the staging table begins with.
const PREFIX: &str = "borders";

/// The table beside this one, if that is a staging table.
pub(crate) fn table(staging: &Relation) -> Option<Relation> {
    let rest = staging.name.strip_prefix(staging::PREFIX)?;
    Some(Relation { schema: staging.schema.clone(), name: format!("{PREFIX}{rest}") })
}

/// Makes it. The row with the number 0 says that the borders are known, however few there are.
pub(crate) fn make_sql(borders: &Relation) -> String {
    // Heap and identity are as the staging table has them.
    let name = quote_relation(borders);
    format!(
        "CREATE TABLE {name} (no integer NOT NULL, border text) USING heap; ALTER TABLE {name} REPLICA IDENTITY FULL"
    )
}

/// The borders that an earlier run has kept, or else those that this statement tells: `no`, from 1, and
/// `border`. Without the table, beside a staging table of an earlier version, they are told each time, and
/// are the same as long as nobody writes that anew.
pub(super) async fn kept_or_told(
    session: &Session,
    staging: &Relation,
    told_sql: &str,
) -> Result<Vec<String>> {
    let client = session.client();
    let fail =
        |error: tokio_postgres::Error| session_error(&error, "keeping how the rows are cut into parts");
    let told_in_order = format!("SELECT t.border FROM ({told_sql}) t ORDER BY t.no");
    let Some(borders) = table(staging) else { return Ok(Vec::new()) };
    let name = quote_relation(&borders);
    let mut sql = format!("SELECT border FROM {name} WHERE no > 0 ORDER BY no");
    let lift = lift_sql(session.server_version());
    let keep = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {lift}; LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE; \
         INSERT INTO {name} (no, border) \
             SELECT n.no, n.border FROM (SELECT 0 AS no, NULL::pg_catalog.text AS border \
                 UNION ALL SELECT t.no, t.border FROM ({told_sql}) t) n \
             WHERE NOT EXISTS (SELECT FROM {name}); COMMIT"
    );
    if let Err(error) = client.batch_execute(&keep).await {
        client.batch_execute("ROLLBACK").await.map_err(fail)?;
        if error.code().is_none_or(|code| code.code() != sqlstate::UNDEFINED_TABLE) {
            return Err(with_lift(session, fail(error), AGAIN).await);
        }
        sql = told_in_order;
    }
    let asking = async {
        client.batch_execute(&format!("BEGIN READ ONLY; {lift}")).await?;
        client.query_typed(&sql, &[]).await
    };
    let rows = asking.await;
    // Best effort: a session that is gone has rolled back.
    let _ = client.batch_execute("ROLLBACK").await;
    match rows {
        Ok(rows) => Ok(rows.iter().map(|row| row.get(0)).collect()),
        Err(error) => Err(with_lift(session, fail(error), AGAIN).await),
    }
}
