//! Other ledgers of the same database: their loads are unknown to this one, and may have changed the same table.

use super::Ledger;
use crate::session::Session;
use howdah_model::{Relation, Result};
use tokio_postgres::types::Type;

/// Schemas with a ledger that this role may read, but the one named `$1`. An older one, which lacks a column that is asked for, is
/// left alone until its next load has renewed it.
const LEDGERS_SQL: &str = "\
    SELECT n.nspname::pg_catalog.text FROM pg_catalog.pg_namespace n \
    WHERE n.nspname <> $1 AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
      AND EXISTS (SELECT FROM pg_catalog.pg_class m WHERE m.relnamespace = n.oid AND m.relname = 'migration' AND m.relkind = 'r') \
      AND 2 = (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'ledger_oid' \
               WHERE c.relnamespace = n.oid AND c.relname IN ('undo', 'tuned') AND c.relkind = 'r' \
                 AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) \
    ORDER BY 1";

impl Ledger {
    /// Another ledger whose loads have changed the table, or settings of it, and not put that back yet.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn changed_by_another(&self, session: &Session, relation: &Relation) -> Result<Option<Ledger>> {
        let rows = session.client().query_typed(LEDGERS_SQL, &[(&self.schema, Type::TEXT)]).await;
        let rows = rows.map_err(|error| self.error(&error, "looking for other ledgers"))?;
        for row in rows {
            let other = Ledger::new(row.get(0));
            if other.holds_changes(session, relation).await? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}
