//! Where the servers are, and where their throw-away data goes.
//!
//! Leaves: folders that the user who runs the servers can reach.

use howdah_target::embedded::Account;
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
    let folder =
        tempfile::Builder::new().prefix("howdah-test-").tempdir_in(&parent).expect("a temporary folder");
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
