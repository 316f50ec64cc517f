//! What a table has that a load may drop: indexes, keys and foreign keys, read from the catalog with all that
//! it takes to put each back, and with the reason where it must not be dropped. Of a partitioned table, those
//! of all its partitions too. Changes nothing.

use super::catalog_sql::{DEFINITIONS_SQL, FOREIGN_KEYS_SQL, INDEXES_SQL, TABLES_SQL};
use super::needs::{self, Needs, usage_of};
use super::partitions::{Member, together};
use super::{SPELLING_SQL, entries, to_be_read};
use crate::error::session_error;
use crate::ledger::NewUndo;
use crate::session::{Session, elsewhere};
use crate::sql::{quote_ident, quote_relation};
use crate::steady::{Reading, expect_told, is_gone};
use crate::tree::BY_NAME_SQL;
use futures_util::{StreamExt, future, stream};
use howdah_model::{Error, Relation, Result, sqlstate};
use std::fmt;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// A table with its indexes and foreign keys.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The table.
    pub relation: Relation,
    /// Its OID, and those of its partitions on every level.
    pub oids: Vec<u32>,
    /// It has partitions, or may have.
    pub partitioned: bool,
    /// Why nothing of it may be dropped.
    pub keep: Option<String>,
    /// It has no pages at all, nor has a partition or table that inherits from it: no row, and none that was
    /// there.
    pub empty: bool,
    /// About how many rows it has.
    pub rows: f64,
    /// So many bytes they take.
    pub bytes: u64,
    /// A build of this role may have temporary files of so many bytes; `None` if there is no limit, or the
    /// role may lift it.
    pub temp_bytes_max: Option<u64>,
    /// Its owner has said how many workers its scans and builds take.
    pub workers_set: bool,
    /// Its indexes, the largest first.
    pub indexes: Vec<Index>,
    /// Its foreign keys, and those of other tables that refer to it.
    pub foreign_keys: Vec<ForeignKey>,
}

/// What an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Speed, or it is unique without a constraint.
    Index,
    /// A primary key.
    PrimaryKey,
    /// A unique constraint.
    Unique,
    /// An exclusion constraint.
    Exclusion,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Index => "index",
            What::PrimaryKey => "primary key",
            What::Unique => "unique constraint",
            What::Exclusion => "exclusion constraint",
        })
    }
}

/// One index, and its constraint where it has one; that of a partitioned table with those of its partitions
/// that are parts of it.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its OID, and those of its parts.
    pub oids: Vec<u32>,
    /// Its name, unquoted; that of the constraint is the same.
    pub name: String,
    /// The table that it belongs to: the captured one or a partition.
    pub relation: Relation,
    /// It belongs to a partition alone.
    pub of_partition: bool,
    /// What it is for.
    pub what: What,
    /// Its access method: `btree`, `gin` ...
    pub method: String,
    /// It refuses rows: unique or an exclusion constraint.
    pub refuses: bool,
    /// Keys of any length (text, arrays ...).
    pub long_keys: bool,
    /// Its first column are strings that the server compares by functions of the C library.
    pub compared_by_libc: bool,
    /// It has expressions or a predicate, which may fail on some rows.
    pub computed: bool,
    /// Its definition may be none any more when its columns have another type: it has expressions, a
    /// predicate, an operator class that is not the default, or is of a method that not every type has.
    pub of_types: bool,
    /// So many bytes each of its rows takes beside its header; `None` where they are of any length.
    pub row_bytes: Option<u64>,
    /// Why it must not be dropped.
    pub keep: Option<String>,
    pub(super) drop_sql: String,
    pub(super) entries: Vec<NewUndo>,
}

/// One foreign key.
#[derive(Debug, Clone)]
pub struct ForeignKey {
    /// Its name, unquoted.
    pub name: String,
    /// The table that it belongs to.
    pub relation: Relation,
    /// The table at its other end, seen from the captured one.
    pub(super) other: Relation,
    /// It belongs to the captured table or a partition (and may refer to these, too).
    pub own: bool,
    /// The index of the captured table that it hangs on; `None` if it refers to another table.
    pub index_oid: Option<u32>,
    /// It refuses rows (PostgreSQL 18 has foreign keys that are NOT ENFORCED).
    pub enforced: bool,
    /// Why it must not be dropped.
    pub keep: Option<String>,
    pub(super) drop_sql: String,
    pub(super) entries: Vec<NewUndo>,
}

