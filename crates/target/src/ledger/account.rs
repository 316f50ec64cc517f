//! The account of each file: what was read of it, and what became of that.

use super::Ledger;
use crate::session::Session;
use howdah_model::Result;
use tokio_postgres::types::{ToSql, Type};

/// What was counted of one file. Read is stored and rejected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAccount {
    /// Records found in it, by the run that came to its end.
    pub rows_read: u64,
    /// Rows in chunks that are in.
    pub rows_stored: u64,
    /// Records that were left out or refused.
    pub rows_rejected: u64,
}

impl Ledger {
    /// Writes down the accounts of all files of a job, in their order.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn account(&self, session: &Session, job_id: &str, files: &[FileAccount]) -> Result<()> {
        let sql = format!(
            "UPDATE {}.file f SET rows_read = a.read, rows_stored = a.stored, rows_rejected = a.rejected \
             FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4)) \
                  WITH ORDINALITY AS a (read, stored, rejected, number) \
             WHERE f.job_id = $1 AND f.file_no = a.number - 1",
            self.quoted
        );
        let numbers = |of: fn(&FileAccount) -> u64| -> Vec<i64> {
            files.iter().map(|file| of(file).cast_signed()).collect()
        };
        let counts = [
            numbers(|file| file.rows_read),
            numbers(|file| file.rows_stored),
            numbers(|file| file.rows_rejected),
        ];
        let [read, stored, rejected] = &counts;
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&job_id, Type::TEXT),
            (read, Type::INT8_ARRAY),
            (stored, Type::INT8_ARRAY),
            (rejected, Type::INT8_ARRAY),
        ];
        let done = session.client().execute_typed(&sql, &parameters).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "writing the account of the files"))
    }
}
