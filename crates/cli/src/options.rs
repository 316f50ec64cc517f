//! Every option, declared once, as typed: help, man page and completions are made of it. Names are COPY's and
//! libpq's where these have one.

use crate::bad_records::BadRecordOptions;
use crate::commands::pg::PgOptions;
use crate::rerun::RerunOptions;
use crate::settings::{ledger_needed, of_jobs_hidden, of_rows_hidden, read_again};
use crate::units;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names of columns in one value of an option. To clap a `Vec` of these is an option that may be given many
/// times: its lists count one behind the other.
pub type ColumnNames = Vec<String>;

/// Bulk loader for PostgreSQL: fast, exactly once, and clear about what held it back.
#[derive(Debug, Parser)]
#[command(name = "howdah", version, propagate_version = true, max_term_width = 100)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load files, objects or standard input into a table
    Load(Box<LoadOptions>),
    /// Show everything that load would do, and why, touching nothing
    Plan(Box<LoadOptions>),
    /// Read everything and tell all that the table would have against it, storing nothing and holding up
    /// nobody (exit code 3 when there is something)
    #[command(mut_arg("ledger", ledger_needed), mut_args(of_rows_hidden))]
    Check(Box<LoadOptions>),
    /// Measure howdah against one plain COPY, as psql's \copy does it, with a file of yours on a server of
    /// yours
    #[command(mut_arg("sources", read_again), mut_args(of_jobs_hidden))]
    Bench(Box<BenchOptions>),
    /// Show the jobs that the ledger of a database remembers
    #[command(mut_arg("ledger", ledger_needed))]
    Status(StatusOptions),
    /// Go on with a job where it stopped
    #[command(mut_arg("ledger", ledger_needed))]
    Resume(ResumeOptions),
    /// Put back what a killed load has dropped, disabled or tuned (indexes, keys, foreign keys, triggers,
    /// settings), and drop its staging tables; a ledger that belongs to another role has to be named by
    /// --ledger
    #[command(mut_arg("ledger", ledger_needed))]
    Restore(RestoreOptions),
    /// Start, stop or ask the embedded server
    Pg(PgOptions),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per subcommand into a directory
    Man {
        /// Where to write the pages
        directory: Option<PathBuf>,
    },
}

/// Options of `load`, `plan` and `check`.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// What to load: a path, glob, directory, `-`, or a URL with s3://, gs://, az://, http:// or https://.
    /// `{table}` in it stands for the table's name
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub target: TargetOptions,
    /// The table, as in SQL; may hold `{table}` as matched in the source
    #[arg(short, long, value_name = "[SCHEMA.]NAME")]
    pub table: Option<String>,
    /// A job file (TOML) with sources, tables and options; options given here come on top
    #[arg(long, value_name = "FILE")]
    pub job: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: FormatOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub shaping: ShapingOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub arrival: ArrivalOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub bad_records: BadRecordOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: OutputOptions,
}

/// Options of `bench`.
#[derive(Debug, Args)]
pub struct BenchOptions {
    /// How often the file is loaded in each way, after one load that is not counted [default: 5]
    #[arg(long, value_name = "N", default_value_t = 5, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub load: LoadOptions,
}

/// Where to.
#[derive(Debug, Args)]
pub struct TargetOptions {
    /// The database, as a URL or conninfo string. libpq's environment, .pgpass and service files complete
    /// it; when nothing names a server, the embedded one is used
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// The schema that keeps the ledger; one that is named is trusted, whoever may write it. With `none` a
    /// load keeps no ledger, and cannot be resumed [default: howdah]
    #[arg(long, value_name = "SCHEMA")]
    pub ledger: Option<String>,
    /// Ask for the password before connecting, as psql does; without this, when the server asks and none is
    /// known
    #[arg(short = 'W', long)]
    pub password: bool,
    /// Never ask for a password
    #[arg(short = 'w', long, conflicts_with = "password")]
    pub no_password: bool,
    /// A command, run by `sh -c`, whose first line of output is the password: for tokens that run out, as new
    /// sessions ask for another (HOWDAH_PASSWORD_COMMAND does the same)
    #[arg(long, value_name = "COMMAND", conflicts_with = "password")]
    pub password_command: Option<String>,
}

