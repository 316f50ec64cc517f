//! What a run that goes on with a job may do in another way than the one that began it: its options, and what
//! they mean.

use crate::arrival::{for_appended, only_appended};
use crate::bad_records::max_errors;
use crate::options::{IndexesName, Options, TriggersName, TuneName};
use crate::rejected::kept_path;
use crate::{settings, units};
use clap::{Args, CommandFactory};
use howdah_engine::model::{Error, ErrorKind, Job, Mode, OnError, Result};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is not said is as the job was begun.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Run options (as the job was begun where not given)")]
pub struct RerunOptions {
    /// Sessions that copy at once; `auto` finds out how many help
    #[arg(short, long, value_name = "N|auto")]
    pub jobs: Option<String>,
    /// What the process may hold in memory
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Indexes, keys and foreign keys of the tables
    #[arg(long, value_enum)]
    pub indexes: Option<IndexesName>,
    /// Triggers of the tables
    #[arg(long, value_enum)]
    pub triggers: Option<TriggersName>,
    /// How far a load may go with settings
    #[arg(long, value_enum)]
    pub tune: Option<TuneName>,
    /// Of a job with --on-error skip: stop when more records than this are refused, or a larger share of
    /// those read
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<String>,
    /// Of a job with --on-error skip: where rejected records are written when the load ends
    #[arg(long, value_name = "FILE")]
    pub reject_file: Option<PathBuf>,
    /// How long failures that may pass are tried again
    #[arg(long, value_name = "TIME")]
    pub retry_for: Option<String>,
    /// How long a load pauses for a full disk or a replica before it gives up
    #[arg(long, value_name = "TIME")]
    pub pause_for: Option<String>,
    /// What a compressed file may come to
    #[arg(long, value_name = "SIZE")]
    pub max_decompressed: Option<String>,
    /// Load once more what has been loaded, or what has changed since
    #[arg(long)]
    pub force: bool,
}

impl RerunOptions {
    /// Changes what they say.
    ///
    /// # Errors
    /// `Usage` for values that are none, and for a number of bad records of a job that bears none.
    pub fn apply(&self, job: &mut Job) -> Result<()> {
        job.force = self.force;
        let only_appended = only_appended(self.indexes, self.triggers);
        if let Some(name) = only_appended.filter(|_| job.arrival.is_staged()) {
            return Err(for_appended(name));
        }
        if let Some(jobs) = &self.jobs {
            job.jobs = settings::jobs(Some(jobs))?;
        }
        if let Some(memory) = &self.memory {
            job.memory_bytes = units::bytes("--memory", memory)?;
        }
        if let Some(indexes) = self.indexes {
            job.indexes = indexes.into();
        }
        if let Some(triggers) = self.triggers {
            job.triggers = triggers.into();
        }
        if let Some(tune) = self.tune {
            job.tune = Some(tune.into());
        }
        let of_skipped = self.max_errors.as_ref().map(|_| "--max-errors");
        let of_skipped = of_skipped.or(self.reject_file.as_ref().map(|_| "--reject-file"));
        if let Some(option) = of_skipped.filter(|_| job.bad_records.on_error == OnError::Stop) {
            let message = format!("{option} is for a job that was begun with --on-error skip");
            return Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out"));
        }
        if let Some(max) = &self.max_errors {
            job.bad_records.max = Some(max_errors(max)?);
        }
        if let Some(path) = &self.reject_file {
            job.reject_file = kept_path(path);
        }
        if let Some(time) = &self.retry_for {
            job.retry_for_ms = units::milliseconds("--retry-for", time)?;
        }
        if let Some(time) = &self.pause_for {
            job.guards.pause_for_ms = units::milliseconds("--pause-for", time)?;
        }
        if let Some(size) = &self.max_decompressed {
            job.max_decompressed_bytes = Some(units::bytes("--max-decompressed", size)?);
        }
        Ok(())
    }
}

