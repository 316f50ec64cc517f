//! Drops what the caller chooses of a table's indexes and constraints, and writes into the journal how each
//! is put back, in one transaction: a crash leaves all of it or nothing.

use super::SPELLING_SQL;
use super::capture::{Captured, Index, capture};
use super::entries::{Place, with_workers};
use super::tried::{self, Tried, is_final};
use crate::copy::server_error::{missing_beside_others, safe_message};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, Loading, NewUndo};
use crate::locks::named;
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use crate::steady::Reading;
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use tokio_postgres::error::SqlState;

/// Once it has its lock, dropping takes a few round trips.
const DROPPED_WITHIN_MS: u32 = 3000;

/// What is to go of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// By number in [`Captured::indexes`].
    pub indexes: Vec<usize>,
    /// By number in [`Captured::foreign_keys`].
    pub foreign_keys: Vec<usize>,
    /// What the table's `parallel_workers` are to be until the indexes are back: of a table that has none of
    /// its own.
    pub workers: Option<u32>,
}

impl Chosen {
    /// Nothing is to go.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.foreign_keys.is_empty()
    }

    /// What of this the other does not choose.
    fn without(&self, other: &Chosen) -> Chosen {
        let rest = |all: &[usize], chosen: &[usize]| {
            all.iter().copied().filter(|no| !chosen.contains(no)).collect::<Vec<usize>>()
        };
        Chosen {
            indexes: rest(&self.indexes, &other.indexes),
            foreign_keys: rest(&self.foreign_keys, &other.foreign_keys),
            workers: None,
        }
    }
}

/// What came of it, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// What was dropped.
    pub names: Vec<String>,
    /// Another job at work, and what stays for its sake alone.
    pub kept_for: Option<(Loading, Vec<String>)>,
    /// What the table's `parallel_workers` were set to.
    pub workers: Option<u32>,
}

/// Drops what `choose` says of the table as it is under the lock: first of the table alone, then, if
/// something is to go, beside the other job that is loading rows into it. Whoever comes after a waiting
/// ACCESS EXCLUSIVE waits behind it, readers too: `lock_within_ms` is how long the whole application may
/// stand still. The job is held by the server process `holder_pid` for this run.
///
/// # Errors
/// Table with SQLSTATE 55P03 when the table is not free within that time, and for what the server refuses;
/// those of ledger and session.
pub async fn drop_chosen(
    session: &Session,
    ledger: &Ledger,
    (job_id, holder_pid): (&str, i32),
    relation: &Relation,
    lock_within_ms: u64,
    choose: impl Fn(&Captured, Option<&Loading>) -> Chosen,
) -> Result<Dropped> {
    let mut reading = Reading::default();
    loop {
        match drop_once(session, ledger, (job_id, holder_pid), relation, lock_within_ms, &choose).await {
            Err(error) if reading.is_again(&error).await => {}
            dropped => return dropped,
        }
    }
}

