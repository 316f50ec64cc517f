//! Ledgers that roles own which have no say over what is loaded: any role that may make a schema may have been there first.

use super::ledger_of;
use crate::Context;
use howdah_model::{Plan, Result};
use howdah_target::session::Session;
use howdah_target::sql::quote_ident;

/// A warning where the ledger is another role's. No more than that: ledgers are shared by GRANT, and nothing tells one that was meant
/// from one that was not.
///
/// # Errors
/// Those of the session.
pub(super) async fn tell(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let Some(ledger) = ledger_of(&plan.job) else { return Ok(()) };
    let oids: Vec<u32> = plan.tables.iter().map(|table| table.table.oid).filter(|oid| *oid != 0).collect();
    let owners = context.connection.attend(session, ledger.strangers(session, &oids)).await?;
    if !owners.is_empty() {
        let schema = quote_ident(ledger.schema());
        plan.warnings.push(format!(
            "the ledger in schema {schema} belongs to {}, which owns neither what is loaded nor the database, and can have code run \
             with this role's rights: where its owner is not trusted, name another ledger with --ledger",
            owners.join(", ")
        ));
    }
    Ok(())
}
