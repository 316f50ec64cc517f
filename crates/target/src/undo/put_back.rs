//! Puts back what one entry of the journal says, in one transaction with the note that it is done.
//!
//! Safe to repeat and to do twice at once: the entry's row is locked first. What somebody has put back by
//! hand is recognised by its definition.

use super::entries::WORKERS;
use super::reopen::reopen;
use super::{RUN_BY_ANOTHER, SPELLING_SQL, meaning, needs};
use crate::build::{Build, lift_sql, with_lift};
use crate::copy::server_error::safe_message;
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, NewUndo, Undo, UndoKind};
use crate::locks;
use crate::same_table;
use crate::session::Session;
use crate::session::rights::who;
use crate::sql::{quote_ident, quote_relation};
use crate::staging;
use futures_util::future;
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// How long a lock is waited for at a time, in milliseconds: longer would make others wait behind it for
/// somebody else.
pub const LOCK_WITHIN_MS: u64 = 5000;

/// What came of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutBack {
    /// It is back.
    Done,
    /// It was there already, the same; somebody has put it back by hand.
    WasThere,
    /// Somebody has marked another index of the table meanwhile, which stays.
    MarkedAnother,
    /// The table is gone.
    TableGone,
    /// The same, and another one has its name.
    TableAnother,
    /// The trigger is gone.
    TriggerGone,
    /// The table is not a partition of that other one any more.
    NoPartition,
    /// Another process has put it back meanwhile.
    ByAnother,
    /// What it goes on with was dropped meanwhile: the entries of these numbers, of which it is one, are
    /// open.
    Again(Vec<i64>),
}

/// How an entry is put back.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// A build takes no more parallel workers than this, where it is given, and no more than the server's own
    /// setting. Its memory is then what suits its sort.
    pub workers_max: Option<u32>,
    /// The commit waits for the disk. One that does not must be followed by [`crate::finish::barrier`] and a
    /// look into the journal, whether a crash has opened the entry again.
    pub durable: bool,
    /// A lock is waited for so long at a time.
    pub lock_within_ms: u64,
}

/// Puts one entry back.
///
/// # Errors
/// Table, when rows contradict it (with the server's SQLSTATE) or when something else has its name; Server
/// with 55P03 when the table was not free within that time, which may pass; those of ledger and session.
pub async fn put_back(session: &Session, ledger: &Ledger, entry: &Undo, how: How) -> Result<PutBack> {
    if entry.change.kind == UndoKind::Staging {
        staging::own::expect_name(ledger, &entry.job_id, &entry.change.relation)?;
    }
    let mut done = in_transaction(session, ledger, entry, how).await;
    let mut looks_again = true;
    let error = loop {
        let Err(error) = done else { return done };
        session.roll_back().await;
        let of_missing = [sqlstate::UNDEFINED_OBJECT, sqlstate::UNDEFINED_TABLE];
        if error.sqlstate().is_some_and(|code| of_missing.contains(&code))
            && let Some(done) = reopen(session, ledger, entry, how.durable).await?
        {
            return Ok(done);
        }
        if !(std::mem::take(&mut looks_again) && error.message().ends_with(JUST_MADE)) {
            break error;
        }
        // Somebody may have made the very same by hand, which the server says only when that is there.
        done = in_transaction(session, ledger, entry, how).await;
    };
    match error.sqlstate() {
        Some(sqlstate::INSUFFICIENT_PRIVILEGE) => Err(granted(session, error, &entry.change).await),
        Some(sqlstate::CONFIGURATION_LIMIT_EXCEEDED) => {
            Err(with_lift(session, error, "howdah restore").await)
        }
        // The name came to another table while this one was waited for.
        Some(same_table::ANOTHER_SQLSTATE) => {
            Err(find_table(session, &entry.change).await.err().unwrap_or(error))
        }
        _ => locks::named(session, &entry.change.relation, Err(error)).await,
    }
}

