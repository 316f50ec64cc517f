//! Rows with too few or too many fields.
//!
//! Fields missing at the end become NULL. Surplus ones are dropped if they are empty: those at the end, or
//! else all empty ones of the record, if without them it has the width and its values are such as stand in
//! the same columns of the records behind it. Where more are empty than are surplus, nothing says which; a
//! record too wide in values has a delimiter somewhere that is a datum, and nothing says which either: such
//! records are beyond mending.

use crate::cells::Record;
use howdah_model::Mend;

/// What becomes of a record whose number of fields is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fitted {
    /// It has the width now, or lacks fields that are NULL.
    Row(Option<Mend>),
    /// Nothing stands in it.
    Blank,
    /// Which field is surplus cannot be told, or it has a value.
    Beyond,
}

/// Is the record short, or surplus only in empty fields?
pub(super) fn can_fit(record: &Record, width: usize) -> bool {
    is_empty_behind(record, width) || is_full_without_empty(record, width)
}

/// All surplus fields at the end are empty.
fn is_empty_behind(record: &Record, width: usize) -> bool {
    record.values().skip(width).all(|value| value.trim_ascii().is_empty())
}

/// Without all its empty fields the record has the width, so that these are the surplus ones.
fn is_full_without_empty(record: &Record, width: usize) -> bool {
    (0..record.len()).filter(|&no| !is_gap(record, no)).count() == width
}

/// Nothing stands in it. Quotes around nothing are a value, and so is what they stand in.
pub(super) fn is_blank(record: &Record) -> bool {
    record.is_blank() && !(0..record.len()).any(|no| record.quoted(no))
}

/// Nothing stands between two delimiters. Quotes around nothing are a value.
fn is_gap(record: &Record, no: usize) -> bool {
    !record.quoted(no) && record.value(no).trim_ascii().is_empty()
}

/// Makes the record `width` fields wide at most. `agrees` says whether one that lost fields inside is such as
/// the records beside it.
pub(super) fn fit(record: &mut Record, width: usize, agrees: impl FnOnce(&Record) -> bool) -> Fitted {
    if record.len() == width {
        return Fitted::Row(None);
    }
    if is_blank(record) {
        return Fitted::Blank;
    }
    if record.len() < width {
        return Fitted::Row(Some(Mend::ShortRow));
    }
    if is_empty_behind(record, width) {
        record.truncate(width);
    } else if is_full_without_empty(record, width) {
        let gaps: Vec<bool> = (0..record.len()).map(|no| is_gap(record, no)).collect();
        record.remove(&gaps);
        if !agrees(record) {
            return Fitted::Beyond;
        }
    } else {
        return Fitted::Beyond;
    }
    Fitted::Row(Some(Mend::SurplusEmpty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cells;
    use howdah_model::Dialect;

    fn fitted(line: &str, width: usize) -> (Fitted, usize) {
        let mut record = Record::default();
        Cells::new(&Dialect::csv()).unwrap().read(line.as_bytes(), true, &mut record);
        (fit(&mut record, width, |record| record.value(0) != b"z"), record.len())
    }

    #[test]
    fn a_row_is_padded_cut_or_beyond_mending() {
        assert_eq!(fitted("a,b\n", 2), (Fitted::Row(None), 2));
        assert_eq!(fitted("a\n", 2), (Fitted::Row(Some(Mend::ShortRow)), 1));
        assert_eq!(fitted("a,,\" \",\t\n", 2), (Fitted::Row(Some(Mend::SurplusEmpty)), 2));
        assert_eq!(fitted("a,b,,c\n", 2), (Fitted::Beyond, 4));
        assert_eq!(fitted("a, ,b,,c\n", 3), (Fitted::Row(Some(Mend::SurplusEmpty)), 3));
        assert_eq!(fitted("z, ,b,,c\n", 3), (Fitted::Beyond, 3));
        assert_eq!(fitted(",a,,b\n", 3), (Fitted::Beyond, 4));
        assert_eq!(fitted("a,\"\",b\n", 2), (Fitted::Beyond, 3));
        assert_eq!(fitted(",a,b,\n", 3), (Fitted::Row(Some(Mend::SurplusEmpty)), 3));
        assert_eq!(fitted("\n", 2), (Fitted::Blank, 1));
        assert_eq!(fitted(" ,,\n", 2), (Fitted::Blank, 3));
        assert_eq!(fitted("\0\0", 2), (Fitted::Blank, 1));
        assert_eq!(fitted("\"\",\"\"\n", 3), (Fitted::Row(Some(Mend::ShortRow)), 2));
        assert_eq!(fitted("\"\",,,\n", 3), (Fitted::Row(Some(Mend::SurplusEmpty)), 3));
        assert_eq!(fitted(",\n", 2), (Fitted::Row(None), 2));
    }
}
