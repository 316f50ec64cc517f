//! How fast one core inspects records that pass, and reads them carefully: to a null target.
//!
//! `cargo run --release -p howdah-transcode --example inspect_throughput`

#![allow(clippy::print_stdout, clippy::disallowed_types, clippy::disallowed_methods)]

use howdah_model::{Dialect, Eol, Escape};
use howdah_transcode::inspect::Inspector;
use howdah_transcode::mend::{self, Counts, Field, Shape};
use std::error::Error;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Stays in the cache, as a piece that has just been read does.
const PIECE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let csv = Dialect::csv();
    let text = Dialect {
        delimiter: "\t".to_owned(),
        quote: None,
        escape: Escape::Backslash,
        nulls: vec!["\\N".to_owned()],
        ..csv.clone()
    };
    let crlf = Dialect { eol: Some(Eol::CrLf), ..csv.clone() };
    let quoted = "\"tt0000001\",\"1\",\"nm1588970\",\"self, \"\"herself\"\"\",\"\",\"[\"\"Self\"\"]\"\n";
    let simple = "1996-03-13,1,155190,7706,17,21168.23,0.04,0.02,N,O,TRUCK,egular courts\n";
    let accents = "1996-03-13,1,155190,7706,17,21168.23,0.04,0.02,N,O,CAFÉ,égular coürts\n";
    measure("simple csv", &csv, 12, simple)?;
    measure("simple csv, crlf", &crlf, 12, &simple.replace('\n', "\r\n"))?;
    measure("csv beyond ASCII", &csv, 12, accents)?;
    measure("quoted csv", &csv, 6, quoted)?;
    measure("text with \\N", &text, 6, "tt0000001\t1\tnm1588970\tself\t\\N\t[\"Self\"]\n")
}

fn measure(name: &str, dialect: &Dialect, width: usize, record: &str) -> Result<(), Box<dyn Error>> {
    let bytes = record.repeat(PIECE_BYTES / record.len()).into_bytes();
    let format = dialect.to_format().ok_or("COPY cannot be told this dialect")?;
    let inspector = Inspector::new(&format, dialect, width)?;
    if let Some(odd) = inspector.inspect(&bytes) {
        return Err(odd.message.into());
    }
    let inspected = best(bytes.len(), || {
        black_box(inspector.inspect(black_box(&bytes)));
        Ok(())
    })?;
    let mut read = [0.0; 2];
    for (gigabytes, lenient) in read.iter_mut().zip([false, true]) {
        let shape = Shape {
            dialect: dialect.clone(),
            fields: vec![Field::as_it_is(); width],
            names: Vec::new(),
            data_start_byte: 0,
            data_end_byte: None,
            end: None,
            lenient,
            skips: false,
            nul: howdah_model::Nul::Reject,
            record_bytes_max: 1 << 20,
            read: |_, _, _| false,
        };
        *gigabytes = best(bytes.len(), || {
            let mut reader = mend::reader(&shape, black_box(bytes.as_slice()), Arc::new(Counts::new(width)))?;
            io::copy(&mut reader, &mut io::sink())?;
            Ok(())
        })?;
    }
    let [strict, lenient] = read;
    println!(
        "{name:20} inspected {inspected:6.2} GB/s, read {strict:5.2} GB/s, leniently {lenient:5.2} GB/s"
    );
    Ok(())
}

/// Best of a few rounds: what the code can do, not what the neighbours left of the machine.
fn best(bytes: usize, work: impl Fn() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut seconds = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work()?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(bytes as f64 / seconds / 1e9)
}
