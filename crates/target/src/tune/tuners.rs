//! Whose loads tune the server at present. ALTER SYSTEM is for all databases, and a ledger knows the loads of
//! its own alone: two that did not know of each other would each take for "before" what the other has set,
//! and the last would leave that for good.
//!
//! The mark is an advisory lock, which goes with the session; every database sees those of the others.

use crate::error::session_error;
use crate::ledger::Ledger;
use crate::membership::acts_as_sql;
use crate::session::Session;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// "tune" in ASCII: the first of the two numbers of the lock. The second tells the ledger.
const CLASS: i32 = 0x7475_6e65;

/// Any role may take such a lock: it counts where the role, or one that it may become, may change settings of
/// the server.
const OTHER_SQL: &str = "\
    SELECT coalesce(d.datname::pg_catalog.text, '') FROM pg_catalog.pg_locks l \
    JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) a ON true \
    LEFT JOIN pg_catalog.pg_database d ON d.oid = l.database \
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.pid IS NOT NULL AND l.classid::pg_catalog.int8 = $2::pg_catalog.int8 \
      AND NOT (d.datname IS NOT DISTINCT FROM pg_catalog.current_database() \
               AND l.objid::pg_catalog.int8 = pg_catalog.hashtext($1)::pg_catalog.int8 & 4294967295) \
      AND EXISTS (SELECT FROM pg_catalog.pg_roles r \
                  WHERE (r.rolsuper@may@) AND @acts_as@) \
    ORDER BY 1 LIMIT 1";

/// From PostgreSQL 15 on it is a right that can be granted.
const MAY_SQL: &str = " OR EXISTS (SELECT FROM pg_catalog.pg_parameter_acl p \
    WHERE pg_catalog.has_parameter_privilege(r.oid, p.parname, 'ALTER SYSTEM'))";

/// Marks the session as that of a load that tunes the server, until it ends.
///
/// # Errors
/// Those of the session.
pub async fn mark(session: &Session, ledger: &Ledger) -> Result<()> {
    let sql = "SELECT pg_catalog.pg_advisory_lock_shared($2, pg_catalog.hashtext($1))";
    let marked = session.client().query_typed(sql, &of(&ledger.schema())).await;
    marked.map(|_| ()).map_err(|error| session_error(&error, "marking the session"))
}

/// The database of another ledger of whose loads one tunes the server now.
///
/// # Errors
/// Those of the session.
pub async fn other(session: &Session, ledger: &Ledger) -> Result<Option<String>> {
    let may = if session.server_version() >= 150_000 { MAY_SQL } else { "" };
    let sql = OTHER_SQL.replace("@may@", may).replace("@acts_as@", &acts_as_sql("a.usesysid", "r.oid"));
    let rows = session.rows(&sql, &of(&ledger.schema()), "looking who tunes the server").await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// For people: who it is.
pub fn says(database: &str) -> String {
    format!("a load of another ledger tunes the server, in database {database}")
}

fn of<'a>(schema: &'a &str) -> [(&'a (dyn ToSql + Sync), Type); 2] {
    [(schema, Type::TEXT), (&CLASS, Type::INT4)]
}
