//! Servers end with the process that started them, even when it is killed.

use howdah_testkit::{HowdahCommand, Server, ServerOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CHILD: &str = "TESTKIT_GUARD_CHILD";

/// No test of its own: libtest is the only way in that a test binary has for a second process of it.
#[test]
#[ignore = "the process that the test below starts and kills, which fails if this does not run"]
fn child_that_waits_to_be_killed() {
    // Who runs all that is ignored has nothing to wait for.
    if std::env::var_os(CHILD).is_some() {
        let server = Server::private(15, &ServerOptions::default());
        eprintln!("data {}", server.data_dir().display());
        std::thread::sleep(Duration::from_secs(120));
    }
}

#[test]
fn a_killed_test_leaves_neither_server_nor_files() {
    let own = std::env::current_exe().unwrap();
    let child = "guard::child_that_waits_to_be_killed";
    let command = HowdahCommand::new(own).args(["--ignored", "--exact", child, "--nocapture"]);
    let child = command.envs([(CHILD, "1")]).spawn();
    let data = wait_for(|| {
        let text = child.stderr_so_far();
        let line = text.lines().find_map(|line| line.strip_prefix("data "))?;
        text.ends_with('\n').then(|| PathBuf::from(line))
    });
    let pid = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.lines().next().unwrap()));
    assert!(process.exists());
    child.kill();
    wait_for(|| (!data.parent().unwrap().exists()).then_some(()));
    assert!(!process.exists());
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}
