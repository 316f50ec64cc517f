//! Columns of a check's staging table that some of its files fill and others leave out: there they have the
//! defaults of the table's own, as they have where rows are appended.

use super::facts::Facts;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Result, StagingPlan, TablePlan};
use std::collections::BTreeSet;

/// Such columns, ready for SQL, with their defaults.
#[derive(Debug)]
pub struct LeftOut(Vec<(String, String)>);

impl LeftOut {
    /// Reads the defaults of these columns.
    ///
    /// # Errors
    /// Columns, where one takes a number from a sequence, which a check must not; those of the session.
    pub async fn read(session: &Session, plan: &TablePlan, columns: &BTreeSet<&String>) -> Result<LeftOut> {
        if columns.is_empty() {
            return Ok(LeftOut(Vec::new()));
        }
        let facts = Facts::read(session, plan).await?;
        let mut defaults = Vec::new();
        for column in facts.columns.iter().filter(|column| columns.contains(&column.name)) {
            if column.is_numbered {
                let message = format!(
                    "files for {} fill different columns, and column {} takes a number from a sequence where a file leaves it out",
                    plan.table.relation, column.name
                );
                return Err(
                    Error::new(ErrorKind::Columns, message).with_hint("check them one after the other")
                );
            }
            defaults.extend(column.default.clone().map(|default| (quote_ident(&column.name), default)));
        }
        Ok(LeftOut(defaults))
    }

    /// Gives them to the staging table, before rows come.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn fill(&self, session: &Session, staging: &StagingPlan) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let set = |(column, default): &(String, String)| format!("ALTER {column} SET DEFAULT {default}");
        let set: Vec<String> = self.0.iter().map(set).collect();
        let sql = format!("ALTER TABLE {} {}", quote_relation(&staging.relation), set.join(", "));
        let done = session.client().batch_execute(&sql).await;
        done.map_err(|error| session_error(&error, "making a staging table"))
    }
}
