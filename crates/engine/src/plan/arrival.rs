//! How rows come into their tables where that is not chunk by chunk: which staging table they wait in,
//! whether the key will do, and what the plan says about it.

use super::ledger_of;
use super::tables::Shape;
use crate::Context;
use crate::arrival::leave_out;
use howdah_model::arrival::{PLACED_FILES_MAX, PlaceColumn};
use howdah_model::plan::{FilePlan, TablePlan};
use howdah_model::{
    Arrival, Error, ErrorKind, Job, Keep, LedgerChoice, Mode, OnError, Relation, RelationKind, Result,
    StagingPlan, counted,
};
use howdah_target::arrival::table::Into;
use howdah_target::rewrite::Event;
use howdah_target::session::{Session, elsewhere};
use howdah_target::{publications, replace, rewrite, staging, truncate};
use std::collections::{HashMap, HashSet};

/// The name of the column that places are kept in, where no column of the table has it.
const PLACE: &str = "place";

/// The staging table of the group of files of this number, where the job's rows wait in one.
///
/// # Errors
/// Usage, where such a load is not for this table.
pub(super) fn staging(
    job: &Job,
    job_id: &str,
    table_no: usize,
    shape: &Shape,
) -> Result<Option<StagingPlan>> {
    let LedgerChoice::Schema(schema) = &job.ledger else { return Ok(None) };
    if !job.arrival.is_staged() {
        return Ok(None);
    }
    let relation = &shape.table.relation;
    let what = match (shape.create.is_some(), shape.table.kind) {
        (true, _) => Some(("does not exist", "make the table first")),
        (_, RelationKind::Table | RelationKind::Partitioned) => None,
        (_, RelationKind::Foreign) => {
            Some(("is a foreign table", "load into the table itself, on the server that has it (--to)"))
        }
        (_, RelationKind::View) => Some(("is a view", "name the table behind it")),
    };
    if let Some((what, instead)) = what.filter(|_| !job.arrival.check) {
        let message = format!("{relation} {what}, and its rows are to wait in a staging table");
        return Err(Error::new(ErrorKind::Table, message)
            .with_hint(format!("{instead}, or leave out {}", asked_for(&job.arrival))));
    }
    let mut name = PLACE.to_owned();
    while shape.table.columns.iter().any(|column| column.name == name) {
        name.push('_');
    }
    let is_asked = job.bad_records.on_error == OnError::Skip;
    let relation = match job.arrival.mode {
        _ if job.arrival.check => staging::name_of_check(schema, job_id, table_no),
        // A new table must have no column for places, which the old one has not.
        Mode::Replace if !is_asked => staging::beside(relation, job_id, table_no),
        _ => staging::name(schema, job_id, table_no),
    };
    let sequence = staging::sequence(&relation);
    let place =
        (job.arrival.has_key() || job.arrival.check || is_asked).then_some(PlaceColumn { name, sequence });
    Ok(Some(StagingPlan { relation, place }))
}

/// The options by which rows wait in staging tables.
fn asked_for(arrival: &Arrival) -> &'static str {
    match (arrival.mode, arrival.atomic) {
        (Mode::Append, _) => "--atomic",
        (_, false) => "--mode",
        (_, true) => "--mode and --atomic",
    }
}

/// Numbers the files in the order in which the sources were given; tables of one file in theirs.
///
/// # Errors
/// Usage, where records are to be kept in that order and there are too many files for that.
pub(super) fn number_inputs(files: &mut [FilePlan], order: &[String], tables: &[TablePlan]) -> Result<()> {
    let placed = |table: &TablePlan| table.staging.as_ref().is_some_and(|staging| staging.place.is_some());
    if tables.iter().any(placed) {
        expect_room(files.len())?;
    }
    let begin = |file: &FilePlan| (file.location.clone(), file.data_start_byte);
    let begin: Vec<_> = files.iter().map(begin).collect();
    for (input_no, no) in (0..).zip(in_given_order(&begin, order)) {
        files[no].input_no = input_no;
    }
    Ok(())
}

/// Of a line that is only guessed to be no record nobody knows whether the row that it would speak for is to
/// stay.
///
/// # Errors
/// Record, for the first file with such lines, where rows are deleted that no record speaks for.
pub(super) fn expect_all_records(job: &Job, files: &[FilePlan]) -> Result<()> {
    let is_asked = job.arrival.delete_missing && !job.force;
    let doubted = files.iter().find(|file| file.record_like > 0).filter(|_| is_asked);
    let Some(file) = doubted else { return Ok(()) };
    let lines = counted(file.record_like, "line");
    let message = format!(
        "{lines} before or behind the table that could be records are taken for titles, totals, notes or blank lines, and \
         --delete-missing would delete what they speak for"
    );
    Err(Error::new(ErrorKind::Record, message).in_file(&file.location).with_hint(
        "--format csv or text takes every line for a record; if they are none, take them out of the file, or give \
         --force",
    ))
}