/// Definitions of indexes are told only under a lock of their table. Whoever only looks waits for that no
/// longer, and lets them be.
const LOOK_WITHIN: &str = "2s";

/// Reads what the table has, in a transaction of its own that only reads; `None` if there is no such table.
///
/// # Errors
/// Those of the session.
pub async fn look(session: &Session, relation: &Relation) -> Result<Option<Captured>> {
    let mut reading = Reading::default();
    loop {
        match look_once(session, relation).await {
            Err(error) if reading.is_again(&error).await => {}
            read => return read,
        }
    }
}

async fn look_once(session: &Session, relation: &Relation) -> Result<Option<Captured>> {
    let fail = |error| session_error(&error, "reading the table's indexes");
    let begin = format!("BEGIN READ ONLY; {SPELLING_SQL}; SET LOCAL lock_timeout = '{LOOK_WITHIN}'");
    let client = session.client();
    // Sent together.
    let (begun, captured) = future::join(client.batch_execute(&begin), capture(session, relation)).await;
    session.roll_back_unheard();
    begun.map_err(fail)?;
    match captured {
        Err(error) if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => {
            Ok(Some(Captured::not_free(relation)))
        }
        captured => captured,
    }
}

/// Questions that are under way at once, where there are many tables.
const AT_ONCE: usize = 32;

/// The same of many tables, in their order: a server far away is not waited for once for each.
///
/// # Errors
/// Those of the session.
pub async fn look_at_each(session: &Session, relations: &[&Relation]) -> Result<Vec<Option<Captured>>> {
    if relations.len() > 1 {
        match look_together(session, relations).await {
            // Which of them is not free, or of which something is gone, is seen one by one.
            Err(error) if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) || is_gone(&error) => {}
            looked => return looked,
        }
    }
    let mut looked = Vec::new();
    for relation in relations {
        looked.push(look(session, relation).await?);
    }
    Ok(looked)
}

/// In one transaction.
async fn look_together(session: &Session, relations: &[&Relation]) -> Result<Vec<Option<Captured>>> {
    let fail = |error| session_error(&error, "reading the tables' indexes");
    let begin = format!("BEGIN READ ONLY; {SPELLING_SQL}; SET LOCAL lock_timeout = '{LOOK_WITHIN}'");
    let client = session.client();
    let (begun, path) = future::join(client.batch_execute(&begin), leave_path(session)).await;
    begun.map_err(fail)?;
    let path = path?;
    let capturing: Vec<_> = relations
        .iter()
        .map(|relation| async {
            let tables = tables(session, relation).await?;
            capture_under(session, relation, &path, &tables).await
        })
        .collect();
    let captured: Vec<Result<_>> = stream::iter(capturing).buffered(AT_ONCE).collect().await;
    session.roll_back_unheard();
    // The one that is not free ends the transaction for all of them, those before it too.
    let is_reason = |error: &&Error| error.sqlstate() != Some(sqlstate::IN_FAILED_SQL_TRANSACTION);
    let reason = captured.iter().filter_map(|looked| looked.as_ref().err()).find(is_reason).cloned();
    reason.map_or_else(|| captured.into_iter().collect(), Err)
}

impl Captured {
    /// Of a table of which nobody knows more.
    fn not_free(relation: &Relation) -> Captured {
        Captured {
            relation: relation.clone(),
            oids: Vec::new(),
            partitioned: false,
            keep: Some("somebody has the table, or a partition, to himself".to_owned()),
            empty: false,
            rows: 0.0,
            bytes: 0,
            temp_bytes_max: None,
            workers_set: false,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
        }
    }
}

/// The same in an open transaction, whose `search_path` is empty afterwards.
pub(super) async fn capture(session: &Session, relation: &Relation) -> Result<Option<Captured>> {
    // Sent together, in this order.
    let (path, tables) = future::try_join(leave_path(session), tables(session, relation)).await?;
    capture_under(session, relation, &path, &tables).await
}

/// The transaction's `search_path`, which is empty afterwards.
async fn leave_path(session: &Session) -> Result<String> {
    let client = session.client();
    let asked = future::try_join(
        client.query_typed(SCHEMAS_SQL, &[]),
        client.batch_execute("SET LOCAL search_path = ''"),
    );
    let (path, ()) = asked.await.map_err(|error| unread(&error))?;
    Ok(search_path(&path))
}