/// COPY's options, under COPY's names. What they leave open is found from the data, unless the format is
/// named.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Format options (those of COPY; found from the data where not given)")]
pub struct FormatOptions {
    /// Read as COPY would, with COPY's defaults for what is not given; nothing is found from the data, so not
    /// beside --create, --types, --names, --primary-key, --evolve, --lenient, --all-tables or --nul
    #[arg(long, value_enum)]
    pub format: Option<FormatName>,
    /// Between fields; `\t` is a tab; more than one character only without --format [with --format: comma for
    /// csv, tab for text]
    #[arg(long, value_name = "TEXT")]
    pub delimiter: Option<String>,
    /// One byte around fields, or `none` where quotes are data; csv only [with --format: "]
    #[arg(long, value_name = "BYTE")]
    pub quote: Option<String>,
    /// One byte before a quote that is data, without --format a backslash or the quote; csv only [with
    /// --format: the quote]
    #[arg(long, value_name = "BYTE")]
    pub escape: Option<String>,
    /// The spelling of NULL; without --format also several, one each time [with --format: nothing unquoted
    /// for csv, \N for text]
    #[arg(long, value_name = "TEXT")]
    pub null: Option<Vec<String>>,
    /// The first record names the columns; `--header=match` demands that it equals them
    #[arg(long, value_name = "BOOL|match", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub header: Option<String>,
    /// The files' encoding [with --format: $PGCLIENTENCODING or UTF8]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// Columns in which a quoted NULL spelling is NULL too, or `*`; csv only; nothing is then found from the
    /// data, as with --format
    #[arg(long, value_name = "COLUMNS", value_parser = units::names)]
    pub force_null: Option<Vec<ColumnNames>>,
    /// Columns in which the NULL spelling is never NULL, or `*`; csv only; nothing is then found from the
    /// data, as with --format
    #[arg(long, value_name = "COLUMNS", value_parser = units::names)]
    pub force_not_null: Option<Vec<ColumnNames>>,
    /// The spelling that stands for a column's default; PostgreSQL 16 and newer
    #[arg(long, value_name = "TEXT")]
    pub default: Option<String>,
    /// All of these in COPY's own words, e.g. "(FORMAT csv, HEADER true, DELIMITER E'\t')"
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with_all = ["format", "delimiter", "quote", "escape", "null", "header", "encoding", "force_null", "force_not_null", "default"]
    )]
    pub copy_options: Option<String>,
    /// Table columns in the order of the files' fields; a header is then skipped, a first record that may be
    /// data only if it names one of them; a name that holds a comma in double quotes, as in csv
    #[arg(long, value_name = "COLUMNS", value_parser = units::names)]
    pub columns: Option<Vec<ColumnNames>>,
    /// The column that a field of the header fills, where the names differ; may be given many times
    #[arg(long, value_name = "FIELD=COLUMN", conflicts_with = "columns")]
    pub map: Vec<String>,
    /// Leave out fields of the header that the table has no column for
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub ignore_extra: Option<bool>,
    /// What `map` says, by field, where it is not typed: a name may hold any character. What is typed wins
    #[arg(skip)]
    pub named_map: BTreeMap<String, String>,
}

/// How tables and records are made to fit each other.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Table and mending options")]
pub struct ShapingOptions {
    /// Make the table when there is none, with types found in the data [default: in the embedded server]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub create: Option<bool>,
    /// Types of columns of a new table, and of those that --evolve adds, as SQL writes them; `*` stands for
    /// all that are not named. Behind a colon, how values are spelled, also for a table that exists:
    /// `day=date:d/m/y`, `at=timestamptz:epoch`, `price=numeric:1.234,56`
    #[arg(long, value_name = "COLUMN=TYPE,...")]
    pub types: Vec<String>,
    /// What `types` says, by column, where it is not typed: a name may hold any character. What is typed wins
    #[arg(skip)]
    pub named_types: BTreeMap<String, String>,
    /// Names of columns of a new table: as in the header, or such that SQL needs no quotes [default: snake]
    #[arg(long, value_enum)]
    pub names: Option<NamesName>,
    /// The primary key of a new table
    #[arg(long, value_name = "COLUMNS", value_parser = units::names)]
    pub primary_key: Vec<ColumnNames>,
    /// What may be done to a table that exists so that the data fits [default: none]
    #[arg(long, value_enum)]
    pub evolve: Option<EvolveName>,
    /// Mend records that do not fit, count what was mended, and leave out what is beyond mending
    /// (exit code 3)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub lenient: Option<bool>,
    /// Load every table that stands in a file, one after the other: the second goes to `NAME_2`, and so on;
    /// not from a pipe
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub all_tables: Option<bool>,
}

/// How names of a header become names of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NamesName {
    /// As they are
    Keep,
    /// In lower case, with underscores
    Snake,
}

/// What may be done to a table that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvolveName {
    /// Nothing
    None,
    /// Columns that the file has and the table has not are added
    Add,
    /// That, and columns that cannot hold the values get a wider type
    Widen,
}

/// The formats in which records can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EncodeName {
    /// What costs least
    Auto,
    /// As the file has them
    Csv,
    /// COPY text
    Text,
    /// COPY binary where every value is certain
    Binary,
}

