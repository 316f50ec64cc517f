//! Tables in which rows wait until all of them are there: the columns that the file fills, with the types of
//! the table's own, and nothing else that the table has but what tells a bad record while its place in the
//! file is known.
//!
//! A staging table is logged, so that it outlives a crash of the server together with the receipts of its
//! chunks; that of a check is not, so that no publication FOR ALL TABLES sends its rows to subscribers that
//! have no such table. It is written into the journal in the transaction that makes it. Autovacuum leaves it
//! alone: it is read once.

mod defaults;
mod names;
pub(crate) mod own;

use names::is_of_check;
pub(crate) use names::{PREFIX, is_of_this_check};
pub use names::{beside, is_name_of_new_table, is_new_table, name, name_of_check, new_table, sequence};

use crate::arrival::borders;
use crate::arrival::table::expect_same_types;
use crate::define;
use crate::error::session_error;
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, NewUndo, UndoKind};
use crate::replace::{self, Replacement};
use crate::same_table;
use crate::session::{Session, toast};
use crate::sql::{OWN_TABLESPACE_SQL, quote_ident, quote_literal, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Error, ErrorKind, Relation, Result, StagingPlan, TableChange, TablePlan, sqlstate};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Whoever makes the same table meanwhile is another run of the job: the next try finds it.
const TRIES: u32 = 3;

/// The columns `$2` of table `$1` in this order, as CREATE TABLE takes them; whether each may be demanded to
/// be there (`$3` is the key), since no trigger, of a partition neither, will fill it.
const COLUMNS_SQL: &str = concat!(
    "SELECT a.attname::pg_catalog.text, pg_catalog.format_type(a.atttypid, a.atttypmod), \
           CASE WHEN a.attcollation <> t.typcollation \
                THEN pg_catalog.format('%I.%I', cn.nspname, c.collname) END, \
           a.attname = ANY ($3) OR (a.attnotnull AND NOT EXISTS ( \
               SELECT FROM pg_catalog.pg_trigger g WHERE g.tgtype & 7::pg_catalog.int2 = 7 AND g.tgrelid IN (",
    tree_of!("a.attrelid"),
    "SELECT oid FROM tree))) \
    FROM pg_catalog.unnest($2) WITH ORDINALITY AS wanted (name, no) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = wanted.name \
        AND NOT a.attisdropped \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation \
    LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = c.collnamespace \
    ORDER BY wanted.no"
);

/// What the staging table of this OID has.
const PRESENT_SQL: &str = "\
    SELECT a.attname::pg_catalog.text, pg_catalog.format_type(a.atttypid, a.atttypmod) \
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 \
      AND NOT a.attisdropped ORDER BY a.attnum";

/// A column as CREATE TABLE takes it.
struct Column {
    name: String,
    type_name: String,
    collation: Option<String>,
    not_null: bool,
    default: Option<String>,
}

impl Column {
    fn sql(&self) -> String {
        let not_null = if self.not_null { " NOT NULL" } else { "" };
        let default = self.default.as_ref().map(|default| format!(" DEFAULT {default}")).unwrap_or_default();
        format!("{} {}{not_null}{default}", quote_ident(&self.name), self.type_sql())
    }

    fn type_sql(&self) -> String {
        let collation = self.collation.as_ref().map(|name| format!(" COLLATE {name}")).unwrap_or_default();
        format!("{}{collation}", self.type_name)
    }
}

/// How a staging table is made.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// The columns by which its rows meet those of the table; none where they only come on top.
    pub key: &'a [String],
    /// No chunk of the job is in, so that a table that has other columns may be made anew.
    pub fresh: bool,
    /// How long tables are waited for that this locks besides.
    pub lock_timeout_ms: u64,
}

/// Makes the staging table of a plan, unless an earlier run of the job has.
///
/// # Errors
/// Ledger, with the GRANT that helps, where the role may not; Table, when columns are gone; those of the
/// session.
pub async fn make(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    plan: &TablePlan,
    staging: &StagingPlan,
    making: Making<'_>,
) -> Result<()> {
    made_once(session, async || make_once(session, ledger, job_id, plan, staging, making).await).await
}

/// Makes a table in one transaction. If another run of the job makes it meanwhile, the next try finds it.
pub(crate) async fn made_once(session: &Session, make: impl AsyncFn() -> Result<()>) -> Result<()> {
    let mut tries = 1;
    loop {
        let Err(error) = make().await else { return Ok(()) };
        session.roll_back().await;
        let overtaken = matches!(
            error.sqlstate(),
            Some(
                sqlstate::DUPLICATE_TABLE
                    | sqlstate::DUPLICATE_OBJECT
                    | sqlstate::UNIQUE_VIOLATION
                    | same_table::ANOTHER_SQLSTATE
            )
        );
        if !overtaken || tries >= TRIES {
            return Err(error);
        }
        tries += 1;
    }
}

