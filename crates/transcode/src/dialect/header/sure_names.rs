//! Words that are names, though another name of their line comes again as a value: `married` in a column of
//! `married` and `divorced`.

use super::super::cell_types::{Class, Kind};
use super::super::rows::Reader;
use super::super::table::Lines;
use super::super::windows::Window;
use super::COMPARED_LINES;
use std::collections::BTreeSet;

/// So many words in columns of numbers, days or the like are names, if they differ and none of them comes
/// again.
const SURE_NAMES: usize = 3;

/// So many are if all values below them, of this many records at least, are numbers, days or the like.
const NAMES_ABOVE_VALUES: usize = 2;
const RECORDS_MIN: usize = 10;

/// The words of this line that stand in columns of numbers, days or the like, `text` without values that have
/// a mark, are surely names: they are several, two where nothing else stands below them, or all fields have
/// quotes, and values below these words have none, as R writes them.
pub(super) fn are_sure_names(
    lines: &Lines,
    no: usize,
    text: usize,
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> bool {
    let (kinds, names) = (lines.kinds(no), lines.values(no, reader, window));
    let all_quoted = (0..reader.record.len()).all(|column| reader.record.quoted(column));
    let is_word =
        |column: &usize| classes[*column].is_some() && matches!(kinds[*column], Kind::Text | Kind::Boolean);
    let words: Vec<usize> = (0..kinds.len().min(classes.len())).filter(is_word).collect();
    let (mut unquoted, mut unique) = (words.clone(), words.clone());
    let (mut records, mut are_values) = (0, true);
    for below in (no + 1..lines.len()).take(COMPARED_LINES) {
        let (values, kinds) = (lines.values(below, reader, window), lines.kinds(below));
        unquoted.retain(|column| !reader.record.quoted(*column));
        unique.retain(|column| values.get(*column) != Some(&names[*column]));
        let is_value = |column: &usize| {
            kinds.get(*column).is_none_or(|kind| !kind.is_value() || kind.class() == classes[*column])
        };
        records += usize::from(kinds.len() == names.len());
        are_values &= words.iter().all(is_value);
    }
    let different: BTreeSet<&String> = unique.iter().map(|column| &names[*column]).collect();
    let enough = if are_values && records >= RECORDS_MIN { NAMES_ABOVE_VALUES } else { SURE_NAMES };
    let are_several = text >= enough && different.len() == words.len();
    are_several || all_quoted && !unquoted.is_empty()
}
