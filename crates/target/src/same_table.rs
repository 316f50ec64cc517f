//! Statements name their table and wait for its lock. Meanwhile the name may come to another table, which the
//! statement then changes instead: a server looks the name up again when it has the lock. Whoever has changed
//! something asks before COMMIT, when nobody else can rename the table any more, and rolls back if it was
//! another one.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::{Relation, Result, sqlstate};

/// What [`expect_sql`] fails with: `undefined_object`.
pub(crate) const ANOTHER_SQLSTATE: &str = sqlstate::UNDEFINED_OBJECT;

fn is_so_sql(oid: u32, relation: &Relation) -> String {
    format!(
        "EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = {oid}::pg_catalog.oid AND n.nspname = {} AND c.relname = {})",
        quote_literal(&relation.schema),
        quote_literal(&relation.name)
    )
}

/// A statement that fails unless the table of this OID has this name, for messages that end in COMMIT.
pub(crate) fn expect_sql(oid: u32, relation: &Relation) -> String {
    // A setting that nobody has made is not looked up when the statement is planned.
    format!(
        "SELECT CASE WHEN {} THEN '' ELSE pg_catalog.current_setting('howdah.the_table_has_another_name') END",
        is_so_sql(oid, relation)
    )
}

/// The table of this OID has this name.
///
/// # Errors
/// Those of the session.
pub(crate) async fn is_so(session: &Session, oid: u32, relation: &Relation) -> Result<bool> {
    let sql = format!("SELECT {}", is_so_sql(oid, relation));
    let row = session.client().query_typed_one(&sql, &[]).await;
    row.map(|row| row.get(0)).map_err(|error| session_error(&error, "looking for the table"))
}
