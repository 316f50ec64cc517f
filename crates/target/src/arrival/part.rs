//! One part of the rows comes into its table, in one transaction with the row of the ledger that says so; or
//! all rows of all tables, together with the end of the job.

use super::statements::{PASS_OWN_SQL, Span};
use super::table::Into;
use super::{AGAIN, BROKEN_HINT, DOING};
use crate::build::{lift_sql, with_lift};
use crate::copy::server_error::{is_of_policy, missing_beside_others, safe_message};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, Step, busy};
use crate::locks::named;
use crate::session::Session;
use howdah_model::{Changes, Error, ErrorKind, Mode, Relation, Result, counted, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// A part is joined with the table in memory, where the server's own `work_mem` is less: by hash tables of 4
/// MB, the default, the rows of half a million keys go through files first. One session needs it once or
/// twice.
const WORK_MEM_KB: u32 = 64 << 10;

/// So often rows are inserted that others delete meanwhile, or that a trigger stores under ever other keys.
const ROUNDS_MAX: u32 = 10;

/// Each turn fills the range of the table that the next one reads, and the planner, who knows the table as it
/// was, expects next to none there: it would go through the whole range for each row.
const JOIN_ONCE_SQL: &str = "SET LOCAL enable_nestloop = off";

/// The planner takes each row that is looked up for several pages from the disk, and joins the whole table
/// instead. These costs make a lookup cheaper than reading two rows of the table. To go through the table for
/// each row stays dear: the planner does not where the index cannot be used, as where a policy comes before
/// an operator that is not LEAKPROOF.
const LOOK_UP_SQL: &str = "SET LOCAL random_page_cost = 0; SET LOCAL cpu_operator_cost = 0.0001";

/// How rows of one table come in.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// The table.
    pub into: &'a Into,
    /// Append, merge or insert-new.
    pub mode: Mode,
    /// Rows that no record has are deleted.
    pub delete_missing: bool,
    /// All rows so far were there and were changed, so that the next are likely to be, too.
    pub all_change: bool,
    /// Many rows so far were not there: the table's statistics say too little.
    pub many_new: bool,
}

/// One transaction's surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where the step is written down.
    pub ledger: &'a Ledger,
    /// The job.
    pub job_id: &'a str,
    /// How long a lock is waited for.
    pub lock_timeout_ms: u64,
    /// How many chunks have stored the rows that come in.
    pub chunks: u64,
    /// Images of pages in the WAL are compressed, where [`may_compress_wal`].
    pub compress_wal: bool,
}

/// The setting that compresses images of pages.
pub const WAL_COMPRESSION: &str = "wal_compression";

/// A session that may (`wal_compression` is for superusers), of a server that can (PostgreSQL 15, built with
/// lz4) and does not yet.
const MAY_COMPRESS_WAL: &str = "\
    FROM pg_catalog.pg_settings WHERE name = 'wal_compression' AND setting = 'off' AND 'lz4' = ANY (enumvals) \
      AND pg_catalog.current_setting('is_superuser') = 'on'";

/// The session may, and could with gain, have its `wal_compression` set to lz4.
///
/// # Errors
/// Those of the session.
pub async fn may_compress_wal(session: &Session) -> Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT {MAY_COMPRESS_WAL})");
    let rows = session.rows(&sql, &[], "reading settings").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

impl Surroundings<'_> {
    /// A limit of temporary files, which joins of many rows take, is lifted where the role may.
    pub(super) fn begin_sql(&self, session: &Session) -> String {
        let compress = match self.compress_wal {
            true => format!("; SELECT pg_catalog.set_config(name, 'lz4', true) {MAY_COMPRESS_WAL}"),
            false => String::new(),
        };
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; SET LOCAL lock_timeout = {}; \
             SELECT pg_catalog.set_config(name, greatest(setting::pg_catalog.int4, {WORK_MEM_KB})::pg_catalog.text, true) \
             FROM pg_catalog.pg_settings WHERE name = 'work_mem'; {}{compress}",
            self.lock_timeout_ms,
            lift_sql(session.server_version())
        )
    }
}

