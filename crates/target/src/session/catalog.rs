//! The shape of a table, read from the catalog. A name as the user wrote it enters and is resolved by the
//! server's own rules (case folding, quotes, `search_path`); a [`Table`] leaves, or a Table error for what
//! is not there or takes no rows. One round trip, a second only to suggest names.

use super::foreign::takes_no_rows;
use super::{Session, rights};
use crate::error::session_error;
use crate::sql::quote_ident;
use howdah_model::terminal::in_shell;
use howdah_model::{Column, Error, ErrorKind, Relation, RelationKind, Result, Table, sqlstate};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::Type;

/// How the server finds a table, and how it is found in a schema that the role may not look into.
const RESOLVED: &str = "c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";
const OF_CLOSED_SCHEMA: &str = "(SELECT pg_catalog.cardinality(p) = 2 AND n.nspname = p[1] AND c.relname = p[2] \
    FROM pg_catalog.parse_ident($1) AS p)";

/// NAMEDATALEN - 1, as servers are built that nobody has changed (src/include/pg_config_manual.h).
const NAME_BYTES: usize = 63;

/// Relation and columns in one answer: a relation without columns gives one row of nulls. `tgtype & 68 = 68`
/// is a trigger that is INSTEAD OF (64) and INSERT (4); `tgtype & 7 = 7` one that is FOR EACH ROW (1), BEFORE
/// (2) and INSERT, which may give any column its value.
const TABLE_SQL: &str = concat!(
    "SELECT c.oid, n.nspname, c.relname, c.relkind::text, a.attname, \
           pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid, a.attnotnull, \
           a.atthasdef OR EXISTS (SELECT FROM pg_catalog.pg_type d WHERE d.oid = a.atttypid AND d.typtype = 'd' \
                                  AND d.typdefault IS NOT NULL) \
                OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 7::pg_catalog.int2 = 7), \
           a.attgenerated <> '', a.attidentity <> '', \
           EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 68::pg_catalog.int2 = 68), \
           pg_catalog.pg_is_other_temp_schema(c.relnamespace), \
           ",
    takes_no_rows!(),
    ", a.attnum \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid \
    ORDER BY a.attnum"
);

/// What CREATE TABLE makes of names.
const NEW_SQL: &str = "\
    SELECT p, pg_catalog.current_schema(), EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = p[1]), w \
    FROM pg_catalog.unnest($1) AS w CROSS JOIN LATERAL pg_catalog.parse_ident(w) AS p";

/// Relations that take rows, to compare a misspelt name with; at most so many are looked at.
const NAMES_SQL: &str = "\
    SELECT n.nspname, c.relname, pg_catalog.pg_table_is_visible(c.oid) \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'f', 'v') AND n.nspname <> 'information_schema' \
      AND n.nspname !~ '^pg_'::pg_catalog.text \
    ORDER BY 3 DESC, 1, 2 LIMIT 2000";

/// Reads the relation that this name means to the server.
///
/// # Errors
/// Table, if there is none, the name is malformed or the relation takes no rows; those of the session.
pub async fn read_table(session: &Session, written_name: &str) -> Result<Table> {
    match find_table(session, written_name).await? {
        Some(table) => Ok(table),
        None => Err(missing(session, written_name).await),
    }
}

/// The columns of the relation's primary key, in its order; none if it has none.
///
/// # Errors
/// Those of the session.
pub async fn primary_key(session: &Session, oid: u32) -> Result<Vec<String>> {
    let sql = "SELECT a.attname::text FROM pg_catalog.pg_constraint k \
               CROSS JOIN LATERAL pg_catalog.unnest(k.conkey) WITH ORDINALITY AS c (number, place) \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.number \
               WHERE k.conrelid = $1 AND k.contype = 'p' ORDER BY c.place";
    let rows = session.rows(sql, &[(&oid, Type::OID)], "reading the table's primary key").await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Reads the relation that this name means to the server, if there is one.
///
/// # Errors
/// Table, if the name is malformed or the relation takes no rows; those of the session.
pub async fn find_table(session: &Session, written_name: &str) -> Result<Option<Table>> {
    expect_whole(session, written_name).await?;
    let rows = match session.client().query_typed(TABLE_SQL, &[(&written_name, Type::TEXT)]).await {
        Ok(rows) => rows,
        // What the role lacks besides USAGE on the schema is told with that, when it is known what it needs.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let sql = TABLE_SQL.replace(RESOLVED, OF_CLOSED_SCHEMA);
            match session.client().query_typed(&sql, &[(&written_name, Type::TEXT)]).await {
                Ok(rows) if !rows.is_empty() => rows,
                _ => {
                    let closed = rights::schema_closed(session, written_name).await;
                    return Err(closed.unwrap_or_else(|| name_error(&error, written_name)));
                }
            }
        }
        Err(error) => return Err(name_error(&error, written_name)),
    };
    let Some(first) = rows.first() else { return Ok(None) };
    let relation = Relation { schema: first.get(1), name: first.get(2) };
    let kind = relation_kind(first, &relation)?;
    let columns: Vec<Column> = rows.iter().filter_map(column).collect();
    if columns.is_empty() {
        return Err(Error::new(ErrorKind::Table, format!("table {relation} has no columns"))
            .with_hint("give it columns with ALTER TABLE, or name another with --table"));
    }
    Ok(Some(Table { relation, oid: first.get(0), kind, columns }))
}

