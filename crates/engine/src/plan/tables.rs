//! The table each file goes to, as it is or as it is going to be made, and how COPY is told of the file.

use super::columns::Columns;
use super::evolve;
use super::field_targets;
use super::finding::Found;
use super::head::{Head, Written};
use super::new_table;
use crate::Context;
use howdah_model::plan::{Care, Encode, TablePlan};
use howdah_model::{
    Error, Format, Job, NewTable, Reading, Relation, RelationKind, Result, Table, TableChange,
};
use howdah_target::copy;
use howdah_target::session::{Session, catalog};
use howdah_transcode::encode::Rewriter;
use howdah_transcode::infer;
use std::collections::BTreeMap;

/// A table as it will be when the data comes.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) table: Table,
    pub(super) create: Option<NewTable>,
    pub(super) changes: Vec<TableChange>,
}

/// Plans for the tables of all files, and for each file the number of its plan. Files of one table that are
/// written alike share a plan.
pub(super) async fn plan_all(
    context: &Context,
    session: &Session,
    job: &Job,
    heads: Vec<Head>,
) -> Result<(Vec<TablePlan>, Vec<(u32, Head)>)> {
    let mut by_table: BTreeMap<String, Vec<Head>> = BTreeMap::new();
    for head in heads {
        by_table.entry(head.table.clone()).or_default().push(head);
    }
    let mut plans: Vec<TablePlan> = Vec::new();
    let mut placed = Vec::new();
    for (written, mut heads) in by_table {
        let shape = shape_of(context, session, job, &written, &mut heads).await?;
        for head in heads {
            let in_file = |error: Error| error.in_file(head.object().location());
            let plan = table_plan(session, job, &shape, &head).map_err(in_file)?;
            let known = plans.iter().position(|known| *known == plan);
            let no = known.unwrap_or_else(|| {
                plans.push(plan);
                plans.len() - 1
            });
            placed.push((u32::try_from(no).unwrap_or(u32::MAX), head));
        }
    }
    Ok((plans, placed))
}

/// Tables that an earlier run of the job made are still the job's own.
pub(super) fn remember_made(plans: &mut [TablePlan], made: Vec<(Relation, NewTable)>) {
    for (relation, table) in made {
        for plan in plans.iter_mut().filter(|plan| plan.table.relation == relation) {
            plan.create.get_or_insert_with(|| table.clone());
        }
    }
}

/// What the catalog says of the table, or what it is to be.
async fn shape_of(
    context: &Context,
    session: &Session,
    job: &Job,
    written: &str,
    heads: &mut [Head],
) -> Result<Shape> {
    let connection = &context.connection;
    let creates = job.shaping.create.unwrap_or_else(|| connection.is_embedded());
    if !creates || job.shaping.told.is_none() {
        let table = connection.attend(session, catalog::read_table(session, written)).await?;
        return Ok(evolve::shape(job, table, heads));
    }
    if let Some(table) = connection.attend(session, catalog::find_table(session, written)).await? {
        return Ok(evolve::shape(job, table, heads));
    }
    let relation = connection.attend(session, catalog::new_relation(session, written)).await?;
    let create = new_table::shape(context, session, job, heads).await?;
    let table = as_if_made(relation, &create);
    Ok(Shape { table, create: Some(create), changes: Vec::new() })
}

fn as_if_made(relation: Relation, create: &NewTable) -> Table {
    let column = |column: &howdah_model::NewColumn| howdah_model::Column {
        name: column.name.clone(),
        type_name: column.type_name.clone(),
        type_oid: 0,
        not_null: create.primary_key.contains(&column.name),
        has_default: false,
        generated: false,
        identity: false,
    };
    let columns = create.columns.iter().map(column).collect();
    Table { relation, oid: 0, kind: RelationKind::Table, columns }
}

