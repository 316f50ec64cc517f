//! Drops indexes before the first row and puts them back behind the last, after a failure and after Ctrl-C.
//!
//! What is dropped is in the ledger's journal as soon as it is dropped; whatever happens, `howdah restore`
//! finds it there. Indexes are built side by side, the largest first; then come constraints, then foreign
//! keys. Those of a table that has all its rows need not wait for the rows of others ([`early`]).

mod crew;
pub(crate) mod early;
mod one;

pub(crate) use crew::Crew;

use crate::doubted::expect_nothing_left;
use crate::left_behind::Left;
use crate::pipeline::Run;
use crate::plan::{ToCome, decide_indexes, is_for_temporary_files, kept_for_temporary_files};
use crate::retry::{self, Directive, Patience, directive, patiently};
use crate::settle::put_back_within_ms;
use crate::statistics::Rebuilt;
use crate::stop::interrupted;
use crate::{Context, Stop, again};
use futures_util::{StreamExt, stream};
use howdah_model::{Error, ErrorKind, IndexesChoice, IndexesPlan, Result, Stage, Tune};
use howdah_target::finish::barrier;
use howdah_target::ledger::{Ledger, Loading, OwnUndos, Undo, UndoKind};
use howdah_target::undo::drop::{Dropped, drop_chosen};
use howdah_target::undo::put_back::{How, PutBack, put_back};
use one::{Work, put_back_one};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The same when the user waits for a stop.
const AFTER_STOP: Duration = Duration::from_secs(2);
/// So often what a crash of the server has taken is put back again.
const ROUNDS: u32 = 5;
/// Of more indexes than this, those of partitions, it is not told one by one that they are back.
const TOLD_MAX: usize = 20;
/// A lock for a change is waited for no longer than this, whatever `--lock-timeout` says: a stop waits for
/// the answer.
const LOCK_WITHIN_MS_MAX: u64 = 3000;
/// How long a stop waits for the answer to a drop under way: longer than the lock for that is waited for.
const DROPPED_WITHIN: Duration = Duration::from_secs(4);
/// How long a server is waited for when the load has failed: it may have failed because there is none.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Drops what the plan says.
///
/// # Errors
/// With `--indexes rebuild`, what keeps an index from being dropped; else that is told, and it stays.
pub(crate) async fn drop_all(run: &Run) -> Result<()> {
    let Some(ledger) = &run.ledger else { return Ok(()) };
    let start = Instant::now();
    let mut dropped = Ok(());
    for plan in &run.plan.indexes {
        tell_notes(run, plan);
        if plan.new || !plan.rebuilt.is_empty() {
            dropped = drop_of_table(run, ledger, plan).await;
        }
        if dropped.is_err() {
            break;
        }
    }
    run.tally.spend(Stage::Indexes, start.elapsed());
    dropped
}

fn tell_notes(run: &Run, plan: &IndexesPlan) {
    plan.notes.iter().for_each(|note| run.tell(note.clone()));
    let kept = kept_for_temporary_files(plan);
    kept.into_iter().for_each(|kept| run.warn(kept));
    if run.plan.job.indexes == IndexesChoice::Rebuild {
        for fate in plan.kept.iter().filter(|fate| !is_for_temporary_files(fate)) {
            run.tell(format!(
                "the {} {} of {} is kept: {}",
                fate.what, fate.name, plan.relation, fate.reason
            ));
        }
    }
}

