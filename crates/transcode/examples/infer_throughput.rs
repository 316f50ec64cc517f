//! How fast one core takes in the values of a column: prints MB/s of values for each kind.
//!
//! `cargo run --release -p howdah-transcode --example infer_throughput`

#![allow(clippy::print_stdout, clippy::disallowed_types)]

use howdah_transcode::infer::ColumnState;
use std::hint::black_box;
use std::time::Instant;

const VALUES: usize = 100_000;
const ROUNDS: usize = 50;

fn main() {
    measure("integers", |no| (no * 7919 % 1_000_000).to_string());
    measure("long integers", |no| (no * 1_000_003 * 7919).to_string());
    measure("words", |no| format!("egular courts {no} above"));
    measure("numeric(7,2)", |no| format!("{}.{:02}", no % 100_000, no % 100));
    measure("ISO dates", |no| format!("2024-{:02}-{:02}", no % 12 + 1, no % 28 + 1));
    measure("ISO timestamps", |no| format!("2024-{:02}-28 {:02}:{:02}:07", no % 12 + 1, no % 24, no % 60));
    measure("d/m/y dates", |no| format!("{:02}/{:02}/2024", no % 28 + 1, no % 12 + 1));
    measure("1,234.50", |no| format!("{},{:03}.50", no % 100 + 1, no % 1000));
    measure("uuid", |no| format!("a0eebc99-9c0b-4ef8-bb6d-{no:012x}"));
    measure("jsonb", |no| format!("{{\"name\": \"number {no}\", \"tags\": [1, 2, {no}]}}"));
}

/// Best of some rounds: what the code can do, not what the neighbours left of the machine.
fn measure(name: &str, value: impl Fn(usize) -> String) {
    let values: Vec<String> = (0..VALUES).map(value).collect();
    let bytes: usize = values.iter().map(String::len).sum();
    let mut seconds = f64::INFINITY;
    let mut type_name = String::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut state = ColumnState::default();
        for value in black_box(&values) {
            state.observe(value.as_bytes());
        }
        type_name = black_box(&state).finish(true).type_name;
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let rate = bytes as f64 / seconds / 1e6;
    println!("{name:16} {rate:8.0} MB/s {:6.1} ns a value  {type_name}", seconds * 1e9 / VALUES as f64);
}
