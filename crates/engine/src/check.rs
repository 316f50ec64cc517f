//! Reads everything, says what the tables would have against it, and keeps nothing.
//!
//! The records go the way of a load that skips what is bad, into staging tables that have the types of the
//! tables' columns and no constraint; so field counts, characters, types, lengths and NULLs are found where
//! they are found anyway. What is left is asked by queries that read ([`findings`]). In the end the staging
//! tables are dropped and the ledger forgets the job; what a kill leaves behind, the next check, load or
//! `howdah restore` takes away ([`forget_left`]).

pub(crate) mod findings;
mod kept;
mod report;
pub(crate) mod reread;

use crate::beforehand::{warn_of_computed, warn_of_other_tables, warn_of_record_like};
use crate::ending::ended_by;
use crate::feed::Opened;
use crate::guards;
use crate::indexes::restore_command;
use crate::load::{FAILED_WITHIN, STOPPED_WITHIN, being_restored, guarded};
use crate::locate::line::with_line;
use crate::partitioner::Partitioner;
use crate::pipeline::{self, Run};
use crate::plan::{Planned, ledger_of};
use crate::rejected::RejectFile;
use crate::{Context, arrival, finish, history, rejected, rejects, retry};
use findings::Findings;
use howdah_model::summary::Status;
use howdah_model::{CheckReport, Error, ErrorKind, Event, Plan, Relation, Result};
use howdah_target::ledger::{Believed, Ledger};
use howdah_target::session::Session;
use howdah_target::undo::put_back::LOCK_WITHIN_MS;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How a check ended: always with an account, and with an error unless everything was read.
pub struct Checked {
    /// The account.
    pub report: CheckReport,
    /// Files of bad records that were written, each with their number.
    pub written: Vec<(PathBuf, u64)>,
    /// Why it did not finish.
    pub error: Option<Error>,
}

/// Checks what the plan says, to the end. Bad records are written to `reject_file`, if one is named.
///
/// # Errors
/// What happens before the first chunk: a ledger that cannot be opened, a connection that is refused. What
/// ends a check under way is in [`Checked`].
pub async fn check(context: &Context, planned: Planned, reject_file: Option<&Path>) -> Result<Checked> {
    context.connection.tell_of_waits(&context.listener);
    let Planned { plan, layout, open, opened, .. } = planned;
    let Some(ledger) = ledger_of(&plan.job) else {
        return Err(Error::new(
            ErrorKind::Usage,
            "a check needs a schema of the database for its staging tables",
        )
        .with_hint("leave out --ledger none"));
    };
    reject_file.map_or(Ok(()), |path| rejected::expect_no_source(&plan, path))?;
    let reject_file = reject_file.map(|path| RejectFile::named(&plan, path));
    let retry_for = Duration::from_millis(plan.job.retry_for_ms);
    let noted = AtomicBool::new(false);
    let begin = || Box::pin(begin(context, &ledger, reject_file.is_some(), &plan, &noted));
    for message in &plan.warnings {
        context.warn(message.clone());
    }
    let mut session = match retry::patiently(context, retry_for, begin).await {
        Ok(begun) => begun,
        Err(error) => {
            if noted.load(Relaxed) {
                let _ = tokio::time::timeout(STOPPED_WITHIN, forget(context, &ledger, &plan.job_id)).await;
            }
            context.connection.end_now().await;
            return Err(error);
        }
    };
    context.listener.on_event(&Event::Planned { plan: Box::new(plan.clone()) });
    let partitioner = Partitioner::new(None, Vec::new())?;
    let run = Run::new(context, plan, layout, Some(ledger.clone()), HashMap::new(), (open, partitioner));
    let run = Arc::new(run);
    // They are told already.
    run.plan.warnings.iter().for_each(|message| _ = run.tally.warn(message));
    warn_of_computed(&run);
    warn_of_other_tables(&run);
    warn_of_record_like(&run);
    let looked = match guards::begin(&run, &session).await {
        Ok(mut guard) => {
            let steps = Box::pin(read_and_ask(&run, &ledger, reject_file.is_some(), opened));
            let looking = guarded(&run, &mut session, &mut guard, steps);
            context.connection.watching_disks(Box::pin(looking)).await
        }
        Err(refused) => Err(refused),
    };
    Ok(Box::pin(account(&run, &ledger, reject_file.as_ref(), session, looked)).await)
}

