//! How a load begins its job: holds it, asks once more what others have of its files, and writes it into the
//! ledger.
//!
//! Since it was planned others may have loaded its files, or be at it. Loads that are not to store rows once
//! more begin one after the other, in the ledger's turn: each sees those that have begun before it, and gives
//! way to them. So does a load at work whose sessions were lost, all at once, before it stores anything more:
//! others may have begun meanwhile, who saw nobody at work.

use crate::load::being_restored;
use crate::pipeline::Run;
use crate::plan::{KnownState, comes_once_more, done_by_another, expect_unknown, holds_rows, ledger_of};
use crate::predecessor::HELD_AGAIN_WITHIN;
use crate::{Connection, in_part};
use futures_util::future::{join, join5};
use howdah_model::{
    Error, ErrorKind, Event, Job, KnownFile, KnownFiles, Mode, Plan, Relation, Result, TablePlan, sqlstate,
};
use howdah_target::ledger::{Hold, JobRow, JobStatus, LOCKS_IN_TURN_MS, Ledger, Own, Rival, StoredInPart};
use howdah_target::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long the job is waited for, while others put back what it has left, and how often that is looked at.
const HELD_WITHIN: Duration = Duration::from_secs(10);
const HELD_LOOK_EVERY: Duration = Duration::from_millis(100);

/// What was found on the way.
pub(crate) struct Found {
    /// Rows of its files that a job which did not end has stored.
    pub(crate) in_part: Option<StoredInPart>,
    /// Something was left of a job of its name, which was deleted.
    pub(crate) forgotten: bool,
}

/// What is known of a beginning that fails.
#[derive(Default)]
pub(crate) struct Tried {
    /// Set as soon as the ledger says that the job is running.
    pub(crate) holder_pid: AtomicI32,
    /// Others have loaded files of the plan since it was made; one that is made now may leave these out.
    pub(crate) is_outdated: AtomicBool,
    /// Others have made or changed a table, or put another one in its place, since the plan was made.
    pub(crate) is_elsewhere: AtomicBool,
}

/// Begins the job, which this session then holds; the turn of those that begin is to be ended behind that, by
/// [`end_turn`].
///
/// # Errors
/// Table, for files that others have loaded or are loading; why the ledger does not take the job; those of
/// the session.
pub(crate) async fn begin(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    tried: &Tried,
) -> Result<Found> {
    let (asks, began) = (asks(&plan.job), Instant::now());
    loop {
        // Sent together: the server answers in the turn.
        let holding = hold_soon(session, ledger, &plan.job_id, asks);
        let (held, told) = join(holding, Told::ask(session, ledger, plan)).await;
        let told = match held? {
            Held::AtOnce => told,
            Held::Later => Told::ask(session, ledger, plan).await,
            Held::ByOthers => return Err(being_restored(&plan.job_id)),
        };
        let told = in_time(connection, session, ledger, plan, told).await?;
        let is_patient = began.elapsed() < HELD_AGAIN_WITHIN;
        let begun = in_turn(connection, session, ledger, plan, told, is_patient, tried).await;
        if asks && !matches!(begun, Ok(Some(_))) {
            // It gives way: the next one must not find it at work. Of two errors the first is told.
            let left = ledger.cease_to_hold_job(session, &plan.job_id).await;
            begun.as_ref().map_or(Ok(()), |_| left)?;
            let ended = ledger.end_turn(session).await;
            begun.as_ref().map_or(Ok(()), |_| ended)?;
        }
        match begun? {
            Some(noted) => return Ok(noted),
            None => sleep(HELD_LOOK_EVERY).await,
        }
    }
}

