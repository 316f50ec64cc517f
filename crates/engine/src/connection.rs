//! How to reach the server a load goes to: what the user named, or the embedded server.

use howdah_model::{Error, ErrorKind, Result};
use howdah_target::activity;
use howdah_target::embedded::Embedded;
use howdah_target::session::{Backend, Conninfo, Session};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// `connect_timeout` waits for ever unless it is set, and then a network that stands still would never end
/// a load that is to give up after `--retry-for`. Slow authentication takes seconds, several hosts some more.
const OPEN_WITHIN: Duration = Duration::from_secs(60);

/// A server. Holds secrets; [`Connection::display`] shows it without them.
#[derive(Clone)]
pub struct Connection {
    conninfo: Conninfo,
    embedded: bool,
    /// Server processes whose connection broke. The server may not know that, and they may hold locks and claims
    /// for as long as TCP lets them.
    lost: Arc<Mutex<Vec<Backend>>>,
}

impl Connection {
    /// `to` is a URL or conninfo string; libpq's environment and files complete it. When nothing names a
    /// server at all, the embedded one is started and used. Blocks while it starts.
    ///
    /// # Errors
    /// `Usage` for a string that libpq would not take, `Local` when the embedded server cannot be started.
    pub fn resolve(to: Option<&str>) -> Result<Connection> {
        Connection::resolve_with(to, &[])
    }

    /// Like [`Connection::resolve`], looking for the embedded server's programs in these `site-packages`
    /// folders first: code that runs inside Python knows them, and cannot tell them from its executable.
    ///
    /// # Errors
    /// As for [`Connection::resolve`].
    pub fn resolve_with(to: Option<&str>, site_packages: &[PathBuf]) -> Result<Connection> {
        match Conninfo::resolve(to)? {
            Some(conninfo) => Ok(Connection::new(conninfo, false)),
            None => {
                let started = Embedded::locate_with(site_packages)?.ensure_started()?;
                let conninfo = Conninfo::resolve(Some(&started.conninfo))?;
                conninfo
                    .map(|conninfo| Connection::new(conninfo, true))
                    .ok_or_else(|| Error::new(ErrorKind::Internal, "the embedded server has no address"))
            }
        }
    }

    fn new(conninfo: Conninfo, embedded: bool) -> Connection {
        Connection { conninfo, embedded, lost: Arc::default() }
    }

    /// Opens a session, and ends what is left of those that were lost.
    ///
    /// # Errors
    /// `ConnectionRefused` for good, `ConnectionLost` when it may pass.
    pub async fn open(&self) -> Result<Session> {
        let session = self.open_within(OPEN_WITHIN).await?;
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        for (no, backend) in lost.iter().enumerate() {
            if let Err(error) = activity::terminate(&session, *backend).await {
                lost[no..].iter().for_each(|backend| self.lose(*backend));
                return Err(error);
            }
        }
        Ok(session)
    }

    /// The connection to this server process broke: it is to be ended before a new session waits for it.
    pub(crate) fn lose(&self, backend: Backend) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).push(backend);
    }

    async fn open_within(&self, limit: Duration) -> Result<Session> {
        let opened = tokio::time::timeout(limit, Session::connect(&self.conninfo)).await;
        opened.unwrap_or_else(|_| {
            let (seconds, server) = (limit.as_secs(), self.conninfo.display());
            Err(Error::new(ErrorKind::ConnectionLost, format!("no answer from {server} within {seconds} s")))
        })
    }

    /// Nothing named a server, so it is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.embedded
    }

    /// The server's CPUs, where it runs on this machine.
    pub fn server_cpus(&self) -> Option<u32> {
        let cpus = std::thread::available_parallelism().ok()?;
        self.conninfo.is_local().then(|| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
    }

    /// The encoding that PGCLIENTENCODING or the conninfo names: as with psql, files are in it unless told.
    pub fn client_encoding(&self) -> Option<&str> {
        self.conninfo.client_encoding().filter(|name| *name != "auto")
    }

    /// What the user should know about the connection's files, such as a password file others can read.
    pub fn warnings(&self) -> &[String] {
        self.conninfo.warnings()
    }

    /// For people: no password.
    pub fn display(&self) -> String {
        self.conninfo.display()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let to = format!("host=127.0.0.1 port={port} user=x dbname=x sslmode=disable password=secret");
        let connection = Connection::resolve(Some(&to)).unwrap();
        let error = connection.open_within(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert!(!error.message().contains("secret"), "{error}");
    }
}
