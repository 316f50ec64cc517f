//! Ledgers that roles own which have no say over what is loaded: any role that may make a schema may have
//! been there first.

use super::ledger_of;
use crate::Context;
use crate::doubted;
use crate::left_behind::Left;
use howdah_model::{Plan, Result};
use howdah_target::session::Session;
use howdah_target::sql::quote_ident;

/// As [`doubted::expect_nothing_left`], of a job that is planned.
pub(super) async fn expect_nothing_left(
    context: &Context,
    session: &Session,
    plan: &Plan,
    doubted_for: &[String],
) -> Result<()> {
    let Some(ledger) = ledger_of(&plan.job).filter(|_| !doubted_for.is_empty()) else { return Ok(()) };
    let reading = Left::read(&ledger, session, Some(&plan.job_id));
    let left = context.connection.attend(session, reading).await?;
    doubted::expect_nothing_left(context, &ledger, &plan.job_id, &left, doubted_for)
}

/// A warning where the ledger is another role's, one of these. No more than that: ledgers are shared by
/// GRANT, and nothing tells one that was meant from one that was not.
pub(super) fn tell(plan: &mut Plan, owners: &[String]) {
    let Some(ledger) = ledger_of(&plan.job) else { return };
    if !owners.is_empty() {
        let schema = quote_ident(ledger.schema());
        plan.warnings.push(format!(
            "the ledger in schema {schema} belongs to {}, which owns neither what is loaded nor the database, and can have code run \
             with this role's rights: where its owner is not trusted, name another ledger with --ledger",
            owners.join(", ")
        ));
    }
}
