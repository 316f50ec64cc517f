//! A new table takes the place of an old one, with all that the old one has, or it is said beforehand why
//! that cannot be.
//!
//! The new table is made beside the old one, rows are copied into it, its indexes and foreign keys are built;
//! then, in one transaction under a lock that is waited for a short while only, the old one is dropped and
//! the new one gets its name and the rest. Definitions are the server's own.

mod carry_sql;
mod computed;
mod fill;
mod likeness_sql;
mod locks;
mod refusal_sql;
mod rights_sql;

pub use fill::fill;
pub use locks::Locks;

use crate::build::{Build, lift_sql};
use crate::copy::server_error::{missing_beside_others, safe_message};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, Step, busy};
use crate::locks::named;
use crate::session::Session;
use crate::session::elsewhere::{INHERITED, why_elsewhere};
use crate::sql::{quote_ident, quote_relation};
use crate::steady::{Reading, expect_told};
use crate::undo::tried::{self, Tried};
use crate::undo::{SPELLING_SQL, to_be_read};
use carry_sql::{BUILD_SQL, CLOSE_SQL, CREATE_SQL, OLD_SQL, SURPLUS_SQL, SWAP_SQL};
use howdah_model::{Changes, Error, ErrorKind, Relation, Result, sqlstate};
use likeness_sql::{DEFAULTS_SQL, DIFFERENCES_SQL, FOLLOW_SQL};
use locks::Until;
use refusal_sql::REFUSALS_SQL;
use rights_sql::RIGHTS_SQL;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Where rows break a key of the new table.
const BROKEN_HINT: &str =
    "howdah check with the same files and table lists the records that it would not take";

/// A name that means nothing.
const NOT_FOUND: [&str; 4] = [
    sqlstate::UNDEFINED_TABLE,
    sqlstate::UNDEFINED_FUNCTION,
    sqlstate::UNDEFINED_OBJECT,
    sqlstate::INVALID_SCHEMA_NAME,
];
const PATH_HINT: &str = "a function that runs meanwhile, that of an event trigger perhaps (pg_event_trigger lists them), names something \
    without its schema: ALTER FUNCTION ... SET search_path lets it find that under whatever path it is called; then run the same \
    command again";

const RIGHTS_HINT: &str = "the owner of the table, or what this role may do, has changed since the load began: the same command tells the rights \
    that the role lacks now, and goes on when it has them";

const RAISED_HINT: &str = "no trigger of the table fires for these rows: an event trigger has raised it, perhaps (pg_event_trigger lists \
    them; it has to let this role CREATE, ALTER and DROP the table), or a function that a column or an index calls";

/// Reasons that are named; of more, their number.
const REASONS_MAX: usize = 3;

/// Keeps the keys of the locks under which things are built apart from others: "replace" in ASCII.
const SEED: i64 = 0x72_6570_6c61_6365;

/// A table without a tablespace of its own is in that of the database, whatever the role puts new tables in.
const TABLESPACE_SQL: &str = "SET LOCAL default_tablespace = ''";

/// A table and the one that takes its place.
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The table that is there.
    pub old: &'a Relation,
    /// The new one, in the same schema.
    pub new: &'a Relation,
}

/// Why the table cannot be replaced, before anything is done.
///
/// # Errors
/// Table, with the reasons; those of the session.
pub async fn check(session: &Session, old: &Relation) -> Result<()> {
    expect_no_reasons(session, old, computed::in_the_way(session, old).await?).await
}

