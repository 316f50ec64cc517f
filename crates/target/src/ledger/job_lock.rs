//! The advisory lock of a job, by which others see that it is at work: loads hold it together, who puts back
//! from outside has it alone. It goes with its session, whatever becomes of the client.

use super::Ledger;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// Keeps the keys of our locks apart from those of other programs: "howdah" in ASCII.
pub(super) const KEY_SEED: i64 = 0x686f_7764_6168;
/// Keeps marks of sessions apart from the locks of jobs.
pub(super) const MARK_SEED: i64 = KEY_SEED + 1;
/// And the turn of those that begin from both.
const TURN_SEED: i64 = KEY_SEED + 2;
/// Whoever has the turn asks the ledger a few questions.
const TURN_WITHIN_MS: u32 = 10_000;
/// In its turn a load waits for locks of others no longer, and its client, which may have been stopped, is
/// waited for no longer: all who begin wait for it.
pub const LOCKS_IN_TURN_MS: u64 = 3_000;
pub(crate) const IDLE_IN_TURN_MS: u32 = 10_000;
/// The first that ends sessions that are idle in no transaction.
const IDLE_TIMEOUT_SINCE: u32 = 140_000;

/// What stands behind FROM to look who holds one of these keys, as `pg_locks l`: the server knows without
/// being asked for the lock.
pub(super) fn holders_sql(keys: &str) -> String {
    format!(
        "pg_catalog.pg_locks l \
         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted \
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) \
           AND (l.classid::pg_catalog.int8 << 32) | l.objid::pg_catalog.int8 IN ({keys})"
    )
}

/// How long the session waits for locks, and the server for its client; 0: as long as it takes.
fn limits_sql(session: &Session, locks_ms: u64, idle_ms: u32) -> String {
    let limits =
        format!("SET lock_timeout = {locks_ms}; SET idle_in_transaction_session_timeout = {idle_ms}");
    if session.server_version() < IDLE_TIMEOUT_SINCE {
        return limits;
    }
    format!("{limits}; SET idle_session_timeout = {idle_ms}")
}

/// Waits for an advisory lock that others wait for too, and takes it for the session; false when they have
/// kept it for long. Until it is given up the session waits for locks no longer than [`LOCKS_IN_TURN_MS`],
/// and the server for the client no longer than [`IDLE_IN_TURN_MS`].
pub(super) async fn take_briefly(
    session: &Session,
    key: &str,
) -> std::result::Result<bool, tokio_postgres::Error> {
    // Sent together they are one transaction, which ends by itself, whatever becomes of it; the lock stays
    // with the session.
    let limits = limits_sql(session, LOCKS_IN_TURN_MS, IDLE_IN_TURN_MS);
    let sql =
        format!("SET lock_timeout = {TURN_WITHIN_MS}; SELECT pg_catalog.pg_advisory_lock({key}); {limits}");
    match session.client().batch_execute(&sql).await {
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(false),
        taken => taken.map(|()| true),
    }
}

/// Gives it up.
pub(super) async fn give_up(session: &Session, key: &str) -> std::result::Result<(), tokio_postgres::Error> {
    let limits = limits_sql(session, 0, 0);
    session.client().batch_execute(&format!("SELECT pg_catalog.pg_advisory_unlock({key}); {limits}")).await
}

/// The error where it is kept. Best effort: there is an error to tell already.
pub(super) async fn is_kept(session: &Session, key: &str, others: &str, lock: &str) -> Error {
    let sql = format!("SELECT l.pid FROM {}", holders_sql(key));
    let rows = session.client().query_typed(&sql, &[]).await.unwrap_or_default();
    let pid = rows.first().and_then(|row| row.get::<_, Option<i32>>(0));
    let by = pid.map(|pid| format!(", now by process {pid}")).unwrap_or_default();
    let seconds = TURN_WITHIN_MS / 1000;
    let message =
        format!("other loads of this ledger {others}: the {lock} was not free within {seconds} seconds{by}");
    Error::new(ErrorKind::Server, message)
        .with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
        .with_hint("look at that process in pg_stat_activity; then run the same command again")
}

