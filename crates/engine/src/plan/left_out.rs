//! Columns of a table that is there which leave out a part of their values, as the server does without a
//! word.

use super::columns::{self, Columns, some_of};
use super::head::Head;
use super::tables::joined;
use crate::widen::{drops_day, drops_decimals, drops_time_of_day, drops_zone};
use howdah_model::{Job, Table, plural};
use howdah_transcode::infer::{Among, ColumnState};

/// What is left out, and what would not leave it out.
struct Part {
    is_left_out: fn(&str, &ColumnState) -> bool,
    what: &'static str,
    instead: &'static str,
}

const PARTS: [Part; 4] = [
    Part {
        is_left_out: drops_zone,
        what: "the offsets from UTC of the values",
        instead: "timestamptz keeps the moments that they name",
    },
    Part {
        is_left_out: drops_time_of_day,
        what: "the times of day of the values",
        instead: "timestamp keeps them",
    },
    Part { is_left_out: drops_day, what: "the days of the values", instead: "timestamp keeps them" },
    Part {
        is_left_out: drops_decimals,
        what: "digits behind the point of the values, which it rounds",
        instead: "numeric without limits keeps them",
    },
];

/// Says so of each file that has such values in columns that do not keep them. What the user has told of a
/// column settles it.
pub(super) fn tell(job: &Job, table: &Table, chosen: &mut [Columns], heads: &[Head]) {
    let seen = joined(chosen, heads);
    let dropping = PARTS.map(|part| {
        let drops = |(name, (state, _)): &(&&String, &(ColumnState, Among))| {
            let column = table.columns.iter().find(|column| column.name == ***name);
            column.is_some_and(|column| (part.is_left_out)(&column.type_name, state))
                && columns::told(job, name).is_none()
        };
        let names: Vec<String> = seen.iter().filter(drops).map(|(name, _)| (*name).clone()).collect();
        (part, names)
    });
    for columns in chosen {
        for (Part { what, instead, .. }, names) in &dropping {
            let is_there = |name: &&String| columns.fields.iter().flatten().any(|field| field == *name);
            let there: Vec<&String> = names.iter().filter(is_there).collect();
            if !there.is_empty() {
                let takes = plural(there.len() as u64, "is of a type that leaves", "are of types that leave");
                columns.unsure.push(format!("{} {takes} out {what}; {instead}", some_of(&there)));
            }
        }
    }
}
