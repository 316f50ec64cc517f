//! A named pipe and whoever writes into it.

use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked for somebody who reads.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Writes bytes into a named pipe as soon as somebody reads from it. Dropped: gives up, once nobody reads any
/// more.
#[derive(Debug)]
pub(crate) struct Writer {
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Makes the pipe where there is none.
    pub(crate) fn begin(path: &Path, bytes: Vec<u8>) -> Writer {
        if !path.exists() {
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success(), "mkfifo {}", path.display());
        }
        let enough = Arc::new(AtomicBool::new(false));
        let (path, given_up) = (path.to_owned(), Arc::clone(&enough));
        let thread = std::thread::spawn(move || {
            let Some(mut pipe) = open_for_reader(&path, &given_up) else { return };
            // The reader may stop early; that is its right.
            let _ = pipe.write_all(&bytes);
        });
        Writer { enough, thread: Some(thread) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The pipe, once somebody has it open for reading; opening it at once would wait for a reader that may never
/// come.
fn open_for_reader(path: &Path, given_up: &AtomicBool) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    while !given_up.load(Ordering::Relaxed) {
        if let Ok(pipe) = OpenOptions::new().write(true).custom_flags(flags).open(path) {
            fcntl_setfl(&pipe, OFlags::empty()).expect("a pipe that blocks");
            return Some(pipe);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    None
}
