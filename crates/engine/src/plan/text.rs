//! Which csv is sent as COPY text: what the encoder can write so, where memory has room for it.

use super::tables::UNTOUCHED;
use crate::budget::{Layout, Scratch};
use howdah_model::plan::{Encode, TablePlan};

/// The note of records that are sent as text; an earlier run's plan has it already.
const AS_TEXT: &str = "csv records are sent as COPY text, which the server reads faster";

/// Whether the chunks of these tables need a second buffer.
pub(super) fn scratch(tables: &[TablePlan]) -> Scratch {
    if tables.iter().any(|table| table.encode == Encode::CopyText) {
        Scratch::Needed
    } else if tables.iter().any(|table| table.text_sql.is_some()) {
        Scratch::Useful
    } else {
        Scratch::None
    }
}

/// Without a second buffer csv stays csv; with it the plan says what happens.
pub(super) fn settle(tables: &mut [TablePlan], layout: &Layout) {
    for table in tables {
        if layout.chunk_buffers < 2 {
            table.text_sql = None;
        } else if table.text_sql.is_some() {
            table.notes.retain(|note| note != UNTOUCHED && note != AS_TEXT);
            table.notes.push(AS_TEXT.to_owned());
        }
    }
}
