//! Options as typed -> a job and a server. Work code sees only the result.

use crate::access::Access;
use crate::bad_records::BadRecordOptions;
use crate::options::{
    AfterName, ColumnNames, EncodeName, FormatName, FormatOptions, IfDoneName, IndexesName, KnownName,
    LoadOptions, PartitionUnitName, PartitionsName, RunOptions, SequencesName, TargetOptions, ToastName,
    TriggersName, TuneName, VerifyName,
};
use crate::{arrival, bad_records, job_file, rejected, shaping, units};
use howdah_engine::model::job::{LEDGER_DEFAULT, MEMORY_BYTES_DEFAULT, RETRY_FOR_MS_DEFAULT};
use howdah_engine::model::{
    After, ColumnChoice, EncodeChoice, Error, ErrorKind, Format, FormatKind, Guards, IfDone, IndexesChoice,
    Job, Jobs, KnownFiles, LedgerChoice, Mode, OnError, PartitionUnit, PartitionsChoice, ReplicaLag, Result,
    SequencesChoice, SourceSpec, ToastCompression, TriggersChoice, Tune, Verify,
};
use howdah_engine::{Absent, Connection, copy_options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More sessions than any server is likely to allow; a guard against a slip of the finger.
const JOBS_MAX: u32 = 1024;

/// What `load` and `plan` need.
pub struct Settings {
    /// What to load.
    pub job: Job,
    /// The server as named by the options; the environment completes it.
    pub access: Access,
    /// Where refused records are written at the end.
    pub reject_file: Option<PathBuf>,
    /// The job whose rejected records are loaded.
    pub rejects: Option<String>,
    /// What the user should know about the options.
    pub notice: Option<String>,
}

impl Settings {
    /// Resolves options and, if one is named, the job file.
    ///
    /// # Errors
    /// `Usage` for options that contradict each other or have no such value.
    pub fn resolve(mut options: LoadOptions) -> Result<Settings> {
        check_contradictions(&options.format)?;
        bad_records::check_rejects(&options)?;
        let mut access = Access::typed(&options.target);
        let sources = sources(&mut options)?;
        check_ledger(&options.target)?;
        check_name(&options)?;
        let arrival = arrival::resolve(&options)?;
        let mode = arrival.mode;
        let shaping = shaping::resolve(&options.format, &options.shaping, options.bad_records.nul())?;
        let notice = shaping::notice(&options.format);
        let format = if shaping.told.is_some() { Format::csv() } else { format(&options.format)? };
        let job = Job {
            id: options.run.job_id.clone(),
            sources,
            table: options.table,
            map: map(&options.format.map, &options.format.named_map)?,
            columns: options.format.columns.as_deref().map(<[_]>::concat),
            ignore_extra: options.format.ignore_extra == Some(true),
            format,
            shaping,
            encode: encode(&options.run),
            after: options.run.after.as_deref().map(after),
            toast_compression: toast_compression(&options.run),
            partitions: partitions(&options.run),
            create_partitions: options.run.create_partitions.map(partition_unit),
            indexes: indexes(&options.run, &options.target)?,
            triggers: options.run.triggers.map_or(TriggersChoice::Keep, TriggersChoice::from),
            sequences: sequences(&options.run),
            bad_records: options.bad_records.resolve(&ledger(&options.target))?,
            arrival,
            chunk_bytes: bytes("--chunk-size", options.run.chunk_size.as_deref())?,
            memory_bytes: match &options.run.memory {
                Some(text) => units::bytes("--memory", text)?,
                None => MEMORY_BYTES_DEFAULT,
            },
            jobs: jobs(options.run.jobs.as_deref())?,
            ledger: ledger(&options.target),
            ledger_named: options.target.ledger.is_some(),
            force: options.run.force,
            retry_for_ms: match &options.run.retry_for {
                Some(text) => units::milliseconds("--retry-for", text)?,
                None => RETRY_FOR_MS_DEFAULT,
            },
            tune: options.run.tune.map(Tune::from),
            guards: guards(&options.run)?,
            max_decompressed_bytes: bytes("--max-decompressed", options.run.max_decompressed.as_deref())?,
            verify: verify(&options.run, &options.target)?,
            reject_file: options.bad_records.reject_file.as_deref().and_then(rejected::kept_path),
            rejects_of: None,
            once_more_until: None,
            resumes: None,
            if_done: if_done(&options.run, &options.target)?,
            known: known(&options.run, &options.target, mode)?,
        };
        if job.chunk_bytes == Some(0) {
            return Err(Error::new(ErrorKind::Usage, "--chunk-size: expected at least one byte, got 0"));
        }
        let BadRecordOptions { reject_file, rejects, .. } = options.bad_records;
        if reject_file.is_some() && job.bad_records.on_error == OnError::Stop {
            let message = "--reject-file is for what --on-error skip leaves out";
            return Err(Error::new(ErrorKind::Usage, message).with_hint("give --on-error skip"));
        }
        access.to = options.target.to;
        Ok(Settings { job, access, reject_file, rejects, notice })
    }
}

/// The server that the options and the environment name. May start the embedded one, whose programs are
/// looked for in these `site-packages` first.
///
/// # Errors
/// Those of [`Connection::resolve`].
pub async fn connection(to: Option<String>, site_packages: &[PathBuf], absent: Absent) -> Result<Connection> {
    let site_packages = site_packages.to_vec();
    let resolving = move || Connection::resolve(to.as_deref(), &site_packages, absent);
    tokio::task::spawn_blocking(resolving).await.map_err(|error| {
        Error::new(ErrorKind::Internal, format!("resolving the connection failed: {error}"))
    })?
}

/// `--ledger` of the verbs that need one.
pub(crate) fn ledger_needed(option: clap::Arg) -> clap::Arg {
    option.help(format!("The schema that keeps the ledger [default: {LEDGER_DEFAULT}]"))
}

/// What `bench` refuses: its ledger goes with its schema.
pub(crate) fn of_jobs_hidden(option: clap::Arg) -> clap::Arg {
    let of_jobs = ["job_id", "known", "if_done", "force", "rejects", "reject_file"];
    let is_of_jobs = of_jobs.iter().any(|id| option.get_id() == *id);
    if is_of_jobs { option.hide(true) } else { option }
}

/// What `check` refuses, or what changes nothing there: it stores no rows
/// ([`expect_none_for_rows`](crate::commands)).
pub(crate) fn of_rows_hidden(option: clap::Arg) -> clap::Arg {
    let of_rows = [
        "verify",
        "after",
        "job_id",
        "known",
        "if_done",
        "sequences",
        "tune",
        "freeze",
        "force",
        "indexes",
        "triggers",
        "on_error",
    ];
    let is_of_rows = of_rows.iter().any(|id| option.get_id() == *id);
    if is_of_rows { option.hide(true) } else { option }
}

/// Sources of a verb that reads them more than once, which nobody can do with a pipe.
pub(crate) fn read_again(option: clap::Arg) -> clap::Arg {
    option.help(
        "What to load: a path, glob, directory, or a URL with s3://, gs://, az://, http:// or https://. `{table}` in it stands \
         for the table's name",
    )
}

/// The schema that keeps the ledger, for the verbs that need one.
///
/// # Errors
/// `Usage` for `--ledger none`: without a ledger there is nothing to read; and for what is no name of a
/// schema.
pub(crate) fn ledger_schema(target: &TargetOptions) -> Result<String> {
    check_ledger(target)?;
    match ledger(target) {
        LedgerChoice::Schema(schema) => Ok(schema),
        LedgerChoice::None => Err(Error::new(ErrorKind::Usage, "without a ledger there is nothing to read")
            .with_hint("give the --ledger of the load, or leave it out")),
    }
}

/// Those of the job file, which fills the options, unless others are given.
fn sources(options: &mut LoadOptions) -> Result<Vec<SourceSpec>> {
    check_words(options)?;
    let of_file = options.job.take().map(|path| job_file::read(&path, options)).transpose()?;
    match options.sources.is_empty() {
        true => Ok(of_file.unwrap_or_default()),
        false => Ok(std::mem::take(&mut options.sources).into_iter().map(SourceSpec::new).collect()),
    }
}

/// An option that may stand alone takes no value behind a blank: that is a source then.
fn check_words(options: &LoadOptions) -> Result<()> {
    let is_word = |source: &&String| matches!(source.as_str(), "true" | "false" | "match");
    let Some(word) = options.sources.iter().find(|source| is_word(source) && !Path::new(source).exists())
    else {
        return Ok(());
    };
    let given = [
        ("header", options.format.header.is_some()),
        ("create", options.shaping.create.is_some()),
        ("ignore-extra", options.format.ignore_extra.is_some()),
        ("lenient", options.shaping.lenient.is_some()),
        ("all-tables", options.shaping.all_tables.is_some()),
        ("delete-missing", options.arrival.delete_missing.is_some()),
        ("atomic", options.arrival.atomic.is_some()),
        ("freeze", options.arrival.freeze.is_some()),
    ];
    let error = Error::new(ErrorKind::SourceNotFound, "no file has this name").in_file(word.clone());
    let takes = |name: &str| word != "match" || name == "header";
    let ways = given
        .iter()
        .filter(|(name, given)| *given && takes(name))
        .map(|(name, _)| format!("--{name}={word}"));
    match ways.collect::<Vec<_>>().join(" or ") {
        ways if ways.is_empty() => Err(error),
        ways => {
            Err(error
                .with_hint(format!("the value of an option that may stand alone comes behind =: {ways}")))
        }
    }
}

/// A name is for the ledger. An empty one is most likely a variable of a shell that is not set: all loads
/// would be the same job.
fn check_name(options: &LoadOptions) -> Result<()> {
    if options.run.job_id.as_deref() == Some("") {
        let message = "--job-id: expected a name for the job, got nothing";
        return Err(Error::new(ErrorKind::Usage, message).with_hint(
            "give it one, or leave it out: the files, the table and the options are its name then",
        ));
    }
    if options.run.job_id.is_none() || ledger(&options.target) != LedgerChoice::None {
        return Ok(());
    }
    let message = "--job-id needs a ledger, in which the job is known by its name";
    Err(Error::new(ErrorKind::Usage, message).with_hint("leave out --ledger none, or --job-id"))
}

/// The server makes no schema of these names, whoever asks.
fn check_ledger(target: &TargetOptions) -> Result<()> {
    let message = match target.ledger.as_deref() {
        Some("") => "--ledger: expected the name of a schema, got nothing".to_owned(),
        Some(name) if name.starts_with("pg_") => {
            format!(
                "--ledger: {name} is none of a user's schemas: the server keeps names that begin with pg_ for itself"
            )
        }
        _ => return Ok(()),
    };
    let hint =
        format!("leave it out for the schema {LEDGER_DEFAULT}, name another one, or give none for no ledger");
    Err(Error::new(ErrorKind::Usage, message).with_hint(hint))
}

fn ledger(target: &TargetOptions) -> LedgerChoice {
    match target.ledger.as_deref() {
        Some("none") => LedgerChoice::None,
        schema => LedgerChoice::Schema(schema.unwrap_or(LEDGER_DEFAULT).to_owned()),
    }
}

/// `none` among other words says nothing.
fn after(words: &[AfterName]) -> Vec<After> {
    let step = |word: &AfterName| match word {
        AfterName::Analyze => Some(After::Analyze),
        AfterName::Vacuum => Some(After::Vacuum),
        AfterName::Checkpoint => Some(After::Checkpoint),
        AfterName::None => None,
    };
    words.iter().filter_map(step).collect()
}

fn bytes(name: &str, text: Option<&str>) -> Result<Option<u64>> {
    text.map(|text| units::bytes(name, text)).transpose()
}

fn toast_compression(run: &RunOptions) -> ToastCompression {
    match run.toast_compression {
        None | Some(ToastName::Auto) => ToastCompression::Auto,
        Some(ToastName::Keep) => ToastCompression::Keep,
    }
}

fn sequences(run: &RunOptions) -> SequencesChoice {
    match run.sequences {
        None | Some(SequencesName::Advance) => SequencesChoice::Advance,
        Some(SequencesName::Keep) => SequencesChoice::Keep,
    }
}

fn partition_unit(unit: PartitionUnitName) -> PartitionUnit {
    match unit {
        PartitionUnitName::Day => PartitionUnit::Day,
        PartitionUnitName::Month => PartitionUnit::Month,
    }
}

fn partitions(run: &RunOptions) -> PartitionsChoice {
    match run.partitions {
        None | Some(PartitionsName::Auto) => PartitionsChoice::Auto,
        Some(PartitionsName::Direct) => PartitionsChoice::Direct,
        Some(PartitionsName::Parent) => PartitionsChoice::Parent,
    }
}

fn encode(run: &RunOptions) -> EncodeChoice {
    match run.encode {
        None | Some(EncodeName::Auto) => EncodeChoice::Auto,
        Some(EncodeName::Csv) => EncodeChoice::Csv,
        Some(EncodeName::Text) => EncodeChoice::Text,
        Some(EncodeName::Binary) => EncodeChoice::Binary,
    }
}

impl From<IndexesName> for IndexesChoice {
    fn from(name: IndexesName) -> IndexesChoice {
        match name {
            IndexesName::Auto => IndexesChoice::Auto,
            IndexesName::Keep => IndexesChoice::Keep,
            IndexesName::Rebuild => IndexesChoice::Rebuild,
        }
    }
}

impl From<TriggersName> for TriggersChoice {
    fn from(name: TriggersName) -> TriggersChoice {
        match name {
            TriggersName::Keep => TriggersChoice::Keep,
            TriggersName::Disable => TriggersChoice::Disable,
        }
    }
}

/// `Usage` for `rebuild` without a ledger: what was dropped could not be put back after a crash.
fn indexes(run: &RunOptions, target: &TargetOptions) -> Result<IndexesChoice> {
    match (run.indexes, ledger(target)) {
        (Some(IndexesName::Rebuild), LedgerChoice::None) => {
            let message =
                "--indexes rebuild needs a ledger, in which is kept how to put back what is dropped";
            Err(Error::new(ErrorKind::Usage, message)
                .with_hint("leave out --ledger none, or give --indexes keep"))
        }
        (indexes, _) => Ok(indexes.map(IndexesChoice::from).unwrap_or_default()),
    }
}

impl From<TuneName> for Tune {
    fn from(name: TuneName) -> Tune {
        match name {
            TuneName::None => Tune::None,
            TuneName::Session => Tune::Session,
            TuneName::Table => Tune::Table,
            TuneName::Server => Tune::Server,
        }
    }
}

/// `Usage` without a ledger, in which jobs are done, and where all is loaded once more.
fn if_done(run: &RunOptions, target: &TargetOptions) -> Result<IfDone> {
    let usage = |message: &str, hint: &str| Err(Error::new(ErrorKind::Usage, message).with_hint(hint));
    match (run.if_done, ledger(target)) {
        (None | Some(IfDoneName::Fail), _) => Ok(IfDone::Fail),
        (Some(IfDoneName::Ok), LedgerChoice::None) => usage(
            "--if-done ok needs a ledger, in which is kept what has finished",
            "leave out --ledger none, or name a schema with --ledger where the job file says none",
        ),
        (Some(IfDoneName::Ok), _) if run.force => usage(
            "--force loads once more what has finished: --if-done ok cannot keep it from that",
            "leave out one of them",
        ),
        (Some(IfDoneName::Ok), LedgerChoice::Schema(_)) => Ok(IfDone::Ok),
    }
}

/// `Usage` without a ledger, which knows the files, and where their rows do not come on top of others.
fn known(run: &RunOptions, target: &TargetOptions, mode: Mode) -> Result<KnownFiles> {
    let Some(known) = run.known else { return Ok(KnownFiles::default()) };
    let usage = |message: &str, hint: &str| Err(Error::new(ErrorKind::Usage, message).with_hint(hint));
    if mode != Mode::Append {
        let message = "--known is for --mode append: the other modes store no row twice";
        return usage(message, "leave it out");
    }
    match (known, ledger(target)) {
        (KnownName::Refuse | KnownName::Skip, LedgerChoice::None) => usage(
            "--known refuse and skip need a ledger, in which is kept which files are loaded",
            "leave out --ledger none, or name a schema with --ledger where the job file says none",
        ),
        (KnownName::Refuse | KnownName::Skip, _) if run.force => usage(
            "--force loads all files once more: --known cannot keep it from that",
            "leave out one of them",
        ),
        (KnownName::Refuse, _) => Ok(KnownFiles::Refuse),
        (KnownName::Skip, _) => Ok(KnownFiles::Skip),
        (KnownName::Load, _) => Ok(KnownFiles::Load),
    }
}

/// `Usage` without a ledger, which knows the transactions that have stored the rows.
fn verify(run: &RunOptions, target: &TargetOptions) -> Result<Verify> {
    match (run.verify, ledger(target)) {
        (Some(_), LedgerChoice::None) => {
            let message = "--verify needs a ledger, in which is kept which transactions have stored the rows";
            Err(Error::new(ErrorKind::Usage, message).with_hint("leave out --ledger none"))
        }
        (None, _) => Ok(Verify::None),
        (Some(VerifyName::Count), _) => Ok(Verify::Count),
        (Some(VerifyName::Checksum), _) => Ok(Verify::Checksum),
    }
}

fn guards(run: &RunOptions) -> Result<Guards> {
    let default = Guards::default();
    Ok(Guards {
        max_replica_lag: run.max_replica_lag.as_deref().map(replica_lag).transpose()?,
        reserve_connections: run.reserve_connections.unwrap_or(default.reserve_connections),
        pause_for_ms: match &run.pause_for {
            Some(text) => units::milliseconds("--pause-for", text)?,
            None => default.pause_for_ms,
        },
    })
}

/// `m` alone could be either, and a number alone too.
fn replica_lag(text: &str) -> Result<ReplicaLag> {
    const OPTION: &str = "--max-replica-lag";
    let unit = text.trim().trim_start_matches(|digit: char| digit.is_ascii_digit()).trim();
    let either = || {
        let message = format!("{OPTION}: expected a size like 1GB or a time like 30s, got {text:?}");
        Error::new(ErrorKind::Usage, message)
    };
    match unit {
        "" | "m" => Err(either()),
        _ => units::bytes(OPTION, text)
            .map(ReplicaLag::Bytes)
            .or_else(|_| units::milliseconds(OPTION, text).map(ReplicaLag::Ms))
            .map_err(|_| either()),
    }
}

pub(crate) fn jobs(text: Option<&str>) -> Result<Jobs> {
    match text {
        None | Some("auto") => Ok(Jobs::Auto),
        Some(text) => match text.parse::<u32>() {
            Ok(jobs @ 1..=JOBS_MAX) => Ok(Jobs::Fixed(jobs)),
            _ => Err(Error::new(
                ErrorKind::Usage,
                format!("--jobs: expected auto or 1 to {JOBS_MAX}, got {text:?}"),
            )),
        },
    }
}

/// COPY's options come one by one or all in one text. The command line has been checked already; callers
/// that fill in [`LoadOptions`] by themselves have not.
fn check_contradictions(options: &FormatOptions) -> Result<()> {
    match single_option(options).filter(|_| options.copy_options.is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::Usage,
            format!("--copy-options holds all options of COPY: --{name} cannot be given beside it"),
        )),
    }
}

