//! How the records of a file are written, in COPY's own words.
//!
//! Names and defaults are those of PostgreSQL's COPY
//! (<https://www.postgresql.org/docs/current/sql-copy.html>). Finding these values from the data is
//! not done here; neither is checking them against a server version.

use serde::{Deserialize, Serialize};

/// The two formats of COPY that consist of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormatKind {
    /// `FORMAT text`: backslash escapes, tab as the default delimiter, `\N` as the default NULL.
    Text,
    /// `FORMAT csv`: quoted fields, comma as the default delimiter, the empty string as the default NULL.
    Csv,
}

/// What the first record of each file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// Data (`HEADER false`).
    #[default]
    None,
    /// Column names, used to map fields to columns (`HEADER true`).
    Names,
    /// Column names that must equal the table's columns in order (`HEADER match`).
    Match,
}

/// Columns named by `FORCE_NULL` and `FORCE_NOT_NULL`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnChoice {
    /// No column.
    #[default]
    None,
    /// Every column (`*`).
    All,
    /// These columns of the table.
    Named(Vec<String>),
}

impl ColumnChoice {
    /// The column is one of them.
    #[must_use]
    pub fn names(&self, column: &str) -> bool {
        match self {
            ColumnChoice::None => false,
            ColumnChoice::All => true,
            ColumnChoice::Named(columns) => columns.iter().any(|one| one == column),
        }
    }
}

/// The bytes that end a record. COPY takes the kind from the first line and insists on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eol {
    /// `\n`
    Lf,
    /// `\r`
    Cr,
    /// `\r\n`
    CrLf,
}

/// A dialect: every option COPY FROM has for the formats text and csv.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// text or csv.
    pub kind: FormatKind,
    /// One byte between fields.
    pub delimiter: u8,
    /// One byte around quoted fields; csv only.
    pub quote: u8,
    /// One byte that makes a following quote a datum; equals `quote` unless told; csv only.
    pub escape: u8,
    /// The spelling of NULL.
    pub null: String,
    /// What the first record is.
    pub header: Header,
    /// The file's encoding by its PostgreSQL name; `None` is the client's default, UTF8.
    pub encoding: Option<String>,
    /// Columns in which a quoted NULL spelling is NULL too; csv only.
    pub force_null: ColumnChoice,
    /// Columns in which the NULL spelling is never NULL; csv only.
    pub force_not_null: ColumnChoice,
    /// The spelling that stands for the column's default (PostgreSQL 16 and newer).
    pub default: Option<String>,
    /// There are no quotes: `quote` is a byte that no record may hold; csv only. Ledgers know jobs by a
    /// digest of this, in which it must not stand where it says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unquoted: bool,
}

impl Format {
    /// COPY's defaults for csv.
    pub fn csv() -> Format {
        Format {
            kind: FormatKind::Csv,
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            header: Header::None,
            encoding: None,
            force_null: ColumnChoice::None,
            force_not_null: ColumnChoice::None,
            default: None,
            unquoted: false,
        }
    }

    /// The same for files without quotes, in which a quote is a byte like others; `None` where delimiter and
    /// NULL leave no byte that could be told to COPY.
    #[must_use]
    pub fn without_quotes(self) -> Option<Format> {
        let quote = crate::dialect::no_quote(self.delimiter, &self.null)?;
        Some(Format { quote, escape: quote, unquoted: true, ..self })
    }

    /// COPY's defaults for text.
    pub fn text() -> Format {
        Format { kind: FormatKind::Text, delimiter: b'\t', null: "\\N".to_owned(), ..Format::csv() }
    }
}
