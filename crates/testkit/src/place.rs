//! Where the servers are, and where their throw-away data goes.
//!
//! Leaves: folders that the user who runs the servers can reach.

use howdah_target::embedded::Account;
use rustix::fs::statvfs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// `target/servers` as `cargo xtask servers` fills it, links resolved.
pub fn servers_folder() -> PathBuf {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    servers.canonicalize().expect("target/servers is missing: run `cargo xtask servers`")
}

/// psql of the newest major.
pub fn psql() -> PathBuf {
    servers_folder().join("psql/bin/psql")
}

/// The user servers run as; `None` when that is the caller.
pub(crate) fn account() -> Option<Account> {
    Account::for_servers().expect("a user to run servers as")
}

/// A new folder that everybody may enter (mode 0755), removed on drop. Below the temporary directory, unless
/// that is closed to the servers' user or too long for the path of a unix socket.
pub fn scratch() -> TempDir {
    let usual = std::env::temp_dir();
    let reachable = account().is_none_or(|account| account.can_reach(&usual));
    let parent = if reachable && usual.as_os_str().len() < 60 { usual } else { PathBuf::from("/tmp") };
    scratch_below(&parent)
}

/// A folder as [`scratch`] makes it for the data of a server that need not outlive the machine: in memory
/// where that has room. Each test makes and drops databases of three hundred files; ext4 took ten times the
/// processor time of tmpfs for them.
pub(crate) fn scratch_in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let room = statvfs(memory).map_or(0, |disk| disk.f_bavail * disk.f_frsize).min(available_memory());
    if room >= ROOM_IN_MEMORY { scratch_below(memory) } else { scratch() }
}

/// What the servers of a test run take at most, several times.
const ROOM_IN_MEMORY: u64 = 4 << 30;

/// What processes can have without swapping, as Linux sees it; 0 elsewhere.
fn available_memory() -> u64 {
    let lines = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = lines.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn scratch_below(parent: &Path) -> TempDir {
    let folder =
        tempfile::Builder::new().prefix("howdah-test-").tempdir_in(parent).expect("a temporary folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("its permissions");
    folder
}

/// A new folder of the servers' user, mode 0700.
pub(crate) fn private_folder(path: &Path) {
    std::fs::create_dir(path).expect("a folder in the scratch folder");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("its permissions");
    give(path);
}

/// Makes the servers' user the owner.
pub(crate) fn give(path: &Path) {
    if let Some(account) = account() {
        chown(path, Some(account.uid), Some(account.gid)).expect("chown by root");
    }
}

/// A port nobody listens on right now. Another process may take it before it is used: callers try again.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("the address of a bound socket").port()
}
