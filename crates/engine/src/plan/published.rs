//! What the tables that a load makes mean to subscribers, said before that is done.

use super::ledger_of;
use crate::Context;
use howdah_model::{Mode, Plan, RelationKind, Result};
use howdah_target::publications;
use howdah_target::session::Session;
use std::collections::BTreeSet;

/// A warning for each publication that takes in a table that the load is going to make, those of the ledger
/// too. Asked anew by every run.
///
/// # Errors
/// Those of the session.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    makes_ledger: bool,
) -> Result<()> {
    let ledger = ledger_of(&plan.job).filter(|_| makes_ledger);
    let mut schemas: BTreeSet<String> = ledger.iter().map(|ledger| ledger.schema().to_owned()).collect();
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
    plan.warnings.extend(found.into_iter().map(warning));
    if plan.job.create_partitions.is_some() && !plan.job.arrival.check {
        of_partitions(context, session, plan).await?;
    }
    if plan.job.arrival.mode == Mode::Truncate && !plan.job.arrival.check {
        of_emptied(context, session, plan).await?;
    }
    Ok(())
}

/// A warning for each table that is emptied here and not where its rows are published to.
async fn of_emptied(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    for table in plan.tables.iter().filter(|table| table.create.is_none()) {
        let relation = &table.table.relation;
        let asking = publications::without_truncate(session, relation);
        let found = context.connection.attend(session, asking).await?;
        plan.warnings.extend(found.into_iter().map(|publication| {
            format!(
                "the publication {publication} of {relation} leaves out TRUNCATE: its subscribers keep the rows that are there, and get the new \
                 ones on top"
            )
        }));
    }
    Ok(())
}

/// A warning for each publication that partitions belong to as soon as they are made.
async fn of_partitions(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    for table in plan.tables.iter().filter(|table| table.table.kind == RelationKind::Partitioned) {
        let asking = publications::of_new_partitions(session, &table.table.relation);
        let found = context.connection.attend(session, asking).await?;
        plan.warnings.extend(found.into_iter().map(|publication| {
            format!(
                "{publication}, and with it of the partitions that this load makes, under their own names (publish_via_partition_root is off): a \
                 subscriber that has not got them stops"
            )
        }));
    }
    Ok(())
}
