//! Whether a server runs on a data directory.
//!
//! `postmaster.pid` outlives a crash of the machine, and then its number may belong to any other process.
//! So the process it names must be one that works in this very data directory, as a postmaster does.
//! `pg_ctl status` asks only whether the number is alive, and PostgreSQL refuses to start while it is alive
//! under the same user; [`release_reused`] settles that. A dead number is left to PostgreSQL, which also
//! looks for orphaned backends before it takes over.

use super::{Account, account};
use howdah_model::Result;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Larger than any system's largest process id, so nobody's.
const NOBODY: i32 = i32::MAX - 1;

/// The postmaster's process id, if it runs.
pub(super) fn running(data: &Path) -> Option<u32> {
    recorded(&data.join("postmaster.pid")).filter(|pid| works_in(*pid, data))
}

/// Where a lock file of PostgreSQL names a living process that is no postmaster of this data directory, puts
/// a number in its place that nobody has. The rest of the file stays: PostgreSQL finds the old server's
/// shared memory by it, and still refuses to start beside backends that outlived their postmaster.
/// Only to be called while no server runs here and none is being started.
pub(super) fn release_reused(data: &Path, socket_lock: &Path, owner: Option<&Account>) -> Result<()> {
    for file in [&data.join("postmaster.pid"), socket_lock] {
        let Some(pid) = recorded(file).filter(|pid| is_alive(*pid) && !works_in(*pid, data)) else {
            continue;
        };
        if let Ok(text) = fs::read_to_string(file) {
            account::write_file(owner, file, &text.replacen(&pid.to_string(), &NOBODY.to_string(), 1))?;
        }
    }
    Ok(())
}

/// The process id in the first line; in a socket's lock file the server's as well.
fn recorded(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

/// Alive, whoever owns it.
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

fn works_in(pid: u32, data: &Path) -> bool {
    if Path::new("/proc/self/cwd").exists() {
        let folder = fs::read_link(format!("/proc/{pid}/cwd"));
        return folder.is_ok_and(|folder| data.canonicalize().is_ok_and(|data| data == folder));
    }
    // No /proc (macOS, BSD): the program's name has to do.
    let output =
        Command::new("ps").args(["-o", "comm=", "-p", &pid.to_string()]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("postgres"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_another_living_process_is_taken_out_and_the_rest_kept() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        let rest = format!("\n{}\n1700000000\n5432\n", data.path().display());
        fs::write(&file, format!("{}{rest}", std::process::id())).unwrap();
        assert_eq!(running(data.path()), None);
        release_reused(data.path(), &data.path().join("no socket"), None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{NOBODY}{rest}"));
        // A dead number is PostgreSQL's own business.
        release_reused(data.path(), &file, None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{NOBODY}{rest}"));
    }
}