/// The table and its partitions.
async fn tables(session: &Session, relation: &Relation) -> Result<Vec<Row>> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let sql = format!("{BY_NAME_SQL} {TABLES_SQL}");
    let tables = session.client().query_typed(&sql, &names).await.map_err(|error| unread(&error))?;
    expect_told(&tables, &[8, 10])?;
    Ok(tables)
}

fn unread(error: &tokio_postgres::Error) -> Error {
    session_error(error, "reading the table's indexes")
}

/// What these [`tables`] have, where this was the `search_path`.
async fn capture_under(
    session: &Session,
    relation: &Relation,
    path: &str,
    tables: &[Row],
) -> Result<Option<Captured>> {
    let client = session.client();
    let fail = |error: tokio_postgres::Error| unread(&error);
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let of_tree = |sql: &str| format!("{BY_NAME_SQL} {sql}");
    // Alone the planning of the other two takes the server some 5 ms, and most staging tables have neither.
    let (indexes, foreign_keys, (elsewhere, needs)) = if tables.iter().any(|row| row.get(16)) {
        let (indexes, foreign_keys) = (of_tree(INDEXES_SQL), of_tree(FOREIGN_KEYS_SQL));
        let asked =
            future::try_join(client.query_typed(&indexes, &names), client.query_typed(&foreign_keys, &names));
        let else_asked =
            future::try_join(elsewhere::why_elsewhere(session, relation), needs::look(session, relation));
        let (asked, else_asked) = future::join(asked, else_asked).await;
        let (indexes, foreign_keys) = asked.map_err(fail)?;
        expect_told(&indexes, &[2, 10]).and_then(|()| expect_told(&foreign_keys, &[6, 10]))?;
        (indexes, foreign_keys, else_asked?)
    } else {
        Default::default()
    };
    let Some(table) = tables.first() else { return Ok(None) };
    let oids: Vec<u32> = tables.iter().map(|row| row.get(0)).collect();
    let identity_needed = tables.iter().any(|row| row.get(9));
    let parts: Vec<(u32, Relation)> = tables[1..].iter().map(named).collect();
    let foreign_keys: Vec<ForeignKey> =
        foreign_keys.iter().map(|row| foreign_key(row, &oids, &parts, path)).collect();
    let Needs { mut lacking, temp_bytes_max } = needs;
    let mut members: Vec<Member> =
        indexes.iter().map(|row| member(row, path, identity_needed, &foreign_keys)).collect();
    keep_meaning(session, path, &mut members).await?;
    for member in members.iter_mut().filter(|member| member.keep.is_none()) {
        member.keep = lacking.remove(&member.oid);
    }
    let sizes = tables.iter().map(bytes_and_rows);
    let (bytes, rows) = sizes.fold((0, 0.0), |(bytes, rows), of| (bytes + of.0, rows + of.1));
    Ok(Some(Captured {
        relation: relation.clone(),
        partitioned: table.get(14),
        keep: keep_table(table)
            .or_else(|| elsewhere.map(str::to_owned))
            .or_else(|| tables[1..].iter().find_map(keep_partition)),
        empty: bytes == 0 && elsewhere.is_none(),
        rows,
        bytes,
        temp_bytes_max,
        workers_set: table.get(17),
        indexes: together(&members, oids[0]),
        foreign_keys,
        oids,
    }))
}

/// Gives the indexes that hold expressions or operators the definitions that mean the same under this
/// `search_path`. What the server tells under an empty one names functions of its own by their names alone:
/// under another path that could be a function of a user's schema whose arguments fit better.
async fn keep_meaning(session: &Session, path: &str, members: &mut [Member]) -> Result<()> {
    let speaks = |member: &&Member| member.computed || member.found.what == What::Exclusion;
    let oids: Vec<u32> = members.iter().filter(speaks).map(|member| member.oid).collect();
    if oids.is_empty() {
        return Ok(());
    }
    let client = session.client();
    let set = format!("SET LOCAL search_path = {path}");
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&oids, Type::OID_ARRAY)];
    // Sent together, in this order.
    let asked = future::try_join3(
        client.batch_execute(&set),
        client.query_typed(DEFINITIONS_SQL, &parameters),
        client.batch_execute("SET LOCAL search_path = ''"),
    );
    let ((), rows, ()) = asked.await.map_err(|error| session_error(&error, "reading the table's indexes"))?;
    for row in &rows {
        let oid: u32 = row.get(0);
        // Nothing is told of one that has just gone.
        let (create, constraint): (Option<&str>, Option<&str>) = (row.get(1), row.get(2));
        for found in members.iter_mut().filter(|member| member.oid == oid).map(|member| &mut member.found) {
            if let Some(under_path) = create {
                found.create_sql = to_be_read(&found.definition, under_path).to_owned();
            }
            if let (Some(in_full), Some(under_path)) = (&found.constraint, constraint) {
                found.constraint_sql = Some(to_be_read(in_full, under_path).to_owned());
            }
        }
    }
    Ok(())
}

