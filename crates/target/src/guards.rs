//! What a load looks out for on the server while it runs: room for connections, replicas and slots that fall
//! behind, and sessions of others that wait for it. Nothing is changed, and no query text is read.

use crate::error::session_error;
use crate::session::rights::{refusal, who};
use crate::session::{Backend, Session};
use crate::sql::{quote_ident, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

/// A replica, or a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// `application_name`, which is the standby's name where it has one.
    pub name: String,
    /// The process that sends WAL to it.
    pub sender: i32,
    /// WAL that it has not replayed.
    pub behind_bytes: u64,
    /// How long it took to replay what it has replayed last.
    pub behind_ms: u64,
    /// When it spoke last, by its own clock, which may be another than the primary's: microseconds.
    pub replied_at_us: i64,
}

/// A replication slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// Somebody reads from it.
    pub active: bool,
    /// WAL that is kept for it.
    pub held_bytes: u64,
    /// WAL until it is lost, where there is a limit (`max_slot_wal_keep_size`).
    pub until_lost_bytes: Option<u64>,
    /// That limit.
    pub keep_bytes: Option<u64>,
}

/// The first eight digits of a WAL file's name. A server that takes another's place begins a timeline; one
/// that crashed goes on with its own.
const TIMELINE_SQL: &str = "\
    SELECT pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) \
    WHERE NOT pg_catalog.pg_is_in_recovery()";

/// Which timeline the server writes; `None` where it does not say.
pub async fn timeline(session: &Session) -> Option<String> {
    let rows = session.rows(TIMELINE_SQL, &[], "asking for the timeline").await.ok()?;
    rows.first()?.get(0)
}

/// The processes of ours that are still there.
const OURS_SQL: &str = "\
    ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS o(pid, start_us), \
    LATERAL pg_catalog.pg_stat_get_activity(o.pid) AS a \
    WHERE (pg_catalog.date_part('epoch', a.backend_start) * 1000000::pg_catalog.float8)::pg_catalog.int8 = o.start_us";

/// Parallel workers and autovacuum count too, though they take no connection: that errs on the side of
/// others.
const ROOM_SQL: &str = "\
    SELECT least( \
        pg_catalog.current_setting('max_connections')::pg_catalog.int8 \
          - pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int8 \
          - coalesce(pg_catalog.current_setting('reserved_connections', true)::pg_catalog.int8, 0) \
          - (SELECT pg_catalog.sum(pg_catalog.pg_stat_get_db_numbackends(d.oid)) FROM pg_catalog.pg_database d), \
        (SELECT CASE WHEN d.datconnlimit < 0 THEN 1000000 \
                     ELSE d.datconnlimit - pg_catalog.pg_stat_get_db_numbackends(d.oid) END \
         FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))::pg_catalog.int8";

/// How many connections the server has room for: these of ours, and those that nobody has; without those kept
/// for superusers.
///
/// # Errors
/// Those of the session.
pub async fn room(session: &Session, ours: &[Backend]) -> Result<i64> {
    let sql = format!("{ROOM_SQL} + (SELECT pg_catalog.count(*) FROM {OURS_SQL})");
    let rows = query_of_ours(session, &sql, ours).await;
    let rows = rows.map_err(|error| session_error(&error, "counting connections"))?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// The database's own tablespace is 0 to those that are in it.
const TABLESPACES_SQL: &str = concat!(
    tree_of!("pg_catalog.to_regclass(asked.name)::pg_catalog.oid FROM pg_catalog.unnest($1) AS asked (name)"),
    ", used (oid) AS ( \
        SELECT c.reltablespace FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
        UNION SELECT x.reltablespace FROM tree JOIN pg_catalog.pg_index i ON i.indrelid = tree.oid \
        JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid) \
    SELECT s.spcname::pg_catalog.text, pg_catalog.pg_tablespace_location(s.oid) \
    FROM pg_catalog.pg_tablespace s \
    JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
    WHERE s.oid IN (SELECT coalesce(nullif(used.oid, 0::pg_catalog.oid), d.dattablespace) FROM used) \
       OR $2 AND s.spcname = pg_catalog.current_setting('default_tablespace') \
       OR $2 AND s.oid = d.dattablespace AND pg_catalog.current_setting('default_tablespace') = '' \
    ORDER BY s.spcname"
);

/// The tablespaces, and where they are, of these tables, their partitions and their indexes, as far as they
/// are there; with `makes_tables` that of new tables too. Those that the server came with are nowhere else
/// than its data: `''`.
///
/// # Errors
/// Those of the session.
pub async fn tablespaces(
    session: &Session,
    tables: &[&Relation],
    makes_tables: bool,
) -> Result<Vec<(String, String)>> {
    let names: Vec<String> = tables.iter().map(|table| quote_relation(table)).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&names, Type::TEXT_ARRAY), (&makes_tables, Type::BOOL)];
    let rows = session.rows(TABLESPACES_SQL, &parameters, "looking where the tables are stored").await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Whether this role may see how far replicas are.
