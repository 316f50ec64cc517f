//! The columns of a table are still what binary rows were written for, until the transaction ends.
//!
//! Eight bytes that are a number to one type are another number to the next, and nobody would notice. So the table
//! is locked against ALTER TABLE, as COPY would a moment later, and the types are compared before a row is sent.
//! A session may also read times, NULLs in arrays and characters in another way. All of this goes out in the flight of
//! BEGIN and claim: no round trip more.

use crate::session::column_types::USUAL_SETTINGS_SQL;
use crate::sql::quote_relation;
use howdah_model::{BinaryPlan, Relation};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

const CHECK_SQL: &str = "\
    SELECT pg_catalog.count(*) \
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.oid[])) \
        AS sent(name, type) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($3)::pg_catalog.oid \
        AND a.attname = sent.name AND a.atttypid = sent.type AND NOT a.attisdropped \
    WHERE pg_catalog.current_setting('TimeZone') = $4 AND ";

/// Locks the table and says whether its columns, and the settings of the session that tell how values are read, are
/// those that the rows were written for.
///
/// # Errors
/// Those of the connection, and the server's if the role may not lock the table.
pub(crate) async fn lock_and_compare(
    client: &Client,
    relation: &Relation,
    binary: &BinaryPlan,
) -> Result<bool, Error> {
    let relation = quote_relation(relation);
    let lock_sql = format!("LOCK TABLE ONLY {relation} IN ROW EXCLUSIVE MODE");
    let parameters = [
        (&binary.columns as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT_ARRAY),
        (&binary.type_oids, Type::OID_ARRAY),
        (&relation, Type::TEXT),
        (&binary.time_zone, Type::TEXT),
    ];
    let lock = client.batch_execute(&lock_sql);
    let check_sql = format!("{CHECK_SQL}{USUAL_SETTINGS_SQL}");
    let compare = client.query_typed(&check_sql, &parameters);
    let (locked, compared) = futures_util::future::join(lock, compare).await;
    locked?;
    let same: i64 = compared?.first().map_or(0, |row| row.get(0));
    Ok(usize::try_from(same) == Ok(binary.columns.len()))
}
