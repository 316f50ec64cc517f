//! What the user wants loaded, resolved from options, environment and job file.
//!
//! A job holds no secret: connection strings and credentials travel beside it, so that it can be
//! printed, hashed and kept in the ledger.

use crate::arrival::Arrival;
use crate::dialect::Dialect;
use crate::format::Format;
use crate::reading::ValueSettings;
use crate::tuning::{Guards, Tune};
use crate::verify::Verify;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of the ledger where no option names another.
pub const LEDGER_DEFAULT: &str = "howdah";
/// What the process may hold in memory where no option says it.
pub const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
/// How long failures that may pass are tried again where no option says it.
pub const RETRY_FOR_MS_DEFAULT: u64 = 600_000;

/// Sources that go to one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// A path, glob, directory, `-`, or URL (`s3://`, `gs://`, `az://`, `http://`, `https://`).
    /// May hold one `{table}` placeholder, which matches one or more bytes other than `/`.
    pub location: String,
    /// The relation as the user wrote it (`[schema.]name`, quoted where needed).
    /// `None` takes the job's `table`, or what `{table}` matched.
    pub table: Option<String>,
}

impl SourceSpec {
    /// Into the job's table.
    #[must_use]
    pub fn new(location: impl Into<String>) -> SourceSpec {
        SourceSpec { location: location.into(), table: None }
    }
}

/// How many sessions copy at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jobs {
    /// As many as help, found while loading.
    Auto,
    /// Exactly this many.
    Fixed(u32),
}

/// Where the ledger is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LedgerChoice {
    /// In this schema of the target database.
    Schema(String),
    /// Nowhere: no resume, and an answer lost at COMMIT cannot be settled.
    None,
}

/// What options say about how the files are written. The rest is found from the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Between fields; one character or more.
    pub delimiter: Option<String>,
    /// Around fields; `Some(None)` says that nothing is.
    pub quote: Option<Option<u8>>,
    /// Before a quote that is data.
    pub escape: Option<u8>,
    /// The spelling of NULL.
    pub null: Option<String>,
    /// Its other spellings, where there are several. Jobs are known by a digest of this, which those without
    /// any must keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_null: Vec<String>,
    /// There is a header, or there is none.
    pub header: Option<bool>,
    /// The encoding.
    pub encoding: Option<String>,
    /// All of it but the line ending, as another job has found it in its files. Jobs are known by a digest of
    /// this, which those without it must keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
}

/// How the names of a header become names of columns of a new table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// As they are.
    Keep,
    /// In lower case with underscores, so that SQL needs no quotes.
    #[default]
    Snake,
}

/// What may be done to a table that exists so that the data fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evolve {
    /// Nothing.
    #[default]
    None,
    /// Columns that the file has and the table has not are added.
    Add,
    /// That, and columns whose type cannot hold the values get a wider one.
    Widen,
}

/// The format in which records are sent, as far as the data and the table's types allow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodeChoice {
    /// What costs least.
    #[default]
    Auto,
    /// csv as csv.
    Csv,
    /// COPY text.
    Text,
    /// COPY binary.
    Binary,
}

/// How the server compresses values that are too wide for a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToastCompression {
    /// As costs it least, where nobody has said how.
    #[default]
    Auto,
    /// As it would without this load.
    Keep,
}

/// How rows of a partitioned table reach their leaf partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionsChoice {
    /// As costs least.
    #[default]
    Auto,
    /// The client finds the leaf of each row, as far as it can tell, and copies it there.
    Direct,
    /// The server finds it.
    Parent,
}

/// What a partition holds that is made for rows that have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionUnit {
    /// One day.
    Day,
    /// One month.
    Month,
}

/// What becomes of the indexes, keys and foreign keys of a table while rows are loaded into it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexesChoice {
    /// What takes less time.
    #[default]
    Auto,
    /// They stay.
    Keep,
    /// They are dropped and built again behind the last row.
    Rebuild,
}

