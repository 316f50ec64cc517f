//! Executes a plan: opens the ledger, runs the pipeline, finishes, and accounts for every row.

use crate::begin::Tried;
use crate::check::write_rejects;
use crate::doubted::expect_nothing_left;
use crate::ending::{close_in_time, ended_by};
use crate::feed::Opened;
use crate::guards::Guard;
use crate::indexes::restore_command;
use crate::left_behind::Left;
use crate::locate::line::{tell_places, with_line};
use crate::partitioner::Partitioner;
use crate::pipeline::{self, Receipts, Run};
use crate::plan::{History, Planned, already_done, done_by_another, ledger_of, plain_bytes};
use crate::rejected::RejectFile;
use crate::settle::{When, expect_whole, is_due_when_empty, make_whole, settle, settle_done};
use crate::taken::Files;
use crate::threads::warn_of_limit;
use crate::widen::from_present;
use crate::{
    Context, after, again, arrival, beforehand, begin, done, emptied, ending, guards, indexes, predecessor,
    retry, taken, triggers, tune,
};
use futures_util::future::{join, try_join};
use howdah_model::job::LEDGER_DEFAULT;
use howdah_model::summary::Status;
use howdah_model::{
    Error, ErrorKind, Event, FilePlan, IfDone, Job, Mode, NewColumn, OnError, Plan, Receipt, Relation,
    Result, Summary, TableChange, TablePlan, Verify,
};
use howdah_target::define::{self, Wider};
use howdah_target::finish::barrier;
use howdah_target::ledger::{Footing, JobStatus, Ledger, StoredInPart};
use howdah_target::session::Session;
use howdah_target::truncate;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long the ledger may take to learn that a load or check was stopped; Ctrl-C promises two seconds in
/// all.
pub(crate) const STOPPED_WITHIN: Duration = Duration::from_secs(1);

/// How long it may take to learn that a load failed. Somebody waits for the error, but a session to a busy
/// server is not open at once.
pub(crate) const FAILED_WITHIN: Duration = Duration::from_secs(10);

/// How a load ended: always with an account, and with an error unless every row is stored.
pub struct Outcome {
    /// The account of this run, as far as it came.
    pub summary: Summary,
    /// Why it did not finish.
    pub error: Option<Error>,
    /// Files of rejected records, with how many are in each, that were written because the failed load has
    /// forgotten them since.
    pub written: Vec<(PathBuf, u64)>,
}

/// Loads what the plan says, to the end or to the first error.
///
/// # Errors
/// Only what happens before the first chunk: `JobDone`, a ledger that cannot be opened, a connection that
/// is refused. What ends a load under way is in the [`Outcome`].
pub async fn load(context: &Context, planned: Planned) -> Result<Outcome> {
    load_planned(context, planned, &Tried::default()).await
}

/// The same; what was tried where it fails is in `tried`.
pub(crate) async fn load_planned(context: &Context, mut planned: Planned, tried: &Tried) -> Result<Outcome> {
    context.connection.tell_of_waits(&context.listener);
    context.connection.be_patient_for(Duration::from_millis(planned.plan.job.retry_for_ms));
    // A hundred thousand files are not kept twice for what is about the tables alone.
    let files = std::mem::take(&mut planned.plan.files);
    let mut plan = planned.plan.clone();
    if plan.job.if_done == IfDone::Ok {
        plan.files.clone_from(&files);
    }
    planned.plan.files = files;
    let began = matches!(planned.history, History::Fresh | History::Begun(_));
    let mut outcome = Box::pin(try_planned(context, planned, tried)).await;
    if let Some(told) = done::is_told(&outcome).cloned() {
        if began {
            // The run that has ended the job left to this one, which held it still, what they share.
            settle_done(context, &plan).await;
        }
        if plan.job.if_done == IfDone::Ok && !done::only_bytes_tell(&plan) {
            outcome = context.stop.guard(done::account(context, &plan, &told)).await;
        }
    }
    context.connection.end_now().await;
    outcome
}

