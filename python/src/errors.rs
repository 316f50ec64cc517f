//! The only mapping from the engine's errors to Python's exceptions.
//!
//! The classes are written in Python (`howdah/errors.py`), where a class may have two bases on every
//! supported version; here the kind of an error picks one.

use crate::json;
use clap::{Command, CommandFactory};
use howdah_cli::options::Options;
use howdah_cli::printer::line;
use howdah_cli::{account, checked};
use howdah_engine::model::{CheckReport, Error, ErrorKind, Summary};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Why a verb failed, and how far a load or check under way had come.
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) summary: Option<Box<Summary>>,
    pub(crate) report: Option<Box<CheckReport>>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, summary: None, report: None }
    }
}

impl Failure {
    /// The exception; if it cannot be made, why not.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|error| error)
    }

    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let error = &self.error;
        let hint = error.hint().map(python_calls);
        let message = match error.sqlstate() {
            None => python_names(&error.to_string()),
            // The server's own sentences name no options of ours.
            Some(_) => error.to_string(),
        };
        let message = match &hint {
            Some(hint) => format!("{message}\nhint: {hint}"),
            None => message,
        };
        let place = error.place();
        let attributes = PyDict::new(py);
        attributes.set_item("kind", json::to_python(py, &error.kind())?)?;
        attributes.set_item("file", &place.file)?;
        attributes.set_item("line", place.line)?;
        attributes.set_item("record", place.record)?;
        attributes.set_item("byte", place.byte)?;
        attributes.set_item("column", &place.column)?;
        attributes.set_item("sqlstate", error.sqlstate())?;
        attributes.set_item("hint", hint)?;
        if let Some(summary) = &self.summary {
            attributes.set_item("summary", summary_object(py, summary)?)?;
        }
        if let Some(report) = &self.report {
            attributes.set_item("report", report_object(py, report)?)?;
        }
        let class = py.import("howdah.errors")?.getattr(class(error))?;
        Ok(PyErr::from_value(class.call((message,), Some(&attributes))?))
    }
}

/// Beginnings of the SQLSTATEs that no record is to blame for, though COPY was at one: connections, rights,
/// transactions, resources, what is in use, operators, the system.
const NOT_OF_A_RECORD: [&str; 11] = ["08", "25", "28", "40", "42501", "53", "55", "57", "58", "F0", "XX"];

/// The server has refused a record that is known.
fn is_of_record(error: &Error) -> bool {
    let is_other = |state: &str| NOT_OF_A_RECORD.iter().any(|other| state.starts_with(other));
    error.place().record.is_some() && error.sqlstate().is_some_and(|state| !is_other(state))
}

/// The name of the class in `howdah.errors`.
fn class(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Server if is_of_record(error) => "DataError",
        ErrorKind::Usage => "UsageError",
        ErrorKind::SourceNotFound => "SourceNotFoundError",
        ErrorKind::SourceDenied
        | ErrorKind::SourceChanged
        | ErrorKind::SourceTransient
        | ErrorKind::SourceIo => "SourceError",
        ErrorKind::Decompress
        | ErrorKind::Unsupported
        | ErrorKind::Record
        | ErrorKind::TooManyErrors
        | ErrorKind::Differs
        | ErrorKind::RecordTooLong
        | ErrorKind::Columns => "DataError",
        ErrorKind::ConnectionLost | ErrorKind::ConnectionRefused => "ConnectionFailedError",
        ErrorKind::Table | ErrorKind::Server | ErrorKind::CommitUnknown | ErrorKind::Ledger => "ServerError",
        ErrorKind::JobDone | ErrorKind::FilesLoaded => "JobDoneError",
        ErrorKind::Local => "LocalError",
        ErrorKind::Interrupted => "StoppedError",
        ErrorKind::Internal => "InternalError",
    }
}

/// A `howdah.Summary`.
pub(crate) fn summary_object<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyAny>> {
    let document = json::to_python(py, summary)?;
    let class = py.import("howdah.summary")?.getattr("Summary")?;
    let text = with_remarks(account::text(summary), &summary.unsure, &summary.warnings);
    class.call_method1("from_document", (document, text))
}

/// A `howdah.CheckReport`.
pub(crate) fn report_object<'py>(py: Python<'py>, report: &CheckReport) -> PyResult<Bound<'py, PyAny>> {
    let document = json::to_python(py, report)?;
    let class = py.import("howdah.check_report")?.getattr("CheckReport")?;
    let text = with_remarks(checked::text(report), &report.unsure, &report.warnings);
    class.call_method1("from_document", (document, text))
}

/// The text that the command prints at the end, below what it says before.
fn with_remarks(text: String, unsure: &[String], warnings: &[String]) -> String {
    let unsure = unsure.iter().map(|remark| format!("unsure {}", line(&python_names(remark))));
    let warnings = warnings.iter().map(|remark| format!("warning: {}", line(&python_names(remark))));
    unsure.chain(warnings).chain([text]).collect::<Vec<_>>().join("\n")
}

/// Options as Python spells them: `--job-id` is `job_id` here. What stands in backquotes is for a shell and
/// stays, unless it is an option alone.
pub(crate) fn python_names(text: &str) -> String {
    translated(text, false)
}

/// The same of what the user can do, where an option is given a value: `--known load` is `known="load"`, and
/// `--force` is `force=True`. A command alone is the function of that name.
fn python_calls(text: &str) -> String {
    translated(text, true)
}

