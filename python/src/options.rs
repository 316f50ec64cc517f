//! Keyword arguments -> the command's own options -> settings.
//!
//! Names, defaults and checks are those of `howdah load`: arguments are put into [`LoadOptions`] and resolved
//! by [`Settings::resolve`]. What Python can say better than a command line (numbers, a dict of names, a
//! dict of sources) is turned into that form here, and nothing else is decided.

use crate::errors::Failure;
use clap::ValueEnum;
use howdah_cli::bad_records::{BadRecordOptions, NulName, OnErrorName, Purpose};
use howdah_cli::commands::check::expect_none_for_rows;
use howdah_cli::options::{
    AfterName, ArrivalOptions, EncodeName, EvolveName, FormatName, FormatOptions, IfDoneName, IndexesName,
    KeepName, KnownName, LoadOptions, ModeName, NamesName, OutputOptions, PartitionUnitName, PartitionsName,
    RunOptions, SequencesName, ShapingOptions, TargetOptions, ToastName, TriggersName, TuneName, VerifyName,
};
use howdah_cli::rerun::RerunOptions;
use howdah_cli::settings::Settings;
use howdah_engine::model::{Error, ErrorKind, SourceSpec};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyMapping, PyMemoryView, PyString};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The arguments of `load`, `plan` and `check`.
pub(crate) struct LoadArguments {
    options: LoadOptions,
    sources: Vec<SourceSpec>,
}

