//! Files without a value in any record: blank lines, empty fields, remarks.

use super::Unsure;
use super::table;
use super::windows::Windows;

/// What a file holds that has no value in any record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nothing {
    Blanks,
    EmptyFields,
    Remarks,
}

impl Nothing {
    pub(super) fn of(windows: &Windows) -> Option<Nothing> {
        let mut lines = windows.all().flat_map(|window| {
            window.text[window.from..].split(|byte| matches!(byte, b'\n' | b'\r')).map(Nothing::of_line)
        });
        lines.try_fold(Nothing::Blanks, |all, line| Some(all.max(line?)))
    }

    fn of_line(line: &[u8]) -> Option<Nothing> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let is_empty = |byte: &u8| is_blank(byte) || matches!(byte, b',' | b';' | b'|' | b'"');
        match line {
            _ if line.iter().all(is_blank) => Some(Nothing::Blanks),
            _ if line.iter().all(is_empty) => Some(Nothing::EmptyFields),
            _ if is_remark(line) => Some(Nothing::Remarks),
            _ => None,
        }
    }

    /// What is said of it, if more than blanks are left out.
    pub(super) fn unsure(self) -> Option<Unsure> {
        let what = match self {
            Nothing::Blanks => return None,
            Nothing::EmptyFields => "all fields are empty, and no line is read as a record",
            Nothing::Remarks => "all lines look like comments, and none is read as a record",
        };
        Some(Unsure { what: what.to_owned(), option: "--format csv" })
    }
}

/// A sign without a blank behind it may be a value: `#1`.
fn is_remark(line: &[u8]) -> bool {
    table::mark(line).is_some_and(|mark| matches!(line.get(mark.len()), None | Some(b' ')))
}
