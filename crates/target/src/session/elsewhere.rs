//! Tables whose rows lie in other tables, though the catalog tells them as plain ones: those that others
//! inherit from, hypertables of TimescaleDB and distributed tables of Citus. They have no pages of their own,
//! however many rows they have; ONLY means none of these; and their keys do not come back as those of plain
//! tables do.

use super::Session;
use crate::error::session_error;
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// Whether others inherit from the table, and whether the catalogs of the two extensions are there. A
/// superuser's tables alone are such a catalog: a view of somebody else would run what he likes.
const SIGNS_SQL: &str = "\
    WITH catalogs AS ( \
        SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        JOIN pg_catalog.pg_roles r ON r.oid = c.relowner AND r.rolsuper \
        WHERE c.relkind = 'r' AND c.relname IN ('hypertable', 'pg_dist_partition') \
          AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) \
    SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class c ON c.oid = h.inhparent AND c.relkind = 'r' \
                   JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2), \
           EXISTS (SELECT FROM catalogs WHERE nspname = '_timescaledb_catalog' AND relname = 'hypertable'), \
           EXISTS (SELECT FROM catalogs WHERE nspname = 'pg_catalog' AND relname = 'pg_dist_partition')";

const HYPERTABLE_SQL: &str = "\
    SELECT FROM _timescaledb_catalog.hypertable h \
    WHERE h.schema_name::pg_catalog.text = $1 AND h.table_name::pg_catalog.text = $2";

const DISTRIBUTED_SQL: &str = "\
    SELECT FROM pg_catalog.pg_dist_partition d JOIN pg_catalog.pg_class c ON c.oid = d.logicalrelid::pg_catalog.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";

/// What [`why_elsewhere`] says of a plain table, whose own rows ONLY means.
pub(crate) const INHERITED: &str = "other tables inherit from it";

/// Why the table's rows may lie in other tables, if so.
///
/// # Errors
/// Those of the session.
pub async fn why_elsewhere(session: &Session, relation: &Relation) -> Result<Option<&'static str>> {
    let fail = |error| session_error(&error, "looking whether rows lie in other tables");
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let signs = session.client().query_typed_one(SIGNS_SQL, &names).await.map_err(fail)?;
    for (sign, sql, why) in [
        (1, HYPERTABLE_SQL, "it is a hypertable of TimescaleDB"),
        (2, DISTRIBUTED_SQL, "it is a distributed table of Citus"),
    ] {
        if signs.get(sign) && !session.client().query_typed(sql, &names).await.map_err(fail)?.is_empty() {
            return Ok(Some(why));
        }
    }
    Ok(signs.get::<_, bool>(0).then_some(INHERITED))
}