async fn make_once(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    plan: &TablePlan,
    staging: &StagingPlan,
    Making { key, fresh, lock_timeout_ms }: Making<'_>,
) -> Result<()> {
    let fail = |error: tokio_postgres::Error| refused(&error, ledger);
    let run = async |sql: &str| session.client().batch_execute(sql).await.map_err(fail);
    run(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; {OWN_TABLESPACE_SQL}")).await?;
    ledger.check_rights(session, true).await?;
    let mut columns = columns(session, plan, key).await?;
    defaults::give(session, plan, staging, &mut columns).await?;
    let kept = kept_as(session, plan, &plan.table.relation).await?;
    let beside = borders(staging, key);
    let name = quote_relation(&staging.relation);
    let table = &plan.table.relation;
    if let Some(oid) = own::find(session, ledger, job_id, &staging.relation, table).await? {
        let present = session.client().query_typed(PRESENT_SQL, &[(&oid, Type::OID)]).await.map_err(fail)?;
        let has_borders = match &beside {
            Some(borders) => own::is_beside(session, borders, table).await?,
            None => true,
        };
        let same = kept_as(session, plan, &staging.relation).await? == kept
            && has_borders
            && is_as_planned(staging, &columns, &present);
        if !fresh {
            if !is_new_table(staging) {
                let fields: Vec<String> = plan.fields.iter().flatten().cloned().collect();
                expect_same_types(session, &plan.table.relation, &staging.relation, &fields).await?;
                run(&widen_sql(plan, staging, &columns, &kept, &present, lock_timeout_ms)).await?;
            }
            return run("COMMIT").await;
        }
        // Under the lock no other run of the job is within a chunk; one that waits for it copies into an
        // empty table.
        let expect = same_table::expect_sql(oid, &staging.relation);
        run(&format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; {expect}")).await?;
        match (ledger.has_chunks(session, job_id).await?, same) {
            (true, _) => return run("ROLLBACK").await,
            (false, true) => {
                let all: Vec<String> = beside.iter().chain([&staging.relation]).map(quote_relation).collect();
                return run(&format!("TRUNCATE TABLE {}; COMMIT", all.join(", "))).await;
            }
            (false, false) => {
                run(&drop_new_sql(ledger, job_id, &staging.relation, lock_timeout_ms)).await?;
            }
        }
    }
    // It was there, and another run of the job that has ended since has dropped it or given it the table's
    // name: behind that, nobody would drop this one.
    if ledger.is_done(session, job_id).await? {
        let message = format!("another run of job {job_id} has ended it at this moment");
        return Err(Error::new(ErrorKind::Ledger, message).with_hint("its rows are in the table"));
    }
    if is_new_table(staging) {
        let replacement = Replacement { old: &plan.table.relation, new: &staging.relation };
        replace::create(session, replacement).await?;
        note(session, ledger, job_id, plan, &staging.relation, None).await?;
        return run("COMMIT").await;
    }
    run(&create_sql(staging, &columns, &kept, beside.as_ref())).await?;
    note(session, ledger, job_id, plan, &staging.relation, beside).await?;
    run("COMMIT").await
}

/// Makes the staging table, and what stands beside it.
fn create_sql(
    staging: &StagingPlan,
    columns: &[Column],
    kept: &[String],
    beside: Option<&Relation>,
) -> String {
    let name = quote_relation(&staging.relation);
    let mut defined: Vec<String> = columns.iter().map(Column::sql).collect();
    let mut before = String::new();
    let mut more = toast::keep_so_sql(&name, kept);
    more += &beside.map(|borders| format!("; {}", borders::make_sql(borders))).unwrap_or_default();
    if let Some(place) = &staging.place {
        let sequence = quote_relation(&place.sequence);
        before = format!("CREATE SEQUENCE {sequence} AS bigint MINVALUE 0; ");
        let column = quote_ident(&place.name);
        let literal = quote_literal(&sequence);
        defined.push(format!(
            "{column} bigint NOT NULL DEFAULT pg_catalog.nextval({literal}::pg_catalog.regclass)"
        ));
        more += &format!("; ALTER SEQUENCE {sequence} OWNED BY {name}.{column}");
    }
    let unlogged = if is_of_check(&staging.relation) { "UNLOGGED " } else { "" };
    // A publication FOR ALL TABLES lets no row be deleted that nothing identifies.
    // `default_table_access_method` may be one that deletes none.
    format!(
        "{before}CREATE {unlogged}TABLE {name} ({}) USING heap WITH (autovacuum_enabled = false); \
         ALTER TABLE {name} REPLICA IDENTITY FULL{more}",
        defined.join(", ")
    )
}

/// The staging table that is there has the columns that it is to have.
fn is_as_planned(staging: &StagingPlan, columns: &[Column], present: &[Row]) -> bool {
    let is_there = |column: &Column| {
        present
            .iter()
            .any(|row| row.get::<_, &str>(0) == column.name && row.get::<_, &str>(1) == column.type_name)
    };
    let has_place = |name: &String| present.iter().any(|row| row.get::<_, &str>(0) == name);
    let has_place = staging.place.as_ref().is_none_or(|place| has_place(&place.name));
    has_place && columns.iter().all(is_there)
}

/// How columns that the files fill and the table has keep wide values in this one: the table or its staging
/// table. Columns that are to be made will keep them as their types do, and those that are changed as before.
async fn kept_as(session: &Session, plan: &TablePlan, relation: &Relation) -> Result<Vec<String>> {
    let filled: Vec<String> = plan.fields.iter().flatten().cloned().collect();
    let kept = toast::kept_as(session.client(), &quote_relation(relation), &filled).await;
    kept.map_err(|error| session_error(&error, "reading how the table's columns keep values"))
}

/// The table beside it, where its rows may be cut into parts by their key.
fn borders(staging: &StagingPlan, key: &[String]) -> Option<Relation> {
    if key.is_empty() { None } else { borders::table(&staging.relation) }
}

/// Gives columns the types that they have got in the table since rows wait, which [`expect_same_types`] has
/// found to be wider: records that are still to come may need them.
fn widen_sql(
    plan: &TablePlan,
    staging: &StagingPlan,
    columns: &[Column],
    kept: &[String],
    present: &[Row],
    lock_timeout_ms: u64,
) -> String {
    // Types of these are written as the plan has them.
    let made = columns_to_be(plan);
    let is_other = |column: &&Column| {
        let mut same_name = present.iter().filter(|row| row.get::<_, &str>(0) == column.name);
        same_name.any(|row| row.get::<_, &str>(1) != column.type_name)
            && made.iter().all(|made| made.name != column.name)
    };
    let alter = |column: &Column| format!("ALTER {} TYPE {}", quote_ident(&column.name), column.type_sql());
    let altered: Vec<String> = columns.iter().filter(is_other).map(alter).collect();
    match altered.is_empty() {
        true => String::new(),
        false => {
            let name = quote_relation(&staging.relation);
            // With another type, a column keeps values as that does.
            let keep_so = toast::keep_so_sql(&name, kept);
            format!(
                "SET LOCAL lock_timeout = {lock_timeout_ms}; ALTER TABLE {name} {}{keep_so}",
                altered.join(", ")
            )
        }
    }
}

async fn columns(session: &Session, plan: &TablePlan, key: &[String]) -> Result<Vec<Column>> {
    let relation = quote_relation(&plan.table.relation);
    let mut made = columns_to_be(plan);
    for column in &mut made {
        let (_, present) = define::type_of(session, &relation, &column.name).await?;
        column.collation = present.filter(|_| define::is_collated(&column.type_name));
    }
    let is_there = |name: &&String| made.iter().all(|column| column.name != **name);
    let wanted: Vec<&String> = plan.fields.iter().flatten().filter(is_there).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&relation, Type::TEXT), (&wanted, Type::TEXT_ARRAY), (&key, Type::TEXT_ARRAY)];
    let rows = session.rows(COLUMNS_SQL, &parameters, "reading the table's columns").await?;
    if rows.len() != wanted.len() {
        return Err(missing(&plan.table.relation, &wanted, &rows));
    }
    let column = |row: &Row| Column {
        name: row.get(0),
        type_name: row.get(1),
        collation: row.get(2),
        not_null: row.get(3),
        default: None,
    };
    Ok(rows.iter().map(column).chain(made).collect())
}