async fn drop_of_table(run: &Run, ledger: &Ledger, plan: &IndexesPlan) -> Result<()> {
    let (job, connection) = (&run.plan.job, &run.context.connection);
    let lock_within_ms = lock_within_ms(run);
    let own = (run.plan.job_id.as_str(), run.first.get().map_or(0, |holder| holder.pid));
    let work = || async {
        let session = connection.open().await?;
        let cpus = connection.server_cpus();
        let choose = |captured: &_, other: Option<&_>| {
            decide_indexes(captured, job, cpus, ToCome::of(plan), other, true).chosen()
        };
        let dropping = drop_chosen(&session, ledger, own, &plan.relation, lock_within_ms, choose);
        connection.attend(&session, dropping).await
    };
    match change(run, work).await {
        Ok(Dropped { names, kept_for, workers }) => {
            let set = workers.map(|workers| format!("parallel_workers of {} = {workers}", plan.relation));
            set.into_iter().for_each(|set| run.tally.tuned(set));
            if let Some((other, kept)) = kept_for {
                let Loading { job_id, relation, .. } = other;
                let kept = kept.join(", ");
                run.tell(format!(
                    "kept on {}, since job {job_id} is loading rows into {relation}: {kept}",
                    plan.relation
                ));
            }
            if !names.is_empty() {
                run.tell(format!(
                    "dropped from {}, to be put back at the end: {}",
                    plan.relation,
                    names.join(", ")
                ));
            }
        }
        Err(error) if job.indexes == IndexesChoice::Auto && error.kind() == ErrorKind::Table => {
            run.tell(format!("indexes are kept: {error}"));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// How long a lock for a change is waited for.
pub(crate) fn lock_within_ms(run: &Run) -> u64 {
    run.plan.job.arrival.lock_timeout_ms.min(LOCK_WITHIN_MS_MAX)
}

/// Makes a change that is written into the journal, as often as it takes.
///
/// # Errors
/// Those of the work; `Interrupted`.
pub(crate) async fn change<T, W: Future<Output = Result<T>>>(run: &Run, work: impl Fn() -> W) -> Result<T> {
    run.context.stop.check()?;
    run.dropped.store(true, Relaxed);
    let mut patience = Patience::new(Duration::from_millis(run.plan.job.retry_for_ms));
    loop {
        match unless_stopped_for_long(&run.context.stop, work()).await {
            Err(error) if directive(&error) != Directive::GiveUp => {
                retry::wait(&run.context, &mut patience, error).await?;
            }
            changed => return changed,
        }
    }
}

/// Who leaves at once cannot know what has been dropped by then, and a lock is waited for a few seconds only.
async fn unless_stopped_for_long<T>(stop: &Stop, work: impl Future<Output = Result<T>>) -> Result<T> {
    let stopped = async {
        stop.wait().await;
        tokio::time::sleep(DROPPED_WITHIN).await;
    };
    tokio::select! {
        done = work => done,
        () = stopped => Err(interrupted()),
    }
}

/// Puts back what this job has dropped, in this run or an earlier one. Ctrl-C does not end this; a second one
/// does, with the process.
///
/// # Errors
/// The first of what could not be put back; the others are told by warnings.
pub(crate) async fn put_back_all(run: &Run, failed: bool) -> Result<()> {
    let Some(ledger) = run.ledger.as_ref().filter(|_| run.dropped.load(Relaxed)) else { return Ok(()) };
    let start = Instant::now();
    let context = Context { stop: Stop::default(), ..run.context.clone() };
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let retry_for = if failed { AFTER_FAILURE.min(retry_for) } else { retry_for };
    let job_id = &run.plan.job_id;
    let restore = restore_command(&context, ledger, job_id);
    let mut analyzing = Duration::ZERO;
    let work = async {
        let entries = open_undos(&context, ledger, job_id, retry_for);
        let entries = if failed {
            let within = if run.context.stop.raised() { AFTER_STOP } else { AFTER_FAILURE };
            timeout(within, entries).await.unwrap_or_else(|_| Err(silent(within)))
        } else {
            entries.await
        };
        let OwnUndos { believed: entries, doubted, doubted_for } =
            entries.map_err(|error| match error.kind() {
                // Where there is no journal any more, `howdah restore` knows nothing.
                ErrorKind::Ledger => error,
                _ => with_hint(error, &context, ledger, job_id),
            })?;
        let begun = run.early.begun();
        if !(entries.is_empty() && begun.is_empty()) {
            run.puts_back.store(true, Relaxed);
        }
        let rebuilt = Rebuilt::of(entries.iter().chain(&begun));
        if !entries.is_empty() {
            if run.context.stop.raised() {
                context.tell(format!("putting back {}; {}", names(&entries), again_leaves(&restore)));
            }
            run.is_at(at_what(&entries));
        }
        let tuned = run.plan.tuning.level >= Tune::Session;
        // A load that has failed does not wait for what others are short of.
        let pausing = (!failed).then_some(run);
        let lock_within_ms = put_back_within_ms(&run.plan);
        let how = Builds { sessions: crew::sessions(run), tuned, pausing, lock_within_ms };
        let done = put_back_entries(&context, ledger, entries, how, retry_for);
        let done = Box::pin(done).await;
        if run.plan.job.after.is_none() && is_answered(&done) {
            let began = Instant::now();
            let analyzed = rebuilt.analyze(&context).await;
            run.analyzed.lock().extend(analyzed);
            analyzing = began.elapsed();
            run.tally.spend(Stage::Analyze, analyzing);
        }
        let left = Left { dropped: doubted, ..Left::default() };
        done.and_then(|_| expect_nothing_left(&context, ledger, job_id, &left, &doubted_for))
    };
    let done = {
        let mut work = std::pin::pin!(work);
        if run.context.stop.raised() {
            work.await
        } else {
            tokio::select! {
                done = &mut work => done,
                () = run.context.stop.wait() => {
                    context.tell(format!("indexes are still being put back; {}", again_leaves(&restore)));
                    work.await
                }
            }
        }
    };
    run.tally.spend(Stage::Indexes, start.elapsed().saturating_sub(analyzing));
    done
}

fn at_what(entries: &[Undo]) -> String {
    match entries.iter().filter(|entry| entry.change.kind == UndoKind::Index).count() {
        0 => "putting back what was dropped or disabled".to_owned(),
        1 => "building an index".to_owned(),
        indexes => format!("building {indexes} indexes"),
    }
}

/// The server is there, whatever it has against some entry.
pub(crate) fn is_answered<T>(done: &Result<T>) -> bool {
    done.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Table)
}

fn silent(within: Duration) -> Error {
    let seconds = within.as_secs();
    Error::new(
        ErrorKind::ConnectionLost,
        format!("indexes may still be dropped: the server gave no answer within {seconds} s"),
    )
}

fn again_leaves(restore: &str) -> String {
    format!("Ctrl-C again leaves that to {restore}")
}

async fn open_undos(
    context: &Context,
    ledger: &Ledger,
    job_id: &str,
    retry_for: Duration,
) -> Result<OwnUndos> {
    let read = || async {
        let session = context.connection.open().await?;
        let open = context.connection.attend(&session, ledger.own_undos(&session, job_id)).await?;
        context.connection.keep(session);
        Ok(open)
    };
    let mut open = patiently(context, retry_for, read).await?;
    // Rows wait there for the next run.
    open.believed.retain(|undo| undo.change.kind != UndoKind::Staging);
    Ok(open)
}

/// Drops the staging tables of a run, and forgets what was in them.
///
/// # Errors
/// The first of what could not be dropped.
pub(crate) async fn drop_staging(run: &Run, ledger: &Ledger) -> Result<()> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let open = connection.attend(&session, ledger.own_undos(&session, &run.plan.job_id)).await?;
    for entry in open.believed.iter().filter(|undo| undo.change.kind == UndoKind::Staging) {
        let how = How { workers_max: None, durable: true, lock_within_ms: put_back_within_ms(&run.plan) };
        connection.attend(&session, put_back(&session, ledger, entry, how)).await?;
    }
    Ok(())
}

/// `a, b and 3 more`: of many, some.
fn names(entries: &[Undo]) -> String {
    const NAMED: usize = 5;
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.change.name.as_str()).collect();
    let more = names.len().saturating_sub(NAMED);
    let named = names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// How entries are put back.
#[derive(Clone, Copy)]
pub(crate) struct Builds<'a> {
    /// So many side by side.
    pub sessions: u32,
    /// They take what suits the server's CPUs, and no commit waits for the disk, but the end of all of them;
    /// else what memory and workers the server's settings give them.
    pub tuned: bool,
    /// None begins while this load pauses, nor when it has given up.
    pub pausing: Option<&'a Run>,
    /// A lock is waited for so long at a time.
    pub lock_within_ms: u64,
}

