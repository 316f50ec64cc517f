//! What becomes of the tables' indexes, keys and foreign keys while rows come: kept, or dropped and built
//! again.
//!
//! Dropped is only what can be put back exactly as it was, and, unless it is asked for, only where that takes
//! less time and where nobody is worse off if the rows turn out to contradict a key: see
//! docs/decisions/2026-11-22-indexes.md.

use super::head::Head;
use super::index_cost::{self, Costs};
use super::{History, ledger_of, plain_bytes};
use crate::Context;
use crate::indexes::restore_command;
use crate::settle::comes_first;
use crate::widen::is_fixed;
use howdah_model::plan::{IndexFate, IndexesPlan, TablePlan};
use howdah_model::{
    Eol, Evolve, IndexesChoice, Job, Mode, OnError, Plan, Receipt, Relation, RelationKind, Result,
    TriggersChoice, Tune, counted,
};
use howdah_target::ledger::{Loading, Undo, UndoKind};
use howdah_target::session::Session;
use howdah_target::undo::capture::{self, Captured, ForeignKey, Index};
use howdah_target::undo::drop::Chosen;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows that are to come, by table.
pub(super) type RowsToCome = BTreeMap<Relation, ToCome>;

/// About how many rows, in how many bytes of files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ToCome {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl ToCome {
    /// Those of a table.
    pub(crate) fn of(plan: &IndexesPlan) -> ToCome {
        ToCome { rows: plan.rows_to_come, bytes: plan.bytes_to_come }
    }
}

/// A record for which there is nothing to measure.
const RECORD_BYTES: f64 = 100.0;

/// About how many rows each table gets by this run: the bytes of its files, less those that are in, divided
/// by the length of the records seen.
pub(super) fn rows_to_come(plan: &Plan, placed: &[(u32, Head)], history: &History) -> RowsToCome {
    let receipts: &[Receipt] = if let History::Begun(receipts) = history { receipts } else { &[] };
    let mut stored: HashMap<usize, (u64, u64)> = HashMap::new();
    for receipt in receipts {
        let (bytes, rows) = stored.entry(receipt.file_no as usize).or_default();
        *bytes += receipt.end_byte - receipt.start_byte;
        *rows += receipt.rows;
    }
    let mut to_come = RowsToCome::new();
    for (no, file) in plan.files.iter().enumerate() {
        let Some(table) = plan.tables.get(file.table_no as usize) else { continue };
        let (bytes_in, rows_in) = stored.get(&no).copied().unwrap_or_default();
        // A pipe may bring anything: it is taken for much.
        let bytes = plain_bytes(std::slice::from_ref(file)).unwrap_or(PIPE_BYTES);
        let record_bytes = match placed.get(no).and_then(|(_, head)| seen_record_bytes(head)) {
            Some(bytes) => bytes,
            None if rows_in > 0 => bytes_in as f64 / rows_in as f64,
            None => RECORD_BYTES,
        };
        let bytes = bytes.saturating_sub(bytes_in);
        let sum = to_come.entry(table.table.relation.clone()).or_default();
        sum.rows += (bytes as f64 / record_bytes.max(1.0)) as u64;
        sum.bytes = sum.bytes.saturating_add(bytes);
    }
    to_come
}

/// What a pipe is taken to bring.
const PIPE_BYTES: u64 = 1 << 30;

/// The mean length of the first records, as far as they were kept.
fn seen_record_bytes(head: &Head) -> Option<f64> {
    let (_, eol, sample) = head.sample();
    let last = if eol == Some(Eol::Cr) { b'\r' } else { b'\n' };
    let records = sample.iter().filter(|byte| **byte == last).count();
    (records > 0).then(|| sample.len() as f64 / records as f64)
}

/// How the run stands that is planned.
#[derive(Clone, Copy)]
pub(super) struct When {
    /// Rows of its job are in.
    pub(super) begun: bool,
    /// It is to be loaded now.
    pub(super) to_load: bool,
    /// What others have changed and not put back it may put back.
    pub(super) puts_back: bool,
}