/// What an error ends with where two sessions made something of one name at the same time.
const JUST_MADE: &str = "another session has just made something of this name";

/// The error with the GRANT that helps, where the role lacks what is known to be needed.
async fn granted(session: &Session, error: Error, change: &NewUndo) -> Error {
    let sql = "SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE'), \
                      pg_catalog.has_schema_privilege(c.relnamespace, 'CREATE'), \
                      pg_catalog.pg_get_userbyid(c.relowner)::text \
               FROM pg_catalog.pg_class c WHERE c.oid = $1";
    // Only a hint depends on these.
    let Ok(rows) = session.client().query_typed(sql, &[(&change.table_oid, Type::OID)]).await else {
        return error;
    };
    let (Some(row), Ok(who)) = (rows.first(), who(session).await) else { return error };
    let role = quote_ident(&who.role);
    match (row.get(0), row.get(1)) {
        (false, _) => {
            let owner = quote_ident(row.get(2));
            error.with_hint(format!("{RUN_BY_ANOTHER} the table's owner {owner}, or a superuser"))
        }
        (true, false) => {
            let schema = quote_ident(&change.relation.schema);
            error.with_hint(format!(
                "the schema's owner can run GRANT CREATE ON SCHEMA {schema} TO {role}, then howdah restore"
            ))
        }
        (true, true) => match needs::grants(session, change).await {
            grants if grants.is_empty() => error,
            grants => {
                error.with_hint(format!("the owner can run {}, then howdah restore", grants.join("; ")))
            }
        },
    }
}

