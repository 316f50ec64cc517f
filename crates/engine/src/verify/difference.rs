//! Where what is stored is not what was read: the chunk or the chunks that it is about, and how that is told.

use crate::pipeline::{Receipts, Run};
use howdah_model::{Error, ErrorKind, Place, Receipt, Result, TablePlan, counted};
use howdah_target::verify::Sum;
use std::collections::HashMap;

const HINT: &str = "a trigger of the table, or another session, has changed or deleted rows; the same command compares again and \
                    stores nothing twice";

/// What the receipts tell of the chunks that are summed up together: most often of one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expected {
    pub(super) rows: u64,
    pub(super) chunks: u64,
}

/// A chunk of which other is stored than was read.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub(super) file_no: u32,
    pub(super) chunk_no: u64,
    pub(super) start_byte: u64,
    /// Those its receipt tells.
    pub(super) expected_rows: u64,
    /// Behind "of records 1 to 7 ".
    pub(super) what: String,
    pub(super) column: Option<String>,
    /// It is about all rows of the table, which one transaction has stored.
    pub(super) of_table: bool,
    /// It is about so many chunks of other files, too, which the same transaction has stored.
    pub(super) others: u64,
}

impl Difference {
    pub(super) fn of_count(receipt: &Receipt, expected: Expected, found: u64) -> Difference {
        let difference = Difference {
            file_no: receipt.file_no,
            chunk_no: receipt.chunk_no,
            start_byte: receipt.start_byte,
            expected_rows: expected.rows,
            what: String::new(),
            column: None,
            of_table: false,
            others: expected.chunks.saturating_sub(1),
        };
        difference.counted(found, expected.rows)
    }

    pub(super) fn counted(self, found: u64, expected: u64) -> Difference {
        let rows = if found == 1 { "row is" } else { "rows are" };
        let what = format!("{found} {rows} in the table as this load has stored them, expected {expected}");
        Difference { what, ..self }
    }

    pub(super) fn of_values(
        receipt: &Receipt,
        expected: Expected,
        read: Sum,
        columns: &[String],
    ) -> Difference {
        let what = match (read.rows == expected.rows, columns) {
            (false, _) => format!("{} were read now, expected {}", read.rows, expected.rows),
            (true, []) => "other values are in the table than were read".to_owned(),
            (true, columns) => {
                format!("other values are in the table than were read, in {}", columns.join(", "))
            }
        };
        Difference {
            file_no: receipt.file_no,
            chunk_no: receipt.chunk_no,
            start_byte: receipt.start_byte,
            expected_rows: expected.rows,
            what,
            column: columns.first().filter(|_| columns.len() == 1).cloned(),
            of_table: false,
            others: expected.chunks.saturating_sub(1),
        }
    }
}

/// The first difference as an error, if there is one.
pub(super) fn result(
    run: &Run,
    receipts: &HashMap<u32, Receipts>,
    mut differences: Vec<Difference>,
) -> Result<()> {
    differences.sort_by_key(|difference| (difference.file_no, difference.chunk_no));
    let Some(first) = differences.first() else { return Ok(()) };
    let file = run.plan.file(first.file_no);
    let relation = &run.plan.table(file.table_no).table.relation;
    if first.of_table {
        return Err(Error::new(ErrorKind::Differs, format!("{relation}: {}", first.what)).with_hint(HINT));
    }
    let (from, to) = records(receipts, first);
    let more = match differences.len() {
        1 => String::new(),
        2 => "; 1 chunk more differs".to_owned(),
        count => format!("; {} chunks more differ", count - 1),
    };
    let of_what = match first.others {
        0 => format!("of records {from} to {to}"),
        others => {
            let files = counted(others, "other file");
            format!(
                "of its records {from} to {to}, or of those of {files} that came in the same transaction,"
            )
        }
    };
    let message = format!("{relation}: {of_what} {}{more}", first.what);
    // Where any of several files may be meant, no record is named.
    let one = Some(()).filter(|()| first.others == 0);
    let place = Place {
        file: Some(file.location.clone()),
        record: one.map(|()| from),
        byte: one.map(|()| first.start_byte),
        column: first.column.clone(),
        ..Place::default()
    };
    Err(Error::new(ErrorKind::Differs, message).at(place).with_hint(HINT))
}

pub(super) fn other_values(table: &TablePlan) -> Error {
    let why = if table.frozen { "all came in one transaction" } else { "a column became wider meanwhile" };
    let message = format!(
        "other values are in {} than were read; of which records cannot be told, since {why}",
        table.table.relation
    );
    Error::new(ErrorKind::Differs, message).with_hint(HINT)
}

/// The numbers of the first and the last record of a chunk.
fn records(receipts: &HashMap<u32, Receipts>, of: &Difference) -> (u64, u64) {
    let Some(chunks) = receipts.get(&of.file_no) else { return (1, 1) };
    let count = |receipt: &Receipt| receipt.rows + receipt.omitted.records();
    let before: u64 = chunks.range(..of.chunk_no).map(|(_, receipt)| count(receipt)).sum();
    (before + 1, before + chunks.get(&of.chunk_no).map_or(1, count))
}
