//! A ledger that was copied without its rows, by `pg_dump --schema-only` say: its tables are there, and it
//! knows of nothing.

use super::Ledger;
use super::plain::COLUMNS;
use super::schema::LEDGER_TABLES;
use crate::session::Session;
use howdah_model::Result;
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

/// Tables of these names with their columns, in the words of [`COLUMNS`].
const FOUND_SQL: &str = "\
    SELECT c.relname::pg_catalog.text, \
           pg_catalog.string_agg(a.attname::pg_catalog.text || ' '::pg_catalog.text || t.typname::pg_catalog.text, ', ' ORDER BY a.attnum) \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname = ANY ($2) GROUP BY c.relname";

/// Most ledgers do without it.
const MADE_WHEN_NEEDED: &str = "unlogged_mark";

impl Ledger {
    /// All tables of this version are there, and none has a row. Asked in a transaction in which the tables
    /// were looked at.
    ///
    /// # Errors
    /// Those of the session.
    pub(super) async fn is_empty_copy(&self, session: &Session) -> Result<bool> {
        let names: Vec<&str> = LEDGER_TABLES.to_vec();
        let doing = "looking at the tables of the ledger";
        let asked = [(&self.schema as _, Type::TEXT), (&names as _, Type::TEXT_ARRAY)];
        let found = self.ask(session, FOUND_SQL, &asked, doing).await?;
        let found: BTreeMap<&str, &str> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        let is_as_made = |(table, columns): &(&str, &str)| match found.get(table) {
            Some(found) => found == columns,
            None => *table == MADE_WHEN_NEEDED,
        };
        if !COLUMNS.iter().all(is_as_made) {
            return Ok(false);
        }
        let filled = found.keys().map(|table| format!("EXISTS (SELECT FROM {}.{table})", self.quoted));
        let sql = format!("SELECT {}", filled.collect::<Vec<_>>().join(" OR "));
        let rows = self.ask(session, &sql, &[], doing).await?;
        Ok(rows.first().is_some_and(|row| !row.get::<_, bool>(0)))
    }
}
