//! The operating-system user a server runs as.
//!
//! PostgreSQL refuses to run as root. So when root calls, servers run as `postgres` where that user exists,
//! else as `howdah`, a system user without shell and home that is added once. Everybody else runs servers as
//! themselves. A folder that one of the two has been given stays with that one: a package that adds
//! `postgres` must not close it. Only folders of our own are given to that user.

use super::local;
use howdah_model::Result;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Users that may run a server, in the order they are tried.
const NAMES: [&str; 2] = ["postgres", "howdah"];

/// An unprivileged user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id, never 0.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
}

impl Account {
    /// The user to run servers as; `None` when the caller is not root and so can run them itself.
    ///
    /// # Errors
    /// [`howdah_model::ErrorKind::Local`] when root calls, no such user exists and `useradd` fails.
    pub fn for_servers() -> Result<Option<Account>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        if let Some(account) = NAMES.iter().find_map(|name| Account::named(name)) {
            return Ok(Some(account));
        }
        let name = NAMES[1];
        let added = Command::new("useradd")
            .args(["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"])
            .args(["--shell", "/usr/sbin/nologin", name])
            .stdin(Stdio::null())
            .output();
        // Two processes may add it at once; only the outcome counts.
        Account::named(name).map(Some).ok_or_else(|| {
            let reason = match added {
                Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                Err(error) => error.to_string(),
            };
            local(format!(
                "PostgreSQL does not run as root, and adding the system user {name} failed: {reason}"
            ))
            .with_hint("call howdah as a normal user, or add a system user named postgres")
        })
    }

    /// The same for this folder: its owner, if it is there and belongs to such a user.
    ///
    /// # Errors
    /// As [`Account::for_servers`].
    pub(super) fn for_folder(folder: &Path) -> Result<Option<Account>> {
        let known = || NAMES.iter().filter_map(|name| Account::named(name));
        match fs::symlink_metadata(folder) {
            Ok(data) if rustix::process::geteuid().is_root() => match owner(data.uid(), known()) {
                None => Account::for_servers(),
                account => Ok(account),
            },
            _ => Account::for_servers(),
        }
    }

    /// Lets the child process run as this user, without root's groups.
    pub fn apply(&self, command: &mut Command) {
        // The standard library clears the supplementary groups when root changes the user.
        command.uid(self.uid).gid(self.gid);
    }

    /// A program of the system that this user runs, in a folder that it can enter. Whoever a process is of
    /// reads its environment, and the caller's may hold keys and passwords.
    pub(super) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        let path = howdah_model::environment::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command.env_clear().env("PATH", path).env("LC_ALL", "C").current_dir("/");
        self.apply(&mut command);
        command
    }

    /// Whether this user may walk from `/` to the folder. Group and other bits are taken at their word;
    /// access lists are not looked at.
    pub fn can_reach(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else { return false };
        folder.ancestors().all(|folder| {
            fs::metadata(folder).is_ok_and(|data| {
                let bit = if data.uid() == self.uid {
                    0o100
                } else if data.gid() == self.gid {
                    0o010
                } else {
                    0o001
                };
                data.mode() & bit != 0
            })
        })
    }

    fn named(name: &str) -> Option<Account> {
        let uid = id("-u", name)?;
        let gid = id("-g", name)?;
        (uid != 0).then(|| Account { name: name.to_owned(), uid, gid })
    }
}

fn owner(uid: u32, mut known: impl Iterator<Item = Account>) -> Option<Account> {
    known.find(|account| account.uid == uid)
}

/// The id of the user of this name, if there is one. Runs a program.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    id("-u", name)
}

/// `id` asks every name service the machine has, not only /etc/passwd.
fn id(option: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([option, name]).stdin(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Writes a file as the server's user. Root never writes into a folder another user owns, since a link
/// planted there could lead anywhere.
pub(super) fn write_file(account: Option<&Account>, path: &Path, content: &str) -> Result<()> {
    let failed = |error: std::io::Error| local(format!("cannot write {}: {error}", path.display()));
    let Some(account) = account else {
        return fs::write(path, content).map_err(failed);
    };
    let mut command = account.program("tee");
    command.arg(path).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(content.as_bytes()).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(local(format!("cannot write {} as {}", path.display(), account.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stays_with_the_user_that_it_was_given_to() {
        let account = |name: &str, uid| Account { name: name.to_owned(), uid, gid: uid };
        let known = || [account("postgres", 101), account("howdah", 998)].into_iter();
        assert_eq!(owner(998, known()).unwrap().name, "howdah");
        assert_eq!(owner(101, known()).unwrap().name, "postgres");
        assert_eq!(owner(0, known()), None);
    }

    #[test]
    fn another_users_program_is_told_nothing_of_the_callers_environment() {
        let Some(account) = Account::for_servers().unwrap() else { return };
        assert!(std::env::vars_os().count() > 2, "there is something to tell");
        let told = account.program("env").output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let mut names: Vec<&str> = told.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["LC_ALL", "PATH"]);
    }

    #[test]
    fn a_private_folder_is_out_of_reach() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let stranger = Account { name: "stranger".to_owned(), uid: 4_000_001, gid: 4_000_001 };
        assert!(!stranger.can_reach(folder.path()));
        assert!(stranger.can_reach(Path::new("/")));
    }
}
