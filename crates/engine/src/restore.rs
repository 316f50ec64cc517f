//! Puts back what loads have dropped and, being killed, could not put back themselves.

use crate::check::forget_left;
use crate::indexes::{Builds, is_answered, put_back_entries, with_its_hint};
use crate::load::being_restored;
use crate::predecessor::HELD_AGAIN_WITHIN;
use crate::statistics::Rebuilt;
use crate::tune::give_up_all;
use crate::{Connection, Context, history, predecessor};
use howdah_model::{Error, ErrorKind, Result};
use howdah_target::ledger::{Held, JobStatus, Ledger, Origin, Undo};
use howdah_target::session::Session;
use howdah_target::undo::put_back::LOCK_WITHIN_MS;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Indexes built side by side: as many as a load begins with at least.
const BUILDERS: u32 = 2;
/// How long the server, or a lock that another session holds, is waited for.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// A server that is busy does not notice at once that the process of a load is gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What came of the open entries of the journal: none of them is open any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// So many are back.
    pub back: usize,
    /// So many are not: their table is gone, say, or somebody has set something else meanwhile.
    pub not_back: usize,
}

/// Puts back what one job has dropped and tuned, or all of them.
///
/// # Errors
/// Ledger, when there is no ledger, or with the GRANT that helps, where the role may not read it, or when a load of the job is at
/// work; the first of what could not be put back; `Interrupted`, whereupon the server ends what it is at.
pub async fn restore(context: &Context, schema: &str, job: Option<&str>) -> Result<Restored> {
    context.connection.tell_of_waits(&context.listener);
    let restored = context.stop.guard(Box::pin(restore_all(context, schema, job))).await;
    // Builds whose answers nobody waits for any more.
    context.connection.end_now().await;
    restored.map_err(|error| match error.kind() {
        ErrorKind::Interrupted => error.with_hint("run the same command again, to put back what is missing"),
        _ => error,
    })
}

async fn restore_all(context: &Context, schema: &str, job: Option<&str>) -> Result<Restored> {
    let ledger = Ledger::new(schema);
    let connection = &context.connection;
    // Nothing can be put back where nothing can be written.
    connection.keep(connection.open_to_write().await?);
    expect_ledger(connection, schema).await?;
    // What cannot be read must not be taken for nothing.
    history::expect_journal(connection, schema).await?;
    let job_id = match job {
        Some(job) => Some(named(context, &ledger, schema, job).await?),
        None => None,
    };
    let checks = match &job_id {
        None => forget_left(context, schema, None).await?,
        Some(_) => 0,
    };
    let session = connection.open().await?;
    let undos = connection.attend(&session, ledger.open_undos(&session, job_id.as_deref())).await?;
    let held = connection.attend(&session, ledger.held(&session, job_id.as_deref())).await?;
    let count = checks + undos.len() + held.len();
    tell_moved(context, &undos, &held);
    let mut by_job: BTreeMap<String, Changes> = BTreeMap::new();
    for undo in undos {
        by_job.entry(undo.job_id.clone()).or_default().dropped.push(undo);
    }
    for held in held {
        by_job.entry(held.job_id.clone()).or_default().tuned.push(held);
    }
    let (mut first, mut gone) = (None, 0);
    for (job_id, entries) in by_job {
        match restore_job(context, &ledger, &job_id, entries).await {
            Ok(of_job) => gone += of_job,
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => context.warn(with_its_hint(&error)),
        }
    }
    first.map_or(Ok(Restored { back: count - gone, not_back: gone }), Err)
}

/// Where there is no ledger, somebody looks in the wrong place for what a load has left.
async fn expect_ledger(connection: &Connection, schema: &str) -> Result<()> {
    if history::exists(connection, schema).await? {
        return Ok(());
    }
    let message =
        format!("there is no ledger {schema} in {}: no load has noted anything there", connection.display());
    Err(Error::new(ErrorKind::Ledger, message).with_hint("give --to and --ledger as for the load"))
}

