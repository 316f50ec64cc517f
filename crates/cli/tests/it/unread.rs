//! A terminal or pipe that takes nothing, as of a laptop that sleeps or a pager that waits for a key, holds
//! up no load.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{PipeReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a pipe takes before it is read. Source: pipe(7).
const PIPE_BYTES: usize = 64 << 10;

/// A load whose standard error is a pipe that is full. Dropped: killed.
struct Unread {
    child: Child,
    /// Nobody reads it, and it is open.
    reader: PipeReader,
}

impl Unread {
    fn load(scene: &Scene, source: &Path) -> Unread {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&vec![b'.'; PIPE_BYTES]).unwrap();
        let mut load = Command::new(env!("CARGO_BIN_EXE_howdah"));
        load.args([
            "load",
            "--format",
            "csv",
            "--header",
            "--table",
            "t",
            "--chunk-size",
            "64kB",
            "--jobs",
            "2",
        ]);
        load.args(["--to", &scene.database.conninfo()]).arg(source).env_clear();
        let child = load.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
        Unread { child, reader }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }

    fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("still running");
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for_status(scene: &Scene, status: &str) {
    let (sql, began) = (format!("SELECT count(*) FROM howdah.job WHERE status = '{status}'"), Instant::now());
    assert!(scene.database.wait_for(&sql, 1, || began.elapsed() < PATIENCE), "never {status}");
}

#[test]
fn a_load_whose_words_nobody_takes_comes_to_its_end() {
    let plain = csv(71, 1, 5000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let mut load = Unread::load(&scene, &source);
    wait_for_status(&scene, "done");
    scene.assert_exact("nobody takes its words");
    let mut told = vec![0; PIPE_BYTES];
    load.reader.read_exact(&mut told).unwrap();
    assert_eq!(load.wait(), Some(0));
    told.clear();
    load.reader.read_to_end(&mut told).unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains("a.csv: 5,000 rows") && told.contains("check  read 5,000 = stored 5,000"),
        "{told}"
    );
}

#[test]
fn a_load_whose_words_nobody_takes_is_stopped_by_a_signal_and_ended_by_a_second_one() {
    let plain = csv(72, 1, 20_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    scene.slow_down("BEFORE", Duration::from_millis(300));
    let mut load = Unread::load(&scene, &source);
    assert!(scene.wait_for_chunks(2, || load.child.try_wait().unwrap().is_none()));
    load.signal(Signal::TERM);
    wait_for_status(&scene, "interrupted");
    std::thread::sleep(Duration::from_secs(1));
    load.signal(Signal::INT);
    assert_eq!(load.wait(), Some(130));
}
