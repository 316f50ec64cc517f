//! The borders by which rows of a staging table are cut into parts, in the comment of that table: the sample that has told them is
//! another one when something has written the table anew (VACUUM FULL, CLUSTER), and parts that are done at different times must
//! meet. They are values of its rows, and are gone with it.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// What the comment begins with.
const PREFIX: &str = "howdah: borders of its parts: ";

/// A setting from which the statement takes them: in its text they would come into the server's log.
const SETTING: &str = "howdah.borders";

/// Those that an earlier run has kept.
pub(super) async fn kept(session: &Session, staging: &Relation) -> Result<Option<Vec<String>>> {
    let sql = "SELECT pg_catalog.obj_description(pg_catalog.to_regclass($1)::pg_catalog.oid, 'pg_class')";
    let rows = session.client().query_typed(sql, &[(&quote_relation(staging), Type::TEXT)]).await;
    let rows = rows.map_err(|error| session_error(&error, "reading how the rows are cut into parts"))?;
    let comment = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
    Ok(comment.and_then(|comment| serde_json::from_str(comment.strip_prefix(PREFIX)?).ok()))
}

/// Keeps them before the first part comes. A role that may not use PL/pgSQL does without: then they are the same as long as the table
/// is.
pub(super) async fn keep(session: &Session, staging: &Relation, borders: &[String]) -> Result<()> {
    let fail =
        |error: tokio_postgres::Error| session_error(&error, "keeping how the rows are cut into parts");
    let client = session.client();
    // Strings: serialising cannot fail.
    let comment = format!("{PREFIX}{}", serde_json::to_string(borders).unwrap_or_default());
    client.batch_execute("BEGIN").await.map_err(fail)?;
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&SETTING, Type::TEXT), (&comment, Type::TEXT)];
    let set = client.query_typed("SELECT pg_catalog.set_config($1, $2, true)", &parameters).await;
    set.map_err(fail)?;
    let body = format!(
        "BEGIN EXECUTE pg_catalog.format('COMMENT ON TABLE %s IS %L', {}, pg_catalog.current_setting({})); END",
        quote_literal(&quote_relation(staging)),
        quote_literal(SETTING)
    );
    match client.batch_execute(&format!("DO LANGUAGE plpgsql {}; COMMIT", quote_literal(&body))).await {
        Err(error) if error.as_db_error().is_some() => client.batch_execute("ROLLBACK").await.map_err(fail),
        done => done.map_err(fail),
    }
}