/// Puts these entries back. Returns how many are closed though what they are of is not back, since its table
/// is gone, say.
///
/// # Errors
/// The first of what could not be put back; the others are told by warnings.
pub(crate) async fn put_back_entries(
    context: &Context,
    ledger: &Ledger,
    entries: Vec<Undo>,
    how: Builds<'_>,
    retry_for: Duration,
) -> Result<usize> {
    let (mut left, mut gone, mut first) = (entries, BTreeSet::new(), None);
    for _ in 0..ROUNDS {
        let numbers: BTreeSet<i64> = left.iter().map(|entry| entry.number).collect();
        let mut failed = put_back_once(context, ledger, left, how, retry_for).await;
        gone.append(&mut failed.gone);
        first = first.or(failed.first.take());
        let ended = |first: Option<Error>, count| first.map_or(Ok(count), Err);
        let may_be_lost = how.tuned && !numbers.iter().all(|number| failed.numbers.contains(number));
        if !may_be_lost && failed.again.is_empty() {
            return ended(first, gone.len());
        }
        let open = || async {
            let session = context.connection.open().await?;
            context.connection.attend(&session, barrier(&session)).await?;
            let open = context.connection.attend(&session, ledger.open_undos(&session, None)).await?;
            context.connection.keep(session);
            Ok(open)
        };
        let open = match patiently(context, retry_for, open).await {
            Ok(open) => open,
            Err(error) => return Err(first.unwrap_or(error)),
        };
        let is_lost = |entry: &Undo| {
            let number = entry.number;
            numbers.contains(&number) && !failed.numbers.contains(&number) && !failed.again.contains(&number)
        };
        // Others may have failed for want of it.
        let has_lost = may_be_lost && open.iter().any(is_lost);
        if has_lost {
            context.tell("the server crashed and lost some of what was back: once more");
        } else if failed.again.is_empty() {
            return ended(first, gone.len());
        }
        left = open;
        left.retain(|entry| {
            failed.again.contains(&entry.number) || (has_lost && numbers.contains(&entry.number))
        });
        // What has failed for want of what was lost is tried, and told, once more.
        first = first.filter(|_| !has_lost);
    }
    let message =
        "what was put back was lost again and again, as by a server that crashes or a session that drops it";
    Err(Error::new(ErrorKind::ConnectionLost, message))
}

