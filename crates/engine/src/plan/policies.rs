//! How rows come into tables whose row-level security applies to the role.

use crate::Context;
use crate::attend::each;
use howdah_model::{Mode, Plan, Result};
use howdah_target::policies::{self, Policies};
use howdah_target::rewrite::{self, Event};
use howdah_target::session::Session;

/// The beginning of the note; an earlier run's plan has it already.
const APPLY: &str = "row-level security applies to this role:";

/// Which apply, of each table that is there. Asked anew by every run.
///
/// # Errors
/// Table, where they let no row in; those of the session.
pub(super) async fn look(session: &Session, plan: &Plan) -> Result<Vec<Policies>> {
    let there = plan.tables.iter().filter(|table| table.create.is_none());
    let asking: Vec<_> = there.map(|table| policies::ask(session, &table.table, &plan.job.arrival)).collect();
    each(asking).await
}

/// Settles it for each table, where these apply.
///
/// # Errors
/// Table, where rows cannot come in so that they meet the policies; those of the session.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    found: Vec<Policies>,
) -> Result<()> {
    for table in &mut plan.tables {
        table.notes.retain(|note| !note.starts_with(APPLY));
        policies::go_straight(table)?;
    }
    for (table, found) in plan.tables.iter_mut().filter(|table| table.create.is_none()).zip(found) {
        let Policies::Apply { temporary, names, lacking } = found else { continue };
        let relation = &table.table.relation;
        if plan.job.arrival.mode == Mode::Replace {
            return Err(policies::no_replacement(session, relation).await?);
        }
        // Rows that wait in a staging table come by INSERT and UPDATE anyway.
        if table.staging.is_none() {
            if !temporary {
                return Err(policies::no_temporary(session, relation).await?);
            }
            let ruling = rewrite::expect_no_rules(session, relation, &[Event::Insert]);
            context.connection.attend(session, ruling).await?;
            context.connection.attend(session, policies::go_through(session, table)).await?;
        }
        table.notes.push(format!(
            "{APPLY} rows come by INSERT from a {}, since the server takes no COPY where policies have to be asked; they meet {}{}",
            if table.staging.is_some() { "staging table" } else { "temporary table" },
            names.join(", "),
            without(&lacking)
        ));
    }
    Ok(())
}

/// Rows that a statement may not see or change are no error to the server.
fn without(lacking: &[&str]) -> String {
    match lacking {
        [] => String::new(),
        _ => format!("; no policy lets this role {}", lacking.join(", or ")),
    }
}
