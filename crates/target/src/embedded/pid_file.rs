//! Whether a server runs on a data directory.
//!
//! `postmaster.pid` outlives a crash of the machine, and then its number may belong to any other process. So
//! the process it names must be one that works in this very data directory, as a postmaster does. Root in a
//! container may often not ask that of another user's process (it lacks CAP_SYS_PTRACE); then that user asks.
//! A process of which nothing is certain counts as the postmaster: one that loses its `postmaster.pid` shuts
//! down. `pg_ctl status` asks only whether the number is alive, and PostgreSQL refuses to start while it is
//! alive under the same user; [`release_reused`] settles that. A dead number is left to PostgreSQL, which
//! also looks for orphaned backends before it takes over.

use super::{Account, account};
use howdah_model::Result;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind as Io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Larger than any system's largest process id, so nobody's.
const NOBODY: i32 = i32::MAX - 1;

/// The postmaster's process id, if it runs. `owner` is the server's user, where that is another than the
/// caller.
pub(super) fn running(data: &Path, owner: Option<&Account>) -> Option<u32> {
    recorded(&data.join("postmaster.pid")).filter(|pid| is_alive(*pid) && works_in(*pid, data, owner))
}

/// Where a lock file of PostgreSQL names a living process that is no postmaster of this data directory, puts
/// a number in its place that nobody has. The rest of the file stays: PostgreSQL finds the old server's
/// shared memory by it, and still refuses to start beside backends that outlived their postmaster.
/// Only to be called while no server runs here and none is being started.
pub(super) fn release_reused(data: &Path, socket_lock: &Path, owner: Option<&Account>) -> Result<()> {
    for file in [&data.join("postmaster.pid"), socket_lock] {
        let Some(pid) = recorded(file).filter(|pid| is_alive(*pid) && !works_in(*pid, data, owner)) else {
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

/// Whether this living process works there, or may do so.
fn works_in(pid: u32, data: &Path, owner: Option<&Account>) -> bool {
    if Path::new("/proc/self/cwd").exists() {
        return match folder_of(pid, owner) {
            Some(folder) => data.canonicalize().is_ok_and(|data| data == folder),
            None => may_be_postmaster(pid, data),
        };
    }
    // No /proc (macOS, BSD): the program's name has to do.
    let output =
        Command::new("ps").args(["-o", "comm=", "-p", &pid.to_string()]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("postgres"))
}

/// The folder a process works in, as far as the caller or the server's user is told.
fn folder_of(pid: u32, owner: Option<&Account>) -> Option<PathBuf> {
    let link = format!("/proc/{pid}/cwd");
    fs::read_link(&link).ok().or_else(|| {
        let asked = owner?.program("readlink").args(["-n", &link]).stdin(Stdio::null()).output();
        let output = asked.ok().filter(|output| output.status.success())?;
        Some(PathBuf::from(OsStr::from_bytes(&output.stdout)))
    })
}

/// What everybody is told of a process has to do: a postmaster is of the user whose data it has, and its
/// command line, which that of a zombie is not, names the program.
fn may_be_postmaster(pid: u32, data: &Path) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    if let (Ok(process), Ok(data)) = (fs::metadata(&process), fs::metadata(data))
        && process.uid() != data.uid()
    {
        return false;
    }
    match fs::read(process.join("cmdline")) {
        Ok(line) => {
            let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
            program.windows(8).any(|part| part == b"postgres")
        }
        Err(error) => error.kind() != Io::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::process::CommandExt;

    #[test]
    fn a_number_of_another_living_process_is_taken_out_and_the_rest_kept() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        let rest = format!("\n{}\n1700000000\n5432\n", data.path().display());
        fs::write(&file, format!("{}{rest}", std::process::id())).unwrap();
        assert_eq!(running(data.path(), None), None);
        release_reused(data.path(), &data.path().join("no socket"), None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{NOBODY}{rest}"));
        // A dead number is PostgreSQL's own business.
        release_reused(data.path(), &file, None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{NOBODY}{rest}"));
    }

    #[test]
    fn a_process_whose_folder_nobody_tells_is_known_by_its_program() {
        let data = tempfile::tempdir().unwrap();
        for (name, may_be) in [("/usr/lib/postgresql/18/bin/postgres", true), ("somebody", false)] {
            let mut command = Command::new("sh");
            command.arg0(name).args(["-c", "echo; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn().unwrap();
            // Its command line is there a moment after it.
            process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            assert_eq!(may_be_postmaster(process.id(), data.path()), may_be, "{name}");
            process.kill().unwrap();
            process.wait().unwrap();
            assert!(!may_be_postmaster(process.id(), data.path()), "it is gone");
        }
    }
}
