//! Partitions by day or month that are made when rows come for them (`--create-partitions`).
//!
//! A partition is made beside the table and then attached: that waits for nobody who copies rows and keeps
//! none of them waiting, which CREATE TABLE ... PARTITION OF would. Source: PostgreSQL documentation, ALTER
//! TABLE, ATTACH PARTITION.

use crate::copy::server_error::{is_raised, safe_message};
use crate::error::{server_error, session_error};
use crate::session::Session;
use crate::session::bounds::{self, BoundOf};
use crate::sql::{quote_ident, quote_literal, quote_relation};
use howdah_model::route::{Bound, Edge};
use howdah_model::{BinaryType, Error, ErrorKind, PartitionUnit, Relation, Result, sqlstate};
use tokio_postgres::error::DbError;
use tokio_postgres::types::Type;

/// The column that partitions a table, and the ranges that have a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateRanges {
    /// The column's name.
    pub column: String,
    /// `Date`, `Timestamp` or `TimestampTz`.
    pub binary: BinaryType,
    /// The session's TimeZone.
    pub time_zone: String,
    /// Microseconds that the column's values are rounded to.
    pub unit_us: i64,
    /// Where the partitions begin and end, as text in ISO spelling and in UTC.
    pub taken: Vec<(Edge, Edge)>,
}

/// One row a partition, at least one in all: its bound is NULL where there is none.
const RANGES_SQL: &str = "\
    SELECT p.partstrat::pg_catalog.text, p.partnatts, a.attname::pg_catalog.text, a.atttypid, \
           pg_catalog.pg_get_expr(child.relpartbound, child.oid), \
           a.atttypmod \
    FROM pg_catalog.pg_partitioned_table p \
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND a.attnum > 0 \
    LEFT JOIN pg_catalog.pg_inherits i ON i.inhparent = p.partrelid \
    LEFT JOIN pg_catalog.pg_class child ON child.oid = i.inhrelid \
    WHERE p.partrelid = $1";

/// Reads the ranges of a table.
///
/// # Errors
/// Usage, where the table is not partitioned by ranges of one date or timestamp, or has a default partition,
/// which takes all rows; those of the session.
pub async fn read(session: &Session, oid: u32, relation: &Relation) -> Result<DateRanges> {
    let fail = |error: &tokio_postgres::Error| session_error(error, "reading the partitions of the table");
    let client = session.client();
    client.batch_execute(bounds::BEGIN_SQL).await.map_err(|error| fail(&error))?;
    let read = client.query_typed(RANGES_SQL, &[(&oid, Type::OID)]).await;
    client.batch_execute("COMMIT").await.map_err(|error| fail(&error))?;
    let rows = read.map_err(|error| fail(&error))?;
    let refused = |why: &str| {
        Error::new(ErrorKind::Usage, format!("--create-partitions: {relation} {why}")).with_hint(
            "it makes partitions of tables that are partitioned by RANGE of one date or timestamp column",
        )
    };
    let Some(first) = rows.first() else { return Err(refused("is not partitioned")) };
    let (strategy, keys): (&str, i16) = (first.get(0), first.get(1));
    let (column, type_oid): (Option<String>, Option<u32>) = (first.get(2), first.get(3));
    let binary = type_oid.and_then(BinaryType::built_in);
    let (Some(column), Some(binary @ (BinaryType::Date | BinaryType::Timestamp | BinaryType::TimestampTz))) =
        (column, binary)
    else {
        return Err(refused("is not partitioned by a date or timestamp column"));
    };
    if strategy != "r" || keys != 1 {
        return Err(refused("is not partitioned by RANGE of one column"));
    }
    let mut taken = Vec::new();
    for bound in rows.iter().filter_map(|row| row.get::<_, Option<&str>>(4)) {
        match bounds::parse(bound) {
            Some(BoundOf::Values(Bound::Range { mut from, mut to })) => {
                taken.extend(from.pop().zip(to.pop()));
            }
            Some(BoundOf::Default) => {
                return Err(refused("has a default partition, which takes what no other does"));
            }
            _ => return Err(refused("has a partition whose bound is not understood")),
        }
    }
    // This transaction has another, in which bounds are printed.
    let time_zone = session.values().get("TimeZone").cloned().unwrap_or_default();
    Ok(DateRanges { column, binary, time_zone, unit_us: unit_us(first.get(5)), taken })
}

/// `timestamp(3)` has three digits of six behind the point.
fn unit_us(typmod: Option<i32>) -> i64 {
    let digits = typmod.and_then(|typmod| u32::try_from(typmod).ok());
    digits.and_then(|digits| 6_u32.checked_sub(digits)).map_or(1, |lost| 10_i64.pow(lost))
}