fn translated(text: &str, with_values: bool) -> String {
    let parts = text.split('`').enumerate().map(|(no, part)| match no % 2 {
        1 if !part.starts_with("--") => match part.strip_prefix("howdah ") {
            Some(verb) if with_values && VERBS.contains(&verb) => format!("howdah.{verb}()"),
            _ => part.to_owned(),
        },
        _ => renamed(part, with_values),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Commands that are functions here.
const VERBS: [&str; 6] = ["load", "plan", "check", "status", "resume", "restore"];

/// What an option takes, as far as a hint may give it.
#[derive(Default)]
struct Taken {
    /// It may stand alone.
    alone: bool,
    words: BTreeSet<String>,
}

/// All options by their names. Others stand in the names of files, say.
fn options() -> &'static BTreeMap<String, Taken> {
    static OPTIONS: OnceLock<BTreeMap<String, Taken>> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let mut options = BTreeMap::new();
        add_options(Options::command(), &mut options);
        options
    })
}

fn add_options(mut command: Command, options: &mut BTreeMap<String, Taken>) {
    command.build();
    for option in command.get_arguments() {
        let Some(name) = option.get_long() else { continue };
        let taken = options.entry(name.to_owned()).or_default();
        taken.alone |= option.get_num_args().is_none_or(|count| count.min_values() == 0);
        taken.words.extend(option.get_possible_values().iter().map(|word| word.get_name().to_owned()));
    }
    command.get_subcommands().for_each(|each| add_options(each.clone(), options));
}

fn renamed(text: &str, with_values: bool) -> String {
    let mut words = text.split("--").peekable();
    let mut renamed = words.next().unwrap_or_default().to_owned();
    while let Some(rest) = words.next() {
        let name_bytes = rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'-').count();
        let (name, rest) = rest.split_at(name_bytes);
        let opens = renamed.chars().next_back().is_none_or(|before| " (".contains(before));
        let Some(taken) = options().get(name).filter(|_| opens) else {
            renamed.push_str("--");
            renamed.push_str(name);
            renamed.push_str(rest);
            continue;
        };
        renamed.push_str(&name.replace('-', "_"));
        let (value, rest) = if with_values { value(taken, rest) } else { (None, rest) };
        let has_value = value.is_some();
        if let Some(value) = value {
            renamed.push('=');
            renamed.push_str(&value);
        }
        // Options side by side are arguments of one call.
        let is_between = has_value && rest == " " && words.peek().is_some();
        renamed.push_str(if is_between { ", " } else { rest });
    }
    renamed
}

/// The value that an option has here, in Python's words, and what stands behind it.
fn value<'a>(taken: &Taken, rest: &'a str) -> (Option<String>, &'a str) {
    for (word, value) in [("=true", "True"), ("=false", "False")] {
        if let Some(rest) = rest.strip_prefix(word) {
            return (Some(value.to_owned()), rest);
        }
    }
    let word_of = |behind: &'a str| {
        let bytes = behind.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
        behind.split_at(bytes)
    };
    // A word of an option that takes others besides.
    if let Some((word, behind)) = rest.strip_prefix('=').map(word_of).filter(|(word, _)| !word.is_empty()) {
        return (Some(format!("{word:?}")), behind);
    }
    let behind = rest.strip_prefix([' ', '=']).unwrap_or_default();
    if let Some((quoted, rest)) = behind.strip_prefix('\'').and_then(|behind| behind.split_once('\'')) {
        let value = match quoted.split_once('=') {
            Some((key, value)) => format!("{{{key:?}: {value:?}}}"),
            None => format!("{quoted:?}"),
        };
        return (Some(value), rest);
    }
    let (word, behind) = word_of(behind);
    if taken.words.contains(word) && !["true", "false"].contains(&word) {
        return (Some(format!("{word:?}")), behind);
    }
    // What stands for a value, or one that is written so (UTF8).
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let is_value = word.starts_with(|first: char| first.is_ascii_uppercase()) && word.bytes().all(is_capital);
    if !taken.alone && is_value && !behind.starts_with('=') {
        return (Some(format!("{word:?}")), behind);
    }
    (taken.alone.then(|| "True".to_owned()), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_calls() {
        for (text, expected) in [
            (
                "--force, or --known load where rows are appended, loads",
                "force=True, or known=\"load\" where rows are appended, loads",
            ),
            ("`--known skip` loads only the others", "`known=\"skip\"` loads only the others"),
            (
                "say --header=false; else --map 'FIELD=COLUMN'",
                "say header=False; else map={\"FIELD\": \"COLUMN\"}",
            ),
            (
                "make it with --create, or name another with --table",
                "make it with create=True, or name another with table",
            ),
            ("`howdah status` lists the jobs", "`howdah.status()` lists the jobs"),
            ("`howdah restore 70a5 --to x` puts back", "`howdah restore 70a5 --to x` puts back"),
            ("neither --columns nor --header=match", "neither columns nor header=\"match\""),
            ("--null 'NA' reads it as NULL", "null=\"NA\" reads it as NULL"),
            ("use fewer --jobs", "use fewer jobs"),
            (
                "--on-error skip --reject-file FILE loads; --types COLUMN=TYPE",
                "on_error=\"skip\", reject_file=\"FILE\" loads; types COLUMN=TYPE",
            ),
        ] {
            assert_eq!(python_calls(text), expected);
        }
        assert_eq!(python_names("--freeze and --job-id contradict"), "freeze and job_id contradict");
    }
}
