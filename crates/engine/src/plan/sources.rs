//! Which objects the job's locations name, and the table each goes to.

use super::finding::Looked;
use crate::Context;
use crate::retry::{self, Patience};
use futures_util::{StreamExt, TryStreamExt, stream};
use howdah_model::{Error, ErrorKind, FilePlan, Job, KnownFiles, Result, SourceSpec};
use howdah_source::Object;
use howdah_transcode::infer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Locations that are looked up side by side. A round trip to a store far away takes a tenth of a second, of
/// which jobs of a thousand URLs have a thousand.
const LISTS_AT_ONCE: usize = 16;

/// One object and the relation it goes to, as written.
pub(super) struct Source {
    pub(super) object: Object,
    pub(super) table: String,
    /// What a look at it has told already.
    pub(super) looked: Option<Box<Looked>>,
}

impl Source {
    /// The same, of which nothing is known yet.
    pub(super) fn unread(&self) -> Source {
        Source { object: self.object.clone(), table: self.table.clone(), looked: None }
    }
}

/// Expands every location of the job, in the order in which they are written.
pub(super) async fn find(context: &Context, job: &Job, retry_for: Duration) -> Result<Vec<Source>> {
    if job.sources.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "no source is given")
            .with_hint("name files, directories, globs, URLs, or - for standard input"));
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut urls: BTreeMap<String, &str> = BTreeMap::new();
    let lists = list_all(context, &job.sources, retry_for).await?;
    for (spec, objects) in job.sources.iter().zip(lists) {
        for object in objects {
            if is_url(&spec.location) {
                let first = urls.entry(object.location().to_owned()).or_insert(&spec.location);
                if *first != spec.location {
                    return Err(not_told_apart(object.location()));
                }
            }
            let table = table_for(job, spec, &object)?;
            // A file named twice, by a path and by a glob or a link, is loaded once.
            if seen.insert((object.real_location().to_owned(), table.clone())) {
                found.push(Source { object, table, looked: None });
            }
        }
    }
    Ok(found)
}

/// The objects of each location. What is found stays found: a server that refuses now and then is asked again
/// for the rest alone, and its patience begins anew.
async fn list_all(
    context: &Context,
    sources: &[SourceSpec],
    retry_for: Duration,
) -> Result<Vec<Vec<Object>>> {
    let lists: Vec<OnceCell<Vec<Object>>> = sources.iter().map(|_| OnceCell::new()).collect();
    let found = || lists.iter().filter(|list| list.initialized()).count();
    let mut patience = Patience::new(retry_for);
    loop {
        let before = found();
        let asked = sources
            .iter()
            .zip(&lists)
            .map(|(spec, list)| list.get_or_try_init(|| context.sources.list(&spec.location)));
        let asked = stream::iter(asked).buffered(LISTS_AT_ONCE).try_for_each(|_| async { Ok(()) });
        let Err(error) = context.stop.guard(Box::pin(asked)).await else { break };
        if found() > before {
            patience.reset();
        }
        retry::wait(context, &mut patience, error).await?;
    }
    Ok(lists.into_iter().filter_map(OnceCell::into_inner).collect())
}

/// The ledger would take the second for the first, and a run that goes on read one of them twice.
fn not_told_apart(shown: &str) -> Error {
    let message = "two sources differ only in parts of their URLs that may be secret, which are not kept: one would be taken for the other";
    Error::new(ErrorKind::Usage, message)
        .in_file(shown)
        .with_hint("load them one after the other, each with a --job-id of its own")
}

/// What there is to say about files, whatever they hold.
pub(super) fn doubts(job: &Job, files: &[FilePlan]) -> impl Iterator<Item = String> {
    untold(job, files).into_iter().chain(cut_off(files))
}

/// URLs of which nothing tells whether an earlier job has loaded them, where that was asked for.
fn untold(job: &Job, files: &[FilePlan]) -> Vec<String> {
    let is_asked = job.known == KnownFiles::Skip && !job.force && job.id.is_none();
    let untold = files.iter().filter(|file| is_asked && file.rereadable && file.version.is_none());
    let message = |file: &FilePlan| {
        let location = &file.location;
        format!(
            "nothing tells whether {location} was loaded before, by which --known skip would leave it out: it is loaded"
        )
    };
    untold.map(message).collect()
}

/// Puts locations into the form that the ledger keeps: local paths are made absolute, so that the job is the
/// same from any directory, and of URLs that may carry a password or a signature only the display form stays.
pub(super) fn settle(sources: &mut [SourceSpec]) {
    for spec in sources {
        let location = &spec.location;
        if location == "-" {
            continue;
        }
        if !location.contains("://") {
            spec.location = howdah_source::absolute_location(location);
        } else if is_url(location) && location.contains(['?', '#', '@']) {
            spec.location = howdah_source::shown_url(location).unwrap_or_else(|| "https://***".to_owned());
        }
    }
}

