//! What becomes of records that the table does not take: its options, and what they mean.

use crate::options::LoadOptions;
use crate::settings::single_option;
use clap::{Args, ValueEnum};
use howdah_engine::model::{BadRecords, Error, ErrorKind, LedgerChoice, MaxErrors, Nul, OnError, Result};
use std::path::PathBuf;

/// What becomes of records that the table does not take.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for bad records")]
pub struct BadRecordOptions {
    /// A record that the table does not take, for whatever reason: the load stops, or keeps the record in the
    /// ledger's table `reject` and goes on (exit code 3) [default: stop]
    #[arg(long, value_enum)]
    pub on_error: Option<OnErrorName>,
    /// With --on-error skip: stop when more records than this are refused, or a larger share of those read;
    /// in any case when the first thousand are [default: any number]
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<String>,
    /// NUL bytes, which no text of PostgreSQL can hold: records with one do not fit, or they are dropped, or
    /// each is replaced by U+FFFD; how many records had some is told [default: reject]
    #[arg(long, value_enum)]
    pub nul: Option<NulName>,
    /// With --on-error skip: write what was refused to this file when the load ends, in the format of the
    /// files loaded, but in UTF-8 what the server has refused of files in UTF-16; one that stands there when
    /// the command begins is replaced, or removed where nothing was refused; what another command writes
    /// there meanwhile stays, with a warning
    #[arg(long, value_name = "FILE")]
    pub reject_file: Option<PathBuf>,
    /// The sources are what --reject-file has written for this job, mended by now: load them into the table
    /// that they were meant for, in the format they have, on top of the rows that are there
    #[arg(long, value_name = "JOB")]
    pub rejects: Option<String>,
    /// What the records are read for
    #[arg(skip)]
    pub purpose: Purpose,
}

/// What records are read for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To be stored.
    #[default]
    Load,
    /// To find all bad ones, whatever a load is to do about them.
    Check,
}

/// What is done about a bad record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnErrorName {
    /// The load stops at it
    Stop,
    /// It is kept aside
    Skip,
}

/// What becomes of NUL bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NulName {
    /// The record does not fit
    Reject,
    /// They are dropped
    Strip,
    /// U+FFFD takes the place of each
    Replace,
}

impl BadRecordOptions {
    /// What becomes of NUL bytes.
    pub fn nul(&self) -> Nul {
        match self.nul {
            None | Some(NulName::Reject) => Nul::Reject,
            Some(NulName::Strip) => Nul::Strip,
            Some(NulName::Replace) => Nul::Replace,
        }
    }

    /// What they say.
    ///
    /// # Errors
    /// `Usage` for a number that is none, and for what needs a ledger without one.
    pub fn resolve(&self, ledger: &LedgerChoice) -> Result<BadRecords> {
        let on_error = match (self.purpose, self.on_error) {
            (Purpose::Check, _) | (Purpose::Load, Some(OnErrorName::Skip)) => OnError::Skip,
            (Purpose::Load, None | Some(OnErrorName::Stop)) => OnError::Stop,
        };
        if self.purpose == Purpose::Check && *ledger == LedgerChoice::None {
            let message = "a check needs a schema of the database, in which its staging tables are made";
            return Err(Error::new(ErrorKind::Usage, message).with_hint(
                "leave out --ledger none, or name a schema with --ledger where the job file says none",
            ));
        }
        let max = self.max_errors.as_deref().map(max_errors).transpose()?;
        if on_error == OnError::Skip && *ledger == LedgerChoice::None {
            let message = "--on-error skip needs a ledger, in which refused records are kept";
            return Err(Error::new(ErrorKind::Usage, message)
                .with_hint("leave out --ledger none, or give --on-error stop"));
        }
        if max.is_some() && on_error == OnError::Stop {
            let message = "--max-errors says how many bad records are borne, and --on-error stop bears none";
            return Err(Error::new(ErrorKind::Usage, message).with_hint("give --on-error skip"));
        }
        Ok(BadRecords { on_error, max })
    }
}