/// Places of records behind these would be those of other records.
fn expect_room(files: usize) -> Result<()> {
    if files <= PLACED_FILES_MAX {
        return Ok(());
    }
    let message = format!(
        "{files} files, and {PLACED_FILES_MAX} at most have places by which records that wait in staging tables are told apart"
    );
    Err(Error::new(ErrorKind::Usage, message).with_hint("load them by several jobs, one after the other"))
}

/// The numbers of these locations, each with a byte that its rows begin at, in the order of the sources.
/// There may be a hundred thousand of them.
fn in_given_order(begin: &[(String, u64)], order: &[String]) -> Vec<usize> {
    let mut given: HashMap<&str, usize> = HashMap::new();
    for (no, location) in order.iter().enumerate() {
        given.entry(location).or_insert(no);
    }
    let mut by_order: Vec<usize> = (0..begin.len()).collect();
    by_order.sort_by_key(|no| {
        let (location, byte) = &begin[*no];
        (given.get(location.as_str()), *byte)
    });
    by_order
}

/// The server's own bound (`MaxHeapAttributeNumber`).
const COLUMNS_MAX: usize = 1600;

fn expect_room_for_places(job: &Job, table: &TablePlan) -> Result<()> {
    let filled: HashSet<&String> = table.fields.iter().flatten().collect();
    if filled.len() < COLUMNS_MAX || table.staging.as_ref().is_none_or(|staging| staging.place.is_none()) {
        return Ok(());
    }
    let message = format!(
        "the files fill {} columns of {}: a staging table, where the rows are to wait, has one more, for their places in the files, \
         than a table can have",
        filled.len(),
        table.table.relation
    );
    let instead = match &job.arrival {
        arrival if arrival.check => {
            "howdah load itself needs none, and with --atomic stores all records or none"
        }
        arrival if arrival.has_key() => {
            "load into another table, without --mode, and bring the rows into this one by a statement of your own"
        }
        _ => "leave out --on-error skip",
    };
    Err(Error::new(ErrorKind::Table, message).with_hint(instead))
}

/// Looks whether the keys will do, and says in the plan how rows come in. Asked anew by every run.
///
/// # Errors
/// Table and Columns, where a key will not do; those of the session.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &mut [TablePlan],
) -> Result<()> {
    for table in tables {
        table.notes.retain(|note| !note.starts_with(WAIT) && !note.starts_with(EMPTIED));
        expect_room_for_places(job, table)?;
        if job.arrival.check {
            table.notes.push(CHECKED.to_owned());
            continue;
        }
        if job.arrival.mode == Mode::Truncate {
            let relation = &table.table.relation;
            if table.table.kind == RelationKind::View {
                let message = format!("{relation} is a view, which --mode truncate cannot empty");
                return Err(Error::new(ErrorKind::Table, message)
                    .with_hint("name the table behind it, or leave out --mode"));
            }
            context.connection.attend(session, truncate::check(session, relation)).await?;
            let seen = if job.arrival.freeze {
                "in the transaction that its rows come in"
            } else {
                "until the load ends, others see it empty or partly filled"
            };
            table.notes.push(format!("{EMPTIED} (TRUNCATE, once for the job): {seen}"));
        }
        let Some(staging) = table.staging.clone() else { continue };
        if job.arrival.mode == Mode::Replace {
            let relation = &table.table.relation;
            context.connection.attend(session, replace::check(session, relation)).await?;
            if let Some(ledger) = ledger_of(job) {
                let expecting = replace::expect_unchanged(session, &ledger, relation);
                context.connection.attend(session, expecting).await?;
            }
        }
        if matches!(job.arrival.mode, Mode::Merge | Mode::Replace) {
            expect_own_rows(context, session, &table.table.relation).await?;
        }
        let events = events(&job.arrival);
        let ruling = rewrite::expect_no_rules(session, &table.table.relation, &events);
        context.connection.attend(session, ruling).await?;
        let reading = Into::read(session, table, &staging, &job.arrival.key);
        let into = context.connection.attend(session, reading).await?;
        if let Some(column) = into.fixed_column().filter(|_| job.arrival.mode == Mode::Merge) {
            let message = format!(
                "column {column} of {} is GENERATED ALWAYS AS IDENTITY: no UPDATE may set it",
                into.relation
            );
            return Err(Error::new(ErrorKind::Columns, message)
                .with_hint("leave it out of the files, or give --mode insert-new"));
        }
        expect_identified(context, session, job, &into).await?;
        let mut note = describe(job, &staging);
        if job.arrival.delete_missing {
            let asking = truncate::follows_delete(session, &table.table.relation);
            if let Some(follows) = context.connection.attend(session, asking).await? {
                note += &format!("; by their foreign keys --delete-missing {follows}");
            }
        }
        if leave_out::is_for(job) {
            note += "; records that the table would refuse are left out before";
        }
        table.notes.push(note);
    }
    Ok(())
}

