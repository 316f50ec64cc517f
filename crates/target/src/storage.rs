//! The files in which the server keeps a table and its partitions. TRUNCATE gives a table a new one, and so do VACUUM FULL, CLUSTER and
//! ALTER TABLE where it writes all rows anew: whose files are the ones that they were has not been emptied by TRUNCATE.

use crate::session::Session;
use crate::sql::quote_relation;
use crate::tree::BY_NAME_SQL;
use crate::truncate::sees_all_rows;
use howdah_model::{Relation, Result};
use std::collections::BTreeMap;
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

/// The rows of the table, if these are fewer than `expected`. `None` also where the role does not see all of them.
///
/// # Errors
/// Those of the session.
pub async fn fewer_rows(session: &Session, relation: &Relation, expected: u64) -> Result<Option<u64>> {
    if !sees_all_rows(session, relation).await? {
        return Ok(None);
    }
    let sql = format!(
        "SELECT pg_catalog.count(*) FROM (SELECT FROM {} LIMIT {expected}) AS r",
        quote_relation(relation)
    );
    let rows = session.rows(&sql, &[], "counting the table's rows").await?;
    let rows = rows.first().map_or(expected, |row| row.get::<_, i64>(0).unsigned_abs());
    Ok((rows < expected).then_some(rows))
}
