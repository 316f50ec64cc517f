//! A pgbouncer before a server.

use crate::database::Database;
use crate::place::{account, free_port, give, scratch};
use crate::server::Server;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start before the test fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// For how long a client has a server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// Until it disconnects.
    Session,
    /// Until its transaction ends.
    Transaction,
    /// Until its statement ends.
    Statement,
}

/// A running pooler. Dropped: ended.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    port: u16,
    folder: TempDir,
    /// Listens on a unix socket in the folder, and on nothing else.
    on_socket: bool,
}

impl Pooler {
    /// Starts one that hands connections on to this server.
    pub fn before_server(server: &Server, mode: PoolMode) -> Pooler {
        Pooler::with_room(server, mode, 20)
    }

    /// The same with so many connections to the server for each database.
    pub fn with_room(server: &Server, mode: PoolMode, sessions: u32) -> Pooler {
        Pooler::with_settings(server, mode, &format!("default_pool_size = {sessions}"))
    }

    /// One of sessions that this resets before the next client has them, or nothing does.
    pub fn with_reset(server: &Server, reset_sql: &str) -> Pooler {
        Pooler::with_settings(server, PoolMode::Session, &format!("server_reset_query = {reset_sql}"))
    }

    /// On a unix socket of the server's own port number in another folder; it reaches the server by its
    /// socket, too.
    pub fn on_socket(server: &Server, mode: PoolMode) -> Pooler {
        Pooler::start(server, mode, "", true)
    }

    /// With these settings of pgbouncer, a line each.
    pub fn with_settings(server: &Server, mode: PoolMode, more: &str) -> Pooler {
        Pooler::start(server, mode, more, false)
    }

    fn start(server: &Server, mode: PoolMode, more: &str, on_socket: bool) -> Pooler {
        let folder = scratch();
        let port = if on_socket { server.port() } else { free_port() };
        let path = |name: &str| folder.path().join(name);
        fs::write(path("users"), "\"postgres\" \"\"\n").expect("the pooler's users");
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        };
        let (listens, host) = match on_socket {
            true => (
                format!("listen_addr =\nunix_socket_dir = {}", folder.path().display()),
                server.socket_folder().display().to_string(),
            ),
            false => ("listen_addr = 127.0.0.1\nunix_socket_dir =".to_owned(), "127.0.0.1".to_owned()),
        };
        let settings = format!(
            "[databases]\n* = host={host} port={}\n[pgbouncer]\n{listens}\nlisten_port = {port}\n\
             auth_type = trust\nauth_file = {}\npool_mode = {mode}\n{more}\n",
            server.port(),
            path("users").display()
        );
        fs::write(path("pgbouncer.ini"), settings).expect("the pooler's settings");
        [folder.path().to_owned(), path("users"), path("pgbouncer.ini")].iter().for_each(|path| give(path));
        let mut command = Command::new("pgbouncer");
        command.arg(path("pgbouncer.ini")).env("PATH", "/usr/sbin:/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(account) = account() {
            account.apply(&mut command);
        }
        let child = command.spawn().expect("pgbouncer; .ci/install-packages installs it");
        let mut pooler = Pooler { child, port, folder, on_socket };
        pooler.wait();
        pooler
    }

    /// For a [`crate::Proxy`] before it. Not where it listens on a socket.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The way to this database by way of the pooler.
    pub fn conninfo(&self, database: &Database) -> String {
        let host = match self.on_socket {
            true => self.folder.path().display().to_string(),
            false => "127.0.0.1".to_owned(),
        };
        format!("host={host} port={} user=postgres sslmode=disable dbname={}", self.port, database.name())
    }

    fn answers(&self) -> bool {
        let socket = self.folder.path().join(format!(".s.PGSQL.{}", self.port));
        match self.on_socket {
            true => UnixStream::connect(socket).is_ok(),
            false => TcpStream::connect(("127.0.0.1", self.port)).is_ok(),
        }
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            let ended = self.child.try_wait().expect("wait for the pooler").is_some();
            assert!(!ended && Instant::now() < deadline, "pgbouncer does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
