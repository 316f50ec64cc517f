//! Lines that are taken for one field each, or for words, though each holds a sign that usually stands
//! between fields: as where some records have a field more than the others.

use super::Unsure;
use super::describe::visible;
use super::windows::Windows;
use howdah_model::{Dialect, counted};

/// Fewer lines than this hold a sign by chance.
const LINES_MIN: usize = 5;

/// Lines of the head that are looked at.
const LINES_MAX: usize = 200;

const SIGNS: [&str; 4] = [",", ";", "\t", "|"];

/// Says so where such a sign is in each of the first lines, and nothing is in quotes.
pub(super) fn doubt(dialect: &Dialect, windows: &Windows) -> Option<Unsure> {
    let is_undivided = dialect.delimiter.bytes().all(|byte| byte < b' ' && byte != b'\t');
    if !is_undivided && dialect.delimiter != " " {
        return None;
    }
    let text = &windows.head.text;
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty());
    let mut lines: Vec<&[u8]> = lines.take(LINES_MAX + 1).collect();
    // The last one may go on beyond the head.
    if lines.len() > LINES_MAX || !windows.head.at_end {
        lines.pop();
    }
    if lines.len() < LINES_MIN || lines.iter().any(|line| line.contains(&b'"')) {
        return None;
    }
    let is_everywhere =
        |sign: &&&str| lines.iter().all(|line| memchr::memmem::find(line, sign.as_bytes()).is_some());
    let sign = SIGNS.iter().find(is_everywhere)?;
    let what = format!("{} may be the delimiter: each of the first lines holds one", visible(sign));
    Some(Unsure { what, option: "--delimiter" })
}

/// Says so where a line drawn below names shows another number of columns than blanks cut: a number that ends
/// where the text behind it begins has one blank between, as in what SQL*Plus and sqlcmd print.
pub(super) fn doubt_by_ruler(dialect: &Dialect, width: usize, windows: &Windows) -> Option<Unsure> {
    if !dialect.delimiter.bytes().all(|byte| byte == b' ') {
        return None;
    }
    let mut lines = windows.head.text.split(|byte| matches!(byte, b'\n' | b'\r')).take(LINES_MAX);
    let drawn = lines.find_map(drawn_columns)?;
    (drawn > 1 && drawn != width).then(|| Unsure {
        what: format!("{} were found, and a drawn line shows {drawn}", counted(width, "column")),
        option: "an export with a delimiter",
    })
}

/// How many strokes a line is drawn of.
fn drawn_columns(line: &[u8]) -> Option<usize> {
    let is_drawn = line.iter().all(|byte| matches!(byte, b'-' | b'=' | b' '));
    let strokes = line.split(|byte| *byte == b' ').filter(|stroke| !stroke.is_empty());
    let strokes: Vec<usize> = strokes.map(<[u8]>::len).collect();
    (is_drawn && strokes.iter().any(|length| *length > 2)).then_some(strokes.len())
}