impl LoadArguments {
    /// Takes the arguments as given.
    ///
    /// # Errors
    /// `TypeError`, as for any function of Python, for a wrong type or an unknown name.
    pub(crate) fn new(
        sources: &Bound<'_, PyAny>,
        table: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<LoadArguments> {
        let py = sources.py();
        let mut keywords = Keywords::new(py, keywords);
        let table = table.map(|table| table.extract().map_err(|error| wrong_type(py, "table", error)));
        let table = table.transpose()?;
        let options = LoadOptions {
            sources: Vec::new(),
            target: target(&mut keywords)?,
            table,
            job: None,
            format: format(&mut keywords)?,
            shaping: shaping(&mut keywords)?,
            bad_records: bad_records(&mut keywords)?,
            arrival: arrival(&mut keywords)?,
            run: run(&mut keywords)?,
            output: OutputOptions { quiet: true, json: false },
        };
        keywords.end()?;
        Ok(LoadArguments { options, sources: source_specs(sources)? })
    }

    /// The same for a check, of which no record keeps the others from being read.
    ///
    /// # Errors
    /// Those of [`expect_none_for_rows`].
    pub(crate) fn for_check(mut self, py: Python<'_>) -> PyResult<LoadArguments> {
        expect_none_for_rows(&self.options).map_err(|error| Failure::from(error).into_exception(py))?;
        self.options.bad_records.purpose = Purpose::Check;
        Ok(self)
    }

    /// The job and the server.
    ///
    /// # Errors
    /// Those of [`Settings::resolve`].
    pub(crate) fn resolve(self, py: Python<'_>) -> PyResult<Settings> {
        let mut settings =
            Settings::resolve(self.options).map_err(|error| Failure::from(error).into_exception(py))?;
        expect_whole_stdin(py, &self.sources)?;
        settings.job.sources = self.sources;
        Ok(settings)
    }
}

/// What `resume` may say of how a job is run.
///
/// # Errors
/// As [`LoadArguments::new`].
pub(crate) fn rerun(py: Python<'_>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<RerunOptions> {
    let mut keywords = Keywords::new(py, keywords);
    let mut number = |name: &str| Ok::<_, PyErr>(keywords.take::<Number>(name)?.map(|number| number.0));
    let (jobs, memory) = (number("jobs")?, number("memory")?);
    let (max_errors, max_decompressed) = (number("max_errors")?, number("max_decompressed")?);
    let (retry_for, pause_for) = (number("retry_for")?, number("pause_for")?);
    let options = RerunOptions {
        jobs,
        memory,
        indexes: keywords.take::<Word<IndexesName>>("indexes")?.map(|word| word.0),
        triggers: keywords.take::<Word<TriggersName>>("triggers")?.map(|word| word.0),
        tune: keywords.take::<Word<TuneName>>("tune")?.map(|word| word.0),
        max_errors,
        reject_file: keywords.take("reject_file")?,
        retry_for,
        pause_for,
        max_decompressed,
        force: keywords.take("force")?.unwrap_or(false),
    };
    keywords.end()?;
    Ok(options)
}

fn target(keywords: &mut Keywords<'_>) -> PyResult<TargetOptions> {
    let to = keywords.take("to")?;
    // Given as None, the ledger is turned off; not given, it has its usual schema.
    let ledger = match keywords.take_given::<Option<String>>("ledger")? {
        Some(None) => Some("none".to_owned()),
        Some(schema) => schema,
        None => None,
    };
    let password_command = keywords.take("password_command")?;
    Ok(TargetOptions { to, ledger, password: false, no_password: true, password_command })
}

fn format(keywords: &mut Keywords<'_>) -> PyResult<FormatOptions> {
    Ok(FormatOptions {
        format: keywords.take::<Word<FormatName>>("format")?.map(|word| word.0),
        delimiter: keywords.take("delimiter")?,
        quote: keywords.take("quote")?,
        escape: keywords.take("escape")?,
        null: keywords.take::<Names>("null")?.map(|names| names.0),
        header: keywords.take::<Switch>("header")?.map(|switch| switch.0),
        encoding: keywords.take("encoding")?,
        force_null: keywords.take::<Names>("force_null")?.map(|names| vec![names.0]),
        force_not_null: keywords.take::<Names>("force_not_null")?.map(|names| vec![names.0]),
        default: keywords.take("default")?,
        copy_options: keywords.take("copy_options")?,
        columns: keywords.take::<Names>("columns")?.map(|names| vec![names.0]),
        map: Vec::new(),
        named_map: keywords.take::<Pairs>("map")?.map(|pairs| pairs.0).unwrap_or_default(),
        ignore_extra: keywords.take("ignore_extra")?,
    })
}

fn shaping(keywords: &mut Keywords<'_>) -> PyResult<ShapingOptions> {
    Ok(ShapingOptions {
        create: keywords.take("create")?,
        types: Vec::new(),
        named_types: keywords.take::<Pairs>("types")?.map(|pairs| pairs.0).unwrap_or_default(),
        names: keywords.take::<Word<NamesName>>("names")?.map(|word| word.0),
        primary_key: keywords.take::<Names>("primary_key")?.map(|names| vec![names.0]).unwrap_or_default(),
        evolve: keywords.take::<Word<EvolveName>>("evolve")?.map(|word| word.0),
        lenient: keywords.take("lenient")?,
        all_tables: keywords.take("all_tables")?,
    })
}

fn bad_records(keywords: &mut Keywords<'_>) -> PyResult<BadRecordOptions> {
    Ok(BadRecordOptions {
        on_error: keywords.take::<Word<OnErrorName>>("on_error")?.map(|word| word.0),
        max_errors: keywords.take::<Number>("max_errors")?.map(|number| number.0),
        nul: keywords.take::<Word<NulName>>("nul")?.map(|word| word.0),
        reject_file: keywords.take("reject_file")?,
        rejects: keywords.take("rejects")?,
        purpose: Purpose::Load,
    })
}

fn arrival(keywords: &mut Keywords<'_>) -> PyResult<ArrivalOptions> {
    Ok(ArrivalOptions {
        mode: keywords.take::<Word<ModeName>>("mode")?.map(|word| word.0),
        key: keywords.take::<Names>("key")?.map(|names| vec![names.0]).unwrap_or_default(),
        delete_missing: keywords.take("delete_missing")?,
        keep: keywords.take::<Word<KeepName>>("keep")?.map(|word| word.0),
        atomic: keywords.take("atomic")?,
        freeze: keywords.take("freeze")?,
        lock_timeout: keywords.take::<Number>("lock_timeout")?.map(|number| number.0),
    })
}

fn run(keywords: &mut Keywords<'_>) -> PyResult<RunOptions> {
    let mut number = |name: &str| Ok::<_, PyErr>(keywords.take::<Number>(name)?.map(|number| number.0));
    let (jobs, memory) = (number("jobs")?, number("memory")?);
    let (chunk_size, retry_for) = (number("chunk_size")?, number("retry_for")?);
    let pause_for = number("pause_for")?;
    let max_decompressed = number("max_decompressed")?;
    Ok(RunOptions {
        jobs,
        memory,
        chunk_size,
        encode: keywords.take::<Word<EncodeName>>("encode")?.map(|word| word.0),
        toast_compression: keywords.take::<Word<ToastName>>("toast_compression")?.map(|word| word.0),
        partitions: keywords.take::<Word<PartitionsName>>("partitions")?.map(|word| word.0),
        create_partitions: keywords.take::<Word<PartitionUnitName>>("create_partitions")?.map(|word| word.0),
        indexes: keywords.take::<Word<IndexesName>>("indexes")?.map(|word| word.0),
        triggers: keywords.take::<Word<TriggersName>>("triggers")?.map(|word| word.0),
        sequences: keywords.take::<Word<SequencesName>>("sequences")?.map(|word| word.0),
        after: after(keywords)?,
        job_id: keywords.take("job_id")?,
        force: keywords.take("force")?.unwrap_or(false),
        known: keywords.take::<Word<KnownName>>("known")?.map(|word| word.0),
        if_done: keywords.take::<Word<IfDoneName>>("if_done")?.map(|word| word.0),
        retry_for,
        tune: keywords.take::<Word<TuneName>>("tune")?.map(|word| word.0),
        max_replica_lag: keywords.take("max_replica_lag")?,
        reserve_connections: keywords.take::<Count>("reserve_connections")?.map(|count| count.0),
        pause_for,
        max_decompressed,
        verify: keywords.take::<Word<VerifyName>>("verify")?.map(|word| word.0),
    })
}

/// What Python has read ahead of standard input no load would see.
///
/// # Errors
/// `UsageError`; those of Python.
fn expect_whole_stdin(py: Python<'_>, sources: &[SourceSpec]) -> PyResult<()> {
    let is_stdin = |source: &SourceSpec| STDIN_NAMES.contains(&source.location.as_str());
    let Some(source) = sources.iter().find(|source| is_stdin(source)) else { return Ok(()) };
    if !py.import("howdah._stdin")?.call_method0("is_read_ahead")?.extract::<bool>()? {
        return Ok(());
    }
    let message = "Python has read ahead of what the program took from sys.stdin: its buffer held bytes that the load would miss";
    let error = Error::new(ErrorKind::Usage, message).in_file(&source.location).with_hint(
        "read nothing from sys.stdin before; or write all of sys.stdin.buffer to a file, and load that",
    );
    Err(Failure::from(error).into_exception(py))
}

/// The ways to name standard input.
const STDIN_NAMES: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// One word or several.
fn after(keywords: &mut Keywords<'_>) -> PyResult<Option<Vec<AfterName>>> {
    let words = keywords.take::<Words<AfterName>>("after")?;
    Ok(words.map(|words| words.0.into_iter().map(|word| word.0).collect()))
}

/// One location, several, or a mapping of locations to tables.
fn source_specs(sources: &Bound<'_, PyAny>) -> PyResult<Vec<SourceSpec>> {
    if sources.is_instance_of::<PyString>() || sources.hasattr("__fspath__")? {
        return Ok(vec![SourceSpec::new(location(sources)?)]);
    }
    refuse_data(sources)?;
    let pair_of = |(source, table): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let table = table.extract().map_err(|_| not_as_expected(&table, "names of tables"))?;
        Ok(SourceSpec { location: location(&source)?, table })
    };
    if let Ok(tables) = sources.cast::<PyMapping>() {
        let pairs = tables.items()?;
        return pairs.iter().map(|pair| pair_of(pair.extract()?)).collect();
    }
    let Ok(sources) = sources.try_iter() else { return Err(not_as_expected(sources, "paths or URLs")) };
    sources.map(|source| Ok(SourceSpec::new(location(&source?)?))).collect()
}