async fn in_transaction(session: &Session, ledger: &Ledger, entry: &Undo, how: How) -> Result<PutBack> {
    let change = &entry.change;
    let commit = if how.durable { DURABLE_SQL } else { "SET LOCAL synchronous_commit = off" };
    let run =
        async |sql: &str| session.client().batch_execute(sql).await.map_err(|error| refused(&error, change));
    run(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {commit}; {SPELLING_SQL}")).await?;
    if !ledger.take_undo(session, entry, is_partitioned(change.kind)).await? {
        run("ROLLBACK").await?;
        return Ok(PutBack::ByAnother);
    }
    let undone = ledger.undone_sql(entry.number);
    let table = find_table(session, change).await?;
    let found = match &table {
        None => Some(without_table(session, change).await?),
        Some(table) => found(session, change, table).await?,
    };
    let lock_within = format!("SET LOCAL lock_timeout = {}", how.lock_within_ms);
    if let Some(found) = found {
        let mut statements = vec![lock_within];
        if found == PutBack::WasThere && table.is_some() {
            statements.extend(unsaid(session, change).await?);
        }
        if found == PutBack::TableGone && change.kind == UndoKind::Staging {
            statements.extend(staging::drop_beside_sql(&change.relation));
        }
        statements.extend([undone, "COMMIT".to_owned()]);
        run(&statements.join(";\n")).await?;
        return Ok(found);
    }
    let mut put_back = without_others(session, change).await?;
    let done = if put_back.len() < change.statements.len() { PutBack::MarkedAnother } else { PutBack::Done };
    if is_partitioned(change.kind) {
        // Nobody adds a partition from here on.
        let lock = format!(
            "{lock_within}; LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE",
            quote_relation(&change.relation)
        );
        run(&lock).await?;
        if ledger.has_new_partitions(session, entry).await? {
            put_back = put_back.iter().map(|sql| on_all_partitions(sql, &change.name)).collect();
        }
    }
    let mut statements = vec![lock_within, lift_sql(session.server_version())];
    if let (Some(workers), Some(table)) = (how.workers_max, table) {
        let build = Build {
            compared_by_libc: change.compared_by_libc,
            table_bytes: table.bytes.unsigned_abs(),
            table_workers: table.workers(),
        };
        statements.extend(build.settings(workers));
    }
    let expect = same_table::expect_sql(change.table_oid, &change.relation);
    match change.kind {
        // Behind this there is no such table any more.
        UndoKind::Staging => {
            let lock =
                format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", quote_relation(&change.relation));
            statements.extend([lock, expect]);
            statements.extend(put_back);
        }
        _ => {
            statements.extend(put_back);
            statements.extend(meaning::expect_sql(change));
            statements.push(expect);
        }
    }
    statements.extend([undone, "COMMIT".to_owned()]);
    // One message: the server goes through with it even if the client is killed meanwhile.
    run(&statements.join(";\n")).await?;
    Ok(done)
}

/// What there is of it already.
async fn found(session: &Session, change: &NewUndo, table: &Table) -> Result<Option<PutBack>> {
    match change.kind {
        UndoKind::Attach => is_attached(session, change).await,
        UndoKind::Trigger => is_enabled(session, change).await,
        UndoKind::Workers => Ok((!table.options.contains(&change.definition)).then_some(PutBack::WasThere)),
        _ => Ok(is_there(session, change).await?.then_some(PutBack::WasThere)),
    }
}

/// What the entry says of an index or constraint that somebody has put back by hand, besides its definition,
/// unless that has been said of it as well.
async fn unsaid(session: &Session, change: &NewUndo) -> Result<Vec<String>> {
    // Comments are read from their catalog: before PostgreSQL 14 `obj_description` looks operators up in the
    // `search_path`.
    let sql = "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_description d \
                                  WHERE d.objoid = pg_catalog.to_regclass($1)::pg_catalog.oid AND d.objsubid = 0 \
                                    AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid), \
                      NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a \
                                  WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attstattarget >= 0), \
                      NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_description d ON d.objoid = c.oid \
                                  WHERE c.conrelid = $2 AND c.conname = $3 AND d.objsubid = 0 \
                                    AND d.classoid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid)";
    let index = change.index();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&index, Type::TEXT), (&change.table_oid, Type::OID), (&change.name, Type::TEXT)];
    let rows = session.rows(sql, &parameters, "looking for what is to be put back").await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let sayings = [
        ("COMMENT ON INDEX ".to_owned(), row.get(0)),
        (format!("ALTER INDEX {index} ALTER COLUMN "), row.get(1)),
        ("COMMENT ON CONSTRAINT ".to_owned(), row.get(2)),
    ];
    let is_unsaid =
        |sql: &&String| sayings.iter().any(|(begins, is_free)| *is_free && sql.starts_with(begins.as_str()));
    Ok(change.statements.iter().filter(is_unsaid).cloned().collect())
}

/// The statements of an entry without marks in whose place somebody has set others meanwhile. A table whose
/// index is dropped loses that index's marks, but not that its replica identity is an index.
async fn without_others(session: &Session, change: &NewUndo) -> Result<Vec<String>> {
    if change.kind != UndoKind::Marks {
        return Ok(change.statements.clone());
    }
    let sql = "WITH other AS (SELECT i.indisclustered, i.indisreplident FROM pg_catalog.pg_index i \
                              WHERE i.indrelid = $1 AND i.indexrelid IS DISTINCT FROM pg_catalog.to_regclass($2)::pg_catalog.oid) \
               SELECT NOT EXISTS (SELECT FROM other WHERE indisclustered), \
                      c.relreplident = 'i' AND NOT EXISTS (SELECT FROM other WHERE indisreplident) \
               FROM pg_catalog.pg_class c WHERE c.oid = $1";
    let index = change.index();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&change.table_oid, Type::OID), (&index, Type::TEXT)];
    let rows = session.rows(sql, &parameters, "looking for what is to be put back").await?;
    let Some(row) = rows.first() else { return Ok(change.statements.clone()) };
    let table = quote_relation(&change.relation);
    let marks = [
        (format!("ALTER TABLE {table} CLUSTER ON "), row.get(0)),
        (format!("ALTER TABLE {table} REPLICA IDENTITY "), row.get(1)),
    ];
    let is_wanted =
        |sql: &&String| marks.iter().all(|(begins, is_free)| *is_free || !sql.starts_with(begins.as_str()));
    Ok(change.statements.iter().filter(is_wanted).cloned().collect())
}

