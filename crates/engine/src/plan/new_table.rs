//! The table that is made for files that have none: its columns from the headers, their types from the
//! values.

use super::columns::{self, Columns};
use super::finding::Found;
use super::head::Head;
use super::nameless;
use super::whole::{Extent, Wholes};
use crate::Context;
use crate::widen::{Open, is_exact_number, is_fixed, is_inferred, same_type};
use howdah_model::{
    Column, Error, ErrorKind, Evolve, Job, Names, NewColumn, NewTable, Result, TableChange, TablePlan,
    counted,
};
use howdah_target::define;
use howdah_target::session::Session;
use howdah_transcode::dialect::Finding;
use howdah_transcode::infer::{self, ColumnState};
use std::collections::BTreeMap;

/// PostgreSQL's own limit (MaxHeapAttributeNumber).
const COLUMNS_MAX: usize = 1600;

/// A column as the files of the table show it.
#[derive(Default)]
struct Seen {
    state: ColumnState,
    /// Some file has no more values for it than were seen.
    incomplete: bool,
    /// It is empty in quotes somewhere.
    quoted_empty: bool,
}

/// The table for these files: the columns of the first, and those that later ones have on top.
pub(super) async fn shape(
    context: &Context,
    session: &Session,
    job: &Job,
    wholes: &Wholes<'_>,
    heads: &mut [Head],
) -> Result<NewTable> {
    let extent = if is_fixed(&job.arrival) { Extent::All } else { Extent::InTime };
    wholes.scan(heads.iter_mut(), extent).await?;
    let mut order: Vec<String> = Vec::new();
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for head in heads.iter_mut() {
        let Some(found) = &head.found else { continue };
        for (no, name) in names(job, &found.finding)?.into_iter().enumerate() {
            if is_edge(job, found, no) {
                continue;
            }
            let column = seen.entry(name.clone()).or_default();
            if let Some(state) = found.columns.states.get(no) {
                column.state.join(state);
            }
            column.incomplete |= !found.columns.complete;
            column.quoted_empty |= found.columns.quoted_empty.get(no).is_some_and(|quoted| *quoted);
            if !order.contains(&name) {
                order.push(name);
            }
        }
    }
    if order.is_empty() {
        return Err(no_record(heads));
    }
    if order.len() > COLUMNS_MAX {
        let message =
            format!("the files have {} fields, and a table at most {COLUMNS_MAX} columns", order.len());
        return Err(Error::new(ErrorKind::Columns, message).with_hint(
            "make a table for the fields that matter, and leave out the others with --ignore-extra",
        ));
    }
    check_primary_key(&order, &job.shaping.primary_key)?;
    let points_alone = has_points_alone(heads, &seen);
    let mut columns = Vec::new();
    for name in order {
        let column = seen.remove(&name).unwrap_or_default();
        let column = new_column(session, job, name, &column, points_alone);
        columns.push(context.connection.attend(session, column).await?);
    }
    take_empty(job, &columns, heads)?;
    Ok(NewTable { columns, primary_key: job.shaping.primary_key.clone() })
}

/// The first of the files says which table is meant, where `{table}` makes many.
fn no_record(heads: &[Head]) -> Error {
    let message = match heads.len() {
        0 | 1 => "no table can be made from a file without a record".to_owned(),
        files => format!("no table can be made from this file and {} more: none has a record", files - 1),
    };
    let error = Error::new(ErrorKind::Columns, message).with_hint(
        "give files that have a header at least, or leave the empty ones out of SOURCE; lines that look like comments are records \
         with --format csv",
    );
    match heads.first() {
        Some(first) => error.in_file(first.object().location()),
        None => error,
    }
}

/// Where an empty field in quotes is a value to its column, it is one of the values seen.
fn take_empty(job: &Job, columns: &[NewColumn], heads: &mut [Head]) -> Result<()> {
    for found in heads.iter_mut().filter_map(|head| head.found.as_mut()) {
        for (no, name) in names(job, &found.finding)?.into_iter().enumerate() {
            let is_null = columns.iter().any(|column| column.name == name && column.empty_is_null);
            if !is_null {
                found.columns.take_empty(no);
            }
        }
    }
    Ok(())
}