/// The same when its indexes are built, in an open transaction; `rights` are what is lacking besides, each
/// with what helps.
async fn expect_no_reasons(
    session: &Session,
    old: &Relation,
    mut rights: Vec<(String, Option<String>)>,
) -> Result<()> {
    let names: [(&(dyn ToSql + Sync), Type); 2] = [(&old.schema, Type::TEXT), (&old.name, Type::TEXT)];
    let ask = async |sql: &str| {
        let rows = session.client().query_typed(sql, &names).await;
        rows.map_err(|error| session_error(&error, "looking what depends on the table"))
    };
    let refusals: Vec<String> = ask(REFUSALS_SQL).await?.iter().map(|row| row.get(0)).collect();
    rights.splice(..0, ask(RIGHTS_SQL).await?.iter().map(|row| (row.get(0), row.get(1))));
    if refusals.is_empty() && rights.is_empty() {
        return Ok(());
    }
    rights.dedup();
    let mut reasons = refusals.clone();
    reasons.extend(rights.iter().map(|(reason, _)| reason.clone()));
    reasons.dedup();
    let message = format!("{old} cannot be replaced by a new table: {}", some_of(reasons, "reason"));
    let is_granted = rights.iter().all(|(_, grant)| grant.is_some());
    let mut grants: Vec<String> = Vec::new();
    for (_, grant) in rights {
        grants.extend(grant.filter(|grant| !grants.contains(grant)));
    }
    let other = match why_elsewhere(session, old).await? {
        None => "--mode merge --delete-missing --atomic changes a table without rules itself, all at once",
        Some(INHERITED) => {
            "--mode truncate empties the table itself, not those that inherit from it, and with --freeze others see all rows at once"
        }
        Some(_) => "empty the table first, and load with --mode append",
    };
    let error = match refusals.is_empty() {
        true => Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE),
        false => Error::new(ErrorKind::Table, message),
    };
    let hint = match refusals.is_empty() && is_granted {
        true => format!("run {}; or {other}", grants.join("; ")),
        false => other.to_owned(),
    };
    Err(error.with_hint(hint))
}

/// `a; b; c; and 2 more reasons`.
fn some_of(mut reasons: Vec<String>, what: &str) -> String {
    let more = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    let more = match more {
        0 => String::new(),
        1 => format!("; and 1 more {what}"),
        more => format!("; and {more} more {what}s"),
    };
    reasons.join("; ") + &more
}

/// Makes the new table, in the open transaction.
pub(crate) async fn create(session: &Session, replacement: Replacement<'_>) -> Result<()> {
    let fail = |error| refused(&error, replacement.old);
    session.client().batch_execute(&format!("{SPELLING_SQL}; {TABLESPACE_SQL}")).await.map_err(fail)?;
    let own_path = session.same_path_sql().await?;
    for sql in [CREATE_SQL, CLOSE_SQL, FOLLOW_SQL, DEFAULTS_SQL] {
        do_all(session, replacement, sql, &own_path).await?;
    }
    expect_builds_allowed(session, replacement, &own_path).await
}

/// Where there are event triggers for it, an index of the new table is tried while that has no rows yet.
async fn expect_builds_allowed(
    session: &Session,
    Replacement { old, new }: Replacement<'_>,
    own_path: &str,
) -> Result<()> {
    let sql =
        "SELECT FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass($1)::pg_catalog.oid LIMIT 1";
    let name = quote_relation(old);
    let has_indexes = async || {
        let found = session.rows(sql, &[(&name, Type::TEXT)], "looking for the table's indexes").await?;
        Ok::<_, Error>(!found.is_empty())
    };
    if !tried::is_watched(session).await? || !has_indexes().await? {
        return Ok(());
    }
    let trial = Tried {
        name: tried::NAME,
        on: new,
        table: old,
        what: &format!("{old} cannot be replaced: CREATE INDEX, which a new table needs"),
        way_out: "--mode truncate empties the table itself",
    };
    trial.expect_allowed(session, own_path).await
}

/// Says whether rows that came into the new table are those that the old one would have.
///
/// # Errors
/// Table, with what others have changed since the new one was made; those of the session.
pub async fn expect_alike(session: &Session, replacement: Replacement<'_>) -> Result<()> {
    let fail = |error| refused(&error, replacement.old);
    let client = session.client();
    client.batch_execute(&format!("BEGIN; {SPELLING_SQL}")).await.map_err(fail)?;
    let differences = statements(session, replacement, DIFFERENCES_SQL).await;
    client.batch_execute("ROLLBACK").await.map_err(fail)?;
    expect_none(replacement.old, differences?)
}

