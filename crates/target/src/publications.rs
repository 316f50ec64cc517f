//! Publications: those that take in tables as they are made, where a subscriber that has not got them stops,
//! and stays so; and what the server lets nobody do with rows that are published.

use crate::error::{server_error, session_error};
use crate::locks::named;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::{ToSql, Type};

/// `FOR ALL TABLES`; and FOR TABLES IN SCHEMA, which there is since PostgreSQL 15.
const OF_ALL_SQL: &str = "SELECT p.pubname::pg_catalog.text, NULL::pg_catalog.text FROM pg_catalog.pg_publication p WHERE p.puballtables";
const OF_SCHEMA_SQL: &str = " \
    UNION ALL SELECT p.pubname::pg_catalog.text, n.nspname::pg_catalog.text FROM pg_catalog.pg_publication p \
    JOIN pg_catalog.pg_publication_namespace s ON s.pnpubid = p.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = s.pnnspid WHERE n.nspname = ANY ($1)";

/// What the publications that take in tables made in these schemas are of, each once; none if nothing is
/// made.
///
/// # Errors
/// Those of the session.
pub async fn of_new_tables(session: &Session, schemas: &[String]) -> Result<Vec<String>> {
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    let of_schema = if session.server_version() >= 150_000 { OF_SCHEMA_SQL } else { "" };
    let sql = format!("{OF_ALL_SQL}{of_schema} ORDER BY 1, 2");
    let schemas: [(&(dyn ToSql + Sync), Type); 1] = [(&schemas, Type::TEXT_ARRAY)];
    let asked = if of_schema.is_empty() { &[][..] } else { &schemas };
    let rows = session.rows(&sql, asked, "reading the publications").await?;
    let told = |row: &tokio_postgres::Row| {
        let (name, schema): (&str, Option<&str>) = (row.get(0), row.get(1));
        let of =
            schema.map_or("of all tables".to_owned(), |schema| format!("of all tables in schema {schema}"));
        format!("the publication {name} is {of}")
    };
    Ok(rows.iter().map(told).collect())
}

/// Those that take in new partitions of the table `$1`, by what they are made of: a subscriber gets their
/// rows under the names of the partitions, unless `publish_via_partition_root` is set.
const OF_PARTITIONS_SQL: &str = "\
    SELECT DISTINCT p.pubname::pg_catalog.text, r.prrelid::pg_catalog.regclass::pg_catalog.text \
    FROM pg_catalog.pg_partition_ancestors($1::pg_catalog.text::pg_catalog.regclass) AS a (relid) \
    JOIN pg_catalog.pg_publication_rel r ON r.prrelid = a.relid \
    JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid \
    WHERE NOT p.pubviaroot ORDER BY 1, 2";

/// What the publications are of that take in partitions made of this partitioned table.
///
/// # Errors
/// Those of the session.
pub async fn of_new_partitions(session: &Session, relation: &Relation) -> Result<Vec<String>> {
    let name = quote_relation(relation);
    let rows = session.rows(OF_PARTITIONS_SQL, &[(&name, Type::TEXT)], "reading the publications").await?;
    let told = |row: &tokio_postgres::Row| {
        let (publication, table): (&str, &str) = (row.get(0), row.get(1));
        format!("the publication {publication} is of {table}")
    };
    Ok(rows.iter().map(told).collect())
}

/// Publications of a table, or of its partitions or of what it is a partition of, that leave TRUNCATE out.
const WITHOUT_TRUNCATE_SQL: &str = "\
    SELECT DISTINCT p.pubname::pg_catalog.text FROM pg_catalog.pg_publication p, \
        LATERAL pg_catalog.pg_get_publication_tables(@name@) AS t \
    WHERE NOT p.pubtruncate AND p.pubinsert \
      AND (t.relid IN (SELECT a.relid FROM pg_catalog.pg_partition_tree($1::pg_catalog.text::pg_catalog.regclass) a) \
           OR t.relid IN (SELECT a.relid FROM pg_catalog.pg_partition_ancestors($1::pg_catalog.text::pg_catalog.regclass) a) \
           OR t.relid = $1::pg_catalog.text::pg_catalog.regclass) \
    ORDER BY 1";

