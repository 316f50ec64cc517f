//! `howdah bench`: the user's own file on the user's own server, by howdah and by one plain COPY.

use super::Process;
use super::load::json;
use super::plan::show_version;
use crate::Exit;
use crate::account::{self, short};
use crate::options::{BenchOptions, LoadOptions};
use crate::printer::Printer;
use crate::units::{show_bytes, show_rows, show_seconds};
use howdah_engine::bench::{Measured, Round};
use howdah_engine::model::{Error, ErrorKind, Event, Listener, Result, counted};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;

/// Measures and prints what came of it.
///
/// # Errors
/// `Usage` for options that a measurement cannot follow; those of [`howdah_engine::bench()`].
pub async fn bench(options: BenchOptions, process: &Process<'_>) -> Result<Exit> {
    expect_none_for_the_ledger(&options.load)?;
    let printer = process.printer;
    let settings = process.resolve(options.load)?;
    let connection = process.connect_again(settings.access).await?;
    let context = process.context(connection, Arc::new(Remarks(printer.clone())));
    let measured = howdah_engine::bench(&context, settings.job, options.rounds).await?;
    let report = Report::of(&measured);
    printer.out(&if printer.json() { json(&report) } else { report.text() });
    Ok(Exit::Success)
}

/// The ledger of a measurement goes with its schema. Options of a job file are meant for the load.
fn expect_none_for_the_ledger(options: &LoadOptions) -> Result<()> {
    let (run, bad_records) = (&options.run, &options.bad_records);
    let typed = [
        ("--job-id", run.job_id.is_some()),
        ("--known", run.known.is_some()),
        ("--if-done", run.if_done.is_some()),
        ("--force", run.force),
        ("--rejects", bad_records.rejects.is_some()),
        ("--reject-file", bad_records.reject_file.is_some()),
    ];
    match typed.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => {
            let message =
                format!("{name} is about jobs of the ledger, and bench keeps nothing of what it loads");
            Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out, and give it to the load"))
        }
    }
}

/// Says what is going on, a line a round.
struct Remarks(Printer);

impl Listener for Remarks {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Notice { message } => self.0.say(message),
            Event::Warning { message } => self.0.warn(message),
            _ => {}
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    copy_figures: Option<Figures>,
    howdah_figures: Option<Figures>,
    /// Wall time of howdah by that of one COPY, round by round.
    ratio: Option<Spread>,
    /// What held howdah back in the last round; none if that was too short to be sampled.
    limit: Option<String>,
}

/// The middle and the ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// `None` for no values.
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Spread { median: f64::midpoint(lower, upper), min, max })
    }
}

/// The rounds of one side.
#[derive(Serialize)]
struct Figures {
    wall_seconds: Spread,
    client_cpu_seconds: Spread,
    /// Where the server's processes can be seen.
    server_cpu_seconds: Option<Spread>,
    /// Of howdah, where the kernel tells it.
    peak_memory_bytes: Option<Spread>,
    /// Stored bytes of the file, by the median.
    bytes_per_second: Option<f64>,
}

impl Figures {
    fn of(rounds: &[Round], stored_bytes: Option<u64>) -> Option<Figures> {
        let wall_seconds = Spread::of(rounds.iter().map(|round| round.wall_seconds))?;
        Some(Figures {
            wall_seconds,
            client_cpu_seconds: Spread::of(rounds.iter().map(|round| round.client_cpu_seconds))?,
            server_cpu_seconds: Spread::of(rounds.iter().filter_map(|round| round.server_cpu_seconds)),
            peak_memory_bytes: Spread::of(
                rounds.iter().filter_map(|round| round.peak_memory_bytes).map(|bytes| bytes as f64),
            ),
            bytes_per_second: stored_bytes.map(|bytes| bytes as f64 / wall_seconds.median.max(1e-9)),
        })
    }

    fn line(&self, name: &str) -> String {
        let Spread { median, min, max } = self.wall_seconds;
        let server = self.server_cpu_seconds.map(|cpu| show_seconds(cpu.median));
        let rate = self.bytes_per_second.map(|rate| format!("{}/s", show_bytes(rate as u64)));
        format!(
            "{name:<9} {:>10}  {:>22} {:>11} {:>12} {:>13}",
            show_seconds(median),
            format!("{} to {}", show_seconds(min), show_seconds(max)),
            show_seconds(self.client_cpu_seconds.median),
            server.unwrap_or_else(|| "not visible".to_owned()),
            rate.unwrap_or_else(|| "-".to_owned()),
        )
    }
}

impl<'a> Report<'a> {
    fn of(measured: &'a Measured) -> Report<'a> {
        let figures = |rounds: &[Round]| Figures::of(rounds, measured.stored_bytes);
        let pairs = measured.howdah.iter().zip(&measured.copy);
        Report {
            measured,
            copy_figures: figures(&measured.copy),
            howdah_figures: figures(&measured.howdah),
            ratio: Spread::of(pairs.map(|(ours, theirs)| ours.wall_seconds / theirs.wall_seconds.max(1e-9))),
            limit: account::limit(&measured.summary),
        }
    }

    /// Each line begins with a word of what it is about.
    fn text(&self) -> String {
        let Measured {
            file, stored_bytes, table, server_version, rows, copy_refused, copy_null, howdah, ..
        } = self.measured;
        let size = stored_bytes.map_or("size unknown".to_owned(), show_bytes);
        let shape = table.as_ref().map_or("a table made from the data".to_owned(), |table| {
            format!("an empty table with the shape of {table}")
        });
        let rounds = howdah.len();
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "file      {}: {size}, {}", short(file), show_rows(*rows));
        let _ = writeln!(text, "into      {shape}; PostgreSQL {}", show_version(*server_version));
        let _ = writeln!(
            text,
            "{:<9} {:>10}  {:>22} {:>11} {:>12} {:>13}",
            counted(rounds, "round"),
            "median",
            "min to max",
            "client CPU",
            "server CPU",
            "rate"
        );
        for (name, figures) in [("one COPY", &self.copy_figures), ("howdah", &self.howdah_figures)] {
            if let Some(figures) = figures {
                let _ = writeln!(text, "{}", figures.line(name));
            }
        }
        if let Some(Spread { median, min, max }) = self.ratio {
            let _ = writeln!(text, "ratio     {median:>10.2}  {:>22}", format!("{min:.2} to {max:.2}"));
        }
        let memory = self.howdah_figures.as_ref().and_then(|figures| figures.peak_memory_bytes);
        let memory = memory.map_or("not visible".to_owned(), |peak| {
            format!("{} at most, of howdah's process in its rounds", show_bytes(peak.max as u64))
        });
        let _ = writeln!(text, "memory    {memory}");
        if let Some(reason) = copy_refused {
            let _ = writeln!(text, "COPY      cannot load this file, so howdah is measured alone: {reason}");
        }
        if let Some(null) = copy_null {
            let _ = writeln!(text, "COPY      is told NULL '{null}' alone, as --null '{null}' tells both");
        }
        let limit = self.limit.as_deref().unwrap_or("the load was too short to see what held it back");
        let _ = write!(text, "limit     {limit}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    }
}