async fn try_planned(context: &Context, planned: Planned, tried: &Tried) -> Result<Outcome> {
    if !matches!(planned.history, History::Fresh | History::Begun(_)) {
        return nothing_to_load(context, planned).await;
    }
    let Planned { began, mut plan, layout, history, open: open_columns, dated, opened, reject_file, .. } =
        planned;
    let reject_file = reject_file.as_ref();
    if plan.job.arrival.check {
        return Err(Error::new(ErrorKind::Internal, "a check must not be loaded"));
    }
    let before = done::tell_known(context, &mut plan);
    let ledger = ledger_of(&plan.job).map(|ledger| emptied::watching(ledger, &plan));
    if let Some(ledger) = &ledger {
        context.connection.mark_for(ledger, &plan.job_id);
    }
    let retry_for = Duration::from_millis(plan.job.retry_for_ms);
    for message in plan.warnings.iter().cloned().chain(warn_of_limit(plan.job.memory_bytes)) {
        context.warn(message);
    }
    let ahead = if layout.sessions_max > 1 && fills_two_chunks(&plan) { 2 } else { 1 };
    let lacks = is_due_when_empty(&plan.job, history.has_rows());
    let reads_rejects = reads_rejects(&plan.job, reject_file);
    let beginning = Beginning { context, ledger: ledger.as_ref(), plan: &plan, tried, reads_rejects, lacks };
    let begin = || Box::pin(begin_load(beginning, ahead));
    let begun = match retry::patiently(context, retry_for, begin).await {
        Ok(begun) => begun,
        Err(error) => {
            let holder_pid = tried.holder_pid.load(Relaxed);
            if let Some(ledger) = ledger.filter(|_| holder_pid != 0) {
                let by = (None, holder_pid);
                close_in_time(context, &plan, &ledger, by, &error, rows_before(&history)).await;
            }
            return Err(error);
        }
    };
    let Begun { mut session, mut noted } = begun;
    let receipts = by_file(std::mem::take(&mut noted.receipts));
    context.listener.on_event(&Event::Planned { plan: Box::new(plan.clone()) });
    let partitioner = Partitioner::new(plan.job.create_partitions, dated)?;
    let files = std::mem::take(&mut noted.files);
    let mut run = Run::new(context, plan, layout, ledger, receipts, (open_columns, partitioner));
    run.files = files;
    run.tally.planned_for.get_or_init(|| began.elapsed());
    let run = Arc::new(run);
    beforehand::warn(&run, before, &noted);
    run.dropped.store(noted.dropped, Relaxed);
    run.tuned.store(noted.tuned, Relaxed);
    // On sessions of their own; neither needs the other.
    let (first_look, ()) = tokio::join!(guards::begin(&run, &session), Box::pin(settle(&run, When::AtStart)));
    let loading = async {
        match first_look {
            Ok(mut guard) => {
                // Each step is large, and whoever calls may have a stack of 2 MiB only.
                let steps = Box::pin(load_and_finish(&run, opened));
                let ended = guarded(&run, &mut session, &mut guard, steps).await;
                Box::pin(account(&run, session, guard, ended, reject_file)).await
            }
            Err(refused) => {
                Box::pin(account(&run, session, Guard::default(), Err(refused), reject_file)).await
            }
        }
    };
    // A load that has failed puts back what it has dropped, and does not fill a disk with that either.
    let outcome = context.connection.watching_disks(Box::pin(loading)).await;
    context.listener.on_event(&Event::Done { summary: Box::new(outcome.summary.clone()) });
    Ok(outcome)
}

/// The job is done, or has found no file that it does not know.
async fn nothing_to_load(context: &Context, planned: Planned) -> Result<Outcome> {
    settle_done(context, &planned.plan).await;
    let History::Done { at } = &planned.history else {
        return Ok(done::nothing_new(context, &planned.plan));
    };
    let is_resumed = planned.plan.job.resumes.is_some();
    let finished = already_done(&planned.plan.job_id, at, is_resumed);
    let told = done::with_rejects(context, &planned.plan, finished).await;
    match planned.plan.job.if_done {
        IfDone::Ok if done::only_bytes_tell(&planned.plan) => done::compare(context, planned, &told).await,
        IfDone::Ok | IfDone::Fail => Err(told),
    }
}

/// How a load begins.
#[derive(Clone, Copy)]
struct Beginning<'a> {
    context: &'a Context,
    ledger: Option<&'a Ledger>,
    plan: &'a Plan,
    /// What was tried, where it fails.
    tried: &'a Tried,
    /// As [`reads_rejects`].
    reads_rejects: bool,
    /// Tables that are empty now may lack what killed loads have dropped.
    lacks: bool,
}

