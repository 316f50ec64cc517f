//! The partitions of a table, as far as the client can route rows to them. A partitioned table enters; a
//! [`RoutePlan`] leaves, or the reason why there is none. One transaction that reads.
//!
//! A leaf gets rows directly only where that comes to the same as rows that go through the table: its columns
//! that are not sent have the same defaults, no trigger of a statement would fire or not fire, no policy
//! hides behind it, and the role may.

use super::Session;
use super::bounds::{self, BoundOf};
use super::column_types::ColumnTypes;
use crate::error::session_error;
use crate::steady::{Reading, expect_told};
use crate::tree::{self, tree_of};
use howdah_model::route::{
    Destination, KeyKind, LEAF_ROWS_MIN, Leaf, Partition, PartitionKey, PartitionedTable, RoutePlan, Strategy,
};
use howdah_model::{BinaryType, Relation, Result, Table};
use std::collections::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The table and all below it, parents before their partitions. Columns that some versions lack are looked up
/// in a row made to JSON. An expression that names no column is spelled without its table, whose lock some
/// versions would wait for. `tgtype & 5 = 4` is a trigger FOR EACH STATEMENT (1 is not set) ON INSERT (4).
const NODES_SQL: &str = "\
    SELECT c.oid, tree.parent, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.relkind::pg_catalog.text, \
           c.relrowsecurity, pg_catalog.has_table_privilege(c.oid, 'INSERT'), \
           EXISTS (SELECT FROM pg_catalog.pg_trigger t \
                   WHERE t.tgrelid = c.oid AND t.tgtype & 5::pg_catalog.int2 = 4 AND t.tgenabled <> 'D'), \
           (SELECT pg_catalog.string_agg(pg_catalog.format('%I %s %s %s', a.attname, a.attidentity, a.attgenerated, \
                                             pg_catalog.pg_get_expr(d.adbin, CASE WHEN a.attgenerated = '' THEN 0::pg_catalog.oid ELSE d.adrelid END)), \
               ',' ORDER BY a.attname) \
            FROM pg_catalog.pg_attribute a \
            LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL ($2)), \
           pg_catalog.pg_get_expr(c.relpartbound, 0::pg_catalog.oid), p.partstrat::pg_catalog.text, \
           ARRAY(SELECT coalesce(a.attname::pg_catalog.text, '') \
                 FROM pg_catalog.unnest(p.partattrs::pg_catalog.int2[]) WITH ORDINALITY k(attnum, no) \
                 LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum AND k.attnum > 0 \
                 ORDER BY k.no), \
           ARRAY(SELECT CASE WHEN o.opcdefault AND o.opcnamespace = 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid \
                             THEN o.opcintype ELSE 0::pg_catalog.oid END \
                 FROM pg_catalog.unnest(p.partclass::pg_catalog.oid[]) WITH ORDINALITY k(class, no) \
                 JOIN pg_catalog.pg_opclass o ON o.oid = k.class ORDER BY k.no), \
           ARRAY(SELECT CASE \
                     WHEN k.coll = 0::pg_catalog.oid THEN 'C' \
                     WHEN NOT co.collisdeterministic THEN 'loose' \
                     WHEN co.collprovider = 'b' OR co.collprovider = 'c' AND co.collcollate IN ('C', 'POSIX') THEN 'C' \
                     WHEN co.collprovider = 'd' AND (pg_catalog.to_jsonb(db) ->> 'datlocprovider'::pg_catalog.text = 'b' \
                         OR coalesce(pg_catalog.to_jsonb(db) ->> 'datlocprovider'::pg_catalog.text, 'c') = 'c' \
                            AND db.datcollate IN ('C', 'POSIX')) THEN 'C' \
                     ELSE '' END \
                 FROM pg_catalog.unnest(p.partcollation::pg_catalog.oid[]) WITH ORDINALITY k(coll, no) \
                 LEFT JOIN pg_catalog.pg_collation co ON co.oid = k.coll ORDER BY k.no), \
           pg_catalog.current_setting('server_encoding'), \
           ARRAY(SELECT CASE WHEN t.typtype <> 'd' THEN a.atttypmod WHEN b.typtype <> 'd' THEN t.typtypmod END \
                 FROM pg_catalog.unnest(p.partattrs::pg_catalog.int2[]) WITH ORDINALITY k(attnum, no) \
                 LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum AND k.attnum > 0 \
                 LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
                 LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype ORDER BY k.no) \
    FROM tree \
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = c.oid \
    JOIN pg_catalog.pg_database db ON db.datname = pg_catalog.current_database() \
    WHERE NOT tree.is_detached ORDER BY tree.level, c.oid";

