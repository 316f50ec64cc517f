//! One connection that is kept, for tests that ask hundreds of times: SQL and bytes enter, rows or the
//! server's error leave.

use crate::background::block_on;
use crate::database::{Row, text};
use bytes::Bytes;
use futures_util::SinkExt;
use std::pin::pin;
use std::sync::Arc;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// A session of its own. Dropped: closed.
pub struct Connection(Arc<Client>);

impl Connection {
    /// Connects; the conninfo says where.
    pub(crate) fn open(conninfo: String) -> Result<Connection, Error> {
        block_on(async move { Ok(Connection(Arc::new(connect(&conninfo).await?))) })
    }

    /// Whether the server or the network has ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Runs statements. Panics with the server's message.
    pub fn sql(&self, sql: &str) {
        self.rows(sql);
    }

    /// The rows of a query, values as text. Panics with the server's message.
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{sql}: {}", text(&error)))
    }

    /// The rows of a query that may fail.
    ///
    /// # Errors
    /// What the server or the connection said.
    pub fn try_rows(&self, sql: &str) -> Result<Vec<Row>, Error> {
        let (client, sql) = (Arc::clone(&self.0), sql.to_owned());
        block_on(async move {
            let messages = client.simple_query(&sql).await?;
            let rows = messages.into_iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
                }
                _ => None,
            });
            Ok(rows.collect())
        })
    }

    /// Runs one `COPY ... FROM STDIN` with these bytes: the oracle. Returns the rows the server counted.
    ///
    /// # Errors
    /// What the server said; [`Error::as_db_error`] has SQLSTATE and the context with its line.
    pub fn copy_in(&self, copy_sql: &str, bytes: impl Into<Bytes>) -> Result<u64, Error> {
        let (client, sql, bytes) = (Arc::clone(&self.0), copy_sql.to_owned(), bytes.into());
        block_on(async move {
            let sink = client.copy_in(&sql).await?;
            let mut sink = pin!(sink);
            sink.send(bytes).await?;
            sink.finish().await
        })
    }
}

/// A client whose connection runs in the background.
pub(crate) async fn connect(conninfo: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
