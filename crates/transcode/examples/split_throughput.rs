//! How fast one core splits: prints GB/s for quoted csv, unquoted csv and text, to a null target: by pieces
//! that were just copied, as when a file is read, and all from where they lie, as when a range is split once
//! more.
//!
//! `cargo run --release -p howdah-transcode --example split_throughput [-- FILE csv|text]`

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_model::{Eol, Format};
use howdah_transcode::split::{Rules, State};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Stays in the cache, as a piece that has just been read does.
const PIECE_BYTES: usize = 128 << 10;
/// What is made up for the measurement; a FILE is measured as large as it is.
const SAMPLE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 64;
const VERSIONS: [u32; 2] = [180_000, 150_000];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [file, kind] = arguments.as_slice() {
        match std::fs::read(file) {
            Ok(bytes) => measure(file, &format(kind), &bytes),
            Err(error) => println!("{file}: {error}"),
        }
        return;
    }
    let backslash = Format { escape: b'\\', ..Format::csv() };
    let quoted =
        repeat("\"tt0000001\",\"1\",\"nm1588970\",\"self, \"\"herself\"\"\",\"\",\"[\"\"Self\"\"]\"\n");
    let escaped =
        repeat("\"tt0000001\",\"1\",\"nm1588970\",\"self, \\\"herself\\\"\",\"\",\"[\\\"Self\\\"]\"\n");
    let unquoted = repeat("1996-03-13,1,155190,7706,17,21168.23,0.04,0.02,N,O,TRUCK,egular courts\n");
    let text = repeat("tt0000001\t1\tnm1588970\tself\t\\N\t[\"Self\"]\n");
    measure("quoted csv", &Format::csv(), &quoted);
    measure("quoted csv, crlf", &Format::csv(), &crlf(&quoted));
    measure("quoted csv, escape \\", &backslash, &escaped);
    measure("unquoted csv", &Format::csv(), &unquoted);
    measure("text with \\N", &Format::text(), &text);
    measure("text, crlf", &Format::text(), &crlf(&text));
}

fn format(kind: &str) -> Format {
    if kind == "text" { Format::text() } else { Format::csv() }
}

fn repeat(record: &str) -> Vec<u8> {
    let mut bytes = record.repeat(SAMPLE_BYTES / record.len()).into_bytes();
    bytes.extend_from_slice(record.as_bytes());
    bytes
}

fn crlf(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes()
}

/// Best of a few rounds: what the code can do, not what the neighbours left of the machine.
fn measure(name: &str, format: &Format, bytes: &[u8]) {
    let eol = if bytes.windows(2).take(4096).any(|pair| pair == b"\r\n") { Eol::CrLf } else { Eol::Lf };
    for version in VERSIONS {
        let Ok(rules) = Rules::new(format, version, Some(eol)) else { return };
        let mut piece = vec![0; PIECE_BYTES];
        let read = best(bytes, || by_pieces(&rules, bytes, &mut piece));
        let again = best(bytes, || {
            let start = Instant::now();
            black_box(rules.scan(State::START, black_box(bytes)));
            start.elapsed()
        });
        println!("{name:24} server {version}: as it is read {read:6.2} GB/s, once more {again:6.2} GB/s");
    }
}

/// Copying is not measured: it is the price of reading.
fn by_pieces(rules: &Rules, bytes: &[u8], piece: &mut [u8]) -> Duration {
    let (mut state, mut spent) = (State::START, Duration::ZERO);
    for read in bytes.chunks(PIECE_BYTES) {
        let piece = &mut piece[..read.len()];
        piece.copy_from_slice(read);
        let start = Instant::now();
        state = black_box(rules.scan(state, black_box(piece))).state;
        spent += start.elapsed();
    }
    spent
}

fn best(bytes: &[u8], mut work: impl FnMut() -> Duration) -> f64 {
    let seconds = (0..ROUNDS).map(|_| work().as_secs_f64());
    bytes.len() as f64 / seconds.fold(f64::INFINITY, f64::min) / 1e9
}
