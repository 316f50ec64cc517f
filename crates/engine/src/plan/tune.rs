//! What is tuned for the load: settings of its sessions, options of the tables, and, where somebody asks for
//! that, settings of the server. And what is unsafe about the server as it is, which a load leaves as it is
//! and tells.

use super::{ledger_of, plain_bytes, tune_server};
use crate::Context;
use crate::attend::each;
use howdah_model::{
    After, FilePlan, Mode, Plan, Relation, RelationKind, Result, TablePlan, Tune, TuneScope, Tuned,
    TuningPlan, UnloggedTable,
};
use howdah_target::arrival::part::{WAL_COMPRESSION, may_compress_wal};
use howdah_target::guards::archiver_fails_since;
use howdah_target::ledger::Held;
use howdah_target::session::{Session, show};
use howdah_target::tune::table::{self, Parameter, Storage};
use std::collections::{BTreeMap, BTreeSet};
use tokio::try_join;

/// A table that gets less is left to autovacuum, unless tuning is asked for: the launcher comes by once a
/// minute (`autovacuum_naptime`), and a load of so much is over in about half of that. What it costs to be
/// met is in docs/decisions/2026-11-22-tuning.md.
const TABLE_BYTES_MIN: u64 = 4 << 30;
/// Tables of more leaf partitions are left alone: each takes a transaction, before and after.
const LEAVES_MAX: usize = 1000;

const COMMIT: &str = "synchronous_commit";
const TOAST: &str = "default_toast_compression";
const FSYNC: &str = "fsync";
const FULL_PAGE_WRITES: &str = "full_page_writes";
const AUTOVACUUM: &str = "autovacuum";
const SHOWN: [&str; 6] = [COMMIT, TOAST, WAL_COMPRESSION, FSYNC, FULL_PAGE_WRITES, AUTOVACUUM];

/// How the server and the tables are.
pub(super) struct Seen {
    now: BTreeMap<String, String>,
    held: Vec<Held>,
    archiver_fails: Option<String>,
    /// Of each table that [`stored`] names.
    storages: Vec<Vec<Storage>>,
}