/// Schemes are written in any case.
fn is_url(location: &str) -> bool {
    let scheme = location.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn table_for(job: &Job, spec: &SourceSpec, object: &Object) -> Result<String> {
    let written = spec.table.as_ref().or(job.table.as_ref());
    if written.is_some_and(|name| name.trim().is_empty()) {
        return Err(Error::new(ErrorKind::Usage, "--table: expected the name of a table, got nothing")
            .in_file(object.location())
            .with_hint("give [schema.]name, or leave it out where the source's location names the table"));
    }
    match (written, object.placeholder()) {
        // `--table 'staging.{table}'` puts what the location matched into the name.
        (Some(written), Some(matched)) if written.contains("{table}") => {
            // Standing alone it may name the schema too: staging.title_basics.tsv.gz.
            let name = if written == "{table}" { qualified(matched) } else { quoted_if_needed(matched) };
            Ok(written.replace("{table}", &name))
        }
        // In quotes anything may be a name.
        (Some(written), None) if written.contains("{table}") && !written.contains('"') => {
            let message = format!("--table {written}: no {{table}} stands in the location of this source");
            Err(Error::new(ErrorKind::Usage, message).in_file(object.location()).with_hint(
                "put {table} into the location where the name stands there ('in/{table}.csv'), or name the table",
            ))
        }
        (Some(written), _) => Ok(written.clone()),
        (None, Some(matched)) => Ok(qualified(matched)),
        (None, None) if job.shaping.told.is_some() && object.location() != "-" => {
            Ok(quoted_if_needed(&name_of_file(object.location())))
        }
        (None, None) => Err(Error::new(ErrorKind::Usage, "no table is named for this source")
            .in_file(object.location())
            .with_hint("give --table [schema.]name, or put {table} into the source's location")),
    }
}

/// Ends of names that say how a file is compressed.
const CODECS: [&str; 7] = ["gz", "bgz", "zst", "bz2", "xz", "lz4", "zstd"];

fn is_codec(extension: &str) -> bool {
    CODECS.contains(&extension.to_ascii_lowercase().as_str())
}

fn path_of(location: &str) -> &str {
    if is_url(location) { location.split(['?', '#']).next().unwrap_or(location) } else { location }
}

/// What is said of files without a byte that are compressed by their names: also what holds nothing is some
/// bytes long when it is compressed, so that whoever wrote them has not come to it.
fn cut_off(files: &[FilePlan]) -> Option<String> {
    let is_compressed = |file: &&FilePlan| {
        file.stored_bytes == Some(0)
            && path_of(&file.location).rsplit_once('.').is_some_and(|(_, extension)| is_codec(extension))
    };
    let mut cut = files.iter().filter(is_compressed);
    let first = &cut.next()?.location;
    let have = match cut.count() {
        0 => " has".to_owned(),
        1 => " and another file have".to_owned(),
        others => format!(" and {others} other files have"),
    };
    Some(format!(
        "{first}{have} 0 bytes, expected a compressed file, which is never empty: was it written to its end?"
    ))
}

/// The name of the file, without what says how it is compressed and written, as a name for a table.
fn name_of_file(location: &str) -> String {
    let path = location.split(['?', '#']).next().unwrap_or(location);
    let mut name = path.rsplit('/').next().unwrap_or(path);
    if let Some((stem, extension)) = name.rsplit_once('.')
        && is_codec(extension)
    {
        name = stem;
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    infer::snake(&[if stem.is_empty() { name } else { stem }.to_owned()]).remove(0)
}

/// A matched text with one dot is a schema and a name.
fn qualified(matched: &str) -> String {
    match matched.split_once('.') {
        Some((schema, name)) if !schema.is_empty() && !name.is_empty() && !name.contains('.') => {
            format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name))
        }
        _ => quoted_if_needed(matched),
    }
}

/// What `{table}` matched is a name, not SQL: `Sales` must not be folded, and quotes not end it.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_table() {
        let names =
            ["/data/Flights 2024.csv.gz", "s3://b/x/title.basics.tsv", "weather", "https://h/a.csv?x=1"];
        assert_eq!(names.map(name_of_file), ["flights_2024", "title_basics", "weather", "a"]);
    }

    #[test]
    fn a_url_is_one_in_any_case() {
        assert!(is_url("HTTPS://me:secret@h/x") && is_url("http://h/x"));
        assert!(!is_url("s3://b/x") && !is_url("/a/http"));
    }

    #[test]
    fn each_url_keeps_its_own_display_form() {
        let locations = [
            ("https://h/export?id=B", "https://h/export?id=B"),
            ("https://h/export?id=A&sig=secret", "https://h/export?id=A&***"),
            ("https://user:secret@h/export#top", "https://***@h/export"),
            ("HTTPS://H/plain", "HTTPS://H/plain"),
            ("s3://b/x?y", "s3://b/x?y"),
            ("-", "-"),
        ];
        let spec = |(location, _): (&str, &str)| SourceSpec::new(location);
        let mut sources = locations.map(spec);
        settle(&mut sources);
        assert_eq!(sources.map(|spec| spec.location), locations.map(|(_, settled)| settled));
    }

    #[test]
    fn a_matched_name_is_a_name_and_not_sql() {
        assert_eq!(qualified("staging.title_basics"), "staging.title_basics");
        assert_eq!(qualified("Sales"), "\"Sales\"");
        assert_eq!(qualified("a.B c"), "a.\"B c\"");
        assert_eq!(qualified("a.b.c"), "\"a.b.c\"");
        assert_eq!(qualified("x\"; drop table y; --"), "\"x\"\"; drop table y; --\"");
    }
}