/// Brings the part of this number of the rows of the staging table in, in a transaction of its own. Returns
/// how many rows it had and what became of them; `None` if it was in already.
///
/// # Errors
/// Server, with what the table has against the rows; Record, when rows came to nothing; those of the session.
pub async fn commit_part(
    session: &Session,
    around: Surroundings<'_>,
    way: Way<'_>,
    no: u32,
    span: &Span,
) -> Result<Option<(u64, Changes)>> {
    let work = async || {
        if way.many_new && span.turn.is_some() {
            run(session, way, JOIN_ONCE_SQL).await?;
        } else if span.looked_up {
            run(session, way, LOOK_UP_SQL).await?;
        }
        come_in(session, way, span).await
    };
    commit_step(session, around, way, Step::Part(no), work).await
}

/// Deletes what no record has, in a transaction of its own, unless that is done; `tables` are all of the
/// load.
///
/// # Errors
/// As [`commit_part`]; Record, when rows of the tables would go with those that are deleted.
pub async fn commit_deletion(
    session: &Session,
    around: Surroundings<'_>,
    way: Way<'_>,
    tables: &[&Into],
) -> Result<Option<(u64, Changes)>> {
    let delete = async || Ok((0, delete_missing(session, around, way, tables).await?));
    commit_step(session, around, way, Step::Delete, delete).await
}

async fn commit_step(
    session: &Session,
    around: Surroundings<'_>,
    way: Way<'_>,
    step: Step,
    work: impl AsyncFnOnce() -> Result<(u64, Changes)>,
) -> Result<Option<(u64, Changes)>> {
    let done = async {
        run(session, way, &around.begin_sql(session)).await?;
        if !around.ledger.claim_step(session, around.job_id, &way.into.relation, step).await? {
            run(session, way, "ROLLBACK").await?;
            return Ok(None);
        }
        around.ledger.expect_chunks(session, around.job_id, around.chunks).await?;
        let (rows, changes) = work().await?;
        around.ledger.settle_step(session, around.job_id, &way.into.relation, step, rows, changes).await?;
        commit(session, way).await?;
        Ok(Some((rows, changes)))
    };
    rolled_back(session, &way.into.relation, done.await).await
}

