//! `howdah check`: reads everything, says what the tables would have against it, and keeps nothing.

use super::Process;
use super::load::json;
use crate::bad_records::{OnErrorName, Purpose};
use crate::options::{IndexesName, LoadOptions, TriggersName};
use crate::progress::Progress;
use crate::rejected::Rejected;
use crate::units::show_count;
use crate::{Exit, checked};
use howdah_engine::model::{
    CheckReport, Error, ErrorKind, ErrorReport, IndexesChoice, Job, LedgerChoice, OnError, Result,
    TriggersChoice, Tune, Verify,
};
use serde::Serialize;
use std::sync::Arc;

/// Plans, checks, and prints what was found.
///
/// # Errors
/// What happens before the first chunk; what ends a check under way is printed after the account.
pub async fn check(mut options: LoadOptions, process: &Process<'_>) -> Result<Exit> {
    expect_none_for_rows(&options)?;
    options.bad_records.purpose = Purpose::Check;
    let printer = process.printer;
    let settings = process.resolve(options)?;
    let reject_file = settings.reject_file.clone();
    let connection = process.connect_again(settings.access.clone()).await?;
    let (job, _) = process.stop.guard(Rejected::prepare(settings, &connection)).await?;
    let progress = Arc::new(Progress::new(printer.clone())?);
    let telling = progress.telling();
    let context = process.context(connection, progress.clone());
    let planned = howdah_engine::plan(&context, only_checked(job)).await?;
    let outcome = howdah_engine::check(&context, planned, reject_file.as_deref()).await;
    drop(telling);
    if !printer.json() || outcome.is_err() {
        progress.wait_until_written();
    }
    let outcome = outcome?;
    for (path, records) in &outcome.written {
        printer.say(&format!("bad records: {} in {}", show_count(*records), path.display()));
    }
    let (report, error) = (&outcome.report, &outcome.error);
    if printer.json() {
        printer.out(&json(&Document { report, error: error.as_ref().map(ErrorReport::of) }));
    } else {
        printer.out(&checked::text(report));
    }
    match error {
        None if report.rows_bad > 0 => Ok(Exit::LeftOut),
        None => Ok(Exit::Success),
        Some(error) => {
            printer.error(error);
            Ok(Exit::of(error))
        }
    }
}

/// Options that are about rows that are stored would be followed by nothing. Those of a job file are meant
/// for the load.
///
/// # Errors
/// `Usage` with the name of the first.
pub fn expect_none_for_rows(options: &LoadOptions) -> Result<()> {
    let run = &options.run;
    let typed = [
        ("--verify", run.verify.is_some()),
        ("--after", run.after.is_some()),
        ("--job-id", run.job_id.is_some()),
        ("--known", run.known.is_some()),
        ("--if-done", run.if_done.is_some()),
        ("--sequences", run.sequences.is_some()),
        ("--tune", run.tune.is_some()),
        ("--freeze", options.arrival.freeze == Some(true)),
        ("--force", run.force),
        ("--indexes rebuild", matches!(run.indexes, Some(IndexesName::Rebuild))),
        ("--triggers disable", matches!(run.triggers, Some(TriggersName::Disable))),
        ("--on-error stop", matches!(options.bad_records.on_error, Some(OnErrorName::Stop))),
    ];
    match typed.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("{name} is about rows that are stored, and a check stores none");
            Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out, and give it to the load"))
        }
    }
}

/// The same job, of which nothing is stored and for which nothing is changed.
pub fn only_checked(mut job: Job) -> Job {
    (job.arrival.check, job.arrival.freeze) = (true, false);
    job.bad_records.on_error = OnError::Skip;
    (job.indexes, job.triggers) = (IndexesChoice::Keep, TriggersChoice::Keep);
    (job.tune, job.after) = (Some(Tune::Session), Some(Vec::new()));
    (job.id, job.verify) = (None, Verify::None);
    debug_assert!(job.ledger != LedgerChoice::None);
    job
}

/// What `--json` prints: the report's keys, and `error`, which is null when all was read.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a CheckReport,
    error: Option<ErrorReport<'a>>,
}
