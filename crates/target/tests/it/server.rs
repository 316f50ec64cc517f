//! Real servers for tests: one of each major version shared by all tests (each takes a database of its own),
//! or a private one to crash or to give certificates. All end with the test process.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use howdah_target::session::{Conninfo, Session};

/// The versions every promise is checked on.
pub(crate) const VERSIONS: [u32; 3] = [13, 15, 18];

/// Runs a test body on every version.
macro_rules! on_every_version {
    ($name:ident, $server:ident => $body:block) => {
        #[tokio::test]
        async fn $name() {
            for version in crate::server::VERSIONS {
                let $server = crate::server::shared(version);
                $body
            }
        }
    };
}
pub(crate) use on_every_version;

pub(crate) struct Server {
    version: u32,
    folder: PathBuf,
    binaries: PathBuf,
    pub(crate) port: u16,
    child: std::sync::Mutex<Option<Child>>,
}

/// The shared server of this version, started at the first call.
pub(crate) fn shared(version: u32) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    let index = VERSIONS.iter().position(|v| *v == version).unwrap();
    SERVERS[index].get_or_init(|| Server::start(version, &["fsync=off"]))
}

fn binaries(version: u32) -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/servers/pg{version}/bin"));
    let given = std::env::var_os(format!("HOWDAH_TEST_PG{version}"));
    let folder = given.map_or(default, PathBuf::from);
    assert!(
        folder.join("initdb").exists(),
        "no PostgreSQL {version} in {}: run `cargo xtask servers`, or set HOWDAH_TEST_PG{version}",
        folder.display()
    );
    folder
}

/// What initdb has made, once per version and process.
fn template(version: u32) -> &'static Path {
    static TEMPLATES: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let index = VERSIONS.iter().position(|v| *v == version).unwrap();
    TEMPLATES[index].get_or_init(|| {
        let data = new_folder(&format!("template-pg{version}")).join("data");
        let status = command(&binaries(version).join("initdb"), "KILL")
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .status()
            .unwrap();
        assert!(status.success(), "initdb of PostgreSQL {version}");
        data
    })
}

/// Where the folders are: in memory where that has room, for none of these servers outlives the machine.
fn parent() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(memory).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
    if room >= 2 << 30 { memory.to_owned() } else { std::env::temp_dir() }
}

/// A folder of the servers' user, of this process.
fn new_folder(name: &str) -> PathBuf {
    let folder = parent().join(format!("howdah-target-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    own(&folder);
    // Removes it behind this process, whose end closes the pipe and ends the servers: memory is not to be
    // kept.
    let script = "trap '' INT TERM HUP; cat >/dev/null; sleep 1; rm -rf \"$1\"";
    let mut guard = Command::new("sh");
    guard.args(["-c", script, "guard"]).arg(&folder).stdin(Stdio::piped());
    std::mem::forget(guard.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").spawn().unwrap());
    folder
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// PostgreSQL refuses root; `--pdeathsig` ends the server with the thread that started it.
fn command(program: &Path, signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.arg(format!("--pdeathsig={signal}")).arg("--").arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).env("HOME", "/tmp").env_remove("PGDATA");
    command
}

impl Server {
    /// A new cluster with these settings, listening on a unix socket and a free port of 127.0.0.1.
    pub(crate) fn start(version: u32, settings: &[&str]) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_leftovers();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = new_folder(&format!("{number}-pg{version}"));
        let binaries = binaries(version);
        let copied = Command::new("cp").args(["-a"]).arg(template(version)).arg(folder.join("data")).status();
        assert!(copied.unwrap().success(), "a copy of the template");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server { version, folder, binaries, port, child: std::sync::Mutex::new(None) };
        let settings: String = settings.iter().map(|line| format!("{line}\n")).collect();
        server.append("data/postgresql.conf", &settings);
        server.run();
        server
    }

    /// The major version.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Adds lines to a file of the cluster.
    pub(crate) fn append(&self, file: &str, text: &str) {
        let file = self.folder.join(file);
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, format!("{before}{text}")).unwrap();
        own(&file);
    }

    /// Puts a file beside the data, readable by the server alone.
    pub(crate) fn put(&self, file: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        own(&path);
        path
    }

    /// Starts the server process and waits until it takes connections.
    pub(crate) fn run(&self) {
        let mut command = command(&self.binaries.join("postgres"), "QUIT");
        command.arg("-D").arg(self.folder.join("data"));
        for setting in [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", self.folder.display()),
            "max_connections=60".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        command.stderr(fs::File::create(self.folder.join("log")).unwrap());
        // The death signal belongs to the starting thread: a thread that lives as long as the process.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            sender.send(command.spawn().unwrap()).unwrap();
            loop {
                std::thread::park();
            }
        });
        *self.child.lock().unwrap() = Some(receiver.recv().unwrap());
        let limit = Instant::now() + Duration::from_secs(600);
        while !self.is_ready() {
            assert!(Instant::now() < limit, "{}", fs::read_to_string(self.folder.join("log")).unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_ready(&self) -> bool {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap_or_default();
        file.lines().nth(7).is_some_and(|line| line.trim() == "ready")
    }

    /// Ends the server as a crash would: no checkpoint, unflushed WAL is lost.
    pub(crate) fn crash(&self) {
        let mut child = self.child.lock().unwrap().take().unwrap();
        signal("QUIT", i64::from(child.id()));
        child.wait().unwrap();
    }

    /// `host=... port=... user=postgres` by unix socket.
    pub(crate) fn socket(&self) -> String {
        format!("host={} port={} user=postgres", self.folder.display(), self.port)
    }

    /// An empty database and how to connect to it.
    pub(crate) async fn database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let client = observer(&format!("{} dbname=postgres", self.socket())).await;
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        format!("{} dbname={name}", self.socket())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.lock().unwrap().is_some() {
            self.crash();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(name: &str, pid: i64) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

fn own(path: &Path) {
    if is_root() {
        let status = Command::new("chown").arg("postgres:postgres").arg(path).status().unwrap();
        assert!(status.success());
    }
}

/// Folders of test processes that are gone: shared servers and templates are never dropped.
fn remove_leftovers() {
    let parents = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    for entry in parents.iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(rest) = name.strip_prefix("howdah-target-") else { continue };
        let pid = rest.split('-').next().unwrap_or_default();
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A session of howdah's.
pub(crate) async fn connect(to: &str) -> Session {
    Session::connect(&Conninfo::resolve(Some(to)).unwrap().unwrap()).await.unwrap()
}

/// A client that is not howdah's, to see with other eyes.
pub(crate) async fn observer(to: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(to, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// One number from the observer.
pub(crate) async fn count(client: &tokio_postgres::Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
