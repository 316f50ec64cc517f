//! Whether the values of a record are such as stand in the same columns of the records behind it.
//!
//! A record that lost fields inside may have lost the wrong ones, and every value behind them then stands in
//! another column. Enters: the record and the bytes behind it. Only where all the neighbours write a column
//! in one way, and the record in another, do they contradict.

use crate::cells::{Cells, Next, Record};

/// Records behind that are looked at.
const NEIGHBOURS_MAX: usize = 8;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// With letters.
    Words,
    /// Without, but with what stands between the parts of dates and times.
    Moment,
    /// Without either: a number.
    Figures,
}

/// What is known of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Empty,
    One(Writing),
    Mixed,
}

impl Writing {
    fn of(value: &[u8]) -> Writing {
        if value.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()) {
            return Writing::Words;
        }
        match value.split_first() {
            Some((_, rest)) if rest.iter().any(|byte| b":/-".contains(byte)) => Writing::Moment,
            _ => Writing::Figures,
        }
    }
}

impl Column {
    fn add(&mut self, writing: Writing) {
        *self = match *self {
            Column::Empty => Column::One(writing),
            Column::One(before) if before == writing => *self,
            Column::One(_) | Column::Mixed => Column::Mixed,
        };
    }
}

/// No value of the record is written in another way than all those of its column in the whole records at the
/// beginning of `behind`, which are as wide. Without such records nothing contradicts.
pub(super) fn agree(cells: &Cells, record: &Record, mut behind: &[u8], at_end: bool) -> bool {
    let mut columns = vec![Column::Empty; record.len()];
    let (mut neighbour, mut neighbours) = (Record::default(), 0);
    while neighbours < NEIGHBOURS_MAX {
        match cells.read_near(behind, at_end, &mut neighbour, 0) {
            Ok(Next::Record { length, .. }) if neighbour.len() == record.len() => {
                neighbours += 1;
                behind = &behind[length..];
                for (no, writing) in writings(&neighbour) {
                    columns[no].add(writing);
                }
            }
            Ok(Next::Comment(length)) => behind = &behind[length..],
            Ok(Next::Record { .. } | Next::More | Next::End) | Err(_) => break,
        }
    }
    writings(record).all(|(no, writing)| match columns[no] {
        Column::One(usual) => usual == writing,
        Column::Empty | Column::Mixed => true,
    })
}

/// How the fields that hold something are written.
fn writings(record: &Record) -> impl Iterator<Item = (usize, Writing)> {
    let filled = record.values().enumerate();
    let filled = filled.filter(|(no, value)| !record.is_null(*no) && !value.trim_ascii().is_empty());
    filled.map(|(no, value)| (no, Writing::of(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::Dialect;

    #[test]
    fn a_value_unlike_all_of_its_column_contradicts() {
        let cells = Cells::new(&Dialect::csv()).unwrap();
        let agrees = |line: &str, behind: &str| {
            let mut record = Record::default();
            cells.read(line.as_bytes(), true, &mut record);
            agree(&cells, &record, behind.as_bytes(), true)
        };
        let behind = "oak,3,2020-01-02\n12,-4.5,\nelm,,2021-01-02\n";
        assert!(agrees("ash,5,2019-12-31\n", behind));
        assert!(agrees("77,,2019-12-31\n", behind));
        assert!(!agrees("ash,fir,2019-12-31\n", behind));
        assert!(!agrees("ash,5,6\n", behind));
        assert!(agrees("ash,fir,6\n", ""));
        assert!(agrees("ash,fir,6\n", "a,b\noak,3,2020-01-02\n"));
    }
}
