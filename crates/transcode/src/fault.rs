//! What is wrong with one record of a [`Dialect`](howdah_model::Dialect), and how it is said.
//!
//! The careful reader and the inspector of bytes that pass untouched judge by this one list, so that both
//! stop at the same record with the same words.

use crate::cells::{Flaw, Record};
use howdah_model::{Error, ErrorKind, Place, counted, sqlstate};

/// What the user can do about most of them.
pub(crate) const HINT: &str =
    "--lenient mends such records where it can, and leaves out and lists those that it cannot mend";

/// Some files that are UTF-8 elsewhere have such bytes: read in another encoding, all the rest would be
/// stored wrong.
const ENCODING_HINT: &str = "--lenient puts U+FFFD in the place of such bytes; where all of the file is in LATIN1 or WIN1252, say so with --encoding, \
                             after removing the rows that this load has stored";

/// Mending drops them as well, among much else.
const NUL_HINT: &str =
    "--nul strip drops NUL bytes, --nul replace puts U+FFFD in their place; --lenient drops them, too";

/// What it loses is no part of a value.
const MARK_HINT: &str = "files put together have their byte order marks among the records: --lenient drops these, and --format csv or text \
                         loads them as COPY does, as the beginning of a value";

/// How UTF-8 writes it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a record is not as the dialect and the table say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Quotes or line endings where there must be none.
    Flaw(Flaw),
    /// A byte order mark before its first field, where the file goes on with another one.
    Mark,
    /// A wrong number of fields.
    Width { expected: usize, got: usize },
    /// A NUL byte, which PostgreSQL cannot store, in this field.
    Nul { field: Option<usize> },
    /// A byte that begins no character of UTF-8, at this offset in the record, in this field.
    NotUtf8 { at: usize, field: Option<usize> },
}

impl Fault {
    /// The first fault of the record that was cut from `written`. Characters are looked at if they are to be
    /// UTF-8.
    pub(crate) fn of(
        written: &[u8],
        record: &Record,
        flaw: Option<Flaw>,
        width: usize,
        is_utf8: bool,
    ) -> Option<Fault> {
        // Quotes behind it are misplaced for it.
        if is_utf8 && written.starts_with(BYTE_ORDER_MARK) {
            return Some(Fault::Mark);
        }
        if let Some(flaw) = flaw {
            return Some(Fault::Flaw(flaw));
        }
        if record.len() != width {
            return Some(Fault::Width { expected: width, got: record.len() });
        }
        if memchr::memchr(0, record.text()).is_some() {
            let field = record.values().position(|value| memchr::memchr(0, value).is_some());
            return Some(Fault::Nul { field });
        }
        if !is_utf8 {
            return None;
        }
        // The text may hold bytes that backslash sequences stand for.
        let broken = [written, record.text()].into_iter().find_map(|bytes| std::str::from_utf8(bytes).err());
        let field = || record.values().position(|value| std::str::from_utf8(value).is_err());
        broken.map(|error| Fault::NotUtf8 { at: error.valid_up_to(), field: field() })
    }

    /// The field that it stands in, counted from 0, where it stands in one.
    pub(crate) fn field(self) -> Option<usize> {
        match self {
            Fault::Nul { field } | Fault::NotUtf8 { field, .. } => field,
            Fault::Flaw(_) | Fault::Mark | Fault::Width { .. } => None,
        }
    }

    /// In words; values of the record are not among them.
    pub(crate) fn message(self) -> String {
        match self {
            Fault::Flaw(Flaw::QuoteInside(at)) => {
                format!("a quote stands inside an unquoted field, {} into the record", counted(at, "byte"))
            }
            Fault::Flaw(Flaw::TextAfterQuote(at)) => {
                let at = counted(at, "byte");
                format!("expected a delimiter behind the closing quote, got text, {at} into the record")
            }
            Fault::Flaw(Flaw::Unclosed(at)) => {
                format!("the quote that opens {} into the record is never closed", counted(at, "byte"))
            }
            Fault::Flaw(Flaw::LineEnding(at)) => {
                format!(
                    "another line ending than the file's stands outside quotes, {} into the record",
                    counted(at, "byte")
                )
            }
            Fault::Mark => "the record begins with a byte order mark".to_owned(),
            Fault::Width { expected, got } => format!("expected {}, got {got}", counted(expected, "field")),
            Fault::Nul { .. } => "the record holds a NUL byte".to_owned(),
            Fault::NotUtf8 { at, .. } => {
                format!("the bytes {} into the record are no character of UTF-8", counted(at, "byte"))
            }
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Fault::NotUtf8 { .. } => ENCODING_HINT,
            Fault::Mark => MARK_HINT,
            Fault::Nul { .. } => NUL_HINT,
            Fault::Flaw(_) | Fault::Width { .. } => HINT,
        }
    }

    /// What COPY would answer (PostgreSQL documentation, appendix A).
    pub(crate) fn sqlstate(self) -> &'static str {
        match self {
            Fault::Nul { .. } | Fault::NotUtf8 { .. } => sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
            Fault::Flaw(_) | Fault::Mark | Fault::Width { .. } => sqlstate::BAD_COPY_FILE_FORMAT,
        }
    }

    /// As an error; `record` counts from 1, `byte` is that of the record's first byte, `column` what its
    /// field fills.
    pub(crate) fn error(self, record: u64, byte: u64, column: Option<String>) -> Error {
        let place = Place { record: Some(record), byte: Some(byte), column, ..Place::default() };
        Error::new(ErrorKind::Record, self.message()).at(place).with_hint(self.hint())
    }
}