async fn drop_once(
    session: &Session,
    ledger: &Ledger,
    (job_id, holder_pid): (&str, i32),
    relation: &Relation,
    lock_within_ms: u64,
    choose: &impl Fn(&Captured, Option<&Loading>) -> Chosen,
) -> Result<Dropped> {
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; {SPELLING_SQL}; \
         SET LOCAL lock_timeout = {lock_within_ms}; LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE",
        quote_relation(relation)
    );
    // Who is waited for.
    let mut busy = relation.clone();
    let run = async |busy: &Relation, sql: &str| {
        let done = session.client().batch_execute(sql).await;
        done.map_err(|error| refused(&error, relation, busy, lock_within_ms))
    };
    let dropped = async {
        run(relation, &begin).await?;
        // No name is looked up for what follows but by the functions of event triggers, which go by the
        // session's.
        let own_path = session.same_path_sql().await?;
        let Some(mut captured) = capture(session, relation).await? else { return Ok(Dropped::default()) };
        if captured.partitioned && !choose(&captured, None).is_empty() {
            // Partitions last, as the server itself locks them; then what stands under all these locks.
            let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", quote_relation(relation));
            run(relation, &lock).await?;
            let Some(locked) = capture(session, relation).await? else { return Ok(Dropped::default()) };
            captured = locked;
        }
        if !choose(&captured, None).is_empty() {
            keep_what_comes_back(session, ledger, (job_id, holder_pid), &mut captured).await?;
        }
        let mut chosen = choose(&captured, None);
        let mut kept_for = None;
        if let Some(other) = loading(session, ledger, job_id, &captured, &chosen).await? {
            let beside = choose(&captured, Some(&other));
            let (_, kept) = statements(&captured, &chosen.without(&beside));
            kept_for = Some((other, kept)).filter(|(_, kept)| !kept.is_empty());
            chosen = beside;
        }
        let (mut statements, names) = statements(&captured, &chosen);
        if chosen.is_empty() {
            return Ok(Dropped { names, kept_for, workers: None });
        }
        if let Some(index) = chosen.indexes.first().and_then(|no| captured.indexes.get(*no)) {
            expect_builds_allowed(session, relation, (&captured, index), &own_path).await?;
        }
        let mut changes: Vec<_> = changes(&captured, &chosen).cloned().collect();
        if let Some(workers) = chosen.workers {
            let place = Place::of(relation, captured.oids[0]);
            let (set, undo) = with_workers(&place, workers);
            statements.push(set);
            changes.push(undo);
        }
        for change in &changes {
            ledger.note_change(session, job_id, change).await?;
        }
        run(relation, &own_path).await?;
        // Each takes the table at its other end as well.
        for key in chosen.foreign_keys.iter().filter_map(|no| captured.foreign_keys.get(*no)) {
            busy.clone_from(&key.other);
            run(&busy, &key.drop_sql).await?;
        }
        busy.clone_from(relation);
        run(relation, &format!("{}; COMMIT", statements.join("; "))).await?;
        Ok(Dropped { names, kept_for, workers: chosen.workers })
    }
    .await;
    if !matches!(&dropped, Ok(dropped) if !dropped.names.is_empty()) {
        session.roll_back().await;
    }
    named(session, &busy, dropped).await
}

/// Where there are event triggers for it, an index is made as one is put back, and rolled back.
async fn expect_builds_allowed(
    session: &Session,
    relation: &Relation,
    (captured, index): (&Captured, &Index),
    own_path: &str,
) -> Result<()> {
    if !tried::is_watched(session).await? {
        return Ok(());
    }
    let trial = Tried {
        name: if captured.empty { tried::NAME } else { &index.name },
        on: if captured.empty { relation } else { &index.relation },
        table: relation,
        what: &format!("the indexes of {relation} cannot be dropped: CREATE INDEX, which puts them back"),
        way_out: "--indexes keep leaves them where they are",
    };
    trial.expect_allowed(session, own_path).await
}

/// Lets pass who is about to drop something of the table: what he has found under his lock, and what he has
/// noted, is to be seen afterwards. Others that hold the table are waited for no longer than he may take.
///
/// # Errors
/// Those of the session.
pub async fn wait_for_drops(session: &Session, relation: &Relation) -> Result<()> {
    // It takes the weakest of locks, for which no right is needed.
    let table = quote_literal(&quote_relation(relation));
    let sql = format!(
        "BEGIN; SET LOCAL lock_timeout = {DROPPED_WITHIN_MS}; \
         SELECT pg_catalog.pg_relation_size(pg_catalog.to_regclass({table})); COMMIT"
    );
    let Err(error) = session.client().batch_execute(&sql).await else { return Ok(()) };
    session.roll_back().await;
    match error.code().map(SqlState::code) {
        Some(sqlstate::LOCK_NOT_AVAILABLE) => Ok(()),
        _ => Err(session_error(&error, "waiting for the table")),
    }
}

/// Lets be what another job, or another run of this one, is putting back, step by step: an index that is
/// built and not yet a constraint, nor a part of its parent's, a foreign key that is not validated yet. It
/// would find nothing there to go on with.
async fn keep_what_comes_back(
    session: &Session,
    ledger: &Ledger,
    (job_id, holder_pid): (&str, i32),
    captured: &mut Captured,
) -> Result<()> {
    ledger.expect_journal(session).await?;
    let coming = ledger.coming_back(session, (job_id, holder_pid), &captured.oids).await?;
    let comes_back = |entries: &[NewUndo]| {
        let is_known = |entry: &NewUndo| coming.contains(&(entry.table_oid, entry.name.clone()));
        entries.iter().any(is_known).then(|| "another load is putting it back".to_owned())
    };
    for index in &mut captured.indexes {
        index.keep = index.keep.take().or_else(|| comes_back(&index.entries));
    }
    for key in &mut captured.foreign_keys {
        key.keep = key.keep.take().or_else(|| comes_back(&key.entries));
    }
    Ok(())
}