///
/// # Errors
/// Those of the session.
pub async fn sees_replicas(session: &Session) -> Result<bool> {
    let sql = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')";
    let rows = session.query_of_sessions(sql, &[]).await;
    let rows = rows.map_err(|error| session_error(&error, "reading what the role may see"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Refuses where this role may not see how far replicas are.
///
/// # Errors
/// Table with SQLSTATE 42501 and what to grant; those of the session.
pub async fn expect_sight_of_replicas(session: &Session) -> Result<()> {
    if sees_replicas(session).await? {
        return Ok(());
    }
    let role = who(session).await?.role;
    let message = format!("--max-replica-lag: role {role} may not see how far replicas are");
    Err(refusal(message).with_hint(format!(
        "a superuser can run GRANT pg_monitor TO {}; or leave the option out",
        quote_ident(&role)
    )))
}

const REPLICAS_SQL: &str = "\
    SELECT coalesce(nullif(application_name, ''), client_addr::text, 'a replica'), pid, \
           greatest(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn), 0)::pg_catalog.int8, \
           (1000::pg_catalog.float8 * coalesce(pg_catalog.date_part('epoch', replay_lag), 0))::pg_catalog.int8, \
           (1000000::pg_catalog.float8 * coalesce(pg_catalog.date_part('epoch', reply_time), 0))::pg_catalog.int8 \
    FROM pg_catalog.pg_stat_replication WHERE replay_lsn IS NOT NULL AND state IN ('streaming', 'catchup')";

/// The replicas that are connected.
///
/// # Errors
/// Those of the session.
pub async fn replicas(session: &Session) -> Result<Vec<Replica>> {
    let rows = session.query_of_sessions(REPLICAS_SQL, &[]).await;
    let rows = rows.map_err(|error| session_error(&error, "looking at replicas"))?;
    let replica = |row: &Row| Replica {
        name: row.get(0),
        sender: row.get(1),
        behind_bytes: unsigned(row.get(2)),
        behind_ms: unsigned(row.get(3)),
        replied_at_us: row.get(4),
    };
    Ok(rows.iter().map(replica).collect())
}

const SLOTS_SQL: &str = "\
    SELECT slot_name::text, active, \
           greatest(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn), 0)::pg_catalog.int8, \
           safe_wal_size, \
           (SELECT CASE WHEN s.setting::pg_catalog.int8 >= 0 THEN s.setting::pg_catalog.int8 * 1048576 END \
            FROM pg_catalog.pg_settings s WHERE s.name = 'max_slot_wal_keep_size') \
    FROM pg_catalog.pg_replication_slots WHERE restart_lsn IS NOT NULL AND NOT temporary";

/// The slots that keep WAL.
///
/// # Errors
/// Those of the session.
pub async fn slots(session: &Session) -> Result<Vec<Slot>> {
    let rows = session.rows(SLOTS_SQL, &[], "looking at replication slots").await?;
    let slot = |row: &Row| Slot {
        name: row.get(0),
        active: row.get(1),
        held_bytes: unsigned(row.get(2)),
        until_lost_bytes: row.get::<_, Option<i64>>(3).map(unsigned),
        keep_bytes: row.get::<_, Option<i64>>(4).map(unsigned),
    };
    Ok(rows.iter().map(slot).collect())
}

/// `pg_stat_archiver` counts since its last reset; a failure counts until a file has been archived after it.
const ARCHIVER_SQL: &str = "\
    SELECT pg_catalog.date_trunc('second', last_failed_time)::pg_catalog.text FROM pg_catalog.pg_stat_archiver \
    WHERE pg_catalog.current_setting('archive_mode') <> 'off' \
      AND last_failed_time > coalesce(last_archived_time, '-infinity')";

/// Since when nothing of the WAL could be archived, in the session's format and time zone; none where it
/// could, or where no archive is kept.
///
/// # Errors
/// Those of the session.
pub async fn archiver_fails_since(session: &Session) -> Result<Option<String>> {
    let rows = session.rows(ARCHIVER_SQL, &[], "looking at the archiver of WAL").await?;
    Ok(rows.first().map(|row| row.get(0)))
}

async fn query_of_ours(session: &Session, sql: &str, ours: &[Backend]) -> Result<Vec<Row>, Error> {
    let pids: Vec<i32> = ours.iter().map(|backend| backend.pid).collect();
    let starts: Vec<i64> = ours.iter().map(|backend| backend.start_us).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&pids, Type::INT4_ARRAY), (&starts, Type::INT8_ARRAY)];
    session.query_of_sessions(sql, &parameters).await
}

/// `pg_blocking_pids` takes the lock manager's locks for a moment: it is asked for those alone that wait.
const WAITING_SQL: &str = "\
    WITH ours AS (SELECT coalesce(pg_catalog.array_agg(a.pid), '{}') AS pids FROM @ours@) \
    SELECT w.pid FROM (SELECT DISTINCT l.pid FROM pg_catalog.pg_locks l WHERE NOT l.granted) w, ours \
    WHERE w.pid <> ALL (ours.pids) AND pg_catalog.pg_blocking_pids(w.pid) OPERATOR(pg_catalog.&&) ours.pids";

/// Processes of others that wait for locks which these hold, or for which these wait before them.
///
/// # Errors
/// Those of the session.
pub async fn waiting(session: &Session, ours: &[Backend]) -> Result<Vec<i32>> {
    let rows = query_of_ours(session, &WAITING_SQL.replace("@ours@", OURS_SQL), ours).await;
    let rows = rows.map_err(|error| session_error(&error, "looking for sessions that wait"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
