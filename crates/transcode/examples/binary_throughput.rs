//! How fast one core writes typed csv in COPY's binary format: prints MB/s of csv taken, to a null target. Of
//! a FILE also all that a feeder does for it: read from the page cache, split, encode.
//!
//! `cargo run --release -p howdah-transcode --example binary_throughput [-- FILE]`; the file is TPC-H's
//! lineitem as csv with a header.

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_model::BinaryType::{self, Date, Int4, Int8, Numeric, Text};
use howdah_model::{Eol, Format};
use howdah_transcode::encode::BinaryEncoder;
use howdah_transcode::split::{Rules, State};
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::time::Instant;

const LINEITEM: [BinaryType; 16] = [
    Int8, Int8, Int8, Int4, Numeric, Numeric, Numeric, Numeric, Text, Text, Date, Date, Date, Text, Text,
    Text,
];
/// Stays in the cache, as a chunk that has just been split does beside a near server.
const PIECE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 64;
/// Of a whole file, which takes longer.
const PASSES: usize = 7;
const SERVER_VERSION: u32 = 150_000;

fn main() {
    let row = "1,155190,7706,1,17.00,21168.23,0.04,0.02,N,O,1996-03-13,1996-02-12,1996-03-22,DELIVER IN PERSON,TRUCK,\
               \"egular courts, above the\"\n";
    let Some(encoder) = BinaryEncoder::new(&Format::csv(), Some(Eol::Lf), &LINEITEM, "UTC") else { return };
    let Some(path) = std::env::args().nth(1) else {
        return piece(&encoder, row.repeat(PIECE_BYTES / row.len()).as_bytes());
    };
    let mut head = vec![0; PIECE_BYTES];
    match File::open(&path).and_then(|mut file| file.read(&mut head)) {
        Ok(length) => piece(&encoder, whole_records(&head[after_header(&head)..length])),
        Err(error) => return println!("{error}"),
    }
    match (0..PASSES).map(|_| pass(&encoder, &path)).collect::<std::io::Result<Vec<f64>>>() {
        Ok(rates) => println!("{:.0} MB/s read, split and encoded", rates.into_iter().fold(0.0, f64::max)),
        Err(error) => println!("{error}"),
    }
}

fn after_header(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn whole_records(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &bytes[..end]
}

/// Best of some rounds: what the code can do, not what the neighbours left of the machine.
fn piece(encoder: &BinaryEncoder, records: &[u8]) {
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

/// MB/s of one pass over the file: what lies behind the last border of a piece goes in front of the next.
fn pass(encoder: &BinaryEncoder, path: &str) -> std::io::Result<f64> {
    let rules = Rules::new(&Format::csv(), SERVER_VERSION, Some(Eol::Lf)).map_err(std::io::Error::other)?;
    let (mut bytes, mut out) = (vec![0; 2 * PIECE_BYTES], vec![0; 4 * PIECE_BYTES]);
    let (mut kept, mut total, mut state) = (0, 0, State::START);
    let mut file = File::open(path)?;
    let start = Instant::now();
    loop {
        let length = file.read(&mut bytes[kept..kept + PIECE_BYTES])?;
        if length == 0 {
            break;
        }
        total += length;
        let scan = rules.scan(state, &bytes[kept..kept + length]);
        state = scan.state;
        let end = scan.last_border.map_or(0, |border| kept + border);
        let begin = if total == length { after_header(&bytes) } else { 0 };
        if begin < end && black_box(encoder.encode(&bytes[begin..end], 0, &mut out)).is_none() {
            return Err(std::io::Error::other("records that only the server can read for certain"));
        }
        bytes.copy_within(end..kept + length, 0);
        kept += length - end;
    }
    Ok(total as f64 / start.elapsed().as_secs_f64() / 1e6)
}
