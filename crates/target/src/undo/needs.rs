//! What it takes to build an index again besides its table, schema and tablespace: rights on what its
//! definition names, and functions that the server can call while it builds. Rows come in, and the index
//! would be found to be lost only then.

use crate::build::may_lift_sql;
use crate::error::session_error;
use crate::ledger::NewUndo;
use crate::session::Session;
use crate::tree::BY_NAME_SQL;
use futures_util::future;
use howdah_model::{Relation, Result};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// What an index refers to, and what the functions of that refer to, as far as the catalog knows; operators
/// of exclusion constraints are not among what it depends on. Definitions name in full what is outside
/// `pg_catalog`, which takes USAGE of its schema; operator classes that are a type's default they do not
/// name. Expressions are computed by rows that come as whoever brings them, and by a build as the owner of
/// the table.
///
/// Functions and operators that an expression calls have to be IMMUTABLE when the index is made, and need not
/// stay so: CREATE OR REPLACE FUNCTION without the word leaves an index that only a new one would not be.
///
/// From PostgreSQL 17 on, they are computed by a build under `pg_catalog, pg_temp`, whatever the session
/// says. Bodies that are texts are read then: what they name is known only to their language.
const LACKING_SQL: &str = "\
    , used (index_oid, owner, is_named, classid, objid) AS ( \
        SELECT i.indexrelid, c.relowner, true, named.classid, named.objid \
        FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_index i ON i.indrelid = c.oid \
        CROSS JOIN LATERAL ( \
            SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d \
            WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid = i.indexrelid \
              AND d.refobjid <> i.indrelid \
              AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass o WHERE o.oid = d.refobjid AND o.opcdefault \
                              AND d.refclassid = 'pg_catalog.pg_opclass'::pg_catalog.regclass::pg_catalog.oid) \
            UNION ALL SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid, operator.oid \
            FROM pg_catalog.pg_constraint con CROSS JOIN pg_catalog.unnest(con.conexclop) AS operator (oid) \
            WHERE con.conrelid = i.indrelid AND con.conindid = i.indexrelid AND con.contype = 'x') AS named (classid, objid) \
        UNION \
        SELECT used.index_oid, used.owner, false, d.refclassid, d.refobjid \
        FROM used JOIN pg_catalog.pg_depend d ON d.classid = used.classid AND d.objid = used.objid \
        WHERE used.classid IN ('pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid, \
                               'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid) \
          AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid, \
                               'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid)), \
    called AS ( \
        SELECT used.index_oid, p.oid::pg_catalog.regprocedure::text AS name, \
               CASE WHEN NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE') THEN current_user::text \
                    WHEN NOT pg_catalog.has_function_privilege(used.owner, p.oid, 'EXECUTE') \
                    THEN pg_catalog.pg_get_userbyid(used.owner)::text END AS lacking_role, \
               pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 170000 \
                   AND l.lanname NOT IN ('internal', 'c') \
                   AND pg_catalog.to_jsonb(p) ->> 'prosqlbody'::pg_catalog.text IS NULL \
                   AND NOT EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) AS s (setting) WHERE s.setting LIKE 'search_path=%') \
                   AS needs_path \
        FROM used JOIN pg_catalog.pg_proc p ON p.oid = used.objid JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
        WHERE used.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid) \
    SELECT used.index_oid, n.nspname::text, current_user::text, 'schema' AS what, \
           pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user) \
    FROM used CROSS JOIN LATERAL pg_catalog.pg_identify_object(used.classid, used.objid, 0) AS o \
    JOIN pg_catalog.pg_namespace n ON pg_catalog.quote_ident(n.nspname) = o.schema \
    WHERE used.is_named AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
    UNION ALL SELECT index_oid, name, lacking_role, 'function', \
           pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %I', name, lacking_role) \
    FROM called WHERE lacking_role IS NOT NULL \
    UNION ALL SELECT index_oid, name, NULL, 'path', NULL FROM called WHERE lacking_role IS NULL AND needs_path \
    UNION ALL SELECT used.index_oid, f.name, NULL, 'constancy', pg_catalog.format('ALTER FUNCTION %s IMMUTABLE', f.name) \
    FROM used LEFT JOIN pg_catalog.pg_operator o \
      ON used.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid AND o.oid = used.objid \
    JOIN pg_catalog.pg_proc p ON p.oid = CASE used.classid WHEN 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid \
      THEN o.oprcode::pg_catalog.oid WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid THEN used.objid END \
    CROSS JOIN LATERAL (SELECT p.oid::pg_catalog.regprocedure::text AS name) f \
    WHERE used.is_named AND p.provolatile <> 'i' \
    ORDER BY 4 DESC, 2";

/// What stands in the way of building indexes again.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Why those with these OIDs could not be built.
    pub(super) lacking: BTreeMap<u32, String>,
    /// A build may have temporary files of so many bytes.
    pub(super) temp_bytes_max: Option<u64>,
}

/// One thing that stands in the way of building an index.
#[derive(Debug)]
pub(crate) struct Lacking {
    pub(crate) index_oid: u32,
    pub(crate) what: What,
    /// Of the schema or function, in full.
    pub(crate) name: String,
    /// The role that lacks it: this one, or the table's owner, by whom a build computes; empty for what is no
    /// right.
    pub(crate) role: String,
    /// What helps, but for a path.
    pub(crate) grant: Option<String>,
}