/// Ends the turn that a job has begun in, if it had one.
///
/// # Errors
/// Those of the session.
pub(crate) async fn end_turn(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<()> {
    if asks(&plan.job) { ledger.end_turn(session).await } else { Ok(()) }
}

/// What the ledger says to a job that begins, as far as it is asked. All is asked at once: of a job that
/// nobody has begun before, which `begun` tells.
struct Told {
    begun: Result<(Option<String>, BTreeSet<u32>)>,
    rivals: Result<Vec<Rival>>,
    in_part: Result<Vec<StoredInPart>>,
    of_the_work: Result<Vec<JobRow>>,
    ahead: Result<Option<Duration>>,
}

impl Told {
    async fn ask(session: &Session, ledger: &Ledger, plan: &Plan) -> Told {
        let (own, begun) = (Own::default(), ledger.begun_files(session, &plan.job_id));
        // Sent together: one round trip.
        let (begun, rivals, in_part, of_the_work, ahead) = join5(
            begun,
            noted_rivals(session, ledger, plan, &own),
            in_part::noted(session, ledger, plan, &own),
            in_part::of_the_work(session, ledger, plan),
            ledger.is_ahead_by(session),
        )
        .await;
        Told { begun, rivals, in_part, of_the_work, ahead }
    }
}

/// Where the server's clock has gone back behind the ledger's times, these are moved, and what they tell is
/// asked once more.
async fn in_time(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    mut told: Told,
) -> Result<Told> {
    // What else was asked has the word if this cannot be told.
    let Some(by) = std::mem::replace(&mut told.ahead, Ok(None)).ok().flatten() else { return Ok(told) };
    ledger.move_back(session, by).await?;
    if let Some(listener) = connection.listener() {
        let seconds = by.as_secs_f64();
        let message = format!(
            "the server's clock is {seconds:.1} s behind the latest time in the ledger: all times in it were moved back by that"
        );
        listener.on_event(&Event::Notice { message });
    }
    Ok(Told::ask(session, ledger, plan).await)
}

/// Of a job that is asked about; see [`asks`].
async fn noted_rivals(session: &Session, ledger: &Ledger, plan: &Plan, own: &Own) -> Result<Vec<Rival>> {
    if asks(&plan.job) { ledger.rivals(session, plan, own).await } else { Ok(Vec::new()) }
}

/// Rows that come on top of those that are there must not be there twice, unless that is what is asked for.
fn asks(job: &Job) -> bool {
    comes_on_top(job) && !job.force && job.known != KnownFiles::Load
}

pub(crate) fn comes_on_top(job: &Job) -> bool {
    job.arrival.mode == Mode::Append && !job.arrival.check
}

/// All others who begin wait for who looks into a table in its turn.
pub(crate) fn in_turn_ms(job: &Job) -> u64 {
    job.arrival.lock_timeout_ms.min(LOCKS_IN_TURN_MS)
}

/// `None`: sessions are at work that a killed run may have left, and will be gone a moment later.
async fn in_turn(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    told: Told,
    is_patient: bool,
    tried: &Tried,
) -> Result<Option<Found>> {
    let own = own_of(plan, told.begun?);
    let (noted, in_part) = match own.since.is_none() && own.files.is_empty() {
        true => (told.rivals, told.in_part),
        false => {
            let rivals = noted_rivals(session, ledger, plan, &own);
            join(rivals, in_part::noted(session, ledger, plan, &own)).await
        }
    };
    let rivals = standing(session, ledger, plan, noted?).await?;
    if is_patient && !rivals.is_empty() && rivals.iter().all(|rival| rival.left_over) {
        return Ok(None);
    }
    expect_not_outdated(plan, rivals, tried)?;
    let in_part = in_part::find_among(session, ledger, plan, in_part).await?;
    expect_ended(connection, ledger, plan, in_part.as_ref())?;
    hold_tables(session, ledger, plan, When::Begins)
        .await
        .inspect_err(|error| tried.is_elsewhere.store(error.kind() == ErrorKind::Table, Relaxed))?;
    in_part::forget_emptied(session, ledger, plan, told.of_the_work?).await?;
    // Sent together. Who empties a table has no turn: it has seen this job, and waits for its end, or is seen
    // here.
    let (begun, mut noted) =
        join(ledger.begin(session, plan), noted_rivals(session, ledger, plan, &own)).await;
    let mut forgotten = false;
    if !begun? {
        forgotten = begin_again(connection, session, ledger, plan, tried).await?;
        noted = noted_rivals(session, ledger, plan, &own).await;
    }
    tried.holder_pid.store(session.backend().pid, Relaxed);
    expect_not_outdated(plan, standing(session, ledger, plan, noted?).await?, tried)?;
    Ok(Some(Found { in_part, forgotten }))
}

/// When tables are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Nothing is done to them yet.
    Begins,
    /// Those that are emptied first are empty.
    AtWork,
}

/// Others who are at work on the tables, and this load, wait for each other if one of them takes rows out.
async fn hold_tables(session: &Session, ledger: &Ledger, plan: &Plan, when: When) -> Result<()> {
    for hold in [Hold::Takes, Hold::Brings] {
        let tables = held(plan, when, hold);
        ledger.hold_tables(session, &plan.job_id, &tables, hold).await?;
    }
    Ok(())
}

