//! What a role may not do that its load needs, each with the GRANT that helps: said in the plan, all at once,
//! instead of one after the other when rows come. Asks the server's own functions, which know of roles in
//! roles and of PUBLIC.

use super::Session;
use crate::error::session_error;
use crate::sql::{quote_columns, quote_ident, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Arrival, Error, ErrorKind, Mode, Relation, Result, Table, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// The role and the database of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Whom rights are looked up for, unquoted.
    pub role: String,
    /// The role that has logged in, whose settings sessions begin with, unquoted.
    pub login: String,
    /// Where, unquoted.
    pub database: String,
}

/// Asks whose rights count.
///
/// # Errors
/// Those of the session.
pub async fn who(session: &Session) -> Result<Who> {
    let sql = "SELECT current_user::text, session_user::text, pg_catalog.current_database()::text";
    let rows = session.rows(sql, &[], "asking for the role").await?;
    let text = |column: usize| rows.first().map(|row| row.get(column)).unwrap_or_default();
    Ok(Who { role: text(0), login: text(1), database: text(2) })
}

/// The columns of the statements by which rows come in, which each need a right of its own.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Those that are filled.
    pub insert: Vec<String>,
    /// Those that are compared.
    pub select: Vec<String>,
    /// Those that are changed in rows that are there.
    pub update: Vec<String>,
    /// Rows are deleted.
    pub delete: bool,
    /// The table is emptied.
    pub truncate: bool,
    /// Where a trigger or a policy may have a say, it is asked who has written a row.
    pub writer: bool,
}

/// What rows that come in this way into these columns need. To be told apart, and to be left alone where
/// nothing differs, rows of the table are read.
pub fn needs(arrival: &Arrival, filled: Vec<String>) -> Needs {
    let key = if arrival.has_key() { arrival.key.clone() } else { Vec::new() };
    let merges = arrival.mode == Mode::Merge;
    let others: Vec<String> =
        filled.iter().filter(|column| merges && !key.contains(column)).cloned().collect();
    let select = if merges { filled.clone() } else { key };
    let truncate = arrival.mode == Mode::Truncate && !arrival.check;
    let writer = !others.is_empty();
    Needs { insert: filled, select, update: others, delete: arrival.delete_missing, truncate, writer }
}

