//! The table each file goes to, as it is or as it is going to be made, and how COPY is told of the file.

use super::arrival;
use super::by_width;
use super::columns::{self, Columns};
use super::doubtful_headers::expect_known_names;
use super::doubtful_text;
use super::evolve;
use super::field_targets;
use super::head::{Head, Heads, Written};
use super::ledger_of;
use super::left_out;
use super::locale;
use super::nameless;
use super::new_table;
use super::one_spelling;
use super::orders::{self, Asked};
use super::waiting;
use super::whole::{Extent, Wholes};
use crate::Context;
use crate::attend::each;
use crate::widen::is_fixed;
use howdah_model::job::LEDGER_DEFAULT;
use howdah_model::plan::{Care, Encode, TablePlan};
use howdah_model::{
    ColumnChoice, Error, ErrorKind, Evolve, Format, Job, NewTable, OnError, Reading, Relation, RelationKind,
    Result, StagingPlan, Table, TableChange, sqlstate,
};
use howdah_target::copy;
use howdah_target::session::{Session, catalog, encoding};
use howdah_target::sql::quote_relation;
use howdah_transcode::encode::{self, Rewriter, Unquoter};
use howdah_transcode::infer::{self, Among, ColumnState};
use howdah_transcode::split::Rules;
use std::collections::{BTreeMap, BTreeSet};

/// The note of records that nobody rewrites.
pub(super) const UNTOUCHED: &str = "COPY takes the bytes as they are: they go untouched";

/// A table as it will be when the data comes.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) table: Table,
    pub(super) create: Option<NewTable>,
    pub(super) changes: Vec<TableChange>,
    /// Where rows wait, where they do not come into the table as they are read.
    pub(super) staging: Option<StagingPlan>,
}

/// The files of one table, by whatever name they mean it.
#[derive(Default)]
struct Group {
    /// As the catalog tells it; `None` if it is to be made.
    table: Option<Table>,
    heads: Vec<Head>,
}

/// Names of columns that are to be made are asked for before anything is.
async fn expect_names_held(context: &Context, session: &Session, shape: &Shape) -> Result<()> {
    let added = shape.changes.iter().filter_map(|change| match change {
        TableChange::Add(column) => Some(column),
        TableChange::Widen(_) => None,
    });
    let made = shape.create.iter().flat_map(|create| &create.columns).chain(added);
    let names: Vec<&str> = made.map(|column| column.name.as_str()).collect();
    let asking = encoding::not_held(session, &names);
    let Some((name, encoding)) = context.connection.attend(session, asking).await? else { return Ok(()) };
    let message = format!(
        "no column can be named \"{name}\": the encoding of the database, {encoding}, lacks a character of that"
    );
    Err(Error::new(ErrorKind::Columns, message).with_sqlstate(sqlstate::UNTRANSLATABLE_CHARACTER).with_hint(
        "rename it in the file's header, or load into a database of UTF8; --ledger none, which loads without resume, takes other names by \
         --columns or --map",
    ))
}