/// Tables that were emptied for their rows: from then on these only come.
pub(crate) async fn take_no_more(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<()> {
    let brings = held(plan, When::AtWork, Hold::Brings);
    let oids: Vec<u32> = brings.into_iter().map(|(oid, _)| oid).collect();
    ledger.take_no_more(session, &oids).await
}

/// Tables with the jobs that have brought rows since an earlier run of this job began, which goes on to take
/// them out.
///
/// # Errors
/// Those of the session.
pub(crate) async fn come_since(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
) -> Result<Vec<(Relation, Vec<String>)>> {
    let mut come = Vec::new();
    for (_, relation) in held(plan, When::AtWork, Hold::Takes) {
        let jobs = ledger.come_since(session, &plan.job_id, relation).await?;
        come.extend((!jobs.is_empty()).then(|| (relation.clone(), jobs)));
    }
    Ok(come)
}

/// The load takes rows out of the table when those of others may have come.
pub(crate) fn takes_at_work(plan: &Plan, table: &TablePlan) -> bool {
    match plan.job.arrival.mode {
        Mode::Replace => true,
        // A table whose rows come frozen is emptied in their transaction, others before rows come into any.
        Mode::Truncate => table.frozen,
        Mode::Append | Mode::Merge | Mode::InsertNew => plan.job.arrival.delete_missing,
    }
}

/// The tables, each once, that the load holds so.
fn held(plan: &Plan, when: When, hold: Hold) -> Vec<(u32, &Relation)> {
    let takes = |table: &TablePlan| {
        let is_emptied_first = when == When::Begins && plan.job.arrival.mode == Mode::Truncate;
        is_emptied_first || takes_at_work(plan, table)
    };
    let held = plan.tables.iter().filter(|table| takes(table) == (hold == Hold::Takes));
    let by_oid: BTreeMap<u32, &Relation> =
        held.map(|table| (table.table.oid, &table.table.relation)).collect();
    by_oid.into_iter().collect()
}

/// Files of which the job has stored rows in the table: nobody else has, unless that was asked for. What
/// waits in a staging table is not in the table. What others had stored when the job began first was gone
/// then, or known: the rows in the table may be its own. Of files that have changed since, it was not asked
/// for then.
async fn own(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Own> {
    Ok(own_of(plan, ledger.begun_files(session, &plan.job_id).await?))
}

/// The same, where the job was begun then, and has stored chunks of these files.
fn own_of(plan: &Plan, (since, begun): (Option<String>, BTreeSet<u32>)) -> Own {
    if plan.job.arrival.is_staged() || !comes_on_top(&plan.job) {
        return Own { since, ..Own::default() };
    }
    let location = |no: &u32| plan.files.get(*no as usize).map(|file| file.location.clone());
    Own { files: begun.iter().filter_map(location).collect(), since, at_work: false }
}

/// Of a job at work its rivals are told already. Who means to load beside it does.
fn expect_ended(
    connection: &Connection,
    ledger: &Ledger,
    plan: &Plan,
    in_part: Option<&StoredInPart>,
) -> Result<()> {
    let is_meant = plan.job.force || plan.job.known == KnownFiles::Load;
    match in_part.filter(|stored| !(is_meant || stored.at_work)) {
        Some(stored) => Err(in_part::error(connection, ledger, stored)),
        None => Ok(()),
    }
}

/// What a load of this plan is refused for, by rows that a job which did not end has stored.
///
/// # Errors
/// Those of ledger and connection.
pub(crate) async fn refusal(connection: &Connection, plan: &Plan) -> Result<Option<Error>> {
    let Some(ledger) = ledger_of(&plan.job).filter(|_| comes_on_top(&plan.job)) else { return Ok(None) };
    let session = connection.open().await?;
    let asking = async {
        if !ledger.exists(&session).await? {
            return Ok(None);
        }
        let own = own(&session, &ledger, plan).await?;
        let in_part = in_part::find(&session, &ledger, plan, &own).await?;
        Ok(expect_ended(connection, &ledger, plan, in_part.as_ref()).err())
    };
    let refusal = connection.attend(&session, asking).await?;
    connection.keep(session);
    Ok(refusal)
}

/// In the turn of a load at work: nobody has begun to load files of which it has stored nothing.
async fn expect_alone(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
) -> Result<()> {
    // Who means to load beside it has begun in its sight, and gives way to nobody.
    let own = Own { at_work: true, ..own(session, ledger, plan).await? };
    expect_no_rivals(plan, rivals(session, ledger, plan, &own).await?)?;
    let in_part = in_part::find(session, ledger, plan, &own).await?;
    expect_ended(connection, ledger, plan, in_part.as_ref())
}

/// Others have taken what the load, which had lost its sessions, was at work on.
pub(crate) fn is_taken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Table | ErrorKind::FilesLoaded | ErrorKind::Ledger)
}

