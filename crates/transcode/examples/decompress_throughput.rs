//! How fast a compressed file is decoded, in order and with helpers: prints MB/s of plain bytes, to a null
//! target.
//!
//! `cargo run --release -p howdah-transcode --example decompress_throughput FILE [HELPERS [BYTES_AHEAD]]`

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_transcode::decompress::{Helpers, Piece, SNIFF_BYTES, ahead, sniff};
use parking_lot::Mutex;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// As the feeders take them.
const PIECE_BYTES: usize = 256 << 10;
/// What the default budget leaves.
const BYTES_AHEAD: usize = 26 << 20;
const ROUNDS: usize = 5;

struct Threads {
    count: usize,
    offer: Sender<Arc<Piece>>,
}

impl Threads {
    fn start(count: usize) -> Threads {
        let (offer, offered) = channel();
        let offered: Arc<Mutex<Receiver<Arc<Piece>>>> = Arc::new(Mutex::new(offered));
        for _ in 0..count {
            let offered = Arc::clone(&offered);
            std::thread::spawn(move || {
                loop {
                    let next = offered.lock().recv();
                    let Ok(piece) = next else { return };
                    piece.decode();
                }
            });
        }
        Threads { count, offer }
    }
}

impl Helpers for Threads {
    fn count(&self) -> usize {
        self.count
    }

    fn offer(&self, piece: Arc<Piece>) {
        // The threads end only when this is dropped.
        let _ = self.offer.send(piece);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((file, numbers)) = arguments.split_first() else { return println!("expected a FILE") };
    let numbers: Vec<usize> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let helpers = numbers.first().copied().unwrap_or(1);
    let bytes_ahead = numbers.get(1).copied().unwrap_or(BYTES_AHEAD);
    let stored = match std::fs::read(file) {
        Ok(stored) => stored,
        Err(error) => return println!("{file}: {error}"),
    };
    // Rounds of one and the other, so that a busy machine slows both.
    let mut speeds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (count, speeds) in [0, helpers].into_iter().zip(&mut speeds) {
            speeds.push(decode(&stored, Threads::start(count), bytes_ahead));
        }
    }
    let [in_order, helped] = speeds.map(median);
    println!("{file}: in order {in_order:.0} MB/s, with {helpers} helpers {helped:.0} MB/s");
}

/// MB/s of one pass.
fn decode(stored: &[u8], helpers: Threads, bytes_ahead: usize) -> f64 {
    let mut piece = vec![0; PIECE_BYTES];
    let mut plain_bytes = 0;
    let start = Instant::now();
    let head = &stored[..stored.len().min(SNIFF_BYTES)];
    let decoder = sniff(head).and_then(|codec| ahead(codec, stored, Arc::new(helpers), bytes_ahead));
    match decoder {
        Ok(mut decoder) => loop {
            match decoder.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => plain_bytes += count,
                Err(error) => {
                    println!("{error}");
                    break;
                }
            }
        },
        Err(error) => println!("{error}"),
    }
    plain_bytes as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}