/// What becomes of triggers while rows are loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggersChoice {
    /// They fire.
    #[default]
    Keep,
    /// They do not fire for the rows of this load, and foreign keys are checked behind the last row.
    Disable,
}

/// What becomes of sequences whose columns the files fill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequencesChoice {
    /// They go on behind the largest value, when all rows are in.
    #[default]
    Advance,
    /// They stay where they are.
    Keep,
}

/// What may be done to the tables when all rows are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    /// Their statistics are renewed.
    Analyze,
    /// Their rows are frozen and marked visible, and their statistics renewed.
    Vacuum,
    /// What is in the server's memory alone is written to the disk.
    Checkpoint,
}

/// What is done about a record that the table does not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The load stops.
    #[default]
    Stop,
    /// The record is kept in the ledger, and the load goes on.
    Skip,
}

/// How many records may be rejected before the load stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxErrors {
    /// This many.
    Count(u64),
    /// This many thousandths of a per cent of the records read.
    MilliPercent(u64),
}

/// What becomes of records that the table does not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRecords {
    /// The load stops, or goes on without them.
    pub on_error: OnError,
    /// How many are borne; `None`: any number, as long as not the first thousand are all bad.
    pub max: Option<MaxErrors>,
}

/// What becomes of files that a finished job has loaded into the same table, where rows are appended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KnownFiles {
    /// A load with any of them is refused.
    #[default]
    Refuse,
    /// They are left out.
    Skip,
    /// They are loaded once more.
    Load,
}

/// What a run of a job that has finished is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfDone {
    /// An error.
    #[default]
    Fail,
    /// As good as the run that has finished it.
    Ok,
}

/// What becomes of NUL bytes, which no text of PostgreSQL can hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nul {
    /// A record with one does not fit.
    #[default]
    Reject,
    /// They are dropped.
    Strip,
    /// U+FFFD takes the place of each.
    Replace,
}

impl Nul {
    /// They stay as they are, to be refused.
    pub fn is_reject(&self) -> bool {
        *self == Nul::Reject
    }
}

/// How a table is made for the data, and the data for the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shaping {
    /// What options say; `None` when they say everything in COPY's words ([`Job::format`]).
    pub told: Option<Told>,
    /// Make the table when there is none; `None` does so in the embedded server.
    pub create: Option<bool>,
    /// Column (or `*`) -> type of a new table, as SQL writes it.
    pub types: BTreeMap<String, String>,
    /// The names of its columns.
    pub names: Names,
    /// Its primary key.
    pub primary_key: Vec<String>,
    /// What may be done to a table that exists.
    pub evolve: Evolve,
    /// Mend records that do not fit, and leave out what is beyond mending.
    pub lenient: bool,
    /// Load every table that stands in a file, not the first alone.
    pub all_tables: bool,
    /// What becomes of NUL bytes. Jobs are known by a digest of this, which those without the option must
    /// keep.
    #[serde(default, skip_serializing_if = "Nul::is_reject")]
    pub nul: Nul,
}