/// Settles for each table what becomes of what it has, where earlier loads have left this open.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &Plan,
    rows_to_come: &RowsToCome,
    open: &[Undo],
    When { begun, to_load, puts_back }: When,
) -> Result<Vec<IndexesPlan>> {
    let Plan { job, job_id, tables, .. } = plan;
    let mut plans = Vec::new();
    let ledger = ledger_of(job);
    let tables = copied_into(tables);
    let looks = may_drop(job, rows_to_come, to_load);
    let mut captured = Vec::new();
    if looks || !open.is_empty() {
        let there = tables.iter().filter(|table| table.is_there());
        let relations: Vec<&Relation> = there.map(|table| &table.table.relation).collect();
        let looking = capture::look_at_each(session, &relations);
        captured = context.connection.attend(session, looking).await?;
    }
    let mut captured = captured.into_iter();
    for table in tables {
        let relation = &table.table.relation;
        let to_come = rows_to_come.get(relation).copied().unwrap_or_default();
        let mut plan = IndexesPlan {
            relation: relation.clone(),
            new: has_new_key(job, table, to_come.rows) && ledger.is_some(),
            rows_to_come: to_come.rows,
            bytes_to_come: to_come.bytes,
            rebuilt: Vec::new(),
            workers: None,
            kept: Vec::new(),
            notes: Vec::new(),
        };
        if looks || !open.is_empty() {
            let mut captured = if table.is_there() { captured.next().flatten() } else { None };
            if job.arrival.mode == Mode::Truncate && !begun {
                // It is emptied before they go.
                if let Some(captured) = &mut captured {
                    (captured.empty, captured.rows, captured.bytes) = (true, 0.0, 0);
                }
            }
            let oids = captured.as_ref().map_or(&[][..], |captured| &captured.oids);
            let restore = |job: &str| match &ledger {
                Some(ledger) => restore_command(context, ledger, job),
                None => String::new(),
            };
            let first = comes_first(job, begun, to_load);
            plan.notes = notes(open, job_id, (first, puts_back), relation, oids, restore);
            let not_free = captured.as_ref().filter(|captured| captured.oids.is_empty());
            if let Some(reason) = not_free.and_then(|captured| captured.keep.as_deref()) {
                plan.notes.push(format!("indexes and foreign keys stay: {reason}"));
            }
            if let Some(captured) = captured.filter(|_| looks) {
                let server_cpus = context.connection.server_cpus();
                let decided = decide(&captured, job, server_cpus, to_come, None, ledger.is_some());
                plan.workers = decided.workers;
                fates(&captured, &decided, &mut plan);
                plan.notes.extend(order_matters(&captured, &decided, &plan));
                plan.notes.extend(many_parts(&captured, &decided));
            }
        }
        if plan.new || !plan.rebuilt.is_empty() || !plan.kept.is_empty() || !plan.notes.is_empty() {
            plans.push(plan);
        }
    }
    Ok(plans)
}

/// Whether the tables' indexes and foreign keys are looked at. A small load drops none of them unless that is
/// asked for, and to say why each stays, which only a plan does, the look costs the server more than the
/// rows: 15 ms of CPU (PostgreSQL 15).
fn may_drop(job: &Job, rows_to_come: &RowsToCome, to_load: bool) -> bool {
    let only_few = || to_load && rows_to_come.values().all(|to_come| to_come.rows <= ONE_CHUNK_ROWS);
    match job.indexes {
        _ if job.triggers == TriggersChoice::Disable => true,
        IndexesChoice::Keep => false,
        IndexesChoice::Rebuild => true,
        IndexesChoice::Auto => !only_few(),
    }
}

/// Tables that rows are copied into, each once.
fn copied_into(tables: &[TablePlan]) -> Vec<&TablePlan> {
    let mut seen = BTreeSet::new();
    let by_copy = |table: &&TablePlan| {
        let stored = matches!(table.table.kind, RelationKind::Table | RelationKind::Partitioned);
        stored && table.staging.is_none()
    };
    let tables = tables.iter().filter(by_copy);
    tables.filter(|table| seen.insert(&table.table.relation)).collect()
}

