//! Whether a server runs on a data directory.
//!
//! `postmaster.pid` outlives a crash of the machine, and then its number may belong to any other process.
//! So the process it names must be one that works in this very data directory, as a postmaster does.
//! `pg_ctl status` asks only whether the number is alive, and PostgreSQL refuses to start while it is alive
//! under the same user: [`remove_stale`] settles both.

use super::local;
use howdah_model::Result;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The postmaster's process id, if it runs.
pub(super) fn running(data: &Path) -> Option<u32> {
    recorded(data).filter(|pid| works_in(*pid, data))
}

/// Removes a `postmaster.pid` whose process is not a postmaster of this data directory.
pub(super) fn remove_stale(data: &Path) -> Result<()> {
    if running(data).is_some() {
        return Ok(());
    }
    match fs::remove_file(data.join("postmaster.pid")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(local(format!("cannot remove the stale postmaster.pid in {}: {error}", data.display())))
        }
        _ => Ok(()),
    }
}

/// The first line of `postmaster.pid`.
fn recorded(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
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
    fn a_pid_file_of_another_living_process_is_stale() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        fs::write(&file, format!("{}\n{}\n", std::process::id(), data.path().display())).unwrap();
        assert_eq!(running(data.path()), None);
        remove_stale(data.path()).unwrap();
        assert!(!file.exists());
        remove_stale(data.path()).unwrap();
    }
}