/// What is lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// USAGE on a schema.
    Usage,
    /// EXECUTE on a function.
    Execute,
    /// A `search_path` of the function's own, perhaps: what it names is known only to its language.
    Path,
    /// A function that is IMMUTABLE.
    Constancy,
}

impl Lacking {
    fn of(row: &Row) -> Lacking {
        Lacking {
            index_oid: row.get(0),
            what: match row.get(3) {
                "schema" => What::Usage,
                "function" => What::Execute,
                "constancy" => What::Constancy,
                _ => What::Path,
            },
            name: row.get(1),
            role: row.get::<_, Option<String>>(2).unwrap_or_default(),
            grant: row.get(4),
        }
    }

    /// Why an index that needs it is not dropped.
    fn why(&self) -> String {
        let Lacking { name, role, .. } = self;
        match self.what {
            What::Usage => usage_of(name),
            What::Execute => {
                format!("putting it back needs EXECUTE on the function {name} for role {role}")
            }
            What::Constancy => format!(
                "its function {name} is not IMMUTABLE any more (ALTER FUNCTION ... IMMUTABLE), and the server builds no index with it"
            ),
            What::Path => format!(
                "it is built under a search_path of pg_catalog alone from PostgreSQL 17 on, and its function {name} has none of its \
                 own (ALTER FUNCTION ... SET search_path)"
            ),
        }
    }
}

/// What indexes of the table and its partitions lack. Asked under an empty `search_path`, under which
/// functions are named in full.
pub(crate) async fn lacking(session: &Session, relation: &Relation) -> Result<Vec<Lacking>> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = session.client().query_typed(&format!("{BY_NAME_SQL} {LACKING_SQL}"), &names).await;
    Ok(rows.map_err(|error| session_error(&error, DOING))?.iter().map(Lacking::of).collect())
}

const DOING: &str = "reading what the table's indexes need";

/// The same, and how much a build may write. Asked likewise.
pub(super) async fn look(session: &Session, relation: &Relation) -> Result<Needs> {
    let limit = format!(
        "SELECT pg_catalog.pg_size_bytes(s.value) FROM pg_catalog.current_setting('temp_file_limit') AS s (value) \
         WHERE s.value <> '-1' AND NOT {}",
        may_lift_sql(session.server_version())
    );
    let limit = session.client().query_typed(&limit, &[]);
    // Sent together.
    let (lacking, limit) = future::join(lacking(session, relation), limit).await;
    let limit = limit.map_err(|error| session_error(&error, DOING))?;
    Ok(Needs {
        lacking: lacking?.iter().map(|lacking| (lacking.index_oid, lacking.why())).collect(),
        temp_bytes_max: limit.first().map(|row| row.get::<_, i64>(0).unsigned_abs()),
    })
}

/// Why it stays where this role may not use the schema of something that its definition names.
pub(super) fn usage_of(schema: &str) -> String {
    format!("putting it back needs USAGE on the schema {schema}")
}

/// What a role lacks of all that definitions may name, `$1` being the table that an index is of: how
/// statements name it, and the GRANT.
const GRANTS_SQL: &str = "\
    SELECT pg_catalog.quote_ident(n.nspname) || '.'::text, pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user) \
    FROM pg_catalog.pg_namespace n WHERE NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
    UNION ALL \
    SELECT pg_catalog.format('%I.%I(', n.nspname, p.proname), \
           pg_catalog.format('GRANT EXECUTE ON FUNCTION %I.%I(%s) TO %I', n.nspname, p.proname, \
                             pg_catalog.pg_get_function_identity_arguments(p.oid), role.name) \
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    CROSS JOIN (SELECT current_user::pg_catalog.name UNION SELECT pg_catalog.pg_get_userbyid(relowner) \
                FROM pg_catalog.pg_class WHERE oid = $1) AS role (name) \
    WHERE n.nspname <> 'pg_catalog' AND NOT pg_catalog.has_function_privilege(role.name, p.oid, 'EXECUTE') \
    UNION ALL \
    SELECT pg_catalog.format('default_tablespace = %L', t.spcname), \
           pg_catalog.format('GRANT CREATE ON TABLESPACE %I TO %I', t.spcname, current_user) \
    FROM pg_catalog.pg_tablespace t WHERE NOT pg_catalog.has_tablespace_privilege(t.oid, 'CREATE') \
    ORDER BY 2";

/// The GRANTs without which the entry cannot be put back, as far as its statements name what the role lacks.
pub(super) async fn grants(session: &Session, change: &NewUndo) -> Vec<String> {
    // Only a hint depends on these.
    let rows = session.client().query_typed(GRANTS_SQL, &[(&change.table_oid, Type::OID)]).await;
    let rows = rows.unwrap_or_default();
    let named = rows.iter().filter(|row| change.statements.iter().any(|sql| names(sql, row.get(0))));
    named.map(|row| row.get(1)).collect()
}

/// The statement names it, and not something whose name ends so.
fn names(sql: &str, name: &str) -> bool {
    let is_of_name = |char: char| char.is_alphanumeric() || "_$\"".contains(char);
    sql.match_indices(name).any(|(at, _)| !sql[..at].ends_with(is_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_alike_are_told_apart() {
        let sql = "CREATE INDEX i ON a.t USING btree (next.f(u), \"a ext\".g(u))";
        assert!(!names(sql, "ext.") && names(sql, "next.") && names(sql, "next.f(") && !names(sql, "t.f("));
        assert!(names("... (ext.f(u))", "ext.") && names("... COLLATE ext.c", "ext."));
    }
}
