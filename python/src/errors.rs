//! The only mapping from the engine's errors to Python's exceptions.
//!
//! The classes are written in Python (`howdah/errors.py`), where a class may have two bases on every
//! supported version; here the kind of an error picks one.

use crate::json;
use clap::{Command, CommandFactory};
use howdah_cli::options::Options;
use howdah_cli::{account, checked};
use howdah_engine::model::{CheckReport, Error, ErrorKind, Summary};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;
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
        let hint = error.hint().map(python_names);
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
        let class = py.import("howdah.errors")?.getattr(class(error.kind()))?;
        Ok(PyErr::from_value(class.call((message,), Some(&attributes))?))
    }
}

/// The name of the class in `howdah.errors`.
fn class(kind: ErrorKind) -> &'static str {
    match kind {
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
        ErrorKind::JobDone => "JobDoneError",
        ErrorKind::Local => "LocalError",
        ErrorKind::Interrupted => "StoppedError",
        ErrorKind::Internal => "InternalError",
    }
}

/// A `howdah.Summary`.
pub(crate) fn summary_object<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyAny>> {
    let document = json::to_python(py, summary)?;
    let class = py.import("howdah.summary")?.getattr("Summary")?;
    class.call_method1("from_document", (document, account::text(summary)))
}

/// A `howdah.CheckReport`.
pub(crate) fn report_object<'py>(py: Python<'py>, report: &CheckReport) -> PyResult<Bound<'py, PyAny>> {
    let document = json::to_python(py, report)?;
    let class = py.import("howdah.check_report")?.getattr("CheckReport")?;
    class.call_method1("from_document", (document, checked::text(report)))
}

/// Options as Python spells them: `--job-id` is `job_id` here. What stands in backquotes is for a shell and stays, unless it is
/// an option alone.
pub(crate) fn python_names(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(no, part)| match no % 2 {
        1 if !part.starts_with("--") => part.to_owned(),
        _ => renamed(part),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The names of all options. Others stand in the names of files, say.
fn names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = BTreeSet::new();
        add_names(&Options::command(), &mut names);
        names
    })
}

fn add_names(command: &Command, names: &mut BTreeSet<String>) {
    names.extend(command.get_arguments().filter_map(|option| option.get_long().map(str::to_owned)));
    command.get_subcommands().for_each(|each| add_names(each, names));
}

fn renamed(text: &str) -> String {
    let mut words = text.split("--");
    let mut renamed = words.next().unwrap_or_default().to_owned();
    for rest in words {
        let name_bytes = rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'-').count();
        let (name, rest) = rest.split_at(name_bytes);
        let opens = renamed.chars().next_back().is_none_or(|before| " (".contains(before));
        if opens && names().contains(name) {
            renamed.push_str(&name.replace('-', "_"));
        } else {
            renamed.push_str("--");
            renamed.push_str(name);
        }
        renamed.push_str(rest);
    }
    renamed
}