fn named(row: &Row) -> (u32, Relation) {
    (row.get(0), Relation { schema: row.get(1), name: row.get(2) })
}

/// The schemas of the session's `search_path`, as [`search_path`] takes them.
pub(crate) const SCHEMAS_SQL: &str = "SELECT pg_catalog.current_schemas(false)";

/// What names without a schema mean to the session, ready for SET: expressions of indexes may call functions
/// that depend on it.
pub(crate) fn search_path(schemas: &[Row]) -> String {
    let schemas: Vec<String> = schemas.first().map(|row| row.get(0)).unwrap_or_default();
    let own = schemas.iter().filter(|name| *name != "pg_catalog").map(|name| quote_ident(name));
    std::iter::once("pg_catalog".to_owned()).chain(own).collect::<Vec<_>>().join(", ")
}

/// Bytes now and about how many rows: those of the last ANALYZE, grown as the table has grown since. A table
/// that was never analysed is taken for one of 100 bytes a row.
fn bytes_and_rows(row: &Row) -> (u64, f64) {
    let (bytes, tuples, analysed_pages, page_bytes): (i64, f64, i64, i64) =
        (row.get(10), row.get(11), row.get(12), row.get(13));
    let pages = bytes / page_bytes.max(1);
    let rows = if tuples > 0.0 && analysed_pages > 0 {
        tuples * pages as f64 / analysed_pages as f64
    } else {
        bytes as f64 / 100.0
    };
    (bytes.unsigned_abs(), rows)
}

fn keep_table(row: &Row) -> Option<String> {
    let flag = |at: usize| row.get::<_, bool>(at);
    let reason = match () {
        () if flag(6) => "it is a table of the system",
        () if flag(3) => "the table is a partition",
        () if !flag(4) && !flag(14) => "it is no ordinary table",
        () if flag(5) => "the table inherits from another",
        () if !flag(7) => "the table belongs to another role",
        () if !flag(8) => "putting indexes back needs CREATE on the table's schema",
        () => return None,
    };
    Some(reason.to_owned())
}

/// The server leaves foreign tables out of a partitioned index when it makes it, but counts them when parts
/// are attached: such an index would never become valid again.
fn keep_partition(row: &Row) -> Option<String> {
    let flag = |at: usize| row.get::<_, bool>(at);
    let partition = Relation { schema: row.get(1), name: row.get(2) };
    let reason = match () {
        () if !flag(4) && !flag(14) => "is no ordinary table",
        () if flag(15) => "is being detached",
        () if !flag(7) => "belongs to another role",
        () if !flag(8) => "is in a schema in which this role may not CREATE",
        () => return None,
    };
    Some(format!("the partition {partition} {reason}"))
}