/// Everything is made that the first chunk needs; the session holds the job. `noted` is set before the ledger
/// may know of it.
async fn begin(
    context: &Context,
    ledger: &Ledger,
    reads_rejects: bool,
    plan: &Plan,
    noted: &AtomicBool,
) -> Result<Session> {
    let session = context.connection.open_to_write().await?;
    let opening = async {
        ledger.ensure(&session).await?;
        ledger.check_rights(&session, true).await?;
        if reads_rejects {
            ledger.expect_readable_records(&session).await?;
        }
        if !ledger.hold_job(&session, &plan.job_id).await? {
            return Err(being_restored(&plan.job_id));
        }
        noted.store(true, Relaxed);
        if !ledger.begin(&session, plan).await? {
            return Err(being_restored(&plan.job_id));
        }
        arrival::make_staging(&session, ledger, plan, true).await
    };
    context.connection.attend(&session, opening).await?;
    if let Err(error) = forget_left(context, ledger.schema(), false, Some(&plan.job_id)).await {
        context.tell(format!("what other checks have left behind is not dropped: {error}"));
    }
    Ok(session)
}

async fn read_and_ask(run: &Arc<Run>, ledger: &Ledger, keeps: bool, opened: Vec<Opened>) -> Result<Findings> {
    Box::pin(pipeline::run(run, opened)).await?;
    Box::pin(finish::finish(run)).await?;
    rejects::check(run)?;
    findings::ask(run, ledger, keeps).await
}

/// Makes up the account, then takes away all that was made for it.
async fn account(
    run: &Run,
    ledger: &Ledger,
    reject_file: Option<&RejectFile>,
    session: Session,
    looked: Result<Findings>,
) -> Checked {
    let (findings, error) = match looked {
        Ok(findings) => (findings, None),
        Err(error) => (Findings::default(), Some(error)),
    };
    let status = error.as_ref().map_or(Status::Done, ended_by);
    let telling = report::report(run, ledger, findings, status);
    let (mut report, mut error) = match (error, status) {
        (None, _) => match telling.await {
            Ok(report) => (report, None),
            Err(failed) => (report::bare(run, Status::Failed), Some(failed)),
        },
        // What was found so far is worth telling, but not worth waiting for.
        (error, _) => match tokio::time::timeout(within(status), telling).await {
            Ok(Ok(report)) => (report, error),
            _ => (report::bare(run, status), error),
        },
    };
    let mut written = Vec::new();
    if let Some(file) = reject_file.filter(|_| status != Status::Interrupted) {
        match run.context.stop.guard(write_rejects(run, ledger, file)).await {
            Ok(files) => written = files,
            Err(failed) => error = error.or(Some(failed)),
        }
    }
    let status = error.as_ref().map_or(status, ended_by);
    // Until here it held the job.
    drop(session);
    let forgetting = forget(&run.context, ledger, &run.plan.job_id);
    let forgotten = match status {
        Status::Done => forgetting.await,
        _ => tokio::time::timeout(within(status), forgetting).await.unwrap_or_else(|_| Err(late())),
    };
    if let Err(left) = forgotten {
        let restore = restore_command(&run.context, ledger, &run.plan.job_id);
        run.warn(format!("a staging table is left: {restore} drops it"));
        error = error.or(Some(left));
    }
    let error = match error {
        Some(error) => Some(with_line(run, error).await),
        None => None,
    };
    report.warnings = run.tally.summary(&run.plan, status).warnings;
    report.status = error.as_ref().map_or(Status::Done, ended_by);
    Checked { report, written, error }
}

