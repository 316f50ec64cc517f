//! A partition and its table in one load: where rows are taken out of one of them, those that the load brings
//! into the other go, too.

use crate::Context;
use crate::begin::takes_at_work;
use howdah_model::{Error, ErrorKind, Plan, Result, TablePlan};
use howdah_target::ledger::kin_among;
use howdah_target::session::Session;
use std::collections::BTreeSet;

/// # Errors
/// Table, for two such tables; those of the session.
pub(super) async fn expect_none(context: &Context, session: &Session, plan: &Plan) -> Result<()> {
    let oids = |wanted: &dyn Fn(&&TablePlan) -> bool| -> Vec<u32> {
        let oids = plan.tables.iter().filter(wanted).map(|table| table.table.oid);
        oids.filter(|oid| *oid != 0).collect::<BTreeSet<u32>>().into_iter().collect()
    };
    let (taken, all) = (oids(&|table| takes_at_work(plan, table)), oids(&|_| true));
    if taken.is_empty() || all.len() < 2 || plan.job.arrival.check {
        return Ok(());
    }
    let asking = kin_among(session, &taken, &all);
    let Some((taken, other)) = context.connection.attend(session, asking).await? else { return Ok(()) };
    let name = |oid: u32| {
        let table = plan.tables.iter().find(|table| table.table.oid == oid);
        table.map(|table| table.table.relation.to_string()).unwrap_or_default()
    };
    let message = format!(
        "{} and {} are a table and a partition of it: what this load takes out of the one are rows that it brings into the other",
        name(taken),
        name(other)
    );
    Err(Error::new(ErrorKind::Table, message)
        .with_hint("load the files of both into the partitioned table, or into one table after the other"))
}
