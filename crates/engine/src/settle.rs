//! Puts back what jobs have left behind whose process is gone: by kill -9, by loss of power, by a failover.
//!
//! A job that is at work holds an advisory lock; whoever gets that lock for himself knows that nobody is at
//! work on it. What is quickly done (settings, triggers) is done before this load begins; indexes and
//! constraints, which may take as long as the load, behind its last row. What cannot be done is told, and is
//! no failure of this load. Statements of a journal that strangers may write are not run, unless the ledger
//! is named: they would have all rights of whoever loads. Only a load that goes by what a table refuses, or
//! makes one like it, needs the table whole before: it is made so, or the load is refused.

use crate::Context;
use crate::check::forget_left;
use crate::doubted::not_believed;
use crate::indexes::restore_command;
use crate::left_behind::Left;
use crate::load::being_restored;
use crate::pipeline::Run;
use crate::plan::ledger_of;
use crate::predecessor;
use crate::restore::take_job;
use crate::sequences;
use howdah_model::{
    Error, ErrorKind, IndexesChoice, Job, Mode, OnError, Plan, Result, TablePlan, TriggersChoice, Tune,
    sqlstate,
};
use howdah_target::ledger::{Held, JobStatus, Ledger, Undo, UndoKind};
use howdah_target::session::{Session, partitions};
use howdah_target::undo::put_back::LOCK_WITHIN_MS;
use howdah_target::{staging, undo};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a lock or a lost connection is waited for: this load has something else to do.
const RETRY_FOR: Duration = Duration::from_secs(5);
/// A run whose job is done may be at its very end still, or its server learns only now that it was killed.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// When something is put back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the first row.
    AtStart,
    /// Behind the last.
    AtEnd,
}

/// Puts back what is due now of all other jobs that nobody is at work on.
pub(crate) async fn settle(run: &Run, when: When) {
    let Some(ledger) = &run.ledger else { return };
    let settled = run.context.stop.guard(settle_all(run, ledger, when)).await;
    // Who stops a load is not told of what it did not look for.
    let failed = settled.err().filter(|error| error.kind() != ErrorKind::Interrupted);
    if let Some(error) = failed {
        run.tell(format!("what other jobs have left behind is not put back: {error}"));
    }
}

async fn settle_all(run: &Run, ledger: &Ledger, when: When) -> Result<()> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let reading = async {
        let checks =
            async { if when == When::AtStart { ledger.checks(&session).await } else { Ok(Vec::new()) } };
        // Sent together: one round trip.
        let (checks, left) = tokio::try_join!(checks, Left::read(ledger, &session, None))?;
        let strangers = left.doubted_for(ledger, &session).await?;
        Ok((checks, left, strangers))
    };
    let (checks, left, strangers) = connection.attend(&session, reading).await?;
    if !checks.is_empty() {
        // Somebody may hold what they have left: the rest is put back all the same.
        if let Err(error) = forget_left(&run.context, ledger.schema(), false, None).await {
            run.tell(format!("what checks have left behind is not dropped: {error}"));
        }
    }
    if !strangers.is_empty() {
        if when == When::AtStart {
            tell_not_believed(run, ledger, &session, left, &strangers).await?;
        }
        connection.keep(session);
        return Ok(());
    }
    let Left { dropped, tuned } = left;
    let (waiting, dropped): (Vec<Undo>, Vec<Undo>) =
        dropped.into_iter().partition(|undo| undo.change.kind == UndoKind::Staging);
    let mut due: Vec<Undo> = dropped.into_iter().filter(|undo| is_due(undo.change.kind, when)).collect();
    if when == When::AtStart {
        due.extend(given_up(ledger, &session, &run.plan, waiting).await?);
    }
    let mut by_job = Left { dropped: due, tuned }.by_job();
    by_job.remove(&run.plan.job_id);
    for (job_id, left) in by_job {
        let how = (&run.plan, Duration::ZERO);
        settle_one(&run.context, ledger, &session, (&job_id, left), how, |told| run.warn(told)).await?;
    }
    connection.keep(session);
    Ok(())
}

