//! `--jobs auto`: how many sessions copy, and the trace of how that was found.

use crate::scene::{Files, PATIENCE, Scene, csv, write_slowly};
use howdah_testkit::Server;
use serde_json::Value;
use std::time::Duration;

/// The first guess on a server of this machine.
fn first_guess() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(2, |cpus| cpus.get() as u64);
    cpus.saturating_sub(1).max(2)
}

/// The steps of a summary, each of which begins where the one before it ended.
fn trace(summary: &Value) -> Vec<Value> {
    let steps = summary["sessions_trace"].as_array().unwrap().clone();
    for pair in steps.windows(2) {
        assert_eq!(pair[0]["after"], pair[1]["before"], "{steps:#?}");
        assert!(pair[0]["seconds"].as_f64() < pair[1]["seconds"].as_f64(), "{steps:#?}");
    }
    let wall_seconds = summary["wall_seconds"].as_f64().unwrap();
    assert!(steps.iter().all(|step| step["seconds"].as_f64().unwrap() < wall_seconds), "{summary:#}");
    steps
}

fn largest(steps: &[Value], key: &str) -> u64 {
    steps.iter().map(|step| step[key].as_u64().unwrap()).max().unwrap()
}

/// Rows that sleep are as many times faster as there are sessions.
#[test]
fn sessions_are_added_while_they_help_and_the_trace_says_how() {
    let plain = csv(71, 1, 200_000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let first = first_guess();
    scene.slow_rows_down("BEFORE", Duration::from_millis(100) * u32::try_from(first).unwrap());
    let load = scene.load().args(["--json", "--chunk-size", "256kB"]).arg(&source);
    let summary: Value = serde_json::from_str(&load.run(PATIENCE).expect_code(0).stdout).unwrap();
    scene.assert_exact("all rows");
    let steps = trace(&summary);
    assert_eq!(
        (&steps[0]["before"], &steps[0]["reason"]),
        (&first.into(), &"measured".into()),
        "{summary:#}"
    );
    assert!(largest(&steps, "after") > first, "{steps:#?}");
    assert!(steps.iter().all(|step| step["mb_per_second"].as_f64().unwrap() > 0.0), "{steps:#?}");
    let slept =
        |step: &Value| step["wait"] == "Timeout:PgSleep" && step["wait_share"].as_f64().unwrap() > 0.5;
    assert!(slept(&steps[0]), "{steps:#?}");
    // The last step may have come when there was nothing left to copy.
    let sessions = summary["sessions"].as_u64().unwrap();
    let most = largest(&steps, "after").max(first);
    assert!((largest(&steps, "before")..=most).contains(&sessions), "{sessions}\n{steps:#?}");

    let again =
        scene.load().args(["--json", "--jobs", "3", "--force"]).arg(files.put("b.csv", &csv(72, 1, 500)));
    let summary: Value = serde_json::from_str(&again.run(PATIENCE).expect_code(0).stdout).unwrap();
    assert_eq!(trace(&summary), Vec::<Value>::new());
}

#[test]
fn sessions_that_get_nothing_to_copy_are_not_joined_by_others() {
    let files = Files::new();
    let fifo = files.path().join("slow.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let scene = Scene::new(Server::shared(18), &[]);
    let running = scene.load().args(["--json", "--chunk-size", "64kB"]).arg(&fifo).spawn();
    let mut pipe = std::fs::File::options().write(true).open(&fifo).unwrap();
    write_slowly(&scene, &mut pipe, &csv(73, 1, 40_000));
    drop(pipe);
    let summary: Value = serde_json::from_str(&running.wait(PATIENCE).expect_code(0).stdout).unwrap();
    let steps = trace(&summary);
    assert_eq!(steps[0]["before"], first_guess(), "{summary:#}");
    let seen = (&steps[0]["reason"], &steps[0]["wait"]);
    assert_eq!(seen, (&"no_chunks".into(), &"Client:ClientRead".into()), "{steps:#?}");
    assert!(largest(&steps, "after") <= first_guess(), "{steps:#?}");
}
