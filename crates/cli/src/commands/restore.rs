//! `howdah restore`: puts back what loads have dropped and, being killed, could not put back themselves.

use super::Process;
use super::load::json;
use crate::Exit;
use crate::access::Access;
use crate::options::RestoreOptions;
use crate::progress::Progress;
use crate::settings::ledger_schema;
use howdah_engine::model::Result;
use howdah_engine::restore;
use serde::Serialize;
use std::sync::Arc;

/// What `--json` prints.
#[derive(Serialize)]
struct Restored {
    /// Open entries of the journal whose things are back.
    restored: usize,
    /// Those that are closed though theirs are not: the table is gone, say.
    not_restored: usize,
}

/// Puts back what one job, or any job, has dropped.
///
/// # Errors
/// Those of the connection and the ledger; the first of what could not be put back.
pub async fn restore(options: &RestoreOptions, process: &Process<'_>) -> Result<Exit> {
    let printer = process.printer;
    let connection = process.connect_again(Access::typed(&options.target)).await?;
    let schema = ledger_schema(&options.target)?;
    let listener = Arc::new(Progress::new(printer.clone())?);
    let telling = listener.telling();
    let server = connection.display();
    let context = process.context(connection, listener.clone());
    let trusted = options.target.ledger.is_some();
    let restored = restore::restore(&context, &schema, trusted, options.job.as_deref()).await;
    drop(telling);
    if !printer.json() || restored.is_err() {
        listener.wait_until_written();
    }
    let restored = restored?;
    if printer.json() {
        printer.out(&json(&Restored { restored: restored.back, not_restored: restored.not_back }));
    } else if restored.back + restored.not_back == 0 {
        printer.say(&format!("there is nothing to put back in {server}"));
    }
    Ok(Exit::Success)
}
