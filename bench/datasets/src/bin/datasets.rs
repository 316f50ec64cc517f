//! The `datasets` command: makes benchmark files. One line per file made goes to stderr.

use clap::{Args, Parser, Subcommand};
use howdah_datasets::Rows;
use howdah_datasets::bigrow::BigRow;
use howdah_datasets::documents::Documents;
use howdah_datasets::imdb::Table;
use howdah_datasets::output::{Limit, write_file};
use howdah_datasets::quoted::Quoted;
use howdah_datasets::sensor::SensorLog;
use howdah_datasets::wide::Wide;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Instant;

/// Makes seeded data files for benchmarks.
#[derive(Parser)]
#[command(name = "datasets")]
struct Options {
    #[command(subcommand)]
    dataset: Dataset,
}

#[derive(Subcommand)]
enum Dataset {
    /// IMDb's seven files in shape and statistics, tab-separated.
    Imdb {
        /// Share of the rows of about the year 2020; 0.1 gives title.principals 4,000,000 rows.
        #[arg(long, default_value_t = 0.1)]
        scale: f64,
        /// This many rows in each file instead.
        #[arg(long, conflicts_with = "scale")]
        rows: Option<u64>,
        /// Make only this file, such as title.principals. May be given more than once.
        #[arg(long)]
        only: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// sensor_log.csv: id, location, reading, date.
    Sensor {
        /// Rows.
        #[arg(long, default_value_t = 800_000)]
        rows: u64,
        /// Days of January 2015 over which they are spread, 1 to 31.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=31))]
        days: u64,
        #[command(flatten)]
        output: Output,
    },
    /// quoted.csv: quotes, commas and newlines inside quoted fields.
    Quoted {
        /// Plain bytes; the last row is finished.
        #[arg(long, default_value_t = 256 << 20)]
        bytes: u64,
        #[command(flatten)]
        output: Output,
    },
    /// wide.csv: many short columns.
    Wide {
        /// Rows.
        #[arg(long, default_value_t = 100_000)]
        rows: u64,
        /// Columns.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1600))]
        columns: u32,
        #[command(flatten)]
        output: Output,
    },
    /// documents.csv: a number and a JSON document.
    Documents {
        /// Rows.
        #[arg(long, default_value_t = 40_000)]
        rows: u64,
        /// Bytes of a document, about.
        #[arg(long, default_value_t = 20_000)]
        document_bytes: usize,
        #[command(flatten)]
        output: Output,
    },
    /// bigrow.csv: small rows with a huge one now and then.
    Bigrow {
        /// Plain bytes; the last row is finished.
        #[arg(long, default_value_t = 2 << 30)]
        bytes: u64,
        /// Bytes of the huge row's body.
        #[arg(long, default_value_t = 8 << 20)]
        row_bytes: usize,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args)]
struct Output {
    /// The folder for the files; made if it is not there.
    #[arg(long)]
    out: PathBuf,
    /// The same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write NAME.gz, compressed at level 6.
    #[arg(long)]
    gzip: bool,
}

impl Output {
    fn write(&self, name: &str, rows: &mut dyn Rows, limit: Limit) -> io::Result<()> {
        std::fs::create_dir_all(&self.out)?;
        let path = self.out.join(if self.gzip { format!("{name}.gz") } else { name.to_owned() });
        let start = Instant::now();
        let written = write_file(&path, self.gzip, rows, limit)?;
        let stored_bytes = std::fs::metadata(&path)?.len();
        writeln!(
            io::stderr(),
            "{}: {} rows, {} bytes, {stored_bytes} stored, {:.0} MB/s",
            path.display(),
            written.rows,
            written.plain_bytes,
            written.plain_bytes as f64 / 1e6 / start.elapsed().as_secs_f64(),
        )
    }
}

fn imdb(scale: f64, rows: Option<u64>, only: &[String], output: &Output) -> io::Result<()> {
    let rows_of = |table: Table| rows.unwrap_or((table.rows_at_scale_one() as f64 * scale).round() as u64);
    if let Some(unknown) = only.iter().find(|name| Table::ALL.iter().all(|table| table.file_stem() != **name))
    {
        let names = Table::ALL.map(Table::file_stem).join(", ");
        return Err(io::Error::other(format!("no file is called {unknown}; expected one of {names}")));
    }
    for table in Table::ALL {
        if only.is_empty() || only.iter().any(|name| name == table.file_stem()) {
            let people = u32::try_from(rows_of(Table::Names)).unwrap_or(u32::MAX).max(1);
            let name = format!("{}.tsv", table.file_stem());
            output.write(&name, table.rows(output.seed, people).as_mut(), Limit::Rows(rows_of(table)))?;
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    match &Options::parse().dataset {
        Dataset::Imdb { scale, rows, only, output } => imdb(*scale, *rows, only, output),
        Dataset::Sensor { rows, days, output } => {
            output.write("sensor_log.csv", &mut SensorLog::new(output.seed, *rows, *days), Limit::Rows(*rows))
        }
        Dataset::Quoted { bytes, output } => {
            output.write("quoted.csv", &mut Quoted::new(output.seed), Limit::Bytes(*bytes))
        }
        Dataset::Wide { rows, columns, output } => {
            output.write("wide.csv", &mut Wide::new(output.seed, *columns), Limit::Rows(*rows))
        }
        Dataset::Documents { rows, document_bytes, output } => output.write(
            "documents.csv",
            &mut Documents::new(output.seed, *document_bytes),
            Limit::Rows(*rows),
        ),
        Dataset::Bigrow { bytes, row_bytes, output } => {
            output.write("bigrow.csv", &mut BigRow::new(output.seed, *row_bytes), Limit::Bytes(*bytes))
        }
    }
}