/// By privilege, columns without it on themselves or the table; among them is `xmin`, if `$7` and there is a
/// policy or a trigger on INSERT or UPDATE, of a partition too, which checks no foreign key (as a merge looks
/// for them); sequences that defaults of other columns draw from (those of identity columns need no
/// right).
const MISSING_SQL: &str = concat!(
    "SELECT pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
                   AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'INSERT') ORDER BY a.attnum), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.oid AND NOT a.attisdropped \
                   AND (a.attname = ANY ($3) OR ($7 AND a.attname = 'xmin' AND (c.relrowsecurity OR EXISTS ( \
                       SELECT FROM pg_catalog.pg_trigger g WHERE g.tgtype & 20::pg_catalog.int2 <> 0::pg_catalog.int2 \
                         AND g.tgenabled <> 'D' AND NOT (g.tgisinternal AND g.tgconstraint <> 0::pg_catalog.oid) \
                         AND g.tgrelid IN (",
    tree_of!("c.oid"),
    "SELECT oid FROM tree))))) \
                   AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') ORDER BY a.attnum), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = c.oid AND a.attname = ANY ($4) AND NOT a.attisdropped \
                   AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'UPDATE') ORDER BY a.attnum), \
           $5 AND NOT pg_catalog.has_table_privilege(c.oid, 'DELETE'), \
           ARRAY(SELECT DISTINCT s.oid FROM pg_catalog.pg_attrdef d \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum \
                 JOIN pg_catalog.pg_depend p ON p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid \
                      AND p.objid = d.oid AND p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
                 JOIN pg_catalog.pg_class s ON s.oid = p.refobjid \
                 WHERE d.adrelid = c.oid AND a.attname <> ALL ($2) \
                   AND CASE s.relkind WHEN 'S' THEN NOT pg_catalog.has_sequence_privilege(s.oid, 'USAGE, UPDATE') END \
                 ORDER BY 1), \
           $6 AND NOT pg_catalog.has_table_privilege(c.oid, 'TRUNCATE') \
    FROM pg_catalog.pg_class c WHERE c.oid = $1"
);

const SEQUENCES_SQL: &str = "\
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1) ORDER BY 1, 2";

/// Refuses when the role may not have rows come into a table so.
///
/// # Errors
/// Table with SQLSTATE 42501 and what to grant; those of the session.
pub async fn check(session: &Session, table: &Table, needs: &Needs) -> Result<()> {
    let fail = |error| session_error(&error, "asking for the role's rights");
    let asked = [
        (&table.oid as &(dyn ToSql + Sync), Type::OID),
        (&needs.insert, Type::TEXT_ARRAY),
        (&needs.select, Type::TEXT_ARRAY),
        (&needs.update, Type::TEXT_ARRAY),
        (&needs.delete, Type::BOOL),
        (&needs.truncate, Type::BOOL),
        (&needs.writer, Type::BOOL),
    ];
    let rows = session.client().query_typed(MISSING_SQL, &asked).await.map_err(fail)?;
    // Dropped in between: the load will say so.
    let Some(row) = rows.first() else { return Ok(()) };
    let relation = &table.relation;
    let mut missing = Missing::default();
    if !row.get::<_, bool>(0) {
        missing.add(
            format!("USAGE on schema {}", relation.schema),
            format!("USAGE ON SCHEMA {}", quote_ident(&relation.schema)),
        );
    }
    let by_column =
        [("INSERT", &needs.insert, 1), ("SELECT", &needs.select, 2), ("UPDATE", &needs.update, 3)];
    for (right, needed, at) in by_column {
        missing.on_columns(right, relation, &row.get::<_, Vec<String>>(at), needed);
    }
    for (right, at) in [("DELETE", 4), ("TRUNCATE", 6)] {
        if row.get(at) {
            missing.add(right.to_owned(), format!("{right} ON {}", quote_relation(relation)));
        }
    }
    let sequences: Vec<u32> = row.get(5);
    if !sequences.is_empty() {
        let asked = [(&sequences as &(dyn ToSql + Sync), Type::OID_ARRAY)];
        for row in session.client().query_typed(SEQUENCES_SQL, &asked).await.map_err(fail)? {
            let sequence = Relation { schema: row.get(0), name: row.get(1) };
            missing.add(
                format!("USAGE on sequence {sequence}"),
                format!("USAGE ON SEQUENCE {}", quote_relation(&sequence)),
            );
        }
    }
    if missing.rights.is_empty() {
        return Ok(());
    }
    Err(missing.error(relation, &who(session).await?.role))
}

/// Refuses when the role may not make the table.
///
/// # Errors
/// As for [`check`].
pub async fn check_create(session: &Session, relation: &Relation) -> Result<()> {
    let sql = "SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_schema_privilege(n.oid, 'CREATE') \
               FROM pg_catalog.pg_namespace n WHERE n.nspname = $1";
    let rows = session.rows(sql, &[(&relation.schema, Type::TEXT)], "asking for the role's rights").await?;
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

    /// The right on the columns; to insert, which uncovers and changes nothing, on the table, unless the role
    /// has it on some of them.
    fn on_columns(&mut self, right: &str, relation: &Relation, lacking: &[String], needed: &[String]) {
        let table = quote_relation(relation);
        if lacking.is_empty() {
            return;
        }
        match right == "INSERT" && lacking.len() == needed.len() {
            true => self.add(right.to_owned(), format!("{right} ON {table}")),
            false => self.add(
                format!("{right} on {}", lacking.join(", ")),
                format!("{right} ({}) ON {table}", quote_columns(lacking)),
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

/// Of what the role may not do with a table.
pub(crate) fn refusal(message: String) -> Error {
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
