//! A throw-away PostgreSQL server.
//!
//! Leaves: a running server of a chosen major on a free port and a unix socket, made from a template in a
//! fraction of a second, run by an unprivileged user. `fsync` is off, in memory where that has room: these
//! servers outlive crashes of PostgreSQL, not of the machine. What a crash takes is what its processes had
//! not yet written.

use crate::database::{Database, execute};
use crate::guard::Guard;
use crate::place::{account, free_port, give, private_folder, scratch_in_memory, servers_folder};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The majors `cargo xtask servers` installs.
pub const MAJORS: [u32; 3] = [13, 15, 18];

/// Tests all cases at once, those of several servers most often: for tests that wait more than they compute.
/// Panics when one did.
pub fn side_by_side<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || test(case));
        }
    });
}

/// How long a server may take to start or stop before the test fails.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a test wants to be different.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Further settings, written to `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// Lines of `pg_hba.conf` that come first.
    pub hba: Vec<String>,
    /// Variables of the server's environment, such as [`crate::Clock::env`].
    pub environment: Vec<(String, String)>,
}

impl ServerOptions {
    /// Adds a setting.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> ServerOptions {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running (or, for a while, stopped) server. Dropped: stopped, and its files removed.
#[derive(Debug)]
pub struct Server {
    pub(crate) major: u32,
    pub(crate) port: u16,
    pub(crate) postmaster: Mutex<Option<Child>>,
    pub(crate) folder: TempDir,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) _guard: Guard,
}

