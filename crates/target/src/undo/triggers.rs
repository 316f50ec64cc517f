//! Triggers that rows of a load would fire, and how they are kept from it: by the role of the load's own
//! sessions, or by disabling them, which is written into the journal in the same transaction.

use super::SPELLING_SQL;
use super::catalog_sql::TRIGGERS_SQL;
use crate::copy::server_error::safe_message;
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Ledger, NewUndo, UndoKind};
use crate::locks::named;
use crate::rewrite::{self, Event};
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use crate::tree::BY_NAME_SQL;
use futures_util::future;
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// What a row that is inserted into a table, or into one of its partitions, fires.
#[derive(Debug, Clone)]
pub struct Triggers {
    /// The role that has looked.
    pub role: String,
    /// This role may set `session_replication_role`.
    pub may_replica: bool,
    /// The role's sessions have it set to `replica` already: neither usual triggers fire nor those that check
    /// constraints.
    pub is_replica: bool,
    /// Triggers that fire as usual.
    pub fired: Vec<Trigger>,
    /// Names of those that fire whatever the role of the session is.
    pub always: Vec<String>,
    /// Names of those that fire for replicas alone.
    pub replica: Vec<String>,
    /// Constraints that triggers of the server check: foreign keys, and keys that are deferrable.
    pub checks: Vec<Check>,
    /// The names of rules on INSERT, which COPY passes by.
    pub rules: Option<String>,
}

/// A trigger that somebody has made.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// Its name, unquoted.
    pub name: String,
    /// The table that it belongs to.
    pub relation: Relation,
    /// It fires for each row.
    pub row: bool,
    /// It fires before the row is stored.
    pub before: bool,
    /// Why this role cannot disable it and enable it again.
    pub cannot: Option<String>,
    /// Others of it, those of the parent or of partitions, are in another state: each is disabled, and comes
    /// back, alone.
    pub uneven: bool,
    partitioned: bool,
    table_oid: u32,
    definition: String,
}

/// A constraint that is checked by triggers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// It is a foreign key.
    pub foreign_key: bool,
    /// Its name, unquoted.
    pub name: String,
}

impl Triggers {
    /// Nothing fires, and no rule is passed by.
    pub fn is_empty(&self) -> bool {
        let Triggers { fired, always, replica, checks, rules, .. } = self;
        fired.is_empty() && always.is_empty() && replica.is_empty() && checks.is_empty() && rules.is_none()
    }
}

impl Trigger {
    /// Parents take the triggers that their partitions have from them along, unless they are told not to.
    fn table(&self) -> String {
        let only = if self.partitioned && !self.uneven { "" } else { "ONLY " };
        format!("{only}{}", quote_relation(&self.relation))
    }

    fn disable_sql(&self) -> String {
        format!("ALTER TABLE {} DISABLE TRIGGER {}", self.table(), quote_ident(&self.name))
    }

    fn undo(&self) -> NewUndo {
        NewUndo {
            kind: UndoKind::Trigger,
            relation: self.relation.clone(),
            table_oid: self.table_oid,
            name: self.name.clone(),
            definition: self.definition.clone(),
            statements: vec![format!(
                "ALTER TABLE {} ENABLE TRIGGER {}",
                self.table(),
                quote_ident(&self.name)
            )],
            compared_by_libc: false,
        }
    }
}

/// Reads what fires, in one flight.
///
/// # Errors
/// Those of the session.
pub async fn look(session: &Session, relation: &Relation) -> Result<Triggers> {
    let fail = |error| session_error(&error, "reading the table's triggers");
    let client = session.client();
    let begin = format!("BEGIN READ ONLY; {SPELLING_SQL}");
    let asked = future::join4(
        client.batch_execute(&begin),
        read(session, relation, Definitions::Left),
        rewrite::rules(session, relation, &[Event::Insert]),
        client.batch_execute("ROLLBACK"),
    );
    let (begun, rows, rules, ended) = asked.await;
    begun.map_err(fail)?;
    let (rows, rules) = (rows?, rules?);
    ended.map_err(fail)?;
    Ok(Triggers { rules, ..found(&rows, false, session.server_version()) })
}

/// The same, and tries what this role may: what it may not stands in the server's log.
///
/// # Errors
/// Those of the session.
pub async fn look_and_try(session: &Session, relation: &Relation) -> Result<Triggers> {
    let fail = |error| session_error(&error, "reading the table's triggers");
    let client = session.client();
    let begin = format!("BEGIN READ ONLY; {SPELLING_SQL}");
    // Sent together.
    let asked = future::join3(
        client.batch_execute(&begin),
        read(session, relation, Definitions::Left),
        rewrite::rules(session, relation, &[Event::Insert]),
    );
    let (begun, rows, rules) = asked.await;
    begun.map_err(fail)?;
    let (rows, rules) = (rows?, rules?);
    // Who may is for the server to say: extensions of managed servers have a say in it.
    let may_replica = match client.batch_execute("SET LOCAL session_replication_role TO replica").await {
        Err(error) if error.as_db_error().is_some() => false,
        tried => tried.map(|()| true).map_err(fail)?,
    };
    client.batch_execute("ROLLBACK").await.map_err(fail)?;
    Ok(Triggers { rules, ..found(&rows, may_replica, session.server_version()) })
}

/// Of the triggers that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Definitions {
    /// The table is locked.
    Told,
    /// Empty: for some, the server waits for a lock.
    Left,
}

