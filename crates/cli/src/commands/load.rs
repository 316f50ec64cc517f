//! `howdah load`: the main job.

use crate::options::LoadOptions;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::settings::{self, Settings};
use crate::{Exit, account};
use howdah_engine::model::{Job, Result, Summary};
use howdah_engine::{Connection, Context, Sources, Stop};
use std::sync::Arc;

/// Plans, loads, and prints the account.
///
/// # Errors
/// What happens before the first chunk; what ends a load under way is printed after the account.
pub async fn load(options: LoadOptions, printer: &Printer, stop: &Stop) -> Result<Exit> {
    let settings = Settings::resolve(options)?;
    let connection = stop.guard(settings::connection(settings.to, printer)).await?;
    run(settings.job, connection, printer, stop).await
}

/// Loads a job on this connection.
pub(super) async fn run(job: Job, connection: Connection, printer: &Printer, stop: &Stop) -> Result<Exit> {
    let context = Context {
        sources: Sources::new()?,
        connection,
        listener: Arc::new(Progress::new(*printer)),
        stop: stop.clone(),
    };
    let planned = howdah_engine::plan(&context, job).await?;
    let outcome = howdah_engine::load(&context, planned).await?;
    print(&outcome.summary, printer);
    match outcome.error {
        None => Ok(Exit::Success),
        Some(error) => {
            printer.error(&error);
            Ok(Exit::of(&error))
        }
    }
}

fn print(summary: &Summary, printer: &Printer) {
    if printer.json() {
        printer.out(&json(summary));
    } else {
        printer.say(&account::text(summary));
    }
}

/// Pretty JSON; these types always serialise.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