impl Server {
    /// The server of this major that all tests of a binary share. Never stop it; make databases in it.
    pub fn shared(major: u32) -> &'static Server {
        static SHARED: [OnceLock<Server>; MAJORS.len()] = [const { OnceLock::new() }; MAJORS.len()];
        let at = MAJORS.iter().position(|known| *known == major).expect("one of MAJORS");
        SHARED[at].get_or_init(|| Server::private(major, &ServerOptions::default()))
    }

    /// A server of one's own, to be crashed at will.
    pub fn private(major: u32, options: &ServerOptions) -> Server {
        let folder = scratch_in_memory();
        private_folder(&folder.path().join("run"));
        let data = folder.path().join("data");
        copy_template(&template(major), &data);
        let guard = Guard::of_server(folder.path(), &data.join("postmaster.pid"));
        let environment = options.environment.clone();
        let mut server =
            Server { major, port: 0, postmaster: Mutex::new(None), folder, environment, _guard: guard };
        for attempt in 1.. {
            server.port = free_port();
            server.configure(options);
            match server.try_start() {
                Ok(()) => break,
                // Somebody may have taken the port in between.
                Err(log) => assert!(attempt < 3, "PostgreSQL {major} does not start:\n{log}"),
            }
        }
        server
    }

    /// The major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// `host=127.0.0.1 port=... user=postgres`, without a database.
    pub fn conninfo(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres", self.port)
    }

    /// The same over the unix socket.
    pub fn socket_conninfo(&self) -> String {
        format!("host={} port={} user=postgres", self.socket_folder().display(), self.port)
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the unix socket.
    pub fn socket_folder(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// An empty database for one test.
    pub fn database(&self) -> Database {
        Database::create(&self.conninfo(), &self.socket_conninfo(), "")
    }

    /// The same in this encoding of the server.
    pub fn database_in(&self, encoding: &str) -> Database {
        let options = format!("ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
        Database::create(&self.conninfo(), &self.socket_conninfo(), &options)
    }

    /// Puts a file into the data directory, readable by the server only: certificates, keys, files to COPY.
    pub fn write_file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.data_dir().join(name);
        fs::write(&path, content).expect("a file in the data directory");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("its permissions");
        give(&path);
        path
    }

    /// Stops at once, as a crash does (immediate shutdown): sessions are cut, and commits with
    /// `synchronous_commit` off that were not yet written are lost. Set `wal_writer_delay` to 10 s to lose
    /// them reliably.
    pub fn stop_immediate(&self) {
        self.stop(Signal::QUIT);
    }

    /// Stops in fast mode: sessions are ended, everything committed is kept.
    pub fn stop_fast(&self) {
        self.stop(Signal::INT);
    }

    /// Starts again on the same port and waits until it takes connections.
    pub fn start(&self) {
        // While it was down, a connection of some other process may have borrowed the port.
        if self.try_start().is_err() {
            std::thread::sleep(Duration::from_millis(500));
            self.try_start().unwrap_or_else(|log| panic!("PostgreSQL {} does not start:\n{log}", self.major));
        }
    }

    /// Takes connections again, whether it has come back from a crash by itself or has ended for good.
    /// PostgreSQL 18 has been seen to do neither: its startup process found no room for WAL, and the
    /// postmaster waited for it for minutes.
    pub fn revive(&self) {
        let answers = || execute(format!("{} dbname=postgres", self.socket_conninfo()), "SELECT 1").is_ok();
        let mut ended = false;
        let answered = wait_until(|| {
            ended = self
                .postmaster
                .lock()
                .as_mut()
                .is_none_or(|child| child.try_wait().expect("the postmaster").is_some());
            ended || answers()
        });
        if ended {
            self.postmaster.lock().take();
            self.start();
        } else if !answered {
            self.crash_and_restart();
        }
    }

    /// Keeps WAL in this folder from now on; the server is stopped and started for it.
    pub fn keep_wal_in(&self, folder: &Path) {
        self.stop_fast();
        let wal = self.data_dir().join("pg_wal");
        let moved = Command::new("mv").args([wal.as_path(), &folder.join("pg_wal")]).status();
        assert!(moved.expect("mv").success(), "cannot move {}", wal.display());
        std::os::unix::fs::symlink(folder.join("pg_wal"), wal).expect("a link in the data directory");
        self.start();
    }

    /// A fast stop and a start.
    pub fn restart(&self) {
        self.stop_fast();
        self.start();
    }

    /// An immediate stop and a start with crash recovery.
    pub fn crash_and_restart(&self) {
        self.stop_immediate();
        self.start();
    }

    fn stop(&self, signal: Signal) {
        let Some(mut child) = self.postmaster.lock().take() else { return };
        if let Some(pid) = pid_of(&child) {
            let _ = kill_process(pid, signal);
        }
        let ended = wait_until(|| child.try_wait().expect("wait for the postmaster").is_some());
        assert!(ended, "PostgreSQL {} does not stop:\n{}", self.major, self.log());
    }

    fn try_start(&self) -> Result<(), String> {
        let mut postmaster = self.postmaster.lock();
        assert!(postmaster.is_none(), "the server runs already");
        let mut command = Command::new(bin(self.major, "postgres"));
        let log = fs::OpenOptions::new().append(true).create(true).open(self.folder.path().join("log"));
        let log = log.expect("the server's log");
        command.arg("-D").arg(self.data_dir()).current_dir(self.data_dir());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file handle")).stderr(log);
        if let Some(account) = account() {
            account.apply(&mut command);
        }
        let mut child = command.spawn().expect("postgres; run `cargo xtask servers`");
        let mut ended = false;
        let answered = wait_until(|| {
            ended = child.try_wait().expect("wait for the postmaster").is_some();
            ended || execute(format!("{} dbname=postgres", self.socket_conninfo()), "SELECT 1").is_ok()
        });
        if ended || !answered {
            let _ = child.kill();
            let _ = child.wait();
            return Err(self.log());
        }
        *postmaster = Some(child);
        Ok(())
    }

    pub(crate) fn configure(&self, options: &ServerOptions) {
        let mut conf = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\n\
             max_connections = 60\nshared_buffers = 64MB\nmax_wal_size = 2GB\ncheckpoint_timeout = 30min\n\
             fsync = off\nlog_line_prefix = '%m [%p] '\n",
            self.port,
            self.socket_folder().display(),
        );
        for (name, value) in &options.settings {
            conf += &format!("{name} = '{}'\n", value.replace('\'', "''"));
        }
        self.write_file("postgresql.conf", conf.as_bytes());
        let hba =
            format!("{}\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n", options.hba.join("\n"));
        self.write_file("pg_hba.conf", hba.as_bytes());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.postmaster.lock().take() {
            if let Some(pid) = pid_of(&child) {
                let _ = kill_process(pid, Signal::QUIT);
            }
            let _ = child.wait();
        }
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Asks every 20 ms; `false` when patience ends.
fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn bin(major: u32, program: &str) -> PathBuf {
    servers_folder().join(format!("pg{major}/bin/{program}"))
}

/// An initialised data directory to copy, made once per major, kept for the next test runs.
fn template(major: u32) -> PathBuf {
    let version = fs::read_to_string(servers_folder().join(format!("pg{major}/VERSION")));
    let version = version.expect("PostgreSQL is missing: run `cargo xtask servers`");
    let owner = account().map_or_else(|| "self".to_owned(), |account| account.name);
    let folder = servers_folder().join("templates");
    fs::create_dir_all(&folder).expect("target/servers/templates");
    let template = folder.join(format!("pg{}-{owner}", version.trim()));
    // Several test binaries may come here at once; the lock goes with the file handle.
    let lock = fs::File::create(folder.join(".lock")).expect("a lock file");
    lock.lock().expect("the lock on target/servers/templates");
    if !template.join("PG_VERSION").is_file() {
        init(major, &template);
    }
    template
}

/// `initdb` in code-point order, so that rows sort alike on all majors.
fn init(major: u32, template: &Path) {
    let part = template.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    private_folder(&part);
    let mut command = Command::new(bin(major, "initdb"));
    command.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres", "--no-sync"]);
    command.arg("--pgdata").arg(&part).current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    if let Some(account) = account() {
        account.apply(&mut command);
    }
    let output = command.output().expect("initdb");
    assert!(output.status.success(), "initdb {major}: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&part, template).expect("a finished template");
}

pub(crate) fn copy_template(template: &Path, data: &Path) {
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).args([template, data]).status();
    assert!(copied.expect("cp").success(), "cannot copy {}", template.display());
}