async fn read(session: &Session, relation: &Relation, definitions: Definitions) -> Result<Vec<Row>> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let definition = match definitions {
        Definitions::Told => "pg_catalog.pg_get_triggerdef(t.oid)",
        Definitions::Left => "''::pg_catalog.text",
    };
    let sql = format!("{BY_NAME_SQL} {}", TRIGGERS_SQL.replace("@definition@", definition));
    let rows = session.client().query_typed(&sql, &names).await;
    rows.map_err(|error| session_error(&error, "reading the table's triggers"))
}

/// Before these minor versions, ALTER TABLE ONLY ... DISABLE TRIGGER took partitions along (release notes of
/// 13.8 and 14.5).
fn honors_only(server_version: u32) -> bool {
    match server_version / 10_000 {
        13 => server_version >= 130_008,
        14 => server_version >= 140_005,
        _ => true,
    }
}

fn found(rows: &[Row], may_replica: bool, server_version: u32) -> Triggers {
    let states: BTreeMap<u32, &str> = rows.iter().map(|row| (row.get(11), row.get(4))).collect();
    let state_of_parent = |row: &Row| states.get(&row.get::<_, u32>(12)).copied();
    let differs = |row: &&Row| state_of_parent(row).is_some_and(|state| state != row.get::<_, &str>(4));
    let uneven: BTreeSet<&str> = rows.iter().filter(differs).map(|row| row.get(0)).collect();
    let is_uneven = |row: &Row| uneven.contains(row.get::<_, &str>(0));
    let (mut fired, mut always, mut replica) = (Vec::new(), Vec::new(), Vec::new());
    let mut checks = BTreeSet::new();
    for row in rows {
        let (name, constraint, state): (&str, Option<&str>, &str) = (row.get(0), row.get(7), row.get(4));
        match (constraint, state) {
            (_, "D") => {}
            (Some(what), "O") => {
                checks.insert(Check { foreign_key: what == "f", name: row.get(8) });
            }
            // Someone has seen to these.
            (Some(_), _) => {}
            // It comes and goes with its parent.
            (None, state) if state_of_parent(row) == Some(state) && !is_uneven(row) => {}
            (None, "A") => add(&mut always, name),
            (None, "R") => add(&mut replica, name),
            (None, _) => fired.push(trigger(row, is_uneven(row), server_version)),
        }
    }
    let role = rows.first().map(|row| row.get(14)).unwrap_or_default();
    let is_replica = rows.first().is_some_and(|row| row.get(15));
    let checks = checks.into_iter().collect();
    Triggers { role, may_replica, is_replica, fired, always, replica, checks, rules: None }
}

fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

fn trigger(row: &Row, uneven: bool, server_version: u32) -> Trigger {
    let relation = Relation { schema: row.get(2), name: row.get(3) };
    let (owned, partitioned): (bool, bool) = (row.get(9), row.get(10));
    let cannot = match () {
        () if !owned => Some(format!("{relation} belongs to another role")),
        () if partitioned && uneven && !honors_only(server_version) => {
            Some(format!("its state differs between {relation} and its partitions"))
        }
        () => None,
    };
    Trigger {
        name: row.get(0),
        row: row.get(5),
        before: row.get(6),
        cannot,
        uneven,
        partitioned,
        table_oid: row.get(1),
        definition: row.get(13),
        relation,
    }
}

/// Each name once: partitions have the triggers of their parents.
pub fn names(triggers: &[Trigger]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = triggers.iter().map(|trigger| trigger.name.as_str());
    names.filter(|name| seen.insert(*name)).collect()
}

/// Disables the triggers that fire as usual, as the table has them under the lock. Returns their names.
///
/// # Errors
/// Table with SQLSTATE 55P03 when the table is not free within that time, and for what the server refuses;
/// those of ledger and session.
pub async fn disable(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    relation: &Relation,
    lock_within_ms: u64,
) -> Result<Vec<String>> {
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; {SPELLING_SQL}; \
         SET LOCAL lock_timeout = {lock_within_ms}; LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE",
        quote_relation(relation)
    );
    let run = async |session: &Session, relation: &Relation, sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| refused(&error, relation, lock_within_ms))
    };
    let disabled = async {
        run(session, relation, &begin).await?;
        let rows = read(session, relation, Definitions::Told).await?;
        let Triggers { fired, .. } = found(&rows, false, session.server_version());
        if !fired.is_empty() {
            ledger.expect_journal(session).await?;
        }
        for trigger in &fired {
            ledger.note_change(session, job_id, &trigger.undo()).await?;
            run(session, relation, &trigger.disable_sql()).await?;
        }
        run(session, relation, "COMMIT").await?;
        Ok(names(&fired).into_iter().map(str::to_owned).collect())
    }
    .await;
    named(session, relation, session.or_roll_back(disabled).await).await
}

fn refused(error: &tokio_postgres::Error, relation: &Relation, lock_within_ms: u64) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "disabling triggers") };
    let sqlstate = db.code().code();
    let title = format!("the triggers of {relation} cannot be disabled");
    let names = [relation.name.as_str(), relation.schema.as_str()];
    let told = safe_message(db, names.into_iter());
    match sqlstate {
        sqlstate::LOCK_NOT_AVAILABLE => {
            let message = format!(
                "{title}: other sessions write into the table, and it was not free within {lock_within_ms} ms"
            );
            Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate).with_hint(
                "end the transactions that hold it (pg_locks tells which), or give --triggers keep",
            )
        }
        _ if ["0A", "2B", "42"].iter().any(|class| sqlstate.starts_with(class)) => {
            Error::new(ErrorKind::Table, format!("{title}: the server says: {told}"))
                .with_sqlstate(sqlstate)
                .with_hint("--triggers keep lets them fire")
        }
        _ => server_error(db, &format!("{title}: the server says: {told}")),
    }
}