/// Brings all rows of all tables in, in one transaction with these statements, which tell the end of the job.
/// Nothing happens if it is done already. The tables are in the order of [`super::order`]: what goes, goes
/// behind all that comes, the other way round.
///
/// # Errors
/// As [`commit_part`] and [`commit_deletion`].
pub async fn commit_all(
    session: &Session,
    around: Surroundings<'_>,
    ways: &[Way<'_>],
    ending: impl AsyncFnOnce(&Session) -> Result<()>,
) -> Result<()> {
    let Some(first) = ways.first() else { return Ok(()) };
    let tables: Vec<&Into> = ways.iter().map(|way| way.into).collect();
    let work = async {
        run(session, *first, &around.begin_sql(session)).await?;
        for way in ways {
            let (relation, step) = (&way.into.relation, Step::Part(0));
            if !around.ledger.claim_step(session, around.job_id, relation, step).await? {
                return run(session, *way, "ROLLBACK").await;
            }
            let (rows, changes) = come_in(session, *way, &Span::default()).await?;
            around.ledger.settle_step(session, around.job_id, relation, step, rows, changes).await?;
        }
        for way in ways.iter().rev().filter(|way| way.delete_missing) {
            let (relation, step) = (&way.into.relation, Step::Delete);
            around.ledger.claim_step(session, around.job_id, relation, step).await?;
            let changes = delete_missing(session, around, *way, &tables).await?;
            around.ledger.settle_step(session, around.job_id, relation, step, 0, changes).await?;
        }
        around.ledger.expect_chunks(session, around.job_id, around.chunks).await?;
        ending(session).await?;
        commit(session, *first).await
    };
    rolled_back(session, &first.into.relation, work.await).await
}

async fn rolled_back<T>(session: &Session, relation: &Relation, done: Result<T>) -> Result<T> {
    match named(session, relation, session.or_roll_back(done).await).await {
        Err(error) => Err(with_lift(session, error, AGAIN).await),
        done => done,
    }
}

/// How many rows there were, and what became of them.
pub(super) async fn come_in(session: &Session, way: Way<'_>, span: &Span) -> Result<(u64, Changes)> {
    let into = way.into;
    let rows = count(session, way, &into.count_sql(span), span).await?;
    let changes = match way.mode {
        Mode::Merge | Mode::InsertNew => by_key(session, way, span, rows, false).await?,
        Mode::Append | Mode::Truncate | Mode::Replace => {
            let inserted = execute(session, way, &into.insert_all_sql(span), span).await?;
            if inserted != rows {
                return Err(dropped(&into.relation, rows.saturating_sub(inserted)));
            }
            Changes { inserted, ..Changes::default() }
        }
    };
    into.expect_same_types(session).await?;
    Ok((rows, changes))
}

/// First rows are inserted whose key is not there, then those that are there are changed. In this order
/// nothing escapes that another session inserts meanwhile: INSERT waits for it and leaves it alone, and
/// UPDATE sees it. The other way round a row that is committed between the two statements would be met by
/// neither. What another session deletes, or gives another key, behind the INSERT is met by neither in this
/// order: those that are not there are inserted again.
///
/// Where all are likely to change, they are changed before that: if none is left, there is nothing to insert
/// either. Where a trigger may make something else of rows that are inserted, the first two are one
/// statement, behind which the trigger has had the last word: UPDATE then leaves alone what this transaction
/// has written. So they are where something besides the key is unique: new rows may take what changed ones
/// give up.
///
/// Where the rows have come before, `again`, only so many of them that are not there any more come once more.
async fn by_key(session: &Session, way: Way<'_>, span: &Span, rows: u64, again: bool) -> Result<Changes> {
    let (into, merges) = (way.into, way.mode == Mode::Merge);
    let update = |only_others| into.update_sql(span, only_others).filter(|_| merges);
    let is_one = merges && !again && (into.may_remake || into.is_unique_besides);
    let both = into.update_and_insert_sql(span).filter(|_| is_one);
    let mut changes = Changes::default();
    let left = |changes: &Changes| rows.saturating_sub(changes.inserted + changes.updated);
    // What a trigger has made of rows that came stays, and who has changed a row once does not do so again.
    let only_others_then = into.may_remake || into.may_change_again;
    let mut only_others = if again { only_others_then } else { into.may_remake };
    if let Some(update) = update(false).filter(|_| way.all_change && !again && both.is_none()) {
        changes.updated = execute(session, way, &update, span).await?;
        only_others = only_others_then;
        if left(&changes) == 0 {
            return Ok(changes);
        }
    }
    for round in 1.. {
        let inserted = match both.as_ref().filter(|_| round == 1) {
            Some(both) => {
                let [updated, inserted] = counts(session, way, both, span).await?;
                changes.updated += updated;
                only_others = only_others_then;
                inserted
            }
            None => execute(session, way, &into.insert_missing_sql(span), span).await?,
        };
        changes.inserted += inserted;
        let update = update(only_others).filter(|_| left(&changes) > 0);
        if let Some(update) = &update {
            if only_others {
                run(session, way, PASS_OWN_SQL).await?;
            }
            changes.updated += execute(session, way, update, span).await?;
            only_others = only_others_then;
        }
        if !into.may_drop && (update.is_none() || left(&changes) == 0) {
            break;
        }
        let missing = count(session, way, &into.count_missing_sql(span), span).await?;
        if missing == 0 {
            break;
        }
        // Others may have deleted them when this INSERT had seen them, once; what a trigger drops it drops
        // again.
        if round == ROUNDS_MAX || (into.may_drop && round > 1 && inserted == 0) {
            return Err(dropped(&into.relation, missing));
        }
    }
    let may_hold_back = merges && into.may_hold_back && left(&changes) > 0;
    if let Some(held_back) = into.count_held_back_sql(span).filter(|_| may_hold_back) {
        run(session, way, PASS_OWN_SQL).await?;
        changes.held_back = count(session, way, &held_back, span).await?;
    }
    changes.unchanged = left(&changes).saturating_sub(changes.held_back);
    Ok(changes)
}

/// What is to go is counted before, and, if not all of it went, behind it: rows that other sessions have
/// deleted meanwhile would seem held back by the one count, and those that they have inserted by the other.
///
/// A row that another session gives the key of a record, while DELETE waits for it, is deleted with the key
/// that it had: the record comes once more. What goes with others by ON DELETE CASCADE could not: it refers
/// to what is gone.
async fn delete_missing(
    session: &Session,
    around: Surroundings<'_>,
    way: Way<'_>,
    tables: &[&Into],
) -> Result<Changes> {
    let (into, all) = (way.into, Span::default());
    // The session that holds the tables may have been lost, and a partition have come to them since.
    if let Some(other) = around.ledger.loading(session, around.job_id, &into.relation).await? {
        return Err(busy(&into.relation, "rid of rows that no record has", &other));
    }
    let mut gone_before = Vec::new();
    for into in tables.iter().filter(|into| into.goes_along) {
        let way = Way { into, ..way };
        gone_before.push((way, count(session, way, &into.count_missing_sql(&all), &all).await?));
    }
    let surplus = match into.may_keep {
        true => count(session, way, &into.count_surplus_sql(), &all).await?,
        false => 0,
    };
    let deleted = execute(session, way, &into.delete_missing_sql(), &all).await?;
    let held_back = match surplus.saturating_sub(deleted) {
        0 => 0,
        less => less.min(count(session, way, &into.count_surplus_sql(), &all).await?),
    };
    let mut changes = Changes { deleted, held_back, ..Changes::default() };
    if deleted == 0 {
        return Ok(changes);
    }
    for (way, before) in gone_before {
        let gone = count(session, way, &way.into.count_missing_sql(&all), &all).await?;
        if gone > before {
            return Err(gone_along(&way.into.relation, gone - before));
        }
    }
    let missing = count(session, way, &into.count_missing_sql(&all), &all).await?;
    if missing > 0 {
        let again = by_key(session, way, &all, missing, true).await?;
        into.expect_same_types(session).await?;
        (changes.inserted, changes.updated) = (again.inserted, again.updated);
    }
    Ok(changes)
}

fn gone_along(relation: &Relation, rows: u64) -> Error {
    let message = format!(
        "ON DELETE CASCADE deletes {} of {relation} that the files hold with those that no record has; rolled back",
        counted(rows, "row")
    );
    Error::new(ErrorKind::Record, message).with_hint(
        "have the files hold the rows that these refer to as well, or load without --delete-missing; if another session has deleted rows of \
         the table at that moment, run the same command again",
    )
}

fn dropped(relation: &Relation, rows: u64) -> Error {
    let message = format!("{} did not come into {relation}; rolled back", counted(rows, "row"));
    Error::new(ErrorKind::Record, message).with_hint(
        "a BEFORE INSERT trigger that returns NULL drops rows, one that changes the key of a row stores it under another key, and a \
         row-level security policy may hide rows of the same key: have the files say the key as the trigger stores it, load without \
         the trigger or policy, or load into another table",
    )
}

/// The answer to COMMIT may be lost: whether it was done, the claim tells when the step is tried again.
async fn commit(session: &Session, way: Way<'_>) -> Result<()> {
    run(session, way, "COMMIT").await
}

pub(super) async fn run(session: &Session, way: Way<'_>, sql: &str) -> Result<()> {
    session.client().batch_execute(sql).await.map_err(|error| refused(&error, way.into))
}

async fn execute(session: &Session, way: Way<'_>, sql: &str, span: &Span) -> Result<u64> {
    let values = span.values();
    let done = session.client().execute_typed(sql, &typed(&values)).await;
    done.map_err(|error| refused(&error, way.into))
}

async fn count(session: &Session, way: Way<'_>, sql: &str, span: &Span) -> Result<u64> {
    counts(session, way, sql, span).await.map(|[count]| count)
}

async fn counts<const N: usize>(session: &Session, way: Way<'_>, sql: &str, span: &Span) -> Result<[u64; N]> {
    let values = span.values();
    let rows = session.client().query_typed(sql, &typed(&values)).await;
    let rows = rows.map_err(|error| refused(&error, way.into))?;
    let row = rows.first();
    Ok(std::array::from_fn(|at| row.map_or(0, |row| row.get::<_, i64>(at).unsigned_abs())))
}

fn typed<'a>(values: &'a [&'a String]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect()
}

fn refused(error: &tokio_postgres::Error, into: &Into) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, DOING) };
    let relation = &into.relation;
    if let Some(error) = missing_beside_others(db, relation) {
        return error;
    }
    let names = into.columns.iter().map(|column| column.name.as_str());
    let told = safe_message(db, names.chain([relation.name.as_str(), relation.schema.as_str()]));
    let message = match db.code().code() {
        sqlstate::LOCK_NOT_AVAILABLE => format!("{relation} is held by other sessions: {told}"),
        _ => format!("the rows cannot come into {relation}: the server says: {told}"),
    };
    let place = howdah_model::Place { column: db.column().map(str::to_owned), ..Default::default() };
    let error = server_error(db, &message).at(place);
    match db.code().code() {
        // The rows are at fault, and stay so: nothing waits for another run.
        _ if is_of_policy(db) => error.with_kind(ErrorKind::Record),
        state if sqlstate::is_integrity_violation(state) => error.with_hint(BROKEN_HINT),
        _ => error,
    }
}
