//! Tables made and changed for the data: CREATE TABLE, ADD COLUMN, and the widening of a column's type.
//!
//! Names are quoted here. Types come as SQL writes them: inferred ones are howdah's own words, those of an
//! option are checked to be a type before they stand in a statement.

mod likeness;

use crate::copy::judge::judge;
use crate::copy::server_error::safe_message;
use crate::error::{server_error, session_error};
use crate::locks::named;
use crate::session::{Session, toast};
use crate::sql::{quote_columns, quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, NewColumn, NewTable, Relation, Result, sqlstate};
use std::collections::BTreeSet;
use tokio_postgres::error::DbError;
use tokio_postgres::types::Type;

/// Makes the table, unless somebody has made the same in the meantime.
///
/// # Errors
/// Table, with 42P07 where the one that was made has other columns or another key, and without where the
/// server refuses it; those of the session.
pub async fn create_table(session: &Session, relation: &Relation, table: &NewTable) -> Result<()> {
    let sql = create_sql(relation, table);
    let mut tries = 1;
    loop {
        match session.client().batch_execute(&sql).await {
            Ok(()) => return Ok(()),
            Err(error) if !was_overtaken(&error) => return Err(refused(&error, relation, "made")),
            Err(_) if likeness::is_like(session, relation, table).await? => return Ok(()),
            Err(_) if tries < CREATE_TRIES => tries += 1,
            Err(_) => return Err(likeness::made_otherwise(relation)),
        }
    }
}

/// More than one are for a table that is dropped and made anew.
const CREATE_TRIES: u32 = 3;

/// Whoever makes the same table meanwhile is noticed by the unique indexes of the catalogs (23505, which
/// waits until the other has committed), or by the names of the table, its type or its index being taken
/// (42P07, 42710).
fn was_overtaken(error: &tokio_postgres::Error) -> bool {
    let Some(db) = error.as_db_error() else { return false };
    match db.code().code() {
        sqlstate::DUPLICATE_TABLE | sqlstate::DUPLICATE_OBJECT => true,
        sqlstate::UNIQUE_VIOLATION => db.schema() == Some("pg_catalog"),
        _ => false,
    }
}

/// Others have made a table, or added a column, otherwise than it was planned.
pub fn is_otherwise(error: &Error) -> bool {
    let codes = [sqlstate::DUPLICATE_TABLE, sqlstate::DUPLICATE_COLUMN];
    error.kind() == ErrorKind::Table && error.sqlstate().is_some_and(|code| codes.contains(&code))
}

/// The statement of [`create_table`].
pub fn create_sql(relation: &Relation, table: &NewTable) -> String {
    let column = |column: &NewColumn| format!("{} {}", quote_ident(&column.name), column.type_name);
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if !table.primary_key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", quote_columns(&table.primary_key)));
    }
    format!("CREATE TABLE {} ({})", quote_relation(relation), parts.join(", "))
}

/// Adds a column. The lock is waited for no longer than `lock_timeout_ms`, since readers queue behind it.
///
/// # Errors
/// Server with 55P03 when the table was not free within the time, which may pass; Table, with 42701 where
/// somebody has added a column of this name and another type since, and without where the server refuses it;
/// those of the session.
pub async fn add_column(
    session: &Session,
    relation: &Relation,
    lock_timeout_ms: u64,
    column: &NewColumn,
) -> Result<()> {
    evolve(session, relation, lock_timeout_ms, &[column], &[], &|_, _| None).await.map(|_| ())
}

/// Adds columns, but for those that somebody has added alike since, and gives others a wider type, all or
/// nothing, in one rewrite of the table at most. Others may have changed a column since its type was read:
/// `choose` is told the type that it has under the lock, and says what it is to become, if anything. Says
/// which columns got another type, and of the others which they have. A column of strings keeps its
/// collation, by which keys compare them, and each keeps how it stores and compresses wide values.
///
/// # Errors
/// As [`add_column`].
pub async fn evolve(
    session: &Session,
    relation: &Relation,
    lock_timeout_ms: u64,
    added: &[&NewColumn],
    wider: &[Wider],
    choose: &(dyn Fn(&Wider, &str) -> Option<Wider> + Sync),
) -> Result<Vec<Became>> {
    let done = evolve_under_lock(session, relation, lock_timeout_ms, added, wider, choose).await;
    named(session, relation, session.or_roll_back(done).await).await
}