/// The table is gone; another one may have its name.
async fn without_table(session: &Session, change: &NewUndo) -> Result<PutBack> {
    let sql = "SELECT FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&change.relation.schema, Type::TEXT), (&change.relation.name, Type::TEXT)];
    let rows = session.rows(sql, &names, "looking for the table").await?;
    Ok(if rows.is_empty() { PutBack::TableGone } else { PutBack::TableAnother })
}

fn is_partitioned(kind: UndoKind) -> bool {
    matches!(kind, UndoKind::PartitionedIndex | UndoKind::PartitionedConstraint)
}

/// Without ONLY, the server takes for each partition the index that fits, of which those that were dropped
/// are back by now, and builds one where there is none: for partitions that have come since.
fn on_all_partitions(sql: &str, name: &str) -> String {
    if let Some(rest) = sql.strip_prefix("ALTER TABLE ONLY ") {
        return format!("ALTER TABLE {rest}");
    }
    // The server quotes names where they need it.
    for spelled in [name.to_owned(), quote_ident(name)] {
        for create in ["CREATE INDEX", "CREATE UNIQUE INDEX"] {
            if let Some(rest) = sql.strip_prefix(&format!("{create} {spelled} ON ONLY ")) {
                return format!("{create} {spelled} ON {rest}");
            }
        }
    }
    sql.to_owned()
}

/// Whether the trigger is disabled no more, which is somebody's wish, or gone.
async fn is_enabled(session: &Session, change: &NewUndo) -> Result<Option<PutBack>> {
    let sql = "SELECT tgenabled = 'D' FROM pg_catalog.pg_trigger WHERE tgrelid = $1 AND tgname = $2";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&change.table_oid, Type::OID), (&change.name, Type::TEXT)];
    let rows = session.rows(sql, &parameters, "looking for what is to be put back").await?;
    Ok(match rows.first().map(|row| row.get(0)) {
        Some(true) => None,
        Some(false) => Some(PutBack::WasThere),
        None => Some(PutBack::TriggerGone),
    })
}

/// Whether the index is part of its parent's, or has no business there any more.
async fn is_attached(session: &Session, change: &NewUndo) -> Result<Option<PutBack>> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits h \
                              WHERE h.inhrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND h.inhparent = i.indexrelid), \
                      EXISTS (SELECT FROM pg_catalog.pg_inherits h \
                              WHERE h.inhrelid = $2 AND h.inhparent = i.indrelid) \
               FROM pg_catalog.pg_index i WHERE i.indexrelid = pg_catalog.to_regclass($3)::pg_catalog.oid";
    let index = change.index();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&index, Type::TEXT), (&change.table_oid, Type::OID), (&change.definition, Type::TEXT)];
    let rows = session.rows(sql, &parameters, "looking for what is to be put back").await?;
    // Without a parent the server will say so.
    Ok(rows.first().and_then(|row| match (row.get(0), row.get(1)) {
        (true, _) => Some(PutBack::WasThere),
        (false, true) => None,
        (false, false) => Some(PutBack::NoPartition),
    }))
}

/// The table as it is now.
struct Table {
    bytes: i64,
    /// Its storage parameters: `name=value`.
    options: Vec<String>,
}

impl Table {
    fn workers(&self) -> Option<u32> {
        let value = |option: &String| option.strip_prefix(WORKERS)?.strip_prefix('=')?.parse().ok();
        self.options.iter().find_map(value)
    }
}