/// The relation that CREATE TABLE would make under this name: with a schema, or in the first of the search
/// path.
///
/// # Errors
/// Table, if the name is malformed or the schema does not exist; those of the session.
pub async fn new_relation(session: &Session, written_name: &str) -> Result<Relation> {
    expect_whole(session, written_name).await?;
    match session.client().query_typed(NEW_SQL, &[(&[written_name].as_slice(), Type::TEXT_ARRAY)]).await {
        Ok(rows) => made(rows.first(), written_name),
        Err(error) => Err(name_error(&error, written_name)),
    }
}

/// Those of these names under which no table is, and the relations that CREATE TABLE would make, in one round
/// trip. A name that is left out is another's, or has to be asked for alone: that tells what is wrong with
/// it.
///
/// # Errors
/// Those of the session.
pub async fn new_relations(
    session: &Session,
    written_names: &[String],
) -> Result<BTreeMap<String, Relation>> {
    let names: Vec<&str> =
        written_names.iter().map(String::as_str).filter(|name| name.len() <= NAME_BYTES).collect();
    let sql = format!("{NEW_SQL} WHERE pg_catalog.to_regclass(w) IS NULL");
    let rows = match session.client().query_typed(&sql, &[(&names, Type::TEXT_ARRAY)]).await {
        Ok(rows) => rows,
        Err(error) if error.as_db_error().is_some() => return Ok(BTreeMap::new()),
        Err(error) => return Err(session_error(&error, "reading which tables are there")),
    };
    let relation = |row| {
        let name: String = Row::get(row, 3);
        made(Some(row), &name).ok().map(|relation| (name, relation))
    };
    Ok(rows.iter().filter_map(relation).collect())
}

/// From a row of [`NEW_SQL`].
fn made(row: Option<&Row>, written_name: &str) -> Result<Relation> {
    let parts: Vec<String> = row.map(|row| row.get(0)).unwrap_or_default();
    let current: Option<String> = row.and_then(|row| row.get(1));
    let schema_exists = row.is_some_and(|row| row.get(2));
    match (parts.as_slice(), current) {
        ([name], Some(schema)) => Ok(Relation { schema, name: name.clone() }),
        ([_], None) => {
            Err(Error::new(ErrorKind::Table, "the search_path names no schema to make the table in")
                .with_hint("name one: --table schema.name"))
        }
        ([schema, name], _) if schema_exists => Ok(Relation { schema: schema.clone(), name: name.clone() }),
        ([schema, _], _) => {
            Err(Error::new(ErrorKind::Table, format!("schema {schema} does not exist"))
                .with_hint(NO_SCHEMA_HINT))
        }
        _ => Err(Error::new(ErrorKind::Table, format!("\"{written_name}\" is no name of a table"))
            .with_hint("write schema.name, with double quotes around parts that need them")),
    }
}

/// The server cuts names that are too long for it (NAMEDATALEN), and two of them may mean one table then.
async fn expect_whole(session: &Session, written_name: &str) -> Result<()> {
    // No server has names that are shorter.
    if written_name.len() <= NAME_BYTES {
        return Ok(());
    }
    let sql = "SELECT part, part::pg_catalog.name::pg_catalog.text FROM pg_catalog.unnest(pg_catalog.parse_ident($1)) AS part \
               WHERE part <> part::pg_catalog.name::pg_catalog.text";
    let cut = match session.client().query_typed(sql, &[(&written_name, Type::TEXT)]).await {
        Ok(rows) => rows,
        Err(error) => return Err(name_error(&error, written_name)),
    };
    let Some(row) = cut.first() else { return Ok(()) };
    let (part, kept): (String, String) = (row.get(0), row.get(1));
    let message = format!(
        "the name {part} has {} bytes, expected {} at most: the server would take {kept} for it",
        part.len(),
        kept.len()
    );
    Err(Error::new(ErrorKind::Table, message)
        .with_hint("name the table with --table; of files that name it ({table}), give them shorter names"))
}