/// What a job has changed, in the order in which it is put back.
#[derive(Default)]
struct Changes {
    dropped: Vec<Undo>,
    tuned: Vec<Held>,
}

/// A job that is not in the ledger any more may still have something to put back.
async fn named(context: &Context, ledger: &Ledger, schema: &str, job: &str) -> Result<String> {
    match history::job(&context.connection, schema, job).await {
        Ok(row) => Ok(row.job_id),
        Err(error) => {
            let session = context.connection.open().await?;
            let undos = ledger.open_undos(&session, Some(job)).await?;
            let held = ledger.held(&session, Some(job)).await?;
            if undos.is_empty() && held.is_empty() { Err(error) } else { Ok(job.to_owned()) }
        }
    }
}

/// Takes the job for oneself, unless a load of it is at work.
pub(crate) async fn take_job(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
) -> Result<bool> {
    let began = Instant::now();
    while !context.connection.attend(session, ledger.take_job(session, job_id)).await? {
        if began.elapsed() >= GONE_WITHIN {
            return Ok(false);
        }
        context.stop.sleep(LOOK_EVERY).await?;
    }
    Ok(true)
}

/// A load whose lock of the job was lost, since somebody has ended that session, takes it again in a moment: it is no dead one. False
/// if it has.
async fn wait_for_holder(
    context: &Context,
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
) -> Result<bool> {
    let began = Instant::now();
    let looking = async {
        // Whoever has ended it, well or not, has said so.
        let row = ledger.find(session, job_id).await?;
        Ok((
            row.is_some_and(|row| row.status == JobStatus::Running),
            ledger.is_job_held(session, job_id).await?,
        ))
    };
    let (running, held) = context.connection.attend(session, looking).await?;
    if held || !running {
        return Ok(true);
    }
    while began.elapsed() < HELD_AGAIN_WITHIN {
        context.stop.sleep(LOOK_EVERY).await?;
        if context.connection.attend(session, ledger.is_job_held(session, job_id)).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn at_work(job_id: &str) -> Error {
    let message = format!("job {job_id} is at work: it puts back what it has dropped when it ends");
    Error::new(ErrorKind::Ledger, message).with_hint("wait for its end; if it hangs, end its process first")
}

/// How many entries are closed though what they are of is not back.
async fn restore_job(context: &Context, ledger: &Ledger, job_id: &str, changes: Changes) -> Result<usize> {
    // The lock is the connection's: it is given up with it.
    let session = context.connection.open().await?;
    if !wait_for_holder(context, &session, ledger, job_id).await?
        || !take_job(context, &session, ledger, job_id).await?
    {
        // Loads hold it beside one another, but not beside whoever puts back.
        let by_load = context.connection.attend(&session, ledger.hold_job(&session, job_id)).await?;
        return Err(if by_load { at_work(job_id) } else { being_restored(job_id) });
    }
    predecessor::end_all(context, &session, ledger, job_id).await?;
    let rebuilt = Rebuilt::of(&changes.dropped);
    let how = Builds { sessions: BUILDERS, tuned: true, pausing: None, lock_within_ms: LOCK_WITHIN_MS };
    let dropped = put_back_entries(context, ledger, changes.dropped, how, RETRY_FOR).await;
    if is_answered(&dropped) {
        rebuilt.analyze(context).await;
    }
    let tuned = give_up_all(context, ledger, changes.tuned, RETRY_FOR).await;
    match (dropped, tuned) {
        // The command ends with the first, and the other one is as open.
        (Err(dropped), Err(tuned)) => {
            context.warn(with_its_hint(&tuned));
            Err(dropped)
        }
        (dropped, tuned) => Ok(dropped? + tuned?),
    }
}

/// Where the ledger came by a dump, the user should know by what the tables are found.
pub(crate) fn tell_moved(context: &Context, dropped: &[Undo], tuned: &[Held]) {
    let mut origins = dropped.iter().map(|undo| undo.origin).chain(tuned.iter().map(|held| held.origin));
    if origins.any(|origin| origin == Origin::Elsewhere) {
        context.tell("the ledger has come from another database: tables are found by their names");
    }
}
