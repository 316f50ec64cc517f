//! `howdah load`: the main job.

use super::Process;
use crate::options::LoadOptions;
use crate::progress::Progress;
use crate::rejected::{Rejected, as_warning};
use crate::units::show_count;
use crate::{Exit, account};
use howdah_engine::Connection;
use howdah_engine::model::{Error, ErrorReport, Job, Result, Summary};
use serde::Serialize;
use std::sync::Arc;

/// Plans, loads, and prints the account.
///
/// # Errors
/// What happens before the first chunk; what ends a load under way is printed after the account.
pub async fn load(options: LoadOptions, process: &Process<'_>) -> Result<Exit> {
    let settings = process.resolve(options)?;
    let connection = process.connect(settings.access.clone()).await?;
    let (job, rejected) = process.stop.guard(Rejected::prepare(settings, &connection)).await?;
    run(process, job, connection, &rejected, |error| error).await
}

/// Loads a job on this connection. `advise` has the last word on what the user is told to do about an error
/// of the load.
pub(super) async fn run(
    process: &Process<'_>,
    job: Job,
    connection: Connection,
    rejected: &Rejected,
    advise: impl Fn(Error) -> Error,
) -> Result<Exit> {
    let printer = process.printer;
    let progress = Arc::new(Progress::new(printer.clone())?);
    let telling = progress.telling();
    let context = process.context(connection, progress.clone());
    let prepare = |planned| rejected.planned(planned);
    let outcome = howdah_engine::plan_and_load(&context, job, prepare).await.map_err(&advise);
    drop(telling);
    let mut outcome = outcome.inspect_err(|_| {
        rejected.tell_older(&context);
        progress.wait_until_written();
    })?;
    let after = rejected.after(&context, &mut outcome).await;
    // A document goes elsewhere, and its reader need not take both.
    if !printer.json() {
        progress.wait_until_written();
    }
    for (path, records) in after.as_ref().map(Vec::as_slice).unwrap_or_default() {
        printer.say(&format!("rejected records: {} in {}", show_count(*records), path.display()));
    }
    let error = match (outcome.error.map(advise), after.err()) {
        (Some(error), Some(after)) => {
            printer.error(&after);
            outcome.summary.warnings.push(as_warning(&after));
            Some(error)
        }
        (error, after) => error.or(after),
    };
    if printer.json() {
        let error = error.as_ref().map(ErrorReport::of);
        printer.out(&json(&Document { summary: &outcome.summary, error }));
    } else {
        printer.say(&account::text(&outcome.summary));
    }
    match error {
        None if outcome.summary.rows_rejected > 0 => Ok(Exit::LeftOut),
        None => Ok(Exit::Success),
        Some(error) => {
            printer.error(&error);
            Ok(Exit::of(&error))
        }
    }
}

/// What `--json` prints: the summary's keys, and `error`, which is null when all is well.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    error: Option<ErrorReport<'a>>,
}

/// Pretty JSON; these types always serialise.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
