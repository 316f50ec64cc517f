//! Columns of a table that is there which leave out a part of their values, as the server does without a
//! word.

use super::columns::{self, Columns, some_of};
use super::head::Head;
use super::tables::joined;
use crate::widen::drops_zone;
use howdah_model::{Job, Table, plural};

/// Says so of each file that has offsets from UTC in columns that keep none. What the user has told of a
/// column settles it.
pub(super) fn tell_offsets(job: &Job, table: &Table, chosen: &mut [Columns], heads: &[Head]) {
    let seen = joined(chosen, heads);
    let drops = |name: &String| {
        let column = table.columns.iter().find(|column| column.name == *name);
        let state = seen.get(name).map(|(state, _)| state);
        column.zip(state).is_some_and(|(column, state)| drops_zone(&column.type_name, state))
    };
    let dropping: Vec<String> = seen
        .keys()
        .filter(|name| columns::told(job, name).is_none() && drops(name))
        .map(|name| (*name).clone())
        .collect();
    for columns in chosen {
        let is_there = |name: &&String| columns.fields.iter().flatten().any(|field| field == *name);
        let there: Vec<&String> = dropping.iter().filter(is_there).collect();
        if !there.is_empty() {
            let takes = plural(there.len() as u64, "is of a type that leaves", "are of types that leave");
            columns.unsure.push(format!(
                "{} {takes} out the offsets from UTC of the values; timestamptz keeps the moments that they name",
                some_of(&there)
            ));
        }
    }
}
