//! The columns of a table are still what binary rows were written for, and its partitions those that rows
//! were laid out for, until the transaction ends.
//!
//! Eight bytes that are a number to one type are another number to the next, and nobody would notice. So the
//! table is locked against ALTER TABLE, as COPY would a moment later, and the types are compared before a row
//! is sent. A session may also read times, NULLs in arrays and characters in another way. All of this goes
//! out in the flight of BEGIN and claim: no round trip more.

use crate::session::Session;
use crate::session::column_types::USUAL_SETTINGS_SQL;
use crate::sql::quote_relation;
use howdah_model::route::Leaf;
use howdah_model::{BinaryPlan, Relation};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

const CHECK_SQL: &str = "\
    SELECT pg_catalog.count(*) \
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.oid[])) \
        AS sent(name, type) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($3)::pg_catalog.oid \
        AND a.attname = sent.name AND a.atttypid = sent.type AND NOT a.attisdropped \
    WHERE pg_catalog.current_setting('TimeZone') = $4 AND ";

/// Those of the leaves that are still partitions of the table, under the same names. Whoever detaches one
/// concurrently waits for this transaction, which holds a lock on the table.
const LEAVES_SQL: &str = "\
    SELECT pg_catalog.count(*) \
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.text[])) AS leaf(oid, name) \
    WHERE pg_catalog.to_regclass(leaf.name)::pg_catalog.oid = leaf.oid \
      AND pg_catalog.pg_partition_root(leaf.oid::pg_catalog.regclass)::pg_catalog.oid \
          = pg_catalog.to_regclass($3)::pg_catalog.oid \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = leaf.oid \
                      AND (pg_catalog.to_jsonb(i) ->> 'inhdetachpending'::pg_catalog.text)::pg_catalog.bool)";

/// Locks the table and says whether its columns, and the settings of the session that tell how values are
/// read, are those that the rows were written for, and whether the leaves are still its partitions.
///
/// # Errors
/// Those of the connection, and the server's if the role may not lock the table.
pub(crate) async fn lock_and_compare(
    session: &Session,
    relation: &Relation,
    binary: Option<&BinaryPlan>,
    leaves: &[&Leaf],
) -> Result<bool, Error> {
    if binary.is_none() && leaves.is_empty() {
        return Ok(true);
    }
    let relation = quote_relation(relation);
    let locked: Vec<String> = std::iter::once(format!("ONLY {relation}"))
        .chain(leaves.iter().map(|leaf| format!("ONLY {}", quote_relation(&leaf.relation))))
        .collect();
    let lock_sql = format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", locked.join(", "));
    let lock = session.client().batch_execute(&lock_sql);
    let (locked, columns, leaves) = futures_util::future::join3(
        lock,
        compare_columns(session, &relation, binary),
        compare_leaves(session.client(), &relation, leaves),
    )
    .await;
    locked?;
    Ok(columns? && leaves?)
}

/// The statement that compares the columns of a table with those of binary rows, and the types of its
/// parameters: the same for all chunks.
pub(crate) fn comparison() -> (String, Vec<Type>) {
    (columns_sql(), vec![Type::TEXT_ARRAY, Type::OID_ARRAY, Type::TEXT, Type::TEXT])
}

fn columns_sql() -> String {
    format!("{CHECK_SQL}{USUAL_SETTINGS_SQL}")
}

async fn compare_columns(
    session: &Session,
    relation: &str,
    binary: Option<&BinaryPlan>,
) -> Result<bool, Error> {
    let Some(binary) = binary else { return Ok(true) };
    let parameters = [
        (&binary.columns as &(dyn ToSql + Sync), Type::TEXT_ARRAY),
        (&binary.type_oids, Type::OID_ARRAY),
        (&relation, Type::TEXT),
        (&binary.time_zone, Type::TEXT),
    ];
    let rows = session.query(&columns_sql(), &parameters).await?;
    Ok(counts(&rows, binary.columns.len()))
}

async fn compare_leaves(client: &Client, relation: &str, leaves: &[&Leaf]) -> Result<bool, Error> {
    if leaves.is_empty() {
        return Ok(true);
    }
    let oids: Vec<u32> = leaves.iter().map(|leaf| leaf.oid).collect();
    let names: Vec<String> = leaves.iter().map(|leaf| quote_relation(&leaf.relation)).collect();
    let parameters = [
        (&oids as &(dyn ToSql + Sync), Type::OID_ARRAY),
        (&names, Type::TEXT_ARRAY),
        (&relation, Type::TEXT),
    ];
    let rows = client.query_typed(LEAVES_SQL, &parameters).await?;
    Ok(counts(&rows, leaves.len()))
}

fn counts(rows: &[Row], expected: usize) -> bool {
    let same: i64 = rows.first().map_or(0, |row| row.get(0));
    usize::try_from(same) == Ok(expected)
}
