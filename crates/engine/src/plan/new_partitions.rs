//! Tables that get partitions for rows that have none, where that is asked for.

use crate::Context;
use howdah_model::plan::TablePlan;
use howdah_model::{Error, ErrorKind, Job, PartitionUnit, Relation, RelationKind, Result};
use howdah_target::date_partitions::{self, DateRanges};
use howdah_target::session::Session;
use howdah_transcode::route::Router;

/// A table, its OID and the partitions it has.
pub(crate) type Dated = (u32, Relation, DateRanges);

/// Reads which partitions there are, and says in the plan that more are made.
///
/// # Errors
/// Usage, where a table cannot get partitions so, or the file does not fill the column that tells them.
pub(super) async fn read(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &mut [TablePlan],
) -> Result<Vec<Dated>> {
    let Some(unit) = job.create_partitions else { return Ok(Vec::new()) };
    let unit = match unit {
        PartitionUnit::Day => "day",
        PartitionUnit::Month => "month",
    };
    let mut dated: Vec<Dated> = Vec::new();
    for table in tables {
        let (oid, relation) = (table.table.oid, &table.table.relation);
        if table.table.kind != RelationKind::Partitioned {
            let message = format!("--create-partitions: {relation} is not partitioned");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let reading = date_partitions::read(session, oid, relation);
        let ranges = context.connection.attend(session, reading).await?;
        if !table.fields.iter().flatten().any(|field| *field == ranges.column) {
            let message = format!(
                "--create-partitions: the file does not fill {}, which tells the partition of a row of {relation}",
                ranges.column
            );
            return Err(Error::new(ErrorKind::Usage, message));
        }
        if Router::reader(&table.format, None, &ranges.time_zone).is_none() {
            return Err(unread(&ranges.column));
        }
        table.notes.retain(|note| !note.starts_with(MADE));
        table.notes.push(format!("{MADE}, one a {unit} of {}", ranges.column));
        if !dated.iter().any(|(_, other, _)| other == relation) {
            dated.push((oid, relation.clone(), ranges));
        }
    }
    Ok(dated)
}

/// What the client cannot read, it can make no partitions for.
fn unread(column: &str) -> Error {
    let message = format!(
        "--create-partitions: only the server can read the values of {column} in this file, because of its encoding or of what \
         COPY is told about it"
    );
    Error::new(ErrorKind::Usage, message).with_hint(
        "leave out --format and --copy-options, so that howdah finds how the file is written and reads it itself, or make the \
         partitions by hand",
    )
}

/// The beginning of the note; an earlier run's plan has it already.
const MADE: &str = "partitions that are missing are made";