fn expect_none(old: &Relation, differences: Vec<String>) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    let what = some_of(differences, "difference");
    let message = format!("{old} was changed while its new rows were loaded: {what}");
    Err(Error::new(ErrorKind::Table, message)
        .with_hint("run the same command again: it begins anew, with a table like the one that is there now"))
}

/// An index or a foreign key that the new table lacks, or that a foreign key's rows have not been looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    sql: String,
    /// Of the index or the foreign key that the old table has.
    name: String,
    oid: u32,
    compared_by_libc: bool,
    /// How the definition of the old index begins, and the statement.
    old_head: String,
    new_head: String,
    /// It is an index, so that others can be built beside it.
    pub is_index: bool,
}

/// Drops what the new table has and the old one has no more: a foreign key locks the table that it refers to
/// as well, which is waited for no longer than `lock_timeout_ms`.
///
/// # Errors
/// Server with 55P03 when a table was not free within the time, which may pass; those of the session.
pub async fn drop_surplus(
    session: &Session,
    replacement: Replacement<'_>,
    lock_timeout_ms: u64,
) -> Result<()> {
    let fail = |error| refused(&error, replacement.old);
    let client = session.client();
    let begin = format!("BEGIN; {SPELLING_SQL}; SET LOCAL lock_timeout = {lock_timeout_ms}");
    client.batch_execute(&begin).await.map_err(fail)?;
    let own_path = session.same_path_sql().await?;
    let dropped = do_all(session, replacement, SURPLUS_SQL, &own_path).await;
    let end = if dropped.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await.map_err(fail)?;
    dropped
}

/// What the new table lacks: indexes, those first that take longest, then foreign keys, then their
/// validation.
///
/// # Errors
/// Those of the session.
pub async fn missing(session: &Session, replacement: Replacement<'_>) -> Result<Vec<Missing>> {
    let fail = |error| refused(&error, replacement.old);
    let client = session.client();
    let mut reading = Reading::default();
    loop {
        client.batch_execute(&format!("BEGIN; {SPELLING_SQL}")).await.map_err(fail)?;
        let found = missing_now(session, replacement).await;
        client.batch_execute("ROLLBACK").await.map_err(fail)?;
        match found {
            Err(error) if reading.is_again(&error).await => {}
            found => return found,
        }
    }
}

/// The same in the open transaction.
async fn missing_now(session: &Session, replacement: Replacement<'_>) -> Result<Vec<Missing>> {
    let missing = |row: &Row| Missing {
        sql: row.get(0),
        is_index: row.get::<_, i32>(1) == 1,
        name: row.get(2),
        compared_by_libc: row.get(3),
        oid: row.get(4),
        old_head: row.get(5),
        new_head: row.get(6),
    };
    let rows = rows(session, replacement, BUILD_SQL).await?;
    expect_told(&rows, &[0])?;
    Ok(rows.iter().map(missing).collect())
}

