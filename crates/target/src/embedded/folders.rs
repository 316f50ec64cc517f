//! The embedded server's folders.
//!
//! `<base>/<major>/data` is the cluster, `<base>/<major>/log` its log, `<base>/<major>/programs` names the
//! folder of the programs it was made with, `<base>/run` the socket's folder (or, where that path is none for
//! a socket, one below `/tmp`), `<base>.lock` lets one process at a time work. `base` is
//! `$HOWDAH_DATA/pg`, or `~/.local/share/howdah/pg` (`XDG_DATA_HOME` as usual), or `/var/lib/howdah/pg` for
//! root: root's home is closed to the user the server runs as. Everything from `base` down belongs to that
//! user, mode 0700; nothing above is changed.

use super::{Account, local, settings};
use howdah_model::{Result, environment};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind as Io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Bytes a socket's path may have: 108 on Linux, 104 on BSD and macOS, with the closing NUL.
const SOCKET_PATH_BYTES_MAX: usize = 103;

/// All places of one cluster.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    pub(super) base: PathBuf,
    pub(super) version: PathBuf,
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
    pub(super) programs: PathBuf,
    pub(super) socket: PathBuf,
}

/// Where the embedded server lives for this caller.
pub(super) fn base() -> Result<PathBuf> {
    let as_root = rustix::process::geteuid().is_root();
    let set = |name: &str| environment::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let howdah = match (set("HOWDAH_DATA"), as_root) {
        (Some(folder), _) => {
            std::path::absolute(folder).map_err(|error| local(format!("HOWDAH_DATA: {error}")))?
        }
        (None, true) => PathBuf::from("/var/lib/howdah"),
        (None, false) => {
            let home = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
            home.or_else(|| Some(set("HOME")?.join(".local/share")))
                .ok_or_else(|| {
                    local("neither HOME nor XDG_DATA_HOME is set").with_hint("set HOWDAH_DATA to a folder")
                })?
                .join("howdah")
        }
    };
    expect_servable(&howdah)?;
    Ok(howdah.join("pg"))
}

/// `pg_ctl` gives its paths to a shell, between double quotes and as they are (pg_ctl.c, start_postmaster).
fn expect_servable(folder: &Path) -> Result<()> {
    const OBEYED: [char; 5] = ['"', '\\', '$', '`', '\n'];
    let folder = folder.to_string_lossy();
    let Some(found) = folder.chars().find(|c| OBEYED.contains(c)) else { return Ok(()) };
    let message = format!("no server can be started in {folder}: its programs misread {found:?} in a path");
    Err(local(message).with_hint("let HOWDAH_DATA name another folder"))
}

impl Folders {
    pub(super) fn new(base: PathBuf, major: u32) -> Folders {
        let version = base.join(major.to_string());
        Folders {
            data: version.join("data"),
            log: version.join("log"),
            programs: version.join("programs"),
            socket: socket_folder(&base),
            version,
            base,
        }
    }

    /// Whether there is a complete cluster: it gets its name as the last step.
    pub(super) fn is_initialised(&self) -> bool {
        self.data.join("PG_VERSION").is_file()
    }

    /// The folder of the programs that the cluster was made with, where that is known.
    pub(super) fn made_with(&self) -> Option<PathBuf> {
        let dir = PathBuf::from(fs::read_to_string(&self.programs).ok()?.trim_end());
        dir.is_absolute().then_some(dir)
    }

    /// Makes what is missing.
    pub(super) fn create(&self, account: Option<&Account>) -> Result<()> {
        if let Some(parent) = self.base.parent() {
            make_parents(parent, account)?;
        }
        for folder in [&self.base, &self.version, &self.socket] {
            own_folder(folder, account)?;
        }
        Ok(())
    }

    /// The file PostgreSQL keeps beside its socket.
    pub(super) fn socket_lock(&self) -> PathBuf {
        self.socket.join(format!(".s.PGSQL.{}.lock", settings::PORT))
    }