/// An interval takes a float8 only, which holds the microseconds of a day and not those of some centuries.
const IN_UTC_SQL: &str = "\
    SELECT ((DATE '2000-01-01' + (l / '86400000000'::pg_catalog.int8)::pg_catalog.int4 \
             + (l % '86400000000'::pg_catalog.int8)::pg_catalog.float8 * INTERVAL '1 microsecond')::pg_catalog.timestamptz \
            AT TIME ZONE 'UTC')::pg_catalog.date \
           - DATE '2000-01-01' \
    FROM pg_catalog.unnest($1) l";

/// The days in UTC, from 2000-01-01, in which these moments of the session's time zone lie: microseconds from
/// 2000-01-01 there.
///
/// # Errors
/// Those of the session.
pub async fn days_in_utc(session: &Session, local: &[i64]) -> Result<Vec<i32>> {
    let rows = session.rows(IN_UTC_SQL, &[(&local, Type::INT8_ARRAY)], "asking for days in UTC").await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// What came of making a partition.
#[derive(Debug)]
pub enum Making {
    /// It is there.
    Made(Made),
    /// Its day or month meets a partition of other bounds: none can be made for it.
    Overlaps {
        /// What the server says, with the name of the other.
        error: Error,
        /// Days from 2000-01-01 to its first.
        from_day: i32,
        /// The same for the first behind it.
        to_day: i32,
    },
}

/// A partition that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub relation: Relation,
    /// Days from 2000-01-01 to its first.
    pub from_day: i32,
    /// The same for the first behind it.
    pub to_day: i32,
    /// The owner of the table, to whom this role may not give it.
    pub not_given_to: Option<String>,
}

/// The day or month around a day, and what its partition is called; the table's tablespace, and its access
/// method, which a partitioned table may have since PostgreSQL 17; its owner, if that is another role, and
/// whether this role may give him a table.
const UNIT_SQL: &str = "\
    SELECT f::pg_catalog.text, t::pg_catalog.text, f - DATE '2000-01-01', t - DATE '2000-01-01', \
           pg_catalog.to_char(f, $3), \
           (SELECT s.spcname::pg_catalog.text FROM pg_catalog.pg_class c \
            JOIN pg_catalog.pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = pg_catalog.to_regclass($4)::pg_catalog.oid), \
           (SELECT m.amname::pg_catalog.text FROM pg_catalog.pg_class c \
            JOIN pg_catalog.pg_am m ON m.oid = c.relam WHERE c.oid = pg_catalog.to_regclass($4)::pg_catalog.oid), \
           o.name, o.may \
    FROM (SELECT nullif(pg_catalog.pg_get_userbyid(c.relowner), current_user)::pg_catalog.text AS name, \
                 (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) \
                   OR (pg_catalog.has_schema_privilege(c.relowner, c.relnamespace, 'CREATE') \
                       AND pg_catalog.pg_has_role(c.relowner, @set@)) AS may \
          FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($4)::pg_catalog.oid) o, \
         (SELECT pg_catalog.date_trunc($1, DATE '2000-01-01' + $2)::pg_catalog.date AS f) u, \
         LATERAL (SELECT (f + ('1 ' || $1)::pg_catalog.interval)::pg_catalog.date AS t) v";

/// Names are no longer than this: `NAMEDATALEN` less one.
const NAME_BYTES_MAX: usize = 63;

