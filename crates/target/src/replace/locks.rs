//! The locks of a swap. Whoever reads a table that is locked already waits while the next is waited for: so
//! all are taken first, for all together no longer than one may be waited for, and the next try begins with
//! the one that was not free, while nobody else waits.

use super::carry_sql::VIEWS_SQL;
use super::{Replacement, refused, rows, under};
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Relation, Result};
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

/// So long one may be waited for though the time is over: nobody holds it for long who inserts a row.
const LEAST: Duration = Duration::from_millis(100);

/// How the locks of a swap are taken, from one try to the next.
#[derive(Debug)]
pub struct Locks {
    pub(super) timeout_ms: u64,
    not_free: Mutex<Option<Relation>>,
}

/// How long locks are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until {
    end: Instant,
    least: Duration,
}

impl Until {
    /// The same for the next statement.
    pub(super) fn sql(self) -> String {
        let left = self.end.saturating_duration_since(Instant::now()).max(self.least);
        format!("SET LOCAL lock_timeout = {}", left.as_millis().max(1))
    }
}

/// One of them.
struct Lock<'a> {
    relation: Relation,
    sql: String,
    replacement: Replacement<'a>,
}

impl Locks {
    /// Of all, for no longer than this at a time.
    pub fn new(timeout_ms: u64) -> Locks {
        Locks { timeout_ms, not_free: Mutex::new(None) }
    }

    /// What the last try has waited for in vain.
    pub(super) fn not_free(&self) -> Option<Relation> {
        self.not_free.lock().clone()
    }

    /// Takes those of the old tables and of the views upon them. What is left of the time is for the tables
    /// that foreign keys refer to, which are locked when these go.
    pub(super) async fn take(
        &self,
        session: &Session,
        all: &[(Replacement<'_>, u64)],
        own_path: &str,
    ) -> Result<Until> {
        let mut locks = Vec::new();
        for (replacement, _) in all {
            let sql = format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", quote_relation(replacement.old));
            locks.push(Lock { relation: replacement.old.clone(), sql, replacement: *replacement });
        }
        for (replacement, _) in all {
            // LOCK TABLE would lock all tables of a view as well.
            for row in rows(session, *replacement, VIEWS_SQL).await? {
                let relation = Relation { schema: row.get(0), name: row.get(1) };
                locks.push(Lock { relation, sql: row.get(2), replacement: *replacement });
            }
        }
        let first = self.not_free();
        locks.sort_by_key(|lock| first.as_ref() != Some(&lock.relation));
        let timeout = Duration::from_millis(self.timeout_ms);
        let until = Until { end: Instant::now() + timeout, least: LEAST.min(timeout) };
        for Lock { relation, sql, replacement } in locks {
            let sql = format!("{}; {}", until.sql(), under(own_path, &sql));
            let Err(error) = session.client().batch_execute(&sql).await else {
                continue;
            };
            if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
                *self.not_free.lock() = Some(relation);
            }
            return Err(refused(&error, replacement.old));
        }
        // What fails from here on is not for its sake.
        *self.not_free.lock() = None;
        Ok(until)
    }
}