/// What changes, deletes or replaces rows does so in the table ONLY.
async fn expect_own_rows(context: &Context, session: &Session, relation: &Relation) -> Result<()> {
    let asking = elsewhere::why_elsewhere(session, relation);
    let Some(why) = context.connection.attend(session, asking).await? else { return Ok(()) };
    let message = format!(
        "rows of {relation} may lie in other tables, which --mode merge and replace leave alone: {why}"
    );
    Err(Error::new(ErrorKind::Table, message)
        .with_hint("give --mode insert-new, or append; or name the table that the rows lie in"))
}

/// What merge does to rows that are there, has to be told to subscribers.
async fn expect_identified(context: &Context, session: &Session, job: &Job, into: &Into) -> Result<()> {
    let changed = into.changed_column().filter(|_| job.arrival.mode == Mode::Merge);
    let deletes = job.arrival.delete_missing;
    if changed.is_none() && !deletes {
        return Ok(());
    }
    let lock_timeout_ms = job.arrival.lock_timeout_ms;
    let asking = publications::expect_identified(session, &into.relation, changed, deletes, lock_timeout_ms);
    context.connection.attend(session, asking).await
}

/// The statements by which rows come in from staging tables. A new table has no rules.
pub(crate) fn events(arrival: &Arrival) -> Vec<Event> {
    let own: &[Event] = match arrival.mode {
        Mode::Replace => &[],
        Mode::Append | Mode::Truncate => &[Event::Insert],
        // PostgreSQL takes no ON CONFLICT where there is a rule on UPDATE.
        Mode::Merge | Mode::InsertNew => &[Event::Insert, Event::Update],
    };
    let delete = arrival.delete_missing.then_some(Event::Delete);
    own.iter().copied().chain(delete).collect()
}

/// What is said of a table that no row comes into.
const CHECKED: &str =
    "rows are looked at in a staging table, which is dropped; none of them comes into the table";

/// The beginning of the note; an earlier run's plan has it already.
const WAIT: &str = "rows wait in the staging table";

/// The beginning of another one.
const EMPTIED: &str = "the table is emptied when the load begins";

fn describe(job: &Job, staging: &StagingPlan) -> String {
    let arrival = &job.arrival;
    let key = arrival.key.join(", ");
    let how = match arrival.mode {
        Mode::Merge => format!(
            "those whose key ({key}) is there change what differs in the row of that key, the others come on top"
        ),
        Mode::InsertNew => format!("those whose key ({key}) is not there come on top"),
        Mode::Replace if staging::is_new_table(staging) => {
            "this table takes the place of the old one, with all that hangs on that".to_owned()
        }
        Mode::Replace => {
            "a new table gets them and takes the place of the old one, with all that hangs on that".to_owned()
        }
        Mode::Append | Mode::Truncate => "all of them come on top".to_owned(),
    };
    let deleted = if arrival.delete_missing { "; rows whose key no record has are deleted" } else { "" };
    let kept = match arrival.keep {
        _ if !arrival.has_key() => "",
        Keep::Error => "; several records of one key are an error",
        Keep::First => "; of several records of one key the first counts",
        Keep::Last => "; of several records of one key the last counts",
    };
    let when = if arrival.mode == Mode::Replace {
        "in one transaction; triggers do not fire for its rows"
    } else if arrival.atomic {
        "in one transaction, so that others see all of it at once"
    } else {
        "part by part, each in a transaction, so that others may see some of it before the rest"
    };
    format!("{WAIT} {} until all are there; then {how}{deleted}{kept}; {when}", staging.relation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who compares each with each is at it for minutes.
    #[test]
    fn very_many_files_are_numbered_in_the_order_of_their_sources() {
        let order: Vec<String> = (0..100_000).map(|no| format!("/data/{no}.csv")).collect();
        let mut begin: Vec<(String, u64)> =
            order.iter().rev().map(|location| (location.clone(), 0)).collect();
        begin.push((order[0].clone(), 70));
        let numbers = in_given_order(&begin, &order);
        assert_eq!((numbers[0], numbers[1], numbers[2]), (99_999, 100_000, 99_998));
        assert_eq!((numbers.len(), numbers[100_000]), (100_001, 0));
    }

    #[test]
    fn more_files_than_have_places_are_refused() {
        assert!(expect_room(PLACED_FILES_MAX).is_ok());
        let refused = expect_room(PLACED_FILES_MAX + 1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(refused.message().starts_with("524289 files, and 524288 at most"), "{refused}");
    }
}
