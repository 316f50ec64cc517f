//! A job file: sources, tables and options in TOML, under the names of the command line.
//!
//! ```toml
//! to = "service=warehouse"
//! format = "csv"
//! delimiter = "\t"
//! header = "true"
//!
//! [[source]]
//! location = "s3://shop/orders.tsv.gz"
//! table = "staging.orders"
//! ```

use crate::options::{ColumnNames, FormatName, FormatOptions, LoadOptions, ModeName, Options, RunOptions};
use crate::settings::single_option;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, CommandFactory, ValueEnum};
use howdah_engine::model::{Error, ErrorKind, Result, SourceSpec};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What stands for the part of a location that names its table.
const TABLE_FIELD: &str = "{table}";

/// Longer files are no job files.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The file as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct JobFile {
    to: Option<String>,
    ledger: Option<String>,
    table: Option<String>,
    format: Option<String>,
    delimiter: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    null: Option<Words>,
    header: Option<HeaderValue>,
    encoding: Option<String>,
    force_null: Option<Vec<String>>,
    force_not_null: Option<Vec<String>>,
    default: Option<String>,
    copy_options: Option<String>,
    columns: Option<Vec<String>>,
    #[serde(default)]
    map: std::collections::BTreeMap<String, String>,
    ignore_extra: Option<bool>,
    create: Option<bool>,
    #[serde(default)]
    types: std::collections::BTreeMap<String, String>,
    names: Option<String>,
    #[serde(default)]
    primary_key: Vec<String>,
    evolve: Option<String>,
    lenient: Option<bool>,
    all_tables: Option<bool>,
    jobs: Option<Number>,
    memory: Option<Number>,
    chunk_size: Option<Number>,
    encode: Option<String>,
    toast_compression: Option<String>,
    partitions: Option<String>,
    create_partitions: Option<String>,
    after: Option<Vec<String>>,
    indexes: Option<String>,
    triggers: Option<String>,
    sequences: Option<String>,
    on_error: Option<String>,
    max_errors: Option<Number>,
    nul: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    key: Vec<String>,
    delete_missing: Option<bool>,
    keep: Option<String>,
    atomic: Option<bool>,
    freeze: Option<bool>,
    lock_timeout: Option<Number>,
    job_id: Option<String>,
    known: Option<String>,
    if_done: Option<String>,
    retry_for: Option<Number>,
    tune: Option<String>,
    max_replica_lag: Option<Number>,
    reserve_connections: Option<u32>,
    pause_for: Option<Number>,
    max_decompressed: Option<Number>,
    verify: Option<String>,
    #[serde(default)]
    source: Vec<Source>,
}

/// The names of a [`Source`] that the file itself has not.
const SOURCE_NAMES: [&str; 1] = ["location"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    location: String,
    table: Option<String>,
}

/// `true` or `"match"`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected true, false or text in quotes")]
enum HeaderValue {
    Bool(bool),
    Word(String),
}

/// `"NA"` or `["NA", "-"]`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected text in quotes or a list of it")]
enum Words {
    One(String),
    Several(Vec<String>),
}

impl Words {
    fn into_list(self) -> Vec<String> {
        match self {
            Words::One(word) => vec![word],
            Words::Several(words) => words,
        }
    }
}

/// `4` or `"auto"`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or text in quotes")]
enum Number {
    Number(u64),
    Word(String),
}

impl Number {
    fn into_text(self) -> String {
        match self {
            Number::Number(number) => number.to_string(),
            Number::Word(word) => word,
        }
    }
}

/// Reads a job file and fills in what the command line left open. Returns the file's sources.
///
/// # Errors
/// `SourceNotFound` when the file cannot be read, `Usage` with line and column when it is no job file.
pub fn read(path: &Path, options: &mut LoadOptions) -> Result<Vec<SourceSpec>> {
    let unreadable = |error: std::io::Error| {
        Error::new(ErrorKind::SourceNotFound, format!("the job file cannot be read: {error}"))
            .in_file(path.display().to_string())
            .with_hint("give --job the path of a job file (TOML); --job-id is what names a job")
    };
    let mut text = String::new();
    // A pipe or a device has no length before it is read, nor perhaps an end.
    let read = File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("the job file is too long: expected {FILE_BYTES_MAX} bytes at most");
        return Err(Error::new(ErrorKind::Usage, message).in_file(path.display().to_string()));
    }
    bytes.as_slice().read_to_string(&mut text).map_err(unreadable)?;
    read_text(&text, options).map_err(|error| error.in_file(path.display().to_string()))
}