/// For each field of a file the column of the new table that it fills. A file without a record has none, and
/// may be said to fill all.
pub(super) fn columns(job: &Job, create: &NewTable, found: &Found) -> Result<Columns> {
    let finding = &found.finding;
    if finding.width == 0 {
        let all = create.columns.iter().map(|column| column.name.clone()).collect();
        return Ok(Columns::of_new(all, Vec::new()));
    }
    let fields = names(job, finding)?;
    let mut notes = Vec::new();
    for (was, is) in finding.names.iter().zip(&fields).filter(|(was, is)| was != is) {
        notes.push(format!("field {was:?} is column {is}"));
    }
    let mut columns = Columns::of_new(fields, notes);
    columns.leave_out(|no| is_edge(job, found, no));
    Ok(columns)
}

/// Field `no` is what stands outside the edges of a table drawn in characters (`| 1 | a |`): nothing.
fn is_edge(job: &Job, found: &Found, no: usize) -> bool {
    let (finding, hollow) = (&found.finding, nameless::hollow(found));
    let last = finding.width.saturating_sub(1);
    job.columns.is_none()
        && finding.dialect.delimiter == "|"
        && last > 1
        && [0, last].iter().all(|edge| hollow.contains(edge))
        && [0, last].contains(&no)
}

/// The columns whose types were chosen from a sample, with what the samples of all files hold.
pub(super) fn open(job: &Job, plans: &[TablePlan], placed: &[(u32, Head)]) -> Vec<Open> {
    let mut open: Vec<Open> = Vec::new();
    for (table_no, head) in placed {
        let Some(plan) = plans.get(*table_no as usize) else { continue };
        let Some(found) = &head.found else { continue };
        let seen = found.columns.states.iter().zip(&found.columns.among);
        for ((field, reading), (state, among)) in plan.fields.iter().zip(&plan.readings).zip(seen) {
            let column = plan.table.columns.iter().find(|column| Some(&column.name) == field.as_ref());
            let Some(column) = column.filter(|column| may_widen(job, plan, column)) else { continue };
            let is_made = made(plan).any(|made| made.name == column.name);
            // The values that come are not spelled as those of the sample.
            if reading.is_some() && is_made {
                continue;
            }
            // The server reads days in its order, and the text of those would be in another.
            if infer::is_order_open(state, among, &column.type_name) {
                continue;
            }
            let same = |known: &&mut Open| known.relation == *plan.copied_into() && known.name == column.name;
            match open.iter_mut().find(same) {
                Some(known) => {
                    known.state.join(state);
                    known.read |= reading.is_some();
                }
                None => open.push(Open {
                    relation: plan.copied_into().clone(),
                    name: column.name.clone(),
                    type_name: column.type_name.clone(),
                    state: state.clone(),
                    made: is_made,
                    read: reading.is_some(),
                }),
            }
        }
    }
    for column in &mut open {
        let chosen = column.state.finish(false).type_name;
        // An earlier run of the job has widened integers and decimals for values that the sample does not
        // know, and their text is still theirs. Any other type somebody else has given it.
        column.made &= same_type(&column.type_name, &chosen)
            || is_exact_number(&column.type_name) && is_exact_number(&chosen);
        // What of the sample is stored when, nobody knows.
        if !column.made {
            column.state = ColumnState::default();
        }
    }
    open
}

/// Some column of the table can still be given a wider type.
pub(super) fn has_open(job: &Job, plan: &TablePlan) -> bool {
    plan.table.columns.iter().any(|column| may_widen(job, plan, column))
}

/// Columns made from a sample, by this job, and with `--evolve widen` all whose type is known here.
pub(super) fn may_widen(job: &Job, plan: &TablePlan, column: &Column) -> bool {
    if let Some(made) = made(plan).find(|made| made.name == column.name) {
        return made.may_widen;
    }
    let evolves = job.shaping.evolve == Evolve::Widen && plan.create.is_none();
    evolves && is_inferred(&column.type_name) && column.type_name != "text"
}

/// Columns that this job makes, in a new table or in one that is there.
fn made(plan: &TablePlan) -> impl Iterator<Item = &NewColumn> {
    let added = plan.changes.iter().filter_map(|change| match change {
        TableChange::Add(column) => Some(column),
        TableChange::Widen(_) => None,
    });
    plan.create.iter().flat_map(|create| &create.columns).chain(added)
}

