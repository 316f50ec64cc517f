//! Sessions with the server: who to connect to ([`Conninfo`]), an open connection ([`Session`]), what tables
//! look like ([`catalog`]). Connection descriptions enter, typed facts and a usable client leave.
//! In the order it happens: surroundings and words -> service, pgpass, hosts -> conninfo -> tls -> connect.

mod as_login;
pub(crate) mod bounds;
pub mod catalog;
pub mod column_types;
mod connect;
pub mod connection_limit;
mod conninfo;
pub mod elsewhere;
pub mod encoding;
pub mod foreign;
mod greeting;
mod hosts;
mod infos;
mod keyword;
mod ledger_seen;
#[doc(hidden)]
pub mod outside;
pub mod partitions;
mod password_command;
mod peer;
mod pgpass;
mod pooler;
pub mod rights;
mod service;
mod settings;
mod signers;
mod surroundings;
mod tls;
pub mod toast;
mod verifier;
mod words;

pub use crate::error::FEWER_SESSIONS;
use crate::error::session_error;
pub use connect::PASSWORD_MISSING;
pub use conninfo::Conninfo;
use futures_util::FutureExt;
use futures_util::future::join_all;
use howdah_model::{Result, ValueSettings};
use infos::Infos;
pub(crate) use infos::{INFOS_MAX, Info};
pub(crate) use ledger_seen::LedgerSeen;
pub use settings::{data_directory, show};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

/// One server process, told apart from a later one that reuses its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Backend {
    /// Process number.
    pub pid: i32,
    /// `backend_start` in microseconds since 1970, as the server computes it.
    pub start_us: i64,
}

/// An open connection. Dropping it ends the connection, and with it an open transaction.
pub struct Session {
    client: Client,
    driver: JoinHandle<()>,
    infos: Arc<Infos>,
    server_version: u32,
    backend: Backend,
    read_only: Option<String>,
    of_standby: bool,
    /// The role in force is not the one that has logged in.
    acts_as_other: bool,
    /// The role in force sees the sessions of all roles.
    sees_all: bool,
    ledger_seen: Arc<LedgerSeen>,
    /// How it read values when it was opened.
    own_values: ValueSettings,
    /// And now.
    values: ValueSettings,
    /// Statements that are prepared, by text.
    prepared: HashMap<String, Statement>,
    /// What has made the temporary table that `verify` reads chunks into, as long as it is known to be there.
    read_into: Option<String>,
    /// A transaction is under way; if its future is dropped, this stays set and the session is spent.
    busy: bool,
}

impl Session {
    /// Opens a session with the first host that will do, its time-outs off, its other settings untouched.
    ///
    /// # Errors
    /// ConnectionLost (may pass), ConnectionRefused (will not), Usage (bad certificates or keys), Server
    /// with an SQLSTATE for the rest ("too many connections" is 53300).
    pub async fn connect(info: &Conninfo) -> Result<Session> {
        connect::connect(info).await
    }

    fn new(
        client: Client,
        connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
        infos: Arc<Infos>,
    ) -> Session {
        let driver = tokio::spawn(async move {
            // Whatever ends the connection reaches the client as well, as a closed channel.
            let _ = connection.await;
        });
        let (server_version, backend) = (0, Backend::default());
        let (prepared, read_only, of_standby) = (HashMap::new(), None, false);
        Session {
            client,
            driver,
            infos,
            server_version,
            backend,
            read_only,
            of_standby,
            acts_as_other: false,
            sees_all: false,
            ledger_seen: Arc::default(),
            own_values: ValueSettings::new(),
            values: ValueSettings::new(),
            prepared,
            read_into: None,
            busy: false,
        }
    }

    /// `server_version_num`: 150018 for 15.18.
    pub fn server_version(&self) -> u32 {
        self.server_version
    }

    /// The server process behind the session.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Why the server took no rows when the session was opened, if it did not: what it is, in words.
    pub fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// It is a hot standby that takes no rows, and not a setting.
    pub fn is_of_standby(&self) -> bool {
        self.of_standby
    }

    /// The session is of no further use: the connection is gone, or a transaction was left in the middle.
    pub fn is_closed(&self) -> bool {
        self.busy || self.client.is_closed() || self.driver.is_finished()
    }

    /// How role, database and surroundings have it read values.
    pub fn own_values(&self) -> &ValueSettings {
        &self.own_values
    }

    /// How it reads values.
    pub fn values(&self) -> &ValueSettings {
        &self.values
    }