/// The same for the text of a job file.
///
/// # Errors
/// `Usage` with line and column when it is no job file, or a value is none of its option's.
pub fn read_text(text: &str, options: &mut LoadOptions) -> Result<Vec<SourceSpec>> {
    merge(parse(text)?, options)
}

fn parse(text: &str) -> Result<JobFile> {
    toml::from_str(text).map_err(|error| {
        // The library's message quotes the file; its first line and the place are enough.
        let span = error.span().unwrap_or_default();
        let before = &text[..span.start];
        let line = before.matches('\n').count() + 1;
        // Of a value that is of another type; a name that is not known has nothing before it.
        let name =
            before.rsplit('\n').next().and_then(|line| line.split_once('=')).map(|(name, _)| name.trim());
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        // The key itself.
        let unknown = text.get(span.clone()).filter(|_| error.message().starts_with("unknown field"));
        if let Some(key) = unknown {
            return not_known(line, key.trim_matches(['"', '\'']), error.message());
        }
        let mut message = format!("line {line}: {name}{}", error.message());
        if error.message().starts_with("expected ") && !name.is_empty() {
            let got = text[span].trim();
            message.push_str(&format!(", got {}", if got.contains('\n') { "several lines" } else { got }));
        }
        let is_toml = text.parse::<toml::Table>().is_ok();
        Error::new(ErrorKind::Usage, message).with_hint(if is_toml { NAMES_HINT } else { TOML_HINT })
    })
}

const TOML_HINT: &str =
    "a job file is TOML: NAME = VALUE in a line, text in quotes, and [[source]] in a line of its own";

const NAMES_HINT: &str = "the names in a job file are those of the options of `howdah load`";

/// As for an option that is misspelled on the command line, with the one that is most like it of those that
/// the library's message tells are known there.
fn not_known(line: usize, name: &str, told: &str) -> Error {
    let (_, known) = told.rsplit_once(", expected ").unwrap_or_default();
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let error = Error::new(ErrorKind::Usage, format!("line {line}: there is no `{name}` in a job file"));
    if SOURCE_NAMES.contains(&name) {
        return error.with_hint(format!("`{name}` stands below a line [[source]]"));
    }
    let is_in_source = known.contains(&SOURCE_NAMES[0]);
    let typed = name.replace('_', "-");
    if is_option(&typed) && !known.contains(&typed.as_str()) {
        return error.with_hint(match is_in_source {
            true => format!("options stand above the first line [[source]]: put `{typed}` there, or give --{typed} on the command line"),
            false => format!("--{typed} is an option of the command line alone"),
        });
    }
    match most_alike(name, &known) {
        Some(alike) if alike == "source" => {
            error.with_hint(format!("did you mean [[{alike}]]? {NAMES_HINT}"))
        }
        Some(alike) => error.with_hint(format!("did you mean `{alike}`? {NAMES_HINT}")),
        None => error.with_hint(NAMES_HINT),
    }
}

fn is_option(name: &str) -> bool {
    let command = Options::command();
    let load = command.find_subcommand("load");
    load.is_some_and(|load| load.get_arguments().any(|option| option.get_long() == Some(name)))
}

fn most_alike(name: &str, known: &[&str]) -> Option<String> {
    let options = known.iter().map(|known| Arg::new((*known).to_owned()).long((*known).to_owned()));
    let typed = clap::Command::new("job").args(options).try_get_matches_from(["job", &format!("--{name}")]);
    typed.err().and_then(|error| match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(option) => option.strip_prefix("--").map(str::to_owned),
        _ => None,
    })
}