/// Holds the job of a load at work on a new session, as the one that held it is lost. The session keeps the
/// turn if this fails.
///
/// # Errors
/// As [`is_taken`] says, where the load cannot go on; those of the session.
pub(crate) async fn hold_again(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
) -> Result<()> {
    let asks = asks(&plan.job);
    if asks {
        ledger.take_turn(session).await?;
        expect_alone(connection, session, ledger, plan).await?;
    }
    if !ledger.hold_job(session, &plan.job_id).await? {
        return Err(being_restored(&plan.job_id));
    }
    hold_tables(session, ledger, plan, When::AtWork).await.map_err(|error| match error.sqlstate() {
        Some(sqlstate::LOCK_NOT_AVAILABLE) => error.with_kind(ErrorKind::Table),
        _ => error,
    })?;
    if asks {
        ledger.end_turn(session).await?;
    }
    Ok(())
}

/// Before a new session of a load at work stores anything: while the job is held others give way, and behind
/// that they do so to this session; what they have begun in between is asked here. Ends the load if they
/// have.
///
/// # Errors
/// As [`hold_again`].
pub(crate) async fn expect_held(run: &Run, session: &Session) -> Result<()> {
    let (connection, plan) = (&run.context.connection, &run.plan);
    let ledger = run.ledger.as_ref().filter(|_| asks(&plan.job) && connection.has_lost());
    let Some(ledger) = ledger else { return Ok(()) };
    if ledger.is_job_held(session, &plan.job_id).await? {
        return Ok(());
    }
    ledger.take_turn(session).await?;
    let alone = expect_alone(connection, session, ledger, plan).await;
    let ended = ledger.end_turn(session).await;
    if let Some(taken) = alone.as_ref().err().filter(|error| is_taken(error)) {
        run.halt.fail_all(taken.clone());
    }
    alone.and(ended)
}

/// Rivals that are done are what another plan leaves out.
fn expect_not_outdated(plan: &Plan, rivals: Vec<Rival>, tried: &Tried) -> Result<()> {
    tried.is_outdated.store(!rivals.iter().any(|rival| rival.at_work), Relaxed);
    expect_no_rivals(plan, rivals)?;
    tried.is_outdated.store(false, Relaxed);
    Ok(())
}

/// A load at work is told before those that are done.
fn expect_no_rivals(plan: &Plan, rivals: Vec<Rival>) -> Result<()> {
    let is_at_work = rivals.iter().any(|rival| rival.at_work);
    let state = if is_at_work { KnownState::AtWork } else { KnownState::SincePlanned };
    let same = rivals.into_iter().filter(|rival| rival.at_work == is_at_work);
    let known: BTreeMap<String, KnownFile> =
        same.map(|rival| (rival.file.location.clone(), rival.file)).collect();
    expect_unknown(plan, &known.into_values().collect::<Vec<_>>(), state)
}

/// Files of the plan, but for its job's own, that another job has loaded, and the rows are there, or is
/// loading.
async fn rivals(session: &Session, ledger: &Ledger, plan: &Plan, own: &Own) -> Result<Vec<Rival>> {
    let rivals = ledger.rivals(session, plan, own).await?;
    standing(session, ledger, plan, rivals).await
}

/// Those of the rivals that the ledger tells whose rows are there, or that are at work.
async fn standing(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    mut rivals: Vec<Rival>,
) -> Result<Vec<Rival>> {
    rivals.retain(|rival| rival.at_work || !comes_once_more(&plan.job, &rival.file));
    let mut by_table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Rival { file, .. } in rivals.iter().filter(|rival| !rival.at_work) {
        by_table.entry(file.table.clone()).or_default().insert(file.job_id.clone());
    }
    for (table, jobs) in by_table {
        let relation = plan.tables.iter().map(|table| &table.table.relation);
        let Some(relation) = relation.into_iter().find(|relation| relation.to_string() == table) else {
            continue;
        };
        let mut standing = BTreeSet::new();
        if holds_rows(session, relation, in_turn_ms(&plan.job)).await? {
            standing = ledger.standing(session, relation, &jobs).await?;
        }
        let stands = |rival: &Rival| rival.at_work || standing.contains(&rival.file.job_id);
        rivals.retain(|rival| rival.file.table != table || stands(rival));
    }
    Ok(rivals)
}