/// A load that may send its first chunk.
struct Begun {
    session: Session,
    noted: Noted,
}

/// What the ledger has noted of the job, and of others.
#[derive(Default)]
pub(crate) struct Noted {
    pub receipts: Vec<Receipt>,
    /// Rows of these files that a job which did not end has stored.
    pub in_part: Option<StoredInPart>,
    /// An earlier run of the job has dropped something and not put it back.
    pub dropped: bool,
    /// The same with settings.
    pub tuned: bool,
    /// The ledger held chunks of a job of this name, which was deleted from it.
    pub forgotten: bool,
    /// The server has emptied the tables since an earlier run of the job.
    pub crashed: bool,
    /// Somebody has emptied these since.
    pub emptied: Vec<Relation>,
    /// Tables with jobs that have brought rows since this one began first, which takes them out.
    pub come_since: Vec<(Relation, Vec<String>)>,
    /// Those of the tables as they are now, where the job stores its first rows.
    pub files: Files,
}

/// There is work for two sessions at once.
fn fills_two_chunks(plan: &Plan) -> bool {
    let least_bytes = plan.taper.map_or(plan.chunk_bytes, |taper| taper.least_bytes);
    plain_bytes(&plan.files).is_none_or(|bytes| bytes > least_bytes)
}

/// Rejected records are read again, when all is loaded.
fn reads_rejects(job: &Job, reject_file: Option<&RejectFile>) -> bool {
    job.bad_records.on_error == OnError::Skip && (reject_file.is_some() || job.verify == Verify::Checksum)
}

/// So many sessions are opened `ahead` meanwhile.
async fn begin_load(beginning: Beginning<'_>, ahead: usize) -> Result<Begun> {
    let Beginning { context, ledger, plan, lacks, .. } = beginning;
    let session = context.connection.open_to_write().await?;
    context.connection.open_ahead(ahead);
    let mut footing = None;
    if let Some(ledger) = ledger {
        let left = predecessor::has_left(context, &session, ledger, &plan.job_id);
        // Sent together: one round trip.
        let looking = async {
            let (left, footing) = join(left, ledger.look(&session)).await;
            left.map(|has_left| (has_left, footing))
        };
        let (has_left, found) = context.connection.attend(&session, looking).await?;
        if has_left {
            let ending = predecessor::end_left(context, &session, ledger, &plan.job_id);
            context.connection.attend(&session, ending).await?;
        }
        footing = Some(found);
    }
    let opening = open_ledger(beginning, &session, footing);
    let noted = context.connection.attend(&session, opening).await?;
    if lacks {
        Box::pin(make_whole(context, &session, plan, true)).await?;
    }
    Ok(Begun { session, noted })
}

fn rows_before(history: &History) -> u64 {
    match history {
        History::Begun(receipts) => receipts.iter().map(|receipt| receipt.rows).sum(),
        History::Fresh | History::Done { .. } | History::NothingNew => 0,
    }
}

/// The ledger is made when it is first needed; the receipts are read after the job is open, so that none
/// of a simultaneous run is overlooked for longer than the claim allows.
async fn open_ledger(beginning: Beginning<'_>, session: &Session, footing: Option<Footing>) -> Result<Noted> {
    let Beginning { context, ledger, plan, tried, reads_rejects, .. } = beginning;
    let Some((ledger, footing)) = ledger.zip(footing) else {
        make_tables(session, None, plan, tried).await?;
        return Ok(Noted { files: taken::files(session, plan).await?, ..Noted::default() });
    };
    ledger.ensure_on(session, footing).await?;
    if reads_rejects {
        ledger.expect_readable_records(session).await?;
    }
    let begin::Found { in_part, forgotten } =
        begin::begin(&context.connection, session, ledger, plan, tried).await?;
    // The turn ends with what is sent first behind it.
    let taking_part = Box::pin(take_part(beginning, session, ledger));
    let ((), noted) = try_join(begin::end_turn(session, ledger, plan), taking_part).await?;
    Ok(Noted { in_part, forgotten, ..noted })
}

