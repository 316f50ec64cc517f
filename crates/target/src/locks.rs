//! Who holds a table that was not free in time: processes, roles and programs leave, no query text.

use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Error, Relation, Result, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// The table, and all that inherit from it: a statement that names it locks children that are no partitions
/// ([`crate::tree`]), too.
const INHERITORS_SQL: &str = "\
    WITH RECURSIVE tree (oid) AS ( \
        SELECT pg_catalog.to_regclass($1)::pg_catalog.oid \
        UNION SELECT h.inhrelid FROM tree JOIN pg_catalog.pg_inherits h ON h.inhparent = tree.oid)";

/// Holders of locks on the table or one of its inheritors, those first that have held theirs longest. Of a
/// prepared transaction nobody is the process.
const HOLDERS_SQL: &str = "\
    , holders AS ( \
        SELECT DISTINCT l.pid FROM pg_catalog.pg_locks l JOIN tree ON tree.oid = l.relation \
        WHERE l.locktype = 'relation' AND l.granted AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid() \
          AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())) \
    SELECT h.pid, a.usename::pg_catalog.text, nullif(a.application_name, ''), a.state \
    FROM holders h LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = h.pid \
    ORDER BY a.xact_start NULLS LAST, h.pid";

/// So many are named.
const NAMED: usize = 3;

/// Of our own errors, those of a table that was not free say this; the others name the job that is in the
/// way.
const BY_OTHERS: &str = "other sessions";

/// The same result; an error because the table was not free in time names who holds it, if somebody still
/// does. The session must be in no transaction.
pub(crate) async fn named<T>(session: &Session, relation: &Relation, done: Result<T>) -> Result<T> {
    match done {
        Err(error)
            if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE)
                && error.message().contains(BY_OTHERS) =>
        {
            match holders(session, relation).await {
                Some(holders) => Err(with_holders(&error, relation, &holders)),
                None => Err(error),
            }
        }
        done => done,
    }
}

fn with_holders(error: &Error, relation: &Relation, holders: &str) -> Error {
    let message = format!("{}; {relation} is held by {holders}", error.message());
    let named = Error::new(error.kind(), message)
        .with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
        .at(error.place().clone());
    match error.hint() {
        Some(hint) => named.with_hint(hint),
        None => named,
    }
}

/// `None`: nobody, or nobody knows. Best effort, since there is an error to tell already.
async fn holders(session: &Session, relation: &Relation) -> Option<String> {
    let name = quote_relation(relation);
    let sql = format!("{INHERITORS_SQL}{HOLDERS_SQL}");
    let asked: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
    let rows = match session.query_of_sessions(&sql, &asked).await {
        // To the role that has logged in the schema may be closed.
        Err(_) => session.client().query_typed(&sql, &asked).await,
        rows => rows,
    };
    let rows = rows.ok()?;
    let named: Vec<String> = rows.iter().take(NAMED).map(holder).collect();
    let more = match rows.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn holder(row: &tokio_postgres::Row) -> String {
    let Some(pid) = row.get::<_, Option<i32>>(0) else { return "a prepared transaction".to_owned() };
    let word = |at: usize, what: &str| {
        row.get::<_, Option<&str>>(at).map(|word| format!("{what}{word}")).unwrap_or_default()
    };
    let told = [word(1, "role "), word(2, "application "), word(3, "")];
    let told: Vec<String> = told.into_iter().filter(|word| !word.is_empty()).collect();
    match told.is_empty() {
        true => format!("process {pid}"),
        false => format!("process {pid} ({})", told.join(", ")),
    }
}