/// Builds it, unless it is there by now: another run of the job may be at it, whose end is waited for.
/// Functions of an index find what they name in the session's schemas, as far as the server lets them. It
/// takes no more parallel workers than `workers_max`, where that is given, the memory that suits its sort,
/// and as many temporary files as the role may have. A foreign key locks the table that it refers to as well,
/// which is waited for no longer than `lock_timeout_ms`.
///
/// # Errors
/// Table, for what contradicts the rows; Server with 55P03 when a table was not free within the time, which
/// may pass; those of the session.
pub async fn build(
    session: &Session,
    replacement: Replacement<'_>,
    what: &Missing,
    workers_max: Option<u32>,
    lock_timeout_ms: u64,
) -> Result<()> {
    let built = build_alone(session, replacement, what, workers_max, lock_timeout_ms).await;
    let Err(error) = built else { return Ok(()) };
    session.roll_back().await;
    if error.sqlstate() == Some(sqlstate::FOREIGN_KEY_VIOLATION) && !what.is_index {
        // As long as it stays, it keeps rows of the other table from being deleted. If it cannot go, it goes
        // with the new table.
        let drop = format!(
            "BEGIN; SET LOCAL lock_timeout = {lock_timeout_ms}; ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}; COMMIT",
            quote_relation(replacement.new),
            quote_ident(&what.name)
        );
        if session.client().batch_execute(&drop).await.is_err() {
            session.roll_back().await;
        }
    }
    Err(error)
}

async fn build_alone(
    session: &Session,
    replacement: Replacement<'_>,
    what: &Missing,
    workers_max: Option<u32>,
    lock_timeout_ms: u64,
) -> Result<()> {
    let fail = |error| refused(&error, replacement.old);
    let client = session.client();
    client.batch_execute(&format!("BEGIN; {SPELLING_SQL}; {TABLESPACE_SQL}")).await.map_err(fail)?;
    let lock =
        format!("SELECT FROM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, {SEED}))");
    client.query_typed(&lock, &[(&what.sql, Type::TEXT)]).await.map_err(fail)?;
    let own_path = session.same_path_sql().await?;
    if !missing_now(session, replacement).await?.contains(what) {
        return client.batch_execute("ROLLBACK").await.map_err(fail);
    }
    let mut settings = match what.is_index {
        true => format!("{own_path}; {}; ", lift_sql(session.server_version())),
        // Only from here on: another run's build is waited for to its end.
        false => format!("{own_path}; SET LOCAL lock_timeout = {lock_timeout_ms}; "),
    };
    if let (Some(workers), true) = (workers_max, what.is_index) {
        let sql = "SELECT pg_catalog.pg_relation_size(c.oid), (SELECT o.option_value::pg_catalog.int4 \
                       FROM pg_catalog.pg_options_to_table(c.reloptions) o WHERE o.option_name = 'parallel_workers') \
                   FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";
        let name = quote_relation(replacement.new);
        let table = client.query_typed(sql, &[(&name, Type::TEXT)]).await.map_err(fail)?;
        let build = |row: &Row| Build {
            compared_by_libc: what.compared_by_libc,
            table_bytes: row.get::<_, i64>(0).unsigned_abs(),
            table_workers: row.get::<_, Option<i32>>(1).map(i32::unsigned_abs),
        };
        settings.extend(table.iter().flat_map(|row| build(row).settings(workers)).map(|sql| sql + "; "));
    }
    let sql = match what.is_index {
        true => read_under(session, &own_path, what).await?,
        false => what.sql.clone(),
    };
    client.batch_execute(&format!("{settings}{sql}; COMMIT")).await.map_err(fail)
}

/// The statement of an index that means the same under this path, which stands afterwards.
async fn read_under(session: &Session, path_sql: &str, what: &Missing) -> Result<String> {
    let fail = |error: tokio_postgres::Error| session_error(&error, "reading the table's indexes");
    let client = session.client();
    client.batch_execute(path_sql).await.map_err(fail)?;
    let rows = client
        .query_typed("SELECT pg_catalog.pg_get_indexdef($1)", &[(&what.oid, Type::OID)])
        .await
        .map_err(fail)?;
    let definition: Option<String> = rows.first().and_then(|row| row.get(0));
    let rest = definition.as_deref().and_then(|sql| sql.strip_prefix(&what.old_head));
    let under_path = rest.map(|rest| format!("{}{rest}", what.new_head));
    Ok(under_path.map_or_else(|| what.sql.clone(), |sql| to_be_read(&what.sql, &sql).to_owned()))
}