/// The load makes the table with a primary key that had better be built behind the rows. Whether the key's
/// columns are long only the catalog will tell; what is decided here is whether to look.
fn has_new_key(job: &Job, table: &TablePlan, rows: u64) -> bool {
    let has_key = table.create.as_ref().is_some_and(|create| !create.primary_key.is_empty());
    let wanted = match job.indexes {
        IndexesChoice::Keep => false,
        IndexesChoice::Rebuild => true,
        IndexesChoice::Auto => index_cost::may_be_worth_it(rows as f64),
    };
    has_key && wanted
}

/// What earlier loads have dropped of this table or its partitions and not put back.
fn notes(
    open: &[Undo],
    job_id: &str,
    (first, puts_back): (Option<&str>, bool),
    relation: &Relation,
    oids: &[u32],
    restore: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut by_job: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut verb = "dropped";
    let of_table = |undo: &&Undo| undo.change.relation == *relation || oids.contains(&undo.change.table_oid);
    for undo in open.iter().filter(of_table) {
        match undo.change.kind {
            UndoKind::Trigger => verb = "dropped or disabled",
            UndoKind::Workers if verb == "dropped" => verb = "dropped or set",
            _ => {}
        }
        by_job.entry(&undo.job_id).or_default().insert(&undo.change.name);
    }
    let note = |(job, names): (&str, BTreeSet<&str>)| {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        if !puts_back {
            format!(
                "job {job} has {verb} {names} of {relation} and not put that back yet: unless that job is still at work, {} does so, and \
                 no load, as others may write the ledger's journal",
                restore(job)
            )
        } else if let Some(first) = first {
            format!("job {job} has {verb} {names} of {relation}: put back {first}")
        } else if job == job_id {
            format!("an earlier run of this job has {verb} {names}: put back when this one ends")
        } else {
            format!(
                "job {job} has {verb} {names} of {relation} and not put that back yet: unless that job is still at \
                 work, a load does so behind its last row, or {} now",
                restore(job)
            )
        }
    };
    by_job.into_iter().map(note).collect()
}

fn fates(captured: &Captured, decided: &Decided, plan: &mut IndexesPlan) {
    for (index, (goes, reason)) in captured.indexes.iter().zip(&decided.indexes) {
        let what = match index.of_partition {
            true => format!("{} of {}", index.what, index.relation),
            false => index.what.to_string(),
        };
        let fate = IndexFate { name: index.name.clone(), what, reason: reason.clone() };
        if *goes { plan.rebuilt.push(fate) } else { plan.kept.push(fate) }
    }
    for (key, (goes, reason)) in captured.foreign_keys.iter().zip(&decided.foreign_keys) {
        let what =
            if key.own { "foreign key".to_owned() } else { format!("foreign key of {}", key.relation) };
        let fate = IndexFate { name: key.name.clone(), what, reason: reason.clone() };
        match (*goes, key.own) {
            (true, _) => plan.rebuilt.push(fate),
            (false, true) => plan.kept.push(fate),
            // A foreign key of another table costs this load nothing.
            (false, false) => {}
        }
    }
}

/// It is of the table and leads to the table.
fn refers_to_itself(key: &ForeignKey) -> bool {
    key.own && key.index_oid.is_some()
}

/// One statement of psql is checked behind its last row, a load behind each chunk.
fn order_matters(captured: &Captured, decided: &Decided, plan: &IndexesPlan) -> Option<String> {
    let fates = captured.foreign_keys.iter().zip(&decided.foreign_keys);
    let (key, _) =
        fates.into_iter().find(|(key, (goes, _))| refers_to_itself(key) && key.enforced && !goes)?;
    (plan.rows_to_come > ONE_CHUNK_ROWS).then(|| {
        format!(
            "{} refers to itself by {}: a row is refused if the one that it refers to comes in a later chunk; --atomic \
             checks all rows together",
            plan.relation, key.name
        )
    })
}