/// Names are wanted. Data is iterated by columns, lines or numbers, which would be taken for some; cursors
/// have `fetchall`, and lazy frames `collect_schema`.
fn refuse_data(source: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_bytes = source.is_instance_of::<PyBytes>() || source.is_instance_of::<PyByteArray>();
    let mut is_data = is_bytes || source.is_instance_of::<PyMemoryView>();
    for name in ["read", "fetchall", "collect_schema", "__arrow_c_stream__", "__dataframe__"] {
        is_data = is_data || source.hasattr(name)?;
    }
    if !is_data {
        return Ok(());
    }
    let kind = source.get_type().qualname()?;
    Err(PyTypeError::new_err(format!(
        "sources: expected paths or URLs, got {kind}, which is data\nhint: write it to a file, CSV say, and give the file's path"
    )))
}

fn not_as_expected(value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    match value.get_type().qualname() {
        Ok(kind) => PyTypeError::new_err(format!("sources: expected {expected}, got {kind}")),
        Err(error) => error,
    }
}

fn location(source: &Bound<'_, PyAny>) -> PyResult<String> {
    if !source.is_instance_of::<PyString>() && !source.hasattr("__fspath__")? {
        refuse_data(source)?;
        return Err(not_as_expected(source, "paths or URLs"));
    }
    let py = source.py();
    let name = py.import("os")?.call_method1("fspath", (source,))?;
    // What Python has for bytes that are no UTF-8 (`surrogateescape`) is no text.
    if let Ok(name) = name.cast::<PyString>()
        && name.to_cow().is_err()
    {
        let lossy = || name.to_string_lossy().into_owned().into();
        let file = name.extract::<OsString>().unwrap_or_else(|_| lossy());
        return Err(Failure::from(howdah_engine::name_not_utf8(Path::new(&file))).into_exception(py));
    }
    name.extract()
}