/// Makes the partition of `relation` for the day or month around `day`, days from 2000-01-01, in UTC where
/// the column has a time zone. A foreign key of the table locks the table that it refers to against writers,
/// which is waited for no longer than `lock_timeout_ms`.
///
/// # Errors
/// Table, when the server refuses it (another may have made it meanwhile: 42P07); Server with 55P03 when a
/// table was not free within the time, which may pass; those of the session.
pub async fn make(
    session: &Session,
    relation: &Relation,
    lock_timeout_ms: u64,
    binary: &BinaryType,
    unit: PartitionUnit,
    day: i32,
) -> Result<Making> {
    let client = session.client();
    let (unit, format) = match unit {
        PartitionUnit::Day => ("day", "YYYY_MM_DD"),
        PartitionUnit::Month => ("month", "YYYY_MM"),
    };
    let table = quote_relation(relation);
    let fail = |error: &tokio_postgres::Error| refused(error, relation, None);
    client.batch_execute(bounds::BEGIN_SQL).await.map_err(|error| fail(&error))?;
    let parameters = [
        (&unit as _, Type::TEXT),
        (&day as _, Type::INT4),
        (&format as _, Type::TEXT),
        (&table as _, Type::TEXT),
    ];
    let set = if session.server_version() >= 160_000 { "'SET'" } else { "'MEMBER'" };
    let row = client.query_typed(&UNIT_SQL.replace("@set@", set), &parameters).await;
    client.batch_execute("COMMIT").await.map_err(|error| fail(&error))?;
    let rows = row.map_err(|error| fail(&error))?;
    let row = rows.first().ok_or_else(|| Error::new(ErrorKind::Internal, "a day that is none"))?;
    let (from, to, suffix): (&str, &str, &str) = (row.get(0), row.get(1), row.get(4));
    let name = format!("{}_{suffix}", shortened(&relation.name, NAME_BYTES_MAX - suffix.len() - 1));
    let leaf = Relation { schema: relation.schema.clone(), name };
    let zone = if *binary == BinaryType::TimestampTz { " 00:00:00+00" } else { "" };
    let bound = |day: &str| quote_literal(&format!("{day}{zone}"));
    let (owner, may): (Option<&str>, bool) = (row.get(7), row.get(8));
    let given = owner
        .filter(|_| may)
        .map(|owner| format!("ALTER TABLE {} OWNER TO {}; ", quote_relation(&leaf), quote_ident(owner)));
    let sql = format!(
        "BEGIN; SET LOCAL lock_timeout TO {lock_timeout_ms}; SET LOCAL datestyle TO 'ISO, YMD'; SET LOCAL default_tablespace TO {tablespace}; \
         CREATE TABLE {leaf} (LIKE {table} INCLUDING ALL \
            EXCLUDING IDENTITY EXCLUDING INDEXES EXCLUDING STATISTICS EXCLUDING COMMENTS){method}; \
         {given}ALTER TABLE {table} ATTACH PARTITION {leaf} FOR VALUES FROM ({from}) TO ({to}); COMMIT",
        tablespace = quote_literal(row.get::<_, Option<&str>>(5).unwrap_or_default()),
        leaf = quote_relation(&leaf),
        method = row
            .get::<_, Option<&str>>(6)
            .map(|name| format!(" USING {}", quote_ident(name)))
            .unwrap_or_default(),
        given = given.unwrap_or_default(),
        from = bound(from),
        to = bound(to),
    );
    let (from_day, to_day) = (row.get(2), row.get(3));
    if let Err(error) = client.batch_execute(&sql).await {
        session.roll_back().await;
        let error = refused(&error, relation, Some(&leaf));
        return match error.sqlstate() {
            Some(sqlstate::INVALID_OBJECT_DEFINITION) => Ok(Making::Overlaps { error, from_day, to_day }),
            _ => Err(error),
        };
    }
    let not_given_to = owner.filter(|_| !may).map(str::to_owned);
    Ok(Making::Made(Made { relation: leaf, from_day, to_day, not_given_to }))
}

/// As much of the name as there is room for.
fn shortened(name: &str, bytes_max: usize) -> &str {
    let end = (0..=name.len().min(bytes_max)).rev().find(|end| name.is_char_boundary(*end));
    end.and_then(|end| name.get(..end)).unwrap_or_default()
}

/// Where the server finds that two partitions overlap; its message names both, and no values.
const OVERLAP_ROUTINE: &str = "check_new_partition_bound";

fn is_overlap(db: &DbError) -> bool {
    db.routine() == Some(OVERLAP_ROUTINE) && db.code().code() == sqlstate::INVALID_OBJECT_DEFINITION
}

/// `made` is the partition, as soon as it has a name.
fn refused(error: &tokio_postgres::Error, relation: &Relation, made: Option<&Relation>) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "making a partition") };
    let names = [relation.name.as_str(), relation.schema.as_str()];
    let names = names.into_iter().chain(made.map(|made| made.name.as_str()));
    let words = if is_overlap(db) { db.message().to_owned() } else { safe_message(db, names) };
    match db.code().code() {
        _ if is_raised(db) => forbidden(db, relation),
        sqlstate::LOCK_NOT_AVAILABLE => {
            let held = "other sessions hold it or a table that it refers to";
            server_error(db, &format!("a partition of {relation} cannot be made yet: {held}"))
        }
        sqlstate if sqlstate.starts_with("42") => {
            let message = format!("a partition of {relation} cannot be made: the server says: {words}");
            let error = Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate);
            match sqlstate {
                sqlstate::DUPLICATE_TABLE => error.with_hint(
                    "what has this name is no partition that takes the rows, or one with other bounds: rename it, or make the \
                     partitions that are missing by hand",
                ),
                sqlstate::INVALID_OBJECT_DEFINITION if is_overlap(db) => error.with_hint(
                    "the one that is named covers a part of that day or month, and rows of the rest are refused: make the partitions beside it \
                     by hand, or detach it",
                ),
                _ => error,
            }
        }
        _ => server_error(db, &format!("the server says: {words}")),
    }
}

/// No trigger of a table fires when a partition is made.
fn forbidden(db: &DbError, relation: &Relation) -> Error {
    let message = format!(
        "a partition of {relation} cannot be made: an event trigger of the database forbids it, or fails; its text may hold row values \
         and is not shown"
    );
    Error::new(ErrorKind::Table, message).with_sqlstate(db.code().code()).with_hint(
        "pg_event_trigger tells which: have it let CREATE TABLE and ALTER TABLE pass, or make the partitions that are missing by hand and \
         load without --create-partitions",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(shortened("täglich", 2), "t");
        assert_eq!(shortened("t", 9), "t");
        assert_eq!(shortened("ä", 1), "");
    }
}