/// The command line wins over the file.
fn merge(mut file: JobFile, options: &mut LoadOptions) -> Result<Vec<SourceSpec>> {
    overrule(&mut file, options);
    let tables = filed_tables(&file);
    let typed = options.table.clone().filter(|_| options.sources.is_empty());
    if let Some(typed) = typed.filter(|typed| !typed.contains(TABLE_FIELD)) {
        expect_one_table(&typed, &tables)?;
    }
    let is_typed = options.table.is_some();
    merge_run(&mut file, &mut options.run)?;
    fill(&mut options.target.to, file.to.take());
    fill(&mut options.target.ledger, file.ledger.take());
    fill(&mut options.table, file.table.take());
    let format = &mut options.format;
    merge_format(&mut file, format)?;
    // The two exclude each other: what is typed leaves out the other one of the file.
    let (has_columns, has_map) = (format.columns.is_some(), !format.map.is_empty());
    if !has_map {
        fill(&mut format.columns, file.columns.map(one_list));
    }
    if !has_columns {
        format.named_map = file.map;
    }
    fill(&mut format.ignore_extra, file.ignore_extra);
    let shaping = &mut options.shaping;
    fill(&mut shaping.create, file.create);
    shaping.named_types = file.types;
    fill(&mut shaping.names, file.names.map(|name| word("names", &name)).transpose()?);
    if shaping.primary_key.is_empty() {
        shaping.primary_key = one_list(file.primary_key);
    }
    fill(&mut shaping.evolve, file.evolve.map(|name| word("evolve", &name)).transpose()?);
    fill(&mut shaping.lenient, file.lenient);
    fill(&mut shaping.all_tables, file.all_tables);
    let bad = &mut options.bad_records;
    fill(&mut bad.on_error, file.on_error.map(|name| word("on-error", &name)).transpose()?);
    fill(&mut bad.max_errors, file.max_errors.map(Number::into_text));
    fill(&mut bad.nul, file.nul.map(|name| word("nul", &name)).transpose()?);
    let arrival = &mut options.arrival;
    fill(&mut arrival.mode, file.mode.map(|name| word("mode", &name)).transpose()?);
    if arrival.key.is_empty() {
        arrival.key = one_list(file.key);
    }
    fill(&mut arrival.delete_missing, file.delete_missing);
    fill(&mut arrival.keep, file.keep.map(|name| word("keep", &name)).transpose()?);
    fill(&mut arrival.atomic, file.atomic);
    fill(&mut arrival.freeze, file.freeze);
    fill(&mut arrival.lock_timeout, file.lock_timeout.map(Number::into_text));
    Ok(file
        .source
        .into_iter()
        .map(|Source { location, table }| SourceSpec { location, table: table.filter(|_| !is_typed) })
        .collect())
}

/// The tables that the sources of the file are for, where some name theirs.
fn filed_tables(file: &JobFile) -> BTreeSet<String> {
    if file.source.iter().all(|source| source.table.is_none()) {
        return BTreeSet::new();
    }
    let tables = file.source.iter().map(|source| source.table.as_ref().or(file.table.as_ref()));
    tables.flatten().cloned().collect()
}

/// A table that is typed takes the place of the file's, if that is one.
fn expect_one_table(typed: &str, tables: &BTreeSet<String>) -> Result<()> {
    let Some(several) = tables.iter().find(|table| tables.len() > 1 || table.contains(TABLE_FIELD)) else {
        return Ok(());
    };
    let others = if tables.len() > 1 { " and others" } else { "" };
    let message = format!("--table {typed} names one table, and the job file has {several}{others}");
    Err(Error::new(ErrorKind::Usage, message)
        .with_hint("give the sources that are meant for this table, or --table with {table} in it"))
}

/// What an option given once says; none where the list is empty.
fn one_list(names: Vec<String>) -> Vec<ColumnNames> {
    if names.is_empty() { Vec::new() } else { vec![names] }
}

