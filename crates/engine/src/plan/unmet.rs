//! Options about a new table that nothing follows, because the table is there.

use super::head::Head;
use crate::Context;
use howdah_model::{Names, Plan, Result, TablePlan};
use howdah_target::session::{Session, catalog};
use std::collections::BTreeSet;

/// A warning for each table that has not got the primary key, or the names, that a new one would get.
///
/// # Errors
/// Those of the session.
pub(super) async fn warn(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    placed: &[(u32, Head)],
) -> Result<()> {
    let shaping = &plan.job.shaping;
    let mut warnings = Vec::new();
    for (no, table) in plan.tables.iter().enumerate().filter(|(_, table)| table.create.is_none()) {
        let relation = &table.table.relation;
        let wanted: BTreeSet<&str> = shaping.primary_key.iter().map(String::as_str).collect();
        if !wanted.is_empty() {
            let reading = catalog::primary_key(session, table.table.oid);
            let key = context.connection.attend(session, reading).await?;
            if wanted != key.iter().map(String::as_str).collect() {
                let has = match key.is_empty() {
                    true => "has no primary key".to_owned(),
                    false => format!("has the primary key ({})", key.join(", ")),
                };
                warnings.push(format!(
                    "--primary-key is for a table that the load makes: {relation} is there, and {has}"
                ));
            }
        }
        let files = placed.iter().filter(|(table_no, _)| *table_no as usize == no);
        if shaping.names == Names::Keep && files.clone().any(|(_, head)| is_renamed(plan, table, head)) {
            warnings.push(format!(
                "--names is for a table that the load makes: {relation} is there, and its columns keep their own names"
            ));
        }
    }
    for warning in warnings {
        if !plan.warnings.contains(&warning) {
            plan.warnings.push(warning);
        }
    }
    Ok(())
}

/// A field of the header fills a column of another name.
fn is_renamed(plan: &Plan, table: &TablePlan, head: &Head) -> bool {
    let Some(found) = head.found.as_ref().filter(|_| plan.job.columns.is_none()) else { return false };
    let names = found.finding.names.iter().map(|name| plan.job.map.get(name).unwrap_or(name));
    names.zip(&table.fields).any(|(name, field)| field.as_ref().is_some_and(|field| field != name))
}
