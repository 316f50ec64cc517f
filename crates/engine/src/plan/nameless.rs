//! Fields without a name in the header that hold nothing, as spreadsheets write them behind the last column
//! (`a;b;;`), and fields behind the last column where there is no header, as programs write them that end
//! records with a delimiter (`1|2|`). A table that is there has no column for them and needs none, as long as
//! it is certain that no value stands there.

use super::finding::Found;
use super::head::Head;
use super::whole::{Extent, Wholes};
use howdah_model::{Evolve, Job, Result, Table};
use howdah_transcode::infer::ColumnState;

/// Reads the files to their end whose fields without a column hold nothing as far as they were seen, if they
/// are not too large.
pub(super) async fn prove_hollow(
    job: &Job,
    table: &Table,
    wholes: &Wholes<'_>,
    heads: &mut [Head],
) -> Result<()> {
    let by_name = job.columns.is_none() && !job.ignore_extra && job.shaping.evolve == Evolve::None;
    let own = || table.columns.iter().filter(|column| !column.generated).count();
    let columns = job.columns.as_ref().map_or_else(own, Vec::len);
    let matters = |found: &Found| match job.columns.is_none() && found.finding.header_rows > 0 {
        true => by_name && !empty_fields(found).is_empty(),
        false => columns < found.finding.width && is_empty(found, columns),
    };
    let open = heads.iter_mut().filter(|head| head.found.as_deref().is_some_and(matters));
    wholes.scan(open, Extent::All).await
}

/// Fields without a name that hold no value anywhere in the file; none where not all of it was seen.
pub(super) fn hollow(found: &Found) -> Vec<usize> {
    if found.columns.complete { empty_fields(found) } else { Vec::new() }
}

/// Nor do any fields from this one on, by position.
pub(super) fn are_hollow_from(found: &Found, first: usize) -> bool {
    found.columns.complete && (first..found.finding.width).all(|no| is_empty(found, no))
}

fn empty_fields(found: &Found) -> Vec<usize> {
    let names = found.finding.names.iter().enumerate();
    names.filter(|(no, name)| name.is_empty() && is_empty(found, *no)).map(|(no, _)| no).collect()
}

fn is_empty(found: &Found, no: usize) -> bool {
    let columns = &found.columns;
    let is_quoted = columns.quoted_empty.get(no).is_some_and(|quoted| *quoted);
    columns.states.get(no).is_some_and(ColumnState::is_empty) && !is_quoted
}
