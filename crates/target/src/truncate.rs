//! A table is emptied before its rows come, once for each job; and the look whether somebody else has.

use crate::copy::server_error::{missing_beside_others, safe_message};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, Step, busy};
use crate::locks::named;
use crate::session::Session;
use crate::sql::quote_relation;
use crate::tree::BY_NAME_SQL;
use howdah_model::{Changes, Error, ErrorKind, Relation, RelationKind, Result, Table, sqlstate};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, SimpleQueryMessage};

/// Tables that are not emptied with it and refer to it or to one of its partitions. The server looks for
/// these where a table is partitioned or has triggers, which a foreign key that is NOT ENFORCED does not give
/// it, and counts that too then (`heap_truncate_check_FKs`).
const FORBIDS_SQL: &str = "\
    SELECT (SELECT pg_catalog.string_agg(DISTINCT pg_catalog.format('%s.%s', n.nspname, r.relname), ', ') \
            FROM tree JOIN pg_catalog.pg_constraint f ON f.confrelid = tree.oid AND f.contype = 'f' \
            JOIN pg_catalog.pg_class t ON t.oid = tree.oid AND (t.relhastriggers OR t.relkind = 'p') \
            JOIN pg_catalog.pg_class r ON r.oid = f.conrelid \
            JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
            WHERE f.conrelid NOT IN (SELECT oid FROM tree))";

/// Tables with foreign keys to it that do something about rows whose key is deleted, by what they do.
const FOLLOWS_SQL: &str = "\
    SELECT f.confdeltype::text, \
           pg_catalog.string_agg(DISTINCT pg_catalog.format('%s.%s', n.nspname, r.relname), ', ') \
    FROM tree JOIN pg_catalog.pg_constraint f ON f.confrelid = tree.oid AND f.contype = 'f' AND f.conparentid = 0::pg_catalog.oid \
    JOIN pg_catalog.pg_class r ON r.oid = f.conrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
    WHERE f.confdeltype IN ('c', 'n', 'd') \
      AND coalesce((pg_catalog.to_jsonb(f) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true) \
    GROUP BY 1 ORDER BY 1";

/// What the server does to rows of other tables when rows of this one are deleted, by their foreign keys: the
/// middle of a sentence; `None`: nothing.
///
/// # Errors
/// Those of the session.
pub async fn follows_delete(session: &Session, relation: &Relation) -> Result<Option<String>> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows =
        session.rows(&format!("{BY_NAME_SQL} {FOLLOWS_SQL}"), &names, "reading the foreign keys").await?;
    let follow = |row: &Row| {
        let (action, tables): (&str, &str) = (row.get(0), row.get(1));
        match action {
            "c" => format!("deletes rows of {tables} too (ON DELETE CASCADE)"),
            "n" => format!("sets columns of {tables} to NULL (ON DELETE SET NULL)"),
            _ => format!("sets columns of {tables} to their default (ON DELETE SET DEFAULT)"),
        }
    };
    let follows: Vec<String> = rows.iter().map(follow).collect();
    Ok((!follows.is_empty()).then(|| follows.join(" and ")))
}

/// Why the table cannot be emptied, before anything is done. The right to do so is among
/// [`crate::session::rights`].
///
/// # Errors
/// Table, with the reason; those of the session.
pub async fn check(session: &Session, relation: &Relation) -> Result<()> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = session
        .rows(&format!("{BY_NAME_SQL} {FORBIDS_SQL}"), &names, "looking whether the table can be emptied")
        .await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if let Some(referring) = row.get::<_, Option<String>>(0) {
        let message = format!("{relation} cannot be emptied: foreign keys of {referring} refer to it");
        let merge = match follows_delete(session, relation).await? {
            Some(follows) => format!("drop them for the load; or give --mode merge --delete-missing, which {follows}"),
            None => "give --mode merge --delete-missing, which the foreign keys are checked for, or drop them for the load"
                .to_owned(),
        };
        return Err(Error::new(ErrorKind::Table, message).with_hint(merge));
    }
    Ok(())
}