/// Keyword arguments that have not been taken yet.
struct Keywords<'py>(Bound<'py, PyDict>);

impl<'py> Keywords<'py> {
    /// The dict of a call is its own: what is taken out is missed by nobody.
    fn new(py: Python<'py>, keywords: Option<&Bound<'py, PyDict>>) -> Keywords<'py> {
        Keywords(keywords.cloned().unwrap_or_else(|| PyDict::new(py)))
    }

    /// The argument of this name; `None` stands for the default.
    fn take<T: for<'a> FromPyObject<'a, 'py>>(&mut self, name: &str) -> PyResult<Option<T>> {
        Ok(self.take_given::<Option<T>>(name)?.flatten())
    }

    /// The argument of this name, if it was given at all.
    fn take_given<T: for<'a> FromPyObject<'a, 'py>>(&mut self, name: &str) -> PyResult<Option<T>> {
        let Some(value) = self.0.get_item(name)? else { return Ok(None) };
        self.0.del_item(name)?;
        let value = value.extract::<T>().map_err(Into::<PyErr>::into);
        value.map(Some).map_err(|error| wrong_type(self.0.py(), name, error))
    }

    /// Refuses what nobody took.
    fn end(self) -> PyResult<()> {
        match self.0.keys().iter().next() {
            None => Ok(()),
            Some(name) => Err(PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))),
        }
    }
}

/// The same error, naming the argument where Python's own message does not. Of a value that is none of an
/// option's it is a usage error.
fn wrong_type(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let message = error.value(py).to_string();
    if error.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("argument '{name}': {message}"));
    }
    if !error.get_type(py).is(py.get_type::<PyValueError>()) {
        return error;
    }
    Failure::from(Error::new(ErrorKind::Usage, format!("{name}: {message}"))).into_exception(py)
}

/// One of the words of an option.
pub(crate) struct Word<T>(pub(crate) T);

impl<'py, T: ValueEnum> FromPyObject<'_, 'py> for Word<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Word<T>> {
        let got = value.extract::<String>()?;
        T::from_str(&got, false).map(Word).map_err(|_| {
            let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
            PyValueError::new_err(format!("expected {}, got {got:?}", words.join(" or ")))
        })
    }
}

/// One word of an option, or several.
struct Words<T>(Vec<Word<T>>);

impl<'py, T: ValueEnum> FromPyObject<'_, 'py> for Words<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Words<T>> {
        if value.is_instance_of::<PyString>() {
            return value.extract::<Word<T>>().map(|word| Words(vec![word]));
        }
        value.extract().map(Words)
    }
}

/// `True`, `False` or a word such as `"match"`.
struct Switch(String);

impl<'py> FromPyObject<'_, 'py> for Switch {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Switch> {
        match value.extract::<bool>() {
            Ok(switch) => Ok(Switch(switch.to_string())),
            Err(_) => value.extract().map(Switch),
        }
    }
}

/// A whole number, or one with a unit in a text.
struct Number(String);

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Number> {
        if value.is_instance_of::<PyInt>() {
            return value.str()?.extract().map(Number);
        }
        // One of numpy's, say: all that Python itself would take for an index.
        match value.extract::<i64>() {
            Ok(number) => Ok(Number(number.to_string())),
            Err(_) => value.extract().map(Number),
        }
    }
}

/// How many there are to be.
struct Count(u32);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Count> {
        value.extract().map(Count).map_err(|error| match value.is_instance_of::<PyInt>() {
            true => PyValueError::new_err(format!("expected 0 to {}, got {}", u32::MAX, *value)),
            false => error,
        })
    }
}

/// Any mapping of names to names, not `dict` alone.
struct Pairs(BTreeMap<String, String>);

impl<'py> FromPyObject<'_, 'py> for Pairs {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Pairs> {
        let pairs = value.cast::<PyMapping>()?.items()?;
        pairs.iter().map(|pair| pair.extract()).collect::<PyResult<_>>().map(Pairs)
    }
}

/// One name, several, or `"*"` for all.
struct Names(Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Names> {
        match value.extract::<String>() {
            Ok(name) => Ok(Names(vec![name])),
            Err(_) => value.extract().map(Names),
        }
    }
}
