//! Whether the values of a record are such as stand in the same columns of the records behind it.
//!
//! A record that lost fields inside may have lost the wrong ones, and every value behind them then stands in
//! another column. Enters: the record and the bytes behind it. Only where all the neighbours write a column
//! in one way, and the record in another, do they contradict. And only where the record has words as well as
//! numbers, dates or times, each as all its neighbours have them, do they speak for it: words alone may be a
//! sentence, and numbers alone the parts of a time of day.

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

/// What the records behind say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// A value is written in another way than all those of its column.
    Contradicts,
    /// Neither.
    SaysNothing,
    /// Words and others stand where all neighbours have them.
    Agrees,
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

/// What the whole records at the beginning of `behind`, which are as wide, say of the values of the record.
pub(super) fn agree(cells: &Cells, record: &Record, mut behind: &[u8], at_end: bool) -> Agreement {
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
    let (mut words, mut others) = (false, false);
    for (no, writing) in writings(record) {
        match columns[no] {
            Column::One(usual) if usual != writing => return Agreement::Contradicts,
            Column::One(Writing::Words) => words = true,
            Column::One(_) => others = true,
            Column::Empty | Column::Mixed => {}
        }
    }
    if words && others { Agreement::Agrees } else { Agreement::SaysNothing }
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
        for (line, behind, agreement) in [
            ("ash,5,2019-12-31\n", behind, Agreement::SaysNothing),
            ("ash,5,2019-12-31\n", "oak,3,2020-01-02\n", Agreement::Agrees),
            ("ash,fir,yew\n", "oak,elm,fir\n", Agreement::SaysNothing),
            ("10,30,00\n", "1,2,3\n", Agreement::SaysNothing),
            ("77,,2019-12-31\n", behind, Agreement::SaysNothing),
            ("ash,fir,2019-12-31\n", behind, Agreement::Contradicts),
            ("ash,5,6\n", behind, Agreement::Contradicts),
            ("ash,fir,6\n", "", Agreement::SaysNothing),
            ("ash,fir,6\n", "a,b\noak,3,2020-01-02\n", Agreement::SaysNothing),
        ] {
            assert_eq!(agrees(line, behind), agreement, "{line}");
        }
    }
}