/// From so many on, indexes of partitions are told.
const PARTS_TOLD_MIN: usize = 200;

/// A partition's index takes its time however few rows it is of.
fn many_parts(captured: &Captured, decided: &Decided) -> Option<String> {
    let built = captured.indexes.iter().zip(&decided.indexes).filter(|(_, (goes, _))| *goes);
    let parts: usize = built.map(|(index, _)| index_cost::parts(index)).sum();
    (parts >= PARTS_TOLD_MIN).then(|| {
        format!(
            "{} indexes of partitions are dropped and built one by one: about {:.0} s, however few rows come; --indexes keep does without",
            parts,
            index_cost::of_parts_s(parts)
        )
    })
}

/// For each index and foreign key, in the order of [`Captured`]: whether it goes, and why.
pub(crate) struct Decided {
    indexes: Vec<(bool, String)>,
    foreign_keys: Vec<(bool, String)>,
    workers: Option<u32>,
}

impl Decided {
    /// What is to go.
    pub(crate) fn chosen(&self) -> Chosen {
        let goes = |fates: &[(bool, String)]| {
            fates.iter().enumerate().filter(|(_, (goes, _))| *goes).map(|(no, _)| no).collect()
        };
        Chosen { indexes: goes(&self.indexes), foreign_keys: goes(&self.foreign_keys), workers: self.workers }
    }
}

/// What is dropped tells of no record that contradicts it, and cannot come back then: not even
/// `--indexes rebuild` asks for that.
const REFUSES: &str = "--on-error skip: it tells which records are left out";

/// What compares values by their type cannot come back when its column has another one by then.
const RETYPED: &str = "--evolve widen: it could not come back if its columns got another type meanwhile";

