//! What becomes of triggers while rows come: they fire, or it is settled how they are kept from it.
//!
//! No constraint goes unchecked by this: foreign keys are dropped and validated behind the rows like indexes
//! are, and where one stays, its triggers go on checking it. Only where the role itself has
//! `session_replication_role` set to replica nothing is checked; the plan says so.

use super::index_cost::{of_checks_s, of_trigger_s};
use super::indexes::RowsToCome;
use super::ledger_of;
use crate::Context;
use crate::attend::each;
use howdah_model::{
    Error, ErrorKind, Plan, Relation, RelationKind, Result, TriggersChoice, TriggersPlan, TriggersWay,
};
use howdah_target::session::Session;
use howdah_target::undo::triggers::{self, Check, Trigger, Triggers};
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// From so much CPU on, a load says at its beginning what triggers cost.
const COSTLY_S: f64 = 1.0;
/// From this version on, parameters can be granted.
const GRANT_SET_VERSION: u32 = 150_000;

/// What rows fire, of each table that rows come into by COPY; `None` where it is tried what this role may,
/// since what the server says to each try decides what is sent next.
pub(super) async fn look(session: &Session, plan: &Plan) -> Result<Option<Vec<Triggers>>> {
    if plan.job.triggers == TriggersChoice::Disable {
        return Ok(None);
    }
    let looking: Vec<_> =
        fired_on(plan).into_iter().map(|relation| triggers::look(session, relation)).collect();
    each(looking).await.map(Some)
}

/// Settles it for each table, where this is known; what becomes of the indexes is settled.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &Plan,
    rows_to_come: &RowsToCome,
    looked: Option<Vec<Triggers>>,
) -> Result<Vec<TriggersPlan>> {
    let mut plans = Vec::new();
    let relations = fired_on(plan);
    let looked = match looked {
        Some(looked) => looked,
        None => {
            let mut looked = Vec::new();
            for relation in &relations {
                let looking = triggers::look_and_try(session, relation);
                looked.push(context.connection.attend(session, looking).await?);
            }
            looked
        }
    };
    for (relation, found) in relations.into_iter().zip(looked) {
        let rows = rows_to_come.get(relation).map_or(0, |to_come| to_come.rows);
        if found.is_empty() || rows == 0 {
            continue;
        }
        let rebuilt: BTreeSet<&str> = plan
            .indexes
            .iter()
            .filter(|of_table| of_table.relation == *relation)
            .flat_map(|of_table| of_table.rebuilt.iter().map(|fate| fate.name.as_str()))
            .collect();
        let stay: Vec<Check> =
            found.checks.iter().filter(|check| !rebuilt.contains(check.name.as_str())).cloned().collect();
        let has_ledger = ledger_of(&plan.job).is_some();
        let mut of_table = match plan.job.triggers {
            TriggersChoice::Keep if found.is_replica => unfired(relation, &found, &stay),
            TriggersChoice::Keep => kept(relation, &found, &stay, rows as f64),
            TriggersChoice::Disable => {
                let way = way(relation, &found, &stay, has_ledger, session.server_version())?;
                silenced(relation, &found, &stay, way)
            }
        };
        if let Some(rules) = &found.rules {
            of_table.notes.push(passed_by(rules));
            of_table.costly = true;
        }
        plans.push(of_table);
    }
    Ok(plans)
}

/// Tables into which rows come by COPY, each once. A table that the load makes has no triggers.
fn fired_on(plan: &Plan) -> Vec<&Relation> {
    let mut seen = BTreeSet::new();
    let by_copy = |table: &&howdah_model::TablePlan| {
        matches!(table.table.kind, RelationKind::Table | RelationKind::Partitioned)
            && table.staging.is_none()
            && table.create.is_none()
    };
    let relations = plan.tables.iter().filter(by_copy).map(|table| &table.table.relation);
    relations.filter(|relation| seen.insert(*relation)).collect()
}

fn kept(relation: &Relation, found: &Triggers, stay: &[Check], rows: f64) -> TriggersPlan {
    let mut costs_s = 0.0;
    let mut notes = Vec::new();
    let mut told = BTreeSet::new();
    let fired = found.fired.iter().filter(|trigger| trigger.row);
    for trigger in fired.filter(|trigger| told.insert(&trigger.name)) {
        let cost_s = of_trigger_s(trigger.before, rows);
        costs_s += cost_s;
        notes.push(format!(
            "the trigger {} fires for each row: about {cost_s:.1} s of CPU to call it, and what it does; \
             --triggers disable keeps it from firing",
            trigger.name
        ));
    }
    for check in stay.iter().filter(|check| check.foreign_key) {
        let cost_s = of_checks_s(rows);
        costs_s += cost_s;
        notes.push(format!(
            "the foreign key {} is checked for each row: about {cost_s:.1} s of CPU; --triggers disable checks all \
             rows at once behind the last",
            check.name
        ));
    }
    TriggersPlan { relation: relation.clone(), way: TriggersWay::Keep, notes, costly: costs_s >= COSTLY_S }
}