/// How long a check that did not end well may take to clear up.
fn within(status: Status) -> Duration {
    match status {
        Status::Interrupted => STOPPED_WITHIN,
        Status::Done | Status::Failed => FAILED_WITHIN,
    }
}

pub(crate) async fn write_rejects(
    run: &Run,
    ledger: &Ledger,
    file: &RejectFile,
) -> Result<Vec<(PathBuf, u64)>> {
    let (connection, schema) = (&run.context.connection, ledger.schema());
    let row = history::job(connection, schema, &run.plan.job_id).await?;
    let replaced = rejected::replace_files(connection, schema, &row, file).await?;
    replaced.warnings(connection, schema, &row).into_iter().for_each(|message| run.warn(message));
    Ok(replaced.written)
}

fn late() -> Error {
    Error::new(ErrorKind::ConnectionLost, "the server did not answer in time")
}

/// Drops what a check has made, and forgets it.
async fn forget(context: &Context, ledger: &Ledger, job_id: &str) -> Result<()> {
    let once = || async {
        let session = context.connection.open().await?;
        context.connection.attend(&session, ledger.end_check(&session, job_id, 0)).await
    };
    let left_alone = match context.stop.check() {
        Ok(()) => retry::patiently(context, FAILED_WITHIN, once).await?,
        // The flag that stopped the check would stop a patient try before it began.
        Err(_) => once().await?,
    };
    warn_of_others(context, job_id, left_alone);
    Ok(())
}

/// Tables that the ledger says a check has made.
fn warn_of_others(context: &Context, job_id: &str, tables: Vec<Relation>) {
    for table in tables {
        context.warn(format!(
            "the ledger says that {job_id}, a check, has made the table {table}, which it has not: the table is left alone; see who may write \
             to the ledger"
        ));
    }
}

/// Takes away what checks have left whose process is gone; returns how many there were. Where strangers may
/// have written that these are checks, and the ledger is not `trusted`, it stays.
///
/// # Errors
/// Those of the connection and the ledger.
pub(crate) async fn forget_left(
    context: &Context,
    schema: &str,
    trusted: bool,
    but: Option<&str>,
) -> Result<usize> {
    let (ledger, connection) = (Ledger::new(schema), &context.connection);
    let session = connection.open().await?;
    let working = async {
        let (mut forgotten, mut first) = (0, None);
        let (checks, strangers) =
            tokio::try_join!(ledger.checks(&session), ledger.writers(&session, Believed::Jobs))?;
        let is_other = |job_id: &&String| but != Some(job_id.as_str());
        if let Some(job_id) = checks.iter().find(is_other).filter(|_| !trusted && !strangers.is_empty()) {
            if !ledger.is_job_held(&session, job_id).await? {
                context.tell(format!(
                    "what {job_id} has left stays, as {} may have written that it is a check; {} drops it",
                    strangers.join(", "),
                    restore_command(context, &ledger, job_id)
                ));
            }
            return Ok(0);
        }
        for job_id in checks {
            // Held by a session that is gone with its process.
            if but == Some(&job_id) || !ledger.take_job(&session, &job_id).await? {
                continue;
            }
            let ended = ledger.end_check(&session, &job_id, LOCK_WITHIN_MS).await;
            ledger.leave_job(&session, &job_id).await?;
            match ended {
                Ok(left_alone) => warn_of_others(context, &job_id, left_alone),
                Err(error) => {
                    first.get_or_insert(error);
                    continue;
                }
            }
            context.tell(format!("{job_id} was killed: what it has left is dropped"));
            forgotten += 1;
        }
        first.map_or(Ok(forgotten), Err)
    };
    let forgotten = connection.attend(&session, working).await?;
    connection.keep(session);
    Ok(forgotten)
}
