//! Ends a server, or takes away a disk, when the process that made it is gone, however it went.
//!
//! Drop does not run after kill -9, nor for statics. So each server has a guard: a shell that reads from a
//! pipe nobody writes to. The pipe closes when the test's process ends; then the guard ends the server named
//! in the pid file and removes the folder. After an orderly drop both are gone already.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// SIGQUIT is PostgreSQL's immediate shutdown. The first line of a pid file is the process id.
const SERVER_SCRIPT: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
pid=$(head -n 1 "$2" 2>/dev/null)
if [ -n "$pid" ]; then
  kill -QUIT "$pid" 2>/dev/null
  tries=0
  while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
  kill -KILL "$pid" 2>/dev/null
fi
rm -rf "$1"
"#;

/// Watches over one server or disk; harmless once the folder is gone.
#[derive(Debug)]
pub(crate) struct Guard(Child);

impl Guard {
    /// Of a server; `pid_file` may appear later, and may change with each restart.
    pub(crate) fn of_server(folder: &Path, pid_file: &Path) -> Guard {
        Guard::new(SERVER_SCRIPT, [folder, pid_file])
    }

    /// Runs the script with these arguments; it waits for the end of its input.
    pub(crate) fn new(script: &str, arguments: [&Path; 2]) -> Guard {
        let child = Command::new("sh")
            .args(["-c", script, "guard"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Ctrl-C at the terminal is for the tests, not for the guard.
            .process_group(0)
            .spawn();
        Guard(child.expect("sh"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