/// Plans for the tables of all files, and for each file the number of its plan. Files of one table that are
/// written alike share a plan.
pub(super) async fn plan_all(
    of_heads: &Heads<'_>,
    job: &Job,
    job_id: &str,
    heads: Vec<Head>,
) -> Result<(Vec<TablePlan>, Vec<(u32, Head)>)> {
    let (context, session) = (of_heads.context, of_heads.session);
    let mut plans: Vec<TablePlan> = Vec::new();
    let mut placed = Vec::new();
    let wholes = Wholes::new(context, job);
    let groups = groups(context, session, job, heads).await?;
    for (group_no, (relation, Group { table, mut heads })) in groups.into_iter().enumerate() {
        expect_known_names(job, table.as_ref(), &heads)?;
        let mut shape = match table {
            Some(table) => {
                if job.shaping.evolve != Evolve::None && is_fixed(&job.arrival) {
                    // What is seen now need not end the load later.
                    wholes.scan(heads.iter_mut(), Extent::All).await?;
                }
                nameless::prove_hollow(job, &table, &wholes, &mut heads).await?;
                by_width::look_again(of_heads, job, &table, &mut heads).await?;
                // To a table that is there an empty field in quotes is what it is to COPY.
                for found in heads.iter_mut().filter_map(|head| head.found.as_mut()) {
                    (0..found.finding.width).for_each(|no| found.columns.take_empty(no));
                }
                evolve::shape(context, session, job, table, &heads).await?
            }
            None => {
                let create = new_table::shape(context, session, job, &wholes, &mut heads).await?;
                let table = as_if_made(relation, &create);
                Shape { table, create: Some(create), changes: Vec::new(), staging: None }
            }
        };
        expect_names_held(context, session, &shape).await?;
        shape.staging = arrival::staging(job, job_id, group_no, &shape)?;
        let chosen = heads.iter().map(|head| columns(job, &shape, head)).collect::<Result<Vec<Columns>>>();
        let mut chosen = match chosen {
            Ok(chosen) => chosen,
            Err(error) => return Err(with_maker(context, session, job, &shape, error).await),
        };
        orders::prove(&Asked { context, session, job }, &shape.table, &wholes, &mut chosen, &mut heads)
            .await?;
        expect_one_order(&chosen, &heads)?;
        let mut readings = readings(job, &shape.table, &chosen, &heads)?;
        locale::expect_one(job, &shape.table, &readings, &chosen, &heads)?;
        locale::tell_open_points(&shape.table, &readings, &mut chosen, &heads);
        left_out::tell(job, &shape.table, &mut chosen, &heads);
        doubtful_text::tell(job, &shape, &mut chosen, &heads);
        leave_money_to_comma(context, session, job, &shape.table, &mut readings).await?;
        for (columns, head) in chosen.into_iter().zip(heads) {
            let plan = table_plan(session, job, &shape, &head, columns, &readings)
                .map_err(|error| error.in_file(head.object().location()))?;
            let known = plans.iter().position(|known| *known == plan);
            if known.is_none() {
                let expecting = one_spelling::expect(session, &plan);
                let expected = context.connection.attend(session, expecting).await;
                expected.map_err(|error| error.in_file(head.object().location()))?;
            }
            let no = known.unwrap_or_else(|| {
                plans.push(plan);
                plans.len() - 1
            });
            placed.push((u32::try_from(no).unwrap_or(u32::MAX), head));
        }
    }
    let filled =
        |name: &String| plans.iter().any(|plan| plan.fields.iter().flatten().any(|field| field == name));
    let unused: Vec<&str> =
        job.shaping.types.keys().filter(|name| *name != "*" && !filled(name)).map(String::as_str).collect();
    if !unused.is_empty() {
        let message = format!("--types names columns that no field fills: {}", unused.join(", "));
        return Err(Error::new(ErrorKind::Columns, message));
    }
    Ok((plans, placed))
}

/// The files by the table that they go to.
async fn groups(
    context: &Context,
    session: &Session,
    job: &Job,
    heads: Vec<Head>,
) -> Result<BTreeMap<Relation, Group>> {
    let mut seen = BTreeSet::new();
    let written = heads.iter().map(|head| &head.table).filter(|written| seen.insert(*written));
    let written: Vec<String> = written.cloned().collect();
    let creates = job.shaping.told.is_some() && creates(context, job);
    let mut new = BTreeMap::new();
    if creates {
        // Asked for one by one, a thousand that are to be made took a second to be told that they are not
        // there.
        new = context.connection.attend(session, catalog::new_relations(session, &written)).await?;
    }
    let resolving: Vec<_> = written
        .iter()
        .map(|written| {
            let known = new.get(written).cloned();
            async move {
                match known {
                    Some(relation) => Ok((in_own_schema(relation).map_err(Unfit::Error)?, None)),
                    None => resolve(context, session, job, written).await,
                }
            }
        })
        .collect();
    let resolving = async {
        match each(resolving).await {
            Err(Unfit::Error(error)) => Err(error),
            resolved => Ok(resolved),
        }
    };
    let resolved = match context.connection.attend(session, resolving).await? {
        Ok(resolved) => resolved,
        // What there is to say of it is asked of the first alone.
        Err(unfit) => return Err(why_unfit(context, session, job, unfit).await),
    };
    if creates {
        tell_waiting(context, session, job, &written, &resolved).await;
    }
    let mut relations: BTreeMap<String, Relation> = BTreeMap::new();
    let mut groups: BTreeMap<Relation, Group> = BTreeMap::new();
    for (written, (relation, table)) in written.into_iter().zip(resolved) {
        groups.entry(relation.clone()).or_default().table = table;
        relations.insert(written, relation);
    }
    for head in heads {
        let relation = relations[&head.table].clone();
        groups.entry(relation).or_default().heads.push(head);
    }
    Ok(groups)
}