/// Warns of what jobs have left at which nobody is at work: it is not put back.
async fn tell_not_believed(
    run: &Run,
    ledger: &Ledger,
    session: &Session,
    mut left: Left,
    strangers: &[String],
) -> Result<()> {
    // Rows wait there.
    left.dropped.retain(|undo| undo.change.kind != UndoKind::Staging);
    let mut jobs = Vec::new();
    for job_id in left.by_job().into_keys() {
        if !run.context.connection.attend(session, ledger.is_job_held(session, &job_id)).await? {
            jobs.push(job_id);
        }
    }
    let Some(job_id) = jobs.first() else { return Ok(()) };
    let others = if jobs.len() > 1 { format!(" and {} more", jobs.len() - 1) } else { String::new() };
    run.warn(format!(
        "what job {job_id}{others} has changed and not put back stays as it is: {}; where you trust them, {} puts it back",
        not_believed(ledger, strangers),
        restore_command(&run.context, ledger, job_id)
    ));
    Ok(())
}

/// Of these staging tables, those whose rows are waited for no more: `--force` has begun the same work anew.
async fn given_up(
    ledger: &Ledger,
    session: &Session,
    plan: &Plan,
    mut waiting: Vec<Undo>,
) -> Result<Vec<Undo>> {
    let jobs: BTreeSet<String> = waiting.iter().map(|undo| undo.job_id.clone()).collect();
    let mut given_up = BTreeSet::new();
    for job_id in jobs {
        if is_begun_anew(ledger, session, plan, &job_id).await? {
            given_up.insert(job_id);
        }
    }
    waiting.retain(|undo| given_up.contains(&undo.job_id));
    Ok(waiting)
}

/// This job does by `--force` from the beginning what that one was to do.
async fn is_begun_anew(ledger: &Ledger, session: &Session, plan: &Plan, job_id: &str) -> Result<bool> {
    if !plan.job.force || job_id == plan.job_id {
        return Ok(false);
    }
    let row = ledger.find(session, job_id).await?;
    Ok(row.is_some_and(|row| row.work_key == plan.work_key && row.status != JobStatus::Done))
}

/// Puts back what this job has left, if nobody is at work on it, or ceases to be so within this time.
async fn settle_one(
    context: &Context,
    ledger: &Ledger,
    session: &Session,
    (job_id, left): (&str, Left),
    (plan, within): (&Plan, Duration),
    warn: impl Fn(String),
) -> Result<()> {
    let connection = &context.connection;
    // A load that has just lost its lock is not dead; what is left at work of one that is dead would be in
    // the way.
    connection.attend(session, predecessor::end_left(context, session, ledger, job_id)).await?;
    // Held by a session that is gone with this one, if not before.
    let began = Instant::now();
    while !connection.attend(session, ledger.take_job(session, job_id)).await? {
        if began.elapsed() >= within {
            if !within.is_zero() {
                let restore = restore_command(context, ledger, job_id);
                warn(format!(
                    "a run of job {job_id} holds it still, and has not put back all that it has changed: if it was killed, {restore} \
                     puts back what is left, as soon as the server knows"
                ));
            }
            return Ok(());
        }
        context.stop.sleep(LOOK_EVERY).await?;
    }
    let ended = how_it_ended(context, ledger, session, job_id).await;
    context.tell(format!("job {job_id} {ended} and has left something to put back"));
    left.tell_moved(context);
    for error in put_back_left(context, ledger, left, plan).await {
        let restore = restore_command(context, ledger, job_id);
        warn(format!("{error}; {restore} puts it back, or says what does"));
    }
    connection.attend(session, ledger.leave_job(session, job_id)).await
}

/// What is said of the end of a job that has left something. One that is done was killed behind its last row.
async fn how_it_ended(context: &Context, ledger: &Ledger, session: &Session, job_id: &str) -> &'static str {
    let row = context.connection.attend(session, ledger.find(session, job_id)).await;
    match row.ok().flatten().map(|row| row.status) {
        Some(JobStatus::Failed) => "ended with an error",
        Some(JobStatus::Interrupted) => "was stopped",
        Some(JobStatus::Running | JobStatus::Done) | None => "was killed",
    }
}

