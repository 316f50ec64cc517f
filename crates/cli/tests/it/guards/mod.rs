//! A load pauses for what the server is short of, goes on, and gives up when it must.

mod broken_off;
mod disk;
mod lost_job;
mod others;
mod phases;
mod poolers;
mod replicas;

use crate::scene::{PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Running};
use std::path::Path;
use std::time::{Duration, Instant};

const PLAIN: &str = "CREATE TABLE t (id bigint, part integer, amount numeric, note text)";

/// `howdah load SOURCE` into `t` by small chunks.
fn load(database: &Database, source: &Path) -> HowdahCommand {
    let to = database.conninfo();
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source);
    load.args(["--chunk-size", "64kB"])
}

/// Waits until the load has said this.
#[track_caller]
pub(crate) fn wait_for_words(running: &mut Running, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !running.stderr_so_far().contains(words) {
        assert!(running.is_running() && Instant::now() < deadline, "{words}\n{}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(20));
    }
}
