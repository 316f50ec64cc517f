//! Tunes tables and server before the first row and puts everything back behind the last, after a failure and
//! after Ctrl-C.
//!
//! First in, last out: indexes are dropped and built again in between.

use crate::indexes::{restore_command, with_hint, with_its_hint};
use crate::pipeline::Run;
use crate::retry::{Directive, Patience, directive, patiently};
use crate::tries::Tries;
use crate::{Context, Stop};
use howdah_model::{Error, ErrorKind, Event, Relation, Result, Tune, TuneScope, sqlstate};
use howdah_target::ledger::{Held, Ledger};
use howdah_target::session::Session;
use howdah_target::sql::quote_relation;
use howdah_target::tune::server::{self, Change, GivingUp, Holding};
use howdah_target::tune::{GivenUp, table, tuners};
use howdah_target::upkeep;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Of more tables than this, it is not told of each.
const TOLD_MAX: usize = 5;
/// The same of what is put back: as many as there are settings of the server, and some.
const PUT_BACK_TOLD_MAX: usize = 12;
/// Of tables with many partitions, so many changes are given up in one transaction: it holds as many locks.
const GIVEN_UP_AT_ONCE: usize = 100;
/// How long a load of another ledger is waited for that tunes the server.
const OTHER_WITHIN: Duration = Duration::from_secs(5);
/// How long a server or a lock is waited for when somebody waits for the end of the load.
const AFTER_STOP: Duration = Duration::from_secs(4);