/// More leaves than a plan should hold are left to the server.
const LEAVES_MAX: usize = 4096;

/// The table or one of its partitions has an index.
///
/// # Errors
/// Those of the session.
pub async fn has_indexes(session: &Session, table: &Table) -> Result<bool> {
    let sql = format!(
        "{}SELECT FROM tree JOIN pg_catalog.pg_index i ON i.indrelid = tree.oid LIMIT 1",
        tree::BY_OID_SQL
    );
    let rows = session.client().query_typed(&sql, &[(&table.oid, Type::OID)]).await;
    Ok(!rows.map_err(|error| session_error(&error, "reading the partitions of the table"))?.is_empty())
}

/// What a transaction locks that reaches all partitions, and what there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locks {
    /// Tables and indexes.
    pub objects: u64,
    /// So many of them the server's lock table is made for, and twice as many locks of them.
    pub room: u64,
}

/// Each backend that there may be has its share. A session that COPY has led to a partition holds it and its
/// indexes until its transaction ends.
const LOCKS_SQL: &str = "\
    SELECT (SELECT count(*) FROM tree) + (SELECT count(*) FROM tree JOIN pg_catalog.pg_index i ON i.indrelid = tree.oid), \
           pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int8 \
           * (pg_catalog.current_setting('max_connections')::pg_catalog.int8 \
              + pg_catalog.current_setting('autovacuum_max_workers')::pg_catalog.int8 + 1 \
              + pg_catalog.current_setting('max_worker_processes')::pg_catalog.int8 \
              + pg_catalog.current_setting('max_wal_senders')::pg_catalog.int8 \
              + pg_catalog.current_setting('max_prepared_transactions')::pg_catalog.int8)";

/// Counts those of the tables with these OIDs.
///
/// # Errors
/// Those of the session.
pub async fn locks(session: &Session, oids: &[u32]) -> Result<Locks> {
    let sql =
        format!("{}{LOCKS_SQL}", tree_of!("oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS given (oid)"));
    let rows = session.client().query_typed(&sql, &[(&oids, Type::OID_ARRAY)]).await;
    let rows = rows.map_err(|error| session_error(&error, "counting the partitions of the table"))?;
    let number = |at: usize| rows.first().map_or(0, |row| row.get::<_, i64>(at).max(0).unsigned_abs());
    Ok(Locks { objects: number(0), room: number(1) })
}

/// One of its partitions is a foreign table.
///
/// # Errors
/// Those of the session.
pub async fn has_foreign(session: &Session, table: &Table) -> Result<bool> {
    let sql = format!(
        "{}SELECT FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid AND c.relkind = 'f' LIMIT 1",
        tree::BY_OID_SQL
    );
    let rows = session.client().query_typed(&sql, &[(&table.oid, Type::OID)]).await;
    Ok(!rows.map_err(|error| session_error(&error, "reading the partitions of the table"))?.is_empty())
}

