//! How many sessions a role or a database may have at once, where that was limited (`CONNECTION LIMIT`).

use super::Session;
use howdah_model::Result;

/// A limit on sessions, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// As ALTER begins: `ROLE "loader"`.
    pub owner: String,
    /// How many it may have at once.
    pub sessions_max: i32,
}

/// Not enforced on superusers. PostgreSQL compares the role that has logged in.
const LIMITS_SQL: &str = "\
    SELECT pg_catalog.format('ROLE %I', rolname), rolconnlimit FROM pg_catalog.pg_roles \
    WHERE rolname = session_user AND NOT rolsuper AND rolconnlimit >= 0 \
    UNION ALL SELECT pg_catalog.format('DATABASE %I', datname), datconnlimit FROM pg_catalog.pg_database \
    WHERE datname = pg_catalog.current_database() AND datconnlimit >= 0 \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = session_user AND rolsuper) \
    ORDER BY 2 LIMIT 1";

/// The lowest limit that holds for sessions like this one.
///
/// # Errors
/// Those of the session.
pub async fn read(session: &Session) -> Result<Option<ConnectionLimit>> {
    let rows = session.rows(LIMITS_SQL, &[], "asking how many sessions there may be").await?;
    Ok(rows.first().map(|row| ConnectionLimit { owner: row.get(0), sessions_max: row.get(1) }))
}