/// Publications whose subscribers get the rows of this table, and keep those that TRUNCATE takes from it.
///
/// # Errors
/// Those of the session.
pub async fn without_truncate(session: &Session, relation: &Relation) -> Result<Vec<String>> {
    let name = quote_relation(relation);
    // One name, or several.
    let argument = if session.server_version() >= 160_000 {
        "VARIADIC ARRAY[p.pubname::pg_catalog.text]"
    } else {
        "p.pubname::pg_catalog.text"
    };
    let sql = WITHOUT_TRUNCATE_SQL.replace("@name@", argument);
    let rows = session.rows(&sql, &[(&name, Type::TEXT)], "reading the publications").await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Refuses a table of which the server lets nobody change rows, by setting `column` (unquoted), or delete
/// them: it is published, and nothing tells subscribers which row is meant, or a row filter or column list
/// looks at more than that (`CheckCmdReplicaIdentity`). The server says so as soon as it begins such a
/// statement, of all partitions: here one that is not carried out.
///
/// # Errors
/// Table, with what the server says; Server with 55P03 when the table was not free within the time; those of
/// the session.
pub async fn expect_identified(
    session: &Session,
    relation: &Relation,
    column: Option<&str>,
    deletes: bool,
    lock_timeout_ms: u64,
) -> Result<()> {
    // Planning takes long where there are thousands of partitions.
    let is_any =
        session.rows("SELECT FROM pg_catalog.pg_publication LIMIT 1", &[], "reading the publications");
    if is_any.await?.is_empty() {
        return Ok(());
    }
    let table = quote_relation(relation);
    // What is volatile leaves no partition out.
    let update = column.map(quote_ident).map(|column| format!("UPDATE {table} SET {column} = {column}"));
    let delete = deletes.then(|| format!("DELETE FROM {table}"));
    for statement in update.into_iter().chain(delete) {
        let asked = begin(session, &statement, lock_timeout_ms).await;
        session.roll_back().await;
        let Err(error) = asked else { continue };
        match error.as_db_error() {
            Some(db) if db.routine() == Some("CheckCmdReplicaIdentity") => {
                return Err(not_identified(relation, db));
            }
            Some(db) if db.code() == &SqlState::LOCK_NOT_AVAILABLE => {
                let message = format!(
                    "whether rows of {relation}, which is in a publication, may be changed cannot be asked yet: other sessions hold it"
                );
                return named(session, relation, Err(server_error(db, &message))).await;
            }
            // Rights and rules are asked about by others.
            Some(_) => return Ok(()),
            None => return Err(session_error(&error, "asking whether published rows may be changed")),
        }
    }
    Ok(())
}

/// Has the statement begun, and not carried out. The server locks the table for that. Leaves the transaction
/// open.
async fn begin(
    session: &Session,
    statement: &str,
    lock_timeout_ms: u64,
) -> std::result::Result<(), tokio_postgres::Error> {
    let sql = format!(
        "BEGIN; SET LOCAL lock_timeout = {lock_timeout_ms}; EXPLAIN {statement} WHERE pg_catalog.random() < 0"
    );
    session.client().simple_query(&sql).await.map(drop)
}

fn not_identified(relation: &Relation, db: &DbError) -> Error {
    let why = db.detail().map_or_else(String::new, |detail| format!(" ({detail})"));
    let message = format!(
        "rows of {relation} can come on top only, as it is in a publication: the server says: {}{why}",
        db.message()
    );
    Error::new(ErrorKind::Table, message).with_sqlstate(db.code().code()).with_hint(
        "its owner can give it, or its partition that is named, a primary key or ALTER TABLE ... REPLICA IDENTITY FULL, or for a row filter or \
         column list an identity with all columns of that; or give --mode insert-new, without --delete-missing",
    )
}
