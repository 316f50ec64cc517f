//! What an entry goes on with may be gone when its turn comes: somebody has dropped the index that was built
//! for a constraint, or one of the two that were to become parts of one another. The journal still says how
//! they are built: the entries that did so are opened again.

use super::entries::takes_index;
use super::put_back::PutBack;
use crate::error::session_error;
use crate::finish::DURABLE_SQL;
use crate::ledger::{Known, Ledger, NewUndo, Undo, UndoKind};
use crate::session::Session;
use howdah_model::Result;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::types::{ToSql, Type};

/// Opens again what this entry lacks, where the server has said that something is not there; `None` where
/// that is not the reason, or where the journal does not know how it was made.
///
/// # Errors
/// Those of ledger and session.
pub(super) async fn reopen(
    session: &Session,
    ledger: &Ledger,
    entry: &Undo,
    durable: bool,
) -> Result<Option<PutBack>> {
    let missed = needed(&entry.change);
    if missed.is_empty() {
        return Ok(None);
    }
    let commit = if durable { DURABLE_SQL } else { "SET LOCAL synchronous_commit = off" };
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    run(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {commit}")).await?;
    let done = async {
        if !ledger.take_undo(session, entry, false).await? {
            return Ok(Some(PutBack::ByAnother));
        }
        let journal = ledger.changes_of_its_job(session, entry).await?;
        if let Some(parent) = lost_parent(session, entry, &journal).await? {
            run(&ledger.undone_sql(entry.number)).await?;
            return Ok(Some(parent));
        }
        let Some(lost) = lost(session, missed, &journal).await? else { return Ok(None) };
        let numbers: Vec<i64> =
            lost.iter().filter(|known| !known.open).map(|known| known.undo.number).collect();
        ledger.open_again(session, &numbers).await?;
        Ok(Some(PutBack::Again(lost.iter().map(|known| known.undo.number).collect())))
    }
    .await;
    match done {
        Ok(Some(done)) => run("COMMIT").await.map(|()| Some(done)),
        done => {
            session.roll_back().await;
            done
        }
    }
}

const DOING: &str = "opening entries of the ledger's journal again";

/// What somebody may have dropped: an index as attachments name it, or the foreign key of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Index(String),
    ForeignKey(u32, String),
}

/// What an entry does not make and goes on with.
fn needed(change: &NewUndo) -> Vec<Thing> {
    match change.kind {
        UndoKind::Constraint if made(change).is_none() => vec![Thing::Index(change.index())],
        UndoKind::Attach => vec![Thing::Index(change.index()), Thing::Index(change.definition.clone())],
        UndoKind::Marks => vec![Thing::Index(change.index())],
        UndoKind::Validate => vec![Thing::ForeignKey(change.table_oid, change.name.clone())],
        _ => Vec::new(),
    }
}

fn made(change: &NewUndo) -> Option<Thing> {
    match change.kind {
        UndoKind::Index | UndoKind::PartitionedIndex | UndoKind::PartitionedConstraint => {
            Some(Thing::Index(change.index()))
        }
        // One that is not given an index makes its own.
        UndoKind::Constraint
            if !change.statements.iter().any(|sql| sql.contains(&takes_index(&change.name))) =>
        {
            Some(Thing::Index(change.index()))
        }
        UndoKind::ForeignKey => Some(Thing::ForeignKey(change.table_oid, change.name.clone())),
        _ => None,
    }
}

/// The entries that make what is lost of this, and those that went on with it; `None` where nothing is, or no
/// entry makes it.
async fn lost<'a>(
    session: &Session,
    missed: Vec<Thing>,
    journal: &'a [Known],
) -> Result<Option<Vec<&'a Known>>> {
    let (mut left, mut seen, mut lost) = (missed, BTreeSet::new(), BTreeMap::new());
    while let Some(thing) = left.pop() {
        if !seen.insert(thing.clone()) || is_there(session, &thing).await? {
            continue;
        }
        if !journal.iter().any(|known| made(&known.undo.change).as_ref() == Some(&thing)) {
            return Ok(None);
        }
        for known in journal {
            let change = &known.undo.change;
            let goes_on_with = needed(change);
            if made(change).as_ref() != Some(&thing) && !goes_on_with.contains(&thing) {
                continue;
            }
            left.extend(goes_on_with);
            let same = (change.kind, change.table_oid, &change.name, &change.definition);
            // Of several loads of the job the last has told it; one that is open already will do.
            let latest: &mut &Known = lost.entry(same).or_insert(known);
            if known.open || !latest.open {
                *latest = known;
            }
        }
    }
    Ok(Some(lost.into_values().collect()).filter(|lost: &Vec<&Known>| !lost.is_empty()))
}

async fn is_there(session: &Session, thing: &Thing) -> Result<bool> {
    let rows = match thing {
        Thing::Index(name) => {
            let sql =
                "SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1)::pg_catalog.oid";
            session.rows(sql, &[(name, Type::TEXT)], DOING).await?
        }
        Thing::ForeignKey(table_oid, name) => {
            let sql = "SELECT FROM pg_catalog.pg_constraint WHERE conrelid = $1 AND conname = $2";
            session.rows(sql, &[(table_oid, Type::OID), (name, Type::TEXT)], DOING).await?
        }
    };
    Ok(!rows.is_empty())
}

/// The index that this one was to become part of is gone with its table, or that table has this one's as a
/// partition no more.
async fn lost_parent(session: &Session, entry: &Undo, journal: &[Known]) -> Result<Option<PutBack>> {
    let change = &entry.change;
    let parent = Thing::Index(change.definition.clone());
    if change.kind != UndoKind::Attach || is_there(session, &parent).await? {
        return Ok(None);
    }
    let maker = journal.iter().rfind(|known| made(&known.undo.change).as_ref() == Some(&parent));
    let Some(maker) = maker else { return Ok(None) };
    let sql = "SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = $1 AND inhparent = $2";
    let tables: [(&(dyn ToSql + Sync), Type); 2] =
        [(&change.table_oid, Type::OID), (&maker.undo.change.table_oid, Type::OID)];
    Ok(session.rows(sql, &tables, DOING).await?.is_empty().then_some(PutBack::NoPartition))
}
