//! Rows that fire no triggers: their transactions see to it.
//!
//! Under `session_replication_role = replica` the server skips the triggers that users made, and its own just
//! as well: those that check foreign keys and deferrable keys. A table that has any of these must not be
//! loaded so. Whether it has is asked behind the rows, when nobody can add one to a table that has got rows
//! until the transaction ends.
//!
//! Triggers that are disabled may be enabled meanwhile: by another load that had disabled them and ends, by
//! whoever puts back what a killed one has left, by hand. Whether they are is asked before the rows, so that
//! none fires, and behind them, when nobody can enable one until the transaction ends.

use crate::tree::BY_NAME_SQL;
use howdah_model::{Error as ModelError, ErrorKind, Relation, TriggersWay, sqlstate};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The SQLSTATE (serialization_failure) of a chunk that was not stored because triggers are enabled that were
/// to be disabled: it can be stored when they are again.
pub const TRIGGERS_ENABLED: &str = sqlstate::SERIALIZATION_FAILURE;

/// Triggers of constraints that would fire for an INSERT were the role the usual one.
const SKIPPED_SQL: &str = "\
    SELECT EXISTS (SELECT FROM tree JOIN pg_catalog.pg_trigger t ON t.tgrelid = tree.oid \
                   JOIN pg_catalog.pg_constraint c ON c.oid = t.tgconstraint AND c.contype <> 't' \
                   WHERE t.tgtype & 4::pg_catalog.int2 = 4 AND t.tgenabled = 'O')";

/// Triggers that users made and that would fire for an INSERT.
const ENABLED_SQL: &str = "\
    SELECT EXISTS (SELECT FROM tree JOIN pg_catalog.pg_trigger t ON t.tgrelid = tree.oid \
                   LEFT JOIN pg_catalog.pg_constraint c ON c.oid = t.tgconstraint AND c.contype <> 't' \
                   WHERE t.tgtype & 4::pg_catalog.int2 = 4 AND t.tgenabled = 'O' AND c.oid IS NULL)";

/// From here to the end of the transaction no trigger fires. `false` where some would.
pub(crate) async fn begin(client: &Client, way: TriggersWay, relation: &Relation) -> Result<bool, Error> {
    match way {
        TriggersWay::Keep => Ok(true),
        TriggersWay::Replica => {
            client.batch_execute("SET LOCAL session_replication_role TO replica").await.map(|()| true)
        }
        TriggersWay::Disable => has_none(client, ENABLED_SQL, relation).await,
    }
}

/// No trigger has fired, and nothing that would have checked the rows was skipped.
pub(crate) async fn checked(client: &Client, way: TriggersWay, relation: &Relation) -> Result<bool, Error> {
    match way {
        TriggersWay::Keep => Ok(true),
        TriggersWay::Replica => has_none(client, SKIPPED_SQL, relation).await,
        TriggersWay::Disable => has_none(client, ENABLED_SQL, relation).await,
    }
}

/// Why rows must not be stored in this way.
pub(crate) fn refusal(way: TriggersWay, relation: &Relation) -> ModelError {
    if way == TriggersWay::Disable {
        let message = format!("triggers of {relation} were enabled while rows came that are to fire none");
        return ModelError::new(ErrorKind::Server, message).with_sqlstate(TRIGGERS_ENABLED);
    }
    let message =
        format!("{relation} has a foreign key or a deferrable key now, which these rows would not have met");
    ModelError::new(ErrorKind::Table, message)
        .with_hint("run the same command again: it goes on where it stopped, in another way")
}

async fn has_none(client: &Client, of_tree_sql: &str, relation: &Relation) -> Result<bool, Error> {
    let sql = format!("{BY_NAME_SQL} {of_tree_sql}");
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = client.query_typed(&sql, &names).await?;
    Ok(rows.first().is_some_and(|row| !row.get::<_, bool>(0)))
}