/// COPY's options. A list in COPY's own words has all of them, so that it and single ones would contradict
/// each other: they do not stand in one file, one that is typed leaves out all of the file's, and typed ones
/// beside the file's list would either be lost or leave out what the file says.
fn merge_format(file: &mut JobFile, typed: &mut FormatOptions) -> Result<()> {
    let filed = take_format(file)?;
    if let (Some(_), Some(name)) = (&filed.copy_options, single_option(&filed)) {
        let message =
            format!("copy-options holds all options of COPY: {name} cannot stand in the job file beside it");
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if let (Some(_), Some(name)) = (&filed.copy_options, single_option(typed)) {
        let message = format!(
            "--{name} cannot be given beside copy-options of the job file, which holds all options of COPY"
        );
        return Err(Error::new(ErrorKind::Usage, message).with_hint(
            "give all of them by --copy-options, which wins over the job file's, or write the job file's one by one",
        ));
    }
    if typed.copy_options.is_some() {
        return Ok(());
    }
    fill(&mut typed.format, filed.format);
    fill(&mut typed.delimiter, filed.delimiter);
    fill(&mut typed.quote, filed.quote);
    fill(&mut typed.escape, filed.escape);
    fill(&mut typed.null, filed.null);
    fill(&mut typed.header, filed.header);
    fill(&mut typed.encoding, filed.encoding);
    fill(&mut typed.force_null, filed.force_null);
    fill(&mut typed.force_not_null, filed.force_not_null);
    fill(&mut typed.default, filed.default);
    fill(&mut typed.copy_options, filed.copy_options);
    Ok(())
}

/// What the file says of COPY's options, as if typed.
fn take_format(file: &mut JobFile) -> Result<FormatOptions> {
    Ok(FormatOptions {
        format: file.format.take().map(|name| word::<FormatName>("format", &name)).transpose()?,
        delimiter: file.delimiter.take(),
        quote: file.quote.take(),
        escape: file.escape.take(),
        null: file.null.take().map(Words::into_list),
        header: file.header.take().map(|header| match header {
            HeaderValue::Bool(names) => names.to_string(),
            HeaderValue::Word(word) => word,
        }),
        encoding: file.encoding.take(),
        force_null: file.force_null.take().map(one_list),
        force_not_null: file.force_not_null.take().map(one_list),
        default: file.default.take(),
        copy_options: file.copy_options.take(),
        ..FormatOptions::default()
    })
}

/// What the file says of jobs and files that are loaded already counts no more where something that is typed
/// leaves it without a meaning: --force says it of all of them, without a ledger nobody knows them, and only
/// rows that are appended come twice.
fn overrule(file: &mut JobFile, typed: &LoadOptions) {
    let all_or_none = typed.run.force || typed.target.ledger.as_deref() == Some("none");
    let is_appended = typed.arrival.mode.is_none_or(|mode| mode == ModeName::Append);
    file.known.take_if(|_| all_or_none || !is_appended);
    file.if_done.take_if(|_| all_or_none);
}

/// How the load is run.
fn merge_run(file: &mut JobFile, run: &mut RunOptions) -> Result<()> {
    fill(&mut run.jobs, file.jobs.take().map(Number::into_text));
    fill(&mut run.memory, file.memory.take().map(Number::into_text));
    fill(&mut run.chunk_size, file.chunk_size.take().map(Number::into_text));
    fill(&mut run.encode, file.encode.take().map(|name| word("encode", &name)).transpose()?);
    let toast = file.toast_compression.take().map(|name| word("toast-compression", &name)).transpose()?;
    fill(&mut run.toast_compression, toast);
    fill(&mut run.partitions, file.partitions.take().map(|name| word("partitions", &name)).transpose()?);
    let unit = file.create_partitions.take().map(|name| word("create-partitions", &name)).transpose()?;
    fill(&mut run.create_partitions, unit);
    fill(&mut run.indexes, file.indexes.take().map(|name| word("indexes", &name)).transpose()?);
    fill(&mut run.triggers, file.triggers.take().map(|name| word("triggers", &name)).transpose()?);
    fill(&mut run.sequences, file.sequences.take().map(|name| word("sequences", &name)).transpose()?);
    let words = file.after.take().map(|words| words.iter().map(|name| word("after", name)).collect());
    fill(&mut run.after, words.transpose()?);
    fill(&mut run.job_id, file.job_id.take());
    fill(&mut run.known, file.known.take().map(|name| word("known", &name)).transpose()?);
    fill(&mut run.if_done, file.if_done.take().map(|name| word("if-done", &name)).transpose()?);
    fill(&mut run.retry_for, file.retry_for.take().map(Number::into_text));
    fill(&mut run.tune, file.tune.take().map(|name| word("tune", &name)).transpose()?);
    fill(&mut run.max_replica_lag, file.max_replica_lag.take().map(Number::into_text));
    fill(&mut run.reserve_connections, file.reserve_connections.take());
    fill(&mut run.max_decompressed, file.max_decompressed.take().map(Number::into_text));
    fill(&mut run.verify, file.verify.take().map(|name| word("verify", &name)).transpose()?);
    fill(&mut run.pause_for, file.pause_for.take().map(Number::into_text));
    Ok(())
}

/// One of the words that the option of this name takes.
fn word<T: ValueEnum>(name: &str, got: &str) -> Result<T> {
    T::from_str(got, true).map_err(|_| {
        let words: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|value| value.to_possible_value().map(|value| value.get_name().to_owned()))
            .collect();
        Error::new(ErrorKind::Usage, format!("{name}: expected {}, got {got:?}", words.join(" or ")))
    })
}

