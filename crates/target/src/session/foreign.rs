//! How rows go on to another server: `postgres_fdw` sends each row by itself unless it is told to send many
//! at once.

use super::Session;
use crate::sql::{quote_ident, quote_relation};
use crate::tree::BY_OID_SQL;
use howdah_model::{Relation, Result, Table};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// From so many rows at once on, more gain little: what is left is the time of the rows, not of the round
/// trips.
const BATCH_ROWS_ENOUGH: u64 = 100;
/// COPY sends rows of a foreign table in batches since this version; INSERT did so before.
const COPY_BATCHES_SINCE: u32 = 160_000;

/// The foreign tables of `postgres_fdw`, by its handler as the wrapper may have any name, with what an option
/// of the table says, and one of the server.
const FOREIGN_SQL: &str = "\
    SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, s.srvname::pg_catalog.text, \
           (SELECT o.option_value FROM pg_catalog.pg_options_to_table(f.ftoptions) o WHERE o.option_name = 'batch_size'), \
           (SELECT o.option_value FROM pg_catalog.pg_options_to_table(s.srvoptions) o WHERE o.option_name = 'batch_size') \
    FROM tree JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = tree.oid \
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver \
    JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw \
    JOIN pg_catalog.pg_proc p ON p.oid = w.fdwhandler AND p.proname = 'postgres_fdw_handler' \
    WHERE NOT tree.is_detached ORDER BY 1, 2";

/// A foreign table whose rows go one by one, or in small batches.
struct Slow {
    relation: Relation,
    server: String,
    of_table: Option<String>,
    of_server: Option<String>,
}

impl Slow {
    fn of(row: &Row) -> Option<Slow> {
        let slow = Slow {
            relation: Relation { schema: row.get(0), name: row.get(1) },
            server: row.get(2),
            of_table: row.get(3),
            of_server: row.get(4),
        };
        (slow.batch_rows() < BATCH_ROWS_ENOUGH).then_some(slow)
    }

    fn batch_rows(&self) -> u64 {
        let said = self.of_table.as_ref().or(self.of_server.as_ref());
        said.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// What its owner can run.
    fn remedy(&self) -> String {
        let verb = |said: &Option<String>| if said.is_some() { "SET" } else { "ADD" };
        let options = |verb: &str| format!("OPTIONS ({verb} batch_size '1000')");
        match &self.of_table {
            Some(_) => format!("ALTER FOREIGN TABLE {} {}", quote_relation(&self.relation), options("SET")),
            None => format!("ALTER SERVER {} {}", quote_ident(&self.server), options(verb(&self.of_server))),
        }
    }
}

/// SQL that is true where the row `c` of `pg_class` is a foreign table that takes no rows: its wrapper says
/// so (8 is INSERT), or has no handler, which asking it would fail for.
macro_rules! takes_no_rows {
    () => {
        "c.relkind = 'f' AND CASE WHEN EXISTS ( \
             SELECT FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver \
             JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw \
             WHERE f.ftrelid = c.oid AND w.fdwhandler <> 0::pg_catalog.oid) \
         THEN pg_catalog.pg_relation_is_updatable(c.oid, false) & 8 = 0 ELSE true END"
    };
}
pub(super) use takes_no_rows;

/// Partitions that take no rows, which the server says when the first comes: one that holds what is old may
/// be meant so.
const CLOSED_SQL: &str = concat!(
    "SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text \
     FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE NOT tree.is_detached AND ",
    takes_no_rows!(),
    " ORDER BY 1, 2"
);

/// The beginning of what [`closed`] says.
pub const CLOSED: &str = "rows are refused that belong into";

/// Which partitions of the table take no rows; `None`: all do.
///
/// # Errors
/// Those of the session.
pub async fn closed(session: &Session, table: &Table) -> Result<Option<String>> {
    let sql = format!("{BY_OID_SQL}{CLOSED_SQL}");
    // A wrapper whose library is not there fails; only a note depends on it.
    let Ok(rows) = session.rows(&sql, &[(&table.oid, Type::OID)], "reading the foreign tables").await else {
        return Ok(None);
    };
    let Some(first) = rows.first() else { return Ok(None) };
    let first = Relation { schema: first.get(0), name: first.get(1) };
    Ok(Some(match rows.len() {
        1 => format!("{CLOSED} {first}: it is a foreign table that takes no INSERT"),
        others => {
            format!("{CLOSED} {first} and {} more: they are foreign tables that take no INSERT", others - 1)
        }
    }))
}

/// Why rows of the table go on slowly, and what to do about it; `None`: they do not, or nobody knows.
///
/// # Errors
/// Those of the session.
pub async fn why_slow(session: &Session, table: &Table) -> Result<Option<String>> {
    let sql = format!("{BY_OID_SQL}{FOREIGN_SQL}");
    let rows = session.rows(&sql, &[(&table.oid, Type::OID)], "reading the foreign tables").await?;
    if session.server_version() < COPY_BATCHES_SINCE {
        return Ok(rows.first().map(|row| {
            let relation = Relation { schema: row.get(0), name: row.get(1) };
            format!(
                "rows go on to the server of {relation} one by one, as COPY sends them before PostgreSQL 16: load into that server \
                 itself (--to)"
            )
        }));
    }
    let slow: Vec<Slow> = rows.iter().filter_map(Slow::of).collect();
    let Some(first) = slow.first() else { return Ok(None) };
    let others = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
    let mut remedies: Vec<String> = slow.iter().map(Slow::remedy).collect();
    remedies.sort();
    remedies.dedup();
    let more =
        if remedies.len() > 1 { format!("; and {} more like it", remedies.len() - 1) } else { String::new() };
    Ok(Some(format!(
        "rows go on to the server of {}{others} {} at a time (batch_size of postgres_fdw): {}{more}",
        first.relation,
        first.batch_rows(),
        remedies.first().map_or("", String::as_str)
    )))
}
