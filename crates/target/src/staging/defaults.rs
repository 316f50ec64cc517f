//! What COPY's DEFAULT marker stands for where rows wait: the staging table has the defaults that the table
//! itself has, since COPY refuses the marker for a column without one.

use super::Column;
use super::names::is_of_check;
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Error, ErrorKind, Result, StagingPlan, TablePlan};
use tokio_postgres::types::{ToSql, Type};

/// Of columns `$2` of table `$1` that have a default: name, default, whether it takes a number from a
/// sequence.
const DEFAULTS_SQL: &str = "\
    SELECT a.attname::pg_catalog.text, \
           CASE WHEN a.attidentity <> '' \
                THEN pg_catalog.format('pg_catalog.nextval(%L::pg_catalog.regclass)', \
                                       pg_catalog.pg_get_serial_sequence($1, a.attname::pg_catalog.text)) \
                ELSE pg_catalog.pg_get_expr(d.adbin, d.adrelid) END, \
           a.attidentity <> '' OR EXISTS ( \
               SELECT FROM pg_catalog.pg_depend p JOIN pg_catalog.pg_class s ON s.oid = p.refobjid AND s.relkind = 'S' \
               WHERE p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND p.objid = d.oid \
                 AND p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid) \
    FROM pg_catalog.pg_attribute a \
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
    WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) AND a.attgenerated = '' \
      AND NOT a.attisdropped AND (a.attidentity <> '' OR d.oid IS NOT NULL)";

/// Gives the columns their defaults, if records may ask for them.
///
/// # Errors
/// Columns, for a check, where one takes a number from a sequence; those of the session.
pub(super) async fn give(
    session: &Session,
    plan: &TablePlan,
    staging: &StagingPlan,
    columns: &mut [Column],
) -> Result<()> {
    if plan.format.default.is_none() {
        return Ok(());
    }
    let relation = quote_relation(&plan.table.relation);
    let names: Vec<&String> = columns.iter().map(|column| &column.name).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&relation, Type::TEXT), (&names, Type::TEXT_ARRAY)];
    let rows = session.rows(DEFAULTS_SQL, &parameters, "reading the table's defaults").await?;
    for row in rows {
        let (name, default, is_numbered): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
        if is_numbered && is_of_check(&staging.relation) {
            return Err(numbered(plan, &name));
        }
        for column in columns.iter_mut().filter(|column| column.name == name) {
            column.default = Some(default.clone());
        }
    }
    Ok(())
}

fn numbered(plan: &TablePlan, column: &str) -> Error {
    let relation = &plan.table.relation;
    let message = format!(
        "column {column} of {relation} takes a number from a sequence where a record has the DEFAULT marker, which a check must not"
    );
    Error::new(ErrorKind::Columns, message)
        .with_hint("leave --default out if no record of that column has the marker; otherwise load into a copy of the table")
}