/// The very table that was changed; `None` if it is gone, and another one of its name is another one.
async fn find_table(session: &Session, change: &NewUndo) -> Result<Option<Table>> {
    let sql = "SELECT n.nspname, c.relname, coalesce(c.reloptions, '{}'), \
                      CASE WHEN c.relkind = 'r' THEN pg_catalog.pg_relation_size(c.oid) ELSE 0 END \
               FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    let rows = session.rows(sql, &[(&change.table_oid, Type::OID)], "looking for the table").await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let now = Relation { schema: row.get(0), name: row.get(1) };
    if now == change.relation {
        return Ok(Some(Table { options: row.get(2), bytes: row.get(3) }));
    }
    let message = format!("{} cannot be put back: the table {} is now {now}", change, change.relation);
    Err(Error::new(ErrorKind::Table, message).with_hint(
        "give the table its name back, then howdah restore; or keep the new one and set undone_at in the ledger's table undo",
    ))
}

/// It is there, as it was.
async fn is_there(session: &Session, change: &NewUndo) -> Result<bool> {
    let (sql, by_name): (&str, bool) = match change.kind {
        UndoKind::Index | UndoKind::PartitionedIndex => (
            "SELECT pg_catalog.pg_get_indexdef(i.indexrelid), i.indisvalid \
             FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
             WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid",
            true,
        ),
        UndoKind::Constraint
        | UndoKind::PartitionedConstraint
        | UndoKind::ForeignKey
        | UndoKind::Validate => (
            "SELECT pg_catalog.pg_get_constraintdef(oid), convalidated FROM pg_catalog.pg_constraint \
             WHERE conrelid = $2 AND conname = $1",
            false,
        ),
        UndoKind::Trigger | UndoKind::Workers | UndoKind::Attach | UndoKind::Marks | UndoKind::Staging => {
            return Ok(false);
        }
    };
    let fail = |error: tokio_postgres::Error| session_error(&error, "looking for what is to be put back");
    let name = if by_name { change.index() } else { change.name.clone() };
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&change.table_oid, Type::OID)];
    let parameters = &parameters[..if by_name { 1 } else { 2 }];
    let client = session.client();
    // Sent together. What is put back then runs under the session's `search_path`, by which functions of
    // event triggers go.
    let asked = future::try_join3(
        client.batch_execute("SAVEPOINT looking; SET LOCAL search_path = ''"),
        client.query_typed(sql, parameters),
        client.batch_execute("ROLLBACK TO SAVEPOINT looking"),
    );
    let ((), rows, ()) = asked.await.map_err(fail)?;
    let Some(row) = rows.first() else {
        return Ok(false);
    };
    let (definition, valid): (Option<String>, Option<bool>) = (row.get(0), row.get(1));
    let same = definition.as_deref().map(valid_form) == Some(valid_form(&change.definition));
    match (change.kind, valid == Some(true)) {
        (UndoKind::Validate, valid) if same => Ok(valid),
        (UndoKind::ForeignKey, _) if same => Ok(true),
        // It becomes valid with its last part.
        (kind, _) if same && is_partitioned(kind) => Ok(true),
        (_, true) if same => Ok(true),
        _ => Err(in_the_way(change, same)),
    }
}

/// A foreign key means the same whether its rows have been looked at or not.
fn valid_form(definition: &str) -> &str {
    definition.strip_suffix(" NOT VALID").unwrap_or(definition)
}

fn in_the_way(change: &NewUndo, same: bool) -> Error {
    let what = if same { "an invalid one" } else { "another one" };
    let message = format!("{change} cannot be put back: {what} of this name is there");
    Error::new(ErrorKind::Table, message).with_hint(
        "drop or rename it, then howdah restore; or keep it, and set undone_at in the ledger's table undo",
    )
}