fn creates(context: &Context, job: &Job) -> bool {
    job.shaping.create.unwrap_or_else(|| context.connection.is_embedded())
}

/// Warns of tables that are to be made though rows of other jobs wait for them.
async fn tell_waiting(
    context: &Context,
    session: &Session,
    job: &Job,
    written: &[String],
    resolved: &[(Relation, Option<Table>)],
) {
    let new = written.iter().zip(resolved).filter(|(_, (_, table))| table.is_none());
    let new: Vec<(&String, String)> =
        new.map(|(written, (relation, _))| (written, relation.to_string())).collect();
    let relations: Vec<String> = new.iter().map(|(_, relation)| relation.clone()).collect();
    let told = waiting::told(context, session, job, &relations).await;
    for (written, told) in new.iter().filter_map(|(written, relation)| Some((written, told.get(relation)?))) {
        context.warn(format!("{written} is to be made: {told}"));
    }
}

/// Why no file can go to a table.
enum Unfit {
    /// There is none of this name.
    Missing(String),
    /// The name, or the relation, is none to load, for this reason.
    Relation(String, Error),
    /// Any other.
    Error(Error),
}

/// What the catalog says of the table; none if it is to be made.
async fn resolve(
    context: &Context,
    session: &Session,
    job: &Job,
    written: &str,
) -> std::result::Result<(Relation, Option<Table>), Unfit> {
    let is_made = creates(context, job) && job.shaping.told.is_some();
    let table = match catalog::find_table(session, written).await {
        Ok(None) if !is_made => return Err(Unfit::Missing(written.to_owned())),
        Err(error) if error.kind() == ErrorKind::Table && !is_made => {
            return Err(Unfit::Relation(written.to_owned(), error));
        }
        found => found.map_err(Unfit::Error)?,
    };
    let relation = match &table {
        Some(table) => table.relation.clone(),
        None => {
            let new = catalog::new_relation(session, written).await;
            new.and_then(in_own_schema).map_err(Unfit::Error)?
        }
    };
    Ok((relation, table))
}

/// The error of a table that cannot be loaded.
async fn why_unfit(context: &Context, session: &Session, job: &Job, unfit: Unfit) -> Error {
    let (written, error) = match unfit {
        Unfit::Error(error) => return error,
        Unfit::Relation(written, error) => (written, error),
        Unfit::Missing(written) => {
            let asking = async { Ok(catalog::missing(session, &written).await) };
            let asked = context.connection.attend(session, asking).await;
            (written, asked.unwrap_or_else(|error| error))
        }
    };
    let hint = match job.shaping.told {
        Some(_) => "make it with --create, or name another with --table",
        // Only the data says what columns a table would need.
        None => "make it first, or leave out --format and --copy-options and give --create",
    };
    let error = match error.hint() {
        None if error.kind() == ErrorKind::Table => error.with_hint(hint),
        _ => error,
    };
    waiting::with_waiting_rows(context, session, job, &written, error).await
}