/// Triggers at once, then indexes side by side, then the rest, kind by kind.
async fn put_back_once(
    context: &Context,
    ledger: &Ledger,
    entries: Vec<Undo>,
    Builds { sessions, tuned, pausing, lock_within_ms }: Builds<'_>,
    retry_for: Duration,
) -> Failed {
    let (triggers, entries): (Vec<Undo>, Vec<Undo>) =
        entries.into_iter().partition(|entry| entry.change.kind == UndoKind::Trigger);
    let (indexes, mut rest): (Vec<Undo>, Vec<Undo>) =
        entries.into_iter().partition(|entry| entry.change.kind == UndoKind::Index);
    let cpus = context.connection.server_cpus();
    let crew = Crew::new(indexes.len(), sessions, cpus, tuned);
    let side_by_side = Crew::new(rest.len(), sessions, cpus, tuned).builders();
    let brief = indexes.len() > TOLD_MAX;
    let spare = Mutex::default();
    let work = &Work { ledger, retry_for, brief, durable: !tuned, pausing, lock_within_ms, spare };
    let start = Instant::now();
    let mut failed = Failed::default();
    // Rows of others are to meet them as soon as may be.
    for entry in &triggers {
        let done = put_back_one(context, work, entry, None).await;
        failed.note(context, ledger, entry, done);
    }
    let building = stream::iter(indexes.iter().enumerate()).map(|(no, entry)| {
        let workers_max = crew.workers(no);
        async move { (entry, put_back_one(context, work, entry, workers_max).await) }
    });
    let mut building = building.buffer_unordered(crew.builders());
    while let Some((entry, done)) = building.next().await {
        failed.note(context, ledger, entry, done);
    }
    drop(building);
    if work.brief {
        let (count, seconds) =
            (indexes.len().saturating_sub(failed.names.len()), start.elapsed().as_secs_f64());
        context.tell(format!("{count} indexes are built, in {seconds:.1} s"));
    }
    rest.sort_by_key(|entry| (entry.change.kind, entry.number));
    for of_kind in rest.chunk_by(|one, other| one.change.kind == other.change.kind) {
        let (lacking, possible): (Vec<&Undo>, Vec<&Undo>) =
            of_kind.iter().partition(|entry| failed.lacks(entry));
        failed.numbers.extend(lacking.iter().map(|entry| entry.number));
        // It may hang on what is built once more first.
        if !failed.again.is_empty() {
            failed.again.extend(possible.iter().map(|entry| entry.number));
            continue;
        }
        let rows = rows_of_entries(&possible).into_iter().map(|row| async move {
            let mut done = Vec::with_capacity(row.len());
            for entry in row {
                done.push((entry, put_back_one(context, work, entry, crew.cpus_each).await));
            }
            done
        });
        let mut rows = stream::iter(rows).buffer_unordered(side_by_side);
        while let Some(row) = rows.next().await {
            row.into_iter().for_each(|(entry, done)| failed.note(context, ledger, entry, done));
        }
    }
    failed
}

