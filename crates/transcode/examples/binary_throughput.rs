//! How fast one core writes typed csv in COPY's binary format: prints MB/s of csv taken, to a null target.
//!
//! `cargo run --release -p howdah-transcode --example binary_throughput [-- FILE]`; the file is TPC-H's lineitem as
//! csv without a header.

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_model::BinaryType::{self, Date, Int4, Int8, Numeric, Text};
use howdah_model::{Eol, Format};
use howdah_transcode::encode::BinaryEncoder;
use std::hint::black_box;
use std::time::Instant;

const LINEITEM: [BinaryType; 16] = [
    Int8, Int8, Int8, Int4, Numeric, Numeric, Numeric, Numeric, Text, Text, Date, Date, Date, Text, Text,
    Text,
];
/// Stays in the cache, as a chunk that has just been split does beside a near server.
const PIECE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 64;

fn main() {
    let row = "1,155190,7706,1,17.00,21168.23,0.04,0.02,N,O,1996-03-13,1996-02-12,1996-03-22,DELIVER IN PERSON,TRUCK,\
               \"egular courts, above the\"\n";
    let of_file = std::env::args().nth(1).map(std::fs::read);
    let records = match of_file {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return println!("{error}"),
        None => row.repeat(PIECE_BYTES / row.len()).into_bytes(),
    };
    let whole = records.len().min(PIECE_BYTES);
    let end = records.iter().take(whole).rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    measure(&records[..end]);
}

/// Best of some rounds: what the code can do, not what the neighbours left of the machine.
fn measure(records: &[u8]) {
    let Some(encoder) = BinaryEncoder::new(&Format::csv(), Some(Eol::Lf), &LINEITEM, "UTC") else { return };
    let mut out = vec![0; 2 * records.len()];
    let (mut seconds, mut written) = (f64::INFINITY, None);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        written = black_box(encoder.encode(black_box(records), 0, black_box(&mut out)));
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let written = written.map_or("left as it is".to_owned(), |encoded| format!("{} bytes", encoded.length));
    println!("{:.0} MB/s, {} bytes become {written}", records.len() as f64 / seconds / 1e6, records.len());
}
