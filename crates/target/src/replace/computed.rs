//! Indexes of a new table are built when its rows are in: what they take besides, asked for before a row is
//! read.
//!
//! The names of a table enter, reasons leave, each with the statement that helps: rights of this role on what
//! definitions name, functions that are not IMMUTABLE any more, and those that find nothing under the
//! `search_path` that builds have from PostgreSQL 17 on. Whether they do is tried with a row of the old
//! table; where it has none, or is another role's, the build tells.

use crate::error::session_error;
use crate::membership::acts_as_sql;
use crate::session::Session;
use crate::session::rights::who;
use crate::undo::SPELLING_SQL;
use crate::undo::capture::{SCHEMAS_SQL, search_path};
use crate::undo::needs::{self, Lacking, What};
use howdah_model::{Relation, Result};
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

/// Rows are looked at, and locks waited for, no longer than this: nobody is to wait for a plan.
const WITHIN: &str = "2s";

/// Computes what the index `$1` keeps of one row, with all names in full.
const TRY_SQL: &str = "\
    SELECT pg_catalog.format('SELECT CASE WHEN %s THEN pg_catalog.num_nulls(%s) END FROM ONLY %I.%I LIMIT 1', \
               coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), 'true'), \
               coalesce(pg_catalog.pg_get_expr(i.indexprs, i.indrelid), 'NULL'), n.nspname, c.relname) \
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE i.indexrelid = $1";

const DOING: &str = "looking what the table's indexes take";

/// What stands in the way: a reason and the statement that helps.
///
/// # Errors
/// Those of the session, which is outside a transaction before and after.
pub(super) async fn in_the_way(session: &Session, old: &Relation) -> Result<Vec<(String, Option<String>)>> {
    let client = session.client();
    let fail = |error: Error| session_error(&error, DOING);
    let begin = format!(
        "BEGIN READ ONLY; {SPELLING_SQL}; SET LOCAL lock_timeout = '{WITHIN}'; SET LOCAL statement_timeout = '{WITHIN}'"
    );
    client.batch_execute(&begin).await.map_err(fail)?;
    let found = look(session, old).await;
    client.batch_execute("ROLLBACK").await.map_err(fail)?;
    found
}

async fn look(session: &Session, old: &Relation) -> Result<Vec<(String, Option<String>)>> {
    let client = session.client();
    let fail = |error: Error| session_error(&error, DOING);
    let path = search_path(&client.query_typed(SCHEMAS_SQL, &[]).await.map_err(fail)?);
    client.batch_execute("SET LOCAL search_path = ''").await.map_err(fail)?;
    let lacking = needs::lacking(session, old).await?;
    if lacking.is_empty() {
        return Ok(Vec::new());
    }
    // The new table is this role's until it takes the old one's place.
    let role = who(session).await?.role;
    let (paths, rights): (Vec<Lacking>, Vec<Lacking>) =
        lacking.into_iter().partition(|lacking| lacking.what == What::Path);
    let mut found = Vec::new();
    for Lacking { what, name, role: of, grant, .. } in rights {
        let reason = match what {
            What::Constancy => format!("the function {name} of an index is not IMMUTABLE"),
            _ if of != role => continue,
            What::Usage => format!("this role lacks USAGE on the schema {name} of an index"),
            _ => format!("this role lacks EXECUTE on the function {name} of an index"),
        };
        found.push((reason, grant));
    }
    if !paths.is_empty() && may_call(session, old).await? {
        found.extend(first_without_path(session, &paths, &path).await?);
    }
    Ok(found)
}

/// Functions of indexes are whatever the table's owner wants them to be, and a plan would call them with this
/// role's rights, which READ ONLY keeps from little: the owner must be able to act as this role anyway.
async fn may_call(session: &Session, old: &Relation) -> Result<bool> {
    let sql = format!(
        "SELECT {} FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_catalog.pg_roles me ON me.rolname = CURRENT_USER WHERE n.nspname = $1 AND c.relname = $2",
        acts_as_sql("c.relowner", "me.oid")
    );
    let names: [(&(dyn ToSql + Sync), Type); 2] = [(&old.schema, Type::TEXT), (&old.name, Type::TEXT)];
    let rows = session.client().query_typed(&sql, &names).await;
    let rows = rows.map_err(|error| session_error(&error, DOING))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The first whose function does not find what it names when its index is built. An error ends the
/// transaction, so no more are told.
async fn first_without_path(
    session: &Session,
    paths: &[Lacking],
    path: &str,
) -> Result<Option<(String, Option<String>)>> {
    for Lacking { index_oid, name, .. } in paths {
        match try_one(session, *index_oid).await {
            Ok(()) => {}
            Err(error) if is_not_found(&error) => {
                let reason = format!(
                    "its indexes are built under a search_path of pg_catalog alone from PostgreSQL 17 on, under which the function {name} \
                     does not find what it names"
                );
                return Ok(Some((reason, Some(format!("ALTER FUNCTION {name} SET search_path = {path}")))));
            }
            // Somebody has the table, or this row is not like those to come.
            Err(error) if error.as_db_error().is_some() => return Ok(None),
            Err(error) => return Err(session_error(&error, DOING)),
        }
    }
    Ok(None)
}

async fn try_one(session: &Session, index_oid: u32) -> std::result::Result<(), Error> {
    let client = session.client();
    client.batch_execute("SET LOCAL search_path = ''").await?;
    let rows = client.query_typed(TRY_SQL, &[(&index_oid, Type::OID)]).await?;
    let Some(sql) = rows.first().map(|row| row.get::<_, String>(0)) else { return Ok(()) };
    client.batch_execute("SET LOCAL search_path = pg_catalog, pg_temp").await?;
    client.batch_execute(&sql).await
}

/// A table, column, function, operator, type or schema of that name.
fn is_not_found(error: &Error) -> bool {
    let states = ["42P01", "42703", "42883", "42704", "3F000"];
    error.as_db_error().is_some_and(|db| states.contains(&db.code().code()))
}