/// The same for a job that is done: it was killed behind its last row, and no run of it gets further than to
/// be told so.
pub(crate) async fn settle_done(context: &Context, plan: &Plan) {
    let Some(ledger) = ledger_of(&plan.job) else { return };
    let settled = context.stop.guard(settle_this(context, &ledger, plan)).await;
    if let Err(error) = settled {
        context.tell(format!("what this job has left behind is not put back: {error}"));
    }
    // A job that ends with the transaction that its rows come in may have been killed before its sequences
    // were moved.
    if plan.job.arrival.atomic || plan.job.arrival.mode == Mode::Replace {
        let moved = context.stop.guard(sequences::advance_left(context, plan)).await;
        if let Err(error) = moved {
            context.tell(format!("sequences may stay behind the rows of this job: {error}"));
        }
    }
}

async fn settle_this(context: &Context, ledger: &Ledger, plan: &Plan) -> Result<()> {
    let (connection, job_id) = (&context.connection, plan.job_id.as_str());
    let session = connection.open().await?;
    let reading = left_and_doubted(ledger, &session, Some(job_id));
    let (left, strangers) = connection.attend(&session, reading).await?;
    if !left.is_empty() && !strangers.is_empty() {
        let restore = restore_command(context, ledger, job_id);
        let why = not_believed(ledger, &strangers);
        context.warn(format!(
            "what this job has left behind stays: {why}; where you trust them, {restore} puts it back"
        ));
    } else if !left.is_empty() {
        let how = (plan, ENDS_WITHIN);
        settle_one(context, ledger, &session, (job_id, left), how, |told| context.tell(told)).await?;
    }
    connection.keep(session);
    Ok(())
}

/// Autovacuum gives way only to who has waited for `deadlock_timeout`, a second by default: with less, what a
/// load has dropped would stay away for as long as its tables are vacuumed.
const YIELDED_WITHIN_MS: u64 = 2_000;

/// How long a load waits for a lock at a time to put something back.
pub(crate) fn put_back_within_ms(plan: &Plan) -> u64 {
    plan.job.arrival.lock_timeout_ms.clamp(YIELDED_WITHIN_MS, LOCK_WITHIN_MS)
}

/// Puts it back; what could not be is told by the errors.
async fn put_back_left(
    context: &Context,
    ledger: &Ledger,
    left: Left,
    plan: &Plan,
) -> impl Iterator<Item = Error> + use<> {
    let tuned = plan.job.tune.unwrap_or_default() >= Tune::Session;
    let (dropped, given_up) =
        left.put_back(context, ledger, tuned, put_back_within_ms(plan), RETRY_FOR).await;
    [dropped.err(), given_up.err()].into_iter().flatten()
}

/// Sees to it that the tables have all that tells which rows are good, where the plan goes by that, and,
/// where a new table is made like one or indexes are to be kept, all the rest: what another job, or an
/// earlier run of this one, has dropped and, being killed, not put back, comes back if it `may`. Whoever is
/// at that already is waited for.
///
/// # Errors
/// Table, for what jobs have dropped that are at work, or that may not be put back; why it cannot be put
/// back; Ledger, when somebody else takes too long for it; those of ledger and session.
pub(crate) async fn make_whole(context: &Context, session: &Session, plan: &Plan, may: bool) -> Result<()> {
    let is_due = judges(&plan.job) || (may && keeps(&plan.job));
    let Some(ledger) = ledger_of(&plan.job).filter(|_| is_due) else { return Ok(()) };
    let repair = Repair { context, session, ledger: &ledger, plan, may };
    if repair.is_made_like() {
        repair.expect_no_rival().await?;
    }
    for (job_id, lacking) in repair.lacking(None).await? {
        let is_needed = lacking.is_needed;
        match repair.put_back(&job_id, &lacking.what).await {
            Err(error) if !is_needed && may_wait(&error) => {
                context.tell(format!("{error}: rows come without it"));
            }
            done => done?,
        }
    }
    Ok(())
}

