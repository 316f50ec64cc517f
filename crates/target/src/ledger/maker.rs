//! Who has made a table.

use super::Ledger;
use crate::session::Session;
use howdah_model::Result;
use tokio_postgres::types::Type;

impl Ledger {
    /// The last job that has made the table of this OID and has stored nothing.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn idle_maker(&self, session: &Session, table_oid: u32) -> Result<Option<String>> {
        let sql = format!(
            "SELECT j.job_id FROM {0}.job AS j \
             WHERE j.status <> 'done' AND NOT EXISTS (SELECT FROM {0}.chunk AS c WHERE c.job_id = j.job_id) \
             AND EXISTS (SELECT FROM pg_catalog.jsonb_array_elements(j.plan -> 'tables') AS t (plan) \
                 WHERE t.plan -> 'create' <> 'null' AND t.plan -> 'table' -> 'oid' = pg_catalog.to_jsonb($1)) \
             ORDER BY j.started_at DESC LIMIT 1",
            self.quoted
        );
        let rows = self
            .ask(
                session,
                &sql,
                &[(&i64::from(table_oid), Type::INT8)],
                "looking in the ledger for the table's job",
            )
            .await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}
