//! Files that their table would refuse, as their records have another number of fields than it has columns:
//! where the data allow for a reading that has as many, that one is taken.
//!
//! Blanks that stand as often in each text may cut it as well as what delimits the texts, and only the table
//! tells. What would not be refused is never read otherwise for its sake.

use super::columns::Columns;
use super::finding::{given, look_at};
use super::head::{Head, HeadReader, Heads};
use crate::feed::Opened;
use howdah_model::{Evolve, Job, Result, Table, Told};
use howdah_transcode::dialect::Given;
use std::mem::{replace, swap};

/// Looks at such files once more, until one of them has no other reading, or is not refused for its width.
///
/// # Errors
/// Those of the sources and the session.
pub(super) async fn look_again(
    of_heads: &Heads<'_>,
    job: &Job,
    table: &Table,
    heads: &mut [Head],
) -> Result<()> {
    let Some(told) = job.shaping.told.as_ref().filter(|told| may_be_other(job, told)) else { return Ok(()) };
    let columns = table.columns.iter().filter(|column| !column.generated).count();
    for head in heads.iter_mut() {
        let width = head.found.as_ref().map_or(0, |found| found.finding.width);
        let is_refused = |head: &Head| Columns::of(job, table, head).is_err();
        if width == 0 || width == columns || !is_refused(head) {
            continue;
        }
        let given = Given { width: Some(columns), ..given(told, None) };
        let looked = look_at(reader_of(head), &given).await?;
        let (opened, width) = (looked.reader.into_opened(), looked.found.finding.width);
        if width != columns {
            head.opened = opened;
            return Ok(());
        }
        let mut other = of_heads.head_of(opened, head.table.clone(), looked.codec, looked.found).await?;
        if is_refused(&other) {
            swap(&mut head.opened, &mut other.opened);
            return Ok(());
        }
        *head = Head { keeps_sample: head.keeps_sample, ..other };
    }
    Ok(())
}

/// Reads the file once more; of a pipe, what has been kept of it.
fn reader_of(head: &mut Head) -> HeadReader {
    let anew = Opened::new(head.object().clone());
    if anew.object.rereadable() {
        return HeadReader::behind_head(anew);
    }
    HeadReader::behind_head(replace(&mut head.opened, anew))
}

/// Nobody has said how the records are cut, nor which columns they fill.
fn may_be_other(job: &Job, told: &Told) -> bool {
    let is_told = told.delimiter.is_some() || told.dialect.is_some();
    let is_mapped = job.columns.is_some() || !job.map.is_empty();
    !is_told && !is_mapped && !job.shaping.all_tables && job.shaping.evolve == Evolve::None
}