/// What an error of a load advises may be an option that a job which goes on cannot be given any more: then
/// says what can be done instead.
#[must_use]
pub fn followable(error: Error, adds_rows: bool) -> Error {
    let Some(hint) = error.hint() else { return error };
    let options = only_of_load(hint);
    let of = |other: bool| options.iter().find(|option| makes_another_job(option) == other);
    let mut followable = hint.to_owned();
    if let Some(option) = of(false) {
        followable += &format!(
            "; resume takes no {option}: give it to the job's `howdah load` command, which goes on with this job; remove nothing"
        );
    }
    if let Some(option) = of(true) {
        let twice =
            if adds_rows { ", and loads once more what this one has stored: remove that first" } else { "" };
        followable += &format!(
            "; resume takes no {option}: the job's `howdah load` command with it is another job{twice}"
        );
    }
    error.with_hint(followable)
}

/// Options that decide which rows are stored, and so who a job is: with another value of one of them the
/// command is another job's. By the engine's [`work_key`](howdah_engine::plan::work_key), with which a test
/// compares them.
const OF_THE_WORK: [&str; 28] = [
    "--job-id",
    "--table",
    "--format",
    "--delimiter",
    "--quote",
    "--escape",
    "--null",
    "--header",
    "--encoding",
    "--force-null",
    "--force-not-null",
    "--default",
    "--copy-options",
    "--columns",
    "--map",
    "--ignore-extra",
    "--create",
    "--types",
    "--names",
    "--primary-key",
    "--evolve",
    "--lenient",
    "--all-tables",
    "--nul",
    "--mode",
    "--key",
    "--delete-missing",
    "--keep",
];

fn makes_another_job(option: &str) -> bool {
    // Of rows that are appended it makes rows that wait, which is another job as well.
    option == "--atomic" || OF_THE_WORK.contains(&option)
}

/// Whether another job of the same sources would double rows that this one has stored.
#[must_use]
pub fn adds_rows(job: &Job) -> bool {
    job.arrival.mode == Mode::Append && !job.arrival.is_staged()
}

/// The options in the text that `load` has and `resume` has not.
fn only_of_load(text: &str) -> Vec<String> {
    let (load, resume) = (options_of("load"), options_of("resume"));
    let words = text.split(|c: char| c != '-' && !c.is_ascii_lowercase());
    words.filter(|word| load.contains(*word) && !resume.contains(*word)).map(str::to_owned).collect()
}

