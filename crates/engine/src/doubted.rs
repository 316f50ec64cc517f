//! Journals that roles may write which are strangers to the one that loads. Nothing tells whether an entry is
//! theirs, since all that is in it may be: what this run has not noted itself is put back by whoever names
//! the ledger, which says that these roles are trusted.

use crate::Context;
use crate::again::option;
use crate::indexes::restore_command;
use crate::left_behind::Left;
use howdah_model::{Error, ErrorKind, Result};
use howdah_target::ledger::{Ledger, UndoKind};
use howdah_target::sql::quote_ident;

/// Why nothing is put back.
pub(crate) fn not_believed(ledger: &Ledger, doubted_for: &[String]) -> String {
    format!(
        "{} may write the journal of the ledger in schema {}, and what it says would run with this role's rights",
        doubted_for.join(", "),
        quote_ident(ledger.schema())
    )
}

/// A load whose job has left something that it may not put back would end with that missing, and count as
/// done: keys that rows were not held to, triggers that have not fired.
///
/// # Errors
/// Ledger, where the job has left something.
pub(crate) fn expect_nothing_left(
    context: &Context,
    ledger: &Ledger,
    job_id: &str,
    left: &Left,
    doubted_for: &[String],
) -> Result<()> {
    // Rows wait in staging tables.
    let dropped = left.dropped.iter().filter(|undo| undo.change.kind != UndoKind::Staging);
    let mut changed =
        dropped.map(ToString::to_string).chain(left.tuned.iter().map(|held| held.thing.to_string()));
    let (Some(first), false) = (changed.next(), doubted_for.is_empty()) else { return Ok(()) };
    let more = match changed.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "another run of job {job_id} has changed {first}{more} and not put that back, and this one may not: {}",
        not_believed(ledger, doubted_for)
    );
    let hint = format!(
        "unless that run is still at work: where you trust who may write the journal, {} puts it back, as does this load with {}",
        restore_command(context, ledger, job_id),
        option("--ledger", ledger.schema())
    );
    Err(Error::new(ErrorKind::Ledger, message).with_hint(hint))
}
