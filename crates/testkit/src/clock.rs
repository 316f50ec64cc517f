//! A wall clock that jumps, for howdah and for servers, while the machine's own stays as it is.
//!
//! Enters: seconds to be added from now on. Leaves: the environment of a process that reads such a clock. It
//! is a shared library that stands before the C library's functions; monotonic clocks, which no jump moves,
//! are untouched.

use crate::place::scratch;
use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SOURCE: &str = include_str!("clock.c");

/// A clock. Dropped: its files are removed; no process may be started with it any more.
#[derive(Debug)]
pub struct Clock {
    folder: TempDir,
    moved: File,
}

impl Clock {
    /// A clock that goes right; `None` without a C compiler or where the library cannot be loaded.
    pub fn new() -> Option<Clock> {
        let folder = scratch();
        let source = folder.path().join("clock.c");
        std::fs::write(&source, SOURCE).expect("a file in the scratch folder");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([folder.path().join("clock.so"), source])
            .stderr(Stdio::null())
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        let path = folder.path().join("moved");
        std::fs::write(&path, 0_i64.to_ne_bytes()).expect("a file in the scratch folder");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("its permissions");
        let moved = File::options().write(true).open(&path).expect("the file just made");
        let clock = Clock { folder, moved };
        clock.is_read().then_some(clock)
    }

    /// From now on, processes that read this clock see a time so many seconds from the right one.
    pub fn jump(&self, seconds: i64) {
        // In place: the file is mapped by all who read it.
        self.moved.write_all_at(&seconds.to_ne_bytes(), 0).expect("the clock's file");
    }

    /// What a process needs in its environment to read this clock.
    pub fn env(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![("LD_PRELOAD".to_owned(), path("clock.so")), ("TESTKIT_CLOCK".to_owned(), path("moved"))]
    }

    /// A program of the machine, moved by a day, sees another day.
    fn is_read(&self) -> bool {
        let day = || {
            let date = Command::new("date").arg("+%j").envs(self.env()).output();
            date.map(|output| output.stdout).unwrap_or_default()
        };
        let today = day();
        self.jump(86_400);
        let tomorrow = day();
        self.jump(0);
        !today.is_empty() && today != tomorrow
    }
}