/// What becomes of the compression of wide values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToastName {
    /// By lz4, where the server has it and no setting says how
    Auto,
    /// As the server is set
    Keep,
}

/// How rows reach partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionsName {
    /// As costs least
    Auto,
    /// Each leaf partition gets its rows by a COPY of its own, as far as the client can tell which they are
    Direct,
    /// Through the partitioned table
    Parent,
}

/// What a partition holds that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionUnitName {
    /// `TABLE_2024_02_29`
    Day,
    /// `TABLE_2024_02`
    Month,
}

/// What becomes of indexes, keys and foreign keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IndexesName {
    /// Whichever takes less time
    Auto,
    /// They stay, but for the tables' own foreign keys with --triggers disable
    Keep,
    /// They are dropped and built again at the end
    Rebuild,
}

/// What becomes of triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TriggersName {
    /// They fire
    Keep,
    /// They do not fire for these rows; foreign keys are checked at the end
    Disable,
}

/// What becomes of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SequencesName {
    /// They go on behind the largest value
    Advance,
    /// They stay where they are
    Keep,
}

/// How far a load may go with settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuneName {
    /// Nothing but what correctness needs
    None,
    /// Settings of the load's own sessions
    Session,
    /// That, and autovacuum is kept away from the tables while rows come
    Table,
    /// That, and settings of the whole server; needs the right to
    Server,
}

/// How a run ends whose job has finished already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IfDoneName {
    /// An error
    Fail,
    /// Exit code and summary are those of the job; nothing is loaded
    Ok,
}

/// What becomes of files that are in the table already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KnownName {
    /// A load with any of them is refused
    Refuse,
    /// They are left out
    Skip,
    /// They are loaded once more
    Load,
}

/// How what is stored is compared with the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VerifyName {
    /// Rows are counted in the table
    Count,
    /// The files are read once more and compared with the rows value by value
    Checksum,
}

/// What is done when all rows are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AfterName {
    /// ANALYZE
    Analyze,
    /// VACUUM (FREEZE, ANALYZE)
    Vacuum,
    /// CHECKPOINT, where the role may
    Checkpoint,
    /// Nothing
    None,
}

/// The formats of COPY that consist of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Quoted fields
    Csv,
    /// Backslash escapes
    Text,
}

/// What rows are to those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// They come on top, chunk by chunk
    Append,
    /// The table is emptied first; others see it empty, and then fill
    Truncate,
    /// They fill a new table, which takes the place of the old one at once
    Replace,
    /// Those whose key is there change that row, the others come on top
    Merge,
    /// Those whose key is not there come on top
    InsertNew,
}

/// Which of several records of one key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeepName {
    /// The first, in the order of the sources
    First,
    /// The last
    Last,
    /// None: the load fails
    Error,
}

/// How rows come into the table.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options for rows that are there already")]
pub struct ArrivalOptions {
    /// What the rows of the files are to those that are there [default: append]
    #[arg(long, value_enum)]
    pub mode: Option<ModeName>,
    /// The columns that tell rows apart, which a unique index is on; for --mode merge and insert-new
    #[arg(long, value_name = "COLUMNS", value_parser = units::names)]
    pub key: Vec<ColumnNames>,
    /// Delete rows whose key no record has; for --mode merge
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub delete_missing: Option<bool>,
    /// Which of several records of one key counts [default: error]
    #[arg(long, value_enum)]
    pub keep: Option<KeepName>,
    /// Other sessions see all rows at once or none: these wait in a staging table until all are there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub atomic: Option<bool>,
    /// Write the rows frozen, so that no VACUUM has to freeze them, and without WAL where wal_level is
    /// minimal: all rows of a table in one transaction of one session; for tables that this load makes, or
    /// empties by --mode truncate
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub freeze: Option<bool>,
    /// How long a lock on a table is waited for before it is given up and asked for again (all locks of the
    /// swap of --mode replace together), and at least 2s where something is put back; COPY of a chunk waits
    /// until the table is free [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub lock_timeout: Option<String>,
}