impl Seen {
    /// Some job has not given up what it has set.
    pub(super) fn is_held(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Looks, in one flight.
pub(super) async fn look(session: &Session, plan: &Plan) -> Result<Seen> {
    let held = async {
        match ledger_of(&plan.job) {
            Some(ledger) => ledger.held(session, None).await,
            None => Ok(Vec::new()),
        }
    };
    let look_at = |table: &TablePlan| {
        let relation = table.is_there().then(|| table.table.relation.clone());
        async move {
            match relation {
                Some(relation) => table::look(session, &relation).await,
                None => Ok(Vec::new()),
            }
        }
    };
    let looking: Vec<_> = stored(plan).into_iter().map(look_at).collect();
    let (now, held, archiver_fails, storages) =
        try_join!(show(session, &SHOWN), held, archiver_fails_since(session), each(looking))?;
    Ok(Seen { now, held, archiver_fails, storages })
}

/// Tables that the server stores itself, each once.
fn stored(plan: &Plan) -> Vec<&TablePlan> {
    let mut seen = BTreeSet::new();
    let is_stored =
        |table: &&TablePlan| matches!(table.table.kind, RelationKind::Table | RelationKind::Partitioned);
    plan.tables.iter().filter(is_stored).filter(|table| seen.insert(&table.table.relation)).collect()
}

/// Settles it.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &Plan,
    seen: Seen,
) -> Result<TuningPlan> {
    let level = plan.job.tune.unwrap_or_default();
    let mut tuning = TuningPlan { level, ..TuningPlan::default() };
    let Seen { now, held, archiver_fails, storages } = seen;
    if level >= Tune::Session {
        tuning.settings.extend(of_sessions(context, session, plan, &now).await?);
    }
    let mut unlogged = Vec::new();
    for (table, storages) in stored(plan).into_iter().zip(storages) {
        let relation = &table.table.relation;
        tuning.unlogged.extend(unlogged_table(relation, &storages));
        unlogged.extend(storages.iter().filter(|storage| storage.unlogged).map(|it| it.relation.to_string()));
        if level >= Tune::Table {
            of_table(plan, table, &storages, &held, &mut tuning);
        }
    }
    if level == Tune::Server {
        let of_server = tune_server::choose(context, session, plan, &held);
        let (settings, notes) = context.connection.attend(session, of_server).await?;
        tuning.settings.extend(settings);
        tuning.notes.extend(notes);
    }
    tuning.unsafe_as_it_is = as_it_is(&now, unlogged);
    tuning.unsafe_as_it_is.extend(archiver_fails.map(|at| {
        format!("WAL is not archived (the last try failed at {at}): what the load writes stays in pg_wal until it is")
    }));
    Ok(tuning)
}

/// What a crash of the server leaves of the table, if that is not all.
pub(super) fn unlogged_table(relation: &Relation, storages: &[Storage]) -> Option<UnloggedTable> {
    let some = storages.iter().any(|storage| storage.unlogged);
    let whole = storages.iter().all(|storage| storage.unlogged);
    let files =
        storages.iter().filter(|storage| storage.unlogged).filter_map(|storage| storage.file).collect();
    some.then(|| UnloggedTable { relation: relation.clone(), whole, files })
}

async fn of_sessions(
    context: &Context,
    session: &Session,
    plan: &Plan,
    now: &BTreeMap<String, String>,
) -> Result<Vec<Tuned>> {
    let setting = |name: &str, during: &str, gain: &str, risk: Option<&str>| Tuned {
        scope: TuneScope::Session,
        relation: None,
        name: name.to_owned(),
        before: now.get(name).cloned(),
        in_force: now.get(name).cloned(),
        during: during.to_owned(),
        after: now.get(name).cloned(),
        gain: gain.to_owned(),
        risk: risk.map(str::to_owned),
    };
    let mut settings = Vec::new();
    let is_kept = |file: &FilePlan| file.version.is_some() && !plan.table(file.table_no).outside;
    let waits_for_nothing = plan.files.iter().any(is_kept) && ledger_of(&plan.job).is_some();
    if waits_for_nothing {
        settings.push(setting(
            COMMIT,
            "off",
            "no chunk waits for the disk or a standby; the end of the load waits for all of them",
            Some("chunks that a crash of the server takes are loaded again"),
        ));
    }
    if plan.tables.iter().any(|table| table.toast_compression.is_some()) {
        settings.push(setting(TOAST, "lz4", "values too wide for a page take about half the time", None));
    }
    let merges = plan.job.arrival.mode == Mode::Merge && !plan.job.arrival.check;
    if merges && context.connection.attend(session, may_compress_wal(session)).await? {
        let gain = "rows that change where they are cost two fifths less WAL, where there are 100,000 or so";
        settings.push(setting(WAL_COMPRESSION, "lz4", gain, None));
    }
    Ok(settings)
}

/// Only what this role owns can be changed, and only what is large enough is worth it.
fn of_table(plan: &Plan, table: &TablePlan, storages: &[Storage], held: &[Held], tuning: &mut TuningPlan) {
    let relation = &table.table.relation;
    let asked = plan.job.tune.is_some();
    let reason = if ledger_of(&plan.job).is_none() {
        Some("there is no ledger to note in how it was")
    } else if plan.job.arrival.mode == Mode::Replace {
        Some("a new table takes its place")
    } else if table.create.is_none() && storages.is_empty() {
        Some("it has no partitions yet")
    } else if table.create.is_none() && !storages.iter().any(|storage| storage.owned) {
        Some("the table belongs to another role")
    } else if storages.len() > LEAVES_MAX {
        Some("it has too many partitions")
    } else if !asked && !is_large(plan, relation) {
        Some(
            "the load is too short for autovacuum to be in its way, as far as is known (--tune table does it always)",
        )
    } else {
        None
    };
    if let Some(reason) = reason {
        tuning.notes.push(format!("autovacuum of {relation} stays as it is: {reason}"));
        return;
    }
    if table.create.is_some() {
        let parameter = table::autovacuum_of_new_table();
        tuning.settings.push(without_autovacuum(relation, parameter, plan.job.after.as_deref()));
    }
    for storage in storages.iter().filter(|storage| storage.owned) {
        // What another load has changed is held beside it, so that the last of them puts it back.
        let of_storage = |held: &&Held| held.thing.table.as_ref().is_some_and(|(oid, _)| *oid == storage.oid);
        let held: BTreeMap<&str, &Held> =
            held.iter().filter(of_storage).map(|held| (held.thing.name.as_str(), held)).collect();
        let held = held
            .into_values()
            .map(|held| Parameter { name: held.thing.name.clone(), value: held.before.value.clone() });
        let to_change = storage.to_change().into_iter().chain(held);
        let after = plan.job.after.as_deref();
        let without = |parameter| without_autovacuum(&storage.relation, parameter, after);
        tuning.settings.extend(to_change.map(without));
    }
}

fn without_autovacuum(relation: &Relation, parameter: Parameter, after: Option<&[After]>) -> Tuned {
    let then = match after {
        None => "one does behind the last row",
        Some(steps) if steps.contains(&After::Vacuum) => "--after vacuum does behind the last row",
        Some(_) => "autovacuum comes by when the load is over",
    };
    Tuned {
        scope: TuneScope::Table,
        relation: Some(relation.clone()),
        name: parameter.name,
        in_force: Some(parameter.value.clone().unwrap_or_else(|| "true".to_owned())),
        before: parameter.value.clone(),
        during: "false".to_owned(),
        after: parameter.value,
        gain: format!("no VACUUM or ANALYZE reads the table while it grows; {then}"),
        risk: None,
    }
}

/// What is known to come for the table is much. A pipe may bring a record or a terabyte: nobody is to find
/// that a record has changed an option of the table.
fn is_large(plan: &Plan, relation: &Relation) -> bool {
    let of_table = |file: &&FilePlan| {
        plan.tables.get(file.table_no as usize).is_some_and(|table| table.table.relation == *relation)
    };
    let files = plan.files.iter().filter(of_table);
    let known: u64 = files.filter_map(|file| plain_bytes(std::slice::from_ref(file))).sum();
    known >= TABLE_BYTES_MIN
}

/// Never does a load switch these off, and never on: a plan tells.
fn as_it_is(now: &BTreeMap<String, String>, unlogged: Vec<String>) -> Vec<String> {
    const RISKS: [(&str, &str); 4] = [
        (FSYNC, "a crash of the machine may destroy the whole cluster, also rows that were stored long ago"),
        (FULL_PAGE_WRITES, "a crash of the machine may leave torn pages that recovery cannot mend"),
        (COMMIT, "commits of other sessions may be lost in a crash; a load makes its own durable at its end"),
        (
            AUTOVACUUM,
            "nobody cleans the tables up, renews statistics, or keeps transaction numbers from running out early",
        ),
    ];
    let off = |(name, why): &(&str, &str)| {
        (now.get(*name).map(String::as_str) == Some("off")).then(|| format!("{name} is off: {why}"))
    };
    let mut found: Vec<String> = RISKS.iter().filter_map(off).collect();
    found.extend(unlogged.into_iter().map(|relation| {
        format!(
            "{relation} is UNLOGGED: a crash of the server empties it, and replicas have none of its rows"
        )
    }));
    found
}
