//! How to reach the server a load goes to: what the user named, or the embedded server.

use howdah_model::Result;
use howdah_target::embedded::Embedded;
use howdah_target::session::{Conninfo, Session};
use std::path::PathBuf;

/// A server. Holds secrets; [`Connection::display`] shows it without them.
#[derive(Clone)]
pub struct Connection {
    conninfo: Conninfo,
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
            Some(conninfo) => Ok(Connection { conninfo }),
            None => {
                let started = Embedded::locate_with(site_packages)?.ensure_started()?;
                let conninfo = Conninfo::resolve(Some(&started.conninfo))?;
                conninfo.map(|conninfo| Connection { conninfo }).ok_or_else(|| {
                    howdah_model::Error::new(
                        howdah_model::ErrorKind::Internal,
                        "the embedded server has no address",
                    )
                })
            }
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    /// `ConnectionRefused` for good, `ConnectionLost` when it may pass.
    pub async fn open(&self) -> Result<Session> {
        Session::connect(&self.conninfo).await
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
