//! What records that pass to the server are looked at for, before a session has them.

use crate::pipeline::Run;
use crate::widen::{holds_text, is_inferred};
use howdah_model::plan::Care;
use howdah_model::{Format, Result, Stage, TablePlan};
use howdah_transcode::characters::Characters;
use howdah_transcode::inspect::{Inspector, Oddity};
use howdah_transcode::split::Rules;

/// Looks at the records of one file.
pub(super) enum Look {
    /// For what contradicts the dialect that was found.
    Dialect(Box<Inspector>),
    /// For bytes that are no characters: all else about a format that was told is the server's to judge.
    Characters(Characters),
}

impl Look {
    /// `None` where there is nothing to look for: records that were read and written anew, and those in an
    /// encoding that only the server reads.
    pub(super) fn new(table: &TablePlan, rules: &Rules, server_version: u32) -> Result<Option<Look>> {
        match (table.care, &table.dialect) {
            (Care::Rewritten, _) => Ok(None),
            (Care::Watched, Some(dialect)) => {
                let inspector = Inspector::new(&table.format, dialect, table.fields.len())?;
                let inspector = inspector.for_server(server_version).for_typed(typed(table));
                Ok(Some(Look::Dialect(Box::new(inspector))))
            }
            (Care::Server | Care::Watched, _) => Ok(characters(&table.format, rules)),
        }
    }

    /// Nothing is odd about any of these records.
    pub(super) fn is_as_told(&self, run: &Run, records: &[u8]) -> bool {
        run.tally.time(Stage::Encode, || match self {
            Look::Dialect(inspector) => inspector.is_as_told(records),
            Look::Characters(characters) => characters.are_whole(records),
        })
    }

    /// The first odd one.
    pub(super) fn look(&self, run: &Run, records: &[u8]) -> Option<Oddity> {
        run.tally.time(Stage::Encode, || match self {
            Look::Dialect(inspector) => inspector.inspect(records),
            Look::Characters(characters) => characters.inspect(records),
        })
    }

    /// Where the first backslash stands in these records that may be one of COPY's text format, though the
    /// sample had none.
    pub(super) fn copy_escape(&self, records: &[u8]) -> Option<usize> {
        match self {
            Look::Dialect(inspector) => inspector.copy_escape(records),
            Look::Characters(_) => None,
        }
    }

    /// The same behind an odd record.
    pub(super) fn look_behind(&self, run: &Run, records: &[u8]) -> Option<Oddity> {
        run.tally.time(Stage::Encode, || match self {
            Look::Dialect(inspector) => inspector.inspect_behind(records),
            Look::Characters(characters) => characters.inspect(records),
        })
    }
}

/// For each field: its column is of a type to which `\N` is no value.
fn typed(table: &TablePlan) -> Vec<bool> {
    let is_typed = |field: &Option<String>| {
        let column = table.table.columns.iter().find(|column| Some(&column.name) == field.as_ref());
        column.is_some_and(|column| !holds_text(&column.type_name) && is_inferred(&column.type_name))
    };
    table.fields.iter().map(is_typed).collect()
}

fn characters(format: &Format, rules: &Rules) -> Option<Look> {
    Characters::new(format, rules).map(Look::Characters)
}