/// The OIDs of the table of this one and of all partitions below it.
///
/// # Errors
/// Those of the session.
pub async fn with_partitions(session: &Session, table_oid: u32) -> Result<Vec<u32>> {
    let sql = format!("{}SELECT oid FROM tree", tree::BY_OID_SQL);
    let rows = session.rows(&sql, &[(&table_oid, Type::OID)], "reading the partitions of the table").await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Reads how rows with these columns, whose types are `types`, find their leaves; otherwise why the client
/// cannot tell.
///
/// # Errors
/// Those of the session.
pub async fn read(
    session: &Session,
    table: &Table,
    columns: &[String],
    types: &ColumnTypes,
) -> Result<std::result::Result<RoutePlan, String>> {
    let mut reading = Reading::default();
    loop {
        match nodes(session, table, columns).await {
            Err(error) if reading.is_again(&error).await => {}
            nodes => return Ok(plan(&nodes?, columns, types)),
        }
    }
}

async fn nodes(session: &Session, table: &Table, columns: &[String]) -> Result<Vec<Row>> {
    let fail = |error: &tokio_postgres::Error| session_error(error, "reading the partitions of the table");
    let client = session.client();
    client.batch_execute(bounds::BEGIN_SQL).await.map_err(|error| fail(&error))?;
    let parameters =
        [(&table.oid as &(dyn tokio_postgres::types::ToSql + Sync), Type::OID), (&columns, Type::TEXT_ARRAY)];
    let read = client.query_typed(&format!("{}{NODES_SQL}", tree::BY_OID_SQL), &parameters).await;
    client.batch_execute("COMMIT").await.map_err(|error| fail(&error))?;
    let nodes = read.map_err(|error| fail(&error))?;
    expect_told(&nodes, &[5, 6])?;
    Ok(nodes)
}

fn plan(rows: &[Row], columns: &[String], types: &ColumnTypes) -> std::result::Result<RoutePlan, String> {
    let nodes: Vec<Node> = rows.iter().map(Node::of).collect();
    let root = nodes.first().ok_or("it has no partitions")?;
    if root.has_policies {
        return Err("it has row-level security".to_owned());
    }
    if root.has_statement_triggers {
        return Err("it has triggers that fire once for a statement".to_owned());
    }
    if nodes.len() > LEAVES_MAX {
        return Err(format!("it has more than {LEAVES_MAX} partitions"));
    }
    let mut children: HashMap<u32, Vec<&Node>> = HashMap::new();
    for node in nodes.iter().skip(1) {
        children.entry(node.parent).or_default().push(node);
    }
    let mut tree = Tree { root, children, columns, types, leaves: Vec::new() };
    let table = tree.partitioned(root)?;
    let leaves = tree.leaves;
    if leaves.is_empty() {
        return Err("rows may go to none of its partitions directly".to_owned());
    }
    Ok(RoutePlan {
        leaves,
        root: table,
        time_zone: types.time_zone.clone(),
        buffers: 1,
        leaf_rows_min: LEAF_ROWS_MIN,
    })
}

/// A table of the tree.
struct Node {
    oid: u32,
    parent: u32,
    relation: Relation,
    kind: String,
    has_policies: bool,
    may_insert: bool,
    has_statement_triggers: bool,
    /// What columns get that are not sent.
    defaults: Option<String>,
    bound: Option<String>,
    strategy: Option<String>,
    /// The columns of its key; an expression has no name.
    key_columns: Vec<String>,
    /// The types that its operator classes are for; 0 for others than the default ones.
    key_types: Vec<u32>,
    collations: Vec<String>,
    is_utf8: bool,
    /// What rounds or cuts values of its key; of domains over domains nobody knows.
    typmods: Vec<Option<i32>>,
}

impl Node {
    fn of(row: &Row) -> Node {
        Node {
            oid: row.get(0),
            parent: row.get(1),
            relation: Relation { schema: row.get(2), name: row.get(3) },
            kind: row.get(4),
            has_policies: row.get(5),
            may_insert: row.get(6),
            has_statement_triggers: row.get(7),
            defaults: row.get(8),
            bound: row.get(9),
            strategy: row.get(10),
            key_columns: row.get(11),
            key_types: row.get(12),
            collations: row.get(13),
            is_utf8: row.get::<_, &str>(14) == "UTF8",
            typmods: row.get(15),
        }
    }
}

/// The tree while it is read.
struct Tree<'a> {
    root: &'a Node,
    children: HashMap<u32, Vec<&'a Node>>,
    columns: &'a [String],
    types: &'a ColumnTypes,
    leaves: Vec<Leaf>,
}

