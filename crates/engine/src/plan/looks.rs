//! What the server is asked around the rows. None of it hangs on an answer to another part, so that all of it
//! is sent together, and a server far away is waited for once; what follows from it is settled behind that,
//! one thing after the other.

use super::{ledger_of, policies, triggers, tune};
use crate::Context;
use crate::settle::judges;
use howdah_model::{Error, Plan, Result, sqlstate};
use howdah_target::ledger::{Believed, Undo};
use howdah_target::policies::Policies;
use howdah_target::session::Session;
use howdah_target::undo::triggers::Triggers;
use tokio::try_join;

/// The answers, by who asks.
pub(super) struct Looks {
    /// What loads have dropped and not put back.
    pub(super) open: Vec<Undo>,
    /// Why the role may not see that, where the load goes by what its tables refuse.
    pub(super) unseen: Option<Error>,
    /// Of each table that [`triggers::fired_on`] names, unless triggers are to be tried.
    pub(super) triggers: Option<Vec<Triggers>>,
    pub(super) tuning: tune::Seen,
    /// Of each table that is there.
    pub(super) policies: Vec<Policies>,
    /// The job has a ledger, which is not there yet.
    pub(super) makes_ledger: bool,
    /// Who it belongs to, where that is a stranger.
    pub(super) strangers: Vec<String>,
    /// Those for whose sake its journal is not believed. None where it says of no load that something is to
    /// be put back.
    pub(super) doubted_for: Vec<String>,
}

/// Looks.
///
/// # Errors
/// Table, where policies let no row in; those of ledger and session.
pub(super) async fn look(context: &Context, session: &Session, plan: &Plan) -> Result<Looks> {
    let ledger = ledger_of(&plan.job);
    let oids: Vec<u32> = plan.tables.iter().map(|table| table.table.oid).filter(|oid| *oid != 0).collect();
    let open = async {
        match &ledger {
            Some(ledger) => ledger.open_undos(session, None).await,
            None => Ok(Vec::new()),
        }
    };
    let unseen = async {
        match ledger.as_ref().filter(|_| judges(&plan.job)) {
            Some(ledger) => match ledger.expect_readable(session).await {
                Err(error) if error.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE) => Ok(Some(error)),
                seen => seen.map(|()| None),
            },
            None => Ok(None),
        }
    };
    let makes_ledger = async {
        match &ledger {
            Some(ledger) => ledger.is_made(session).await.map(|is_made| !is_made),
            None => Ok(false),
        }
    };
    let strangers = async {
        match &ledger {
            Some(ledger) => ledger.strangers(session, &oids).await,
            None => Ok(Vec::new()),
        }
    };
    let looking = async {
        try_join!(
            open,
            unseen,
            triggers::look(session, plan),
            tune::look(session, plan),
            policies::look(session, plan),
            makes_ledger,
            strangers
        )
    };
    let (open, unseen, triggers, tuning, policies, makes_ledger, strangers) =
        context.connection.attend(session, looking).await?;
    // To plan this question takes the server longer than most others, and most journals say nothing.
    let doubted_for = match ledger.filter(|_| !open.is_empty() || tuning.is_held()) {
        Some(ledger) => {
            context.connection.attend(session, ledger.doubted_for(session, Believed::Journal)).await?
        }
        None => Vec::new(),
    };
    Ok(Looks { open, unseen, triggers, tuning, policies, makes_ledger, strangers, doubted_for })
}
