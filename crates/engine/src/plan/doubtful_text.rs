//! Columns of a new table that are of text though all their values seen are written as numbers, days or the
//! like.
//!
//! Nothing is lost by that, but who sums them up later should hear of it before they are loaded.

use super::columns::{self, Columns, some_of};
use super::head::Head;
use super::tables::{Shape, joined};
use howdah_model::{Job, plural};
use std::collections::BTreeMap;

/// Says so of each file that has such columns, those of one reason in one line.
pub(super) fn tell(job: &Job, shape: &Shape, chosen: &mut [Columns], heads: &[Head]) {
    let Some(create) = &shape.create else { return };
    let complete = heads.iter().filter_map(|head| head.found.as_ref()).all(|found| found.columns.complete);
    let seen = joined(chosen, heads);
    let doubt = |name: &String| {
        let (state, _) = seen.get(name)?;
        Some((state.doubt_of_text(complete)?, state.spelled_types()))
    };
    let mut doubts: BTreeMap<(String, Vec<String>), Vec<String>> = BTreeMap::new();
    let of_text = create.columns.iter().filter(|column| column.type_name == "text");
    for column in of_text.filter(|column| columns::told(job, &column.name).is_none()) {
        if let Some(why) = doubt(&column.name) {
            doubts.entry(why).or_default().push(column.name.clone());
        }
    }
    for columns in chosen {
        for ((why, types), names) in &doubts {
            let is_there = |name: &&String| columns.fields.iter().flatten().any(|field| field == *name);
            let there: Vec<&String> = names.iter().filter(is_there).collect();
            if let Some(first) = there.first() {
                let is = plural(there.len() as u64, "is", "are");
                let types = if types.is_empty() { &["TYPE".to_owned()] } else { types.as_slice() };
                let told: Vec<String> = types.iter().map(|named| format!("{first}={named}")).collect();
                let (there, told) = (some_of(&there), told.join(" or "));
                columns.unsure.push(format!("{there} {is} text: {why}; --types {told} settles it"));
            }
        }
    }
}
