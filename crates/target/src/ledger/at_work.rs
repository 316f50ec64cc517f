//! Sessions that are at work for a job, each with a mark that goes when the server process goes: an advisory
//! lock beside that of the job. After a kill -9 the server may go on with what it was sent, and nothing else
//! tells whose that is.

use super::Ledger;
use super::job_lock::{MARK_SEED, holders_sql};
use crate::error::session_error;
use crate::session::{Backend, Session};
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// Who holds a mark.
const MARKED_SQL: &str = "\
    SELECT a.pid, (pg_catalog.date_part('epoch', a.backend_start) * 1000000::pg_catalog.float8)::pg_catalog.int8 \
    FROM (SELECT DISTINCT l.pid FROM @holders@) l, \
         LATERAL pg_catalog.pg_stat_get_activity(l.pid) AS a ORDER BY a.pid";

impl Ledger {
    /// Marks the session as one that is at work for the job, until it ends. Whoever marks waits for nobody.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn mark_session(&self, session: &Session, job_id: &str) -> Result<()> {
        let sql = "SELECT pg_catalog.pg_advisory_lock_shared(pg_catalog.hashtextextended($1, $2))";
        let marked = session.client().query_typed(sql, &self.mark(job_id).typed()).await;
        marked.map(|_| ()).map_err(|error| session_error(&error, "marking the session"))
    }

    /// The server processes that are at work for the job, whether somebody waits for their answers or not.
    /// Those of other roles have no start time where this one may not see it, and are left out.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn at_work(&self, session: &Session, job_id: &str) -> Result<Vec<Backend>> {
        let sql = MARKED_SQL.replace("@holders@", &holders_sql("pg_catalog.hashtextextended($1, $2)"));
        let rows = session.query_of_sessions(&sql, &self.mark(job_id).typed()).await;
        let rows = rows.map_err(|error| session_error(&error, "looking who is at work for the job"))?;
        let backend = |row: &tokio_postgres::Row| {
            Some(Backend { pid: row.get(0), start_us: row.get::<_, Option<i64>>(1)? })
        };
        Ok(rows.iter().filter_map(backend).collect())
    }

    fn mark(&self, job_id: &str) -> Mark {
        Mark { name: format!("{}/{job_id}", self.schema()) }
    }
}

/// What a mark is made from.
struct Mark {
    name: String,
}

impl Mark {
    fn typed(&self) -> [(&(dyn ToSql + Sync), Type); 2] {
        [(&self.name, Type::TEXT), (&MARK_SEED, Type::INT8)]
    }
}