/// Notes the job in a ledger that has something of it already, with chunks of another size where none is
/// stored. Says whether something was left of one of this name, whose own row somebody has deleted: its
/// chunks tell nothing of the table.
async fn begin_again(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    tried: &Tried,
) -> Result<bool> {
    let is_there = ledger.find(session, &plan.job_id).await?.is_some();
    let has_changed = is_there && plan.files.iter().any(|file| file.has_changed);
    // Who is at work for a job goes on storing chunks of it.
    let is_free = ledger.hold_job_alone(session, &plan.job_id).await? && {
        let is_free = match is_there {
            true if has_changed => begin_changed(connection, session, ledger, plan).await?,
            true => ledger.cut_anew(session, plan).await?,
            false => ledger.forget_deleted(session, &plan.job_id).await?,
        };
        ledger.leave_job(session, &plan.job_id).await?;
        is_free
    };
    if hold_soon(session, ledger, &plan.job_id, false).await? == Held::ByOthers {
        return Err(being_restored(&plan.job_id));
    }
    if is_free && (has_changed || ledger.begin(session, plan).await?) {
        return Ok(!is_there);
    }
    let taken = taken_meanwhile(session, ledger, plan).await?;
    tried.is_outdated.store(taken.kind() == ErrorKind::JobDone, Relaxed);
    Err(taken)
}

/// Begins it with files that have changed. What a killed run has left at work may still store chunks of them
/// as they were.
async fn begin_changed(
    connection: &Connection,
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
) -> Result<bool> {
    let own = connection.opened();
    let mut at_work = ledger.at_work(session, &plan.job_id).await?;
    at_work.retain(|backend| !own.contains(backend));
    Ok(at_work.is_empty() && ledger.begin_changed(session, plan).await?)
}

/// What is told of a job that another run has ended.
pub(crate) async fn done_meanwhile(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Option<Error>> {
    let row = ledger.find(session, &plan.job_id).await?;
    let done_at = row.filter(|row| row.status == JobStatus::Done).and_then(|row| row.finished_at);
    Ok(done_at.map(|at| done_by_another(plan, &at)))
}

/// Another run has had the job since this one was planned.
async fn taken_meanwhile(session: &Session, ledger: &Ledger, plan: &Plan) -> Result<Error> {
    let row = ledger.find(session, &plan.job_id).await?;
    if row.is_none() {
        let message = format!("job {} was deleted from the ledger while a run of it is at work", plan.job_id);
        return Ok(Error::new(ErrorKind::Ledger, message)
            .with_hint("wait for the end of that run, then run the same command again"));
    }
    let is_same = row.as_ref().is_some_and(|row| row.plan.identity == plan.identity);
    let has_changed = plan.files.iter().any(|file| file.has_changed);
    let done_at = row.filter(|row| row.status == JobStatus::Done).and_then(|row| row.finished_at);
    let message = match done_at {
        Some(at) if is_same => return Ok(done_by_another(plan, &at)),
        _ if is_same => "is in the ledger with other chunk borders",
        _ if has_changed => {
            let message = format!(
                "files of job {} have changed since it began, and another run of it is at work with them as they were",
                plan.job_id
            );
            return Ok(Error::new(ErrorKind::Ledger, message)
                .with_hint("wait for the end of that run, then run the same command again"));
        }
        _ => "was begun with other files by another process in this moment",
    };
    Ok(Error::new(ErrorKind::Ledger, format!("job {} {message}", plan.job_id))
        .with_hint("give what its first run was given, or another --job-id"))
}

/// Holds the job, `in_turn` with other loads that begin. Another load that begins looks after what killed
/// jobs have left, which may take it a moment.
async fn hold_soon(session: &Session, ledger: &Ledger, job_id: &str, in_turn: bool) -> Result<Held> {
    let began = Instant::now();
    let mut held_then = Held::AtOnce;
    loop {
        // Sent together: one round trip.
        let turn = async { if in_turn { ledger.take_turn(session).await } else { Ok(()) } };
        let ((), held) = tokio::try_join!(turn, ledger.hold_job(session, job_id))?;
        if held {
            return Ok(held_then);
        }
        held_then = Held::Later;
        if in_turn {
            ledger.end_turn(session).await?;
        }
        if began.elapsed() >= HELD_WITHIN {
            return Ok(Held::ByOthers);
        }
        sleep(HELD_LOOK_EVERY).await;
    }
}

/// When the job came to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// With the first question.
    AtOnce,
    /// When others had left it.
    Later,
    /// It is not: somebody has it.
    ByOthers,
}