/// Whether money is written with a decimal point in this session (`lc_monetary`,
/// src/backend/utils/adt/cash.c).
///
/// # Errors
/// Those of the session.
pub async fn money_has_point(session: &Session) -> Result<bool> {
    let sql =
        "SELECT pg_catalog.strpos(1.25::pg_catalog.numeric::pg_catalog.money::pg_catalog.text, '1.25') > 0";
    let asked = session.client().query_typed_one(sql, &[]).await;
    asked.map(|row| row.get(0)).map_err(|error| session_error(&error, "reading how money is written"))
}

/// The order in which this session reads days in numbers (DateStyle), as `--types` writes it: `m/d/y`.
///
/// # Errors
/// Those of the session.
pub async fn date_order(session: &Session) -> Result<String> {
    let sql = "SELECT CASE WHEN pg_catalog.strpos(style, 'DMY') > 0 THEN 'd/m/y' \
               WHEN pg_catalog.strpos(style, 'YMD') > 0 THEN 'y/m/d' ELSE 'm/d/y' END \
               FROM pg_catalog.current_setting('DateStyle') AS style";
    let asked = session.client().query_typed_one(sql, &[]).await;
    asked.map(|row| row.get(0)).map_err(|error| session_error(&error, "reading the order of days"))
}

fn relation_kind(row: &Row, relation: &Relation) -> Result<RelationKind> {
    if row.get(12) {
        let message = format!("{relation} is a temporary table of another session, which alone can write it");
        return Err(Error::new(ErrorKind::Table, message).with_hint(
            "load into a table that is not temporary; that session can INSERT its rows from there",
        ));
    }
    if row.get(13) {
        let message = format!("{relation} is a foreign table that takes no INSERT");
        return Err(Error::new(ErrorKind::Table, message).with_hint(
            "load into what it stands for, where that is; its wrapper, or its option updatable, says what may be done",
        ));
    }
    let what = match row.get::<_, &str>(3) {
        "r" => return Ok(RelationKind::Table),
        "p" => return Ok(RelationKind::Partitioned),
        "f" => return Ok(RelationKind::Foreign),
        "v" if row.get(11) => return Ok(RelationKind::View),
        "v" => {
            let message =
                format!("{relation} is a view without an INSTEAD OF INSERT trigger; expected a table");
            return Err(Error::new(ErrorKind::Table, message).with_hint("load the table behind the view"));
        }
        "m" => "a materialized view",
        "i" | "I" => "an index",
        "S" => "a sequence",
        "c" => "a composite type",
        _ => "no table",
    };
    let hint = match what {
        "a materialized view" => {
            "load the tables that it is made from, and REFRESH MATERIALIZED VIEW; or name another with --table"
        }
        _ => "name a table with --table",
    };
    Err(Error::new(ErrorKind::Table, format!("{relation} is {what}; expected a table")).with_hint(hint))
}

fn column(row: &Row) -> Option<Column> {
    let name = row.get::<_, Option<String>>(4)?;
    let (generated, identity): (bool, bool) = (row.get(9), row.get(10));
    Some(Column {
        name,
        attnum: row.get(14),
        type_name: row.get(5),
        type_oid: row.get(6),
        not_null: row.get(7),
        // A generation expression is kept where defaults are, but is none.
        has_default: (row.get::<_, bool>(8) && !generated) || identity,
        generated,
        identity,
    })
}

/// A malformed name (class 42) is the user's; anything else is the session's.
fn name_error(error: &tokio_postgres::Error, written_name: &str) -> Error {
    let mapped = session_error(error, "reading the table's columns");
    match error.code() {
        Some(code)
            if matches!(
                code.code(),
                sqlstate::INVALID_NAME | sqlstate::SYNTAX_ERROR | sqlstate::FEATURE_NOT_SUPPORTED
            ) =>
        {
            let message = format!("\"{written_name}\" is no name of a table: {}", mapped.message());
            Error::new(ErrorKind::Table, message)
                .with_hint("write schema.name, with double quotes around parts that need them")
        }
        // Whether a foreign table takes rows its wrapper says, whose library the server loads for that.
        Some(code) if *code == SqlState::UNDEFINED_FILE || is_of_library(error) => {
            let message =
                format!("{written_name} cannot be asked whether it takes rows: {}", mapped.message());
            Error::new(ErrorKind::Table, message).with_sqlstate(code.code()).with_hint(
                "install on the server what its foreign data wrapper is part of, made for this version of PostgreSQL, or load into the \
                 table that it stands for",
            )
        }
        Some(code) if code.code().starts_with("42") => mapped.with_kind(ErrorKind::Table),
        _ => mapped,
    }
}