    /// From now on it reads values like this; what is not said of it as when it was opened.
    ///
    /// # Errors
    /// Server, where it does not know such a value; those of the connection.
    pub async fn read_values_as(&mut self, values: &ValueSettings) -> Result<()> {
        let mut wanted = self.own_values.clone();
        wanted.extend(values.clone());
        if let Some(sql) = settings::change_values_sql(&self.values, &wanted) {
            let changed = self.client.batch_execute(&sql).await;
            changed.map_err(|error| session_error(&error, "setting how values are read"))?;
            self.values = wanted;
        }
        Ok(())
    }

    pub(crate) fn ledger_seen(&self) -> &LedgerSeen {
        &self.ledger_seen
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The rows of one statement, in one round trip. `doing` completes "while ...".
    pub(crate) async fn rows(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
        doing: &str,
    ) -> Result<Vec<Row>> {
        self.client.query_typed(sql, parameters).await.map_err(|error| session_error(&error, doing))
    }

    /// The statement that gives the open transaction back the `search_path` that it has now.
    pub(crate) async fn same_path_sql(&self) -> Result<String> {
        let sql = "SELECT pg_catalog.format('SELECT pg_catalog.set_config(''search_path'', %L, true)', \
                                            pg_catalog.current_setting('search_path'))";
        let rows = self.rows(sql, &[], "reading the search_path").await?;
        Ok(rows.first().map_or_else(String::new, |row| row.get(0)))
    }

    /// Ends a transaction that is not that of a chunk. Best effort: a session that is gone has rolled back.
    pub async fn roll_back(&self) {
        let _ = self.client.batch_execute("ROLLBACK").await;
    }

    /// The same without waiting for the server's answer: what is sent next is behind it.
    pub(crate) fn roll_back_unheard(&self) {
        // It is sent when it is polled first.
        let _ = self.client.batch_execute("ROLLBACK").now_or_never();
    }

    /// What came of such a transaction; if it has failed, its block was still open, and is no more.
    pub(crate) async fn or_roll_back<T, E>(
        &self,
        done: std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        if done.is_err() {
            self.roll_back().await;
        }
        done
    }

    /// What the server tells besides its answers.
    pub(crate) fn infos(&self) -> &Infos {
        &self.infos
    }

    /// Marks the session spent and ends its connection; the server rolls back.
    pub fn abandon(&mut self) {
        self.busy = true;
        self.driver.abort();
    }

    pub(crate) fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    /// The statement that has made the table to read into, which counts as gone until it is given back.
    pub(crate) fn take_read_into(&mut self) -> Option<String> {
        self.read_into.take()
    }

    pub(crate) fn set_read_into(&mut self, made_by: String) {
        self.read_into = Some(made_by);
    }

    /// This statement has been prepared.
    pub(crate) fn has_prepared(&self, sql: &str) -> bool {
        self.prepared.contains_key(sql)
    }

    /// Prepares those of these statements that are not, once a session and in one flight. One that cannot be
    /// prepared tells why when it is run.
    pub(crate) async fn prepare_ahead(&mut self, statements: &[(&str, Vec<Type>)]) {
        let missing: Vec<_> = statements.iter().filter(|(sql, _)| !self.has_prepared(sql)).collect();
        let preparing = missing.iter().map(|(sql, types)| self.client.prepare_typed(sql, types));
        let prepared = join_all(preparing).await;
        for ((sql, _), statement) in missing.into_iter().zip(prepared) {
            if let Ok(statement) = statement {
                self.prepared.insert((*sql).to_owned(), statement);
            }
        }
    }

    /// The prepared form of a COPY statement; prepared once a session.
    pub(crate) async fn prepare_copy(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement =
            self.client.prepare(sql).await.map_err(|error| session_error(&error, "preparing COPY"))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The rows of a statement, in its prepared form if it has one.
    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
        match self.prepared.get(sql) {
            Some(statement) => self.client.query(statement, &values(parameters)).await,
            None => self.client.query_typed(sql, parameters).await,
        }
    }

    /// How many rows a statement has written, in its prepared form if it has one.
    pub(crate) async fn execute(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> std::result::Result<u64, tokio_postgres::Error> {
        match self.prepared.get(sql) {
            Some(statement) => self.client.execute(statement, &values(parameters)).await,
            None => self.client.execute_typed(sql, parameters).await,
        }
    }
}

fn values<'a>(parameters: &[(&'a (dyn ToSql + Sync), Type)]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|(value, _)| *value).collect()
}

impl Drop for Session {
    /// A session in good order says goodbye; one left in the middle is cut off, because its driver may be
    /// stuck in a write to a peer that is gone.
    fn drop(&mut self) {
        if self.busy {
            self.driver.abort();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("backend", &self.backend).finish_non_exhaustive()
    }
}
