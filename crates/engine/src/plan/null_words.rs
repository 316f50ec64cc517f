//! Words for "no value" in columns that hold nothing else: in the file they look like text, and the type of
//! the column that is there says that they are none.

use super::scan::Columns;
use crate::widen::{holds_text, is_inferred};
use howdah_transcode::dialect::is_missing;

/// The word that is all that was seen of field `no`, if it is no value of this type.
pub(super) fn only(columns: &Columns, no: usize, type_name: &str) -> Option<String> {
    // Text is text, and JSON has words of its own.
    if holds_text(type_name) || !is_inferred(type_name) || type_name.starts_with("json") {
        return None;
    }
    // Of values that are all text the first alone rules out other kinds.
    let [word] = columns.witnesses.get(no)?.as_slice() else { return None };
    let word = std::str::from_utf8(word).ok()?;
    let is_all = || columns.sample_holds_only(no, word);
    let is_value = word.eq_ignore_ascii_case("nan");
    (is_missing(word.as_bytes()) && !is_value && is_all()).then(|| word.to_owned())
}
