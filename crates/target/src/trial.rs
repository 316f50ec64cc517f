//! A schema for tables that are only measured: made for one run under a name that nobody has, and dropped
//! with all that is in it. Tables in it have the shape of another: its columns, defaults, indexes and CHECK
//! constraints; no foreign keys, no triggers, no partitions. Defaults draw from sequences in the same schema,
//! so that those of the other table stay where they are.

use crate::error::session_error;
use crate::session::Session;
use crate::session::rights::{Who, who};
use crate::sql::{OWN_TABLESPACE_SQL, quote_ident, quote_literal, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// Columns of `$1` whose default calls a sequence, and whether the sequence's values are such as a new one
/// gives.
const DRAWING_SQL: &str = "\
    SELECT DISTINCT a.attname::pg_catalog.text, \
           a.atttypid IN ('int2'::pg_catalog.regtype::pg_catalog.oid, 'int4'::pg_catalog.regtype::pg_catalog.oid, 'int8'::pg_catalog.regtype::pg_catalog.oid, \
                          'numeric'::pg_catalog.regtype::pg_catalog.oid) \
    FROM pg_catalog.pg_attrdef e \
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = e.oid \
        AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
    JOIN pg_catalog.pg_class c ON c.oid = d.refobjid AND c.relkind = 'S' \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = e.adrelid AND a.attnum = e.adnum \
    WHERE e.adrelid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/// Makes a schema with a new name, and returns the name, unquoted.
///
/// # Errors
/// Server with SQLSTATE 42501 and the GRANT that helps, where the role may not; those of the session.
pub async fn create_schema(session: &Session) -> Result<String> {
    let schema = format!("howdah_bench_{:08x}", fastrand::u32(..));
    let made = session.client().batch_execute(&format!("CREATE SCHEMA {}", quote_ident(&schema))).await;
    match made {
        Ok(()) => Ok(schema),
        Err(error) => Err(schema_error(session, &error).await),
    }
}

async fn schema_error(session: &Session, error: &tokio_postgres::Error) -> Error {
    let mapped = session_error(error, "making a schema for the measurement");
    if error.code() != Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return mapped;
    }
    let Ok(Who { role, database, .. }) = who(session).await else { return mapped };
    let message = format!(
        "a measurement makes a schema of its own, which role {role} may not do in database {database}: {}",
        mapped.message()
    );
    let grant = format!("GRANT CREATE ON DATABASE {} TO {}", quote_ident(&database), quote_ident(&role));
    Error::new(ErrorKind::Server, message)
        .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
        .with_hint(format!("the owner of the database can run {grant}"))
}

/// Makes the empty table `to`, shaped like `from`.
///
/// # Errors
/// Table, for a default that draws from a sequence in a way that cannot be told apart from using it; Server,
/// when the table may not be read (LIKE needs SELECT); those of the session.
pub async fn create_like(session: &Session, from: &Relation, to: &Relation) -> Result<()> {
    let doing = "making a table for the measurement";
    let (source, name) = (quote_relation(from), quote_relation(to));
    let drawing = session.rows(DRAWING_SQL, &[(&source, Type::TEXT)], doing).await?;
    let mut sql = format!("{OWN_TABLESPACE_SQL}; CREATE TABLE {name} (LIKE {source} INCLUDING ALL)");
    for (no, row) in drawing.iter().enumerate() {
        let (column, counts): (String, bool) = (row.get(0), row.get(1));
        if !counts {
            let message = format!(
                "the default of {from}.{column} draws from a sequence, which a measurement must not move"
            );
            return Err(Error::new(ErrorKind::Table, message)
                .with_hint("name a table without such a default, or leave out --table"));
        }
        let own = quote_relation(&Relation { name: format!("{} {no}", to.name), ..to.clone() });
        sql += &format!(
            "; CREATE SEQUENCE {own}; ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT pg_catalog.nextval({literal}); \
             ALTER SEQUENCE {own} OWNED BY {name}.{column}",
            column = quote_ident(&column),
            literal = quote_literal(&own),
        );
    }
    match session.client().batch_execute(&sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(like_error(session, &error, from, doing).await),
    }
}

async fn like_error(session: &Session, error: &tokio_postgres::Error, from: &Relation, doing: &str) -> Error {
    let mapped = session_error(error, doing);
    if error.code() != Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return mapped;
    }
    let Ok(who) = who(session).await else { return mapped };
    let grant = format!("GRANT SELECT ON {} TO {}", quote_relation(from), quote_ident(&who.role));
    mapped.with_hint(format!("a table is made with the shape of {from}, whose owner can run {grant}"))
}

/// Drops a table and the sequences that it owns.
///
/// # Errors
/// Those of the session.
pub async fn drop_table(session: &Session, relation: &Relation) -> Result<()> {
    drop(session, &format!("DROP TABLE IF EXISTS {} CASCADE", quote_relation(relation))).await
}

/// Drops the schema with all that is in it.
///
/// # Errors
/// Those of the session.
pub async fn drop_schema(session: &Session, schema: &str) -> Result<()> {
    drop(session, &format!("DROP SCHEMA IF EXISTS {} CASCADE", quote_ident(schema))).await
}

async fn drop(session: &Session, sql: &str) -> Result<()> {
    let quiet = format!("SET client_min_messages = warning; {sql}");
    session
        .client()
        .batch_execute(&quiet)
        .await
        .map_err(|error| session_error(&error, "dropping what was measured"))
}