/// How the load is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run options")]
pub struct RunOptions {
    /// Sessions that copy at once; `auto` finds out how many help [default: auto]
    #[arg(short, long, value_name = "N|auto")]
    pub jobs: Option<String>,
    /// What the process may hold in memory [default: 256MB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Bytes per transaction [default: 16MB, beside a local server 4MB and less at the beginning and end;
    /// less for csv and with many jobs]
    #[arg(long, value_name = "SIZE")]
    pub chunk_size: Option<String>,
    /// The format in which records are sent, as far as the data and the types allow [default: auto]
    #[arg(long, value_enum)]
    pub encode: Option<EncodeName>,
    /// How the server compresses values that are too wide for a page [default: auto]
    #[arg(long, value_enum)]
    pub toast_compression: Option<ToastName>,
    /// How rows of a partitioned table reach its partitions [default: auto]
    #[arg(long, value_enum)]
    pub partitions: Option<PartitionsName>,
    /// Make partitions of a table by RANGE of a date or timestamp for rows that have none; in UTC where the
    /// column has a time zone
    #[arg(long, value_enum)]
    pub create_partitions: Option<PartitionUnitName>,
    /// Indexes, keys and foreign keys of the tables: kept while rows come, or dropped and built again at the
    /// end [default: auto]
    #[arg(long, value_enum)]
    pub indexes: Option<IndexesName>,
    /// Triggers of the tables: they fire for each row, or not for these rows, foreign keys then being checked
    /// at the end [default: keep]
    #[arg(long, value_enum)]
    pub triggers: Option<TriggersName>,
    /// Sequences whose columns the files fill: moved behind the largest value when all rows are in, or left
    /// alone [default: advance]
    #[arg(long, value_enum)]
    pub sequences: Option<SequencesName>,
    /// What is done to the tables when all rows are in [default: analyze, for tables of which more than a
    /// tenth is new, changed or gone]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub after: Option<Vec<AfterName>>,
    /// A name for the job, instead of a digest of files, table and options
    #[arg(long, value_name = "NAME")]
    pub job_id: Option<String>,
    /// Load once more what has been loaded, or what has changed since an unfinished run
    #[arg(long)]
    pub force: bool,
    /// Files that a finished job has loaded into the same table: the load is refused, goes on without them,
    /// or loads them once more; for --mode append [default: refuse]
    #[arg(long, value_enum)]
    pub known: Option<KnownName>,
    /// How a run ends whose job has finished already: with an error, or well, with the account of the run
    /// that finished it, for a caller that has lost its answer; `ok` needs --job-id for a pipe or a URL
    /// without a version [default: fail]
    #[arg(long, value_enum)]
    pub if_done: Option<IfDoneName>,
    /// How long failures that may pass are tried again [default: 10min]
    #[arg(long, value_name = "TIME")]
    pub retry_for: Option<String>,
    /// How far a load may go with settings, all of which are put back [default: table, but autovacuum is kept
    /// away only from tables for which files of 4GB and more are to come]
    #[arg(long, value_enum)]
    pub tune: Option<TuneName>,
    /// Pause while a replica is further behind, in bytes (`1GB`) or in time (`30s`)
    #[arg(long, value_name = "SIZE|TIME")]
    pub max_replica_lag: Option<String>,
    /// Connections that are left to others [default: 3]
    #[arg(long, value_name = "N")]
    pub reserve_connections: Option<u32>,
    /// How long a load pauses for a full disk or a replica before it gives up [default: 10min]
    #[arg(long, value_name = "TIME")]
    pub pause_for: Option<String>,
    /// What a compressed file may come to [default: 1000 times its size, and 1GB at least]
    #[arg(long, value_name = "SIZE")]
    pub max_decompressed: Option<String>,
    /// When all rows are in, look whether they are what was read: count those that each chunk has left in the
    /// table, or also read the files once more and compare value by value [default: neither]
    #[arg(long, value_enum)]
    pub verify: Option<VerifyName>,
}

/// What is printed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output options")]
pub struct OutputOptions {
    /// Print errors, warnings, and what `plan`, `check` or `bench` have found, but no progress and no summary
    #[arg(short, long)]
    pub quiet: bool,
    /// Print one JSON document on stdout at the end
    #[arg(long)]
    pub json: bool,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    /// A job's name, or the beginning of it
    pub job: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub target: TargetOptions,
    /// Write the records that the job has rejected, and nobody has loaded since, to this file; one that
    /// stands there is replaced
    #[arg(long, value_name = "FILE", requires = "job")]
    pub reject_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `resume`.
#[derive(Debug, Args)]
pub struct ResumeOptions {
    /// The job's name, or the beginning of it
    pub job: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub target: TargetOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RerunOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: OutputOptions,
}

/// Options of `restore`.
#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The job's name, or the beginning of it [default: all jobs]
    pub job: Option<String>,
    /// All jobs, which is the default
    #[arg(long, conflicts_with = "job")]
    pub all: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub target: TargetOptions,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: OutputOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_declarations_do_not_contradict_each_other() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_help_says_what_howdah_is() {
        let about = Options::command().get_about().unwrap().to_string();
        assert!(about.starts_with("Bulk loader for PostgreSQL"), "{about}");
    }

    #[test]
    fn a_source_after_header_is_a_source() {
        let options = Options::parse_from(["howdah", "load", "--header", "file.csv"]);
        let Command::Load(load) = options.command else { unreachable!() };
        assert_eq!(load.sources, ["file.csv"]);
        assert_eq!(load.format.header.as_deref(), Some("true"));
    }
}