/// The library is there, and is none for this server (`src/backend/utils/fmgr/dfmgr.c`).
fn is_of_library(error: &tokio_postgres::Error) -> bool {
    let routine = error.as_db_error().and_then(DbError::routine);
    routine.is_some_and(|routine| ["internal_load_library", "incompatible_module_error"].contains(&routine))
}

const NO_SCHEMA_HINT: &str = "create it first: howdah makes tables, not schemas";

/// The schema of a name that has one, as SQL writes it, where there is no such schema.
const NO_SCHEMA_SQL: &str = "\
    SELECT pg_catalog.quote_ident(parts[pg_catalog.cardinality(parts) OPERATOR(pg_catalog.-) 1]) \
    FROM pg_catalog.parse_ident($1) AS parts \
    WHERE pg_catalog.cardinality(parts) OPERATOR(pg_catalog.>) 1 AND NOT EXISTS ( \
        SELECT FROM pg_catalog.pg_namespace \
        WHERE nspname::pg_catalog.text OPERATOR(pg_catalog.=) parts[pg_catalog.cardinality(parts) OPERATOR(pg_catalog.-) 1])";

/// The error of a name under which there is no relation: with such as are close to it.
pub async fn missing(session: &Session, written_name: &str) -> Error {
    // Only words depend on these: their failure is not worth reporting.
    let schema = session.client().query_typed(NO_SCHEMA_SQL, &[(&written_name, Type::TEXT)]).await;
    let schema: Option<String> = schema.ok().and_then(|rows| Some(rows.first()?.get(0)));
    let why = schema.as_ref().map_or_else(String::new, |schema| format!(": there is no schema {schema}"));
    let error = Error::new(ErrorKind::Table, format!("table {written_name} does not exist{why}"));
    let Ok(rows) = session.client().query_typed(NAMES_SQL, &[]).await else { return error };
    let wanted = bare_name(written_name);
    let close = |row: &&Row| {
        let name: &str = row.get(1);
        distance_at_most_2(&wanted, &name.to_lowercase())
    };
    let name = |row: &Row| {
        let (schema, name, visible): (&str, &str, bool) = (row.get(0), row.get(1), row.get(2));
        if visible { to_type(&[name]) } else { to_type(&[schema, name]) }
    };
    let close: Vec<String> = rows.iter().filter(close).take(5).map(name).collect();
    match (close.is_empty(), schema) {
        (false, _) => error.with_hint(format!("did you mean {}?", close.join(" or "))),
        (true, Some(_)) => error.with_hint(NO_SCHEMA_HINT),
        (true, None) => error,
    }
}

/// A name as it has to be written after `--table`, in a shell: that takes away quotes of its own.
fn to_type(parts: &[&str]) -> String {
    let plain = |part: &str| {
        let begins = part.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        begins && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    if parts.iter().all(|part| plain(part)) {
        return parts.join(".");
    }
    let quoted: Vec<String> = parts.iter().map(|part| quote_ident(part)).collect();
    format!("--table {}", in_shell(&quoted.join(".")))
}

/// The last part of a written name, unquoted and in lower case.
fn bare_name(written_name: &str) -> String {
    let last = written_name.rsplit('.').next().unwrap_or(written_name);
    last.trim().trim_matches('"').to_lowercase()
}

/// Levenshtein distance of 2 or less, in words long enough for that to mean something.
fn distance_at_most_2(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()] <= 2.min(a.len() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_near_and_others_are_not() {
        for (a, b, near) in [
            ("title_basic", "title_basics", true),
            ("flihgts", "flights", true),
            ("t", "u", false),
            ("t", "t", true),
            ("orders", "lineitem", false),
        ] {
            assert_eq!(distance_at_most_2(a, b), near, "{a} {b}");
        }
        assert_eq!(to_type(&["s", "t_1"]), "s.t_1");
        assert_eq!(to_type(&["Orders"]), "--table '\"Orders\"'");
        assert_eq!(to_type(&["s", "it's"]), "--table '\"s\".\"it'\\''s\"'");
        assert_eq!(bare_name("Public.\"Titles\""), "titles");
    }
}