/// Changes what the plan says. What is unsafe as it is, is told.
///
/// # Errors
/// What keeps the server from being tuned, which was asked for. A table that is not free is left as it is,
/// and told.
pub(crate) async fn apply(run: &Run) -> Result<()> {
    for risk in &run.plan.tuning.unsafe_as_it_is {
        run.tell(format!("the server as it is: {risk}"));
    }
    let Some(ledger) = &run.ledger else { return Ok(()) };
    let mut kept_away = Vec::new();
    for relation in tables(run) {
        let work = || async {
            let session = run.context.connection.open().await?;
            let holding = table::hold(&session, ledger, &run.plan.job_id, &relation);
            run.context.connection.attend(&session, holding).await
        };
        run.tuned.store(true, Relaxed);
        match once_or_again(run, work).await {
            Ok(0) => {}
            Ok(_) => {
                run.tally.tuned(format!("autovacuum_enabled of {relation} = false"));
                kept_away.push(relation.to_string());
            }
            Err(error) if error.sqlstate().is_some() => {
                run.tell(format!("autovacuum of {relation} stays as it is: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    if !kept_away.is_empty() {
        let more = kept_away.len().saturating_sub(TOLD_MAX);
        kept_away.truncate(TOLD_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        run.tell(format!("autovacuum is kept away while rows come: {}{more}", kept_away.join(", ")));
    }
    apply_to_server(run, ledger).await
}

/// The tables whose options are to be changed, once each: what the plan lists are their leaves.
pub(crate) fn tables(run: &Run) -> BTreeSet<Relation> {
    let of_tables = run.plan.tuning.settings.iter().filter(|setting| setting.scope == TuneScope::Table);
    of_tables.filter_map(|setting| setting.relation.clone()).collect()
}

async fn apply_to_server(run: &Run, ledger: &Ledger) -> Result<()> {
    let of_server = run.plan.tuning.settings.iter().filter(|setting| setting.scope == TuneScope::Server);
    let changes: Vec<Change> = of_server
        .map(|setting| Change { name: setting.name.clone(), during: setting.during.clone() })
        .collect();
    if run.plan.tuning.level < Tune::Server {
        return Ok(());
    }
    let work = || async {
        let session = run.context.connection.open_new().await?;
        let mut other = run.context.connection.attend(&session, tuners::other(&session, ledger)).await?;
        let mut set = Holding::default();
        if other.is_some() || changes.is_empty() {
            return Ok((None, set, other));
        }
        let holding = async {
            tuners::mark(&session, ledger).await?;
            // Of two that have looked at the same time, none tunes.
            other = tuners::other(&session, ledger).await?;
            if other.is_none() {
                run.tuned.store(true, Relaxed);
                set = server::hold(&session, ledger, &run.plan.job_id, &changes).await?;
            }
            Ok(())
        };
        run.context.connection.attend(&session, holding).await?;
        Ok((Some(session), set, other))
    };
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let (session, set, other) = match patiently(&run.context, retry_for, work).await {
        // The load needs none of them.
        Err(error) if error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => {
            run.warn(format!(
                "the server's settings stay as they are: another load is setting them: {error}"
            ));
            return Ok(());
        }
        done => done?,
    };
    if let Some(database) = other {
        run.warn(format!("the server's settings stay as they are: {}", tuners::says(&database)));
        return Ok(());
    }
    let Some(session) = session else { return Ok(()) };
    // It keeps loads of other ledgers away until all is put back.
    *run.tuner.lock() = Some(session);
    for change in &set.not_taken {
        run.warn(format!(
            "{} of the server stays as it is: it does not take {}, which an earlier run of this job has chosen",
            change.name, change.during
        ));
    }
    let set: Vec<String> =
        set.set.iter().map(|change| format!("{} = {}", change.name, change.during)).collect();
    for setting in &set {
        run.tally.tuned(setting.replacen(" = ", " of the server = ", 1));
    }
    run.tell(format!("set for the whole server while rows come: {}", set.join(", ")));
    Ok(())
}

/// Where the session that marks the load is gone, another takes its place: a load of another ledger would
/// take what is set now for what was there before, and this one could not put it back as long as that one
/// lasts. A server that gives no answer is asked the next time.
pub(crate) async fn mark_again(run: &Run, tries: &mut Tries) {
    let Some(ledger) = run.ledger.as_ref() else { return };
    if !run.tuner.lock().as_ref().is_some_and(Session::is_closed) || !tries.is_due() {
        return;
    }
    let session = match run.context.connection.open_new().await {
        Ok(session) => session,
        Err(error) => return tries.failed(&error),
    };
    tries.opened();
    if tuners::mark(&session, ledger).await.is_ok() {
        run.tuner.lock().replace(session);
    }
}

/// A table that is not free is no reason to wait: a lost connection is one to try again.
async fn once_or_again<T, W: Future<Output = Result<T>>>(run: &Run, work: impl Fn() -> W) -> Result<T> {
    match run.context.stop.guard(work()).await {
        Err(error)
            if error.sqlstate() != Some(sqlstate::LOCK_NOT_AVAILABLE)
                && directive(&error) != Directive::GiveUp =>
        {
            patiently(&run.context, Duration::from_millis(run.plan.job.retry_for_ms), &work).await
        }
        done => done,
    }
}

/// Puts back what this job holds, on the session of its last run ([`last_of_job`]).
pub(crate) async fn put_back(run: &Run, session: &Session, failed: bool) {
    let Some(ledger) = run.ledger.as_ref().filter(|_| run.tuned.load(Relaxed)) else { return };
    let context = Context { stop: Stop::default(), ..run.context.clone() };
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    let retry_for = if failed { AFTER_STOP.min(retry_for) } else { retry_for };
    let job_id = &run.plan.job_id;
    let work = async {
        let held = context.connection.attend(session, ledger.own_held(session, job_id)).await?;
        give_up_all(&context, ledger, held, retry_for).await.map(drop)
    };
    if let Err(error) = in_time(failed, work).await {
        let restore = restore_command(&context, ledger, job_id);
        run.warn(format!("{error}; {restore}, or the next load, puts back what was tuned"));
    }
    warn_of_replaced(run, session).await;
    run.tuner.lock().take();
}

/// Files of settings do not go from one server to another: what was set stays on the one that another has
/// taken the place of.
async fn warn_of_replaced(run: &Run, session: &Session) {
    let names = run.tally.tuned_of_server();
    if names.is_empty() || !run.is_on_another_server(session).await {
        return;
    }
    let resets: Vec<String> = names.iter().map(|name| format!("ALTER SYSTEM RESET {name}")).collect();
    run.warn(format!(
        "another server took the place of the one that this load began on, which keeps in its postgresql.auto.conf what was set there for the \
         load ({}): before it serves again, unless it is made from the new one, set that as it was, or {}",
        names.join(", "),
        resets.join("; ")
    ));
}

/// A session that has the job for itself, which `session` has held until here; none while another run of it
/// is at work, which then has to put back what they share. Whether that run lives cannot be told: a session
/// whose client was cut off holds the job until the server finds out.
pub(crate) async fn last_of_job(run: &Run, session: Session, failed: bool) -> Option<Session> {
    let ledger = run.ledger.as_ref()?;
    let (context, job_id) = (Context { stop: Stop::default(), ..run.context.clone() }, &run.plan.job_id);
    let last = in_time(failed, is_last(&context, ledger, job_id, session)).await;
    let restore = || restore_command(&context, ledger, job_id);
    match &last {
        Ok(Some(_)) => {}
        Ok(None) => run.warn(format!(
            "another run of this job holds it still, and is to put back what they have changed; if that run is dead, {}, or the \
             next load, puts back what the job has left",
            restore()
        )),
        Err(error) => run.warn(format!("{error}; {} puts back what the job has left", restore())),
    }
    last.ok().flatten()
}

/// Somebody waits for the end of a load that has failed.
async fn in_time<T>(failed: bool, work: impl Future<Output = Result<T>>) -> Result<T> {
    match failed {
        true => tokio::time::timeout(AFTER_STOP * 2, work).await.unwrap_or_else(|_| Err(late())),
        false => work.await,
    }
}

fn late() -> Error {
    Error::new(
        ErrorKind::ConnectionLost,
        "what was tuned or left is not put back yet: the server is slow to answer",
    )
}

async fn is_last(
    context: &Context,
    ledger: &Ledger,
    job_id: &str,
    session: Session,
) -> Result<Option<Session>> {
    let connection = &context.connection;
    if !session.is_closed() {
        let alone = connection.attend(&session, ledger.hold_job_alone(&session, job_id)).await;
        if let Ok(alone) = alone {
            return Ok(alone.then_some(session));
        }
    }
    drop(session);
    let session = connection.open().await?;
    let alone = connection.attend(&session, ledger.take_job(&session, job_id)).await?;
    Ok(alone.then_some(session))
}

/// Gives these of one job up, the newest first, and tells what came of each. Returns how many are not as they
/// were all the same.
///
/// # Errors
/// The first of what could not be put back; the others are told by warnings.
pub(crate) async fn give_up_all(
    context: &Context,
    ledger: &Ledger,
    held: Vec<Held>,
    retry_for: Duration,
) -> Result<usize> {
    let job_id = held.first().map_or(String::new(), |held| held.job_id.clone());
    let (of_tables, of_server): (Vec<Held>, Vec<Held>) =
        held.into_iter().partition(|held| held.thing.table.is_some());
    let (mut first, mut others) = (None, 0);
    let mut note = |done: Result<usize>| match done {
        Ok(not_back) => others += not_back,
        Err(error) => {
            let error = with_hint(error, context, ledger, &job_id);
            match &first {
                None => first = Some(error),
                Some(_) => context.warn(with_its_hint(&error)),
            }
        }
    };
    if !of_server.is_empty() {
        let done = give_up_of_server(context, ledger, &of_server, retry_for).await;
        note(done.map(|given| tell_given(context, &of_server.iter().zip(given).collect::<Vec<_>>())));
    }
    give_up_of_tables(context, ledger, &of_tables, retry_for, note).await;
    first.map_or(Ok(others), Err)
}

/// A load of another ledger that tunes the server may have looked at it only, or be about to end.
async fn give_up_of_server(
    context: &Context,
    ledger: &Ledger,
    held: &[Held],
    retry_for: Duration,
) -> Result<Vec<GivenUp>> {
    let connection = &context.connection;
    let mut patience = Patience::new(OTHER_WITHIN.min(retry_for));
    loop {
        let work = || async {
            let session = connection.open().await?;
            connection.attend(&session, server::give_up(&session, ledger, held)).await
        };
        let not_yet = match patiently(context, retry_for, work).await? {
            GivingUp::Done(given) => return Ok(given),
            GivingUp::NotYet(error) => error,
        };
        let Some(delay) = patience.next_delay() else { return Err(not_yet) };
        context.listener.on_event(&Event::Retry { reason: not_yet.to_string(), delay });
        context.stop.sleep(delay).await?;
    }
}

/// What cannot be given up with others is given up alone.
async fn give_up_of_tables(
    context: &Context,
    ledger: &Ledger,
    held: &[Held],
    retry_for: Duration,
    mut note: impl FnMut(Result<usize>),
) {
    let connection = &context.connection;
    let mut session = None;
    let mut given_up = Vec::new();
    let mut left: Vec<&[Held]> = held.chunks(GIVEN_UP_AT_ONCE).rev().collect();
    while let Some(some) = left.pop() {
        let spare = tokio::sync::Mutex::new(session.take());
        let work = || async {
            let mut spare = spare.lock().await;
            let session = match spare.take().filter(|session: &Session| !session.is_closed()) {
                Some(session) => session,
                None => connection.open().await?,
            };
            let done = connection.attend(&session, table::give_up(&session, ledger, some)).await;
            if done.as_ref().err().is_none_or(|error| error.sqlstate().is_some()) {
                *spare = Some(session);
            }
            done
        };
        let done = if some.len() > 1 { work().await } else { patiently(context, retry_for, work).await };
        match done {
            Ok(given) => given_up.extend(some.iter().zip(given)),
            Err(_) if some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                left.extend([second, first]);
            }
            Err(error) => note(Err(error)),
        }
        session = spare.into_inner();
    }
    note(Ok(tell_given(context, &given_up)));
}

fn reset_sql(held: &Held) -> String {
    let thing = &held.thing;
    let relation = thing.table.as_ref().map(|(_, relation)| quote_relation(relation)).unwrap_or_default();
    format!("ALTER TABLE {relation} RESET ({})", thing.name)
}

/// Tells what came of them. Returns how many are not as they were, and not told by an error.
fn tell_given(context: &Context, given_up: &[(&Held, GivenUp)]) -> usize {
    let mut back = Vec::new();
    for (held, given) in given_up {
        let thing = &held.thing;
        match given {
            GivenUp::PutBack => {
                let value =
                    held.before.value.as_deref().map_or("not set".to_owned(), |value| format!("= {value}"));
                back.push(format!("{thing} {value}"));
            }
            GivenUp::HeldByAnother => {
                context.tell(format!("{thing} is not put back yet: another load uses it, and puts it back when it ends"));
            }
            GivenUp::SetByAnother => context.warn(format!("{thing} is not put back: somebody has set it to something else meanwhile")),
            GivenUp::TableNew => context.warn(format!(
                "{thing} is not put back: the table is gone, and a new one of that name is set to {} as well; if that was copied \
                 from the old one, {}",
                held.during,
                reset_sql(held)
            )),
            GivenUp::OfAnotherServer => context.warn(format!(
                "{thing} stays as it is: it was set in another database, from which the ledger has come, and howdah restore puts it \
                 back there"
            )),
            GivenUp::TableGone | GivenUp::WasThere | GivenUp::ByAnother => {}
        }
    }
    if !back.is_empty() {
        let more = back.len().saturating_sub(PUT_BACK_TOLD_MAX);
        back.truncate(PUT_BACK_TOLD_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        context.tell(format!("put back: {}{more}", back.join(", ")));
    }
    let is_not_back = |given: &GivenUp| {
        use GivenUp::{HeldByAnother, OfAnotherServer, SetByAnother, TableGone, TableNew};
        matches!(given, HeldByAnother | OfAnotherServer | SetByAnother | TableGone | TableNew)
    };
    given_up.iter().filter(|(_, given)| is_not_back(given)).count()
}

/// Writes what is in memory alone to the disk, when all is done and nobody waits for the disk on behalf of
/// the load.
pub(crate) async fn checkpoint(run: &Run) {
    let tuned = run.plan.tuning.settings.iter().any(|setting| setting.scope == TuneScope::Server);
    if !tuned {
        return;
    }
    let work = async {
        let session = run.context.connection.open().await?;
        let rights = server::rights(&session).await?;
        match rights.checkpoints {
            true => run.context.connection.attend(&session, upkeep::checkpoint(&session)).await,
            false => Ok(()),
        }
    };
    if let Err(error) = run.context.stop.guard(work).await {
        run.warn(format!("CHECKPOINT was not done: {}; all rows are in", error.message()));
    }
}