/// A table that is to be made is kept out of schemas that are not for users' tables.
fn in_own_schema(relation: Relation) -> Result<Relation> {
    let schema = relation.schema.as_str();
    let of_whom = match schema {
        "information_schema" | "pg_catalog" => "PostgreSQL's own",
        // Who gives the ledger a schema of another name may want other tables there.
        LEDGER_DEFAULT => "that of the ledger",
        _ => return Ok(relation),
    };
    let message = format!("table {relation} is not made: schema {schema} is {of_whom}");
    Err(Error::new(ErrorKind::Table, message).with_hint("name a schema of yours: --table schema.name"))
}

/// The error of fields that do not fit the table, where that was made for a header that was found otherwise:
/// what a load has made stays when it fails, and would be in the way of what its hints say.
async fn with_maker(context: &Context, session: &Session, job: &Job, shape: &Shape, error: Error) -> Error {
    let ledger = ledger_of(job).filter(|_| error.kind() == ErrorKind::Columns && shape.create.is_none());
    let (Some(ledger), Some(hint)) = (ledger, error.hint().map(str::to_owned)) else { return error };
    let asking = async {
        match ledger.exists(session).await? {
            true => ledger.idle_maker(session, shape.table.oid).await,
            false => Ok(None),
        }
    };
    // What cannot be asked leaves the error as it is.
    let Ok(Some(job_id)) = context.connection.attend(session, asking).await else { return error };
    let relation = quote_relation(&shape.table.relation);
    error.with_hint(format!(
        "{hint}; or, if the table is as job {job_id} has made it, which has stored nothing: DROP TABLE {relation}, and it is made anew"
    ))
}

/// The columns that the fields of a file fill.
fn columns(job: &Job, shape: &Shape, head: &Head) -> Result<Columns> {
    let chosen = match (&shape.create, &head.found) {
        (Some(create), Some(found)) => new_table::columns(job, create, found),
        _ => Columns::of(job, &shape.table, head),
    };
    chosen.map_err(|error| error.in_file(head.object().location()))
}

/// Of a file that was cut into pieces only the first has a header: whether the others' fields are in its
/// order or in the table's, nobody knows.
fn expect_one_order(chosen: &[Columns], heads: &[Head]) -> Result<()> {
    let read = || {
        let read = chosen
            .iter()
            .zip(heads)
            .filter_map(|(columns, head)| Some((columns, head, head.found.as_ref()?)));
        read.filter(|(.., found)| found.finding.width > 0)
    };
    let Some((named, of_named, _)) = read().find(|(.., found)| found.finding.header_rows > 0) else {
        return Ok(());
    };
    let other = read().find(|(columns, _, found)| {
        let is_as_wide = columns.fields.len() == named.fields.len();
        found.finding.header_rows == 0 && is_as_wide && columns.fields != named.fields
    });
    let Some((_, of_other, _)) = other else { return Ok(()) };
    let message = format!(
        "it has no header, and would fill other columns than {}, which has one",
        of_named.object().location()
    );
    Err(Error::new(ErrorKind::Columns, message)
        .in_file(of_other.object().location())
        .with_hint("name the columns with --columns, in the order of the fields; or load the files by a command for each kind"))
}

/// Columns of a new table to which the empty field is NULL in quotes, too, where it is without.
fn empty_is_null(shape: &Shape, written: &Written, fields: &[Option<String>]) -> Vec<String> {
    let is_null = written.dialect.as_ref().is_some_and(|dialect| dialect.nulls == [""]);
    let made = shape.create.iter().flat_map(|create| &create.columns).filter(|_| is_null);
    let forced = made.filter(|column| column.empty_is_null && fields.contains(&Some(column.name.clone())));
    forced.map(|column| column.name.clone()).collect()
}

fn as_if_made(relation: Relation, create: &NewTable) -> Table {
    let column = |(no, column): (usize, &howdah_model::NewColumn)| howdah_model::Column {
        name: column.name.clone(),
        attnum: i16::try_from(no + 1).unwrap_or(0),
        type_name: column.type_name.clone(),
        type_oid: 0,
        not_null: create.primary_key.contains(&column.name),
        has_default: false,
        generated: false,
        identity: false,
    };
    let columns = create.columns.iter().enumerate().map(column).collect();
    Table { relation, oid: 0, kind: RelationKind::Table, columns }
}

