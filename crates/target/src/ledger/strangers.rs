//! Whose the ledger is. Who owns its schema or tables decides what loads read from it, journal statements
//! among that, and may have code of triggers run by whoever writes there. Who may write its tables decides
//! the same, but for the triggers.

use super::Ledger;
use super::schema::LEDGER_TABLES;
use crate::membership::{acts_as_sql, is_of_group_sql};
use crate::session::Session;
use crate::sql::quote_ident;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// By whom roles are looked at.
pub(super) const SEEN_BY_SQL: &str = "\
    JOIN pg_catalog.pg_roles me ON me.rolname = CURRENT_USER \
    JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()";

/// Whether the role of this OID, 0 being PUBLIC, is none of these: a superuser, one that acts as the owner of
/// the database or as this role, or a group that this role is of.
pub(super) fn is_stranger_sql(role_oid: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM pg_catalog.pg_roles near WHERE near.oid = {role_oid} \
            AND (near.rolsuper OR near.rolname = 'pg_database_owner' OR {} OR {} OR {}))",
        acts_as_sql("near.oid", "d.datdba"),
        acts_as_sql("near.oid", "me.oid"),
        is_of_group_sql("me", "near")
    )
}

/// The strangers that own schema `$1` or its tables `$2`, but for those that could have changed each of the
/// tables `$3` (whose triggers and defaults a load runs anyway).
const OWNERS_SQL: &str = "\
    SELECT DISTINCT pg_catalog.pg_get_userbyid(o.oid)::pg_catalog.text \
    FROM pg_catalog.pg_namespace n @seen_by@ \
    CROSS JOIN LATERAL (SELECT n.nspowner \
        UNION ALL SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2)) AS o (oid) \
    WHERE n.nspname = $1 AND @is_stranger@ \
      AND NOT coalesce((SELECT pg_catalog.bool_and(@acts_as@) \
                        FROM pg_catalog.pg_class t WHERE t.oid = ANY ($3)), false) \
    ORDER BY 1";

/// The strangers that own schema `$1` or its tables `$2`, or to whom it is granted to write those of its
/// tables that are among `$3` (or to have code run by who writes there, which comes to the same), and who
/// come into the schema, which default privileges on tables do not let them; NULL is PUBLIC. Predefined roles
/// (below 16384) are none that anybody is, and come in everywhere.
const WRITERS_SQL: &str = "\
    SELECT DISTINCT (SELECT r.rolname::pg_catalog.text FROM pg_catalog.pg_roles r WHERE r.oid = o.oid) \
    FROM pg_catalog.pg_namespace n @seen_by@ \
    CROSS JOIN LATERAL (SELECT n.nspowner \
        UNION ALL SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2) \
        UNION ALL SELECT acl.grantee FROM pg_catalog.pg_class c \
                  CROSS JOIN LATERAL (SELECT c.relacl UNION ALL SELECT a.attacl FROM pg_catalog.pg_attribute a \
                                      WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL) AS given (acl) \
                  CROSS JOIN LATERAL pg_catalog.aclexplode(given.acl) AS acl \
                  WHERE c.relnamespace = n.oid AND c.relname = ANY ($3) \
                    AND acl.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRIGGER', 'REFERENCES') \
                    AND EXISTS (SELECT FROM pg_catalog.pg_roles r \
                                WHERE r.oid >= 16384::pg_catalog.oid AND (acl.grantee = 0::pg_catalog.oid OR pg_catalog.pg_has_role(r.oid, acl.grantee, 'MEMBER')) \
                                  AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE') AND @is_strange_role@)) AS o (oid) \
    WHERE n.nspname = $1 AND @is_stranger@ ORDER BY 1";

/// What of a ledger is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Believed {
    /// What loads have changed, and how it is put back.
    Journal,
    /// That, and what jobs were told to do.
    Jobs,
}

impl Believed {
    fn tables(self) -> &'static [&'static str] {
        match self {
            Believed::Journal => &["undo", "tuned"],
            Believed::Jobs => &["job", "undo", "tuned"],
        }
    }
}

impl Ledger {
    /// The roles, quoted, that the ledger belongs to, if it is there, and that have no say over this role,
    /// the database or all of these tables.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn strangers(&self, session: &Session, table_oids: &[u32]) -> Result<Vec<String>> {
        let asked: [(&(dyn ToSql + Sync), Type); 3] = [
            (&self.schema, Type::TEXT),
            (&&LEDGER_TABLES[..], Type::TEXT_ARRAY),
            (&table_oids, Type::OID_ARRAY),
        ];
        let sql = OWNERS_SQL
            .replace("@seen_by@", SEEN_BY_SQL)
            .replace("@is_stranger@", &is_stranger_sql("o.oid"))
            .replace("@acts_as@", &acts_as_sql("o.oid", "t.relowner"));
        let rows = self.ask(session, &sql, &asked, "looking whose the ledger is").await?;
        Ok(rows.iter().map(|row| quote_ident(row.get(0))).collect())
    }

    /// The roles, quoted, for whose sake this is not believed: those that could have written it, unless the
    /// user has named the ledger.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn doubted_for(&self, session: &Session, believed: Believed) -> Result<Vec<String>> {
        if self.named { Ok(Vec::new()) } else { self.writers(session, believed).await }
    }

    /// The roles, quoted, that could have written this into the ledger, if it is there, and that have no say
    /// over this role or the database.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn writers(&self, session: &Session, believed: Believed) -> Result<Vec<String>> {
        let asked: [(&(dyn ToSql + Sync), Type); 3] = [
            (&self.schema, Type::TEXT),
            (&&LEDGER_TABLES[..], Type::TEXT_ARRAY),
            (&believed.tables(), Type::TEXT_ARRAY),
        ];
        let sql = WRITERS_SQL
            .replace("@seen_by@", SEEN_BY_SQL)
            .replace("@is_stranger@", &is_stranger_sql("o.oid"))
            .replace("@is_strange_role@", &is_stranger_sql("r.oid"));
        let rows = self.ask(session, &sql, &asked, "looking who may write the ledger").await?;
        let name = |row: &tokio_postgres::Row| {
            row.get::<_, Option<String>>(0).map_or_else(|| "PUBLIC".to_owned(), |name| quote_ident(&name))
        };
        Ok(rows.iter().map(name).collect())
    }
}
