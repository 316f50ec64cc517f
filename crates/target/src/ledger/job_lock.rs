//! The advisory lock of a job, by which others see that it is at work: loads hold it together, who puts back from outside has it
//! alone. It goes with its session, whatever becomes of the client.

use super::Ledger;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::Result;
use tokio_postgres::types::Type;

/// Keeps the keys of our locks apart from those of other programs: "howdah" in ASCII.
pub(super) const KEY_SEED: i64 = 0x686f_7764_6168;
/// Keeps marks of sessions apart from the locks of jobs.
pub(super) const MARK_SEED: i64 = KEY_SEED + 1;
/// And the turn of those that begin from both.
const TURN_SEED: i64 = KEY_SEED + 2;
/// Whoever has the turn asks the ledger a few questions.
const TURN_WITHIN_MS: u32 = 10_000;

/// What stands behind FROM to look who holds one of these keys, as `pg_locks l`: the server knows without being asked for the lock.
pub(super) fn holders_sql(keys: &str) -> String {
    format!(
        "pg_catalog.pg_locks l \
         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted \
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) \
           AND (l.classid::pg_catalog.int8 << 32) | l.objid::pg_catalog.int8 IN ({keys})"
    )
}

impl Ledger {
    /// Holds the job for as long as the session lives, beside other loads of it; false if somebody has it for himself,
    /// putting back what an earlier run has changed.
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

    /// Waits for the turn to begin: of those that ask what others load, and take part in that, one at a time does.
    ///
    /// # Errors
    /// Server with 55P03 when others have kept it for long, which may pass; those of the session.
    pub async fn take_turn(&self, session: &Session) -> Result<()> {
        // Sent together they are one transaction, which ends by itself, whatever becomes of it; the lock stays with the session.
        let turn = self.turn();
        let sql =
            format!("SET LOCAL lock_timeout = {TURN_WITHIN_MS}; SELECT pg_catalog.pg_advisory_lock({turn})");
        let taken = session.client().batch_execute(&sql).await;
        taken.map_err(|error| session_error(&error, "waiting for loads that begin"))
    }

    /// Gives the turn to the next.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn end_turn(&self, session: &Session) -> Result<()> {
        let sql = format!("SELECT pg_catalog.pg_advisory_unlock({})", self.turn());
        let ended = session.client().batch_execute(&sql).await;
        ended.map_err(|error| session_error(&error, "letting other loads begin"))
    }

    fn turn(&self) -> String {
        format!("pg_catalog.hashtextextended({}, {TURN_SEED})", quote_literal(&self.schema))
    }

    /// Takes the job for oneself for as long as the session lives; false while a load or somebody else is at work.
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
        let rows = session.client().query_typed(&sql, &[(&name, Type::TEXT)]).await;
        let rows = rows.map_err(|error| session_error(&error, "looking who holds the job"))?;
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
        let rows = session.client().query_typed(&sql, &[(&name, Type::TEXT)]).await;
        let rows = rows.map_err(|error| session_error(&error, "locking the job"))?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}
