//! How the records of a file are written, in more ways than COPY knows.
//!
//! [`Format`](crate::Format) is what COPY can be told. A dialect says more: delimiters of several
//! characters, mixed line endings, several spellings of NULL. Where a dialect says no more than COPY
//! can be told, the file's bytes go to the server untouched; any other is read by the client.

use crate::format::{ColumnChoice, Eol, Format, FormatKind, Header};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a quote or a delimiter becomes a datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Escape {
    /// A quote inside a quoted field is written twice.
    Doubled,
    /// With a quote: inside quotes, a backslash makes a following quote or backslash a datum.
    /// Without one: the backslash sequences of COPY's text format, `\N` included.
    Backslash,
    /// Nothing does: a quote inside a quoted field cannot be written.
    None,
}

/// How records and fields are told apart. Bytes are those of the file after it became UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dialect {
    /// Between fields: one character or more, never a quote or a line ending. Empty: one field per record.
    pub delimiter: String,
    /// Several delimiters in a row count as one, and those at the ends of a record as none (columns
    /// lined up with spaces).
    pub repeats: bool,
    /// Spaces and tabs around a field are not part of it (a delimiter among them stays one).
    pub trim: bool,
    /// The ASCII byte around fields that hold delimiters or line endings.
    pub quote: Option<u8>,
    /// How a quote becomes a datum.
    pub escape: Escape,
    /// What ends a record; `None` when each record may end in any of the three ways.
    pub eol: Option<Eol>,
    /// What an unquoted field says to be NULL.
    pub nulls: Vec<String>,
    /// Of these spellings some are values in some fields, whose numbers count from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, Vec<usize>>,
    /// Records that start so are no data.
    pub comment: Option<String>,
    /// Without a quote: a byte that the sample has not, where it has the one that COPY would be told for a
    /// quote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<u8>,
}

/// The quote told to COPY for a file without one, the first that is neither delimiter nor in the spelling of
/// NULL: a control character that no text holds. Data that holds it all the same is noticed, since it then
/// stands where no quote may stand.
const NO_QUOTES: [u8; 3] = [0x01, 0x02, 0x03];

pub(crate) fn no_quote(delimiter: u8, null: &str) -> Option<u8> {
    NO_QUOTES.into_iter().find(|byte| *byte != delimiter && !null.as_bytes().contains(byte))
}

impl Dialect {
    /// RFC 4180, with the line ending of Unix: commas, double quotes, the empty field for NULL.
    pub fn csv() -> Dialect {
        Dialect {
            delimiter: ",".to_owned(),
            repeats: false,
            trim: false,
            quote: Some(b'"'),
            escape: Escape::Doubled,
            eol: Some(Eol::Lf),
            nulls: vec![String::new()],
            kept: BTreeMap::new(),
            comment: None,
            unused: None,
        }
    }

    /// What COPY can be told for the quote of a file without one, the usual byte first: control characters
    /// that mean nothing to text.
    pub fn unused_bytes(&self) -> impl Iterator<Item = u8> {
        let is_free = |byte: &u8| {
            let means_something = |text: &String| text.as_bytes().contains(byte);
            !self.delimiter.as_bytes().contains(byte) && !self.nulls.iter().any(means_something)
        };
        NO_QUOTES.into_iter().chain(0x04..=0x06).chain(0x0E..=0x1F).filter(is_free)
    }

    /// What COPY is told about a file in this dialect, header and encoding aside; `None` where COPY
    /// has no words for it.
    pub fn to_format(&self) -> Option<Format> {
        let &[delimiter] = self.delimiter.as_bytes() else { return None };
        let [null] = self.nulls.as_slice() else { return None };
        let beyond_copy = !self.kept.is_empty()
            || self.repeats
            || self.trim
            || self.eol.is_none()
            || self.comment.is_some();
        if beyond_copy || !delimiter.is_ascii() {
            return None;
        }
        let format = match (self.quote, self.escape) {
            (None, Escape::Backslash) => Format::text(),
            (Some(quote), Escape::Backslash) => Format { quote, escape: b'\\', ..Format::csv() },
            // Two quotes inside quotes are noticed where the dialect says that there are none.
            (Some(quote), _) => Format { quote, escape: quote, ..Format::csv() },
            (None, _) => {
                let quote = self.unused.or_else(|| no_quote(delimiter, null))?;
                Format { quote, escape: quote, ..Format::csv() }
            }
        };
        let no_choice = (ColumnChoice::None, ColumnChoice::None);
        let (force_null, force_not_null) = no_choice;
        Some(Format {
            delimiter,
            null: null.clone(),
            header: Header::None,
            force_null,
            force_not_null,
            ..format
        })
    }
}

impl Dialect {
    /// The same of a dialect whose spellings of NULL alone are more than COPY can be told, as if it had only
    /// the shortest of them. `None` where COPY can be told all of it, and where this one is a value in some
    /// fields, or what stands for others would be longer than they are.
    pub fn to_format_but_null(&self) -> Option<Format> {
        let null = self.nulls.iter().min_by_key(|null| null.len())?;
        if self.nulls.len() < 2 || self.kept.contains_key(null) {
            return None;
        }
        let one = Dialect { nulls: vec![null.clone()], kept: BTreeMap::new(), ..self.clone() };
        let format = one.to_format()?;
        let of_csv = (format.kind == FormatKind::Csv).then_some(format.quote);
        let signs = [Some(b'\n'), Some(b'\r'), Some(format.delimiter), of_csv];
        let means_more =
            |null: &String| null == "\\." || null.bytes().any(|byte| signs.contains(&Some(byte)));
        (!self.nulls.iter().any(means_more)).then_some(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_for_no_quote_is_no_other_sign_of_the_file() {
        let quote = |delimiter: &str, null: &str| {
            let dialect = Dialect {
                delimiter: delimiter.to_owned(),
                quote: None,
                escape: Escape::None,
                nulls: vec![null.to_owned()],
                ..Dialect::csv()
            };
            dialect.to_format().map(|format| (format.quote, format.escape))
        };
        assert_eq!(quote(",", ""), Some((1, 1)));
        assert_eq!(quote("\x01", ""), Some((2, 2)));
        assert_eq!(quote("\x02", "\x01"), Some((3, 3)));
        assert_eq!(quote("\x02", "\x01\x03"), None);
    }
}
