//! What the server answers by the role in force though it is about sessions, which belong to the role that
//! has logged in: when they began, what they wait for, and whether they may be ended. The two differ where a
//! role, a database or a pooler sets `role`.

use super::{Backend, Session, settings};
use crate::error::session_error;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

const OF_SESSION_SQL: &str = "\
    SELECT pid, (pg_catalog.date_part('epoch', backend_start) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 \
    FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

impl Session {
    /// The rows of a query about sessions, of this role or others, asked as the role in force where that may
    /// see all of them, else as the one that has logged in. The session must be in no transaction.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn query_of_sessions(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> std::result::Result<Vec<Row>, Error> {
        match self.sees_all {
            true => self.client.query_typed(sql, parameters).await,
            false => self.query_as_login(sql, parameters).await,
        }
    }

    /// The rows of a query, asked as the role that has logged in. The session must be in no transaction.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn query_as_login(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> std::result::Result<Vec<Row>, Error> {
        let query = self.client.query_typed(sql, parameters);
        if !self.acts_as_other {
            return query.await;
        }
        // Sent together: whoever gives this up at an await leaves no transaction open.
        let begin = self.client.batch_execute("BEGIN READ ONLY; SET LOCAL ROLE NONE");
        let (begun, rows, ended) = tokio::join!(biased; begin, query, self.client.batch_execute("COMMIT"));
        begun.and(ended).and(rows)
    }

    /// Keeps values out of the server's log where only the role that has logged in may; gives the server
    /// process behind the session.
    pub(super) async fn set_up_as_login(&self) -> Result<Backend> {
        let keep_out = settings::log_no_values_sql(self.server_version / 10_000);
        // One transaction, as all that is sent together.
        let kept_out = self.client.batch_execute(&format!("SET LOCAL ROLE NONE; {keep_out}")).await;
        kept_out.map_err(|error| session_error(&error, "setting up the session"))?;
        let rows = self.query_of_sessions(OF_SESSION_SQL, &[]).await;
        let rows = rows.map_err(|error| session_error(&error, "setting up the session"))?;
        let backend =
            |row: &Row| Backend { pid: row.get(0), start_us: row.get::<_, Option<i64>>(1).unwrap_or(0) };
        Ok(rows.first().map(backend).unwrap_or_default())
    }
}