/// The name of one of COPY's options that is given by itself, where there is any.
pub(crate) fn single_option(options: &FormatOptions) -> Option<&'static str> {
    let single = [
        ("format", options.format.is_some()),
        ("delimiter", options.delimiter.is_some()),
        ("quote", options.quote.is_some()),
        ("escape", options.escape.is_some()),
        ("null", options.null.is_some()),
        ("header", options.header.is_some()),
        ("encoding", options.encoding.is_some()),
        ("force-null", options.force_null.is_some()),
        ("force-not-null", options.force_not_null.is_some()),
        ("default", options.default.is_some()),
    ];
    single.iter().find(|(_, given)| *given).map(|(name, _)| *name)
}

fn format(options: &FormatOptions) -> Result<Format> {
    let mut format = match (&options.copy_options, options.format) {
        (Some(text), _) => return copy_options::parse(text),
        (None, None | Some(FormatName::Csv)) => Format::csv(),
        (None, Some(FormatName::Text)) => Format::text(),
    };
    if format.kind == FormatKind::Text && (options.quote.is_some() || options.escape.is_some()) {
        return Err(Error::new(ErrorKind::Usage, "--quote and --escape are options of the csv format"));
    }
    if let Some(delimiter) = &options.delimiter {
        format.delimiter = units::byte("--delimiter", delimiter)?;
    }
    let unquoted = options.quote.as_deref().is_some_and(|quote| matches!(quote, "none" | ""));
    if unquoted && options.escape.is_some() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--escape makes a quote a datum, and --quote none says that there is none",
        )
        .with_hint("give --format text for files with backslashes, or leave out --escape"));
    }
    if let Some(quote) = options.quote.as_ref().filter(|_| !unquoted) {
        format.quote = units::byte("--quote", quote)?;
        format.escape = format.quote;
    }
    if let Some(escape) = &options.escape {
        format.escape = units::byte("--escape", escape)?;
    }
    match options.null.as_deref() {
        None | Some([]) => {}
        Some([null]) => format.null.clone_from(null),
        Some(_) => {
            let message = "--null: COPY knows one spelling of NULL, and nothing is found from the data here";
            return Err(Error::new(ErrorKind::Usage, message).with_hint(
                "leave out --format and what else only COPY can do: howdah then reads all spellings",
            ));
        }
    }
    if let Some(header) = &options.header {
        format.header = copy_options::header_word(header)?;
    }
    format.encoding.clone_from(&options.encoding);
    format.force_null = choice(options.force_null.as_deref());
    format.force_not_null = choice(options.force_not_null.as_deref());
    format.default.clone_from(&options.default);
    if unquoted {
        format = format.without_quotes().ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                "--quote none: --delimiter and --null leave no byte to tell COPY for a quote",
            )
        })?;
    }
    copy_options::check(&format)?;
    Ok(format)
}

fn choice(lists: Option<&[ColumnNames]>) -> ColumnChoice {
    match lists.map(<[_]>::concat) {
        None => ColumnChoice::None,
        Some(columns) if columns == ["*"] => ColumnChoice::All,
        Some(columns) => ColumnChoice::Named(columns),
    }
}

/// Of the named ones those that no pair is written for.
fn map(pairs: &[String], named: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let mut map = BTreeMap::new();
    for pair in pairs {
        let Some((field, column)) =
            pair.split_once('=').filter(|(field, column)| !field.is_empty() && !column.is_empty())
        else {
            return Err(Error::new(ErrorKind::Usage, format!("--map: expected FIELD=COLUMN, got {pair:?}")));
        };
        if map.insert(field.to_owned(), column.to_owned()).is_some() {
            return Err(Error::new(ErrorKind::Usage, format!("--map names the field {field} twice")));
        }
    }
    for (field, column) in named {
        if field.is_empty() || column.is_empty() {
            let message = format!("map: expected a field and its column, got {field:?} and {column:?}");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        map.entry(field.clone()).or_insert_with(|| column.clone());
    }
    Ok(map)
}
