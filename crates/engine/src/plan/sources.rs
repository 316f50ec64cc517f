//! Which objects the job's locations name, and the table each goes to.

use crate::Context;
use howdah_model::{Error, ErrorKind, Job, Result, SourceSpec};
use howdah_source::Object;
use std::collections::BTreeSet;

/// One object and the relation it goes to, as written.
pub(super) struct Found {
    pub(super) object: Object,
    pub(super) table: String,
}

/// Expands every location of the job.
pub(super) async fn find(context: &Context, job: &Job) -> Result<Vec<Found>> {
    if job.sources.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "no source is given")
            .with_hint("name files, directories, globs, URLs, or - for standard input"));
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for spec in &job.sources {
        for object in context.sources.list(&spec.location).await? {
            let table = table_for(job, spec, &object)?;
            // A file named twice, by a path and by a glob, is loaded once.
            if seen.insert((object.location().to_owned(), table.clone())) {
                found.push(Found { object, table });
            }
        }
    }
    Ok(found)
}

fn table_for(job: &Job, spec: &SourceSpec, object: &Object) -> Result<String> {
    let matched = object.placeholder().map(quoted_if_needed);
    let written = spec.table.as_ref().or(job.table.as_ref());
    match (written, matched) {
        // `--table 'staging.{table}'` puts what the location matched into the name.
        (Some(written), Some(matched)) if written.contains("{table}") => {
            Ok(written.replace("{table}", &matched))
        }
        (Some(written), _) => Ok(written.clone()),
        (None, Some(matched)) => Ok(matched),
        (None, None) => Err(Error::new(ErrorKind::Usage, "no table is named for this source")
            .in_file(object.location())
            .with_hint("give --table [schema.]name, or put {table} into the source's location")),
    }
}

/// What `{table}` matched is a name, not SQL: `Sales` must not be folded, `a.b` not be split.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
