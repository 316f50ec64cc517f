//! Publications that take in tables as they are made: a subscriber that has not got them stops, and stays so.

use crate::session::Session;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// `FOR ALL TABLES`; and FOR TABLES IN SCHEMA, which there is since PostgreSQL 15.
const OF_ALL_SQL: &str = "SELECT p.pubname::pg_catalog.text, NULL::pg_catalog.text FROM pg_catalog.pg_publication p WHERE p.puballtables";
const OF_SCHEMA_SQL: &str = " \
    UNION ALL SELECT p.pubname::pg_catalog.text, n.nspname::pg_catalog.text FROM pg_catalog.pg_publication p \
    JOIN pg_catalog.pg_publication_namespace s ON s.pnpubid = p.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = s.pnnspid WHERE n.nspname = ANY ($1)";

/// What the publications that take in tables made in these schemas are of, each once; none if nothing is made.
///
/// # Errors
/// Those of the session.
pub async fn of_new_tables(session: &Session, schemas: &[String]) -> Result<Vec<String>> {
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    let of_schema = if session.server_version() >= 150_000 { OF_SCHEMA_SQL } else { "" };
    let sql = format!("{OF_ALL_SQL}{of_schema} ORDER BY 1, 2");
    let schemas: [(&(dyn ToSql + Sync), Type); 1] = [(&schemas, Type::TEXT_ARRAY)];
    let asked = if of_schema.is_empty() { &[][..] } else { &schemas };
    let rows = session.rows(&sql, asked, "reading the publications").await?;
    let told = |row: &tokio_postgres::Row| {
        let (name, schema): (&str, Option<&str>) = (row.get(0), row.get(1));
        let of =
            schema.map_or("of all tables".to_owned(), |schema| format!("of all tables in schema {schema}"));
        format!("the publication {name} is {of}")
    };
    Ok(rows.iter().map(told).collect())
}