fn fill<T>(option: &mut Option<T>, value: Option<T>) {
    if option.is_none() {
        *option = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Command, Options};
    use crate::settings::Settings;
    use clap::Parser;
    use howdah_engine::model::{ColumnChoice, IfDone, Job, KnownFiles};
    use std::collections::BTreeMap;

    #[test]
    fn the_command_line_wins_over_the_file() {
        let Command::Load(mut options) = Options::parse_from(["howdah", "load", "--null", "x"]).command
        else {
            unreachable!()
        };
        let file = parse("null = \"y\"\ndelimiter = \";\"\njobs = 3\nheader = true\n[[source]]\nlocation = \"a\"\ntable = \"t\"").unwrap();
        let sources = merge(file, &mut options).unwrap();
        assert_eq!(options.format.null.as_deref(), Some(["x".to_owned()].as_slice()));
        assert_eq!(options.format.delimiter.as_deref(), Some(";"));
        assert_eq!(options.format.header.as_deref(), Some("true"));
        assert_eq!(options.run.jobs.as_deref(), Some("3"));
        assert_eq!(sources, [SourceSpec { location: "a".to_owned(), table: Some("t".to_owned()) }]);
    }

    #[test]
    fn a_table_that_is_typed_takes_the_place_of_those_of_the_file() {
        let sources = |tables: &[&str]| -> String {
            let of = |table: &&str| match *table {
                "" => "[[source]]\nlocation = \"a\"\n".to_owned(),
                table => format!("[[source]]\nlocation = \"a\"\ntable = \"{table}\"\n"),
            };
            tables.iter().map(of).collect()
        };
        let read = |typed: &str, text: &str| {
            let args = ["howdah", "load", "--table", typed];
            let Command::Load(mut options) = Options::parse_from(args).command else { unreachable!() };
            read_text(text, &mut options).map(|sources| (options.table, sources))
        };
        for (typed, tables) in
            [("t", &["x"][..]), ("t", &["x", "x"]), ("t", &["", ""]), ("s.{table}", &["x", "y"])]
        {
            let (table, read) = read(typed, &sources(tables)).unwrap();
            assert_eq!(table.as_deref(), Some(typed));
            assert!(read.iter().all(|source| source.table.is_none()), "{read:?}");
        }
        assert!(read("t", &format!("table = \"x\"\n{}", sources(&["x", ""]))).is_ok());
        for text in
            [sources(&["x", "y"]), sources(&["s.{table}"]), format!("table = \"x\"\n{}", sources(&["y", ""]))]
        {
            let error = read("t", &text).unwrap_err();
            assert!(
                error.message().starts_with("--table t names one table, and the job file has "),
                "{error}"
            );
        }
    }

    fn merged(typed: &[&str], text: &str) -> Result<FormatOptions> {
        let args = ["howdah", "load"].iter().chain(typed);
        let Command::Load(mut options) = Options::parse_from(args).command else { unreachable!() };
        read_text(text, &mut options).map(|_| options.format)
    }

    #[test]
    fn a_list_of_copy_options_is_never_mixed_with_single_ones() {
        let list = "copy-options = \"(FORMAT csv, HEADER true)\"";
        let typed = merged(&["--null", "NA"], list).unwrap_err();
        assert!(typed.message().contains("--null") && typed.message().contains("copy-options"), "{typed}");
        let mixed = merged(&[], &format!("{list}\nforce-null = [\"a\"]")).unwrap_err();
        assert!(mixed.message().contains("force-null"), "{mixed}");
        let won = merged(&["--copy-options", "(FORMAT text)"], "null = \"NA\"\nformat = \"csv\"").unwrap();
        assert_eq!((won.copy_options.as_deref(), won.null, won.format), (Some("(FORMAT text)"), None, None));
        assert!(merged(&["--columns", "a"], list).unwrap().copy_options.is_some());
    }

    fn resolved(typed: &[&str], text: &str) -> Job {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let job = ["howdah", "load", "--job", file.path().to_str().unwrap()];
        let Command::Load(options) = Options::parse_from(job.iter().chain(typed)).command else {
            unreachable!()
        };
        Settings::resolve(*options).unwrap().job
    }

    #[test]
    fn types_and_maps_of_the_file_are_those_of_other_columns_than_the_typed_ones() {
        let text = "[types]\n\"a,b=c\" = \"int\"\ncode = \"int\"\nday = \"date\"\n[map]\n\"x=y,z\" = \"a,b=c\"\nk = \"old\"";
        let job = resolved(&["--types", "code=text", "--map", "k=new"], text);
        let pairs = |map: &BTreeMap<String, String>| {
            map.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>()
        };
        assert_eq!(pairs(&job.shaping.types), ["a,b=c:int", "code:text", "day:date"]);
        assert_eq!(pairs(&job.map), ["k:new", "x=y,z:a,b=c"]);
    }

    #[test]
    fn lists_of_columns_that_are_given_again_go_on() {
        let text = "key = [\"c\"]\nforce-null = [\"*\"]";
        let job = resolved(
            &["--key", "a,b", "--mode", "merge", "--key", "\"c,d\"", "--columns=a", "--columns=b"],
            text,
        );
        assert_eq!(job.arrival.key, ["a", "b", "c,d"]);
        assert_eq!(job.columns.unwrap(), ["a", "b"]);
        assert_eq!(job.format.force_null, ColumnChoice::All);
        assert_eq!(resolved(&["--mode", "merge"], text).arrival.key, ["c"]);
    }

    #[test]
    fn typed_columns_and_maps_leave_out_the_other_one_of_the_file() {
        let columns = resolved(&["--columns", "a,b"], "[map]\nx = \"a\"");
        assert_eq!((columns.columns.map(|names| names.len()), columns.map.len()), (Some(2), 0));
        let map = resolved(&["--map", "x=a"], "columns = [\"a\", \"b\"]");
        assert_eq!((map.columns, map.map.len()), (None, 1));
    }

    #[test]
    fn what_is_typed_leaves_out_what_the_file_says_of_loaded_files_and_jobs() {
        let text = "known = \"skip\"\nif-done = \"ok\"";
        let typed: [(&[&str], KnownFiles, IfDone); 6] = [
            (&["--mode", "replace"], KnownFiles::Refuse, IfDone::Ok),
            (&["--mode", "append"], KnownFiles::Skip, IfDone::Ok),
            (&["--ledger", "none"], KnownFiles::Refuse, IfDone::Fail),
            (&["--force"], KnownFiles::Refuse, IfDone::Fail),
            (&["--known", "load"], KnownFiles::Load, IfDone::Ok),
            (&[], KnownFiles::Skip, IfDone::Ok),
        ];
        for (typed, known, if_done) in typed {
            let job = resolved(typed, text);
            assert_eq!((job.known, job.if_done), (known, if_done), "{typed:?}");
        }
    }

    #[test]
    fn what_the_file_switches_on_can_be_switched_off() {
        let text = "lenient = true\nall-tables = true\nignore-extra = true\nfreeze = true\n\
                    mode = \"merge\"\nkey = [\"a\"]\natomic = true\ndelete-missing = true";
        let off = ["lenient", "all-tables", "ignore-extra", "freeze", "atomic", "delete-missing"];
        let job = resolved(&off.map(|name| format!("--{name}=false")).each_ref().map(String::as_str), text);
        let arrival = &job.arrival;
        let switches = [job.shaping.lenient, job.shaping.all_tables, job.ignore_extra];
        assert_eq!(
            (switches, arrival.atomic, arrival.freeze, arrival.delete_missing),
            ([false; 3], false, false, false)
        );
        assert!(resolved(&["--freeze=false"], text).arrival.delete_missing);
    }

    #[test]
    fn a_schema_that_nobody_can_make_is_no_ledger() {
        for name in ["", "pg_howdah"] {
            for (typed, text) in
                [(&["--ledger", name][..], String::new()), (&[], format!("ledger = \"{name}\""))]
            {
                let Command::Load(mut options) =
                    Options::parse_from(["howdah", "load"].iter().chain(typed)).command
                else {
                    unreachable!()
                };
                read_text(&text, &mut options).unwrap();
                let Err(refused) = Settings::resolve(*options) else { panic!("{name:?}") };
                assert!(refused.message().starts_with("--ledger: "), "{refused}");
                assert!(refused.hint().unwrap().contains("none for no ledger"), "{refused}");
            }
        }
    }

    #[test]
    fn a_job_file_may_come_from_a_pipe_and_has_an_end() {
        let options = || {
            let Command::Load(options) = Options::parse_from(["howdah", "load"]).command else {
                unreachable!()
            };
            options
        };
        let endless = read(Path::new("/dev/zero"), &mut options()).unwrap_err();
        assert!(endless.message().contains("too long"), "{endless}");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let writer = pipe.clone();
        let writing = std::thread::spawn(move || std::fs::write(writer, "null = \"x\"\n"));
        let mut filled = options();
        read(&pipe, &mut filled).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(filled.format.null.as_deref(), Some(["x".to_owned()].as_slice()));
    }

    #[test]
    fn a_misspelled_name_is_an_error_with_its_line() {
        let error = parse("null = \"y\"\ndelimeter = \";\"").unwrap_err();
        assert_eq!(error.message(), "line 2: there is no `delimeter` in a job file");
        assert!(error.hint().unwrap().starts_with("did you mean `delimiter`?"), "{error:?}");
        let far = parse("xyzzy = 1").unwrap_err();
        assert_eq!(far.message(), "line 1: there is no `xyzzy` in a job file");
        assert_eq!(far.hint(), Some(NAMES_HINT));
        let above = parse("location = \"a.csv\"").unwrap_err();
        assert!(above.hint().unwrap().contains("[[source]]"), "{above:?}");
        let source = parse("[[source]]\nlocation = \"a.csv\"\ntabel = \"t\"").unwrap_err();
        assert_eq!(source.message(), "line 3: there is no `tabel` in a job file");
        assert!(source.hint().unwrap().starts_with("did you mean `table`?"), "{source:?}");
        let several = parse("[[sources]]\nlocation = \"a.csv\"").unwrap_err();
        assert!(several.hint().unwrap().starts_with("did you mean [[source]]?"), "{several:?}");
        let underscore = parse("chunk_size = 1").unwrap_err();
        assert!(underscore.hint().unwrap().starts_with("did you mean `chunk-size`?"), "{underscore:?}");
        for name in ["password_command", "force", "job"] {
            let typed = parse(&format!("{name} = \"x\"")).unwrap_err();
            assert!(typed.hint().unwrap().ends_with("of the command line alone"), "{typed:?}");
        }
        let below = parse("[[source]]\nlocation = \"a.csv\"\nheader = true").unwrap_err();
        assert!(below.hint().unwrap().contains("put `header` there"), "{below:?}");
    }

    #[test]
    fn what_is_no_toml_is_told_apart_from_names() {
        for text in ["[[source", "jobs 4", "null = \"x", "null = x"] {
            assert_eq!(parse(text).unwrap_err().hint(), Some(TOML_HINT), "{text}");
        }
        assert_eq!(parse("jobs = true").unwrap_err().hint(), Some(NAMES_HINT));
        let Command::Load(mut options) = Options::parse_from(["howdah", "load"]).command else {
            unreachable!()
        };
        let missing = read(Path::new("/nowhere/job.toml"), &mut options).unwrap_err();
        assert!(missing.hint().unwrap().starts_with("give --job the path"), "{missing:?}");
    }

    #[test]
    fn a_value_of_another_type_is_told_with_its_name() {
        for (name, value) in [("jobs", "-1"), ("jobs", "4.0"), ("jobs", "true"), ("max-errors", "0.5")] {
            let error = parse(&format!("null = \"y\"\n{name} = {value}")).unwrap_err();
            let told = format!("line 2: {name}: expected a whole number or text in quotes, got {value}");
            assert_eq!(error.message(), told);
        }
        let header = parse("header = 1").unwrap_err();
        assert_eq!(header.message(), "line 1: header: expected true, false or text in quotes, got 1");
        let lag = "max-replica-lag = 0";
        let Command::Load(mut options) = Options::parse_from(["howdah", "load"]).command else {
            unreachable!()
        };
        read_text(lag, &mut options).unwrap();
        assert_eq!(options.run.max_replica_lag.as_deref(), Some("0"));
    }
}