impl Tree<'_> {
    /// How a table's rows are told apart, or why not.
    fn partitioned(&mut self, node: &Node) -> std::result::Result<PartitionedTable, String> {
        let strategy = match node.strategy.as_deref() {
            Some("h") => Strategy::Hash,
            Some("l") => Strategy::List,
            Some("r") => Strategy::Range,
            _ => return Err("the server partitions it in an unknown way".to_owned()),
        };
        let keys = (0..node.key_columns.len())
            .map(|no| self.key(node, strategy, no))
            .collect::<std::result::Result<_, _>>()?;
        let (mut partitions, mut default) = (Vec::new(), None);
        for child in self.children.get(&node.oid).cloned().unwrap_or_default() {
            let bound = child.bound.as_deref().and_then(bounds::parse);
            let to = self.destination(child);
            match bound {
                Some(BoundOf::Default) => default = Some(to),
                Some(BoundOf::Values(bound)) => partitions.push(Partition { bound, to }),
                None => return Err(format!("the bound of {} is not understood", child.relation)),
            }
        }
        Ok(PartitionedTable { strategy, keys, partitions, default })
    }

    fn destination(&mut self, node: &Node) -> Destination {
        if node.kind == "p" {
            return match self.partitioned(node) {
                Ok(table) => Destination::Partitioned(Box::new(table)),
                Err(_) => Destination::Server,
            };
        }
        let direct = node.kind == "r"
            && node.may_insert
            && !node.has_policies
            && !node.has_statement_triggers
            && node.defaults == self.root.defaults;
        if !direct {
            return Destination::Server;
        }
        self.leaves.push(Leaf { relation: node.relation.clone(), oid: node.oid });
        u32::try_from(self.leaves.len() - 1).map_or(Destination::Server, Destination::Leaf)
    }

    fn key(&self, node: &Node, strategy: Strategy, no: usize) -> std::result::Result<PartitionKey, String> {
        let name = node.key_columns.get(no).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| format!("{} is partitioned by an expression", node.relation))?;
        let field_no = self.columns.iter().position(|column| column == name);
        let field_no =
            field_no.ok_or_else(|| format!("the file does not fill {name}, which tells the partition"))?;
        let written = self.types.columns.get(field_no).cloned().flatten().map(|(_, binary)| binary);
        let (of, collation) = (node.key_types.get(no).copied(), node.collations.get(no).map(String::as_str));
        let kind = written.zip(of).zip(collation).and_then(|((binary, of), collation)| {
            let kind = key_kind(of, &binary, strategy, collation, node.is_utf8)?;
            Some((binary, kind, node.typmods.get(no).copied().flatten()?))
        });
        let (binary, kind, typmod) =
            kind.ok_or_else(|| format!("the server alone knows how values of {name} are compared"))?;
        Ok(PartitionKey { field_no: u32::try_from(field_no).unwrap_or(u32::MAX), binary, kind, typmod })
    }
}

/// How values of an operator class for the type `of` are compared, where they are written as `binary`.
fn key_kind(
    of: u32,
    binary: &BinaryType,
    strategy: Strategy,
    collation: &str,
    is_utf8: bool,
) -> Option<KeyKind> {
    /// `text`, `char(n)`, `name`, `anyenum` in `pg_type.dat`
    const CHARACTERS: [u32; 4] = [25, 1042, 19, 3500];
    let is_written_so = match of {
        3500 => *binary == BinaryType::Text,
        _ => BinaryType::built_in(of).as_ref() == Some(binary),
    };
    let is_ordered = match of {
        3500 => strategy == Strategy::List,
        _ => collation == "C" || strategy != Strategy::Range && collation != "loose",
    };
    // The client has characters in UTF-8.
    if !is_written_so || CHARACTERS.contains(&of) && !(is_ordered && is_utf8) {
        return None;
    }
    Some(match of {
        16 => KeyKind::Bool,
        21 | 23 | 1082 => KeyKind::Int4,
        26 => KeyKind::Oid,
        20 | 1083 | 1114 | 1184 => KeyKind::Int8,
        700 | 701 => KeyKind::Float,
        1700 => KeyKind::Numeric,
        17 | 19 | 25 | 2950 | 3500 => KeyKind::Bytes,
        1042 => KeyKind::Padded,
        _ => return None,
    })
}