fn table_plan(
    session: &Session,
    job: &Job,
    shape: &Shape,
    head: &Head,
    Columns { fields, mut notes, mut unsure, .. }: Columns,
    readings: &Readings,
) -> Result<TablePlan> {
    let reading = |(no, field): (usize, &Option<String>)| {
        let name = field.as_ref()?;
        let column = shape.table.columns.iter().find(|column| column.name == *name)?;
        let found = head.found.as_ref()?;
        readings.get(name).cloned().unwrap_or_else(|| found.columns.reading(no, &column.type_name))
    };
    let readings: Vec<Option<Reading>> = fields.iter().enumerate().map(reading).collect();
    unsure.extend(head.found.iter().flat_map(|found| found.columns.far_years(&fields, &readings)));
    let written = &head.written;
    let care = care(job, shape, written, &readings);
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
    recode.as_deref().map_or(Ok(()), encode::expect_convertible)?;
    let forced = empty_is_null(shape, written, &fields);
    if !forced.is_empty() {
        notes.push(format!("an empty field in quotes is NULL to {}", forced.join(", ")));
    }
    let format = match care {
        Care::Watched if !forced.is_empty() => Format { force_null: ColumnChoice::Named(forced), ..format },
        _ => format,
    };
    let leaves_out = care != Care::Rewritten && fields.iter().any(Option::is_none);
    let (encode, sent) = if leaves_out {
        notes.push("records are rewritten to COPY text, because fields are left out".to_owned());
        (Encode::CopyText, Format { encoding: format.encoding.clone(), ..Format::text() })
    } else {
        (Encode::PassThrough, format.clone())
    };
    notes.push(how_bytes_go(care, written, recode.as_deref(), leaves_out));
    let copied_into = shape.staging.as_ref().map_or(&shape.table.relation, |staging| &staging.relation);
    let statement = |sent: &Format| copy::statement(copied_into, &stored, sent, session.server_version());
    let copy_sql = statement(&sent)?;
    let text_sql = Unquoter::new(&sent).map(|text| statement(&text.sent_format(&sent))).transpose()?;
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
        text_sql,
        binary: None,
        route: None,
        known: None,
        number: None,
        toast_compression: None,
        staging: shape.staging.clone(),
        notes,
        unsure,
        policies: None,
        outside: false,
        frozen: false,
    };
    if leaves_out {
        // What cannot be rewritten is said now, not in the middle of the load.
        Rewriter::new(&plan.format, &field_targets(&plan, &plan.format))?;
    }
    Ok(plan)
}

/// How the values of a column are spelled; `None`: they are left as they are. Of columns that are not among
/// these each file decides.
pub(super) type Readings = BTreeMap<String, Option<Reading>>;

/// How the values of each column are spelled, where the server would not read them alike: as told behind the
/// colon of `--types column=type:spelling`, else as the data of all files together proves. One file may prove
/// what another leaves open: 31/01/2024 in one says how 01/02/2024 in the other is meant.
fn readings(job: &Job, table: &Table, columns: &[Columns], heads: &[Head]) -> Result<Readings> {
    let mut readings = BTreeMap::new();
    for (name, (state, among)) in joined(columns, heads) {
        let Some(column) = table.columns.iter().find(|column| column.name == *name) else { continue };
        let told = columns::told(job, name).map(|written| infer::parse_type(written)).transpose()?;
        let told = told.and_then(|(_, reading)| reading);
        let proven = || infer::reading_for(&state, &among, &column.type_name);
        let agreed = || orders::agreed(column, &state, &among, heads);
        if let Some(reading) = told.or_else(proven).or_else(agreed) {
            readings.insert(name.clone(), Some(reading));
        } else if let Some(why) = infer::doubtful(&state, &among, &column.type_name) {
            return Err(columns::doubtful(column, why));
        }
    }
    Ok(readings)
}