/// The names of the columns, one for each field.
fn names(job: &Job, finding: &Finding) -> Result<Vec<String>> {
    if let Some(columns) = &job.columns {
        if columns.len() == finding.width {
            return Ok(columns.clone());
        }
        let (given, width) = (columns.len(), finding.width);
        return Err(Error::new(
            ErrorKind::Columns,
            format!(
                "--columns names {}, and the file's records have {}",
                counted(given, "column"),
                counted(width, "field")
            ),
        ));
    }
    if finding.cuts_decimals {
        return Err(columns::lacks_names(true));
    }
    let mut names = finding.names.clone();
    names.resize(finding.width, String::new());
    let unused: Vec<&str> =
        job.map.keys().filter(|field| !names.contains(field)).map(String::as_str).collect();
    if !unused.is_empty() {
        return Err(Error::new(
            ErrorKind::Columns,
            format!("--map names fields that the header does not have: {}", unused.join(", ")),
        ));
    }
    Ok(made_names(job, &names))
}

/// The names that a new table's columns get from those in a header.
pub(super) fn made_names(job: &Job, header: &[String]) -> Vec<String> {
    let mapped: Vec<String> = header.iter().map(|name| job.map.get(name).unwrap_or(name).clone()).collect();
    match job.shaping.names {
        Names::Snake => infer::snake(&mapped),
        Names::Keep => infer::keep(&mapped),
    }
}

/// The column as `--types` has it, if it says anything of it.
///
/// # Errors
/// Usage, when that is no type; those of the session.
pub(super) async fn told_column(session: &Session, job: &Job, name: &str) -> Result<Option<NewColumn>> {
    let Some(written) = columns::told(job, name) else { return Ok(None) };
    let (type_name, _) = infer::parse_type(written)?;
    let type_name = define::type_name(session, &type_name).await?;
    let (name, evidence) = (name.to_owned(), "--types".to_owned());
    Ok(Some(NewColumn { name, type_name, evidence, may_widen: false, empty_is_null: false }))
}

/// A comma is between fields, and a point is the decimal sign of some column: `"1,7"` in another is more
/// likely a list.
fn has_points_alone(heads: &[Head], seen: &BTreeMap<String, Seen>) -> bool {
    let mut dialects =
        heads.iter().filter_map(|head| head.found.as_ref()).map(|found| &found.finding.dialect);
    dialects.all(|dialect| dialect.delimiter == ",") && seen.values().any(|column| column.state.has_points())
}

async fn new_column(
    session: &Session,
    job: &Job,
    name: String,
    seen: &Seen,
    points_alone: bool,
) -> Result<NewColumn> {
    if let Some(told) = told_column(session, job, &name).await? {
        let empty_is_null = seen.quoted_empty && has_no_empty_value(&told.type_name);
        return Ok(NewColumn { empty_is_null, ..told });
    }
    let mut state = seen.state.clone();
    // What may become text later must be able to hold the empty text.
    if seen.quoted_empty && seen.incomplete {
        state.observe(b"");
    }
    if points_alone && state.may_be_lists() {
        let evidence =
            "numbers with a comma, which may be lists: other columns have a point before fractions";
        return Ok(NewColumn {
            name,
            type_name: "text".to_owned(),
            evidence: evidence.to_owned(),
            may_widen: false,
            empty_is_null: false,
        });
    }
    let inferred = state.finish(!seen.incomplete);
    Ok(NewColumn {
        name,
        may_widen: seen.incomplete && inferred.type_name != "text",
        empty_is_null: seen.quoted_empty && has_no_empty_value(&inferred.type_name),
        type_name: inferred.type_name,
        evidence: inferred.evidence,
    })
}

/// The server refuses the empty text for every type that is inferred, but for text.
fn has_no_empty_value(type_name: &str) -> bool {
    is_inferred(type_name) && type_name != "text"
}

fn check_primary_key(columns: &[String], key: &[String]) -> Result<()> {
    let unknown: Vec<&str> = key.iter().filter(|name| !columns.contains(name)).map(String::as_str).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Columns,
        format!(
            "--primary-key names columns that the table will not have: {} (its columns are {})",
            unknown.join(", "),
            columns.join(", ")
        ),
    ))
}