/// One load, as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// A name given by the user; otherwise the identity is a digest of sources, table and options.
    pub id: Option<String>,
    /// What to load.
    pub sources: Vec<SourceSpec>,
    /// The relation for sources that name none.
    pub table: Option<String>,
    /// How the files are written.
    pub format: Format,
    /// How tables and records are made to fit each other.
    pub shaping: Shaping,
    /// Table columns in the order of the file's fields; with a header, the header decides.
    pub columns: Option<Vec<String>>,
    /// File column -> table column, where the names differ.
    pub map: BTreeMap<String, String>,
    /// Leave out file columns that the table does not have.
    pub ignore_extra: bool,
    /// In which format records are sent.
    pub encode: EncodeChoice,
    /// How wide values are compressed.
    pub toast_compression: ToastCompression,
    /// Who routes rows to partitions.
    pub partitions: PartitionsChoice,
    /// Make partitions for rows that have none.
    pub create_partitions: Option<PartitionUnit>,
    /// What is done when all rows are in; `None`: what is useful.
    pub after: Option<Vec<After>>,
    /// What becomes of the tables' indexes.
    pub indexes: IndexesChoice,
    /// What becomes of the tables' triggers.
    pub triggers: TriggersChoice,
    /// What becomes of sequences whose columns the files fill.
    pub sequences: SequencesChoice,
    /// What becomes of records that the table does not take.
    pub bad_records: BadRecords,
    /// Where they are written when a run of the job ends, as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject_file: Option<String>,
    /// How rows come into the tables.
    pub arrival: Arrival,
    /// Bytes of plain data between chunk borders; `None` lets the plan choose.
    pub chunk_bytes: Option<u64>,
    /// What the process may hold in memory.
    pub memory_bytes: u64,
    /// Sessions that copy at once.
    pub jobs: Jobs,
    /// Where progress is remembered.
    pub ledger: LedgerChoice,
    /// Load even if an equal job has finished before.
    pub force: bool,
    /// What becomes of files that are in their tables already.
    pub known: KnownFiles,
    /// Files that were in their tables before this time come once more: the job was begun so then. RFC 3339,
    /// UTC, whole seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_more_until: Option<String>,
    /// What a run is that has nothing left to do.
    pub if_done: IfDone,
    /// How long transient failures are retried before the load gives up, counted from the last progress.
    pub retry_for_ms: u64,
    /// What may be tuned; `None`: tables where that is worth it.
    pub tune: Option<Tune>,
    /// What the load looks out for.
    pub guards: Guards,
    /// What a compressed file may yield; `None`: what its size makes likely.
    pub max_decompressed_bytes: Option<u64>,
    /// How what is stored is compared with the sources.
    pub verify: Verify,
    /// The records are those that another job has rejected.
    pub rejects_of: Option<RejectsOf>,
    /// The job of the ledger that is gone on with by its name: files that came since are no part of it.
    /// Nothing that the job was asked for, so that it is not kept.
    #[serde(skip)]
    pub resumes: Option<String>,
    /// The user has named the ledger: what it says is believed, whoever may write it. No ledger may say so of
    /// itself, so that it is not kept.
    #[serde(skip)]
    pub ledger_named: bool,
}

impl Job {
    /// These sources into this table, all else as where no option is given.
    #[must_use]
    pub fn new(sources: Vec<SourceSpec>, table: Option<String>, format: Format) -> Job {
        Job {
            id: None,
            sources,
            table,
            format,
            shaping: Shaping::default(),
            columns: None,
            map: BTreeMap::new(),
            ignore_extra: false,
            encode: EncodeChoice::default(),
            toast_compression: ToastCompression::default(),
            partitions: PartitionsChoice::default(),
            create_partitions: None,
            after: None,
            indexes: IndexesChoice::default(),
            triggers: TriggersChoice::default(),
            sequences: SequencesChoice::default(),
            bad_records: BadRecords::default(),
            reject_file: None,
            arrival: Arrival::default(),
            chunk_bytes: None,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            jobs: Jobs::Auto,
            ledger: LedgerChoice::Schema(LEDGER_DEFAULT.to_owned()),
            force: false,
            known: KnownFiles::default(),
            once_more_until: None,
            if_done: IfDone::default(),
            retry_for_ms: RETRY_FOR_MS_DEFAULT,
            tune: None,
            guards: Guards::default(),
            max_decompressed_bytes: None,
            verify: Verify::default(),
            rejects_of: None,
            resumes: None,
            ledger_named: false,
        }
    }
}

/// Rejected records that are loaded, mended or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectsOf {
    /// The job that has rejected them.
    pub job_id: String,
    /// Its files of the table that they are for, of those only that are written alike.
    pub file_nos: Vec<u32>,
    /// Only those that are kept as the files have them, or only those that are not; `None`: all.
    pub as_in_file: Option<bool>,
    /// How the sessions of that job have read values.
    pub value_settings: ValueSettings,
}