/// Another job at work that brings rows into the table, or into one whose foreign key is to go with it;
/// before all one that goes by what they refuse.
async fn loading(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    captured: &Captured,
    chosen: &Chosen,
) -> Result<Option<Loading>> {
    if chosen.is_empty() {
        return Ok(None);
    }
    let keys = chosen.foreign_keys.iter().filter_map(|no| captured.foreign_keys.get(*no));
    let mut relations: Vec<&Relation> = keys.filter(|key| !key.own).map(|key| &key.relation).collect();
    relations.push(&captured.relation);
    let mut found: Option<Loading> = None;
    for relation in relations {
        let other = ledger.loading(session, job_id, relation).await?;
        if other.as_ref().is_some_and(|other| other.judges || found.is_none()) {
            found = other;
        }
    }
    Ok(found)
}

/// Of foreign keys the names alone: they go before the keys they hang on.
fn statements(captured: &Captured, chosen: &Chosen) -> (Vec<String>, Vec<String>) {
    let mut names = Vec::new();
    let mut statements = Vec::new();
    for key in chosen.foreign_keys.iter().filter_map(|no| captured.foreign_keys.get(*no)) {
        let of = if key.own { String::new() } else { format!(" of {}", key.relation) };
        names.push(format!("foreign key {}{of}", key.name));
    }
    for index in chosen.indexes.iter().filter_map(|no| captured.indexes.get(*no)) {
        let of = if index.of_partition { format!(" of {}", index.relation) } else { String::new() };
        names.push(format!("{} {}{of}", index.what, index.name));
        statements.push(index.drop_sql.clone());
    }
    (statements, names)
}

fn changes<'a>(captured: &'a Captured, chosen: &'a Chosen) -> impl Iterator<Item = &'a NewUndo> {
    let indexes = chosen.indexes.iter().filter_map(|no| captured.indexes.get(*no));
    let keys = chosen.foreign_keys.iter().filter_map(|no| captured.foreign_keys.get(*no));
    indexes.flat_map(|index| &index.entries).chain(keys.flat_map(|key| &key.entries))
}

fn refused(
    error: &tokio_postgres::Error,
    relation: &Relation,
    busy: &Relation,
    lock_within_ms: u64,
) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "dropping indexes") };
    if let Some(error) = missing_beside_others(db, relation) {
        return error;
    }
    let sqlstate = db.code().code();
    if sqlstate == sqlstate::LOCK_NOT_AVAILABLE {
        let of_other =
            || (format!("foreign keys of {relation}"), format!("{busy}, which one of them ties to it,"));
        let of_this = || (format!("indexes of {relation}"), "the table,".to_owned());
        let (what, used) = if busy == relation { of_this() } else { of_other() };
        let message = format!(
            "the {what} cannot be dropped: other sessions use {used} and it was not free within {lock_within_ms} ms"
        );
        return Error::new(ErrorKind::Table, message)
            .with_sqlstate(sqlstate)
            .with_hint("end the transactions that hold it (pg_locks tells which), or give --indexes keep");
    }
    let names = [relation.name.as_str(), relation.schema.as_str()];
    let message = format!(
        "the indexes of {relation} cannot be dropped: the server says: {}",
        safe_message(db, names.into_iter())
    );
    if sqlstate == sqlstate::OUT_OF_MEMORY {
        return Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate).with_hint(
            "the server has too few locks for so many partitions and indexes: raise its max_locks_per_transaction, \
             or give --indexes keep",
        );
    }
    if is_final(sqlstate) {
        return Error::new(ErrorKind::Table, message)
            .with_sqlstate(sqlstate)
            .with_hint("--indexes keep leaves them where they are");
    }
    server_error(db, &message)
}
