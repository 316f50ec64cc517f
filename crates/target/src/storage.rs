//! The files in which the server keeps a table and its partitions. TRUNCATE gives a table a new one, and so
//! do VACUUM FULL, CLUSTER and ALTER TABLE where it writes all rows anew: whose files are the ones that they
//! were has not been emptied by TRUNCATE.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_relation;
use crate::tree::BY_NAME_SQL;
use crate::truncate::sees_all_rows;
use howdah_model::{Relation, Result, sqlstate};
use std::collections::BTreeMap;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// Takes no lock, as the catalog alone is asked. Views and foreign tables have no file here.
const FILES_SQL: &str = "\
    SELECT f.oid, f.node FROM (SELECT tree.oid, pg_catalog.pg_relation_filenode(tree.oid::pg_catalog.regclass) AS node FROM tree) AS f \
    WHERE f.node IS NOT NULL";

/// The file of a table, or those of its partitions, by OID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageFiles(BTreeMap<u32, u32>);

impl StorageFiles {
    /// Reads them.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn read(session: &Session, relation: &Relation) -> Result<StorageFiles> {
        let names: [(&(dyn ToSql + Sync), Type); 2] =
            [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
        let sql = format!("{BY_NAME_SQL}{FILES_SQL}");
        let rows = session.rows(&sql, &names, "looking for the table's files").await?;
        Ok(StorageFiles(rows.iter().map(|row| (row.get(0), row.get(1))).collect()))
    }

    /// Each of them is there `later`. New partitions take nothing away.
    pub fn are_kept(&self, later: &StorageFiles) -> bool {
        self.0.iter().all(|(oid, node)| later.0.get(oid) == Some(node))
    }
}

/// A count that only a warning hangs on waits for a lock no longer than this, and goes on no longer than
/// this.
const COUNT_WITHIN_MS: u32 = 10_000;
const COUNT_LOCK_WITHIN_MS: u32 = 1000;

/// The rows of the table, if these are fewer than `expected`. `None` also where the role does not see all of
/// them, where somebody has the table to himself, and where it has too many to be counted within ten seconds.
///
/// # Errors
/// Those of the session.
pub async fn fewer_rows(session: &Session, relation: &Relation, expected: u64) -> Result<Option<u64>> {
    if !sees_all_rows(session, relation).await? {
        return Ok(None);
    }
    let sql = format!(
        "BEGIN READ ONLY; SET LOCAL lock_timeout = {COUNT_LOCK_WITHIN_MS}; SET LOCAL statement_timeout = {COUNT_WITHIN_MS}; \
         SELECT pg_catalog.count(*) FROM (SELECT FROM {} LIMIT {expected}) AS r; COMMIT",
        quote_relation(relation)
    );
    let answers = match session.client().simple_query(&sql).await {
        Ok(answers) => answers,
        Err(error) => {
            session.roll_back().await;
            return match error.code().map(SqlState::code) {
                Some(sqlstate::LOCK_NOT_AVAILABLE | sqlstate::QUERY_CANCELED) => Ok(None),
                _ => Err(session_error(&error, "counting the table's rows")),
            };
        }
    };
    let count = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse::<u64>().ok(),
        _ => None,
    });
    Ok(count.filter(|rows| *rows < expected))
}