fn refused(error: &tokio_postgres::Error, change: &NewUndo) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "putting indexes back") };
    let (sqlstate, title) = (db.code().code(), change.to_string());
    let names = [change.relation.name.as_str(), change.relation.schema.as_str(), change.name.as_str()];
    let told = safe_message(db, names.into_iter());
    let (message, hint) = match sqlstate {
        _ if meaning::is_else(db.message()) => (
            format!(
                "{title} cannot be put back: a function or operator that somebody has made meanwhile would take the place of the server's own in it"
            ),
            "drop it, or take its schema out of the search_path of role and database, then howdah restore",
        ),
        sqlstate::LOCK_NOT_AVAILABLE => {
            let message = format!("{title} cannot be put back yet: other sessions hold the table");
            return server_error(db, &message);
        }
        // Of the catalogs, not of the table; or it was there a moment later.
        sqlstate::UNIQUE_VIOLATION | sqlstate::DUPLICATE_TABLE
            if sqlstate == sqlstate::DUPLICATE_TABLE || db.schema() == Some("pg_catalog") =>
        {
            (
                format!("{title} cannot be put back: {JUST_MADE}"),
                "howdah restore looks at what is there now: the same is left as it is, anything else is to be dropped or renamed first",
            )
        }
        sqlstate::UNIQUE_VIOLATION => (
            format!("{title} cannot be put back: several rows of the table have the same key"),
            "the rows are in the table; remove those that are too many, then howdah restore puts it back",
        ),
        sqlstate::EXCLUSION_VIOLATION => (
            format!("{title} cannot be put back: rows of the table exclude one another"),
            "the rows are in the table; remove those that are too many, then howdah restore puts it back",
        ),
        sqlstate::FOREIGN_KEY_VIOLATION => (
            format!("{title} holds for new rows, but rows are in the table that it would have refused"),
            "add the rows that are referred to or remove those that refer to them, then howdah restore validates it",
        ),
        sqlstate::UNDEFINED_COLUMN => (
            format!("{title} cannot be put back: the server says: {told}"),
            "if the column was renamed, give it its name back, then howdah restore; if the column was dropped, the index went with it: \
             set undone_at in the ledger's table undo",
        ),
        sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE => (
            format!("{title} cannot be put back: the server says: {told}"),
            "put right what the server says (a primary key takes a NOT NULL that ALTER TABLE ... ALTER CONSTRAINT ... INHERIT and \
             VALIDATE CONSTRAINT have made an ordinary one), then howdah restore",
        ),
        _ if sqlstate.starts_with("P0") => (
            format!("{title} cannot be put back: the server says: {told}"),
            "an event trigger has raised it, perhaps (pg_event_trigger lists them; it has to let this role CREATE INDEX and ALTER TABLE), or \
             a function that the index calls: put that right, then howdah restore",
        ),
        _ if ["0A", "22", "23", "2B", "42", "54"].iter().any(|class| sqlstate.starts_with(class)) => (
            format!("{title} cannot be put back: the server says: {told}"),
            "put right what the server says, then howdah restore",
        ),
        _ => return server_error(db, &format!("{title} cannot be put back: the server says: {told}")),
    };
    Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_extended_to_the_partitions_whatever_its_name() {
        for (name, sql, all) in [
            ("a", "CREATE INDEX a ON ONLY s.t USING btree (b)", "CREATE INDEX a ON s.t USING btree (b)"),
            (
                "i ON ONLY j",
                "CREATE UNIQUE INDEX \"i ON ONLY j\" ON ONLY s.t USING btree (b)",
                "CREATE UNIQUE INDEX \"i ON ONLY j\" ON s.t USING btree (b)",
            ),
            (
                "k",
                "ALTER TABLE ONLY s.t ADD CONSTRAINT \"k\" PRIMARY KEY (a)",
                "ALTER TABLE s.t ADD CONSTRAINT \"k\" PRIMARY KEY (a)",
            ),
            ("a", "COMMENT ON INDEX s.a IS 'x ON ONLY y'", "COMMENT ON INDEX s.a IS 'x ON ONLY y'"),
        ] {
            assert_eq!(on_all_partitions(sql, name), all);
        }
    }
}
