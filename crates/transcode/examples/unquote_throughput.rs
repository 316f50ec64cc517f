//! How fast one core writes csv as COPY text: prints GB/s of csv taken, to a null target.
//!
//! `cargo run --release -p howdah-transcode --example unquote_throughput [-- FILE DELIMITER NULL]`

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_model::Format;
use howdah_transcode::encode::Unquoter;
use std::hint::black_box;
use std::time::Instant;

/// Stays in the cache, as a chunk that has just been split does beside a near server.
const PIECE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [file, delimiter, null] = arguments.as_slice() {
        match std::fs::read(file) {
            Ok(bytes) => measure(file, &format(delimiter, null), &bytes),
            Err(error) => println!("{file}: {error}"),
        }
        return;
    }
    let all = "\"tt0000001\",\"1\",\"nm1588970\",\"self, \"\"herself\"\"\",\"x\",\"[\"\"Self\"\"]\"\n";
    let one = "1,155190,7706,17,21168.23,0.04,0.02,N,O,1996-03-13,TRUCK,\"egular, regular courts\"\n";
    let none = "1996-03-13,1,155190,7706,17,21168.23,0.04,0.02,N,O,TRUCK,egular courts\n";
    let principals = "tt0000001\t1\tnm1588970\tself\t\\N\t[\"Self\"]\n";
    measure("all fields quoted", &format(",", ""), &repeat(all));
    measure("one field quoted", &format(",", ""), &repeat(one));
    measure("nothing quoted", &format(",", ""), &repeat(none));
    measure("quotes and \\N", &format("\t", "\\N"), &repeat(principals));
}

fn format(delimiter: &str, null: &str) -> Format {
    Format { delimiter: delimiter.bytes().next().unwrap_or(b','), null: null.to_owned(), ..Format::csv() }
}

fn repeat(record: &str) -> Vec<u8> {
    record.repeat(PIECE_BYTES / record.len()).into_bytes()
}

/// Best of some rounds: what the code can do, not what the neighbours left of the machine.
fn measure(name: &str, format: &Format, bytes: &[u8]) {
    let Some(unquoter) = Unquoter::new(format) else { return };
    let mut out = vec![0; bytes.len() + bytes.len() / 8];
    let (mut seconds, mut written) = (f64::INFINITY, None);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        written = black_box(unquoter.unquote(black_box(bytes), black_box(&mut out)));
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let written = written.map_or("left as it is".to_owned(), |length| format!("{length} bytes"));
    println!(
        "{name:20} {:6.2} GB/s, {} bytes become {written}",
        bytes.len() as f64 / seconds / 1e9,
        bytes.len()
    );
}