impl Ledger {
    /// Holds the job for as long as the session lives, beside other loads of it; false if somebody has it for
    /// himself, putting back what an earlier run has changed.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn hold_job(&self, session: &Session, job_id: &str) -> Result<bool> {
        self.lock_job(session, job_id, "pg_try_advisory_lock_shared").await
    }

    /// Ceases to hold the job.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn cease_to_hold_job(&self, session: &Session, job_id: &str) -> Result<()> {
        self.lock_job(session, job_id, "pg_advisory_unlock_shared").await.map(|_| ())
    }

    /// Waits for the turn to begin: of those that ask what others load, and take part in that, one at a time
    /// does. Until it is ended the session waits for locks no longer than [`LOCKS_IN_TURN_MS`].
    ///
    /// # Errors
    /// Server with 55P03 when others have kept it for long, which may pass; those of the session.
    pub async fn take_turn(&self, session: &Session) -> Result<()> {
        let turn = self.turn();
        match take_briefly(session, &turn).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(is_kept(session, &turn, "are beginning", "turn to begin").await),
            Err(error) => Err(session_error(&error, "waiting for loads that begin")),
        }
    }

    /// Gives the turn to the next.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn end_turn(&self, session: &Session) -> Result<()> {
        let ended = give_up(session, &self.turn()).await;
        ended.map_err(|error| session_error(&error, "letting other loads begin"))
    }

    fn turn(&self) -> String {
        format!("pg_catalog.hashtextextended({}, {TURN_SEED})", quote_literal(&self.schema))
    }

    /// Takes the job for oneself for as long as the session lives; false while a load or somebody else is at
    /// work.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn take_job(&self, session: &Session, job_id: &str) -> Result<bool> {
        self.lock_job(session, job_id, "pg_try_advisory_lock").await
    }

    /// Ceases to hold the job, and takes it for oneself unless another run of it is still at work.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn hold_job_alone(&self, session: &Session, job_id: &str) -> Result<bool> {
        self.lock_job(session, job_id, "pg_advisory_unlock_shared").await?;
        self.take_job(session, job_id).await
    }

    /// Gives up what [`Ledger::take_job`] took.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn leave_job(&self, session: &Session, job_id: &str) -> Result<()> {
        self.lock_job(session, job_id, "pg_advisory_unlock").await.map(|_| ())
    }

    /// Somebody holds the job or has it for himself.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn is_job_held(&self, session: &Session, job_id: &str) -> Result<bool> {
        let holders = holders_sql(&format!("pg_catalog.hashtextextended($1, {KEY_SEED})"));
        let sql = format!("SELECT EXISTS (SELECT FROM {holders})");
        let name = format!("{}/{job_id}", self.schema);
        let rows = session.rows(&sql, &[(&name, Type::TEXT)], "looking who holds the job").await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Somebody holds the job, or a session is at work for it that nobody may wait for any more.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn is_worked_on(&self, session: &Session, job_id: &str) -> Result<bool> {
        let key = |seed: i64| format!("pg_catalog.hashtextextended($1, {seed})");
        let holders = holders_sql(&format!("{}, {}", key(KEY_SEED), key(MARK_SEED)));
        let sql = format!("SELECT EXISTS (SELECT FROM {holders})");
        let name = format!("{}/{job_id}", self.schema);
        let rows = session.client().query_typed(&sql, &[(&name, Type::TEXT)]).await;
        let rows = rows.map_err(|error| session_error(&error, "looking who is at work for the job"))?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The condition that sessions hold the job besides the own one and that of this process.
    pub(super) fn held_by_others_sql(&self, job_id: &str, holder_pid: Option<i32>) -> String {
        let name = quote_literal(&format!("{}/{job_id}", self.schema));
        let holders = holders_sql(&format!("pg_catalog.hashtextextended({name}, {KEY_SEED})"));
        let holder_pid = holder_pid.unwrap_or_default();
        format!("EXISTS (SELECT FROM {holders} AND l.pid NOT IN (pg_catalog.pg_backend_pid(), {holder_pid}))")
    }

    async fn lock_job(&self, session: &Session, job_id: &str, function: &str) -> Result<bool> {
        let sql = format!("SELECT pg_catalog.{function}(pg_catalog.hashtextextended($1, {KEY_SEED}))");
        let name = format!("{}/{job_id}", self.schema);
        let rows = session.rows(&sql, &[(&name, Type::TEXT)], "locking the job").await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}