    /// Waits until no other process works on these folders; released when the file is dropped.
    pub(super) fn lock(&self) -> Result<File> {
        // Beside the base folder, not in it: the base folder belongs to the server's user.
        let path = self.base.with_extension("lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let failed = |error: std::io::Error| local(format!("cannot lock {}: {error}", path.display()));
        let file = opened.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }
}

/// Makes the folders above ours as far as they are missing. Those the server's user must walk through get
/// mode 0755 whatever root's umask; those that were there stay as they are.
fn make_parents(folder: &Path, account: Option<&Account>) -> Result<()> {
    let failed = |error: std::io::Error| local(format!("cannot make {}: {error}", folder.display()));
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    let existing = missing.last().map_or(Some(folder), |folder| folder.parent());
    if let (Some(account), Some(existing)) = (account, existing)
        && !account.can_reach(existing)
    {
        let message = format!("the user {}, whom root runs the server as, cannot reach ", account.name);
        return Err(local(message + &existing.display().to_string())
            .with_hint("let HOWDAH_DATA name a folder all users can reach, below /var/lib say"));
    }
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) if account.is_some() => {
                fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(failed)?;
            }
            Err(error) if error.kind() != Io::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(())
}

/// A folder of mode 0700 that belongs to the server's user, whoever made it.
fn own_folder(folder: &Path, account: Option<&Account>) -> Result<()> {
    let failed = |error: std::io::Error| local(format!("cannot make {}: {error}", folder.display()));
    let owner = account.map_or(rustix::process::geteuid().as_raw(), |account| account.uid);
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => match account {
            Some(account) => chown(folder, Some(account.uid), Some(account.gid)).map_err(failed),
            None => Ok(()),
        },
        Err(error) if error.kind() == Io::AlreadyExists => {
            // Looked at first: who fills it has given it away before.
            let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            let data = fs::symlink_metadata(folder).map_err(failed)?;
            let is_private = data.is_dir() && data.mode() & 0o022 == 0;
            if is_private && data.uid() == owner {
                return Ok(());
            }
            // Another start has made it a moment ago, or was killed then, and not given it to the server's
            // user yet.
            let is_new = is_private && is_empty && data.uid() == rustix::process::geteuid().as_raw();
            if let Some(account) = account.filter(|_| is_new) {
                return chown(folder, Some(account.uid), Some(account.gid)).map_err(failed);
            }
            let message = format!("{} is not a private folder of user id {owner}", folder.display());
            Err(local(message).with_hint("move it away, or let HOWDAH_DATA name another folder"))
        }
        Err(error) => Err(failed(error)),
    }
}

/// `<base>/run`, unless a socket's path in it would be too long, or be taken for two: folders and hosts are
/// lists with commas.
pub(super) fn socket_folder(base: &Path) -> PathBuf {
    let near = base.join("run");
    let socket_path = near.join(format!(".s.PGSQL.{}", settings::PORT));
    let path = socket_path.as_os_str().as_encoded_bytes();
    if path.len() <= SOCKET_PATH_BYTES_MAX && !path.contains(&b',') {
        return near;
    }
    let uid = rustix::process::geteuid().as_raw();
    PathBuf::from(format!("/tmp/howdah-{uid}-{:016x}", fnv1a(base.as_os_str().as_encoded_bytes())))
}

/// FNV-1a, 64 bits: the same in every release, which the standard library's hasher does not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_path_that_is_none_for_a_socket_gets_another() {
        let short = socket_folder(Path::new("/var/lib/howdah/pg"));
        assert_eq!(short, Path::new("/var/lib/howdah/pg/run"));
        for base in [PathBuf::from("/home").join("x".repeat(90)).join("pg"), PathBuf::from("/a,b/pg")] {
            let folder = socket_folder(&base);
            assert!(folder.starts_with("/tmp"), "{folder:?}");
            assert_eq!(folder, socket_folder(&base));
        }
    }

    #[test]
    fn a_path_that_the_programs_misread_is_refused() {
        expect_servable(Path::new("/it's 100% #1/a,b@\u{e9}")).unwrap();
        for name in ["\"", "\\", "$x", "`", "\n"] {
            let told = expect_servable(&Path::new("/data").join(name)).unwrap_err();
            assert!(told.hint().unwrap().contains("HOWDAH_DATA"), "{told}");
        }
    }

    #[test]
    fn a_folder_others_may_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        own_folder(&folder, None).unwrap();
        own_folder(&folder, None).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(own_folder(&folder, None).is_err());
    }
}