/// Empties the table, unless a run of the job has. A partitioned table is emptied with its partitions; tables
/// that inherit from one stay as they are. Sequences go on where they are. What the ledger has noted of
/// chunks of these files, whose rows go with it, is forgotten: where it has lost that the table was emptied,
/// they are not what the table is to hold.
///
/// # Errors
/// Server with 55P03 when the table was not free within the time, or another job is loading into it, which
/// may pass; Table for what the server refuses; those of ledger and session.
pub async fn empty(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    table: &Table,
    lock_timeout_ms: u64,
    file_nos: &[i32],
) -> Result<bool> {
    let relation = &table.relation;
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| refused(&error, relation))
    };
    let work = async {
        run(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; SET LOCAL lock_timeout = {lock_timeout_ms}"
        ))
        .await?;
        if !ledger.claim_step(session, job_id, relation, Step::Truncate).await? {
            run("ROLLBACK").await?;
            return Ok(false);
        }
        let only = if table.kind == RelationKind::Partitioned { "" } else { "ONLY " };
        let name = format!("{only}{}", quote_relation(relation));
        let expect_free = async || match ledger.loading(session, job_id, relation).await? {
            Some(other) => Err(busy(relation, "emptied", &other)),
            None => Ok(()),
        };
        if table.kind == RelationKind::Foreign {
            // LOCK TABLE is not for foreign tables: TRUNCATE (PostgreSQL 14) takes the lock. Not every
            // wrapper can undo it.
            expect_free().await?;
            run(&format!("TRUNCATE TABLE {name}")).await?;
        } else {
            run(&format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")).await?;
        }
        expect_free().await?;
        // Rows of others may have come while the lock was waited for.
        ledger.settle_step(session, job_id, relation, Step::Truncate, 0, Changes::default()).await?;
        ledger.forget_chunks(session, job_id, file_nos).await?;
        if table.kind != RelationKind::Foreign {
            run(&format!("TRUNCATE TABLE {name}")).await?;
        }
        ledger.note_files(session, job_id, relation).await?;
        run("COMMIT").await?;
        Ok(true)
    };
    named(session, relation, session.or_roll_back(work.await).await).await
}

/// Whether the role sees all rows of the table, so that it can tell an empty one.
const SEES_ALL_SQL: &str = "\
    SELECT c.relkind IN ('r', 'p') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') \
           AND NOT pg_catalog.row_security_active(c.oid) \
    FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/// The table holds no row. `None`: the role cannot tell, as it does not see all rows. A lock is waited for no
/// longer than `lock_timeout_ms`.
///
/// # Errors
/// Server with 55P03 when the table was not free within the time; those of the session.
pub async fn is_empty(session: &Session, relation: &Relation, lock_timeout_ms: u64) -> Result<Option<bool>> {
    let fail = |error: tokio_postgres::Error| session_error(&error, "looking whether the table is empty");
    if !sees_all_rows(session, relation).await? {
        return Ok(None);
    }
    let table = quote_relation(relation);
    let sql =
        format!("BEGIN; SET LOCAL lock_timeout = {lock_timeout_ms}; SELECT FROM {table} LIMIT 1; COMMIT");
    match session.client().simple_query(&sql).await {
        Ok(answers) => Ok(Some(!answers.iter().any(|answer| matches!(answer, SimpleQueryMessage::Row(_))))),
        Err(error) => {
            session.roll_back().await;
            Err(fail(error))
        }
    }
}

/// The role sees all rows of the table.
pub(crate) async fn sees_all_rows(session: &Session, relation: &Relation) -> Result<bool> {
    let table = quote_relation(relation);
    match session.client().query_typed(SEES_ALL_SQL, &[(&table, Type::TEXT)]).await {
        // It may not look into the schema.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
        Err(error) => Err(session_error(&error, "looking for the rights on the table")),
        Ok(sees) => Ok(sees.first().is_some_and(|row| row.get(0))),
    }
}

pub(crate) fn refused(error: &tokio_postgres::Error, relation: &Relation) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "emptying the table") };
    if let Some(error) = missing_beside_others(db, relation) {
        return error;
    }
    let names = [relation.name.as_str(), relation.schema.as_str()];
    let message =
        format!("{relation} cannot be emptied: the server says: {}", safe_message(db, names.into_iter()));
    match db.code().code() {
        sqlstate::LOCK_NOT_AVAILABLE => {
            server_error(db, &format!("{relation} cannot be emptied yet: other sessions hold it"))
        }
        state if ["0A", "2B", "42"].iter().any(|class| state.starts_with(class)) => {
            Error::new(ErrorKind::Table, message).with_sqlstate(state)
        }
        _ => server_error(db, &message),
    }
}