/// What becomes of rules on INSERT.
fn passed_by(rules: &str) -> String {
    format!(
        "the rules on INSERT ({rules}) do nothing to these rows: COPY passes rules by, where INSERT would not"
    )
}

const OF_ROLE: &str = "the role has session_replication_role = replica";

/// What the role's own setting brings about.
fn unfired(relation: &Relation, found: &Triggers, stay: &[Check]) -> TriggersPlan {
    let mut notes = Vec::new();
    let fired = triggers::names(&found.fired);
    if !fired.is_empty() {
        notes.push(format!("{}: {OF_ROLE}", of_triggers(&fired, "does not fire", "do not fire")));
    }
    notes.extend(stay.iter().map(unchecked));
    for names in [&found.always, &found.replica].into_iter().filter(|names| !names.is_empty()) {
        notes.push(format!("{} for these rows", of_triggers(names, "fires", "fire")));
    }
    TriggersPlan { relation: relation.clone(), way: TriggersWay::Keep, notes, costly: true }
}

fn unchecked(check: &Check) -> String {
    let what = if check.foreign_key { "foreign key" } else { "deferrable key" };
    format!("the {what} {} is NOT checked for these rows: {OF_ROLE}", check.name)
}

fn silenced(relation: &Relation, found: &Triggers, stay: &[Check], way: TriggersWay) -> TriggersPlan {
    let mut notes = Vec::new();
    let fired = triggers::names(&found.fired);
    match way {
        TriggersWay::Keep => {}
        TriggersWay::Replica => notes.push(format!(
            "{} for the rows of this load (session_replication_role = replica)",
            of_triggers(&fired, "does not fire", "do not fire")
        )),
        TriggersWay::Disable => notes.push(format!(
            "{} while the load runs, for the rows of other sessions too",
            of_triggers(&fired, "is disabled", "are disabled")
        )),
    }
    let uneven: Vec<Trigger> = found.fired.iter().filter(|trigger| trigger.uneven).cloned().collect();
    if way == TriggersWay::Disable && !uneven.is_empty() {
        notes.push(format!(
            "the state of {} differs between the table and its partitions: each has its own again at the end",
            of_triggers(&triggers::names(&uneven), "", "").trim_end()
        ));
    }
    for check in stay {
        match check {
            _ if found.is_replica => notes.push(unchecked(check)),
            Check { foreign_key: true, name } => {
                notes.push(format!("the foreign key {name} is checked for each row: it stays"));
            }
            Check { .. } => {}
        }
    }
    if !found.always.is_empty() {
        notes.push(format!("{} nevertheless: ENABLE ALWAYS", of_triggers(&found.always, "fires", "fire")));
    }
    if way == TriggersWay::Replica && !found.replica.is_empty() {
        notes
            .push(format!("{} for these rows: ENABLE REPLICA", of_triggers(&found.replica, "fires", "fire")));
    }
    TriggersPlan { relation: relation.clone(), way, notes, costly: true }
}

/// `the trigger a fires`, `the triggers a, b fire`.
fn of_triggers<S: Borrow<str>>(names: &[S], one: &str, several: &str) -> String {
    match names {
        [name] => format!("the trigger {} {one}", name.borrow()),
        names => format!("the triggers {} {several}", names.join(", ")),
    }
}

/// How the triggers are kept from firing, if these constraints stay. Asked twice: for the plan, and again
/// when all is dropped that is dropped.
pub(crate) fn way(
    relation: &Relation,
    found: &Triggers,
    stay: &[Check],
    has_ledger: bool,
    server_version: u32,
) -> Result<TriggersWay> {
    if found.fired.is_empty() {
        return Ok(TriggersWay::Keep);
    }
    // It would skip the triggers that check constraints just as well.
    if found.may_replica && stay.is_empty() {
        return Ok(TriggersWay::Replica);
    }
    let cannot = found.fired.iter().find_map(|trigger| trigger.cannot.clone());
    let cannot = cannot.or_else(|| {
        (!has_ledger).then(|| "there is no ledger to note in that they are to be enabled again".to_owned())
    });
    let Some(cannot) = cannot else { return Ok(TriggersWay::Disable) };
    let names = triggers::names(&found.fired);
    let triggers = of_triggers(&names, "cannot be disabled", "cannot be disabled");
    let why_not_replica = match stay.first() {
        Some(check) if found.may_replica => {
            let what = if check.foreign_key { "the foreign key" } else { "the deferrable key" };
            format!("without triggers nobody would check {what} {}", check.name)
        }
        _ => "the role may not set session_replication_role".to_owned(),
    };
    let grant = match (found.may_replica, server_version >= GRANT_SET_VERSION) {
        (false, true) => format!(
            "let a superuser run GRANT SET ON PARAMETER session_replication_role TO \"{}\", or let the owner of the table \
             load, or give --triggers keep",
            found.role.replace('"', "\"\"")
        ),
        _ => "let the owner of the table or a superuser load, or give --triggers keep".to_owned(),
    };
    let message = format!("{triggers} on {relation}: {cannot}, and {why_not_replica}");
    Err(Error::new(ErrorKind::Table, message).with_hint(grant))
}
