//! What the tables that a load makes, or changes in the ledger, mean to subscribers, said before that is done.

use super::ledger_of;
use crate::Context;
use howdah_model::{Plan, Result};
use howdah_target::ledger::{Age, Ledger};
use howdah_target::publications;
use howdah_target::session::Session;
use std::collections::BTreeSet;

/// A warning for each publication that takes in a table that the load is going to make, or has tables of a ledger of this age that it
/// brings up to date. Asked anew by every run.
///
/// # Errors
/// Those of the session.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    age: Option<Age>,
) -> Result<()> {
    let mut schemas: BTreeSet<String> = BTreeSet::new();
    let mut warnings = Vec::new();
    if let Some((ledger, age)) = ledger_of(&plan.job).zip(age) {
        match age {
            Age::Absent => {
                schemas.insert(ledger.schema().to_owned());
            }
            Age::Older { version, newest } => {
                warnings = of_older(context, session, &ledger, version, newest).await?;
            }
            Age::Current => {}
        }
    }
    for table in plan.tables.iter().filter(|_| !plan.job.arrival.check) {
        if table.create.is_some() || plan.job.create_partitions.is_some() {
            schemas.insert(table.table.relation.schema.clone());
        }
        schemas.extend(table.staging.iter().map(|staging| staging.relation.schema.clone()));
    }
    let schemas: Vec<String> = schemas.into_iter().collect();
    let asking = publications::of_new_tables(session, &schemas);
    let found = context.connection.attend(session, asking).await?;
    let warning = |publication: String| {
        format!(
            "{publication}, also of those that this load makes (in {}): a subscriber that has not got them stops",
            schemas.join(", ")
        )
    };
    plan.warnings.extend(warnings.into_iter().chain(found.into_iter().map(warning)));
    Ok(())
}

/// Each version brings columns, which the next row that is changed has.
async fn of_older(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    version: i32,
    newest: usize,
) -> Result<Vec<String>> {
    let asking = publications::of_tables_in(session, ledger.schema());
    let found = context.connection.attend(session, asking).await?;
    let warning = |publication: String| {
        format!(
            "the publication {publication} has tables of the ledger {}, which this load brings from version {version} to {newest}: a \
             subscriber whose ledger is not of that version before stops",
            ledger.schema()
        )
    };
    Ok(found.into_iter().map(warning).collect())
}