/// Of the columns that the files fill the table has these alone, none where it is gone.
fn missing(relation: &Relation, wanted: &[&String], found: &[Row]) -> Error {
    let is_found = |name: &&&String| found.iter().any(|row| row.get::<_, &str>(0) == name.as_str());
    let missing: Vec<&str> = wanted.iter().filter(|name| !is_found(name)).map(|name| name.as_str()).collect();
    let (what, place) = match found {
        [] => {
            let what = format!("{relation} is gone, or has none of the columns that the files fill");
            (what, ", or its schema,")
        }
        _ => (format!("{relation} has no {} any more, which the files fill", missing.join(", ")), ","),
    };
    Error::new(ErrorKind::Table, format!("{what}: dropped or renamed since the load was planned")).with_hint(format!(
        "if it was renamed, give it its name back{place} and the same command goes on; if it was dropped, make it anew, and the same \
         command with --force loads everything from the beginning"
    ))
}

/// Columns that the table is going to have and has not yet, or has with another type: nothing is changed for
/// a check. What collation those have that are there already is not told here.
fn columns_to_be(plan: &TablePlan) -> Vec<Column> {
    let key = plan.create.iter().flat_map(|create| &create.primary_key);
    let key: Vec<&String> = key.collect();
    let changed = plan.changes.iter().map(|(TableChange::Add(column) | TableChange::Widen(column))| column);
    let new = plan.create.iter().flat_map(|create| &create.columns).chain(changed);
    let filled = new.filter(|column| plan.fields.iter().flatten().any(|field| *field == column.name));
    filled
        .map(|column| Column {
            name: column.name.clone(),
            type_name: column.type_name.clone(),
            collation: None,
            not_null: key.contains(&&column.name),
            default: None,
        })
        .collect()
}

