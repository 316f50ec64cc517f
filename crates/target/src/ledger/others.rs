//! Other ledgers of the same database: their loads are unknown to this one, and may have changed the same
//! table.
//!
//! Nobody has chosen them: any role that may make a schema can make tables of these names, whose types,
//! views, policies or indexes bring code along that the server would run for whoever reads them. So the
//! catalog is asked first. A ledger counts where roles own it that could have changed the table themselves:
//! what their code does it does in triggers and defaults of that table as well, and nobody else can have
//! noted a change that was made.

use super::Ledger;
use crate::membership::acts_as_sql;
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// Schemas but the one named `$1` with a ledger that this role may read, owned with its tables by superusers
/// or roles that act as the owner of the table `$2`. These are plain tables whose columns, which
/// [`Ledger::holds_changes`] reads, are of the server's own types: reading them calls nothing.
const LEDGERS_SQL: &str = "\
    SELECT n.nspname::pg_catalog.text FROM pg_catalog.pg_namespace n \
    JOIN pg_catalog.pg_class t ON t.oid = pg_catalog.to_regclass($2)::pg_catalog.oid \
    WHERE n.nspname <> $1 AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
      AND @owns@ \
      AND EXISTS (SELECT FROM pg_catalog.pg_class m WHERE m.relnamespace = n.oid AND m.relname = 'migration' AND m.relkind = 'r') \
      AND NOT EXISTS ( \
          SELECT FROM (VALUES ('undo', 'kind', 'text'), ('undo', 'undone_at', 'timestamptz'), ('undo', 'table_oid', 'oid'), \
                              ('undo', 'schema_name', 'text'), ('undo', 'table_name', 'text'), ('undo', 'ledger_oid', 'oid'), \
                              ('tuned', 'undone_at', 'timestamptz'), ('tuned', 'table_oid', 'oid'), ('tuned', 'schema_name', 'text'), \
                              ('tuned', 'table_name', 'text'), ('tuned', 'ledger_oid', 'oid')) AS read(name, field, type) \
          WHERE NOT EXISTS ( \
              SELECT FROM pg_catalog.pg_class c \
              JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped AND a.attgenerated = '' \
              JOIN pg_catalog.pg_type y ON y.oid = a.atttypid \
              JOIN pg_catalog.pg_namespace s ON s.oid = y.typnamespace AND s.nspname = 'pg_catalog' \
              WHERE c.relnamespace = n.oid AND c.relname = read.name AND c.relkind = 'r' AND c.relpersistence <> 't' \
                AND NOT c.relrowsecurity AND NOT c.relhasrules \
                AND a.attname = read.field AND y.typname = read.type \
                AND @has_table@ \
                AND pg_catalog.has_table_privilege(c.oid, 'SELECT') \
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)))) \
    ORDER BY 1";

impl Ledger {
    /// Another ledger whose loads have changed the table, or settings of it, and not put that back yet.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn changed_by_another(
        &self,
        session: &Session,
        relation: &Relation,
    ) -> Result<Option<Ledger>> {
        let asked: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.schema, Type::TEXT), (&quote_relation(relation), Type::TEXT)];
        let sql = LEDGERS_SQL
            .replace("@owns@", &acts_as_sql("n.nspowner", "t.relowner"))
            .replace("@has_table@", &acts_as_sql("c.relowner", "t.relowner"));
        let rows = self.ask(session, &sql, &asked, "looking for other ledgers").await?;
        for row in rows {
            let other = Ledger::new(row.get(0));
            if other.holds_changes(session, relation).await? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}