/// How the files are written and how their rows come into the table is known of the job whose rejected
/// records they hold.
///
/// # Errors
/// `Usage` for options that say otherwise.
pub(crate) fn check_rejects(options: &LoadOptions) -> Result<()> {
    if options.bad_records.rejects.is_none() {
        return Ok(());
    }
    if options.target.ledger.as_deref() == Some("none") {
        let message = "--rejects needs the ledger that keeps the rejected records";
        return Err(Error::new(ErrorKind::Usage, message).with_hint("leave out --ledger none"));
    }
    let LoadOptions { format, shaping, arrival, run, .. } = options;
    let of_the_job = [
        ("job", options.job.is_some()),
        ("copy-options", format.copy_options.is_some()),
        ("columns", format.columns.is_some()),
        ("map", !format.map.is_empty() || !format.named_map.is_empty()),
        ("ignore-extra", format.ignore_extra == Some(true)),
        ("create", shaping.create.is_some()),
        ("types", !shaping.types.is_empty() || !shaping.named_types.is_empty()),
        ("names", shaping.names.is_some()),
        ("primary-key", !shaping.primary_key.is_empty()),
        ("evolve", shaping.evolve.is_some()),
        ("lenient", shaping.lenient == Some(true)),
        ("all-tables", shaping.all_tables == Some(true)),
        ("mode", arrival.mode.is_some()),
        ("key", !arrival.key.is_empty()),
        ("delete-missing", arrival.delete_missing == Some(true)),
        ("keep", arrival.keep.is_some()),
        ("atomic", arrival.atomic == Some(true)),
        ("freeze", arrival.freeze == Some(true)),
        ("triggers", run.triggers.is_some()),
        ("create-partitions", run.create_partitions.is_some()),
    ];
    let other = || of_the_job.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    match single_option(format).or_else(other) {
        None => Ok(()),
        Some(name) => {
            let message = format!("--rejects takes from its job what --{name} says: leave one of them out");
            Err(Error::new(ErrorKind::Usage, message))
        }
    }
}

/// What a share that is written in thousandths of a percent may be off, as no binary fraction is it.
const ROUNDING: f64 = 1e-6;

/// `100` or `0.5%`.
pub(crate) fn max_errors(text: &str) -> Result<MaxErrors> {
    let share = |number: &str| {
        let share: f64 = number.trim_end().parse().ok()?;
        let thousandths = share * 1000.0;
        // What is finer would be another share, of none at all.
        let is_whole = (thousandths - thousandths.round()).abs() < ROUNDING;
        let is_share = is_whole && (0.0..=100_000.0).contains(&thousandths);
        is_share.then(|| MaxErrors::MilliPercent(thousandths.round() as u64))
    };
    let read = match text.trim().strip_suffix('%') {
        Some(number) => share(number),
        None => text.trim().parse().ok().map(MaxErrors::Count),
    };
    read.ok_or_else(|| {
        let message =
            format!("--max-errors: expected a number such as 100 or a share such as 0.5%, got {text:?}");
        Error::new(ErrorKind::Usage, message).with_hint(
            "a share is counted in steps of 0.001%; a smaller one can be given as a number of records",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_share_is_read_and_nothing_else() {
        let read = |text| max_errors(text).ok();
        assert_eq!(read("100"), Some(MaxErrors::Count(100)));
        assert_eq!(read("0.5%"), Some(MaxErrors::MilliPercent(500)));
        assert_eq!(read("100 %"), Some(MaxErrors::MilliPercent(100_000)));
        assert_eq!(read("0.001%"), Some(MaxErrors::MilliPercent(1)));
        assert_eq!(read("33.333%"), Some(MaxErrors::MilliPercent(33_333)));
        for text in ["", "-1", "101%", "-1%", "nan%", "ten", "1.5", "0.0004%", "0.0005%", "33.3333%"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_needs_a_ledger_or_skip_is_refused_without() {
        let schema = LedgerChoice::Schema("howdah".to_owned());
        let skip = BadRecordOptions { on_error: Some(OnErrorName::Skip), ..BadRecordOptions::default() };
        assert!(skip.resolve(&schema).is_ok() && skip.resolve(&LedgerChoice::None).is_err());
        let check = BadRecordOptions { purpose: Purpose::Check, ..BadRecordOptions::default() };
        assert_eq!(check.resolve(&schema).unwrap().on_error, OnError::Skip);
        let refused = check.resolve(&LedgerChoice::None).unwrap_err();
        assert!(refused.message().starts_with("a check needs a schema"), "{refused}");
        let some = BadRecordOptions { max_errors: Some("5".to_owned()), ..BadRecordOptions::default() };
        assert!(some.resolve(&schema).is_err());
    }
}
