//! Puts back what loads have dropped and, being killed, could not put back themselves.

use crate::again::option;
use crate::check::forget_left;
use crate::disk::server_places;
use crate::indexes::with_its_hint;
use crate::left_behind::Left;
use crate::load::being_restored;
use crate::predecessor::HELD_AGAIN_WITHIN;
use crate::{Connection, Context, history, predecessor};
use howdah_model::{Error, ErrorKind, Result};
use howdah_target::ledger::{Believed, JobStatus, Ledger};
use howdah_target::session::Session;
use howdah_target::sql::quote_ident;
use howdah_target::undo::put_back::LOCK_WITHIN_MS;
use std::time::{Duration, Instant};

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

/// Puts back what one job has dropped and tuned, or all of them. `trusted`: the ledger's owner may be any
/// role, for somebody has named that ledger.
///
/// # Errors
/// Ledger, when there is no ledger, when it is another role's and not trusted, or with the GRANT that helps,
/// where the role may not read it, or when a load of the job is at work; the first of what could not be put
/// back; `Interrupted`, whereupon the server ends what it is at.
pub async fn restore(context: &Context, schema: &str, trusted: bool, job: Option<&str>) -> Result<Restored> {
    context.connection.tell_of_waits(&context.listener);
    let restored = context.stop.guard(Box::pin(restore_all(context, schema, trusted, job))).await;
    // Builds whose answers nobody waits for any more.
    context.connection.end_now().await;
    restored.map_err(|error| match error.kind() {
        ErrorKind::Interrupted => error.with_hint("run the same command again, to put back what is missing"),
        _ => error,
    })
}

async fn restore_all(context: &Context, schema: &str, trusted: bool, job: Option<&str>) -> Result<Restored> {
    let ledger = Ledger::new(schema);
    let connection = &context.connection;
    // Nothing can be put back where nothing can be written.
    connection.keep(connection.open_to_write().await?);
    // Before a row of it is read: what looks like its tables may be views.
    if !trusted {
        expect_own(connection, &ledger, Believed::Journal).await??;
    }
    expect_ledger(connection, schema).await?;
    // What cannot be read must not be taken for nothing.
    history::expect_journal(connection, schema).await?;
    let job_id = match job {
        Some(job) => Some(named(context, &ledger, schema, job).await?),
        None => None,
    };
    let checks = match &job_id {
        None => forget_left(context, schema, trusted, None).await?,
        Some(_) => 0,
    };
    let session = connection.open().await?;
    let left = connection.attend(&session, Left::read(&ledger, &session, job_id.as_deref())).await?;
    let count = checks + left.len();
    left.tell_moved(context);
    learn_disks(context, &session, &left).await;
    // A pool may have two: for the one that takes the job, and what it puts back.
    connection.keep(session);
    let restoring = async {
        let (mut first, mut gone) = (None, 0);
        for (job_id, left) in left.by_job() {
            match restore_job(context, &ledger, &job_id, left).await {
                Ok(of_job) => gone += of_job,
                Err(error) if first.is_none() => first = Some(error),
                Err(error) => context.warn(with_its_hint(&error)),
            }
        }
        first.map_or(Ok(Restored { back: count - gone, not_back: gone }), Err)
    };
    connection.watching_disks(Box::pin(restoring)).await
}

/// Which disks the indexes are built on. What cannot be asked is not looked at.
async fn learn_disks(context: &Context, session: &Session, left: &Left) {
    let tables: Vec<_> = left.dropped.iter().map(|undo| &undo.change.relation).collect();
    if tables.is_empty() {
        return;
    }
    let places = server_places(context, session, &tables, false);
    if let Ok(places) = context.connection.attend(session, places).await {
        context.connection.disks().set_places(places.known);
    }
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

/// What a ledger says, the journal's statements or what a job was told to do, is done with all rights of
/// whoever believes it. The owner of a table is not trusted here: no trigger of it would run anyway, as in a
/// load.
///
/// The inner error: strangers own it or may write it.
///
/// # Errors
/// Those of connection and session.
pub(crate) async fn expect_own(
    connection: &Connection,
    ledger: &Ledger,
    believed: Believed,
) -> Result<Result<()>> {
    let session = connection.open().await?;
    let asking =
        async { tokio::try_join!(ledger.strangers(&session, &[]), ledger.writers(&session, believed)) };
    let (owners, writers) = connection.attend(&session, asking).await?;
    connection.keep(session);
    let (what, whom) = match (&owners[..], &writers[..]) {
        ([], []) => return Ok(Ok(())),
        ([], writers) => (format!("may be written by {}", writers.join(", ")), "them"),
        (owners, _) => (format!("belongs to {}", owners.join(", ")), "its owner"),
    };
    let schema = quote_ident(ledger.schema());
    let message = format!(
        "the ledger in schema {schema} {what}, and what it says would run with this role's rights: it has to be named"
    );
    let hint = format!(
        "give the --ledger of the load; if that was this one and you trust {whom}, add {}",
        option("--ledger", ledger.schema())
    );
    Ok(Err(Error::new(ErrorKind::Ledger, message).with_hint(hint)))
}

/// A job that is not in the ledger any more may still have something to put back.
async fn named(context: &Context, ledger: &Ledger, schema: &str, job: &str) -> Result<String> {
    match history::job(&context.connection, schema, job).await {
        Ok(row) => Ok(row.job_id),
        Err(error) => {
            let session = context.connection.open().await?;
            let left = Left::read(ledger, &session, Some(job)).await?;
            if left.is_empty() { Err(error) } else { Ok(job.to_owned()) }
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

/// A load whose lock of the job was lost, since somebody has ended that session, takes it again in a moment:
/// it is no dead one. False if it has.
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
async fn restore_job(context: &Context, ledger: &Ledger, job_id: &str, left: Left) -> Result<usize> {
    // The lock is the connection's: it is given up with it.
    let session = context.connection.open().await?;
    if !wait_for_holder(context, &session, ledger, job_id).await?
        || !take_job(context, &session, ledger, job_id).await?
    {
        // Loads hold it beside one another, but not beside whoever puts back.
        let by_load = context.connection.attend(&session, ledger.hold_job(&session, job_id)).await?;
        return Err(if by_load { at_work(job_id) } else { being_restored(job_id) });
    }
    // A load that is done has left its job, and renews statistics.
    let row = context.connection.attend(&session, ledger.find(&session, job_id)).await?;
    if row.is_none_or(|row| row.status != JobStatus::Done) {
        predecessor::end_all(context, &session, ledger, job_id).await?;
    }
    match left.put_back(context, ledger, true, LOCK_WITHIN_MS, RETRY_FOR).await {
        // The command ends with the first, and the other one is as open.
        (Err(dropped), Err(tuned)) => {
            context.warn(with_its_hint(&tuned));
            Err(dropped)
        }
        (dropped, tuned) => Ok(dropped? + tuned?),
    }
}