/// Writes down how the table is dropped, and that the receipts of what is in it go with it unless its rows
/// have come into their table.
pub(crate) async fn note(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    plan: &TablePlan,
    staging: &Relation,
    borders: Option<Relation>,
) -> Result<()> {
    let name = quote_relation(staging);
    let sql = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid";
    let rows = session.rows(sql, &[(&name, Type::TEXT)], "making a staging table").await?;
    let mut statements = vec![format!("DROP TABLE {name}")];
    statements.extend(borders.as_ref().map(drop_borders_sql));
    statements.push(match is_of_check(staging) {
        true => ledger.forget_check_sql(job_id),
        false => ledger.forget_sql(job_id),
    });
    let change = NewUndo {
        kind: UndoKind::Staging,
        relation: staging.clone(),
        table_oid: rows.first().and_then(|row| row.get(0)).unwrap_or(0),
        name: staging.name.clone(),
        definition: plan.table.relation.to_string(),
        statements,
        compared_by_libc: false,
    };
    ledger.note_change(session, job_id, &change).await
}

/// What goes with a staging table that is gone: the table beside it, in which its keys are.
pub(crate) fn drop_beside_sql(staging: &Relation) -> Option<String> {
    borders::table(staging).map(|borders| drop_borders_sql(&borders))
}

fn drop_borders_sql(borders: &Relation) -> String {
    format!("DROP TABLE IF EXISTS {}", quote_relation(borders))
}

/// Drops the table, with that of its borders, and closes its entry of the journal; the receipts stay.
pub fn drop_sql(ledger: &Ledger, job_id: &str, staging: &Relation) -> String {
    format!(
        "SET LOCAL client_min_messages = error; DROP TABLE IF EXISTS {}{}; {}",
        quote_relation(staging),
        drop_beside_sql(staging).map(|drop| format!("; {drop}")).unwrap_or_default(),
        ledger.staging_done_sql(job_id, staging)
    )
}

/// The same of a table that may have foreign keys, whose drop locks the tables that they refer to: others
/// would wait behind it.
pub(crate) fn drop_new_sql(ledger: &Ledger, job_id: &str, new: &Relation, lock_timeout_ms: u64) -> String {
    let drop = drop_sql(ledger, job_id, new);
    format!("SET LOCAL lock_timeout = {lock_timeout_ms}; {drop}; SET LOCAL lock_timeout = 0")
}

/// The staging table is there.
///
/// # Errors
/// Those of the session.
pub async fn exists(session: &Session, staging: &Relation) -> Result<bool> {
    let name = quote_relation(staging);
    let sql = "SELECT pg_catalog.to_regclass($1) IS NOT NULL";
    let rows = session.rows(sql, &[(&name, Type::TEXT)], "looking for the staging table").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

fn refused(error: &tokio_postgres::Error, ledger: &Ledger) -> Error {
    let mapped = session_error(error, "making a staging table");
    if mapped.sqlstate() != Some(sqlstate::INSUFFICIENT_PRIVILEGE) {
        return mapped;
    }
    let schema = quote_ident(ledger.schema());
    let message = format!("no staging table can be made in the ledger's schema: {}", mapped.message());
    Error::new(ErrorKind::Ledger, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE).with_hint(format!(
        "the owner of the schema can grant this role CREATE on {schema}; or name another schema with --ledger"
    ))
}
