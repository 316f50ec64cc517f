//! The one line right above the first record: a title, or the name of the only column, whose values the delimiter cuts.

use super::Unsure;
use super::regions::Regions;
use super::rows::Reader;
use super::table::Lines;
use super::windows::Window;

/// A line that is one word stands right above the first record, and nothing before it: `price` above `12,34`.
pub(super) fn one_name(
    head: &Lines,
    regions: &Regions,
    reader: &mut Reader,
    window: &Window,
) -> Option<Unsure> {
    let line = head.lines.first().filter(|line| line.width == 1 && !line.is_blank() && !line.marked)?;
    let is_above = regions.start == 1 && regions.header_lines == 0 && regions.width > 1;
    if !is_above || window.text.get(line.start..line.start + line.length)?.starts_with(b"sep=") {
        return None;
    }
    let values = head.values(0, reader, window);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_word = values.iter().all(|value| !value.is_empty() && value.chars().all(is_part));
    let what = "the first line may name the one column of a table, whose values the delimiter then cuts";
    is_word.then(|| Unsure { what: what.to_owned(), option: "--delimiter" })
}
