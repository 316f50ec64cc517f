//! Names that a comment above the table declares, as the logs of web servers (`#Fields: date time c-ip`) and
//! of Zeek (`#fields`) have them, and the delimiter that a first line declares.

use super::regions::Cut;
use super::table::Lines;
use super::windows::{Window, Windows};
use howdah_model::{Error, ErrorKind, Result};

const WORD: &[u8] = b"#fields";

/// What to do where they change.
pub(crate) const NAMES_CHANGE: &str =
    "cut the file where the names change, and load each part of it by itself";

/// The names in such a line. Tabs stand between them, or blanks, whatever stands between the values.
pub(crate) fn of_line(line: &[u8]) -> Option<Vec<String>> {
    let (word, names) = line.split_at_checked(WORD.len())?;
    if !word.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let names = names.strip_prefix(b":").unwrap_or(names);
    let begins = names.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    let names = String::from_utf8_lossy(names.trim_ascii()).into_owned();
    let names: Vec<String> = match names.contains('\t') {
        true => names.split('\t').map(|name| name.trim().to_owned()).collect(),
        false => names.split_ascii_whitespace().map(str::to_owned).collect(),
    };
    (begins && !names.is_empty()).then_some(names)
}

/// The last line above the first record (`start`) that declares as many names as records have fields.
pub(super) fn line_above(lines: &Lines, start: usize, width: usize, window: &Window) -> Option<usize> {
    let above = lines.lines.get(..start)?;
    above.iter().rposition(|line| {
        let written = window.text.get(line.start..line.start + line.length);
        written.and_then(of_line).is_some_and(|names| names.len() == width)
    })
}

/// # Errors
/// `Unsupported` if the line at `first` declares names and a later one others: what stands below that would
/// go to wrong columns.
pub(super) fn refuse_change(cut: &Cut, windows: &Windows, first: usize) -> Result<()> {
    let declared = |window: &Window, start: usize, length: usize| {
        window.text.get(start..start + length).and_then(of_line)
    };
    let first = cut.head.lines.get(first);
    let Some(names) = first.and_then(|line| declared(&windows.head, line.start, line.length)) else {
        return Ok(());
    };
    let changes = cut.with_windows(windows).any(|(lines, window)| {
        let mut marked = lines.lines.iter().filter(|line| line.marked);
        marked.any(|line| declared(window, line.start, line.length).is_some_and(|others| others != names))
    });
    if !changes {
        return Ok(());
    }
    let message =
        "comments declare the names of the fields (#Fields), and further down others or in another order";
    Err(Error::new(ErrorKind::Unsupported, message).with_hint(NAMES_CHANGE))
}

/// The first line that spreadsheets write and read: `sep=;`.
pub(super) fn delimiter(head: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(head.split(|byte| matches!(byte, b'\n' | b'\r')).next()?).ok()?;
    let declared = line.strip_prefix("sep=").or_else(|| line.strip_prefix("SEP="))?;
    let delimiter = declared.chars().next().filter(|delimiter| !matches!(delimiter, '"' | '\''))?;
    declared[delimiter.len_utf8()..].trim_ascii().is_empty().then(|| delimiter.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_declare_names() {
        let names = |line: &str| of_line(line.as_bytes()).unwrap_or_default().join("|");
        assert_eq!(names("#Fields: date time cs(Cookie)\r\n"), "date|time|cs(Cookie)");
        assert_eq!(names("#fields\tts\tid.orig_h\n"), "ts|id.orig_h");
        assert_eq!(names("#Fields:\n"), "");
        assert_eq!(names("#fieldset a b"), "");
        assert_eq!(names("# Fields: a b"), "");
    }
}
