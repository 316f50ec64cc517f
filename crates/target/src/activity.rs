//! What our sessions are doing, seen from another session, and ending one that is stuck.
//! Process numbers enter, wait events leave. No query text is read: it may hold what must not be shown.

use crate::error::session_error;
use crate::session::{Backend, Session};
use howdah_model::Result;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// One session at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Its process.
    pub pid: i32,
    /// `active`, `idle`, `idle in transaction` ...; empty where this is not for our role to see.
    pub state: String,
    /// How long it has been in this state.
    pub unchanged: Duration,
    /// `Type:Event` of `pg_stat_activity`; `CPU` when it is active and waits for nothing.
    pub wait: String,
}

/// The wait event of a session that waits for what the client sends.
pub const CLIENT_READ: &str = "Client:ClientRead";

impl Activity {
    /// It has nothing to do until the client says something.
    pub fn waits_for_client(&self) -> bool {
        self.state.starts_with("idle") || (self.state == "active" && self.wait == CLIENT_READ)
    }
}

/// The function behind `pg_stat_activity`, without that view's joins: a look into shared memory per process.
const SAMPLE_SQL: &str = "\
    SELECT a.pid, coalesce(a.state, ''), \
           coalesce(a.wait_event_type || ':' || a.wait_event, \
                    CASE a.state WHEN 'active' THEN 'CPU' ELSE '' END), \
           coalesce(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.state_change), 0) \
    FROM pg_catalog.unnest($1) AS p(pid), LATERAL pg_catalog.pg_stat_get_activity(p.pid) AS a";

/// Looks at these processes once; those that are gone are left out.
///
/// # Errors
/// Those of the session.
pub async fn sample(session: &Session, pids: &[i32]) -> Result<Vec<Activity>> {
    let rows = session
        .query_of_sessions(SAMPLE_SQL, &[(&pids, Type::INT4_ARRAY)])
        .await
        .map_err(|error| session_error(&error, "sampling pg_stat_activity"))?;
    let activity = |row: &Row| Activity {
        pid: row.get(0),
        state: row.get(1),
        wait: row.get(2),
        unchanged: Duration::try_from_secs_f64(row.get(3)).unwrap_or_default(),
    };
    Ok(rows.iter().map(activity).collect())
}

/// The start time is compared as the session computed it when it connected.
const TERMINATE_SQL: &str = "\
    SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_get_activity($1) AS a \
    WHERE (pg_catalog.date_part('epoch', a.backend_start) * 1000000::pg_catalog.float8)::pg_catalog.int8 = $2";

/// Ends exactly this server process: one that took over its number is left alone. True if it was
/// there. Needed when a connection broke unnoticed by the server: its process may sit on a claim for
/// as long as TCP lets it, and a retry of the chunk would wait for it.
///
/// # Errors
/// Those of the session; ending one's own role's sessions needs no privilege.
pub async fn terminate(session: &Session, backend: Backend) -> Result<bool> {
    let rows = session
        .query_as_login(TERMINATE_SQL, &[(&backend.pid, Type::INT4), (&backend.start_us, Type::INT8)])
        .await
        .map_err(|error| session_error(&error, "ending a stuck session"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

const LIVES_SQL: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity($1) AS a \
    WHERE (pg_catalog.date_part('epoch', a.backend_start) * 1000000::pg_catalog.float8)::pg_catalog.int8 = $2)";

/// Exactly this server process is still there. A crash of the server ends all of them, and a failover leaves
/// them on the other server: where one lives, everything is there that has been committed since it began.
///
/// # Errors
/// Those of the session.
pub async fn lives(session: &Session, backend: Backend) -> Result<bool> {
    let rows = session
        .query_as_login(LIVES_SQL, &[(&backend.pid, Type::INT4), (&backend.start_us, Type::INT8)])
        .await
        .map_err(|error| session_error(&error, "looking for a session of this load"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