/// Puts all new tables in the place of the old ones, in one transaction with the end of the job.
///
/// # Errors
/// Server with 55P03 when a table was not free within the time, or another job is loading into it, which may
/// pass; Table for what the server refuses, or when a table has changed meanwhile; those of ledger and
/// session.
pub async fn swap(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    all: &[(Replacement<'_>, u64)],
    locks: &Locks,
    ending: impl AsyncFnOnce(&Session) -> Result<()>,
) -> Result<()> {
    let client = session.client();
    let work = async {
        let lost = |error: tokio_postgres::Error| session_error(&error, "replacing the table");
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; {SPELLING_SQL}; SET LOCAL lock_timeout = {}",
            locks.timeout_ms
        );
        client.batch_execute(&begin).await.map_err(lost)?;
        let own_path = session.same_path_sql().await?;
        for (replacement, _) in all {
            if !ledger.claim_step(session, job_id, replacement.old, Step::Replace).await? {
                return client.batch_execute("ROLLBACK").await.map_err(lost);
            }
        }
        let until = locks.take(session, all, &own_path).await?;
        for (replacement, rows) in all {
            take_place(session, ledger, job_id, *replacement, until, &own_path).await?;
            // What was left of the time was for the swap.
            let anew = format!("SET LOCAL lock_timeout = {}", locks.timeout_ms);
            client.batch_execute(&anew).await.map_err(lost)?;
            let changes = Changes { inserted: *rows, ..Changes::default() };
            ledger.settle_step(session, job_id, replacement.old, Step::Replace, *rows, changes).await?;
        }
        // It may drop things, too.
        client.batch_execute(&own_path).await.map_err(lost)?;
        ending(session).await?;
        client.batch_execute("COMMIT").await.map_err(lost)
    };
    let done = session.or_roll_back(work.await).await;
    match locks.not_free().or_else(|| all.first().map(|(replacement, _)| replacement.old.clone())) {
        Some(relation) => named(session, &relation, done).await,
        None => done,
    }
}

/// The new table takes the place of the old one, which is locked.
async fn take_place(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    replacement: Replacement<'_>,
    until: Until,
    own_path: &str,
) -> Result<()> {
    let old = replacement.old;
    if ledger.holds_changes(session, old).await? {
        return Err(held(old));
    }
    expect_unchanged(session, ledger, old).await?;
    if let Some(other) = ledger.loading(session, job_id, old).await? {
        return Err(busy(old, "replaced", &other));
    }
    expect_no_reasons(session, old, Vec::new()).await?;
    expect_none(old, statements(session, replacement, DIFFERENCES_SQL).await?)?;
    if !missing_now(session, replacement).await?.is_empty() {
        return Err(changed(old));
    }
    for step in [SURPLUS_SQL, FOLLOW_SQL, DEFAULTS_SQL, SWAP_SQL] {
        for sql in statements(session, replacement, step).await? {
            let sql = format!("{}; {}", until.sql(), of_step(step, own_path, &sql));
            session.client().batch_execute(&sql).await.map_err(|error| refused(&error, old))?;
        }
    }
    Ok(())
}

/// Does what the catalog says is to be done, in the open transaction.
async fn do_all(session: &Session, replacement: Replacement<'_>, step: &str, own_path: &str) -> Result<()> {
    for sql in statements(session, replacement, step).await? {
        let done = session.client().batch_execute(&of_step(step, own_path, &sql)).await;
        done.map_err(|error| refused(&error, replacement.old))?;
    }
    Ok(())
}

/// The statement of a step as it is run. Not under the session's own path if it holds expressions: the server
/// has written these under the empty path, which stands, and in another one a function or an operator could
/// come to mean another.
fn of_step(step: &str, own_path: &str, sql: &str) -> String {
    // Views, triggers, policies and statistics.
    let is_made_anew = step == SWAP_SQL && sql.starts_with("CREATE ");
    match step == DEFAULTS_SQL || is_made_anew {
        true => sql.to_owned(),
        false => under(own_path, sql),
    }
}

/// The statement under the session's own path, by which functions of event triggers find what they name. What
/// it names itself stands there in full.
fn under(own_path: &str, sql: &str) -> String {
    format!("{own_path}; {sql}; SET LOCAL search_path = ''")
}

/// What the catalog says, in the open transaction, whose `search_path` is empty afterwards.
async fn statements(session: &Session, replacement: Replacement<'_>, sql: &str) -> Result<Vec<String>> {
    Ok(rows(session, replacement, sql).await?.iter().map(|row| row.get(0)).collect())
}

async fn rows(session: &Session, replacement: Replacement<'_>, sql: &str) -> Result<Vec<Row>> {
    let fail = |error: tokio_postgres::Error| session_error(&error, "reading what the table has");
    session.client().batch_execute("SET LOCAL search_path = ''").await.map_err(fail)?;
    let Replacement { old, new } = replacement;
    let names: [(&(dyn ToSql + Sync), Type); 3] =
        [(&old.schema, Type::TEXT), (&old.name, Type::TEXT), (&new.name, Type::TEXT)];
    session.client().query_typed(&format!("{OLD_SQL}{sql}"), &names).await.map_err(fail)
}

/// A new table gets what loads of other ledgers have set for the old one, and nobody would find there what
/// they have to put back.
///
/// # Errors
/// Table, when there is such a load; those of the session.
pub async fn expect_unchanged(session: &Session, ledger: &Ledger, old: &Relation) -> Result<()> {
    let Some(other) = ledger.changed_by_another(session, old).await? else { return Ok(()) };
    let schema = other.schema();
    let message = format!(
        "{old} cannot be replaced: a load of the ledger {schema} has changed settings of it, or dropped something, which is not put back yet"
    );
    Err(Error::new(ErrorKind::Table, message).with_hint(format!(
        "wait for the end of that load, or, where it was killed, run howdah restore with {schema} as --ledger; then run the same \
         command again"
    )))
}

/// What it was before comes back when that load ends, or by howdah restore; a new table would keep what it is
/// meanwhile.
fn held(old: &Relation) -> Error {
    let message = format!(
        "{old} cannot be replaced yet: another load has changed settings of it or dropped what it puts back"
    );
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
}

fn changed(old: &Relation) -> Error {
    let message = format!("{old} has got an index or a foreign key while its new rows were loaded");
    Error::new(ErrorKind::Server, message)
        .with_hint("run the same command again: it builds what is missing and goes on")
}

fn refused(error: &tokio_postgres::Error, old: &Relation) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "replacing the table") };
    let names = [old.name.as_str(), old.schema.as_str()];
    let told = safe_message(db, names.into_iter());
    if let Some(error) = missing_beside_others(db, old) {
        return error;
    }
    match db.code().code() {
        sqlstate::LOCK_NOT_AVAILABLE => server_error(
            db,
            &format!("{old} cannot be replaced yet: other sessions hold it or a table that it refers to"),
        ),
        state if ["0A", "22", "23", "2B", "42", "54"].iter().any(|class| state.starts_with(class)) => {
            let message = format!("{old} cannot be replaced: the server says: {told}");
            let error = Error::new(ErrorKind::Table, message).with_sqlstate(state);
            let is_within_function = db.where_().is_some();
            if sqlstate::is_integrity_violation(state) {
                error.with_hint(BROKEN_HINT)
            } else if state == sqlstate::INSUFFICIENT_PRIVILEGE && !is_within_function {
                error.with_hint(RIGHTS_HINT)
            } else if NOT_FOUND.contains(&state) && is_within_function {
                error.with_hint(PATH_HINT)
            } else {
                error
            }
        }
        state => {
            let error = server_error(db, &format!("{old} cannot be replaced: the server says: {told}"));
            if state.starts_with("P0") { error.with_hint(RAISED_HINT) } else { error }
        }
    }
}
