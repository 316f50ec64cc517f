//! Which tables get their rows frozen.

use super::routing::BY_SERVER;
use crate::Context;
use howdah_model::{Error, ErrorKind, Job, Mode, OnError, Plan, RelationKind, Result, TablePlan};
use howdah_target::session::{Session, show};

/// The beginning of the note; an earlier run's plan has it already.
const FROZEN: &str = "rows come frozen";

/// Settles it for each table. Asked anew by every run.
///
/// # Errors
/// Table, where rows cannot come frozen; those of the session.
pub(super) async fn choose(context: &Context, session: &Session, plan: &mut Plan) -> Result<()> {
    let arrival = &plan.job.arrival;
    let asked = arrival.freeze && !arrival.check;
    let mut wal = "";
    if asked {
        let level = context.connection.attend(session, show(session, &["wal_level"])).await?;
        if level.get("wal_level").is_some_and(|level| level == "minimal") {
            wal = " and without WAL (wal_level is minimal)";
        }
    }
    for table in &mut plan.tables {
        table.notes.retain(|note| !note.starts_with(FROZEN));
        table.frozen = asked;
        if !asked {
            continue;
        }
        if let Some(error) = obstacle(table, &plan.job) {
            return Err(error);
        }
        let where_known =
            if table.route.is_some() { ", as far as the client can tell their partition" } else { "" };
        table.notes.push(format!(
            "{FROZEN}{where_known}, in one transaction of one session{wal}: nobody reads the table until all are there, and a run that \
             is killed before that begins the table anew"
        ));
    }
    Ok(())
}

fn obstacle(table: &TablePlan, job: &Job) -> Option<Error> {
    let relation = &table.table.relation;
    let error = |why: &str, hint: &str| {
        Some(
            Error::new(ErrorKind::Table, format!("rows of {relation} cannot come frozen: {why}"))
                .with_hint(hint),
        )
    };
    match table.table.kind {
        RelationKind::Table => {}
        RelationKind::Partitioned if table.route.is_some() => {}
        RelationKind::Partitioned => {
            // As the plan says it: `the server finds ...: REASON`.
            let reason = table.notes.iter().find_map(|note| note.strip_prefix(BY_SERVER));
            let why = format!(
                "the server takes no COPY FREEZE into a partitioned table, and it finds the partition of each row{}",
                reason.unwrap_or_default()
            );
            return error(&why, "load the partitions one by one, or leave out --freeze");
        }
        RelationKind::Foreign | RelationKind::View => {
            return error("it is no plain table", "leave out --freeze");
        }
    }
    if table.create.is_none() && job.arrival.mode != Mode::Truncate {
        return error(
            "neither does this load make the table, nor does it empty it",
            "give --mode truncate if the rows that are there may go, or leave out --freeze",
        );
    }
    if job.bad_records.on_error == OnError::Skip {
        return error(
            "a record that is refused takes all of them with it",
            "leave out --on-error skip or --freeze",
        );
    }
    if table.policies.is_some() {
        return error("its row-level security applies to this role", "leave out --freeze");
    }
    None
}
