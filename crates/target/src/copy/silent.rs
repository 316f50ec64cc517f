//! Rows that fire no triggers, in the transactions of a load alone.
//!
//! Under `session_replication_role = replica` the server skips the triggers that users made, and its own just as well:
//! those that check foreign keys and deferrable keys. A table that has any of these must not be loaded so. Whether it
//! has is asked behind the rows, when nobody can add one to a table that has got rows until the transaction ends.

use crate::undo::TREE_SQL;
use howdah_model::Relation;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// Triggers of constraints that would fire for an INSERT were the role the usual one.
const SKIPPED_SQL: &str = "\
    SELECT EXISTS (SELECT FROM tree JOIN pg_catalog.pg_trigger t ON t.tgrelid = tree.oid \
                   JOIN pg_catalog.pg_constraint c ON c.oid = t.tgconstraint AND c.contype <> 't' \
                   WHERE t.tgtype & 4 = 4 AND t.tgenabled = 'O')";

/// From here to the end of the transaction.
pub(crate) async fn begin(client: &Client) -> Result<(), Error> {
    client.batch_execute("SET LOCAL session_replication_role TO replica").await
}

/// Nothing that would have checked the rows was skipped.
pub(crate) async fn checked(client: &Client, relation: &Relation) -> Result<bool, Error> {
    let sql = format!("{TREE_SQL} {SKIPPED_SQL}");
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = client.query_typed(&sql, &names).await?;
    Ok(rows.first().is_some_and(|row| !row.get::<_, bool>(0)))
}
