//! The end of a load: the barrier that makes every earlier asynchronous commit durable.

use crate::error::session_error;
use crate::session::Session;
use howdah_model::Result;

/// Makes the present transaction's COMMIT wait until its WAL is flushed. A stronger or merely different
/// setting of the user (`remote_apply`, `local` ...) is kept; only `off` waits for nothing. One row.
pub(crate) const DURABLE_SQL: &str = "\
    SELECT pg_catalog.set_config('synchronous_commit', \
        CASE s WHEN 'off' THEN 'on' ELSE s END, true) \
    FROM pg_catalog.current_setting('synchronous_commit') AS s";

/// Commits a transaction synchronously, on any session of the same server. When it returns, every commit
/// that was answered before it began is on disk.
///
/// Why: WAL is one sequence. A commit answered earlier has put its record before this one's, and a
/// synchronous commit flushes WAL up to its own record: "the server's WAL is flushed in order" is what makes
/// a crash after asynchronous commits lose only the most recent ones (PostgreSQL documentation, "Asynchronous
/// Commit", <https://www.postgresql.org/docs/current/wal-async-commit.html>). A transaction that writes no
/// WAL commits without flushing (xact.c, `RecordTransactionCommit`), having a transaction number does not
/// change that; so a transactional logical message is written, which needs no table, no `wal_level` and no
/// privilege.
///
/// What it cannot tell is whether the server crashed and restarted before it: the ledger must be read
/// back afterwards.
///
/// # Errors
/// Those of the session.
pub async fn barrier(session: &Session) -> Result<()> {
    let sql = format!(
        "BEGIN; {DURABLE_SQL}; SELECT pg_catalog.pg_logical_emit_message(true, 'howdah', ''); COMMIT"
    );
    session
        .client()
        .batch_execute(&sql)
        .await
        .map_err(|error| session_error(&error, "waiting for the barrier"))
}
