//! Whose the ledger is. Who owns its schema or tables decides what loads read from it, journal statements among that, and may have code
//! of triggers run by whoever writes there.

use super::Ledger;
use super::schema::LEDGER_TABLES;
use crate::session::Session;
use crate::sql::quote_ident;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// The owners of schema `$1` and of its tables `$2`, but for superusers, those of the database, those that could act as this role, those
/// that could have changed each of the tables `$3` (whose triggers and defaults a load runs anyway), and roles that this one is a member
/// of: a superuser is that of none. Before PostgreSQL 16 a role that logs in can make any other a member of itself, which then says
/// nothing.
const STRANGERS_SQL: &str = "\
    SELECT DISTINCT owner.rolname::pg_catalog.text \
    FROM pg_catalog.pg_namespace n \
    CROSS JOIN LATERAL (SELECT n.nspowner \
        UNION ALL SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2)) AS o (oid) \
    JOIN pg_catalog.pg_roles owner ON owner.oid = o.oid \
    JOIN pg_catalog.pg_roles me ON me.rolname = CURRENT_USER \
    JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
    WHERE n.nspname = $1 AND NOT owner.rolsuper AND owner.rolname <> 'pg_database_owner' \
      AND NOT pg_catalog.pg_has_role(owner.oid, d.datdba, 'MEMBER') \
      AND NOT pg_catalog.pg_has_role(owner.oid, me.oid, 'MEMBER') \
      AND NOT (NOT me.rolsuper AND pg_catalog.pg_has_role(me.oid, owner.oid, 'MEMBER') \
               AND (NOT owner.rolcanlogin OR pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000)) \
      AND NOT coalesce((SELECT pg_catalog.bool_and(pg_catalog.pg_has_role(owner.oid, t.relowner, 'MEMBER')) \
                        FROM pg_catalog.pg_class t WHERE t.oid = ANY ($3)), false) \
    ORDER BY 1";

impl Ledger {
    /// The roles, quoted, that the ledger belongs to, if it is there, and that have no say over this role, the database or all of these
    /// tables.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn strangers(&self, session: &Session, table_oids: &[u32]) -> Result<Vec<String>> {
        let asked: [(&(dyn ToSql + Sync), Type); 3] = [
            (&self.schema, Type::TEXT),
            (&&LEDGER_TABLES[..], Type::TEXT_ARRAY),
            (&table_oids, Type::OID_ARRAY),
        ];
        let rows = session.client().query_typed(STRANGERS_SQL, &asked).await;
        let rows = rows.map_err(|error| self.error(&error, "looking whose the ledger is"))?;
        Ok(rows.iter().map(|row| quote_ident(row.get(0))).collect())
    }
}
