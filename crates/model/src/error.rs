//! One error for all crates: a stable kind, a message, a place, a hint.
//!
//! Retrying and exit codes are decided from the kind and the SQLSTATE alone, never from the text.
//! Messages hold names, types, counts and positions; never row values, passwords or tokens.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, stable across releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Options that contradict each other or make no sense.
    Usage,
    /// A source that does not exist, or a pattern that matches nothing.
    SourceNotFound,
    /// Reading is not allowed.
    SourceDenied,
    /// The source differs from what an earlier run of the job read.
    SourceChanged,
    /// Reading broke in a way that may pass: reset, time-out, short body, 5xx, slow down.
    SourceTransient,
    /// Reading broke for good.
    SourceIo,
    /// Compressed data is damaged or cut short.
    Decompress,
    /// The data is a kind of file that is not loaded.
    Unsupported,
    /// A record does not fit the format or the table.
    Record,
    /// More records were refused than are borne.
    TooManyErrors,
    /// A record is longer than the budget allows.
    RecordTooLong,
    /// File columns and table columns do not match.
    Columns,
    /// There is no such table, it takes no rows, or its indexes cannot be dropped or put back.
    Table,
    /// The server cannot be reached or dropped us; may pass.
    ConnectionLost,
    /// The server refuses us for good: password, database, TLS, pg_hba.
    ConnectionRefused,
    /// The answer to COMMIT was lost; only the ledger knows.
    CommitUnknown,
    /// The server reported an error; see the SQLSTATE.
    Server,
    /// The job is in the ledger as finished.
    JobDone,
    /// All files of the job are in their tables already, by other jobs.
    FilesLoaded,
    /// The ledger is missing, too new, or contradicts the job.
    Ledger,
    /// What is stored is not what was read.
    Differs,
    /// A local file or process failed us: data directory, embedded server.
    Local,
    /// The user stopped the load.
    Interrupted,
    /// A promise was broken: a fault of howdah itself.
    Internal,
}

/// Where in the input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file as [`crate::FilePlan::location`] names it.
    pub file: Option<String>,
    /// The line in which the record begins, counted from 1 as an editor does: header and lines within quotes
    /// count, too.
    #[serde(default)]
    pub line: Option<u64>,
    /// The data record, counted from 1 without the header.
    pub record: Option<u64>,
    /// Plain (decompressed) byte offset of the record's first byte.
    pub byte: Option<u64>,
    /// The column of the table or file.
    pub column: Option<String>,
}

/// Something that went wrong.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    place: Place,
    sqlstate: Option<String>,
    hint: Option<String>,
    is_met_at_row: bool,
}

impl Error {
    /// An error of this kind. The message says what, what was expected and what was got.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Inner {
            kind,
            message,
            place: Place::default(),
            sqlstate: None,
            hint: None,
            is_met_at_row: false,
        }))
    }

    /// Adds what the user can do. Ends up on a line of its own, after `hint: `.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the place; parts already known stay.
    #[must_use]
    pub fn at(mut self, place: Place) -> Error {
        let own = &mut self.0.place;
        own.file = own.file.take().or(place.file);
        own.line = own.line.or(place.line);
        own.record = own.record.or(place.record);
        own.byte = own.byte.or(place.byte);
        own.column = own.column.take().or(place.column);
        self
    }

    /// Takes the byte away, where it says nothing to whoever looks at the file.
    #[must_use]
    pub fn without_byte(mut self) -> Error {
        self.0.place.byte = None;
        self
    }

    /// Adds the file; kept if one is known.
    #[must_use]
    pub fn in_file(self, file: impl Into<String>) -> Error {
        self.at(Place { file: Some(file.into()), ..Place::default() })
    }

    /// Adds the server's five-character code.
    #[must_use]
    pub fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Error {
        self.0.sqlstate = Some(sqlstate.into());
        self
    }

    /// The server was at a row of a COPY, or in a function, when it met this.
    #[must_use]
    pub fn met_at_row(mut self) -> Error {
        self.0.is_met_at_row = true;
        self
    }

    /// The same error under another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// The same error in other words.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Error {
        self.0.message = message.into();
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without place or hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The place, as far as it is known.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// The server's code, if the server reported this.
    pub fn sqlstate(&self) -> Option<&str> {
        self.0.sqlstate.as_deref()
    }

    /// See [`Error::met_at_row`].
    pub fn is_met_at_row(&self) -> bool {
        self.0.is_met_at_row
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

/// An error in JSON, in documents and in the ledger.
#[derive(Debug, Serialize)]
pub struct ErrorReport<'a> {
    kind: ErrorKind,
    message: &'a str,
    #[serde(flatten)]
    place: &'a Place,
    sqlstate: Option<&'a str>,
    hint: Option<&'a str>,
}

impl<'a> ErrorReport<'a> {
    /// All that is known of it.
    #[must_use]
    pub fn of(error: &'a Error) -> ErrorReport<'a> {
        ErrorReport {
            kind: error.kind(),
            message: error.message(),
            place: error.place(),
            sqlstate: error.sqlstate(),
            hint: error.hint(),
        }
    }
}

impl fmt::Display for Error {
    /// `file FILE, line L, record N, byte B, column C: message (SQLSTATE X)`; the hint is left to the
    /// printer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        let parts = [
            place.file.as_ref().map(|file| format!("file {file}")),
            place.line.map(|line| format!("line {line}")),
            place.record.map(|record| format!("record {record}")),
            place.byte.map(|byte| format!("byte {byte}")),
            place.column.as_ref().map(|column| format!("column {column}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            write!(f, "{}: ", parts.join(", "))?;
        }
        f.write_str(self.message())?;
        match self.sqlstate() {
            Some(sqlstate) => write!(f, " (SQLSTATE {sqlstate})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