/// What rows could do with, and not what they need, cannot come back now: a table that is not free is told by
/// the server, as a lack of space is.
fn may_wait(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Table | ErrorKind::Ledger | ErrorKind::Server)
}

/// Looks once more, when the job has begun, what others have dropped since it was planned. Whoever is about
/// to drop something sees from then on that the job goes by it, and leaves it.
///
/// # Errors
/// Table, for what is dropped; those of ledger and session.
pub(crate) async fn expect_whole(context: &Context, session: &Session, plan: &Plan) -> Result<()> {
    // A new table is compared with the old one before it takes its place.
    let goes_by = judges(&plan.job) && plan.job.arrival.mode != Mode::Replace;
    let Some(ledger) = ledger_of(&plan.job).filter(|_| goes_by) else { return Ok(()) };
    for table in &plan.tables {
        undo::drop::wait_for_drops(session, &table.table.relation).await?;
    }
    let repair = Repair { context, session, ledger: &ledger, plan, may: false };
    for (job_id, lacking) in repair.lacking(None).await? {
        repair.put_back(&job_id, &lacking.what).await?;
    }
    Ok(())
}

/// The tables are made whole when they are empty, since what contradicts their keys goes with the rows.
pub(crate) fn is_due_when_empty(job: &Job, begun: bool) -> bool {
    job.arrival.mode == Mode::Truncate && !begun && (judges(job) || keeps(job))
}

/// When, and why, what earlier loads have dropped comes back before rows do; `None` where it does not, or has
/// come by now, where a load that is planned changes something.
pub(crate) fn comes_first(job: &Job, begun: bool, to_load: bool) -> Option<&'static str> {
    match (is_due_when_empty(job, begun), judges(job)) {
        (true, true) => {
            Some("as soon as the table is empty, since records that the table refuses are to be left out")
        }
        (true, false) => Some("as soon as the table is empty, since indexes are to be kept"),
        (false, _) if keeps(job) && !to_load => Some("before the first row, since indexes are to be kept"),
        (false, _) => None,
    }
}

/// It goes by what its tables refuse.
pub(crate) fn judges(job: &Job) -> bool {
    job.arrival.is_staged() || job.bad_records.on_error == OnError::Skip
}

/// Rows are to meet the indexes that the table had.
fn keeps(job: &Job) -> bool {
    job.indexes == IndexesChoice::Keep
}

/// What is left, and the roles for whose sake it is not believed.
async fn left_and_doubted(
    ledger: &Ledger,
    session: &Session,
    job: Option<&str>,
) -> Result<(Left, Vec<String>)> {
    let left = Left::read(ledger, session, job).await?;
    let strangers = left.doubted_for(ledger, session).await?;
    Ok((left, strangers))
}

/// What a job has left that a table lacks.
struct Lacking {
    /// One of it.
    what: String,
    /// Rows must not come without it.
    is_needed: bool,
    left: Left,
    /// Who may write the journal, and is not to be believed.
    strangers: Vec<String>,
}

/// The tables of a plan are made whole.
struct Repair<'a> {
    context: &'a Context,
    session: &'a Session,
    ledger: &'a Ledger,
    plan: &'a Plan,
    may: bool,
}

