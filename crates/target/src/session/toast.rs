//! How the server compresses wide values, and whether it could do so faster.

use super::Session;
use crate::error::session_error;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The method, as `default_toast_compression` names it.
pub const LZ4: &str = "lz4";

/// What ALTER TABLE does to columns of these names so that they keep values as the columns `$2` of the table
/// `$1` do. Before PostgreSQL 14 there is no `attcompression`.
const KEPT_SQL: &str = "\
    SELECT pg_catalog.format('ALTER %I SET STORAGE %s', a.attname, CASE a.attstorage \
               WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END), a.attname, 1 \
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
      AND a.attstorage <> t.typstorage \
    UNION ALL \
    SELECT pg_catalog.format('ALTER %I SET COMPRESSION %s', a.attname, m.name), a.attname, 2 \
    FROM pg_catalog.pg_attribute a \
    JOIN (VALUES ('p', 'pglz'), ('l', 'lz4')) AS m (code, name) \
        ON m.code = pg_catalog.to_jsonb(a) ->> 'attcompression'::pg_catalog.text \
    WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
    ORDER BY 2, 3";

/// How these columns of a table keep wide values, where that is not as their types would: what ALTER TABLE
/// takes. The server does not look again at values that come from a table, so that where they wait they have
/// to be kept as where they go.
pub(crate) async fn kept_as(
    client: &Client,
    table: &str,
    columns: &[String],
) -> std::result::Result<Vec<String>, Error> {
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&table, Type::TEXT), (&columns, Type::TEXT_ARRAY)];
    let rows = client.query_typed(KEPT_SQL, &parameters).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The statement behind another that gives a table's columns what [`kept_as`] has told; empty if that is
/// nothing.
pub(crate) fn keep_so_sql(table: &str, kept: &[String]) -> String {
    if kept.is_empty() { String::new() } else { format!("; ALTER TABLE {table} {}", kept.join(", ")) }
}

/// The server has lz4 (since version 14, where it was built with it), would not use it by itself, and nobody
/// has set how it compresses: not in its configuration, for the database, for the role or for the session.
///
/// # Errors
/// Those of the session.
pub async fn may_use_lz4(session: &Session) -> Result<bool> {
    let sql = "SELECT FROM pg_catalog.pg_settings \
               WHERE name = 'default_toast_compression' AND source = 'default' AND setting <> 'lz4' \
                 AND 'lz4' = ANY (enumvals)";
    let rows = session.client().query_typed(sql, &[]).await;
    Ok(!rows.map_err(|error| session_error(&error, "reading how wide values are compressed"))?.is_empty())
}
