//! What a role may not do that its load needs, each with the GRANT that helps: said in the plan, all at once, instead
//! of one after the other when rows come. Asks the server's own functions, which know of roles in roles and of PUBLIC.

use super::Session;
use crate::error::session_error;
use crate::sql::{quote_columns, quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result, Table, sqlstate};
use tokio_postgres::types::Type;

/// The role and the database of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Whom rights are looked up for, unquoted.
    pub role: String,
    /// Where, unquoted.
    pub database: String,
}

/// Asks whose rights count.
///
/// # Errors
/// Those of the session.
pub async fn who(session: &Session) -> Result<Who> {
    let sql = "SELECT current_user::text, pg_catalog.current_database()::text";
    let rows = session.client().query_typed(sql, &[]).await;
    let rows = rows.map_err(|error| session_error(&error, "asking for the role"))?;
    let text = |column: usize| rows.first().map(|row| row.get(column)).unwrap_or_default();
    Ok(Who { role: text(0), database: text(1) })
}

/// Columns without INSERT on themselves or the table; sequences that defaults of other columns draw from (those of
/// identity columns need no right).
const MISSING_SQL: &str = "\
    SELECT pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
                   AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'INSERT') ORDER BY a.attnum), \
           ARRAY(SELECT DISTINCT s.oid FROM pg_catalog.pg_attrdef d \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum \
                 JOIN pg_catalog.pg_depend p ON p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid \
                      AND p.objid = d.oid AND p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
                 JOIN pg_catalog.pg_class s ON s.oid = p.refobjid \
                 WHERE d.adrelid = c.oid AND a.attname <> ALL ($2) \
                   AND CASE s.relkind WHEN 'S' THEN NOT pg_catalog.has_sequence_privilege(s.oid, 'USAGE, UPDATE') END \
                 ORDER BY 1) \
    FROM pg_catalog.pg_class c WHERE c.oid = $1";

const SEQUENCES_SQL: &str = "\
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1) ORDER BY 1, 2";

/// Refuses when the role may not store rows in these columns of a table.
///
/// # Errors
/// Table with SQLSTATE 42501 and what to grant; those of the session.
pub async fn check(session: &Session, table: &Table, columns: &[String]) -> Result<()> {
    let fail = |error| session_error(&error, "asking for the role's rights");
    let asked =
        [(&table.oid as &(dyn tokio_postgres::types::ToSql + Sync), Type::OID), (&columns, Type::TEXT_ARRAY)];
    let rows = session.client().query_typed(MISSING_SQL, &asked).await.map_err(fail)?;
    // Dropped in between: the load will say so.
    let Some(row) = rows.first() else { return Ok(()) };
    let (usage, lacking, sequences): (bool, Vec<String>, Vec<u32>) = (row.get(0), row.get(1), row.get(2));
    if usage && lacking.is_empty() && sequences.is_empty() {
        return Ok(());
    }
    let Who { role, .. } = who(session).await?;
    let relation = &table.relation;
    let mut missing = Missing::default();
    if !usage {
        missing.add(
            format!("USAGE on schema {}", relation.schema),
            format!("USAGE ON SCHEMA {}", quote_ident(&relation.schema)),
        );
    }
    if !lacking.is_empty() {
        missing.insert(relation, &lacking, columns);
    }
    if !sequences.is_empty() {
        let asked = [(&sequences as &(dyn tokio_postgres::types::ToSql + Sync), Type::OID_ARRAY)];
        for row in session.client().query_typed(SEQUENCES_SQL, &asked).await.map_err(fail)? {
            let sequence = Relation { schema: row.get(0), name: row.get(1) };
            missing.add(
                format!("USAGE on sequence {sequence}"),
                format!("USAGE ON SEQUENCE {}", quote_relation(&sequence)),
            );
        }
    }
    Err(missing.error(relation, &role))
}

/// Refuses when the role may not make the table.
///
/// # Errors
/// As for [`check`].
pub async fn check_create(session: &Session, relation: &Relation) -> Result<()> {
    let sql = "SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_schema_privilege(n.oid, 'CREATE') \
               FROM pg_catalog.pg_namespace n WHERE n.nspname = $1";
    let rows = session.client().query_typed(sql, &[(&relation.schema, Type::TEXT)]).await;
    let rows = rows.map_err(|error| session_error(&error, "asking for the role's rights"))?;
    let mut missing = Missing::default();
    let schema = quote_ident(&relation.schema);
    for (column, right) in ["USAGE", "CREATE"].into_iter().enumerate() {
        if rows.first().is_some_and(|row| !row.get::<_, bool>(column)) {
            missing
                .add(format!("{right} on schema {}", relation.schema), format!("{right} ON SCHEMA {schema}"));
        }
    }
    if missing.rights.is_empty() {
        return Ok(());
    }
    Err(missing.error(relation, &who(session).await?.role))
}

/// Rights that a role lacks: in words, and as a GRANT without its role.
#[derive(Debug, Default)]
struct Missing {
    rights: Vec<String>,
    grants: Vec<String>,
}

impl Missing {
    fn add(&mut self, right: String, grant: String) {
        self.rights.push(right);
        self.grants.push(grant);
    }

    /// The right on the table, unless the role has it on some of the columns: then on the others.
    fn insert(&mut self, relation: &Relation, lacking: &[String], filled: &[String]) {
        let table = quote_relation(relation);
        match lacking.len() == filled.len() {
            true => self.add("INSERT".to_owned(), format!("INSERT ON {table}")),
            false => self.add(
                format!("INSERT on {}", lacking.join(", ")),
                format!("INSERT ({}) ON {table}", quote_columns(lacking)),
            ),
        }
    }

    fn error(&self, relation: &Relation, role: &str) -> Error {
        let message =
            format!("role {role} may not load into {relation}: it lacks {}", self.rights.join(", "));
        let to = quote_ident(role);
        let grants: Vec<String> = self.grants.iter().map(|grant| format!("GRANT {grant} TO {to}")).collect();
        refusal(message).with_hint(format!("the owner can run {}", grants.join("; ")))
    }
}

fn refusal(message: String) -> Error {
    Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
}

/// The schema of a table may not be looked into.
pub(super) async fn schema_closed(session: &Session, written_name: &str) -> Option<Error> {
    let sql = "SELECT p[1], pg_catalog.cardinality(p) FROM pg_catalog.parse_ident($1) AS p";
    let rows = session.client().query_typed(sql, &[(&written_name, Type::TEXT)]).await.ok()?;
    let row = rows.first().filter(|row| row.get::<_, i32>(1) == 2)?;
    let (schema, Who { role, .. }) = (row.get::<_, String>(0), who(session).await.ok()?);
    let message = format!("role {role} may not load into {written_name}: it lacks USAGE on schema {schema}");
    Some(refusal(message).with_hint(format!(
        "the owner can run GRANT USAGE ON SCHEMA {} TO {}",
        quote_ident(&schema),
        quote_ident(&role)
    )))
}
