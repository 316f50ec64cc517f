//! Options about a new table that nothing follows, because the table is there.

use super::columns::{self, some_of};
use super::head::Head;
use super::new_table::told_column;
use crate::Context;
use howdah_model::{Job, Names, Plan, Result, TableChange, TablePlan};
use howdah_target::define;
use howdah_target::session::{Session, catalog};
use howdah_transcode::infer;
use std::collections::BTreeSet;

/// A warning for each table that has not got the primary key, the names or the types that a new one would
/// get.
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
        let others = context.connection.attend(session, of_other_types(session, &plan.job, table)).await?;
        if !others.is_empty() {
            warnings.push(format!(
                "--types gives types to columns that the load makes, and these of {relation} are there: {}",
                some_of(&others)
            ));
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

/// Columns that were there and are filled, of other types than those that they were told without a spelling
/// of values.
async fn of_other_types(session: &Session, job: &Job, table: &TablePlan) -> Result<Vec<String>> {
    let mut others = Vec::new();
    let is_made = |name: &str| {
        table.changes.iter().any(|change| matches!(change, TableChange::Add(column) if column.name == name))
    };
    for column in &table.table.columns {
        let (name, has) = (&column.name, &column.type_name);
        let says_type =
            |written: &&String| infer::parse_type(written).is_ok_and(|(_, reading)| reading.is_none());
        let is_told = columns::told(job, name).filter(says_type).is_some();
        if !is_told || is_made(name) || !table.fields.contains(&Some(name.clone())) {
            continue;
        }
        let Some(wanted) = told_column(session, job, name).await? else { continue };
        if wanted.type_name != *has && define::shown_type(session, &wanted.type_name).await? != *has {
            others.push(format!("{name} ({has})"));
        }
    }
    Ok(others)
}

/// A field of the header fills a column of another name.
fn is_renamed(plan: &Plan, table: &TablePlan, head: &Head) -> bool {
    let Some(found) = head.found.as_ref().filter(|_| plan.job.columns.is_none()) else { return false };
    let names = found.finding.names.iter().map(|name| plan.job.map.get(name).unwrap_or(name));
    names.zip(&table.fields).any(|(name, field)| field.as_ref().is_some_and(|field| field != name))
}