async fn evolve_under_lock(
    session: &Session,
    relation: &Relation,
    lock_timeout_ms: u64,
    added: &[&NewColumn],
    wider: &[Wider],
    choose: &(dyn Fn(&Wider, &str) -> Option<Wider> + Sync),
) -> Result<Vec<Became>> {
    let table = quote_relation(relation);
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| refused(&error, relation, "changed"))
    };
    // Dates must be written as they were read and doubles with all their digits, whatever the session's
    // style.
    run(&format!(
        "BEGIN; SET LOCAL lock_timeout = {lock_timeout_ms}; SET LOCAL datestyle = 'ISO'; SET LOCAL extra_float_digits = 3"
    ))
    .await?;
    if !wider.is_empty() {
        run(&format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await?;
    }
    let mut became = Vec::new();
    let mut actions = likeness::adding(session, relation, added).await?;
    if !wider.is_empty() {
        let mut changed = Vec::new();
        for column in wider {
            let (has, collation) = type_of(session, &table, &column.name).await?;
            let chosen = choose(column, &has);
            let is_changed = chosen.is_some();
            let type_name = chosen.as_ref().map_or(has, |chosen| chosen.type_name.clone());
            became.push(Became { name: column.name.clone(), type_name, is_changed });
            if let Some(chosen) = chosen {
                actions.push(widen_sql(&chosen, collation.as_deref()));
                changed.push(chosen.name);
            }
        }
        let kept = toast::kept_as(session.client(), &table, &changed).await;
        actions.extend(kept.map_err(|error| session_error(&error, "reading how columns keep values"))?);
    }
    if !actions.is_empty() {
        let altered =
            session.client().batch_execute(&format!("ALTER TABLE {table} {}", actions.join(", "))).await;
        altered.map_err(|error| not_widened(&error, relation, wider))?;
    }
    run("COMMIT").await?;
    Ok(became)
}

/// ALTER TABLE gives a column the collation of its new type where it names none.
fn widen_sql(column: &Wider, collation: Option<&str>) -> String {
    let (name, type_name) = (quote_ident(&column.name), &column.type_name);
    let text = column.text_sql.clone().unwrap_or_else(|| text_sql(&name));
    let collation = collation.filter(|_| is_collated(type_name));
    let collate = collation.map(|collation| format!(" COLLATE {collation}")).unwrap_or_default();
    format!("ALTER COLUMN {name} TYPE {type_name}{collate} USING ({text})::{type_name}")
}

/// A column that gets this type keeps its collation: of all types that columns are given, this alone has one.
pub(crate) fn is_collated(type_name: &str) -> bool {
    type_name == "text"
}

/// The type that the column has now, and its collation, if it is another than the database's; no type, if
/// there is no such column.
pub(crate) async fn type_of(
    session: &Session,
    table: &str,
    column: &str,
) -> Result<(String, Option<String>)> {
    const SQL: &str = "\
        SELECT pg_catalog.format_type(a.atttypid, a.atttypmod), \
               CASE WHEN c.collprovider <> 'd' THEN pg_catalog.format('%I.%I', n.nspname, c.collname) END \
        FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation \
        LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace \
        WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = $2 AND NOT a.attisdropped";
    let rows = session
        .rows(SQL, &[(&table, Type::TEXT), (&column, Type::TEXT)], "reading the type of a column")
        .await?;
    Ok(rows.first().map(|row| (row.get(0), row.get(1))).unwrap_or_default())
}

/// What has become of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Became {
    /// Its name, unquoted.
    pub name: String,
    /// Its type, as it was asked for or as the server writes it.
    pub type_name: String,
    /// It has got that here.
    pub is_changed: bool,
}

/// A column that gets a wider type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wider {
    /// Its name, unquoted.
    pub name: String,
    /// The type from which its new one was chosen; empty: whichever it has.
    pub from: String,
    /// Its new type as SQL writes it. What is stored is converted through its text.
    pub type_name: String,
    /// The SQL that gives the text of a stored value, where `column::text` is not what the file had. Howdah's
    /// own words around a quoted name.
    pub text_sql: Option<String>,
}

/// A value that a column does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTaken {
    /// Its place among those asked about.
    pub no: usize,
    /// It is a number, and beyond the limits of a column of numbers.
    pub is_number: bool,
}

