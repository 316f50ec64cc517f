//! What a load may hold in memory, whatever the shape of the table.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Finished, HowdahCommand, Server};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The default of `--memory`, and what the process needs besides (measured: a load of two rows peaks at 23
/// MB).
pub(crate) const MEMORY_BYTES_MAX: u64 = (256 + 32) << 20;

/// Runs the command and says how much memory it held at most.
pub(crate) fn run_and_watch(command: &HowdahCommand) -> (Finished, u64) {
    let mut running = command.spawn();
    let (began, mut peak) = (Instant::now(), 0);
    while running.is_running() && began.elapsed() < PATIENCE {
        peak = peak_bytes(running.pid()).unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    (running.wait(PATIENCE), peak)
}

/// The most memory that the command has held so far, while it lives.
///
/// Until the kernel has done with its `exec`, a process that was just started shows the memory of the one
/// that started it, and still bears the name of that thread: seen once, as the size of this test's own
/// process.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    if !status.starts_with("Name:\thowdah\n") {
        return None;
    }
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Sixteen sessions have more to send than memory has room for.
fn within_the_budget(create_sql: &str, text: &str, options: &[&str]) {
    let (database, files) = (Server::shared(15).database(), Files::new());
    database.sql(create_sql);
    let file = files.put("a.csv", text.as_bytes());
    let command =
        howdah("load").arg(file).args(["--to", &database.conninfo(), "--table", "t", "--jobs", "16"]);
    let (finished, peak_bytes) = run_and_watch(&command.args(options));
    finished.expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), text.lines().count().to_string());
    assert!(peak_bytes > 0 && peak_bytes <= MEMORY_BYTES_MAX, "held {peak_bytes} bytes");
}

#[test]
fn five_hundred_columns_fit_the_budget() {
    let types = ["int", "numeric", "date", "text", "timestamp"];
    let columns: Vec<String> = (0..500).map(|no| format!("c{no} {}", types[no % types.len()])).collect();
    let mut text = String::new();
    for row in 0..6000 {
        for no in 0..500 {
            let _ = match no % types.len() {
                0 => write!(text, "{row}"),
                1 => write!(text, "{row}.{no}"),
                2 => write!(text, "2024-01-{:02}", 1 + row % 28),
                3 => write!(text, "\"{row}, {no}\""),
                _ => write!(text, "2024-01-01 00:{:02}:00", row % 60),
            };
            text.push(if no == 499 { '\n' } else { ',' });
        }
    }
    let create = format!("CREATE TABLE t ({})", columns.join(", "));
    within_the_budget(&create, &text, &["--format", "csv"]);
    within_the_budget(&create, &text, &["--format", "csv", "--encode", "binary", "--chunk-size", "4MB"]);
}

#[test]
fn sixty_four_partitions_fit_the_budget() {
    let mut text = String::new();
    for row in 0..600_000 {
        let _ = writeln!(text, "{row},\"name, of {row}\",2024-01-01 00:00:00");
    }
    let leaves: String = (0..64)
        .map(|no| format!("CREATE TABLE t_{no} PARTITION OF t FOR VALUES WITH (MODULUS 64, REMAINDER {no});"))
        .collect();
    let create = format!("CREATE TABLE t (a int, b text, c timestamp) PARTITION BY HASH (a); {leaves}");
    for encode in ["csv", "text", "binary"] {
        within_the_budget(
            &create,
            &text,
            &["--format", "csv", "--partitions", "direct", "--encode", encode, "--chunk-size", "4MB"],
        );
    }
}