/// What is done and read when the job has begun.
async fn take_part(beginning: Beginning<'_>, session: &Session, ledger: &Ledger) -> Result<Noted> {
    let Beginning { context, plan, tried, lacks, .. } = beginning;
    make_tables(session, Some(ledger), plan, tried).await?;
    if !lacks {
        Box::pin(expect_whole(context, session, plan)).await?;
    }
    ledger.keep_marks(session).await?;
    let void = ledger.forget_emptied(session, &plan.job_id).await?;
    // From here on nobody empties them: the job is held, and in the ledger.
    let since_planned = async || match plan.job.force {
        true => Ok(()),
        false => emptied::expect_not_by_others(session, ledger, plan).await,
    };
    let emptied = match plan.job.force {
        true => emptied::forget_behind(session, ledger, plan).await?,
        false => Vec::new(),
    };
    let changes_tables = plan.job.arrival.mode == Mode::Truncate || plan.job.arrival.is_staged();
    if changes_tables {
        since_planned().await?;
    }
    if plan.job.arrival.mode == Mode::Truncate {
        empty_tables(session, ledger, plan).await?;
        begin::take_no_more(session, ledger, plan).await?;
    }
    if plan.job.arrival.is_staged() {
        let fresh = ledger.receipts(session, &plan.job_id).await?.is_empty();
        let made = arrival::make_staging(session, ledger, plan, fresh).await;
        if let Err(error) = made {
            // What cannot be asked leaves the error as it is.
            let done = begin::done_meanwhile(session, ledger, plan).await;
            return Err(done.ok().flatten().unwrap_or(error));
        }
    }
    // Where `synchronous_commit` is off for everybody, a crash could take the job from under its chunks.
    let durable = barrier(session);
    let receipts = ledger.receipts(session, &plan.job_id);
    let left = Left::read(ledger, session, Some(&plan.job_id));
    let files = taken::files(session, plan);
    let come_since = begin::come_since(session, ledger, plan);
    let kept = async { if changes_tables { Ok(()) } else { since_planned().await } };
    // Sent together: one round trip.
    let ((), (), receipts, left, files, come_since) =
        tokio::try_join!(kept, durable, receipts, left, files, come_since)?;
    let doubted_for = left.doubted_for(ledger, session).await?;
    // Since it was planned.
    expect_nothing_left(context, ledger, &plan.job_id, &left, &doubted_for)?;
    let (dropped, tuned) = (!left.dropped.is_empty(), !left.tuned.is_empty());
    let files = if receipts.is_empty() { files } else { Files::new() };
    let crashed = void > 0;
    Ok(Noted { receipts, dropped, tuned, crashed, emptied, come_since, files, ..Noted::default() })
}

pub(crate) fn being_restored(job_id: &str) -> Error {
    let message = format!("what job {job_id} has dropped is being put back by another process");
    Error::new(ErrorKind::Ledger, message)
        .with_hint("wait until that is done, then run the same command again")
}

/// Tables that were planned and are not there are made; those that are there are changed as planned, each
/// once, however many kinds of files go there.
async fn make_tables(session: &Session, ledger: Option<&Ledger>, plan: &Plan, tried: &Tried) -> Result<()> {
    let mut made = Vec::new();
    let done = make_each(session, plan, &mut made).await;
    if done.as_ref().is_err_and(define::is_otherwise) {
        tried.is_elsewhere.store(true, Relaxed);
        if let Some(ledger) = ledger {
            ledger.unbind(session, &plan.job_id).await?;
        }
        return done;
    }
    let noted = match ledger.filter(|_| !made.is_empty()) {
        Some(ledger) => ledger.made(session, &plan.job_id, &made).await,
        None => Ok(()),
    };
    done.and(noted)
}

async fn make_each<'p>(
    session: &Session,
    plan: &'p Plan,
    made: &mut Vec<(usize, &'p Relation)>,
) -> Result<()> {
    let lock_timeout_ms = plan.job.arrival.lock_timeout_ms;
    let mut seen = BTreeSet::new();
    for (no, table) in plan.tables.iter().enumerate() {
        let relation = &table.table.relation;
        if !seen.insert(relation) {
            continue;
        }
        // What an earlier run has made has its OID in the plan.
        if let Some(create) = table.create.as_ref().filter(|_| table.table.oid == 0) {
            define::create_table(session, relation, create).await?;
            made.push((no, relation));
        }
        let (mut added, mut wider) = (Vec::new(), Vec::new());
        for change in &table.changes {
            match change {
                TableChange::Add(column) => added.push(column),
                TableChange::Widen(NewColumn { name, type_name, .. }) => {
                    // What it has in the plan is what it is to become.
                    let (name, type_name) = (name.clone(), type_name.clone());
                    wider.push(Wider { name, from: String::new(), type_name, text_sql: None });
                }
            }
        }
        if !table.changes.is_empty() {
            define::evolve(session, relation, lock_timeout_ms, &added, &wider, &from_present).await?;
        }
    }
    Ok(())
}