/// Which of these values the server does not take for this column, or, where its type is `numeric` with
/// limits, would round. Where it cannot be asked, because the role may make no temporary functions before
/// PostgreSQL 16, none.
///
/// # Errors
/// Those of the session.
pub async fn not_taken(
    session: &Session,
    relation: &Relation,
    column: &str,
    type_name: &str,
    values: &[&str],
) -> Result<Vec<NotTaken>> {
    let fail = |error: &tokio_postgres::Error| session_error(error, "asking what a column takes");
    let client = session.client();
    client.batch_execute("BEGIN").await.map_err(|error| fail(&error))?;
    let is_limited = type_name.starts_with("numeric(");
    let asking = async {
        let columns = vec![column; values.len()];
        let verdicts = judge(client, session.server_version(), relation, &columns, values).await?;
        // numeric_value_out_of_range
        let refused = verdicts.iter().map(|verdict| {
            (verdict.no, verdict.sqlstate == sqlstate::NUMERIC_VALUE_OUT_OF_RANGE && is_limited)
        });
        let mut found: Vec<NotTaken> = refused.map(|(no, is_number)| NotTaken { no, is_number }).collect();
        if is_limited {
            let refused: BTreeSet<usize> = found.iter().map(|refused| refused.no).collect();
            let taken: Vec<usize> = (0..values.len()).filter(|no| !refused.contains(no)).collect();
            let rounded = rounded(client, type_name, &taken, values).await?;
            found.extend(rounded.into_iter().map(|no| NotTaken { no, is_number: true }));
        }
        Ok(found)
    };
    let found: std::result::Result<Vec<NotTaken>, tokio_postgres::Error> = asking.await;
    client.batch_execute("ROLLBACK").await.map_err(|error| fail(&error))?;
    match found {
        Ok(found) => Ok(found),
        Err(error) if error.as_db_error().is_some() => Ok(Vec::new()),
        Err(error) => Err(fail(&error)),
    }
}

/// Those of the values at these places, which the server takes, that are other numbers in this type.
async fn rounded(
    client: &tokio_postgres::Client,
    type_name: &str,
    places: &[usize],
    values: &[&str],
) -> std::result::Result<Vec<usize>, tokio_postgres::Error> {
    let asked: Vec<&str> = places.iter().filter_map(|no| values.get(*no).copied()).collect();
    let sql = format!(
        "SELECT no FROM pg_catalog.unnest($1) WITH ORDINALITY asked(value, no) \
         WHERE value::pg_catalog.numeric <> value::{type_name}"
    );
    let rows = client.query_typed(&sql, &[(&asked, Type::TEXT_ARRAY)]).await?;
    let place = |row: &tokio_postgres::Row| usize::try_from(row.get::<_, i64>(0) - 1).ok();
    Ok(rows.iter().filter_map(place).filter_map(|at| places.get(at).copied()).collect())
}

/// The text of a stored value as queries show it: the cast of an address would add the length of its whole
/// prefix.
fn text_sql(name: &str) -> String {
    format!(
        "CASE WHEN {name} IS NOT NULL AND pg_catalog.pg_typeof({name})::pg_catalog.oid = 'inet'::pg_catalog.regtype::pg_catalog.oid THEN pg_catalog.format('%s', {name}) \
         ELSE {name}::text END"
    )
}

/// The type as the server writes it, which proves that the text is a type and nothing else.
///
/// # Errors
/// Usage, when it is none; those of the session.
pub async fn type_name(session: &Session, written: &str) -> Result<String> {
    // to_regtype knows no modifiers before version 17, so these are looked at here.
    let (base, modifiers) = match written.split_once('(') {
        Some((base, rest)) => {
            let (inside, behind) = rest.split_once(')').unwrap_or((rest, "("));
            (format!("{base} {behind}"), Some(inside))
        }
        None => (written.to_owned(), None),
    };
    let sane = |inside: &str| {
        inside.len() <= 20
            && inside.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' ' | b'-'))
    };
    let unknown = || {
        Error::new(
            ErrorKind::Usage,
            format!("--types: expected a type that this server has, got {written:?}"),
        )
    };
    if modifiers.is_some_and(|inside| !sane(inside)) {
        return Err(unknown());
    }
    let sql = "SELECT pg_catalog.to_regtype($1)::text";
    let rows = session.client().query_typed(sql, &[(&base.trim(), Type::TEXT)]).await;
    let found: Option<String> = match &rows {
        Ok(rows) => rows.first().and_then(|row| row.get(0)),
        // What does not even parse as a type is refused by version 16 and older, and by later ones at times.
        Err(error) if error.code().is_some_and(|code| code.code().starts_with("42")) => None,
        Err(error) => return Err(session_error(error, "looking up a type")),
    };
    found.map(|_| written.to_owned()).ok_or_else(unknown)
}

