//! Rows with too few or too many fields, each as its own bytes say.
//!
//! Fields missing at the end become NULL; surplus ones are dropped if they are empty. A surplus field with a
//! value means that a delimiter somewhere in the record is a datum, and nothing says which: such a record
//! is beyond mending.

use crate::cells::Record;
use howdah_model::Mend;

/// What becomes of a record whose number of fields is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fitted {
    /// It has the width now, or lacks fields that are NULL.
    Row(Option<Mend>),
    /// Nothing stands in it.
    Blank,
    /// A surplus field has a value.
    Beyond,
}

/// Is the record short, or surplus only in empty fields?
pub(super) fn can_fit(record: &Record, width: usize) -> bool {
    record.values().skip(width).all(|value| value.trim_ascii().is_empty())
}

/// Makes the record `width` fields wide at most.
pub(super) fn fit(record: &mut Record, width: usize) -> Fitted {
    if record.len() == width {
        return Fitted::Row(None);
    }
    if record.is_blank() {
        return Fitted::Blank;
    }
    if record.len() < width {
        return Fitted::Row(Some(Mend::ShortRow));
    }
    if !can_fit(record, width) {
        return Fitted::Beyond;
    }
    record.truncate(width);
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
        (fit(&mut record, width), record.len())
    }

    #[test]
    fn a_row_is_padded_cut_or_beyond_mending() {
        assert_eq!(fitted("a,b\n", 2), (Fitted::Row(None), 2));
        assert_eq!(fitted("a\n", 2), (Fitted::Row(Some(Mend::ShortRow)), 1));
        assert_eq!(fitted("a,,\" \",\t\n", 2), (Fitted::Row(Some(Mend::SurplusEmpty)), 2));
        assert_eq!(fitted("a,b,,c\n", 2), (Fitted::Beyond, 4));
        assert_eq!(fitted("\n", 2), (Fitted::Blank, 1));
        assert_eq!(fitted(" ,,\n", 2), (Fitted::Blank, 3));
        assert_eq!(fitted(",\n", 2), (Fitted::Row(None), 2));
    }
}
