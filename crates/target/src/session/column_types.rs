//! What the client has to know of columns before it writes their values in COPY's binary format. Columns
//! enter; how the values of each are written leaves, with what must stay as it is. One round trip.

use super::Session;
use howdah_model::{BinaryType, Result, Table};
use std::collections::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Types within types: domains over arrays of ranges of domains. More are nobody's.
const DEPTH_MAX: usize = 8;
/// Their receive functions take other bytes than those of arrays do: int2vector, oidvector.
const VECTORS: [u32; 2] = [22, 30];

/// NULLs in arrays, `Z` behind a time, and characters mean what they usually do.
pub(crate) const USUAL_SETTINGS_SQL: &str = "\
    pg_catalog.current_setting('array_nulls') = 'on' \
    AND pg_catalog.current_setting('timezone_abbreviations') = 'Default' \
    AND pg_catalog.current_setting('client_encoding') = 'UTF8'";

/// Columns whose types the client knows by their OIDs. [`COLUMNS_SQL`] stands behind it.
const BUILT_IN_SQL: &str = "\
    WITH asked AS ( \
        SELECT no, oid \
        FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.text[])) \
             WITH ORDINALITY AS a(oid, name, no)) ";

/// The same for other types. A column's may not exist yet under its OID (a table that is going to be made):
/// then its name is resolved. Each row is a type that a column has, or that such a type is made of.
const TYPES_SQL: &str = "\
    WITH RECURSIVE asked AS ( \
        SELECT no, CASE WHEN oid <> 0::pg_catalog.oid THEN oid ELSE pg_catalog.to_regtype(name)::pg_catalog.oid END AS oid \
        FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.text[])) \
             WITH ORDINALITY AS a(oid, name, no)), \
    made AS ( \
        SELECT oid FROM asked WHERE oid IS NOT NULL \
        UNION \
        SELECT CASE t.typtype WHEN 'd' THEN t.typbasetype WHEN 'r' THEN r.rngsubtype ELSE t.typelem END \
        FROM made \
        JOIN pg_catalog.pg_type t ON t.oid = made.oid \
        LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid \
        WHERE t.typtype IN ('d', 'r') OR (t.typcategory = 'A' AND t.typlen = -1 AND t.typelem <> 0::pg_catalog.oid)) \
    SELECT NULL::pg_catalog.int8 AS no, t.oid, \
           CASE WHEN t.typtype = 'b' AND t.typcategory = 'A' THEN 'a' ELSE t.typtype::pg_catalog.text END, \
           CASE t.typtype WHEN 'd' THEN t.typbasetype WHEN 'r' THEN r.rngsubtype ELSE t.typelem END, \
           t.typname::pg_catalog.text, e.extname::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.bool, \
           NULL::pg_catalog.bool \
    FROM made \
    JOIN pg_catalog.pg_type t ON t.oid = made.oid \
    LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid \
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid AND d.objid = t.oid \
        AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid AND d.deptype = 'e' \
    LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid \
    UNION ALL ";

/// The columns themselves. Behind it stands [`USUAL_SETTINGS_SQL`].
const COLUMNS_SQL: &str = "\
    SELECT asked.no, asked.oid, NULL, NULL, NULL, NULL, pg_catalog.current_setting('TimeZone'), \
           coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass($3)::pg_catalog.oid, 'INSERT'), true), \
           ";

/// Columns as the client may write their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnTypes {
    /// `pg_type.oid` and form of each column asked for; `None` where only the server can read its values.
    pub columns: Vec<Option<(u32, BinaryType)>>,
    /// The session's TimeZone.
    pub time_zone: String,
    /// The settings that tell how values are read are the usual ones.
    pub usual_settings: bool,
    /// The role may lock the table against a change of its columns: it has INSERT on all of it.
    pub may_lock: bool,
}

/// Reads the types of these columns of a table, which need not exist yet.
///
/// # Errors
/// Those of the session.
pub async fn read(session: &Session, table: &Table, columns: &[String]) -> Result<ColumnTypes> {
    let of = |name: &String| table.columns.iter().find(|column| column.name == *name);
    let oids: Vec<u32> = columns.iter().map(|name| of(name).map_or(0, |column| column.type_oid)).collect();
    let names: Vec<&str> =
        columns.iter().map(|name| of(name).map_or("", |column| column.type_name.as_str())).collect();
    let relation = crate::sql::quote_relation(&table.relation);
    // To plan the whole question takes the server 2 ms (PostgreSQL 15).
    let all_built_in = oids.iter().all(|oid| BinaryType::built_in(*oid).is_some());
    let types_sql = if all_built_in { BUILT_IN_SQL } else { TYPES_SQL };
    let rows = session
        .rows(
            &format!("{types_sql}{COLUMNS_SQL}{USUAL_SETTINGS_SQL} FROM asked"),
            &[(&oids, Type::OID_ARRAY), (&names, Type::TEXT_ARRAY), (&relation, Type::TEXT)],
            "reading the types of the columns",
        )
        .await?;
    let parts: HashMap<u32, Part> =
        rows.iter().filter(|row| row.get::<_, Option<i64>>(0).is_none()).filter_map(Part::of).collect();
    let mut asked: Vec<(i64, &Row)> =
        rows.iter().filter_map(|row| Some((row.get::<_, Option<i64>>(0)?, row))).collect();
    asked.sort_by_key(|(no, _)| *no);
    let column = |(_, row): &(i64, &Row)| {
        let oid = row.get::<_, Option<u32>>(1)?;
        Some((oid, binary_type(&parts, oid, 0)?))
    };
    let first = asked.first().map(|(_, row)| row);
    Ok(ColumnTypes {
        columns: asked.iter().map(column).collect(),
        time_zone: first.and_then(|row| row.get::<_, Option<String>>(6)).unwrap_or_default(),
        usual_settings: first.and_then(|row| row.get::<_, Option<bool>>(8)).unwrap_or_default(),
        may_lock: first.and_then(|row| row.get::<_, Option<bool>>(7)).unwrap_or_default(),
    })
}

/// One row of `pg_type`.
struct Part {
    kind: String,
    made_of: u32,
    name: String,
    extension: Option<String>,
}

impl Part {
    fn of(row: &Row) -> Option<(u32, Part)> {
        let part = Part {
            kind: row.get::<_, Option<String>>(2)?,
            made_of: row.get::<_, Option<u32>>(3).unwrap_or(0),
            name: row.get::<_, Option<String>>(4)?,
            extension: row.get(5),
        };
        Some((row.get::<_, Option<u32>>(1)?, part))
    }
}

fn binary_type(parts: &HashMap<u32, Part>, oid: u32, depth: usize) -> Option<BinaryType> {
    if let Some(built_in) = BinaryType::built_in(oid) {
        return Some(built_in);
    }
    let part = parts.get(&oid).filter(|_| depth < DEPTH_MAX && !VECTORS.contains(&oid))?;
    let inner = || binary_type(parts, part.made_of, depth + 1);
    match (part.kind.as_str(), part.extension.as_deref(), part.name.as_str()) {
        ("d", _, _) => inner(),
        ("e", _, _) => Some(BinaryType::Text),
        ("a", _, _) => Some(BinaryType::Array { element_oid: part.made_of, element: Box::new(inner()?) }),
        ("r", _, _) => Some(BinaryType::Range { bound: Box::new(inner()?) }),
        ("b", Some("citext"), "citext") => Some(BinaryType::Text),
        ("b", Some("vector"), "vector") => Some(BinaryType::Vector),
        ("b", Some("postgis"), "geometry" | "geography") => Some(BinaryType::Geometry),
        _ => None,
    }
}