impl Repair<'_> {
    /// A new table is made like the one that is there.
    fn is_made_like(&self) -> bool {
        self.plan.job.arrival.mode == Mode::Replace
    }

    /// By the job that has left it: by all of them, or this one.
    async fn lacking(&self, job: Option<&str>) -> Result<BTreeMap<String, Lacking>> {
        let Repair { context: Context { connection, .. }, session, ledger, plan, .. } = self;
        let reading = left_and_doubted(ledger, session, job);
        let (mut left, strangers) = connection.attend(session, reading).await?;
        let is_meant = |undo: &Undo| undo.job_id == plan.job_id && stays_dropped(&plan.job, undo.change.kind);
        left.dropped.retain(|undo| undo.change.kind != UndoKind::Staging && !is_meant(undo));
        left.tuned.retain(|held| self.is_made_like() && held.job_id != plan.job_id);
        if left.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut oids = BTreeSet::new();
        for table in &plan.tables {
            let of_table = partitions::with_partitions(session, table.table.oid);
            oids.extend(connection.attend(session, of_table).await?);
        }
        let is_table = |held: &Held| held.thing.table.as_ref().is_some_and(|(oid, _)| oids.contains(oid));
        left.tuned.retain(is_table);
        let is_of_table = |undo: &&Undo| oids.contains(&undo.change.table_oid);
        let goes_by = judges(&plan.job);
        let is_needed =
            |undo: &&Undo| is_of_table(undo) && (self.is_made_like() || (goes_by && tells_bad_rows(undo)));
        let may = self.may && strangers.is_empty();
        let is_wanted = |undo: &&Undo| may && keeps(&plan.job) && is_of_table(undo);
        let lacking = left.by_job().into_iter().filter_map(|(job_id, left)| {
            let needed = left.dropped.iter().find(is_needed).map(ToString::to_string);
            let needed = needed.or_else(|| left.tuned.first().map(|held| held.thing.to_string()));
            let is_needed = needed.is_some();
            let what = needed.or_else(|| left.dropped.iter().find(is_wanted).map(ToString::to_string))?;
            Some((job_id, Lacking { what, is_needed, left, strangers: strangers.clone() }))
        });
        Ok(lacking.collect())
    }

    async fn put_back(&self, job_id: &str, what: &str) -> Result<()> {
        if !self.take(job_id).await? {
            return Err(lacks(what, job_id, None));
        }
        let ended = how_it_ended(self.context, self.ledger, self.session, job_id).await;
        // Its load may have ended since that was read, and have put all back.
        let done = match self.lacking(Some(job_id)).await?.remove(job_id) {
            Some(Lacking { what, strangers, .. }) if !strangers.is_empty() => {
                let restore = restore_command(self.context, self.ledger, job_id);
                let why = not_believed(self.ledger, &strangers);
                Err(lacks(&what, job_id, Some((ended, &restore)))
                    .with_hint(format!("{why}; where you trust them, {restore} puts it back")))
            }
            Some(Lacking { what, left, .. }) if self.may => {
                self.context.tell(format!("job {job_id} {ended}: {what} is put back before rows come"));
                let failed = put_back_left(self.context, self.ledger, left, self.plan).await.next();
                failed.map_or(Ok(()), |error| Err(self.hinted(error, job_id)))
            }
            Some(Lacking { what, .. }) => {
                let restore = restore_command(self.context, self.ledger, job_id);
                Err(lacks(&what, job_id, Some((ended, &restore))))
            }
            None => Ok(()),
        };
        self.leave(job_id).await?;
        done
    }

    /// Takes the job for oneself; false if a load of it is at work. Whoever else has it puts back what it has
    /// left: his end is waited for.
    async fn take(&self, job_id: &str) -> Result<bool> {
        let Repair { context, session, ledger, .. } = self;
        let (began, mut waited) = (Instant::now(), false);
        let wait_for =
            if self.may { Duration::from_millis(self.plan.job.retry_for_ms) } else { Duration::ZERO };
        while !take_job(context, session, ledger, job_id).await? {
            // Loads hold it beside one another, but not beside him.
            if context.connection.attend(session, ledger.hold_job(session, job_id)).await? {
                let alone = ledger.hold_job_alone(session, job_id);
                return context.connection.attend(session, alone).await;
            }
            let error = being_restored(job_id);
            if began.elapsed() >= wait_for {
                return Err(error);
            }
            if !waited {
                context.tell(format!("{error}: waiting for that"));
            }
            waited = true;
        }
        Ok(true)
    }

    /// What of the rows contradicts a key need not be found where none of them stays.
    fn hinted(&self, error: Error, job_id: &str) -> Error {
        let of_rows = error.sqlstate().is_some_and(sqlstate::is_integrity_violation);
        match error.hint().map(str::to_owned) {
            Some(hint) if of_rows && self.is_made_like() => error.with_hint(format!(
                "{hint}; or empty the table, whose rows --mode replace does without, then {}",
                restore_command(self.context, self.ledger, job_id)
            )),
            _ => error,
        }
    }

    async fn leave(&self, job_id: &str) -> Result<()> {
        self.context.connection.attend(self.session, self.ledger.leave_job(self.session, job_id)).await
    }

    /// Nobody else fills a new table for one of these: whoever comes first would take its sequences from the
    /// other.
    async fn expect_no_rival(&self) -> Result<()> {
        let Repair { context, session, ledger, plan, .. } = self;
        let undos = context.connection.attend(session, ledger.open_undos(session, None)).await?;
        let is_for = |undo: &&Undo| {
            let change = &undo.change;
            let is_of_plan = |table: &TablePlan| table.table.relation.to_string() == change.definition;
            change.kind == UndoKind::Staging
                && undo.job_id != plan.job_id
                && staging::is_name_of_new_table(&change.name)
                && plan.tables.iter().any(is_of_plan)
        };
        for rival in undos.iter().filter(is_for) {
            let (table, job_id) = (&rival.change.definition, &rival.job_id);
            if !self.take(job_id).await? {
                let message =
                    format!("job {job_id} is at work on a new table that is to take the place of {table}");
                return Err(Error::new(ErrorKind::Table, message)
                    .with_hint("wait for its end, then run the same command again"));
            }
            self.leave(job_id).await?;
            if self.may && !is_begun_anew(ledger, session, plan, job_id).await? {
                let restore = restore_command(context, ledger, job_id);
                let left =
                    format!("job {job_id}, which did not end, has left rows in a new table for {table}");
                context.tell(format!("{left}: they stay until {restore} drops them"));
            }
        }
        Ok(())
    }
}

