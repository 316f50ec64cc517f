//! Whether a role can compare a table with its sources, and whether the table's rows tell what has stored
//! them.

use super::DOING;
use crate::session::Session;
use crate::session::rights::{Who, who};
use crate::sql::{quote_columns, quote_ident, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Error, ErrorKind, Relation, RelationKind, Result, Table, Verify, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// Columns that the role may not read, `xmin` among them; whether it may make temporary tables; whether
/// policies may hide rows from it; what keeps rows in another way than tables of PostgreSQL do.
const ASK_SQL: &str = concat!(
    "SELECT ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.oid AND (a.attname = ANY ($2) OR a.attname = 'xmin') AND NOT a.attisdropped \
                   AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') ORDER BY a.attnum), \
           pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY'), \
           pg_catalog.row_security_active(c.oid), \
           ARRAY(SELECT pg_catalog.format('%I.%I', n.nspname, r.relname) FROM pg_catalog.pg_class r \
                 JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
                 LEFT JOIN pg_catalog.pg_am m ON m.oid = r.relam \
                 WHERE r.oid IN (",
    tree_of!("c.oid"),
    "SELECT oid FROM tree) \
                   AND (r.relkind IN ('v', 'f') OR (r.relkind = 'r' AND m.amname <> 'heap')) ORDER BY 1) \
    FROM pg_catalog.pg_class c WHERE c.oid = $1"
);

/// Refuses when the rows of the table could not be compared with what is read into these columns.
///
/// # Errors
/// Table, with what to grant or what to do without; those of the session.
pub async fn check(session: &Session, table: &Table, columns: &[String], by: Verify) -> Result<()> {
    let relation = &table.relation;
    if matches!(table.kind, RelationKind::View | RelationKind::Foreign) {
        return Err(not_told(relation, &relation.to_string()));
    }
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&table.oid, Type::OID), (&columns, Type::TEXT_ARRAY)];
    let rows = session.rows(ASK_SQL, &parameters, DOING).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (lacking, temporary, policies, others): (Vec<String>, bool, bool, Vec<String>) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    if let Some(other) = others.first() {
        return Err(not_told(relation, other));
    }
    if lacking.is_empty() && !policies && (temporary || by == Verify::Count) {
        return Ok(());
    }
    let Who { role, database, .. } = who(session).await?;
    let to = quote_ident(&role);
    let (mut messages, mut hints) = (Vec::new(), Vec::new());
    if !lacking.is_empty() {
        let (all, name) = (lacking.len() > columns.len(), quote_relation(relation));
        let right = if all { "SELECT".to_owned() } else { format!("SELECT ({})", quote_columns(&lacking)) };
        messages.push(format!("role {role} may not read {relation}, which --verify does: it lacks {right}"));
        hints.push(format!("the owner can run GRANT {right} ON {name} TO {to}; or leave out --verify"));
    }
    if policies {
        messages.push(format!(
            "row-level security of {relation} applies to role {role}: rows that it has stored may be hidden from it"
        ));
        hints.push(
            "leave out --verify, or load as the owner of the table or as a role with BYPASSRLS".to_owned(),
        );
    }
    if !temporary && by == Verify::Checksum {
        messages.push(format!(
            "role {role} may not make temporary tables in database {database}, which --verify checksum reads the files into"
        ));
        hints.push(format!(
            "the owner can run GRANT TEMPORARY ON DATABASE {} TO {to}; or give --verify count",
            quote_ident(&database)
        ));
    }
    Err(Error::new(ErrorKind::Table, messages.join("; "))
        .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
        .with_hint(hints.join("; ")))
}

fn not_told(relation: &Relation, other: &str) -> Error {
    let message = if *other == relation.to_string() {
        format!(
            "rows of {relation} do not tell which transaction has stored them: --verify cannot tell those of this load"
        )
    } else {
        format!(
            "rows of {other}, which {relation} keeps some in, do not tell which transaction has stored them"
        )
    };
    Error::new(ErrorKind::Table, message)
        .with_hint("leave out --verify: it is for ordinary and partitioned tables")
}