fn member(row: &Row, search_path: &str, identity_needed: bool, foreign_keys: &[ForeignKey]) -> Member {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    let what = match text(12).as_deref() {
        Some("p") => What::PrimaryKey,
        Some("u") => What::Unique,
        Some("x") => What::Exclusion,
        _ => What::Index,
    };
    let found = entries::FoundIndex {
        name: row.get(1),
        definition: row.get(2),
        create_sql: row.get(2),
        what,
        tablespace: row.get(9),
        comment: text(11),
        deferrable: row.get::<_, Option<bool>>(13).unwrap_or(false),
        deferred: row.get::<_, Option<bool>>(14).unwrap_or(false),
        constraint: text(15),
        constraint_sql: text(15),
        constraint_comment: text(16),
        statistics: row.get::<_, Vec<i32>>(18).into_iter().zip(row.get::<_, Vec<i32>>(19)).collect(),
        extensions: row.get(20),
        clustered: row.get(6),
        replica_identity: row.get(7),
        inherits_not_null: row.get::<_, Option<bool>>(35).unwrap_or(false),
        partitioned: row.get(28),
        options: text(30),
        compared_by_libc: row.get(31),
    };
    let oid = row.get(0);
    let relation = Relation { schema: row.get(26), name: row.get(27) };
    let place = entries::Place { relation, table_oid: row.get(25), search_path: search_path.to_owned() };
    let (valid, is_identity, may_use_tablespace): (bool, bool, bool) = (row.get(4), row.get(5), row.get(10));
    let (temporal, of_extension): (bool, bool) = (row.get(17), row.get(22));
    let hangs = foreign_keys.iter().find(|key| key.index_oid == Some(oid) && key.keep.is_some());
    let keep = match (text(34), text(21)) {
        _ if !valid => Some("it is not valid".to_owned()),
        _ if is_identity && identity_needed => {
            Some("logical replication needs it as the table's replica identity".to_owned())
        }
        _ if !may_use_tablespace => Some("putting it back needs CREATE on its tablespace".to_owned()),
        _ if of_extension => Some("it belongs to an extension".to_owned()),
        _ if temporal => Some("it is a key over time (WITHOUT OVERLAPS)".to_owned()),
        // The server lets a key's column become so, and then takes no new key of it.
        (Some(column), _) => Some(format!("the NOT NULL of its column {column} is NO INHERIT")),
        (None, Some(dependent)) => Some(format!("{dependent} depends on it")),
        (None, None) => hangs.map(|key| {
            let why = key.keep.as_deref().unwrap_or_default();
            format!("the foreign key {} of {} hangs on it: {why}", key.name, key.relation)
        }),
    };
    Member {
        oid,
        parent: row.get(29),
        method: row.get(8),
        refuses: row.get::<_, bool>(3) || what == What::Exclusion,
        long_keys: row.get::<_, Option<bool>>(23).unwrap_or(false),
        computed: row.get(24),
        of_types: row.get(32),
        row_bytes: row.get::<_, Option<i64>>(33).map(i64::unsigned_abs),
        keep,
        place,
        found,
    }
}

fn foreign_key(row: &Row, captured_oids: &[u32], parts: &[(u32, Relation)], search_path: &str) -> ForeignKey {
    let flag = |at: usize| row.get::<_, bool>(at);
    let (table_oid, referenced_oid): (u32, u32) = (row.get(1), row.get(4));
    let relation = Relation { schema: row.get(2), name: row.get(3) };
    let own = captured_oids.contains(&table_oid);
    let (dependent, closed_schema): (Option<String>, Option<String>) = (row.get(16), row.get(19));
    let twin: Option<String> = row.get(20);
    let keep = match () {
        () if flag(12) => Some("a partitioned table has to do with it".to_owned()),
        () if !flag(9) => Some(format!("{relation} belongs to another role")),
        () if !flag(10) => Some("putting it back needs REFERENCES on the table that it refers to".to_owned()),
        // Its triggers stand there, and DROP TRIGGER is the owner's.
        () if !flag(11) => Some("the table that it refers to belongs to another role".to_owned()),
        () if flag(13) => Some("its triggers are disabled or enabled otherwise than usual".to_owned()),
        () if !flag(14) => Some("it is not enforced".to_owned()),
        () if flag(15) => Some("it is a key over time (PERIOD)".to_owned()),
        () => closed_schema
            .map(|schema| usage_of(&schema))
            .or_else(|| dependent.map(|dependent| format!("{dependent} depends on it")))
            .or_else(|| twin.map(|twin| format!("it might come back hanging on the index {twin}"))),
    };
    let found = entries::FoundForeignKey {
        name: row.get(0),
        definition: row.get(6),
        validated: flag(7),
        comment: row.get(8),
        // Those of partitions alone stay where they are.
        partitions: if captured_oids.first() == Some(&table_oid) { parts.to_vec() } else { Vec::new() },
    };
    let place = entries::Place { relation: relation.clone(), table_oid, search_path: search_path.to_owned() };
    ForeignKey {
        drop_sql: format!(
            "ALTER TABLE {} DROP CONSTRAINT {}",
            quote_relation(&relation),
            quote_ident(&found.name)
        ),
        entries: found.entries(&place),
        name: found.name,
        own,
        other: if own { Relation { schema: row.get(17), name: row.get(18) } } else { relation.clone() },
        index_oid: captured_oids.contains(&referenced_oid).then(|| row.get(5)),
        enforced: flag(14),
        relation,
        keep,
    }
}