/// How the catalog shows the type of a column that is made with this one, which [`type_name`] has proved to
/// be a type.
///
/// # Errors
/// Those of the session.
pub async fn shown_type(session: &Session, type_name: &str) -> Result<String> {
    let fail = |error| session_error(&error, "looking up a type");
    let client = session.client();
    let rows = client.query_typed(&format!("SELECT NULL::{type_name}"), &[]).await.map_err(fail)?;
    let Some(column) = rows.first().and_then(|row| row.columns().first()) else { return Ok(String::new()) };
    let (oid, modifier) = (column.type_().oid(), column.type_modifier());
    let sql = "SELECT pg_catalog.format_type($1, $2)";
    let rows = client.query_typed(sql, &[(&oid, Type::OID), (&modifier, Type::INT4)]).await.map_err(fail)?;
    Ok(rows.first().map(|row| row.get(0)).unwrap_or_default())
}

/// The server does not say which column or what else of the table it is about.
fn not_widened(error: &tokio_postgres::Error, relation: &Relation, wider: &[Wider]) -> Error {
    let columns: Vec<&str> = wider.iter().map(|column| column.name.as_str()).collect();
    let what = match wider {
        [] => "changed".to_owned(),
        _ => {
            let to = |column: &Wider| format!("{} become {}", column.name, column.type_name);
            format!("changed to let {}", wider.iter().map(to).collect::<Vec<_>>().join(" and "))
        }
    };
    let refused = refused_about(error, relation, &what, &columns);
    let others = [sqlstate::INSUFFICIENT_PRIVILEGE, sqlstate::DUPLICATE_COLUMN];
    let is_of_type = |code: &str| code.starts_with("42") && !others.contains(&code);
    match refused.hint() {
        None if !wider.is_empty() && refused.sqlstate().is_some_and(is_of_type) => {
            refused.with_hint(OF_ITS_TYPE)
        }
        _ => refused,
    }
}

const OF_ITS_TYPE: &str = "what is made for the type that the column has (a CHECK, an index or its condition, a foreign key, the key of partitions, \
     a generated column) does not fit the wider one: drop that, and make it again behind the load; or leave out --evolve widen, where \
     --on-error skip keeps the records that do not fit";

fn refused(error: &tokio_postgres::Error, relation: &Relation, what: &str) -> Error {
    refused_about(error, relation, what, &[])
}

fn refused_about(error: &tokio_postgres::Error, relation: &Relation, what: &str, columns: &[&str]) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "changing a table") };
    // Converting what is stored fails with the value in the server's words.
    let names = [relation.name.as_str(), relation.schema.as_str()].into_iter().chain(columns.iter().copied());
    let message = format!("the server says: {}", safe_message(db, names));
    if db.code().code() == sqlstate::LOCK_NOT_AVAILABLE {
        return server_error(db, &format!("table {relation} cannot be {what} yet: other sessions hold it"));
    }
    // What has to do with the statement is final; deadlocks, shutdowns and the like may pass.
    let final_classes = ["0A", "22", "23", "42", "54"];
    let sqlstate = db.code().code();
    if final_classes.iter().any(|class| sqlstate.starts_with(class)) {
        let message = format!("table {relation} cannot be {what}: {message}");
        let error = Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate);
        return match in_the_way(db) {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
    }
    server_error(db, &message)
}

/// What keeps a column from getting another type. The DETAIL of these errors holds names alone.
fn in_the_way(db: &DbError) -> Option<String> {
    // The one since version 16, the other before.
    let of_type = ["RememberAllDependentForRebuilding", "ATExecAlterColumnType"];
    let is_meant = db.code().code() == sqlstate::FEATURE_NOT_SUPPORTED
        && db.routine().is_some_and(|routine| of_type.contains(&routine));
    let detail = db.detail().filter(|_| is_meant)?.trim_end_matches('.');
    Some(format!(
        "{detail}: drop that, and make it again behind the load; or give the column its type yourself, without --evolve widen"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_quoted() {
        let column = |name: &str, type_name: &str| NewColumn {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            evidence: String::new(),
            may_widen: false,
            empty_is_null: false,
        };
        let table = NewTable {
            columns: vec![column("a\"b", "bigint"), column("Group", "text")],
            primary_key: vec!["Group".to_owned()],
        };
        let relation = Relation { schema: "s".to_owned(), name: "t".to_owned() };
        assert_eq!(
            create_sql(&relation, &table),
            "CREATE TABLE \"s\".\"t\" (\"a\"\"b\" bigint, \"Group\" text, PRIMARY KEY (\"Group\"))"
        );
    }
}
