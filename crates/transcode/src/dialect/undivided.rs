//! Lines that are taken for one field each, or for words, though each holds a sign that usually stands between fields: as where some
//! records have a field more than the others.

use super::Unsure;
use super::describe::visible;
use super::windows::Windows;
use howdah_model::Dialect;

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