/// The decision for one table. Asked twice: for the plan, and again under the lock under which things are
/// dropped, where another job may be found that brings rows into the table. What refuses records stays then:
/// rows of two jobs may contradict it, and `rebuild` is one job's bargain, not that of another which goes by
/// it.
pub(crate) fn decide(
    captured: &Captured,
    job: &Job,
    server_cpus: Option<u32>,
    to_come: ToCome,
    other: Option<&Loading>,
    has_ledger: bool,
) -> Decided {
    let (choice, rows_to_come) = (job.indexes, to_come.rows);
    let cannot = match &captured.keep {
        _ if rows_to_come == 0 => Some("no rows are to come".to_owned()),
        _ if !has_ledger => Some("there is no ledger to note in how it is put back".to_owned()),
        keep => keep.clone(),
    };
    let kept = (choice == IndexesChoice::Keep).then(|| "--indexes keep".to_owned());
    let of_all = kept.or_else(|| cannot.clone());
    let skips = job.bad_records.on_error == OnError::Skip;
    let widens = job.shaping.evolve == Evolve::Widen && !is_fixed(&job.arrival);
    let retyped = |is_meant: bool| (widens && is_meant).then(|| RETYPED.to_owned());
    let has_hanging = |index: &Index| {
        captured.foreign_keys.iter().any(|key| key.index_oid.is_some_and(|oid| index.oids.contains(&oid)))
    };
    let fate = |own: Option<String>, refuses: bool, wanted: &dyn Fn() -> (bool, String)| match of_all
        .clone()
        .or(own)
    {
        Some(reason) => (false, reason),
        None if refuses && skips => (false, REFUSES.to_owned()),
        None if choice == IndexesChoice::Rebuild => (true, "--indexes rebuild".to_owned()),
        None => wanted(),
    };
    let needs = |other: &&Loading| other.judges || choice == IndexesChoice::Auto;
    let for_other = |other: &Loading| format!("job {} is loading rows into {}", other.job_id, other.relation);
    let needed = other.filter(needs).map(for_other);
    let costs = |index: &Index| costs_by_auto(captured, index, rows_to_come);
    let may_go = captured.indexes.iter().filter(|index| index.keep.is_none());
    let gain_of_table_s =
        may_go.filter_map(|index| costs(index).ok()).map(|costs| index_cost::gain_s(&costs)).sum();
    let indexes: Vec<(bool, String)> = captured
        .indexes
        .iter()
        .map(|index| {
            let own = index.keep.clone().or_else(|| retyped(index.of_types || has_hanging(index)));
            let own = own.or_else(|| too_large(captured, to_come, index.row_bytes));
            let keep = needed.clone().filter(|_| index.refuses || index.computed);
            let wanted = || wanted_by_auto(costs(index), gain_of_table_s);
            fate(own.or(keep), index.refuses, &wanted)
        })
        .collect();
    let goes = |oid: Option<u32>| {
        let hung_on = |index: &Index| oid.is_some_and(|oid| index.oids.contains(&oid));
        captured.indexes.iter().zip(&indexes).any(|(index, fate)| fate.0 && hung_on(index))
    };
    let foreign_keys = captured
        .foreign_keys
        .iter()
        .map(|key| {
            let own = key.keep.clone().or_else(|| retyped(true));
            let own = own.or_else(|| too_large(captured, to_come, None));
            // A foreign key is checked by triggers: at once for all rows is the same.
            if job.triggers == TriggersChoice::Disable && key.own {
                let judged = other.filter(|other| other.judges).map(for_other);
                return match cannot.clone().or(own).or(judged) {
                    Some(reason) => (false, reason),
                    None => (true, "--triggers disable".to_owned()),
                };
            }
            let wanted = || foreign_key_wanted_by_auto(captured, key, rows_to_come);
            match fate(own.or(needed.clone()), true, &wanted) {
                _ if goes(key.index_oid) => (true, "the key that it hangs on is built anew".to_owned()),
                (true, _) if !key.own => (false, "the key that it hangs on stays".to_owned()),
                fate => fate,
            }
        })
        .collect();
    let built = captured.indexes.iter().zip(&indexes).filter(|(_, fate)| fate.0).map(|(index, _)| index);
    Decided { workers: workers(captured, built, job, server_cpus), indexes, foreign_keys }
}

/// A row of a sort takes so many bytes beside its values: length, header, which columns are NULL
/// (`writetup_index` in `tuplesortvariants.c`), and its share of what tapes waste.
const SORTED_ROW_BYTES: u64 = 32;

/// The server would end the build. What is of any length is taken to be as long as the record, or the row,
/// that it comes from.
fn too_large(captured: &Captured, to_come: ToCome, row_bytes: Option<u64>) -> Option<String> {
    let limit_bytes = captured.temp_bytes_max?;
    let rows = to_come.rows.saturating_add(captured.rows as u64);
    let values_bytes = match row_bytes {
        Some(bytes) => rows.saturating_mul(bytes),
        None => to_come.bytes.saturating_add(captured.bytes),
    };
    let bytes = rows.saturating_mul(SORTED_ROW_BYTES).saturating_add(values_bytes);
    (bytes > limit_bytes).then(|| {
        format!("building it may take {} kB {OF_TEMPORARY_FILES} {} kB", bytes / 1024, limit_bytes / 1024)
    })
}

const OF_TEMPORARY_FILES: &str = "of temporary files, and temp_file_limit allows this role";

pub(crate) fn is_for_temporary_files(fate: &IndexFate) -> bool {
    fate.reason.contains(OF_TEMPORARY_FILES)
}

/// What stays, and slows rows down, for want of temporary files alone.
pub(crate) fn kept_for_temporary_files(plan: &IndexesPlan) -> Option<String> {
    let mut kept = plan.kept.iter().filter(|fate| is_for_temporary_files(fate));
    let IndexFate { what, name, reason } = kept.next()?;
    let others = match kept.count() {
        0 => String::new(),
        more => format!(", and {more} more with it"),
    };
    Some(format!(
        "the {what} {name} of {} is kept{others}, which slows rows down: {reason}; whoever may set it can run ALTER ROLE ... SET \
         temp_file_limit = -1",
        plan.relation
    ))
}

