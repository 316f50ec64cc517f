//! The oracle: random nasty files, loaded by howdah in several ways and by one COPY of the server.
//!
//! Seed by seed a [`NastyFile`] is drawn and its fate asked of the server. Then howdah loads it: in chunks
//! from 16 bytes to all in one, with one session or three, from plain files, compressed ones and pipes, with
//! and without a ledger, told the columns or reading them from the header, passing the bytes on or, for a
//! table that lacks a column, rewriting them. Either both store the same rows, or both refuse at the same
//! record, and then exactly the records of the chunks before it are in.
//!
//! `HOWDAH_ORACLE_FILES` (300) and `HOWDAH_ORACLE_SEED` (0) say how many seeds and from where; `make oracle`
//! is the nightly run. The seed alone decides everything, the server's version included.

mod compare;
mod server;
mod variant;

use crate::rig::{Loader, location};
use compare::{check_refused, check_stored};
use howdah_engine::copy_options;
use howdah_engine::model::{Error, ErrorKind, Header, Job, Jobs, LedgerChoice};
use howdah_testkit::{MAJORS, NastyFile, NastyOptions, Server};
use server::{Fate, Oracle, Target};
use std::time::Instant;
use tempfile::TempDir;
use variant::{Source, Variant};

/// The schema of the ledger, for the loads that keep one.
const LEDGER: &str = "oracle_ledger";

/// Files between lines of progress, for the nightly run.
const PROGRESS_EVERY: u64 = 1000;

/// Failures listed before a run gives up.
const FAILURES_MAX: usize = 20;

#[test]
fn a_load_is_what_one_copy_is_on_postgresql_13() {
    run(13);
}

#[test]
fn a_load_is_what_one_copy_is_on_postgresql_15() {
    run(15);
}

#[test]
fn a_load_is_what_one_copy_is_on_postgresql_18() {
    run(18);
}

/// A third of the seeds.
fn run(major: u32) {
    let (files, first) = (number("HOWDAH_ORACLE_FILES", 300), number("HOWDAH_ORACLE_SEED", 0));
    let started = Instant::now();
    let bench = Bench::new(major);
    let mut account = Account::default();
    let mut failures = Vec::new();
    for seed in (first..first + files).filter(|seed| MAJORS[(seed % 3) as usize] == major) {
        if let Err(failure) = bench.check(seed, &mut account) {
            failures.push(format!("seed {seed}: {failure}"));
        }
        if account.files.is_multiple_of(PROGRESS_EVERY) {
            println!("PostgreSQL {major}: {} files, {} failures", account.files, failures.len());
        }
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("PostgreSQL {major}: {account:?} in {seconds:.0} s");
    assert!(
        failures.is_empty(),
        "on PostgreSQL {major}:\n{}\nreplay: HOWDAH_ORACLE_SEED=<seed> HOWDAH_ORACLE_FILES=1 \
         cargo test -p howdah-engine --test it oracle",
        failures.join("\n")
    );
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// What was tried.
#[derive(Debug, Default)]
struct Account {
    files: u64,
    /// Files that COPY refused.
    refused: u64,
    loads: u64,
}

struct Bench {
    oracle: Oracle,
    loader: Loader,
    folder: TempDir,
    options: NastyOptions,
}

impl Bench {
    fn new(major: u32) -> Bench {
        let database = Server::shared(major).database();
        let loader = Loader::new(&database);
        let oracle = Oracle::new(database, &loader.runtime);
        Bench { oracle, loader, folder: TempDir::new().unwrap(), options: NastyOptions::for_major(major) }
    }

    /// One file, loaded in all the ways its seed says.
    fn check(&self, seed: u64, account: &mut Account) -> Result<(), String> {
        let file = NastyFile::new(seed, &self.options);
        let parsed = copy_options::parse(&file.copy_options()).map_err(|error| error.to_string())?;
        if parsed != file.format {
            return Err(format!("{} was read as {parsed:?}", file.copy_options()));
        }
        let table = self.oracle.table(&file);
        let fate = self.oracle.copy(table, &file, &file.bytes)?;
        account.files += 1;
        account.refused += u64::from(matches!(fate, Fate::Refused { .. }));
        for (no, variant) in Variant::draw(seed, &file).iter().enumerate() {
            account.loads += 1;
            self.try_variant(&file, table, &fate, variant, no).map_err(|failure| {
                format!("{failure}\n    {variant:?}, {}, {:?}", file.copy_options(), file.eol)
            })?;
        }
        Ok(())
    }

    fn try_variant(
        &self,
        file: &NastyFile,
        table: u32,
        fate: &Fate,
        variant: &Variant,
        no: usize,
    ) -> Result<(), String> {
        let target = Target { number: table, without_last: variant.without_last };
        self.oracle.empty(target);
        // Another name each time: the same file with another time would be a changed source to the ledger.
        let path = self.folder.path().join(format!("{}-{no}{}", file.seed, variant.source.ending()));
        let written = variant.source.write(&path, &file.bytes);
        let job = self.job(file, &location(&path), target, variant);
        let loaded = self.loader.load_after(job, |plan| plan.taper = variant.taper());
        written.finish(&path);
        let error = loaded.error.as_ref();
        if error.is_some_and(|error| is_refused_on_purpose(file, self.options.major, error)) {
            return Ok(());
        }
        let checked = match (fate, error) {
            (Fate::Stored { rows }, None) => check_stored(&self.oracle, target, *rows, &loaded),
            (Fate::Refused { record, message }, Some(error)) => {
                check_refused(&self.oracle, file, target, (*record, message), variant, &loaded, error)
            }
            (Fate::Stored { rows }, Some(error)) => Err(format!("COPY stored {rows} rows, howdah: {error}")),
            (Fate::Refused { .. }, None) => Err("howdah stored it".to_owned()),
        };
        checked.map_err(|failure| format!("COPY: {fate:?}\n    {failure}"))
    }

    fn job(&self, file: &NastyFile, location: &str, target: Target, variant: &Variant) -> Job {
        let mut job = crate::rig::job(&[location], &target.name(), file.format.clone());
        job.chunk_bytes = Some(variant.chunk_bytes);
        job.jobs = Jobs::Fixed(variant.jobs);
        job.encode = variant.encode;
        job.ignore_extra = variant.without_last;
        job.columns = (!variant.by_name).then(|| file.columns.clone());
        if variant.ledger {
            job.ledger = LedgerChoice::Schema(LEDGER.to_owned());
        }
        job
    }
}

/// A backslash as the quote needs PostgreSQL 18: before, what ends the data depends on where buffers end.
fn is_refused_on_purpose(file: &NastyFile, major: u32, error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported && file.format.quote == b'\\' && major < 18
}

/// The header decides about the columns, so its damage is no record's.
fn has_header(file: &NastyFile) -> bool {
    file.format.header != Header::None
}

/// A pipe's data comes once, in order; so does a compressed file's. With one session nothing overtakes.
fn is_in_order(variant: &Variant) -> bool {
    variant.jobs == 1 && variant.source != Source::Plain
}