/// Entries of one kind, those in a row that have to come one after the other: constraints of one table,
/// partitions' indexes that are attached to one index, unless partitions have partitions. Whatever locks two
/// tables is one row.
fn rows_of_entries<'a>(entries: &[&'a Undo]) -> Vec<Vec<&'a Undo>> {
    let attached: BTreeSet<String> = entries.iter().map(|entry| entry.change.index()).collect();
    let mut rows: BTreeMap<(u32, &str), Vec<&Undo>> = BTreeMap::new();
    let nested = entries.iter().any(|entry| attached.contains(&entry.change.definition));
    for entry in entries {
        let change = &entry.change;
        let row = match change.kind {
            UndoKind::Constraint | UndoKind::Workers => (change.table_oid, ""),
            UndoKind::Attach if !nested => (0, change.definition.as_str()),
            _ => (0, ""),
        };
        rows.entry(row).or_default().push(entry);
    }
    rows.into_values().collect()
}

/// What could not be put back.
#[derive(Default)]
struct Failed {
    first: Option<Error>,
    /// The hint of the first, which need not be given again.
    hint: Option<String>,
    /// The entries, and those that need them.
    numbers: BTreeSet<i64>,
    /// Entries that are closed, and what they are of is not back and never will be.
    gone: BTreeSet<i64>,
    /// Entries that are open, since what had been put back was dropped by somebody meanwhile.
    again: BTreeSet<i64>,
    /// Table and name.
    names: BTreeSet<(u32, String)>,
    /// Their indexes, as attachments name them.
    indexes: BTreeSet<String>,
}

impl Failed {
    fn note(&mut self, context: &Context, ledger: &Ledger, entry: &Undo, done: Result<PutBack>) {
        let error = match done {
            Ok(PutBack::Again(numbers)) => return self.again.extend(numbers),
            Ok(done) => {
                self.gone.extend(is_gone(&done, entry.change.kind).then_some(entry.number));
                return;
            }
            Err(error) => with_hint(error, context, ledger, &entry.job_id),
        };
        self.numbers.insert(entry.number);
        self.names.insert((entry.change.table_oid, entry.change.name.clone()));
        self.indexes.insert(entry.change.index());
        if self.first.is_none() {
            self.hint = error.hint().map(str::to_owned);
            self.first = Some(error);
        } else if self.first.as_ref().is_none_or(|first| first.message() != error.message()) {
            // A load that has given up says why once.
            let is_hinted = self.hint.as_deref() == error.hint();
            context.warn(if is_hinted { error.to_string() } else { with_its_hint(&error) });
        }
    }

    /// It needs something that could not be put back.
    fn lacks(&self, entry: &Undo) -> bool {
        let change = &entry.change;
        self.names.contains(&(change.table_oid, change.name.clone()))
            || (change.kind == UndoKind::Attach && self.indexes.contains(&change.definition))
    }
}

/// A staging table that is gone is as good as dropped.
fn is_gone(done: &PutBack, kind: UndoKind) -> bool {
    match done {
        PutBack::TableGone | PutBack::TableAnother => kind != UndoKind::Staging,
        PutBack::NoPartition | PutBack::TriggerGone => true,
        PutBack::Done
        | PutBack::WasThere
        | PutBack::MarkedAnother
        | PutBack::ByAnother
        | PutBack::Again(_) => false,
    }
}

/// The error with a hint that has the whole command which puts back.
pub(crate) fn with_hint(error: Error, context: &Context, ledger: &Ledger, job_id: &str) -> Error {
    match error.hint() {
        Some(hint) if hint.contains("howdah restore") => {
            again::in_full(error, &context.connection, job_id, ledger.schema())
        }
        _ => {
            error.with_hint(format!("{} puts back what is missing", restore_command(context, ledger, job_id)))
        }
    }
}

/// What puts back all that the job has changed, for the middle of a sentence.
pub(crate) fn restore_command(context: &Context, ledger: &Ledger, job_id: &str) -> String {
    format!("`{}`", again::command(&context.connection, "restore", job_id, ledger.schema()))
}

/// An error that is not the one which ends the command, and what to do about it.
pub(crate) fn with_its_hint(error: &Error) -> String {
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error} ({hint})"))
}