/// Each process of a build sorts strings soonest in a CPU's own cache, and the server lets it have so little
/// only where the table says how many workers there are. Partitions are built many at a time, by one process
/// each.
fn workers<'a>(
    captured: &Captured,
    mut built: impl Iterator<Item = &'a Index>,
    job: &Job,
    server_cpus: Option<u32>,
) -> Option<u32> {
    let may = job.tune.unwrap_or_default() >= Tune::Table && !captured.workers_set && !captured.partitioned;
    let helps = may && built.any(|index| index.compared_by_libc);
    server_cpus.filter(|cpus| helps && *cpus > 1).map(|cpus| cpus.min(WORKERS_MAX))
}

/// The largest value that the server takes (`parallel_workers` in `reloptions.c`).
const WORKERS_MAX: u32 = 1024;

/// A table that holds rows must grow by this factor: queries of other sessions need its indexes while the
/// load runs.
const GROWTH_MIN: f64 = 10.0;

/// What both ways cost, or why it stays. What could contradict the rows is only dropped where all rows come
/// from this load: whoever finds a duplicate then finds it among these.
fn costs_by_auto(
    captured: &Captured,
    index: &Index,
    rows_to_come: u64,
) -> std::result::Result<Costs, String> {
    if index.of_partition {
        return Err("how many of the rows go into its partition is not known".to_owned());
    }
    let hangs = |key: &&ForeignKey| !key.own && key.index_oid.is_some_and(|oid| index.oids.contains(&oid));
    let hanging = captured.foreign_keys.iter().find(hangs);
    if let Some(key) = hanging {
        return Err(format!("the foreign key {} of {} hangs on it", key.name, key.relation));
    }
    if !captured.empty && index.refuses {
        return Err("the table holds rows, and it goes on refusing what contradicts them".to_owned());
    }
    if !captured.empty && index.computed {
        return Err("the table holds rows, and its expressions might fail on those to come".to_owned());
    }
    let (there, to_come) = (captured.rows.round(), rows_to_come as f64);
    if !captured.empty && there * GROWTH_MIN > to_come {
        return Err(format!(
            "other sessions may need it: the table holds about {}, {rows_to_come} are to come",
            counted(there, "row")
        ));
    }
    index_cost::of_index(index, there, to_come)
        .ok_or_else(|| format!("what {} indexes cost was not measured", index.method))
}

fn wanted_by_auto(costs: std::result::Result<Costs, String>, gain_of_table_s: f64) -> (bool, String) {
    let costs = match costs {
        Err(reason) => return (false, reason),
        Ok(costs) => costs,
    };
    let Costs { keep_s, build_s } = costs;
    let figures = format!("keeping it costs about {keep_s:.1} s of CPU, building it {build_s:.1} s");
    (index_cost::is_worth_it(&costs, gain_of_table_s), figures)
}

/// So few rows come in one chunk, behind which foreign keys are checked. For so few, too, no index is worth
/// dropping.
const ONE_CHUNK_ROWS: u64 = 1000;

fn foreign_key_wanted_by_auto(captured: &Captured, key: &ForeignKey, rows_to_come: u64) -> (bool, String) {
    if !captured.empty {
        return (false, "the table holds rows, and it goes on refusing what contradicts it".to_owned());
    }
    if refers_to_itself(key) && rows_to_come > ONE_CHUNK_ROWS {
        return (true, "rows may come before those that they refer to".to_owned());
    }
    let costs = index_cost::of_foreign_key(rows_to_come as f64);
    let Costs { keep_s, build_s } = costs;
    let figures = format!("keeping it costs about {keep_s:.1} s of CPU, validating it {build_s:.1} s");
    (index_cost::is_worth_it(&costs, index_cost::gain_s(&costs)), figures)
}
