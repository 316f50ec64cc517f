//! The ledger's times tell what came before what: whether a table was emptied before rows came or behind
//! them. So they must not go back where the server's clock does, as after a wrong start, a restored machine,
//! or a failover to a standby whose clock is behind.

use super::Ledger;
use crate::session::Session;
use howdah_model::Result;
use std::time::Duration;

/// By how much the latest time is ahead of the server's clock, in milliseconds. Chunks of a job that has
/// ended are not later than its end.
const AHEAD_SQL: &str = "\
    SELECT (pg_catalog.date_part('epoch', latest - pg_catalog.clock_timestamp()) * 1000)::pg_catalog.int8 \
    FROM (SELECT greatest((SELECT pg_catalog.max(greatest(j.started_at, j.finished_at)) FROM @schema@.job j), \
                          (SELECT pg_catalog.max(s.done_at) FROM @schema@.step s), \
                          (SELECT pg_catalog.max(c.stored_at) FROM @schema@.chunk c \
                           WHERE c.job_id IN (SELECT j.job_id FROM @schema@.job j WHERE j.status <> 'done')))) AS t (latest)";

/// All of them alike, so that they keep their order.
const MOVE_SQL: &str = "\
    WITH j AS (UPDATE @schema@.job SET started_at = started_at - @by@, finished_at = finished_at - @by@), \
         s AS (UPDATE @schema@.step SET done_at = done_at - @by@) \
    UPDATE @schema@.chunk SET stored_at = stored_at - @by@";

impl Ledger {
    /// By how much the ledger's latest time is ahead of the server's clock. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn is_ahead_by(&self, session: &Session) -> Result<Option<Duration>> {
        let sql = AHEAD_SQL.replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &[], "reading the ledger's times").await?;
        let ahead_ms = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
        Ok(ahead_ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0).map(Duration::from_millis))
    }

    /// Takes so much, and a moment more, off all times of the ledger: what comes now is later than all of
    /// them.
    ///
    /// # Errors
    /// Those of the session, as where the role may not change the ledger's rows.
    pub async fn move_back(&self, session: &Session, by: Duration) -> Result<()> {
        let by = format!("pg_catalog.make_interval(secs => {})", by.as_secs_f64() + 0.001);
        let sql = MOVE_SQL.replace("@schema@", &self.quoted).replace("@by@", &by);
        let moved = session.client().batch_execute(&sql).await;
        moved.map_err(|error| {
            self.error(&error, "moving the ledger's times back, which are ahead of the server's clock")
        })
    }
}