fn table_plan(session: &Session, job: &Job, shape: &Shape, head: &Head) -> Result<TablePlan> {
    let Columns { fields, mut notes, .. } = match (&shape.create, &head.found) {
        (Some(_), Some(found)) => new_table::columns(job, &found.finding)?,
        _ => Columns::of(job, &shape.table, head)?,
    };
    let readings = readings(job, shape, head.found.as_ref(), &fields)?;
    let written = &head.written;
    let care = care(written, &readings, job.shaping.lenient);
    let stored: Vec<String> = fields.iter().flatten().cloned().collect();
    let (format, recode) = match (care, &head.found) {
        // The client writes COPY text, whatever the file is like.
        (Care::Rewritten, Some(found)) => {
            let name = &found.finding.encoding.name;
            let utf8 = Format { encoding: Some("UTF8".to_owned()), ..Format::text() };
            (utf8, (name != "UTF8").then(|| name.clone()))
        }
        _ => (written.format.clone(), written.recode.clone()),
    };
    let leaves_out = care != Care::Rewritten && fields.iter().any(Option::is_none);
    let (encode, sent) = if leaves_out {
        notes.push("records are rewritten to COPY text, because fields are left out".to_owned());
        (Encode::CopyText, Format { encoding: format.encoding.clone(), ..Format::text() })
    } else {
        (Encode::PassThrough, format.clone())
    };
    notes.push(how_bytes_go(care, recode.as_deref(), leaves_out));
    let copy_sql = copy::statement(&shape.table.relation, &stored, &sent, session.server_version())?;
    let plan = TablePlan {
        table: shape.table.clone(),
        create: shape.create.clone(),
        changes: shape.changes.clone(),
        fields,
        readings,
        dialect: written.dialect.clone(),
        care,
        format,
        recode,
        encode,
        copy_sql,
        notes,
    };
    if leaves_out {
        // What cannot be rewritten is said now, not in the middle of the load.
        Rewriter::new(&plan.format, &field_targets(&plan, &plan.format))?;
    }
    Ok(plan)
}

/// How the values of each field are spelled, where the server would not read them alike: as told behind the colon
/// of `--types column=type:spelling`, else as the data proves.
fn readings(
    job: &Job,
    shape: &Shape,
    found: Option<&Found>,
    fields: &[Option<String>],
) -> Result<Vec<Option<Reading>>> {
    let Some(found) = found else { return Ok(vec![None; fields.len()]) };
    let mut readings = Vec::new();
    for (no, field) in fields.iter().enumerate() {
        let column = shape.table.columns.iter().find(|column| Some(&column.name) == field.as_ref());
        let told = column.and_then(|column| job.shaping.types.get(&column.name));
        let told = told.map(|written| infer::parse_type(written)).transpose()?;
        let told = told.and_then(|(_, reading)| reading);
        readings.push(told.or_else(|| found.columns.reading(no, &column?.type_name)));
    }
    Ok(readings)
}

/// The client writes records anew where COPY has no words for how they are written. Mending needs to tell
/// characters apart, so with `--lenient` it does so for what is not UTF-8, too.
fn care(written: &Written, readings: &[Option<Reading>], lenient: bool) -> Care {
    let Some(dialect) = &written.dialect else { return Care::Server };
    let foreign = written.format.encoding.as_deref() != Some("UTF8");
    let reads = readings.iter().any(Option::is_some);
    if reads || dialect.to_format().is_none() || (lenient && foreign) {
        Care::Rewritten
    } else {
        Care::Watched
    }
}

fn how_bytes_go(care: Care, recode: Option<&str>, leaves_out: bool) -> String {
    match (care, recode) {
        (Care::Rewritten, _) => {
            "records are read one by one and rewritten to COPY text on the way".to_owned()
        }
        (_, Some(encoding)) => {
            format!("the server cannot read {encoding}: the bytes are rewritten as UTF8 on the way")
        }
        (_, None) if leaves_out => "the kept fields are as COPY reads them".to_owned(),
        (_, None) => "COPY takes the bytes as they are: they go untouched".to_owned(),
    }
}