async fn empty_tables(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<()> {
    let mut seen = BTreeSet::new();
    // Others are emptied in the transaction that their rows come in.
    for TablePlan { table, .. } in plan.tables.iter().filter(|table| !table.frozen) {
        if seen.insert(&table.relation) {
            let lock_timeout_ms = plan.job.arrival.lock_timeout_ms;
            let file_nos = file_nos(plan, &table.relation);
            truncate::empty(session, ledger, &plan.job_id, table, lock_timeout_ms, &file_nos).await?;
        }
    }
    Ok(())
}

/// The files that go into the table, as the ledger counts them.
pub(crate) fn file_nos(plan: &Plan, relation: &Relation) -> Vec<i32> {
    let is_of = |file: &FilePlan| plan.table(file.table_no).table.relation == *relation;
    let files = (0..).zip(&plan.files).filter(|(_, file)| is_of(file));
    files.map(|(no, _)| no).collect()
}

async fn load_and_finish(run: &Arc<Run>, opened: Vec<Opened>) -> Result<()> {
    Box::pin(tune::apply(run)).await?;
    Box::pin(indexes::drop_all(run)).await?;
    Box::pin(triggers::silence_all(run)).await?;
    Box::pin(pipeline::run(run, opened)).await?;
    Box::pin(ending::bring_all_in(run)).await
}

/// Does the work while the session that holds the job looks out.
pub(crate) async fn guarded<T>(
    run: &Run,
    session: &mut Session,
    guard: &mut Guard,
    work: impl Future<Output = T>,
) -> T {
    let done = tokio::select! {
        done = work => done,
        never = guards::run(run, session, guard) => match never {},
    };
    guard.rest(run);
    done
}

/// Puts back what was dropped, closes the job in the ledger and makes up the summary. A job counts as done
/// when all of that is; one that did not end well is closed first, since putting back may take its time.
async fn account(
    run: &Arc<Run>,
    mut session: Session,
    mut guard: Guard,
    ended: Result<()>,
    reject_file: Option<&RejectFile>,
) -> Outcome {
    let loaded = ended.is_ok();
    let ended = match ended {
        Ok(()) => Box::pin(ending::end_well(run, &mut session, &mut guard)).await,
        failed => failed,
    };
    let connection = &run.context.connection;
    let newest = connection.newest();
    let schema = run.ledger.as_ref().map_or(LEDGER_DEFAULT, Ledger::schema);
    let (mut job_is_lost, mut error) = (false, None);
    if let Err(ended_by) = ended {
        let told = ending::told(run, ended_by).await;
        job_is_lost = told.job_is_lost;
        error = Some(again::in_full(told.error, connection, &run.plan.job_id, schema));
    }
    if !loaded {
        if let Some(at) = finished_by_another(run).await {
            error = Some(done_by_another(&run.plan, &at));
        }
        arrival::note_waiting(run).await;
        error = error.map(|error| again::advised(run, error));
    }
    // The ledger is told what everybody is told.
    if let Some(without) = error.take() {
        error = Some(with_line(run, without).await);
    }
    let open = error.as_ref().filter(|error| error.kind() != ErrorKind::JobDone);
    if let Some((ledger, error)) = run.ledger.as_ref().zip(open) {
        let rows = run.tally.rows_stored() - run.tally.rows_waiting(&run.plan);
        let by = (Some(&session), session.backend().pid);
        close_in_time(&run.context, &run.plan, ledger, by, error, rows).await;
    }
    if !loaded
        && !job_is_lost
        && let Err(left) = indexes::put_back_all(run, true).await
    {
        // Why the load failed is the error to report; what is left to do stands in the journal.
        let hint = left.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        run.warn(format!("{left}{hint}"));
    }
    let mut written = Vec::new();
    let forgets = run.plan.job.arrival.is_staged() && error.as_ref().is_some_and(arrival::is_for_good);
    if !loaded && !forgets && !job_is_lost {
        warn_of_waiting(run);
        if error.as_ref().is_some_and(|error| ended_by(error) == Status::Failed) {
            warn_of_made(run);
        }
    }
    if forgets || run.tuned.load(Relaxed) {
        // Until here it held the job.
        if let Some(session) = tune::last_of_job(run, session, error.is_some()).await {
            if forgets {
                written = forget_staging(run, reject_file).await;
            }
            tune::put_back(run, &session, error.is_some()).await;
        }
    } else {
        drop(session);
    }
    if error.is_none() {
        after::tell_checkpoints(run).await;
        Box::pin(after::run(run)).await;
        Box::pin(settle(run, When::AtEnd)).await;
        tune::checkpoint(run).await;
        error = Box::pin(ending::expect_kept(run, newest)).await.err();
    }
    let status = error.as_ref().map_or(Status::Done, ended_by);
    let mut summary = run.tally.summary(&run.plan, status);
    tell_places(run, &mut summary.left_out, status != Status::Interrupted).await;
    Outcome { summary, error, written }
}

/// What waits in staging tables is nobody's wish unless it is said.
fn warn_of_waiting(run: &Run) {
    let waiting = run.tally.rows_waiting(&run.plan);
    let Some(ledger) = run.ledger.as_ref().filter(|_| waiting > 0) else { return };
    let further = again::further(&run.context.connection, &run.plan, ledger.schema());
    let restore = restore_command(&run.context, ledger, &run.plan.job_id);
    run.warn(format!(
        "rows of this job wait in staging tables for its next run ({further}); {restore} drops them"
    ));
}

/// A table that was made for a reading of the file that did not hold stands in the way of a better one.
fn warn_of_made(run: &Run) {
    if run.tally.rows_stored() > 0 {
        return;
    }
    let made = run.plan.tables.iter().filter(|table| table.create.is_some());
    let made: BTreeSet<String> = made.map(|table| table.table.relation.to_string()).collect();
    if !made.is_empty() {
        let made: Vec<String> = made.into_iter().collect();
        run.warn(format!(
            "{}: made by this load and still empty; whoever reads the file otherwise has to drop what was made first",
            made.join(", ")
        ));
    }
}

/// After a failure that the same files and tables would meet again, nothing waits in staging tables any more.
/// What was rejected of the files goes with it, so that it is written before, if it is wanted; where the user
/// stops that, all stays.
async fn forget_staging(run: &Run, reject_file: Option<&RejectFile>) -> Vec<(PathBuf, u64)> {
    let Some(ledger) = &run.ledger else { return Vec::new() };
    let mut written = Vec::new();
    if let Some(file) = reject_file {
        match run.context.stop.guard(Box::pin(write_rejects(run, ledger, file))).await {
            Ok(files) => written = files,
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                warn_of_waiting(run);
                return written;
            }
            Err(error) => run.warn(error.to_string()),
        }
    }
    let forgetting = async {
        if arrival::has_begun(&run.context, ledger, &run.plan).await? {
            return Ok(());
        }
        indexes::drop_staging(run, ledger).await
    };
    let done = tokio::time::timeout(FAILED_WITHIN, forgetting).await;
    if !matches!(done, Ok(Ok(()))) {
        let restore = restore_command(&run.context, ledger, &run.plan.job_id);
        run.warn(format!("a staging table is left: {restore} drops it"));
    }
    written
}

/// When another run of the job has brought all rows in while this one was at work, whose staging tables it
/// has dropped.
async fn finished_by_another(run: &Run) -> Option<String> {
    let ledger = run.ledger.as_ref().filter(|_| run.plan.job.arrival.is_staged())?;
    let asking = async {
        let session = run.context.connection.open().await?;
        ledger.find(&session, &run.plan.job_id).await
    };
    let found = tokio::time::timeout(STOPPED_WITHIN, asking).await.ok()?.ok()??;
    found.finished_at.filter(|_| found.status == JobStatus::Done)
}

/// Receipts by file and chunk.
pub(crate) fn by_file(receipts: Vec<Receipt>) -> HashMap<u32, Receipts> {
    let mut files: HashMap<u32, Receipts> = HashMap::new();
    for receipt in receipts {
        files.entry(receipt.file_no).or_default().insert(receipt.chunk_no, receipt);
    }
    files
}