fn options_of(verb: &str) -> BTreeSet<String> {
    let command = Options::command();
    let arguments = command.find_subcommand(verb).into_iter().flat_map(clap::Command::get_arguments);
    arguments.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Command;
    use crate::settings::Settings;
    use clap::Parser;

    #[test]
    fn options_of_load_alone_are_told_from_those_that_resume_takes() {
        assert!(only_of_load("--force does that; raise --memory").is_empty());
        assert!(only_of_load("pipe it: zstd -dc --long=31 FILE").is_empty());
        assert_eq!(only_of_load("--force, or --keep last"), ["--keep"]);
        assert_eq!(only_of_load("--after, or leave out --delete-missing."), ["--after", "--delete-missing"]);
    }

    #[test]
    fn what_makes_another_job_is_an_option_of_load() {
        let text = OF_THE_WORK.join(" ");
        assert_eq!(only_of_load(&text), OF_THE_WORK);
    }

    fn option_of(given: &str) -> &str {
        given.split_once('=').map_or(given, |(option, _)| option)
    }

    /// An option with another value than it has by default, and what it needs beside it. Those are missing
    /// whose job is in a file or in a ledger.
    const GIVEN: [(&str, &str); 62] = [
        ("--to=host=h", ""),
        ("--ledger=books", ""),
        ("--password", ""),
        ("--no-password", ""),
        ("--password-command=echo", ""),
        ("--table=u", ""),
        ("--format=text", ""),
        ("--delimiter=;", ""),
        ("--quote='", ""),
        ("--escape=\\", ""),
        ("--null=NA", ""),
        ("--header=false", ""),
        ("--encoding=LATIN1", ""),
        ("--force-null=a", "--format=csv"),
        ("--force-not-null=a", "--format=csv"),
        ("--default=D", "--format=csv"),
        ("--copy-options=(FORMAT text)", ""),
        ("--columns=a", ""),
        ("--map=a=b", ""),
        ("--ignore-extra", ""),
        ("--create", ""),
        ("--types=a=text", "--create"),
        ("--names=keep", "--create"),
        ("--primary-key=a", "--create"),
        ("--evolve=add", ""),
        ("--lenient", ""),
        ("--all-tables", ""),
        ("--mode=replace", ""),
        ("--key=b", "--mode=merge --key=a"),
        ("--delete-missing", "--mode=merge --key=a"),
        ("--keep=last", "--mode=merge --key=a"),
        ("--atomic", ""),
        ("--freeze", "--mode=truncate"),
        ("--lock-timeout=1min", ""),
        ("--on-error=skip", ""),
        ("--max-errors=7", "--on-error=skip"),
        ("--nul=strip", ""),
        ("--reject-file=r.csv", "--on-error=skip"),
        ("--jobs=3", ""),
        ("--memory=1GB", ""),
        ("--chunk-size=1MB", ""),
        ("--encode=text", ""),
        ("--toast-compression=keep", ""),
        ("--partitions=parent", ""),
        ("--create-partitions=day", ""),
        ("--indexes=rebuild", ""),
        ("--triggers=disable", ""),
        ("--sequences=keep", ""),
        ("--after=analyze", ""),
        ("--job-id=night", ""),
        ("--force", ""),
        ("--known=skip", ""),
        ("--if-done=ok", ""),
        ("--retry-for=1min", ""),
        ("--tune=none", ""),
        ("--max-replica-lag=1GB", ""),
        ("--reserve-connections=3", ""),
        ("--pause-for=1min", ""),
        ("--max-decompressed=1GB", ""),
        ("--verify=count", ""),
        ("--quiet", ""),
        ("--json", ""),
    ];

    #[test]
    fn an_option_makes_another_job_where_the_engine_says_so_and_nowhere_else() {
        let work_key = |given: Option<&str>, beside: &str| {
            let line = ["howdah", "load", "f.csv"].into_iter().chain(beside.split(' ')).chain(given);
            let line = line.filter(|word| !word.is_empty());
            let Command::Load(options) = Options::parse_from(line).command else { unreachable!() };
            howdah_engine::plan::work_key(&Settings::resolve(*options).unwrap().job)
        };
        for (given, beside) in GIVEN {
            let is_another = work_key(Some(given), beside) != work_key(None, beside);
            assert_eq!(is_another, makes_another_job(option_of(given)), "{given}");
        }
        let not_given =
            |option: &String| !GIVEN.iter().any(|(given, _)| given.split('=').next() == Some(option));
        let options = options_of("load").into_iter();
        let others: Vec<String> = options.filter(not_given).collect();
        assert_eq!(others, ["--job", "--rejects"], "give an example of each new option");
    }

    #[test]
    fn what_a_job_does_not_go_by_is_given_to_its_own_command() {
        let followed = |hint: &str| {
            let error = Error::new(ErrorKind::TooManyErrors, "too many").with_hint(hint);
            followable(error, true).hint().unwrap_or_default().to_owned()
        };
        let same = "give it to the job's `howdah load` command, which goes on with this job; remove nothing";
        let other = "is another job, and loads once more what this one has stored: remove that first";
        for option in
            ["--on-error stop", "--verify count", "--after none", "--encode text", "--lock-timeout 1min"]
        {
            let hint = followed(option);
            assert!(hint.contains(same) && !hint.contains(other), "{hint}");
        }
        let hint = followed("--lenient mends it");
        assert!(hint.contains(other) && !hint.contains(same), "{hint}");
        let both = followed("--lenient or --on-error skip");
        assert!(both.contains(other) && both.contains(same), "{both}");
    }
}