/// The job ended so, and `restore` puts it back; without these it is at work.
fn lacks(what: &str, job_id: &str, left: Option<(&str, &str)>) -> Error {
    let error = |message| Error::new(ErrorKind::Table, message);
    let Some((ended, restore)) = left else {
        let message =
            format!("{what} is changed by job {job_id}, which is at work and puts it back when it ends");
        return error(message).with_hint("wait for its end, then run the same command again");
    };
    error(format!("{what} is changed by job {job_id}, which {ended} before it has put it back"))
        .with_hint(format!("{restore} does that"))
}

/// What an earlier run of this job has dropped, and this one would drop again.
fn stays_dropped(job: &Job, kind: UndoKind) -> bool {
    let is_foreign_key = matches!(kind, UndoKind::ForeignKey | UndoKind::Validate);
    job.indexes == IndexesChoice::Rebuild || (is_foreign_key && job.triggers == TriggersChoice::Disable)
}

/// Without it, rows would be taken for good ones that are not.
fn tells_bad_rows(undo: &Undo) -> bool {
    match undo.change.kind {
        UndoKind::Constraint
        | UndoKind::PartitionedConstraint
        | UndoKind::ForeignKey
        | UndoKind::Validate => true,
        UndoKind::Index | UndoKind::PartitionedIndex => undo.change.definition.starts_with("CREATE UNIQUE "),
        UndoKind::Trigger | UndoKind::Workers | UndoKind::Attach | UndoKind::Marks | UndoKind::Staging => {
            false
        }
    }
}

/// Others must be able to rely on their triggers again at once. Rows that wait in a staging table wait for
/// their own job.
fn is_due(kind: UndoKind, when: When) -> bool {
    match kind {
        UndoKind::Trigger => true,
        UndoKind::Staging => false,
        UndoKind::Index
        | UndoKind::Workers
        | UndoKind::Constraint
        | UndoKind::PartitionedIndex
        | UndoKind::PartitionedConstraint
        | UndoKind::Attach
        | UndoKind::Marks
        | UndoKind::ForeignKey
        | UndoKind::Validate => when == When::AtEnd,
    }
}