/// What all files together hold of each column.
pub(super) fn joined<'a>(
    columns: &'a [Columns],
    heads: &[Head],
) -> BTreeMap<&'a String, (ColumnState, Among)> {
    let mut seen: BTreeMap<&String, (ColumnState, Among)> = BTreeMap::new();
    for (columns, head) in columns.iter().zip(heads) {
        let Some(found) = &head.found else { continue };
        for (no, name) in columns.fields.iter().enumerate() {
            let Some(name) = name else { continue };
            let (state, among) = seen.entry(name).or_default();
            if let (Some(of_file), Some(among_file)) =
                (found.columns.states.get(no), found.columns.among.get(no))
            {
                among.join(state, among_file, of_file);
            }
        }
    }
    seen
}

/// A number that is written anew has a decimal point. Where money is read with a comma (`lc_monetary`), it
/// would be another amount, or none: values are left as they are, which the server reads as its people write
/// them.
async fn leave_money_to_comma(
    context: &Context,
    session: &Session,
    job: &Job,
    table: &Table,
    readings: &mut Readings,
) -> Result<()> {
    let money = table.columns.iter().filter(|column| column.type_name == "money");
    let money: Vec<&String> = money.map(|column| &column.name).collect();
    if money.is_empty() || context.connection.attend(session, catalog::money_has_point(session)).await? {
        return Ok(());
    }
    for name in money {
        if columns::is_told(job, name) {
            let message = format!(
                "the server's lc_monetary has no decimal point, so that {name} takes money as it is written there alone"
            );
            return Err(Error::new(ErrorKind::Columns, message)
                .with_hint(format!("leave out how values of {name} are spelled in --types")));
        }
        readings.insert(name.clone(), None);
    }
    Ok(())
}

/// The client writes records anew where COPY has no words for how they are written, and where it has to know
/// the fields of what is not UTF-8.
fn care(job: &Job, shape: &Shape, written: &Written, readings: &[Option<Reading>]) -> Care {
    let Some(dialect) = &written.dialect else { return Care::Server };
    let foreign = written.format.encoding.as_deref() != Some("UTF8");
    let reads = readings.iter().any(Option::is_some);
    let respells = readings.len() > 1 && respells(job) && !foreign && written.recode.is_none();
    let is_told = dialect.to_format().is_some() || respells && dialect.to_format_but_null().is_some();
    if reads || !is_told || foreign && knows_fields(job, shape, &written.format) {
        Care::Rewritten
    } else {
        Care::Watched
    }
}

/// Spellings of NULL may become one on the way of records that pass otherwise. What is mended is written with
/// one already: another one in it is a value. Where bad records do not end the load, a stray quote costs the
/// one record that is read by itself, and all behind it where COPY's rules split.
fn respells(job: &Job) -> bool {
    !mends(job) && job.bad_records.on_error == OnError::Stop
}

fn mends(job: &Job) -> bool {
    job.shaping.lenient || !job.shaping.nul.is_reject()
}

/// Mending tells characters apart, partitions are made for dates, NULL has other bytes than those that were
/// told, and a watch over columns would take parts of characters for delimiters.
fn knows_fields(job: &Job, shape: &Shape, format: &Format) -> bool {
    let watches = shape.create.is_some() || job.shaping.evolve != Evolve::None;
    mends(job)
        || job.create_partitions.is_some()
        || !format.null.is_ascii()
        || watches && Rules::embeds_ascii(format)
}

fn how_bytes_go(care: Care, written: &Written, recode: Option<&str>, leaves_out: bool) -> String {
    let respells = written.dialect.as_ref().is_some_and(|dialect| dialect.to_format().is_none());
    match (care, recode) {
        (Care::Rewritten, _) => {
            "records are read one by one and rewritten to COPY text on the way".to_owned()
        }
        (Care::Watched, _) if respells => {
            format!("each spelling of NULL becomes \"{}\" on the way", written.format.null)
        }
        (_, Some(encoding)) => {
            format!("the server cannot read {encoding}: the bytes are rewritten as UTF8 on the way")
        }
        (_, None) if leaves_out => "the kept fields are as COPY reads them".to_owned(),
        (_, None) => UNTOUCHED.to_owned(),
    }
}
